"""In short: the few findings that a reader with half a minute should take away.

Every model and benchmark has its say before any has its second; differences that were found come before the rest, and
noise, which is audited to be compared with, comes last.
"""

from __future__ import annotations

import re

from beholder.chapter.finding import Finding

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
