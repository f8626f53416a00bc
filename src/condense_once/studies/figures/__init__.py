"""Figures: what a study found out as pictures. One file a drawing; `DRAWINGS` has them all by name.

>>> DRAWINGS.names()
['balance', 'distribution', 'lines', 'patches']
"""

from condense_once.studies.figures.balance import BALANCE
from condense_once.studies.figures.distribution import DISTRIBUTION
from condense_once.studies.figures.drawing import DRAWINGS, Drawing, Material
from condense_once.studies.figures.lines import LINES
from condense_once.studies.figures.patches import PATCHES
from condense_once.studies.figures.saving import check_drawing, draw

__all__ = ["BALANCE", "DISTRIBUTION", "DRAWINGS", "LINES", "PATCHES", "Drawing", "Material", "check_drawing", "draw"]
