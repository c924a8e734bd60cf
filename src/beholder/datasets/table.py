"""A table in memory as a data set: a DataFrame of polars or pandas, a `datasets.Dataset`, or a `beholder.Dataset`.

It is known as `table:DIGEST` while the program runs. Pictures in it are written to a temporary folder.
"""

import atexit
import io
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import polars as pl
from PIL import Image, ImageOps

from beholder.core.digests import content_digest, digest
from beholder.core.errors import DataError, MissingData, UsageError
from beholder.core.read import column_name, with_plain_names
from beholder.datasets.content import is_remote
from beholder.datasets.dataset import Dataset
from beholder.datasets.folder import IMAGE_COLUMNS, OWN
from beholder.datasets.images import is_transparent

PASSING = "a table in memory: once this program ends, this run cannot be viewed or verified, as one of a folder can be"
HELD: dict[str, Dataset] = {}


def held(data: Any, image: str = "") -> str:
    """The name of a table in memory, `image` is the column with the pictures; and of a data set as it is."""
    data = data if isinstance(data, Dataset) else _read(data, image)
    name = f"table:{digest([data.name, data.revision, data.table.drop('uri').hash_rows().to_list()])[:8]}"
    HELD.setdefault(name, data)
    return name


def load(place: str, chosen: Mapping[str, str] | None = None) -> Dataset:
    """The data set of that name."""
    if (name := f"table:{place}") not in HELD:
        raise MissingData(f"{name} was a table in the memory of another program. Give the table itself as dataset=.")
    return HELD[name]


@cache
def _folder() -> Path:
    """For pictures that were held in memory; it goes when the program ends."""
    folder = mkdtemp(prefix="beholder-pictures-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _read(data: Any, image: str) -> Dataset:
    data = data.collect() if isinstance(data, pl.LazyFrame) else data
    names, cells, others = _parts(data)
    column = _image_column(names, cells, image)
    ids, uris, pictures = list[str](), list[str](), list[str]()
    for row, cell in enumerate(cells(column)):
        name, content = _picture(cell, row, column)
        ids.append(name)
        if content is None:
            uris.append(name if is_remote(name) else os.path.abspath(os.path.expanduser(name)))
        else:
            pictures.append(content_digest(content))
            uris.append(str(_folder() / pictures[-1]))
            Path(uris[-1]).write_bytes(content)
    if not ids:
        raise DataError("dataset=: the table has no rows.")
    if pictures and len(set(ids)) < len(ids):
        ids = [str(row) for row in range(len(ids))]
    table = with_plain_names(others(column), "dataset=").drop("image_id", "uri", strict=False)
    table = table.drop(name for name, kind in table.schema.items() if kind.is_nested())
    table = table.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    table = pl.DataFrame({"image_id": ids, "uri": uris}).hstack(table)
    revision = digest([table.drop("uri").hash_rows().to_list(), pictures])
    return Dataset(f"table:{revision[:8]}", revision, OWN, table, notes=(PASSING,))


def _parts(data: Any) -> tuple[list[str], Callable[[str], Iterable[Any]], Callable[[str], pl.DataFrame]]:
    """The names of the columns, the cells of one, and all others as a table."""
    if isinstance(data, pl.DataFrame):
        return data.columns, data.__getitem__, data.drop
    if hasattr(data, "iloc") and hasattr(data, "assign"):  # pandas
        frame = data.rename(columns=str)
        mixed = [name for name in frame.columns if frame[name].dtype == object]  # Arrow takes cells of one kind only
        texts = frame.assign(**{name: frame[name].map(str, na_action="ignore") for name in mixed})
        return list(frame.columns), frame.__getitem__, lambda name: pl.from_pandas(texts.drop(columns=name))
    if hasattr(data, "select_columns") and hasattr(data, "__len__") and not isinstance(data, dict):  # datasets
        arrow = data.with_format("arrow")

        def cells(name: str) -> Iterable[Any]:
            batches = arrow.select_columns([name]).iter(batch_size=64)
            return (cell for batch in batches for cell in batch[name].to_pylist())

        def others(name: str) -> pl.DataFrame:
            table = pl.DataFrame(pl.from_arrow(arrow.remove_columns([name])[:]))
            words = {key: getattr(data.features[key], "names", None) for key in table.columns}
            named = [pl.col(k).replace_strict(dict(enumerate(v)), default=None) for k, v in words.items() if v]
            return table.with_columns(named)

        return data.column_names, cells, others
    parts = f" Give one of its parts: {', '.join(map(repr, data))}." if isinstance(data, dict) else ""
    raise UsageError(
        f"dataset= takes a name, a path, a Dataset, a DataFrame of polars or pandas, or a datasets.Dataset, not "
        f"{type(data).__name__}.{parts}"
    )


def _image_column(names: list[str], cells: Callable[[str], Iterable[Any]], wanted: str) -> str:
    """The column that was named; else the one with pictures; else the first with a name that paths usually have."""
    plain = {column_name(name): name for name in names}
    holding = [name for name in names if _holds_picture(next((c for c in cells(name) if c is not None), None))]
    usual = [plain[name] for name in IMAGE_COLUMNS if name in plain]
    found = [plain[w] for w in [column_name(wanted)] if w in plain] if wanted else holding or usual[:1]
    if len(found) == 1:
        return found[0]
    what = f"there is no column {wanted!r}" if wanted else "several columns have pictures" if found else "none has"
    raise DataError(
        f"dataset=: which column has the pictures, or their paths? {what}. The table has: {', '.join(names)}.\n"
        "Name the column: image_column='NAME'."
    )


def _holds_picture(cell: object) -> bool:
    parts = isinstance(cell, dict) and {*cell} == {"bytes", "path"}
    return parts or isinstance(cell, Image.Image | bytes | np.ndarray)


def _picture(cell: Any, row: int, column: str) -> tuple[str, bytes | None]:
    """A picture's name, and its bytes if they are held in memory."""
    if isinstance(cell, dict):
        name, cell = cell.get("path"), cell.get("bytes") or cell.get("path")
    else:
        name = getattr(cell, "filename", "")
    if isinstance(cell, str | Path) and str(cell):
        return str(cell), None
    name = Path(name or str(row)).name
    if isinstance(cell, bytes):
        return name, cell
    try:
        picture = ImageOps.exif_transpose(cell if isinstance(cell, Image.Image) else Image.fromarray(cell))
        buffer = io.BytesIO()
        picture = picture.convert("RGBA") if is_transparent(picture) else picture
        (picture if picture.mode in ("L", "RGBA", "I;16") else picture.convert("RGB")).save(buffer, "PNG")
    except (AttributeError, TypeError, ValueError, OSError) as error:
        raise DataError(f"dataset=: row {row} of {column!r} has no picture and no path ({str(cell)[:40]}).") from error
    return name, buffer.getvalue()
