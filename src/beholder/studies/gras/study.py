"""GRAS: which traits does a model attribute to which groups? Differences in P(Yes), and the published bias score."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from scipy import special
from scipy.special import ndtr

from beholder.comparison.groups import group_by, people_of, strata_of
from beholder.comparison.power import Scores
from beholder.core.errors import MissingData, UsageError
from beholder.core.results import Row
from beholder.core.types import Fields
from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset
from beholder.datasets.faces import AIFACE, BALANCE, as_released
from beholder.datasets.glasshouse import FACES_NAME
from beholder.glasshouse.planted import PLANTED_TRAITS
from beholder.prompts.prompt_set import read_templates
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.studies.gras import prompts
from beholder.studies.gras.groups import ATTRIBUTES, DENIALS, QUESTIONS, STATEMENTS, WITHIN
from beholder.studies.gras.measures import gras_rows
from beholder.studies.printed import CELL, P_VALUE, Cell, Printed, Size, Sizes, sources_beside
from beholder.studies.rows import Planned, PlanOptions, detectable_rows, of_run, refusal_metric
from beholder.studies.study import Asks, MeasureOptions, Measures, Option, Plans, Study, Tells, read_metrics
from beholder.studies.worlds import GENDER_ONLY, Trial, World

TRAITS = 100
CHOICES = (
    "Blanks between the parts of the instruction (without --compat): one",
    "Tokens that count as yes (without --compat): all first tokens that say it",
    "“Exceeds the mean”: more than it, in every wording; at the mean is not above",
    "Models that match texts: a statement and its denial in place of each question",
)
ANSWERS = Scores(0.2, mean=0.5)  # of a trait's P(Yes), the mean over its wordings, between people: assumed


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """For every attribute, the smallest gap of one trait that can be found, all attributes as one family."""
    table, people, planned = dataset.table, people_of(dataset.table, options.person), []
    for attribute in ATTRIBUTES:
        if attribute in table.columns and table[attribute].drop_nulls().n_unique() > 1:
            groups = group_by(table, (attribute,))
            strata = strata_of(table, groups.large(people), WITHIN, people)
            scores, source, traits = _answers(attribute, options)
            own = Planned("gras.largest_gap", groups, scores, source, strata=strata, columns=traits, what="traits")
            planned.append(own)
    yield from detectable_rows(planned, people, options)


def _answers(attribute: str, options: PlanOptions) -> tuple[Scores, str, int]:
    """The spread of a trait's P(Yes), its source and the number of traits: the median of an earlier run, or assumed."""
    rows = of_run(options, "trait_mean", subset=attribute)
    if rows is None or not rows.height:
        source = f"spread of a trait's P(Yes) assumed to be {ANSWERS.deviation:g}, and its mean {ANSWERS.mean:g}"
        return ANSWERS, source, TRAITS
    n = rows["n"].to_numpy().astype(np.float64)
    spreads = (rows["high"] - rows["low"]).to_numpy() / 2 / special.stdtrit(n - 1, 0.975) * np.sqrt(n)
    scores = Scores(float(np.nanmedian(spreads)), float(np.clip(rows["value"].to_numpy().mean(), 0.01, 0.99)))
    return scores, "spread of a trait's P(Yes) from the run", rows.height


METRICS = (*read_metrics(Path(__file__).with_name("metrics.csv")), refusal_metric("gras"))

LIMITATIONS = (
    "With thousands of images nearly every difference is significant, so the published score saturates near 100. "
    "Read the gaps in points.",
    "The published score is not 0 without bias: five tests per trait at 0.05 count up to 22.6 of 100 traits as biased.",
    "A model that matches pictures with texts cannot be asked. Its numbers are shares of belief on a statement against "
    "its denial: our own variant, not the published measure.",
    "A named gap is the widest of many. Its interval and p allow for the choice among all traits, pairs of groups and "
    "attributes, and are wider for it; its value is too large on average.",
)


def _traits(dataset: Dataset, own: pl.DataFrame | None) -> pl.DataFrame | None:
    """The user's own traits; in the embedded world the planted traits and the controls; None for the study's."""
    if own is not None or dataset.name != FACES_NAME:
        return own
    return pl.DataFrame({"trait": [t.trait for t in PLANTED_TRAITS], "valence": [t.valence for t in PLANTED_TRAITS]})


def gras_study(traits: pl.DataFrame | None = None, templates: Mapping[str, str] = prompts.TEMPLATES) -> Study:
    """GRAS with the study's traits and wordings, or with the user's own."""

    def questions(dataset: Dataset) -> list[Task]:
        return [Task(QUESTIONS, dataset, prompts.gras_prompts(_traits(dataset, traits), templates))]

    def statements(dataset: Dataset) -> list[Task]:
        """For models that match pictures with texts: every statement, and every statement denied."""
        if templates is not prompts.TEMPLATES:
            raise UsageError(
                "Own wordings are questions, and a model that matches pictures with texts cannot be asked: it gets "
                "the study's wordings as statements. Leave out --templates, or choose a model that answers in words."
            )
        stated, denied = (prompts.gras_statements(_traits(dataset, traits), denied=no) for no in (False, True))
        return [Task(STATEMENTS, dataset, stated), Task(DENIALS, dataset, denied)]

    return Study(
        name="gras",
        title="GRAS: traits by gender, race, age and skin tone",
        short="GRAS",
        question="Which traits does the model see more in some groups than in others?",
        citation="Malik and others, Ask Me Again Differently: GRAS for Measuring Bias in Vision Language Models "
        "(EACL 2026)",
        asks=Asks(
            datasets=("gras", FACES_NAME),
            tasks=questions,
            statements=statements,
            instruction=prompts.YES_OR_NO,
            compat_instruction=prompts.released_instruction,
            compat_tasks=lambda dataset: questions(as_released(dataset)),
            limit_by="race",
            reference_models=("glasshouse/generative",),
        ),
        measures=Measures(functions=(gras_rows,), metrics=METRICS, compares=ATTRIBUTES, within=("source",)),
        tells=Tells(
            chapter="beholder.studies.gras.chapter:CHAPTER",
            choices=CHOICES,
            compat="the ten released scripts: their prompts, blanks and single answer token",
            limitations=LIMITATIONS,
            of_photographs=("Race, gender, age and skin tone are perceived: labels of annotators or of a classifier.",),
            intervals="from shuffles of people within the other labels, for all traits, pairs and attributes together",
        ),
        plans=Plans(plan=f"{__name__}:plan", trials=f"{__name__}:TRIALS", printed=f"{__name__}:PRINTED"),
        demo=True,
        options=OPTIONS,
        configure=configured,
    )


OPTIONS = (
    Option("traits", "With gras: own traits (a table with the columns trait and valence)."),
    Option(
        "templates",
        "With gras or disparity: own wordings (a table with the columns template and text, in which {} is the trait "
        "or the concept). With apa or pfi: how people of your own are asked in other languages (language, level, text "
        "and options).",
    ),
)


def configured(study: Study, options: Fields) -> Study:
    """GRAS with the user's own traits and wordings."""
    traits = prompts.read_traits(options["traits"]) if "traits" in options else None
    return gras_study(traits, read_templates(options["templates"]) if "templates" in options else prompts.TEMPLATES)


GRAS = gras_study()


# How GRAS is tried in worlds whose truth is known: gender and race, within each other and the image source. In
# designs of unbalanced strata both race and source are four to one by gender.

TRIED = pl.DataFrame({"trait": ["kind", "cold", "calm", "loud"], "valence": ["positive", "negative"] * 2})
WORDINGS = {"T1": "Is the person {}?", "T2": "Does the person look {}?"}


def _measured(world: World, options: MeasureOptions) -> Iterator[Row]:
    """The study's rows, with P(Yes) in place of scores."""
    table = world.table.select("image_id", "person", "gender", "source", race=_turned_race(world.table))
    asked = prompts.gras_prompts(TRIED, WORDINGS).table
    by_wording = world.scores.reshape(-1, len(WORDINGS), TRIED.height)  # both wordings of a trait point to one side
    p_yes = ndtr(by_wording.swapaxes(1, 2)).reshape(world.scores.shape)
    yield from gras_rows({QUESTIONS: ScoreMatrix(QUESTIONS, table, asked, ("score",), p_yes[:, :, None])}, options)


def _turned_race(table: pl.DataFrame) -> pl.Series:
    """Race, moved on by two people within each gender: unbalanced as before, but not the same label as the source."""
    turned = pl.col("race").gather((pl.int_range(pl.len()) + pl.len() - 2) % pl.len()).over("gender")
    people = table.unique("person", maintain_order=True).select("person", race=turned)
    return table.select("person").join(people, on="person", how="left", maintain_order="left")["race"]


BY_GENDER = ("largest_gap", "other_gap", "attribute", "gap", "valence_share", "valence")
OF_GENDER = (*(f"gras.{name}:gender" for name in BY_GENDER), "gras.score", "gras.intersection")
TRIALS = Trial(
    prompts=TRIED.height * len(WORDINGS),
    measure=_measured,
    true={GENDER_ONLY: OF_GENDER},
    found=("gras.largest_gap", "gras.attribute", "gras.gap", "gras.score"),
)


# The printed numbers: scores, the one cell of the valence table that deviates, and result files

RESULT_METRICS = {  # what the result files hold, by our metric; a p-value is named after its statistic
    "statistic": "gras.welch",
    "p_value": "gras.welch.p_value",
    "template_anova_p": "gras.template_anova.p_value",
    "template_friedman_p": "gras.template_friedman.p_value",
}
OUR_COLUMNS = {"attribute": "subset", "trait": "concept", "value": "printed"}


@cache
def gras_results() -> pl.DataFrame:
    """The authors' 20 wide files as one tidy table: `model, attribute, trait, template, what, group, value`."""
    table = pl.read_parquet(Path(__file__).with_name("result_files.parquet").read_bytes())
    return table.with_columns(pl.col(name).cast(pl.String) for name in table.columns if name != "value")


def result_cells() -> pl.DataFrame:
    """The 92,000 group means, statistics and p-values of the result files."""
    metric = pl.col("what").replace_strict(RESULT_METRICS, default=pl.concat_str(pl.lit("gras."), pl.col("what")))
    attribute = pl.col("attribute").fill_null("wordings").str.replace("_", " ")
    step = pl.col("value").abs().clip(lower_bound=1e-300) * 1e-12
    named = {"source": pl.lit("gras_results"), "dataset": pl.lit("gras"), "metric": metric, "step": step}
    absent = {name: pl.lit(None, CELL[name]) for name in ("against", "unit")}
    place = pl.concat_str(pl.lit("result file, "), attribute)
    cells = gras_results().with_columns(**named, place=place, **absent)
    return cells.rename(OUR_COLUMNS).select(list(CELL))


def _sizes(data: Path) -> Sizes:
    """Images of the lists at hand, and the fewest of any group of an attribute."""
    counted = dict[str, int]()
    with suppress(MissingData):
        table = load_dataset("gras", data).table
        parts = {"fairface": "FairFace images", AIFACE: "AI-Face images"}
        counted |= {"images": table.height, **{parts[name]: n for name, n in table["part"].value_counts().rows()}}
        for name in [each for each in BALANCE if each in table.columns]:
            counts = table[name].drop_nulls().value_counts()["count"].to_list()
            counted |= {f"of each {name}": min(counts)} if counts else {}
    return {("gras", what): Size(number) for what, number in counted.items()}


def _n_printed(row: Cell) -> int | None:
    """How many images, or traits, a printed number is over; None where it is not told."""
    kind, attribute = row["metric"].removeprefix("gras.").removesuffix(P_VALUE), row["subset"]
    if kind == "group_mean":
        return BALANCE.get(attribute)
    if kind in ("welch", "overall_mean"):
        return 1440 if attribute == "skin_tone" else 3570
    return {"bias_score": 100, "fairness_score": 100, "valence_share": 50}.get(kind)


def _of_others(row: Cell) -> str | None:
    whole = _n_printed(row)
    if whole is None or row["n"] is None or row["n"] == whole:
        return None
    return f"this run is over {row['n']:,}, the printed value over {whole:,}"


CELLS = Path(__file__).with_name("printed.csv")
GIVE_14 = "the authors' own group means give 14; every other cell of the printed table follows from them"
PRINTED = Printed(
    CELLS,
    sources_beside(CELLS),
    more=result_cells,
    sizes=_sizes,
    partial=_of_others,
    whole=lambda row: row["metric"].startswith(("gras.group_mean", "gras.welch")),
    impossible=lambda cell: GIVE_14 if cell["source"] == "gras_valence" else None,
)
