"""Chapter: what a study adds to a report: the questions it answers, findings, tables and charts.

Every function takes rows of the results table and gives values; the page, the terminal and the exports show them.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from beholder.chapter import numbers
from beholder.chapter.finding import DIFFERS, Contrast, Finding, metric_rows
from beholder.chapter.numbers import ABSENT, Result
from beholder.comparison.family import DIFFERENCE
from beholder.core.read import read_delimited
from beholder.core.types import Array
from beholder.metrics.group_tests import VERDICTS

if TYPE_CHECKING:
    from beholder.chapter.charts import Figure  # loads altair
    from beholder.scores.score_matrix import ScoreMatrix


class Cell(NamedTuple):
    """What is read first, and what stands small beside it."""

    text: str
    detail: str = ""
    strong: bool = False
    remark: str = ""  # small, after the detail; the terminal leaves it to the page


class Table(NamedTuple):
    """A table to read: the caption says the unit and what it means."""

    title: str
    caption: str
    header: list[str]
    rows: list[list[Cell]]
    labels: int = 1  # how many columns at the left name the row
    notes: tuple[str, ...] = ()
    topic: str = "results"
    long: bool = False  # whether it is better opened than shown
    extras: tuple[str, ...] = ()  # columns that a narrow terminal leaves to the page
    exported: bool = False  # whether the exports have it although it is long


INTERVALS = "Small print: 95 % interval."


def rows_of(part: pl.DataFrame, metric: str) -> list[Result]:
    """All rows of a metric, absent values too."""
    return metric_rows(part, metric, absent=True).to_dicts()


def percent_cell(row: Result | None, *, with_chance: bool = False, strong: bool = False) -> Cell:
    """A probability with its interval."""
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    places = numbers.decimals_for(row, least=1)
    interval = "" if row["low"] is None else f"{100 * row['low']:.{places}f}–{100 * row['high']:.{places}f}"
    level = row.get("chance") if with_chance else None
    remark = f"chance {numbers.percent(level).removesuffix(' %')}" if level else ""
    return Cell(numbers.percent(row["value"], places), interval, strong, remark)


def ratio_cell(row: Result) -> Cell:
    """A ratio with its interval."""
    text, interval = numbers.ratio(row["value"], numbers.ratio_decimals(row)), numbers.ratio_range(row)
    return Cell(text, "" if interval == ABSENT else interval, strong=True)


def notes_of(rows: list[Result]) -> tuple[str, ...]:
    """What the rows remark: why a value is absent, what was left out."""
    return tuple(dict.fromkeys(f"{row['subset']}: {row['note']}" for row in rows if row["note"]))


def sizes(rows: list[Result]) -> str:
    """One n where the columns agree, else each."""
    counts = list(dict.fromkeys(str(row["n"]) for row in rows))
    return counts[0] if len(counts) == 1 else " / ".join(str(row["n"]) for row in rows) or ABSENT


def points_cell(row: Result | None, *, plain: bool = False) -> Cell:
    """A difference in points with its interval, bold where a difference was found; `plain`: without a plus sign."""
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    text = (numbers.points if plain else numbers.signed)(row["value"], numbers.points_decimals(row))
    return Cell(text, numbers.points_range(row), strong=row.get("verdict") == DIFFERENCE)


def decimal_cell(row: Result | None) -> Cell:
    """A plain number with its interval, bold where a difference was found."""
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    bounds = f"{numbers.decimal(row['low'])} to {numbers.decimal(row['high'])}" if numbers.has_interval(row) else ""
    return Cell(numbers.decimal(row["value"]), bounds, strong=row["verdict"] == DIFFERENCE)


def p_cell(row: Result | None) -> Cell:
    """The p-value of a row."""
    return Cell(ABSENT if row is None else numbers.row_p_value(row))


Make = Callable[[Result], Cell | str]
Column = tuple[str, str | Make]
"""A heading, and what stands below it: the name of a field, or a function of the row."""


def tabled(
    part: pl.DataFrame,
    rows: Iterable[Result],
    left: Sequence[Column],
    columns: Sequence[Column],
    *,
    title: str,
    caption: str,
    notes: Iterable[str] = (),
    **others: Any,
) -> Table:
    """A table declared by its columns; those at the `left` name the row, after the model where there are several.

    `others` are fields of `Table`, such as `topic`.
    """
    left = [*([("Model", "model")] if part["model"].n_unique() > 1 else []), *left]
    wanted = [*left, *columns]
    body = [[_cell(row[make] if isinstance(make, str) else make(row)) for _, make in wanted] for row in rows]
    return Table(title, caption, [head for head, _ in wanted], body, len(left), tuple(dict.fromkeys(notes)), **others)


def _cell(value: object) -> Cell:
    return value if isinstance(value, Cell) else Cell(ABSENT if value is None else str(value))


def crossed(rows: Iterable[Result], keys: Sequence[str], across: str, make: Make) -> list[Result]:
    """A line for every place that the keys tell apart, with a cell for each name in a column, for `cell_of`."""
    lines: dict[tuple[str, ...], Result] = {}
    for row in rows:
        line = lines.setdefault(tuple(row[key] for key in keys), {**row, "cells": {}})
        line["cells"][row[across]] = make(row)
    return list(lines.values())


def cell_of(name: str | None) -> Make:
    """The cell of a name, which may be any, in a line of `crossed`."""
    return lambda line: line["cells"].get(name, ABSENT)


# Equivalence: is any bias shown to be smaller than δ? Only where a δ was asked for

EQUIVALENCE = (
    "Two one-sided tests at 5 %. Bound: the smallest δ that the data would show. "
    "What is neither shown to differ nor shown to be alike is undecided."
)
MEANINGS = tuple(f"{name}: {meaning}." for name, meaning in VERDICTS.items())


def equivalence_rows(part: pl.DataFrame) -> list[Result]:
    """The rows that answer the test; runs of Beholder 0.1 have none."""
    return [row for row in rows_of(part, "equivalence") if row["equivalence"] is not None and row["delta"] is not None]


def ratio_equivalence_table(part: pl.DataFrame) -> Iterator[Table]:
    """Pool by pool."""
    if rows := equivalence_rows(part):
        columns: list[Column] = [
            ("n", "n"),
            ("Bound", lambda row: "none" if row["value"] is None else f"factor {1 + row['value']:.2f}"),
            ("p", lambda row: f"{row['p_value']:.2g}"),
            ("Verdict", lambda row: Cell(row["equivalence"], strong=True)),
        ]
        title = f"Is b shown to be within a factor of {1 + rows[0]['delta']:g} of 1?"
        table = tabled(part, rows, [("Pool", "subset")], columns, title=title, caption=EQUIVALENCE, notes=MEANINGS)
        yield table._replace(topic="gender")


def gap_equivalence_table(part: pl.DataFrame) -> Iterator[Table]:
    """How many traits have which verdict, attribute by attribute."""
    rows, lines = equivalence_rows(part), []
    if not rows:
        return
    for (model, attribute), own in pl.DataFrame(rows, part.schema).group_by("model", "subset", maintain_order=True):
        bounds = sorted(own["value"].drop_nulls())
        middle = f"{100 * bounds[len(bounds) // 2]:.1f}" if bounds else "none"
        counts = {verdict: own["equivalence"].to_list().count(verdict) for verdict in VERDICTS}
        name = str(attribute).replace("_", " ")
        lines.append({"model": model, "attribute": name, "n": own["n"][0], "bound": middle, **counts})
    columns: list[Column] = [("n", "n"), ("Bound", "bound"), *((verdict.capitalize(), verdict) for verdict in VERDICTS)]
    title = f"Traits shown to differ, or shown to be within {100 * rows[0]['delta']:g} points"
    caption = f"{EQUIVALENCE} Bound: median over traits, in points of P(Yes). Counts of traits, corrected over traits."
    table = tabled(part, lines, [("Attribute", "attribute")], columns, title=title, caption=caption, notes=MEANINGS)
    yield table._replace(topic="gaps")


class Question(NamedTuple):
    """A question that a chapter answers, and the topic that shows the answer."""

    text: str
    topic: str
    card: str = ""  # the card of the first screen that answers it; none for what is read in the chapter only
    role: str = DIFFERS


class Told(NamedTuple):
    """What a chapter says whatever the numbers are: `study.toml` and `questions.csv` of its room."""

    topics: Mapping[str, str]  # their titles, in order
    questions: Mapping[str, Question]  # by the kind of finding that answers them
    captions: Mapping[str, str]
    figures: Mapping[str, str]  # captions of charts


def read_told(file: str) -> Told:
    """That of the room that a module's file is in."""
    words: Mapping[str, Any] = tomllib.loads(Path(file).with_name("study.toml").read_text("utf-8"))
    rows = read_delimited(Path(file).with_name("questions.csv")).fill_null("").rows()
    questions = {kind: Question(*fields) for kind, *fields in rows}
    return Told(words["topics"], questions, words.get("captions", {}), words.get("figures", {}))


class Behind(NamedTuple):
    """The pictures behind a contrast: whose they are, and what the model made of each."""

    images: pl.DataFrame
    groups: list[str | None]
    values: Array
    captions: list[str]  # what else there is to say of each, such as what it was called instead


@dataclass(frozen=True)
class Chapter:
    """What a study adds to a report."""

    topics: Mapping[str, str]  # the topics of the chapter in their order, with their titles
    questions: Mapping[str, Question] = field(default_factory=dict)  # the question behind each kind of finding
    findings: Callable[[pl.DataFrame], Iterable[Finding]] = lambda part: ()  # of one model's rows on one data set
    beside: Callable[[pl.DataFrame, pl.DataFrame], Iterable[Finding]] = lambda part, others: ()
    """Of one model's rows on one data set, and of its rows there in the run's other studies."""
    tables: Callable[[pl.DataFrame], Iterable[Table]] = lambda part: ()  # of all models' rows on one data set
    figures: Callable[[pl.DataFrame], Iterable["Figure"]] = lambda part: ()  # of all models' rows on one data set
    published: Callable[[pl.DataFrame], Table | None] = lambda part: None  # this run beside published models
    planted: Callable[[pl.DataFrame], Table | None] = lambda part: None  # known truth against what the audit found
    limitations: Callable[[pl.DataFrame], Iterable[str]] = lambda part: ()  # what these rows cannot say
    glossary: tuple[str, ...] = ()  # sentences that explain words of the chapter, for the first screen
    page_title: Callable[[list[str]], str] | None = None  # of a page with this chapter alone, of the models' names
    behind: Callable[["ScoreMatrix", Contrast], Behind | None] = lambda matrix, shown: None
    """The pictures of a matrix that a contrast compares; None where the matrix is about something else."""
