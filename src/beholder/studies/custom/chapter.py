"""The chapter on a user's own prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from beholder.chapter.chapter import (
    EQUIVALENCE,
    INTERVALS,
    Cell,
    Chapter,
    Question,
    Table,
    labels,
    names,
    percent_cell,
    rows_of,
)
from beholder.chapter.charts import Figure, dots, sentence
from beholder.chapter.numbers import (
    Result,
    has_interval,
    percent,
    plural,
    points,
    points_decimals,
    remarks,
    row_p_value,
)
from beholder.comparison.verdicts import DIFFERENCE
from beholder.metrics.equivalence import VERDICTS
from beholder.prompts.prompt_set import ONE_LEVEL
from beholder.studies.custom.findings import BASES, BELIEF, custom_findings, differences, mean_of, within
from beholder.studies.custom.gaps import BALANCE

MANY = 12
"""Rows above which a table is better opened than shown."""
NO_PROMPT = {"custom.association": "the right prompt", "custom.association_top1": "the right prompt comes first"}
"""Metrics about a whole level, and what their rows are called."""


def custom_tables(part: pl.DataFrame) -> Iterator[Table]:
    """What differs; then, for every level and attribute, prompts down and groups across. `template` is the level."""
    yield from _gap_table(part)
    yield from _slope_table(part)
    yield from _interaction_table(part)
    yield from _equivalence_table(part)
    yield from _balance_table(part)
    rows = [row for row in part.to_dicts() if row["metric"] not in (*BASES, BALANCE)]
    for level in dict.fromkeys(row["template"] for row in rows):
        of_level = [row for row in rows if row["template"] == level]
        for attribute in dict.fromkeys(row["subset"] for row in of_level if row["subset"]) or [None]:
            own = [row for row in of_level if row["subset"] in (None, attribute)]
            yield _custom_table(part, level, attribute, own)


def _custom_table(part: pl.DataFrame, level: str | None, attribute: str | None, rows: list[Result]) -> Table:
    groups = list(dict.fromkeys(row["group"] for row in rows))
    cell_of = {(row["model"], row["metric"], row["concept"], row["group"]): row for row in rows}
    counts = {group: max((row["n"] for row in rows if row["group"] == group), default=0) for group in groups}
    body = [
        [
            *names(part, model, NO_PROMPT.get(metric, concept or "")),
            *(percent_cell(cell_of.get((model, metric, concept, group))) for group in groups),
        ]
        for model, metric, concept in dict.fromkeys((row["model"], row["metric"], row["concept"]) for row in rows)
    ]
    return Table(
        ("Prompts" if level in (None, ONE_LEVEL) else f"Prompts of level {level}")
        + (f" by {attribute}" if attribute else ""),
        f"Mean share of belief among the prompts of the level, in per cent. {INTERVALS}",
        [*labels(part, "Prompt"), *(f"{_group_name(group)} (n = {counts[group]})" for group in groups)],
        body,
        len(labels(part, "Prompt")),
        tuple(dict.fromkeys(f"{_group_name(row['group'])}: {remarks(row)}" for row in rows if row["value"] is None)),
        "prompts",
    )


JUDGED = (
    f"Bold: a difference was found. Intervals and p hold for all prompts, groups and attributes together. {INTERVALS}"
)


def _name_cells(part: pl.DataFrame, row: Result) -> list[Cell]:
    """Model, attribute and prompt."""
    base = BASES[row["metric"]]
    level = "" if row["template"] in (None, ONE_LEVEL) else f"{row['template']}: "
    name = NO_PROMPT.get(base, row["concept"] or "")
    suffix = {"custom.p_yes": ", P(yes)", "custom.presence": ", presence"}.get(base, "")
    attribute = f"{row['subset']} within {within(row)}" if within(row) else row["subset"]
    return names(part, row["model"], attribute, f"{level}{name}{suffix}")


def _points(row: Result, decimals: int | None = None) -> Cell:
    places = points_decimals(row) if decimals is None else decimals
    bounds = f"{points(row['low'], places)} to {points(row['high'], places)}" if has_interval(row) else ""
    return Cell(points(row["value"], places), bounds, strong=row["verdict"] == DIFFERENCE)


def _difference_table(
    part: pl.DataFrame, kind: str, title: str, caption: str, header: list[str], cells: Callable[[Result], list[Cell]]
) -> Iterator[Table]:
    rows = differences(part, kind)
    if not rows:
        return
    rows = sorted(rows, key=lambda row: (row["verdict"] != DIFFERENCE, -abs(row["value"])))
    left = labels(part, "Attribute", "Prompt")
    body = [[*_name_cells(part, row), *cells(row)] for row in rows]
    yield Table(title, f"{caption} {JUDGED}", [*left, *header], body, len(left), topic="prompts", long=len(body) > MANY)


def _gap_table(part: pl.DataFrame) -> Iterator[Table]:
    def cells(row: Result) -> list[Cell]:
        ends = (Cell(row["group"]), Cell(row["against"]))
        return [*ends, _points(row), Cell(row_p_value(row)), Cell(str(row["n"]))]

    caption = "The two groups farthest apart, in points; of several pairs that differ, the widest of these."
    header = ["Higher", "Lower", "Gap", "p", "n"]
    yield from _difference_table(part, "gap", "Gaps between groups", caption, header, cells)


def _slope_table(part: pl.DataFrame) -> Iterator[Table]:
    def cells(row: Result) -> list[Cell]:
        return [_points(row, 2), Cell(row_p_value(row)), Cell(str(row["n"]))]

    caption = "Change with one more of a number (such as a year of age), in points; a straight line by least squares."
    yield from _difference_table(part, "slope", "Slopes", caption, ["Points", "p", "n"], cells)


def _interaction_table(part: pl.DataFrame) -> Iterator[Table]:
    def cells(row: Result) -> list[Cell]:
        return [Cell(row["group"]), _points(row), Cell(row_p_value(row)), Cell(str(row["n"]))]

    caption = "How far intersections depart from what their two attributes add up to, in points."
    header = ["Intersection", "Points", "p", "n"]
    yield from _difference_table(part, "interaction", "Intersections", caption, header, cells)


def _balance_table(part: pl.DataFrame) -> Iterator[Table]:
    for (attribute, label), own in part.filter(metric=BALANCE).group_by("subset", "concept", maintain_order=True):
        rows = own.unique(["group", "template"], maintain_order=True).to_dicts()
        groups = list(dict.fromkeys(row["group"] for row in rows))
        share = {(row["template"], row["group"]): percent(row["value"]) for row in rows}
        values = dict.fromkeys(row["template"] for row in rows)
        yield Table(
            f"{attribute} and {label} go together in this data",
            f"Share of each group's people, by {label}. What looks like a difference by {attribute} may be one by "
            f"{label}: compare within it (--within {label}).",
            [str(label), *groups],
            [[Cell(value), *(Cell(share[value, group]) for group in groups)] for value in values],
            1,
            topic="prompts",
            long=len(values) > MANY,
        )


def _equivalence_table(part: pl.DataFrame) -> Iterator[Table]:
    rows = differences(part, "equivalence")
    if not rows:
        return
    left = labels(part, "Attribute", "Prompt")
    body = [
        [*_name_cells(part, row), Cell(points(row["value"])), Cell(row["equivalence"], strong=True)] for row in rows
    ]
    yield Table(
        f"Are groups shown to be within {100 * rows[0]['delta']:g} points?",
        f"{EQUIVALENCE} In points, for all prompts and attributes together.",
        [*left, "Bound", "Verdict"],
        body,
        len(left),
        tuple(f"{name}: {meaning}." for name, meaning in VERDICTS.items()),
        "prompts",
        long=len(body) > MANY,
    )


def _group_name(group: str | None) -> str:
    return "everyone" if group is None else group


# The chapter on a user's own prompts


def custom_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Prompts by group where groups were compared, else the prompts alone."""
    rows = [row for row in rows_of(results, "probability") if row["value"] is not None]
    keys = dict.fromkeys((row["model"], row["template"], row["subset"]) for row in rows)
    by_group = [key for key in keys if key[2]] or list(keys)
    for number, (model, level, attribute) in enumerate(by_group, start=1):
        own = [row for row in rows if (row["model"], row["template"], row["subset"]) == (model, level, attribute)]
        what = "prompts" if level in (None, ONE_LEVEL) else f"prompts of level {level}"
        what += f" by {attribute}" if attribute else ""
        result = f"most to “{max(own, key=lambda row: float(row['value']))['concept']}”"
        if attribute:
            result = _gap_title(results.filter(model=model), level, attribute)
        yield Figure(
            f"prompts-{number}",
            sentence(f"{model}, " if results["model"].n_unique() > 1 else "", f"{what}: {result}"),
            "Mean share of belief among the prompts of the level, with each group's own 95 % interval. A difference is "
            "found only where it is wider than the widest of all prompts and groups would be by chance.",
            dots(own),
            "prompts",
        )


def _gap_title(results: pl.DataFrame, level: str | None, attribute: str) -> str:
    """The widest gap that was found."""
    gaps = [row for row in differences(results, "gap") if BASES[row["metric"]] == BELIEF]
    gaps = [row for row in gaps if (row["template"], row["subset"]) == (level, attribute)]
    gaps = [row for row in gaps if row["verdict"] == DIFFERENCE]
    if not gaps:
        return "no gap was found"
    widest = max(gaps, key=lambda row: abs(row["value"]))
    ends = (f"{plural(end)} {percent(mean_of(results, widest, end))}" for end in (widest["group"], widest["against"]))
    return f"widest gap at “{widest['concept']}”, {' and '.join(ends)}"


# The chapter on a user's own prompts

TOPICS = {"prompts": "Prompt by prompt"}
QUESTIONS = {
    "custom": Question("Which prompts does the model rate differently between groups?", "prompts"),
    "balance": Question("Which other labels go together with those that are compared?", "prompts"),
}

CHAPTER = Chapter(
    topics=TOPICS, questions=QUESTIONS, findings=custom_findings, tables=custom_tables, figures=custom_figures
)
