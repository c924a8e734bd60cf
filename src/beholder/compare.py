"""Comparison: where two models differ, asked the same about the same people.

Both are measured as in an audit, then again without a twentieth of the people, twenty times, the same people for
both: the spread of the differences is the differences' own. Two checkpoints that err on the same photographs can so
be told apart where their own intervals overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.audit import AuditOptions, confirm_upload, filled, measure
from beholder.core.errors import UsageError
from beholder.core.results import KEY
from beholder.datasets.dataset import Dataset
from beholder.metrics.jackknife import dealt, left_out_in_turn
from beholder.metrics.multiplicity import benjamini_hochberg
from beholder.models.load import load_model
from beholder.report.comparison import Comparison, Pair
from beholder.run import Run
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies import STUDIES
from beholder.studies.rows import people_shown
from beholder.studies.sheets import Sheet, open_sheets
from beholder.studies.study import MeasureOptions, Study

PARTS = 20
"""Parts into which people are dealt. More cost more and say little more: an interval is 7 % wider than with endless."""
KINDS = 12
"""An attribute with at most so many values is one that people are spread by."""
SCHEMA: dict[str, Any] = {
    "benchmark": pl.String,
    "dataset": pl.String,
    **dict.fromkeys(KEY, pl.String),
    **dict.fromkeys(("first", "second", "difference", "low", "high", "p_value", "p_adjusted"), pl.Float64),
    "n": pl.Int64,
    "unit": pl.String,
    "note": pl.String,
}


def compare_models(
    models: Pair, studies: Sequence[str | Study], options: AuditOptions, *, parts: int = PARTS
) -> Comparison:
    """Every number that has an interval for both models, with the interval of the difference."""
    if models.first == models.second:
        raise UsageError(f"{models.first} is compared with itself. Name two models.")
    run = Run()
    run.record.command = list(options.command)
    asked = [STUDIES[study] if isinstance(study, str) else study for study in studies]
    sheets = [sheet for study in asked for sheet in open_sheets(study, options, run.record)]
    scored = [_matrices(name, sheets, options, run) for name in models]
    tables = [_compared(sheet, pair, options, run, parts) for sheet, *pair in zip(sheets, *scored, strict=True)]
    return Comparison(models, pl.concat([pl.DataFrame(schema=SCHEMA), *tables]), run.record, parts)


def _matrices(name: str, sheets: Sequence[Sheet], options: AuditOptions, run: Run) -> list[list[ScoreMatrix]]:
    """What a model says on every sheet; the model is let go before the next is loaded."""
    scorer = load_model(name, options.load)
    confirm_upload(scorer, sheets, options)
    return [filled(scorer, sheet, options, run) for sheet in sheets]


def _compared(
    sheet: Sheet, pair: Sequence[list[ScoreMatrix]], options: AuditOptions, run: Run, parts: int
) -> pl.DataFrame:
    study, dataset = sheet
    if _asked(pair[0]) != _asked(pair[1]):
        run.record.left_out.append(
            f"{study.name} on {dataset.name}: the two models are asked in different ways (one answers questions, "
            "the other matches statements), so their numbers are not of one kind"
        )
        return pl.DataFrame(schema=SCHEMA)
    pair = _both(pair)
    part = _parts(dataset, parts, options.measure)
    wholes = [measure(sheet, each, options.measure, model="") for each in pair]
    cheap = replace(options.measure, draws=2, permutations=2)  # only the values are read
    values = [_values(whole) for whole in wholes]
    estimated = [_estimated(whole, study) for whole in wholes]
    keys = [key for key in estimated[0] if key in estimated[1]]
    turns: list[list[dict[Any, Any]]] = []
    with options.fill.progress(f"{study.name}: leaving people out", parts, 0) as advance:
        for number in range(parts):
            kept = ([_without(matrix, part, number) for matrix in matrices] for matrices in pair)
            turns.append([_values(measure(sheet, each, cheap, model="")) for each in kept])
            advance(1)
    return _table(study.name, dataset.name, keys, values, turns, wholes[1])


def _table(
    benchmark: str,
    dataset: str,
    keys: list[Any],
    values: list[dict[Any, Any]],
    turns: list[list[dict[Any, Any]]],
    second: pl.DataFrame,
) -> pl.DataFrame:
    """The differences; what is alike for both whoever is left out is a fact of the data, and is not listed."""
    keys = [key for key in keys if any(_differences([key], each)[0] != 0 for each in (values, *turns))]
    difference = _differences(keys, values)
    without = np.array([_differences(keys, turn) for turn in turns]).reshape(len(turns), len(keys))
    found = left_out_in_turn(difference, without)
    facts = {tuple(row[name] for name in KEY): row for row in second.iter_rows(named=True)}
    rows = [
        {
            "benchmark": benchmark,
            "dataset": dataset,
            **dict(zip(KEY, key, strict=True)),
            "first": values[0][key],
            "second": values[1][key],
            "difference": difference[at],
            "low": found.low[at],
            "high": found.high[at],
            "p_value": found.p_value[at],
            "n": facts[key]["n"],
            "unit": facts[key]["unit"],
            "note": None if np.isfinite(found.low[at]) else NO_INTERVAL,
        }
        for at, key in enumerate(keys)
    ]
    table = pl.DataFrame(rows, schema={name: kind for name, kind in SCHEMA.items() if name != "p_adjusted"})
    return table.with_columns(pl.selectors.float().fill_nan(None)).pipe(_adjusted).select(list(SCHEMA))


NO_INTERVAL = "no interval: alike in every part, or not there without some of the people"


def _adjusted(table: pl.DataFrame) -> pl.DataFrame:
    """p-values that stay honest over all numbers of one metric."""
    adjusted = pl.col("p_value").map_batches(
        lambda column: pl.Series(benjamini_hochberg(column.fill_null(np.nan).to_numpy()), dtype=pl.Float64).fill_nan(
            None
        ),
        return_dtype=pl.Float64,
    )
    return table.with_columns(adjusted.over("metric").alias("p_adjusted"))


def _values(results: pl.DataFrame) -> dict[Any, float]:
    known = results.filter(pl.col("value").is_not_null())
    return {tuple(row[name] for name in KEY): row["value"] for row in known.iter_rows(named=True)}


def _estimated(results: pl.DataFrame, study: Study) -> dict[Any, float]:
    """The numbers that have an interval; the others (statistics, quantiles, counts) are no estimates.

    What shuffled labels give is none either: it is what chance does, whatever the model.
    """
    by_chance = [metric.name for metric in study.metrics if metric.chance_only]
    return _values(results.filter(pl.col("low").is_not_null() & ~pl.col("metric").is_in(by_chance)))


def _differences(keys: list[Any], values: Sequence[dict[Any, float]]) -> npt.NDArray[np.float64]:
    first, second = values
    return np.array([second.get(key, np.nan) - first.get(key, np.nan) for key in keys])


def _asked(matrices: list[ScoreMatrix]) -> list[Any]:
    return [(matrix.task, matrix.prompts["prompt_id"].to_list()) for matrix in matrices]


def _both(pair: Sequence[list[ScoreMatrix]]) -> list[list[ScoreMatrix]]:
    """The images that both models could be shown."""
    return [list(each) for each in zip(*(_shared(*sheets) for sheets in zip(*pair, strict=True)), strict=True)]


def _shared(first: ScoreMatrix, second: ScoreMatrix) -> Iterator[ScoreMatrix]:
    for mine, other in ((first, second), (second, first)):
        yield mine.rows(mine.images["image_id"].is_in(other.images["image_id"].implode()).to_numpy())


def _parts(dataset: Dataset, parts: int, options: MeasureOptions) -> dict[str, int]:
    """For every image, when it is left out."""
    few = [name for name in dataset.attributes if dataset.table[name].n_unique() <= KINDS]
    told = dataset.table.select(pl.col(few).cast(pl.String).fill_null("")).to_numpy().astype(str)
    kind = np.unique(told, axis=0, return_inverse=True)[1] if few else np.zeros(len(dataset), dtype=int)
    part = dealt(people_shown(dataset.table), kind.ravel(), parts, options.rng())
    return dict(zip(dataset.table["image_id"], part.tolist(), strict=True))


def _without(matrix: ScoreMatrix, part: dict[str, int], number: int) -> ScoreMatrix:
    return matrix.rows(np.array([part[image] != number for image in matrix.images["image_id"]], dtype=bool))
