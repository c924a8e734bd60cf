"""The straight line with scores made elsewhere in the place of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from beholder.audit import AuditOptions, begun, measure, run_digest, written
from beholder.core.digests import digest
from beholder.core.errors import BadScores
from beholder.datasets import open_dataset
from beholder.run import Run
from beholder.run_folder import file_stamps, folder_name, run_folder
from beholder.scores.imported import Imported, import_scores
from beholder.scores.task import Task
from beholder.studies.sheets import Sheet, datasets_here, open_sheet
from beholder.studies.study import Study


def measure_scores(
    study: Study,
    scores: Sequence[Path] | Mapping[str, Sequence[Path]],
    options: AuditOptions,
    *,
    model: str = "imported",
) -> Run:
    """A study's measures on imported scores, as a run with its page; a mapping has the files of several models.

    >>> from tempfile import TemporaryDirectory
    >>> from beholder import STUDIES
    >>> with TemporaryDirectory() as folder:
    ...     rows = "image_id,a drawing of a person\\ndoctors/000,1.5\\ndoctors/001,2.5\\n"
    ...     _ = Path(folder, "mine.csv").write_text(rows)
    ...     options = AuditOptions(dataset="glasshouse", out=Path(folder, "run"))
    ...     run = measure_scores(STUDIES["apa"], [Path(folder, "mine.csv")], options, model="mine")
    >>> run.record.models[0]["name"]
    'mine'
    """
    by_model = scores if isinstance(scores, Mapping) else {model: scores}
    run = begun(options)
    first = next(iter(by_model.values()))
    chosen = replace(options, dataset=options.dataset or _scored_dataset(study, first, options))
    sheet = open_sheet(study, chosen, run.record, scored=False)
    own = study.tasks_for(sheet.dataset, answers=True, compat=options.compat)
    layouts = [own, *(layout(sheet.dataset) for layout in study.layouts)]
    run.add_prompts(study.name, own)
    files = [path for paths in by_model.values() for path in paths]
    run.record.digest = digest([run_digest(run, list(by_model), [sheet], options), file_stamps(files)])
    with run_folder(run.record, options.out, folder_name(list(by_model), run.record.studies)) as (run.folder, _):
        return _measured(run, sheet, by_model, layouts, options)


def _measured(
    run: Run,
    sheet: Sheet,
    by_model: Mapping[str, Sequence[Path]],
    layouts: Sequence[Sequence[Task]],
    options: AuditOptions,
) -> Run:
    study = sheet.study
    for name, files in by_model.items():
        imported = _imported(files, layouts)
        told = [note if len(by_model) == 1 else f"{name}: {note}" for note in imported.left_out]
        run.record.left_out += told
        run.record.models.append({"name": name, "adapter": "imported scores", "files": [str(path) for path in files]})
        with options.progress(f"{name}: measuring {study.name}", 0, 0):
            run.add(measure(sheet, imported.matrices, options.measure, model=name))
    return written(run, [study], options)


def _imported(scores: Sequence[Path], layouts: Sequence[Sequence[Task]]) -> Imported:
    """The scores by the first layout that they fit; the error is that of the study's own prompts."""
    for tasks in layouts:
        with suppress(BadScores):
            return import_scores(scores, tasks)
    return import_scores(scores, layouts[0])


def _scored_dataset(study: Study, scores: Sequence[Path], options: AuditOptions) -> str | None:
    """Which of a study's data sets the scores are about, where it has several; None where it has not."""
    if not study.everywhere or options.data is None:
        return None
    names = datasets_here(study, options.data)
    for name in names[:-1]:  # the last is taken as it is, and says what does not fit
        try:
            dataset = open_dataset(name, options.data, options.settings)
            _imported(scores, [study.tasks(dataset), *(layout(dataset) for layout in study.layouts)])
        except BadScores:
            continue
        return name
    return names[-1]
