"""Disparity's findings: which gaps were found, what the mean says, and how wide a gap could still be."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding, verdict_of_rows
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
from beholder.chapter.queries import metric_rows, one_row
from beholder.comparison.family import DIFFERENCE, FACT, NOT_MEASURED, TOO_LITTLE
from beholder.studies.disparity import phrases, queries
from beholder.studies.disparity.alignment import FEWEST_CONCEPTS
from beholder.studies.disparity.queries import Pair

NAMED = 3
"""How many concepts a sentence names in either direction."""
NO_AGREEMENT = "No agreement of gaps with word vectors was found"
MOVED = 0.05
"""A published gap depends on prevalence if matching moves it by at least five points."""


def disparity_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show, in the order to read it."""
    return [each for find in FINDERS for each in find(part)]


def _mean(part: pl.DataFrame) -> Iterator[Finding]:
    """The mean of the matched gaps: the published means depend on prevalence, and are only told."""
    for pair in queries.pairs(part):
        compared = queries.of_pair(part, pair)
        row = queries.decided(compared, "mean_ap_gap_matched")
        if row is None or row["n"] < 2:
            continue
        found = row["verdict"] == DIFFERENCE
        result = f"recognition is worse in {phrases.worse(row, pair)}" if found else "no difference was found"
        bounds = points_range(row)
        sentence = (
            f"The mean gap over {phrases.concepts(row['n'])} at the same prevalence is {signed(row['value'])} points "
            f"({f'{bounds}; ' if bounds else ''}p {row_p_value(row)})."
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
        gaps = queries.tested(part, pair).filter("found")["value"]
        if (gaps > 0).any() and (gaps < 0).any():
            sentence += " The mean hides gaps that point in opposite directions."
        headline = f"On average over concepts, {result}"
        yield finding(row, "mean", headline, sentence, verdict=row["verdict"], effect=abs(row["value"]), more=more)


def _gaps(part: pl.DataFrame) -> Iterator[Finding]:
    """Which concepts differ, at the same prevalence; all of them are one family."""
    for pair in queries.pairs(part):
        compared = queries.of_pair(part, pair)
        table = queries.tested(part, pair)
        count = one_row(compared, "gaps_shown")
        if count is None or not table.height:
            yield from _untested(compared)
            continue
        found = table.filter("found")
        directions = found.filter(pl.col("value") > 0), found.filter(pl.col("value") < 0)
        named = [row for side in directions for row in side.head(NAMED).to_dicts()]
        sentence = " ".join(_named(part, named, pair) if named else _missed(table))
        headline = _gaps_headline(found.height, table.height, queries.decided(compared, "gap_spread"), pair)
        verdict = verdict_of_rows(table.to_dicts())
        yield finding(count, "gaps", headline, sentence, verdict=verdict, effect=float(found.height), more=named)


def _gaps_headline(number: int, tested: int, spread: Result | None, pair: Pair) -> str:
    groups = " and ".join(phrases.quoted(pair))
    if number:
        are = "is" if number == 1 else "are"
        return f"{number} of {phrases.concepts(tested)} {are} recognised unequally in images of {groups}"
    if spread is not None and spread["verdict"] == DIFFERENCE:
        return f"No single concept's gap was found between images of {groups}"
    return f"No gap was found between images of {groups}"


def _named(part: pl.DataFrame, rows: list[Result], pair: Pair) -> Iterator[str]:
    """For whom each concept is recognised worse: both groups' values, and the gap with the bounds that decided."""
    sides = queries.sides(part, "average_precision_matched", pair)
    for row in rows:
        first = 1 if row["value"] > 0 else 0
        values = [side[row["concept"]]["value"] for side in sides if row["concept"] in side]
        both = len(values) > 1  # the rest of several groups has no row of its own
        levels = f"average precision {percent(values[first])} against {percent(values[1 - first])}, " if both else ""
        gap = f"a gap of {points(abs(row['value']))} points {phrases.decided(row)}"
        yield f"“{row['concept']}” is recognised worse in {phrases.worse(row, pair)}: {levels}{gap}."
    which = "All values are at the same prevalence for both groups"
    yield f"{which}; intervals and p hold for all concepts at once."


def _missed(table: pl.DataFrame) -> Iterator[str]:
    """How wide a gap could still be."""
    most = phrases.largest_missed(table.to_dicts())
    if most is not None:
        yield f"A gap could still be up to {points(most[0])} points, at “{most[1]['concept']}”."
    yield _tested(table)


def _tested(table: pl.DataFrame) -> str:
    together = " together" if table.height > 1 else ""
    return f"{phrases.concepts(table.height).capitalize()} tested{together}, at the same prevalence for both groups."


def _together(part: pl.DataFrame) -> Iterator[Finding]:
    """All gaps together: are they wider than shuffled labels make them?"""
    for pair in queries.pairs(part):
        compared = queries.of_pair(part, pair)
        row, chance = queries.decided(compared, "gap_spread"), one_row(compared, "gap_spread_expected")
        if row is None or chance is None or row["n"] < 2:
            continue
        groups, width = " and ".join(phrases.quoted(pair)), one_row(compared, "gap_spread") or row
        wider = "wider than chance" if row["verdict"] == DIFFERENCE else "not found to be wider than chance"
        sentence = (
            f"Over {phrases.concepts(row['n'])}, a gap is {points(width['value'])} points wide on average, at the same "
            f"prevalence; shuffled labels give {points(chance['value'])} "
            f"({points(chance['low'])}–{points(chance['high'])}; p {row_p_value(row)})."
        )
        headline = f"Taken together, gaps between images of {groups} are {wider}"
        effect = width["value"] - chance["value"]
        yield finding(row, "together", headline, sentence, verdict=row["verdict"], effect=effect, more=[chance])


def _untested(compared: pl.DataFrame) -> Iterator[Finding]:
    rows = compared.filter(pl.col("metric") == "disparity.ap_gap").head(1)
    if rows.height:
        sentence = "A gap is tested if at least five people of both groups show the concept and five do not."
        headline = "Too few images show any one concept to test a gap"
        yield finding(rows.row(0, named=True), "gaps", headline, sentence, verdict=TOO_LITTLE)


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
        yield finding(row, "prevalence", headline, sentence, verdict=FACT, effect=abs(row["moved"]), more=more)


def _words(part: pl.DataFrame) -> Iterator[Finding]:
    for pair in queries.pairs(part):
        row = queries.decided(queries.of_pair(part, pair), "word_agreement", subset="ap_gap_matched")
        if row is None or row["n"] < FEWEST_CONCEPTS:
            continue
        way = "agree with" if row["value"] > (row["expected"] or 0.5) else "point against"
        headline = f"Gaps {way} word vectors" if row["verdict"] == DIFFERENCE else NO_AGREEMENT
        bounds = f"{percent_range(row['low'], row['high'])}; " if has_interval(row) else ""
        usual = f"shuffled labels give {percent(row['expected'])}, " if row["expected"] is not None else ""
        sentence = (
            f"{percent(row['value'])} of {row['n']} concepts are recognised better in images of the group whose words "
            f"are nearer to theirs ({bounds}{usual}p {row_p_value(row)})."
        )
        yield finding(row, "words", headline, sentence, verdict=row["verdict"], effect=abs(row["value"] - 0.5))


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
        yield finding(first, "agreement", headline, sentence, verdict=FACT, more=more)
    for row in metric_rows(part, "model_agreement").filter(pl.col("n") >= FEWEST_CONCEPTS).to_dicts():
        headline = f"{percent(row['value'])} of the gaps point in the same direction as those of {row['subset']}"
        sentence = (
            f"Over {row['n']} concepts; 50 % if gaps were unrelated. This is no test of a difference between "
            "groups: two models that find the same images hard agree more often without one."
        )
        yield finding(row, "agreement", headline, sentence, verdict=FACT)


def _calibration(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether a confidence means the same for all groups, or why that was not measured."""
    errors = metric_rows(part, "ece", absent=True)
    absent = errors.filter(pl.col("value").is_null() & pl.col("concept").is_null())
    if absent.height:
        row = absent.row(0, named=True)
        sentence = f"The model's scores only rank images: {row['note']}."
        yield finding(row, "calibration", "Calibration was not measured", sentence, verdict=NOT_MEASURED)
    for pair in queries.pairs(part):
        table = queries.calibration_gaps(part, pair)
        if not table.height:
            continue
        off, groups = table.filter("found"), " and ".join(phrases.quoted(pair))
        row, *more = off.to_dicts() or table.head(1).to_dicts()
        headline = (
            f"For {off.height} of {phrases.concepts(table.height)}, confidence is worse calibrated for one group"
            if off.height
            else f"No gap in calibration was found between images of {groups}"
        )
        most = None if off.height else phrases.largest_missed(table.to_dicts())
        missed = (
            f"The squared errors could still differ by up to {phrases.SQUARE_POINTS * most[0]:.0f} square points, at "
            f"“{most[1]['concept']}”. "
            if most
            else ""
        )
        sentence = f"{_least_calibrated(part, row, pair) if off.height else missed}{_tested(table)}"
        yield finding(row, "calibration", headline, sentence, verdict=verdict_of_rows(table.to_dicts()), more=more)


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
