"""Disparity's chapter: what it says follows from the rows, and nothing from data runs or leaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest
from rich.console import Console

from beholder.audit import measure
from beholder.report.charts import figures
from beholder.report.page import render
from beholder.report.tables import tables
from beholder.report.terminal import print_summary
from beholder.run import Run
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity import queries as reading
from beholder.studies.disparity.charts import stacked
from beholder.studies.disparity.findings import disparity_findings
from beholder.studies.disparity.planted import disparity_planted
from beholder.studies.disparity.study import Choices, disparity_study
from beholder.studies.study import MeasureOptions

WORSE = {("woman", "tie"): 1.4, ("man", "handbag"): 1.2}
RARE = {("man", "dog"): 0.5, ("woman", "dog"): 0.1}
OPTIONS = MeasureOptions(draws=150)
VECTORS = "tie 1 0\nhandbag 0 1\ndog 1 0\nchair 0.2 1\nman 1 0.1\nwoman 0.1 1\n"


@pytest.fixture(scope="module")
def run(object_world: Callable[..., ScoreMatrix], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A detector, beside itself on another data set, with word vectors."""
    file = tmp_path_factory.mktemp("words") / "vectors.txt"
    file.write_text(VECTORS)
    benchmark = disparity_study(Choices(word_vectors=file))
    here, there = (
        measure(
            benchmark,
            [object_world(600, worse=WORSE, rare=RARE, name=name, seed=seed)],
            OPTIONS,
            model="Detic",
            dataset=name,
        )
        for seed, name in enumerate(("coco", "visual-genome"), 1)
    )
    made = Run()
    made.add(here)
    made.add(benchmark.across(here, there))
    return made


def quiet(object_world: Callable[..., ScoreMatrix], **world: object) -> pl.DataFrame:
    return measure(disparity_study(), [object_world(**world)], OPTIONS, model="m", dataset="coco")


def said(results: pl.DataFrame, kind: str) -> str:
    (found,) = [each for each in disparity_findings(results) if each.kind == kind]
    return f"{'*' if found.shown else '-'} {found.headline}. {found.sentence}"


def test_gaps_are_named_in_both_directions_with_what_chance_gives(run: Run):
    text = said(run.results, "gaps")
    assert text.startswith("* 2 of 4 concepts are recognised unequally in pictures of “man” and “woman”.")
    assert "Better in pictures labelled “man”: “tie” (" in text
    assert "Better in pictures labelled “woman”: “handbag” (" in text
    assert "shuffled labels give" in text
    assert "four of five tries" in text


def test_nothing_shown_is_not_called_none(object_world: Callable[..., ScoreMatrix]):
    text = said(quiet(object_world, n=300), "gaps")
    assert text.startswith("- No gap is shown")
    assert "not the same as none" in text
    few = said(quiet(object_world, n=24, seed=3), "gaps")
    assert "Too few images" in few


def test_the_mean_says_that_it_hides(run: Run):
    text = said(run.results, "mean")
    assert "hides gaps that point opposite ways" in text
    mean = reading.one(run.results, "mean_average_precision", group="man")
    assert f"“man” {100 * mean['value']:.0f} %" in text


def test_a_gap_of_prevalence_is_told_apart(run: Run):
    text = said(run.results, "prevalence")
    assert "“dog”" in text
    assert "when both groups show it equally often" in text


def test_calibration_is_told_or_its_absence_explained(run: Run, object_world: Callable[..., ScoreMatrix]):
    text = said(run.results, "calibration")
    assert text.startswith("* For ")
    assert "of 4 concepts confidence is off by more" in text
    still = said(quiet(object_world, n=300), "calibration")  # one of four is no surprise
    assert still.startswith(("- For 0", "- For 1"))
    absent = said(quiet(object_world, n=300, channel="cosine"), "calibration")
    assert "is no probability" in absent
    assert "--calibration platt" in absent


def test_agreement_is_counted(run: Run):
    green = reading.one(run.results, "agreement_count", group="green")["value"]
    assert green >= 2
    assert said(run.results, "agreement").startswith(f"- {green:.0f} of 4 concepts have a wide gap")


def test_every_figure_of_the_issue_is_drawn(run: Run):
    names = [figure.name for figure in figures(run.results)]
    assert {"gaps", "spread", "reliability-0", "reliability-1", "agreement-1"} <= set(names)
    bars = next(f for f in figures(run.results) if f.name == "gaps")
    assert "“tie” +" in bars.title
    assert "“handbag” −" in bars.title
    assert bars.title.startswith("“man” less “woman”")


def test_bars_are_coloured_by_word_vectors(run: Run):
    table = {row["concept"]: row["words"] for row in reading.gaps(run.results, "man less woman").to_dicts()}
    assert table["tie"] == reading.AGREES  # texts put it nearer to men, and it is seen better there
    assert table["handbag"] == reading.AGREES


def test_dots_that_would_overlap_stand_over_each_other():
    rows = stacked([{"value": v} for v in (0.0, 0.0, 0.0, 100.0)], 10)
    assert [row["place"] for row in rows] == [0.0, 0.1, 0.2, 0.0]


def test_tables_carry_numbers_that_are_rows(run: Run):
    made = {table.title: table for table in tables(run.results, "disparity")}
    gaps = made["Widest gaps"]
    assert gaps.header[:3] == ["Concept", "man", "woman"]
    assert gaps.rows[0][0].text == "tie"
    assert gaps.rows[-1][0].text == "handbag"
    raw = reading.one(run.results, "ap_gap", concept="tie")["value"]
    assert gaps.rows[0][3].text == f"+{100 * raw:.1f}"
    ids = made["Images behind the widest gaps, by id"]
    assert any("," in row[-1].text for row in ids.rows)
    names = made["What may lie behind the widest gaps"]
    assert any("other tie" in row[-1].detail for row in names.rows)


@pytest.mark.slow
def test_what_data_say_is_escaped_on_the_page(object_world: Callable[..., ScoreMatrix]):
    bad = "<script>alert(1)</script>"
    results = quiet(object_world, n=300, concepts=(bad, "dog"), worse={("woman", bad): 1.5})
    made = Run()
    made.add(results)
    page = render(made)
    assert bad not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<img" not in page.partition("<script>")[0]  # ids, never images


@pytest.mark.slow
def test_three_groups_and_two_models_have_a_page_and_a_summary(object_world: Callable[..., ScoreMatrix]):
    world = object_world(300, groups=("a", "b", "c"), worse={("b", "tie"): 1.5})
    made = Run()
    for model in ("one", "two"):
        made.add(measure(disparity_study(), [world], OPTIONS, model=model, dataset="coco"))
    page = render(made)
    assert "b less the rest" in page
    console = Console(record=True, width=120)
    print_summary(made, console)
    assert "b less the rest" in console.export_text()


def test_planted_gaps_stand_beside_recovered_ones_for_the_reference_model_only(
    run: Run, matrix_of_drawings: pl.DataFrame
):
    assert disparity_planted(run.results) is None
    table = disparity_planted(matrix_of_drawings)
    cells = {row[0].text: [cell.text for cell in row] for row in table.rows}
    assert cells["hat"][1] == "−19.2"
    assert cells["phone"][3] == "0.0"


@pytest.fixture(scope="module")
def matrix_of_drawings(object_world: Callable[..., ScoreMatrix]) -> pl.DataFrame:
    world = object_world(200, ("hat", "tie", "handbag", "glasses", "phone"), name="glasshouse-objects")
    world = replace(world, channels=("cosine",))
    name = "glasshouse-objects"
    return measure(disparity_study(), [world], OPTIONS, model="glasshouse/contrastive", dataset=name)
