"""The few findings that matter: every model in turn, shown ones first, noise last."""

from __future__ import annotations

from beholder._run import Run
from beholder.chapter.finding import Finding
from beholder.report.page import top_findings


def finding(model: str, *, shown: bool = True, study: str = "apa", headline: str = "x") -> Finding:
    verdict = "difference found" if shown else "none found"
    return Finding(study, "photos", model, "bias", headline, "One. Two.", verdict, 1.0)


def test_every_model_has_its_say_before_any_has_its_second():
    many = [finding("a", headline=str(number)) for number in range(9)] + [finding("b"), finding("c", shown=False)]
    chosen = top_findings(many)
    assert len(chosen) == 5
    assert [each.model for each in chosen] == ["a", "a", "a", "a", "b"]


def test_what_is_shown_comes_before_what_is_not_and_noise_last():
    chosen = top_findings([finding("null"), finding("null:7"), *[finding("a", shown=False)] * 3, finding("b")], few=2)
    assert {each.model for each in chosen} == {"a", "b"}


def test_few_findings_are_all_there_in_their_order(apa_run: Run):
    known = apa_run.findings
    assert top_findings(known, few=99) == known
