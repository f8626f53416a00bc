"""Figures of studies, one module per drawing; `DRAWINGS` has all of them by name.

>>> DRAWINGS.names()
['balance', 'distribution', 'lines', 'curves', 'patches']
"""

from condense_once.studies.figures.balance import BALANCE
from condense_once.studies.figures.distribution import DISTRIBUTION
from condense_once.studies.figures.drawing import DRAWINGS, Drawing, FigureData
from condense_once.studies.figures.lines import CURVES, LINES
from condense_once.studies.figures.patches import PATCHES
from condense_once.studies.figures.save import check_figure, save_figure

__all__ = [
    "BALANCE",
    "CURVES",
    "DISTRIBUTION",
    "DRAWINGS",
    "LINES",
    "PATCHES",
    "Drawing",
    "FigureData",
    "check_figure",
    "save_figure",
]
