"""Evidence and machine-readable cards: numbers are the run's, names stay words, and other programs read them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import mlcroissant
import polars as pl
import pytest
from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from typer.testing import CliRunner

from beholder._run import Run, load_run
from beholder.cli import app
from beholder.core.errors import UsageError
from beholder.report.evidence import ANSWERS, FRAMEWORKS, as_html, as_markdown
from beholder.report.exports import cyclonedx


class Tables(HTMLParser):
    """Every table of a page, as rows of texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.tags: set[str] = set()
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.inside = True

    def handle_endtag(self, tag: str) -> None:
        self.inside = False if tag in ("td", "th") else self.inside

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.tables[-1][-1][-1] += data


@pytest.fixture(scope="module")
def run(people_in: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Noise asked two prompts about 24 people by gender, with one image of unknown gender."""
    place = tmp_path_factory.mktemp("evidence")
    folder = people_in(place, 24)
    table = (folder / "people.csv").read_text().replace("person 11,woman", "person 11,")
    (folder / "people.csv").write_text(table)
    (place / "prompts.csv").write_text("text,concept\na kind person,kind\na cold person,cold\n")
    words = ["audit", "null", "--dataset", f"folder:{folder}", "--prompts", place / "prompts.csv", "--by", "gender"]
    words += ["--out", place / "run", "--store", place / "store", "--draws", 100, "-q"]
    CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return load_run(place / "run")


def test_the_document_has_the_runs_ratios_and_who_has_no_label(run: Run) -> None:
    tables = Tables(as_html(run.report)).tables
    data = next(table for table in tables if "Without a label" in table[0])
    assert ["gender", "man 12, woman 11", "1"] in [row[-3:] for row in data]
    (ratios,) = [table for table in tables if "Impact ratio" in table[0]]
    shown = {(row[3], row[4]): (int(row[5]), row[7]) for row in ratios[1:]}
    rows = run.results.filter(metric="custom.impact_ratio").to_dicts()
    assert len(shown) == 4
    assert len(rows) == 2
    for row in rows:
        people, ratio = shown[f"{row['concept']} ({row['template']})", row["group"]]
        assert (people, float(ratio)) == (row["n"], pytest.approx(row["value"], abs=0.005))


def test_markdown_and_page_say_the_same(run: Run) -> None:
    text, page = as_markdown(run.report).replace("\\", ""), Tables(as_html(run.report))
    for table in page.tables:
        for row in table:
            assert f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" in text
    assert not page.tags & {"script", "img", "a", "iframe"}


def test_it_says_what_it_is_no_evidence_of_and_answers_no_item_wholly_that_it_cannot(run: Run, apa_run: Run) -> None:
    assert as_markdown(run.report).index("not evidence of") < as_markdown(run.report).index("What was measured")
    read = tomllib.loads(FRAMEWORKS.read_text())
    kinds = {item[2] for each in read["framework"] for item in each["items"]}
    assert kinds == {*ANSWERS, "ratio"}
    assert all(text in as_markdown(run.report).replace("\\", "") for text in read["not_evidence"])
    law = next(table for table in Tables(as_html(apa_run.report)).tables if table[1][0].startswith("§"))
    assert [row[2] for row in law if "mpact ratio" in row[1]] == ["not answered here"]
    assert "This run asks no prompts" not in as_markdown(run.report)


def test_no_folder_of_a_disk_and_no_markup_of_strangers_is_in_it(run: Run, hostile_run: Run) -> None:
    assert str(run.folder and run.folder.parent) not in as_markdown(run.report)
    hostile_run.results = hostile_run.results.with_columns(model=pl.lit("<script>|x"))
    assert "<script>" not in as_html(hostile_run.report)


def test_the_command_writes_both_forms(run: Run, tmp_path: Path, invoke_here: Callable[..., str]) -> None:
    invoke_here("export", run.folder, "--to", "evidence", "--out", tmp_path / "evidence")
    assert sorted(path.name for path in (tmp_path / "evidence").iterdir()) == ["evidence.html", "evidence.md"]
    assert invoke_here("export", run.folder, "--to", "evidence") == as_markdown(run.report)


@pytest.fixture
def invoke_here() -> Callable[..., str]:
    def call(*words: object) -> str:
        return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False).stdout

    return call


def test_cyclonedx_is_valid_and_has_every_interval_with_its_people(run: Run) -> None:
    text = cyclonedx(run.report)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    (component,) = Bom.from_json(json.loads(text)).components  # type: ignore[attr-defined]
    assert (component.name, component.type.value) == ("null", "machine-learning-model")
    metrics = json.loads(text)["components"][0]["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]
    assert len(metrics) == run.results.filter(pl.col("low").is_not_null()).height
    row = run.results.filter(metric="custom.gap").row(0, named=True)
    (gap,) = [each for each in metrics if each["type"].startswith("custom.gap") and row["concept"] in each["slice"]]
    assert float(gap["confidenceInterval"]["lowerBound"]) == pytest.approx(row["low"], rel=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
def test_croissant_is_read_back_row_by_row(people: Callable[..., Path], invoke_here: Callable[..., str]) -> None:
    folder = people(6)
    text = invoke_here("data", "card", f"folder:{folder}", "--croissant")
    (folder / "croissant.json").write_text(text)
    read = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    assert not read.metadata.ctx.issues.errors
    rows = [{key.split("/")[1]: cell.decode() for key, cell in row.items()} for row in read.records("images")]
    assert rows == pl.read_csv(folder / "people.csv").to_dicts()
    (folder / "people.csv").write_text((folder / "people.csv").read_text().replace(",", ";"))
    with pytest.raises(UsageError, match="does not separate"):
        invoke_here("data", "card", f"folder:{folder}", "--croissant")
    with pytest.raises(UsageError, match="a folder of yours"):
        invoke_here("data", "card", "glasshouse-objects", "--croissant")
