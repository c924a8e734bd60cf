"""COCO's annotation files: captions and boxes, read record by record, whatever their size."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from beholder.core.errors import DataError, MissingData
from beholder.datasets.group_words import words_of
from beholder.datasets.json_stream import JsonTables, Record

LARGEST = 1 << 63
"""What is larger is no number of an image."""


@dataclass
class Instances:
    """A file of boxes, as columns: a few bytes a box, however large the file."""

    path: Path
    images: dict[int, tuple[str, int]] = field(default_factory=dict)
    """File name and number of pixels of every image."""
    categories: dict[int, str] = field(default_factory=dict)
    image: array[int] = field(default_factory=lambda: array("q"))
    category: array[int] = field(default_factory=lambda: array("q"))
    pixels: array[float] = field(default_factory=lambda: array("d"))
    """Of the box, not of the outline."""


def find(folder: Path, stem: str) -> Path:
    """An annotation file, at COCO's own path or in the folder; else the only file whose name begins with `stem`."""
    for path in (folder / "annotations" / f"{stem}.json", folder / f"{stem}.json"):
        if path.is_file():
            return path
    alike = sorted(folder.glob(f"{stem}*.json"))
    if len(alike) == 1:
        return alike[0]
    kind = stem.partition("_")[0]
    present = f"; the folder has: {', '.join(path.name for path in alike)}" if alike else ""
    raise MissingData(
        f"COCO's {kind} are not at {folder}: expected annotations/{stem}.json{present}.\n"
        f"Get the annotations from cocodataset.org, or name a file: --set {kind}=FILE"
    )


def read_captions(path: Path, cut: str) -> dict[int, set[str]]:
    """The words that all captions of each image say together."""
    words: dict[int, set[str]] = {}
    tables = JsonTables(path)
    for key, record in tables:
        if key == "images":
            words.setdefault(_number(tables, record, "id"), set())
        elif key == "annotations":
            caption = record.get("caption")
            if not isinstance(caption, str):
                raise tables.fault("has no 'caption'")
            words.setdefault(_number(tables, record, "image_id"), set()).update(words_of(caption, cut))
    if not words:
        raise DataError(f"{path} holds no captions: expected 'images' and 'annotations', as in COCO.")
    return words


def read_instances(path: Path) -> Instances:
    """Images, categories and boxes of a file; outlines and everything else are read over."""
    instances, tables = Instances(path), JsonTables(path)
    for key, record in tables:
        if key == "images":
            width, height = (_number(tables, record, side) for side in ("width", "height"))
            if not width or not height:
                raise tables.fault(f"has the size {width} × {height}")
            name = _text(tables, record, "file_name")
            instances.images[_new(tables, record, instances.images)] = (name, width * height)
        elif key == "categories":
            instances.categories[_new(tables, record, instances.categories)] = _text(tables, record, "name")
        elif key == "annotations":
            instances.image.append(_number(tables, record, "image_id"))
            instances.category.append(_number(tables, record, "category_id"))
            instances.pixels.append(_box_pixels(tables, record))
    missing = [key for key in ("images", "categories") if not getattr(instances, key)]
    if missing:
        raise DataError(f"{path} holds no '{missing[0]}': expected images, annotations and categories.")
    _refuse_strangers(instances)
    return instances


def _refuse_strangers(instances: Instances) -> None:
    """Boxes in images, or of categories, that the file does not list."""
    images, categories = (instances.image, instances.images), (instances.category, instances.categories)
    for kind, (used, known) in (("image", images), ("category", categories)):
        strangers = set(used) - set(known)
        if strangers:
            raise DataError(
                f"{instances.path}: {len(strangers)} {kind} numbers of its annotations are not listed in it, "
                f"such as {min(strangers)}."
            )


def _number(tables: JsonTables, record: Record, key: str) -> int:
    value = record.get(key)
    if type(value) is not int or not 0 <= value < LARGEST:
        raise tables.fault(f"has {key} {value!r}, not a whole number" if key in record else f"has no '{key}'")
    return value


def _new(tables: JsonTables, record: Record, known: Collection[int]) -> int:
    """The record's number, which no record before it had."""
    number = _number(tables, record, "id")
    if number in known:
        raise tables.fault(f"has the id {number}, which another had before it")
    return number


def _text(tables: JsonTables, record: Record, key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str) or not value.strip():
        raise tables.fault(f"has {key} {value!r}, not a name" if key in record else f"has no '{key}'")
    return value


def _box_pixels(tables: JsonTables, record: Record) -> float:
    box = record.get("bbox")
    sides = box[2:] if isinstance(box, list) and len(box) == 4 else []
    if not sides or not all(type(side) in (int, float) and 0 <= side < LARGEST for side in sides):
        raise tables.fault(f"has bbox {box!r}, not [x, y, width, height]")
    return float(sides[0]) * float(sides[1])
