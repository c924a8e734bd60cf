"""Disparity's figures: widest gaps, spread of all gaps, reliability, agreement; of each model and of several."""

from collections.abc import Iterator, Mapping
from functools import partial

import altair as alt
import polars as pl

from beholder.chapter import charts as form
from beholder.chapter.chart_style import GROUP_SHAPES, QUIET, Spec, series_colours
from beholder.chapter.charts import INK, NUMBERS, Axis, Figure, Layers, Rows, chart, order, series
from beholder.chapter.finding import by_column, by_model, metric_rows, one_row
from beholder.chapter.numbers import Result
from beholder.studies.disparity import findings
from beholder.studies.disparity.agreement import COLOURS
from beholder.studies.disparity.findings import AGREES, OPPOSES, UNKNOWN, Pair

BARS = 12  # how many gaps are drawn in either direction
STACK = 8  # a strip has room for at least so many stacked dots
STRIP = 90  # pixels of a model's strip
WORD_COLOURS = {AGREES: "#4c86c0", OPPOSES: "#c8553d", UNKNOWN: QUIET}
AGREEMENT_COLOURS = {"green": "#2f9e44", "yellow": "#d9a514", "red": "#c92a2a"}
AGREEMENT_SHAPES = {"green": "circle", "yellow": "diamond", "red": "cross"}
TOWARDS = " Colour: whether the gap points towards the group that word vectors put the concept nearer to."
NEARER = " Colour: the group whose words are nearer to the concept's."
WIDEST = {
    "gaps": "Bars: gap at the same prevalence for both groups, with 95 % intervals that hold for all concepts at once; "
    "pale: no difference found. Ticks: the published gap.",
    "calibration": "Bars: how much farther confidence is off for the first group than for the second, in points, at "
    "the same prevalence and less what chance adds; pale: no difference found. Ticks: the published gap of ECE.",
}
RAW = (
    "As in the study's Fig. 1: raw gaps, without intervals. They depend on how often a group shows a concept and on "
    "how few images do: read the gaps at matched prevalence."
)
TIPS: list[str | alt.Tooltip] = ["concept:N", alt.Tooltip("value:Q", title="points"), "words:N", "n:Q"]
NEAR = "nearer to words for “{}”"
AGREEMENT = (
    "Concepts of both data sets, published gaps. Green: both wider than five points, same direction; red: opposite "
    "directions; yellow: all others."
)


def disparity_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure: several models in one, as in the study's figures 1, 2 and 4; then those of each model."""
    if part["model"].n_unique() > 1:
        yield from _means(part)
        yield from _strips(part, "models-gaps", "models-calibration")
        yield from _model_agreement(part)
    yield from form.each_model(part, _figures)


def _figures(part: pl.DataFrame) -> Iterator[Figure]:
    for pair, suffix in _numbered(part):
        yield from _widest(part, pair, suffix)
    yield from _strips(part, "spread")
    for pair, suffix in _numbered(part):
        yield from _as_printed(part, pair, suffix)
    yield from _reliability(part)
    yield from _agreement(part)


def _numbered(part: pl.DataFrame) -> list[tuple[Pair, str]]:
    known = findings.pairs(part)
    return [(pair, "" if len(known) == 1 else f"-{place}") for place, pair in enumerate(known, 1)]


def _widest(part: pl.DataFrame, pair: Pair, suffix: str) -> Iterator[Figure]:
    """The widest gaps of recognition and of calibration: one bar per concept; a tick for the published gap."""
    rows, off = findings.ends(findings.tested(part, pair), BARS), calibration_bars(part, pair)
    off = off if len(off) <= 2 * BARS else [*off[:BARS], *off[-BARS:]]
    tips: list[str | alt.Tooltip] = [
        *("concept:N", alt.Tooltip("value:Q", title="matched, points"), "low:Q", "high:Q"),
        alt.Tooltip("raw:Q", title="published, points"),
        *(alt.Tooltip("p_value:Q", title="p", format=".2g"), "words:N", "n:Q"),
    ]
    axis = Axis(f"points: {pair.first} less {pair.second}")
    for topic, name, title, own, colours, meaning in (
        ("gaps", "gaps", pair.less, [_in_points(row) for row in rows], WORD_COLOURS, TOWARDS),
        ("calibration", "calibration-gaps", f"calibration, {pair.less}", off, _association_colours(pair), NEARER),
    ):
        if own:
            marks, caption = _words(own, colours), f"{WIDEST[topic]}{_coloured(own, meaning)}"
            drawn = form.bars(own, axis, down="concept", marks=marks, tick="raw", landmark=0.0, tips=tips)
            answers = (topic, pair.first)
            yield Figure(f"{name}{suffix}", f"{title}: the widest gaps", caption, drawn, topic, answers=answers)


def _as_printed(part: pl.DataFrame, pair: Pair, suffix: str) -> Iterator[Figure]:
    """The study's Fig. 1a and 1b: the widest raw gaps in both directions, by name."""
    near, own = _association(part, pair), findings.of_pair(part, pair)
    for metric, topic, what in (
        ("ap_gap", "gaps", "average precision"),
        ("ece_gap", "calibration", "calibration error"),
    ):
        table = findings.ends(metric_rows(own, metric).drop_nulls("value"), BARS)
        rows = [_in_points({**row, "words": near.get(row["concept"], UNKNOWN)}) for row in table]
        if rows:
            axis, marks = Axis(f"points: {pair.first} less {pair.second}"), _words(rows, _association_colours(pair))
            drawn = form.bars(rows, axis, down="concept", marks=marks, landmark=0.0, tips=TIPS)
            title = f"{pair.less} as printed: the widest raw gaps of {what}"
            yield Figure(f"printed-{topic}{suffix}", title, f"{RAW}{_coloured(rows, NEARER)}", drawn, topic)


def _words(rows: Rows, colours: Mapping[str, str]) -> form.Series:
    """A colour for what `words` says; one alone needs none of its own."""
    several = len(order(rows, "words")) > 1
    return series(rows, "words", colours if several else None, alone=False, columns=2)


def _coloured(rows: Rows, meaning: str) -> str:
    return meaning if any(row["words"] not in (UNKNOWN, None) for row in rows) else ""


def _in_points(row: Result) -> Result:
    kept = {key: row.get(key) for key in ("concept", "words", "p_value", "n")}
    numbers = {key: None if row.get(key) is None else round(100 * row[key], 2) for key in (*NUMBERS, "raw")}
    return {**kept, **numbers, "found": int(row.get("found", True))}


def calibration_bars(part: pl.DataFrame, pair: Pair) -> Rows:
    """How much farther confidence is off for the first group than for the second, in points, by concept."""
    first, second = findings.sides(part, "miscalibration", pair)
    published = by_column(metric_rows(findings.of_pair(part, pair), "ece_gap"), "concept")
    near, rows = _association(part, pair), []
    for row in findings.calibration_gaps(part, pair).to_dicts():
        concept = row["concept"]
        if concept in first and concept in second:
            gap = findings.root(first[concept]["value"]) - findings.root(second[concept]["value"])
            raw, words = published.get(concept, {}).get("value"), near.get(concept, UNKNOWN)
            rows.append(_in_points({**row, "value": gap, "raw": raw, "low": None, "high": None, "words": words}))
    return sorted(rows, key=lambda row: -float(row["value"]))


def _association(part: pl.DataFrame, pair: Pair) -> dict[str, str]:
    """Of every concept with a word vector, to which group's words it is nearer."""
    rows = metric_rows(findings.of_pair(part, pair), "word_alignment").filter(pl.col("value") != 0)
    return {row["concept"]: NEAR.format(pair.names[0 if row["value"] > 0 else 1]) for row in rows.to_dicts()}


def _association_colours(pair: Pair) -> dict[str, str]:
    names = map(NEAR.format, pair.names)
    return dict(zip(names, series_colours(list(pair.names)), strict=True)) | {UNKNOWN: QUIET}


def _strips(part: pl.DataFrame, gaps: str, calibration: str = "") -> Iterator[Figure]:
    """All gaps of each model, and of calibration where that has a name; one line of dots a model."""
    kinds = [(gaps, "gaps", _gap_dots, "gap of average precision at matched prevalence")]
    if calibration:
        what = "how much farther confidence is off for the first group"
        kinds.append((calibration, "calibration", calibration_bars, what))
    for pair, suffix in _numbered(part):
        for name, topic, make, what in kinds:
            rows = [{"model": model, **row} for model, own in by_model(part) for row in stacked(make(own, pair))]
            concepts = [row for row in rows if row["concept"] is not None]
            models = order(concepts, "model")
            if len(concepts) < 2 or (topic == "calibration" and len(models) < 2):
                continue
            diamond = " Diamond: the mean, with its 95 % interval." if len(concepts) < len(rows) else ""
            caption = f"Each dot is a concept: {what}, in points; pale: no difference found.{diamond}"
            found = f"{sum(row['found'] for row in concepts)} of {len(concepts)} gaps found"
            title = f"{pair.less}{f', {len(models)} models' * (len(models) > 1)}: {found}"
            drawn, wide = _strip_chart(rows, pair), len(models) > 1
            answers = () if wide else ("mean", pair.first)
            title = f"Calibration, {title}" if topic == "calibration" else title
            yield Figure(f"{name}{suffix}", title, caption + _coloured(rows, NEARER), drawn, topic, wide, answers)


def _gap_dots(part: pl.DataFrame, pair: Pair) -> Rows:
    """The tested gaps, and their mean as a row without a concept."""
    near = _association(part, pair)
    mean = one_row(findings.of_pair(part, pair), "mean_ap_gap_matched", decides=True)
    rows = [{**row, "words": near.get(row["concept"], UNKNOWN)} for row in findings.tested(part, pair).to_dicts()]
    dots = [{**_in_points(row), "low": None, "high": None} for row in rows]
    return [*dots, *([{**_in_points(mean), "concept": None, "words": None}] if mean and dots else [])]


def stacked(rows: Rows) -> Rows:
    """Dots that would overlap are stacked: `level` from 0 up to 1; a row without a concept has none."""
    dots = sorted((row for row in rows if row["concept"] is not None), key=lambda row: float(row["value"]))
    if not dots:
        return []
    values = [row["value"] for row in dots]
    bins = [int((value - values[0]) / max((values[-1] - values[0]) / 40, 1e-9)) for value in values]
    levels = [bins[:place].count(bin_) for place, bin_ in enumerate(bins)]
    top = max(STACK, max(levels) + 1)
    placed = [{**row, "level": round(level / top, 3)} for row, level in zip(dots, levels, strict=True)]
    return [*placed, *(row for row in rows if row["concept"] is None)]


def _strip_chart(rows: Rows, pair: Pair) -> Layers:
    """A strip of stacked dots for every model; a diamond for the mean."""
    models, x = order(rows, "model"), Axis(f"points: {pair.first} less {pair.second}").x()
    y = alt.Y("model:N", title=None, sort=models, axis=alt.Axis() if len(models) > 1 else None)
    dots = chart([row for row in rows if row["concept"] is not None]).mark_circle(size=34, aria=False)
    level = alt.YOffset("level:Q", scale=alt.Scale(domain=[1.1, -0.1]))
    colour = _words(rows, _association_colours(pair)).colour
    tips = ["model:N", "concept:N", alt.Tooltip("value:Q", title="points"), "words:N"]
    dots = dots.encode(x=x, y=y, yOffset=level, color=colour, opacity=form.shown(0.4), tooltip=tips)
    means = chart([row for row in rows if row["concept"] is None]).encode(y=y)
    diamonds = means.mark_point(shape="diamond", filled=True, size=90, color=INK, opacity=1).encode(x=x)
    height = STRIP * len(models) if len(models) > 1 else 150
    return alt.layer(dots, form.whiskers(means, color=INK), diamonds, form.rule_at(0.0)).properties(height=height)


def _means(part: pl.DataFrame) -> Iterator[Figure]:
    rows = metric_rows(part, "mean_average_precision").select("model", "group", *NUMBERS, "n").to_dicts()
    if rows:
        caption = "Over the concepts that every group shows, as published, with 95 % intervals."
        x = Axis("mean average precision", percent=True, scale={"zero": True})
        title = f"Mean average precision of {part['model'].n_unique()} models by group"
        yield Figure("models-means", title, caption, form.forest(rows, x, down="model", lane="group"), "means")


def _reliability(part: pl.DataFrame) -> Iterator[Figure]:
    """The share that shows the concept against confidence: one line per group, dashed where a model is calibrated."""
    caption = "On the dashed line, confidence equals the share of images that show the concept;"
    caption += " below it, the model is too confident. Bars: exact 95 % intervals."
    axis = partial(Axis, percent=True, scale={"domain": [0, 1]})
    x, y = axis("mean confidence of the bin").x("confidence"), axis("share that shows the concept")
    bins = metric_rows(part, "reliability").drop_nulls("expected")
    for place, ((concept,), table) in enumerate(bins.group_by(["concept"], maintain_order=True)):
        rows = table.select("group", "n", *NUMBERS, confidence="expected").to_dicts()
        shapes = {group: GROUP_SHAPES.get(group, "circle") for group in order(rows, "group")}
        drawn = form.curves(rows, x, y, marks=series(rows, "group", shapes=shapes), diagonal=True, tips=["group"])
        title = f"reliability, {'all concepts together' if concept is None else f'“{concept}”'}"
        yield Figure(f"reliability-{place}", title, caption, drawn, "calibration")


def _agreement(part: pl.DataFrame) -> Iterator[Figure]:
    """The gap on one data set against the gap on another, in the study's three colours; lines at five points."""
    here, keys = str(part["dataset"][0]), ["concept", "group", "against"]
    gaps, colours = metric_rows(part, "ap_gap").select(*keys, here="value"), metric_rows(part, "agreement")
    dashed: Spec = {"color": QUIET, "strokeDash": [3, 3], "strokeWidth": 1}
    lines = chart([{"at": -5.0}, {"at": 5.0}]).mark_rule(**dashed)
    for place, ((there,), table) in enumerate(colours.group_by(["subset"], maintain_order=True), 1):
        others = metric_rows(part, "ap_gap_elsewhere").filter(subset=there).select(*keys, there="value")
        both = table.join(gaps, on=keys).join(others, on=keys)
        rows = []
        for row in both.to_dicts():
            ends = {key: round(100 * row[key], 2) for key in ("here", "there")}
            rows.append({"concept": row["concept"], **ends, "colour": COLOURS[row["value"]]})
        x, y = Axis(f"gap on {here}, points").x("here"), Axis(f"gap on {there}, points").y("there")
        named = chart([row for row in rows if row["colour"] != "yellow"])
        text = named.mark_text(align="left", dx=6, fontSize=10, color=INK, aria=False).encode(text="concept:N")
        marks = series(rows, "colour", AGREEMENT_COLOURS, AGREEMENT_SHAPES)
        tips, also = ["concept:N", "here:Q", "there:Q", "colour:N"], [lines.encode(x="at:Q"), lines.encode(y="at:Q")]
        drawn = form.scatter(rows, x, y, marks=marks, tips=tips, also=[*also, text.encode(x=x, y=y)], height=320)
        title, answers = f"gaps on {here} and on {there}", ("agreement", str(there))
        yield Figure(f"agreement-{place}", title, AGREEMENT, drawn, "agreement", wide=True, answers=answers)


def _model_agreement(part: pl.DataFrame) -> Iterator[Figure]:
    """How many concepts are green, yellow and red for every model and other data set, side by side in one bar."""
    counts = metric_rows(part, "agreement_count").group_by(["subset"], maintain_order=True)
    for place, ((there,), table) in enumerate(counts, 1):
        ended = pl.col("value").cum_sum().over("model")
        rows = table.select("model", "value", colour="group", start=ended - pl.col("value"), end=ended).to_dicts()
        models = order(rows, "model")
        if len(models) < 2:
            continue
        base = chart(rows).encode(y=alt.Y("model:N", title=None, sort=models))
        tips = ["model:N", "colour:N", alt.Tooltip("value:Q", title="concepts")]
        colour, bar = series(rows, "colour", AGREEMENT_COLOURS).colour, base.mark_bar(height=18, aria=False)
        bar = bar.encode(x=Axis("concepts").x("start"), x2="end:Q", color=colour, tooltip=tips)
        middle = base.transform_filter("datum.value > 0").transform_calculate(middle="(datum.start + datum.end) / 2")
        text = middle.mark_text(color="white", fontWeight="bold", aria=False).encode(x="middle:Q", text="value:Q")
        drawn = alt.layer(bar, text).properties(height=44 * len(models))
        title = f"Agreement of the gaps on {part['dataset'][0]} and on {there}, by model"
        yield Figure(f"models-agreement-{place}", title, AGREEMENT, drawn, "agreement")
