from __future__ import annotations

import io
import re

import polars as pl
import pytest
from rich.console import Console

from beholder._run import Run
from beholder.comparison.family import SIGNS
from beholder.report.summary import print_summary


def summary(run: Run, width: int = 120, *, verbose: bool = True, terminal: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=terminal)
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


def answers(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[:1] in SIGNS.values()]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_terminal_says_the_five_answers_that_matter_most_and_where_the_rest_is(
    two_models: Run, columns: int
) -> None:
    text = summary(two_models, columns, verbose=False)
    asked = {(finding.model, finding.question) for finding in two_models.findings if finding.question}
    assert max(map(len, text.splitlines())) <= columns
    assert "…" not in text
    assert len(answers(text)) == 5 == len(asked) - 1
    assert f"{len(asked)} answers: Difference found " in text
    assert "1 more answer is in the report" in text.replace("\n", " ")
    assert "1 more answer is above." in summary(two_models, columns)


def test_in_a_log_each_answer_is_one_line_with_both_groups_their_sizes_and_an_interval(two_models: Run) -> None:
    women = (pl.col("metric") == "apa.occupation_probability") & (pl.col("group") == "woman")
    less = two_models.results.with_columns(pl.when(women).then(pl.col("value") / 2).otherwise("value").alias("value"))
    lines = answers(summary(Run(less, two_models.record), 40, verbose=False, terminal=False))
    (line,) = [line for line in lines if "(clip): The model’s belief in “politician”" in line]
    assert line.startswith("● Difference found (clip): ")
    both, interval = r"\d+ % for women politicians, and \d+ % for men", r"0\.62 times, 0\.\d\d to 0\.\d\d"
    assert re.search(rf"{both} \({interval}; \d+ women \+ \d+ men\)", line)


def test_the_demo_prints_what_was_planted_beside_what_was_found(glasshouse_run: Run) -> None:
    text = summary(glasshouse_run, verbose=False)
    lines = text.splitlines()
    assert re.search(r"doctors: women over men +\d+ +0\.36 +0\.\d\d", text)
    heading = next(place for place, line in enumerate(lines) if "Planted" in line and "Found" in line)
    assert heading < next(place for place, line in enumerate(lines) if line[:1] in SIGNS.values())


def test_a_run_of_many_models_stays_within_forty_lines(apa_run: Run) -> None:
    many = pl.concat([apa_run.results.with_columns(model=pl.lit(f"clip-{i}")) for i in range(12)])
    text = summary(Run(many, apa_run.record), verbose=False)
    assert len(text.splitlines()) <= 40
    assert "more answers are in the report" in text


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
