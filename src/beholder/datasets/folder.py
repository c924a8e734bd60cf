"""`folder:PATH`: any folder of images, since users bring their own: with one table, or with a folder for each class.

PATH may be the table itself, or a URI. The table names each image, relative to it; its other columns are attributes,
their names in lower case. One `metadata` for each split is read as Hugging Face's imagefolder has it.
"""

import os
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

import polars as pl
from PIL import Image

from beholder.core.digests import content_digest, digest
from beholder.core.errors import DataError, MissingData
from beholder.core.files import leads_out, links_out
from beholder.core.read import column_name, parse_table, with_plain_names
from beholder.datasets.content import files_below, is_file, is_folder, is_remote, joined, open_binary, parent
from beholder.datasets.dataset import Dataset
from beholder.datasets.settings import Settings, choices

IMAGE_COLUMNS = ("image", "file_name", "filename", "file", "path", "image_path", "file_path", "filepath", "image_id")
"""Columns that may name the images; the first whose files are there is meant."""
TABLE_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
METADATA = "metadata"
SPLITS = ("train", "val", "valid", "validation", "test")
ALLOW = "--set outside=allow"
OWN = "the user's own"
LOOKED_AT = 20


def load(place: str, chosen: Mapping[str, str] | None = None) -> Dataset:
    """The images that the table names, with all its other columns as attributes; or those of the class folders."""
    settings = Settings(f"folder:{place}", choices("folder"), chosen)
    outside = allows_links(settings)
    tables = find_tables(place)
    refuse_links(tables, place, outside=outside)
    if not tables:
        return _class_folders(place, settings.text("label"), outside=outside)
    parts, notes, digests = list[pl.DataFrame](), list[str](), list[str]()
    for path in tables:
        with open_binary(path) as file:
            data = file.read()
        table, respelled = _read(data, path, column_name(settings.text("image")), outside=outside)
        if len(tables) > 1:  # the split's name is part of the images' ids, which may be the same in every split
            split = PurePosixPath(parent(path)).name
            table = table.with_columns(image_id=split + "/" + pl.col("image_id"), split=pl.lit(split))
        parts.append(table)
        digests.append(content_digest(data))
        for name, file in list(respelled.items())[:1]:
            notes.append(f"{len(respelled)} names are spelled otherwise than their files, such as {name!r}: {file!r}")
    home = place if is_folder(place) else parent(place)
    whole = pl.concat(parts, how="diagonal_relaxed")
    if home == place and not is_remote(place):
        named = set(map(os.path.normpath, whole["uri"]))
        others = [n for n in files_below(place) if is_image(n) and os.path.normpath(joined(place, n)) not in named]
        notes += [f"pictures without a row in the table: {len(others):,}, such as {others[0]}"] if others else []
    return Dataset(f"folder:{base_name(home)}", digest(digests), OWN, whole, tuple(notes))


def _read(data: bytes, path: str, named: str, *, outside: bool) -> tuple[pl.DataFrame, dict[str, str]]:
    """A table's images and attributes, and the names that are spelled otherwise than their files."""
    raw = with_plain_names(parse_table(data, path), path)
    home = parent(path)
    column = _image_column(raw, path, home, named)
    names = raw[column].cast(pl.String).to_list()
    for row, name in enumerate(names, start=2):
        if not name:
            raise DataError(f"{path}: row {row} of the table names no image.")
        if leads_out(name) and not outside:
            raise DataError(
                f"{path}: row {row} names {name!r}, which lies outside the folder.\n"
                f"Use names relative to it, or allow such names: {ALLOW}."
            )
    if not names:
        raise DataError(f"{path}: the table has a header and no rows.")
    uris, respelled = resolve(names, home)
    refuse_links(uris, home, outside=outside)
    attributes = raw.drop({column, "image_id", "uri"} & set(raw.columns))
    return pl.DataFrame({"image_id": names, "uri": uris}).hstack(attributes), respelled


def find_tables(place: str) -> list[str]:
    """The table itself, the one table of a folder, or one `metadata` for each split; none for class folders."""
    if is_file(place):
        return [place]
    if not is_folder(place):
        advice = "Name the folder of your images: --dataset folder:PATH"
        raise MissingData(f"There is no folder and no table at {place}.\n{advice}")
    tables = [name for name in files_below(place) if name.lower().endswith(TABLE_ENDINGS)]
    own = [name for name in tables if "/" not in name]
    if len(own) > 1:
        own = [name for name in own if PurePosixPath(name).stem == METADATA] or own
    if len(own) > 1:
        first = f"folder:{joined(place, own[0])}"
        raise DataError(f"{place} has several tables: {', '.join(own)}.\nName the one you mean: {first}")
    splits = [name for name in tables if name.count("/") == 1 and PurePosixPath(name).stem == METADATA]
    return [joined(place, name) for name in own or splits]


def resolve(names: list[str], home: str) -> tuple[list[str], dict[str, str]]:
    """The file of each name, also where case, Unicode form, slashes or a missing ending differ; and which did."""
    uris = [joined(home, name) for name in names]
    lost = [row for row, uri in enumerate(uris) if is_remote(home) or not is_file(uri)]
    if not lost:
        return uris, {}
    there = files_below(home)
    known, respelled = set(there), dict[str, str]()
    by_spelling = _unique((_spelling(name), name) for name in there)
    by_stem = _unique((_spelling(name.rpartition(".")[0]), name) for name in there if is_image(name))
    for row in lost:
        name = names[row]
        file = by_spelling.get(_spelling(name)) or by_stem.get(_spelling(name))
        if name not in known and file:
            uris[row], respelled[name] = joined(home, file), file
    return uris, respelled


def is_image(name: str) -> bool:
    """Whether the name ends as a picture's does."""
    ending = PurePosixPath(name).suffix.lower()
    return ending in Image.registered_extensions() or ending in {".heic", ".heif", ".hif"}


def base_name(place: str) -> str:
    """The last part of a path or URI."""
    return (PurePosixPath(place.rstrip("/")) if is_remote(place) else Path(place).resolve()).name


def _spelling(name: str) -> str:
    return unicodedata.normalize("NFC", name.replace("\\", "/")).casefold().removeprefix("./")


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Values by their keys; a key that several have means none of them."""
    found = set(pairs)
    counts = Counter(key for key, _ in found)
    return {key: value for key, value in found if counts[key] == 1}


def _class_folders(place: str, label: str, *, outside: bool) -> Dataset:
    """Pictures whose folder is their label; a folder of splits above that is kept as `split`."""
    images = [name for name in files_below(place) if is_image(name)]
    if not images or any("/" not in name for name in images):
        raise DataError(
            f"{place} has {len(images):,} images and no table of attributes ({', '.join(TABLE_ENDINGS)}).\n"
            f"Write one, such as {joined(place, 'people.csv')}: a column 'image' with the names of the image files, "
            "and a column for each attribute to tell people apart by (gender, age …). "
            "Or put the images of each group into a folder of their own."
        )
    parts = [PurePosixPath(name).parts for name in images]
    columns = {"image_id": images, "uri": [joined(place, name) for name in images]}
    refuse_links(columns["uri"], place, outside=outside)
    columns[column_name(label)] = [each[-2] for each in parts]
    if all(len(each) > 2 and each[0].lower() in SPLITS for each in parts):
        columns["split"] = [each[0] for each in parts]
    note = f"no table: the attribute {column_name(label)!r} is the folder of each image"
    return Dataset(f"folder:{base_name(place)}", digest(images), OWN, pl.DataFrame(columns), (note,))


def _image_column(table: pl.DataFrame, path: str, home: str, wanted: str) -> str:
    named = [column for column in ([wanted] if wanted else IMAGE_COLUMNS) if column in table.columns]
    if not named:
        separated = " Separate the cells with commas, semicolons or tabs." if len(table.columns) == 1 else ""
        expected = f"There is none called {wanted!r}" if wanted else f"Expected one of: {', '.join(IMAGE_COLUMNS)}"
        holding = (name for name, texts in table.select(pl.col(pl.String)).to_dict().items() if _names_images(texts))
        meant = "" if separated else f" Name the column: --image-column {next(holding, 'NAME')}"
        raise DataError(
            f"{path}: no column names the images. {expected}.\n"
            f"The table has: {', '.join(table.columns)}.{separated}{meant}"
        )
    for column in named if len(named) > 1 else []:
        names = table[column].cast(pl.String).drop_nulls().head(LOOKED_AT).to_list()
        if any(map(is_file, resolve(names, home)[0])):
            return column
    return named[0]


def _names_images(texts: pl.Series) -> bool:
    return bool(known := texts.drop_nulls().head(LOOKED_AT).to_list()) and all(map(is_image, known))


def allows_links(settings: Settings) -> bool:
    """Whether files may lie outside the folder."""
    return settings.one_of("outside", ("refuse", "allow")) == "allow"


def refuse_links(files: Iterable[str], home: str, *, outside: bool = False) -> None:
    """Raise if a file is really elsewhere than in this folder, or than beside this file, by way of a link."""
    home = home if is_remote(home) or is_folder(home) else parent(home)
    led = next((file for file in files if not is_remote(file) and links_out(file, home)), None)
    if led and not outside:
        raise DataError(f"{led} is a link to {Path(led).resolve()}, outside of {home}. If that is meant: {ALLOW}.")
