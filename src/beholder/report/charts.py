"""Charts: the results as pictures, interactive in the page and static for a paper.

Every chart is one view whose width follows its container, so that it fits a phone. Intervals are always drawn;
landmarks (chance, 1) and published neighbours stand beside the values, never in their place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import altair as alt
import polars as pl

from beholder.chapter import phrases as words
from beholder.chapter.chart_parts import (
    Rows,
    bars,
    chance_ticks,
    dots,
    group_name,
    height,
    lanes,
    percent_axis,
    rule_at,
    value_of,
)
from beholder.chapter.figure import Figure, sentence, whose
from beholder.chapter.numbers import excludes, percent, span
from beholder.chapter.table import rows_of
from beholder.core.files import write_whole
from beholder.report.tables import IDENTITY, level_of
from beholder.run import Run
from beholder.studies.disparity.charts import disparity_figures
from beholder.studies.exposure.charts import exposure_figures
from beholder.studies.gras.charts import gras_figures
from beholder.studies.perception.charts import perception_figures
from beholder.studies.public_figures.published_rank import standings


def figures(results: pl.DataFrame) -> list[Figure]:
    """Every figure of one benchmark's results."""
    name = str(results["benchmark"][0]) if results.height else ""
    return [figure for make in MAKERS.get(name, ()) for figure in make(results)]


def save_charts(run: Run, folder: Path) -> list[Path]:
    """Every chart as `<benchmark>-<dataset>-<name>.svg` and `.png`, for a paper; returns the paths."""
    import vl_convert

    paths = []
    for (benchmark, dataset), part in run.results.group_by(["benchmark", "dataset"], maintain_order=True):
        for figure in figures(part):
            stem, spec = re.sub(r"[^\w.-]+", "-", f"{benchmark}-{dataset}-{figure.name}"), figure.paper()
            for ending, data in (
                ("svg", vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).encode()),
                ("png", vl_convert.vegalite_to_png(spec, scale=3, allowed_base_urls=[])),
            ):
                paths.append(folder / f"{stem}.{ending}")
                write_whole(paths[-1], data)
    return paths


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


# Occupations, and own prompts


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


def gap_title(rows: Rows) -> str:
    """Where two groups lie farthest apart, of the places where their intervals do not meet."""
    ordered = sorted(rows, key=value_of)
    by_concept = {row["concept"]: [r for r in ordered if r["concept"] == row["concept"]] for row in rows}
    gaps = {concept: (mine[0], mine[-1]) for concept, mine in by_concept.items() if len(mine) > 1}
    apart = {c: pair for c, pair in gaps.items() if (pair[0]["high"] or 1) < (pair[1]["low"] or 0)}
    if not apart:
        return "the intervals overlap everywhere" if gaps else "one group only"
    concept, (least, most) = max(apart.items(), key=lambda item: item[1][1]["value"] - item[1][0]["value"])
    said = " and ".join(f"{group_name(row)} {percent(row['value'])}" for row in (most, least))
    return f"widest gap at “{concept}”, {said}"


def custom_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Own prompts by group, a chart a model, level and attribute."""
    rows = [row for row in rows_of(results, "probability") if row["benchmark"] == "custom" and row["value"] is not None]
    keys = dict.fromkeys((row["model"], level_of(row), row["subset"]) for row in rows)
    attributes = {subset for _, _, subset in keys if subset}
    for number, (model, level, subset) in enumerate(key for key in keys if key[2] or not attributes):
        mine = [row for row in rows if (row["model"], level_of(row), row["subset"]) == (model, level, subset)]
        seen = gap_title(mine) if subset else f"most to “{max(mine, key=value_of)['concept']}”"
        yield Figure(
            f"prompts-{number + 1}",
            sentence(whose(rows, model), f"{level or 'prompts'}{f' by {subset}' if subset else ''}: {seen}"),
            "Mean share of belief among the prompts of the level, with 95 % intervals.",
            dots(mine),
            "prompts",
        )


# Small things


def _others(results: pl.DataFrame, what: str) -> Rows:
    """Published neighbours by subset, each once."""
    found = {s.row["subset"]: s.others for s in standings(results) if s.what == what}
    return [
        {"subset": subset, "model": model, "value": value}
        for subset, others in found.items()
        for model, value in others.iter_rows()
    ]


Maker = Callable[[pl.DataFrame], Iterator[Figure]]
PUBLIC_FIGURES: tuple[Maker, ...] = (association_figures, ratio_figures, occupation_figures, identity_figures)
MAKERS: dict[str, tuple[Maker, ...]] = {
    "apa": PUBLIC_FIGURES,
    "pfi": PUBLIC_FIGURES,
    "gras": (gras_figures,),
    "disparity": (disparity_figures,),
    "perception": (perception_figures,),
    "custom": (custom_figures,),
    "exposure": (exposure_figures,),
}
"""What a benchmark brings; any other has tables only."""
