from __future__ import annotations

import io

import polars as pl
import pytest
from rich.console import Console

from beholder.report.terminal import print_summary
from beholder.run import Run


def summary(run: Run, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_summary(run.report, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_summary_says_what_was_found(apa_run: Run) -> None:
    text = summary(apa_run)
    assert "Women in politics are taken for “politician” less often than men" in text
    assert "Names and faces" in text
    assert "Occupations offered for" not in text


def test_names_with_brackets_are_shown_as_they_are(hostile_run: Run) -> None:
    text = summary(hostile_run, 200)
    assert "<script>alert(1)</script>" in text
    assert "[red]b[/red]" in text


def test_bad_images_are_counted_and_one_is_named(hostile_run: Run) -> None:
    assert "1 image could not be read, such as <script>" in summary(hostile_run, 200)


def test_an_empty_run_says_so() -> None:
    assert "Nothing could be measured." in summary(Run())


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_no_value_is_broken_in_a_narrow_terminal(two_models: Run, columns: int) -> None:
    lines = summary(two_models, columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("athletes ") and "90.0 %" in line for line in lines)


def test_several_models_get_a_table_each(two_models: Run) -> None:
    text = summary(two_models)
    assert "Right answer, level by level: clip" in text
    assert "Right answer, level by level: siglip" in text


def test_the_little_to_keep_stands_last(two_models: Run) -> None:
    last = summary(two_models).split("In short\n")[1].splitlines()
    assert 1 <= len(last) <= 5
    assert "Women in politics are taken for “politician” less often than men" in last[0]
    assert "(clip, apa on apa)" in last[0]


def test_a_folder_is_called_by_its_last_name(apa_run: Run) -> None:
    text = summary(Run(apa_run.results.with_columns(model=pl.lit("/home/me/models/mine")), apa_run.record))
    assert "mine, apa on apa" in text
    assert "/home/me" not in text
