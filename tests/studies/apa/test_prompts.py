"""APA's prompts are those of the released files, in their order, and right for the right people."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from beholder.datasets import load_dataset
from beholder.datasets.apa import BRANCHES
from beholder.prompts.prompt_set import correct_cells
from beholder.studies.apa.prompts import association_prompts, identity_prompts

LEVELS = {"Easy": "category", "Medium": "occupation", "Hard": "specialty"}


@pytest.mark.real
@pytest.mark.parametrize("branch", BRANCHES)
def test_prompts_equal_the_released_files(data: Path, branch: str):
    lines = (data / "apa" / f"base-prompts-{branch}.csv").read_text().splitlines()[1:]
    released = [(LEVELS[level], text.strip()) for level, _, text in (line.partition("|") for line in lines)]
    assert list(association_prompts(branch).table.select("level", "text").iter_rows()) == released


@pytest.mark.real
@pytest.mark.parametrize("branch", BRANCHES)
def test_every_person_has_one_correct_prompt_at_every_level(data: Path, branch: str):
    people, prompts = load_dataset("apa", data).where(branch=branch).table, association_prompts(branch).table
    for level in LEVELS.values():
        rows = prompts.filter(prompts["level"] == level)
        assert (correct_cells(rows, people).sum(axis=1) == 1).all()


def test_an_actress_is_correct_for_women_and_an_actor_for_men():
    table = association_prompts("actors").table
    rules = dict(table.filter(table["level"] == "occupation").select("concept", "correct_for").iter_rows())
    assert (rules["actress"], rules["actor"], rules["politician"]) == ("gender=woman", "gender=man", "")


ATTRIBUTES = {"branch": "", "name": "Ann", "gender": "woman", "academy_award": "1", "sport": "Golf"}


def right_for(branch: str, level: str, **person: str) -> list[str]:
    """The concepts that are right for one person."""
    table = association_prompts(branch).table.filter(level=level)
    cells = correct_cells(table, pl.DataFrame([ATTRIBUTES | person]))
    return [concept for concept, right in zip(table["concept"], cells[0], strict=True) if right]


@pytest.mark.parametrize("branch", BRANCHES)
def test_everyone_is_a_person_and_nothing_else(branch: str):
    assert right_for(branch, "category") == ["person"]


@pytest.mark.parametrize(
    ("branch", "person", "occupation", "specialty"),
    [
        ("actors", {}, "actress", "actress, nominated"),
        ("actors", {"gender": "man", "academy_award": "0"}, "actor", "actor, won"),
        ("actors", {"academy_award": "2"}, "actress", "actress, never nominated"),
        ("athletes", {}, "athlete", "Golfer"),
        ("athletes", {"sport": "Martial Arts"}, "athlete", "Martial Artist"),
        ("senate", {}, "politician", "senator"),
        ("house", {}, "politician", "house representative"),
        ("mayors", {}, "politician", "mayor"),
    ],
)
def test_what_is_right_follows_from_the_branch_and_the_sources_table(
    branch: str, person: dict[str, str], occupation: str, specialty: str
):
    assert right_for(branch, "occupation", **person) == [occupation]
    assert right_for(branch, "specialty", **person) == [specialty]


def test_a_name_is_right_for_that_person_only():
    table = identity_prompts("x", "this is a photo of {}", ["Ann", "Bob"]).table
    assert correct_cells(table, pl.DataFrame([ATTRIBUTES, ATTRIBUTES | {"name": "Bob"}])).tolist() == [
        [True, False],
        [False, True],
    ]


def test_a_person_with_two_pictures_is_one_name():
    assert identity_prompts("x", "this is a photo of {}", ["Ann", "Bob", "Ann"]).texts == [
        "this is a photo of Ann",
        "this is a photo of Bob",
    ]
