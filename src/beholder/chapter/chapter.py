"""Chapter: what a study adds to a report: the questions it answers, findings, tables and charts.

Every function takes rows of the results table and gives values; the page, the terminal and the exports show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from beholder.chapter.finding import Finding
from beholder.chapter.table import Table

if TYPE_CHECKING:
    from beholder.chapter.figure import Figure  # loads altair


class Question(NamedTuple):
    """A question that a chapter answers, and the topic that shows the answer."""

    text: str
    topic: str


def nothing(part: pl.DataFrame) -> tuple[()]:
    """No findings, no tables, no charts."""
    return ()


def nothing_beside(part: pl.DataFrame, others: pl.DataFrame) -> tuple[()]:
    """No findings about several studies."""
    return ()


def none(part: pl.DataFrame) -> None:
    """Nothing was published, or nothing was planted."""
    return


@dataclass(frozen=True)
class Chapter:
    """What a study adds to a report."""

    topics: Mapping[str, str]
    """The topics of the chapter in their order, with their titles."""
    questions: Mapping[str, Question] = field(default_factory=dict)
    """The question behind each kind of finding."""
    findings: Callable[[pl.DataFrame], Iterable[Finding]] = nothing
    """Of one model's rows on one data set, in the order to read them."""
    beside: Callable[[pl.DataFrame, pl.DataFrame], Iterable[Finding]] = nothing_beside
    """Of one model's rows on one data set, and of its rows there in the run's other studies."""
    tables: Callable[[pl.DataFrame], Iterable[Table]] = nothing
    """Of all models' rows on one data set."""
    figures: Callable[[pl.DataFrame], Iterable[Figure]] = nothing
    """Of all models' rows on one data set."""
    published: Callable[[pl.DataFrame], Table | None] = none
    """This run beside published models."""
    planted: Callable[[pl.DataFrame], Table | None] = none
    """Known truth against what the audit found, for the reference models on the embedded world."""
    limitations: Callable[[pl.DataFrame], Iterable[str]] = nothing
    """Limitations that come from these rows."""
    glossary: tuple[str, ...] = ()
    """Sentences that explain words of the chapter, for the first screen."""
    page_title: Callable[[list[str]], str] | None = None
    """The title of a page with this chapter alone, of the models' names; without it, how they see people."""
