"""Perception's chapter of the report: groups, gaps, effects, and the study's Tables S.1 and S.2 next to the run."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from beholder.chapter import chapter
from beholder.chapter.chapter import INTERVALS, Cell, Chapter, Column, Table, cell_of, crossed, p_cell, tabled
from beholder.chapter.finding import by_model, metric_rows
from beholder.chapter.numbers import ABSENT, Result, decimal
from beholder.datasets.glasshouse import DESIGN_NAME
from beholder.studies.mirror import mirror_tables
from beholder.studies.perception import findings
from beholder.studies.perception.charts import perception_figures
from beholder.studies.perception.findings import found, perception_findings
from beholder.studies.perception.scores import CROSSED, INTERACTIONS, MEAN
from beholder.studies.perception.study import PRINTED

TOP = 12  # differences of a model that are listed
AT_ONCE = "Small print: an interval that holds for all of them at once."
PUBLISHED_SETS = {"fairface": "fairface-adults", "utkface": "utkface-adults"}  # where a run's data set has another name
PUBLISHED_MODEL = "CLIP ViT-B/32"
ATTRIBUTE: Column = ("Attribute", lambda row: findings.attribute(row["subset"]))
DIMENSION: Column = ("Dimension", lambda row: findings.dimension(row["concept"]))


CAPTIONS = {  # {unit} is that of the judgements
    "effects": "Average change of Δ over matched sets, {unit}; bold: a difference is found. Last column: the published "
    f"mean absolute difference of the same sets, which noise alone makes more than 0. {AT_ONCE}",
    "curves": "Slope: rise of a straight line over the whole range. Curvature: the two ends of a second-degree curve "
    "less its middle. Departure: less the mean of the other groups. {unit}; bold: a difference is found. "
    f"{AT_ONCE}",
    "conventional": "As in the study's Table S.1; SC-WEAT, skew and NDKL are means over the dimensions. Markedness: "
    "images that plain “person” fits better than the group's own word. Recognised: images whose own word fits best. "
    "Skew: 0 is an even share. "
    f"{INTERVALS}",
    "published": "Markedness in per cent, mean cosine × 100. The study ranks 1,000 images of its own, larger sets: "
    "skews compare only where k and the images are the same.",
    "planted": "The effect of an open smile (4 against 0), {unit}; small print: interval over identities. The "
    "reference model's captions use warm words for people who smile, cold words for people who do not, and all other "
    "words for everybody alike.",
    "gap": "Δ of the first group less Δ of the second, within the groups of the other labels where there are others.",
    "interaction": "How much more the attribute changes Δ for the first group than for the second.",
}


def perception_tables(part: pl.DataFrame) -> list[Table]:
    """Every table with anything in it; each has the rows of all models."""
    gaps = _largest(part, "gap", "The largest gaps between groups", "judgements")
    slopes = _largest(part, "interaction", "The largest differences between slopes", "effects")
    tables = (_groups(part), gaps, _effects(part), slopes, _curves(part), _conventional(part), *mirror_tables(part))
    return [table for table in tables if table.rows]


def _cell(row: Result | None, *, strong: bool | None = None) -> Cell:
    """A number with its interval, bold where a difference is found."""
    if row is None or row["value"] is None:
        return Cell(ABSENT)
    return Cell(findings.number(row, decimals=2), findings.bounds(row, 2), found(row) if strong is None else strong)


def _plain(row: Result | None) -> Cell:
    return _cell(row, strong=False)


def _groups(part: pl.DataFrame) -> Table:
    table = metric_rows(part, "delta_cosine")
    rows = crossed(table.to_dicts(), ("model", "subset", "group"), "concept", _plain)
    columns = [(findings.dimension(name), cell_of(name)) for name in dict.fromkeys(table["concept"])]
    caption = f"Δ: the dimension's words less the neutral prompt, {findings.printed_unit(part)}. {INTERVALS}"
    noted = table.drop_nulls("note").to_dicts()
    notes = [f"{findings.dimension(row['concept'])}: {row['note']}" for row in noted]
    left: list[Column] = [("Group", lambda row: findings.group(row["group"], row["subset"]))]
    named = {"title": "Judgements by group", "topic": "judgements"}
    return tabled(part, rows, left, [("n", "n"), *columns], caption=caption, notes=notes, long=True, **named)


def _largest(part: pl.DataFrame, metric: str, title: str, topic: str) -> Table:
    decided = [findings.decided(own, metric) for _, own in by_model(part)]
    count, clear = (sum(len(each[which]) for each in decided) for which in (0, 1))
    unit = f"{findings.printed_unit(part)}; bold: a difference is found ({clear} of {count})."
    caption, rows = f"{CAPTIONS[metric]} {unit} {AT_ONCE}", [row for every, _ in decided for row in every[:TOP]]
    ends: list[Column] = [("First", lambda row: findings.pair(row)[0]), ("Second", lambda row: findings.pair(row)[1])]
    columns = [*ends, ("Difference", _cell), ("p", p_cell)]
    return tabled(part, rows, [ATTRIBUTE, DIMENSION], columns, title=title, caption=caption, topic=topic, long=True)


def _effects(part: pl.DataFrame) -> Table:
    absolute = findings.by_place(part, "absolute_difference")
    rows, left = metric_rows(part, "causal_effect").to_dicts(), [("Change", findings.change), DIMENSION]
    last: Column = ("Mean |difference|", lambda row: _plain(absolute.get(findings.place(row))))
    caption = CAPTIONS["effects"].format(unit=findings.printed_unit(part))
    named = {"title": "The effect of one attribute alone", "topic": "effects"}
    return tabled(part, rows, left, [("Effect", _cell), ("p", p_cell), last], caption=caption, long=True, **named)


def _curves(part: pl.DataFrame) -> Table:
    rows = []
    others = {name: findings.by_place(part, name) for name in ("slope_departure", "curvature", "curvature_departure")}
    for row in metric_rows(part, "slope").to_dicts():
        varied, grouping = INTERACTIONS[row["subset"]]
        if grouping in CROSSED:
            cells = {name: _cell(table.get(findings.place(row))) for name, table in others.items()}
            named = {"over": findings.attribute(varied), "who": findings.group(row["group"], grouping)}
            rows.append({**row, **named, **cells, "slope": _plain(row)})
    columns: list[Column] = [("Slope", "slope"), ("Departure", "slope_departure")]
    columns += [("Curvature", "curvature"), ("Departure", "curvature_departure")]
    caption = CAPTIONS["curves"].format(unit=findings.printed_unit(part))
    left: list[Column] = [("Over", "over"), DIMENSION, ("Group", "who")]
    title = "Slopes and curvature by group"
    return tabled(part, rows, left, columns, title=title, caption=caption, topic="curves", long=True)


CONVENTIONAL = {
    "perception.markedness": "Markedness, per cent",
    "perception.recognised": "Recognised, per cent",
    "perception.mean_cosine": "Mean cosine",
    "perception.sc_weat": "SC-WEAT",
    "perception.skew": "Skew",
    "perception.max_skew": "MaxSkew",
    "perception.ndkl": "NDKL",
}


def _conventional(part: pl.DataFrame) -> Table:
    top: Column = ("Metric", lambda row: f"{_metric(row)} ({row['template']})" if row["template"] else _metric(row))
    columns: list[Column] = [("n", "n"), ("Value", _plain), ("p", p_cell)]
    rows, notes = conventional(part), _conventional_notes(part)
    named = {"title": "Conventional bias metrics", "topic": "ranking", "caption": CAPTIONS["conventional"]}
    return tabled(part, rows, [top, ("Group", _group)], columns, notes=notes, **named)


def _conventional_notes(part: pl.DataFrame) -> Iterator[str]:
    """Why a value is absent, computed as released, or a mean over fewer dimensions; what NDKL is without preference."""
    key = ("model", "subset", "group", "template")
    infinite = metric_rows(part, "skew", absent=True).filter(pl.col("value").is_null())
    fewer = set(infinite.select(key).iter_rows())
    for row in conventional(part):
        partial = row["metric"] == "perception.skew" and tuple(row[name] for name in key) in fewer
        if row["note"] and (row["value"] is None or row["variant"] or partial):
            yield f"{_metric(row)}, {_group(row)}: {row['note']}"
        elif row["metric"] == "perception.skew" and row["landmark"]:
            yield f"Skew, {_group(row)}: that of all images ranked is {decimal(row['landmark'])}"
        elif row["metric"] == "perception.ndkl" and row["expected"] is not None:
            by = f"{_metric(row)} by {findings.attribute(row['subset'])}"
            yield f"{by}: {row['expected']:.4f} is expected of a ranking without preference"


def conventional(part: pl.DataFrame) -> list[Result]:
    """The rows of Table S.1, in its order; skews at the largest k there is."""
    rows = []
    for metric in (name.removeprefix("perception.") for name in CONVENTIONAL):
        table = metric_rows(part, metric, absent=metric != "mean_cosine")
        by_group = metric in ("markedness", "recognised", "mean_cosine")
        own = (table if by_group else table.filter(concept=MEAN)).to_dicts()
        largest = {(row["model"], row["subset"]): row["template"] for row in reversed(own)}
        rows += [row for row in own if row["template"] == largest[row["model"], row["subset"]]]
    return rows


def _metric(row: Result) -> str:
    return CONVENTIONAL[row["metric"]] if row["unit"] != "P(Yes)" else "Mean P(Yes)"


def _group(row: Result) -> str:
    return findings.against(row) if row["group"] else findings.attribute(row["subset"])


def perception_published(part: pl.DataFrame) -> Table | None:
    """The run and the study's printed values, on the study's own image sets; cosines only."""
    if not part.height or findings.score_unit(part) != "cosine":
        return None
    dataset = PUBLISHED_SETS.get(part["dataset"][0], part["dataset"][0])
    printed = {_key(cell): cell["printed"] for cell in PRINTED.cells.filter(dataset=dataset).to_dicts()}
    rows = [{**row, "what": _metric(row), "who": _group(row)} for row in conventional(part)]
    for row in metric_rows(part, "opposites_r").to_dicts():
        scale = f"{findings.dimension(row['concept'])} and its opposite"
        who = f"{'mean of all scales' if row['concept'] == MEAN else scale}, over {row['subset']}"
        rows.append({**row, "what": "r of curves", "who": who})
    rows = [row for row in rows if printed.get(_key(row)) is not None]
    ours: Column = ("This run", lambda row: _cell(row, strong=True))
    theirs: Column = ("Published", lambda row: decimal(findings.factor(row) * printed[_key(row)]))
    title = f"Compared with the published values of {PUBLISHED_MODEL}"
    notes = PRINTED.provenance("perception.markedness")
    left: list[Column] = [("Metric", "what"), ("Group", "who")]
    table = tabled(part, rows, left, [ours, theirs], title=title, caption=CAPTIONS["published"], notes=notes)
    return table if table.rows else None


def _key(row: Result) -> tuple[str, str, str, str]:
    """What a number is of; data sets spell one group in several ways (Male, male)."""
    return row["metric"], row["subset"], (row["group"] or "").lower(), (row["against"] or "").lower()


REFERENCE = "glasshouse/contrastive"
PLANTED = {"warmth": "more", "communion_pos": "more", "communion_neg": "less"}  # what an open smile adds
NOTHING = "nothing"


def perception_planted(part: pl.DataFrame) -> Table | None:
    """The planted and the measured effect of smiling on each dimension, and how many other effects are found."""
    effects = metric_rows(part.filter(model=REFERENCE, dataset=DESIGN_NAME), "causal_effect").to_dicts()
    smiling = [row for row in effects if row["subset"] == "smiling"]
    if not smiling:
        return None
    others = [row for row in effects if row["subset"] != "smiling"]
    largest = max((abs(row["value"]) for row in others), default=0.0)
    note = "No effect of gender, skin tone, age, light or pose was planted;"
    note += f" {sum(map(found, others))} of their {len(others)} effects are found,"
    note += f" and the largest is {100 * largest:.2f}: a trained model is not exactly what its captions imply."
    columns: list[Column] = [
        ("Planted", lambda row: PLANTED.get(row["concept"], NOTHING)),
        ("Found", lambda row: Cell(findings.signed(row), findings.bounds(row), row["concept"] in PLANTED)),
        ("Verdict", _recovered),
    ]
    caption = CAPTIONS["planted"].format(unit=findings.unit(smiling[0]))
    named = {"title": "Known truth against what the audit found", "topic": "planted"}
    return tabled(part.head(1), smiling, [DIMENSION], columns, caption=caption, notes=(note,), **named)


def _recovered(row: Result) -> str:
    planted = PLANTED.get(row["concept"], NOTHING)
    measured = NOTHING if not found(row) else "more" if row["value"] > 0 else "less"
    return "as planted" if measured == planted else "found, not planted" if planted == NOTHING else "not found"


CHAPTER = Chapter(
    topics={
        "judgements": "How groups are judged",
        "effects": "What changes the judgement",
        "curves": "Judgements over age and smiling",
        "ranking": "Who comes first, and who is the default",
        "neutral": "The neutral prompt",
        "confounds": "What else may explain the judgement",
        "people": "Compared with people's ratings",
    },
    questions=chapter.read_questions(Path(__file__).with_name("questions.csv")),
    findings=perception_findings,
    tables=perception_tables,
    figures=perception_figures,
    published=perception_published,
    planted=perception_planted,
    glossary=("Judgements are cosines times 100: only differences between them mean something.",),
)
