"""Every template of a finding at both signs, at zero, with one group, with tiny and huge n: what each must not say."""

from __future__ import annotations

import re

import polars as pl
import pytest
from studies.gras.finding_cases import cases

from beholder.chapter.finding import FOUND, metric_rows
from beholder.comparison.family import VERDICTS
from beholder.studies.gras.chapter import CHAPTER, gras_tables
from beholder.studies.gras.charts import gras_figures, valence_title
from beholder.studies.gras.findings import FINDERS, gras_findings
from beholder.studies.gras.phrases import gaps, other_gaps

CASES = list(cases())


@pytest.mark.parametrize("results", [table for _, table in CASES], ids=[name for name, _ in CASES])
def test_sentences_are_whole_whatever_the_numbers(results: pl.DataFrame) -> None:
    for finding in gras_findings(results):
        text = f"{finding.headline}. {finding.sentence}"
        assert finding.kind in CHAPTER.questions
        assert finding.verdict in VERDICTS
        assert not re.search(r"None|nan|inf\b|\(\s*[;)]|  |\{|\}|—", text), text
        assert finding.sentence.endswith((".", "!"))
        assert not re.search(r"\b1 (traits|gaps|shares)\b", text), text
        if finding.verdict == "none found":
            assert "not" in text or "no" in text.lower()
    for table in gras_tables(results):
        assert not any("None" in cell.text or "nan" in cell.text for row in table.rows for cell in row)


@pytest.mark.slow
def test_every_finder_has_a_case() -> None:
    spoken = {finding.kind for _, results in CASES for finding in gras_findings(results)}
    assert spoken == set(CHAPTER.questions)
    silent = [find.__name__ for find in FINDERS if not any(list(find(results)) for _, results in CASES)]
    assert silent == []


@pytest.mark.parametrize("results", [table for _, table in CASES], ids=[name for name, _ in CASES])
def test_sentences_tables_and_charts_ask_one_rule(results: pl.DataFrame) -> None:
    """What a finding calls shown is bold in the table and in the title of the chart, and nothing else is."""
    table, others = gaps(results), other_gaps(results)
    said = {row["concept"] for f in gras_findings(results) if f.kind == "gap" and f.shown for row in f.rows}
    assert said <= {*table.filter("found")["concept"], *others["concept"]}
    assert bool(said) == bool(table["found"].any() or others.height)
    findings = gras_findings(results)
    for figure in gras_figures(results):
        if figure.name == "gaps" and table.height:
            assert figure.titled(findings).title == next(f.headline for f in findings if f.kind == "gap")
    shares = metric_rows(results, "valence_share").with_columns(found=FOUND)
    if shares.height:
        rows = [{**row, "valence": row["concept"]} for row in shares.to_dicts()]
        (finding,) = [f for f in gras_findings(results) if f.kind == "valence"]
        assert finding.shown == any(row["found"] for row in rows)
        assert ("no share" in valence_title(rows)) == (not finding.shown)


@pytest.mark.slow
def test_nothing_found_is_followed_by_nothing_that_says_it_is() -> None:
    for name, results in CASES:
        texts = [f"{f.headline} {f.sentence}" for f in gras_findings(results)]
        if any("No difference found by gender" in text for text in texts):
            assert not any("differences were found" in text.lower() for text in texts), name


def test_none_found_says_how_large_a_difference_could_still_be() -> None:
    results = dict(CASES)["gap lost within the source"]
    (finding,) = [f for f in gras_findings(results) if f.kind == "gap"]
    assert "A difference of up to 4.0 points may still be there." in finding.sentence
    assert finding.sentence.endswith("Note: gender and age cannot be distinguished here.")


def test_a_gap_is_said_as_it_was_judged_and_the_published_one_beside_it() -> None:
    (finding,) = [f for f in gras_findings(dict(CASES)["gap turned round within the source"]) if f.kind == "gap"]
    assert finding.headline == "The model affirms “kind” more for Female than for Male, by 5.0 points"
    assert "than those labelled Male within source, race (95 % interval 2.0–8.0, for all" in finding.sentence
    assert "Without regard to that the widest gap is 12.0 points." in finding.sentence
    assert finding.as_dict()["rows"][0]["group"] == "Male", "the row keeps its place in the results"


def test_opposite_gaps_in_two_sources_do_not_cancel() -> None:
    (finding,) = [f for f in gras_findings(dict(CASES)["opposite gaps in two sources"]) if f.kind == "gap"]
    assert finding.shown
    assert "than those labelled Female within FFHQ (95 % interval 15.0–25.0" in finding.sentence
