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
from beholder.studies.study import Asks, Matrices, Measure, MeasureOptions, Measures, Plans, Study, read_words


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


WORDS = read_words(__name__, occupations=len(OCCUPATIONS))


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
        **WORDS.about,
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
        tells=WORDS.tells,
        plans=Plans(
            plan=partial(figures.ratio_plan, "apa", pools),
            trials="beholder.studies.public_figures.study:APA_TRIALS",
            printed="beholder.studies.apa.printed:PRINTED",
        ),
        default="always",
        demo=True,
        options=(*WORDS.options, figures.TEMPLATES),
        configure=configured,
    )


APA = apa_study()
