"""Exports say what the page says, and a stranger's names stay words in every target."""

from __future__ import annotations

import json
import re

from beholder.core.results import Row, results_table
from beholder.report.exports import card, latex, markdown
from beholder.run import Run

HOSTILE = "<script>|*m_1* 50%\\input{x} $y$"


def run_of(model: str) -> Run:
    rows = [
        Row("apa.association", 0.71, 90, "probability", subset="actors", concept="category", low=0.6, high=0.8),
        Row("apa.association", None, 0, "probability", subset="senate", concept="category", note="no image"),
        Row("apa.bias_ratio", 0.5, 90, "ratio", subset="actors", low=0.4, high=0.6, note="40 women, 50 men"),
    ]
    run = Run()
    run.add(results_table(rows, benchmark="apa", model=model, dataset="apa"))
    run.add(results_table(rows[:1], benchmark="apa", model="other", dataset="apa"))
    run.record.command = ["audit", model]
    return run


def test_markdown_holds_every_open_table_whole() -> None:
    run = run_of("m")
    text = markdown(run.report)
    shown = [table for chapter in run.report.sections for table in chapter.tables if table.rows and not table.long]
    assert shown
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(lines) == sum(2 + len(table.rows) for table in shown)
    for table in shown:
        assert f"| {' | '.join(table.header)} |" in text
    assert "0.50 (0.40–0.60)" in text


def test_names_stay_words() -> None:
    run = run_of(HOSTILE)
    marked = markdown(run.report)
    assert "<script>" not in marked.replace("\\<script\\>", "").replace(f"`beholder audit {HOSTILE}`", "")
    lines = [line for line in marked.splitlines() if line.startswith("| ")]
    headers = {line.count("|") for line in lines if line.startswith("| Model")}
    named = {len(re.findall(r"(?<!\\)\|", line)) for line in lines if "m\\_1" in line}
    assert named
    assert named <= headers
    tables = latex(run.report)
    assert "\\input{x}" not in tables
    assert r"\textbackslash{}input\{x\} \$y\$" in tables
    assert tables.count("\\begin{table}") == tables.count("\\end{table}") > 0


def test_every_row_of_a_latex_table_has_its_columns() -> None:
    for table in latex(run_of("m").report).split("\\begin{tabular}")[1:]:
        columns = len(table[1 : table.index("}")])
        rows = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert rows
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {columns}


def test_a_card_indexes_numbers_with_their_intervals_and_no_absent_one() -> None:
    run = run_of(HOSTILE)
    front = card(run.report).split("---\n")[1]
    index = json.loads(front)["model-index"]
    assert [entry["name"] for entry in index] == [HOSTILE, "other"]
    metrics = index[0]["results"][0]["metrics"]
    assert [(one["name"], one["value"], one["args"]["low"]) for one in metrics] == [
        ("apa.association · actors · category", 0.71, 0.6),
        ("apa.bias_ratio · actors", 0.5, 0.4),
    ]
