"""Disparity: for whom does recognition work worse? Average precision by concept and by who is in the picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from beholder.core.errors import DataError, UnknownName, UsageError
from beholder.core.results import SCHEMA, Row, read_results
from beholder.datasets.dataset import Dataset
from beholder.datasets.glasshouse import OBJECTS_NAME
from beholder.prompts.templates import read_templates
from beholder.scores.task import Task
from beholder.studies.disparity.agreement import agreement
from beholder.studies.disparity.causes import cause_rows
from beholder.studies.disparity.confidence import SQUARED, UNIT, calibration_rows
from beholder.studies.disparity.gaps import AP, COUNT, find_gaps, gap_rows
from beholder.studies.disparity.prompts import IS_THERE, TEMPLATES, disparity_prompts, drawn_prompts
from beholder.studies.disparity.scores import AUTO, CALIBRATIONS, read_concept_scores, read_confidence
from beholder.studies.disparity.word_rows import word_rows
from beholder.studies.rows import PROBABILITY
from beholder.studies.study import Matrices, MeasureOptions, Metric, Option, Study

METRICS = (
    Metric(
        "disparity.mean_average_precision",
        "means",
        AP,
        "mean over concepts, by group, as published; it hides gaps that point opposite ways",
    ),
    Metric("disparity.mean_ap_gap", "means", AP, "difference of the means; 0: alike on average"),
    Metric("disparity.gaps_shown", "gaps", COUNT, "concepts whose matched gap is more than chance, after correction"),
    Metric("disparity.gap_spread", "gaps", AP, "how wide matched gaps are on average; never 0, even by chance"),
    Metric(
        "disparity.gap_spread_expected",
        "gaps",
        AP,
        "the same when labels are shuffled: what it says without any gap",
        chance_only=True,
    ),
    Metric(
        "disparity.ap_gap",
        "gaps",
        AP,
        "first group's average precision less the second's, as published; mixes ranking with prevalence",
    ),
    Metric(
        "disparity.ap_gap_matched",
        "gaps",
        AP,
        "the gap at one prevalence for both, less what few images give by themselves; 0: ranked alike",
    ),
    Metric("disparity.ap_gap_largest", "gaps", AP, "of several groups, the highest less the lowest; never 0 by chance"),
    Metric(
        "disparity.gap_detectable",
        "gaps",
        AP,
        "smallest matched gap that such counts would show, in four of five data sets",
    ),
    Metric(
        "disparity.average_precision", "gaps", AP, "1: all images with the concept come first; the prevalence: random"
    ),
    Metric(
        "disparity.average_precision_matched", "gaps", AP, "the same as if all groups showed the concept equally often"
    ),
    Metric("disparity.prevalence", "gaps", PROBABILITY, "share of a group's images that show the concept"),
    Metric(
        "disparity.ece",
        "calibration",
        UNIT,
        "mean distance between confidence and what is there, ten equal bins, as published; 0: calibrated",
    ),
    Metric("disparity.ece_adaptive", "calibration", UNIT, "the same in bins of equally many images"),
    Metric(
        "disparity.brier",
        "calibration",
        UNIT,
        "mean squared distance of confidence from 1 or 0; 0.25: always saying 0.5",
    ),
    Metric(
        "disparity.ece_gap",
        "calibration",
        UNIT,
        "first group's less the second's, as published; follows the groups' sizes: read miscalibration_gap",
    ),
    Metric("disparity.ece_adaptive_gap", "calibration", UNIT, "the same in bins of equally many images"),
    Metric("disparity.brier_gap", "calibration", UNIT, "difference of the Brier scores"),
    Metric(
        "disparity.miscalibration",
        "calibration",
        SQUARED,
        "squared distance of confidence from what is there, less what chance adds; 0: calibrated",
    ),
    Metric(
        "disparity.miscalibration_gap",
        "calibration",
        SQUARED,
        "first group's less the second's, whatever their sizes; positive: worse calibrated for the first",
    ),
    Metric(
        "disparity.reliability",
        "calibration",
        PROBABILITY,
        "share that show the concept, in a bin of confidence (subset)",
    ),
    Metric(
        "disparity.word_alignment",
        "agreement",
        "cosine",
        "how much nearer the concept's word lies to the first group's words; a fact about texts",
    ),
    Metric(
        "disparity.word_agreement",
        "agreement",
        PROBABILITY,
        "concepts whose gap and alignment have one sign; 0.5: chance",
    ),
    Metric(
        "disparity.word_correlation", "agreement", "rank correlation", "of gap and alignment over concepts; 0: none"
    ),
    Metric(
        "disparity.agreement",
        "agreement",
        "colour",
        "1 green: wide gaps that point one way in both data sets; -1 red: opposite ways; 0 yellow",
    ),
    Metric("disparity.agreement_count", "agreement", COUNT, "concepts of each colour"),
    Metric("disparity.ap_gap_elsewhere", "agreement", AP, "the published gap on another data set (subset)"),
    Metric(
        "disparity.model_agreement",
        "agreement",
        PROBABILITY,
        "concepts whose gaps point one way in another model (subset)",
    ),
    Metric(
        "disparity.gap_correlation", "agreement", "rank correlation", "of gaps here and there, over concepts; 0: none"
    ),
    Metric(
        "disparity.area", "causes", "share of the picture", "mean area of the concept's largest box where it is shown"
    ),
    Metric("disparity.area_gap", "causes", "share of the picture", "first less second; positive: larger for the first"),
    Metric("disparity.instances", "causes", "boxes", "mean number of boxes where it is shown"),
    Metric("disparity.instances_gap", "causes", "boxes", "first less second; positive: more for the first"),
    Metric(
        "disparity.names", "gaps", "share", "how differently annotators name the groups' things; 1: no name in common"
    ),
    Metric(
        "disparity.ap_gap_same_area", "causes", AP, "the matched gap left when sizes are spread alike in the groups"
    ),
    Metric(
        "disparity.outranked",
        "images",
        "share",
        "how often an image without the concept scores above one with it; the note lists image ids",
    ),
)

LIMITATIONS = (
    "Average precision depends on how many of a group's pictures show a concept: read the matched gap, and the "
    "published one only beside it.",
    "A gap is a property of a model on these pictures. Things may be smaller, rarer or other things of one name in "
    "the pictures of one group; the table of causes shows what can be measured of that.",
    "Expected calibration error is never 0 by chance and larger for the smaller group; miscalibration, beside it, is "
    "not: compare groups by that.",
)


@dataclass(frozen=True)
class Choices:
    """What a user may choose."""

    by: str | None = None
    """The attribute whose groups are compared; by default the one that the data set's words tell, else gender."""
    templates: Mapping[str, str] = field(default_factory=lambda: TEMPLATES)
    word_vectors: Path | None = None
    calibration: str = AUTO
    beside: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    """Results of other runs, to compare with."""


def disparity_study(choices: Choices | None = None) -> Study:
    """Disparity as published, or with a user's own groups, templates and word vectors."""
    chosen = choices or Choices()

    def tasks(dataset: Dataset, *, bare: bool) -> list[Task]:
        if not dataset.concepts:
            raise DataError(f"{dataset.name} does not say what is in its pictures, so nothing can be looked for.")
        if dataset.name == OBJECTS_NAME and chosen.templates == TEMPLATES:
            return [Task("disparity", dataset, drawn_prompts(dataset.concepts, bare=bare))]
        return [Task("disparity", dataset, disparity_prompts(dataset.concepts, chosen.templates, bare=bare))]

    def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
        data = read_concept_scores(matrices["disparity"], chosen.by)
        gaps = find_gaps(data, options)
        rows = list(gap_rows(gaps))
        rows += calibration_rows(data, read_confidence(data, chosen.calibration, options), options)
        yield from rows
        if chosen.word_vectors is not None:
            yield from word_rows(data, chosen.word_vectors, rows, every=options.compat)
        yield from cause_rows(gaps, options)

    return Study(
        name="disparity",
        title="Disparity: recognition by who is in the picture",
        short="Disparity",
        question="For which concepts does the model recognise things worse in pictures of one group?",
        citation="Hall and others, Vision-Language Models Performing Zero-Shot Tasks Exhibit Disparities "
        "Between Gender Groups (2023)",
        datasets=("coco", "visual-genome", OBJECTS_NAME),
        tasks=lambda dataset: tasks(dataset, bare=True),
        statements=lambda dataset: tasks(dataset, bare=False),
        looked_for=lambda dataset: tasks(dataset, bare=True),
        measures=(measure,),
        metrics=METRICS,
        instruction=IS_THERE,
        across=lambda results, compat: agreement(results, chosen.beside, compat),
        reference_models=("glasshouse/contrastive",),
        demo=True,
        options=OPTIONS,
        configure=configured,
        chapter="beholder.studies.disparity.chapter:CHAPTER",
        plan="beholder.studies.disparity.planning:plan",
        printed="beholder.studies.disparity.printed:PRINTED",
        trials="beholder.studies.disparity.trials:disparity_experiments",
        power_curve=("disparity.ap_gap_matched", "Gap of average precision at matched prevalence", "loss of quality"),
        weaknesses="beholder.studies.disparity.weaknesses:weaknesses",
        subset_attribute=chosen.by or "gender",
        limitations=LIMITATIONS,
        of_photographs=(
            "Groups come from annotators' words about whom they saw: perceived, two genders only, and only pictures "
            "in which one of them is named.",
            "What annotators did not mark counts as not there.",
        ),
    )


OPTIONS = (
    Option(
        "by",
        "With --prompts: attribute whose groups are compared (repeatable). With disparity: the one attribute.",
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
        "With disparity: the folder of another run, of another data set or model, to compare with (repeatable).",
        several=True,
    ),
)


def configured(study: Study, options: Mapping[str, Any]) -> Study:
    """Disparity with the user's own groups, templates, word vectors, calibration, and other runs beside it."""
    by, calibration, vectors = (options.get(name) for name in ("by", "calibration", "word_vectors"))
    if by and len(by) > 1:
        raise UsageError(f"Disparity compares the groups of one attribute, not of {', '.join(by)}.")
    if calibration not in (None, *CALIBRATIONS):
        raise UnknownName("calibration", str(calibration), CALIBRATIONS, where="Disparity")
    if vectors is not None and not vectors.is_file():
        raise UsageError(f"There are no word vectors at {vectors}.")
    templates = read_templates(options["templates"]) if "templates" in options else TEMPLATES
    beside = pl.concat([Choices().beside, *(read_results(folder) for folder in options.get("beside", ()))])
    return disparity_study(Choices(by[0] if by else None, templates, vectors, calibration or AUTO, beside))


DISPARITY = disparity_study()
