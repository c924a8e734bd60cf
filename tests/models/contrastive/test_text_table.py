"""A closed vocabulary answers for the texts it holds and suggests the nearest for those it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beholder.core.errors import ModelError, UnknownName
from beholder.models.contrastive.onnx import TableConfig, TextTable, read_text_table


def table(folder: Path, names: Any, *, rows: int = 2, template: str | None = None) -> TextTable:
    (folder / "names.json").write_text(json.dumps(names))
    np.save(folder / "vectors.npy", 3 * np.eye(rows, 4, dtype=np.float32))
    return read_text_table(folder, TableConfig("vectors.npy", "names.json", template))


def test_classes_are_asked_for_by_their_whole_text(tmp_path: Path) -> None:
    closed = table(tmp_path, {"template": "a photo of a {}", "classes": ["person", "dog"]})
    assert closed.texts == ["a photo of a person", "a photo of a dog"]
    assert closed.embed(["a photo of a dog", "a photo of a person"]).tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize("names", [["one person", "one dog"], {"texts": ["one person", "one dog"]}])
def test_whole_texts_are_taken_as_they_are(tmp_path: Path, names: Any) -> None:
    assert table(tmp_path, names).texts == ["one person", "one dog"]


def test_the_template_of_the_config_wins(tmp_path: Path) -> None:
    names = {"template": "a photo of a {}", "classes": ["person", "dog"]}
    assert table(tmp_path, names, template="the {}").texts == ["the person", "the dog"]


def test_an_unknown_text_suggests_the_nearest(tmp_path: Path) -> None:
    closed = table(tmp_path, {"classes": ["person", "dog"]})
    with pytest.raises(UnknownName, match=r"no text 'a photo of a persom'(.|\n)*mean 'a photo of a person'"):
        closed.embed(["a photo of a dog", "a photo of a persom"])


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a", "b", "c"], "3 texts .* 2 rows"),
        (["a", "a"], "'a' more than once"),
        ({"words": ["a"]}, "must hold a list of texts"),
        ([1, 2], "must hold a list of texts"),
    ],
)
def test_a_table_that_does_not_fit_is_told(tmp_path: Path, names: Any, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        table(tmp_path, names)


def test_vectors_that_are_not_an_array_are_told(tmp_path: Path) -> None:
    table(tmp_path, ["a", "b"])
    (tmp_path / "vectors.npy").write_text("no array")
    with pytest.raises(ModelError, match=r"vectors.npy is not a NumPy array file"):
        read_text_table(tmp_path, TableConfig("vectors.npy", "names.json", None))
