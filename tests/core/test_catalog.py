"""A wrong name answers with what exists and the nearest match."""

from __future__ import annotations

import pytest

from beholder.core.catalog import Catalog
from beholder.core.errors import UnknownName, UsageError
from beholder.datasets import DATASETS
from beholder.models.catalog import FAMILIES
from beholder.studies import STUDIES


def test_a_known_name_finds_its_thing():
    assert Catalog("animal", {"horse": 1})["horse"] == 1


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownName, match=r"(?s)no animal 'hrose'.*It has: hare, horse.*Did you mean 'horse'\?"):
        Catalog("animal", {"horse": 1, "hare": 2})["hrose"]


def test_a_name_far_from_all_suggests_nothing():
    with pytest.raises(UnknownName) as caught:
        Catalog("animal", {"horse": 1})["xyz"]
    assert "Did you mean" not in str(caught.value)


def test_a_users_own_thing_can_be_added_and_added_again():
    animals = Catalog("animal", {"horse": 1})
    animals.add("hare", 2)
    animals.add("hare", 3)
    assert animals["hare"] == 3
    assert not animals.came_with_beholder("hare")


def test_what_comes_with_beholder_keeps_its_meaning():
    animals = Catalog("animal", {"horse": 1})
    with pytest.raises(UsageError, match="animal 'horse' comes with Beholder"):
        animals.add("horse", 2)
    assert animals["horse"] == 1


def test_every_catalogued_thing_carries_its_own_name():
    for catalog in (STUDIES, DATASETS, FAMILIES):
        assert all(thing.name == name for name, thing in catalog.items())


def test_every_study_names_data_sets_that_exist():
    assert all(name in DATASETS for study in STUDIES.values() for name in study.asks.datasets)
