"""Selectors: rules that are not orders, because what they keep depends on the size. `SELECTORS` has them all by name.

>>> SELECTORS.names()
['ccs', 'ccs-fixed', 'ssp', 'ssp-fixed', 'stored']
"""

from condense_once.selection.selectors.ccs import CCS as CCS
from condense_once.selection.selectors.ccs import CCS_FIXED as CCS_FIXED
from condense_once.selection.selectors.registry import SELECTORS as SELECTORS
from condense_once.selection.selectors.registry import Reads as Reads
from condense_once.selection.selectors.registry import SelectorInfo as SelectorInfo
from condense_once.selection.selectors.registry import images_per_class as images_per_class
from condense_once.selection.selectors.ssp import SSP as SSP
from condense_once.selection.selectors.ssp_fixed import SSP_FIXED as SSP_FIXED
from condense_once.selection.selectors.stored import STORED as STORED
