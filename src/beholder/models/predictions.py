"""Predictions made elsewhere, by Detic, LSeg or any other detector or segmenter, as scores of concepts in pictures.

docs/detectors.md has the formats and what a concept's score is in each. A category that was searched for and not
detected scores 0; one that was never searched for has no score. A map that cannot be read costs its picture only.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.core.errors import BadScores, UsageError
from beholder.core.read import read_array, read_json
from beholder.datasets.json_stream import JsonRecords, Record
from beholder.models.spec import LoadOptions

Cells = npt.NDArray[np.float64]
MINIMUM = 0.1  # boxes that score less are dropped, as in the study
OVERLAP = 1 + 1e-9
LABELS = ("labels.json", "categories.json")
NUMBERED = ("P", "L", "1", "I", "I;16", "I;16B")  # modes of pictures whose pixels are numbers
CLASSES, PROBABILITIES = (".png",), (".npz", ".npy")


class ScoreFile(NamedTuple):
    """The cells of one file or folder: rows by image id, columns by prompt id, which may stand over several columns."""

    source: str
    image_ids: list[str]
    prompt_ids: list[str]
    cells: Cells
    notes: Sequence[str] = ()  # what a reader of the results should know about the file
    channel: str = "score"
    """`presence`: the score of the best box or the likeliest pixel; `area`: the share of pixels; else what a study asks
    for."""
    task: str | None = None  # an array file is about one task; others are about whichever their ids fit
    more: Mapping[str, Cells] = MappingProxyType({})  # further channels of the same cells


class Labels(NamedTuple):
    """Category numbers with their names; the pictures that were looked at, where the file says so."""

    path: Path
    names: dict[int, str]
    images: frozenset[str] | None
    ignored: frozenset[int]
    colours: dict[int, int]  # red, green and blue as one number, with the category it stands for


class Grid(NamedTuple):
    """Where a prediction goes: rows by picture, columns by concept."""

    rows: dict[str, int]
    columns: dict[int, list[int]]  # of each category; none for one that no concept asks for


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
) -> ScoreFile:
    """The score of every concept in every picture; `concepts` are names, or prompt ids with their names.

    `known` are all pictures of the source, including those not requested; a record about any other picture is refused.
    """
    named = concepts if isinstance(concepts, Mapping) else {name: name for name in concepts}
    source = _source(path)
    labels = find_labels(source)
    grid = make_grid(labels, images, named)
    cells = np.full((len(images), len(named)), np.nan)
    if source.is_dir():
        endings = endings_of(source)
        notes, channel = read_maps(source, endings, labels, grid, cells), "area" if endings == CLASSES else "presence"
    else:
        notes, channel = _read_results(source, labels, grid, cells, minimum=minimum, known=known)
    unasked = sum(not columns for columns in grid.columns.values())
    if unasked:
        notes.append(f"{unasked} of {len(labels.names)} categories are not among the requested concepts")
    return ScoreFile(str(path), list(images), list(named), cells, notes, channel)


def _source(path: Path) -> Path:
    """The results file, or the folder of class maps; a folder may also hold one results file."""
    if not path.exists():
        raise BadScores(f"There are no predictions at {path}.")
    if path.is_file() or endings_of(path):
        return path
    results = [file for file in path.glob("*.json") if file.name not in LABELS and ".labels" not in file.suffixes]
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


def _read_results(
    path: Path, labels: Labels, grid: Grid, cells: Cells, *, minimum: float, known: Collection[str] | None
) -> tuple[list[str], str]:
    """Fill the cells; notes for the reader, and the channel."""
    records, all_images = JsonRecords(path, BadScores), None if known is None else set(map(same_image, known))
    ran = [row for image, row in grid.rows.items() if labels.images is None or image in labels.images]
    cells[np.ix_(ran, sorted({column for columns in grid.columns.values() for column in columns}))] = 0
    seen, strangers, stranger = np.zeros(len(cells), bool), 0, ""
    scored: bool | None = None
    for record in records:
        try:
            if scored not in (None, "score" in record):
                raise ValueError("has a score where others have none, or none where others have one")
            image, columns, value = _parsed(record, labels, grid)
            scored, row = "score" in record, grid.rows.get(image)
            if row is not None:
                seen[row] = True
                _put(cells[row], columns, value, minimum if scored else None)
            elif all_images is not None and image not in all_images:
                raise ValueError(f"is about image {image}, which the data set does not have")
            else:
                strangers, stranger = strangers + 1, stranger or image
        except ValueError as error:
            raise records.fault(str(error)) from None
    if not seen.any():
        examples = ", ".join(list(grid.rows)[:3])
        content = f"it is about others, such as {stranger}" if stranger else "it holds no record"
        raise BadScores(f"{path} is about none of the requested images (such as {examples}): {content}.")
    notes = [f"{strangers} records are about other images, such as {stranger}"] if strangers else []
    if len(ran) < len(seen):
        notes.append(f"{len(seen) - len(ran)} of {len(seen)} images were not processed (see {labels.path})")
    elif not seen.all() and labels.images is None:
        notes.append(
            f"{int((~seen).sum())} of {len(seen)} images have no record and count as processed and empty. "
            f"If they were not processed, list those that were as 'images' in {labels.path}"
        )
    return notes, "presence" if scored else "area"


def _parsed(record: Record, labels: Labels, grid: Grid) -> tuple[str, list[int], float]:
    """The record's picture, its columns, and the box's score, or the mask's share of the picture without a score."""
    if "image_id" not in record:
        raise ValueError("has no 'image_id'")
    image, category, box = same_image(record["image_id"]), record.get("category_id"), record.get("bbox")
    if labels.images is not None and image not in labels.images:
        raise ValueError(f"is about image {image}, which {labels.path} does not list")
    # A box may be left out, for the score alone is used.
    four = isinstance(box, list) and len(box) == 4 and all(isinstance(side, int | float) for side in box)
    if box is not None and not (four and box[2] >= 0 and box[3] >= 0):
        raise ValueError(f"has bbox {box!r}, not [x, y, width, height]")
    value = record["score"] if "score" in record else mask_share(record.get("segmentation"))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"has score {value!r}, not a number from 0 to 1")
    if type(category) is not int or category not in grid.columns:
        known = ", ".join(map(str, list(labels.names)[:8]))
        raise ValueError(f"has category_id {category!r}, which {labels.path} does not name (it has {known} …)")
    return image, grid.columns[category], float(value)


def _put(row: Cells, columns: list[int], value: float, minimum: float | None) -> None:
    """The best box of those above the minimum; masks, which have none, add up."""
    for column in columns:
        if minimum is None:
            row[column] += value
            if row[column] > OVERLAP:
                raise ValueError("overlaps another mask of its category; give such masks a 'score'")
        elif value >= minimum:
            row[column] = max(row[column], value)


def find_labels(predictions: Path) -> Labels:
    """The labels of a results file (`NAME.labels.json` or `labels.json` beside it) or of a folder of class maps."""
    folder = predictions if predictions.is_dir() else predictions.parent
    own = [predictions.with_suffix(".labels.json")] if predictions.is_file() else []
    candidates = [*own, *(folder / name for name in LABELS)]
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
    """Concepts are matched whatever their case, blanks and underscores."""
    return " ".join(name.lower().replace("_", " ").split())


def same_image(image: object) -> str:
    """Pictures are matched by name without ending, numbers without the zeros before them."""
    stem = str(image).strip()
    for ending in (".jpg", ".jpeg", ".png"):
        stem = stem.removesuffix(ending)
    return stem.lstrip("0") or "0" if stem.isdecimal() else stem


def _labels(path: Path, value: Any) -> Labels:
    whole = value if isinstance(value, dict) else {}
    listed = whole.get("categories", value)
    entries: list[tuple[int, str, Sequence[int] | None]]
    if isinstance(listed, dict):
        entries = [(int(key), str(name), None) for key, name in listed.items() if key not in ("images", "ignore")]
    elif all(isinstance(item, str) for item in listed):
        entries = [(number, name, None) for number, name in enumerate(listed)]
    else:
        entries = [(int(item["id"]), str(item["name"]), item.get("color")) for item in listed]
    names = {number: name for number, name, _ in entries}
    if len(names) < len(entries):
        raise BadScores(f"{path}: a category number occurs more than once.")
    images = frozenset(same_image(image["id"]) for image in whole["images"]) if "images" in whole else None
    colours = {red << 16 | green << 8 | blue: number for number, _, rgb in entries if rgb for red, green, blue in [rgb]}
    ignored = whole.get("ignore", [])
    return Labels(path, names, images, frozenset([ignored] if isinstance(ignored, int) else ignored), colours)


def mask_share(segmentation: object) -> float:
    """The share of a picture's pixels that its mask covers; raises ValueError for what is no mask."""
    if not isinstance(segmentation, dict) or not {"size", "counts"} <= set(segmentation):
        raise ValueError("has a 'segmentation' that is not run lengths: {'size': [height, width], 'counts': …}")
    size, counts = segmentation["size"], run_lengths(segmentation["counts"])
    if not isinstance(size, list) or len(size) != 2 or not all(type(side) is int and side > 0 for side in size):
        raise ValueError(f"has a mask of size {size!r}, not [height, width]")
    if sum(counts) != size[0] * size[1]:
        raise ValueError(f"has a mask of {sum(counts)} pixels for a picture of {size[0]} × {size[1]}")
    return sum(counts[1::2]) / sum(counts)


def run_lengths(counts: object) -> list[int]:
    """The counts as numbers, whether they come as numbers or as text."""
    numbers = _decompressed(counts) if isinstance(counts, str) else counts
    if not isinstance(numbers, list) or not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("has run lengths that are no whole numbers from 0")
    return numbers


def _decompressed(text: str) -> list[int]:
    """Numbers of five bits a character, lowest first; the third and later ones as the change since two before."""
    counts: list[int] = []
    value = shift = 0
    for character in text:
        bits = ord(character) - 48
        if not 0 <= bits < 64:
            raise ValueError(f"has compressed run lengths with {character!r} in them")
        value |= (bits & 0x1F) << shift
        shift += 5
        if bits & 0x20:
            continue
        signed = value - (1 << shift) if bits & 0x10 else value
        counts.append(signed + counts[-2] if len(counts) > 2 else signed)
        value = shift = 0
    if shift:
        raise ValueError("has compressed run lengths that break off")
    return counts


# Maps of a segmenter, one file per picture


def endings_of(folder: Path) -> tuple[str, ...]:
    """`CLASSES` or `PROBABILITIES`, whichever maps the folder holds; empty if it holds none."""
    endings = {path.suffix for path in folder.rglob("*")}
    held = [kind for kind in (CLASSES, PROBABILITIES) if endings & set(kind)]
    if len(held) > 1:
        raise BadScores(f"{folder} holds class maps and probability maps. Keep one kind in it.")
    return held[0] if held else ()


def read_maps(folder: Path, endings: tuple[str, ...], labels: Labels, grid: Grid, cells: Cells) -> list[str]:
    """Fill the rows of the pictures that have a map; give what should be known of them."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in endings)
    maps = {same_image(path.relative_to(folder).with_suffix("").as_posix()): path for path in files}
    maps_of_rows = [(grid.rows[image], path) for image, path in maps.items() if image in grid.rows]
    if not maps_of_rows:
        wanted, there = list(grid.rows)[:3], [path.name for path in list(maps.values())[:3]]
        raise BadScores(f"{folder} has no map of the requested images (such as {wanted}); it has {there}.")
    read = _read if endings == CLASSES else _read_likeliest
    damaged = [path for row, path in maps_of_rows if not read(path, labels, grid, cells[row])]
    without, others = len(cells) - len(maps_of_rows), len(maps) - len(maps_of_rows)
    notes = {
        f"{without} of {len(cells)} images have no map": without,
        f"{others} maps are of other images": others,
        f"{len(damaged)} maps cannot be read, such as {damaged[0] if damaged else ''}": len(damaged),
    }
    return [note for note, count in notes.items() if count]


def _read(path: Path, labels: Labels, grid: Grid, row: Cells) -> bool:
    """Fill one row; False for a file that is no picture."""
    try:
        with Image.open(path) as image:
            image.load()
    except (OSError, SyntaxError, ValueError, MemoryError, Image.DecompressionBombError):
        return False
    numbers, counts = np.unique(_categories(path, image, labels), return_counts=True)
    for columns in grid.columns.values():
        row[columns] = 0
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        if number not in labels.names and number not in labels.ignored:
            raise BadScores(
                f"{path} shows category {number}, which {labels.path} does not name.\n"
                f'If it means "nothing", add it there: "ignore": [{number}].'
            )
        row[grid.columns.get(number, [])] += count / (image.width * image.height)
    return True


def _read_likeliest(path: Path, labels: Labels, grid: Grid, row: Cells) -> bool:
    """Fill one row with the largest probability of each category; False for a file that is no array."""
    try:
        planes = read_array(path, BadScores).astype(np.float64)
    except BadScores:
        return False
    if planes.ndim != 3 or len(planes) != len(labels.names) or not planes.size:
        raise BadScores(
            f"{path} has the shape {planes.shape}, not (categories, height, width) with the {len(labels.names)} "
            f"categories of {labels.path}."
        )
    if not (np.isfinite(planes).all() and planes.min() >= 0 and planes.max() <= 1 + 1e-3):
        raise BadScores(f"{path} holds numbers that are no probabilities: they must lie between 0 and 1.")
    for number, largest in zip(labels.names, planes.max(axis=(1, 2)), strict=True):
        row[grid.columns[number]] = min(1.0, largest)
    return True


def _categories(path: Path, image: Image.Image, labels: Labels) -> npt.NDArray[np.int64]:
    if image.mode in NUMBERED:
        return np.asarray(image).astype(np.int64)
    if image.mode != "RGB" or not labels.colours:
        raise BadScores(
            f"{path} is a picture of mode {image.mode}: its pixels are no category numbers.\n"
            f"Save palette or grey pictures, or give each category of {labels.path} its 'color': [red, green, blue]."
        )
    red, green, blue = np.moveaxis(np.asarray(image).astype(np.int64), -1, 0)
    colours, where = np.unique(red << 16 | green << 8 | blue, return_inverse=True)
    unknown = [colour for colour in colours.tolist() if colour not in labels.colours]
    if unknown:
        raise BadScores(f"{path} has the colour #{unknown[0]:06x}, which is no category's in {labels.path}.")
    return np.array([labels.colours[colour] for colour in colours.tolist()])[where]
