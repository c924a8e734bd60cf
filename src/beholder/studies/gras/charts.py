"""GRAS's figures: gaps, deviations, valence, skin tones, intersections, wordings; aggregated to keep pages small."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from beholder.chapter.charts import Figure, each_model
from beholder.chapter.finding import FOUND, metric_rows, one_row
from beholder.chapter.numbers import Result, percent_range, points, points_decimals
from beholder.comparison.family import DIFFERENCE, NONE_FOUND
from beholder.studies.gras import chart_parts, phrases
from beholder.studies.gras.phrases import attribute_name, group_name, pair_names, pair_text, sides
from beholder.studies.gras.tables import CROSSED, MOST_MODELS, TOP

MOST_BARS = 20
"""How many gaps are drawn in all; of each attribute at least as many as are listed."""
STRIP = 20
"""Fewer traits than these are no strip."""


def gras_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure, model by model."""
    return each_model(part, partial(_figures, large=part["model"].n_unique() <= MOST_MODELS))


def _figures(part: pl.DataFrame, *, large: bool) -> Iterator[Figure]:
    """One model's figures, attribute by attribute; those that draw every trait only if `large`."""
    yield from _gap_figure(part)
    for attribute in phrases.attributes(part):
        own, slug = part.filter(pl.col("subset") == attribute), attribute.replace("_", "-")
        yield from _valence_figure(own, attribute, slug)
        if large:
            yield from _deviation_figure(own, attribute, slug)
            yield from _wording_figure(own, attribute, slug)
    yield from _tone_figure(part)
    yield from _crossed_figure(part)
    if large:
        yield from _range_figure(part)


def _gap_figure(part: pl.DataFrame) -> Iterator[Figure]:
    """The widest gaps of every attribute, with the side on which the higher group stands."""
    attributes = phrases.attributes(part)
    number = max(TOP, MOST_BARS // max(len(attributes), 1))
    by_attribute = {each: phrases.largest(part, each, number) for each in attributes}
    bars = [bar for each, rows in by_attribute.items() for bar in _gap_bars(part, each, rows)]
    caption = (
        "Mean P(Yes) of one group less that of another, over all wordings, within the other labels, in points. The "
        "lines are intervals that hold for all traits, pairs and attributes together. Hollow: no difference was found. "
        "+ and −: positive and negative traits."
    )
    rows = sorted((row for rows in by_attribute.values() for row in rows), key=lambda row: -row["value"])
    if rows:
        yield Figure("gaps", gap_title(rows), caption, chart_parts.gap_bars(bars), "gaps", wide=True)


def gap_title(rows: list[Result]) -> str:
    """The largest of the gaps that were found; where a wider one was not, the title says which one it means."""
    found = [row for row in rows if row["found"]]
    if not found:
        return "no difference found"
    first = found[0]
    higher, lower = pair_names(first)
    which = "widest gap" if first == rows[0] else "widest gap that was found"
    return f"{which}: “{first['concept']}”, {higher} {points(first['value'])} points above {lower}"


def _gap_bars(part: pl.DataFrame, attribute: str, rows: list[Result]) -> Iterator[Result]:
    """A heading that names the sides, then the gaps from the right end to the left."""
    names = metric_rows(part, "group_mean").filter(subset=attribute)["group"].unique(maintain_order=True).to_list()
    ranks, (below, above) = sides(names, attribute)
    if rows:
        arrows = {"below": f"← {below} higher", "above": f"{above} higher →"} if below else {}
        yield {"heading": attribute_name(attribute), **arrows}
    bars = [
        _gap_bar(row, mirrored=bool(below) and ranks.get(row["group"], 0) < ranks.get(row["against"], 0))
        for row in rows
    ]
    yield from sorted(bars, key=lambda bar: -bar["value"])


def _gap_bar(row: Result, *, mirrored: bool) -> Result:
    """A gap in points, to the left if `mirrored`; who is higher is written only where that was found."""
    ends = _in_points(row)
    if mirrored:
        ends = {
            key: None if ends[of] is None else -ends[of]
            for key, of in (("value", "value"), ("low", "high"), ("high", "low"))
        }
    higher, lower = pair_names(row)
    who = (
        f"{higher}{chart_parts.LINE if len(higher + lower) > chart_parts.SHORT_PAIR else ' '}above {lower}"
        if row["found"]
        else "none found"
    )
    kept = {key: row[key] for key in ("concept", "valence", "found", "p_value", "n")}
    return {**kept, **ends, "pair": pair_text(row), "who": who, "points": points(row["value"], points_decimals(row))}


def _in_points(row: Result) -> Result:
    return {key: None if row[key] is None else round(100 * row[key], 3) for key in ("value", "low", "high")}


def _deviation_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    table = phrases.deviations(part)
    groups = list(dict.fromkeys(table["group"]))
    if len(groups) < 3:  # one of two columns would mirror the other
        return
    found = pl.col("concept").is_in(_found(part))
    cells = table.select("group", "points", trait="concept", found=found.cast(pl.Int64)).to_dicts()
    title = f"{attribute_name(attribute)}: {deviation_title(part, table, attribute)}"
    caption = (
        "Group mean minus the mean over everyone, in points of P(Yes), averaged over the wordings. Within each valence "
        "the widest gap comes first. Pale: no difference was found."
    )
    chart = chart_parts.heat_map(cells, groups, phrases.traits_in_order(part))
    yield Figure(f"deviations-{slug}", title, caption, chart, "traits")


def _found(part: pl.DataFrame) -> list[str]:
    """The traits whose gap was found."""
    return phrases.gaps(part).filter("found")["concept"].to_list()


def deviation_title(part: pl.DataFrame, table: pl.DataFrame, attribute: str) -> str:
    """The cell farthest from the mean, among the traits whose gap was found."""
    cells = table.filter(pl.col("concept").is_in(_found(part))).sort(pl.col("points").abs(), descending=True)
    if not cells.height:
        return "no difference found"
    cell = cells.row(0, named=True)
    side = "above" if cell["points"] > 0 else "below"
    group = group_name(cell["group"], attribute)
    return f"largest deviation: {group} for “{cell['concept']}”, {abs(cell['points']):.1f} points {side} the mean"


def _valence_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    kept = ("value", "landmark", "n", "found")
    rows = [
        {"group": group_name(row["group"], attribute), "valence": row["concept"], **{key: row[key] for key in kept}}
        for row in metric_rows(part, "valence_share").with_columns(found=FOUND).to_dicts()
    ]
    if rows:
        title = f"{attribute_name(attribute)}: {valence_title(rows)}"
        caption = (
            "Per cent of positive and of negative traits whose group mean lies above the overall mean in every "
            "wording, however small the difference. Tick: with shuffled labels. Pale: no difference from that was "
            "found, all groups and attributes together."
        )
        yield Figure(f"valence-{slug}", title, caption, chart_parts.valence_bars(rows), "valence")


def valence_title(rows: list[Result]) -> str:
    """The share farthest from what shuffled labels give, among those that were found to differ from it."""
    found = [row for row in rows if row["found"]]
    if not found:
        return "no share of traits above the mean differs from shuffled labels"
    far = max(found, key=lambda row: abs(row["value"] - row["landmark"]))
    return (
        f"{far['value']:.0f} % of {far['valence']} traits above the mean for {far['group']}, "
        f"{far['landmark']:.0f} % with shuffled labels"
    )


def _tone_figure(part: pl.DataFrame) -> Iterator[Figure]:
    table = phrases.by_tone(part)
    if table["group"].n_unique() < 3:
        return
    rows = table.with_columns(tone=pl.col("group").cast(pl.Int64, strict=False)).drop_nulls("tone").to_dicts()
    if rows:
        title = f"mean P(Yes) from light to dark skin tone: {tone_title(rows)}"
        caption = (
            "Mean P(Yes) over all traits of a valence and all wordings, by Monk skin tone (1 light to 10 dark) as "
            "labelled. Bands: 95 % intervals over the images of a tone."
        )
        yield Figure("skin-tone-curve", title, caption, chart_parts.tone_curve(rows), "tones", wide=True)


def tone_title(rows: list[Result]) -> str:
    """The range of the means of each valence."""
    kinds = dict.fromkeys(row["valence"] for row in rows)
    values = {kind: [row["value"] for row in rows if row["valence"] == kind] for kind in kinds}
    return "; ".join(f"{kind} traits {percent_range(min(means), max(means), 1)}" for kind, means in values.items())


def _crossed_figure(part: pl.DataFrame) -> Iterator[Figure]:
    table = phrases.favoured(part)
    if table.height < 2:
        return
    off, spread = table.filter("found").height, one_row(part, "interaction_spread")
    rows = [
        {"group": row["group"], "n": row["n"], **_in_points(row), "found": int(row["found"]), "alone": _alone(row)}
        for row in phrases.ends(table, CROSSED)
    ]
    title = f"of {table.height} intersections, {off} differ from the mean"
    if spread is not None and spread["verdict"] in (DIFFERENCE, NONE_FOUND):
        title += (
            ", also beyond their single attributes" if spread["verdict"] == DIFFERENCE else "; no interaction found"
        )
    caption = (
        "Positive traits minus negative ones, against the mean over everyone; the most and the least favoured. "
        "Intervals hold for all intersections together. Hollow: no difference was found. Tick: what the single "
        "attributes add up to."
    )
    yield Figure("intersections", title, caption, chart_parts.favour_forest(rows), "crossed", wide=True)


def _alone(row: Result) -> float | None:
    return None if row["expected"] is None else round(100 * row["expected"], 3)


def _range_figure(part: pl.DataFrame) -> Iterator[Figure]:
    """Every trait's range over the wordings."""
    row, ranges = one_row(part, "wording_sensitive"), phrases.wording_ranges(part)
    if row is None or ranges.height < STRIP:
        return
    rows = [{"trait": each["concept"], **_in_points(each)} for each in ranges.to_dicts()]
    moved = round(row["value"] * row["n"] / 100)
    title = f"P(Yes) moves by a point or more with the wording for {moved} of {row['n']} traits"
    caption = (
        "How far mean P(Yes) over everyone lies apart between two wordings at most, by trait. The line is at one point."
    )
    yield Figure("wording-ranges", title, caption, chart_parts.range_strip(rows), "wording", wide=True)


def _wording_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    table = phrases.wording_gaps(part)
    if table["template"].n_unique() < 2:
        return
    title = f"{attribute_name(attribute)}: {wording_title(table, _found(part))}"
    caption = (
        "Each column of marks is a trait: the gap of its widest pair in each wording, against their mean. On the line "
        "all wordings agree; below 0 a wording reverses the pair. Small gaps do so by chance."
    )
    chart = chart_parts.wording_scatter(table.rename({"concept": "trait", "template": "wording"}).to_dicts())
    yield Figure(f"wordings-{slug}", title, caption, chart, "wording")


def wording_title(table: pl.DataFrame, found: list[str]) -> str:
    """Whether a wording reverses any of the gaps that were found; gaps of noise reverse anyway."""
    if not found:
        return "no difference found"
    reversed_gaps = table.filter((pl.col("gap") < 0) & pl.col("concept").is_in(found))["concept"].n_unique()
    if not reversed_gaps:
        return "in no wording does a gap that was found point the other way"
    return f"in some wording {reversed_gaps} of the {len(found)} gaps found point the other way"
