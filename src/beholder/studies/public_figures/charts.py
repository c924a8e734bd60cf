"""Charts of public figures. Intervals are always drawn; chance and published models stand beside the values."""

from __future__ import annotations

import math
from collections.abc import Iterator

import altair as alt
import polars as pl

from beholder.chapter import phrases as words
from beholder.chapter.chart_parts import Rows, bars, chance_ticks, dots, gap_title, height, lanes, percent_axis, rule_at
from beholder.chapter.figure import Figure, sentence, whose
from beholder.chapter.numbers import excludes, span
from beholder.chapter.table import rows_of
from beholder.studies.public_figures.published_rank import standings
from beholder.studies.public_figures.tables import IDENTITY


def public_figure_charts(results: pl.DataFrame) -> Iterator[Figure]:
    """Every chart, in the order of the topics."""
    for make in (association_figures, ratio_figures, occupation_figures, identity_figures):
        yield from make(results)


# Association


def association_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Three levels by branch, a chart a model."""
    rows = [row for row in rows_of(results, "association") if row["benchmark"] != "custom"]
    for number, model in enumerate(dict.fromkeys(row["model"] for row in rows)):
        mine = [row for row in rows if row["model"] == model and row["value"] is not None]
        if mine:
            yield Figure(
                f"association-{number + 1}",
                sentence(whose(rows, model), f"belief on the right {association_title(mine)}"),
                "Mean share of belief on the right prompt. Whiskers: 95 % intervals. Dashes: chance.",
                bars(mine),
                "association",
                wide=len({row["model"] for row in rows}) == 1,
            )


def association_title(rows: Rows) -> str:
    """What the bars show."""
    ranges = {level: [row["value"] for row in rows if row["concept"] == level] for level in words.LEVELS}
    return ", ".join(f"{level} {span(values)}" for level, values in ranges.items() if values)


# Gender ratio


def ratio_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Forest plot of b, all models and pools in one view, published neighbours in a lane of their own."""
    rows = [row for row in rows_of(results, "bias_ratio") if row["value"]]
    if not rows:
        return
    others = _others(results, "bias_ratio")
    bounds = [bound for row in (*rows, *others) for key in ("value", "low", "high") if (bound := row.get(key))]
    domain = [max(0.01, min(0.5, 0.95 * min(bounds))), min(100.0, max(2.0, 1.05 * max(bounds)))]
    x = alt.X(
        "value:Q",
        title="women ÷ men (logarithmic)",
        scale=alt.Scale(type="log", domain=domain, clamp=True, nice=False),
        axis=alt.Axis(values=[tick for tick in RATIO_TICKS if domain[0] <= tick <= domain[1]], format="~g"),
    )
    yield Figure(
        "women-over-men",
        ratio_title(rows),
        "Probability of the right occupation, women over men, with 95 % intervals. Line: 1, alike; left of it women "
        "get less." + (" Small marks: published models." if others else ""),
        alt.layer(*lanes(rows, others, x), rule_at(1.0)).properties(height=height(rows, others)),
        "gender",
        wide=True,
    )


RATIO_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100]


def ratio_title(rows: Rows) -> str:
    """What the forest shows."""
    away = [row for row in rows if excludes(row, 1.0)]
    if not away:
        return "Women over men: no interval excludes 1"
    if len({row["model"] for row in rows}) > 1:
        return f"Women over men: {len(away)} of {len(rows)} intervals exclude 1"
    return f"Women over men: the interval excludes 1 for {words.listed([row['subset'] for row in away])}"


# Identity


def identity_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Both directions, all models and branches in one view each."""
    for what, given, sought in zip(IDENTITY, ("an image", "a name"), ("name", "image"), strict=True):
        rows = [row for row in rows_of(results, what) if row["value"] is not None]
        if not rows:
            continue
        others = _others(results, what)
        x = alt.X(
            "value:Q",
            title=f"belief on the right {sought}",
            scale=alt.Scale(domain=[0, farthest([*rows, *others])]),
            axis=percent_axis(),
        )
        yield Figure(
            what.replace("_", "-"),
            f"Given {given}: {span([row['value'] for row in rows])} on the right {sought}",
            "With 95 % intervals. Dashes: chance." + (" Small marks: published models." if others else ""),
            alt.layer(*lanes(rows, others, x), chance_ticks(rows)).properties(height=height(rows, others)),
            "identity",
        )


def farthest(rows: Rows) -> float:
    """Where an axis of probabilities ends: at 100 %, or sooner where all lies far below.

    >>> farthest([{"value": 0.05, "high": 0.228}]), farthest([{"value": 0.7}])
    (0.3, 1.0)
    """
    most = max(bound for row in rows for key in ("value", "high") if (bound := row.get(key)) is not None)
    return 1.0 if most > FAR else math.ceil(10 * most + 0.5) / 10


FAR = 0.6
"""Up to here an axis that ends sooner shows more; beyond, the whole belief is the natural frame."""


# Occupations


def occupation_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """What women and men are called, a chart a model and pool."""
    rows = [row for row in rows_of(results, "occupation_probability") if row["value"] is not None]
    for number, (model, pool) in enumerate(dict.fromkeys((row["model"], row["subset"]) for row in rows)):
        mine = [row for row in rows if (row["model"], row["subset"]) == (model, pool)]
        yield Figure(
            f"occupations-{number + 1}-{pool}",
            sentence(whose(rows, model), f"{pool}: {gap_title(mine)}"),
            "Mean share of belief on each occupation, with 95 % intervals.",
            dots(mine),
            "gender",
        )


def _others(results: pl.DataFrame, what: str) -> Rows:
    """Published neighbours by subset, each once."""
    found = {s.row["subset"]: s.others for s in standings(results) if s.what == what}
    return [
        {"subset": subset, "model": model, "value": value}
        for subset, others in found.items()
        for model, value in others.iter_rows()
    ]
