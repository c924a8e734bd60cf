"""Tables of public figures: right answers by level, women and men, names and faces."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import (
    INTERVALS,
    Cell,
    Table,
    labels,
    names,
    notes_of,
    percent_cell,
    ratio_cell,
    ratio_equivalence_table,
    rows_of,
    sizes,
)
from beholder.chapter.finding import deciding_rows, metric_rows
from beholder.chapter.numbers import (
    ABSENT,
    Result,
    has_interval,
    listed,
    percent,
    plural,
    points_decimals,
    points_range,
    ratio,
    row_p_value,
    signed,
)
from beholder.studies.public_figures.findings import NO_SAMPLE, axis, size, what
from beholder.studies.public_figures.levels import GROUPS, LEVELS
from beholder.studies.public_figures.phrases import (
    PUBLISHED_ON,
    correct_occupation,
    either_word,
    found,
    within_branches,
)
from beholder.studies.public_figures.scale import BY_PAIRS, BY_SIZE


def public_figure_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; each has the rows of all models."""
    for make in (association_tables, bias_tables, ratio_equivalence_table, identity_tables, scale_tables):
        yield from make(part)


# Association


def association_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Three levels by branch, each with its top-1."""
    mean, top1 = rows_of(part, "association"), rows_of(part, "association_top1")
    if not mean:
        return
    mean_of, top1_of = _by_level(mean), _by_level(top1)
    body = []
    for model, branch in dict.fromkeys((row["model"], row["subset"]) for row in mean):
        measured = [mean_of[key] for level in LEVELS if (key := (model, branch, level)) in mean_of]
        cells = [
            cell
            for level in LEVELS
            for cell in (
                percent_cell(mean_of.get((model, branch, level)), with_chance=True, strong=True),
                percent_cell(top1_of.get((model, branch, level))),
            )
        ]
        body.append([*names(part, model, branch), Cell(sizes(measured)), *cells])
    columns = [heading for level in LEVELS for heading in (level.capitalize(), "first")]
    yield Table(
        "Right answer, level by level",
        "Mean share of the model's belief on the right prompt, in per cent, and how often the right prompt comes "
        f"first. {INTERVALS}",
        [*labels(part, "Branch"), "n", *columns],
        body,
        len(labels(part, "Branch")),
        notes_of(mean),
        "association",
        extras=("first",),
    )


def _by_level(rows: list[Result]) -> dict[tuple[str, str, str], Result]:
    return {(row["model"], row["subset"], row["concept"]): row for row in rows}


# Gender


def bias_tables(part: pl.DataFrame) -> Iterator[Table]:
    """The ratios of all pools, how they depend on branch and options, then every occupation of each pool."""
    probabilities, ratios = rows_of(part, "occupation_probability"), rows_of(part, "bias_ratio")
    cell_of = {(row["model"], row["subset"], row["group"], row["concept"]): row for row in probabilities}
    if ratios:
        yield _ratio_table(part, ratios, cell_of)
    yield from _sensitivity_table(part, ratios)
    for pool in dict.fromkeys(row["subset"] for row in probabilities):
        yield _occupation_table(part.filter(pl.col("subset") == pool), pool)


Cells = dict[tuple[str, str, str, str], Result]


def _ratio_table(part: pl.DataFrame, ratios: list[Result], cell_of: Cells) -> Table:
    body = []
    decided = {(row["model"], row["subset"]): row for row in deciding_rows(part, "bias_ratio").to_dicts()}
    apart = any(map(within_branches, decided.values()))
    for row in ratios:
        pool, within = row["subset"], decided.get((row["model"], row["subset"]), row)
        answers = {group: correct_occupation(pool, group) for group in GROUPS}
        right = [cell_of.get((row["model"], pool, group, answer)) for group, answer in answers.items()]
        counts = " / ".join(str(cell["n"]) for cell in right if cell) or str(row["n"])
        published = [Cell(ratio(row["value"]))] if apart else []
        cells = [*map(percent_cell, right), *published, ratio_cell(within), Cell(row_p_value(within))]
        body.append([*names(part, row["model"], pool), Cell(counts), *cells])
    return Table(
        "Women over men",
        "Probability of the right occupation for women and for men, in per cent, and their ratio b; 1: alike, below 1: "
        f"women get less. {'b within branches decides. ' if apart else ''}{INTERVALS} That of b, and p, hold for all "
        "ratios at once.",
        [*labels(part, "Pool"), "n women / men", "Women", "Men", *(["b"] if apart else []), HEADING[apart], "p"],
        body,
        len(labels(part, "Pool")),
        notes_of(ratios),
        "gender",
    )


HEADING = {False: "b", True: "b within branches"}


def _sensitivity_table(part: pl.DataFrame, ratios: list[Result]) -> Iterator[Table]:
    """b by branch, for either word, and at its lowest and highest with one option left out."""
    body = []
    for row in ratios:
        mine = part.filter(model=row["model"])
        others = list(_other_ratios(mine, row))
        for label, other in [("as published", row), *others] if others else ():
            body.append([*names(part, row["model"], row["subset"], label), Cell(str(other["n"])), ratio_cell(other)])
    if body:
        yield Table(
            "Women over men: branches, words and options",
            "The ratio b of a pool's branches, for either word where the right word depends on the gender, and with "
            "that wrong option left out which lowers or raises it most: b belongs to the options offered together. "
            f"{INTERVALS}",
            [*labels(part, "Pool", "b"), "n", "b there"],
            body,
            len(labels(part, "Pool", "b")),
            (),
            "gender",
        )


def _other_ratios(part: pl.DataFrame, row: Result) -> Iterator[tuple[str, Result]]:
    pool = row["subset"]
    for each in metric_rows(part, "either_word_ratio").filter(subset=pool).to_dicts():
        yield f"either word: {either_word(correct_occupation(pool, GROUPS[0]))}", each
    for each in metric_rows(part, "branch_ratio").filter(concept=pool).to_dicts():
        yield f"branch: {each['subset']}", each
    without = metric_rows(part, "ratio_without").filter(subset=pool).sort("value").to_dicts()
    for each in (without[0], without[-1]) if len(without) > 1 else without:
        yield f"without “{each['concept']}”", each


PAPER_TABLES = {
    ("apa", "actors"): "As APA's Table 5. ",
    ("apa", "politicians"): "As APA's Table 6. ",
    ("apa", "athletes"): "As APA's Table 7. ",
    ("pfi", "politicians"): "As P-FI's Table 1. ",
}


def _occupation_table(part: pl.DataFrame, pool: str) -> Table:
    answers = {group: correct_occupation(pool, group) for group in GROUPS}
    rows = part.filter(pl.col("metric").str.contains(r"\.(?:occupation|either_word)_probability$"))
    cell_of = {(row["model"], row["group"], row["concept"]): row for row in rows.to_dicts()}
    gaps = {(row["model"], row["concept"]): row for row in metric_rows(part, "occupation_gap").to_dicts()}
    body = []
    for (model, concept), _ in rows.group_by(["model", "concept"], maintain_order=True):
        shares = [
            percent_cell(cell_of.get((str(model), group, str(concept))), strong=concept == answer)
            for group, answer in answers.items()
        ]
        gap = gaps.get((str(model), str(concept)))
        body.append([*names(rows, str(model), str(concept)), *shares, *_gap_cells(gap)])
    sizes = {group: cell["n"] for group in GROUPS for (_, who, _), cell in cell_of.items() if who == group}
    who = f"{listed([f'{n} {plural(group)}' for group, n in sizes.items()])}. " if sizes else ""
    paper = PAPER_TABLES.get((part["study"][0], pool), "") if part["dataset"][0] == PUBLISHED_ON else ""
    return Table(
        f"Occupations offered for {pool}",
        f"{paper}Mean share of belief on each occupation, in per cent; the right one is set bold. {who}"
        f"{_gap_caption(gaps, rows)}{INTERVALS}",
        [*labels(rows, "Occupation"), "Women", "Men", "Women − men", "p"],
        body,
        len(labels(rows, "Occupation")),
        notes_of(rows.to_dicts()),
        "gender",
        long=True,
        exported=True,
    )


def _gap_caption(gaps: dict[tuple[str, str], Result], rows: pl.DataFrame) -> str:
    """How to read the differences, where there are some."""
    if not gaps:
        return ""
    merged = metric_rows(rows, "either_word_probability").height
    words = "Two words for one occupation are compared together. " if merged else ""
    return (
        "Women − men: in points, for occupations that are wrong for everyone, within branches; the interval and p "
        f"hold for all of them at once; bold where a difference was found. {words}"
    )


def _gap_cells(gap: Result | None) -> list[Cell]:
    if gap is None:
        return [Cell(ABSENT), Cell(ABSENT)]
    return [Cell(signed(gap["value"], points_decimals(gap)), points_range(gap), found(gap)), Cell(row_p_value(gap))]


# Identity

IDENTITY = ("identity_given_image", "identity_given_name")
ENDINGS = ("", "_top1", "_mrr")
ByBranch = dict[tuple[str, str], Result]
"""Rows of one metric by model and branch."""


def identity_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Both directions by branch, with top-1 and reciprocal rank."""
    metrics = [f"{metric}{ending}" for metric in IDENTITY for ending in ENDINGS]
    rows = {metric: {(row["model"], row["subset"]): row for row in rows_of(part, metric)} for metric in metrics}
    for metric in IDENTITY:
        decided = deciding_rows(part, metric).to_dicts()
        rows[metric] |= {(row["model"], row["subset"]): row for row in decided}
    keys = dict.fromkeys(key for metric in IDENTITY for key in rows[metric])
    if not keys:
        return
    body = []
    for key in keys:
        cells = [cell for metric in IDENTITY for cell in _identity_cells(metric, rows, key)]
        measured = [row for metric in IDENTITY if (row := rows[metric].get(key))]
        body.append([*names(part, *key), Cell(sizes(measured)), *cells])
    yield Table(
        "Names and faces",
        "Given an image: belief on the right name. Given a name: belief on the right image. In per cent; bold where it "
        "was found to be more than names exchanged among people with the same labels get (p and interval: for branches "
        "and directions at once). Then how often the right one comes first, and the mean reciprocal rank (1: always "
        f"first). {INTERVALS}",
        [*labels(part, "Branch"), "n", "Given an image", *COLUMNS, "Given a name", *COLUMNS],
        body,
        len(labels(part, "Branch")),
        notes_of([row for metric in IDENTITY for row in rows[metric].values()]),
        "identity",
        extras=("first", "1/rank"),
    )


COLUMNS = ("p", "first", "1/rank")


def _identity_cells(metric: str, rows: dict[str, ByBranch], key: tuple[str, str]) -> list[Cell]:
    share, first, rank = (rows[f"{metric}{ending}"].get(key) for ending in ENDINGS)
    reciprocal = Cell(ratio(rank["value"] if rank else None))
    p_value = Cell(row_p_value(share) if share else ABSENT)
    return [_against(share), p_value, percent_cell(first), reciprocal]


def _against(share: Result | None) -> Cell:
    """A share with what exchanged names get, and with chance."""
    cell = percent_cell(share, with_chance=True, strong=bool(share and found(share)))
    if share is None or share["value"] is None or share["landmark"] is None:
        return cell
    return cell._replace(remark=f"exchanged {percent(share['landmark']).removesuffix(' %')}, {cell.remark}")


# Size and training data


def scale_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Slopes over models, on parameters and on training pairs."""
    rows = [row for metric in (BY_SIZE, BY_PAIRS) for row in metric_rows(part, metric).to_dicts()]
    if rows:
        yield Table(
            "Does scale help?",
            "Over the models of this run and the published ones that measure the same: what ten times the parameters, "
            "or ten times the training pairs at equal parameters, go with. Probabilities change by points; of b it is "
            "the distance from 1 (|ln b|) that changes, so below 0 is nearer to alike. Kinds of models have a level "
            f"each. Intervals and p hold for all slopes at once. {INTERVALS}",
            ["Measured", "For ten times the", "Models", "Change", "p"],
            [
                [
                    *(Cell(what(row)), Cell(axis(row)), Cell(str(row["n"]))),
                    Cell(size(row, row["value"]), _slope_range(row), found(row)),
                    Cell(row_p_value(row)),
                ]
                for row in rows
            ],
            2,
            (NO_SAMPLE,),
            "scale",
        )


def _slope_range(row: Result) -> str:
    return f"{size(row, row['low'])} to {size(row, row['high'])}" if has_interval(row) else ""
