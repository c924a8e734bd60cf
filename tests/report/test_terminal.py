from __future__ import annotations

import io

import polars as pl
import pytest
from rich.console import Console

from beholder._run import Run
from beholder.report.summary import print_summary


def summary(run: Run, width: int = 120, *, verbose: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    print_summary(run.report, console, verbose=verbose)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_summary_says_what_was_found(apa_run: Run) -> None:
    text = summary(apa_run)
    assert "Women in politics get a lower mean probability of “politician” than men" in text
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


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_every_question_has_one_line(two_models: Run, columns: int) -> None:
    lines = summary(two_models, columns, verbose=False).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= columns
    asked = {(finding.model, finding.question) for finding in two_models.findings if finding.question}
    answers = [
        line
        for line in lines
        if line.startswith(("● difference", "○ none", "△ too little", "◆ fact", "– not measured"))
    ]
    assert len(answers) == len(asked)
    assert any("0.62 times (" in line and "n=" in line for line in answers)


def test_a_run_of_many_models_stays_within_forty_lines(apa_run: Run) -> None:
    many = pl.concat([apa_run.results.with_columns(model=pl.lit(f"clip-{i}")) for i in range(12)])
    text = summary(Run(many, apa_run.record), verbose=False)
    assert len(text.splitlines()) <= 40
    assert "more questions are on the page" in text


def test_a_folder_is_called_by_its_last_name(apa_run: Run) -> None:
    text = summary(Run(apa_run.results.with_columns(model=pl.lit("/home/me/models/mine")), apa_run.record))
    assert "mine, apa on apa" in text
    assert "/home/me" not in text


def test_the_summary_says_who_counts_as_a_person(apa_run: Run) -> None:
    described = {"column": "name", "people": 60, "described": "60 people, 240 pictures; each person counts once"}
    apa_run.record.datasets[0]["persons"] = {**described, "conflicts": {"gender": 1}}
    apa_run.record.datasets[0]["selection"] = {"uneven": ["gender is uneven: man 17, woman 3"]}
    text = summary(apa_run, 200)
    assert "60 people, 240 pictures; each person counts once (by the column name)" in text
    assert "1 person has pictures with different labels of gender" in text
    assert "--limit: gender is uneven: man 17, woman 3" in text
