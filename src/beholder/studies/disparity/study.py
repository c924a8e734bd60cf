"""Disparity: for whom does recognition work worse? Average precision by concept and by who is in the picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.datasets.glasshouse import OBJECTS_NAME
from beholder.scores.task import Task
from beholder.studies.disparity.agreement import agreement
from beholder.studies.disparity.causes import cause_rows
from beholder.studies.disparity.confidence import SQUARED, UNIT, calibration_rows
from beholder.studies.disparity.gaps import AP, COUNT, find_gaps, gap_rows
from beholder.studies.disparity.prompts import IS_THERE, TEMPLATES, disparity_prompts, drawn_prompts
from beholder.studies.disparity.scores import AUTO, read_confidence, read_seen
from beholder.studies.disparity.word_rows import word_rows
from beholder.studies.rows import PROBABILITY
from beholder.studies.study import Benchmark, Matrices, MeasureOptions, MetricInfo

METRICS = {
    "disparity.mean_average_precision": MetricInfo(
        AP, "mean over concepts, by group, as published; it hides gaps that point opposite ways"
    ),
    "disparity.mean_ap_gap": MetricInfo(AP, "difference of the means; 0: alike on average"),
    "disparity.gaps_shown": MetricInfo(COUNT, "concepts whose matched gap is more than chance, after correction"),
    "disparity.gap_spread": MetricInfo(AP, "how wide matched gaps are on average; never 0, even by chance"),
    "disparity.gap_spread_expected": MetricInfo(AP, "the same when labels are shuffled: what it says without any gap"),
    "disparity.ap_gap": MetricInfo(
        AP, "first group's average precision less the second's, as published; mixes ranking with prevalence"
    ),
    "disparity.ap_gap_matched": MetricInfo(
        AP, "the gap at one prevalence for both, less what few images give by themselves; 0: ranked alike"
    ),
    "disparity.ap_gap_largest": MetricInfo(AP, "of several groups, the highest less the lowest; never 0 by chance"),
    "disparity.gap_detectable": MetricInfo(
        AP, "smallest matched gap that such counts would show, in four of five data sets"
    ),
    "disparity.average_precision": MetricInfo(AP, "1: all images with the concept come first; the prevalence: random"),
    "disparity.average_precision_matched": MetricInfo(AP, "the same as if all groups showed the concept equally often"),
    "disparity.prevalence": MetricInfo(PROBABILITY, "share of a group's images that show the concept"),
    "disparity.ece": MetricInfo(
        UNIT, "mean distance between confidence and what is there, ten equal bins, as published; 0: calibrated"
    ),
    "disparity.ece_adaptive": MetricInfo(UNIT, "the same in bins of equally many images"),
    "disparity.brier": MetricInfo(UNIT, "mean squared distance of confidence from 1 or 0; 0.25: always saying 0.5"),
    "disparity.ece_gap": MetricInfo(
        UNIT, "first group's less the second's, as published; follows the groups' sizes: read miscalibration_gap"
    ),
    "disparity.ece_adaptive_gap": MetricInfo(UNIT, "the same in bins of equally many images"),
    "disparity.brier_gap": MetricInfo(UNIT, "difference of the Brier scores"),
    "disparity.miscalibration": MetricInfo(
        SQUARED, "squared distance of confidence from what is there, less what chance adds; 0: calibrated"
    ),
    "disparity.miscalibration_gap": MetricInfo(
        SQUARED, "first group's less the second's, whatever their sizes; positive: worse calibrated for the first"
    ),
    "disparity.reliability": MetricInfo(PROBABILITY, "share that show the concept, in a bin of confidence (subset)"),
    "disparity.word_alignment": MetricInfo(
        "cosine", "how much nearer the concept's word lies to the first group's words; a fact about texts"
    ),
    "disparity.word_agreement": MetricInfo(PROBABILITY, "concepts whose gap and alignment have one sign; 0.5: chance"),
    "disparity.word_correlation": MetricInfo("rank correlation", "of gap and alignment over concepts; 0: none"),
    "disparity.agreement": MetricInfo(
        "colour", "1 green: wide gaps that point one way in both data sets; -1 red: opposite ways; 0 yellow"
    ),
    "disparity.agreement_count": MetricInfo(COUNT, "concepts of each colour"),
    "disparity.ap_gap_elsewhere": MetricInfo(AP, "the published gap on another data set (subset)"),
    "disparity.model_agreement": MetricInfo(PROBABILITY, "concepts whose gaps point one way in another model (subset)"),
    "disparity.gap_correlation": MetricInfo("rank correlation", "of gaps here and there, over concepts; 0: none"),
    "disparity.area": MetricInfo("share of the picture", "mean area of the concept's largest box where it is shown"),
    "disparity.area_gap": MetricInfo("share of the picture", "first less second; positive: larger for the first"),
    "disparity.instances": MetricInfo("boxes", "mean number of boxes where it is shown"),
    "disparity.instances_gap": MetricInfo("boxes", "first less second; positive: more for the first"),
    "disparity.names": MetricInfo("share", "how differently annotators name the groups' things; 1: no name in common"),
    "disparity.ap_gap_same_area": MetricInfo(AP, "the matched gap left when sizes are spread alike in the groups"),
    "disparity.outranked": MetricInfo(
        "share", "how often an image without the concept scores above one with it; the note lists image ids"
    ),
}

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


def disparity_benchmark(choices: Choices | None = None) -> Benchmark:
    """Disparity as published, or with a user's own groups, templates and word vectors."""
    chosen = choices or Choices()

    def tasks(dataset: Dataset, *, bare: bool) -> list[Task]:
        if not dataset.concepts:
            raise DataError(f"{dataset.name} does not say what is in its pictures, so nothing can be looked for.")
        if dataset.name == OBJECTS_NAME and chosen.templates == TEMPLATES:
            return [Task("disparity", dataset, drawn_prompts(dataset.concepts, bare=bare))]
        return [Task("disparity", dataset, disparity_prompts(dataset.concepts, chosen.templates, bare=bare))]

    def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
        seen = read_seen(matrices["disparity"], chosen.by)
        gaps = find_gaps(seen, options)
        rows = list(gap_rows(gaps))
        rows += calibration_rows(seen, read_confidence(seen, chosen.calibration, options), options)
        yield from rows
        if chosen.word_vectors is not None:
            yield from word_rows(seen, chosen.word_vectors, rows, every=options.compat)
        yield from cause_rows(gaps, options)

    return Benchmark(
        name="disparity",
        title="Disparity: recognition by who is in the picture",
        question="For which concepts does the model recognise things worse in pictures of one group?",
        study="Hall and others, Vision-Language Models Performing Zero-Shot Tasks Exhibit Disparities "
        "Between Gender Groups (2023)",
        datasets=("coco", "visual-genome", OBJECTS_NAME),
        tasks=lambda dataset: tasks(dataset, bare=True),
        statements=lambda dataset: tasks(dataset, bare=False),
        looked_for=lambda dataset: tasks(dataset, bare=True),
        measures=(measure,),
        metrics=METRICS,
        instruction=IS_THERE,
        across=agreement,
        subset_attribute=chosen.by or "gender",
        limitations=LIMITATIONS,
        of_photographs=(
            "Groups come from annotators' words about whom they saw: perceived, two genders only, and only pictures "
            "in which one of them is named.",
            "What annotators did not mark counts as not there.",
        ),
    )


DISPARITY = disparity_benchmark()
