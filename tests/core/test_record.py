"""A record says once what was used, and is read again as it was written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from beholder.core.errors import DataError, MissingData
from beholder.core.record import SCHEMA, Record, machine, read_record


def test_a_record_is_read_again_as_it_was_written(tmp_path: Path):
    made = Record(command=["audit", "[b]ü 🦉"], settings={"draws": 100}, notes=["a"])
    (tmp_path / "run.json").write_bytes(made.as_json())
    assert read_record(tmp_path) == made
    assert made.schema == SCHEMA


@pytest.mark.parametrize(
    ("schema", "what"), [(None, "an earlier Beholder.*Make the run again"), (99, "a newer Beholder.*Update Beholder")]
)
def test_a_run_of_another_beholder_is_refused(tmp_path: Path, schema: int | None, what: str):
    entry = {**json.loads(Record().as_json()), "schema": schema}
    (tmp_path / "run.json").write_text(json.dumps(entry))
    with pytest.raises(DataError, match=what):
        read_record(tmp_path)


def test_a_folder_without_a_record_says_how_to_make_one(tmp_path: Path):
    with pytest.raises(MissingData, match=r"it has no run\.json. Make one with: beholder audit --out"):
        read_record(tmp_path)


def test_a_name_that_is_no_unicode_does_not_stop_the_record():
    assert b"a?b" in Record(notes=["a\udc80b"]).as_json()


def test_models_data_sets_and_bad_images_are_listed_once():
    record = Record()
    for notes in ([], ["later"]):
        record.add_model({"name": "m", "digest": "1", "notes": notes})
        record.add_dataset({"name": "d", "images": len(notes)})
        record.add_bad_images({"a.jpg": f"reason {len(notes)}"})
    record.add_model({"name": "m", "digest": "2"})
    assert [(model["digest"], model.get("notes")) for model in record.models] == [("1", ["later"]), ("2", None)]
    assert record.datasets == [{"name": "d", "images": 0}]
    assert record.bad_images == [{"image": "a.jpg", "reason": "reason 0"}]


def test_the_machine_names_the_libraries_that_are_installed():
    known = machine()
    assert {"python", "system", "numpy", "polars"} <= set(known)
    assert all(known.values())
