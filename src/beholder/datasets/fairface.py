"""FairFace: 97,698 face photographs with perceived race, gender and age. Licence: CC BY 4.0.

Source: the FairFace repository (padding 0.25 is what the studies use). Layout: `fairface_label_train.csv`,
`fairface_label_val.csv`, `train/N.jpg`, `val/N.jpg`. Labels are annotators' perceptions, in the source's own words.
Copies that a spreadsheet has opened turn the ages `3-9` and `10-19` into dates: they are refused, or mended on request.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from beholder.core.errors import DataError, MissingData
from beholder.core.tables import read_delimited, require_columns, require_inside
from beholder.datasets.dataset import Dataset, DatasetSource

SPLITS = ("train", "val")
AGES = ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70")
SPREADSHEET_DATES = {
    "9-Mar": "3-9",
    "09-Mar": "3-9",
    "3-Sep": "3-9",
    "03-Sep": "3-9",
    "Mar-09": "3-9",
    "Mar-9": "3-9",
    "19-Oct": "10-19",
    "Oct-19": "10-19",
    "2-Jan": "0-2",
    "Feb-00": "0-2",
    "2-Feb": "0-2",
}
"""What spreadsheets make of the age bands when they take them for dates."""
IMAGES = 97_698


def load(folder: Path) -> Dataset:
    """The labels of every split that is there; the images may be only some of them."""
    present = [split for split in SPLITS if table_path(folder, split).is_file()]
    if not present:
        raise MissingData(
            f"No FairFace labels lie at {folder}: expected fairface_label_train.csv or fairface_label_val.csv."
        )
    tables = [_load_split(folder, split) for split in present]
    notes = tuple(f"{split}: the labels are not there" for split in SPLITS if split not in present)
    return Dataset("fairface", "padding 0.25", "CC BY 4.0", pl.concat(tables), notes, partial=True)


def table_path(folder: Path, split: str) -> Path:
    """Where a split's labels lie."""
    return folder / f"fairface_label_{split}.csv"


def _load_split(folder: Path, split: str) -> pl.DataFrame:
    path = table_path(folder, split)
    raw = read_delimited(path)
    require_columns(raw, ["file", "age", "gender", "race"], path)
    require_inside(raw["file"], path)
    _refuse_dates(raw["age"], path)
    return raw.select(
        pl.col("file").alias("image_id"),
        (str(folder) + "/" + pl.col("file")).alias("uri"),
        pl.lit(split).alias("split"),
        "age",
        "gender",
        "race",
    )


def _refuse_dates(ages: pl.Series, path: Path) -> None:
    odd = sorted(set(ages.drop_nulls()) - set(AGES))
    if not odd:
        return
    damaged = [age for age in odd if age in SPREADSHEET_DATES]
    if damaged:
        raise DataError(
            f"{path}: a spreadsheet has turned age bands into dates ({', '.join(damaged)}; the bands are "
            f"{', '.join(AGES)}).\nGet the original labels again, or mend this copy: beholder data mend fairface"
        )
    raise DataError(f"{path}: unknown age bands {', '.join(odd)}. FairFace has: {', '.join(AGES)}.")


def mend(folder: Path) -> list[str]:
    """Turn spreadsheet dates back into age bands; the damaged table is kept beside the mended one."""
    messages = []
    for split in SPLITS:
        path = table_path(folder, split)
        if path.is_file():
            table = read_delimited(path)
            require_columns(table, ["age"], path)
            damaged = table["age"].is_in(list(SPREADSHEET_DATES)).sum()
            if damaged:
                path.rename(path.with_suffix(".csv.damaged"))
                table.with_columns(pl.col("age").replace(SPREADSHEET_DATES)).write_csv(path)
                messages.append(f"{path}: {damaged} ages mended; the damaged table is {path.name}.damaged")
    return messages


SOURCE = DatasetSource(
    name="fairface",
    title="FairFace: faces with perceived race, gender and age",
    licence="CC BY 4.0",
    origin="https://github.com/joojs/fairface",
    layout="fairface_label_val.csv, val/1.jpg …",
    images=IMAGES,
    load=load,
    labels="race, gender and age as perceived by annotators",
    intended="training and testing face classifiers on photographs balanced over perceived race",
)
