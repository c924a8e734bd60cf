"""Perception's chapter of the report: first what can be said in a sentence, since a run has thousands of rows."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.chapter import INTERVALS, Cell, Chapter, Question, Table, labels, names
from beholder.chapter.numbers import ABSENT, Result, row_p_value
from beholder.chapter.queries import by_column, by_model, metric_rows
from beholder.datasets.glasshouse import DESIGN_NAME
from beholder.glasshouse.planted import WARM_RATES, implied_warmth, planted_row
from beholder.studies.perception import phrases, queries
from beholder.studies.perception.charts import perception_figures
from beholder.studies.perception.findings import perception_findings
from beholder.studies.perception.printed import PRINTED
from beholder.studies.perception.scores import CROSSED, INTERACTIONS, MEAN

REFERENCE = "glasshouse/contrastive"
PLANTED = {"warmth": "more", "communion_pos": "more", "communion_neg": "less"}
"""What an open smile adds, by dimension; in all other dimensions nothing was planted."""
NOTHING = "nothing"


def perception_planted(part: pl.DataFrame) -> Table | None:
    """The planted and the measured effect of smiling on each dimension, and how many other effects are found."""
    reference = part.filter((pl.col("model") == REFERENCE) & (pl.col("dataset") == DESIGN_NAME))
    effects = metric_rows(reference, "causal_effect")
    smiling = effects.filter(pl.col("subset") == "smiling").to_dicts()
    if not smiling:
        return None
    others = [row for row in effects.to_dicts() if row["subset"] != "smiling"]
    called = [row for row in others if queries.found(row)]
    largest = max((abs(row["value"]) for row in others), default=0.0)
    caption = (
        f"The effect of an open smile (4 against 0), {phrases.unit(smiling[0])}; small print: interval over "
        "identities. The reference model's captions use warm words for people who smile, cold words for people who do "
        "not, and all other words for everybody alike."
    )
    note = (
        f"No effect of gender, skin tone, age, light or pose was planted; {len(called)} of their {len(others)} "
        f"effects are found, and the largest is {100 * largest:.2f}: a trained model is not "
        "exactly what its captions imply."
    )
    title, header = "Known truth against what the audit found", ["Dimension", "Planted", "Found", "Verdict"]
    return Table(title, caption, header, [_cells(row) for row in smiling], 1, (note,), "planted")


def _cells(row: Result) -> list[Cell]:
    planted = PLANTED.get(row["concept"], NOTHING)
    measured = NOTHING if not queries.found(row) else "more" if row["value"] > 0 else "less"
    return [
        Cell(phrases.dimension(row["concept"])),
        Cell(planted),
        Cell(phrases.signed(row), phrases.bounds(row), strong=planted != NOTHING),
        Cell("as planted" if measured == planted else "found, not planted" if planted == NOTHING else "not found"),
    ]


# Values for the model card and its tests

NOTE = "softmax of a warm word against a cold one; planted: the same rate of warm captions"
SHARES = [
    planted_row("perception.warm_against_cold", "smiling", implied_warmth(k), group=str(k), concept="Warmth", note=NOTE)
    for k in WARM_RATES
]
SIGNS = [
    planted_row("perception.slope_sign", "smiling", sign, concept=concept, note="the sign is what is planted")
    for concept, sign in (("Warmth", 1.0), ("Communion +", 1.0), ("Communion -", -1.0), ("Competence", 0.0))
]
WARMTH = [*SHARES, *SIGNS]
"""What the captions imply for smiling and warmth."""


# Perception's chapter of the report

TOPICS = {
    "judgements": "How groups are judged",
    "effects": "What changes the judgement",
    "curves": "Judgements over age and smiling",
    "ranking": "Who comes first, and who is the default",
    "neutral": "The neutral prompt",
    "confounds": "What else may explain the judgement",
    "ratings": "Compared with people's ratings",
}
QUESTIONS = {
    "variant": Question("Is this the published measure?", "judgements"),
    "effect": Question("Which attribute changes the judgement when all else stays the same?", "effects"),
    "interaction": Question("Does an attribute have the same effect on every group?", "effects"),
    "stand_out": Question("Does the curve of one group stand out from those of the others?", "curves"),
    "gap": Question("How differently does the model judge groups of photographs?", "judgements"),
    "markedness": Question("Which group does the model treat as the default?", "ranking"),
    "ranking": Question("Which group comes first in the model's rankings?", "ranking"),
    "neutral": Question("What changes when the neutral prompt is subtracted?", "neutral"),
    "ratings": Question("Does the model put faces in the same order as people do?", "ratings"),
}

CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=perception_findings,
    tables=perception_tables,
    figures=perception_figures,
    published=perception_published,
    planted=perception_planted,
    glossary=("Judgements are cosines times 100: only differences between them mean something.",),
)


TOP = 12
AT_ONCE = "Small print: an interval that holds for all of them at once."
GAP = "Δ of the first group less Δ of the second, within the groups of the other labels where there are others."
LARGEST = {"gap": "The largest gaps between groups", "interaction": "The largest differences between slopes"}
PUBLISHED_SETS = {"fairface": "fairface-adults", "utkface": "utkface-adults"}
"""The data set of the published values, where a run's has another name."""
PUBLISHED_MODEL = "CLIP ViT-B/32"


def perception_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; each has the rows of all models."""
    yield from _group_table(part)
    yield from _difference_table(part, "gap", "judgements", GAP)
    yield from _effect_table(part)
    yield from _difference_table(
        part, "interaction", "effects", "How much more the attribute changes Δ for the first group than for the second."
    )
    yield from _curve_table(part)
    yield from _conventional_table(part)
    yield from _rating_table(part)


def _cell(row: Result | None, *, decimals: int = 2, strong: bool = False) -> Cell:
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    return Cell(phrases.number(row, decimals=decimals), phrases.bounds(row, decimals), strong)


# Groups


def _group_table(part: pl.DataFrame) -> Iterator[Table]:
    """Δ of every dimension in every group."""
    table, dimensions, columns = metric_rows(part, "delta_cosine"), queries.dimensions(part), labels(part, "Group")
    if not table.height:
        return
    body = []
    for (model, subset, group), rows in table.group_by(["model", "subset", "group"], maintain_order=True):
        cell_of = by_column(rows, "concept")
        cells = [_cell(cell_of.get(dimension)) for dimension in dimensions]
        name = phrases.group(str(group), str(subset))
        body.append([*names(part, str(model), name), Cell(str(rows["n"].max())), *cells])
    caption = f"Δ: the dimension's words less the neutral prompt, {queries.printed_unit(part)}. {INTERVALS}"
    header = [*columns, "n", *map(phrases.dimension, dimensions)]
    noted = table.drop_nulls("note").to_dicts()
    notes = dict.fromkeys(f"{phrases.dimension(row['concept'])}: {row['note']}" for row in noted)
    yield Table("Judgements by group", caption, header, body, len(columns), tuple(notes), "judgements", long=True)


def _difference_table(part: pl.DataFrame, metric: str, topic: str, meaning: str) -> Iterator[Table]:
    """The largest of many differences, with corrected p-values."""
    columns, body, count, number = labels(part, "Attribute", "Dimension"), [], 0, 0
    for model, own in by_model(part):
        rows = queries.decided(own, metric)
        count, number = count + sum(map(queries.found, rows)), number + len(rows)
        for row in rows[:TOP]:
            where = [phrases.attribute(row["subset"]), phrases.dimension(row["concept"])]
            groups = [Cell(group) for group in phrases.pair(row)]
            cells = [_cell(row, strong=queries.found(row)), Cell(row_p_value(row))]
            body.append([*names(part, model, *where), *groups, *cells])
    if not body:
        return
    unit = f"{queries.printed_unit(part)}; bold: a difference is found ({count} of {number})."
    header = [*columns, "First", "Second", "Difference", "p"]
    yield Table(LARGEST[metric], f"{meaning} {unit} {AT_ONCE}", header, body, len(columns), (), topic, long=True)


def _curve_table(part: pl.DataFrame) -> Iterator[Table]:
    """Slopes and curvatures of crossed groups, and how far each departs from the others."""
    slopes, columns, body = queries.by_place(part, "slope"), labels(part, "Over", "Dimension", "Group"), []
    others = {name: queries.by_place(part, name) for name in ("slope_departure", "curvature", "curvature_departure")}
    for key, slope in slopes.items():
        varied, grouping = INTERACTIONS[slope["subset"]]
        if grouping in CROSSED:
            cells = [_cell(each, strong=queries.found(each)) for each in _at(others, key)]
            who = phrases.group(slope["group"], grouping)
            where = [phrases.attribute(varied), phrases.dimension(slope["concept"]), who]
            body.append([*names(part, slope["model"], *where), _cell(slope), *cells])
    if body:
        caption = (
            "Slope: rise of a straight line over the whole range. Curvature: the two ends of a second-degree curve "
            "less its middle. Departure: less the mean of the other groups. "
            f"{queries.printed_unit(part)}; bold: a difference is found. {AT_ONCE}"
        )
        header = [*columns, "Slope", "Departure", "Curvature", "Departure"]
        yield Table("Slopes and curvature by group", caption, header, body, len(columns), (), "curves", long=True)


def _at(tables: dict[str, dict[tuple[str | None, ...], Result]], key: tuple[str | None, ...]) -> list[Result | None]:
    return [table.get(key) for table in tables.values()]


def _effect_table(part: pl.DataFrame) -> Iterator[Table]:
    """Average causal effects, and the mean absolute differences of the same sets."""
    key, columns = ("model", "subset", "group", "against", "concept"), labels(part, "Change", "Dimension")
    absolute = {tuple(row[name] for name in key): row for row in metric_rows(part, "absolute_difference").to_dicts()}
    body = []
    for row in metric_rows(part, "causal_effect").to_dicts():
        where = [phrases.change(row), phrases.dimension(row["concept"])]
        cells = [_cell(row, strong=queries.found(row)), Cell(row_p_value(row))]
        cells.append(_cell(absolute.get(tuple(row[name] for name in key))))
        body.append([*names(part, row["model"], *where), *cells])
    if body:
        caption = (
            f"Average change of Δ over matched sets, {queries.printed_unit(part)}; bold: a difference is found. Last "
            "column: the published mean absolute difference of the same sets, which noise alone makes more than 0. "
            f"{AT_ONCE}"
        )
        header, title = [*columns, "Effect", "p", "Mean |difference|"], "The effect of one attribute alone"
        yield Table(title, caption, header, body, len(columns), (), "effects", long=True)


# Conventional metrics

CONVENTIONAL = {
    "perception.markedness": "Markedness, per cent",
    "perception.mean_cosine": "Mean cosine",
    "perception.sc_weat": "SC-WEAT",
    "perception.skew": "Skew",
    "perception.max_skew": "MaxSkew",
    "perception.ndkl": "NDKL",
}


def _conventional_table(part: pl.DataFrame) -> Iterator[Table]:
    rows, columns = conventional(part), labels(part, "Metric", "Group")
    body = []
    for row in rows:
        where = names(part, row["model"], _metric_name(row, top=True), _group_name(row))
        body.append([*where, Cell(str(row["n"])), _cell(row), Cell(row_p_value(row))])
    if body:
        caption = (
            "As in the study's Table S.1; SC-WEAT, skew and NDKL are means over the dimensions. Markedness: images "
            f"that plain “person” fits better than the group's own word. Skew: 0 is an even share. {INTERVALS}"
        )
        notes = tuple(dict.fromkeys(_conventional_notes(part, rows)))
        header = [*columns, "n", "Value", "p"]
        yield Table("Conventional bias metrics", caption, header, body, len(columns), notes, "ranking")


def _conventional_notes(part: pl.DataFrame, rows: list[Result]) -> Iterator[str]:
    """Why a value is absent, computed as released, or a mean over fewer dimensions; what NDKL is without preference."""
    key = ("model", "subset", "group", "template")
    infinite = metric_rows(part, "skew", absent=True).filter(pl.col("value").is_null())
    fewer = set(infinite.select(key).iter_rows())
    for row in rows:
        partial = row["metric"] == "perception.skew" and tuple(row[name] for name in key) in fewer
        if row["note"] and (row["value"] is None or row["variant"] or partial):
            yield f"{_metric_name(row)}, {_group_name(row)}: {row['note']}"
        elif row["metric"] == "perception.skew" and row["landmark"]:
            yield f"Skew, {_group_name(row)}: that of all images ranked is {phrases.decimal(row['landmark'])}"
        elif row["metric"] == "perception.ndkl" and row["expected"] is not None:
            by = f"{_metric_name(row)} by {phrases.attribute(row['subset'])}"
            yield f"{by}: {row['expected']:.4f} is expected of a ranking without preference"


def conventional(part: pl.DataFrame) -> list[Result]:
    """The rows of Table S.1, in its order; skews at the largest k there is."""
    rows = [*metric_rows(part, "markedness", absent=True).to_dicts(), *metric_rows(part, "mean_cosine").to_dicts()]
    rows += queries.over_dimensions(part, "sc_weat")
    for metric in ("skew", "max_skew"):
        skews = queries.over_dimensions(part, metric)
        largest = {(row["model"], row["subset"]): row["template"] for row in reversed(skews)}
        rows += [row for row in skews if row["template"] == largest[row["model"], row["subset"]]]
    return rows + queries.over_dimensions(part, "ndkl")


def _metric_name(row: Result, *, top: bool = False) -> str:
    name = CONVENTIONAL[row["metric"]] if row["unit"] != "P(Yes)" else "Mean P(Yes)"
    return f"{name} ({row['template']})" if top and row["template"] else name


def _group_name(row: Result) -> str:
    return phrases.against(row) if row["group"] else phrases.attribute(row["subset"])


# Ratings


def _rating_table(part: pl.DataFrame) -> Iterator[Table]:
    rows, columns, body = metric_rows(part, "rating_r", absent=True).to_dicts(), labels(part, "Trait"), []
    for row in rows:
        trait = names(part, row["model"], phrases.dimension(row["concept"]))
        body.append([*trait, Cell(f"{row['subset']}s"), Cell(str(row["n"])), _cell(row)])
    if body:
        title, header = "Compared with people's ratings", [*columns, "Rated", "n", "r"]
        caption = f"Correlation of people's mean ratings with the model's Δ; 1: the same order. {INTERVALS}"
        notes = dict.fromkeys(f"{row['concept']}: {row['note']}" for row in rows if row["value"] is None)
        yield Table(title, caption, header, body, len(columns), tuple(notes), "ratings")


# Published


def perception_published(part: pl.DataFrame) -> Table | None:
    """The run and the study's printed values, on the study's own image sets; cosines only."""
    if not part.height or queries.score_unit(part) != "cosine":
        return None
    dataset = PUBLISHED_SETS.get(part["dataset"][0], part["dataset"][0])
    printed = {_key(cell): cell["printed"] for cell in PRINTED.cells.filter(dataset=dataset).to_dicts()}
    columns, body = labels(part, "Metric", "Group"), []
    for row, *named in _compared(part):
        if (value := printed.get(_key(row))) is not None:
            published = Cell(phrases.decimal(phrases.factor(row) * value))
            body.append([*names(part, row["model"], *named), _cell(row, strong=True), published])
    if not body:
        return None
    caption = (
        "Markedness in per cent, mean cosine × 100. The study ranks 1,000 images of its own, larger sets: skews "
        "compare only where k and the images are the same."
    )
    title, header = f"Compared with the published values of {PUBLISHED_MODEL}", [*columns, "This run", "Published"]
    return Table(title, caption, header, body, len(columns), PRINTED.provenance("perception.markedness"))


def _compared(part: pl.DataFrame) -> Iterator[tuple[Result, str, str]]:
    """The rows of Tables S.1 and S.2, each with its metric and group in words."""
    for row in conventional(part):
        yield row, _metric_name(row), _group_name(row)
    for row in metric_rows(part, "opposites_r").to_dicts():
        scale = f"{phrases.dimension(row['concept'])} and its opposite"
        yield row, "r of curves", f"{'mean of all scales' if row['concept'] == MEAN else scale}, over {row['subset']}"


def _key(row: Result) -> tuple[str, str, str, str]:
    """What a number is of; data sets spell one group in several ways (Male, male)."""
    return row["metric"], row["subset"], (row["group"] or "").lower(), (row["against"] or "").lower()
