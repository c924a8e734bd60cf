"""`beholder list`: tables for people, JSON for programs."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from beholder.cli import console


@pytest.mark.parametrize("what", ["models", "datasets", "studies", "metrics", "prompts"])
def test_every_list_is_also_json(invoke: Callable[..., str], what: str):
    assert len(json.loads(invoke("list", what, "--json"))) > 1
    assert invoke("list", what)


def test_metrics_carry_their_unit_and_meaning(invoke: Callable[..., str]):
    rows = {row["metric"]: row for row in json.loads(invoke("list", "metrics", "--json"))}
    assert "below 1" in rows["apa.bias_ratio"]["meaning"]
    assert rows["pfi.association"]["unit"] == "probability"


def test_own_prompts_are_previewed(invoke: Callable[..., str], prompts: Path):
    rows = json.loads(invoke("list", "prompts", "--file", prompts, "--json"))
    assert [row["concept"] for row in rows] == ["kind", "cold"]


ROWS: list[dict[str, object]] = [
    {"name": "fairface", "images": 97698, "licence": None, "origin": "https://example.org/a/long/address/of/it"},
    {"name": "apa", "images": 845, "licence": "MIT", "origin": "here"},
]


def shown(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, width: int) -> str:
    file = io.StringIO()
    written = Console(file=file, width=width, force_terminal=terminal, color_system=None, highlight=False)
    monkeypatch.setattr(console, "out", written)
    monkeypatch.setattr("sys.stdout", file)
    console.show(ROWS, as_json=False)
    return file.getvalue()


@pytest.mark.parametrize(("terminal", "width"), [(True, 30), (True, 60), (True, 120), (False, 40)])
def test_a_list_cuts_no_name_and_no_address(monkeypatch: pytest.MonkeyPatch, terminal: bool, width: int):
    text = shown(monkeypatch, terminal=terminal, width=width)
    assert "…" not in text
    assert "https://example.org/a/long/address/of/it" in text.replace("\n  ", "").replace("\n", "")
    assert "97,698" in text


def test_a_narrow_terminal_gets_a_paragraph_for_each_row(monkeypatch: pytest.MonkeyPatch):
    lines = shown(monkeypatch, terminal=True, width=60).splitlines()
    assert lines[0].strip() == "fairface"
    assert max(map(len, lines)) <= 60
