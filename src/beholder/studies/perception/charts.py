"""Perception's figures, as in the study and beyond: what moves judgements, for whom, and what else may."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chart_parts import Rows
from beholder.chapter.figure import Figure, sentence
from beholder.chapter.numbers import Result
from beholder.studies.gras.groups import ALPHA
from beholder.studies.perception import chart_parts as marks
from beholder.studies.perception import phrases as said
from beholder.studies.perception import queries as reading
from beholder.studies.perception.curve_charts import curve_figures
from beholder.studies.perception.scores import EVERYONE

MOST_MODELS = 2
"""Figures with a mark for every group and level are drawn for so many models."""


def perception_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure, model by model; the name tells them apart where there are several."""
    several, few = part["model"].n_unique() > 1, part["model"].n_unique() <= MOST_MODELS
    for number, (model, mine) in enumerate(reading.models(part), 1):
        for figure in _figures(mine, few=few):
            title = sentence(f"{model}, " if several else "", figure.title)
            yield figure._replace(name=f"{figure.name}-{number}" if several else figure.name, title=title)


def _figures(mine: pl.DataFrame, *, few: bool) -> Iterator[Figure]:
    yield from _summary(mine)
    yield from _effects(mine)
    yield from _induced(mine)
    yield from _variance(mine)
    yield from _ratings(mine)
    if few:
        yield from curve_figures(mine)


# Summary


def _summary(mine: pl.DataFrame) -> Iterator[Figure]:
    """The eight dimensions × groups, each group less everyone."""
    subset = reading.crossed(mine)
    table = reading.rows(mine, "delta_cosine")
    everyone = {row["concept"]: row["value"] for row in table.filter(pl.col("subset") == EVERYONE).to_dicts()}
    rows = [_less(row, everyone[row["concept"]]) for row in table.filter(pl.col("subset") == subset).to_dicts()]
    if subset == EVERYONE or not rows:
        return
    yield Figure(
        "groups",
        _farthest(mine, rows, subset),
        f"Δ of each group less Δ of everyone, {reading.printed_unit(mine)}, with 95 % intervals of the group. "
        "Line: as everyone. A click on the legend brings a group out.",
        marks.group_dots(rows, f"off everyone, {reading.printed_unit(mine)}"),
        "judgements",
        wide=True,
    )


def _farthest(mine: pl.DataFrame, rows: Rows, subset: str) -> str:
    """Who lies farthest off, where any difference between these groups is shown."""
    gaps = reading.rows(mine, "gap").filter(pl.col("subset") == subset).to_dicts()
    if not any(reading.shown(row) for row in gaps):
        return "no difference between the groups is shown"
    far = max(rows, key=lambda row: abs(row["value"]))
    off = f"{far['value']:+.2f}".replace("-", said.MINUS)
    return f"{far['group']} lies farthest from everyone, at {far['dimension']} ({off})"


def _less(row: Result, centre: float) -> Result:
    scale = said.factor(row)
    moved = {
        key: None if row[key] is None else round(scale * (row[key] - centre), 4) for key in ("value", "low", "high")
    }
    whose = said.group(row["group"], row["subset"])
    return {"dimension": said.dimension(row["concept"]), "group": whose, "n": row["n"], **moved}


# Effects


def _effects(mine: pl.DataFrame) -> Iterator[Figure]:
    table = reading.rows(mine, "causal_effect").to_dicts()
    if not table:
        return
    rows = [
        {
            "contrast": said.change(row),
            "dimension": said.dimension(row["concept"]),
            "shown": int(reading.shown(row)),
            "p_value": row["p_value"],
            **said.printed(row),
        }
        for row in table
    ]
    count = sum(row["shown"] for row in rows)
    yield Figure(
        "effects",
        f"{count} of {len(rows)} effects of one attribute alone are shown",
        f"Average change of Δ when one attribute is changed and all else stays, {reading.printed_unit(mine)}; "
        "intervals resample identities. Faint: not shown after correction.",
        marks.effect_map(rows, reading.printed_unit(mine)),
        "effects",
        wide=True,
    )


def _induced(mine: pl.DataFrame) -> Iterator[Figure]:
    found = reading.induced(mine)
    if not found:
        return
    rows = []
    for row in found:
        low, lower, upper, high = (None if q is None else round(said.factor(row) * q, 4) for q in row["box"])
        kind = "protected" if row["subset"] in reading.PROTECTED else "not protected"
        value = round(said.factor(row) * row["value"], 4)
        box = {"low": low, "lower": lower, "value": value, "upper": upper, "high": high, "n": row["n"]}
        rows.append({"attribute": said.attribute(row["subset"]), "kind": kind, **box})
    yield Figure(
        "induced-variation",
        _widest(mine, found),
        f"|Δ₁ − Δ₂| over pairs that differ in one attribute alone, {reading.printed_unit(mine)}, all dimensions. "
        "Tick: median; box: middle half; line: 5 to 95 %. Noise alone gives more than 0: read the effects beside it.",
        marks.boxes(rows, f"absolute difference, {reading.printed_unit(mine)}"),
        "effects",
    )


def _widest(mine: pl.DataFrame, found: Rows) -> str:
    """Which attribute makes the widest differences, where the rank-sum test tells it from the narrowest."""
    first, last = found[0]["subset"], found[-1]["subset"]
    tests = reading.rows(mine, "induced_variation_test").filter(
        pl.col("group").is_in([f"{first} over {last}", f"{last} over {first}"])
    )
    p_values = tests["p_value"].drop_nulls()
    if not len(p_values) or p_values[0] > ALPHA:
        return "no attribute is shown to make wider differences than another"
    return f"{said.attribute(first)} makes the widest differences, {said.attribute(last)} the narrowest"


def _variance(mine: pl.DataFrame) -> Iterator[Figure]:
    for (block,), table in reading.rows(mine, "variance_share").group_by(["template"], maintain_order=True):
        names = list(dict.fromkeys(table["subset"]))
        rows = [
            {
                "dimension": said.dimension(row["concept"]),
                "attribute": said.attribute(row["subset"]),
                "place": names.index(row["subset"]),
                "value": round(100 * max(row["value"], 0.0), 2),
            }
            for row in table.to_dicts()
        ]
        known = table.filter(pl.col("subset") != "rest")
        top = (
            known.group_by("subset", maintain_order=True)
            .agg(pl.col("value").mean())
            .sort("value", descending=True)
            .row(0)
        )
        where = f" where {said.attribute(str(block))} is varied" if block else ""
        yield Figure(
            f"variance{f'-{block}' if block else ''}",
            f"{said.attribute(top[0])} carries {100 * top[1]:.0f} % of the spread on average{where}",
            "Share of the spread of Δ that goes with each attribute, less what chance gives; rest: interactions and "
            "what no attribute explains.",
            marks.stacked(rows),
            "effects",
        )


# Ratings


def _ratings(mine: pl.DataFrame) -> Iterator[Figure]:
    """How far the model follows people trait by trait, and for which groups it departs from them."""
    found = reading.rows(mine, "rating_r").sort("value", descending=True).to_dicts()
    if not found:
        return
    kind = found[0]["subset"]
    shown = sum(reading.shown(row) and row["value"] > 0 for row in found)
    yield Figure(
        "ratings",
        f"{shown} of {len(found)} traits order {kind}s as people do",
        f"Correlation of people's mean ratings with the model's Δ over {kind}s, with 95 % intervals where {kind}s are "
        "independent of each other; 1: the same order, 0: none. Counted: above 0 after correction over traits.",
        marks.group_dots([_rating(row, kind=f"{kind}s") for row in found], "correlation with people's ratings"),
        "ratings",
    )
    departures = reading.rows(mine, "rating_departure").to_dicts()
    if departures:
        far = max(departures, key=lambda row: abs(row["value"]))
        whose = f"{said.group(far['group'])} at {said.dimension(far['concept'])}"
        way = "above" if far["value"] > 0 else "below"
        yield Figure(
            "rating-departures",
            f"farthest from people: {whose}, {abs(far['value']):.2f} standard deviations {way}",
            "Model less people's ratings, each in standard deviations of the trait; bars: 95 % intervals over images. "
            "Line: as people rate. Groups of fewer than five images are left out.",
            marks.group_dots([_rating(row) for row in departures], "standard deviations above people's ratings"),
            "ratings",
            wide=True,
        )


def _rating(row: Result, kind: str | None = None) -> Result:
    numbers = {key: None if row[key] is None else round(row[key], 4) for key in ("value", "low", "high")}
    whose = kind or said.group(row["group"])
    return {"dimension": said.dimension(row["concept"]), "group": whose, "n": row["n"], **numbers}
