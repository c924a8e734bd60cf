"""Do gaps agree between data sets, and between models? Computed from the results of several runs or models.

As in the study, a concept is green if both gaps are wider than five points and point in the same direction, red if they
point in opposite directions, and yellow otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.comparison.family import DIFFERENCE, NONE_FOUND
from beholder.core.results import PLAIN, Row, results_table
from beholder.studies.disparity.alignment import FEWEST_CONCEPTS, rank_correlation
from beholder.studies.disparity.prompts import SAME_CONCEPTS, Words
from beholder.studies.rows import PROBABILITY

WIDE = 0.05
"""A gap is wide above five points."""
GREEN, YELLOW, RED = 1.0, 0.0, -1.0
COLOURS = {GREEN: "green", YELLOW: "yellow", RED: "red"}
Key = tuple[str, str]
"""A model and a data set."""


def agreement(
    results: pl.DataFrame, beside: pl.DataFrame, compat: bool = False, same: Words = SAME_CONCEPTS
) -> pl.DataFrame:
    """Rows for every model and data set of `results`, compared with the others there and in `beside`.

    `compat` counts every concept with a gap, as the study does; otherwise only those with enough images to test. `same`
    says which concepts of two data sets are the same; concepts of one name always are.
    """
    own, others = (_gaps(each, every=compat) for each in (results, beside))
    known = own | {key: gaps for key, gaps in others.items() if key not in own}
    made = []
    for (model, dataset), gaps in own.items():
        rows = [
            row
            for (other, elsewhere), their in known.items()
            for row in _rows((model, dataset), (other, elsewhere), gaps, their, same)
        ]
        made.append(results_table(rows, study="disparity", model=model, dataset=dataset))
    return pl.concat(made) if made else results.clear()


def colour(first: float, second: float) -> float:
    """Green, red or yellow.

    >>> colour(0.08, 0.06), colour(0.08, -0.06), colour(0.08, 0.01)
    (1.0, -1.0, 0.0)
    """
    if min(abs(first), abs(second)) <= WIDE:
        return YELLOW
    return GREEN if first * second > 0 else RED


def _gaps(results: pl.DataFrame, *, every: bool) -> dict[Key, pl.DataFrame]:
    """The published gaps of every model on every data set: all, or only those with enough images to test."""
    rows, matched = (
        results.filter(pl.col("metric") == f"disparity.{name}", pl.col("value").is_not_null(), PLAIN)
        for name in ("ap_gap", "ap_gap_matched")
    )
    place = ["model", "dataset", "concept", "group", "against"]
    tested = matched.filter(pl.col("verdict").is_in([DIFFERENCE, NONE_FOUND]))
    rows = rows if every else rows.join(tested, on=place, how="semi", maintain_order="left")
    return {
        (str(model), str(dataset)): part
        for (model, dataset), part in rows.group_by(["model", "dataset"], maintain_order=True)
    }


def _rows(own: Key, other: Key, gaps: pl.DataFrame, their: pl.DataFrame, same: Words) -> Iterator[Row]:
    """The same model on another data set, or another model on the same data set; nothing else can be compared."""
    if (own[0] == other[0]) == (own[1] == other[1]):
        return
    named = [_named(table, same if own[0] == other[0] else {}) for table in (gaps, their)]
    pairs = named[0].join(named[1], on=["same", "group", "against"], suffix="_there", maintain_order="left")
    if not pairs.height:
        return
    if own[0] == other[0]:
        yield from _dataset_rows(other[1], pairs)
    else:
        yield from _model_rows(other[0], pairs)


def _named(gaps: pl.DataFrame, same: Words) -> pl.DataFrame:
    """The gaps with one name for each concept, in `same`; of two concepts of one name, the one that has it already."""
    named = gaps.with_columns(same=pl.col("concept").replace(dict(same)))
    own = (pl.col("same") == pl.col("concept")).sum().over("same", "group", "against")
    return named.filter((pl.col("same") == pl.col("concept")) | (own == 0))


def _dataset_rows(elsewhere: str, pairs: pl.DataFrame) -> Iterator[Row]:
    """The colour of every shared concept with both gaps, and how many concepts have each colour."""
    colours = []
    for row in pairs.iter_rows(named=True):
        value = colour(row["value"], row["value_there"])
        colours.append(value)
        made = Row("disparity.ap_gap_elsewhere", row["value_there"], row["n_there"], row["unit"], subset=elsewhere)
        names = {key: row[key] for key in ("group", "against", "concept")}
        yield made._replace(**names, note=row["concept_there"])
        note = f"{COLOURS[value]}: {100 * row['value']:+.1f} points here, {100 * row['value_there']:+.1f} there"
        yield Row("disparity.agreement", value, 2, "colour", subset=elsewhere, note=note)._replace(**names)
    for value, name in COLOURS.items():
        count = Row("disparity.agreement_count", float(colours.count(value)), len(colours), "concepts")
        chance = (colours.count(GREEN) + colours.count(RED)) / 2 if value else None
        note = "concepts of both data sets, by colour"
        note += "; expected: half of those with two wide gaps, whose directions agree by chance" if value else ""
        yield count._replace(subset=elsewhere, group=name, expected=chance, note=note)
    yield from _correlation(elsewhere, pairs)


def _model_rows(other: str, pairs: pl.DataFrame) -> Iterator[Row]:
    """How often the gaps of two models point in the same direction, and how their ranks agree."""
    signs = pairs.filter((pl.col("value") != 0) & (pl.col("value_there") != 0))
    if signs.height:
        same = int(((signs["value"] > 0) == (signs["value_there"] > 0)).sum())
        note = "concepts whose gaps point in the same direction in both models; 0.5 by chance"
        row = Row("disparity.model_agreement", same / signs.height, signs.height, PROBABILITY, subset=other)
        yield row._replace(note=note)
    yield from _correlation(other, pairs)


def _correlation(other: str, pairs: pl.DataFrame) -> Iterator[Row]:
    if pairs.height >= FEWEST_CONCEPTS:
        value = rank_correlation(pairs["value"].to_numpy(), pairs["value_there"].to_numpy())
        row = Row("disparity.gap_correlation", value, pairs.height, "rank correlation", subset=other)
        yield row._replace(note="Spearman's, over concepts")
