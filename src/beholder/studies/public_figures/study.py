"""What APA and P-FI share: their tasks and measures, the plan (which ratio b can be distinguished from 1), trials."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from beholder.comparison.family import NORMAL
from beholder.comparison.groups import people_of, strata_of
from beholder.comparison.power import Design, Scores, detectable, people_needed
from beholder.core.errors import UsageError
from beholder.core.results import PLAIN, Row
from beholder.datasets.apa import BRANCHES
from beholder.datasets.dataset import Dataset
from beholder.prompts.prompt_set import PromptSet, correct_for, prompt_set
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.studies.apa.prompts import identity_prompts
from beholder.studies.public_figures import measures
from beholder.studies.public_figures.declared import Asker, declared, declares
from beholder.studies.public_figures.identity import IDENTITY, identity_rows
from beholder.studies.rows import SEED, PlanOptions, of_run, plan_rows, refusal_metric, refusal_rows
from beholder.studies.study import Matrices, Measure, MeasureOptions, Metric, Option, read_metrics
from beholder.studies.worlds import GENDER_ONLY, SOURCE_ONLY, UNFAIR, Trial, World

TEMPLATES = Option(
    "templates",
    "With apa or pfi and people of your own: how they are asked in other languages (a table with the columns language, "
    "level, text, in which {} is the word or name, and options).",
)


def figure_tasks(asker: Asker, association: Callable[[str], PromptSet], dataset: Dataset) -> list[Task]:
    """For every branch of the data set: association prompts, then the names of its people."""
    if declares(dataset):
        return asker.tasks(dataset)
    if asker.wordings:
        raise UsageError(f"--templates goes with people of your own (--people FILE), not with {dataset.name}.")
    tasks, prefix, name_prompt = [], asker.prefix, asker.name_prompt
    for branch in BRANCHES:
        part = dataset.where(branch=branch)
        if len(part):
            names = identity_prompts(f"{prefix}/{branch}/names", name_prompt, part.table["name"].to_list())
            tasks.append(figure_task(measures.ASSOCIATION, branch, part, association(branch)))
            tasks.append(figure_task(IDENTITY, branch, part, names))
    return tasks


def figure_task(kind: str, branch: str, dataset: Dataset, prompts: PromptSet) -> Task:
    """One task of one branch."""
    return Task(f"{branch}/{kind}", dataset, prompts, kind=kind, part=branch)


def public_figure_measures(prefix: str, pools: measures.Pools) -> tuple[Measure, ...]:
    """Measures whose metric names begin with `prefix`; `pools` names the branches pooled for bias."""
    return (
        partial(measures.association_rows, prefix),
        partial(measures.ratio_rows, prefix, pools),
        partial(measures.occupation_gap_rows, prefix, pools),
        partial(identity_rows, prefix),
        partial(_refusals, prefix),
    )


def _refusals(prefix: str, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """About whom the model refuses to answer, branch by branch."""
    yield from refusal_rows(prefix, {name: (matrix, "gender") for name, matrix in matrices.items()}, options)


def public_figure_metrics(prefix: str) -> tuple[Metric, ...]:
    """What each metric means."""
    return (*read_metrics(Path(__file__).with_name("metrics.csv"), f"{prefix}."), refusal_metric(prefix))


MEAN, DEVIATION = 0.6, 0.34  # of belief in the right occupation, between people: assumed


class Belief(Scores):
    """Belief in the right occupation: the larger group has the mean, the smaller one less, but not less than 0."""

    def levels(self, size: float) -> tuple[float, float]:
        """The means of both groups."""
        return self.most, self.most - size

    @property
    def most(self) -> float:
        """The largest difference there can be."""
        return self.mean or 0.0


def ratio_plan(prefix: str, pools: measures.Pools, dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """The smallest detectable effect of every pool, and with `--effect` how many people it takes."""
    if options.effect is not None and not 0 < options.effect < 1:
        raise UsageError("For a ratio, --effect is 1 − b: a number between 0 and 1.")
    if dataset.name != "glasshouse" and declares(dataset):
        dataset = declared(dataset)
        pools = measures.declared_pools([dataset.table])
    table, designs, sources = dataset.table, {}, {}
    people, everyone = people_of(table, options.person), measures.women_and_men(table)
    for name, branches in pools.items():
        inside = table["branch"].is_in(branches).fill_null(False).to_numpy()
        groups = everyone._replace(codes=np.where(inside, everyone.codes, -1))
        if measures.has_both(groups):
            scores, sources[name] = _belief(name, options)
            strata = strata_of(table, groups, ("branch",), people)
            columns = len(measures.PLAYERS) if name == "actors" else 1  # the published words, and either word
            designs[name] = Design(groups, strata, columns, scores=scores)
    sizes = detectable(list(designs.values()), people, np.random.default_rng(SEED), power=options.power)
    for (pool, design), size in zip(designs.items(), sizes, strict=True):
        women, men = design.groups.sizes(people)
        less, n = size / (design.scores.mean or 1.0), int((design.groups.codes >= 0).sum())
        answer = f"b below {1 - less:.2f}" if np.isfinite(less) else "no b is low enough"
        note = f"{women} women, {men} men: {answer}; {len(designs)} pools are one family; {sources[pool]}"
        row = Row("plan.detectable", less, n, "1 − b", subset=f"{prefix}.bias_ratio", concept=pool, note=note)
        known = options.effect is not None and np.isfinite(less)
        yield from plan_rows(row, n * people_needed(less, options.effect or 1.0) if known else None, options)


def _belief(pool: str, options: PlanOptions) -> tuple[Belief, str]:
    """From men's belief in an earlier run, and the width of its interval; else as assumed."""
    right = measures.correct_occupation(pool, "man")
    rows = of_run(options, "occupation_probability", subset=pool, group="man", concept=right)
    if rows is None or not (rows := rows.filter(PLAIN).drop_nulls(["value", "low", "high"])).height:
        return Belief(DEVIATION, MEAN), f"belief assumed to have the mean {MEAN:g} and the deviation {DEVIATION:g}"
    row = rows.row(0, named=True)
    deviation = (row["high"] - row["low"]) / (2 * NORMAL) * np.sqrt(row["n"])
    mean = float(np.clip(row["value"], 0.01, 0.99))
    return Belief(min(float(deviation), 0.95 * np.sqrt(mean * (1 - mean))), mean), "mean and spread from the run"


# Trials: two branches of one pool, their occupations, a specialty that differs, and names

TRIED_BRANCHES = {"a": "house", "b": "senate"}
OCCUPATIONS = ("politician", "receptionist", "teacher", "scientist", "assistant")
SPORTS = {"x": "Tennis", "y": "Golf"}  # what the source stands for: the right answer at the specialty level
RULES: dict[str, dict[str, str | None]] = {
    "category": {"person": "*", "dog": None},
    "occupation": {word: "*" if word == "politician" else None for word in OCCUPATIONS},
    "specialty": {sport: correct_for(sport=sport) for sport in SPORTS.values()},
}
ROWS = [(level, word, rule) for level, rules in RULES.items() for word, rule in rules.items()]
PROMPTS = prompt_set(
    "trials", [{"text": word, "level": level, "concept": word, "correct_for": rule} for level, word, rule in ROWS]
).table
NAMES = 30  # so many people of each branch are asked for by name


def measured_world(prefix: str, world: World, options: MeasureOptions) -> Iterator[Row]:
    """The study's own rows of a world."""
    table = world.table.with_columns(pl.col("branch").replace(TRIED_BRANCHES), name=pl.col("person"))
    table = table.with_columns(sport=pl.col("source").replace(SPORTS))
    matrices = {}
    for branch in TRIED_BRANCHES.values():
        mine = (table["branch"] == branch).to_numpy()
        images, cells, count = table.filter(mine), world.scores[mine], PROMPTS.height
        names = images["name"].unique(maintain_order=True)[:NAMES].to_list()
        known = images["name"].is_in(names).to_numpy()
        asked = identity_prompts("names", "{}", names).table
        faces = cells[known, count : count + len(names)]
        for kind, shown, prompts, scores in (
            (measures.ASSOCIATION, images, PROMPTS, cells[:, :count]),
            (IDENTITY, images.filter(known), asked, faces),
        ):
            name = f"{branch}/{kind}"
            matrices[name] = ScoreMatrix(name, shown, prompts, ("score",), scores[:, :, None], kind=kind, part=branch)
    for measure in public_figure_measures(prefix, {"politicians": tuple(TRIED_BRANCHES.values())}):
        yield from measure(matrices, options)


def trials(prefix: str) -> Trial:
    """Gender only: all that compares women and men. Source only: the specialty, which the source decides."""
    of_gender = (f"{prefix}.bias", f"{prefix}.branch", f"{prefix}.occupation", f"{prefix}.refusal")
    return Trial(
        prompts=PROMPTS.height + NAMES,
        measure=partial(measured_world, prefix),
        true={GENDER_ONLY: of_gender, UNFAIR: of_gender, SOURCE_ONLY: (f"{prefix}.association",)},
        found=(f"{prefix}.bias_ratio", f"{prefix}.occupation_gap"),
    )


APA_TRIALS, PFI_TRIALS = trials("apa"), trials("pfi")
