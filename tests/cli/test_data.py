"""`beholder data`: what is here, what is damaged, how to get it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.cli.data import report_lines
from beholder.core.errors import UsageError


def test_data_list_says_what_is_here(invoke: Callable[..., str], tmp_path: Path):
    rows = {row["name"]: row for row in json.loads(invoke("data", "list", "--data", tmp_path, "--json"))}
    assert rows["apa"]["state"] == "not here"
    assert rows["glasshouse"]["state"] == "embedded"


def test_data_where_says_how_to_get_it(invoke: Callable[..., str], tmp_path: Path):
    answer = invoke("data", "where", "apa", "--data", tmp_path)
    assert "is not there" in answer
    assert "beholder data fetch apa" in answer


def test_data_verify_names_what_is_damaged(people: Callable[..., Path]):
    folder = people(4)
    (folder / "00002.png").write_bytes(b"nonsense")
    result = CliRunner().invoke(app, ["data", "verify", f"folder:{folder}", "--json"])
    assert result.exit_code == 1
    assert list(json.loads(result.stdout)["damaged"]) == ["00002.png"]


def test_every_setting_is_listed_with_its_default() -> None:
    result = CliRunner().invoke(app, ["data", "settings", "coco", "--json"], catch_exceptions=False)
    rows = {row["setting"]: row["default"] for row in json.loads(result.stdout)}
    assert rows["without"] == "people"
    assert rows["concept_images"] == "100"


def test_fetching_needs_a_folder():
    with pytest.raises(UsageError, match="--data DIR"):
        CliRunner().invoke(app, ["data", "fetch", "apa"], catch_exceptions=False)


def test_only_fairface_is_mended(tmp_path: Path):
    with pytest.raises(UsageError, match="Only FairFace's labels can be mended"):
        CliRunner().invoke(app, ["data", "mend", "apa", "--data", str(tmp_path)], catch_exceptions=False)


@pytest.mark.parametrize(
    ("smallest", "unit", "told_as"),
    [
        (30.5, "standard deviations", "none of a likely size can be shown (8 images)"),
        (1.2, "probability", "none of a likely size can be shown (8 images)"),
        (None, "1 − b", "none of a likely size can be shown (8 images)"),
        (0.4, "standard deviations", "0.40 standard deviations (8 images)"),
        (0.37, "1 − b", "0.37 below a ratio of 1 (8 images)"),
    ],
)
def test_a_difference_that_no_model_makes_is_not_promised(smallest: float | None, unit: str, told_as: str) -> None:
    row = {"metric": "gap", "comparison": "gender", "images": 8, "smallest": smallest, "unit": unit}
    found = {
        "name": "staff",
        "images": 8,
        "can_show": [row],
        "unreadable": {},
        "look_alikes": {},
        "unclear": {},
        "transparent": [],
    }
    found |= {key: [] for key in ("notes", "columns", "crossings", "studies")}
    assert list(report_lines(found))[-1] == f"  gap by gender: {told_as}"
