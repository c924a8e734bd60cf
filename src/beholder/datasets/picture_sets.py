"""Smaller published sets of pictures: iEAT, PAIRS and OMI. Each user brings them, in their authors' own folders.

iEAT    pictures of the image embedding association tests (Steed and Caliskan 2021), a folder for each category
PAIRS   generated pictures of 50 everyday scenes, each with a Black and a white woman and man; all else is alike
OMI     One Million Impressions: generated faces and how people rated each on 34 attributes. Perceived gender and race
        are read off the means: who is more often taken for a man, and the highest of seven.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from beholder.core.errors import MissingData
from beholder.core.read import read_table, require_columns
from beholder.datasets.dataset import Dataset, published
from beholder.datasets.folder import is_image

# iEAT

HOMES = ("experiments", "data/experiments", "stimuli/experiments")


def load_ieat(folder: Path) -> Dataset:
    """Every picture with its category, `race/african-american`."""
    home = next((folder / each for each in HOMES if (folder / each).is_dir()), folder)
    paths = sorted(path for path in home.glob("*/*/*") if path.is_file() and is_image(path.name))
    if not paths:
        raise MissingData(f"No iEAT pictures lie at {folder}: expected {IEAT.layout}.")
    names = [path.relative_to(home) for path in paths]
    categories = [path.parent.as_posix() for path in names]
    columns = {"image_id": [path.as_posix() for path in names], "uri": list(map(str, paths)), "category": categories}
    left = IEAT.images - len(paths)
    notes = (f"{left} of the {IEAT.images} pictures of the source are not here",) if left > 0 else ()
    return Dataset("ieat", "as published", IEAT.licence, pl.DataFrame(columns), notes)


IEAT = published("ieat", load_ieat)

# PAIRS

PARTS = {"occupations": 20, "status": 20, "potential_crime": 10}  # and how many scenes each has
FOUR = ("Black man", "Black woman", "White man", "White woman")
NAME = re.compile(r"(?P<race>black|white)_(?P<gender>man|woman)\d*", re.IGNORECASE)


def load_pairs(folder: Path) -> Dataset:
    """Every picture that is there; the notes name scenes that lack one of the four people."""
    root = folder / "data" if (folder / "data").is_dir() else folder
    rows = [row for part in PARTS if (root / part).is_dir() for row in _pictures_of_pairs(root / part)]
    if not rows:
        raise MissingData(f"No PAIRS pictures lie at {folder}: expected {PAIRS.layout}.")
    table = pl.DataFrame(rows).unique(["pair", "race", "gender"], keep="first", maintain_order=True)
    return Dataset("pairs", "as released", PAIRS.licence, table, tuple(_lacking(table)))


def _pictures_of_pairs(part: Path) -> Iterator[dict[str, str]]:
    for path in sorted(part.glob("*/*.png")):
        if named := NAME.fullmatch(path.stem):
            scene, labels = path.parent.name, {"race": named["race"].capitalize(), "gender": named["gender"].lower()}
            about = {"part": part.name, "scenario": scene, "pair": f"{part.name}/{scene}"}
            yield {"image_id": f"{part.name}/{scene}/{path.name}", "uri": str(path), **about, **labels}


def _lacking(table: pl.DataFrame) -> Iterator[str]:
    people = pl.concat_str("race", "gender", separator=" ").alias("people")
    for (pair,), scene in table.group_by(["pair"], maintain_order=True):
        if lacking := [name for name in FOUR if name not in scene.select(people).to_series()]:
            yield f"{pair}: no picture of {', '.join(lacking)}"
    scenes = dict(table.group_by("part").agg(pl.col("pair").n_unique()).rows())
    fewer = [f"{scenes.get(part, 0)} of {count} scenes of {part}" for part, count in PARTS.items()]
    if scenes != PARTS:
        yield f"there are {', '.join(fewer)}"


PAIRS = published("pairs", load_pairs)

# OMI

RACES = ("asian", "middle-eastern", "hispanic", "islander", "native", "black", "white")
MIDDLE = 50.0  # of the scale from a woman to a man


def load_omi(folder: Path) -> Dataset:
    """The faces whose pictures are there."""
    path = folder / "attribute_means.csv"
    if not path.is_file():
        raise MissingData(f"No OMI ratings lie at {folder}: expected {OMI.layout}.")
    means = read_table(path)
    require_columns(means, ["stimulus", "gender", *RACES], path)
    means = means.with_columns(pl.col("gender", *RACES).cast(pl.Float64))
    race = pl.concat_list(RACES).list.arg_max().replace_strict(dict(enumerate(RACES)), return_dtype=pl.String)
    gender = pl.when(pl.col("gender") > MIDDLE).then(pl.lit("man")).otherwise(pl.lit("woman"))
    table = means.select(image_id=pl.col("stimulus").cast(pl.String), gender=gender, race=race)
    files = {each.stem: str(each) for each in sorted((folder / "images").glob("*")) if each.suffix in (".jpg", ".png")}
    here = table.with_columns(uri=pl.col("image_id").replace_strict(files, default=None, return_dtype=pl.String))
    here = here.drop_nulls("uri").select("image_id", "uri", "gender", "race")
    if here.is_empty():
        raise MissingData(f"No OMI pictures lie at {folder}: expected {OMI.layout}.")
    lacking = f"{means.height - here.height:,} of {means.height:,} faces have no picture here and are left out"
    notes = (lacking,) if here.height < means.height else ()
    return Dataset("omi", "as released", OMI.licence, here, notes)


def ratings_file(dataset: Dataset) -> Path | None:
    """The single ratings that lie beside the pictures; None without them, and for other data."""
    if dataset.name != "omi":
        return None
    folder = Path(dataset.table["uri"][0]).parent.parent
    single = [each for each in sorted(folder.glob("*ratings*")) if each.suffix in (".csv", ".parquet")]
    return single[0] if single else None


OMI = published("omi", load_omi)
