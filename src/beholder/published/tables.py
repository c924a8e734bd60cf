"""The printed tables, cell by cell as their papers print them (per cent, and ratios of women over men)."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import polars as pl

from beholder.core.catalog import Catalog


class Source(NamedTuple):
    """Where a table was printed, and what to know before standing beside it."""

    name: str
    printed_in: str
    contents: str
    caveats: tuple[str, ...] = ()


HALF_PRECISION = "The released scripts take means in float16, so the figures sit on that grid."
EXCHANGED = (
    "Between P-FI and APA the Text and Image columns look exchanged for some models (ViT-B/32, house: 30.76 and 28.28 "
    "in P-FI, 27.98 and 30.69 in APA): compare both directions with both tables."
)

SOURCES: Catalog[Source] = Catalog(
    "published table",
    {
        source.name: source
        for source in (
            Source(
                "apa_gender_bias",
                "APA, a people-centric benchmark for testing vision-language models (2025), Tables 5–7",
                "mean probability of each occupation for women and for men, and their ratio, 39 models",
                (
                    "Table 5 (actors): rows of contrastive models do not add up to 100 (RN50, woman: 172.9), and the "
                    "released script drops the ninth column, actress; the ratios are as printed, not checked.",
                    "“MetaCLIP-114” is MetaCLIP-L14. Table 1 of the paper gives one row of Table 7 another name.",
                    HALF_PRECISION,
                ),
            ),
            Source(
                "apa_identity",
                "APA, a people-centric benchmark for testing vision-language models (2025), Table 8",
                "identity scores given a name (Text) and given an image (Image), 39 models",
                (EXCHANGED, HALF_PRECISION),
            ),
            Source(
                "pfi_gender_bias",
                "P-FI, the public-figure benchmark, Table 1",
                "mean probability of each occupation for women and men in politics, and their ratio, 5 models",
            ),
            Source(
                "pfi_retention",
                "P-FI, the public-figure benchmark, Table 2",
                "identity scores given a name (Text) and given an image (Image), 9 models",
                (EXCHANGED,),
            ),
            Source(
                "gras_scores",
                "GRAS, ask me again differently (2025), text and abstract",
                "GRAS Bias Score and its complement (the earlier abstract's share of unbiased traits), 5 models",
                (
                    "All five lie within two points of the top, where nearly every trait is significant: the score "
                    "hardly tells them apart.",
                ),
            ),
            Source(
                "perception_table_s1",
                "Social perception of faces in a vision-language model, Table S.1",
                "markedness, mean cosine, SC-WEAT, Skew, MaxSkew and NDKL of CLIP ViT-B/32 on three image sets",
                (
                    "FairFace's markedness of Male and Female is printed as 0.00: the released script compares `Male` "
                    "with `male`, finds no rows and writes 0.",
                    "The header of SC-WEAT's rows is damaged: which pair stands where is inferred.",
                ),
            ),
            Source(
                "perception_table_s2",
                "Social perception of faces in a vision-language model, Table S.2",
                "correlation between opposite dimensions' curves over smiling, lighting and pose, CLIP ViT-B/32",
            ),
        )
    },
)


def published(name: str) -> pl.DataFrame:
    """A table as it was printed."""
    path = files("beholder.published") / "data" / f"{SOURCES[name].name}.csv"
    return pl.read_csv(path.read_bytes())
