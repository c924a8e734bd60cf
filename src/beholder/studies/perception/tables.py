"""Perception's tables: groups, gaps, effects, interactions, and the study's Table S.1 and S.2 beside the run."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.numbers import ABSENT, Result
from beholder.chapter.table import INTERVALS, Cell, Table, labels, names
from beholder.published import SOURCES, published
from beholder.studies.perception import phrases as said
from beholder.studies.perception import queries as reading
from beholder.studies.perception.scores import EVERYONE

TOP = 12
LARGEST = {"gap": "The largest gaps between groups", "interaction": "The largest differences of slopes"}
SETS = {
    "causalface": "causalface",
    "fairface-adults": "fairface",
    "fairface": "fairface",
    "utkface-adults": "utkface",
    "utkface": "utkface",
}
"""The published table's column of each data set."""
PUBLISHED_MODEL = "CLIP ViT-B/32"
SCALES = {"agency_pos": "A+/A-", "belief_pos": "BP/BC", "communion_pos": "C+/C-", "mean": "average"}


def perception_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; several models stand under each other in each."""
    yield from _group_table(part)
    yield from _difference_table(part, "gap", "judgements", "Δ of the first group less Δ of the second.")
    yield from _effect_table(part)
    yield from _difference_table(
        part, "interaction", "effects", "How much more the attribute moves Δ for the first group than for the second."
    )
    yield from _conventional_table(part)
    yield from _rating_table(part)


def _cell(row: Result | None, *, decimals: int = 2, strong: bool = False) -> Cell:
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    return Cell(said.number(row, decimals=decimals), said.bounds(row, decimals), strong)


# Groups


def _group_table(part: pl.DataFrame) -> Iterator[Table]:
    """Δ of every dimension in every group."""
    table = reading.rows(part, "delta_cosine")
    if not table.height:
        return
    dimensions, body = reading.dimensions(part), []
    for model, mine in reading.models(table):
        for (subset, group), rows in mine.group_by(["subset", "group"], maintain_order=True):
            cell_of = {row["concept"]: row for row in rows.to_dicts()}
            name = EVERYONE if subset == EVERYONE else said.group(str(group), str(subset))
            cells = [_cell(cell_of.get(dimension)) for dimension in dimensions]
            body.append([*names(part, model, name), Cell(str(rows["n"].max())), *cells])
    notes = tuple(
        dict.fromkeys(f"{said.dimension(row['concept'])}: {row['note']}" for row in table.to_dicts() if row["note"])
    )
    yield Table(
        "Judgements by group",
        f"Δ: the dimension's words less the neutral prompt, {said.unit(table.row(0, named=True))}. {INTERVALS}",
        [*labels(part, "Group"), "n", *map(said.dimension, dimensions)],
        body,
        len(labels(part, "Group")),
        notes,
        "judgements",
        long=True,
    )


def _difference_table(part: pl.DataFrame, what: str, topic: str, meaning: str) -> Iterator[Table]:
    """The largest of many differences, with corrected p-values."""
    table = reading.rows(part, what)
    if not table.height:
        return
    body = []
    for model, mine in reading.models(part):
        for row in reading.largest(mine, what, TOP):
            first, second = said.pair(row)
            where = [said.attribute(row["subset"]), said.dimension(row["concept"])]
            cells = [
                Cell(first),
                Cell(second),
                _cell(row, strong=reading.shown(row)),
                Cell(said.p_value(row["p_value"])),
            ]
            body.append([*names(part, model, *where), *cells])
    count = sum(reading.shown(row) for row in table.to_dicts())
    row = table.row(0, named=True)
    yield Table(
        LARGEST[what],
        f"{meaning} {said.unit(row)}; bold: shown after correction ({count} of {table.height} are). {INTERVALS}",
        [*labels(part, "Attribute", "Dimension"), "First", "Second", "Difference", "p"],
        body,
        len(labels(part, "Attribute", "Dimension")),
        (),
        topic,
        long=True,
    )


def _effect_table(part: pl.DataFrame) -> Iterator[Table]:
    """Average causal effect beside the mean absolute difference of the same sets."""
    effects, absolute = reading.rows(part, "causal_effect"), reading.rows(part, "absolute_difference")
    if not effects.height:
        return
    key = ("model", "subset", "group", "concept")
    beside = {tuple(row[name] for name in key): row for row in absolute.to_dicts()}
    body = []
    for row in effects.to_dicts():
        where = [said.change(row), said.dimension(row["concept"])]
        cells = [_cell(row, strong=reading.shown(row)), Cell(said.p_value(row["p_value"]))]
        body.append([*names(part, row["model"], *where), *cells, _cell(beside.get(tuple(row[name] for name in key)))])
    first = effects.row(0, named=True)
    yield Table(
        "What one attribute does by itself",
        f"Average change of Δ over matched sets, {said.unit(first)}; bold: shown after correction. Beside it the mean "
        f"absolute difference of the same sets, as published: noise alone makes it more than 0. {INTERVALS}",
        [*labels(part, "Change", "Dimension"), "Effect", "p", "Mean |difference|"],
        body,
        len(labels(part, "Change", "Dimension")),
        (),
        "effects",
        long=True,
    )


# Conventional metrics

CONVENTIONAL = {
    "markedness": "Markedness, per cent",
    "mean_cosine": "Mean cosine",
    "sc_weat": "SC-WEAT",
    "skew": "Skew",
    "max_skew": "MaxSkew",
    "ndkl": "NDKL",
}


def _conventional_table(part: pl.DataFrame) -> Iterator[Table]:
    body, notes = [], []
    for row in conventional(part):
        what = _what(row)
        top = f" ({row['template']})" if row["template"] else ""
        body.append([*names(part, row["model"], f"{what}{top}", _whose(row)), Cell(str(row["n"])), _cell(row)])
        if row["note"] and ("−∞" in row["note"] or "as released" in row["note"] or row["value"] is None):
            notes.append(f"{what}, {_whose(row)}: {row['note']}")
        elif row["metric"].endswith("ndkl") and row["note"]:
            notes.append(f"{what} by {said.attribute(row['subset'])}: {row['note'].partition('; ')[2] or row['note']}")
    if body:
        yield Table(
            "Conventional bias metrics",
            "As in the study's Table S.1; SC-WEAT, skew and NDKL are means over words or dimensions. Markedness: "
            f"images the plain prompt fits better than the group's own word. Skew: 0 is an even share. {INTERVALS}",
            [*labels(part, "Metric", "Group"), "n", "Value"],
            body,
            len(labels(part, "Metric", "Group")),
            tuple(dict.fromkeys(notes)),
            "ranking",
        )


def conventional(part: pl.DataFrame) -> list[Result]:
    """The rows of Table S.1, in its order; skews at the largest k there is."""
    found = [*reading.rows(part, "markedness", absent=True).to_dicts(), *reading.rows(part, "mean_cosine").to_dicts()]
    found += reading.over_dimensions(part, "sc_weat")
    for what in ("skew", "max_skew"):
        rows = reading.over_dimensions(part, what)
        first = {(row["model"], row["subset"]): row["template"] for row in reversed(rows)}
        found += [row for row in rows if row["template"] == first[row["model"], row["subset"]]]
    return found + reading.over_dimensions(part, "ndkl")


def _what(row: Result) -> str:
    name = CONVENTIONAL[row["metric"].partition(".")[2]]
    return name if row["unit"] != "P(Yes)" else "Mean P(Yes)"


def _whose(row: Result) -> str:
    return said.over(row) if row["group"] else said.attribute(row["subset"])


# Ratings


def _rating_table(part: pl.DataFrame) -> Iterator[Table]:
    rows = reading.rows(part, "rating_r", absent=True).to_dicts()
    if rows:
        yield Table(
            "Beside people's ratings",
            f"Correlation of people's mean ratings with the model's Δ; 1: the same order. {INTERVALS}",
            [*labels(part, "Trait"), "Rated", "n", "r"],
            [_rating_cells(part, row) for row in rows],
            len(labels(part, "Trait")),
            tuple(dict.fromkeys(f"{row['concept']}: {row['note']}" for row in rows if row["value"] is None)),
            "ratings",
        )


def _rating_cells(part: pl.DataFrame, row: Result) -> list[Cell]:
    whose = names(part, row["model"], said.dimension(row["concept"]))
    return [*whose, Cell(f"{row['subset']}s"), Cell(str(row["n"])), _cell(row)]


# Published


def perception_published(part: pl.DataFrame) -> Table | None:
    """The study's printed values beside the run's, on the study's own image sets; cosines only."""
    column = SETS.get(str(part["dataset"][0])) if part.height else None
    if column is None or reading.unit(part) != "cosine":
        return None
    printed = _printed(column)
    body = [
        [
            *names(part, row["model"], _what(row), _whose(row)),
            _cell(row, strong=True),
            Cell(f"{value:.2f}".replace("-", said.MINUS)),
        ]
        for row in conventional(part)
        if (value := printed.get(_key(row))) is not None
    ]
    body += list(_opposites(part, column))
    if not body:
        return None
    source = SOURCES["perception_table_s1"]
    return Table(
        f"Beside the published values of {PUBLISHED_MODEL}",
        "Markedness in per cent, mean cosine × 100. The study ranks 1,000 of its own, larger sets: skews compare only "
        "where k and the images are the same.",
        [*labels(part, "Metric", "Group"), "This run", "Published"],
        body,
        len(labels(part, "Metric", "Group")),
        (f"Published: {source.printed_in}; {source.contents}.", *source.caveats),
    )


def _printed(column: str) -> dict[tuple[str, str], float]:
    """Printed values by metric and group, in our names."""
    ours = {
        "markedness_pct": "markedness",
        "mean_cosine_pct": "mean_cosine",
        "skew_at_1000": "skew",
        "maxskew_at_1000": "max_skew",
        "ndkl": "ndkl",
        "sc_weat": "sc_weat",
    }
    inferred = {
        "row1_label_white-black": "white over black",
        "row2": "asian over black",
        "row3": "asian over white",
        "row4": "male over female",
    }
    table = published("perception_table_s1").select("metric", "category", column)
    return {(ours[metric], inferred.get(group, group)): float(value) for metric, group, value in table.iter_rows()}


def _key(row: Result) -> tuple[str, str]:
    what = row["metric"].partition(".")[2]
    return what, str(row["group"] or row["subset"]).lower()


def _opposites(part: pl.DataFrame, column: str) -> Iterator[list[Cell]]:
    """Table S.2, which the study has for CausalFace only."""
    if column != "causalface":
        return
    table = {row["dimensions"]: row for row in published("perception_table_s2").to_dicts()}
    for row in reading.rows(part, "opposites_r").to_dicts():
        value = table.get(SCALES.get(row["concept"], ""), {}).get(f"{row['subset']}_r")
        if value is not None:
            where = f"{said.dimension(row['concept'])} with its opposite, over {row['subset']}"
            yield [
                *names(part, row["model"], "r of curves", where),
                _cell(row),
                Cell(f"{float(value):.2f}".replace("-", said.MINUS)),
            ]
