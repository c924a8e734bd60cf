"""Scorecard: one line for every question that was asked, whatever the verdict.

Each line has a verdict in words, the answer in one sentence, the number with its interval on a scale that all numbers
of its unit share, and the published models that compare.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from beholder.chapter.finding import Finding
from beholder.chapter.numbers import ABSENT, Result, has_interval, listed, percent, points_decimals, quantity, ratio
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, NOT_MEASURED, SIGNS, TOO_LITTLE
from beholder.report.report import Report, Section
from beholder.studies.printed import alike, printed_of

MEANINGS = {
    DIFFERENCE: "more than chance gives, with all that was compared beside it counted in",
    NONE_FOUND: "chance alone could give this; the interval says how large a difference may still be",
    TOO_LITTLE: "fewer than five people in a group, or too few ways to shuffle them",
    FACT: "a description, of which nothing is tested",
    NOT_MEASURED: "the scores for it are not there",
}
PLANTED = "planted"  # the kind of finding that checks the audit itself against what is known; it stands last
_PERCENT = re.compile(r"[\d.]+(?=[\d.–]* %)")
CELLS = ("Question", "Verdict", "Answer", "Number", "95 % interval", "n")

ENDS = ("low", "high")
WHOLES = {"probability": 1.0, "share": 1.0, "per cent": 100.0}  # units whose scale runs from nothing to the whole


class Scale(NamedTuple):
    """The range that all intervals of one unit share."""

    unit: str
    landmark: float | None
    low: float
    high: float
    logarithmic: bool

    def part(self, value: float) -> float:
        """How far along the scale a value stands, 0 to 1; values beyond the ends stand at them."""
        low, high, value = (math.log(max(x, 1e-9)) if self.logarithmic else x for x in (self.low, self.high, value))
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def at(self, value: float) -> float:
        """The same in per cent."""
        return round(100 * self.part(value), 2)

    def label(self, value: float) -> str:
        """A value in the words of its unit, at an end of the scale."""
        return in_words(value, self.unit, self.landmark, bare=True)


class Mark(NamedTuple):
    """A number on its scale."""

    scale: Scale
    at: float
    low: float
    high: float
    landmark: float | None
    ticks: list[float]  # where published models stand


class Line(NamedTuple):
    """A question with its answer."""

    question: str
    finding: Finding
    more: int  # further findings that answer the same question
    number: str
    interval: str
    n: str
    counts: str  # what n counts: images, traits, concepts
    mark: Mark | None
    published: str  # in words: among how many published models
    anchor: str

    @property
    def cells(self) -> tuple[str, ...]:
        """What a table says of it, under the headings CELLS."""
        found = self.finding
        return self.question, found.marked, found.headline, self.number, self.interval, self.n


def verdict_key() -> str:
    """What the signs mean, for below a table."""
    return " ".join(f"{sign} {verdict}: {MEANINGS[verdict]}." for verdict, sign in SIGNS.items())


class Card(NamedTuple):
    """The lines of one model in one section."""

    title: str
    model: str
    dataset: str
    anchor: str
    lines: list[Line]


def scorecard(report: Report, anchors: Iterable[str] | None = None) -> list[Card]:
    """A card for every section and model; noise has none if other models were audited."""
    parts = {str(entry.get("name")) for entry in report.record.datasets if entry.get("images") != entry.get("of")}
    cards = []
    for section, anchor in zip(report.sections, anchors or [""] * len(report.sections), strict=True):
        leading, partial = _leading(section), section.dataset in parts
        scales = scales_of([finding.rows[0] for finding, _ in leading if finding.rows])  # of one study, not of all
        for model in dict.fromkeys(finding.model for finding, _ in leading):
            own = [(finding, more) for finding, more in leading if finding.model == model]
            lines = [_line(section, finding, more, scales, anchor, partial=partial) for finding, more in own]
            cards.append(Card(section.title, model, section.dataset, anchor, lines))
    return cards


def merged(cards: list[Card]) -> list[Card]:
    """One card for every section: the models' answers to a question follow each other."""
    made = []
    for anchor in dict.fromkeys(card.anchor for card in cards):
        mine = [card for card in cards if card.anchor == anchor]
        lines = [line for card in mine for line in card.lines]
        asked = list(dict.fromkeys(line.question for line in lines))
        lines.sort(key=lambda line: asked.index(line.question))
        made.append(mine[0]._replace(model=listed([card.model for card in mine]), lines=lines))
    return made


def _leading(section: Section) -> list[tuple[Finding, int]]:
    """Of every model and question the finding to name first, and how many more there are."""
    by_question: dict[tuple[str, str], list[Finding]] = {}
    for finding in section.findings:
        if finding.question:
            by_question.setdefault((finding.model, finding.kind), []).append(finding)
    leading = [(max(each, key=lambda f: f.shown), len(each) - 1) for each in by_question.values()]
    return sorted(leading, key=lambda each: each[0].kind == PLANTED)


def _line(
    section: Section, finding: Finding, more: int, scales: dict[object, Scale], anchor: str, *, partial: bool
) -> Line:
    row = _as_said(finding)
    value, measured = row.get("value"), bool(row) and finding.verdict != NOT_MEASURED
    metric = next((each for each in section.metrics if each.name == row.get("metric")), None)
    difference = metric is not None and metric.paired and row.get("unit") in ("probability", "average precision")
    landmark = 0.0 if difference else row.get("landmark")
    bounded = measured and value is not None and has_interval(row)
    scale = scales.get(unit_of(row)) if bounded else None
    neighbours = published_values(section, row) if scale and not partial else []
    interval = interval_in_words({**row, "landmark": landmark}) if bounded else ""
    number = in_words(value, row["unit"], landmark) if measured and value is not None else ABSENT
    if finding.verdict == FACT and len(set(_PERCENT.findall(finding.headline))) > 1:
        number, interval = ABSENT, ""  # a headline with several numbers has none of its own
    n, counts = f"{row['n']:,}" if measured and row.get("n") else "", metric.counts if metric else ""
    mark = mark_of(row, scale, neighbours) if scale else None
    published = f"{len(neighbours)} published models" if neighbours else ""
    return Line(finding.question, finding, more, number, interval, n, counts, mark, published, finding.id or anchor)


def _as_said(finding: Finding) -> Result:
    """The number of a finding; a difference that was found is read from the higher group, which the headline names."""
    row = finding.rows[0] if finding.rows else {}
    if finding.shown and row.get("against") and row.get("landmark") == 0 and has_interval(row) and row["high"] < 0:
        return {**row, "value": -row["value"], "low": -row["high"], "high": -row["low"]}
    return row


def interval_in_words(row: Result) -> str:
    """The bounds of a row; one that leaves out 0 is not printed as 0."""
    places = points_decimals(row)
    low, high = (in_words(row[end], row["unit"], row.get("landmark"), bare=True, decimals=places) for end in ENDS)
    return f"{low.removesuffix(' %') if high.endswith(' %') else low} to {high}"


def in_words(value: float, unit: str, landmark: float | None, *, bare: bool = False, decimals: int = 1) -> str:
    """A number for a reader who knows no units: ratios and their logarithms as times; `bare` without such a word."""
    if unit in ("ratio", "natural logarithm"):
        return ratio(value if unit == "ratio" else math.exp(value)) + ("" if bare else " times")
    text = percent(value) if unit == "share" and value >= 0 else quantity(value, unit, landmark, decimals)
    return text.removesuffix(" points") if bare else text


def mark_of(row: Result, scale: Scale, neighbours: Sequence[float] = ()) -> Mark:
    """A row with an interval, on its scale."""
    at, low, high = (scale.at(row[name]) for name in ("value", "low", "high"))
    landmark = None if row.get("landmark") is None else scale.at(row["landmark"])
    ticks = [scale.at(value) for value in neighbours if scale.low <= value <= scale.high]
    return Mark(scale, at, low, high, landmark, ticks)


def unit_of(row: Result) -> object:
    """Rows with the same unit and landmark share a scale."""
    return row.get("unit"), row.get("landmark")


def scales_of(rows: list[Result]) -> dict[object, Scale]:
    """One scale for all rows of a unit and a landmark."""
    ranges: dict[object, list[Result]] = {}
    for row in rows:
        if row.get("value") is not None and has_interval(row):
            ranges.setdefault(unit_of(row), []).append(row)
    return {key: scale_of(each) for key, each in ranges.items()}


def scale_of(rows: list[Result]) -> Scale:
    """The range that holds these rows, their intervals and their landmark."""
    unit, landmark = str(rows[0].get("unit") or ""), rows[0].get("landmark")
    ends = [row[key] for row in rows for key in ("low", "high", "value") if row[key] is not None]
    ends += [] if landmark is None else [landmark]
    low, high = min(ends), max(ends)
    if landmark == 1 and low > 0:  # a ratio: half and twice lie equally far from 1
        widest = max(high, 1 / low, 1.25)
        return Scale(unit, landmark, 1 / widest, widest, True)
    whole = WHOLES.get(unit)
    if whole is not None and landmark != 0 and low >= 0 and high <= whole:
        return Scale(unit, landmark, 0.0, whole, False)
    if landmark == 0:
        widest = max(abs(low), abs(high)) or 1.0
        return Scale(unit, landmark, -widest, widest, False)
    return Scale(unit, landmark, low, high if high > low else low + 1.0, False)


def published_values(section: Section, row: Result) -> list[float]:
    """The same number of published models; none where this run's is a variant of it, or on other data."""
    printed = printed_of(section.study.name)
    if printed is None or row.get("variant") or row.get("template") or row.get("against"):
        return []
    cells, _ = alike(printed, row)
    same_data = section.dataset in set(printed.cells.filter(metric=row["metric"])["dataset"])
    return [float(value) for value in cells["value"]] if same_data else []
