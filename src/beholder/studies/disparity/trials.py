"""How disparity is tried in worlds of known truth.

Everybody has two pictures for each concept's sake: one that shows it and one that does not, with scores of their own. A
prompt's own level is the same for both, so it is taken off. What a world's model sees then moves recognition.
A model whose scores for some women lie farther apart recognises them worse: no false alarm, so that design is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison.family import FEWEST, Part, critical_value, part_from_null
from beholder.comparison.power import noise_of, people_needed
from beholder.core.errors import UsageError
from beholder.core.results import Row
from beholder.datasets.dataset import SCHEMA, Dataset
from beholder.metrics.average_precision import measured, resampled, shuffled
from beholder.studies.disparity.confidence import calibration_rows
from beholder.studies.disparity.gaps import AP, find_gaps, gap_rows, widened
from beholder.studies.disparity.scores import GENDER, Cells, ConceptScores, Confidence, concept_scores
from beholder.studies.rows import PlanOptions, plan_rows
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import DESIGNS, GENDER_ONLY, UNFAIR, Trial, World

CONCEPTS = 5  # odd: in the wholly unfair world both pictures of a concept then have scores of opposite signs
SURE = 0.7  # confidence with a score above 0, and 1 − SURE below: the same spread in all cells


def measure(world: World, options: MeasureOptions) -> Iterator[Row]:
    """Gaps of recognition and of calibration."""
    level = np.nan_to_num(np.nanmean(world.scores, axis=0))
    scores = np.concatenate(np.split(world.scores - level, 2, axis=1))
    shows = np.repeat([True, False], len(world.table))
    images = pl.concat([world.table, world.table]).with_columns(image_id=pl.Series(np.arange(len(shows)).astype(str)))
    concepts = [f"concept {number}" for number in range(CONCEPTS)]
    dataset = Dataset("a world", "", "", images, objects=pl.DataFrame(schema=SCHEMA))
    present = np.repeat(shows[:, None], CONCEPTS, axis=1)
    data = concept_scores(images, "gender", concepts, scores, present, dataset, person=options.person)
    yield from gap_rows(find_gaps(data, options))
    confidence = np.where(np.isnan(scores), np.nan, np.where(scores > 0, SURE, 1 - SURE))
    yield from calibration_rows(data, Confidence(confidence, "a world's"), options)


TRIALS = Trial(
    prompts=2 * CONCEPTS,
    measure=measure,
    designs=tuple(name for name, design in DESIGNS.items() if design.spread == 1),
    true={world: ("disparity.",) for world in (GENDER_ONLY, UNFAIR)},
    found=("disparity.ap_gap_matched", "disparity.miscalibration_gap"),
)

# Plans: the audit's test is tried on scores drawn for the data's own people, with recognition worse in one group

QUALITY, SEED = 2.5, 8  # how well images that show a concept are told apart from others, in standard deviations; seed
MOST = 2 * QUALITY  # the largest loss: images that show the concept are then ranked last
WORLDS, FEWEST_WORLDS, SHUFFLES, REPEATS, STEPS = 200, 60, 199, 3, 7
CELLS = 1 << 23  # images × worlds × shuffles of one step, at most: large data sets have fewer worlds


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """The gap of average precision that is found for a rare, a middling and a frequent concept."""
    if dataset.objects is None or GENDER not in dataset.table.columns:
        raise UsageError(
            f"{dataset.name} does not say what its images show and who is in them: disparity cannot be planned."
        )
    images = dataset.table.drop_nulls(GENDER)
    if images[GENDER].n_unique() < 2:
        return
    blank = np.zeros((images.height, len(dataset.concepts)))
    data = concept_scores(images, GENDER, list(dataset.concepts), blank, blank.astype(bool), dataset)
    objects = data.objects()
    data.present[objects["row"].to_numpy(), objects["column"].to_numpy()] = True
    fewest = data.fewest.min(axis=0)
    tested = np.flatnonzero(fewest >= FEWEST)
    tested = tested[np.argsort(fewest[tested], kind="stable")]
    for place in sorted({0, len(tested) // 2, len(tested) - 1} if len(tested) else set()):
        _, gap = detectable(data, tested, place, options.power)
        sizes = data.showing[: len(data.groups.names), tested[place]].tolist()
        shown = ", ".join(f"{n} of {group}" for n, group in zip(sizes, data.groups.names, strict=True))
        note = f"{shown}: at matched prevalence; tested together with {len(tested)} concepts; assumes scores that tell "
        note += f"images apart by {QUALITY:g} standard deviations"
        if np.isnan(gap):
            note += f"; no gap is found in {100 * options.power:g} of 100 such data sets"
        row = Row("plan.detectable", gap, images.height, AP, subset="disparity.ap_gap_matched", note=note)
        needed = row.n * people_needed(gap, options.effect) if options.effect else None
        yield from plan_rows(row._replace(concept=data.concepts[tested[place]]), needed, options)


def detectable(data: ConceptScores, tested: npt.NDArray[np.intp], place: int, power: float) -> tuple[float, float]:
    """For one of the tested concepts, the smallest loss in the second group of the smallest pair that is found with the
    wanted power, and the gap that it makes; NaN where none is. Every world is a column.
    """
    rng = np.random.default_rng(SEED)
    bar, column = _bar(data, tested, place, rng), int(tested[place])
    worlds = int(np.clip(CELLS // (len(data.codes) * SHUFFLES), FEWEST_WORLDS, WORLDS))
    present = np.repeat(data.present[:, [column]], worlds, axis=1)
    scores = noise_of(data.people)(worlds, rng) + QUALITY * present
    index = int(data.fewest[:, column].argmin())
    worse = data.sets[data.pairs[index].second][:, None] & present
    low, high, gap = 0.0, np.nan, np.nan
    for step in range(STEPS + 1):
        loss = MOST if step == 0 else (low + high) / 2
        part = _part(data, scores - loss * worse, present, np.random.default_rng(SEED), SHUFFLES)
        deviate, value = (each.reshape(len(data.pairs), -1)[index] for each in (part.deviate, part.value))
        if float((deviate > bar).mean()) >= power:
            high, gap = loss, float(value.mean())
        elif step == 0:
            break
        else:
            low = loss
    return high, gap


def _bar(data: ConceptScores, tested: npt.NDArray[np.intp], place: int, rng: np.random.Generator) -> float:
    """What a gap must exceed among all tested concepts: means over a few worlds."""
    present, draw = data.present[:, tested], noise_of(data.people)
    bars, scales = [], []
    for _ in range(REPEATS):
        part = _part(data, draw(len(tested), rng) + QUALITY * present, present, rng, 2 * SHUFFLES + 1)
        bars.append(critical_value(np.sort(part.largest)))
        scales.append(part.scale.reshape(len(data.pairs), -1)[:, place].max())
    return float(np.mean(bars)) * float(np.mean(scales))


def _part(
    data: ConceptScores, scores: Cells, present: npt.NDArray[np.bool_], rng: np.random.Generator, shuffles: int
) -> Part:
    """Matched gaps of all pairs and columns with their null, as the audit has them."""
    precision = measured(scores, present, data.sets).matched
    gaps = np.concatenate([precision[pair.first] - precision[pair.second] for pair in data.pairs])
    null = shuffled(scores, present, data.codes, rng, shuffles, people=data.people.codes, cells=data.cells)
    resampler = data.resampler(MeasureOptions(draws=SHUFFLES // 2))
    draws = resampled(scores, present, data.sets, resampler).matched
    drawn = np.concatenate([draws[pair.first] - draws[pair.second] for pair in data.pairs])
    return part_from_null(gaps, widened(null.reshape(-1, shuffles), drawn).T, people=FEWEST)
