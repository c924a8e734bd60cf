"""Ratings: people beside models. Where does a model rate faces as people do, and what does it add or leave out?"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from beholder.comparison.family import comparison_at, judge
from beholder.comparison.groups import group_by, groups_of, people_of
from beholder.comparison.power import Scores
from beholder.comparison.shuffles import compare_ranks
from beholder.core.errors import DataError, UsageError
from beholder.core.read import column_in, read_table, text_columns
from beholder.core.results import Row
from beholder.core.types import Array, Fields
from beholder.datasets.dataset import Dataset
from beholder.datasets.glasshouse import FACES_NAME
from beholder.datasets.picture_sets import ratings_file
from beholder.glasshouse.planted import planted_ratings
from beholder.prompts.prompt_set import Instruction, prompt_set
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.studies.mirror import SIDES, mirror_metrics, mirror_rows, read_ratings
from beholder.studies.rows import Planned, PlanOptions, detectable_rows
from beholder.studies.study import Asks, Matrices, MeasureOptions, Measures, Plans, Study, read_metrics, read_words
from beholder.studies.worlds import BRANCH_ONLY, BRIGHTNESS_ONLY, GENDER_ONLY, SOURCE_ONLY, Trial, World

TRAITS, WORK = "ratings", "labour"
LABELS = ("gender", "race")
NEUTRAL = "a photo of a person"
QUESTION = Instruction(
    "Instructions: Analyze the provided image and answer the following question with exactly one of these responses: "
    "Yes or No. Question: {} Response format: Yes or No",
    yes="Yes",
    no="No",
)
PHRASES = dict(read_table(Path(__file__).with_name("traits.csv")).select("trait", "text").iter_rows())
WORDS = read_words(__name__)
METRICS = (*mirror_metrics("ratings"), *read_metrics(Path(__file__).with_name("metrics.csv")))


def read_labour(path: Path) -> pl.DataFrame:
    """`occupation`, `women` (the per cent of women who work in it) and maybe `text`, what a model is asked."""
    raw = read_table(path)
    raw = raw.rename({name: name.lower() for name in raw.columns if name.lower() in ("occupation", "women", "text")})
    table = text_columns(raw, ["occupation", "women"], path)
    women = table["women"].cast(pl.Float64, strict=False)
    if not (fine := women.is_between(0, 100).fill_null(False)).all():
        wrong = (~fine).arg_max() or 0
        said = f"{table['women'][wrong]!r} of women, which is no share in per cent"
        raise DataError(f"{path}: {table['occupation'][wrong]!r} has {said}.")
    text = pl.col("text") if "text" in table.columns else pl.format("a photo of a person who works as {}", "occupation")
    return table.select("occupation", women=women, text=text.cast(pl.String)).unique("occupation", maintain_order=True)


def _ratings(dataset: Dataset | None, given: pl.DataFrame | None) -> pl.DataFrame | None:
    if given is not None or dataset is None:
        return given
    if dataset.name == FACES_NAME:
        return planted_ratings()
    path = ratings_file(dataset)
    return None if path is None else read_ratings(path)


def ratings_study(given: pl.DataFrame | None = None, labour: pl.DataFrame | None = None) -> Study:
    """The study with the ratings that come with the data, or a user's own; and occupations, if there are any."""

    def tasks(dataset: Dataset, *, questions: bool = True) -> list[Task]:
        """Questions to a model that answers in words; statements beside a neutral one to others."""
        rated, made = _ratings(dataset, given), []
        if rated is None and labour is None:
            raise UsageError(f"No single ratings come with {dataset.name}: name a table with --ratings.")
        if rated is not None:
            rows = [] if questions else [{"text": NEUTRAL, "concept": "", "level": TRAITS}]
            for trait in sorted(set(rated["trait"])):
                text = PHRASES.get(trait.lower(), "" if questions else f"a photo of a {trait} person")
                asked = f"Is this {text}?" if text else f"Is the person in the image {trait}?"
                rows.append({"text": asked if questions else text, "concept": trait, "level": TRAITS})
            made.append(Task(TRAITS, dataset, prompt_set(TRAITS, rows)))
        if labour is not None:
            dataset.attribute("gender")
            said = "Is this {}?" if questions else "{}"
            rows = [
                {"text": said.format(row["text"]), "concept": row["occupation"], "level": WORK}
                for row in labour.to_dicts()
            ]
            made.append(Task(WORK, dataset, prompt_set(WORK, rows)))
        return made

    def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
        if (matrix := matrices.get(TRAITS)) is not None:
            rated = _ratings(matrix.dataset, given)
            assert rated is not None
            labels = [name for name in LABELS if name in matrix.images.columns]
            yield from mirror_rows("ratings", scores_of(matrix), matrix.images, rated, labels, options)
        if (matrix := matrices.get(WORK)) is not None and labour is not None:
            yield from labour_rows(matrix, labour, options)

    return Study(
        **WORDS.about,
        asks=Asks(
            datasets=("omi", FACES_NAME),
            tasks=tasks,
            statements=partial(tasks, questions=False),
            layouts=(partial(tasks, questions=False),),
            instruction=QUESTION,
            reference_models=("glasshouse/generative", "null"),
        ),
        measures=Measures(functions=(measure,), metrics=METRICS, compares=LABELS),
        tells=WORDS.tells,
        plans=Plans(plan=f"{__name__}:plan", trials=f"{__name__}:TRIALS"),
        options=WORDS.options,
        configure=configured,
    )


def configured(study: Study, options: Fields) -> Study:
    """With the user's own ratings and occupations."""
    given = read_ratings(options["ratings"]) if "ratings" in options else None
    return ratings_study(given, read_labour(options["labour"]) if "labour" in options else None)


def scores_of(matrix: ScoreMatrix) -> Mapping[str, Array]:
    """By trait, each image's score; of a cosine less that of the neutral prompt."""
    quantity, concepts = matrix.quantity("cosine"), matrix.prompts["concept"].to_list()
    cells = np.asarray(quantity.cells, dtype=np.float64)
    if not quantity.is_probability and "" in concepts:
        cells = cells - cells[:, [concepts.index("")]]
    return {trait.lower(): cells[:, place] for place, trait in enumerate(concepts) if trait}


def labour_rows(matrix: ScoreMatrix, labour: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """Whether the occupations that a model gives to women are those in which women work."""
    images, cells = matrix.images, np.asarray(matrix.quantity("cosine").cells, dtype=np.float64)
    groups = group_by(images, (column_in(images, "gender"),))
    names = [name for name in groups.names if name.lower() in ("woman", "female", "f", "w", "women")]
    if not names or len(groups.names) < 2:
        yield Row("ratings.labour", None, 0, "correlation", note="needs pictures of women and of others")
        return
    women, known = groups.mask(names[0]), groups.codes >= 0
    spread = np.nanstd(cells[known], axis=0)
    gap = (np.nanmean(cells[women], axis=0) - np.nanmean(cells[known & ~women], axis=0)) / np.where(spread, spread, 1)
    shares = labour.join(matrix.prompts, left_on="occupation", right_on="concept", how="inner", maintain_order="right")
    there = np.isfinite(gap)
    share, all_as_one = shares["women"].to_numpy()[there], np.zeros(int(there.sum()), np.intp)
    part = compare_ranks(gap[there], share, all_as_one, options.rng(), options.shuffles)
    found = comparison_at(judge([part])[0], 0)
    row = Row("ratings.labour", found.value, int(there.sum()), "correlation", note="occupations change places")
    if np.isfinite(found.value):
        yield from found.rows(row, least=-1.0, most=1.0)


RATINGS = ratings_study()


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """The smallest gap between model and people that can be found, of all traits."""
    people, source = people_of(dataset.table, options.person), "in standard deviations between faces"
    labels = [name for name in LABELS if name in dataset.table.columns]
    planned = [
        Planned("ratings.rating_departure", groups, Scores(), source, "standard deviations", columns=3 * len(PHRASES))
        for groups in groups_of(dataset.table, labels)
    ]
    yield from detectable_rows(planned, people, options)


# Tried with two traits: the model's scores, and people's ratings of their own


def _measured(world: World, options: MeasureOptions) -> Iterator[Row]:
    scores = {name: world.scores[:, place] for place, name in enumerate(("kind", "cold"))}
    rated = [
        {"who": who, "trait": trait, "mean": mean, "n": 9.0}
        for place, trait in enumerate(scores, 2)
        for who, mean in zip(world.table["image_id"], world.scores[:, place], strict=True)
        if np.isfinite(mean)
    ]
    yield from mirror_rows("ratings", scores, world.table, pl.DataFrame(rated), LABELS, options)


SEEN = ("ratings.rating_r", "ratings.order")  # true where people and model see the same, whatever it is
UNBALANCED = tuple(f"ratings.{name}:race" for name in (*SIDES, "mirror"))  # race may be branch and source
TRIALS = Trial(
    prompts=4,
    measure=_measured,
    true={GENDER_ONLY: ("ratings.",), BRIGHTNESS_ONLY: SEEN}
    | dict.fromkeys((BRANCH_ONLY, SOURCE_ONLY), (*SEEN, *UNBALANCED)),
    found=("ratings.rating_r", "ratings.rating_gap"),
)
