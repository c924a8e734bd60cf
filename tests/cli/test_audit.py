"""`beholder audit`: a report, a summary, or one JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.errors import DataError, ModelError
from beholder.models.load import load_model


def test_an_audit_names_its_report_and_prints_a_summary(audit: list[object], tmp_path: Path):
    result = CliRunner().invoke(app, [str(a) for a in audit], catch_exceptions=False)
    assert result.exit_code == 0
    assert "report.html" in result.stderr
    assert re.search(r"1 answer: Too little data 1\n△ Too little data: .*; 5 women \+ 5 men\)\n$", result.stdout)
    assert (tmp_path / "run" / "report.html").is_file()


def test_json_is_one_document_on_standard_output(invoke: Callable[..., str], audit: list[object]):
    answer = json.loads(invoke(*audit, "--json"))
    assert {row["metric"] for row in answer["results"]} == {
        *("custom.probability", "custom.gap", "custom.selection_rate", "custom.impact_ratio")
    }
    assert answer["bad_images"] == []


def test_quiet_says_nothing(audit: list[object]):
    result = CliRunner().invoke(app, [str(a) for a in [*audit, "--quiet"]], catch_exceptions=False)
    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("city", "by city nothing was compared: every image has the same value"),
        (
            "person",
            "no two groups of folder:alike were compared: it takes two groups of at least five people (person: 10 "
            "people: intervals resample people rather than images).",
        ),
    ],
)
def test_an_audit_without_two_groups_says_why_and_fails(
    audit: list[object], people: Callable[..., Path], undrawn: list[object], header: str, why: str
):
    folder = people(10, name="alike")
    rows = [f"{i:05}.png,{i if header == 'person' else 'Rome'}\n" for i in range(10)]
    (folder / "people.csv").write_text(f"image,{header}\n" + "".join(rows))
    asked = [*audit, "--dataset", f"folder:{folder}", "-q"]
    asked[asked.index("gender")] = header
    result = CliRunner().invoke(app, [str(a) for a in asked], catch_exceptions=False)
    assert result.exit_code == 1
    assert result.stderr.strip() == f"custom: {why}"


def test_a_folder_without_a_table_says_what_to_write(invoke: Callable[..., str], tmp_path: Path, prompts: Path):
    with pytest.raises(DataError, match="a column 'image' with the names of the image files"):
        invoke("audit", "null", "--prompts", prompts, "--dataset", f"folder:{_empty(tmp_path)}")


def _empty(folder: Path) -> Path:
    (folder / "photos").mkdir()
    return folder / "photos"


def test_a_known_model_that_cannot_be_fetched_is_not_taken_for_another(monkeypatch: pytest.MonkeyPatch):
    def unreachable(name: str, options: object) -> None:
        raise ModelError(f"{name} is not on this machine")

    monkeypatch.setattr("beholder.models.load.fetch", unreachable)
    for asked, meant in (("CLIP ViT-B/32", False), ("vit-b/3x", True)):
        with pytest.raises(ModelError) as told:
            load_model(asked)
        assert ("did you mean" in str(told.value)) == meant
