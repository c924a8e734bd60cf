"""What a chapter says first: the answer, how sure it is, whether that is usual, and what it cannot say."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from beholder.chapter.finding import Finding
from beholder.chapter.numbers import count, has_interval, number, row_p_value
from beholder.comparison.family import DIFFERENCE
from beholder.report.answer import Answer, Bar, bars_of, comparable
from beholder.report.pictures import Evidence
from beholder.report.report import Section
from beholder.report.scorecard import Scale, in_words, interval_in_words, published_values, scale_of

STEP = 2.2  # how far apart the dots of a swarm stand, in hundredths of its width


class Swarm(NamedTuple):
    """The published models around this one, on one scale; those that would touch stand above each other."""

    scale: Scale
    dots: list[tuple[float, int]]
    own: float
    equal: float | None

    @property
    def rows(self) -> int:
        """How many stand above each other at most."""
        return max(level for _, level in self.dots) + 1


class Told(NamedTuple):
    """The answer of one card, with what bears it out."""

    card: Answer
    findings: list[Finding]  # all that answer the same question
    bars: list[Bar]
    evidence: list[Evidence]
    sure: str
    usual: str
    swarm: Swarm | None
    limits: list[str]

    @property
    def marked(self) -> str:
        """In how many comparisons a difference was found."""
        every = [each for finding in self.findings for each in finding.contrasts]
        shown = [each.row for each in every if comparable(each, self.card.lead)]
        found = sum(row.get("verdict") == DIFFERENCE for row in shown)
        return f"Found in {found} of the {len(shown)} compared here" if len(shown) > 1 else ""


def told(section: Section, cards: Sequence[Answer], pictures: Mapping[str, list[Evidence]]) -> list[Told]:
    """Every card whose leading finding is of this section."""
    ids = {finding.id for finding in section.findings}
    return [_told(section, card, pictures) for card in cards if card.lead.id in ids]


def _told(section: Section, card: Answer, pictures: Mapping[str, list[Evidence]]) -> Told:
    lead = card.lead
    same = [each for each in section.findings if (each.model, each.kind) == (lead.model, lead.kind)]
    findings = [lead, *(each for each in same if each is not lead)]
    behind = [each for finding in findings for each in pictures.get(finding.id, []) if comparable(each.contrast, lead)]
    shown = [(finding, each) for finding in findings for each in finding.contrasts if comparable(each, lead)]
    bars = bars_of(shown, several=False)
    usual, swarm = _usual(section, lead)
    return Told(card, findings, bars, behind, _sure(lead), usual, swarm, section.limitations)


def _sure(finding: Finding) -> str:
    """The number with the interval that decided."""
    row = next((each for each in finding.rows if has_interval(each)), None)
    if row is None or row.get("value") is None:
        return "No interval was computed."
    value = in_words(row["value"], row["unit"], row.get("landmark"))
    tested = "" if row.get("p_value") is None else f", p {row_p_value(row)}"
    return f"{value}; with other people it would be {interval_in_words(row)} (95 % interval{tested})."


def _usual(section: Section, finding: Finding) -> tuple[str, Swarm | None]:
    """Where this number lies among published ones."""
    row = finding.rows[0] if finding.rows else {}
    others = sorted(published_values(section, row)) if row.get("value") is not None else []
    if not others:
        return "Not comparable: no published model was measured in the same way on these pictures.", None
    lower = sum(other < row["value"] for other in others)
    scale = scale_of([*({**row, "value": other, "low": other, "high": other} for other in others), row])
    text = f"Of {number(len(others), 'published model')}, {count(lower)} have a lower number."
    equal = None if row.get("landmark") is None else scale.at(row["landmark"])
    return text, Swarm(scale, stacked([scale.at(other) for other in others]), scale.at(row["value"]), equal)


def stacked(places: Sequence[float]) -> list[tuple[float, int]]:
    """Each place with its level: as low as no dot before it is in the way.

    >>> stacked([1.0, 1.5, 9.0])
    [(1.0, 0), (1.5, 1), (9.0, 0)]
    """
    ends: list[float] = []
    made = []
    for place in sorted(places):
        level = next((at for at, end in enumerate(ends) if place >= end), len(ends))
        ends[level : level + 1] = [place + STEP]
        made.append((place, level))
    return made
