"""Progress, as a person at a terminal and a log file meet it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from beholder.cli import console


def progress_of(
    monkeypatch: pytest.MonkeyPatch, *, terminal: bool, between: float = 0.0, total: int = 4, later: int = 0
) -> str:
    file = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=file, width=60, force_terminal=terminal))
    monkeypatch.setattr(console, "BETWEEN_LINES", between)
    with console.bar("onnx:/a/very/long/path/to/a/folder/of/weights: images", total, 0, later) as advance:
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


def test_a_line_tells_the_time_left_for_the_whole_run(monkeypatch: pytest.MonkeyPatch):
    seconds = iter(range(0, 100, 10))
    monkeypatch.setattr(console.time, "monotonic", lambda: float(next(seconds)))
    lines = progress_of(monkeypatch, terminal=False, later=100).splitlines()
    assert lines[0].endswith("1 of 4 images, 10.0 s/image, 30 s left, about 17 min for the run")


def test_short_work_leaves_nothing_in_a_log(monkeypatch: pytest.MonkeyPatch):
    assert progress_of(monkeypatch, terminal=False, between=30.0) == ""


def test_a_narrow_terminal_shows_the_models_own_name(monkeypatch: pytest.MonkeyPatch):
    assert "weights: images" in progress_of(monkeypatch, terminal=True)


def test_work_of_unknown_length_is_named(monkeypatch: pytest.MonkeyPatch):
    assert "weights: images" in progress_of(monkeypatch, terminal=True, total=0)


@pytest.mark.parametrize("later", [0, 40_000])
def test_the_models_name_stays_visible_at_80_columns(monkeypatch: pytest.MonkeyPatch, later: int):
    file = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=file, width=80, force_terminal=True))
    with console.bar("openai/clip-vit-base-patch32: fairface-adults", 10_954, 0, later) as advance:
        advance(345)
    assert "clip-vit-base-patch32: f" in file.getvalue()


def test_what_is_counted_is_named(monkeypatch: pytest.MonkeyPatch):
    file = io.StringIO()
    monkeypatch.setattr(console, "err", Console(file=file, width=80, force_terminal=False))
    monkeypatch.setattr(console, "BETWEEN_LINES", 0.0)
    with console.bar("apa: leaving people out", 20, 0, unit="parts") as advance:
        advance(1)
    assert "1 of 20 parts" in file.getvalue()
