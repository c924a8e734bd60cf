"""The straight line with scores made elsewhere in the place of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from beholder._options import AuditOptions
from beholder._run import Run
from beholder._run_folder import file_stamps, folder_name, run_folder
from beholder._steps import measure as measured_table
from beholder._steps import new_run, run_digest, written
from beholder.core.digests import digest
from beholder.core.errors import BadScores
from beholder.datasets import load_dataset
from beholder.scores.imported import Imported, import_scores
from beholder.scores.score_matrix import Task
from beholder.studies import STUDIES
from beholder.studies.inquiry import datasets_here, open_inquiry
from beholder.studies.study import Study


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
    study: Study,
    scores: Sequence[Path] | Mapping[str, Sequence[Path]],
    options: AuditOptions,
    *,
    model: str = "imported",
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
                run.add(measured_table(inquiry, imported.matrices, options.measure, model=name))
        return written(run, [study], options)


def _imported(scores: Sequence[Path], layouts: Sequence[Sequence[Task]]) -> Imported:
    """The scores by the first layout that they fit; the error is that of the study's own prompts."""
    for tasks in layouts:
        with suppress(BadScores):
            return import_scores(scores, tasks)
    return import_scores(scores, layouts[0])


def _scored_dataset(study: Study, scores: Sequence[Path], options: AuditOptions) -> str | None:
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
