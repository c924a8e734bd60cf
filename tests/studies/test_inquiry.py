"""On which data set a study is asked, and what the record keeps of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from beholder.core.errors import UnknownName
from beholder.core.record import Record
from beholder.datasets import DATASETS
from beholder.prompts.prompt_set import prompt_set
from beholder.studies import STUDIES
from beholder.studies.custom.study import custom_study
from beholder.studies.inquiry import DataChoice, datasets_here, default_dataset, open_inquiries, open_inquiry
from beholder.studies.study import Asks, MeasureOptions

OWN = custom_study(prompt_set("words", [{"text": "kind", "level": "w", "concept": "kind"}]), by=("gender",))
EVERYWHERE = next(study for study in STUDIES.values() if study.asks.all_datasets)
ELSEWHERE = [name for name in EVERYWHERE.asks.datasets if not DATASETS[name].embedded]


@pytest.mark.parametrize("name", ["apa", "gras", "perception", "disparity"])
def test_without_a_folder_the_embedded_world_is_asked_and_with_one_the_studys_own(name: str, tmp_path: Path):
    study = STUDIES[name]
    assert DATASETS[default_dataset(study, None)].embedded
    if not study.asks.all_datasets:
        assert default_dataset(study, tmp_path) == study.asks.datasets[0]


def test_a_study_that_knows_no_embedded_data_is_asked_on_its_first():
    alone = replace(STUDIES["apa"], asks=Asks(tuple(ELSEWHERE)))
    assert default_dataset(alone, None) == ELSEWHERE[0]


def test_a_study_asked_everywhere_takes_what_lies_in_the_folder(tmp_path: Path):
    assert datasets_here(EVERYWHERE, tmp_path) == ELSEWHERE[:1]
    last = DATASETS[ELSEWHERE[-1]]
    last.folder(tmp_path).mkdir(parents=True)
    assert datasets_here(EVERYWHERE, tmp_path) == [last.name]
    assert default_dataset(EVERYWHERE, tmp_path) == last.name


def test_the_record_says_once_what_was_asked_of_what():
    record = Record()
    for _ in range(2):
        inquiry = open_inquiry(STUDIES["gras"], DataChoice(limit=5), record)
    assert record.studies == ["gras"]
    assert record.declared == {}
    (entry,) = record.datasets
    assert entry["name"] == inquiry.dataset.name
    assert entry["images"] == len(inquiry.dataset) < entry["of"]


def test_a_study_of_the_users_own_declares_itself():
    record = Record()
    own = replace(STUDIES["gras"], question="My own question?")
    (inquiry,) = open_inquiries(own, DataChoice(limit=2), record)
    assert inquiry.study is own
    assert record.declared["gras"]["question"] == "My own question?"


def test_the_record_says_who_is_a_person_and_what_the_limit_chose_by(people: Callable[..., Path]):
    record = Record()
    open_inquiry(OWN, DataChoice(dataset=f"folder:{people(12)}", limit=4), record)
    (entry,) = record.datasets
    assert entry["selection"]["each"] == "gender"
    assert entry["persons"] == {
        "column": "name",
        "people": 4,
        "pictures": 8,
        "described": "4 people, 8 pictures; each person counts once",
        "conflicts": {"gender": 4},
    }
    assert entry["selection"]["over"] == ["gender"]


@pytest.mark.parametrize("options", [MeasureOptions(person="who"), MeasureOptions(within=("who",))])
def test_an_unknown_column_is_told_before_anything_is_scored(options: MeasureOptions, people: Callable[..., Path]):
    choice = DataChoice(dataset=f"folder:{people(4)}", **vars(options))
    with pytest.raises(UnknownName, match="gender"):
        open_inquiry(OWN, choice, Record())
