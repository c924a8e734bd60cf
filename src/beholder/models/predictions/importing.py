"""Predictions made elsewhere, by Detic, LSeg or any other detector or segmenter, as scores of concepts in pictures.

    RESULTS.json     COCO results, read as a stream: [{image_id, category_id, bbox, score}, …]; a concept's score is
                     its best box. Entries without a score but with a mask (run lengths): the share of pixels covered
    DIR              class maps, `<image_id>.png`, a category number in every pixel: the share of pixels; or
                     probability maps, `<image_id>.npz`, a plane per category: the likeliest pixel's probability

Labels lie beside them (`labels.py`). A category that was searched for and not detected scores 0; one that was never
searched for has no score.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from beholder.core.errors import BadScores, UsageError
from beholder.datasets.json_stream import JsonRecords, Record
from beholder.models.predictions.maps import (
    NAMES,
    Grid,
    Labels,
    find_labels,
    kind_of,
    make_grid,
    mask_share,
    read_maps,
    read_probabilities,
    same_image,
)
from beholder.models.spec import LoadOptions

Cells = npt.NDArray[np.float64]
MINIMUM = 0.1
"""Boxes that score less are dropped, as in the study."""
OVERLAP = 1 + 1e-9


class Predictions(NamedTuple):
    """The cells of one file or folder, rows by picture and columns by concept, with notes for the reader."""

    source: str
    image_ids: list[str]
    prompt_ids: list[str]
    cells: Cells
    notes: list[str]
    channel: str = "presence"
    """`presence`: the score of the best box or the likeliest pixel; `area`: the share of pixels."""


def is_predictions(path: Path) -> bool:
    """Whether a path can only be predictions: a folder, or JSON."""
    return path.is_dir() or path.suffix.lower() == ".json"


def import_predictions(
    path: Path,
    images: Sequence[str],
    concepts: Sequence[str] | Mapping[str, str],
    *,
    minimum: float = MINIMUM,
    known: Collection[str] | None = None,
) -> Predictions:
    """The score of every concept in every picture; `concepts` are names, or prompt ids with their names.

    `known` are all pictures of the source, including those not requested; a record about any other picture is refused.
    """
    named = concepts if isinstance(concepts, Mapping) else {name: name for name in concepts}
    source = _source(path)
    labels = find_labels(source)
    grid = make_grid(labels, images, named)
    cells = np.full((len(images), len(named)), np.nan)
    if source.is_dir() and kind_of(source) == "probabilities":
        notes, channel = read_probabilities(source, labels, grid, cells), "presence"
    elif source.is_dir():
        notes, channel = read_maps(source, labels, grid, cells), "area"
    else:
        results = _Results(source, labels, grid, minimum, known)
        notes = results.read_into(cells)
        channel = "presence" if results.scored else "area"
    unasked = sum(not columns for columns in grid.columns.values())
    if unasked:
        notes.append(f"{unasked} of {len(labels.names)} categories are not among the requested concepts")
    return Predictions(str(path), list(images), list(named), cells, notes, channel)


def _source(path: Path) -> Path:
    """The results file, or the folder of class maps; a folder may also hold one results file."""
    if not path.exists():
        raise BadScores(f"There are no predictions at {path}.")
    if path.is_file() or kind_of(path):
        return path
    results = [file for file in path.glob("*.json") if file.name not in NAMES and ".labels" not in file.suffixes]
    if len(results) != 1:
        raise BadScores(
            f"{path} holds neither maps (<image_id>.png or .npz) nor one results file (.json), but "
            f"{len(results)} of the latter.\nName one of them."
        )
    return results[0]


def refuse_to_open(path: str, options: LoadOptions) -> NoReturn:
    """`predictions:PATH` names no model: a scorer is shown pictures without their names, and results are by name."""
    raise UsageError(
        f"predictions:{path} are scores already: there is no model to run.\n"
        f"Measure them: beholder measure STUDY --scores {path}"
    )


class _Results:
    """A COCO results file on its way into cells."""

    def __init__(self, path: Path, labels: Labels, grid: Grid, minimum: float, known: Collection[str] | None) -> None:
        self._records, self._labels, self._grid, self._minimum = (JsonRecords(path, BadScores), labels, grid, minimum)
        self._known = None if known is None else {same_image(image) for image in known}
        self._strangers, self._stranger = 0, ""
        self.scored: bool | None = None

    def read_into(self, cells: Cells) -> list[str]:
        """Fill the cells; return notes for the reader."""
        looked_at = self._labels.images
        ran = [row for image, row in self._grid.rows.items() if looked_at is None or image in looked_at]
        requested = sorted({column for columns in self._grid.columns.values() for column in columns})
        cells[np.ix_(ran, requested)] = 0
        seen = np.zeros(len(cells), bool)
        for record in self._records:
            row, value, columns = self._row(record), self._value(record), self._columns(record)
            if row is not None:
                seen[row] = True
                self._put(cells, row, columns, value)
        return self._notes(seen, len(ran))

    def _row(self, record: Record) -> int | None:
        """The row of the record's picture; None for a picture that was not requested."""
        if "image_id" not in record:
            raise self._records.fault("has no 'image_id'")
        image = same_image(record["image_id"])
        if self._labels.images is not None and image not in self._labels.images:
            raise self._records.fault(f"is about image {image}, which {self._labels.path} does not list")
        row = self._grid.rows.get(image)
        if row is None and self._known is not None and image not in self._known:
            raise self._records.fault(f"is about image {image}, which the data set does not have")
        if row is None:
            self._strangers, self._stranger = self._strangers + 1, self._stranger or image
        return row

    def _columns(self, record: Record) -> list[int]:
        category = record.get("category_id")
        if type(category) is not int or category not in self._grid.columns:
            known = ", ".join(map(str, list(self._labels.names)[:8]))
            raise self._records.fault(
                f"has category_id {category!r}, which {self._labels.path} does not name (it has {known} …)"
            )
        return self._grid.columns[category]

    def _value(self, record: Record) -> float:
        """The box's score, or the mask's share of the picture where there is no score."""
        scored = "score" in record
        if self.scored not in (None, scored):
            raise self._records.fault("has a score where others have none, or none where others have one")
        self.scored = scored
        try:
            _require_box(record.get("bbox"))
            return _score(record["score"]) if scored else mask_share(record.get("segmentation"))
        except ValueError as error:
            raise self._records.fault(str(error)) from None

    def _put(self, cells: Cells, row: int, columns: list[int], value: float) -> None:
        for column in columns:
            if not self.scored:
                cells[row, column] += value
                if cells[row, column] > OVERLAP:
                    raise self._records.fault("overlaps another mask of its category; give such masks a 'score'")
            elif value >= self._minimum:
                cells[row, column] = max(cells[row, column], value)

    def _notes(self, seen: npt.NDArray[np.bool_], ran: int) -> list[str]:
        if not seen.any():
            examples = ", ".join(list(self._grid.rows)[:3])
            content = f"it is about others, such as {self._stranger}" if self._stranger else "it holds no record"
            raise BadScores(
                f"{self._records.path} is about none of the requested images (such as {examples}): {content}."
            )
        notes = []
        if self._strangers:
            notes.append(f"{self._strangers} records are about other images, such as {self._stranger}")
        if ran < len(seen):
            notes.append(f"{len(seen) - ran} of {len(seen)} images were not processed (see {self._labels.path})")
        elif not seen.all() and self._labels.images is None:
            notes.append(
                f"{int((~seen).sum())} of {len(seen)} images have no record and count as processed and empty. "
                f"If they were not processed, list those that were as 'images' in {self._labels.path}"
            )
        return notes


def _score(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"has score {value!r}, not a number from 0 to 1")
    return float(value)


def _require_box(box: object) -> None:
    """Raise for a box that is none; it may be left out, for the score alone is used."""
    if box is None:
        return
    four = isinstance(box, list) and len(box) == 4 and all(isinstance(side, int | float) for side in box)
    if not isinstance(box, list) or not four or not (box[2] >= 0 and box[3] >= 0):
        raise ValueError(f"has bbox {box!r}, not [x, y, width, height]")
