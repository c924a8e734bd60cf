"""Indecision: a whole study in one file. How evenly does belief spread over the occupations offered?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt
import numpy as np
import polars as pl
from scipy.special import entr

from beholder import Dataset
from beholder.ext import (
    DIFFERENCE, GENDER_ONLY, STUDIES, Asks, Chapter, Design, Figure, Finding, Matrices, MeasureOptions, Measures,
    Metric, PlanOptions, Plans, Printed, Question, Row, Source, Study, Tells, Trial, World, chart, compare_groups,
    comparison_at, deciding_rows, detectable, finding, group_by, judge, people_of, percent_axis, register_study,
    softmax, valued, verdict_of_rows,
)

METRIC, GAP = "indecision.evenness", "indecision.gap"


def evenness(shares: Any) -> Any:
    """Entropy of each row over that of an even spread: 0 all on one option, 1 the same on all."""
    return entr(shares).sum(axis=1) / np.log(shares.shape[1])


# What is measured


def measure(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Rows of every branch; other tasks ask for names."""
    parts = {}
    for matrix in matrices.values():
        if matrix.kind == "association" and "occupation" in matrix.prompts["level"]:
            part = matrix.level("occupation").complete_rows()
            parts[str(matrix.part)] = (part.images, softmax(part.logits))
    yield from rows_of(parts, options)


def rows_of(branches: Mapping[str, tuple[pl.DataFrame, Any]], options: MeasureOptions) -> Iterator[Row]:
    """Each gender's mean, and the gap between two genders; all branches are one family."""
    parts, rng, shuffles = [], options.rng(), options.shuffles
    for branch, (images, shares) in branches.items():
        values, groups = evenness(shares), group_by(images, ("gender",))
        part = compare_groups(values[:, None], groups, people_of(images), rng, shuffles=shuffles)
        parts.append((branch, groups, part))
        for code, gender in enumerate(groups.names):
            own = values[(groups.codes == code) & ~np.isnan(values)]
            if own.size:
                row = Row(METRIC, float(own.mean()), own.size, "share", concept="occupation")
                yield row._replace(subset=branch, group=gender)
    for (branch, groups, _), judged in zip(parts, judge([part for _, _, part in parts]), strict=True):
        for place, (first, second) in enumerate(groups.pairs()):
            compared = comparison_at(judged, (place, 0), groups.names[first], groups.names[second])
            row = Row(GAP, compared.value, len(groups.codes), "share", subset=branch)
            yield from compared.rows(row, least=-1.0, most=1.0)


# What the page shows


def findings(part: pl.DataFrame) -> Iterator[Finding]:
    rows = deciding_rows(part, "gap").sort(pl.col("value").abs(), descending=True).to_dicts()
    if rows:
        verdict, row = verdict_of_rows(rows), rows[0]
        more, less = (row["group"], row["against"])[:: 1 if row["value"] > 0 else -1]
        sentence = (
            f"Widest gap: {row['subset']}, {abs(row['value']):.2f} higher for {more} than for {less} (1 is even)."
        )
        found = "The model is more torn about some people" if verdict == DIFFERENCE else "No such difference was found"
        yield finding(row, "torn", found, sentence, verdict=verdict, more=rows[1:])


def figures(part: pl.DataFrame) -> Iterator[Figure]:
    rows = valued(part, "evenness")
    if rows:
        values = [{key: row[key] for key in ("model", "subset", "group", "value")} for row in rows]
        share = alt.X("value:Q", title="share of an even spread", scale=alt.Scale(domain=[0, 1]), axis=percent_axis())
        who = {"y": alt.Y("subset:N", title=None), "yOffset": "group:N", "color": "group:N"}
        low, high = (f"{pick(row['value'] for row in rows):.2f}" for pick in (min, max))
        title = f"Indecision lies between {low} and {high}"
        bars = alt.layer(chart(values).mark_bar().encode(x=share, **who))
        yield Figure("evenness", title, "1: the same on all occupations.", bars, "torn")


CHAPTER = Chapter(
    topics={"torn": "How torn the model is"},
    questions={"torn": Question("Is the model more torn about some people than about others?", "torn")},
    findings=findings,
    figures=figures,
)


# Planning, calibration, printed numbers


def plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    designs, people = [Design(group_by(dataset.table, ("gender",)))], people_of(dataset.table)
    (gap,) = detectable(designs, people, np.random.default_rng(0), power=options.power)
    row = Row("plan.detectable", 0.2 * gap, people.count, "share", subset=GAP, concept="gender")
    yield row._replace(note=f"{people.described()}; spread assumed: 0.2")


def measure_world(world: World, options: MeasureOptions) -> Iterator[Row]:
    """A made world with the study's own code: scores are logits of nine occupations."""
    of_branch = {name: (world.table["branch"] == name).to_numpy() for name in ("a", "b")}
    parts = {name: (world.table.filter(mine), softmax(world.scores[mine])) for name, mine in of_branch.items()}
    yield from rows_of(parts, options)


TRUE, DESIGNS = {GENDER_ONLY: ("indecision.",)}, ("30 + 30", "unbalanced strata")
TRIALS = Trial(9, measure_world, TRUE, DESIGNS, found=(GAP,))
PRINTED = Printed(
    b"source,place,model,dataset,metric,subset,group,against,concept,template,printed,step,unit\n"
    b"table,Table 1,ViT-B/32,apa,indecision.evenness,actors,woman,,occupation,,0.5,0.01,share\n",
    sources=(Source("table", "A made-up paper (2026), Table 1", "evenness of one model"),),
)

register_study(
    Study(
        name="indecision",
        title="Indecision: torn between occupations",
        question="How torn is the model between the occupations it is offered?",
        citation="our own",
        asks=Asks(datasets=STUDIES["apa"].asks.datasets, tasks=STUDIES["apa"].asks.tasks, limit_by="branch"),
        measures=Measures(
            functions=(measure,),
            metrics=(
                Metric(METRIC, "torn", "share", "0: all belief on one occupation, 1: the same on all of them"),
                Metric(GAP, "torn", "share", "0: both groups alike", landmark=0.0, paired=True),
            ),
        ),
        tells=Tells(
            chapter="indecision:CHAPTER",
            limitations=("Evenness depends on the model's logit scale: compare groups within a model, not models.",),
        ),
        plans=Plans(plan="indecision:plan", trials="indecision:TRIALS", printed="indecision:PRINTED"),
    )
)
