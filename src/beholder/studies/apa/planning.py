"""APA's plan."""

from functools import partial

from beholder.studies.apa.printed import POOLS
from beholder.studies.apa.study import DRAWN_POOLS
from beholder.studies.public_figures.planning import ratio_plan

plan = partial(ratio_plan, "apa", {**POOLS, **DRAWN_POOLS})
