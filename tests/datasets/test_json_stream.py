"""Large JSON is read record by record: as the json module reads it, in constant memory, with faults told by byte."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from beholder.core.errors import BadScores, DataError
from beholder.datasets import json_stream
from beholder.datasets.json_stream import JsonRecords, JsonTables

RECORDS = [{"image_id": 139, "score": 0.25, "name": "é€"}, {"image_id": 285, "score": 1e-5, "bbox": [1.5, 2]}]


@pytest.fixture(params=[7, 64, 1 << 20])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Chunks so small that every word and letter is cut somewhere."""
    monkeypatch.setattr(json_stream, "CHUNK", request.param)
    return int(request.param)


def test_the_stream_gives_what_the_json_module_gives(chunk: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    records = [
        {'é\n"': "ü🦄" * int(rng.integers(0, 9)), "n": [-1.5e-7, None, True, False, {"a": {}}], "i": i}
        for i in range(60)
    ]
    path = tmp_path / "list.json"
    for options in ({"ensure_ascii": False}, {"indent": 3}, {"separators": (",", ":")}):
        path.write_text("\ufeff" + json.dumps(records, **options), encoding="utf-8")
        assert list(JsonRecords(path)) == records
    path.write_text(" [ ] \n")
    assert list(JsonRecords(path)) == []


def test_a_truncated_file_is_told_by_its_last_byte_wherever_it_ends(chunk: int, tmp_path: Path) -> None:
    text = json.dumps(RECORDS, ensure_ascii=False).encode()
    path = tmp_path / "cut.json"
    for length in range(0, len(text), 3):
        path.write_bytes(text[:length])
        with pytest.raises(DataError, match=rf"cut off: it ends at byte {length},"):
            list(JsonRecords(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"annotations": []}', r"byte 0: a list of records must begin with '\['"),
        ("[1, 2]", "byte 1: record 1 is no object"),
        ('[{"a": 1} {"a": 2}]', "byte 10: ',' or ']' must follow a record"),
        ('[{"ü": 1}] x', "byte 12: something follows the end of the list"),
        ('[{"a": 1}, {"a": oops, "b": "' + "x" * 40 + '"}]', "byte 17: record 2 is broken JSON"),
        ('[{"a": ' + "[" * 200_000 + "]" * 200_000 + "}]", "byte 1: record 1 is nested too deeply"),
    ],
)
def test_what_is_no_list_of_objects_is_told_by_its_byte(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(JsonRecords(path))


def test_half_a_character_is_refused_and_a_whole_one_read(chunk: int, tmp_path: Path) -> None:
    path = tmp_path / "halves.json"
    path.write_text(r'[{"name": "\ud83d\udc54"}, {"name": "\\ud83d"}]')
    assert [record["name"] for record in JsonRecords(path)] == ["👔", r"\ud83d"]
    path.write_text(r'[{"name": "tie"}, {"name": "\ud83d tie"}]')
    with pytest.raises(DataError, match="byte 18: record 2 has half a character"):
        list(JsonRecords(path))


def test_a_number_of_thousands_of_digits_is_told_by_its_byte(tmp_path: Path) -> None:
    path = tmp_path / "digits.json"
    path.write_text('[{"id": ' + "1" * 5000 + "}]")
    with pytest.raises(DataError, match="byte 1: record 1 has a number without end"):
        list(JsonRecords(path))


def test_bytes_that_are_no_text_are_told_by_their_place(chunk: int, tmp_path: Path) -> None:
    path = tmp_path / "latin.json"
    path.write_bytes(b'[{"name": "' + b"caf\xe9 au lait" + b'"}]')
    with pytest.raises(DataError, match="not UTF-8 text at byte 14"):
        list(JsonRecords(path))


def test_a_record_without_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "LONGEST_RECORD", 2 << 20)
    path = tmp_path / "endless.json"
    path.write_text('[{"a": "' + "x" * (6 << 20) + '"}]')
    with pytest.raises(DataError, match="byte 1: record 1 does not end within 2 MB"):
        list(JsonRecords(path))


def test_the_reader_says_which_kind_of_error_it_raises(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text("[")
    with pytest.raises(BadScores, match="cut off"):
        list(JsonRecords(path, BadScores))


TABLES = {
    "info": {"year": 2017, "nested": [1, {"a": "]"}]},
    "version": 12345678,
    "images": [{"id": 139, "file_name": "é.jpg"}, {"id": 285, "file_name": "[}"}],
    "licenses": [],
    "note": None,
    "annotations": RECORDS,
    "year": 2017,
}


def test_lists_of_an_object_come_with_their_keys(chunk: int, tmp_path: Path) -> None:
    path = tmp_path / "tables.json"
    lists = [(key, value) for key, value in TABLES.items() if isinstance(value, list)]
    for options in ({"ensure_ascii": False}, {"indent": 3}, {"separators": (",", ":")}):
        path.write_text(json.dumps(TABLES, **options), encoding="utf-8")
        assert list(JsonTables(path)) == [(key, record) for key, records in lists for record in records]
    path.write_text("{}")
    assert list(JsonTables(path)) == []


def test_a_truncated_object_is_told_by_its_last_byte_wherever_it_ends(chunk: int, tmp_path: Path) -> None:
    text = json.dumps(TABLES, ensure_ascii=False).encode()
    path = tmp_path / "cut.json"
    for length in range(0, len(text), 3):
        path.write_bytes(text[:length])
        with pytest.raises(DataError, match=rf"cut off: it ends at byte {length},"):
            list(JsonTables(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", r"byte 0: an object must begin with '\{'"),
        ("{1: 2}", "byte 1: a key must begin with '\"'"),
        ('{"a" 1}', "byte 5: ':' must follow a key"),
        ('{"a": 1 "b": 2}', r"byte 8: ',' or '\}' must follow a value"),
        ('{"images": [{"id": 1}, 7]}', "byte 23: images record 2 is no object"),
        ('{"a": 1} {}', "byte 9: something follows the end of the object"),
    ],
)
def test_what_is_no_object_of_lists_is_told_by_its_byte(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        list(JsonTables(path))


def test_a_record_can_be_found_at_fault_by_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "tables.json"
    path.write_text('{"images": [{"id": 1}, {"id": -2}]}')
    tables = JsonTables(path)
    for _, record in tables:
        if record["id"] < 0:
            with pytest.raises(DataError, match="byte 23: images record 2 has a negative id"):
                raise tables.fault("has a negative id")
