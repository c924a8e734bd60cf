"""iEAT: the pictures of the image embedding association tests (Steed and Caliskan 2021), a folder for each category."""

from pathlib import Path

import polars as pl

from beholder.core.errors import MissingData
from beholder.datasets.dataset import Dataset, published
from beholder.datasets.folder import is_image

HOMES = ("experiments", "data/experiments", "stimuli/experiments")


def load_ieat(folder: Path) -> Dataset:
    """Every picture with its category, `race/african-american`."""
    home = next((folder / each for each in HOMES if (folder / each).is_dir()), folder)
    paths = sorted(path for path in home.glob("*/*/*") if path.is_file() and is_image(path.name))
    if not paths:
        raise MissingData(f"No iEAT pictures lie at {folder}: expected {SOURCE.layout}.")
    names = [path.relative_to(home) for path in paths]
    categories = [path.parent.as_posix() for path in names]
    columns = {"image_id": [path.as_posix() for path in names], "uri": list(map(str, paths)), "category": categories}
    left = SOURCE.images - len(paths)
    notes = (f"{left} of the {SOURCE.images} pictures of the source are not here",) if left > 0 else ()
    return Dataset("ieat", "as published", SOURCE.licence, pl.DataFrame(columns), notes)


SOURCE = published("ieat", load_ieat)
