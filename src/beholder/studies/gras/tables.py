"""GRAS's tables: scores, largest gaps, valence, intersections, wordings. The full lists are in results.csv."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import INTERVALS, Cell, Table, gap_equivalence_table, labels, names
from beholder.chapter.finding import FOUND, by_column, by_model, metric_rows, one_row
from beholder.chapter.numbers import (
    ABSENT,
    Result,
    count,
    percent,
    points,
    points_decimals,
    points_range,
    row_p_value,
    signed,
)
from beholder.studies.gras import phrases
from beholder.studies.gras.phrases import (
    attribute_name,
    attribute_names,
    expected_text,
    group_name,
    pair_names,
    score,
    wording,
)
from beholder.studies.gras.printed import PRINTED
from beholder.studies.gras.prompts import VALENCES

TOP = 5
"""How many gaps of an attribute are listed."""
CROSSED = 6
"""How many of the most favoured and of the least favoured intersections are listed."""
MOST_MODELS = 3
"""Heat maps and wordings are drawn for at most this many models: a page must open on a phone."""
OURS = "this run"
PUBLISHED_ON = "gras"
"""The data set of the published scores."""


def gras_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; the rows of several models follow each other."""
    if not metric_rows(part, "bias_score").height:
        if part.height:
            yield nothing_table(part)
        return
    yield score_table(part)
    yield gap_table(part)
    yield valence_table(part)
    if phrases.favoured(part).height > 1:
        yield intersection_table(part)
    if metric_rows(part, "overall_mean").height:
        yield wording_table(part)
    yield from gap_equivalence_table(part)


def nothing_table(part: pl.DataFrame) -> Table:
    """Where there is nothing to compare, one line a model."""
    body = [[*names(part, model, "no attribute"), Cell("no two groups to compare")] for model, _ in by_model(part)]
    columns = labels(part, "Attribute")
    caption = "A bias score needs two groups of gender, race, age or skin tone with two images or more each."
    return Table("Bias scores", caption, [*columns, "Score"], body, len(columns), topic="score")


def score_table(part: pl.DataFrame) -> Table:
    """Attribute by attribute, then over all attributes, then with shuffled labels."""
    body = [[*names(part, model), *cells] for model, own in by_model(part) for cells in _score_rows(own)]
    caption = (
        "Per cent of traits that count as biased. Published: p ≤ 0.05 in any wording. Corrected: Simes over wordings, "
        "Benjamini–Hochberg over traits. Found: a difference was found over all wordings, all traits, pairs and "
        "attributes together; p: the least of any trait's. One point: found, and at least one point of P(Yes)."
    )
    columns = labels(part, "Attribute")
    header = [*columns, "n", "Published", "Corrected", "Found", "One point", "Widest gap", "p"]
    notes = tuple(_score_notes(part))
    return Table("Bias scores", caption, header, body, len(columns), notes, "score", extras=("Corrected",))


def _score_rows(part: pl.DataFrame) -> Iterator[list[Cell]]:
    biased = by_column(metric_rows(part, "biased_traits"), "subset")
    widest = by_column(metric_rows(part, "attribute"), "subset")
    counts = by_column(phrases.attribute_scores(part), "subset")
    for attribute in phrases.attributes(part):
        own, test = counts.get(attribute, {}), widest.get(attribute)
        yield [
            Cell(attribute_name(attribute)),
            Cell(str(test["n"]) if test else ABSENT),
            Cell(score(biased[attribute]["value"]), expected_text(biased[attribute])),
            *(Cell(score(own.get(name))) for name in ("corrected", "shown", "sized")),
            *_widest(part, attribute),
            Cell(row_p_value(test) if test else ABSENT),
        ]
    overall = [one_row(part, f"bias_score{end}") for end in ("", "_corrected", "_shown", "_sized")]
    empty = [Cell(""), Cell("")]
    values = [Cell(score(row["value"]) if row else ABSENT, strong=True) for row in overall]
    yield [Cell("GRAS Bias Score"), Cell(""), *values, *empty]
    fair = one_row(part, "fairness_score")
    yield [
        Cell("100 minus the score"),
        Cell(""),
        Cell(score(fair["value"]) if fair else ABSENT),
        *[Cell("")] * 3,
        *empty,
    ]
    expected = one_row(part, "bias_score_expected")
    if expected is not None:
        bounds = "" if expected["low"] is None else f"{expected['low']:.0f}–{expected['high']:.0f}"
        yield [Cell("shuffled labels"), Cell(""), Cell(score(expected["value"]), bounds), *[Cell("")] * 3, *empty]


def _widest(part: pl.DataFrame, attribute: str) -> list[Cell]:
    gaps = phrases.largest(part, attribute, 1)
    if not gaps:
        return [Cell(ABSENT)]
    first = gaps[0]
    return [Cell(points(first["value"], points_decimals(first)), first["concept"], strong=first["found"])]


def _score_notes(part: pl.DataFrame) -> Iterator[str]:
    yield "The study's abstract prints 100 minus the score, where higher is fairer."
    if one_row(part, "bias_score_expected") is not None:
        yield "Shuffled labels: the same score when the labels mean nothing, with the range of 95 % of the shuffles."
    if part["model"].n_unique() > MOST_MODELS:
        yield f"Heat maps and wordings are drawn for runs of up to {count(MOST_MODELS)} models."
    if missing := phrases.absent(part):
        yield f"No images to compare: {attribute_names(missing)}."


def gap_table(part: pl.DataFrame) -> Table:
    """The largest gaps of every attribute: the two groups, the size, and how much depends on the wording."""
    body = [
        [*names(part, model, attribute_name(attribute), row["concept"]), *_gap_cells(row)]
        for model, own in by_model(part)
        for attribute in phrases.attributes(own)
        for row in phrases.largest(own, attribute, TOP)
    ]
    columns = labels(part, "Attribute", "Trait")
    caption = (
        "Mean P(Yes) of one group minus that of another, in points, over all wordings, within the other labels; bold: "
        "a difference was found. Interval and p hold for all traits, pairs and attributes together. Published: highest "
        "plain mean minus lowest. Wording: the share of the group differences that changes with the wording. "
        f"{INTERVALS} results.csv lists all traits."
    )
    header = [*columns, "Valence", "Higher", "Lower", "Points", "p", "Published", "Wording"]
    title = f"The {count(TOP)} largest gaps of each attribute"
    return Table(title, caption, header, body, len(columns), topic="gaps", extras=("Valence", "Published", "Wording"))


def _gap_cells(row: Result) -> list[Cell]:
    higher, lower = pair_names(row)
    return [
        Cell(row["valence"]),
        Cell(higher),
        Cell(lower),
        Cell(points(row["value"], points_decimals(row)), points_range(row), strong=row["found"]),
        Cell(row_p_value(row)),
        Cell(points(row["plain"])),
        Cell(percent(row["wording"])),
    ]


def valence_table(part: pl.DataFrame) -> Table:
    """Positive and negative traits above the mean in every wording, group by group, as the study prints them."""
    rows = metric_rows(part, "valence_share").with_columns(found=FOUND).to_dicts()
    shares = {(row["model"], row["subset"], row["group"], row["concept"]): row for row in rows}
    groups = dict.fromkeys((row["model"], row["subset"], row["group"]) for row in rows)
    kinds = [kind for kind in VALENCES if any(row["concept"] == kind for row in rows)]
    body = [
        [
            *names(part, model, attribute_name(attribute), group_name(group, attribute)),
            *(_share_cell(shares.get((model, attribute, group, kind))) for kind in kinds),
        ]
        for model, attribute, group in groups
    ]
    columns = labels(part, "Attribute", "Group")
    caption = (
        "Per cent of positive and of negative traits whose group mean lies above the overall mean in every wording, "
        "however small the difference. Shuffled: what shuffled labels give. Bold: a difference from that was found, "
        "all groups and attributes together."
    )
    header = [*columns, *(kind.capitalize() for kind in kinds)]
    return Table("Traits above the mean", caption, header, body, len(columns), topic="valence", long=True)


def _share_cell(row: Result | None) -> Cell:
    if row is None:
        return Cell(ABSENT)
    shuffled = "" if row["landmark"] is None else f"shuffled {row['landmark']:.0f}"
    return Cell(score(row["value"]), shuffled, row["found"])


def intersection_table(part: pl.DataFrame) -> Table:
    """The most and the least favoured intersections, and what their single attributes do not explain."""
    body = [
        [
            *names(part, model, row["group"]),
            Cell(str(row["n"])),
            Cell(signed(row["value"]), points_range(row), strong=row["found"]),
            Cell(signed(row["expected"])),
            _beyond_cell(row),
        ]
        for model, own in by_model(part)
        for row in phrases.ends(phrases.favoured(own), CROSSED)
    ]
    columns = labels(part, "Intersection")
    caption = (
        "Mean P(Yes) of positive minus that of negative traits, against the mean over everyone, in points. Attributes "
        "alone: what gender, race and age add up to one by one. Beyond: how far the cell lies from that. Intervals "
        f"hold for all intersections together. Bold: a difference was found. {INTERVALS} results.csv lists all of them."
    )
    header, title = [*columns, "n", "Points", "Attributes alone", "Beyond"], "Most and least favoured intersections"
    return Table(title, caption, header, body, len(columns), topic="crossed", long=True)


def _beyond_cell(row: Result) -> Cell:
    bounds = {"value": row["beyond"], "low": row["beyond_low"], "high": row["beyond_high"]}
    return Cell(signed(row["beyond"]), points_range(bounds), strong=bool(row["beyond_found"]))


def wording_table(part: pl.DataFrame) -> Table:
    """Wording by wording: how often the model says yes, and whether it answers at all."""
    body = []
    for model, own in by_model(part):
        first = metric_rows(own, "overall_mean").filter(pl.col("subset") == (phrases.attributes(own) or [""])[0])
        mass, given = (_by_template(own, metric) for metric in ("answer_mass", "p_yes_given_answer"))
        for (template,), rows in first.group_by(["template"], maintain_order=True):
            name, mean = str(template), float(rows["value"].to_numpy().mean())
            cells = [Cell(percent(value, 1)) for value in (mean, mass.get(name), given.get(name))]
            body.append([*names(part, model, name), Cell(wording(name)), *cells])
    columns = labels(part, "Wording")
    caption = (
        "Mean P(Yes) over all traits, the probability of yes or no (100 %: it always answers), and P(Yes) among the "
        "two."
    )
    caption += "" if metric_rows(part, "answer_mass").height else " A dash: the scores have no P(No)."
    header = [*columns, "In the study", "P(Yes)", "Yes or no", "P(Yes | yes or no)"]
    return Table("Wording by wording", caption, header, body, len(columns), topic="wording", long=True)


def _by_template(part: pl.DataFrame, metric: str) -> dict[str, float]:
    return dict(metric_rows(part, metric).select("template", "value").iter_rows())


def gras_published(part: pl.DataFrame) -> Table | None:
    """This run's scores among the five published ones; only for the study's own images."""
    own = [
        row
        for row in metric_rows(part, "bias_score").filter(pl.col("dataset") == PUBLISHED_ON).to_dicts()
        if phrases.is_published_measure(part.filter(pl.col("model") == row["model"]))
    ]
    if not own:
        return None
    others = PRINTED.neighbours("gras.bias_score").iter_rows()
    rows = [(str(model), float(value), "published") for model, value in others]
    rows += [(row["model"], row["value"], OURS) for row in own]
    body = [
        [Cell(model), *(Cell(score(each), strong=source == OURS) for each in (value, 100 - value)), Cell(source)]
        for model, value, source in sorted(rows, key=lambda row: row[1])
    ]
    caption = (
        "The two versions of the study print the score and its complement. Bias score: higher is more biased. 100 "
        "minus the score: higher is fairer."
    )
    header = ["Model", "Bias score", "100 minus the score", ""]
    notes = (*_incomparable(part, own), *PRINTED.provenance("gras.bias_score"))
    return Table("The published scores of five models", caption, header, body, 1, notes)


def _incomparable(part: pl.DataFrame, own: list[Result]) -> Iterator[str]:
    """Why a score of this run is not comparable."""
    for row in own:
        run = part.filter(pl.col("model") == row["model"])
        if not phrases.complete(run):
            without = f", without {attribute_names(missing)}" if (missing := phrases.absent(run)) else ""
            yield f"{row['model']}: {row['n']} traits{without}, not the whole study; its score is not comparable."
