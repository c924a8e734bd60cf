"""Write docs/examples/findings.md: every sentence that a study can say, at both signs, at zero, of few and of many.

`python tools/findings_list.py` reads the cases of tests/studies/*/finding_cases.py. It is a reading list for people.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from beholder.chapter.finding import Finding
from beholder.studies import STUDIES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "examples" / "findings.md"


def cases(study: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """The cases of a study: a description and a results table each."""
    path = ROOT / "tests" / "studies" / study / "finding_cases.py"
    if not path.is_file():
        return
    spec = importlib.util.spec_from_file_location(f"{study}_finding_cases", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(ROOT / "tests"))  # cases of one study build on another's
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    yield from module.cases()


def findings(study: str) -> Iterator[tuple[str, Finding]]:
    """Every finding that the study's chapter makes of its cases, with the case."""
    chapter = STUDIES[study].part("chapter")
    for description, table in cases(study):
        for finding in chapter.findings(table):
            yield description, finding


def listed() -> str:
    """The page: study by study and question by question, each sentence once."""
    lines = [
        "# What Beholder can say",
        "",
        "Every sentence of a finding, made from invented numbers: at both signs, at zero, of few images and of many. "
        "Made by `python tools/findings_list.py`.",
    ]
    for study in STUDIES:
        by_question: dict[str, dict[str, str]] = {}
        questions = STUDIES[study].part("chapter").questions if STUDIES[study].tells.chapter else {}
        for description, finding in findings(study):
            if description.startswith("drawn people:"):
                continue  # the same sentences with "drawn" before the people
            asked = questions[finding.kind].text if finding.kind in questions else finding.kind
            text = f"**{finding.headline}.** {finding.sentence}"
            by_question.setdefault(asked, {}).setdefault(text, f"{finding.verdict}; {description}")
        if by_question:
            lines += ["", f"## {STUDIES[study].title}"]
        for asked, sentences in by_question.items():
            lines += ["", f"### {asked}", ""]
            lines += [f"- {text} *({case})*" for text, case in sentences.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(listed(), encoding="utf-8")
    print(PAGE)
