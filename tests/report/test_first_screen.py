"""The first screen: what was asked, the few findings that matter, and the way from each to its rows."""

from __future__ import annotations

import itertools
import re

import pytest

from beholder.chapter.finding import Finding
from beholder.report.page import render
from beholder.report.top_findings import FEW, first_sentence, top_findings
from beholder.run import Run


def found(model: str, *, shown: bool = True, study: str = "apa", headline: str = "x") -> Finding:
    verdict = "shown" if shown else "not shown"
    return Finding(study, "photos", model, "bias", headline, "One. Two.", verdict, 1.0)


def test_every_model_has_its_say_before_any_has_its_second():
    many = [found("a", headline=str(place)) for place in range(9)] + [found("b"), found("c", shown=False)]
    chosen = top_findings(many)
    assert len(chosen) == FEW
    assert [each.model for each in chosen] == ["a", "a", "a", "a", "b"]


def test_what_is_shown_comes_before_what_is_not_and_noise_last():
    chosen = top_findings([found("null"), found("null:7"), *[found("a", shown=False)] * 3, found("b")], few=2)
    assert {each.model for each in chosen} == {"a", "b"}


def test_few_findings_are_all_there_in_their_order(apa_run: Run):
    known = apa_run.findings
    assert top_findings(known, few=99) == known


def test_a_sentence_ends_where_the_next_begins():
    assert (
        first_sentence("It gets 0.46 times (0.38–0.57; n = 3). “Kind” is next.")
        == "It gets 0.46 times (0.38–0.57; n = 3)."
    )
    assert first_sentence("Alone e.g. here") == "Alone e.g. here"


def test_every_finding_of_the_first_screen_leads_to_its_chart_and_its_rows(two_models: Run):
    page = render(two_models.report)
    first = page[page.index('id="findings"') : page.index("<nav")]
    leads = re.findall(r'<a href="#([\w-]+)">charts and tables</a> · <a href="#rows" data-metric="([\w.]+)"', first)
    assert len(leads) == FEW
    for anchor, metric in leads:
        assert f'id="{anchor}"' in page
        assert metric in set(two_models.results["metric"])


@pytest.mark.parametrize("name", ["apa_run", "two_models", "custom_run"])
def test_every_link_within_the_page_has_a_place_to_go(name: str, request: pytest.FixtureRequest):
    page = render(request.getfixturevalue(name).report)
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    missing = {anchor for anchor in re.findall(r'href="#([^"]+)"', outside) if f'id="{anchor}"' not in outside}
    assert not missing


def test_headings_go_down_one_level_at_a_time(two_models: Run):
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", render(two_models.report))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_the_command_can_be_copied(apa_run: Run):
    assert '<pre class="command">beholder audit clip --out &#39;runs/a b&#39;</pre>' in render(apa_run.report)


def test_every_picture_says_what_it_shows(hostile_run: Run):
    page = render(hostile_run.report)
    pictures = re.findall(r'<div class="view"[^>]*>(<svg [^>]*>)', page)
    assert pictures
    assert all(re.match(r'<svg role="img" aria-label="[^"<>]{20,}" ', picture) for picture in pictures)


def test_many_planted_rows_are_closed_and_their_finding_leads_to_them(glasshouse_run: Run):
    page = render(glasshouse_run.report)
    assert '<a href="#apa-1-planted">charts and tables</a>' in page
    assert 'id="apa-1-planted"' in page
    known = page[page.index('id="apa-1-planted"') :]
    assert ("<details" in known[:200]) == (known.split("</figure>")[0].count("<tr") > 16)
