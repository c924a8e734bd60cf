"""GRAS's tables: scores, largest gaps, valence, wordings. What is longer is in results.csv, and the captions say so."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter import phrases as words
from beholder.chapter.equivalence import gap_equivalence_table
from beholder.chapter.numbers import ABSENT, Result, excludes, percent
from beholder.chapter.table import INTERVALS, Cell, Table, labels, names
from beholder.published import SOURCES, published
from beholder.studies.gras import phrases as said
from beholder.studies.gras import queries as reading
from beholder.studies.gras.prompts import VALENCES

TOP, FEW = 10, 3
"""How many of an attribute's gaps stand in the long table, and in the short one."""
CROSSED = 6
"""How many intersections stand at either end."""
MOST_MODELS = 3
"""Heat maps and wordings are drawn for no more models than this: a page must open on a phone."""
PUBLISHED_ON = "gras"
"""The data set of the published scores."""


def gras_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; several models stand under each other."""
    if not reading.rows(part, "bias_score").height:
        return
    yield score_table(part)
    yield gap_table(part, FEW)
    yield gap_table(part, TOP)
    yield valence_table(part)
    if reading.favoured(part).height > 1:
        yield intersection_table(part)
    if reading.rows(part, "overall_mean").height:
        yield wording_table(part)
    yield from gap_equivalence_table(part)


def models(part: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Model by model."""
    for (model,), mine in part.group_by(["model"], maintain_order=True):
        yield str(model), mine


# Scores


def score_table(part: pl.DataFrame) -> Table:
    """Attribute by attribute, then all together, then what shuffled labels give."""
    body = [[*names(part, model), *cells] for model, mine in models(part) for cells in _score_rows(mine)]
    return Table(
        "Bias scores",
        "Per cent of traits that count as biased. Published: p ≤ 0.05 in any wording. Corrected: after Simes over "
        "wordings and Benjamini–Hochberg over traits. One point: corrected, and a mean gap of at least one point of "
        "P(Yes). Widest gap: in points, all wordings together; p: does the attribute matter at all (Holm).",
        [*labels(part, "Attribute"), "n", "Published", "Corrected", "One point", "Widest gap", "p"],
        body,
        len(labels(part, "Attribute")),
        tuple(_score_notes(part)),
        "score",
    )


def _score_rows(mine: pl.DataFrame) -> Iterator[list[Cell]]:
    biased = _by_subset(reading.rows(mine, "biased_traits"))
    matters = _by_subset(reading.rows(mine, "attribute"))
    counts = _by_subset(reading.attribute_scores(mine))
    for name in reading.attributes(mine):
        own, attribute = counts.get(name, {}), matters.get(name)
        yield [
            Cell(said.attribute(name)),
            Cell(str(attribute["n"]) if attribute else ABSENT),
            Cell(said.score(biased[name]["value"]), said.without_bias(biased[name])),
            *(Cell(said.score(value)) for value in (own.get("corrected"), own.get("sized"))),
            *_widest(mine, name),
            Cell(said.p_value(attribute["p_value"] if attribute else None)),
        ]
    overall = [_value(mine, name) for name in ("bias_score", "bias_score_corrected", "bias_score_sized")]
    empty = [Cell(""), Cell("")]
    yield [Cell("GRAS Bias Score"), Cell(""), *(Cell(said.score(v), strong=True) for v in overall), *empty]
    fair = said.score(_value(mine, "fairness_score"))
    yield [Cell("100 less it"), Cell(""), Cell(fair), Cell(""), Cell(""), *empty]
    expected = reading.rows(mine, "bias_score_expected").to_dicts()
    for row in expected:
        bounds = "" if row["low"] is None else f"{row['low']:.0f}–{row['high']:.0f}"
        value = Cell(said.score(row["value"]), bounds)
        yield [Cell("shuffled labels"), Cell(""), value, Cell("near 0"), Cell("near 0"), *empty]


def _by_subset(table: pl.DataFrame) -> dict[str, Result]:
    return {row["subset"]: row for row in table.to_dicts()}


def _value(mine: pl.DataFrame, what: str) -> float | None:
    table = reading.rows(mine, what)
    return float(table["value"][0]) if table.height else None


def _widest(mine: pl.DataFrame, attribute: str) -> list[Cell]:
    gaps = reading.largest(mine, attribute, 1)
    return [Cell(said.points(gaps[0]["value"]), gaps[0]["concept"])] if gaps else [Cell(ABSENT)]


def _score_notes(part: pl.DataFrame) -> Iterator[str]:
    yield (
        "100 less the score is what the study's abstract prints: there higher is fairer. Shuffled labels: the same "
        "score when labels mean nothing, with the range of 95 % of shuffles."
    )
    if part["model"].n_unique() > MOST_MODELS:
        yield f"Heat maps and wordings are drawn for runs of up to {words.count(MOST_MODELS)} models."
    missing = reading.absent(part)
    if missing:
        yield f"No images to compare: {words.listed([said.attribute(name) for name in missing])}."


# Gaps


def gap_table(part: pl.DataFrame, number: int) -> Table:
    """The largest gaps of every attribute: between whom, how large, and how much hangs on the wording."""
    shown = [
        (model, name, row)
        for model, mine in models(part)
        for name in reading.attributes(mine)
        for row in reading.largest(mine, name, number)
    ]
    body = [[*names(part, model, said.attribute(name), row["concept"]), *_gap_cells(row)] for model, name, row in shown]
    long = number > FEW
    return Table(
        f"The {words.count(number)} largest gaps of each attribute" if long else "Largest gaps",
        "Highest group mean less lowest, in points of P(Yes), all wordings together; p: after correction; wording: the "
        f"share of the group differences that changes with the wording. {INTERVALS} All traits are in results.csv.",
        [*labels(part, "Attribute", "Trait"), "Valence", "Higher", "Lower", "Points", "p", "Wording"],
        body,
        len(labels(part, "Attribute", "Trait")),
        (),
        "gaps",
        long=long,
    )


def _gap_cells(row: Result) -> list[Cell]:
    higher, lower = said.pair(row)
    return [
        Cell(row["valence"]),
        Cell(higher),
        Cell(lower),
        Cell(said.points(row["value"], said.points_decimals(row)), said.points_range(row), strong=row["shown"]),
        Cell(said.p_value(row["p_value"])),
        Cell(percent(row["wording"])),
    ]


# Valence


def valence_table(part: pl.DataFrame) -> Table:
    """Positive and negative traits above the mean in every wording, group by group, as the study prints them."""
    rows = reading.rows(part, "valence_share").to_dicts()
    cell_of = {(row["model"], row["subset"], row["group"], row["concept"]): row["value"] for row in rows}
    places = dict.fromkeys((row["model"], row["subset"], row["group"]) for row in rows)
    kinds = [kind for kind in VALENCES if any(row["concept"] == kind for row in rows)]
    body = [
        [
            *names(part, model, said.attribute(attribute), said.group(group, attribute)),
            *(Cell(said.score(cell_of.get((model, attribute, group, kind)))) for kind in kinds),
        ]
        for model, attribute, group in places
    ]
    return Table(
        "Traits above the mean",
        "Per cent of positive and of negative traits whose group mean lies above the overall mean in every wording, "
        "by however little.",
        [*labels(part, "Attribute", "Group"), *(kind.capitalize() for kind in kinds)],
        body,
        len(labels(part, "Attribute", "Group")),
        (),
        "valence",
        long=True,
    )


# Intersections


def intersection_table(part: pl.DataFrame) -> Table:
    """The most and the least favoured intersections."""
    body = [
        [*names(part, model, row["group"]), Cell(str(row["n"])), _favour_cell(row)]
        for model, mine in models(part)
        for row in reading.ends(reading.favoured(mine), CROSSED)
    ]
    return Table(
        "Most and least favoured intersections",
        "Mean P(Yes) of positive traits less that of negative ones, against the mean over everyone, in points; small "
        f"cells are drawn towards the mean. {INTERVALS} All intersections are in results.csv.",
        [*labels(part, "Intersection"), "n", "Points"],
        body,
        len(labels(part, "Intersection")),
        (),
        "crossed",
        long=True,
    )


def _favour_cell(row: Result) -> Cell:
    return Cell(said.signed(row["value"]), said.points_range(row), strong=excludes(row, 0.0))


# Wordings


def wording_table(part: pl.DataFrame) -> Table:
    """Wording by wording: how often yes, and whether the model answers."""
    body = []
    for model, mine in models(part):
        first = reading.rows(mine, "overall_mean").filter(pl.col("subset") == reading.attributes(mine)[0])
        mass, given = (_by_template(mine, what) for what in ("answer_mass", "p_yes_given_answer"))
        for (template,), rows in first.group_by(["template"], maintain_order=True):
            name, mean = str(template), float(rows["value"].to_numpy().mean())
            cells = [Cell(percent(value, 1)) for value in (mean, mass.get(name), given.get(name))]
            body.append([*names(part, model, name), Cell(said.wording(name)), *cells])
    return Table(
        "Wording by wording",
        "Mean P(Yes) over all traits, the mass on yes or no (100 %: it answers), and P(Yes) among the two. A dash: the "
        "scores were brought without P(No).",
        [*labels(part, "Wording"), "In the study", "P(Yes)", "Yes or no", "P(Yes | yes or no)"],
        body,
        len(labels(part, "Wording")),
        (),
        "wording",
        long=True,
    )


def _by_template(mine: pl.DataFrame, what: str) -> dict[str, float]:
    return dict(reading.rows(mine, what).select("template", "value").iter_rows())


# Published


def gras_published(part: pl.DataFrame) -> Table | None:
    """This run's scores among the five published ones; on the study's own images only."""
    own = [
        row
        for row in reading.rows(part, "bias_score").filter(pl.col("dataset") == PUBLISHED_ON).to_dicts()
        if reading.asked(part.filter(pl.col("model") == row["model"]))
    ]
    if not own:
        return None
    source = SOURCES["gras_scores"]
    others = published("gras_scores").select("model", "gras_bias_score").iter_rows()
    rows = [(str(model), float(score), False) for model, score in others]
    rows += [(row["model"], row["value"], True) for row in own]
    body = [
        [Cell(model), *(Cell(said.score(value), strong=ours) for value in (score, 100 - score)), Cell(_whose(ours))]
        for model, score, ours in sorted(rows, key=lambda row: row[1])
    ]
    return Table(
        "The published score of five models",
        "The study's score and its complement, as the two versions of the study print it: bias score, higher is more "
        "biased; 100 less it, higher is fairer.",
        ["Model", "Bias score", "100 less it", ""],
        body,
        1,
        (*_incomparable(part, own), f"Published: {source.printed_in}; {source.contents}.", *source.caveats),
    )


def _whose(ours: bool) -> str:
    return "this run" if ours else "published"


def _incomparable(part: pl.DataFrame, own: list[Result]) -> Iterator[str]:
    """Why a run's own score does not compare."""
    for row in own:
        mine = part.filter(pl.col("model") == row["model"])
        if not reading.complete(mine):
            missing = [said.attribute(name) for name in reading.absent(mine)]
            without = f", without {words.listed(missing)}" if missing else ""
            yield f"{row['model']}: {row['n']} traits{without}, not the study's whole; its score does not compare."
