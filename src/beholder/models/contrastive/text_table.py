"""A closed vocabulary: texts whose vectors were computed elsewhere, instead of a text tower.

The vectors are a `.npy` of one row per text; the texts a `.json`: `{"texts": [...]}` or a bare list of whole
texts, or `{"classes": [...], "template": "a photo of a {}"}`. A text that is not in the table is an error,
never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from beholder.core.errors import ModelError, UnknownName
from beholder.core.read import read_array, read_json
from beholder.models.checkpoint.folder import require_file
from beholder.models.contrastive.embedding import checked_unit_rows
from beholder.models.contrastive.onnx_config import TableConfig
from beholder.models.scorer import Floats

TEMPLATE = "a photo of a {}"
WHY = "which config.json names as its table of texts"


class TextTable:
    """Unit vectors looked up by their exact text."""

    def __init__(self, texts: Sequence[str], vectors: Floats, *, where: str) -> None:
        self._rows = {text: row for row, text in enumerate(texts)}
        self._vectors = checked_unit_rows(vectors, kind="text")
        self._where = where

    @property
    def texts(self) -> list[str]:
        """All texts that can be scored."""
        return list(self._rows)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._vectors.shape[1])

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row per text; raises `UnknownName` with the nearest text there is."""
        for text in texts:
            if text not in self._rows:
                raise UnknownName("text", text, self._rows, where=f"The closed vocabulary of {self._where}")
        return self._vectors[[self._rows[text] for text in texts]]


def read_text_table(folder: Path, config: TableConfig) -> TextTable:
    """The table of a model folder."""
    names_path = require_file(folder, config.names, why=WHY)
    texts = _texts(read_json(names_path, ModelError), config.template, names_path)
    vectors = _vectors(require_file(folder, config.file, why=WHY))
    if len(texts) != len(vectors):
        raise ModelError(f"{names_path} has {len(texts)} texts and {folder / config.file} {len(vectors)} rows.")
    return TextTable(texts, vectors, where=str(folder))


def _texts(value: object, template: str | None, path: Path) -> list[str]:
    """Whole texts, made from class names where the file holds those."""
    if isinstance(value, dict) and "classes" in value:
        pattern = template or value.get("template", TEMPLATE)
        return [pattern.replace("{}", name) for name in _strings(value["classes"], path)]
    texts = _strings(value.get("texts") if isinstance(value, dict) else value, path)
    return [template.replace("{}", text) for text in texts] if template else texts


def _strings(value: object, path: Path) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise ModelError(f"{path} must hold a list of texts, or an object with 'texts' or 'classes'.")
    if len(set(value)) < len(value):
        twice = next(text for text in value if value.count(text) > 1)
        raise ModelError(f"{path} holds '{twice}' more than once.")
    return value


def _vectors(path: Path) -> Floats:
    vectors = read_array(path, ModelError)
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise ModelError(f"{path} must hold one row of floats per text, not {vectors.dtype} {vectors.shape}.")
    return np.asarray(vectors, dtype=np.float32)
