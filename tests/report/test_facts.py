"""The facts of a run: what fixes its numbers, as label and text."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from beholder.core.record import Record
from beholder.report.facts import command, dataset_things, model_things, part_of, run_facts


def facts(record: Record) -> dict[str, str]:
    return dict(run_facts(record))


def test_a_model_has_what_fixes_its_scores_and_the_long_rest_on_request(make: SimpleNamespace):
    (model,) = model_things(make.record("clip"))
    shown = dict(model.facts)
    assert model.name == "clip"
    assert (shown["Revision"], shown["Precision"], shown["Digest"]) == ("abc", "float32", "0123456789abcdef")
    assert "Settings" not in shown
    assert '"image_size": 224' in model.more


def test_a_data_set_says_how_many_of_its_images_were_used(make: SimpleNamespace):
    whole = make.record("clip")
    part = make.record("clip", datasets=[{"name": "apa", "images": 30, "of": 845}])
    images = [dict(dataset_things(record)[0].facts)["Images"] for record in (whole, part)]
    assert images == ["845", "30 of 845"]
    assert [part_of(record.datasets[0]) for record in (whole, part)] == ["", "30 of 845"]
    assert dataset_things(whole)[0].notes == ["a note"]


def test_a_run_says_how_its_numbers_were_computed(make: SimpleNamespace):
    told = facts(make.record("clip"))
    assert told["Computed"] == "as the study describes it"
    assert told["Intervals"] == "95 %, 2000 draws of people, seed 20260801"
    assert "12.5" not in str(told)  # a run that was stopped and continued has the same page
    assert "Limit" not in told  # absent settings are not shown
    compat = make.record("clip", settings={"compat": True, "draws": 100, "seed": 1})
    assert facts(compat)["Computed"] == "as printed, faults included; APA: the released scripts: means in float16"


def test_studies_with_intervals_of_their_own_say_so(make: SimpleNamespace):
    told = facts(make.record("clip", studies=["gras"]))["Intervals"]
    assert "draws of people" not in told
    both = facts(make.record("clip", studies=["apa", "gras"]))["Intervals"]
    assert both.startswith("95 %, 2000 draws of people; GRAS: ")


@pytest.mark.parametrize(
    ("words", "text"),
    [(["beholder", "audit", "a b"], "beholder audit 'a b'"), (["audit", "x"], "beholder audit x"), ([], "")],
)
def test_the_command_can_be_typed_again(words: list[str], text: str):
    assert command(Record(command=words)) == text
