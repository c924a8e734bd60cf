"""COCO 2017: everyday photographs with boxes of 80 categories and five captions each; groups from the captions' words.

Concepts are kept by their training frequency, as in the study, where the training annotations are there too.
"""

from array import array
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from beholder.core.digests import digest, file_digest
from beholder.core.errors import DataError, MissingData
from beholder.datasets.dataset import SCHEMA, Dataset, objects_in, published, with_steps
from beholder.datasets.json_stream import JsonTables, Record
from beholder.datasets.settings import CUTS, GENDER_WORDS, GroupWords, Settings, Steps, choices, require_words, words_of


@dataclass
class Instances:
    """A file of boxes, as columns: a few bytes a box, however large the file."""

    path: Path
    images: dict[int, tuple[str, int]] = field(default_factory=dict)  # file name and number of pixels of every image
    categories: dict[int, str] = field(default_factory=dict)
    image: "array[int]" = field(default_factory=lambda: array("q"))
    category: "array[int]" = field(default_factory=lambda: array("q"))
    pixels: "array[float]" = field(default_factory=lambda: array("d"))  # of the box, not of the outline


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
            words.setdefault(tables.number(record, "id"), set())
        elif key == "annotations":
            caption = record.get("caption")
            if not isinstance(caption, str):
                raise tables.fault("has no 'caption'")
            words.setdefault(tables.number(record, "image_id"), set()).update(words_of(caption, cut))
    if not words:
        raise DataError(f"{path} holds no captions: expected 'images' and 'annotations', as in COCO.")
    return words


def read_instances(path: Path) -> Instances:
    """Images, categories and boxes of a file; outlines and everything else are read over."""
    instances, tables = Instances(path), JsonTables(path)
    for key, record in tables:
        if key == "images":
            width, height = (tables.number(record, side) for side in ("width", "height"))
            if not width or not height:
                raise tables.fault(f"has the size {width} × {height}")
            name = _text(tables, record, "file_name")
            instances.images[_new(tables, record, instances.images)] = (name, width * height)
        elif key == "categories":
            instances.categories[_new(tables, record, instances.categories)] = _text(tables, record, "name")
        elif key == "annotations":
            instances.image.append(tables.number(record, "image_id"))
            instances.category.append(tables.number(record, "category_id"))
            instances.pixels.append(_box_pixels(tables, record))
    missing = [key for key in ("images", "categories") if not getattr(instances, key)]
    if missing:
        raise DataError(f"{path} holds no '{missing[0]}': expected images, annotations and categories.")
    for kind, known in (("image", instances.images), ("category", instances.categories)):
        if strangers := set(getattr(instances, kind)) - set(known):
            raise DataError(
                f"{path}: {len(strangers)} {kind} numbers of its annotations are not listed in it, "
                f"such as {min(strangers)}."
            )
    return instances


def _new(tables: JsonTables, record: Record, known: Collection[int]) -> int:
    """The record's number, which no record before it had."""
    number = tables.number(record, "id")
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
    if not sides or not all(type(side) in (int, float) and 0 <= side < 1 << 63 for side in sides):
        raise tables.fault(f"has bbox {box!r}, not [x, y, width, height]")
    return float(sides[0]) * float(sides[1])


# COCO 2017

SETTINGS = choices("coco")


def load(folder: Path, settings: Mapping[str, str] | None = None) -> Dataset:
    """The images whose captions name one group, with the boxes of the kept categories in them."""
    chosen = Settings("coco", SETTINGS, settings)
    split = chosen.text("split")
    captions = chosen.path("captions", folder) or find(folder, f"captions_{split}")
    boxes = chosen.path("instances", folder) or find(folder, f"instances_{split}")
    groups, steps = chosen.groups(folder, GENDER_WORDS), Steps()
    cut = chosen.one_of("words", CUTS)
    require_words([word for words in groups.words.values() for word in words], cut)
    require_words(chosen.words("without"), cut)
    words_by_image = read_captions(captions, cut)
    group_of = grouped(words_by_image, groups, chosen.words("without"), steps)
    instances = read_instances(boxes)
    kept = frequent_categories(instances, chosen, folder, steps, groups=groups)
    table, objects = _tables(group_of, instances, kept, steps)
    pictures = chosen.path("images", folder) or image_folder(folder, split)
    names = [instances.images[int(image)][0] for image in table["image_id"]]
    if odd := [name for name in names if name in ("", ".", "..") or "/" in name or "\\" in name]:
        raise DataError(f"{boxes} names the image file {odd[0]!r}, which lies outside the folder of images.")
    uris = pl.Series("uri", [str(pictures / name) for name in names])
    table = table.select("image_id", uris, pl.col("group").alias(groups.attribute))
    contents = [file_digest(boxes), file_digest(captions), chosen.contents(folder)]
    whole = Dataset("coco", f"{split}, {digest(contents)}", SOURCE.licence, table, objects=objects, group_words=groups)
    return with_steps(whole, steps, map(str, words_by_image))


def image_folder(folder: Path, split: str) -> Path:
    """Where the images of a split lie: `val2017` or `images/val2017`."""
    nested = folder / "images" / split
    return nested if nested.is_dir() and not (folder / split).is_dir() else folder / split


def count_images(folder: Path) -> int:
    """How many images of the validation split lie in the folder."""
    images = image_folder(folder, SETTINGS["split"].default)
    return sum(path.suffix == ".jpg" for path in images.iterdir()) if images.is_dir() else 0


def grouped(
    words_by_image: Mapping[int, set[str]], groups: GroupWords, without: tuple[str, ...], steps: Steps
) -> dict[int, str]:
    """The one group that each image's captions name; images without one, or with a word that excludes, are left out."""
    named = {image: groups.named(words) for image, words in words_by_image.items()}
    sizes = Counter(len(names) for names in named.values())
    steps.add("with captions", len(words_by_image))
    several = len(words_by_image) - sizes[0] - sizes[1]
    steps.append(f"captions name no group of {sizes[0]:,} images and several of {several:,}")
    single = {image: names[0] for image, names in named.items() if len(names) == 1}
    steps.add(f"captions name exactly one group of {groups.attribute}", len(single))
    if without:
        single = {image: group for image, group in single.items() if words_by_image[image].isdisjoint(without)}
        steps.add(f"captions do not say {' or '.join(without)}", len(single))
    return single


def frequent_categories(
    instances: Instances, chosen: Settings, folder: Path, steps: Steps, *, groups: GroupWords = GENDER_WORDS
) -> frozenset[int]:
    """The categories in enough training images; all of them, with a note, where no training file is here."""
    path = chosen.path("train", folder, "annotations/instances_train2017.json")
    if path is None:
        steps.append(
            f"concepts: all {len(instances.categories)} categories, for no training annotations are here; the study "
            f"keeps those in at least {chosen.text('concept_images')} training images (--set train=FILE)"
        )
        return frozenset(instances.categories)
    train = instances if path == instances.path else read_instances(path)
    counted, which = _counted(train, chosen, folder, groups)
    pairs = {pair for pair in zip(train.image, train.category, strict=True) if pair[0] in counted}
    frequency = Counter(train.categories[category] for _, category in pairs)
    fewest = chosen.number("concept_images")
    kept = frozenset(n for n, name in instances.categories.items() if frequency[name] >= fewest)
    steps.append(
        f"concepts: {len(kept)} of {len(instances.categories)} categories are in at least {fewest} of the "
        f"{len(counted):,} images of {path.name}{which}"
    )
    if fallen := sorted(name for n, name in instances.categories.items() if n not in kept):
        steps.append(f"concepts left out: {', '.join(f'{name} ({frequency[name]})' for name in fallen)}")
    return kept


def _counted(train: Instances, chosen: Settings, folder: Path, groups: GroupWords) -> tuple[Collection[int], str]:
    """All training images, or those whose captions name one group and no word that excludes; and which these are."""
    rule = chosen.one_of("concepts_in", ("auto", "one-group", "all"))
    captions = chosen.path("train_captions", folder, "annotations/captions_train2017.json")
    if rule == "all" or (rule == "auto" and captions is None):
        return train.images, ""
    if captions is None:
        raise MissingData(
            "--set concepts_in=one-group needs the captions of the training images, and they are not at "
            f"{folder / 'annotations' / 'captions_train2017.json'}.\nName a file: --set train_captions=FILE"
        )
    words = read_captions(captions, chosen.one_of("words", CUTS))
    single = grouped(words, groups, chosen.words("without"), Steps())
    return single.keys() & train.images.keys(), f" whose captions name exactly one group of {groups.attribute}"


def _tables(
    group_of: Mapping[int, str], instances: Instances, kept: frozenset[int], steps: Steps
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Images with their group, and what is in them."""
    annotated = {str(image): group for image, group in sorted(group_of.items()) if image in instances.images}
    steps.add(f"boxes in {instances.path.name}", len(annotated))
    columns = {"image_id": list(annotated), "group": list(annotated.values())}
    table = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))  # there may be no row to tell the types
    objects = objects_in(_objects(instances, kept), table["image_id"])
    table = table.join(objects.select("image_id"), on="image_id", how="semi", maintain_order="left")
    steps.add("at least one of the concepts is in the image", table.height)
    if not table.height:
        raise DataError(f"No image is left of {instances.path} after these steps:\n" + "\n".join(steps))
    return table, objects


def _objects(instances: Instances, kept: frozenset[int]) -> pl.DataFrame:
    """One row per image and kept category; a box around a crowd counts as one instance."""
    sizes = np.array([instances.images[image][1] for image in instances.image], dtype=np.float64)
    numbers = {name: np.frombuffer(getattr(instances, name), dtype=np.int64) for name in ("image", "category")}
    boxes = pl.DataFrame({**numbers, "area": np.minimum(np.frombuffer(instances.pixels) / sizes, 1.0)})
    by_image = boxes.filter(pl.col("category").is_in(sorted(kept))).group_by("image", "category")
    counted = by_image.agg(pl.len().alias("instances"), pl.col("area").max()).sort("image", "category")
    concept = pl.col("category").replace_strict(instances.categories, return_dtype=pl.String)
    counted = counted.with_columns(image_id=pl.col("image").cast(pl.String), concept=concept)
    columns = counted.with_columns(names=pl.concat_list("concept"))
    return columns.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


SOURCE = published("coco", load, count=count_images)
