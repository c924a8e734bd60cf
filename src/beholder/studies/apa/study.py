"""APA: does the model recognise a person, their occupation and their specialty? Does it treat women and men alike?"""

from collections.abc import Iterator
from functools import partial

from beholder.core.errors import UsageError
from beholder.core.results import Row
from beholder.core.types import Fields
from beholder.datasets.dataset import Dataset
from beholder.glasshouse.world import BRANCH_OCCUPATIONS
from beholder.glasshouse.world import prompts as drawn_prompts
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import Task
from beholder.studies.apa.printed import EIGHT, POOLS
from beholder.studies.apa.prompts import CATEGORIES, NAME_PROMPT, OCCUPATIONS, association_prompts
from beholder.studies.public_figures import study as figures
from beholder.studies.public_figures.declared import Asker, Wordings, read_wordings
from beholder.studies.public_figures.identity import IDENTITY
from beholder.studies.public_figures.measures import ASSOCIATION
from beholder.studies.public_figures.published import scale_rows
from beholder.studies.study import Asks, Matrices, Measure, MeasureOptions, Measures, Option, Plans, Study, Tells


def apa_tasks(dataset: Dataset, options: int = len(OCCUPATIONS), wordings: Wordings | None = None) -> list[Task]:
    """Two tasks for each branch: association prompts and names."""
    if dataset.name == "glasshouse":
        return drawn_tasks(dataset)
    asker = Asker("apa", CATEGORIES, NAME_PROMPT, wordings or {})
    return figures.figure_tasks(asker, partial(association_prompts, options=options), dataset)


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
        of_nine = row.subset == "actors" or row.subset in BRANCH_OCCUPATIONS
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
    figures.TEMPLATES,
)


def configured(study: Study, options: Fields) -> Study:
    """APA with as many occupations as the user asks for, and in the user's languages."""
    number = int(options.get("options", len(OCCUPATIONS)))
    if number not in (len(OCCUPATIONS), len(OCCUPATIONS) - 1):
        raise UsageError(f"--options {number} is not a choice of APA's occupations: 9 (all), or 8 (without actress).")
    return apa_study(number, read_wordings(options["templates"]) if "templates" in options else None)


def apa_study(options: int = len(OCCUPATIONS), wordings: Wordings | None = None) -> Study:
    """APA with nine occupations as in the released prompts, or with eight of them."""
    pools = {**POOLS, **{branch: (branch,) for branch in BRANCH_OCCUPATIONS}}
    measures = figures.public_figure_measures("apa", pools)
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
        asks=Asks(
            datasets=("apa", "glasshouse"),
            tasks=partial(apa_tasks, options=options, wordings=wordings),
            limit_by="branch",
            belief=True,
        ),
        measures=Measures(
            functions=measures,
            metrics=figures.public_figure_metrics("apa"),
            across=scale_rows,
            compares=("gender",),
            within=("branch",),
        ),
        tells=Tells(
            chapter="beholder.studies.apa.chapter:CHAPTER",
            choices=(
                "Accuracy: the mean softmax of the figures, and beside it the first choice of § 3; a tie is no hit",
                "Who is politician: house, senate and mayors together, compared within each",
                f"Occupations that are offered: {len(OCCUPATIONS)}, as in the released prompts; --options 8 leaves out "
                "actress",
                "A person with two photographs: either is right for the name",
            ),
            compat="the released scripts: means in float16",
            limitations=(
                "Means of softmax probabilities depend on the prompts offered together and on the model's logit scale.",
                "Intervals show how far numbers could move with photographs of other people, not with other prompts.",
            ),
            of_photographs=(
                "APA's people are US public figures. What holds for them need not hold for others.",
                "The source's tables know two genders. People of other genders are not represented.",
            ),
        ),
        plans=Plans(
            plan=partial(figures.ratio_plan, "apa", pools),
            trials="beholder.studies.public_figures.study:APA_TRIALS",
            printed="beholder.studies.apa.printed:PRINTED",
        ),
        default="always",
        demo=True,
        options=OPTIONS,
        configure=configured,
    )


APA = apa_study()
