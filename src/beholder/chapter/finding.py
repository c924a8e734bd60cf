"""Finding: one thing a reader should take away, in plain words with its evidence."""

import html
import weakref
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

import polars as pl

from beholder.chapter.numbers import Result
from beholder.comparison.family import DIFFERENCE, NONE_FOUND, NOT_MEASURED, SIGNS, TOO_LITTLE
from beholder.core.results import KEY, PLAIN


class Finding(NamedTuple):
    """A claim about one model, with the numbers that bear it out."""

    study: str
    dataset: str
    model: str
    kind: str  # the question it answers: a key of the chapter's questions
    headline: str
    sentence: str
    verdict: str  # one of `comparison.VERDICTS`: a finding may also be that no difference was found
    effect: float  # distance from the landmark in e-folds: for ordering within a kind
    rows: tuple[Result, ...] = ()  # the rows of the results that it speaks of, the most telling first
    id: str = ""
    question: str = ""
    topic: str = ""

    @property
    def shown(self) -> bool:
        """Whether a difference was found."""
        return self.verdict == DIFFERENCE

    @property
    def marked(self) -> str:
        """The verdict with its sign."""
        return f"{SIGNS[self.verdict]} {self.verdict}"

    @property
    def metric(self) -> str:
        """The metric of the most telling row."""
        return str(self.rows[0].get("metric") or "") if self.rows else ""

    def _repr_html_(self) -> str:
        """In a notebook: verdict, headline and sentence."""
        verdict, headline, sentence = (html.escape(text) for text in (self.marked, self.headline, self.sentence))
        return f"<p>({verdict}) <b>{headline}.</b> {sentence}</p>"

    def as_dict(self) -> Result:
        """The finding as `findings.json` has it; these names are our API."""
        first = self.rows[0] if self.rows else {}
        numbers = {name: first.get(name) for name in ("metric", "value", "low", "high", "p_value", "n")}
        places = [{name: row.get(name) for name in KEY} for row in map(stored, self.rows)]
        names = ("id", "study", "model", "dataset", "question", "verdict", "headline", "sentence")
        return {**{name: getattr(self, name) for name in names}, **numbers, "rows": places}


def swapped(row: Result) -> Result:
    """A difference seen from the other group: the second less the first; swapped twice, the row itself."""
    ends = {"value": row["value"], "low": row["high"], "high": row["low"], "landmark": row.get("landmark")}
    signs = {name: None if number is None else 0.0 - number for name, number in ends.items()}
    sides = {"group": row["against"], "against": row["group"], "swapped": not row.get("swapped")}
    return {**row, **signs, **sides}


def stored(row: Result) -> Result:
    """The row as the results have it, whichever way a finding reads it."""
    return swapped(row) if row.get("swapped") else row


def valued(part: pl.DataFrame, metric: str) -> list[Result]:
    """The rows of one metric that have a value."""
    return metric_rows(part, metric).to_dicts()


def verdict_of_rows(rows: Sequence[Result]) -> str:
    """What several comparisons say together: a difference if one of them found one."""
    said = {row.get("verdict") for row in rows}
    return next((each for each in (DIFFERENCE, NONE_FOUND, TOO_LITTLE) if each in said), NOT_MEASURED)


def finding(
    row: Result,
    kind: str,
    headline: str,
    sentence: str,
    *,
    shown: bool = False,
    verdict: str = "",
    effect: float = 0.0,
    more: Sequence[Result] = (),
) -> Finding:
    """A finding about `row`'s model; `more` are other rows that it speaks of."""
    verdict = verdict or (DIFFERENCE if shown else NONE_FOUND)
    whose = row["study"], row["dataset"], row["model"]
    return Finding(*whose, kind, headline, sentence, verdict, effect, (row, *more))


# Queries: what every chapter asks of the results table

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
FOUND = (pl.col("verdict") == DIFFERENCE).fill_null(False)  # whether the comparison found a difference


def once_per_table(
    query: Callable[Concatenate[pl.DataFrame, Arguments], Answer],
) -> Callable[Concatenate[pl.DataFrame, Arguments], Answer]:
    """A query that remembers its answers for as long as a table lives: chapters ask the same many times."""
    known: dict[int, dict[object, Answer]] = {}

    def asked(part: pl.DataFrame, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        if id(part) not in known:
            known[id(part)] = {}
            weakref.finalize(part, known.pop, id(part))
        answers, key = known[id(part)], (args, *kwargs.items())
        if key not in answers:
            answers[key] = query(part, *args, **kwargs)
        return answers[key]

    return update_wrapper(asked, query)


@once_per_table
def metric_rows(part: pl.DataFrame, metric: str, *, absent: bool = False) -> pl.DataFrame:
    """The published rows of one metric, named without its study; with `absent`, also those without a value."""
    return _of_metric(part, metric).filter(PLAIN if absent else PLAIN & pl.col("value").is_not_null())


def _of_metric(part: pl.DataFrame, metric: str) -> pl.DataFrame:
    split = _by_metric(part)
    names = [name for name in split if name.endswith(f".{metric}")]
    if len(names) > 1:
        return part.filter(pl.col("metric").is_in(names))
    return split[names[0]] if names else part.clear()


@once_per_table
def _by_metric(part: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {str(name): rows for (name,), rows in part.group_by(["metric"], maintain_order=True)}


@once_per_table
def deciding_rows(part: pl.DataFrame, metric: str) -> pl.DataFrame:
    """The rows of one metric that have a value and decide."""
    return deciding(_of_metric(part, metric).filter(pl.col("value").is_not_null()))


def deciding(table: pl.DataFrame) -> pl.DataFrame:
    """The rows that decide: one within strata, where there is one, in place of the published one."""
    within = table.filter(~PLAIN)
    place = ["model", "dataset", *KEY[:-1]]
    plain = table.filter(PLAIN).join(within.select(place), on=place, how="anti", nulls_equal=True)
    return pl.concat([plain, within]) if within.height else plain


def one_row(part: pl.DataFrame, metric: str, **where: str) -> Result | None:
    """The first row of a metric with these column values, if there is one."""
    table = metric_rows(part, metric).filter(**where)
    return table.row(0, named=True) if table.height else None


def by_model(part: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Each model with its rows."""
    return [(part["model"][0], part)] if part["model"].n_unique() == 1 else _split_by_model(part)


@once_per_table
def _split_by_model(part: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    return [(str(model), own) for (model,), own in part.group_by(["model"], maintain_order=True)]


def by_column(table: pl.DataFrame, column: str) -> dict[str, Result]:
    """The rows by what a column says, such as `concept`; of several rows with one value, the last."""
    return {row[column]: row for row in table.to_dicts()}


def widest_first(table: pl.DataFrame) -> pl.DataFrame:
    """The rows sorted by their distance from 0, the farthest first."""
    return table.sort(pl.col("value").abs(), descending=True, maintain_order=True)


def with_metrics(table: pl.DataFrame, part: pl.DataFrame, on: Sequence[str], **metrics: str) -> pl.DataFrame:
    """The table with the values of other metrics, each in a column of its own, joined `on` these columns."""
    for name, metric in metrics.items():
        values = metric_rows(part, metric).select(*on, pl.col("value").alias(name))
        table = table.join(values, on=on, how="left", maintain_order="left")
    return table
