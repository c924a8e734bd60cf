"""Disparity: for which group does recognition work worse? Average precision by concept and group."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.comparison.family import FEWEST, Part, critical_value, part_from_null
from beholder.comparison.power import noise_of, people_needed
from beholder.core.errors import DataError, MissingData, UnknownName, UsageError
from beholder.core.results import SCHEMA, Row, read_results
from beholder.core.types import Fields, Mask
from beholder.datasets import DATASETS
from beholder.datasets.coco import SETTINGS as COCO_SETTINGS
from beholder.datasets.coco import find, frequent_categories, grouped, read_captions, read_instances
from beholder.datasets.dataset import SCHEMA as DATASET_SCHEMA
from beholder.datasets.dataset import Dataset
from beholder.datasets.glasshouse import OBJECTS_NAME
from beholder.datasets.settings import GENDER_WORDS, Settings, Steps
from beholder.metrics.average_precision import measured, resampled, shuffled
from beholder.metrics.calibration import BINS
from beholder.models.predictions import MINIMUM
from beholder.prompts.prompt_set import read_templates
from beholder.scores.score_matrix import Task
from beholder.studies.disparity import prompts, scores
from beholder.studies.disparity.agreement import agreement, word_rows
from beholder.studies.disparity.companions import companion_rows, quality_rows
from beholder.studies.disparity.gaps import AP, cause_rows, find_gaps, gap_rows, widened
from beholder.studies.disparity.scores import AUTO, CALIBRATIONS, GENDER, ROUNDING, WITHIN, ConceptScores, Confidence
from beholder.studies.printed import Printed, Size, Sizes, part_of_source, sources_beside
from beholder.studies.rows import PlanOptions, plan_rows
from beholder.studies.study import Asks, Matrices, MeasureOptions, Measures, Option, Plans, Study, Tells, read_metrics
from beholder.studies.worlds import DESIGNS, GENDER_ONLY, UNFAIR, Trial, World

CHOICES = (
    f"The prompt of models that match texts: “{prompts.TEMPLATES['photo']}”, CLIP's own",
    f"The question of models that answer: “{prompts.IS_THERE.template}”",
    f"Bins of the calibration error: {BINS}, of equal width",
    "The sign of its gap, which § 3.2 says both ways: first group less second, so that positive is worse for the first",
    f"When a detection is there (--compat): a box from {MINIMUM:g}, any pixel of a class map, a probability above "
    f"{scores.PIXEL:g}",
    f"Words for ambiguous synsets beyond the printed examples ({', '.join(prompts.AMBIGUOUS.values())}): the lemma",
    f"Captions that leave an image out: those with “{COCO_SETTINGS['without'].default}”; words end at anything that is "
    "no letter",
    "COCO's categories as synsets: one for each of the 80",
)

METRICS = read_metrics(Path(__file__).with_name("metrics.csv"))

LIMITATIONS = (
    "Average precision depends on how many images of a group show a concept: read the matched gap, not the published "
    "gap alone.",
)


class Choices(NamedTuple):
    """What a user may choose."""

    by: str | None = None  # whose groups are compared; by default what the data set's words define, else gender
    templates: prompts.Words = prompts.TEMPLATES
    word_vectors: Path | None = None
    calibration: str = AUTO
    beside: pl.DataFrame = pl.DataFrame(schema=SCHEMA)  # other runs
    indicators: bool = False  # whether detections are ranked as there or not there, as in the paper
    ambiguous: prompts.Words = prompts.AMBIGUOUS  # for words that usually mean something else
    quality: bool = False  # whether pictures are opened again for their brightness and sharpness
    same_concepts: prompts.Words = prompts.SAME_CONCEPTS  # which concepts of two data sets are the same


def disparity_study(choices: Choices | None = None) -> Study:
    """Disparity as published, or with a user's own groups, templates and word vectors."""
    chosen = Choices() if choices is None else choices

    def tasks(dataset: Dataset, *, bare: bool) -> list[Task]:
        if not dataset.concepts:
            raise DataError(f"{dataset.name} does not say what its images show, so recognition cannot be measured.")
        if dataset.name == OBJECTS_NAME and chosen.templates == prompts.TEMPLATES:
            return [Task("disparity", dataset, prompts.drawn_prompts(dataset.concepts, bare=bare))]
        own = prompts.disparity_prompts(dataset.concepts, chosen.templates, bare=bare, ambiguous=chosen.ambiguous)
        return [Task("disparity", dataset, own)]

    def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
        data = scores.read_concept_scores(matrices["disparity"], chosen.by, options.person)
        gaps = find_gaps(data.indicated() if chosen.indicators or options.compat else data, options)
        rows = list(gap_rows(gaps))
        rows += scores.calibration_rows(data, scores.read_confidence(data, chosen.calibration, options), options)
        yield from rows
        if chosen.word_vectors is not None:
            yield from word_rows(gaps, rows, chosen.word_vectors, chosen.ambiguous, every=options.compat)
        yield from cause_rows(gaps)
        yield from companion_rows(gaps)
        if chosen.quality:
            yield from quality_rows(gaps)

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
            instruction=prompts.IS_THERE,
            limit_by=chosen.by or GENDER,
            reference_models=("glasshouse/contrastive",),
        ),
        measures=Measures(
            functions=(measure,),
            metrics=METRICS,
            across=lambda results, compat: agreement(results, chosen.beside, compat, chosen.same_concepts),
            within=WITHIN,
        ),
        tells=Tells(
            chapter="beholder.studies.disparity.chapter:CHAPTER",
            choices=CHOICES,
            compat="the paper (no scripts were released): detections as binary indicators, every concept counts",
            limitations=LIMITATIONS,
        ),
        plans=Plans(plan=f"{__name__}:plan", trials=f"{__name__}:TRIALS", printed=f"{__name__}:PRINTED"),
        demo=True,
        options=OPTIONS,
        configure=configured,
    )


HELP = {
    "by": "With --prompts: attribute whose groups are compared (repeatable). With disparity: one attribute.",
    "templates": "With gras or disparity: own wordings (a table with the columns template and text, in which {} is the "
    "trait or the concept).",
    "word_vectors": "With disparity: word vectors to compare gaps with (word2vec or GloVe), such as GoogleNews.",
    "calibration": "With disparity: how scores become probabilities. auto: only if the scores are already "
    "probabilities; scores: take imported scores as probabilities; platt, isotonic: convert any scores, "
    "cross-validated.",
    "indicators": "With disparity: rank detections and segmentations as there or not there, as the paper and --compat "
    "do. Default: by their scores.",
    "quality": "With disparity: open the pictures again and give those of each brightness and sharpness the same "
    "weight in every group.",
    "beside": "With disparity: another run folder to compare with, on another data set or of another model "
    "(repeatable).",
    "ambiguous": "With disparity: words for concepts whose own word is ambiguous (columns concept and words), in place "
    "of the study's two.",
    "same_concepts": "With disparity: which concepts of two data sets are the same (columns concept and same_as), in "
    "place of WordNet's synsets of COCO's categories.",
}
KINDS, REPEATABLE = {"by": str, "calibration": str, "indicators": bool, "quality": bool}, ("by", "beside")
OPTIONS = tuple(Option(name, text, KINDS.get(name, Path), name in REPEATABLE) for name, text in HELP.items())

READERS: dict[str, Callable[[Any], Any]] = {
    "by": lambda names: names[0],
    "templates": read_templates,
    "beside": lambda folders: pl.concat([Choices().beside, *map(read_results, folders)]),
    "ambiguous": lambda path: prompts.read_words(path, "words"),
    "same_concepts": lambda path: prompts.read_words(path, "same_as"),
}  # what becomes of the value of an option; of others it is taken as it is


def configured(study: Study, options: Fields) -> Study:
    """Disparity with the user's own groups, templates, word vectors, calibration and other runs."""
    by, calibration, vectors = (options.get(name) for name in ("by", "calibration", "word_vectors"))
    if by and len(by) > 1:
        raise UsageError(f"Disparity compares the groups of one attribute; --by names {', '.join(by)}.")
    if calibration not in (None, *CALIBRATIONS):
        raise UnknownName("calibration", str(calibration), CALIBRATIONS, where="Disparity")
    if vectors is not None and not vectors.is_file():
        raise UsageError(f"There are no word vectors at {vectors}.")
    given = {name: READERS[name](value) if name in READERS else value for name, value in options.items()}
    return disparity_study(Choices(**given))


DISPARITY = disparity_study()


# Worlds of known truth. Everybody has two pictures for each concept: one that shows it and one that does not, each with
# scores of its own. A prompt's own level is the same for both, so it is taken off. A model whose scores for some women
# lie farther apart recognises them worse: that is no false alarm, so that design is left out.

CONCEPTS = 5  # odd: in the wholly unfair world both pictures of a concept then have scores of opposite signs
SURE = 0.7  # confidence with a score above 0, and 1 − SURE below: the same spread in all cells


def measure_world(world: World, options: MeasureOptions) -> Iterator[Row]:
    """Gaps of recognition and of calibration."""
    level = np.nan_to_num(np.nanmean(world.scores, axis=0))
    cells = np.concatenate(np.split(world.scores - level, 2, axis=1))
    shows = np.repeat([True, False], len(world.table))
    images = pl.concat([world.table, world.table]).with_columns(image_id=pl.Series(np.arange(len(shows)).astype(str)))
    concepts = [f"concept {number}" for number in range(CONCEPTS)]
    dataset = Dataset("a world", "", "", images, objects=pl.DataFrame(schema=DATASET_SCHEMA))
    present = np.repeat(shows[:, None], CONCEPTS, axis=1)
    data = scores.concept_scores(images, "gender", concepts, cells, present, dataset, options.person)
    yield from gap_rows(find_gaps(data, options))
    confidence = np.where(np.isnan(cells), np.nan, np.where(cells > 0, SURE, 1 - SURE))
    yield from scores.calibration_rows(data, Confidence(confidence, "a world's"), options)


TRIED = tuple(name for name, design in DESIGNS.items() if design.spread == 1)
TRUE = {world: ("disparity.",) for world in (GENDER_ONLY, UNFAIR)}
FOUND = ("disparity.ap_gap_matched", "disparity.miscalibration_gap")
TRIALS = Trial(2 * CONCEPTS, measure_world, TRUE, designs=TRIED, found=FOUND)

# Plans: the audit's test is tried on scores drawn for the data's own people, with recognition worse in one group

QUALITY, SEED = 2.5, 8  # how well images that show a concept differ from others, in standard deviations; seed
MOST = 2 * QUALITY  # the largest loss: images that show the concept are then ranked last
WORLDS, FEWEST_WORLDS, SHUFFLES, REPEATS, STEPS = 200, 60, 199, 3, 7
CELLS = 1 << 23  # images × worlds × shuffles of one step, at most: large data sets have fewer worlds


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """The gap of average precision that is found for a rare, a middling and a frequent concept."""
    if dataset.objects is None or GENDER not in dataset.table.columns:
        lacks = "does not say what its images show and who is in them"
        raise UsageError(f"{dataset.name} {lacks}: disparity cannot be planned.")
    images = dataset.table.drop_nulls(GENDER)
    if images[GENDER].n_unique() < 2:
        return
    blank = np.zeros((images.height, len(dataset.concepts)))
    data = scores.concept_scores(images, GENDER, list(dataset.concepts), blank, blank.astype(bool), dataset, None)
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
    """The smallest loss of one tested concept that is found with the wanted power, and its gap; NaN where none is."""
    # The loss is in the second group of the smallest pair. Every world is a column.
    rng = np.random.default_rng(SEED)
    bar, column = _bar(data, tested, place, rng), int(tested[place])
    worlds = int(np.clip(CELLS // (len(data.codes) * SHUFFLES), FEWEST_WORLDS, WORLDS))
    present = np.repeat(data.present[:, [column]], worlds, axis=1)
    cells = noise_of(data.people)(worlds, rng) + QUALITY * present
    index = int(data.fewest[:, column].argmin())
    worse = data.sets[data.pairs[index].second][:, None] & present
    low, high, gap = 0.0, np.nan, np.nan
    for step in range(STEPS + 1):
        loss = MOST if step == 0 else (low + high) / 2
        part = _part(data, cells - loss * worse, present, np.random.default_rng(SEED), SHUFFLES)
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


def _part(data: ConceptScores, cells: scores.Cells, present: Mask, rng: np.random.Generator, count: int) -> Part:
    """Matched gaps of all pairs and columns with their null, as the audit has them."""
    precision = measured(cells, present, data.sets).matched
    gaps = np.concatenate([precision[pair.first] - precision[pair.second] for pair in data.pairs])
    null = shuffled(cells, present, data.codes, rng, count, people=data.people.codes, cells=data.cells)
    resampler = data.resampler(MeasureOptions(draws=SHUFFLES // 2))
    draws = resampled(cells, present, data.sets, resampler).matched
    drawn = np.concatenate([draws[pair.first] - draws[pair.second] for pair in data.pairs])
    return part_from_null(gaps, widened(null.reshape(-1, count), drawn).T, people=FEWEST, rounding=ROUNDING)


# Printed numbers: sizes of the data sets, and counts of agreeing concepts. The sizes of Visual Genome are not counted
# again: it is not known after which filters they were counted.

CUT = "the protocol's rule cuts captions into words at anything that is no letter; cut at blanks only they give {:,}"


def _sizes(data: Path) -> Sizes:
    counted = {("coco", "images"): _captioned(data), ("coco", "concepts"): _frequent(data)}
    return {key: size for key, size in counted.items() if size}


def _captioned(data: Path) -> Size | None:
    """COCO's validation images whose captions name one gender and not people."""
    try:
        path = find(DATASETS["coco"].folder(data), "captions_val2017")
    except MissingData:
        return None
    captions = {cut: read_captions(path, cut) for cut in ("letters", "blanks")}
    counts = {cut: len(grouped(words, GENDER_WORDS, ("people",), Steps())) for cut, words in captions.items()}
    partial = part_of_source(len(captions["letters"]), DATASETS["coco"].images)
    return Size(counts["letters"], partial, CUT.format(counts["blanks"]))


def _frequent(data: Path) -> Size | None:
    """COCO's categories in at least 100 training images that name one gender; None without the training files."""
    folder = DATASETS["coco"].folder(data)
    files = [folder / "annotations" / f"{kind}_train2017.json" for kind in ("instances", "captions")]
    if not files[0].is_file():
        return None
    instances = read_instances(find(folder, "instances_val2017"))
    steps = {rule: Steps() for rule in ("one-group", "all") if rule == "all" or files[1].is_file()}
    kept = {
        rule: len(frequent_categories(instances, Settings("coco", COCO_SETTINGS, {"concepts_in": rule}), folder, own))
        for rule, own in steps.items()
    }
    if "one-group" not in kept:
        return Size(kept["all"], hint="counted in all training images, for their captions are not here")
    left_out = "; ".join(note for note in steps["one-group"] if note.startswith("concepts left out"))
    hint = "; ".join(part for part in (left_out, f"counted in all training images: {kept['all']}") if part)
    return Size(kept["one-group"], hint=hint)


PRINTED_CELLS = Path(__file__).with_name("printed.csv")
PRINTED = Printed(PRINTED_CELLS, sources_beside(PRINTED_CELLS), sizes=_sizes)
