"""Finding: one thing a reader should take away, in plain words with its evidence."""

import html
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

import polars as pl

from beholder.chapter.numbers import Result, has_interval, log_distance, quantity, ratio
from beholder.comparison.family import DIFFERENCE, FACT, NAMES, NONE_FOUND, NOT_MEASURED, SIGNS, TOO_LITTLE
from beholder.core.results import KEY, PLAIN

FOUR_FIFTHS = 0.8  # a rate below this part of another is held to be unequal by US rules on hiring
DIFFERS, KNOWS, CHECK = "difference", "fact", "check"
"""What is meant where a difference is found: of groups; from what a guess gives; from what is known of the audit."""


class Side(NamedTuple):
    """One group's number, and what the model calls it: its most frequent first choice, and how often."""

    group: str  # as the data names it
    value: float
    n: int
    said: str = ""
    times: int | None = None

    def as_dict(self) -> Result:
        """As `findings.json` has it."""
        called = {} if self.times is None else {"first_choice": self.said, "first_choices": self.times}
        return {"group": self.group, "value": self.value, "n": self.n, **called}


class Contrast(NamedTuple):
    """One thing that was compared: the row that says so, and both groups' numbers where there are two groups."""

    label: str
    row: Result
    sides: tuple[Side, Side] | None = None  # of `group`, then of `against`

    @property
    def ratio(self) -> float | None:
        """The lower number over the higher one; None where they are no parts of a whole."""
        if self.sides is None or min(side.value for side in self.sides) < 0:
            return None
        low, high = sorted(side.value for side in self.sides)
        return low / high if high else None

    @property
    def size(self) -> str:
        """The ratio, and where it falls against four fifths."""
        if self.ratio is None:
            return ""
        where = "below" if self.ratio < FOUR_FIFTHS else "above"
        return f"{ratio(self.ratio)} times, {where} four fifths"

    def as_dict(self) -> Result:
        """As `findings.json` has it."""
        groups = [side.as_dict() for side in self.sides or ()]
        return {"label": self.label, "verdict": self.row.get("verdict"), "ratio": self.ratio, "groups": groups}


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
    answer: str = ""  # one sentence with both groups' numbers; the model is its subject: “The model …”
    contrasts: tuple[Contrast, ...] = ()  # what was compared, the most telling first
    card: str = ""  # the card of the first screen that it answers, such as Jobs
    role: str = DIFFERS

    @property
    def shown(self) -> bool:
        """Whether a difference was found."""
        return self.verdict == DIFFERENCE

    @property
    def marked(self) -> str:
        return f"{SIGNS[self.verdict]} {self.verdict}"

    @property
    def said(self) -> str:
        """The verdict as readers are told: what a model was found to know is a fact, and no bias."""
        return FACT if self.shown and self.role != DIFFERS else self.verdict

    @property
    def badge(self) -> str:
        """Its name with its sign; where nothing was found, with how large a difference could still be."""
        reach = f" (could be {self.possible})" if self.verdict == NONE_FOUND and self.possible else ""
        return f"{SIGNS[self.said]} {NAMES[self.said]}{reach}"

    @property
    def possible(self) -> str:
        """How far from none a difference could still be, by the bounds of what was not found."""
        rows = [row for row in self.rows if row.get("verdict") == NONE_FOUND and has_interval(row)]
        rows = [row for row in rows if row.get("metric") == rows[0].get("metric")]
        if not rows:
            return ""
        unit, landmark = rows[0]["unit"], rows[0].get("landmark")
        low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
        if unit == "ratio":
            return f"{ratio(low)} to {ratio(high)} times"
        off = max(abs(end - (row.get("landmark") or 0.0)) for row in rows for end in (row["low"], row["high"]))
        return f"up to {quantity(off, unit, landmark and 0.0)}{' (cosine × 100)' if unit == 'cosine' else ''}"

    @property
    def p_value(self) -> float:
        """The smallest p of the differences that it reports; 1 where it reports none."""
        found = (row["p_value"] for row in self.rows if row.get("verdict") == DIFFERENCE and row["p_value"])
        return min(found, default=1)

    @property
    def distance(self) -> float:
        """How unequal the two numbers of its first contrast are, in e-folds; 0 where there are none."""
        if not self.contrasts:
            return 0.0
        first = self.contrasts[0]
        known = first.row["value"] or 0.0 if first.row.get("unit") == "ratio" else first.ratio
        return 0.0 if known is None else log_distance(known, 1.0)

    @property
    def metric(self) -> str:
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
        told = {"answer": self.answer or f"{self.headline}.", "contrasts": [each.as_dict() for each in self.contrasts]}
        return {**{name: getattr(self, name) for name in names}, **numbers, "rows": places, **told}


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
    answer: str = "",
    contrasts: Sequence[Contrast] = (),
) -> Finding:
    """A finding about `row`'s model; `more` are other rows that it speaks of."""
    verdict = verdict or (DIFFERENCE if shown else NONE_FOUND)
    whose = row["study"], row["dataset"], row["model"]
    made = Finding(*whose, kind, headline, sentence, verdict, effect, (row, *more))
    return made._replace(answer=answer, contrasts=tuple(contrasts))


def contrast(label: str, row: Result, sides: Mapping[str, Result]) -> Contrast:
    """A comparison with each group's own number, where both were measured."""
    both = [sides.get(row.get(end) or "") for end in ("group", "against")]
    first, second = (each and Side(each["group"], each["value"], each["n"]) for each in both)
    return Contrast(label, row, (first, second) if first and second else None)


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
    if within.is_empty():
        return table
    place = ["model", "dataset", *KEY[:-1]]
    plain = table.filter(PLAIN).join(within.select(place), on=place, how="anti", nulls_equal=True)
    return pl.concat([plain, within])


def one_row(part: pl.DataFrame, metric: str, *, decides: bool = False, **where: str) -> Result | None:
    """The first row of a metric with these column values, or of those that decide, if there is one."""
    table = (deciding_rows if decides else metric_rows)(part, metric).filter(**where)
    return table.row(0, named=True) if table.height else None


def by_model(part: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
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
