"""Every template of a finding at both signs, at zero, with one group, with tiny and huge n: what each must not say."""

from __future__ import annotations

import re

import polars as pl
import pytest
from studies.gras.finding_cases import cases

from beholder.comparison.verdicts import VERDICTS
from beholder.studies.gras.chapter import CHAPTER
from beholder.studies.gras.charts import gap_title, valence_title
from beholder.studies.gras.findings import FINDERS, gras_findings
from beholder.studies.gras.queries import gaps, shown
from beholder.studies.gras.tables import gras_tables

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


def test_every_finder_has_a_case() -> None:
    spoken = {finding.kind for _, results in CASES for finding in gras_findings(results)}
    assert spoken == set(CHAPTER.questions)
    silent = [find.__name__ for find in FINDERS if not any(list(find(results)) for _, results in CASES)]
    assert silent == []


@pytest.mark.parametrize("results", [table for _, table in CASES], ids=[name for name, _ in CASES])
def test_sentences_tables_and_charts_ask_one_rule(results: pl.DataFrame) -> None:
    """What a finding calls shown is bold in the table and in the title of the chart, and nothing else is."""
    table = gaps(results)
    said = {row["concept"] for f in gras_findings(results) if f.kind == "gap" and f.shown for row in f.rows}
    assert said <= set(table.filter("shown")["concept"])
    assert bool(said) == bool(table["shown"].any())
    if table.height:
        assert (gap_title(table.to_dicts()) == "no gap is shown") == (not said)
    shares = shown(results.filter(metric="gras.valence_share"))
    if shares.height:
        rows = [{**row, "valence": row["concept"]} for row in shares.to_dicts()]
        (finding,) = [f for f in gras_findings(results) if f.kind == "valence"]
        assert finding.shown == any(row["shown"] for row in rows)
        assert ("no share" in valence_title(rows)) == (not finding.shown)


def test_nothing_shown_is_followed_by_nothing_that_says_it_is() -> None:
    """With few images the chapter said that no test tells a gap from chance, and then spoke of those that are shown."""
    for name, results in CASES:
        texts = [f"{f.headline} {f.sentence}" for f in gras_findings(results)]
        if any("No difference is shown by gender" in text for text in texts):
            assert not any("the traits whose gap is shown" in text for text in texts), name
