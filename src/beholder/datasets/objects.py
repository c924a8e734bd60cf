"""Objects: which concepts are in which pictures, how often, how large, and under which names.

A long table beside a data set's own: one row per picture and concept that is in it. A concept that is not listed for
a picture was not annotated there. Boxes are annotators' drawings, names their words.
"""

from __future__ import annotations

import polars as pl

from beholder.core.errors import DataError

SCHEMA: dict[str, pl.DataType] = {
    "image_id": pl.String(),
    "concept": pl.String(),
    "instances": pl.Int32(),
    "area": pl.Float32(),
    "names": pl.List(pl.String()),
}
"""`area` is the share of the picture that the concept's largest box covers, null where no box is known; `names` are
the annotators' words behind the concept, each once, in the order of their first use."""


def check_objects(objects: pl.DataFrame, image_ids: pl.Series, where: str) -> None:
    """Raise for a table of another form, for pictures that are not in the data set, for rows that stand twice."""
    if dict(objects.schema) != SCHEMA:
        raise DataError(f"{where}: the table of objects has {dict(objects.schema)}.\nIt must have exactly {SCHEMA}.")
    strangers = objects.join(image_ids.cast(pl.String).to_frame(), on="image_id", how="anti")
    if strangers.height:
        raise DataError(
            f"{where}: {strangers.height} objects are in pictures that the data set does not have, "
            f"the first is {strangers['image_id'][0]!r}."
        )
    keys = objects.select(pl.col("image_id").hash(1) ^ pl.col("concept").hash(2)).to_series()
    if keys.n_unique() == objects.height:  # far less memory than the rows themselves; equal rows have equal keys
        return
    twice = objects.filter(objects.select("image_id", "concept").is_duplicated())
    if twice.height:
        raise DataError(f"{where}: {twice['concept'][0]!r} stands twice for image {twice['image_id'][0]!r}.")


def objects_in(objects: pl.DataFrame, image_ids: pl.Series) -> pl.DataFrame:
    """The objects in these pictures, in the order they stood."""
    return objects.join(image_ids.to_frame(), on="image_id", how="semi", maintain_order="left")
