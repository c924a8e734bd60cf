"""The straight line without a model: scores made elsewhere are measured, and those in the store verify a run."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from beholder._options import AuditOptions
from beholder._run import Run, file_stamps, folder_name, run_folder
from beholder._steps import add_across, from_store, new_run, run_digest, written
from beholder._steps import measure as measured_table
from beholder.core.digests import digest
from beholder.core.errors import BadScores, MissingData
from beholder.core.results import KEY
from beholder.datasets import load_dataset
from beholder.models.spec import ModelSpec
from beholder.scores.imported import Imported, import_scores
from beholder.scores.score_matrix import Task
from beholder.scores.store import recorded_specs
from beholder.studies import STUDIES
from beholder.studies.inquiry import Inquiry, add_not_compared, datasets_here, open_inquiries, open_inquiry
from beholder.studies.study import Study

Files = Sequence[Path]
ROW = ("study", "model", "dataset", *KEY)
NUMBERS = ("value", "low", "high", "p_value", "expected", "chance", "landmark", "delta")
EXACT = ("n", "unit", "verdict", "equivalence", "note", "p_at_most")
TOLERANCE = 1e-6  # a smaller difference, in units of the number, is that of another machine's rounding


def measure(
    study: str | Study, scores: Path | str | Sequence[Path | str], *, model: str = "imported", **options: Any
) -> Run:
    """A study's numbers from scores made elsewhere, as `beholder measure` gives them: files, or an .npy for APA.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     rows = "image_id,a drawing of a person\\ndoctors/000,1.5\\ndoctors/001,2.5\\n"
    ...     _ = Path(folder, "mine.csv").write_text(rows)
    ...     run = measure("apa", f"{folder}/mine.csv", dataset="glasshouse", model="mine", out=f"{folder}/run")
    >>> run.record.models[0]["name"]
    'mine'

    `options` are those of `beholder measure`: `data`, `dataset`, `out`, `compat`, `draws`, `seed`, `delta`, `person` ….
    """
    files = [Path(each) for each in ([scores] if isinstance(scores, Path | str) else scores)]
    asked = STUDIES[study] if isinstance(study, str) else study
    return measure_scores(asked, files, AuditOptions.of(**options), model=model)


def measure_scores(
    study: Study, scores: Files | Mapping[str, Files], options: AuditOptions, *, model: str = "imported"
) -> Run:
    """A study's measures on imported scores, as a run with its page; a mapping has the files of several models."""
    by_model = scores if isinstance(scores, Mapping) else {model: scores}
    run = new_run(options)
    first = next(iter(by_model.values()))
    chosen = replace(options, dataset=options.dataset or _scored_dataset(study, first, options))
    inquiry = open_inquiry(study, chosen, run.record, scored=False)
    own = study.tasks_of(answers=True, compat=options.compat)(inquiry.dataset)
    layouts = [own, *(layout(inquiry.dataset) for layout in study.asks.layouts)]
    run.add_prompts(study.name, own)
    stamps = file_stamps(path for paths in by_model.values() for path in paths)
    run.record.digest = digest([run_digest(run, list(by_model), [inquiry], options), stamps])
    with run_folder(run.record, options.out, folder_name(list(by_model), run.record.studies)) as (run.folder, _):
        for name, files in by_model.items():
            imported = _imported(files, layouts)
            run.record.left_out += [note if len(by_model) == 1 else f"{name}: {note}" for note in imported.left_out]
            read = {"name": name, "adapter": "imported scores", "files": [str(path) for path in files]}
            run.record.models.append(read)
            with options.progress(f"{name}: measuring {study.name}", 0, 0):
                run.add(results := measured_table(inquiry, imported.matrices, options.measure, model=name))
                add_not_compared(inquiry, results, options, run.record)
        return written(run, [study], options)


def _imported(scores: Files, layouts: Sequence[Sequence[Task]]) -> Imported:
    """The scores by the first layout that they fit; the error is that of the study's own prompts."""
    for tasks in layouts:
        with suppress(BadScores):
            return import_scores(scores, tasks)
    return import_scores(scores, layouts[0])


def _scored_dataset(study: Study, scores: Files, options: AuditOptions) -> str | None:
    """Which of a study's data sets the scores are about, where it has several; None where it has not."""
    if not study.asks.all_datasets or options.data is None:
        return None
    names = datasets_here(study, options.data)
    for name in names[:-1]:  # the last is taken as it is, and says what does not fit
        try:
            dataset = load_dataset(name, options.data, options.settings)
            _imported(scores, [study.asks.tasks(dataset), *(layout(dataset) for layout in study.asks.layouts)])
        except BadScores:
            continue
        return name
    return names[-1]


# `beholder verify`: does a run's table come out again, measured anew from the store and without its models?


class Verified(NamedTuple):
    """The rows of a run, by what became of them."""

    same: int
    changed: pl.DataFrame  # with the old numbers, and the new ones as `NAME_now`
    gone: pl.DataFrame
    new: pl.DataFrame

    @property
    def holds(self) -> bool:
        """Whether nothing changed."""
        return self.changed.is_empty() and self.gone.is_empty() and self.new.is_empty()


def verify_run(run: Run, studies: Sequence[Study], options: AuditOptions) -> Verified:
    """Measure everything again from the scores in the store, and set it beside the run's results."""
    again = Run()
    inquiries = [inquiry for study in studies for inquiry in open_inquiries(study, options, again.record)]
    for name, ways in recorded_specs(run.record).items():
        for inquiry in inquiries:
            if not run.results.filter(study=inquiry.study.name, model=name, dataset=inquiry.dataset.name).is_empty():
                again.add(_measured(name, ways, inquiry, run, options))
    add_across(again, studies, options)
    return compared(run.results, again.results)


def _measured(name: str, ways: Sequence[ModelSpec], inquiry: Inquiry, run: Run, options: AuditOptions) -> pl.DataFrame:
    matrices = from_store(ways, inquiry, options)
    readable = ~pl.col("uri").is_in([entry["image"] for entry in run.record.bad_images])
    if matrices is None or any(
        matrix.images.height < (matrix.dataset or inquiry.dataset).table.filter(readable).height for matrix in matrices
    ):
        raise MissingData(
            f"The store {options.store} lacks scores of {name} for {inquiry.study.name} on {inquiry.dataset.name}.\n"
            "Name the store that the audit used with --store. Or repeat the audit, which fills it."
        )
    return measured_table(inquiry, matrices, options.measure, model=name)


def compared(before: pl.DataFrame, now: pl.DataFrame) -> Verified:
    """Two tables of results, row by row."""
    old, new = (table.with_columns(row=pl.int_range(pl.len()).over(ROW)) for table in (before, now))
    keys = [*ROW, "row"]
    both = old.join(new, on=keys, how="inner", nulls_equal=True, suffix="_now", maintain_order="left")
    differs = pl.any_horizontal(
        *(~_close(name) for name in NUMBERS), *(pl.col(name).ne_missing(pl.col(f"{name}_now")) for name in EXACT)
    )
    changed = both.filter(differs)
    gone, added = (a.join(b, on=keys, how="anti", nulls_equal=True) for a, b in ((old, new), (new, old)))
    return Verified(both.height - changed.height, changed, gone, added)


def _close(name: str) -> pl.Expr:
    old, new = pl.col(name), pl.col(f"{name}_now")
    near = (old - new).abs() <= TOLERANCE * pl.max_horizontal(pl.lit(1.0), old.abs())
    return (old.is_null() & new.is_null()) | near.fill_null(False)
