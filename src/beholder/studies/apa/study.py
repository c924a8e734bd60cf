"""APA: does the model recognise a person, their occupation and their specialty? Does it treat women and men alike?"""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import polars as pl

from beholder.core.errors import UsageError
from beholder.core.results import Row
from beholder.core.types import Fields
from beholder.datasets.apa import BRANCHES
from beholder.datasets.dataset import Dataset
from beholder.glasshouse.world import BRANCH_OCCUPATIONS
from beholder.glasshouse.world import prompts as drawn_prompts
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import Task
from beholder.studies.apa.prompts import NAME_PROMPT, OCCUPATIONS, association_prompts
from beholder.studies.printed import Cell, Printed, Source
from beholder.studies.public_figures import study as figures
from beholder.studies.public_figures.identity import IDENTITY
from beholder.studies.public_figures.measures import ASSOCIATION
from beholder.studies.public_figures.published import scale_rows
from beholder.studies.study import Asks, Matrices, Measure, MeasureOptions, Measures, Option, Plans, Study, Tells

EIGHT = "eight occupations, without actress"  # the variant of rows that were measured with `--options 8`
POOLS = {"actors": ("actors",), "politicians": ("house", "senate", "mayors"), "athletes": ("athletes",)}


def _size(name: str) -> dict[str | None, int]:
    """By gender; the key None counts everyone."""
    parts = [BRANCHES[branch] for branch in POOLS.get(name, (name,))]
    women, men = sum(part.women for part in parts), sum(part.men for part in parts)
    return {None: sum(part.images for part in parts), "woman": women, "man": men}


SIZES = {name: _size(name) for name in (*BRANCHES, "politicians")}  # by branch or pool

NAMED_OTHERWISE = (
    "P-FI's Text Score is APA's Image Score: the caption of P-FI's Table 2 defines it as identifying the unique name, "
    "given an image. P-FI's body text reads the other way. Values here are by what is given."
)
CLOSE = 0.005 * 8  # by how much eight figures of two places may miss 100
FLOAT16 = "The released scripts take means in float16, so the figures sit on that grid."


def other_people(row: Cell) -> str | None:
    """Why a run's value is over other people than the printed one."""
    expected = SIZES.get(row["subset"] or "", {}).get(row["group"])
    if expected is None or row["n"] is None or abs(row["n"] - expected) <= 1:
        return None
    return f"this run is over {row['n']} people, the printed value over {expected}"


@cache
def _over_one() -> dict[tuple[str, str], float]:
    """Per cent that the shares of a row of Table 5 add up to, by model and gender, where that is more than 100."""
    shares = PRINTED.cells.filter(metric="apa.occupation_probability", place="Table 5")
    sums = shares.group_by("model", "group").agg(total=(100 * pl.col("printed")).round(2).sum())
    return {(model, gender): total for model, gender, total in sums.iter_rows() if total > 100 + CLOSE}


def _impossible(row: Cell) -> str | None:
    total = _over_one().get((row["model"], row["group"]))
    if total is None or row["place"] != "Table 5":
        return None
    return f"the eight shares of this row add up to {total:.1f} %: they are not the shares of one softmax"


def other_options(row: Cell, model: str) -> str | None:
    """Why the printed number of a model is over other occupations than a run's row."""
    if row["metric"].partition(".")[2] not in ("bias_ratio", "occupation_probability"):
        return None
    eight = any(model == each for each, _ in _over_one())  # over eight prompts, as it looks
    if row["subset"] == "actors":
        return "its printed shares of actors are not those of one softmax" if eight else None
    if eight and row["variant"] != EIGHT:
        return "its printed shares look taken over eight occupations (--options 8)"
    return "its printed shares are over nine occupations" if not eight and row["variant"] == EIGHT else None


PAPER = "APA, a people-centric benchmark for testing vision-language models (2025)"
PRINTED = Printed(
    Path(__file__).with_name("printed.csv"),
    (
        Source(
            "apa_gender_bias",
            f"{PAPER}, Tables 5–7",
            "mean probability of each occupation for women and for men, and their ratio, 39 models",
            (
                "Table 5 (actors): rows of contrastive models do not add up to 100 (RN50, woman: 172.9), and the "
                "released script drops the ninth column, actress; the ratios are as printed, not checked.",
                "“MetaCLIP-114” is MetaCLIP-L14. Table 1 of the paper gives one row of Table 7 another name.",
                FLOAT16,
            ),
            half_precision=True,
        ),
        Source(
            "apa_identity",
            f"{PAPER}, Table 8",
            "identity scores given a name (Text) and given an image (Image), 39 models",
            (NAMED_OTHERWISE, FLOAT16),
            half_precision=True,
        ),
    ),
    impossible=_impossible,
    partial=lambda row: other_people(row) or other_options(row, row["model"]),
    unlike=other_options,
    no_neighbours=(("apa.occupation_probability", "actors"),),  # Table 5 does not say which column is actress
)


DRAWN_POOLS = {branch: (branch,) for branch in BRANCH_OCCUPATIONS}


def apa_tasks(dataset: Dataset, options: int = len(OCCUPATIONS)) -> list[Task]:
    """Two tasks for each branch: association prompts and names."""
    if dataset.name == "glasshouse":
        return drawn_tasks(dataset)
    return figures.figure_tasks("apa", partial(association_prompts, options=options), NAME_PROMPT, dataset)


def drawn_tasks(dataset: Dataset) -> list[Task]:
    """The same questions in the embedded world, branch by branch."""
    rows, tasks = drawn_prompts(), []
    for branch in dataset.table["branch"].unique(maintain_order=True).to_list():
        part = dataset.where(branch=branch)
        for kind in (ASSOCIATION, IDENTITY):
            mine = [row for row in rows if row["branch"] == branch]
            if prompts := [row for row in mine if (row["level"] == IDENTITY) is (kind == IDENTITY)]:
                own = prompt_set(f"glasshouse/{branch}/{kind}", prompts)
                tasks.append(figures.figure_task(kind, branch, part, own))
    return tasks


def _over_eight(measure: Measure, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """The rows of a measure; those about occupations say that eight were offered."""
    for row in measure(matrices, options):
        of_nine = row.subset == "actors" or row.subset in DRAWN_POOLS
        about = row.metric.removeprefix("apa.") in OCCUPATION_METRICS or row.concept == "occupation"
        variant = f"{row.variant}, {EIGHT}" if row.variant else EIGHT
        yield row._replace(variant=variant) if about and not of_nine else row


OCCUPATION_METRICS = {
    *("occupation_probability", "bias_ratio", "branch_ratio", "ratio_without", "occupation_gap", "equivalence"),
    *("either_word_probability", "either_word_ratio"),
}
OPTIONS = (
    Option(
        "options",
        "With apa: how many occupations are offered, 9 or 8. 8 leaves out actress (but not for actors): the printed "
        "numbers of CLIP and OpenCLIP look made so. Default: 9.",
        int,
    ),
)


def configured(study: Study, options: Fields) -> Study:
    """APA with as many occupations as the user asks for."""
    number = int(options["options"])
    if number not in (len(OCCUPATIONS), len(OCCUPATIONS) - 1):
        raise UsageError(f"--options {number} is not a choice of APA's occupations: 9 (all), or 8 (without actress).")
    return apa_study(number)


def apa_study(options: int = len(OCCUPATIONS)) -> Study:
    """APA with nine occupations as in the released prompts, or with eight of them."""
    measures = figures.public_figure_measures("apa", {**POOLS, **DRAWN_POOLS})
    if options < len(OCCUPATIONS):
        measures = tuple(partial(_over_eight, each) for each in measures)
    return Study(
        name="apa",
        title="APA: actors, politicians, athletes",
        short="APA",
        question="Does the model recognise a person, their occupation and their specialty? Does it recognise women as "
        "often as men? Whom does it know by name?",
        citation="Ishitoya and others, The APA Benchmark: A People-centric Benchmark for Testing Vision-Language "
        "Models (2025; marked “not intended for distribution or citation”)",
        asks=Asks(datasets=("apa", "glasshouse"), tasks=partial(apa_tasks, options=options), limit_by="branch"),
        measures=Measures(
            functions=measures,
            metrics=figures.public_figure_metrics("apa"),
            across=scale_rows,
            compares=("gender",),
            within=("branch",),
        ),
        tells=Tells(
            chapter="beholder.studies.apa.chapter:CHAPTER",
            limitations=(
                "Means of softmax probabilities depend on the prompts offered together and on the model's logit scale.",
                "Intervals show how far numbers could move with photographs of other people, not with other prompts.",
            ),
            of_photographs=(
                "The people are US public figures. What holds for them need not hold for others.",
                "The source's tables know two genders. People of other genders are not represented.",
            ),
        ),
        plans=Plans(
            plan="beholder.studies.apa.study:plan",
            trials="beholder.studies.public_figures.study:APA_TRIALS",
            printed="beholder.studies.apa.study:PRINTED",
        ),
        default="always",
        demo=True,
        options=OPTIONS,
        configure=configured,
    )


APA = apa_study()
plan = partial(figures.ratio_plan, "apa", {**POOLS, **DRAWN_POOLS})
