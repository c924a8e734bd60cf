"""Perception: which social judgements does a model make of faces, and which attributes move them?"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from beholder.comparison.groups import people_of, strata_of
from beholder.comparison.power import Scores
from beholder.core.errors import DataError, MissingData, UsageError
from beholder.core.results import Row
from beholder.core.types import Fields
from beholder.datasets import DATASETS, load_dataset
from beholder.datasets.causalface import FILES
from beholder.datasets.dataset import Dataset
from beholder.datasets.faces import FAIRFACE_NAME, UTKFACE_NAME, adults, studied
from beholder.datasets.glasshouse import DESIGN_NAME
from beholder.datasets.images import FACE
from beholder.prompts.prompt_set import PromptSet
from beholder.scores.score_matrix import Task
from beholder.studies.mirror import mirror_metrics, mirror_rows, read_ratings
from beholder.studies.perception import curves, design, prompts
from beholder.studies.perception.bias import TOP, bias_rows, neutral_rows, neutral_test_rows
from beholder.studies.perception.prompts import DIMENSIONS, Dimension
from beholder.studies.perception.scores import GROUPED, Judged, groupings, rated_scores, read_judged
from beholder.studies.printed import Cell, Printed, Size, Sizes, part_of_source, sources_beside
from beholder.studies.rows import PROBABILITY, Planned, PlanOptions, detectable_rows, refusal_metric, refusal_rows
from beholder.studies.study import Asks, Matrices, MeasureOptions, Measures, Option, Plans, Study, Tells, read_metrics
from beholder.studies.worlds import GENDER_ONLY, Trial, World

TASK = "perception"
METRICS = (
    *read_metrics(Path(__file__).with_name("metrics.csv")),
    *mirror_metrics("perception"),
    refusal_metric("perception"),
)

LIMITATIONS = (
    "A cosine is not a probability, and nobody stated it as a judgement; only differences between cosines compare.",
    "Noise alone makes a mean absolute difference more than 0: read the causal effects.",
    "A model that answers in words is asked whether each caption fits; its numbers are P(Yes), not the study's cosine.",
)


CHOICES = (
    f"The valence of belief: positive for {', '.join(d.title for d in DIMENSIONS if d.valence == prompts.POSITIVE)}",
    f"The question of models that answer: “{prompts.FITS.template}”",
    f"k where {TOP[0]:,} is more than half of what is ranked: {TOP[1]}, else a quarter",
    f"Pairs of a brightness map: {design.MOST_PAIRS}; squares: {design.SIDE} × {design.SIDE}",
    f"The face region of CausalFace's smiles: an ellipse of half axes {FACE[0]:g} and {FACE[1]:g} of the picture",
    "Clusters of curves: Ward's, of slope and curvature in all dimensions, cut at the farthest merger",
    f"Fewest images of an age (stated for UTKFace): {curves.FEWEST_OF_AN_AGE}; with fewer than {curves.FEWEST_AGES} "
    "such ages, bands",
    "What tells race and gender: the control word that fits best, by the mean over the templates",
)


def _delta_rows(judged: Judged, ratings: pl.DataFrame | None, options: MeasureOptions) -> Iterator[Row]:
    yield from curves.gap_rows(judged, options)
    yield from curves.trajectory_rows(judged, options)
    yield from curves.separation_rows(judged, options)
    yield from curves.confound_rows(judged)
    yield from neutral_rows(judged, options)
    yield from curves.group_curve_rows(judged, options)
    yield from design.variance_rows(judged)
    if judged.designed:
        yield from design.effect_rows(judged, options)
        yield from design.interaction_rows(judged, options)
        yield from design.induced_rows(judged, options)
        yield from design.brightness_rows(judged, options.rng())
    if ratings is not None:
        yield from mirror_rows("perception", rated_scores(judged), judged.images, ratings, judged.grouped, options)


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """Which gap can be found: all attributes, crossed groups and dimensions are one family, as in the audit."""
    people, planned = people_of(dataset.table, options.person), []
    for groups in groupings(dataset.table):
        if len(groups.names) > 1:
            source = "in standard deviations of Δ between people"
            strata = strata_of(dataset.table, groups, GROUPED, people)
            gap = Planned("perception.gap", groups, Scores(), source, "standard deviations", strata)
            planned.append(gap._replace(columns=len(DIMENSIONS), what="dimensions"))
    yield from detectable_rows(planned, people, options)


def perception_study(
    dimensions: Sequence[Dimension] = DIMENSIONS, ratings: pl.DataFrame | None = None, tops: Sequence[int] = ()
) -> Study:
    """Perception with the study's dimensions or a user's own, with people's ratings if there are any, and own k."""

    def tasks(prompts_of: Callable[[Sequence[Dimension]], PromptSet], dataset: Dataset) -> list[Task]:
        return [Task(TASK, adults(dataset), prompts_of(dimensions))]

    def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
        """All seven analyses, as far as the data set allows them."""
        judged = read_judged(matrices[TASK], dimensions, options.person)
        if not judged.images.height:
            raise DataError("No image has a score for every prompt that was scored: nothing can be measured.")
        yield from curves.score_rows(judged)
        yield from bias_rows(judged, options, tops)
        if judged.has_neutral:
            yield from _delta_rows(judged, ratings, options)
        if (answers := matrices[TASK].answers()) is not None:
            mass, note = answers[0] + answers[1], "mean P(yes) + P(no)"
            yield Row("perception.answer_mass", float(np.nanmean(mass)), len(mass), PROBABILITY, note=note)
        asked = {attribute: (matrices[TASK], attribute) for attribute in GROUPED}
        yield from refusal_rows("perception", asked, options, within=GROUPED)

    def released(dataset: Dataset) -> list[Task]:
        templates = prompts.RELEASED_TEMPLATES
        return [Task(TASK, studied(adults(dataset)), prompts.perception_prompts(dimensions, templates))]

    return Study(
        name="perception",
        title="Perception: social judgement of faces",
        short="Perception",
        question="Which social judgements does the model make of faces, and what moves them?",
        citation="Hausladen and others, Social perception of faces in a vision-language model (2024)",
        asks=Asks(
            datasets=("causalface", FAIRFACE_NAME, UTKFACE_NAME, DESIGN_NAME),
            tasks=partial(tasks, prompts.perception_prompts),
            instruction=prompts.FITS,
            compat_tasks=released,
            layouts=tuple(partial(tasks, columns) for columns in (prompts.word_columns, prompts.dimension_columns)),
            all_datasets=True,
            limit_by="race",
            reference_models=("glasshouse/contrastive",),
        ),
        measures=Measures(functions=(measure,), metrics=METRICS, compares=GROUPED),
        tells=Tells(
            chapter="beholder.studies.perception.chapter:CHAPTER",
            choices=CHOICES,
            compat="the paper's tests, uncorrected, and the released scripts for what is ranked and how",
            limitations=LIMITATIONS,
            of_photographs=(
                "Race, gender and age are perceived labels (of annotators or a model); three race labels are compared.",
                "Groups of photographs differ in more than a label: only matched sets show the effect of an attribute.",
            ),
        ),
        plans=Plans(plan=f"{__name__}:plan", trials=f"{__name__}:TRIALS", printed=f"{__name__}:PRINTED"),
        options=OPTIONS,
        configure=configured,
    )


OPTIONS = (
    Option(
        "dimensions",
        "With perception: your own dimensions, a table with the columns dimension, word, and maybe valence, opposite.",
    ),
    Option("ratings", "With perception: people's ratings, a table with image, trait and rating (or mean and n)."),
    Option("top", "With perception: your own k for Skew@k, in place of 1000 and 100 (repeatable).", int, several=True),
)


def configured(study: Study, options: Fields) -> Study:
    """Perception with the user's own dimensions, people's ratings, or own k."""
    dimensions = prompts.read_dimensions(options["dimensions"]) if "dimensions" in options else DIMENSIONS
    ratings = read_ratings(options["ratings"]) if "ratings" in options else None
    tops = options.get("top", ())
    if any(k < 1 for k in tops):
        raise UsageError(f"--top is the number of images at the top of a ranking: 1 or more, not {min(tops)}.")
    return perception_study(dimensions, ratings, tops)


PERCEPTION = perception_study()


# Worlds of known truth: every claim about groups, tried where nothing, or one thing, is seen

TRIED = (
    Dimension("warmth", "Warmth", ("warm", "friendly"), prompts.POSITIVE, "coldness"),
    Dimension("coldness", "Coldness", ("cold", "hostile"), prompts.NEGATIVE, "warmth"),
)
WORDS = ("warm", "cold", "friendly", "hostile", "male", "female", "white", "black")
"""Words of a kind stand at even places: a wholly unfair model finds women warm and men cold."""


def measure_world(world: World, options: MeasureOptions) -> Iterator[Row]:
    """The rows that carry claims; scores are cosines around 0.2, the last of them the neutral prompt's."""
    there = ~pl.Series(world.scores.sum(axis=1)).is_nan().to_numpy()
    cells, images = 0.2 + 0.01 * world.scores[there], world.table.filter(pl.Series(there))
    cosine, neutral = cells[:, :-1], cells[:, -1]
    judged = Judged(images, list(WORDS), cosine, cosine - neutral[:, None], neutral, TRIED, "cosine", {})
    rows = [*curves.score_rows(judged), *bias_rows(judged, options), *curves.gap_rows(judged, options)]
    rows += neutral_test_rows({None: judged}, options)
    # Where race and branch are the same label, race may truly be found: gender alone is asked.
    same = images["race"].eq("Black").eq(images["branch"].eq("a")).all()
    yield from (row for row in rows if not same or row.subset == "gender")


CLAIMS = ("gap", "sc_weat", "skew", "ranking", "markedness", "markedness_gap")
CROSSED = ("perception.gap:race × gender", "perception.neutral_test:race × gender")
TRUE = {GENDER_ONLY: (*(f"perception.{name}:gender" for name in CLAIMS), *CROSSED)}
FOUND = ("perception.gap", "perception.sc_weat", "perception.markedness")
TRIALS = Trial(prompts=len(WORDS) + 1, measure=measure_world, true=TRUE, found=FOUND)


# Printed numbers: Tables S.1 and S.2, and the sizes of two image sets


def _sizes(data: Path) -> Sizes:
    """The faces that the study takes. The labels tell, and the images need not be here."""
    sizes = dict[tuple[str, str], Size]()
    with suppress(MissingData):
        whole = load_dataset("causalface", data)
        shared = whole.table.unique(["race", "gender", "seed", "varied"]).height
        shared -= whole.table.unique(["race", "gender", "seed"]).height
        hint = f"{len(whole):,} files; the unchanged picture, which every block has, is counted once"
        sizes["causalface", "images"] = Size(len(whole) - shared, part_of_source(len(whole), FILES), hint)
    for name, source, split in (("fairface-adults", "fairface", "train"), ("utkface-adults", "utkface", None)):
        with suppress(MissingData):
            whole, adults = load_dataset(source, data), load_dataset(name, data)
            counted = adults.where(split=split) if split else adults
            sizes[name, "images"] = Size(len(counted), part_of_source(len(whole), DATASETS[source].images))
    return sizes


def _impossible(row: Cell) -> str | None:
    genders = (row["metric"], row["dataset"], row["subset"]) == ("perception.markedness", "fairface-adults", "gender")
    return "the released script compares `Male` with `male`, finds no rows and writes 0" if genders else None


CELLS = Path(__file__).with_name("printed.csv")
PRINTED = Printed(CELLS, sources_beside(CELLS), sizes=_sizes, impossible=_impossible, lower_case_groups=True)
