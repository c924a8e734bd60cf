"""Exports say what the page says, and a stranger's names stay words in every target."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from beholder._run import Run
from beholder.core.errors import UnknownName, UsageError
from beholder.core.results import Row, results_table
from beholder.report.exports import LONGEST_CARD, card, eval_results, latex, markdown

HOSTILE = "<script>|*m_1* 50%\\input{x} $y$"
yaml = pytest.importorskip("yaml")
hub = pytest.importorskip("huggingface_hub")


def run_of(model: str) -> Run:
    rows = [
        Row("apa.association", 0.71, 90, "probability", subset="actors", concept="category", low=0.6, high=0.8),
        Row("apa.association", None, 0, "probability", subset="senate", concept="category", note="no image"),
        Row("apa.bias_ratio", 0.5, 90, "ratio", subset="actors", low=0.4, high=0.6, note="40 women, 50 men"),
    ]
    rows[-1] = rows[-1]._replace(verdict="difference found")
    run = Run()
    run.add(results_table(rows, study="apa", model=model, dataset="apa"))
    run.add(results_table(rows[:1], study="apa", model="other", dataset="apa"))
    run.record.command = ["audit", model]
    run.record.datasets = [{"name": "apa", "revision": "2025.1", "origin": "/home/ann/data/apa"}]
    run.record.models = [{"name": model, "adapter": "generative"}, {"name": "other", "adapter": "transformers"}]
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
    assert "<script>" not in marked.replace("\\<script\\>", "").replace(f"`beholder audit '{HOSTILE}'`", "")
    lines = [line for line in marked.splitlines() if line.startswith("| ")]
    headers = {line.count("|") for line in lines if line.startswith("| Model")}
    named = {len(re.findall(r"(?<!\\)\|", line)) for line in lines if "m\\_1" in line}
    assert named
    assert named <= headers
    tables = latex(run.report)
    assert "\\input{x}" not in tables
    assert r"\textbackslash{}input\{x\} \$y\$" in tables
    assert tables.count("\\begin{table") == tables.count("\\end{table") > 0


def test_every_row_of_a_latex_table_has_its_columns() -> None:
    for table in latex(run_of("m").report).split("\\begin{tabular}")[1:]:
        columns = len(re.sub(r"@\{\}|[{}]", "", table.splitlines()[0]))
        rows = [line for line in table.splitlines() if line.endswith(r"\\")]
        assert rows
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {columns}


def test_a_latex_table_names_its_model_and_its_data_and_fits_its_place() -> None:
    tables = re.split(r"\\begin\{table\*?\}", latex(run_of("clip").report))[1:]
    labels = [re.findall(r"\\label\{(tab:apa-apa-[a-z0-9-]+)\}", table) for table in tables]
    assert len({label for (label,) in labels}) == len(tables)
    assert all(": clip and other on apa. " in table for table in tables)
    for name, edge in (("m", ["columnwidth"]), ("m" * 40, []), ("m" * 120, ["textwidth"])):
        ratios = next(table for table in latex(run_of(name).report).split("\n\n") if "Women over men" in table)
        assert re.findall(r"\\resizebox\{\\(\w+)\}", ratios) == edge
        assert (r"\begin{table*}" in ratios) == (len(name) > 1)


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="TeX is not here")
@pytest.mark.parametrize("name", ["clip", HOSTILE, "模型 😀 ω²"])
def test_latex_compiles(name: str, tmp_path: Path) -> None:
    head = "\\documentclass[twocolumn]{article}\\usepackage{booktabs,graphicx}\\begin{document}"
    (tmp_path / "a.tex").write_text(f"{head}\n{latex(run_of(name).report)}\n\\end{{document}}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def front(text: str) -> Any:
    return yaml.safe_load(text.split("---\n")[1])


@pytest.mark.parametrize("name", ["clip", HOSTILE, "😀\x07", "/home/ann/models/clip"])
def test_a_card_is_one_models_and_the_hub_reads_it(name: str) -> None:
    run = run_of(name)
    model = run.report.results["model"][0]
    text = card(run.report, model, "https://example.org/page")
    found = hub.ModelCard(text)
    results = found.data.eval_results
    assert found.data.model_name == model
    assert {result.task_type for result in results} == {"image-text-to-text"}
    assert {(each.dataset_type, each.dataset_revision) for each in results} == {("apa", "2025.1")}
    assert {(each.source_url, each.source_name) for each in results} == {
        ("https://example.org/page", f"Beholder {run.record.beholder}")
    }
    assert [(each.metric_type, each.metric_value, each.metric_args["low"]) for each in results] == [
        ("apa.bias_ratio", 0.5, 0.4),
        ("apa.association", 0.71, 0.6),
    ]
    assert hub.repocard_data.eval_results_to_model_index(model, results)[0]["results"]
    assert "/home/ann" not in text
    assert len(text.splitlines()) <= LONGEST_CARD


def test_another_model_has_its_own_card_and_its_own_task() -> None:
    report = run_of("clip").report
    assert front(card(report, "other"))["model-index"][0]["results"][0]["task"]["type"].startswith("zero-shot")
    with pytest.raises(UsageError, match="several models: clip, other"):
        card(report)
    with pytest.raises(UnknownName, match=r"'othr'.*\n.*Did you mean 'other'"):
        card(report, "othr")


def test_evaluation_results_are_those_of_the_hub() -> None:
    text = eval_results(run_of("clip").report, "clip", "https://example.org/page")
    entries = hub.parse_eval_result_entries(yaml.safe_load(text))
    assert [(entry.dataset_id, entry.task_id, entry.value) for entry in entries] == [
        ("apa", "apa.bias_ratio · actors", 0.5),
        ("apa", "apa.association · actors · category", 0.71),
    ]
    assert all(entry.dataset_revision == "2025.1" and entry.source_url and entry.date for entry in entries)
    assert "95 % interval 0.4 to 0.6, n = 90" in entries[0].notes
    assert hub.eval_result_entries_to_yaml(entries) == yaml.safe_load(text)


@pytest.mark.slow
def test_a_card_of_everything_stays_short(gras_full: Run, apa_run: Run) -> None:
    both = Run(results=gras_full.results, record=gras_full.record)
    model = both.report.results["model"][0]
    assert len(card(both.report, model).splitlines()) <= LONGEST_CARD
    apa = apa_run.report
    assert len(card(apa, apa.results["model"][0]).splitlines()) <= LONGEST_CARD
