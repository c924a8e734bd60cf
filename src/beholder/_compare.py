"""Comparison: where models differ from the first, asked the same about the same people.

All are measured as in an audit, then again without a twentieth of the people, twenty times, the same people for all:
that tells what each twentieth adds to each difference, and the engine judges them in pairs. Two checkpoints that err on
the same photographs can so be distinguished where their own intervals overlap.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.random import Generator

from beholder._options import AuditOptions
from beholder._run import Run, folder_name, load_run, run_folder
from beholder._steps import confirm_upload, filled, from_store, measure, run_digest
from beholder.comparison.family import Part, comparison_at, judge
from beholder.comparison.groups import people_of
from beholder.comparison.shuffles import compare_pairs, shares_of
from beholder.core.errors import MissingData, UsageError
from beholder.core.files import Place, store_folder
from beholder.core.options import declared_options
from beholder.core.record import Record
from beholder.core.results import KEY, row_key
from beholder.core.types import Entry
from beholder.datasets import DATASETS, require_asked
from beholder.datasets.dataset import Dataset
from beholder.models.load import load_model, refuse_unused
from beholder.models.spec import ModelSpec
from beholder.report.comparison import SCHEMA, Comparison, write_comparison
from beholder.report.scorecard import WHOLES
from beholder.scores.score_matrix import ScoreMatrix
from beholder.scores.store import Store, recorded_specs
from beholder.studies import STUDIES
from beholder.studies.inquiry import Inquiry, open_inquiries
from beholder.studies.study import MeasureOptions, Study

PARTS = 20  # parts into which people are dealt. More cost more and say little more.
NOT_JUDGED = "fewer than six parts of the people move it, or it is not there without some of them"
KINDS = 12  # an attribute with at most so many values is one that people are spread by
Matrices = list[ScoreMatrix]
Paired = tuple[list[Entry], Part]  # the differences of one model from the first on one inquiry
Numbers = dict[Any, tuple[float, int]]  # a value and how many it counts, by what identifies a study's numbers apart


class Scored(NamedTuple):
    """A model of an earlier run: its scores are read from the store, and it is not loaded."""

    name: str
    specs: tuple[ModelSpec, ...]  # one for every way in which the run asked it
    store: Place


def scored_models(run: Run, stores: Sequence[Place]) -> list[Scored]:
    """The models of a run, each with the store that has its scores."""
    models = recorded_specs(run.record)
    if sum(map(len, models.values())) < len(run.record.models):
        raise UsageError(f"{run.folder} was made from scores in files. Only runs of `beholder audit` can be compared.")
    holding = {name: [store for store in stores if Store(store).holds(ways[0])] for name, ways in models.items()}
    return [Scored(name, tuple(ways), (holding[name] or stores)[0]) for name, ways in models.items()]


def distinct_names(models: Sequence[tuple[str, str | Scored]]) -> list[str | Scored]:
    """The models, each with the folder of its run; two of one name are called after their folders."""
    names = [each if isinstance(each, str) else each.name for _, each in models]
    return [
        each
        if isinstance(each, str) or names.count(each.name) == 1
        else each._replace(name=f"{each.name} ({Path(folder).resolve().name})")
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
    >>> from beholder import audit
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
        if set(other.record.studies) != set(opened[0].record.studies):
            raise UsageError(
                f"The runs were not asked the same: {', '.join(opened[0].record.studies)} in the first, "
                f"{', '.join(other.record.studies)} in another. Compare runs of the same studies."
            )
    studies, options = opened[0].asked or _asked_again(opened[0])
    if not opened[0].asked:
        require_asked(str(options.dataset), data)
    stores = [store_folder(store)] if store else [run.places.store if run.places else store_folder() for run in opened]
    models = [(str(run.folder), each) for run in opened for each in scored_models(run, [*stores, *run.own_stores])]
    options = replace(
        options, data=Path(data) if data else options.data, out=Path(out) if out else None, store=stores[0]
    )
    return compare_models(distinct_names(models), studies, options, parts=parts)


def _asked_again(run: Run) -> tuple[list[Study], AuditOptions]:
    """What a run of an earlier program was asked, as far as its record tells."""
    settings, (first, *more) = run.record.settings, run.record.datasets or [{}]
    for name in run.record.studies:
        STUDIES[name].refuse_by_name()
    here = str(first.get("name")) if first.get("name") in DATASETS else str(first.get("origin"))
    declared = declared_options(AuditOptions).items()
    recorded = {name: settings[name] for name, each in declared if each.recorded and name in settings}
    options = AuditOptions.of(**recorded, dataset=None if more else here)
    return [STUDIES[name] for name in run.record.studies], options


def compare_models(
    models: Sequence[str | Scored], studies: Sequence[str | Study], options: AuditOptions, *, parts: int = PARTS
) -> Comparison:
    """Every number that has an interval for two models, with that of their difference; written with its page."""
    names = [model if isinstance(model, str) else model.name for model in models]
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(f"Name two models or more, each once; these were named: {', '.join(names) or 'none'}.")
    settings = {"seed": options.seed, "person": options.person, "limit": options.limit, "parts": parts}
    run = Run(record=Record(command=list(options.command), settings=settings))
    asked = [STUDIES[study] if isinstance(study, str) else study for study in studies]
    inquiries = [inquiry for study in asked for inquiry in open_inquiries(study, options, run.record)]
    run.record.digest = run_digest(run, models, inquiries, options)
    named = f"compare-{folder_name(names, run.record.studies)}"
    with run_folder(run.record, options.out, named, file="comparison.json") as (folder, _):
        refuse_unused([model for model in models if isinstance(model, str)], options.load)
        scored = [_matrices(model, inquiries, options, run) for model in models]
        paired = [
            _paired(inquiry, dict(zip(names, each, strict=True)), options, run, parts)
            for inquiry, *each in zip(inquiries, *scored, strict=True)
        ]
        table = pl.concat(_judged([each[name] for each in paired if name in each]) for name in names[1:])
        comparison = Comparison(names, table, run.record, parts, folder)
        run.record.finished = True
        write_comparison(comparison, folder)
    return comparison


def _matrices(model: str | Scored, inquiries: Sequence[Inquiry], options: AuditOptions, run: Run) -> list[Matrices]:
    """What a model says on every inquiry; the model is let go before the next is loaded."""
    if isinstance(model, str):
        scorer = load_model(model, options.load)
        confirm_upload(scorer, inquiries, options)
        return [filled(scorer, inquiry, options, run) for inquiry in inquiries]
    for spec in model.specs:
        run.record.add_model({**spec.as_dict(), "notes": []})
    found = []
    for inquiry in inquiries:
        matrices = from_store(model.specs, inquiry, replace(options, store=model.store))
        if matrices is None:
            raise MissingData(
                f"The store {model.store} has no scores of {model.name} for {inquiry.study.name} on "
                f"{inquiry.dataset.name}.\n"
                "Name the store that the audit used with --store, or name the model in place of its run."
            )
        found.append(matrices)
    return found


def _paired(
    inquiry: Inquiry, models: Mapping[str, Matrices], options: AuditOptions, run: Run, parts: int
) -> dict[str, Paired]:
    """For every other model its differences from the first, which is measured once for all of them."""
    study, dataset = inquiry.study, inquiry.dataset
    first, *_ = models
    for name in [name for name in models if _asked(models[name]) != _asked(models[first])]:
        run.record.left_out.append(
            f"{study.name} on {dataset.name}: {name} and {first} are asked in different ways (one answers questions, "
            "the other matches statements), so their numbers are not of one kind"
        )
        models = {other: matrices for other, matrices in models.items() if other != name}
    if len(models) < 2:
        return {}
    models = _shared(models)
    part = _parts(dataset, parts, options.measure)
    few = replace(options.measure, draws=100, shuffles=99)
    wholes = {name: measure(inquiry, each, few, model=name) for name, each in models.items()}
    cheap = replace(few, draws=2, permutations=2, shuffles=2, values_only=True)
    turns: list[dict[str, Numbers]] = []
    with options.progress(f"{study.name}: leaving people out", parts, 0, unit="parts") as advance:
        for number in sorted(set(part.values())):
            left = {image for image, own in part.items() if own != number}
            kept = {name: [_only(matrix, left) for matrix in each] for name, each in models.items()}
            turns.append({name: _numbers_of_rows(study, each, cheap) for name, each in kept.items()})
            advance(1)
    rng = options.rng()
    return {
        name: _differences(study, wholes[first], whole, [(turn[first], turn[name]) for turn in turns], rng)
        for name, whole in wholes.items()
        if name != first
    }


def _differences(
    study: Study, first: pl.DataFrame, second: pl.DataFrame, turns: Sequence[tuple[Numbers, Numbers]], rng: Generator
) -> Paired:
    """Numbers that are estimates of both; what is alike whoever is left out is a fact of the data, and not listed."""
    facts = {tuple(row[name] for name in KEY): row for row in second.iter_rows(named=True)}
    wholes, estimated = (_numbers(first), _numbers(second)), _estimated(first, study)
    known = _estimated(second, study) & {_facing(study, key, facts)[0] for key in estimated}
    keys = [key for key in wholes[1] if key in known]
    faced = [[_faced(study, each, facts) for each in pair] for pair in (wholes, *turns)]
    cells = [[[each.get(key, (np.nan, 0)) for each in pair] for key in keys] for pair in faced]
    values, counts = np.moveaxis(np.array(cells, dtype=np.float64).reshape(-1, len(keys), 2, 2), 3, 0)
    every = values[..., 1] - values[..., 0]
    listed = (every != 0).any(axis=0)
    shares, weights = shares_of(every[0, listed], every[1:, listed], counts[0, listed, 1], counts[1:, listed, 1])
    named = ("study", "model", "dataset", *KEY, "n", "unit", "landmark")
    rows = []
    for place in np.flatnonzero(listed):
        about, pair = {name: facts[keys[place]][name] for name in named}, values[0, place]
        numbers = {"first": pair[0], "second": pair[1], "difference": every[0, place]}
        rows.append({"baseline": first["model"][0], **about, **numbers})
    return rows, compare_pairs(shares, weights, rng)


def _judged(pairs: Sequence[Paired]) -> pl.DataFrame:
    """All differences of one model, on all inquiries, as one family."""
    rows = []
    for (differences, _), judged in zip(pairs, judge([part for _, part in pairs]), strict=True):
        for place, row in enumerate(differences):
            found, whole = comparison_at(judged, place), WHOLES.get(row["unit"], np.inf)
            gap = row["against"] is not None or min(row["first"], row["second"]) < 0
            reach = 2 * whole if gap else whole  # no two shares, or gaps of shares, can differ by more
            low, high = (float(np.clip(end, -reach, reach)) for end in (found.low, found.high))
            note = None if np.isfinite(found.p_value) else NOT_JUDGED
            own = {"low": low, "high": high, "p_value": found.p_value, "verdict": found.verdict, "note": note}
            rows.append({**row, **own})
    return pl.DataFrame(rows, schema=SCHEMA).with_columns(pl.selectors.float().fill_nan(None))


def _facing(study: Study, key: Any, seen: Container[Any]) -> tuple[Any, float]:
    """What identifies a number, and its sign: −1 if it is `seen` from the other group, as the higher may change."""
    metric, subset, group, against, *rest = key
    other, known = (metric, subset, against, group, *rest), study.metric(metric)
    return (other, -1.0) if key not in seen and other in seen and known and known.one_way else (key, 1.0)


def _faced(study: Study, numbers: Numbers, seen: Container[Any]) -> Numbers:
    faced = ((_facing(study, key, seen), value, n) for key, (value, n) in numbers.items())
    return {key: (sign * value, n) for (key, sign), value, n in faced}


def _numbers(results: pl.DataFrame) -> Numbers:
    known = results.filter(pl.col("value").is_not_null())
    return dict(zip(known.select(KEY).iter_rows(), known.select("value", "n").iter_rows(), strict=True))


def _numbers_of_rows(study: Study, matrices: Matrices, options: MeasureOptions) -> Numbers:
    """The same without a table, which would take a tenth of the time."""
    by_task = {matrix.task: matrix for matrix in matrices}
    rows = (row for measured in study.measures.functions for row in measured(by_task, options))
    return {row_key(row): (row.value, row.n) for row in rows if row.value is not None and isfinite(row.value)}


def _estimated(results: pl.DataFrame, study: Study) -> set[Any]:
    """The numbers that have an interval or a verdict, less those of shuffled labels, which chance gives any model."""
    by_chance = [metric.name for metric in study.measures.metrics if metric.chance_only]
    estimated = pl.col("low").is_not_null() | pl.col("verdict").is_not_null()
    return set(results.filter(estimated & ~pl.col("metric").is_in(by_chance)).select(KEY).iter_rows())


def _asked(matrices: Matrices) -> list[Any]:
    return [(matrix.task, matrix.prompts["prompt_id"].to_list()) for matrix in matrices]


def _shared(models: Mapping[str, Matrices]) -> dict[str, Matrices]:
    """The images that all models could be shown."""
    tasks = list(zip(*models.values(), strict=True))
    shared = [set.intersection(*(set(matrix.images["image_id"]) for matrix in each)) for each in tasks]
    return {name: list(map(_only, each, shared)) for name, each in models.items()}


def _parts(dataset: Dataset, parts: int, options: MeasureOptions) -> dict[str, int]:
    """For every image, when it is left out: a person's images together, people who are alike spread evenly."""
    few = [name for name in dataset.attributes if dataset.table[name].n_unique() <= KINDS]
    labels = dataset.table.select(pl.col(few).cast(pl.String).fill_null("")).to_numpy().astype(str)
    kind = np.unique(labels, axis=0, return_inverse=True)[1].ravel() if few else np.zeros(len(dataset), dtype=int)
    people = people_of(dataset.table, options.person)
    first = np.unique(people.codes, return_index=True)[1]
    order = np.lexsort((options.rng().random(len(people)), kind[first]))
    part = np.empty(len(people), dtype=int)
    part[order] = np.arange(len(people)) % parts
    return dict(zip(dataset.table["image_id"], part[people.codes].tolist(), strict=True))


def _only(matrix: ScoreMatrix, images: set[str]) -> ScoreMatrix:
    return matrix.rows(np.array([image in images for image in matrix.images["image_id"]], dtype=bool))
