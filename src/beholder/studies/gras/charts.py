"""GRAS's figures: gaps, deviations, valence, skin tones, intersections, wordings; aggregated to keep pages small."""

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import altair as alt
import polars as pl

from beholder.chapter import charts
from beholder.chapter.chart_style import QUIET, SERIES
from beholder.chapter.charts import INK, NUMBERS, Axis, Figure, Layers, Rows, Series
from beholder.chapter.finding import FOUND, metric_rows, one_row, widest_first
from beholder.chapter.numbers import Result, percent_range, points, points_decimals
from beholder.core.types import Entry
from beholder.studies.gras import phrases
from beholder.studies.gras.phrases import CROSSED, MOST_MODELS, TOP, attribute_name, group_name, pair_names, pair_text

MOST_BARS = 20  # how many gaps are drawn in all; of each attribute at least as many as are listed
STRIP = 20  # fewer traits than these are no strip
VALENCE_COLOURS = {"positive": "#4c86c0", "negative": "#b45a9c"}
VALENCE_SHAPES = {"positive": "circle", "negative": "diamond"}
WORDING_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
SIGNS = {"positive": "+", "negative": "−"}
ENDS = {"age": ("younger", "older"), "skin_tone": ("lighter", "darker")}  # of attributes whose groups are numbers
SHORT_PAIR = 24  # names of two groups with more letters than these stand on two lines


def gras_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure, model by model."""
    return charts.each_model(part, partial(_figures, large=part["model"].n_unique() <= MOST_MODELS))


def _figures(part: pl.DataFrame, *, large: bool) -> Iterator[Figure]:
    """One model's figures, attribute by attribute; those that draw every trait only if `large`."""
    yield from _gaps(part)
    for attribute in phrases.attributes(part):
        for draw in (_valence, *((_deviations, _wordings) if large else ())):
            for figure in draw(part.filter(subset=attribute), attribute):
                name, title = f"{figure.name}-{attribute.replace('_', '-')}", attribute_name(attribute)
                yield figure._replace(name=name, title=f"{title}: {figure.title}")
    yield from _tones(part)
    yield from _crossed(part)
    if large:
        yield from _ranges(part)


def _in_points(row: Result, *keys: str) -> Result:
    return {key: None if row[key] is None else round(100 * row[key], 3) for key in keys or NUMBERS}


def _gaps(part: pl.DataFrame) -> Iterator[Figure]:
    attributes = phrases.attributes(part)
    count = max(TOP, MOST_BARS // max(len(attributes), 1))
    rows = [row for each in attributes for row in _attribute_bars(part, each, count)]
    caption = "Mean P(Yes) of one group less that of another, over all wordings, within the other labels, in points. "
    caption += "The lines are intervals that hold for all traits, pairs and attributes together. Hollow: no difference "
    caption += "was found. + and −: positive and negative traits."
    if rows:
        yield Figure("gaps", "the widest gaps", caption, _gap_bars(rows), "gaps", wide=True, answers=("gap",))


def sides(groups: list[str], attribute: str) -> tuple[dict[str, int], tuple[str, str]]:
    """The order of an attribute's groups, and a word for either end of it; no words where they have no order."""
    numbers = {group: int(found[0]) for group in groups if (found := re.search(r"\d+", group))}
    if len(groups) == 2:
        first, second = groups
        return {first: 0, second: 1}, (first, second)
    ordered = attribute in ENDS and len(numbers) == len(set(numbers.values())) == len(groups)
    return (numbers, ENDS[attribute]) if ordered else ({}, ("", ""))


def _attribute_bars(part: pl.DataFrame, attribute: str, count: int) -> list[Result]:
    """A heading that names the sides, then the gaps from the right end to the left; who is higher, where found."""
    names = metric_rows(part, "group_mean").filter(subset=attribute)["group"].unique(maintain_order=True).to_list()
    ranks, (below, above) = sides(names, attribute)
    arrows = {"below": f"← {below} higher", "above": f"{above} higher →"} if below else {}
    made = list[Result]()
    for row in phrases.largest(part, attribute, count):
        ends, (higher, lower) = _in_points(row), pair_names(row)
        if below and ranks.get(row["group"], 0) < ranks.get(row["against"], 0):
            value, low, high = (None if end is None else -end for end in ends.values())
            ends = {"value": value, "low": high, "high": low}
        blank = "\n" if len(higher + lower) > SHORT_PAIR else " "
        text = {"pair": pair_text(row), "points": points(row["value"], points_decimals(row))}
        kept = {key: row[key] for key in ("concept", "valence", "found", "p_value", "n")}
        made.append({**kept, **ends, **text, "who": f"{higher}{blank}above {lower}" if row["found"] else "none found"})
    heading = [{"heading": attribute_name(attribute), **arrows}] if made else []
    return heading + sorted(made, key=lambda bar: -bar["value"])


def _gap_bars(rows: Rows) -> Layers:
    """Bars to the side on which the higher group stands, under a heading for each attribute; hollow: none found."""
    names = [row.get("heading") or f"{row['concept']} {SIGNS.get(row['valence'], '')}".strip() for row in rows]
    headings = [{**row, "row": place} for place, row in enumerate(rows) if "heading" in row]
    made = [{**row, "row": place} for place, row in enumerate(rows) if "heading" not in row]
    most = 1.35 * max(abs(bar[key]) for bar in made for key in ("value", "low", "high") if bar[key] is not None) or 1.0
    bold = {"condition": {"test": f"indexof({[row['row'] for row in headings]}, datum.value) >= 0", "value": 700}}
    label: Entry = {"labelExpr": f"{json.dumps(names)}[datum.value]", "labelLimit": charts.by_width(100, 180)}
    axis = alt.Axis(**label, labelFontWeight={**bold, "value": 400}, ticks=False, domain=False)
    y = alt.Y("row:O", title=None, scale=alt.Scale(domain=list(range(len(rows)))), axis=axis)
    unsigned = {"tickCount": 5, "labelExpr": "format(abs(datum.value), '~r')"}
    x = Axis("points of P(Yes)", scale={"domain": [-most, most], "nice": False}, labels=unsigned).x()
    kinds = [kind for kind in VALENCE_COLOURS if kind in charts.order(made, "valence")]
    scale = alt.Scale(domain=kinds, range=[VALENCE_COLOURS[kind] for kind in kinds])
    stroke, fill = (channel("valence:N", scale=scale, legend=None) for channel in (alt.Stroke, alt.Fill))
    tooltip = [alt.Tooltip("concept:N", title="trait"), "pair:N", alt.Tooltip("points:N"), "low:Q", "high:Q"]
    tooltip += [alt.Tooltip("p_value:Q", title="corrected p", format=".2g"), "n:Q"]
    base = charts.chart(made).encode(y=y)
    bar = base.mark_bar(height=11, strokeWidth=1.5, aria=False)
    bar = bar.encode(x=x, stroke=stroke, fill=fill, fillOpacity=charts.shown(0), tooltip=tooltip)
    layers = [bar, charts.whiskers(base, strokeWidth=1.5, color=INK, opacity=0.7), *_bar_labels(made, headings, y)]
    return alt.layer(*layers, charts.rule_at(0.0)).properties(height=24 * len(rows))


def _bar_labels(made: Rows, headings: Rows, y: alt.Y) -> Iterator[Any]:
    """At the end of each bar its value, on its other side who is higher, and in the headings what a side means."""
    text: Entry = {"lineBreak": "\n", "lineHeight": 10, "fontSize": 10, "color": INK}
    for right, outer, inner in ((True, "high", "low"), (False, "low", "high")):
        side = [bar for bar in made if (bar["value"] >= 0) == right]
        texts = [({**row, "at": 0, "text": row.get("above" if right else "below", "")}, right) for row in headings]
        for key, end, rightwards in (("points", outer, right), ("who", inner, not right)):
            for bar in side:  # beyond the bar, its interval and 0
                ends = [0.0, bar["value"], *([] if bar[end] is None else [bar[end]])]
                at = max(ends) if rightwards else min(ends)
                texts.append(({"row": bar["row"], "text": bar[key], "at": at}, rightwards))
        aligns: tuple[tuple[Any, int], ...] = (("left", 4), ("right", -4))
        for align, off in aligns:
            rows = [row for row, rightwards in texts if rightwards == (off > 0)]
            mark = charts.chart(rows).mark_text(align=align, dx=off, **text)
            yield mark.encode(x="at:Q", y=y, text="text:N")


def _deviations(part: pl.DataFrame, attribute: str) -> Iterator[Figure]:
    table, traits = phrases.deviations(part), phrases.traits_in_order(part)
    if table["group"].n_unique() < 3:  # one of two columns would mirror the other
        return
    found = pl.col("concept").is_in(phrases.gaps(part).filter("found")["concept"].to_list())
    cells = table.select("group", value="points", trait="concept", found=found.cast(pl.Int64))
    title = "no difference found"
    for cell in cells.filter(pl.col("found") == 1).sort(pl.col("value").abs(), descending=True).head(1).to_dicts():
        side, group = "above" if cell["value"] > 0 else "below", group_name(cell["group"], attribute)
        size = f"{abs(cell['value']):.1f} points {side} the mean"
        title = f"largest deviation: {group} for “{cell['trait']}”, {size}"
    caption = "Group mean minus the mean over everyone, in points of P(Yes), averaged over the wordings. Within each "
    caption += "valence the widest gap comes first. Pale: no difference was found."
    lines = [name for kind, names in traits.items() for name in (f"{kind} traits:", *names)]
    tips: list[str | alt.Tooltip] = ["trait:N", "group:N", alt.Tooltip("value:Q", title="points off the mean")]
    rows, headings = cells.to_dicts(), [f"{kind} traits:" for kind in traits]
    down: Entry = {"down": "trait", "lines": lines, "headings": headings, "room": 12}
    drawing = charts.heatmap(rows, **down, tips=tips, across="group")
    yield Figure("deviations", title, caption, drawing, "traits")


def _valence(part: pl.DataFrame, attribute: str) -> Iterator[Figure]:
    shares = metric_rows(part, "valence_share").rename({"concept": "valence"})
    shares = shares.select("group", "valence", "value", "landmark", "n", found=FOUND)
    rows = [{**row, "group": group_name(row["group"], attribute)} for row in shares.to_dicts()]
    if rows:
        caption = "Per cent of positive and of negative traits whose group mean lies above the overall mean in every "
        caption += "wording, however small the difference. Tick: with shuffled labels. Pale: no difference from that "
        caption += "was found, all groups and attributes together."
        marks = charts.series(rows, "valence", VALENCE_COLOURS, columns=2, symbolType="square")
        tips: list[str | alt.Tooltip] = ["group:N", "valence:N", alt.Tooltip("value:Q", title="per cent")]
        tips += [alt.Tooltip("landmark:Q", title="shuffled labels", format=".1f"), alt.Tooltip("n:Q", title="traits")]
        x = Axis("per cent of traits", scale={"domain": [0, 100]})
        drawing = charts.bars(rows, x, down="group", lane="valence", marks=marks, tick="landmark", tips=tips, room=13)
        yield Figure("valence", valence_title(rows), caption, drawing, "valence")


def valence_title(rows: list[Result]) -> str:
    """The share farthest from what shuffled labels give, among those that were found to differ from it."""
    found = [row for row in rows if row["found"]]
    if not found:
        return "no share of traits above the mean differs from shuffled labels"
    far = max(found, key=lambda row: abs(row["value"] - row["landmark"]))
    shuffled = f"{far['landmark']:.0f} % with shuffled labels"
    return f"{far['value']:.0f} % of {far['valence']} traits above the mean for {far['group']}, {shuffled}"


def _tones(part: pl.DataFrame) -> Iterator[Figure]:
    table = phrases.by_tone(part)
    rows = table.with_columns(tone=pl.col("group").cast(pl.Int64, strict=False)).drop_nulls("tone").to_dicts()
    if table["group"].n_unique() < 3 or not rows:
        return
    values = {kind: [row["value"] for row in rows if row["valence"] == kind] for kind in charts.order(rows, "valence")}
    ranges = [f"{kind} traits {percent_range(min(means), max(means), 1)}" for kind, means in values.items()]
    title = f"mean P(Yes) from light to dark skin tone: {'; '.join(ranges)}"
    caption = "Mean P(Yes) over all traits of a valence and all wordings, by Monk skin tone (1 light to 10 dark) as "
    caption += "labelled. Bands: 95 % intervals over the images of a tone."
    marks = charts.series(rows, "valence", VALENCE_COLOURS, VALENCE_SHAPES, columns=2)
    x, y = alt.X("tone:O", title="Monk skin tone", axis=alt.Axis(labelAngle=0)), Axis("mean P(Yes)", percent=True)
    y = y._replace(scale={"zero": False})
    drawing = charts.curves(rows, x, y, marks=marks, band=True, tips=("tone", "valence"))
    yield Figure("skin-tone-curve", title, caption, drawing, "tones", wide=True)


def _crossed(part: pl.DataFrame) -> Iterator[Figure]:
    """Intersections down, their names above the marks so that long ones fit a phone; hollow: none found."""
    table = phrases.favoured(part)
    if table.height < 2:
        return
    rows = [
        {"group": row["group"], "n": row["n"], "found": int(row["found"]), **_in_points(row, *NUMBERS, "expected")}
        for row in phrases.ends(table, CROSSED)
    ]
    caption = "Positive traits minus negative ones, against the mean over everyone; the most and the least favoured. "
    caption += "Intervals hold for all intersections together. Hollow: no difference was found. Tick: what the single "
    caption += "attributes add up to."
    low = min(0.0, *(row[key] for row in rows for key in ("low", "expected", "value") if row[key] is not None))
    x = Axis("points off the mean", scale={"domainMin": low, "nice": False}).x()
    base = charts.chart(rows).encode(y=alt.Y("group:N", title=None, sort=charts.order(rows, "group"), axis=None))
    points = base.mark_point(size=60, opacity=1, strokeWidth=2, stroke=SERIES[0], fill=SERIES[0], aria=False)
    tooltip = ["group:N", alt.Tooltip("value:Q", title="points"), "low:Q", "high:Q", "n:Q"]
    ticks = base.transform_filter("isValid(datum.expected)")
    ticks = ticks.mark_tick(thickness=2, size=10, color=INK, opacity=0.8, aria=False)
    names = base.mark_text(align="left", dx=4, dy=-12, fontSize=11, color=INK, aria=False)
    drawing = alt.layer(
        charts.whiskers(base, opacity=0.55, color=SERIES[0]),
        points.encode(x=x, fillOpacity=charts.shown(0), tooltip=tooltip),
        ticks.encode(x="expected:Q"),
        names.encode(text="group:N", x=alt.datum(low)),
        charts.rule_at(0.0),
    ).properties(height=32 * len(rows))
    title = f"the most and the least favoured of {table.height} intersections"
    yield Figure("intersections", title, caption, drawing, "crossed", wide=True, answers=("intersection",))


def _ranges(part: pl.DataFrame) -> Iterator[Figure]:
    ranges = widest_first(metric_rows(part, "wording_range"))
    if one_row(part, "wording_sensitive") is None or ranges.height < STRIP:
        return
    rows = [{"trait": row["concept"], **_in_points(row)} for row in ranges.to_dicts()]
    caption = "How far mean P(Yes) over everyone lies apart between two wordings at most, by trait. Line: one point."
    traits = charts.order(rows, "trait")
    named = alt.Axis(labelAngle=-90, labelFontSize=9) if len(traits) <= 40 else None
    x = alt.X("trait:N", title="traits", sort=traits, axis=named)
    y = Axis("points of P(Yes)", scale={"domainMin": 0}).y()
    tips: list[str | alt.Tooltip] = ["trait:N", alt.Tooltip("value:Q", title="points")]
    marks = Series(alt.value(SERIES[0]))  # type: ignore[arg-type]
    drawing = charts.scatter(rows, x, y, marks=marks, tips=tips, also=[charts.rule_at(1.0, "y")], size=24, height=240)
    title = "how far P(Yes) moves with the wording"
    yield Figure("wording-ranges", title, caption, drawing, "wording", wide=True, answers=("sensitive",))


def _wordings(part: pl.DataFrame, attribute: str) -> Iterator[Figure]:
    """A trait's gap in each wording against their mean, with the line on which all agree."""
    table = phrases.wording_gaps(part)
    if table["template"].n_unique() < 2:
        return
    found = phrases.gaps(part).filter("found")["concept"].to_list()
    turned = table.filter(pl.col("gap") < 0, pl.col("concept").is_in(found))["concept"].n_unique()
    title = "no difference found"  # gaps of noise are reversed by some wording anyway
    if found:
        title = f"in some wording {turned} of the {len(found)} gaps found point the other way"
        title = title if turned else "in no wording does a gap that was found point the other way"
    caption = "Each column of marks is a trait: the gap of its widest pair in each wording, against their mean. On the "
    caption += "line all wordings agree; below 0 a wording reverses the pair. Small gaps do so by chance."
    rows = table.rename({"concept": "trait", "template": "wording"}).to_dicts()
    names = charts.order(rows, "wording")
    shapes = {name: WORDING_SHAPES[k % len(WORDING_SHAPES)] for k, name in enumerate(names)}
    colours = {name: SERIES[k % len(SERIES)] for k, name in enumerate(names)}
    x = Axis("mean gap of the trait, in points", scale={"domainMin": 0}).x("mean")
    y, most = Axis("gap in one wording, in points").y("gap"), max(row["mean"] for row in rows)
    line = charts.chart([{"mean": 0, "gap": 0}, {"mean": most, "gap": most}])
    also = [line.mark_line(color=QUIET, strokeDash=[4, 3], strokeWidth=1.5).encode(x=x, y=y), charts.rule_at(0.0, "y")]
    tips = ["trait:N", "wording:N", "gap:Q", "mean:Q"]
    marks = charts.series(rows, "wording", colours, shapes, columns=5)
    drawing = charts.scatter(rows, x, y, marks=marks, tips=tips, also=also, size=24)
    yield Figure("wordings", title, caption, drawing, "wording")
