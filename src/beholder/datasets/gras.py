"""GRAS: the authors' selection of 3,570 FairFace and 1,440 AI-Face images, balanced over gender, race, age, skin tone.

Layout: `gras/selected_images_fairface.csv`, `gras/selected_images_aiface.csv`; the images themselves lie in the
folders `fairface/` and `aiface/` beside it, which the user brings (AI-Face may not be redistributed).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from beholder.core.errors import MissingData
from beholder.core.tables import read_delimited, require_columns, require_inside
from beholder.datasets.dataset import Dataset, DatasetSource
from beholder.datasets.perturbed import SQUARE, perturbed_uri

FAIRFACE, AIFACE = "fairface", "aiface"
PREFIXES = {FAIRFACE: "FairFace/", AIFACE: "AIFace/"}
"""How the lists' file names begin; the rest is the name within the data set's own folder."""
COLUMNS = {FAIRFACE: {"gender": "gender", "race": "race", "age": "age"}, AIFACE: {"Skin Tone": "skin_tone"}}
PERSON = r"/((?:nm)?[0-9]+)_[^/]*$"
"""AI-Face's images from IMDB-WIKI begin with the number of the person in their own source."""
BALANCE = {"gender": 1785, "race": 510, "age": 714, "skin_tone": 144}
"""Images of each group in the published selection."""


def load(folder: Path) -> Dataset:
    """Both lists as far as they are there; which images are there is another matter (`Dataset.present`)."""
    parts = [part for part in COLUMNS if list_path(folder, part).is_file()]
    if not parts:
        raise MissingData(f"No GRAS list lies at {folder}: expected {list_path(folder, FAIRFACE).name}.")
    tables = [_load_part(folder, part) for part in parts]
    table = pl.concat(tables, how="diagonal")
    notes = [f"the {part} list is not there" for part in COLUMNS if part not in parts]
    notes += imbalances(table)
    return Dataset("gras", "as published", "the parts' own", table, tuple(notes), partial=True, remarks=imbalances)


def list_path(folder: Path, part: str) -> Path:
    """Where a part's list lies."""
    return folder / f"selected_images_{part}.csv"


def _load_part(folder: Path, part: str) -> pl.DataFrame:
    path = list_path(folder, part)
    raw = read_delimited(path)
    require_columns(raw, ["file", *COLUMNS[part]], path)
    require_inside(raw["file"], path)
    inside = pl.col("file").str.strip_prefix(PREFIXES[part])
    own = [] if part == FAIRFACE else list(_origin(inside))
    return raw.select(
        pl.col("file").alias("image_id"),
        (str(folder.parent / part) + "/" + inside).alias("uri"),
        pl.lit(part).alias("part"),
        *[pl.col(source).alias(name) for source, name in COLUMNS[part].items()],
        *own,
    )


def _origin(inside: pl.Expr) -> Iterator[pl.Expr]:
    """Where an AI-Face image was taken from (`FFHQ`, `imdb_wiki/imdb`), and the number of its person, if it has one."""
    folder = inside.str.extract(r"^(.*)/[^/]*$")
    source = folder.str.extract(r"^([^/]+(?:/[^/]+)?)")
    yield source.alias("source")
    yield pl.concat_str(source, inside.str.extract(PERSON), separator=" ").alias("person")


def as_released(dataset: Dataset) -> Dataset:
    """With the images of AI-Face made squares of 256, as all five released scripts do."""
    table = dataset.table
    if "part" not in table.columns:
        return dataset
    parts = zip(table["uri"], table["part"], strict=True)
    uris = [perturbed_uri(uri, SQUARE) if part == AIFACE else uri for uri, part in parts]
    return replace(dataset, table=table.with_columns(pl.Series("uri", uris, pl.String)))


def imbalances(table: pl.DataFrame) -> list[str]:
    """In which groups the selection at hand deviates from the published balance."""
    notes = []
    for attribute, expected in BALANCE.items():
        if attribute in table.columns:
            counts = table[attribute].drop_nulls().value_counts().sort(attribute)
            odd = [f"{group} {count}" for group, count in counts.iter_rows() if count != expected]
            if odd:
                notes.append(f"{attribute} is not balanced as published ({expected} each): {', '.join(odd)}")
    return notes


SOURCE = DatasetSource(
    name="gras",
    title="GRAS: FairFace and AI-Face images balanced over four attributes",
    licence="FairFace CC BY 4.0; AI-Face on request",
    origin="the GRAS paper's repository (lists), FairFace and AI-Face (images)",
    layout="selected_images_fairface.csv, selected_images_aiface.csv; images in ../fairface and ../aiface",
    images=5010,
    load=load,
    labels="perceived gender, race and age from FairFace; Monk skin tone of AI-Face images by a classifier",
    intended="how a model's yes-or-no answers about traits differ between groups of faces",
)
