"""Disparity's rows as a person reads them: one line per concept, with everything known about its gap.

Tables in, small tables out; every number is a row of the results.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from beholder.chapter.numbers import Result
from beholder.chapter.queries import FOUND, by_column, deciding_rows, metric_rows, widest_first, with_metrics
from beholder.comparison.family import DIFFERENCE, NONE_FOUND

AGREES, OPPOSES, UNKNOWN = "as word vectors", "against word vectors", "no word vector"
"""Whether a gap points towards the group that word vectors put the concept nearer to."""
TESTED = pl.col("verdict").is_in([DIFFERENCE, NONE_FOUND])


class Pair(NamedTuple):
    """Two groups that are compared: a positive gap favours the first."""

    first: str
    second: str
    rest: bool = False
    """Whether `second` stands for all other groups together."""

    @property
    def names(self) -> tuple[str, str]:
        """The two names, as the columns `group` and `against` have them."""
        return self.first, self.second


def groups(part: pl.DataFrame) -> list[str]:
    """The groups, in order."""
    means = metric_rows(part, "mean_average_precision", absent=True)
    return list(dict.fromkeys(means["group"].drop_nulls()))


def pairs(part: pl.DataFrame) -> list[Pair]:
    """Which groups are compared; a name that no group has stands for the rest."""
    known = set(groups(part))
    gaps = metric_rows(part, "ap_gap", absent=True).select("group", "against").unique(maintain_order=True)
    return [Pair(group, against, against not in known) for group, against in gaps.drop_nulls().iter_rows()]


def of_pair(part: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    """The rows that compare these two groups."""
    return part.filter(pl.col("group") == pair.first, pl.col("against") == pair.second)


def gaps(part: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    """Every concept with a matched gap, the widest first, with its other numbers in columns of their own.

    Bounds hold for all concepts at once; `found` says what the verdict says.
    """
    compared = of_pair(part, pair)
    others = {"raw": "ap_gap", "detectable": "gap_detectable", "alignment": "word_alignment"}
    rows = deciding_rows(compared, "ap_gap_matched")
    first = rows.sort(~FOUND, pl.col("variant").str.len_chars().fill_null(0), maintain_order=True)
    one_each = first.unique(["model", "concept"], keep="first", maintain_order=True)  # of strata, one that differs
    table = with_metrics(one_each, compared, ["concept"], **others)
    same = (pl.col("value") * pl.col("alignment")).sign()
    words = pl.when(same > 0).then(pl.lit(AGREES)).when(same < 0).then(pl.lit(OPPOSES)).otherwise(pl.lit(UNKNOWN))
    return widest_first(table.with_columns(found=FOUND, words=words))


def association(part: pl.DataFrame, pair: Pair) -> dict[str, str]:
    """Of every concept with a word vector, to which group's words it is nearer."""
    rows = metric_rows(of_pair(part, pair), "word_alignment").filter(pl.col("value") != 0)
    return {row["concept"]: nearer(pair.names[0 if row["value"] > 0 else 1]) for row in rows.to_dicts()}


def nearer(group: str) -> str:
    """A concept whose word is nearer to this group's words than to others'."""
    return f"nearer to words for “{group}”"


def tested(part: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    """The gaps that were tested."""
    return gaps(part, pair).filter(TESTED)


def calibration_gaps(part: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    """Gaps of miscalibration that were tested, the widest first; `found` and bounds as in `gaps`."""
    table = deciding_rows(of_pair(part, pair), "miscalibration_gap").filter(TESTED)
    return widest_first(table.with_columns(found=FOUND))


def decided(part: pl.DataFrame, metric: str, **where: str) -> Result | None:
    """The row of a metric that decides, if there is one."""
    rows = deciding_rows(part, metric).filter(**where)
    return rows.row(0, named=True) if rows.height else None


def ends(table: pl.DataFrame, number: int) -> list[Result]:
    """The widest gaps in either direction, from the most positive to the most negative."""
    above = table.filter(pl.col("value") > 0).sort("value", descending=True).head(number)
    below = table.filter(pl.col("value") < 0).sort("value", descending=True).tail(number)
    return [*above.to_dicts(), *below.to_dicts()]


def by_concept(part: pl.DataFrame, metric: str) -> dict[str, Result]:
    """The rows of a metric, by concept."""
    return by_column(metric_rows(part, metric), "concept")


def sides(part: pl.DataFrame, metric: str, pair: Pair) -> list[dict[str, Result]]:
    """A metric of both groups of a pair, each by concept; the rest has no rows of its own."""
    return [by_concept(part.filter(group=name), metric) for name in pair.names]
