"""Disparity's findings: how recognition does on average, which gaps are shown, what the counts could show at all."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from scipy.stats import binom

from beholder.chapter import phrases as words
from beholder.chapter.finding import Finding, finding
from beholder.chapter.numbers import Result, excludes, percent, percent_range
from beholder.studies.disparity import phrases as said
from beholder.studies.disparity import queries as reading
from beholder.studies.disparity.gaps import ALPHA
from beholder.studies.disparity.word_rows import FEWEST_CONCEPTS

NAMED = 3
"""Concepts that a sentence names in either direction."""
MIXED = 0.05
"""A published gap is said to be one of prevalence where matching moves it by at least five points."""


def disparity_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show, in the order to read it."""
    return [found for find in FINDERS for found in find(part)]


def _mean(part: pl.DataFrame) -> Iterator[Finding]:
    """The mean, and whether it says anything about single concepts."""
    for pair in reading.pairs(part):
        row = reading.one(part, "mean_ap_gap", group=pair)
        first, second = reading.sides(pair)
        means = [reading.one(part, "mean_average_precision", group=side) for side in (first, second)]
        if row is None:
            continue
        shown = excludes(row, 0.0)
        seen = f"recognition is better in {said.better(row)}" if shown else "no difference is shown"
        both = zip((first, second), means, strict=True)
        levels = "".join(f"“{side}” {percent(mean['value'])}, " for side, mean in both if mean)
        sentence = (
            f"Mean average precision over {row['n']} concepts: {levels}difference "
            f"{said.signed(row['value'])} points ({said.interval(row)}). The mean hides gaps that point opposite ways."
        )
        yield finding(row, "mean", f"On average over concepts, {seen}", sentence, shown=shown, effect=abs(row["value"]))


def _gaps(part: pl.DataFrame) -> Iterator[Finding]:
    """Which concepts differ, at matched prevalence and after correction."""
    for pair in reading.pairs(part):
        count, spread = (reading.one(part, what, group=pair) for what in ("gaps_shown", "gap_spread"))
        if count is None or spread is None:
            yield from _untested(part, pair)
            continue
        table = reading.tested(part, pair)
        shown = table.filter("shown")
        number = int(count["value"])
        beside = f"{' and '.join(f'“{side}”' for side in reading.sides(pair))}"
        headline = (
            f"{number} of {count['n']} concepts are recognised unequally in pictures of {beside}"
            if number
            else f"No gap is shown between pictures of {beside}; not the same as none"
        )
        sentence = " ".join((*_named(shown), _by_chance(part, pair, spread), _detectable(table)))
        yield finding(count, "gaps", headline, sentence.strip(), shown=number > 0, effect=float(number))


def _untested(part: pl.DataFrame, pair: str) -> Iterator[Finding]:
    row = part.filter((pl.col("metric") == "disparity.ap_gap") & (pl.col("group") == pair)).head(1)
    if row.height:
        sentence = "A gap is tested where at least five images of both show the concept and five do not."
        headline = "Too few images show any one concept to test a gap"
        yield finding(row.row(0, named=True), "gaps", headline, sentence, shown=False)


def _named(shown: pl.DataFrame) -> Iterator[str]:
    """The widest gaps in either direction."""
    for side in (shown.filter(pl.col("value") > 0), shown.filter(pl.col("value") < 0)):
        widest = side.head(NAMED).to_dicts()
        if widest:
            listed = words.listed([f"“{row['concept']}” ({_points(row)})" for row in widest])
            yield f"Better in {said.better(widest[0])}: {listed}."


def _points(row: Result) -> str:
    return f"{said.points(abs(row['value']))} points, p {said.p_value(row['p_value'])}"


def _by_chance(part: pl.DataFrame, pair: str, spread: Result) -> str:
    expected = reading.one(part, "gap_spread_expected", group=pair)
    if expected is None:
        return ""
    return (
        f"Over the {spread['n']} concepts that could be tested a gap is {said.points(spread['value'])} points wide on "
        f"average, at matched prevalence; shuffled labels give {said.points(expected['value'])} "
        f"({said.points(expected['low'])}–{said.points(expected['high'])})."
    )


def _detectable(table: pl.DataFrame) -> str:
    known = table["detectable"].drop_nulls()
    if not len(known):
        return ""
    median = float(known.to_numpy()[len(known) // 2] if len(known) == 1 else known.median())  # type: ignore[arg-type]
    return f"For half of them only gaps of {said.points(median)} points or more would be found in four of five tries."


def _prevalence(part: pl.DataFrame) -> Iterator[Finding]:
    """Where the published gap is one of how often a group shows the concept."""
    for pair in reading.pairs(part):
        moved = reading.tested(part, pair).with_columns((pl.col("raw") - pl.col("value")).alias("moved"))
        far = moved.filter(pl.col("moved").abs() >= MIXED).sort(pl.col("moved").abs(), descending=True)
        if not far.height:
            continue
        row = far.row(0, named=True)
        headline = f"{far.height} of {moved.height} published gaps move by five points or more at matched prevalence"
        sentence = (
            f"Farthest “{row['concept']}”: {said.signed(row['raw'])} points as published, {said.signed(row['value'])} "
            "when both groups show it equally often. Average precision is higher where a concept is frequent."
        )
        yield finding(row, "prevalence", headline, sentence, shown=False, effect=abs(row["moved"]))


def _words(part: pl.DataFrame) -> Iterator[Finding]:
    for pair in reading.pairs(part):
        row = reading.one(part, "word_agreement", subset="ap_gap_matched", group=pair)
        if row is None or row["n"] < FEWEST_CONCEPTS:
            continue
        shown = excludes(row, 0.5)
        way = "point where" if row["value"] > 0.5 else "point away from where"
        headline = f"Gaps {way} word vectors put a concept" if shown else "No agreement with word vectors is shown"
        sentence = (
            f"{percent(row['value'])} of {row['n']} concepts have a gap and an alignment of one sign (95 % interval "
            f"{percent_range(row['low'], row['high'])}; 50 % by chance)."
        )
        yield finding(row, "words", headline, sentence, shown=shown, effect=abs(row["value"] - 0.5))


def _agreement(part: pl.DataFrame) -> Iterator[Finding]:
    counts = reading.rows(part, "agreement_count")
    for (elsewhere,), mine in counts.group_by(["subset"], maintain_order=True):
        number = {row["group"]: int(row["value"]) for row in mine.to_dicts()}
        row = mine.row(0, named=True)
        green, red, yellow = (number.get(colour, 0) for colour in ("green", "red", "yellow"))
        headline = f"{green} of {row['n']} concepts have a wide gap that points one way here and on {elsewhere}"
        sentence = f"{red} point opposite ways; {yellow} have no wide gap on one of them."
        yield finding(row, "agreement", headline, sentence, shown=False)
    for row in reading.rows(part, "model_agreement").filter(pl.col("n") >= FEWEST_CONCEPTS).to_dicts():
        shown = excludes(row, 0.5)
        headline = f"{percent(row['value'])} of the gaps point the same way as {row['subset']}’s"
        sentence = f"Over {row['n']} concepts, 95 % interval {percent_range(row['low'], row['high'])}; 50 % by chance."
        yield finding(row, "agreement", headline, sentence, shown=shown)


def _calibration(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether a confidence means the same for all; why there is none, where scores are no probabilities."""
    errors = part.filter(pl.col("metric") == "disparity.ece")
    absent = errors.filter(pl.col("value").is_null() & pl.col("concept").is_null())
    if absent.height:
        row = absent.row(0, named=True)
        sentence = f"Its scores only rank pictures; {row['note']}."
        yield finding(row, "calibration", "Calibration was not measured", sentence, shown=False)
    for pair in reading.pairs(part):
        table = reading.calibration_gaps(part, pair).drop_nulls(["low", "high"])
        off = table.filter((pl.col("low") > 0) | (pl.col("high") < 0))
        if table.height:
            rows = [*off.to_dicts(), *table.head(1).to_dicts()]
            headline = f"For {off.height} of {table.height} concepts confidence is off by more in pictures of one group"
            counted = (
                "Counted: intervals of the gap in miscalibration, which does not follow the groups' sizes, without 0; "
                "one in twenty would be by chance."
            )
            sentence = f"{_least_calibrated(part, rows[0]) if off.height else ''}{counted}"
            more = binom.sf(off.height - 1, table.height, ALPHA) <= ALPHA
            yield finding(rows[0], "calibration", headline, sentence, shown=bool(more))


def _least_calibrated(part: pl.DataFrame, row: Result) -> str:
    sides = reading.sides(row["group"])
    if row["value"] < 0:
        sides = sides[1], sides[0]
    worse, better = (reading.one(part, "miscalibration", group=s, concept=row["concept"]) for s in sides)
    if worse is None or better is None:  # the rest of several groups has no row of its own
        return f"Widest: “{row['concept']}”, worse in {said.pictures(sides[0])}. "
    levels = [said.points(said.root(side["value"])) for side in (worse, better)]
    return (
        f"Widest: “{row['concept']}”, off by {levels[0]} points in {said.pictures(sides[0])} and by {levels[1]} in "
        f"{said.pictures(sides[1])}, chance taken off. "
    )


FINDERS = (_gaps, _mean, _prevalence, _calibration, _words, _agreement)
