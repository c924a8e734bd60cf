"""Perception's figures: what changes the judgements, for whom, and what else may explain them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chart_parts import Rows
from beholder.chapter.figure import Figure, sentence
from beholder.chapter.numbers import Result
from beholder.metrics.multiplicity import ALPHA
from beholder.studies.perception import chart_parts, phrases, queries
from beholder.studies.perception.curve_charts import curve_figures
from beholder.studies.perception.design import REST
from beholder.studies.perception.scores import EVERYONE

MOST_MODELS = 2
"""Figures with a point for every group and level are drawn for at most so many models."""


def perception_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure of every model; with several models, the name has the model's number."""
    several, few = part["model"].n_unique() > 1, part["model"].n_unique() <= MOST_MODELS
    for number, (model, rows) in enumerate(queries.models(part), 1):
        for figure in _figures(rows, few=few):
            title = sentence(f"{model}, " if several else "", figure.title)
            yield figure._replace(name=f"{figure.name}-{number}" if several else figure.name, title=title)


def _figures(results: pl.DataFrame, *, few: bool) -> Iterator[Figure]:
    yield from _summary(results)
    yield from _effects(results)
    yield from _induced(results)
    yield from _variance(results)
    yield from _ratings(results)
    if few:
        yield from curve_figures(results)


# Summary


def _summary(results: pl.DataFrame) -> Iterator[Figure]:
    """Every dimension and group, each group less everyone."""
    subset = queries.finest(results)
    table = queries.rows(results, "delta_cosine")
    everyone = {row["concept"]: row["value"] for row in table.filter(pl.col("subset") == EVERYONE).to_dicts()}
    rows = [
        {**_named(row), **phrases.printed(row, everyone[row["concept"]])}
        for row in table.filter(pl.col("subset") == subset).to_dicts()
    ]
    if subset == EVERYONE or not rows:
        return
    yield Figure(
        "groups",
        _farthest(results, rows, subset),
        f"Δ of each group less Δ of everyone, {queries.printed_unit(results)}, with 95 % intervals of the group. "
        "Line: the same as everyone. Click a group in the legend to highlight it.",
        chart_parts.group_dots(rows, f"difference from everyone, {queries.printed_unit(results)}"),
        "judgements",
        wide=True,
    )


def _farthest(results: pl.DataFrame, rows: Rows, subset: str) -> str:
    """Which group is farthest from everyone, where any difference between these groups is shown."""
    gaps = queries.rows(results, "gap").filter(pl.col("subset") == subset).to_dicts()
    if not any(queries.shown(row) for row in gaps):
        return "no difference between the groups is shown"
    far = max(rows, key=lambda row: abs(row["value"]))
    return f"farthest from everyone: {far['group']}, in {far['dimension']} ({phrases.decimal(far['value'], '+.2f')})"


def _named(row: Result) -> Result:
    group = phrases.group(row["group"], row["subset"])
    return {"dimension": phrases.dimension(row["concept"]), "group": group, "n": row["n"]}


# Effects


def _effects(results: pl.DataFrame) -> Iterator[Figure]:
    table = queries.rows(results, "causal_effect").to_dicts()
    if not table:
        return
    rows = [
        {
            "contrast": phrases.change(row),
            "dimension": phrases.dimension(row["concept"]),
            "shown": int(queries.shown(row)),
            "p_value": row["p_value"],
            **phrases.printed(row),
        }
        for row in table
    ]
    count = sum(row["shown"] for row in rows)
    yield Figure(
        "effects",
        f"{count} of {len(rows)} effects of one attribute alone are shown",
        f"Average change of Δ when one attribute is changed and all else stays, {queries.printed_unit(results)}; "
        "intervals resample identities. Faint: not shown after correction.",
        chart_parts.effect_map(rows, queries.printed_unit(results)),
        "effects",
        wide=True,
    )


def _induced(results: pl.DataFrame) -> Iterator[Figure]:
    boxes = queries.induced(results)
    if not boxes:
        return
    rows = []
    for row in boxes:
        low, lower, upper, high = (None if q is None else round(phrases.factor(row) * q, 4) for q in row["box"])
        kind = "protected" if row["subset"] in queries.PROTECTED else "not protected"
        value = round(phrases.factor(row) * row["value"], 4)
        box = {"low": low, "lower": lower, "value": value, "upper": upper, "high": high, "n": row["n"]}
        rows.append({"attribute": phrases.attribute(row["subset"]), "kind": kind, **box})
    yield Figure(
        "induced-variation",
        _widest(results, boxes),
        f"|Δ₁ − Δ₂| over pairs that differ in one attribute alone, {queries.printed_unit(results)}, all dimensions. "
        "Tick: median; box: middle half; line: 5 to 95 %. Noise alone makes it more than 0: read it with the effects.",
        chart_parts.boxes(rows, f"absolute difference, {queries.printed_unit(results)}"),
        "effects",
    )


def _widest(results: pl.DataFrame, boxes: Rows) -> str:
    """Which attribute makes the widest differences, where the rank-sum test tells it from the narrowest."""
    first, last = boxes[0]["subset"], boxes[-1]["subset"]
    tests = queries.rows(results, "induced_variation_test").to_dicts()
    p_values = [row["p_value"] for row in tests if {row["group"], row["against"]} == {first, last}]
    if not p_values or p_values[0] is None or p_values[0] > ALPHA:
        return "no attribute is shown to make wider differences than another"
    return f"{phrases.attribute(first)} makes the widest differences, {phrases.attribute(last)} the narrowest"


def _variance(results: pl.DataFrame) -> Iterator[Figure]:
    blocks = queries.rows(results, "variance_share").group_by(["template"], maintain_order=True)
    for number, ((block,), table) in enumerate(blocks, 1):
        names = list(dict.fromkeys(table["subset"]))
        rows = [
            {
                "dimension": phrases.dimension(row["concept"]),
                "attribute": phrases.attribute(row["subset"]),
                "order": names.index(row["subset"]),
                "value": round(100 * max(row["value"], 0.0), 2),
            }
            for row in table.to_dicts()
        ]
        known = table.filter(pl.col("subset") != REST)
        top = (
            known.group_by("subset", maintain_order=True)
            .agg(pl.col("value").mean())
            .sort("value", descending=True)
            .row(0)
        )
        where = f" where {phrases.attribute(str(block))} is varied" if block else ""
        yield Figure(
            f"variance-{number}" if block else "variance",
            f"{phrases.attribute(top[0])} explains {100 * top[1]:.0f} % of the variance on average{where}",
            "Share of the variance of Δ that each attribute explains, less what chance gives; rest: interactions and "
            "what no attribute explains.",
            chart_parts.stacked(rows),
            "effects",
        )


# Ratings


def _ratings(results: pl.DataFrame) -> Iterator[Figure]:
    """How far the model agrees with people on each trait, and for which groups it departs from them."""
    rows = queries.rows(results, "rating_r").sort("value", descending=True).to_dicts()
    if not rows:
        return
    kind = rows[0]["subset"]
    shown = sum(queries.shown(row) and row["value"] > 0 for row in rows)
    yield Figure(
        "ratings",
        f"on {shown} of {len(rows)} traits the model orders {kind}s as people do",
        f"Correlation of people's mean ratings with the model's Δ over {kind}s, with 95 % intervals where {kind}s are "
        "independent of each other; 1: the same order, 0: none. Counted: above 0 after correction over traits.",
        chart_parts.group_dots([_rating(row, f"{kind}s") for row in rows], "correlation with people's ratings"),
        "ratings",
    )
    departures = queries.rows(results, "rating_departure").to_dicts()
    if departures:
        far = max(departures, key=lambda row: abs(row["value"]))
        grouping = queries.grouping_of(results)
        name = {row["group"]: phrases.group(row["group"], grouping.get(row["group"])) for row in departures}
        where = f"{name[far['group']]} on {phrases.dimension(far['concept'])}"
        way = "above" if far["value"] > 0 else "below"
        yield Figure(
            "rating-departures",
            f"farthest from people: {where}, {abs(far['value']):.2f} standard deviations {way}",
            "Model less people's ratings, each in standard deviations of the trait; bars: 95 % intervals over images. "
            "Line: as people rate. Groups of fewer than five images are left out.",
            chart_parts.group_dots(
                [_rating(row, name[row["group"]]) for row in departures], "standard deviations above people's ratings"
            ),
            "ratings",
            wide=True,
        )


def _rating(row: Result, group: str) -> Result:
    return {"dimension": phrases.dimension(row["concept"]), "group": group, "n": row["n"], **phrases.printed(row)}
