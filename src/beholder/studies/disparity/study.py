"""Disparity: for which group does recognition work worse? Average precision by concept and group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from beholder.core.errors import DataError, UnknownName, UsageError
from beholder.core.results import SCHEMA, Row, read_results
from beholder.core.types import Fields
from beholder.datasets.dataset import Dataset
from beholder.datasets.glasshouse import OBJECTS_NAME
from beholder.prompts.prompt_set import read_templates
from beholder.scores.score_matrix import Task
from beholder.studies.disparity.agreement import agreement, word_rows
from beholder.studies.disparity.causes import cause_rows
from beholder.studies.disparity.confidence import calibration_rows
from beholder.studies.disparity.gaps import find_gaps, gap_rows
from beholder.studies.disparity.prompts import (
    AMBIGUOUS,
    IS_THERE,
    SAME_CONCEPTS,
    TEMPLATES,
    Words,
    disparity_prompts,
    drawn_prompts,
    read_words,
)
from beholder.studies.disparity.scores import AUTO, CALIBRATIONS, GENDER, WITHIN, read_concept_scores, read_confidence
from beholder.studies.study import Asks, Matrices, MeasureOptions, Measures, Option, Plans, Study, Tells, read_metrics

METRICS = read_metrics(Path(__file__).with_name("metrics.csv"))

LIMITATIONS = (
    "Average precision depends on how many images of a group show a concept: read the matched gap, not the published "
    "gap alone.",
)


@dataclass(frozen=True)
class Choices:
    """What a user may choose."""

    by: str | None = None  # whose groups are compared; by default what the data set's words define, else gender
    templates: Mapping[str, str] = field(default_factory=lambda: TEMPLATES)
    word_vectors: Path | None = None
    calibration: str = AUTO
    beside: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))  # other runs
    ambiguous: Words = field(default_factory=lambda: AMBIGUOUS)  # for words that usually mean something else
    same_concepts: Words = field(default_factory=lambda: SAME_CONCEPTS)  # which concepts of two data sets are the same


def disparity_study(choices: Choices | None = None) -> Study:
    """Disparity as published, or with a user's own groups, templates and word vectors."""
    chosen = choices or Choices()

    def tasks(dataset: Dataset, *, bare: bool) -> list[Task]:
        if not dataset.concepts:
            raise DataError(f"{dataset.name} does not say what its images show, so recognition cannot be measured.")
        if dataset.name == OBJECTS_NAME and chosen.templates == TEMPLATES:
            return [Task("disparity", dataset, drawn_prompts(dataset.concepts, bare=bare))]
        prompts = disparity_prompts(dataset.concepts, chosen.templates, bare=bare, ambiguous=chosen.ambiguous)
        return [Task("disparity", dataset, prompts)]

    def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
        data = read_concept_scores(matrices["disparity"], chosen.by, options.person)
        gaps = find_gaps(data, options)
        rows = list(gap_rows(gaps))
        rows += calibration_rows(data, read_confidence(data, chosen.calibration, options), options)
        yield from rows
        if chosen.word_vectors is not None:
            yield from word_rows(gaps, rows, chosen.word_vectors, chosen.ambiguous, every=options.compat)
        yield from cause_rows(gaps)

    return Study(
        name="disparity",
        title="Disparity: recognition by who is in the picture",
        short="Disparity",
        question="Which concepts does the model recognise worse in images of one group?",
        citation="Hall and others, Vision-Language Models Performing Zero-Shot Tasks Exhibit Disparities "
        "Between Gender Groups (2023)",
        asks=Asks(
            datasets=("coco", "visual-genome", OBJECTS_NAME),
            tasks=lambda dataset: tasks(dataset, bare=True),
            statements=lambda dataset: tasks(dataset, bare=False),
            detector_tasks=lambda dataset: tasks(dataset, bare=True),
            instruction=IS_THERE,
            limit_by=chosen.by or GENDER,
            reference_models=("glasshouse/contrastive",),
        ),
        measures=Measures(
            functions=(measure,),
            metrics=METRICS,
            across=lambda results, compat: agreement(results, chosen.beside, compat, chosen.same_concepts),
            within=WITHIN,
        ),
        tells=Tells(chapter="beholder.studies.disparity.chapter:CHAPTER", limitations=LIMITATIONS),
        plans=Plans(
            plan="beholder.studies.disparity.trials:plan",
            trials="beholder.studies.disparity.trials:TRIALS",
            printed="beholder.studies.disparity.printed:PRINTED",
        ),
        demo=True,
        options=OPTIONS,
        configure=configured,
    )


OPTIONS = (
    Option(
        "by",
        "With --prompts: attribute whose groups are compared (repeatable). With disparity: one attribute.",
        str,
        several=True,
    ),
    Option(
        "templates",
        "With gras or disparity: own wordings (a table with the columns template and text, in which {} is the trait "
        "or the concept).",
    ),
    Option(
        "word_vectors", "With disparity: word vectors to compare gaps with (word2vec or GloVe), such as GoogleNews."
    ),
    Option(
        "calibration",
        "With disparity: how scores become probabilities. auto: only if the scores are already probabilities; scores: "
        "take imported scores as probabilities; platt, isotonic: convert any scores, cross-validated.",
        str,
    ),
    Option(
        "beside",
        "With disparity: another run folder to compare with, on another data set or of another model (repeatable).",
        several=True,
    ),
    Option(
        "ambiguous",
        "With disparity: words for concepts whose own word is ambiguous (columns concept and words), in place of the "
        "study's two.",
    ),
    Option(
        "same_concepts",
        "With disparity: which concepts of two data sets are the same (columns concept and same_as), in place of "
        "WordNet's synsets of COCO's categories.",
    ),
)


def configured(study: Study, options: Fields) -> Study:
    """Disparity with the user's own groups, templates, word vectors, calibration and other runs."""
    by, calibration, vectors = (options.get(name) for name in ("by", "calibration", "word_vectors"))
    if by and len(by) > 1:
        raise UsageError(f"Disparity compares the groups of one attribute; --by names {', '.join(by)}.")
    if calibration not in (None, *CALIBRATIONS):
        raise UnknownName("calibration", str(calibration), CALIBRATIONS, where="Disparity")
    if vectors is not None and not vectors.is_file():
        raise UsageError(f"There are no word vectors at {vectors}.")
    templates = read_templates(options["templates"]) if "templates" in options else TEMPLATES
    others = [read_results(folder) for folder in options.get("beside", ())]
    beside = pl.concat([Choices().beside, *others])
    ambiguous = read_words(options["ambiguous"], "words") if "ambiguous" in options else AMBIGUOUS
    same = read_words(options["same_concepts"], "same_as") if "same_concepts" in options else SAME_CONCEPTS
    attribute = by[0] if by else None
    return disparity_study(Choices(attribute, templates, vectors, calibration or AUTO, beside, ambiguous, same))


DISPARITY = disparity_study()
