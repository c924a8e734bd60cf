"""The one place where people are compared: who is a person, which groups, within what, and what is found.

A study chooses the statistic and declares its families. Nulls, bounds and verdicts are computed here and nowhere else.
"""

from beholder.comparison.comparison import Comparison, comparison_at
from beholder.comparison.exchange import Exchanged, exchanged
from beholder.comparison.family import Part, judge, part_from_null
from beholder.comparison.groups import Groups, crossing, group_by, groups_of
from beholder.comparison.means import (
    ShuffledGroups,
    compare_groups,
    compare_slopes,
    each_stratum,
    levels_of,
    ratio_bounds,
)
from beholder.comparison.pairs import compare_pairs, shares_of
from beholder.comparison.people import People, people_of
from beholder.comparison.ranks import compare_ranks
from beholder.comparison.strata import Strata, additive_strata, strata_of
from beholder.comparison.verdicts import (
    DIFFERENCE,
    FACT,
    FEWEST,
    NONE_FOUND,
    NOT_MEASURED,
    SIGNS,
    TOO_LITTLE,
    VERDICTS,
    verdict_of,
)

__all__ = [
    "DIFFERENCE",
    "FACT",
    "FEWEST",
    "NONE_FOUND",
    "NOT_MEASURED",
    "SIGNS",
    "TOO_LITTLE",
    "VERDICTS",
    "Comparison",
    "Exchanged",
    "Groups",
    "Part",
    "People",
    "ShuffledGroups",
    "Strata",
    "additive_strata",
    "compare_groups",
    "compare_pairs",
    "compare_ranks",
    "compare_slopes",
    "comparison_at",
    "crossing",
    "each_stratum",
    "exchanged",
    "group_by",
    "groups_of",
    "judge",
    "levels_of",
    "part_from_null",
    "people_of",
    "ratio_bounds",
    "shares_of",
    "strata_of",
    "verdict_of",
]
