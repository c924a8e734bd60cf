"""P-FI's plan."""

from functools import partial

from beholder.studies.apa.printed import POOLS
from beholder.studies.public_figures.planning import ratio_plan

plan = partial(ratio_plan, "pfi", POOLS)
