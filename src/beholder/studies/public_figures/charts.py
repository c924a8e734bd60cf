"""Charts of public figures. Intervals are always drawn, with chance and published models for comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import altair as alt
import polars as pl

from beholder.chapter.chapter import rows_of
from beholder.chapter.chart_style import GROUP_COLOURS, GROUP_SHAPES, QUIET, SERIES
from beholder.chapter.charts import (
    Axis,
    Figure,
    Layers,
    Rows,
    bars,
    chart,
    fields,
    forest,
    order,
    percent_axis,
    sentence,
    series,
    tooltip,
)
from beholder.chapter.finding import by_model, deciding_rows, metric_rows
from beholder.chapter.numbers import Result, listed, percent, plural, span
from beholder.studies.public_figures.findings import slope
from beholder.studies.public_figures.gender_findings import slight, told_apart
from beholder.studies.public_figures.levels import GROUPS, LEVELS
from beholder.studies.public_figures.phrases import (
    claimed_ratios,
    correct_occupation,
    either_word,
    found,
    found_ratios,
    reference,
)
from beholder.studies.public_figures.phrases import found as found_difference
from beholder.studies.public_figures.published_rank import comparable_results
from beholder.studies.public_figures.scale import BY_PAIRS, BY_SIZE, Point, scale_points
from beholder.studies.public_figures.tables import IDENTITY


def public_figure_charts(results: pl.DataFrame) -> Iterator[Figure]:
    """Every chart, in the order of the topics."""
    for make in (occupation_figures, ratio_figures, association_figures, identity_figures, scale_figures):
        yield from make(results)


# Association


def association_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Three levels by branch: bars for one model, lanes for several."""
    rows = [row for row in rows_of(results, "association") if row["value"] is not None]
    if rows:
        yield Figure(
            "association",
            f"Belief on the right {association_title(rows)}",
            f"Mean share of belief on the right prompt, with 95 % intervals. Dashes: chance{_exchanged(rows)}.",
            association_chart(rows),
            "association",
            wide=True,
        )


def association_chart(rows: Rows) -> Layers:
    """Branches side by side with a bar for every level; of several models, levels and branches down."""
    x = Axis("belief on the right prompt", percent=True, scale={"domain": [0, 1]})
    rows = [{**row, "chance": reference(row)} for level in LEVELS for row in rows if row["concept"] == level]
    if len(order(rows, "model")) > 1:
        return forest([{**row, "subset": f"{row['concept']}: {row['subset']}"} for row in rows], x)
    data = fields(rows, "subset", "concept", "value", "low", "high", "n", "chance")
    marks = series(data, "concept", LEVEL_COLOURS)
    return bars(data, x, down="subset", lane="concept", marks=marks, tick="chance", upright=True)


def _exchanged(rows: Rows) -> str:
    """What chance is where right answers differ between people."""
    if not any(row.get("landmark") is not None for row in rows):
        return ""
    return "; where right answers differ, the belief on those of other people of the same gender"


LEVEL_COLOURS = {"category": "#9db8d2", "occupation": "#5b8fc0", "specialty": "#3a6ea5"}


def association_title(rows: Rows) -> str:
    """What the bars show."""
    ranges = {level: [row["value"] for row in rows if row["concept"] == level] for level in LEVELS}
    return ", ".join(f"{level} {span(values)}" for level, values in ranges.items() if values)


# Gender ratio


def ratio_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Forest plot of b: all models and pools in one view, published models in a lane of their own."""
    rows = [row for row in deciding_rows(results, "bias_ratio").to_dicts() if row["value"]]
    if not rows:
        return
    others = _others(results, "bias_ratio")
    bounds = [bound for row in (*rows, *others) for key in ("value", "low", "high") if (bound := row.get(key))]
    domain = [max(0.01, min(0.5, 0.95 * min(bounds))), min(100.0, max(2.0, 1.05 * max(bounds)))]
    x = Axis(
        "women ÷ men (logarithmic)",
        scale={"type": "log", "domain": domain, "clamp": True, "nice": False},
        labels={"values": [tick for tick in RATIO_TICKS if domain[0] <= tick <= domain[1]], "format": "~g"},
    )
    yield Figure(
        "women-over-men",
        ratio_title(results),
        "Probability of the right occupation, women over men, within branches where there are several, with 95 % "
        "intervals for all ratios at once. The line at 1 means alike; to the left of it women get less."
        + (" Small marks: published models." if others else ""),
        forest(rows, x, published=others, landmark=1.0),
        "gender",
        wide=True,
    )


RATIO_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100]


def ratio_title(results: pl.DataFrame) -> str:
    """What is shown; of actors it is the ratio of either word of which something is claimed."""
    claims = [claimed_ratios(part) for _, part in by_model(results)]
    away = [row for rows in claims for row in rows if found(row)]
    if not away:
        return "Women over men: no difference was found"
    if len(claims) > 1:
        return f"Women over men: {len(away)} of {sum(map(len, claims))} ratios differ from 1"
    weighty = [row["subset"] for row in away if not slight(row)]
    if not weighty:
        return f"Women over men: nearly alike for {listed([row['subset'] for row in away])}"
    return f"Women over men: a difference was found for {listed(weighty)}"


# Identity


def identity_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Both directions, all models and branches in one view each."""
    for metric, given, sought in zip(IDENTITY, ("an image", "a name"), ("name", "image"), strict=True):
        rows = [row for row in rows_of(results, metric) if row["value"] is not None]
        if not rows:
            continue
        others, against = _others(results, metric), [{**row, "chance": reference(row)} for row in rows]
        scale = {"domain": [0, axis_end([*rows, *others])]}
        x = Axis(f"belief on the right {sought}", percent=True, scale=scale)
        yield Figure(
            metric.replace("_", "-"),
            f"Given {given}: {span([row['value'] for row in rows])} on the right {sought}",
            f"With 95 % intervals. Dashes: {DASHES}." + (" Small marks: published models." if others else ""),
            forest(against, x, published=others),
            "identity",
        )


DASHES = "names exchanged among people with the same labels, or 1/n where they could not be"


def axis_end(rows: Rows) -> float:
    """Where an axis of probabilities ends: at 100 %, or earlier where all values lie far below.

    >>> axis_end([{"value": 0.05, "high": 0.228}]), axis_end([{"value": 0.7}])
    (0.3, 1.0)
    """
    most = max(bound for row in rows for key in ("value", "high") if (bound := row.get(key)) is not None)
    return 1.0 if most > FAR else math.ceil(10 * most + 0.5) / 10


FAR = 0.6
"""Up to here an axis that ends earlier shows more; beyond, the whole belief is the natural frame."""


# Size and training data

SCALES = {"parameters": BY_SIZE, "training_pairs": BY_PAIRS}
DRAWN = ("bias_ratio", "association", "identity_given_image")
"""What is drawn against size: b of the largest pool, the right occupation, and names."""


def scale_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """The run's models of known size among the published ones: the clearest slope on parameters, and on pairs."""
    points = list(scale_points(results)) if results.height else []
    for size, metric in SCALES.items():
        drawn = []
        for measure in DRAWN:
            subset = _drawn_subset(measure, points)
            mine = [p for p in points if (p.measure, p.subset) == (measure, subset) and getattr(p.entry, size)]
            if len(mine) > 1 and not all(point.published for point in mine):
                lines = metric_rows(results, metric).filter(pl.col("subset").eq_missing(subset), concept=measure)
                drawn.append((mine, next(iter(lines.to_dicts()), None)))
        if drawn:
            mine, line = min(drawn, key=lambda each: _p_value(each[1]))
            yield _scale_figure(mine, size, line)


def _p_value(line: Result | None) -> float:
    return 1.0 if line is None or line["p_value"] is None else line["p_value"]


def _drawn_subset(measure: str, points: list[Point]) -> str | None:
    there = list(dict.fromkeys(point.subset for point in points if point.measure == measure))
    wanted = {"bias_ratio": "politicians", "association": "occupation"}.get(measure)
    return wanted if wanted in there else there[0] if there else None


def _scale_figure(points: list[Point], size: str, line: Result | None) -> Figure:
    ratio, axis_title = points[0].measure == "bias_ratio", size.replace("_", " ")
    data = [{"model": p.model, "published": p.published, "x": getattr(p.entry, size), "y": p.value} for p in points]
    y = alt.Y(
        "y:Q",
        title=f"b, {points[0].subset}" if ratio else SCALE_TITLES[points[0].measure],
        scale=alt.Scale(type="log", nice=False, padding=10) if ratio else alt.Scale(domainMin=0),
        axis=alt.Axis(values=RATIO_TICKS, format="~g") if ratio else percent_axis(),
    )
    x = alt.X(
        "x:Q", title=f"{axis_title} (logarithmic)", scale=alt.Scale(type="log", padding=14), axis=alt.Axis(format="~s")
    )
    base = chart(data).encode(x=x, y=y, tooltip=["model:N", alt.Tooltip("x:Q", format="~s", title=axis_title), "y:Q"])
    mine = base.transform_filter("!datum.published")
    layers = [
        base.transform_filter("datum.published").mark_point(size=26, color=QUIET, filled=True, opacity=0.8),
        mine.mark_point(size=80, filled=True, opacity=1, color=SERIES[0]),
        mine.mark_text(align="left", dx=8, color="currentColor").encode(text="model:N"),
    ]
    published = " Small marks: published models." if any(point.published for point in points) else ""
    table = " The table has every slope." if line else ""
    return Figure(
        f"{points[0].measure}-by-{size}".replace("_", "-"),
        _scale_title(line, axis_title, points[0].measure),
        f"Models by {axis_title}.{published} Models of unknown size are not drawn.{table}",
        alt.layer(*layers).properties(height=240),
        "scale",
    )


SCALE_TITLES = {"association": "belief on the right occupation", "identity_given_image": "belief on the right name"}


def _scale_title(line: Result | None, axis_title: str, measure: str) -> str:
    measured = "Women over men" if measure == "bias_ratio" else SCALE_TITLES[measure].capitalize()
    if line is None:
        return f"{measured} by {axis_title}"
    return f"{measured} by {axis_title}: {'' if found(line) else 'no slope was found, '}{slope(line)} for ten times"


def _others(results: pl.DataFrame, metric: str) -> Rows:
    """The published models of every subset that compare with all of the run's models there, each once."""
    by_subset: dict[str, pl.DataFrame] = {}
    for each in comparable_results(results):
        if each.metric == metric:
            before = by_subset.get(each.row["subset"], each.others)
            by_subset[each.row["subset"]] = before.join(each.others, on="model", how="semi", maintain_order="left")
    return [
        {"subset": subset, "model": model, "value": value}
        for subset, others in by_subset.items()
        for model, value in others.iter_rows()
    ]


# Belief in occupations for women and men

NAME = "women-and-men"
FAINT = 0.01
"""An occupation with less belief for women and for men is not drawn, unless it is right."""
MOST = 24
"""So many occupations are drawn at most; among several models and pools each has an equal part, but at least two."""
ROW = 28
"""Height of one occupation in pixels: two lanes."""


class Pair(NamedTuple):
    """One occupation: how much belief it gets for women and for men."""

    women: Result
    men: Result
    right: bool
    shown: bool

    @property
    def gap(self) -> float:
        """Women minus men."""
        return float(self.women["value"] - self.men["value"])

    @property
    def faint(self) -> bool:
        """Whether it may be left out."""
        return max(self.women["value"], self.men["value"]) < FAINT and not self.right


class Block(NamedTuple):
    """The occupations offered for one pool to one model."""

    model: str
    pool: str
    pairs: list[Pair]

    @property
    def visible(self) -> list[Pair]:
        """The pairs with enough belief to be seen; all of them where none has."""
        return [pair for pair in self.pairs if not pair.faint] or self.pairs

    def drawn(self, most: int) -> list[Pair]:
        """The right occupation, then the widest gaps, those first that were found; from women's side to men's."""
        ranked = sorted(self.visible, key=lambda pair: (not pair.right, not pair.shown, -abs(pair.gap)))
        return sorted(ranked[:most], key=lambda pair: -pair.gap)


def occupation_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """All models and pools in one chart; two words for one occupation, such as actor and actress, are one."""
    found = list(blocks(results))
    if not found:
        return
    most = max(2, MOST // len(found))
    left_out = sum(len(block.pairs) - len(block.drawn(most)) for block in found)
    others = f" {left_out} other {'occupation is' if left_out == 1 else 'occupations are'} in the table only."
    read = "A strong band means that a difference was found; the right occupation is set bold."
    yield Figure(
        NAME,
        occupation_title(found),
        "Mean share of belief on each occupation, for women (circles) and men (squares), with 95 % intervals, sorted "
        f"by women − men. {read}{others if left_out else ''}",
        dumbbells(found, most),
        "gender",
        wide=True,
    )


def blocks(results: pl.DataFrame) -> Iterator[Block]:
    """Every model and pool with what was measured for both women and men."""
    for model, part in by_model(results):
        different = {row["subset"] for row in found_ratios(part)}
        gaps = {
            (row["subset"], row["concept"]): row for row in rows_of(part, "occupation_gap") if found_difference(row)
        }
        sides: dict[str, dict[str, dict[str, Result]]] = {}
        for row in merged_occupations(part):
            sides.setdefault(row["subset"], {}).setdefault(row["concept"], {})[row["group"]] = row
        for pool, occupations in sides.items():
            answers = {correct_occupation(pool, group) for group in GROUPS}
            # Where the right word depends on the gender, only both words together are right for women and men.
            right = answers if len(answers) == 1 else set(map(either_word, answers))
            pairs = []
            for concept, both in occupations.items():
                if set(both) >= set(GROUPS):
                    women, men = (both[group] for group in GROUPS)
                    is_right, gap = concept in right, gaps.get((pool, concept))
                    # Gaps are taken within branches: one that points the other way is not what the marks show.
                    same_way = gap is not None and gap["value"] * (women["value"] - men["value"]) > 0
                    pairs.append(Pair(women, men, is_right, pool in different if is_right else same_way))
            if pairs:
                yield Block(model, pool, pairs)


def merged_occupations(results: pl.DataFrame) -> Rows:
    """Every occupation by group, with one row for both words of a pair where the run has it."""
    rows = [row for row in rows_of(results, "occupation_probability") if row["value"] is not None]
    merged = [row for row in rows_of(results, "either_word_probability") if row["value"] is not None]
    there = {(row["model"], row["subset"], row["concept"]) for row in merged}
    kept = [row for row in rows if (row["model"], row["subset"], either_word(row["concept"])) not in there]
    return [*kept, *merged]


def occupation_title(found: list[Block]) -> str:
    """The widest difference that was found; where none was, the widest."""
    pairs = [(block, pair) for block in found for pair in block.visible]
    away = [each for each in pairs if each[1].shown]
    block, widest = max(away or pairs, key=lambda each: abs(each[1].gap))
    first = "widest gap that was found:" if away else "widest gap (none was found):"
    women, men = told_apart(widest.women, widest.men)
    seen = f"{first} “{widest.women['concept']}” for {block.pool}, women {women}, men {men}"
    return sentence(f"{block.model}, " if _several(found) else "", seen)


def _several(found: list[Block]) -> bool:
    return len({block.model for block in found}) > 1


def dumbbells(found: list[Block], most: int) -> Layers:
    """Occupations down under the heading of their pool; women in the upper lane, men in the lower one."""
    keys, headings, bands, marks = [], [], [], []
    for number, block in enumerate(found):
        heading = f"{block.model}, {block.pool}" if _several(found) else f"{block.pool} ({_sizes(block)})"
        keys.append(f"{number}|")
        headings.append({"row": keys[-1], "heading": heading})
        for place, pair in enumerate(block.drawn(most)):
            # The number keeps rows of several pools apart; the axis leaves it out. “=” marks the right occupation.
            keys.append(f"{number}{'=' if pair.right else ''}|{pair.women['concept']}")
            bands.append({"row": keys[-1], "from": pair.women["value"], "to": pair.men["value"], "shown": pair.shown})
            for row in (pair.women, pair.men):
                group, end = plural(row["group"]), max(row["value"], row["high"] or 0.0)
                label = f"{group if place == 0 else ''} {percent(row['value'])}".strip()
                own = {key: row[key] for key in ("model", "subset", "concept", "value", "low", "high", "n")}
                marks.append({**own, "row": keys[-1], "group": group, "end": end, "label": label})
    names = [plural(group) for group in GROUPS]
    axis = alt.Axis(
        labelExpr="slice(datum.label, indexof(datum.label, '|') + 1)",
        labelFontWeight=alt.condition(r"test(/^\d+=/, datum.value)", alt.value("bold"), alt.value("normal")),
        labelPadding=7,
        ticks=False,
        domain=False,
        title=None,
    )
    y = alt.Y("row:N", sort=None, scale=alt.Scale(domain=keys, paddingInner=0.1, paddingOuter=0), axis=axis)
    furthest = max(mark["end"] for mark in marks)
    x = alt.X(
        "value:Q", title="share of belief", scale=alt.Scale(domain=[0, 1.12 * furthest or 1]), axis=percent_axis()
    )
    colour = alt.Color("group:N", scale=alt.Scale(domain=names, range=list(GROUP_COLOURS.values())), legend=None)
    shape = alt.Shape("group:N", scale=alt.Scale(domain=names, range=list(GROUP_SHAPES.values())), legend=None)
    base = chart(marks).encode(y=y, yOffset=alt.YOffset("group:N", sort=names, scale=alt.Scale(domain=names)))
    band = chart(bands).mark_bar(height=3, color="currentColor")
    strength = alt.condition("datum.shown", alt.value(0.55), alt.value(0.16))
    return alt.layer(
        band.encode(x="from:Q", x2="to:Q", y=y, opacity=strength),
        base.transform_filter("isValid(datum.low)")
        .mark_rule(strokeWidth=2)
        .encode(x="low:Q", x2="high:Q", color=colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, color=colour, shape=shape, tooltip=tooltip("model", "subset", "concept", "group")
        ),
        base.mark_text(align="left", dx=7, fontSize=11, color="currentColor").encode(x="end:Q", text="label:N"),
        chart(headings)
        .mark_text(align="left", dx=4, fontSize=12, fontWeight="bold", color="currentColor")
        .encode(y=y, x=alt.value(0), text="heading:N"),
    ).properties(height=ROW * len(keys))


def _sizes(block: Block) -> str:
    first = block.pairs[0]
    return ", ".join(f"{row['n']} {plural(row['group'])}" for row in (first.women, first.men))
