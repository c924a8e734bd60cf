"""Every printed number of the five studies as one table of cells: who, what, how much, to how many places, where.

A cell's place is spelled as a row of our results table spells it, so that a run's rows find their printed neighbour;
`printed` is in our unit, `step` is the unit of the last printed place.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl

from beholder.models.catalog import lookup
from beholder.published.tables import published
from beholder.studies.gras.result_files import gras_results

PLACE = ("benchmark", "model", "dataset", "metric", "subset", "group", "concept", "template")
SCHEMA: dict[str, pl.DataType] = {
    "source": pl.String(),
    "place": pl.String(),
    **{name: pl.String() for name in PLACE},
    "printed": pl.Float64(),
    "step": pl.Float64(),
    "unit": pl.String(),
}
OCCUPATIONS = ("scientist", "politician", "athlete", "teacher", "receptionist", "assistant", "salesperson", "actor")
POOL_RIGHT = {"actors": "actor", "politicians": "politician", "athletes": "athlete"}
"""The column from which a pool's ratio is taken."""
GIVEN = {"image": "identity_given_image", "text": "identity_given_name"}
S1 = {
    "markedness_pct": ("perception.markedness", 1.0, "per cent"),
    "mean_cosine_pct": ("perception.mean_cosine", 100.0, "cosine"),
    "sc_weat": ("perception.sc_weat", 1.0, "standard deviations"),
    "skew_at_1000": ("perception.skew", 1.0, "natural logarithm"),
    "maxskew_at_1000": ("perception.max_skew", 1.0, "natural logarithm"),
    "ndkl": ("perception.ndkl", 1.0, "nats"),
}
"""Rows of Table S.1: our metric, by what the printed figure is divided, our unit."""
SC_WEAT_PAIRS = {
    "row1_label_white-black": "white over black",
    "row2": "asian over black",
    "row3": "asian over white",
    "row4": "male over female",
}
"""Rows of a damaged header, by the order of the surrounding text: inferred."""
RACES = ("white", "black", "asian")
IMAGE_SETS = {"causalface": "causalface", "fairface": "fairface-adults", "utkface": "utkface-adults"}
"""The study's image sets, and our names of them."""
OPPOSITES = {"A+/A-": "agency", "BP/BC": "belief", "C+/C-": "communion"}
TOP, MEAN = "k=1000", "mean"
"""As our rows say it: over the first thousand, a mean over words or dimensions."""
COUNTS = (
    ("disparity", "visual-genome", "images", 25215, "images with terms of exactly one gender"),
    ("disparity", "visual-genome", "concepts", 408, "concepts in at least 50 images of each group"),
    ("disparity", "coco", "images", 1412, "images with words of exactly one gender"),
    ("disparity", "coco", "concepts", 76, "concepts in at least 100 training images"),
    ("perception", "fairface-adults", "images", 38744, "training part, three races, ages from 20"),
    ("perception", "utkface-adults", "images", 14630, "three races, ages from 20"),
)
"""Sizes that two papers print of their data."""


@cache
def printed_cells(*, result_tables: bool = False) -> pl.DataFrame:
    """Every cell; with `result_tables` also GRAS's 92,000 of group means, statistics and p-values."""
    parts = [_apa_bias(), _apa_identity(), _pfi_bias(), _pfi_retention(), _gras_scores(), _gras_valence()]
    parts += [_perception_s1(), _perception_s2(), _disparity(), _counts()]
    parts += [_gras_results()] if result_tables else []
    return pl.concat([part.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items()) for part in parts])


def catalogued(name: str) -> str:
    """A printed name as the catalogue spells it: one model has several names in the papers."""
    entry = lookup(name)
    return entry.name if entry else name


def _cells(table: pl.DataFrame, **constant: str | None) -> pl.DataFrame:
    """Cells with what all of them share; what is not said is absent."""
    absent = [name for name in SCHEMA if name not in table.columns and name not in constant]
    said = {**constant, **dict.fromkeys(absent)}
    return table.with_columns(**{name: pl.lit(value, pl.String) for name, value in said.items()})


def _named(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("model").map_elements(catalogued, pl.String))


# APA and P-FI


def _apa_bias() -> pl.DataFrame:
    table = published("apa_gender_bias").with_columns(place=pl.format("Table {}", "table"))
    return _bias_cells(table, "apa", ratio_step=0.001)


def _pfi_bias() -> pl.DataFrame:
    table = published("pfi_gender_bias").with_columns(place=pl.lit("Table 1"), subset=pl.lit("politicians"))
    return _bias_cells(table, "pfi", ratio_step=0.0001)


def _bias_cells(table: pl.DataFrame, benchmark: str, *, ratio_step: float) -> pl.DataFrame:
    """Occupation by occupation for women and men, then one ratio a model and pool."""
    table, source = _named(table), f"{benchmark}_gender_bias"
    offered = [name for name in OCCUPATIONS if name in table.columns]
    shares = table.rename({"gender": "group"}).unpivot(
        offered, index=["place", "subset", "model", "group"], variable_name="concept", value_name="printed"
    )
    actress = (pl.col("subset") == "actors") & (pl.col("group") == "woman") & (pl.col("concept") == "actor")
    shares = shares.with_columns(
        pl.col("printed") / 100,
        concept=pl.when(actress).then(pl.lit("actress")).otherwise("concept"),
        step=pl.lit(1e-4),
        metric=pl.lit(f"{benchmark}.occupation_probability"),
        unit=pl.lit("probability"),
    )
    ratios = table.filter(gender="woman").select(
        "place",
        "subset",
        "model",
        printed="ratio",
        step=pl.lit(ratio_step),
        unit=pl.lit("ratio"),
        metric=pl.lit(f"{benchmark}.bias_ratio"),
    )
    both = pl.concat([shares, ratios], how="diagonal")
    return _cells(both, benchmark=benchmark, dataset="apa", source=source)


def _apa_identity() -> pl.DataFrame:
    return _identity_cells("apa_identity", "apa", "Table 8")


def _pfi_retention() -> pl.DataFrame:
    return _identity_cells("pfi_retention", "pfi", "Table 2")


def _identity_cells(source: str, benchmark: str, place: str) -> pl.DataFrame:
    table = _named(published(source))
    columns = [name for name in table.columns if name != "model"]
    coarse = pl.sum_horizontal(_ends_in_zero(pl.col(name)) for name in columns) >= 0.8 * len(columns)
    table = table.with_columns(coarse=coarse)
    long = table.unpivot(columns, index=["model", "coarse"], variable_name="column", value_name="printed")
    parts = pl.col("column").str.split("_").list
    # Models nearly all of whose figures end in 0 were printed to one place.
    one_place = pl.col("coarse") & _ends_in_zero(pl.col("printed"))
    return _cells(
        long.select(
            "model",
            printed=pl.col("printed") / 100,
            step=pl.when(one_place).then(1e-3).otherwise(1e-4),
            subset=parts.get(0),
            metric=pl.concat_str(pl.lit(f"{benchmark}."), parts.get(1).replace_strict(GIVEN)),
        ),
        benchmark=benchmark,
        dataset="apa",
        source=source,
        place=place,
        unit="probability",
    )


def _ends_in_zero(percent: pl.Expr) -> pl.Expr:
    return (percent * 100).round(0).cast(pl.Int64) % 10 == 0


# GRAS


def _gras_scores() -> pl.DataFrame:
    table = _named(published("gras_scores"))
    names = {"gras_bias_score": "bias_score", "unbiased_share_as_in_the_abstract": "fairness_score"}
    long = table.unpivot(list(names), index="model", variable_name="column", value_name="printed")
    where = {"gras_bias_score": "text", "unbiased_share_as_in_the_abstract": "abstract"}
    return _cells(
        long.select(
            "model",
            "printed",
            step=pl.lit(0.01),
            place=pl.col("column").replace_strict(where),
            metric=pl.concat_str(pl.lit("gras."), pl.col("column").replace_strict(names)),
        ),
        benchmark="gras",
        dataset="gras",
        source="gras_scores",
        unit="per cent",
    )


def _gras_valence() -> pl.DataFrame:
    """The one cell of the printed valence table that is at hand, which is the one that deviates."""
    cell = {"model": ["paligemma2-3b-mix-224"], "printed": [22.0], "step": [1.0]}
    return _cells(
        pl.DataFrame(cell),
        benchmark="gras",
        dataset="gras",
        source="gras_valence",
        place="valence table",
        metric="gras.valence_share",
        subset="age",
        group="30-39",
        concept="negative",
        unit="per cent",
    )


def _gras_results() -> pl.DataFrame:
    """Their result files; a p-value stands under its statistic's metric, with `.p_value` behind."""
    metric = {
        "statistic": "gras.welch",
        "p_value": "gras.welch.p_value",
        "template_anova_p": "gras.template_anova.p_value",
        "template_friedman_p": "gras.template_friedman.p_value",
    }
    table = gras_results()
    named = pl.col("what").replace_strict(metric, default=pl.concat_str(pl.lit("gras."), pl.col("what")))
    magnitude = pl.col("value").abs().clip(lower_bound=1e-300)
    return _cells(
        table.select(
            "model",
            "group",
            "template",
            subset="attribute",
            concept="trait",
            printed="value",
            metric=named,
            step=magnitude * 1e-12,
            place=pl.concat_str(
                pl.lit("result file, "), pl.col("attribute").fill_null("wordings").str.replace("_", " ")
            ),
        ),
        benchmark="gras",
        dataset="gras",
        source="gras_results",
    )


# Perception and disparity


def _perception_s1() -> pl.DataFrame:
    """Groups in small letters, as the ledger reads a run's."""
    long = published("perception_table_s1").unpivot(
        list(IMAGE_SETS), index=["metric", "category"], variable_name="dataset", value_name="printed"
    )
    what, category = pl.col("metric"), pl.col("category").replace(SC_WEAT_PAIRS)
    divided = what.replace_strict({name: by for name, (_, by, _) in S1.items()})
    whole = what.is_in(["maxskew_at_1000", "ndkl"])
    races = category.str.split(" over ").list.first().is_in(RACES)
    attribute = pl.when(whole).then(category).when(races).then(pl.lit("race")).otherwise(pl.lit("gender"))
    averaged = what.is_in(["sc_weat", "skew_at_1000", "maxskew_at_1000", "ndkl"])
    return _cells(
        long.select(
            pl.col("dataset").replace(IMAGE_SETS),
            printed=pl.col("printed") / divided,
            step=0.01 / divided,
            metric=what.replace_strict({name: ours for name, (ours, _, _) in S1.items()}),
            unit=what.replace_strict({name: unit for name, (_, _, unit) in S1.items()}),
            subset=attribute,
            group=pl.when(~whole).then(category),
            concept=pl.when(averaged).then(pl.lit(MEAN)).when(what == "markedness_pct").then(category),
            template=pl.when(what.is_in(["skew_at_1000", "maxskew_at_1000"])).then(pl.lit(TOP)),
        ),
        benchmark="perception",
        model="ViT-B/32",
        source="perception_table_s1",
        place="Table S.1",
    )


def _perception_s2() -> pl.DataFrame:
    """Correlations between opposite dimensions' curves; their p-values only where a figure is printed."""
    table = published("perception_table_s2")
    long = table.unpivot(
        [name for name in table.columns if name != "dimensions"],
        index="dimensions",
        variable_name="column",
        value_name="text",
    )
    parts, scale = (pl.col("column").str.split("_").list, pl.col("dimensions").replace_strict(OPPOSITES, default=None))
    cells = long.select(
        printed=pl.col("text").cast(pl.Float64, strict=False),
        step=pl.lit(0.01),
        subset=parts.get(0),
        group=pl.format("{}_pos with {}_neg", scale, scale),
        concept=pl.format("{}_pos", scale).fill_null(MEAN),
        metric=pl.concat_str(pl.lit("perception.opposites_r"), parts.get(1).replace_strict({"r": "", "p": ".p_value"})),
    ).drop_nulls("printed")
    return _cells(
        cells,
        benchmark="perception",
        model="ViT-B/32",
        dataset="causalface",
        source="perception_table_s2",
        place="Table S.2",
        unit="correlation",
    )


def _disparity() -> pl.DataFrame:
    agreement = {"model": ["ViT-B/32", "Detic"], "printed": [20.0, 15.0], "step": [1.0, 1.0]}
    return _cells(
        pl.DataFrame(agreement),
        benchmark="disparity",
        dataset="visual-genome",
        source="disparity_text",
        place="text",
        metric="disparity.agreement_count",
        subset="coco",
        group="green",
        unit="concepts",
    )


def _counts() -> pl.DataFrame:
    benchmark, dataset, concept, printed, _ = zip(*COUNTS, strict=True)
    table = {"benchmark": benchmark, "dataset": dataset, "concept": concept, "printed": np.array(printed, float)}
    table |= {"metric": [f"{name}.count" for name in benchmark], "source": [f"{name}_text" for name in benchmark]}
    return _cells(pl.DataFrame(table).with_columns(step=pl.lit(1.0)), place="text", unit="count")
