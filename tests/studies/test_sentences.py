"""Every sentence that a study can say, at both signs, at zero, of few and of many: whole, plain and short enough."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from beholder.comparison.family import DIFFERENCE, VERDICTS
from beholder.studies import STUDIES

ROOT = Path(__file__).parents[2]


def findings_list() -> ModuleType:
    spec = importlib.util.spec_from_file_location("findings_list", ROOT / "tools" / "findings_list.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made() -> ModuleType:
    """The list's module, which makes the findings of a study once."""
    module = findings_list()
    module.findings = cache(lambda study, find=module.findings: list(find(study)))  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize("study", [name for name in STUDIES if STUDIES[name].tells.chapter])
def test_every_sentence_is_whole_and_every_headline_short(study: str, made: ModuleType) -> None:
    findings = list(made.findings(study))
    assert findings, "no case makes a finding"
    for case, finding in findings:
        text = f"{finding.headline}. {finding.sentence}"
        assert finding.verdict in VERDICTS, case
        assert not re.search(r"\b(nan|None(?! of)|inf)\b|  |\.\.|\{|\}", text), f"{case}: {text}"
        assert text[0].isupper() or not text[0].isalpha(), f"{case}: {text}"
        assert finding.sentence.rstrip().endswith((".", "!", "?", "”")), f"{case}: {finding.sentence}"
        assert len(finding.headline.split()) <= 24, f"{case}: {finding.headline}"


@pytest.mark.parametrize("study", [name for name in STUDIES if STUDIES[name].tells.chapter])
def test_a_number_lies_inside_its_own_interval(study: str, made: ModuleType) -> None:
    for case, finding in made.findings(study):
        for row in finding.rows[:1]:
            if None not in (row["value"], row["low"], row["high"]):
                assert row["low"] <= row["value"] <= row["high"], case


@pytest.mark.parametrize("study", [name for name in STUDIES if STUDIES[name].tells.chapter])
def test_what_is_shown_excludes_its_landmark(study: str, made: ModuleType) -> None:
    for case, finding in made.findings(study):
        row = finding.rows[0] if finding.rows else {}
        landmark = row.get("landmark")
        if finding.verdict == DIFFERENCE and landmark is not None and None not in (row["low"], row["high"]):
            assert row["low"] > landmark or row["high"] < landmark or row.get("verdict"), f"{case}: {finding.headline}"


@pytest.mark.slow
def test_the_reading_list_is_the_one_of_these_sentences(made: ModuleType) -> None:
    assert made.PAGE.read_text(encoding="utf-8") == made.listed(), "run: python tools/findings_list.py"
