"""`folder:PATH`: any folder of images with a CSV or Parquet of attributes, since users bring their own.

PATH is the folder (with one table in it) or the table itself (images are looked up beside it).
The table names each image in a column `image_id`, `image`, `file`, `filename` or `path`, relative to the table.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from beholder.core.digests import digest, file_digest
from beholder.core.errors import DataError, MissingData
from beholder.core.tables import read_table
from beholder.datasets.dataset import Dataset

IMAGE_COLUMNS = ("image_id", "image", "file", "filename", "path")
TABLE_ENDINGS = (".csv", ".tsv", ".parquet")


def load(path: Path) -> Dataset:
    """The images that the table names, with all its other columns as attributes."""
    table_path = find_table(path)
    raw = read_table(table_path)
    column = _image_column(raw, table_path)
    names = raw[column].cast(pl.String).to_list()
    uris = [_inside(table_path.parent, name, row) for row, name in enumerate(names, start=2)]
    attributes = raw.drop([c for c in {column, "image_id", "uri"} if c in raw.columns])
    table = pl.DataFrame({"image_id": names, "uri": uris}).hstack(attributes)
    revision = digest([file_digest(table_path)])
    return Dataset(f"folder:{table_path.parent.resolve().name}", revision, "the user's own", table)


def find_table(path: Path) -> Path:
    """The one table of a folder, or the table itself."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise MissingData(f"There is no folder and no table at {path}.")
    tables = sorted(file for file in path.iterdir() if file.suffix.lower() in TABLE_ENDINGS)
    if len(tables) != 1:
        present = ", ".join(file.name for file in tables) or "none"
        to_do = (
            f"Name the one you mean: folder:{path}/{tables[0].name}"
            if tables
            else f"Write one, such as {path}/people.csv: a column '{IMAGE_COLUMNS[0]}' with the names of the "
            "image files, and a column for each attribute to tell people apart by (gender, age …)."
        )
        raise DataError(
            f"{path} should hold one table of attributes ({', '.join(TABLE_ENDINGS)}); it has: {present}.\n{to_do}"
        )
    return tables[0]


def _image_column(table: pl.DataFrame, path: Path) -> str:
    for column in IMAGE_COLUMNS:
        if column in table.columns:
            return column
    raise DataError(
        f"{path}: no column names the images; expected one of {', '.join(IMAGE_COLUMNS)}.\n"
        f"The table has: {', '.join(table.columns)}."
    )


def _inside(folder: Path, name: str | None, row: int) -> str:
    """The image's address; a name that leaves the folder is refused."""
    if not name:
        raise DataError(f"{folder}: row {row} of the table names no image.")
    path = folder / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise DataError(f"{folder}: row {row} names {name!r}, which lies outside the folder. Use names relative to it.")
    return str(path)
