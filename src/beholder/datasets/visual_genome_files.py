"""Visual Genome's files: objects in a stream, of which only images that count are kept; sizes; names of one meaning."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from beholder.core.read import read_text
from beholder.datasets.group_words import GroupWords
from beholder.datasets.json_stream import JsonRecords, Record

FOLDERS = ("VG_100K", "VG_100K_2", "images")
PART = 2000
"""Images whose objects are held as Python values; more are packed into a table."""
Sizes = Mapping[str, int]
"""Image id and number of pixels."""
Aliases = Mapping[str, str]
"""A name and the one that stands for it."""


CODED: dict[str, pl.DataType] = {
    "image": pl.UInt32(),
    "concept": pl.UInt32(),
    "instances": pl.Int32(),
    "area": pl.Float32(),
    "names": pl.List(pl.UInt32()),
}
"""Objects with numbers instead of words: a quarter of the memory."""


class _Codes(dict[str, int]):
    """Words numbered in the order they come."""

    def __missing__(self, word: str) -> int:
        self[word] = len(self)
        return self[word]


@dataclass
class Collected:
    """What is kept of the stream."""

    every_image: list[str] = field(default_factory=list)
    single_group: int = 0
    """Images whose objects name one group, before those that are left out."""
    image_ids: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    unnamed: int = 0
    """Objects without a synset in the kept images."""
    images_with: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many kept images of a group show a concept."""
    _concepts: _Codes = field(default_factory=_Codes)
    _names: _Codes = field(default_factory=_Codes)
    _parts: list[pl.DataFrame] = field(default_factory=list)
    _rows: list[tuple[int, int, int, float | None, list[int]]] = field(default_factory=list)

    def add(self, image_id: str, group: str, concepts: Mapping[str, _Concept]) -> None:
        """An image with its concepts."""
        image = len(self.image_ids)
        self.image_ids.append(image_id)
        self.groups.append(group)
        for name, concept in concepts.items():
            self.images_with[group, name] += 1
            names = [self._names[word] for word in concept.names]
            self._rows.append((image, self._concepts[name], concept.instances, concept.area, names))
        if len(self.image_ids) % PART == 0:
            self._pack()

    @property
    def concepts(self) -> list[str]:
        """Every concept that was met."""
        return list(self._concepts)

    def objects(self, kept: Iterable[str]) -> pl.DataFrame:
        """One row per image and kept concept."""
        self._pack()
        wanted = pl.Series([self._concepts[name] for name in kept], dtype=pl.UInt32).to_frame("concept")
        parts = [part.join(wanted, on="concept", how="semi", maintain_order="left") for part in self._parts]
        coded = pl.concat(parts)
        words = pl.element().replace_strict(list(self._names.values()), list(self._names), return_dtype=pl.String)
        return coded.select(
            pl.Series("image_id", self.image_ids, pl.String).gather(coded["image"]),
            pl.Series("concept", self.concepts, pl.String).gather(coded["concept"]),
            "instances",
            "area",
            pl.col("names").list.eval(words),
        )

    def _pack(self) -> None:
        self._parts.append(pl.DataFrame(self._rows, schema=CODED, orient="row"))
        self._rows = []


@dataclass
class _Concept:
    """One concept in one image."""

    instances: int = 0
    area: float | None = None
    names: dict[str, None] = field(default_factory=dict)


def read_objects(path: Path, groups: GroupWords, without: frozenset[str], sizes: Sizes, aliases: Aliases) -> Collected:
    """The images whose synsets and names point to one group and to nothing that excludes, with their concepts."""
    collected, records = Collected(), JsonRecords(path)
    for record in records:
        image_id = _image_id(records, record)
        collected.every_image.append(image_id)
        things = _things(records, record, aliases)
        words = {word for synsets, names, _ in things for word in (*synsets, *names)}
        groups_named = groups.named(words)
        if len(groups_named) != 1:
            continue
        collected.single_group += 1
        if words.isdisjoint(without):
            collected.unnamed += sum(not synsets for synsets, _, _ in things)
            collected.add(image_id, groups_named[0], _concepts(things, sizes.get(image_id)))
    return collected


Thing = tuple[list[str], list[str], float]
"""An object's synsets, its names, and the pixels of its box."""


def _things(records: JsonRecords, record: Record, aliases: Aliases) -> list[Thing]:
    objects = record.get("objects")
    if not isinstance(objects, list):
        raise records.fault("has no list of 'objects'")
    try:
        return [
            (
                [_listed_text(synset) for synset in _list(thing["synsets"])],
                [aliases.get(name, name) for name in map(_plain, _list(thing.get("names", [])))],
                _side(thing["w"]) * _side(thing["h"]),
            )
            for thing in objects
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise records.fault(f"has an object without synsets, names, w or h as they should be ({error})") from None


def _concepts(things: list[Thing], size: int | None) -> dict[str, _Concept]:
    """The synsets of an image; an object with several counts for each."""
    concepts: dict[str, _Concept] = {}
    for synsets, names, pixels in things:
        for synset in dict.fromkeys(synsets):
            concept = concepts.setdefault(synset, _Concept())
            concept.instances += 1
            concept.names.update(dict.fromkeys(names))
            if size:
                concept.area = max(concept.area or 0.0, min(pixels / size, 1.0))
    return concepts


def _image_id(records: JsonRecords, record: Record) -> str:
    value = record.get("image_id")
    if type(value) is not int:
        raise records.fault(f"has image_id {value!r}, not a whole number")
    return str(value)


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value


def _listed_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no word")
    return value


def _side(value: Any) -> float:
    if isinstance(value, bool) or not 0 <= float(value) < float("inf"):
        raise ValueError(f"{value!r} is no side of a box")
    return float(value)


def _plain(name: str) -> str:
    return " ".join(name.lower().split())


def read_sizes(path: Path | None) -> Sizes:
    """The pixels of every image; empty if there is no file."""
    if path is None:
        return {}
    sizes, records = {}, JsonRecords(path)
    for record in records:
        width, height = record.get("width"), record.get("height")
        if type(width) is not int or type(height) is not int:
            raise records.fault("has no 'width' and 'height'")
        sizes[_image_id(records, record)] = width * height
    return sizes


def read_aliases(path: Path | None) -> Aliases:
    """Each line's names, all standing for its first; empty if there is no file."""
    if path is None:
        return {}
    lines = [[_plain(name) for name in line.split(",")] for line in read_text(path).splitlines() if line.strip()]
    first = {names[0] for names in lines}
    # A line's first name stands for itself, whatever other line also lists it.
    return {name: names[0] for names in lines for name in names[1:] if name and name not in first}


def image_files(folder: Path) -> dict[str, str]:
    """Image id → file, over the folders that the images come in."""
    return {
        Path(entry.name).stem: entry.path
        for name in FOLDERS
        if (folder / name).is_dir()
        for entry in os.scandir(folder / name)
        if entry.name.endswith(".jpg")
    }
