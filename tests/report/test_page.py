"""The page: everything escaped, every link leads somewhere, and it opens from disk without the network."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from made_runs import unpacked

from beholder._run import Run
from beholder.core.results import results_table
from beholder.report.answer import answers
from beholder.report.drawing import packed
from beholder.report.page import bold_numbers, keep_together, render, write_page


@pytest.mark.slow
def test_everything_from_data_is_escaped(hostile_run: Run) -> None:
    page = render(hostile_run.report)
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_packed_data_cannot_end_its_script_and_comes_back_as_it_was() -> None:
    value = ["</script>", "a&b", "−1", 0.25, None]
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", packed(value))
    assert unpacked(packed(value)) == value


def test_numbers_are_bold_and_the_rest_is_escaped() -> None:
    assert (
        str(bold_numbers("<i> −3.2 points & 84 % of B/32")) == "&lt;i&gt; <b>−3.2 points</b> &amp; <b>84 %</b> of B/32"
    )
    assert str(bold_numbers("for 60-69")) == "for 60-69"


@pytest.mark.usefixtures("undrawn")
def test_the_page_shows_settings_and_traces(apa_run: Run) -> None:
    page = render(apa_run.report)
    for text in (
        "0123456789abcdef",
        "seed 20260801",
        "2000 draws",
        "runs/a b",
        'href="results.csv"',
        "MIT",
        "a note",
        "“Belief”",
    ):
        assert text in page


@pytest.mark.slow
def test_nothing_on_the_page_points_to_the_network(apa_run: Run) -> None:
    without_scripts = re.sub(r"<script.*?</script>", "", render(apa_run.report), flags=re.DOTALL)
    assert not re.search(r"""(src|href)=["']?https?:""", without_scripts)


def test_an_empty_run_still_has_a_page(tmp_path: Path) -> None:
    path = write_page(Run().report, tmp_path)
    assert "Nothing could be measured" in path.read_text(encoding="utf-8")


def test_a_study_without_sentences_of_its_own_was_measured_all_the_same(make: SimpleNamespace) -> None:
    run = Run(results_table([make.share("mine.share", 0.5)], study="mine", model="clip", dataset="photos"))
    page = render(run.report)
    assert "Nothing could be measured" not in page
    assert "Its numbers stand below" in page


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_several_studies_get_their_own_headings(apa_run: Run, custom_run: Run) -> None:
    apa_run.add(custom_run.results)
    page = render(apa_run.report)
    assert "<h2>APA: actors, politicians, athletes</h2>" in page
    assert "<h2>Own prompts</h2>" in page
    assert page.count('scope="rowgroup"') == 2


def test_a_study_of_the_users_own_says_what_it_asks_and_what_its_numbers_mean(custom_run: Run) -> None:
    metric = {"name": "custom.probability", "topic": "", "unit": "probability", "meaning": "0 decided, 1 torn"}
    custom_run.record.declared["custom"] = {
        "title": "Torn or not",
        "question": "Is it torn?",
        "study": "",
        "limitations": ["Made up."],
        "of_photographs": ["Photographs only."],
        "metrics": [metric],
    }
    page = render(custom_run.report)
    for text in ("Torn or not", "Is it torn?", "0 decided, 1 torn", "Made up.", "Photographs only."):
        assert text in page
    assert "How does the model" not in page


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_one_study_on_two_data_sets_says_which_finding_is_of_which(apa_run: Run) -> None:
    again = apa_run.results.with_columns(dataset=pl.lit("apa-2030"))
    apa_run.add(again)
    page = render(apa_run.report)
    assert "<h2>APA: actors, politicians, athletes, on apa</h2>" in page
    assert "<h2>APA: actors, politicians, athletes, on apa-2030</h2>" in page


@pytest.mark.usefixtures("undrawn")
def test_long_lists_of_bad_images_are_closed(apa_run: Run) -> None:
    apa_run.record.bad_images = [{"image": f"{i}.jpg", "reason": "cut short"} for i in range(9)]
    page = render(apa_run.report)
    assert re.search(r"<details>\s*<summary>Images that could not be read \(9\)", page)


@pytest.mark.slow
def test_importing_the_page_loads_neither_altair_nor_the_chart_engine() -> None:
    code = "import sys, beholder.report.page; print([m for m in ('altair', 'vl_convert') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# The first screen, links and headings


def test_every_question_has_a_line_that_leads_to_its_finding(two_models: Run):
    page = render(two_models.report)
    card = page[page.index('class="card"') : page.index("<nav")]
    lines = re.findall(r'<th scope="row">.*?<a href="#([\w-]+)">', card)
    asked = {(f.model, f.question) for f in two_models.findings if f.question}
    assert len(lines) == len(asked)
    assert all(f'<li id="{anchor}"' in page for anchor in lines)
    questions = re.findall(r'<span class="asked">(.+?)</span>', card)
    assert len(questions) == len(set(questions)), "a question that two models answer stands once"
    verdicts = re.findall(r'<span aria-hidden="true">(.)</span> ([\w ]+)</span>', card)
    assert len(verdicts) == len(lines)


def test_the_first_screen_answers_each_subject_in_one_sentence_with_both_numbers(two_models: Run):
    women = (pl.col("metric") == "apa.occupation_probability") & (pl.col("group") == "woman")
    less = two_models.results.with_columns(pl.when(women).then(pl.col("value") / 2).otherwise("value").alias("value"))
    two_models = Run(less, two_models.record)
    page = render(two_models.report)
    part = page[page.index('aria-label="Answers"') : page.index('id="scorecard"')]
    sentences = re.findall(r"<h2>(.*?)</h2>", part)[: len(answers(two_models.report))]
    assert [card.subject for card in answers(two_models.report)] == ["Jobs", "Names"]
    assert len(sentences) == 2
    assert max(len(sentence.split()) for sentence in sentences) <= 40
    jobs = answers(two_models.report)[0]
    assert len(re.findall(r"\d+\s%", jobs.text)) == 2
    assert {dot.mark for dot in jobs.bars[0].dots} == {"woman", "man"}


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


@pytest.mark.slow
def test_every_picture_says_what_it_shows(hostile_run: Run):
    page = render(hostile_run.report)
    pictures = re.findall(r'<div class="view"[^>]*>(<svg [^>]*>)', page)
    topics = re.findall(r'<section class="topic".*?</section>', page, flags=re.DOTALL)
    assert 0 < len(pictures) <= sum('data-tab="Chart"' in topic for topic in topics)  # a fact's chart opens on request
    assert all(re.match(r'<svg role="img" aria-label="[^"<>]{20,}" ', picture) for picture in pictures)


@pytest.mark.slow
def test_planted_rows_are_closed_and_their_finding_has_a_line(glasshouse_run: Run):
    page = render(glasshouse_run.report)
    assert '<details class="long" id="apa-1-planted">' in page
    assert "Does the audit find what was planted" in page[: page.index('id="apa-1"')]


# In a browser


class Visit:
    """A page that was opened, and what it did."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._dismiss)

    def _dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def open(self, path: Path) -> None:
        self.page.goto(path.as_uri())
        self.page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        for view in self.page.query_selector_all(".view"):
            view.scroll_into_view_if_needed()
        for _ in range(3000):
            if self.page.evaluate("document.querySelectorAll('.view:not(.drawn)').length") == 0:
                return
            self.page.wait_for_timeout(100)
        pytest.fail("some charts were not drawn")


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    yield Visit(page)
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_models", "glasshouse_run", "custom_run", "hostile_run", "gras_hostile"])
def test_the_page_opens_from_disk_and_draws(
    name: str, visit: Visit, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = write_page(request.getfixturevalue(name).report, tmp_path)
    visit.open(path)
    assert visit.messages == []
    assert [url for url in visit.requests if url != path.as_uri() and not url.startswith(("data:", "blob:"))] == []
    marks = visit.page.eval_on_selector_all(
        ".view", "views => views.map(v => v.querySelectorAll('svg .mark-rect path, svg .mark-symbol path').length)"
    )
    assert marks
    assert all(marks)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_without_scripts_the_still_pictures_stay(apa_run: Run, browser: Any, tmp_path: Path) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(write_page(apa_run.report, tmp_path).as_uri())
    for study in page.locator("details.all > summary").all():
        study.click()
    charts = page.locator('.beside .panel[data-tab="Chart"]')
    assert page.locator(".view > svg").count() == charts.count() > 0
    assert page.locator(".beside .panel:visible").count() == page.locator(".beside .panel").count()
    context.close()


def test_an_age_in_a_sentence_stays_on_one_line_and_an_id_stays_as_it_is():
    assert keep_together("for those labelled 0-2 more") == "for those labelled 0\u20112 more"
    assert keep_together("ViT-B-16-224") == "ViT-B-16-224"
