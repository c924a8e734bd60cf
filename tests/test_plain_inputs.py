"""A plain path is a data set, a list of texts is a prompt set, and a processor may come before its model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from PIL import Image
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

import beholder
from beholder.cli import app
from beholder.models.load import as_scorer
from beholder.models.spec import LoadOptions


def brightness(images: list[Any], prompts: list[str]) -> list[list[float]]:
    return [[sum(image.resize((1, 1)).getpixel((0, 0))) / 100 + len(prompt) for prompt in prompts] for image in images]


def glow(images: list[Any], prompts: list[str]) -> list[list[float]]:
    return [[np.asarray(image).mean() / 1000 * len(prompt) for prompt in prompts] for image in images]


def test_a_path_and_a_list_of_texts_are_what_their_files_are(
    people: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = people(12)
    texts = ["a kind person", "a cold person"]
    (tmp_path / "prompts.csv").write_text("\n".join(["text", *texts]) + "\n")
    common: dict[str, Any] = {"by": "gender", "draws": 100, "store": tmp_path / "store"}
    one = beholder.audit(brightness, dataset=folder, prompts=texts, out=tmp_path / "one", **common)
    other = beholder.audit(
        brightness, dataset=f"folder:{folder}", prompts=tmp_path / "prompts.csv", out=tmp_path / "two", **common
    )
    assert one.results.equals(other.results)
    assert one.results.height
    assert len(beholder.load_dataset(str(folder))) == 12
    with pytest.raises(beholder.BeholderError, match="prompts= takes a file, a PromptSet or a list of texts, not"):
        beholder.audit(brightness, dataset=folder, prompts=["", 3], out=tmp_path / "three", **common)


def test_a_processor_may_come_before_its_model(monkeypatch: pytest.MonkeyPatch):
    seen: list[Any] = []
    monkeypatch.setattr("beholder.models.load._saved", lambda *parts: seen.append(parts[:2]))
    model = SimpleNamespace(state_dict=dict, save_pretrained=print)
    processor = SimpleNamespace(save_pretrained=print)
    for given in ((model, processor), (processor, model)):
        as_scorer(given, LoadOptions())
    assert seen == [(model, (processor,))] * 2


def test_a_pair_of_onnx_files_is_a_model_by_its_folder(tmp_path: Path):
    (tmp_path / "image.onnx").write_bytes(b"no model")
    with pytest.raises(beholder.BeholderError, match=r"config\.json"):
        beholder.load_model(str(tmp_path))


def test_the_settings_of_ones_own_data_are_listed():
    said = CliRunner().invoke(app, ["data", "settings", "folder", "--json"], catch_exceptions=False).stdout
    assert '"setting": "image"' in said
    assert '"setting": "outside"' in said


class Arrow:
    """What is used of a `datasets.Dataset`, on a table of Arrow: its rows in batches, its columns, names of classes."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.column_names = table, table.column_names
        self.features = dict.fromkeys(table.column_names, SimpleNamespace(names=None))
        self.features["gender"] = SimpleNamespace(names=["woman", "man"])

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, rows: slice) -> pa.Table:
        return self.table[rows]

    def with_format(self, kind: str) -> Arrow:
        return self

    def select_columns(self, names: list[str]) -> Arrow:
        return Arrow(self.table.select(names))

    def remove_columns(self, names: list[str]) -> Arrow:
        return Arrow(self.table.drop_columns(names))

    def iter(self, batch_size: int) -> Iterator[pa.Table]:
        return (self.table[start : start + batch_size] for start in range(0, len(self), batch_size))


def test_a_table_in_memory_is_a_data_set(people: Callable[..., Path], tmp_path: Path):
    folder = people(12)
    table = beholder.load_dataset(folder).table
    uris, gender, name = (table[column].to_list() for column in ("uri", "gender", "name"))
    pictures: list[Any] = [Image.open(uri) for uri in uris]
    stored = [{"bytes": Path(uri).read_bytes(), "path": None} for uri in uris]
    arrays = [np.asarray(each.convert("RGB")) for each in pictures]
    ages = [1, "?", *range(10)]
    arrow = pa.table({"pic": stored, "gender": [int(word == "man") for word in gender], "name": name})
    frames: dict[str, Any] = {
        "polars": pl.DataFrame({"Foto": uris, "Gender": gender, "name": name}),
        "pandas": pd.DataFrame({"Foto": uris, "Gender": pd.Categorical(gender), "name": name, "age": ages}),
        "pictures": pl.DataFrame({"Foto": pictures, "gender": gender, "name": name}),
        "arrays": pd.DataFrame({"Foto": arrays, "gender": gender, "name": name}),
        "datasets": Arrow(arrow),
        "data set": beholder.load_dataset(folder),
    }
    common: dict[str, Any] = {"prompts": ["a kind person", "a cold one"], "by": "gender", "draws": 100}
    common["store"] = tmp_path / "store"
    expected = beholder.audit(glow, dataset=folder, out=tmp_path / "folder", **common).results.drop("dataset")
    assert expected.height
    for kind, frame in frames.items():
        column = {"image_column": "Foto"} if kind in ("polars", "pandas") else {}
        run = beholder.audit(glow, frame, out=tmp_path / kind, **common, **column)
        assert_frame_equal(run.results.drop("dataset"), expected)
        assert run.scores().height == 24
        notes = [str(each["notes"]) for each in run.record.datasets]
        assert ["cannot be viewed or verified" in each for each in notes] == [kind != "data set"]


def test_scores_of_a_run_have_its_mapped_labels(tmp_path: Path):
    pictures = [Image.new("RGB", (8, 8), (shade, 0, 0)) for shade in (10, 90, 170, 250)]
    frame = pl.DataFrame({"image": pictures, "gender": ["m", "Herr", "f", "f"]})
    asked: dict[str, Any] = {"prompts": ["kind", "cold"], "by": "gender", "draws": 100, "store": tmp_path / "store"}
    run = beholder.audit(
        "null", frame, out=tmp_path / "run", map=["gender: m, Herr = man", "gender: f = woman"], **asked
    )
    assert set(run.scores()["gender"]) == {"man", "woman"}


NOT_TABLES: dict[str, tuple[Any, str]] = {
    "no pictures": (pl.DataFrame({"x": [1]}), "none has. The table has: x.\nName the column: image_column='NAME'."),
    "two columns": (pl.DataFrame({"a": [b"1"], "b": [b"2"]}), "several columns have pictures. The table has: a, b."),
    "parts": ({"train": 1, "test": 2}, "not dict. Give one of its parts: 'train', 'test'."),
    "a number": (5, "dataset= takes a name, a path, a Dataset, a DataFrame of polars or pandas, or a datasets.Dataset"),
    "an empty cell": (pd.DataFrame({"path": ["a.png", None]}), "row 1 of 'path' has no picture and no path (nan)"),
    "no rows": (pl.DataFrame({"path": []}), "dataset=: the table has no rows."),
}


@pytest.mark.parametrize("name", NOT_TABLES)
def test_what_is_no_table_of_pictures_is_said(name: str):
    table, words = NOT_TABLES[name]
    with pytest.raises(beholder.BeholderError, match=re.escape(words)):
        beholder.load_dataset(table)


def test_a_table_of_another_program_is_said():
    with pytest.raises(beholder.BeholderError, match="table:0 was a table in the memory of another program"):
        beholder.load_dataset("table:0")
