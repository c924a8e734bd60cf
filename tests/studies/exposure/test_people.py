"""Who is counted: a person once, and names that may mean others are flagged."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset
from beholder.studies.apa.prompts import CATEGORIES, OCCUPATIONS, association_prompts
from beholder.studies.exposure.mentions import ONE_WORD, SHARED, WITHIN, WORD_TERMS, people_table


def dataset(*people: tuple[str, str]) -> Dataset:
    rows = [
        {"image_id": str(place), "uri": "", "branch": branch, "name": name, "gender": "woman"}
        for place, (branch, name) in enumerate(people)
    ]
    return Dataset("apa", "v1", "MIT", pl.DataFrame(rows))


def test_two_photographs_of_a_person_are_one_person_and_a_name_in_two_branches_is_flagged():
    people = people_table(dataset(("a", "Ana Bo"), ("a", "Ana Bo"), ("b", "ANA BÓ"), ("b", "Cy Di")))
    assert people["name"].to_list() == ["Ana Bo", "ANA BÓ", "Cy Di"]
    assert people["ambiguous"].to_list() == [SHARED, SHARED, None]


def test_names_inside_longer_ones_and_single_words_are_flagged_and_the_longer_is_not():
    people = people_table(dataset(("a", "Ana"), ("a", "Cy Ana Bo"), ("a", "Ana Bo"), ("a", "Di"), ("a", "Bo Ana")))
    assert people["ambiguous"].to_list() == [f"{WITHIN}; {ONE_WORD}", None, WITHIN, ONE_WORD, None]


def test_the_words_are_those_of_the_prompts():
    assert {term.text for term in WORD_TERMS if term.kind == "category"} == set(CATEGORIES)
    assert {term.text for term in WORD_TERMS if term.kind == "occupation"} == set(OCCUPATIONS)
    asked = {
        row["concept"].lower()
        for branch in ("athletes", "house", "senate", "mayors")
        for row in association_prompts(branch).table.filter(level="specialty").to_dicts()
    }
    assert {term.text for term in WORD_TERMS if term.kind == "specialty"} == asked


@pytest.mark.real
def test_apa_has_844_people_table_whom_three_have_ambiguous_names(data: Path):
    people = people_table(load_dataset("apa", data))
    assert people.height == 844
    assert people["ambiguous"].is_not_null().sum() == 3
    assert people.filter(pl.col("ambiguous").str.contains(WITHIN)).height == 1
