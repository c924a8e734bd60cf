"""The first screen: what to know before reading a number, and who was shown to the model."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from typing import NamedTuple

from beholder.chapter.finding import Finding
from beholder.chapter.numbers import drawn, number
from beholder.core.results import WITHIN
from beholder.datasets import DATASETS, open_dataset
from beholder.datasets.images import open_image
from beholder.report.facts import conflicts, people, unbalanced
from beholder.report.report import Report

FEW = 5
NOISE = re.compile(r"null(:\d+)?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z“])")


def top_findings(findings: list[Finding], few: int = FEW) -> list[Finding]:
    """The findings that matter most, in the order of the chapters."""
    turns: dict[tuple[str, ...], int] = {}
    ranked = []
    for place, finding in enumerate(sorted(findings, key=lambda each: not each.shown)):
        whose = (finding.study, finding.dataset, finding.model)
        turns[whose] = turns.get(whose, 0) + 1
        noise = NOISE.fullmatch(finding.model) is not None
        ranked.append(((noise, not finding.shown, turns[whose], place), finding))
    chosen = {id(finding) for _, finding in sorted(ranked, key=lambda each: each[0])[:few]}
    return [finding for finding in findings if id(finding) in chosen]


def first_sentence(text: str) -> str:
    """What is said first; the chapter says the rest.

    >>> first_sentence("Women get 0.46 times as much (0.38–0.57). The rest stands below.")
    'Women get 0.46 times as much (0.38–0.57).'
    """
    return _SENTENCE.split(text, maxsplit=1)[0]


# The first screen

PORTRAITS, SIDE = 8, 88
MOST_GROUPS = 8
"""Columns with more groups are left to the data sheet."""


class Shown(NamedTuple):
    """Who was shown to the model: drawn portraits, or the groups of a data set of photographs with their counts."""

    dataset: str
    portraits: list[str]
    """Data addresses of drawings; a photograph of anyone is never among them."""
    groups: dict[str, dict[str, int]]
    people: str
    """How many there are, and who counts as one."""


def caveats(report: Report) -> list[str]:
    """What to know before reading any number, a few words each."""
    return list(dict.fromkeys(_caveats(report)))


def _caveats(report: Report) -> Iterator[str]:
    record = report.record
    for entry in record.datasets:
        images, whole = entry.get("images"), entry.get("of")
        if images is not None and whole not in (None, images):
            yield f"Partial data: {images:,} of {whole:,} images of {entry.get('name')}"
        yield from (f"{entry.get('name')}: {text}" for text in (*conflicts(entry), *unbalanced(entry)))
    if any(drawn(str(entry.get("name"))) for entry in record.datasets):
        yield "Drawn people, no photographs"
    if record.settings.get("compat"):
        yield "Computed as the released scripts do, faults included"
    for section in report.sections:
        for finding in section.findings:
            if any(not (row.get("variant") or WITHIN).startswith(WITHIN) for row in finding.rows):
                yield f"{section.study.short or section.study.title}: a variant of the published measure"
    if record.bad_images:
        yield f"{len(record.bad_images):,} images could not be read"
    noise = [finding for section in report.sections for finding in section.noise]
    if noise:
        found = sum(finding.shown for finding in noise)
        yield f"Random scores, audited in the same way: differences found in {found} of {number(len(noise), 'answer')}"


def people_shown(report: Report) -> list[Shown]:
    """Who is in the data sets of the run; drawn people of the first drawn data set only."""
    shown: list[Shown] = []
    for entry in report.record.datasets:
        name = str(entry.get("name"))
        portraits = [] if any(each.portraits for each in shown) else _portraits(name)
        if portraits or not drawn(name):
            shown.append(Shown(name, portraits, _groups(entry.get("groups")), people(entry)))
    return shown


def _groups(groups: object) -> dict[str, dict[str, int]]:
    """The columns that tell groups of people apart, with words for names."""
    known = groups if isinstance(groups, dict) else {}
    return {
        name.replace("_", " "): counts
        for name, counts in known.items()
        if len(counts) <= MOST_GROUPS
        and name != "split"
        and f"{name}_band" not in known
        and not set(counts) <= {"true", "false"}
    }


def _portraits(dataset: str) -> list[str]:
    """Some drawn people, spread over the groups; none of a data set that Beholder did not draw."""
    if dataset not in DATASETS or not DATASETS[dataset].embedded:
        return []
    return [_thumbnail(uri) for uri in open_dataset(dataset).limit(PORTRAITS).table["uri"]]


def _thumbnail(uri: str) -> str:
    picture = open_image(uri)
    picture.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    picture.quantize(64).save(buffer, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
