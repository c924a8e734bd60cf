"""Progress and lists, as a person at a terminal and a log file meet them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from beholder.cli import console, listing

ROWS: list[dict[str, object]] = [
    {"name": "fairface", "images": 97698, "licence": None, "origin": "https://example.org/a/long/address/of/it"},
    {"name": "apa", "images": 845, "licence": "MIT", "origin": "here"},
]


def shown(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, width: int) -> str:
    file = io.StringIO()
    written = Console(file=file, width=width, force_terminal=terminal, color_system=None, highlight=False)
    monkeypatch.setattr(listing, "out", written)
    monkeypatch.setattr("sys.stdout", file)
    listing.show(ROWS, as_json=False)
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


def progress_of(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, between: float = 0.0, total: int = 4) -> str:
    file = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=file, width=60, force_terminal=terminal))
    monkeypatch.setattr(console, "BETWEEN_LINES", between)
    with console.bar("onnx:/a/very/long/path/to/a/folder/of/weights: images", total, 0) as advance:
        for _ in range(total):
            advance(1)
    return file.getvalue()


def test_a_log_gets_plain_lines_with_speed_and_time_left(monkeypatch: pytest.MonkeyPatch):
    lines = progress_of(monkeypatch, terminal=False).splitlines()
    assert len(lines) == 4
    assert "2 of 4 images" in lines[1]
    assert "images/s" in lines[1]
    assert "left" in lines[1]
    assert not any("\x1b" in line for line in lines)


def test_short_work_leaves_nothing_in_a_log(monkeypatch: pytest.MonkeyPatch):
    assert progress_of(monkeypatch, terminal=False, between=30.0) == ""


def test_a_narrow_terminal_shows_the_end_of_a_long_label(monkeypatch: pytest.MonkeyPatch):
    assert "…eights: images" in progress_of(monkeypatch, terminal=True)


def test_work_of_unknown_length_is_named(monkeypatch: pytest.MonkeyPatch):
    assert "weights: images" in progress_of(monkeypatch, terminal=True, total=0)
