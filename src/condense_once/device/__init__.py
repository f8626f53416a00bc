"""Read a subset of a ranked set on a device, from a file or a web server, with numpy alone.

>>> from condense_once.device import open_set
>>> subset = open_set("cifar10-idc-ipc10").take(classes=["cat", "dog"], renumber=True)
>>> subset.patches.shape, subset.classes
((80, 3, 32, 32), ('cat', 'dog'))
"""

from condense_once.device.reader import DeviceSet as DeviceSet
from condense_once.device.reader import DeviceSubset as DeviceSubset
from condense_once.device.reader import open_set as open_set
