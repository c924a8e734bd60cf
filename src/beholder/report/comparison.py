"""The comparison: which numbers of models differ, in the terminal and on a page that opens from disk."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import polars as pl
from rich.console import Console

from beholder.chapter.finding import FOUND
from beholder.chapter.numbers import Result, listed, log_distance, number
from beholder.comparison.family import DIFFERENCE, NONE_FOUND, NOT_MEASURED, SIGNS, TOO_LITTLE, VERDICTS
from beholder.core.errors import DataError
from beholder.core.files import write_whole
from beholder.core.read import read_json, write_table
from beholder.core.record import Record, checked_record, version
from beholder.core.results import KEY, place, read_rows
from beholder.report.page import FILTERS, MOST, Column, Ledger, rendered, save_page
from beholder.report.report import short_names
from beholder.report.scorecard import in_words
from beholder.studies import STUDIES

COMPARED = "comparison.parquet"
SCHEMA: dict[str, type[pl.DataType]] = {
    **dict.fromkeys(("study", "baseline", "model", "dataset"), pl.String),
    **dict.fromkeys(KEY, pl.String),
    **dict.fromkeys(("first", "second", "difference", "low", "high", "p_value"), pl.Float64),
    **{"verdict": pl.String, "n": pl.Int64, "unit": pl.String, "landmark": pl.Float64, "note": pl.String},
}
SHARES = ("probability", "share", "average precision")  # units that are read in per cent
ALWAYS = ("study", "baseline", "model", "dataset", "metric", "first", "second", "difference", "n")


@dataclass
class Comparison:
    """The differences of models from the first, how they were computed, and what could not be compared.

    >>> Comparison(["before", "after"], pl.DataFrame(), Record()).models
    ['before', 'after']
    """

    models: Sequence[str]  # the first is the baseline: a difference is that of another less the first
    table: pl.DataFrame
    record: Record
    parts: int = 20  # parts into which people were dealt, each left out once
    folder: Path | None = None  # where it is kept

    @property
    def others(self) -> list[str]:
        """The models that are compared with the first."""
        return list(self.models[1:])

    def of(self, model: str) -> "Comparison":
        """The differences of one model from the first."""
        return replace(self, models=[self.models[0], model], table=self.table.filter(pl.col("model") == model))


def read_comparison(folder: Path) -> Comparison:
    """A comparison from its folder."""
    table = read_rows(folder / COMPARED, SCHEMA, ALWAYS, value="difference")
    if table.is_empty():
        raise DataError(f"{folder / COMPARED} holds no difference. Make the comparison again.")
    if odd := sorted(set(table["verdict"].drop_nulls()) - set(SIGNS)):
        raise DataError(f"{folder / COMPARED}: {odd[0]!r} is no verdict. There are: {', '.join(SIGNS)}.")
    record = checked_record(read_json(folder / "comparison.json"), folder / "comparison.json")
    parts = record.settings.get("parts")
    models = [*table["baseline"].head(1), *table["model"].unique(maintain_order=True)]
    return Comparison(models, table, record, parts if isinstance(parts, int) and parts > 2 else 20, folder)


FAIRER, LESS_FAIR, CHANGED = "fairer", "less fair", "different"


class Line(NamedTuple):
    """A question and what the other model's answer is to it, beside the first's."""

    question: str
    meaning: str
    verdict: str  # fairer, less fair, different, or what the comparison says where no difference was found
    sign: str
    sentence: str
    differ: int
    compared: int
    where: str
    first: str
    second: str
    difference: str  # with its interval, in the metric's own unit


def lines(comparison: Comparison) -> list[Line]:
    """Every metric, what differs first; within one, the number with the smallest p stands for it."""
    by_metric = [(str(metric), rows) for (metric,), rows in comparison.table.group_by("metric", maintain_order=True)]
    surest = [rows.sort("p_value", nulls_last=True).row(0, named=True) for _, rows in by_metric]
    names = dict(zip(comparison.models, named(comparison), strict=True))
    made = []
    for (metric, rows), own in zip(by_metric, surest, strict=True):
        verdict = fairness(own)
        sign = SIGNS[DIFFERENCE if verdict in (FAIRER, LESS_FAIR, CHANGED) else own["verdict"] or NOT_MEASURED]
        first, second = (worded(own, own[end]) for end in ("first", "second"))
        who = names.get(own["model"], own["model"]), names.get(own["baseline"], own["baseline"])
        sentence = f"{who[0]} {second}, {who[1]} {first}"
        counts = rows.filter(FOUND).height, rows.height
        shown = (place(own), first, second, with_interval(own))
        made.append(Line(*asked_of(own, metric), verdict, sign, sentence, *counts, *shown))
    order = (LESS_FAIR, FAIRER, CHANGED, *VERDICTS)
    return sorted(made, key=lambda line: order.index(line.verdict) if line.verdict in order else len(order))


def asked_of(row: Result, metric: str) -> tuple[str, str]:
    """What a number is, in words: the study with what its metric means, and the rest of the meaning."""
    study = STUDIES.get(row["study"])
    known = study.metric(metric) if study else None
    asked, _, rest = known.meaning.partition("; ") if known else (metric.replace("_", " "), "", "")
    return f"{(study.short or study.title) if study else row['study']}: {asked}", rest


def fairness(row: Result) -> str:
    """Whether the other model is nearer to what no effect gives; `different` where a number has no fair value."""
    if row["verdict"] != DIFFERENCE:
        return str(row["verdict"] or NOT_MEASURED)
    known = STUDIES[row["study"]].metric(row["metric"]) if row["study"] in STUDIES else None
    landmark = row.get("landmark") if row.get("landmark") is not None else known.landmark if known else None
    if landmark is None or (row.get("group") is not None and row.get("against") is None):
        return CHANGED
    first, second = (off(row[end], landmark) for end in ("first", "second"))
    return CHANGED if first == second else FAIRER if second < first else LESS_FAIR


def off(value: float, landmark: float) -> float:
    """How far a number is from its landmark; half and double are equally far from 1."""
    return log_distance(value, landmark) if landmark == 1 else abs(value - landmark)


def worded(row: Result, value: float) -> str:
    """A number in the words of its unit."""
    landmark = 0.0 if row.get("against") is not None and row["unit"] != "ratio" else row.get("landmark")
    return in_words(value, row["unit"], landmark)


def with_interval(row: Result) -> str:
    """A signed difference with its interval; of shares in points, as the numbers beside it are in per cent."""
    factor, unit = (100, " points") if row.get("unit") in SHARES else (1, "")
    value, bounded = factor * row["difference"], row["low"] is not None
    low, high = (factor * row[end] if bounded else 0.0 for end in ("low", "high"))
    width = abs(high - low) if bounded else abs(value)
    digits = next((digits for digits in range(1, 7) if width * 10**digits >= 3), 6)  # it spans some units of the last
    shown = f"{value:+.{digits}f}{unit}"
    if bounded:
        shown += f" ({low:.{digits}f} to {high:.{digits}f})"
    return shown.replace("-", "−")


def lead(comparison: Comparison) -> str:
    """The answer in a sentence: for how many questions the other model is fairer, less fair, or not found to differ."""
    (first, second), answers = named(comparison), lines(comparison)
    counts = Counter(line.verdict for line in answers)
    few = counts[TOO_LITTLE] + counts[NOT_MEASURED]
    parts = [
        (counts[FAIRER], f"{FAIRER} than {first}"),
        (counts[LESS_FAIR], f"{LESS_FAIR} than {first}"),
        (counts[CHANGED], f"{CHANGED} (neither is the fair one)"),
        (counts[NONE_FOUND], "not found to differ"),
        (few, "not known (too little data)"),
    ]
    told = [f"{words} in {count}" for count, words in parts if count]
    return f"Of {number(len(answers), 'question')}, {second} is {listed(told)}." if told else "Nothing was compared."


def named(comparison: Comparison) -> list[str]:
    """The models, shortly."""
    short = short_names(comparison.models)
    return [short.get(name, name) for name in comparison.models]


def print_comparison(comparison: Comparison, console: Console) -> None:
    """What differs, model after model and question after question, a line each, never cut."""
    for each in map(comparison.of, comparison.others):
        console.print(lead(each), markup=False, soft_wrap=True)
        for line in lines(each):
            counts = f"{line.differ} of {number(line.compared, 'number')} {'differs' if line.differ == 1 else 'differ'}"
            text = f"{line.sign} {line.verdict.capitalize()}: {line.question}: {line.sentence}"
            about = ", ".join(filter(None, (line.where, counts)))
            console.print(f"{text} ({about})", markup=False, soft_wrap=True)
    for text in comparison.record.left_out:
        console.print(f"Left out: {text}.", markup=False, soft_wrap=True)


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """`comparison.html`, `comparison.parquet`, `comparison.csv` and `comparison.json`; returns the page's path."""
    write_table(comparison.table, folder, "comparison")
    write_whole(folder / "comparison.json", comparison.record.as_json())
    return save_page(folder / "comparison.html", render_comparison(comparison))


def render_comparison(comparison: Comparison) -> str:
    """The page as text."""
    (first, *others), record = named(comparison), comparison.record
    whom = listed(others)
    each = zip(others, map(comparison.of, comparison.others), strict=True)
    return rendered(
        "comparison.html.j2",
        ("files.js", "ledger.js"),
        first=first,
        others=whom,
        pairs=[(name, lead(pair), lines(pair)) for name, pair in each],
        record=record,
        parts=comparison.parts,
        ledger=_ledger(comparison),
        models=record.models,
        citation=f"Beholder {version()}, {first} and {whom}, {record.created[:10]}.",
    )


def _ledger(comparison: Comparison) -> Ledger | None:
    """Every difference, the surest first; None where there are too many for a page."""
    if not 0 < comparison.table.height <= MOST:
        return None
    words = {row["metric"]: asked_of(row, row["metric"])[0] for row in comparison.table.iter_rows(named=True)}
    shares = pl.col("unit").is_in(SHARES)  # in per cent, as above
    table = comparison.table.sort("p_value", nulls_last=True).with_columns(
        pl.col("metric").replace(words),
        pl.col("first", "second", "difference", "low", "high") * pl.when(shares).then(100).otherwise(1),
        unit=pl.when(shares).then(pl.lit("per cent")).otherwise(pl.col("unit")),
    )
    several = len(comparison.models) > 2
    columns = [
        Column("Question", ("metric",), "name"),
        *([Column("Model", ("model",))] if several else []),
        Column("Of", KEY[1:]),
        Column(named(comparison)[0], ("first",), "number"),
        Column("Other model" if several else named(comparison)[1], ("second",), "number"),
        Column("Difference", ("difference",), "number", ("low", "high")),
        Column("In", ("unit",)),
        Column("p", ("p_value",), "number"),
        Column("n", ("n",), "number"),
        Column("Verdict", ("verdict",), "reason", ("note",), dot=True),
    ]
    shown = FILTERS | {"metric": "Question"}
    filters = [(name, shown[name]) for name in shown if name in table.columns and table[name].n_unique() > 1]
    return Ledger(table, columns, filters)
