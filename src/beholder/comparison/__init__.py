"""The one place where people are compared: who is a person, which groups, within what, and what is found.

A study chooses the statistic and declares its families. Nulls, bounds and verdicts are computed here and nowhere else.
"""

from beholder.comparison.comparison import Comparison as Comparison
from beholder.comparison.comparison import comparison_at as comparison_at
from beholder.comparison.family import DIFFERENCE as DIFFERENCE
from beholder.comparison.family import FACT as FACT
from beholder.comparison.family import FEWEST as FEWEST
from beholder.comparison.family import NONE_FOUND as NONE_FOUND
from beholder.comparison.family import NOT_MEASURED as NOT_MEASURED
from beholder.comparison.family import SIGNS as SIGNS
from beholder.comparison.family import TOO_LITTLE as TOO_LITTLE
from beholder.comparison.family import VERDICTS as VERDICTS
from beholder.comparison.family import Part as Part
from beholder.comparison.family import judge as judge
from beholder.comparison.family import part_from_null as part_from_null
from beholder.comparison.family import verdict_of as verdict_of
from beholder.comparison.groups import Groups as Groups
from beholder.comparison.groups import People as People
from beholder.comparison.groups import Strata as Strata
from beholder.comparison.groups import additive_strata as additive_strata
from beholder.comparison.groups import crossing as crossing
from beholder.comparison.groups import group_by as group_by
from beholder.comparison.groups import groups_of as groups_of
from beholder.comparison.groups import people_of as people_of
from beholder.comparison.groups import strata_of as strata_of
from beholder.comparison.means import ShuffledGroups as ShuffledGroups
from beholder.comparison.means import compare_groups as compare_groups
from beholder.comparison.means import compare_slopes as compare_slopes
from beholder.comparison.means import each_stratum as each_stratum
from beholder.comparison.means import levels_of as levels_of
from beholder.comparison.means import ratio_bounds as ratio_bounds
from beholder.comparison.shuffles import Exchanged as Exchanged
from beholder.comparison.shuffles import compare_pairs as compare_pairs
from beholder.comparison.shuffles import compare_ranks as compare_ranks
from beholder.comparison.shuffles import exchanged as exchanged
from beholder.comparison.shuffles import shares_of as shares_of
