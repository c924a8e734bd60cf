"""Which number stands for which concept in predictions made elsewhere, and which pictures they are about.

`labels.json` beside the predictions, in any of these forms:

    {"categories": [{"id": 1, "name": "person"}, …], "images": [{"id": 139}, …]}     as in COCO; images may be left out
    {"1": "person", "2": "bicycle"}
    ["other", "person", "bicycle"]                                                   counted from 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from beholder.core.errors import BadScores
from beholder.core.read import read_json

NAMES = ("labels.json", "categories.json")


class Labels(NamedTuple):
    """Category numbers with their names; the pictures that were looked at, where the file says so."""

    path: Path
    names: dict[int, str]
    images: frozenset[str] | None
    ignored: frozenset[int]
    colours: dict[int, int]
    """Red, green and blue as one number, with the category it stands for."""


class Grid(NamedTuple):
    """Where a prediction goes: rows by picture, columns by concept."""

    rows: dict[str, int]
    columns: dict[int, list[int]]
    """The columns of each category; none for one that no concept asks for."""


def find_labels(predictions: Path) -> Labels:
    """The labels of a results file (`NAME.labels.json` or `labels.json` beside it) or of a folder of class maps."""
    folder = predictions if predictions.is_dir() else predictions.parent
    own = [predictions.with_suffix(".labels.json")] if predictions.is_file() else []
    candidates = [*own, *(folder / name for name in NAMES)]
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        raise BadScores(
            f"{predictions} has no labels: {' or '.join(str(path) for path in candidates)} was looked for.\n"
            'It says what the category numbers mean: {"categories": [{"id": 1, "name": "person"}, …]}.'
        )
    try:
        return _labels(path, read_json(path, BadScores))
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise BadScores(f"{path} does not list categories with their 'id' and 'name'.") from error


def make_grid(labels: Labels, images: Sequence[str], concepts: Mapping[str, str]) -> Grid:
    """Rows for the pictures, columns for the concepts; raises if no concept is among the labels."""
    wanted: dict[str, list[int]] = {}
    for column, name in enumerate(concepts.values()):
        wanted.setdefault(same_name(name), []).append(column)
    columns = {number: wanted.get(same_name(name), []) for number, name in labels.names.items()}
    if not any(columns.values()):
        asked, known = list(concepts.values())[:5], list(labels.names.values())[:5]
        raise BadScores(
            f"{labels.path} names none of the concepts asked for.\nAsked for: {', '.join(asked)} …\n"
            f"It has: {', '.join(known)} …"
        )
    rows = {same_image(image): row for row, image in enumerate(images)}
    if len(rows) < len(images):
        raise BadScores("Two of the images asked for have one name but for zeros before it or its ending.")
    return Grid(rows, columns)


def same_name(name: str) -> str:
    """Concepts are matched whatever their case, blanks and underscores.

    >>> same_name("Dining_table ")
    'dining table'
    """
    return " ".join(name.lower().replace("_", " ").split())


def same_image(image: object) -> str:
    """Pictures are matched by name without ending, numbers without the zeros before them.

    >>> same_image("000000000139.jpg"), same_image(139), same_image("actors/000.jpg")
    ('139', '139', 'actors/000')
    """
    stem = str(image).strip()
    for ending in (".jpg", ".jpeg", ".png"):
        stem = stem.removesuffix(ending)
    return stem.lstrip("0") or "0" if stem.isdecimal() else stem


def _labels(path: Path, value: Any) -> Labels:
    entries = _entries(value["categories"] if isinstance(value, dict) and "categories" in value else value)
    names = {number: name for number, name, _ in entries}
    if len(names) < len(entries):
        raise BadScores(f"{path}: a category number occurs more than once.")
    extra = value if isinstance(value, dict) else {}
    images = frozenset(same_image(image["id"]) for image in extra["images"]) if "images" in extra else None
    colours = {_colour(colour): number for number, _, colour in entries if colour}
    ignored = extra.get("ignore", [])
    return Labels(path, names, images, frozenset([ignored] if isinstance(ignored, int) else ignored), colours)


def _entries(value: Any) -> list[tuple[int, str, Any]]:
    """Number, name and colour of every category."""
    if isinstance(value, dict):
        return [(int(key), str(name), None) for key, name in value.items() if key not in ("images", "ignore")]
    if all(isinstance(item, str) for item in value):
        return [(number, name, None) for number, name in enumerate(value)]
    return [(int(item["id"]), str(item["name"]), item.get("color")) for item in value]


def _colour(rgb: Sequence[int]) -> int:
    red, green, blue = rgb
    return red << 16 | green << 8 | blue
