"""Comparison: where models differ from the first, asked the same about the same people.

All are measured as in an audit, then again without a twentieth of the people, twenty times, the same people for
all: the spread of the differences is the differences' own. Two checkpoints that err on the same photographs can so
be told apart where their own intervals overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.audit import AuditOptions, confirm_upload, filled, from_store, measure, run_digest
from beholder.core.callable_module import callable_module
from beholder.core.errors import MissingData, UsageError
from beholder.core.files import Place, store_folder
from beholder.core.results import KEY
from beholder.datasets import DATASETS, data_root
from beholder.datasets.dataset import Dataset
from beholder.metrics.jackknife import dealt, left_out_in_turn
from beholder.metrics.multiplicity import benjamini_hochberg
from beholder.models.load import load_model
from beholder.models.spec import ModelSpec
from beholder.report.comparison import SCHEMA, Comparison, write_comparison
from beholder.run import Run, load_run
from beholder.run_folder import folder_name, run_folder
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.store import Store
from beholder.studies import STUDIES
from beholder.studies.rows import people_shown
from beholder.studies.sheets import Sheet, open_sheets
from beholder.studies.study import MeasureOptions, Study

PARTS = 20
"""Parts into which people are dealt. More cost more and say little more: an interval is 7 % wider than with endless."""
KINDS = 12
"""An attribute with at most so many values is one that people are spread by."""
Matrices = list[ScoreMatrix]


class Scored(NamedTuple):
    """A model of an earlier run: its scores are read from the store, and it is not loaded."""

    name: str
    specs: tuple[ModelSpec, ...]
    """One for every way in which the run asked it."""
    store: Place

    def called(self, folder: str) -> Scored:
        """The model under a name that tells its run."""
        return self._replace(name=f"{self.name} ({folder})")


def scored_models(run: Run, stores: Sequence[Place]) -> list[Scored]:
    """The models of a run, each with the store that has its scores."""
    models: dict[str, list[ModelSpec]] = {}
    for entry in run.record.models:
        if "digest" not in entry or "revision" not in entry:
            raise UsageError(
                f"{run.folder} was made from scores in files. Only runs of `beholder audit` can be compared."
            )
        spec = ModelSpec(**{name: entry[name] for name in ModelSpec.__dataclass_fields__})
        models.setdefault(spec.name, []).append(spec)
    holding = {name: [store for store in stores if Store(store).holds(specs[0])] for name, specs in models.items()}
    return [Scored(name, tuple(specs), (holding[name] or stores)[0]) for name, specs in models.items()]


def told_apart(models: Sequence[tuple[str, str | Scored]]) -> list[str | Scored]:
    """The models, each with the folder of its run; two of one name are called after their folders."""
    names = [each if isinstance(each, str) else each.name for _, each in models]
    return [
        each if isinstance(each, str) or names.count(each.name) == 1 else each.called(Path(folder).resolve().name)
        for folder, each in models
    ]


def compare(
    *runs: Run | Path | str,
    data: Path | str | None = None,
    store: Path | str | None = None,
    out: Path | str | None = None,
    parts: int = PARTS,
) -> Comparison:
    """Where the models of several runs differ from the first, as `beholder compare RUN RUN` says it.

    >>> from tempfile import TemporaryDirectory
    >>> from beholder.audit import audit
    >>> with TemporaryDirectory() as folder:
    ...     options = {"limit": 4, "draws": 100, "store": f"{folder}/store"}
    ...     runs = [audit(f"null:{seed}", "apa", out=f"{folder}/{seed}", **options) for seed in (1, 2)]
    ...     found = compare(*runs, out=f"{folder}/compared", parts=4)
    >>> found.models
    ['null:1', 'null:2']

    A run is a `Run` or its folder. Scores are read from the store. What was asked is what the first run asked; `data`
    and `store` say where the data sets and the scores lie, if not where the runs were made.
    """
    opened = [each if isinstance(each, Run) else load_run(each) for each in runs]
    if len(opened) < 2:
        raise UsageError("Name two runs or more.")
    for other in opened[1:]:
        if other.record.benchmarks != opened[0].record.benchmarks:
            raise UsageError(
                f"The runs were not asked the same: {', '.join(opened[0].record.benchmarks)} in the first, "
                f"{', '.join(other.record.benchmarks)} in another. Compare runs of the same benchmarks."
            )
    studies, options = opened[0].asked or _asked_again(opened[0])
    stores = [store_folder(store)] if store else [run.places.store if run.places else store_folder() for run in opened]
    models = [(str(run.folder), each) for run in opened for each in scored_models(run, [*stores, *run.own_stores])]
    options = replace(
        options, data=Path(data) if data else options.data, out=Path(out) if out else None, store=stores[0]
    )
    return compare_models(told_apart(models), studies, options, parts=parts)


def _asked_again(run: Run) -> tuple[list[Study], AuditOptions]:
    """What a run of an earlier program was asked, as far as its record tells."""
    settings, (first, *more) = run.record.settings, run.record.datasets or [{}]
    for name in run.record.benchmarks:
        STUDIES[name].refuse_by_name()
    here = str(first.get("name")) if first.get("name") in DATASETS else str(first.get("origin"))
    measured = {name: settings[name] for name in ("compat", "draws", "seed", "delta") if name in settings}
    bins = {name: tuple(edges) for name, edges in settings.get("bins", {}).items()}
    options = AuditOptions(
        data_root(), None if more else here, limit=settings.get("limit"), bins=bins, measure=MeasureOptions(**measured)
    )
    return [STUDIES[name] for name in run.record.benchmarks], options


def compare_models(
    models: Sequence[str | Scored], studies: Sequence[str | Study], options: AuditOptions, *, parts: int = PARTS
) -> Comparison:
    """Every number that has an interval for the first model and for another, with the interval of the difference.

    The comparison is written into its folder, with its page.
    """
    names = [model if isinstance(model, str) else model.name for model in models]
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(f"Name two models or more, each once; these were named: {', '.join(names) or 'none'}.")
    run = Run()
    run.record.command = list(options.command)
    run.record.settings = {"seed": options.measure.seed, "limit": options.limit, "parts": parts}
    asked = [STUDIES[study] if isinstance(study, str) else study for study in studies]
    sheets = [sheet for study in asked for sheet in open_sheets(study, options, run.record)]
    run.record.digest = run_digest(run, models, sheets, options)
    named = f"compare-{folder_name(names, run.record.benchmarks)}"
    with run_folder(run.record, options.out, named, file="comparison.json") as (folder, _):
        scored = [_matrices(model, sheets, options, run) for model in models]
        tables = [
            _compared(sheet, dict(zip(names, each, strict=True)), options, run, parts)
            for sheet, *each in zip(sheets, *scored, strict=True)
        ]
        table = pl.concat([pl.DataFrame(schema=SCHEMA), *tables])
        comparison = Comparison(names, table, run.record, parts, folder)
        run.record.finished = True
        write_comparison(comparison, folder)
    return comparison


def _matrices(model: str | Scored, sheets: Sequence[Sheet], options: AuditOptions, run: Run) -> list[Matrices]:
    """What a model says on every sheet; the model is let go before the next is loaded."""
    if isinstance(model, str):
        scorer = load_model(model, options.load)
        confirm_upload(scorer, sheets, options)
        return [filled(scorer, sheet, options, run) for sheet in sheets]
    for spec in model.specs:
        run.record.add_model({**spec.as_dict(), "notes": []})
    return [_from_store(model, sheet, options) for sheet in sheets]


def _from_store(model: Scored, sheet: Sheet, options: AuditOptions) -> Matrices:
    matrices = from_store(model.specs, sheet, replace(options, store=model.store))
    if matrices is None:
        raise MissingData(
            f"The store {model.store} has no scores of {model.name} for {sheet.study.name} on {sheet.dataset.name}.\n"
            "Name the store that the audit used with --store, or name the model in place of its run."
        )
    return matrices


def _compared(
    sheet: Sheet, models: Mapping[str, Matrices], options: AuditOptions, run: Run, parts: int
) -> pl.DataFrame:
    """The differences of all models from the first, which is measured once for all of them."""
    study, dataset = sheet
    first, *_ = models
    for name in [name for name in models if _asked(models[name]) != _asked(models[first])]:
        run.record.left_out.append(
            f"{study.name} on {dataset.name}: {name} and {first} are asked in different ways (one answers questions, "
            "the other matches statements), so their numbers are not of one kind"
        )
        models = {other: matrices for other, matrices in models.items() if other != name}
    if len(models) < 2:
        return pl.DataFrame(schema=SCHEMA)
    models = _shared(models)
    part = _parts(dataset, parts, options.measure)
    wholes = {name: measure(sheet, each, options.measure, model=name) for name, each in models.items()}
    cheap = replace(options.measure, draws=2, permutations=2, values_only=True)
    turns: list[dict[str, dict[Any, float]]] = []
    with options.fill.progress(f"{study.name}: leaving people out", parts, 0) as advance:
        for number in range(parts):
            kept = {name: [_without(matrix, part, number) for matrix in each] for name, each in models.items()}
            turns.append({name: _values_of_rows(study, each, cheap) for name, each in kept.items()})
            advance(1)
    return pl.concat(
        _table(study, wholes[first], whole, [(turn[first], turn[name]) for turn in turns])
        for name, whole in wholes.items()
        if name != first
    )


def _table(
    study: Study, first: pl.DataFrame, second: pl.DataFrame, turns: Sequence[tuple[dict[Any, float], dict[Any, float]]]
) -> pl.DataFrame:
    """The differences; what is alike for both whoever is left out is a fact of the data, and is not listed."""
    values = _values(first), _values(second)
    estimated = _estimated(first, study), _estimated(second, study)
    keys = [key for key in estimated[0] if key in estimated[1]]
    keys = [key for key in keys if any(_differences([key], each)[0] != 0 for each in (values, *turns))]
    difference = _differences(keys, values)
    without = np.array([_differences(keys, turn) for turn in turns]).reshape(len(turns), len(keys))
    facts = {tuple(row[name] for name in KEY): row for row in second.iter_rows(named=True)}
    found = left_out_in_turn(difference, without, reach=np.array([_reach(facts[key], values[0][key]) for key in keys]))
    rows = [
        {
            "baseline": first["model"][0],
            **{name: facts[key][name] for name in ("benchmark", "model", "dataset", *KEY, "n", "unit", "landmark")},
            "first": values[0][key],
            "second": values[1][key],
            "difference": difference[at],
            "low": found.low[at],
            "high": found.high[at],
            "p_value": found.p_value[at],
            "note": None if np.isfinite(found.low[at]) else NO_INTERVAL,
        }
        for at, key in enumerate(keys)
    ]
    table = pl.DataFrame(rows, schema={name: kind for name, kind in SCHEMA.items() if name != "p_adjusted"})
    return table.with_columns(pl.selectors.float().fill_nan(None)).pipe(_adjusted).select(list(SCHEMA))


NO_INTERVAL = "no interval: alike in every part, or not there without some of the people"
SHARES = ("probability", "share", "share of the picture", "share of variance", "average precision", "reciprocal rank")
SHARES_OR_LESS = ("correlation", "rank correlation", "cosine")


def _reach(row: Mapping[str, Any], other: float) -> float:
    """The largest difference that two values of a unit can have: 1 for shares, 2 for their gaps; else there is none."""
    whole = 100.0 if row["unit"] == "per cent" else 1.0
    if row["unit"] in (*SHARES, "per cent"):
        gap = row["against"] is not None or row["landmark"] == 0.0 or min(row["value"], other) < 0.0
        return 2 * whole if gap else whole
    return 2.0 if row["unit"] in SHARES_OR_LESS else np.inf


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
    return dict(zip(known.select(KEY).iter_rows(), known["value"].to_list(), strict=True))


def _values_of_rows(study: Study, matrices: Matrices, options: MeasureOptions) -> dict[Any, float]:
    """The same without a table, which would take a tenth of the time."""
    by_task = {matrix.task: matrix for matrix in matrices}
    rows = (row for read_off in study.measures for row in read_off(by_task, options))
    return {_key(row): row.value for row in rows if row.value is not None and isfinite(row.value)}


_key = attrgetter(*KEY)


def _estimated(results: pl.DataFrame, study: Study) -> dict[Any, float]:
    """The numbers that have an interval; the others (statistics, quantiles, counts) are no estimates.

    What shuffled labels give is none either: it is what chance does, whatever the model.
    """
    by_chance = [metric.name for metric in study.metrics if metric.chance_only]
    return _values(results.filter(pl.col("low").is_not_null() & ~pl.col("metric").is_in(by_chance)))


def _differences(keys: list[Any], values: tuple[dict[Any, float], dict[Any, float]]) -> npt.NDArray[np.float64]:
    first, second = values
    return np.array([second.get(key, np.nan) - first.get(key, np.nan) for key in keys])


def _asked(matrices: Matrices) -> list[Any]:
    return [(matrix.task, matrix.prompts["prompt_id"].to_list()) for matrix in matrices]


def _shared(models: Mapping[str, Matrices]) -> dict[str, Matrices]:
    """The images that all models could be shown."""
    shared = [
        set.intersection(*(set(matrix.images["image_id"]) for matrix in each))
        for each in zip(*models.values(), strict=True)
    ]
    return {
        name: [
            matrix.rows(np.array([image in images for image in matrix.images["image_id"]], dtype=bool))
            for matrix, images in zip(each, shared, strict=True)
        ]
        for name, each in models.items()
    }


def _parts(dataset: Dataset, parts: int, options: MeasureOptions) -> dict[str, int]:
    """For every image, when it is left out."""
    few = [name for name in dataset.attributes if dataset.table[name].n_unique() <= KINDS]
    told = dataset.table.select(pl.col(few).cast(pl.String).fill_null("")).to_numpy().astype(str)
    kind = np.unique(told, axis=0, return_inverse=True)[1] if few else np.zeros(len(dataset), dtype=int)
    part = dealt(people_shown(dataset.table), kind.ravel(), parts, options.rng())
    return dict(zip(dataset.table["image_id"], part.tolist(), strict=True))


def _without(matrix: ScoreMatrix, part: dict[str, int], number: int) -> ScoreMatrix:
    return matrix.rows(np.array([part[image] != number for image in matrix.images["image_id"]], dtype=bool))


callable_module(__name__, compare)
