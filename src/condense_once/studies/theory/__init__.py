"""The paper's definitions, lemmas and theorems as measurements on any set; `THEORY` has all of them by name.

>>> sorted(THEORY.names())
['alignment', 'imbalance', 'leave-one-out', 'rademacher']
"""

from condense_once.studies.theory.alignment import ALIGNMENT
from condense_once.studies.theory.imbalance import IMBALANCE
from condense_once.studies.theory.leave_one_out import LEAVE_ONE_OUT
from condense_once.studies.theory.measurement import THEORY, Findings, Measurement, TheoryConfig
from condense_once.studies.theory.rademacher import RADEMACHER

__all__ = [
    "ALIGNMENT",
    "IMBALANCE",
    "LEAVE_ONE_OUT",
    "RADEMACHER",
    "THEORY",
    "Findings",
    "Measurement",
    "TheoryConfig",
]
