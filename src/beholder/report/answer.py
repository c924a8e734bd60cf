"""The answer: the page's title, the card of every question, what its chapter says first, and whether to trust it.

A finding is a title only if it stands out among all that the page compares, over studies and models together.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from beholder.chapter.chart_style import GROUP_COLOURS
from beholder.chapter.finding import CHECK, DIFFERS, Contrast, Finding, Side
from beholder.chapter.numbers import Result, count, has_interval, number, percent, plural, row_p_value
from beholder.comparison.family import DIFFERENCE, NAMES, NONE_FOUND, TOO_LITTLE, stands_out
from beholder.report.pictures import Evidence
from beholder.report.report import NOISE, Report, Section
from beholder.report.scorecard import Scale, in_words, interval_in_words, published_values, scale_of
from beholder.studies import STUDIES

RANDOM = "Random scores"  # how the caveat begins that the trust strip has in its own words
MOST_BARS = 5  # lines of a card's chart
MARKS = ("former", "latter")  # of two groups that have no colours of their own
NEAR = 9.0  # per cent of the width: dots that are nearer share a label
SAME = 0.95  # two numbers of which one is more than this part of the other are no title


class Dot(NamedTuple):
    """A number on a card's chart: where it stands (0 to 100), its mark, and its text."""

    at: float
    mark: str
    text: str
    group: str


class Bar(NamedTuple):
    """A line of a card's chart: two groups' dots, or one number with its interval, or one that fills from 0."""

    label: str
    found: bool
    dots: tuple[Dot, ...]
    low: float
    high: float
    zero: float | None = None  # where no effect stands
    filled: bool = False

    @property
    def near(self) -> bool:
        """Whether its dots are too near each other for a label each."""
        return len(self.dots) > 1 and abs(self.dots[0].at - self.dots[1].at) < NEAR

    @property
    def said(self) -> str:
        """For who hears the page."""
        return f"{self.label}: {', '.join(f'{dot.group} {dot.text}'.strip() for dot in self.dots)}"


class Answer(NamedTuple):
    """A card of the first screen: one question, its answer, a small chart, and where to read on."""

    subject: str
    about: str  # the models, where the page has several
    lead: Finding
    text: str
    bars: list[Bar]
    more: str
    anchor: str

    @property
    def size(self) -> str:
        """How unequal the two numbers of its first line are."""
        return self.lead.contrasts[0].size if self.lead.contrasts and self.lead.shown else ""


class Trust(NamedTuple):
    """One reason to trust the page, or not to."""

    sign: str
    headline: str
    text: str


class Headline(NamedTuple):
    """The page's title, what stands below it, and the finding that it says."""

    text: str
    beneath: str
    finding: Finding | None = None

    @property
    def bars(self) -> list[Bar]:
        """What proves it, where it is no pair of groups."""
        return bars_of([(self.finding, each) for each in self.finding.contrasts], several=False) if self.finding else []


def real(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of models whose scores mean something; of random ones only where there are no others."""
    meant = [each for each in findings if not re.search(NOISE, each.model)]
    return meant or list(findings)


def asked(report: Report) -> list[Finding]:
    """What the cards answer."""
    return [each for section in report.sections for each in real(section.findings) if _subject(section, each)]


def _subject(section: Section, finding: Finding) -> str:
    """The card of a finding; a study that names none has one for its first question."""
    if finding.card or any(question.card for question in section.chapter.questions.values()):
        return finding.card
    return section.study.short or section.study.title if finding.role == DIFFERS and finding.question else ""


def strongest(findings: Sequence[Finding]) -> Finding | None:
    """The finding that may be the title: one that stands out among all families, the most unequal first."""
    tested = [each for each in findings if each.role == DIFFERS and each.verdict in (DIFFERENCE, NONE_FOUND)]
    families = len({(each.study, each.dataset, each.model, each.kind) for each in tested})
    # Two studies may answer in opposite ways about the same people: then neither answer is the title.
    disputed = [row for each in tested if _disputes(each) for row in each.rows if row["study"] != each.study]
    disputed += [each.rows[0] for each in tested if _disputes(each)]
    able = [
        each
        for each in tested
        if each.shown and stands_out(each.p_value, families) and each.rows[0] not in disputed and not _slight(each)
    ]
    return max(able, key=lambda each: each.distance, default=None)


def _disputes(finding: Finding) -> bool:
    """Whether it sets its number beside that of another study."""
    return any(row["study"] != finding.study for row in finding.rows)


def _slight(finding: Finding) -> bool:
    return any(shown.ratio is not None for shown in finding.contrasts[:1]) and finding.distance < -math.log(SAME)


def headline(report: Report, otherwise: str) -> Headline:
    """The title: the strongest finding, or that none was found, or that there is too little data."""
    findings = [each for each in asked(report) if each.role == DIFFERS]
    verdicts = [max((f for f in findings if _place(f) == place), key=lambda f: f.shown) for place in _places(findings)]
    differ, few = sum(each.shown for each in verdicts), all(each.verdict == TOO_LITTLE for each in verdicts)
    questions = number(len(verdicts), "question about groups of people", "questions about groups of people")
    among = f" in {count(differ)} of {count(len(verdicts))} questions" if len(verdicts) > 1 else ""
    beneath = f"A difference between groups was found{among}."
    models = dict.fromkeys(each.model for each in findings)
    first = strongest(findings)
    if first is not None:
        text = first.answer or f"{first.headline}."
        return Headline(named(text, first.model) if len(models) > 1 else text, beneath, first)
    if differ and not any(row.get("p_value") for each in findings if each.shown for row in each.rows):
        return Headline(beneath.removesuffix("."), "The run has no p-values, so no single difference is its title.")
    if differ:
        text = f"{number(differ, 'difference')} found, none beyond what {questions} give by chance"
        return Headline(text, "Each was found among what was compared with it; together they do not stand out.")
    tested = [each for each in verdicts if each.verdict == NONE_FOUND]
    if tested:
        possible = [f"{each.card or each.study} {each.possible}" for each in tested if each.possible]
        among = f" in {number(len(tested), 'question')}" if len(tested) > 1 else ""
        text = f"No difference between groups was found{among}"
        still = f"That is no proof of none. It could still be: {'; '.join(dict.fromkeys(possible))}."
        return Headline(text, still if possible else "")
    if verdicts and few:
        return Headline("Too little data to say how the model sees groups of people", verdicts[0].sentence)
    return Headline(otherwise, "")


def _place(finding: Finding) -> tuple[str, ...]:
    return finding.study, finding.dataset, finding.model, finding.card


def _places(findings: Sequence[Finding]) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(map(_place, findings)))


def named(text: str, model: str) -> str:
    """An answer whose subject is the model's own name."""
    short = model if model.startswith("glasshouse/") else model.rsplit("/", 1)[-1]
    return text.replace("The model’s", f"{short}’s", 1).replace("The model", short, 1)


# Cards


def answers(report: Report) -> list[Answer]:
    """A card for every subject and data set; models answer side by side."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for section in report.sections:
        for finding in real(section.findings):
            if subject := _subject(section, finding):
                groups.setdefault((subject, section.dataset), []).append(finding)
    models = {finding.model for each in groups.values() for finding in each}
    subjects = [subject for subject, _ in groups]
    made = [
        _answer(subject if subjects.count(subject) == 1 else f"{subject}, {dataset}", each, several=len(models) > 1)
        for (subject, dataset), each in groups.items()
    ]
    order = [DIFFERENCE, NONE_FOUND, TOO_LITTLE]
    return sorted(made, key=lambda each: order.index(each.lead.said) if each.lead.said in order else len(order))


def _answer(subject: str, findings: list[Finding], *, several: bool) -> Answer:
    lead = max([each for each in findings if _disputes(each)] or findings, key=lambda each: (each.shown, each.distance))
    models = list(dict.fromkeys(each.model for each in findings))
    text, about = lead.answer or f"{lead.headline}.", ""
    if len(models) > 1:
        text = named(text, lead.model)
        differ = len({each.model for each in findings if each.shown})
        about = number(len(models), "model") + (f", {NAMES[lead.said].lower()} in {differ}" if differ else "")
    elif several:
        about = models[0]
    ranked = sorted(findings, key=lambda each: (each is not lead, not each.shown, -each.distance))
    contrasts = [(each, shown) for each in ranked for shown in each.contrasts if comparable(shown, lead)]
    if len(models) > 1:  # one line of every model comes before the second of any, one of every finding likewise
        contrasts.sort(key=lambda each: each[1] is not each[0].contrasts[0])
    turns = [sum(other.model == own.model for other, _ in contrasts[:k]) for k, (own, _) in enumerate(contrasts)]
    order = sorted(range(len(contrasts)), key=lambda k: turns[k])
    drawn = [contrasts[k] for k in order[: MOST_BARS - 2 * (len(models) > 1)]]
    several_studies = len({each.study for each in findings}) > 1
    bars = bars_of(drawn, several=len(models) > 1, studies=several_studies)
    more = f"All {len(findings)} answers" if len(findings) > 1 else "How it was found"
    return Answer(subject, about, lead, text, bars, more, f"answer-{lead.id}")


def comparable(shown: Contrast, lead: Finding) -> bool:
    """Whether a contrast is of the same groups as the leading one: lines of one chart compare the same people."""
    return _groups(shown) == _groups(lead.contrasts[0]) if lead.contrasts else True


def _groups(shown: Contrast) -> set[str]:
    return {side.group for side in shown.sides or ()}


def bars_of(contrasts: list[tuple[Finding, Contrast]], *, several: bool, studies: bool = False) -> list[Bar]:
    """A line for every contrast that has numbers to draw."""
    rows = [shown.row for _, shown in contrasts if shown.sides is None and shown.row.get("low") is not None]
    scales = {kind: scale_of([row for row in rows if _kind(row) == kind]) for kind in set(map(_kind, rows))}
    bars = []
    for finding, shown in contrasts:
        short = STUDIES[finding.study].short if studies and finding.study in STUDIES else ""
        label = ": ".join(filter(None, [finding.model if several else "", short, shown.label]))
        if shown.sides is not None:
            bars.append(_pair(label, shown.row.get("verdict") == DIFFERENCE, shown.sides))
        elif shown.row.get("low") is not None:
            row = shown.row
            bars.append(_one(label, shown, scales[_kind(row)]))
    return bars


def _kind(row: Result) -> tuple[object, bool]:
    """Rows of one kind share a scale within a card."""
    return row.get("unit"), row.get("landmark") in (0, 1)


def _pair(label: str, found: bool, sides: tuple[Side, Side]) -> Bar:
    names = sorted(side.group for side in sides)
    marks = {name: name if set(names) <= set(GROUP_COLOURS) else mark for name, mark in zip(names, MARKS, strict=True)}
    dots = [
        Dot(
            round(100 * min(max(side.value, 0.0), 1.0), 1),
            marks[side.group],
            percent(side.value).removesuffix(" %"),
            plural(side.group),
        )
        for side in sides
    ]
    first, second = sorted(dots, key=lambda dot: dot.at)
    return Bar(label, found, (first, second), first.at, second.at)


def _one(label: str, shown: Contrast, scale: Scale) -> Bar:
    row = shown.row
    text, effect = in_words(row["value"], row["unit"], row.get("landmark")), row.get("landmark") in (0, 1)
    at, low, high = (scale.at(row[name]) for name in ("value", "low", "high"))
    zero = None if row.get("landmark") is None else scale.at(row["landmark"])
    found = row.get("verdict") == DIFFERENCE
    return Bar(label, found, (Dot(at, "one", text, ""),), low, high, zero, filled=not effect)


# What a chapter says first: the answer, how sure it is, whether that is usual, and what it cannot say

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


# Trust


def trust(report: Report, caveats: Sequence[str]) -> Iterator[Trust]:
    """What the audit found of itself: known truth, random scores, how many comparisons; and what to bear in mind."""
    checks = [each for section in report.sections for each in section.findings if each.role == CHECK]
    if checks:
        text = " ".join(f"{each.headline}." for each in checks)
        yield Trust("△" if any(each.effect for each in checks) else "✓", "Known truth", text)
    noise = [finding for section in report.sections for finding in section.noise if finding.role == DIFFERS]
    if noise:
        found = sum(finding.shown for finding in noise)
        text = f"Random scores: a difference in {found} of {number(len(noise), 'answer')}."
        yield Trust("△" if found else "✓", "No false alarm" if not found else "A false alarm", text)
    tested = [each for each in asked(report) if each.role == DIFFERS]
    if tested:
        asks = len(_places(tested))
        among = f"{asks} questions" if asks > 1 else "comparisons of the page"
        yield Trust("✓", "Corrected", f"The title holds for all {among} together, at 5 %.")
    for caveat in [each for each in caveats if not each.startswith(RANDOM)][:3]:
        yield Trust("△", "Bear in mind", f"{caveat}.")
