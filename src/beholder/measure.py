"""The straight line with scores made elsewhere in the place of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from beholder.audit import AuditOptions, begun, measure, written
from beholder.core.errors import BadScores
from beholder.datasets import open_dataset
from beholder.run import Run
from beholder.scores.imported import import_scores
from beholder.studies.sheets import datasets_here, open_sheet
from beholder.studies.study import Study


def measure_scores(study: Study, scores: Sequence[Path], options: AuditOptions, *, model: str) -> Run:
    """A study's measures on imported scores, as a run with its page."""
    run = begun(options)
    chosen = replace(options, dataset=options.dataset or _scored_dataset(study, scores, options))
    sheet = open_sheet(study, chosen, run.record, scored=False)
    tasks = study.tasks_for(sheet.dataset, answers=True, compat=options.measure.compat)
    imported = import_scores(scores, tasks)
    run.add_prompts(study.name, tasks)
    run.record.left_out += imported.left_out
    run.record.models.append({"name": model, "adapter": "imported scores", "files": [str(path) for path in scores]})
    with options.fill.progress(f"{model}: measuring {study.name}", 0, 0):
        run.add(measure(sheet, imported.matrices, options.measure, model=model))
    return written(run, [study], options)


def _scored_dataset(study: Study, scores: Sequence[Path], options: AuditOptions) -> str | None:
    """Which of a study's data sets the scores are about, where it has several; None where it has not."""
    if not study.everywhere or options.data is None:
        return None
    names = datasets_here(study, options.data)
    for name in names[:-1]:  # the last is taken as it is, and says what does not fit
        try:
            import_scores(scores, study.tasks(open_dataset(name, options.data, options.settings)))
        except BadScores:
            continue
        return name
    return names[-1]
