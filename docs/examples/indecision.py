"""Indecision: a whole study in one file. How evenly does belief spread over the occupations offered?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl
from scipy.special import digamma, entr

from beholder import STUDIES, MeasureOptions, Study
from beholder.chapter.chapter import Chapter, Question
from beholder.chapter.chart_parts import chart, percent_axis
from beholder.chapter.figure import Figure
from beholder.chapter.finding import Finding, finding, valued
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.metrics.association import softmax
from beholder.metrics.bootstrap import Resampler
from beholder.metrics.power import ALPHA, detectable_gap
from beholder.studies.planning import PlanOptions, describe_groups, group_sizes
from beholder.studies.printed import Printed, Source
from beholder.studies.rows import mean_row, people_shown
from beholder.studies.study import Matrices, Metric
from beholder.studies.trial import Experiment, Outcome, Trial, outcome

METRIC = "indecision.evenness"


def evenness(shares: Any) -> Any:
    """Entropy of each row over that of an even spread: 0 all on one option, 1 the same on all."""
    return entr(shares).sum(axis=1) / np.log(shares.shape[1])


# What is measured


def evenness_row(images: pl.DataFrame, shares: Any, options: MeasureOptions) -> Row:
    people = Resampler(people_shown(images), options.rng(), options.draws)
    return mean_row(METRIC, evenness(shares), people)._replace(unit="share")


def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """A row for each branch and gender; other sheets ask for names."""
    for matrix in matrices.values():
        if matrix.kind == "association" and "occupation" in matrix.prompts["level"]:
            part = matrix.level("occupation").complete_rows()
            genders = part.images["gender"]
            for gender in sorted(genders.drop_nulls().unique()):
                rows = part.rows((genders == gender).fill_null(False).to_numpy())
                row = evenness_row(rows.images, softmax(rows.logits), options)
                yield row._replace(subset=matrix.part, group=gender, concept="occupation")


# What the page shows


def findings(part: pl.DataFrame) -> Iterator[Finding]:
    rows = sorted(valued(part, "evenness"), key=lambda row: row["value"])
    if len(rows) > 1:
        least, most = rows[0], rows[-1]
        apart = None not in (least["high"], most["low"]) and least["high"] < most["low"]
        sentence = (
            f"Belief is spread most evenly for {most['subset']} labelled {most['group']} ({most['value']:.2f}) and "
            f"least evenly for {least['subset']} labelled {least['group']} ({least['value']:.2f}; 1 is even)."
        )
        headline = "The model is more torn about some people" if apart else "No difference in indecision is shown"
        yield finding(most, "torn", headline, sentence, shown=apart, more=[least])


def figures(part: pl.DataFrame) -> Iterator[Figure]:
    rows = valued(part, "evenness")
    if rows:
        values = [{key: row[key] for key in ("model", "subset", "group", "value")} for row in rows]
        bars = (
            chart(values)
            .mark_bar()
            .encode(
                y=alt.Y("subset:N", title=None),
                yOffset="group:N",
                color="group:N",
                x=alt.X(
                    "value:Q", title="share of an even spread", scale=alt.Scale(domain=[0, 1]), axis=percent_axis()
                ),
            )
        )
        low, high = (f"{pick(row['value'] for row in rows):.2f}" for pick in (min, max))
        title = f"Indecision lies between {low} and {high}"
        yield Figure("evenness", title, "1: the same on all occupations.", alt.layer(bars), "torn")


CHAPTER = Chapter(
    topics={"torn": "How torn the model is"},
    questions={"torn": Question("Is the model more torn about some people than about others?", "torn")},
    findings=findings,
    figures=figures,
)


# Planning, calibration, printed numbers


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    sizes = group_sizes(dataset.table, "gender")
    gap = detectable_gap(sizes, 0.2, alpha=ALPHA, power=options.power)
    row = Row("plan.detectable", gap, sum(sizes), "share", subset=METRIC, concept="gender")
    yield row._replace(note=f"{describe_groups(sizes)}; spread assumed: 0.2")


def draw(people: int, options: int, rng: np.random.Generator) -> Sequence[Outcome]:
    """A world in which belief is drawn evenly from all possible beliefs; the study's own code measures it."""
    shares, images = rng.dirichlet(np.ones(options), people), pl.DataFrame({"name": [str(i) for i in range(people)]})
    return [outcome(evenness_row(images, shares, MeasureOptions(draws=200, seed=int(rng.integers(2**31)))))]


def trials() -> Iterator[Experiment]:
    people, options = 100, 9
    truth = float((digamma(options + 1) - digamma(2)) / np.log(options))
    trial = Trial(METRIC, f"{people} people, {options} options", people, truth)
    yield Experiment("indecision", (trial,), lambda rng: draw(people, options, rng), share=0.2)


PRINTED = Printed(
    b"source,place,model,dataset,metric,subset,group,against,concept,template,printed,step,unit\n"
    b"table,Table 1,ViT-B/32,apa,indecision.evenness,actors,woman,,occupation,,0.5,0.01,share\n",
    sources=(Source("table", "A made-up paper (2026), Table 1", "evenness of one model"),),
)

STUDIES.add(
    "indecision",
    Study(
        name="indecision",
        title="Indecision: torn between occupations",
        question="How torn is the model between the occupations it is offered?",
        citation="our own",
        datasets=STUDIES["apa"].datasets,
        tasks=STUDIES["apa"].tasks,
        measures=(measure,),
        metrics=(Metric(METRIC, "torn", "share", "0: all belief on one occupation, 1: the same on all of them"),),
        subset_attribute="branch",
        limitations=("Evenness depends on the model's logit scale: compare groups within a model, not models.",),
        chapter="indecision:CHAPTER",
        plan="indecision:plan",
        trials="indecision:trials",
        printed="indecision:PRINTED",
    ),
)
