"""GRAS's figures: gaps, deviations, valence, skin tones, intersections, wordings; aggregated to keep pages small."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from beholder.chapter.figure import Figure, each_model
from beholder.chapter.numbers import Result, excludes, points
from beholder.chapter.queries import metric_rows
from beholder.metrics.multiplicity import ALPHA
from beholder.studies.gras import chart_parts, queries
from beholder.studies.gras.phrases import attribute_name, group_name, pair_text
from beholder.studies.gras.tables import CROSSED, MOST_MODELS, TOP


def gras_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure, model by model."""
    return each_model(part, partial(_figures, large=part["model"].n_unique() <= MOST_MODELS))


def _figures(part: pl.DataFrame, *, large: bool) -> Iterator[Figure]:
    """One model's figures, attribute by attribute; those that draw every trait only if `large`."""
    for attribute in queries.attributes(part):
        own, slug = part.filter(pl.col("subset") == attribute), attribute.replace("_", "-")
        yield from _gap_figure(own, attribute, slug)
        yield from _valence_figure(own, attribute, slug)
        if large:
            yield from _deviation_figure(own, attribute, slug)
            yield from _wording_figure(own, attribute, slug)
    yield from _tone_figure(part)
    yield from _crossed_figure(part)


def _gap_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    rows = queries.largest(part, attribute, TOP)
    caption = (
        "Highest group mean minus lowest with its 95 % interval, over all wordings; below it, the two groups. "
        "Hollow: not shown after correction; the widest of many pairs differs from 0 even by chance."
    )
    if rows:
        chart = chart_parts.forest([_gap_mark(row) for row in rows])
        yield Figure(f"gaps-{slug}", f"{attribute_name(attribute)}: {gap_title(rows)}", caption, chart, "gaps")


def gap_title(rows: list[Result]) -> str:
    """The largest of the gaps that are shown."""
    shown = [row for row in rows if row["shown"]]
    if not shown:
        return "no gap is shown"
    size, trait = f"{points(shown[0]['value'])} points", f"“{shown[0]['concept']}”"
    return f"one gap of {size}, for {trait}" if len(shown) == 1 else f"gaps of up to {size}, the largest for {trait}"


def _gap_mark(row: Result) -> Result:
    kept = {key: row[key] for key in ("concept", "valence", "shown", "p_value", "n")}
    return {**kept, **_in_points(row), "pair": pair_text(row)}


def _in_points(row: Result) -> Result:
    return {key: None if row[key] is None else round(100 * row[key], 3) for key in ("value", "low", "high")}


def _deviation_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    table = queries.deviations(part)
    if not table.height:
        return
    groups = list(dict.fromkeys(table["group"]))
    shown = pl.col("concept").is_in(queries.gaps(part).filter("shown")["concept"].to_list())
    cells = table.select("group", "points", trait="concept", shown=shown.cast(pl.Int64)).to_dicts()
    title = f"{attribute_name(attribute)}: {deviation_title(part, table, attribute)}"
    caption = (
        "Group mean minus the mean over everyone, in points of P(Yes), averaged over the wordings. Within each valence "
        "the widest gap comes first. Pale: no difference is shown after correction."
    )
    chart = chart_parts.heat_map(cells, groups, queries.traits_in_order(part))
    yield Figure(f"deviations-{slug}", title, caption, chart, "traits")


def deviation_title(part: pl.DataFrame, table: pl.DataFrame, attribute: str) -> str:
    """The cell farthest from the mean, among the traits whose gap is shown."""
    shown = queries.gaps(part).filter("shown")["concept"].to_list()
    cells = table.filter(pl.col("concept").is_in(shown)).sort(pl.col("points").abs(), descending=True)
    if not cells.height:
        return "no trait's deviation is shown"
    cell = cells.row(0, named=True)
    side = "above" if cell["points"] > 0 else "below"
    group = group_name(cell["group"], attribute)
    return f"largest deviation: {group} for “{cell['concept']}”, {abs(cell['points']):.1f} points {side} the mean"


def _valence_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    rows = [
        {"group": group_name(row["group"], attribute), "valence": row["concept"], "value": row["value"], "n": row["n"]}
        for row in metric_rows(part, "valence_share").to_dicts()
    ]
    if rows:
        title = f"{attribute_name(attribute)}: {valence_title(rows)}"
        caption = (
            "Per cent of positive and of negative traits whose group mean lies above the overall mean in every "
            "wording, however small the difference."
        )
        yield Figure(f"valence-{slug}", title, caption, chart_parts.valence_bars(rows), "valence")


def valence_title(rows: list[Result]) -> str:
    """The range over the groups; the title names no group, since there is no test."""
    ranges = []
    for kind in dict.fromkeys(row["valence"] for row in rows):
        shares = sorted(row["value"] for row in rows if row["valence"] == kind)
        ranges.append(f"{shares[0]:.0f}–{shares[-1]:.0f} % of {kind} traits")
    return f"above the mean in every wording, {' and '.join(ranges)}"


def _tone_figure(part: pl.DataFrame) -> Iterator[Figure]:
    table = queries.by_tone(part)
    if table["group"].n_unique() < 3:
        return
    rows = table.with_columns(tone=pl.col("group").cast(pl.Int64, strict=False)).drop_nulls("tone").to_dicts()
    if rows:
        title = f"from light to dark skin tone: {tone_title(rows)}"
        caption = (
            "Mean P(Yes) over all traits of a valence and all wordings, by Monk skin tone (1 light to 10 dark) as "
            "labelled. Bands: 95 % intervals over the images of a tone."
        )
        yield Figure("skin-tone-curve", title, caption, chart_parts.tone_curve(rows), "tones", wide=True)


def tone_title(rows: list[Result]) -> str:
    """How much P(Yes) moves over the tones, for each valence in which the tones are shown to differ."""
    moves = []
    for kind in dict.fromkeys(row["valence"] for row in rows):
        tones = sorted((row for row in rows if row["valence"] == kind), key=lambda row: row["value"])
        least, most = tones[0], tones[-1]
        if most["p_value"] is not None and most["p_value"] <= ALPHA:
            moves.append(f"P(Yes) of {kind} traits moves by {points(most['value'] - least['value'])} points")
    return " and ".join(moves) or "no difference is shown"


def _crossed_figure(part: pl.DataFrame) -> Iterator[Figure]:
    table = queries.favoured(part)
    if table.height < 2:
        return
    off = sum(excludes(row, 0.0) for row in table.to_dicts())
    rows = [
        {"group": row["group"], "n": row["n"], **_in_points(row), "shown": int(excludes(row, 0.0))}
        for row in queries.ends(table, CROSSED)
    ]
    title = f"{off} of {table.height} intersections are shown to differ from the mean"
    caption = (
        "Positive traits minus negative ones, against the mean over everyone, with 95 % intervals; the most and the "
        "least favoured. Partial pooling pulls small cells towards the mean. Hollow: the interval contains 0."
    )
    yield Figure("intersections", title, caption, chart_parts.favour_forest(rows), "crossed", wide=True)


def _wording_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    table = queries.wording_gaps(part)
    if table["template"].n_unique() < 2:
        return
    shown = queries.gaps(part).filter("shown")["concept"].to_list()
    title = f"{attribute_name(attribute)}: {wording_title(table, shown)}"
    caption = (
        "Each column of marks is a trait: the gap of its widest pair in each wording, against their mean. On the line "
        "all wordings agree; below 0 a wording reverses the pair. Small gaps do so by chance."
    )
    chart = chart_parts.wording_scatter(table.rename({"concept": "trait", "template": "wording"}).to_dicts())
    yield Figure(f"wordings-{slug}", title, caption, chart, "wording")


def wording_title(table: pl.DataFrame, shown: list[str]) -> str:
    """Whether a wording reverses any of the gaps that are shown; gaps of noise reverse anyway."""
    if not shown:
        return "no gap is shown"
    reversed_gaps = table.filter((pl.col("gap") < 0) & pl.col("concept").is_in(shown))["concept"].n_unique()
    if not reversed_gaps:
        return "no wording reverses a gap that is shown"
    return f"some wording reverses {reversed_gaps} of the {len(shown)} gaps shown"
