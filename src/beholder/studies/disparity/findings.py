"""Disparity's findings: which gaps are shown, what the mean says, and what could have been found at all."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding
from beholder.chapter.numbers import (
    Result,
    has_interval,
    percent,
    percent_range,
    points,
    points_range,
    row_p_value,
    signed,
)
from beholder.chapter.phrases import listed
from beholder.chapter.queries import metric_rows, one_row
from beholder.comparison.verdicts import NOT_MEASURED, TOO_LITTLE
from beholder.metrics.multiplicity import ALPHA
from beholder.studies.disparity import phrases, queries
from beholder.studies.disparity.alignment import FEWEST_CONCEPTS
from beholder.studies.disparity.queries import Pair

NAMED = 3
"""How many concepts a sentence names in either direction."""
MOVED = 0.05
"""A published gap depends on prevalence if matching moves it by at least five points."""


def disparity_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show, in the order to read it."""
    return [each for find in FINDERS for each in find(part)]


def _mean(part: pl.DataFrame) -> Iterator[Finding]:
    """The mean of the matched gaps: the published means depend on prevalence, and are only told."""
    for pair in queries.pairs(part):
        compared = queries.of_pair(part, pair)
        row = one_row(compared, "mean_ap_gap_matched")
        if row is None or row["n"] < 2:
            continue
        shown = queries.shown(row)
        result = f"recognition is better in {phrases.better(row, pair)}" if shown else "no difference is shown"
        sentence = (
            f"The mean gap over {phrases.concepts(row['n'])} at matched prevalence is {signed(row['value'])} points "
            f"({phrases.interval(row)}; p {row_p_value(row)}, from shuffled labels)."
        )
        means = [one_row(part, "mean_average_precision", group=name) for name in pair.names]
        published = one_row(compared, "mean_ap_gap")
        more = [each for each in (published, *means) if each]
        if published and all(means):
            both = zip(phrases.quoted(pair), means, strict=True)
            levels = ", ".join(f"{name} {percent(mean['value'])}" for name, mean in both if mean)
            sentence += (
                f" Mean average precision as published, over {phrases.concepts(published['n'])}: {levels}, difference "
                f"{signed(published['value'])}."
            )
        gaps = queries.tested(part, pair).filter("shown")["value"]
        if (gaps > 0).any() and (gaps < 0).any():
            sentence += " The mean hides gaps that point in opposite directions."
        headline = f"On average over concepts, {result}"
        yield finding(row, "mean", headline, sentence, shown=shown, effect=abs(row["value"]), more=more)


def _gaps(part: pl.DataFrame) -> Iterator[Finding]:
    """Which concepts differ, at matched prevalence and after correction."""
    for pair in queries.pairs(part):
        compared = queries.of_pair(part, pair)
        count, spread = (one_row(compared, metric) for metric in ("gaps_shown", "gap_spread"))
        if count is None or spread is None:
            yield from _untested(compared)
            continue
        table = queries.tested(part, pair)
        number = int(count["value"])
        named = _widest(table.filter("shown"))
        parts = _named(named, pair), _all_at_once(named, count), _unbounded(table), _detectable(table)
        sentence = " ".join(each for sentences in parts for each in sentences)
        more = [row for side in named for row in side]
        headline = _gaps_headline(number, count["n"], spread, pair)
        yield finding(count, "gaps", headline, sentence, shown=number > 0, effect=float(number), more=more)


def _gaps_headline(number: int, tested: int, spread: Result, pair: Pair) -> str:
    groups = " and ".join(phrases.quoted(pair))
    if number:
        are = "is" if number == 1 else "are"
        return f"{number} of {phrases.concepts(tested)} {are} recognised unequally in images of {groups}"
    if queries.is_called(spread):
        return f"No single concept's gap between images of {groups} is shown"
    return f"No gap is shown between images of {groups}; this does not show that there is none"


def _together(part: pl.DataFrame) -> Iterator[Finding]:
    """All gaps together: are they wider than shuffled labels make them?"""
    for pair in queries.pairs(part):
        compared = queries.of_pair(part, pair)
        row, chance = (one_row(compared, metric) for metric in ("gap_spread", "gap_spread_expected"))
        if row is None or chance is None or row["p_value"] is None or row["n"] < 2:
            continue
        shown, groups = queries.is_called(row), " and ".join(phrases.quoted(pair))
        headline = (
            f"Taken together, gaps between images of {groups} are wider than chance"
            if shown
            else f"Taken together, gaps between images of {groups} are not shown to be wider than chance"
        )
        sentence = (
            f"Over {phrases.concepts(row['n'])}, a gap is {points(row['value'])} points wide on average, at matched "
            f"prevalence; shuffled labels give {points(chance['value'])} "
            f"({points(chance['low'])}–{points(chance['high'])}; p {row_p_value(row)})."
        )
        effect = row["value"] - chance["value"]
        yield finding(row, "together", headline, sentence, shown=shown, effect=effect, more=[chance])


def _untested(compared: pl.DataFrame) -> Iterator[Finding]:
    rows = compared.filter(pl.col("metric") == "disparity.ap_gap").head(1)
    if rows.height:
        sentence = "A gap is tested if at least five images of both groups show the concept and five do not."
        headline = "Too few images show any one concept to test a gap"
        yield finding(rows.row(0, named=True), "gaps", headline, sentence, verdict=TOO_LITTLE)


def _widest(shown: pl.DataFrame) -> list[list[Result]]:
    """The widest gaps in favour of the first group, and of the second."""
    directions = shown.filter(pl.col("value") > 0), shown.filter(pl.col("value") < 0)
    return [side.head(NAMED).to_dicts() for side in directions]


def _named(widest: list[list[Result]], pair: Pair) -> Iterator[str]:
    for side in widest:
        if side:
            concepts = [
                f"“{row['concept']}” by {points(abs(row['value']))} points{_bounds(row)}, p {row_p_value(row)}"
                for row in side
            ]
            yield f"Better in {phrases.better(side[0], pair)}: {'; '.join(concepts)}."


def _bounds(row: Result) -> str:
    """The bounds of the width of a gap that hold for all concepts at once, in brackets."""
    bounds = {"value": row["value"], "low": row["all_low"], "high": row["all_high"]}
    if not has_interval(bounds):
        return ""
    return f" ({points_range(bounds if row['value'] > 0 else phrases.mirrored(bounds))})"


def _all_at_once(named: list[list[Result]], count: Result) -> Iterator[str]:
    if count["n"] > 1 and any(row["all_low"] is not None for side in named for row in side):
        yield f"The intervals hold for all {count['n']} tested concepts at once."


def _unbounded(table: pl.DataFrame) -> Iterator[str]:
    """Concepts with a small p but no interval: named, because they are not counted as shown."""
    rows = table.filter((pl.col("p_value") <= ALPHA) & pl.col("low").is_null())
    if rows.height:
        names = listed([f"“{concept}”" for concept in rows["concept"].head(NAMED)])
        most = f"{rows.height} concepts, among them {names}," if rows.height > NAMED else names
        yield f"Not counted although p ≤ {ALPHA:g}, because without an error in one group there is no interval: {most}."


def _detectable(table: pl.DataFrame) -> Iterator[str]:
    known = table["detectable"].drop_nulls()
    if len(known):
        median = float(known.median())  # type: ignore[arg-type]
        which = "For half of the tested concepts" if len(known) > 1 else "For the one tested concept"
        yield f"{which}, only gaps of {points(median)} points or more would be found in four of five tries."


def _prevalence(part: pl.DataFrame) -> Iterator[Finding]:
    """Where the published gap reflects how often a group shows the concept."""
    for pair in queries.pairs(part):
        moved = queries.tested(part, pair).with_columns((pl.col("raw") - pl.col("value")).alias("moved"))
        far = moved.filter(pl.col("moved").abs() >= MOVED).sort(pl.col("moved").abs(), descending=True)
        if not far.height:
            continue
        row = far.row(0, named=True)
        move = f"gap{'s' * (moved.height > 1)} move{'s' * (far.height == 1)} by five points or more"
        headline = f"{far.height} of {moved.height} {move} when both groups show a concept equally often"
        rows = [one_row(part, "prevalence", group=name, concept=row["concept"]) for name in pair.names]
        shares = [percent(each["value"]) for each in rows if each]
        often = f" ({shares[0]} and {shares[1]} of their images do)" if len(shares) == len(rows) else ""
        sentence = (
            f"The largest move is at “{row['concept']}”: {signed(row['raw'])} points measured as published, "
            f"{signed(row['value'])} when both groups show it equally often{often} and what few images alone "
            "produce is removed."
        )
        published = one_row(queries.of_pair(part, pair), "ap_gap", concept=row["concept"])
        more = [published] if published else []
        yield finding(row, "prevalence", headline, sentence, effect=abs(row["moved"]), more=more)


def _words(part: pl.DataFrame) -> Iterator[Finding]:
    for pair in queries.pairs(part):
        row = one_row(queries.of_pair(part, pair), "word_agreement", subset="ap_gap_matched")
        if row is None or row["n"] < FEWEST_CONCEPTS:
            continue
        shown = queries.shown(row, 0.5)
        way = "agree with" if row["value"] > 0.5 else "point against"
        headline = f"Gaps {way} word vectors" if shown else "No agreement of gaps with word vectors is shown"
        tested = f"; shuffled labels give {percent(row['expected'])}, p {row_p_value(row)}" if row["p_value"] else ""
        sentence = (
            f"{percent(row['value'])} of {row['n']} concepts are recognised better in images of the group whose words "
            f"are nearer to theirs (95 % interval {percent_range(row['low'], row['high'])}{tested})."
        )
        yield finding(row, "words", headline, sentence, shown=shown, effect=abs(row["value"] - 0.5))


def _agreement(part: pl.DataFrame) -> Iterator[Finding]:
    """Agreement with other data sets, and with other models: told, not claimed, because neither has a test."""
    counts = metric_rows(part, "agreement_count")
    for (elsewhere,), table in counts.group_by(["subset"], maintain_order=True):
        first, *more = table.to_dicts()
        number = {row["group"]: int(row["value"]) for row in (first, *more)}
        green, red, yellow = (number.get(colour, 0) for colour in ("green", "red", "yellow"))
        of = f"{green} of {phrases.concepts(first['n'])}"
        have = "has" if green == 1 else "have"
        headline = f"{of} {have} a wide gap in the same direction here and on {elsewhere}"
        sentence = f"In opposite directions: {red}. No wide gap on at least one of the data sets: {yellow}."
        if green + red:
            sentence += " Of concepts with two wide gaps, half would agree in direction by chance."
        yield finding(first, "agreement", headline, sentence, more=more)
    for row in metric_rows(part, "model_agreement").filter(pl.col("n") >= FEWEST_CONCEPTS).to_dicts():
        headline = f"{percent(row['value'])} of the gaps point in the same direction as those of {row['subset']}"
        sentence = (
            f"Over {row['n']} concepts, 95 % interval {percent_range(row['low'], row['high'])}; 50 % if gaps were "
            "unrelated. This is no test of a difference between groups: two models that find the same images hard "
            "agree more often without one."
        )
        yield finding(row, "agreement", headline, sentence)


def _calibration(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether a confidence means the same for all groups, or why that was not measured."""
    errors = metric_rows(part, "ece", absent=True)
    absent = errors.filter(pl.col("value").is_null() & pl.col("concept").is_null())
    if absent.height:
        row = absent.row(0, named=True)
        sentence = f"The model's scores only rank images: {row['note']}."
        yield finding(row, "calibration", "Calibration was not measured", sentence, verdict=NOT_MEASURED)
    for pair in queries.pairs(part):
        table = queries.calibration_gaps(part, pair).drop_nulls("p_value")
        if not table.height:
            continue
        off, groups = table.filter("shown"), " and ".join(phrases.quoted(pair))
        row, *more = off.to_dicts() or table.head(1).to_dicts()
        headline = (
            f"For {off.height} of {phrases.concepts(table.height)}, confidence is worse calibrated for one group"
            if off.height
            else f"No gap in calibration is shown between images of {groups}; this does not show that there is none"
        )
        counted = (
            f"{phrases.concepts(table.height).capitalize()} tested at the same prevalence for both groups; counted if "
            "p ≤ 0.05 after correction and the gap's own 95 % interval excludes 0."
        )
        sentence = f"{_least_calibrated(part, row, pair) if off.height else ''}{counted}"
        yield finding(row, "calibration", headline, sentence, shown=off.height > 0, more=more)


def _least_calibrated(part: pl.DataFrame, row: Result, pair: Pair) -> str:
    errors = [one_row(part, "miscalibration", group=name, concept=row["concept"]) for name in pair.names]
    images, worse = phrases.images_of(pair), 0 if row["value"] > 0 else 1
    first, second = errors[worse], errors[1 - worse]
    if first is None or second is None:  # the rest of several groups has no row of its own
        off = f"worse in {images[worse]}"
    else:
        off = (
            f"off by {points(phrases.root(first['value']))} points in {images[worse]} and by "
            f"{points(phrases.root(second['value']))} in {images[1 - worse]}, after removing what chance adds"
        )
    return f"Widest gap: “{row['concept']}”, {off} ({phrases.squared_gap(row)}; p {row_p_value(row)}). "


FINDERS = (_gaps, _together, _mean, _prevalence, _calibration, _words, _agreement)
