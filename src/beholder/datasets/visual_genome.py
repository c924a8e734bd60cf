"""Visual Genome: 108,077 photographs whose objects carry WordNet synsets; groups from the synsets of people in them.

`image_data.json` gives areas, `object_alias.txt` names that mean the same. `objects.json` is never held whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from beholder.core.digests import digest, file_digest
from beholder.core.errors import DataError, MissingData
from beholder.core.read import read_text
from beholder.datasets.dataset import SCHEMA, Dataset, published, with_steps
from beholder.datasets.json_stream import JsonRecords, Record
from beholder.datasets.settings import GroupWords, Settings, Steps, choices, read_group_words

FOLDERS = ("VG_100K", "VG_100K_2", "images")
PART = 2000  # images whose objects are held as Python values; more are packed into a table
Sizes = Mapping[str, int]  # image id and number of pixels
Aliases = Mapping[str, str]  # a name and the one that stands for it


@dataclass
class Collected:
    """What is kept of the stream."""

    every_image: list[str] = field(default_factory=list)
    single_group: int = 0  # images whose objects name one group, before those that are left out
    images: list[tuple[str, str]] = field(default_factory=list)  # those that are kept, with their group
    unnamed: int = 0  # objects without a synset in the kept images
    parts: list[pl.DataFrame] = field(default_factory=list)  # one row per image and concept


def read_objects(path: Path, groups: GroupWords, without: frozenset[str], sizes: Sizes, aliases: Aliases) -> Collected:
    """The images whose synsets and names point to one group and to nothing that excludes, with their concepts."""
    collected, records, rows = Collected(), JsonRecords(path), list[Row]()
    for record in records:
        image_id = str(records.number(record, "image_id"))
        collected.every_image.append(image_id)
        things = _things(records, record, aliases)
        words = {word for synsets, names, _ in things for word in (*synsets, *names)}
        groups_named = groups.named(words)
        if len(groups_named) != 1:
            continue
        collected.single_group += 1
        if words.isdisjoint(without):
            collected.unnamed += sum(not synsets for synsets, _, _ in things)
            collected.images.append((image_id, groups_named[0]))
            size = sizes.get(image_id)
            rows += [
                (image_id, synset, 1, min(pixels / size, 1.0) if size else None, names)
                for synsets, names, pixels in things
                for synset in dict.fromkeys(synsets)  # an object with several counts for each
            ]
            if len(collected.images) % PART == 0:
                collected.parts.append(_by_concept(rows))
                rows = []
    collected.parts.append(_by_concept(rows))
    return collected


Thing = tuple[list[str], list[str], float]  # an object's synsets, its names, and the pixels of its box
Row = tuple[str, str, int, float | None, list[str]]  # as `SCHEMA` has it


def _things(records: JsonRecords, record: Record, aliases: Aliases) -> list[Thing]:
    objects = record.get("objects")
    if not isinstance(objects, list):
        raise records.fault("has no list of 'objects'")
    try:
        return [
            (
                _words(thing["synsets"]),
                [aliases.get(name, name) for name in map(_plain, _words(thing.get("names", [])))],
                _side(thing["w"]) * _side(thing["h"]),
            )
            for thing in objects
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise records.fault(f"has an object without synsets, names, w or h as they should be ({error})") from None


def _by_concept(rows: list[Row]) -> pl.DataFrame:
    met = pl.DataFrame(rows, schema=SCHEMA, orient="row").group_by("image_id", "concept", maintain_order=True)
    names = pl.col("names").explode().drop_nulls().unique(maintain_order=True)
    return met.agg(pl.col("instances").sum(), pl.col("area").max(), names)


def _words(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise TypeError(f"{value!r} is no list of words")
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
        width, height = (records.number(record, side) for side in ("width", "height"))
        sizes[str(records.number(record, "image_id"))] = width * height
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
    return {path.stem: str(path) for name in FOLDERS for path in (folder / name).glob("*.jpg")}


# Visual Genome

GENDER_TERMS = replace(read_group_words(Path(__file__).with_name("synsets.csv")), attribute="gender")  # the study's


def load(folder: Path, settings: Mapping[str, str] | None = None) -> Dataset:
    """The images with people of one group only, with the concepts that enough images of every group show."""
    chosen = Settings("visual-genome", choices("visual-genome"), settings)
    path = chosen.path("objects", folder) or folder / "objects.json"
    if not path.is_file():
        raise MissingData(
            f"Visual Genome's objects are not at {path}.\nGet objects.json (version 1.4, with synsets) from the Visual "
            "Genome project and put it there, or name a file: --set objects=FILE"
        )
    groups, steps = chosen.groups(folder, GENDER_TERMS), Steps()
    image_data = chosen.path("image_data", folder, "image_data.json")
    names = chosen.path("aliases", folder, "object_alias.txt")
    steps += [] if image_data else ["image_data.json is not here: areas of objects are unknown"]
    steps += [] if names else ["object_alias.txt is not here: names stay as annotators wrote them"]
    without = chosen.words("without")
    collected = read_objects(path, groups, frozenset(without), read_sizes(image_data), read_aliases(names))
    steps.add("with annotated objects", len(collected.every_image))
    steps.add(f"objects name exactly one group of {groups.attribute}", collected.single_group)
    if without:
        steps.add(f"no object is {' or '.join(without)}", len(collected.images))
    steps.append(f"{collected.unnamed:,} objects of these images have no synset and are left out")
    table, objects = frequent_concepts(collected, groups, chosen.number("group_images"), steps)
    files = image_files(folder)
    uris = [files.get(image, str(folder / "VG_100K" / f"{image}.jpg")) for image in table["image_id"]]
    table = table.select("image_id", pl.Series("uri", uris), pl.col("group").alias(groups.attribute))
    revision = digest([file_digest(path), chosen.contents(folder)])
    whole = Dataset("visual-genome", revision, SOURCE.licence, table, objects=objects, group_words=groups)
    return with_steps(whole, steps, collected.every_image)


def frequent_concepts(
    collected: Collected, groups: GroupWords, fewest: int, steps: Steps
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The concepts in enough images of every group, and the images that have one."""
    table = pl.DataFrame(collected.images, schema={"image_id": pl.String, "group": pl.String}, orient="row")
    objects = pl.concat(collected.parts)
    grouped = objects.select("image_id", "concept").join(table, on="image_id").group_by("concept", "group").len()
    images_with = {(concept, group): count for concept, group, count in grouped.iter_rows()}
    concepts = objects["concept"].unique()
    kept = [each for each in concepts if all(images_with.get((each, g), 0) >= fewest for g in groups.words)]
    steps.append(f"concepts: {len(kept):,} of {len(concepts):,} synsets are in at least {fewest} images of every group")
    if not kept:
        advice = f"A smaller share of the data may need --set group_images=N below {fewest}."
        raise DataError("\n".join(["No concept of Visual Genome is left after these steps:", *steps, advice]))
    objects = objects.filter(pl.col("concept").is_in(kept))
    table = table.join(objects.select("image_id"), on="image_id", how="semi", maintain_order="left")
    steps.add("at least one of the concepts is in the image", table.height)
    return table, objects


SOURCE = published("visual-genome", load, count=lambda folder: len(image_files(folder)))
