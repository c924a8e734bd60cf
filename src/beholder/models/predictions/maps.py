"""Class maps: pictures in which every pixel is the number, or the colour, of the category it shows.

The score of a category is its share of the picture's pixels. A map that cannot be read costs its picture only.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.core.errors import BadScores
from beholder.models.predictions.labels import Grid, Labels, same_image

NUMBERED = ("P", "L", "1", "I", "I;16", "I;16B")


def read_maps(folder: Path, labels: Labels, grid: Grid, cells: npt.NDArray[np.float64]) -> list[str]:
    """Fill the rows of the pictures that have a map; give what should be known of them."""
    maps = {same_image(path.relative_to(folder).as_posix()): path for path in sorted(folder.rglob("*.png"))}
    maps_of_rows = [(grid.rows[image], path) for image, path in maps.items() if image in grid.rows]
    if not maps_of_rows:
        wanted, there = list(grid.rows)[:3], [path.name for path in list(maps.values())[:3]]
        raise BadScores(f"{folder} has no map of the requested images (such as {wanted}); it has {there}.")
    damaged = [path for row, path in maps_of_rows if not _read(path, labels, grid, cells[row])]
    return _notes(len(cells), len(maps_of_rows), len(maps), damaged)


def _notes(wanted: int, matched: int, present: int, damaged: list[Path]) -> list[str]:
    lines = [
        (wanted - matched, f"{wanted - matched} of {wanted} images have no class map"),
        (present - matched, f"{present - matched} class maps are of other images"),
        (len(damaged), f"{len(damaged)} class maps cannot be read, such as {damaged[0] if damaged else ''}"),
    ]
    return [line for count, line in lines if count]


def _read(path: Path, labels: Labels, grid: Grid, row: npt.NDArray[np.float64]) -> bool:
    """Fill one row; False for a file that is no picture."""
    try:
        with Image.open(path) as image:
            image.load()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
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


def _categories(path: Path, image: Image.Image, labels: Labels) -> npt.NDArray[np.int64]:
    """The category number of every pixel."""
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
