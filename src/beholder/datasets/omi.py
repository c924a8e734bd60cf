"""OMI, One Million Impressions: generated faces and how people rated each on 34 attributes.

Perceived gender and race are read off the means: who is more often taken for a man, and the highest of seven.
"""

from pathlib import Path

import polars as pl

from beholder.core.errors import MissingData
from beholder.core.tables import read_table, require_columns
from beholder.datasets.dataset import Dataset, published

RACES = ("asian", "middle-eastern", "hispanic", "islander", "native", "black", "white")
MIDDLE = 50.0  # of the scale from a woman to a man


def load(folder: Path) -> Dataset:
    """The faces whose pictures are there."""
    path = folder / "attribute_means.csv"
    if not path.is_file():
        raise MissingData(f"No OMI ratings lie at {folder}: expected {SOURCE.layout}.")
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
        raise MissingData(f"No OMI pictures lie at {folder}: expected {SOURCE.layout}.")
    lacking = f"{means.height - here.height:,} of {means.height:,} faces have no picture here and are left out"
    notes = (lacking,) if here.height < means.height else ()
    return Dataset("omi", "as released", SOURCE.licence, here, notes)


def ratings_file(dataset: Dataset) -> Path | None:
    """The single ratings that lie beside the pictures; None without them, and for other data."""
    if dataset.name != "omi":
        return None
    folder = Path(dataset.table["uri"][0]).parent.parent
    single = [each for each in sorted(folder.glob("*ratings*")) if each.suffix in (".csv", ".parquet")]
    return single[0] if single else None


SOURCE = published("omi", load)
