"""Finding: one thing a reader should take away, in plain words with its evidence."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from beholder.chapter.numbers import Result
from beholder.chapter.queries import metric_rows
from beholder.comparison.family import DIFFERENCE, NONE_FOUND, NOT_MEASURED, SIGNS, TOO_LITTLE
from beholder.core.results import KEY


class Finding(NamedTuple):
    """A claim about one model, with the numbers that bear it out."""

    study: str
    dataset: str
    model: str
    kind: str
    """The question it answers: a key of the chapter's questions."""
    headline: str
    sentence: str
    verdict: str
    """One of `comparison.VERDICTS`: a finding may also be that no difference was found."""
    effect: float
    """Distance from the landmark in e-folds: for ordering within a kind."""
    rows: tuple[Result, ...] = ()
    """The rows of the results that it speaks of, the most telling first."""
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

    def as_dict(self) -> dict[str, Any]:
        """The finding as `findings.json` has it; these names are our API."""
        first = self.rows[0] if self.rows else {}
        numbers = {name: first.get(name) for name in ("metric", "value", "low", "high", "p_value", "n")}
        places = [{name: row.get(name) for name in KEY} for row in map(stored, self.rows)]
        return {
            "id": self.id,
            "study": self.study,
            "model": self.model,
            "dataset": self.dataset,
            "question": self.question,
            "verdict": self.verdict,
            "headline": self.headline,
            "sentence": self.sentence,
            **numbers,
            "rows": places,
        }


def turned(row: Result) -> Result:
    """A difference seen from the other group: the second less the first; turned twice, the row itself.

    >>> turned({"group": "a", "against": "b", "value": -2.0, "low": -3.0, "high": -1.0})["value"]
    2.0
    """
    ends = {"value": row["value"], "low": row["high"], "high": row["low"], "landmark": row.get("landmark")}
    signs = {name: None if number is None else 0.0 - number for name, number in ends.items()}
    sides = {"group": row["against"], "against": row["group"], "turned": not row.get("turned")}
    return {**row, **signs, **sides}


def stored(row: Result) -> Result:
    """The row as the results have it, whichever way a finding reads it."""
    return turned(row) if row.get("turned") else row


def valued(part: pl.DataFrame, metric: str) -> list[Result]:
    """The rows of one metric that have a value."""
    return metric_rows(part, metric).to_dicts()


def verdict_of_rows(rows: Sequence[Result]) -> str:
    """What several comparisons say together: a difference if one of them found one.

    >>> verdict_of_rows([{"verdict": "none found"}, {"verdict": "difference found"}]), verdict_of_rows([])
    ('difference found', 'not measured')
    """
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
