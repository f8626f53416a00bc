"""A device takes its share of a ranked set, from a file or straight from a web server, with numpy alone.

>>> from condense_once.device import open_set
>>> share = open_set("cifar10-idc-ipc10").take(classes=["cat", "dog"], renumber=True)
>>> share.patches.shape, share.classes
((80, 3, 32, 32), ('cat', 'dog'))
"""

from condense_once.device.reader import DeviceSet as DeviceSet
from condense_once.device.reader import Share as Share
from condense_once.device.reader import open_set as open_set
