"""Neighbours: what was published for other models under one of our metrics, in our unit.

They stand beside results on the study's own images, and beside no other data set's.
"""

from __future__ import annotations

import polars as pl

from beholder.published.tables import SOURCES, Source, published

SCHEMA = {"model": pl.String(), "value": pl.Float64()}
TABLES = {"apa": ("apa_gender_bias", "apa_identity"), "pfi": ("pfi_gender_bias", "pfi_retention")}
GIVEN = {"identity_given_image": "image", "identity_given_name": "text"}
"""Our name says what is given; theirs says over which side the score is named."""
SCORES = {"gras.bias_score": "gras_bias_score", "gras.fairness_score": "unbiased_share_as_in_the_abstract"}
"""GRAS's one score under its two names, in per cent as printed."""


def neighbours(metric: str, subset: str, *, group: str = "", concept: str = "") -> pl.DataFrame:
    """`model, value` of every published model; no row where nothing was published.

    >>> neighbours("apa.identity_given_image", "senate").row(2)
    ('RN50', 0.8521)
    """
    if metric in SCORES:
        return published("gras_scores").select("model", value=SCORES[metric])
    prefix, _, what = metric.partition(".")
    if prefix not in TABLES:
        return pl.DataFrame(schema=SCHEMA)
    bias, identity = TABLES[prefix]
    if what in GIVEN:
        return _column(published(identity), f"{subset}_{GIVEN[what]}")
    rows = _pool(published(bias), subset)
    if what == "bias_ratio":
        return rows.filter(gender="woman").select("model", value="ratio")
    if what == "occupation_probability" and subset != "actors":  # Table 5 does not say which column is actress
        return _column(rows.filter(gender=group), concept)
    return pl.DataFrame(schema=SCHEMA)


def source_of(metric: str) -> Source | None:
    """The table that holds a metric's neighbours."""
    if metric in SCORES:
        return SOURCES["gras_scores"]
    prefix, _, what = metric.partition(".")
    if prefix not in TABLES:
        return None
    bias, identity = TABLES[prefix]
    names = {"bias_ratio": bias, "occupation_probability": bias, **dict.fromkeys(GIVEN, identity)}
    return SOURCES[names[what]] if what in names else None


def caveats(metric: str) -> tuple[str, ...]:
    """What to know before comparing with the published values of a metric."""
    source = source_of(metric)
    return source.caveats if source else ()


def _pool(table: pl.DataFrame, subset: str) -> pl.DataFrame:
    """P-FI printed one pool only: politicians."""
    if "subset" in table.columns:
        return table.filter(subset=subset)
    return table if subset == "politicians" else table.clear()


def _column(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """A printed percentage as a probability."""
    if name not in table.columns or name in ("ratio", "table"):
        return pl.DataFrame(schema=SCHEMA)
    return table.select("model", value=(pl.col(name) / 100).round(6))
