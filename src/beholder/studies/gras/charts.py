"""GRAS's figures: gaps, deviations, valence, skin tones, wordings; aggregated first, so that a page stays small."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.figure import Figure, sentence
from beholder.chapter.numbers import Result, excludes
from beholder.studies.gras import chart_parts as marks
from beholder.studies.gras import phrases as said
from beholder.studies.gras import queries as reading
from beholder.studies.gras.groups import ALPHA
from beholder.studies.gras.tables import CROSSED, MOST_MODELS, TOP, models


def gras_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """Every figure, model by model; the name tells them apart where there are several."""
    several, large = part["model"].n_unique() > 1, part["model"].n_unique() <= MOST_MODELS
    for number, (model, mine) in enumerate(models(part), 1):
        for figure in _figures(mine, large=large):
            title = sentence(f"{model}, " if several else "", figure.title)
            yield figure._replace(name=f"{figure.name}-{number}" if several else figure.name, title=title)


def _figures(mine: pl.DataFrame, *, large: bool) -> Iterator[Figure]:
    """One model's, a chart an attribute; those with a mark for every trait only where there is room."""
    for attribute in reading.attributes(mine):
        part, slug = mine.filter(pl.col("subset") == attribute), attribute.replace("_", "-")
        yield from _gap_figure(part, attribute, slug)
        yield from _valence_figure(part, attribute, slug)
        if large:
            yield from _deviation_figure(part, attribute, slug)
            yield from _wording_figure(part, attribute, slug)
    yield from _tone_figure(mine)
    yield from _crossed_figure(mine)


# Gaps


def _gap_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    rows = reading.largest(part, attribute, TOP)
    if rows:
        yield Figure(
            f"gaps-{slug}",
            f"{said.attribute(attribute)}: {gap_title(rows)}",
            "Highest group mean less lowest with its 95 % interval, all wordings together; below it, between whom. "
            "Hollow: not shown after correction; the widest of many pairs lies off 0 even by chance.",
            marks.forest([_gap_mark(row) for row in rows]),
            "gaps",
        )


def gap_title(rows: list[Result]) -> str:
    """How far the largest gaps reach, of those that are shown."""
    shown = [row for row in rows if row["shown"]]
    if not shown:
        return "no gap is shown"
    first = f"“{shown[0]['concept']}” {said.points(shown[0]['value'])} points"
    return f"{first}, the widest gap" if len(shown) == 1 else f"gaps up to {first}"


def _gap_mark(row: Result) -> Result:
    kept = {key: row[key] for key in ("concept", "valence", "shown", "p_value", "n")}
    return {**kept, **_in_points(row), "pair": said.between(row)}


def _in_points(row: Result) -> Result:
    return {key: None if row[key] is None else round(100 * row[key], 3) for key in ("value", "low", "high")}


# Deviations


def _deviation_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    table = reading.deviations(part)
    if not table.height:
        return
    groups = list(dict.fromkeys(table["group"]))
    shown = set(reading.gaps(part).filter("shown")["concept"])
    cells = [
        {"trait": trait, "group": group, "points": value, "shown": int(trait in shown)}
        for trait, group, value in table.select("concept", "group", "points").iter_rows()
    ]
    yield Figure(
        f"deviations-{slug}",
        f"{said.attribute(attribute)}: {deviation_title(part, table, attribute)}",
        "Group mean less the mean over everyone, in points of P(Yes), mean of the wordings. Within each valence the "
        "widest gap stands first; pale traits differ by no more than chance may, after correction.",
        marks.heat_map(cells, groups, reading.traits_in_order(part)),
        "traits",
    )


def deviation_title(part: pl.DataFrame, table: pl.DataFrame, attribute: str) -> str:
    """The cell farthest from the mean, of the traits whose gap is shown."""
    shown = reading.gaps(part).filter("shown")["concept"].to_list()
    cells = table.filter(pl.col("concept").is_in(shown)).sort(pl.col("points").abs(), descending=True)
    if not cells.height:
        return "no trait's deviations are shown"
    cell = cells.row(0, named=True)
    way = "above" if cell["points"] > 0 else "below"
    who = said.group(cell["group"], attribute)
    return f"{who} farthest off at “{cell['concept']}”, {abs(cell['points']):.1f} points {way} the mean"


# Valence


def _valence_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    rows = [
        {"group": said.group(row["group"], attribute), "valence": row["concept"], "value": row["value"], "n": row["n"]}
        for row in reading.rows(part, "valence_share").to_dicts()
    ]
    if rows:
        yield Figure(
            f"valence-{slug}",
            f"{said.attribute(attribute)}: {valence_title(rows)}",
            "Per cent of positive and of negative traits whose group mean lies above that of all in every wording; "
            "it counts traits, however small their difference.",
            marks.valence_bars(rows),
            "valence",
        )


def valence_title(rows: list[Result]) -> str:
    """The range over the groups; which group is ahead is for the bars to say, since there is no test."""
    ranges = []
    for kind in dict.fromkeys(row["valence"] for row in rows):
        shares = sorted(row["value"] for row in rows if row["valence"] == kind)
        ranges.append(f"{shares[0]:.0f}–{shares[-1]:.0f} % of {kind} traits")
    return f"above the mean in every wording, {' and '.join(ranges)}"


# Skin tones


def _tone_figure(mine: pl.DataFrame) -> Iterator[Figure]:
    table = reading.by_tone(mine)
    if table["group"].n_unique() < 3:
        return
    rows = table.with_columns(tone=pl.col("group").cast(pl.Int64, strict=False)).drop_nulls("tone").to_dicts()
    if rows:
        yield Figure(
            "skin-tone-curve",
            f"from light to dark skin tone: {tone_title(rows)}",
            "Mean P(Yes) over all traits of a valence and all wordings, by Monk skin tone (1 light to 10 dark) as "
            "labelled. Bands: 95 % intervals over the images of a tone.",
            marks.tone_curve(rows),
            "tones",
            wide=True,
        )


def tone_title(rows: list[Result]) -> str:
    """How much P(Yes) moves over the tones, valence by valence; said only where the tones are shown to differ."""
    said_of = []
    for kind in dict.fromkeys(row["valence"] for row in rows):
        mine = sorted((row for row in rows if row["valence"] == kind), key=lambda row: row["value"])
        least, most = mine[0], mine[-1]
        if most["p_value"] is not None and most["p_value"] <= ALPHA:
            span = said.points(most["value"] - least["value"])
            said_of.append(f"{kind} traits move by {span} points")
    return " and ".join(said_of) or "no difference is shown"


# Intersections


def _crossed_figure(mine: pl.DataFrame) -> Iterator[Figure]:
    table = reading.favoured(mine)
    if table.height < 2:
        return
    off = sum(excludes(row, 0.0) for row in table.to_dicts())
    rows = [
        {"group": row["group"], "n": row["n"], **_in_points(row), "shown": int(excludes(row, 0.0))}
        for row in reading.ends(table, CROSSED)
    ]
    yield Figure(
        "intersections",
        f"{off} of {table.height} intersections lie off the mean",
        "Positive traits less negative ones, against the mean over everyone, with 95 % intervals; the most and the "
        "least favoured. Small cells are drawn towards the mean. Hollow: the interval holds 0.",
        marks.favour_forest(rows),
        "crossed",
        wide=True,
    )


# Wordings


def _wording_figure(part: pl.DataFrame, attribute: str, slug: str) -> Iterator[Figure]:
    table = reading.wording_gaps(part)
    if table["template"].n_unique() < 2:
        return
    seen = wording_title(table, reading.gaps(part).filter("shown")["concept"].to_list())
    rows = [
        {"trait": trait, "wording": template, "mean": mean, "gap": gap}
        for trait, template, mean, gap in table.iter_rows()
    ]
    yield Figure(
        f"wordings-{slug}",
        f"{said.attribute(attribute)}: {seen}",
        "A column of marks a trait: the gap between its widest pair in each wording, against their mean. On the line "
        "all wordings agree; below 0 a wording turns the pair round. Small gaps do so by chance.",
        marks.wording_scatter(rows, said.wording),
        "wording",
    )


def wording_title(table: pl.DataFrame, shown: list[str]) -> str:
    """Whether a wording turns round any of the gaps that are shown; those of noise turn anyway."""
    turned = table.filter((pl.col("gap") < 0) & pl.col("concept").is_in(shown))["concept"].n_unique()
    if not shown:
        return "no gap is shown, in whatever wording"
    return (
        f"{turned} of the {len(shown)} gaps shown turn round in some wording"
        if turned
        else "no wording turns round a gap that is shown"
    )
