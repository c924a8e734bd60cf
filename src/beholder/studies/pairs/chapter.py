"""The chapter on pairs: which answer changes when only the person of a scene changes."""

from collections.abc import Iterator
from functools import partial

import polars as pl

from beholder.chapter import chapter, numbers
from beholder.chapter.chapter import INTERVALS, Chapter, Column, Question, Table, decimal_cell, tabled
from beholder.chapter.charts import Axis, Figure, each_model, forest
from beholder.chapter.finding import CHECK, Finding, contrast, deciding_rows, finding, swapped, valued, verdict_of_rows
from beholder.chapter.numbers import Result, has_interval, percent, plural, points, points_decimals, points_range
from beholder.comparison.family import DIFFERENCE, FACT, NOT_MEASURED, TOO_LITTLE
from beholder.glasshouse.planted import REFERENCE, implied_occupation
from beholder.studies.pairs.tables import table_findings

FAVOURABLE = {
    "occupations": "the occupation of higher status",
    "status": "the answer of higher status",
    "potential_crime": "the innocent answer",
    "pairs": "the better answer (of higher status, or innocent)",
}
MANY = 12
TOGETHER = f"{INTERVALS} They hold for all parts, labels and questions together."
KINDS = {
    "gap": (
        "pairs",
        "choice",
        "Gaps in the same scene",
        "How much more often one person gets the favourable option (of higher status, or innocent) than another in the "
        f"same scene, in points; unclear counts for half. {TOGETHER}",
    ),
    "unclear_gap": ("unclear", "unclear", "Whom the model calls unclear", f"In points of all answers. {TOGETHER}"),
    "interaction": (
        "crossing",
        "",
        "Two labels together",
        f"How much a gap by one label changes with the other, in points. {TOGETHER}",
    ),
}  # by how the metric ends: the kind of its findings, the metric of each group, the title and caption of its table
OCCUPATIONS = (
    "In points of GenderBias-VL. Largest: towards the gender that is more frequent, as printed. Signed: the mean with "
    f"its sign. Labour: correlation of the bias towards women with the share of women. {INTERVALS}"
)
WORK = {"doctors": "nurse", "chefs": "cook", "builders": "assistant", "judges": "clerk"}
CAPTION = "Right of the line: the first group gets the favourable option more often. All numbers are judged together."


def gaps(part: pl.DataFrame, kind: str) -> list[Result]:
    """The differences of one kind, each seen from the higher group: the surest first."""
    rows = [swapped(row) if row["value"] < 0 else row for row in deciding_rows(part, kind).to_dicts()]
    return sorted(rows, key=lambda row: (1.0 if row["p_value"] is None else row["p_value"], -row["value"]))


def option(row: Result) -> str:
    """What is chosen: the option of one question, or the favourable one of a part."""
    favourable = FAVOURABLE.get(row["template"] or row["dataset"], "the favourable option")
    named = f"“{row['concept']}”" if row["concept"] else favourable
    return "the answer “unclear”" if row["metric"].endswith("unclear_gap") else named


def scenes(row: Result) -> str:
    """The part that a row is about."""
    return (row["template"] or "all scenes").replace("_", " ")


def pair_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """For every label, the surest gap, or that none was found; then crossings, and whom the model calls unclear."""
    for ending in KINDS:
        rows = gaps(part, ending)
        for label in dict.fromkeys(row["subset"] for row in rows):
            yield _told(part, ending, [row for row in rows if row["subset"] == label])
    yield from (*_planted(part), *table_findings(part))


def _told(part: pl.DataFrame, ending: str, rows: list[Result]) -> Finding:
    kind, mean, *_ = KINDS[ending]
    row, label, verdict = rows[0], rows[0]["subset"], verdict_of_rows(rows)
    bounds = f"95 % interval {points_range(row)}" if has_interval(row) else "no interval"
    bracket = f"{bounds}, p {numbers.row_p_value(row)}, {row['n']} scenes"
    apart = f"{points(row['value'], points_decimals(row))} points ({bracket})"
    more, less, what = numbers.people(row["group"]), numbers.people(row["against"]), option(row)
    same = ("model", "subset", "template", "concept")
    means = [each for each in chapter.rows_of(part, mean) if all(each[key] == row[key] for key in same)] if mean else []
    shown = contrast(f"{what}, {scenes(row)}", row, {each["group"]: each for each in means})
    shares = [f"{numbers.people(side.group)} in {percent(side.value)}" for side in shown.sides or ()]
    apart = f"{what} goes to {' and to '.join(shares)} of answers, {apart} apart" if shares else f"{apart} apart"
    headline = f"No answer was found to change with {label}"
    sentence, answer = f"Nearest to a difference, in {scenes(row)}: {apart}.", ""
    if verdict == TOO_LITTLE:
        headline = f"Too few scenes to say whether answers change with {label}"
    elif verdict == NOT_MEASURED:
        headline = f"The model seldom answers with a letter: whether {label} changes its answers is not known"
        letters = " and ".join(percent(each["value"]) for each in valued(part, "answered"))
        sentence = f"The letters of the options get {letters} of its belief. {sentence}"
    elif verdict == DIFFERENCE:
        found = sum(each["verdict"] == DIFFERENCE for each in rows)
        headline = f"{what[0].upper()}{what[1:]} goes to {more} more often than to {less} in the same scene"
        where = f"In scenes of “{scenes(row)}” where" if row["template"] else "Where"
        answer = f"{where} only the person in the picture changes, {what} goes more often to {more} than to {less}."
        sentence = f"In {scenes(row)}: {apart}. {found} of {len(rows)} numbers differ by {label}."
        if ending == "interaction":
            headline = answer = f"{label[0].upper()}{label[1:]}: both labels together do more than each alone"
    more_rows = [each for each in rows[1:] if each["verdict"] == DIFFERENCE or each["template"] is None]
    told = {"verdict": verdict, "effect": abs(row["value"]), "more": more_rows, "contrasts": [shown], "answer": answer}
    card = "" if ending == "interaction" else f"The same scene, another {label}"
    return finding(row, kind, headline, sentence, **told)._replace(card=card)


POINTS = partial(chapter.points_cell, plain=True)


def pair_tables(part: pl.DataFrame) -> Iterator[Table]:
    """What differs, by kind; and the means of every group."""
    left: list[Column] = [("Label", "subset"), ("Scenes", scenes), ("Question", lambda row: row["concept"] or "all")]
    pair: list[Column] = [("Higher", "group"), ("Lower", "against")]
    columns: list[Column] = [*pair, ("Points", POINTS), ("p", chapter.p_cell), ("n", "n")]
    shares: list[Column] = [("Group", "group"), ("Share", chapter.percent_cell), ("n", "n")]
    for ending, (_, mean, title, caption) in KINDS.items():
        topic = "unclear" if mean == "unclear" else "pairs"
        if rows := gaps(part, ending):
            yield tabled(part, rows, left, columns, title=title, caption=caption, topic=topic, long=len(rows) > MANY)
        if rows := chapter.rows_of(part, mean) if mean else []:
            named = {"title": f"{title}: each group", "caption": INTERVALS, "topic": topic}
            yield tabled(part, rows, left, shares, long=True, **named)
    if sizes := chapter.rows_of(part, "mean_size"):
        rest = {kind: chapter.rows_of(part, kind) for kind in ("largest", "signed", "labour")}
        lines = [{**row, **{kind: decimal_cell(rest[kind][place]) for kind in rest}} for place, row in enumerate(sizes)]
        heads: list[Column] = [
            ("Mean size", lambda row: f"{row['value']:.2f}"),
            ("By chance", lambda row: f"{row['expected']:.2f}"),
        ]
        heads += [(kind.capitalize(), kind) for kind in rest]
        yield tabled(part, lines, [], heads, title="Pairs of occupations", caption=OCCUPATIONS, topic="tables")


def pair_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Gaps of all questions together, part by part: a chart for every two groups."""
    for number, figure in enumerate(each_model(results, _figures), 1):
        yield figure._replace(name=f"pairs-{number}")


def _figures(part: pl.DataFrame) -> Iterator[Figure]:
    rows = [row for row in deciding_rows(part, "gap").to_dicts() if row["concept"] is None]
    for two in dict.fromkeys((row["subset"], row["group"], row["against"]) for row in rows):
        own = [{**row, "subset": scenes(row)} for row in rows if (row["subset"], row["group"], row["against"]) == two]
        first, second = plural(two[1]), plural(two[2])
        drawing = forest(own, Axis(f"{first} more often than {second}", percent=True), landmark=0.0)
        found = sum(row["verdict"] == DIFFERENCE for row in own)
        title = f"{first} and {second} in the same scene: {found} of {len(own)} differ"
        yield Figure("pairs", title, CAPTION, drawing, "pairs", answers=("pairs", "pairs.gap", two[0]))


# Planted truth: what follows from the captions that the reference model was trained on


def implied_gap(part: str) -> float:
    """The share of men who are given the outfit's own occupation, rather than the other one, less that of women."""
    right, shares = part.removesuffix("s"), []
    for side in ("man", "woman"):
        belief = implied_occupation(right, side)
        shares.append(belief[right] / (belief[right] + belief[WORK[part]]))
    return shares[0] - shares[1]


def _recovered(part: pl.DataFrame) -> list[Result]:
    rows = deciding_rows(part.filter(model=f"{REFERENCE}contrastive"), "gap").to_dicts()
    return [{**row, "planted": implied_gap(row["template"])} for row in rows if row["template"] in WORK]


def _planted(part: pl.DataFrame) -> Iterator[Finding]:
    if rows := _recovered(part):
        off = points(max(abs(row["value"] - row["planted"]) for row in rows))
        texts = [f"{row['template']}: planted {points(row['planted'])}, found {points(row['value'])}" for row in rows]
        headline = f"The audit finds every planted gap within {off} points"
        sentence = f"Men less women, in points; {'; '.join(texts)}."
        if any(row["verdict"] == DIFFERENCE and row["planted"] == 0 for row in rows):
            sentence += " Where 0 was planted the model itself is a little off: training left that, not the captions."
        yield finding(rows[0], "planted", headline, sentence, verdict=FACT, more=rows[1:])


def planted_table(part: pl.DataFrame) -> Table | None:
    """What was planted and what was found; None where nothing was planted."""
    if not (rows := _recovered(part)):
        return None
    columns: list[Column] = [("Planted", lambda row: points(row["planted"])), ("Found", POINTS), ("Scenes", "n")]
    title, left = "Known truth against what the audit found", [("Scenes", "template")]
    caption = "Men less women, in points. Planted: what follows from the captions that the model was trained on."
    return tabled(part, rows, left, columns, title=title, caption=caption, topic="planted")


CHAPTER = Chapter(
    topics={"pairs": "The same scene with another person", "unclear": "Unclear", "tables": "Pairs of occupations"},
    questions={
        "planted": Question("Does the audit find what was planted in the reference model?", "planted", role=CHECK),
        "pairs": Question("Does the answer change when only the person changes?", "pairs", "The same scene"),
        "crossing": Question("Do two labels do more together than each alone?", "pairs"),
        "unclear": Question("Does the model call some people unclear more often?", "unclear", "Unclear"),
        "size": Question("Is the bias of pairs of occupations more than chance gives?", "tables", "Occupations"),
        "labour": Question("Does the bias follow who works in an occupation?", "tables", "Who works there"),
    },
    findings=pair_findings,
    tables=pair_tables,
    figures=pair_figures,
    planted=planted_table,
)
