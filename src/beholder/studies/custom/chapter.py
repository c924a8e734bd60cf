"""The chapter on a user's own prompts: gaps, slopes and intersections, all of them judged together."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from beholder.chapter import chapter, numbers
from beholder.chapter.chapter import INTERVALS, Behind, Cell, Chapter, Column, Table, cell_of, crossed, tabled
from beholder.chapter.charts import MOST_DRAWN, Figure, dots, each_model, sentence, widest
from beholder.chapter.finding import Contrast, Finding, contrast, deciding_rows, finding, metric_rows, verdict_of_rows
from beholder.chapter.numbers import Result, has_interval, listed, people, percent, plural, points, points_decimals
from beholder.comparison.family import DIFFERENCE, FACT, TOO_LITTLE
from beholder.comparison.groups import REST
from beholder.core.results import WITHIN
from beholder.metrics.association import softmax
from beholder.prompts.prompt_set import ONE_LEVEL
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.custom.study import BALANCE, DIFFERENCES

# What is measured, by the metric that says how it differs
KINDS = ("gap", "slope", "interaction", "equivalence", "selection_rate", "impact_ratio")
BASES = {start + kind: base for base, start in DIFFERENCES.items() for kind in KINDS}
BELIEF = "custom.probability"
MEASURED = {
    BELIEF: ("Belief in “{}”", "Mean belief in “{}”"),
    "custom.p_yes": ("P(yes) to “{}”", "Mean P(yes) to “{}”"),
    "custom.presence": ("The presence of “{}”", "The mean presence of “{}”"),
    "custom.association": ("Belief in the correct prompt", "Mean belief in the correct prompt"),
    "custom.association_top1": ("The share of images whose correct prompt comes first",) * 2,
}  # what differs, in a headline and at the beginning of a sentence
ANSWERS = {
    BELIEF: ("The model sees “{}” more", "in", " of its belief"),
    "custom.p_yes": ("The model says yes to “{}” more", "for", ""),
}
NO_PROMPT = {"custom.association": "the right prompt", "custom.association_top1": "the right prompt comes first"}
"""Metrics about a whole level, and what their rows are called."""
MOST_FINDINGS = 4
MANY = 12  # rows above which a table is better opened than shown


def differences(part: pl.DataFrame, kind: str) -> list[Result]:
    """The rows that decide about a kind of difference; of gaps only the two groups farthest apart."""
    metrics = [f"{start}{kind}".removeprefix("custom.") for start in DIFFERENCES.values()]
    rows = [row for metric in metrics for row in deciding_rows(part, metric).to_dicts()]
    return [row for row in rows if row["against"] != REST]


def within(row: Result) -> str:
    """What a difference was measured within, such as `branch: actors`; nothing where it is the plain one."""
    return (row.get("variant") or "").removeprefix(WITHIN)


def custom_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """The widest differences that were found, or that none was; and labels that go together with those compared."""
    gaps, slopes = differences(part, "gap"), differences(part, "slope")
    kinds = (gaps, _gap), (slopes, _slope), (differences(part, "interaction"), _interaction)
    found = [(abs(row["value"]), row, write) for rows, write in kinds for row in rows if row["verdict"] == DIFFERENCE]
    for effect, row, write in sorted(found, key=lambda each: -each[0])[:MOST_FINDINGS]:
        told = _told(part, finding(row, "custom", *write(part, row), verdict=DIFFERENCE, effect=effect))
        yield told._replace(card=f"Your prompts by {row['subset']}")
    if not found and (gaps or slopes):
        yield _nothing(part, [row for row in gaps if ": " not in within(row)], slopes)
    for (attribute, label), rows in imbalances(part).items():
        headline = f"In this data {attribute} and {label} go together"
        yield finding(rows[0], "balance", headline, _shares(rows), verdict=FACT, more=rows[1:])


def _told(part: pl.DataFrame, made: Finding) -> Finding:
    """A gap with both groups' means, and the answer that says them."""
    row = made.rows[0]
    shown = contrast(row["concept"] or "", row, _means(part, row) if row["metric"].endswith("gap") else {})
    if shown.sides is None:
        return made._replace(contrasts=(shown,))
    more, less = sorted(shown.sides, key=lambda side: -side.value)
    sees, where, of = ANSWERS.get(BASES[row["metric"]], ("", "for", ""))
    sees = sees.format(row["concept"]) if sees else f"{_subject(row)} is higher"
    high, low = f"{people(more.group)} ({percent(more.value)}{of})", f"{people(less.group)} ({percent(less.value)})"
    return made._replace(contrasts=(shown,), answer=f"{sees} {where} {high} than {where} {low}.")


def _means(part: pl.DataFrame, row: Result) -> dict[str, Result]:
    """Each group's own row of what a gap compares."""
    where = {key: row[key] for key in ("model", "subset", "concept") if row[key] is not None}
    same = part.filter(metric=BASES[row["metric"]], **where)
    same = same.filter(pl.col("template").eq_missing(pl.lit(row["template"], pl.String)))
    return {each["group"]: each for each in reversed(same.drop_nulls("value").to_dicts())}


def _subject(row: Result) -> str:
    return MEASURED[BASES[row["metric"]]][0].format(row["concept"])


def _what(row: Result) -> str:
    """What differs, at the beginning of a sentence."""
    base, level = BASES[row["metric"]], row["template"]
    among = "" if level in (None, ONE_LEVEL) or base != BELIEF else f" among the prompts of level “{level}”"
    return MEASURED[base][1].format(row["concept"]) + among


def _bracket(row: Result) -> str:
    bounds = f"95 % interval {numbers.points_range(row)} points" if has_interval(row) else "no interval"
    p_value = "" if row["p_value"] is None else f", p {numbers.row_p_value(row)}"
    return f"{bounds}{p_value}, n = {row['n']:,}"


def _gap(part: pl.DataFrame, row: Result) -> tuple[str, str]:
    """The headline and the sentence of a gap, with the mean of both groups."""
    values = _means(part, row)
    means = [f"{percent(values.get(row[end], {}).get('value'))} for {plural(row[end])}" for end in ("group", "against")]
    strata = f"; within {within(row)} they are" if within(row) else ":"
    apart = f"{points(row['value'], points_decimals(row))} points apart ({_bracket(row)})."
    sentence = f"{_what(row)} is {' and '.join(means)}{strata} {apart}{_warning(part, row['subset'])}"
    return f"{_subject(row)} differs by {row['subset']}", sentence


def _slope(_: pl.DataFrame, row: Result) -> tuple[str, str]:
    rises, size = "rises" if row["value"] > 0 else "falls", points(abs(row["value"]), 2)
    unit = f"unit of {row['subset']}, within {within(row)}" if within(row) else f"unit of {row['subset']}"
    sentence = f"{_what(row)} {rises} by {size} points per {unit} ({_bracket(row)})."
    return f"{_subject(row)} {rises} with {row['subset']}", sentence


def _interaction(_: pl.DataFrame, row: Result) -> tuple[str, str]:
    more, size = "above" if row["value"] > 0 else "below", points(abs(row["value"]), points_decimals(row))
    off = f"{size} points {more} what its two attributes add up to"
    sentence = f"{_what(row)} is, for {row['group']}, {off} ({row['subset']}; {_bracket(row)})."
    return f"{_subject(row)} differs for {row['group']} beyond its two attributes", sentence


def _nothing(part: pl.DataFrame, gaps: list[Result], slopes: list[Result]) -> Finding:
    """That nothing was found, with the widest gap that was seen and how large one could still be."""
    rows, verdict = gaps or slopes, verdict_of_rows(gaps or slopes)
    widest = max(rows, key=lambda row: abs(row["value"]))
    names = list(dict.fromkeys(row["subset"] for row in rows))
    attributes = listed(names)
    sentence = f"No prompt is found to differ by {attributes}, with all prompts and groups judged together."
    if verdict == TOO_LITTLE:
        sentence = f"The data are too few to say whether a prompt differs by {attributes}."
    if gaps:
        strata = f" within {within(widest)}" if within(widest) else ""
        sentence += (
            f" {_subject(widest)} has the widest gap{strata}: {points(widest['value'], points_decimals(widest))} "
            f"points between {plural(widest['group'])} and {plural(widest['against'])} ({_bracket(widest)})."
        )
    bounds = [max(abs(row["low"]), abs(row["high"])) for row in gaps if has_interval(row)]
    if bounds:
        sentence += f" Gaps of up to {points(max(bounds))} points could have been missed."
    if alike := differences(part, "equivalence"):
        inside = sum(row["equivalence"] == "equivalent" for row in alike)
        delta = points(alike[0]["delta"], 2).rstrip("0").rstrip(".")
        sentence += f" Shown to lie within {delta} points: {inside} of {len(alike)} comparisons."
    sentence += "".join(_warning(part, attribute) for attribute in names)
    farthest = sorted(filter(has_interval, gaps), key=lambda row: -max(abs(row["low"]), abs(row["high"])))[:1]
    headline = f"No difference by {attributes} was found"
    none = finding(widest, "custom", headline, sentence, verdict=verdict, more=[r for r in farthest if r is not widest])
    return none._replace(contrasts=_told(part, none).contrasts)


def imbalances(part: pl.DataFrame) -> dict[tuple[str, str], list[Result]]:
    """By attribute and other label that go together: shares of the label's most unequal value, group by group."""
    found = {}
    for (attribute, label), rows in part.filter(metric=BALANCE).group_by("subset", "concept", maintain_order=True):
        by_value = [own.to_dicts() for _, own in rows.group_by("template", maintain_order=True)]
        found[str(attribute), str(label)] = max(by_value, key=lambda own: np.ptp([row["value"] for row in own]))
    return found


def _warning(part: pl.DataFrame, attribute: str) -> str:
    """The label that goes most together with an attribute: it may be behind a difference, or hide one."""
    for (own, label), rows in imbalances(part).items():
        if own == attribute:
            return f" But {own} and {label} go together in this data: {_shares(rows)}"
    return ""


def _shares(rows: list[Result]) -> str:
    shares = listed([f"{percent(row['value'])} of {plural(row['group'])}" for row in rows])
    return f"{shares} are {rows[0]['template']}; compare within it: --within {rows[0]['concept']}."


JUDGED = (
    f"Bold: a difference was found. Intervals and p hold for all prompts, groups and attributes together. {INTERVALS}"
)
TESTED: tuple[Column, ...] = (("p", chapter.p_cell), ("n", "n"))
IMPACT = (
    "How often a group scores above the median person, over how often the most selected group does. Below 0.8 breaks "
    f"the four-fifths rule, if the prompt is one that people would want to score high on. {INTERVALS}"
)
TABLES: dict[str, tuple[str, str, list[Column]]] = {
    "gap": (
        "Gaps between groups",
        "The two groups farthest apart, in points; of several pairs that differ, the widest of these.",
        [("Higher", "group"), ("Lower", "against"), ("Gap", lambda row: _points(row))],
    ),
    "slope": (
        "Slopes",
        "Change with one more of a number (such as a year of age), in points; a straight line by least squares.",
        [("Points", lambda row: _points(row, 2))],
    ),
    "interaction": (
        "Intersections",
        "How far intersections depart from what their two attributes add up to, in points.",
        [("Intersection", "group"), ("Points", lambda row: _points(row))],
    ),
}  # title, caption and columns of each kind of difference


def _points(row: Result, decimals: int | None = None) -> Cell:
    places = points_decimals(row) if decimals is None else decimals
    bounds = f"{points(row['low'], places)} to {points(row['high'], places)}" if has_interval(row) else ""
    return Cell(points(row["value"], places), bounds, strong=row["verdict"] == DIFFERENCE)


def _prompt(row: Result) -> str:
    base = BASES[row["metric"]]
    level = "" if row["template"] in (None, ONE_LEVEL) else f"{row['template']}: "
    suffix = {"custom.p_yes": ", P(yes)", "custom.presence": ", presence"}.get(base, "")
    return f"{level}{NO_PROMPT.get(base, row['concept'] or '')}{suffix}"


LEFT: list[Column] = [
    ("Attribute", lambda row: row["subset"] + (f" within {within(row)}" if within(row) else "")),
    ("Prompt", _prompt),
]


def custom_tables(part: pl.DataFrame) -> Iterator[Table]:
    """What differs; then, for every level and attribute, prompts down and groups across. `template` is the level."""
    for kind, (title, caption, columns) in TABLES.items():
        rows = sorted(differences(part, kind), key=lambda row: (row["verdict"] != DIFFERENCE, -abs(row["value"])))
        if rows:
            yield _table(part, rows, LEFT, [*columns, *TESTED], title, f"{caption} {JUDGED}")
    if rows := differences(part, "equivalence"):
        title = f"Are groups shown to be within {100 * rows[0]['delta']:g} points?"
        caption = f"{chapter.EQUIVALENCE} In points, for all prompts and attributes together."
        verdict: Column = ("Verdict", lambda row: Cell(row["equivalence"], strong=True))
        columns = [("Bound", lambda row: points(row["value"])), verdict]
        yield _table(part, rows, LEFT, columns, title, caption)._replace(notes=chapter.MEANINGS)
    if rows := differences(part, "impact_ratio"):
        columns = [("Group", "group"), ("Impact ratio", chapter.ratio_cell), *TESTED]
        yield _table(part, rows, LEFT, columns, "Impact ratios", IMPACT)._replace(long=True)
    yield from _balance_tables(part)
    measured = part.filter(~pl.col("metric").is_in([*BASES, BALANCE]))
    for (level,), of_level in measured.group_by("template", maintain_order=True):
        for attribute in of_level["subset"].drop_nulls().unique(maintain_order=True).to_list() or [None]:
            own = [row for row in of_level.to_dicts() if row["subset"] in (None, attribute)]
            yield _prompt_table(part, level, attribute, own)


def _table(
    part: pl.DataFrame, rows: list[Result], left: Sequence[Column], columns: Sequence[Column], title: str, caption: str
) -> Table:
    return tabled(part, rows, left, columns, title=title, caption=caption, topic="prompts", long=len(rows) > MANY)


def _prompt_table(part: pl.DataFrame, level: str | None, attribute: str | None, rows: list[Result]) -> Table:
    lines = crossed(rows, ("model", "metric", "concept"), "group", chapter.percent_cell)
    most: dict[str | None, int] = {}
    for row in rows:
        most[row["group"]] = max(row["n"], most.get(row["group"], 0))
    columns = [(f"{group or 'everyone'} (n = {n})", cell_of(group)) for group, n in most.items()]
    left: list[Column] = [("Prompt", lambda line: NO_PROMPT.get(line["metric"], line["concept"] or ""))]
    caption = f"Mean share of belief among the prompts of the level, in per cent. {INTERVALS}"
    absent = [row for row in rows if row["value"] is None]
    notes = dict.fromkeys(f"{row['group'] or 'everyone'}: {row['note']}" for row in absent)
    table = _table(part, lines, left, columns, sentence("", _prompts(level, attribute)), caption)
    return table._replace(notes=tuple(notes), long=False)


def _prompts(level: str | None, attribute: str | None) -> str:
    """What is compared, in a title."""
    what = "prompts" if level in (None, ONE_LEVEL) else f"prompts of level {level}"
    return f"{what} by {attribute}" if attribute else what


def _balance_tables(part: pl.DataFrame) -> Iterator[Table]:
    for (attribute, label), own in part.filter(metric=BALANCE).group_by("subset", "concept", maintain_order=True):
        rows = own.unique(["group", "template"], maintain_order=True).to_dicts()
        lines = crossed(rows, ("template",), "group", lambda row: percent(row["value"]))
        title = f"{attribute} and {label} go together in this data"
        caption = (
            f"Share of each group's people, by {label}. What looks like a difference by {attribute} may be one by "
            f"{label}: compare within it (--within {label})."
        )
        columns: list[Column] = [(str(group), cell_of(group)) for group in dict.fromkeys(row["group"] for row in rows)]
        yield _table(own.head(1), lines, [(str(label), "template")], columns, title, caption)


def custom_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """Prompts by group where groups were compared, else the prompts alone."""
    figures = each_model(results, _figures)
    yield from (figure._replace(name=f"prompts-{place}") for place, figure in enumerate(figures, 1))


def _figures(part: pl.DataFrame) -> Iterator[Figure]:
    rows = metric_rows(part, "probability")
    compared = rows.drop_nulls("subset")
    places = (rows if compared.is_empty() else compared).group_by("template", "subset", maintain_order=True)
    for (level, attribute), table in places:
        own = table.to_dicts()
        most = max(own, key=lambda row: float(row["value"]))["concept"]
        title = _prompts(level, attribute) if attribute else f"{_prompts(level, None)}: most to “{most}”"
        caption = (
            "Mean share of belief among the prompts of the level, with each group's own 95 % interval. A difference is "
            "found only where it is wider than the widest of all prompts and groups would be by chance."
        )
        shown = widest(own)
        if len(shown) < len(own):
            caption += f" Drawn are the {MOST_DRAWN} prompts on which groups differ most; all are in results.csv."
        answers = ("custom", "custom.gap", attribute, *([level] if level else [])) if attribute else ()
        yield Figure("prompts", title, caption, dots(shown), "prompts", answers=answers)


def behind(matrix: ScoreMatrix, shown: Contrast) -> Behind | None:
    """Each picture's belief in the prompt among those of its level, or its P(yes)."""
    row = shown.row
    own = matrix.level(row["template"]) if row["template"] is not None else matrix
    base, concepts = BASES.get(row["metric"]), own.prompts["concept"].to_list()
    if base not in (BELIEF, "custom.p_yes") or row["concept"] not in concepts or row["subset"] not in own.images:
        return None
    own = own.complete_rows()
    cells = softmax(own.logits) if base == BELIEF else own.quantity("probability").cells
    groups = own.images[row["subset"]].cast(pl.String).to_list()
    return Behind(own.images, groups, np.asarray(cells)[:, concepts.index(row["concept"])], [""] * len(groups))


CHAPTER = Chapter(
    topics={"prompts": "Prompt by prompt"},
    questions=chapter.read_questions(Path(__file__).with_name("questions.csv")),
    findings=custom_findings,
    tables=custom_tables,
    figures=custom_figures,
    behind=behind,
)
