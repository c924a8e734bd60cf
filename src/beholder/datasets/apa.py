"""APA benchmark v1: 845 photographs of US politicians, actors and athletes, with names and sourced labels.

Source: github.com/uvavision/apa-bench. Licence: MIT. The same photographs serve P-FI.
Layout: `benchmark-data-v1/<branch>.txt` (tab-separated) and `benchmark-data-v1/<branch>/NNN.jpg`.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder.core.errors import DataError, MissingData
from beholder.core.tables import read_delimited, require_columns
from beholder.datasets.dataset import Dataset, DatasetSource
from beholder.datasets.fetch import fetch_archive

FOLDER = "benchmark-data-v1"
REPOSITORY = "https://github.com/uvavision/apa-bench"
ARCHIVE = f"{REPOSITORY}/archive/refs/heads/main.zip"
LICENCE = "MIT"
REVISION = "v1"


class Branch(NamedTuple):
    """What the published copy holds."""

    images: int
    women: int
    men: int
    columns: tuple[str, ...] = ()


BRANCHES = {
    "actors": Branch(100, 40, 60, ("film", "academy_award")),
    "athletes": Branch(109, 30, 79, ("sport",)),
    "house": Branch(436, 126, 310, ("party",)),
    "senate": Branch(100, 24, 76, ("party",)),
    "mayors": Branch(100, 33, 67, ("party",)),
}


def load(folder: Path) -> Dataset:
    """Every branch that is present; the notes list what is missing or differs from the published copy."""
    base = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    present = [name for name in BRANCHES if (base / f"{name}.txt").is_file()]
    if not present:
        raise MissingData(f"No APA table lies at {base}: expected {', '.join(f'{name}.txt' for name in BRANCHES)}.")
    tables = [_load_branch(base, name) for name in present]
    notes = [f"{name}: the table {name}.txt is not there" for name in BRANCHES if name not in present]
    notes += [note for name, table in zip(present, tables, strict=True) for note in _deviations(name, table)]
    return Dataset("apa", REVISION, LICENCE, pl.concat(tables, how="diagonal"), tuple(notes))


def _load_branch(base: Path, branch: str) -> pl.DataFrame:
    path = base / f"{branch}.txt"
    raw = read_delimited(path, "\t")
    columns = list(BRANCHES[branch].columns)
    require_columns(raw, ["filename", "names", "gender", *columns], path)
    for column in ("filename", "names", "gender"):
        if raw[column].null_count():
            row = raw[column].is_null().arg_max() or 0
            raise DataError(f"{path}: row {row + 2} has no {column}.")
    return raw.select(
        (branch + "/" + pl.col("filename")).alias("image_id"),
        (str(base / branch) + "/" + pl.col("filename").str.replace_all(r"^.*[/\\]", "")).alias("uri"),
        pl.lit(branch).alias("branch"),
        pl.col("names").alias("name"),
        "gender",
        *columns,
    )


def _deviations(branch: str, table: pl.DataFrame) -> list[str]:
    """In what this copy differs from the published one, and whom it shows twice."""
    expected, notes = BRANCHES[branch], []
    for what, have, want in (
        ("images", table.height, expected.images),
        ("women", table.filter(pl.col("gender") == "woman").height, expected.women),
        ("men", table.filter(pl.col("gender") == "man").height, expected.men),
    ):
        if have != want:
            notes.append(f"{branch}: {have} {what}, the published copy has {want}")
    twice = table.filter(pl.col("name").is_duplicated()).n_unique("name") if table.height else 0
    if twice:
        who = "1 person stands" if twice == 1 else f"{twice} people stand"
        notes.append(f"{branch}: {who} there more than once; any of their photographs is right for the name")
    return notes


def fetch(folder: Path) -> None:
    """Download the public repository's archive and unpack its tables and photographs into `folder`."""
    fetch_archive(ARCHIVE, folder, keep=FOLDER)


SOURCE = DatasetSource(
    name="apa",
    title="APA v1: actors, politicians, athletes",
    licence=LICENCE,
    origin=REPOSITORY,
    layout=f"{FOLDER}/actors.txt, {FOLDER}/actors/000.jpg …",
    images=sum(branch.images for branch in BRANCHES.values()),
    load=load,
    fetch=fetch,
    labels="office, sport, award and gender from public sources about public figures, collected by the authors",
    intended="whether a model knows the occupation and the name of public figures, and for whom it does",
)
