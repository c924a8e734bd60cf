"""Charts of public figures. Intervals are always drawn, with chance and published models for comparison."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import altair as alt
import polars as pl

from beholder.chapter import charts
from beholder.chapter.chart_style import GROUP_COLOURS, GROUP_SHAPES, QUIET, SERIES
from beholder.chapter.charts import INK, RATIO_TICKS, Axis, Figure, Layers, Rows
from beholder.chapter.finding import by_model, deciding_rows, valued
from beholder.chapter.numbers import Result, percent, plural, span
from beholder.core.types import Entry
from beholder.studies.public_figures.findings import WAYS, claimed_ratios, found, reference, slope
from beholder.studies.public_figures.measures import GROUPS, LEVELS, words_of
from beholder.studies.public_figures.published import AXES, Point, catalogued, comparable_results, scale_points

NAME = "women-and-men"
FAINT = 0.01  # an occupation with less belief for women and for men is not drawn, unless it is right
MOST = 24  # occupations that are drawn; among several models and pools each has an equal part, but at least two
ROW = 28  # height of one occupation in pixels: two lanes
FAR = 0.6  # up to here an axis that ends earlier shows more; beyond, the whole belief is the natural frame
LEVEL_COLOURS = {"category": "#9db8d2", "occupation": "#5b8fc0", "specialty": "#3a6ea5"}
LARGEST_SMALL = 400e6  # parameters
SMALL, LARGE = "models of up to 400 million parameters", "models of more than 400 million parameters"
UNKNOWN_SIZE = "models of unknown size"
SMALL_MARKS = " Small marks: published models."


def public_figure_charts(results: pl.DataFrame) -> Iterator[Figure]:
    """Every chart, in the order of the topics."""
    for make in (occupation_figures, ratio_figures, association_figures, identity_figures, scale_figures):
        yield from make(results)


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


Blocks = dict[tuple[str, str], list[Pair]]  # the occupations offered, by model and pool


def occupation_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """All models and pools in one chart; two words for one occupation, such as actor and actress, are one."""
    found = blocks(results)
    if not found:
        return
    drawn = {key: drawn_pairs(pairs, max(2, MOST // len(found))) for key, pairs in found.items()}
    left_out = sum(map(len, found.values())) - sum(map(len, drawn.values()))
    others = f" {left_out} other occupation{' is' if left_out == 1 else 's are'} in the table only." if left_out else ""
    title = "Belief in occupations, for women and for men"
    caption = "Mean share of belief on each occupation, for women (circles) and men (squares), with 95 % intervals, "
    caption += "sorted by women − men. A strong band means that a difference was found; the right occupation is set "
    caption += f"bold.{others}"
    yield Figure(NAME, title, caption, dumbbells(drawn), "gender", wide=True, answers=("occupations",))


def blocks(results: pl.DataFrame) -> Blocks:
    """Every model and pool with what was measured for both women and men."""
    made: Blocks = {}
    for model, part in by_model(results):
        different, words = {row["subset"] for row in claimed_ratios(part) if found(row)}, words_of(part)
        gaps = {(row["subset"], row["concept"]): row["value"] for row in valued(part, "occupation_gap") if found(row)}
        sides: dict[tuple[str, str], dict[str, Result]] = {}
        for row in merged_occupations(part):
            sides.setdefault((row["subset"], row["concept"]), {})[row["group"]] = row
        for (pool, concept), both in sides.items():
            answers = {words.correct(pool, group) for group in GROUPS}
            # Where the right word depends on the gender, only both words together are right for women and men.
            right = concept in (answers if len(answers) == 1 else set(map(words.whole, answers)))
            if set(both) >= set(GROUPS):
                pair = Pair(both["woman"], both["man"], right, right and pool in different)
                # Gaps are taken within branches: one that points the other way is not what the marks show.
                same_way = gaps.get((pool, concept), 0.0) * pair.gap > 0
                made.setdefault((model, pool), []).append(pair if right else pair._replace(shown=same_way))
    return made


def merged_occupations(results: pl.DataFrame) -> Rows:
    """Every occupation by group, with one row for both words of a pair where the run has it."""
    merged = valued(results, "either_word_probability")
    there = {(row["model"], row["subset"], row["concept"]) for row in merged}
    rows, words = valued(results, "occupation_probability"), words_of(results)
    return [*(row for row in rows if (row["model"], row["subset"], words.whole(row["concept"])) not in there), *merged]


def drawn_pairs(pairs: list[Pair], most: int) -> list[Pair]:
    """The right occupation, then the widest gaps, those first that were found; from women's side to men's."""
    visible = [pair for pair in pairs if pair.right or max(pair.women["value"], pair.men["value"]) >= FAINT] or pairs
    ranked = sorted(visible, key=lambda pair: (not pair.right, not pair.shown, -abs(pair.gap)))
    return sorted(ranked[:most], key=lambda pair: -pair.gap)


def dumbbells(drawn: Blocks) -> Layers:
    """Occupations down under the heading of their pool; women in the upper lane, men in the lower one."""
    keys, headings, bands, marks = [], [], [], []
    several, kept = len({model for model, _ in drawn}) > 1, "model subset concept group value low high n".split()
    for number, ((model, pool), pairs) in enumerate(drawn.items()):
        sizes = ", ".join(f"{row['n']} {plural(row['group'])}" for row in pairs[0][:2])
        keys.append(f"{number}|")
        headings.append({"row": keys[-1], "heading": f"{model}, {pool}" if several else f"{pool} ({sizes})"})
        for place, pair in enumerate(pairs):
            # The number keeps rows of several pools apart; the axis leaves it out. “=” marks the right occupation.
            keys.append(f"{number}{'=' if pair.right else ''}|{pair.women['concept']}")
            bands.append({"row": keys[-1], "from": pair.women["value"], "to": pair.men["value"], "shown": pair.shown})
            for row in charts.fields(list(pair[:2]), *kept):
                group, end = plural(row["group"]), max(row["value"], row["high"] or 0.0)
                label = f"{group if place == 0 else ''} {percent(row['value'])}".strip()
                marks.append({**row, "row": keys[-1], "group": group, "end": end, "label": label})
    names = [plural(group) for group in GROUPS]
    named: Entry = {"labelExpr": "slice(datum.label, indexof(datum.label, '|') + 1)", "labelPadding": 7}
    bold = alt.condition(r"test(/^\d+=/, datum.value)", alt.value("bold"), alt.value("normal"))
    axis = alt.Axis(**named, labelFontWeight=bold, ticks=False, domain=False, title=None)
    y = alt.Y("row:N", sort=None, scale=alt.Scale(domain=keys, paddingInner=0.1, paddingOuter=0), axis=axis)
    x = Axis("share of belief", percent=True, scale={"domain": [0, 1.3 * max(mark["end"] for mark in marks) or 1]}).x()
    colour = alt.Color("group:N", scale=alt.Scale(domain=names, range=list(GROUP_COLOURS.values())), legend=None)
    shape = alt.Shape("group:N", scale=alt.Scale(domain=names, range=list(GROUP_SHAPES.values())), legend=None)
    base = charts.chart(marks).encode(y=y, yOffset=alt.YOffset("group:N", sort=names, scale=alt.Scale(domain=names)))
    base, strength = base.encode(color=colour), alt.condition("datum.shown", alt.value(0.55), alt.value(0.16))
    points = base.mark_point(filled=True, size=60, opacity=1)
    titles = charts.chart(headings).mark_text(align="left", dx=4, fontSize=12, fontWeight="bold", color=INK)
    return alt.layer(
        charts.chart(bands).mark_bar(height=3, color=INK).encode(x="from:Q", x2="to:Q", y=y, opacity=strength),
        charts.whiskers(base),
        points.encode(x=x, shape=shape, tooltip=charts.tooltip("model", "subset", "concept", "group")),
        base.mark_text(align="left", dx=7, fontSize=11).encode(x="end:Q", text="label:N", color=alt.value(INK)),
        titles.encode(y=y, x=alt.value(0), text="heading:N"),
    ).properties(height=ROW * len(keys))


def ratio_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Forest plot of b: all models and pools in one view, published models in a lane of their own."""
    rows = [row for row in deciding_rows(results, "bias_ratio").to_dicts() if row["value"]]
    if rows:
        others = _others(results, "bias_ratio")
        title = "Probability of the right occupation, women over men"
        caption = f"{title}, within branches where there are several, with 95 % intervals for all ratios at once. The "
        caption += f"line at 1 means alike; to the left of it women get less.{SMALL_MARKS if others else ''}"
        drawing = charts.forest(rows, charts.ratio_axis([*rows, *others]), published=others, landmark=1.0)
        yield Figure("women-over-men", title, caption, drawing, "gender", wide=True, answers=("bias",))


def association_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Three levels by branch: bars for one model, lanes for several."""
    rows = valued(results, "association")
    differ = any(row.get("landmark") is not None for row in rows)
    exchanged = "; where right answers differ, the belief on those of other people of the same gender" if differ else ""
    parts = by_size(rows)
    for place, (size, mine) in enumerate(parts.items(), 1):
        name = "association" if place == 1 else f"association-{place}"
        title = f"Belief on the right answer, level by level{f': {size}' if len(parts) > 1 else ''}"
        caption = f"Mean share of belief on the right prompt, with 95 % intervals. Dashes: chance{exchanged}."
        answers = () if len(parts) > 1 else ("association",)
        yield Figure(name, title, caption, association_chart(mine), "association", wide=True, answers=answers)


def by_size(rows: Rows) -> dict[str, Rows]:
    """The rows of small, of large and of unknown models, each from the smallest up, as in the study's Fig. 1."""
    entries = {model: catalogued(model) for model in charts.order(rows, "model")}
    sizes = {model: entry.parameters or math.inf if entry else math.inf for model, entry in entries.items()}
    parts: dict[str, Rows] = {}
    for row in sorted(rows, key=lambda row: sizes[row["model"]]):
        size = sizes[row["model"]]
        name = UNKNOWN_SIZE if math.isinf(size) else SMALL if size <= LARGEST_SMALL else LARGE
        parts.setdefault(name, []).append(row)
    return parts


def association_chart(rows: Rows) -> Layers:
    """Branches side by side with a bar for every level; of several models, levels and branches down."""
    x = Axis("belief on the right prompt", percent=True, scale={"domain": [0, 1]})
    rows = [{**row, "chance": reference(row)} for level in LEVELS for row in rows if row["concept"] == level]
    if len(charts.order(rows, "model")) > 1:
        return charts.forest([{**row, "subset": f"{row['concept']}: {row['subset']}"} for row in rows], x)
    data = charts.fields(rows, "subset", "concept", "value", "low", "high", "n", "chance")
    marks = charts.series(data, "concept", LEVEL_COLOURS)
    return charts.bars(data, x, down="subset", lane="concept", marks=marks, tick="chance", upright=True)


def identity_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Both directions, all models and branches in one view each."""
    for metric, given, sought in zip(WAYS, ("an image", "a name"), ("name", "image"), strict=True):
        rows, others = valued(results, metric), _others(results, metric)
        if rows:
            scale = {"domain": [0, axis_end([*rows, *others])]}
            x = Axis(f"belief on the right {sought}", percent=True, scale=scale)
            title = f"Given {given}: {span([row['value'] for row in rows])} on the right {sought}"
            caption = "With 95 % intervals. Dashes: names exchanged among people with the same labels, or 1/n where "
            caption += f"they could not be.{SMALL_MARKS if others else ''}"
            drawing = charts.forest([{**row, "chance": reference(row)} for row in rows], x, published=others)
            yield Figure(metric.replace("_", "-"), title, caption, drawing, "identity")


def axis_end(rows: Rows) -> float:
    """Where an axis of probabilities ends: at 100 %, or earlier where all values lie far below."""
    most = max(bound for row in rows for key in ("value", "high") if (bound := row.get(key)) is not None)
    return 1.0 if most > FAR else math.ceil(10 * most + 0.5) / 10


def _others(results: pl.DataFrame, metric: str) -> Rows:
    """The published models of every subset that compare with all of the run's models there, each once."""
    by_subset: dict[str, pl.DataFrame] = {}
    for each in comparable_results(results):
        if each.metric == metric:
            before = by_subset.get(each.row["subset"], each.others)
            by_subset[each.row["subset"]] = before.join(each.others, on="model", how="semi", maintain_order="left")
    return [{"subset": subset, **row} for subset, others in by_subset.items() for row in others.to_dicts()]


SCALE_TITLES = {  # what is drawn against size: b of the largest pool, the right occupation, and names
    "bias_ratio": "women over men",
    "association": "belief on the right occupation",
    "identity_given_image": "belief on the right name",
}
SUBSETS = {"bias_ratio": "politicians", "association": "occupation"}


def scale_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """The run's models of known size among the published ones: the clearest slope on parameters, and on pairs."""
    points = list(scale_points(results)) if results.height else []
    for metric, axis in AXES.items():
        size, drawn = axis.replace(" ", "_"), []
        lines = {(row["concept"], row["subset"]): row for row in valued(results, metric)}
        for measure in SCALE_TITLES:
            there = [point.subset for point in points if point.measure == measure]
            subset = wanted if (wanted := SUBSETS.get(measure)) in there else next(iter(there), None)
            mine = [p for p in points if (p.measure, p.subset) == (measure, subset) and getattr(p.entry, size)]
            if len(mine) > 1 and not all(point.published for point in mine):
                drawn.append((mine, lines.get((measure, subset))))
        if drawn:
            clearest = min(drawn, key=lambda each: 1.0 if each[1] is None else each[1]["p_value"] or 1.0)
            yield _scale_figure(*clearest, axis)


def _scale_figure(points: list[Point], line: Result | None, axis: str) -> Figure:
    measure, size = points[0].measure, axis.replace(" ", "_")
    title, ratio = SCALE_TITLES[measure], measure == "bias_ratio"
    data = [{"model": p.model, "published": p.published, "x": getattr(p.entry, size), "y": p.value} for p in points]
    scale = alt.Scale(type="log", nice=False, padding=10) if ratio else alt.Scale(domainMin=0)
    ticks = alt.Axis(values=RATIO_TICKS, format="~g") if ratio else charts.percent_axis()
    y = alt.Y("y:Q", title=f"b, {points[0].subset}" if ratio else title, scale=scale, axis=ticks)
    log = alt.Scale(type="log", padding=14)
    x = alt.X("x:Q", title=f"{axis} (logarithmic)", scale=log, axis=alt.Axis(format="~s"))
    base = charts.chart(data).encode(x=x, y=y, tooltip=["model:N", alt.Tooltip("x:Q", format="~s", title=axis), "y:Q"])
    mine = base.transform_filter("!datum.published")
    layers = [
        base.transform_filter("datum.published").mark_point(size=26, color=QUIET, filled=True, opacity=0.8),
        mine.mark_point(size=80, filled=True, opacity=1, color=SERIES[0]),
        mine.mark_text(align="left", dx=8, color=INK).encode(text="model:N"),
    ]
    seen = ""
    if line is not None:
        seen = f": {'' if found(line) else 'no slope was found, '}{slope(line)} for ten times"
    marks, table = SMALL_MARKS * any(p.published for p in points), " The table has every slope." if line else ""
    name, heading = f"{measure}-by-{size}".replace("_", "-"), f"{title.capitalize()} by {axis}{seen}"
    caption = f"Models by {axis}.{marks} Models of unknown size are not drawn.{table}"
    return Figure(name, heading, caption, alt.layer(*layers).properties(height=240), "scale")
