"""Studies: the paper's tables and figures as declared grids, a store of results, and engines to run them."""

from condense_once.studies import shipped as shipped  # registers them
from condense_once.studies.study import STUDIES as STUDIES
from condense_once.studies.study import Study as Study
