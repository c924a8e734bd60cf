"""The replication ledger: every printed number beside ours, with difference, interval and a verdict.

Ours comes from a run, or, without one, from the study's own tables wherever a printed number follows from others
(ratios from their rows, GRAS's scores from its result files), or from counting in the data.
The ledger is a results table with a few columns more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from beholder.core.results import SCHEMA as RESULTS
from beholder.models.catalog import catalog, lookup
from beholder.published.printed import MEAN, OCCUPATIONS, PLACE, POOL_RIGHT, printed_cells
from beholder.published.sizes import Size, data_sizes
from beholder.published.tables import published
from beholder.studies.gras import result_files as gras

EQUAL, WITHIN, DIFFERS, CANNOT_BE, NOT_MEASURED = (
    "equal within rounding",
    "within interval",
    "differs",
    "cannot be",
    "not measured",
)
VERDICTS = {
    EQUAL: "our value rounds to the printed one (APA: after its float16 means)",
    WITHIN: "the printed value lies in our 95 % interval",
    DIFFERS: "the printed value lies outside our interval, or there is none and it is not ours",
    CANNOT_BE: "the printed value cannot be what its table says it is; the reason stands beside it",
    NOT_MEASURED: "no value of ours to set beside it",
}
SCHEMA: dict[str, pl.DataType] = {
    **RESULTS,
    "source": pl.String(),
    "place": pl.String(),
    "printed": pl.Float64(),
    "step": pl.Float64(),
    "difference": pl.Float64(),
    "verdict": pl.String(),
    "reason": pl.String(),
    "origin": pl.String(),
}
RUN, TABLES, DATA = "run", "printed tables", "data"
HALF_PRECISION = ("apa_gender_bias", "apa_identity")
"""Tables whose figures are means in float16."""
SIZES: dict[str, dict[str | None, int]] = {
    "actors": {None: 100, "woman": 40, "man": 60},
    "athletes": {None: 109, "woman": 30, "man": 79},
    "politicians": {None: 636, "woman": 183, "man": 453},
    "house": {None: 436},
    "senate": {None: 100},
    "mayors": {None: 100},
}
"""How many people APA's and P-FI's figures are over."""


Sizes = Mapping[tuple[str, str, str], Size]


def ledger(results: pl.DataFrame | None = None, data: Path | None = None) -> pl.DataFrame:
    """Every printed cell with what stands beside it; a run on none of the printed models leaves it as it is.

    Sizes of data sets are counted in the folder of data, where one is named.
    """
    sizes = data_sizes(data) if data is not None else {}
    own = _of_run(results) if results is not None else pl.DataFrame(schema=_OWN)
    wide = own.filter(pl.col("benchmark") == "gras").height > 0
    cells = printed_cells(result_tables=wide)
    if wide:  # the 92,000 cells of the result files stand in the ledger for the models of the run only
        kept = (pl.col("source") != "gras_results") | pl.col("model").is_in(own["model"].unique().to_list())
        cells = cells.filter(kept)
    beside = pl.concat([own, _of_tables(), _of_data(sizes)], how="diagonal").unique(
        list(PLACE), keep="first", maintain_order=True
    )
    joined = cells.join(beside, on=list(PLACE), how="left", nulls_equal=True, maintain_order="left")
    joined = joined.with_columns(difference=pl.col("value") - pl.col("printed"))
    return judged(joined, sizes).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


_OWN: dict[str, pl.DataType] = {
    **{name: pl.String() for name in PLACE},
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p_value": pl.Float64(),
    "n": pl.Int64(),
    "note": pl.String(),
    "chance": pl.Float64(),
    "origin": pl.String(),
}


# What stands beside a printed number


def printed_name(model: str) -> str | None:
    """The printed name of a run's model: by its name, its hub id or what it was loaded as; None for no such model.

    >>> printed_name("openai/clip-vit-base-patch32")
    'ViT-B/32'
    """
    entry = lookup(model)
    bare = re.sub(r"@[^/]*$", "", model)
    found = entry or next((each for each in catalog() if bare in (each.load, each.source)), None)
    return found.name if found else None


def _of_run(results: pl.DataFrame) -> pl.DataFrame:
    """The rows of a run on printed models, and each p-value as a row of its own."""
    names = {model: name for model in results["model"].unique() if (name := printed_name(model))}
    # Perception's image sets spell one group in several ways: Male, male.
    lower = pl.when(pl.col("benchmark") == "perception").then(pl.col("group").str.to_lowercase()).otherwise("group")
    rows = results.filter(pl.col("model").is_in(list(names))).with_columns(
        pl.col("model").replace(names), group=lower, origin=pl.lit(RUN)
    )
    p_values = rows.filter(pl.col("p_value").is_not_null()).with_columns(
        pl.concat_str("metric", pl.lit(".p_value")).alias("metric"),
        value="p_value",
        low=pl.lit(None, pl.Float64),
        high=pl.lit(None, pl.Float64),
    )
    return pl.concat([rows, p_values]).select(pl.col(name).cast(kind) for name, kind in _OWN.items())


def _of_tables() -> pl.DataFrame:
    """What follows from the printed tables alone."""
    rows = [*_ratios("apa"), *_ratios("pfi"), *_gras_scores(), _valence_cell(), *_averages()]
    return pl.DataFrame(rows, schema=_OWN).with_columns(origin=pl.lit(TABLES))


def _ratios(benchmark: str) -> list[dict[str, object]]:
    """Each ratio from its own two rows; the bounds are what rounding to two places leaves open."""
    table = published(f"{benchmark}_gender_bias")
    if "subset" not in table.columns:
        table = table.with_columns(subset=pl.lit("politicians"))
    rows: list[dict[str, object]] = []
    for (pool, model), pair in table.group_by(["subset", "model"], maintain_order=True):
        women, men = (pair.filter(gender=gender)[POOL_RIGHT[str(pool)]].item() for gender in ("woman", "man"))
        bounds = {"low": (women - 0.005) / (men + 0.005), "high": (women + 0.005) / (men - 0.005)}
        note = f"{women:g} over {men:g}, as printed in the same table"
        place = {"benchmark": benchmark, "dataset": "apa", "metric": f"{benchmark}.bias_ratio", "subset": pool}
        rows.append({**place, "model": _catalogued(str(model)), "value": women / men, **bounds, "note": note})
    return rows


def _catalogued(name: str) -> str:
    entry = lookup(name)
    return entry.name if entry else name


def _gras_scores() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for model in gras.models():
        for metric, value in (("bias_score", gras.score(model)), ("fairness_score", 100 - gras.score(model))):
            place = {"benchmark": "gras", "model": model, "dataset": "gras", "metric": f"gras.{metric}"}
            rows.append({**place, "value": value, "n": 100, "note": "from the authors' 2,000 p-values of this model"})
    return rows


def _valence_cell() -> dict[str, object]:
    model, attribute, group, valence = "paligemma2-3b-mix-224", "age", "30-39", "negative"
    return {
        "benchmark": "gras",
        "model": model,
        "dataset": "gras",
        "metric": "gras.valence_share",
        "subset": attribute,
        "group": group,
        "concept": valence,
        "value": gras.valence_share(model, attribute, group, valence),
        "n": 50,
        "note": "from the authors' own group means",
    }


def _averages() -> list[dict[str, object]]:
    """The last row of Table S.2 from the three above it."""
    table = printed_cells().filter(source="perception_table_s2")
    cells = table.filter(metric="perception.opposites_r")
    rows: list[dict[str, object]] = []
    for (attribute,), part in cells.filter(pl.col("concept") != MEAN).group_by(["subset"], maintain_order=True):
        mean = float(np.mean(part["printed"].to_numpy()))
        place = {name: part[name][0] for name in ("benchmark", "model", "dataset", "metric")}
        bounds = {"low": mean - 0.005, "high": mean + 0.005}
        note = "mean of the three printed correlations"
        rows.append({**place, "subset": attribute, "concept": MEAN, "value": mean, **bounds, "note": note})
    return rows


# Verdicts


def _of_data(sizes: Sizes) -> pl.DataFrame:
    """Sizes counted in the data."""
    rows = [
        {
            "benchmark": benchmark,
            "dataset": dataset,
            "metric": f"{benchmark}.count",
            "concept": what,
            "value": float(size.number),
            "n": size.number,
            "note": "counted in the data",
            "origin": DATA,
        }
        for (benchmark, dataset, what), size in sizes.items()
    ]
    return pl.DataFrame(rows, schema=_OWN)


def judged(joined: pl.DataFrame, sizes: Sizes | None = None) -> pl.DataFrame:
    """A verdict for every cell, and its reason where it needs one."""
    sizes = sizes or {}
    tolerance = _tolerance(joined)
    near = (joined["difference"].abs() <= tolerance).fill_null(False)
    printed, half = joined["printed"], joined["step"] / 2
    inside = ((joined["low"] <= printed + half) & (printed - half <= joined["high"])).fill_null(False)
    partial, impossible = _partial(joined, sizes), _impossible(joined)
    from_tables = pl.Series([origin == TABLES for origin in joined["origin"]])
    known = joined["value"].is_not_null() & partial.is_null()
    verdict = (
        pl.when(known & (near | (from_tables & inside)))
        .then(pl.lit(EQUAL))
        .when(impossible.is_not_null())
        .then(pl.lit(CANNOT_BE))
        .when(~known)
        .then(pl.lit(NOT_MEASURED))
        .when(inside)
        .then(pl.lit(WITHIN))
        .otherwise(pl.lit(DIFFERS))
    )
    cells = joined.with_columns(verdict=verdict)
    said = (
        pl.when(pl.col("verdict") == CANNOT_BE)
        .then(impossible)
        .when(pl.col("verdict") == DIFFERS)
        .then(_explained(joined, sizes))
        .when(pl.col("value").is_not_null())
        .then(partial)
    )
    return cells.with_columns(reason=said)


def _explained(cells: pl.DataFrame, sizes: Sizes) -> pl.Series:
    """What may make ours differ, where the tables or the data themselves give a hint."""
    eight = {model for model, _ in over_one()}
    said: list[str | None] = []
    for row in cells.iter_rows(named=True):
        if row["origin"] == DATA:
            said.append(sizes[_counted(row)].hint)
            continue
        shares = row["metric"] in ("apa.occupation_probability", "apa.bias_ratio") and row["model"] in eight
        exchanged = row["metric"].startswith("pfi.identity_given")
        hint = "the printed shares of this model look taken over eight prompts, ours over nine" if shares else None
        hint = "Text and Image look exchanged in this table: see the other direction" if exchanged else hint
        said.append(hint if row["origin"] == RUN else None)
    return pl.Series(said, dtype=pl.String)


def _tolerance(cells: pl.DataFrame) -> pl.Series:
    """Half the last printed place, a hair for binary fractions, and what a float16 mean may move by."""
    grid = np.spacing(np.abs(cells["printed"].to_numpy()).astype(np.float16)).astype(np.float64)
    halves = cells["source"].is_in(list(HALF_PRECISION)).to_numpy()
    ratio = cells["metric"].str.ends_with("bias_ratio").to_numpy()
    moved = np.where(ratio, np.abs(cells["printed"].to_numpy()) * 2.0**-10, grid / 2)
    return pl.Series(cells["step"].to_numpy() * 0.5 * (1 + 1e-6) + np.where(halves, moved, 0.0))


def _counted(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["benchmark"], row["dataset"], row["concept"]


def _partial(cells: pl.DataFrame, sizes: Sizes) -> pl.Series:
    """Why a value does not compare: it is over other people than the printed one, or over a part of the source."""
    said: list[str | None] = []
    for row in cells.iter_rows(named=True):
        if row["origin"] == DATA:
            said.append(sizes[_counted(row)].partial)
            continue
        people: dict[str | None, int] = SIZES.get(row["subset"] or "", {})
        expected = people.get(row["group"])
        told = row["origin"] == RUN and row["benchmark"] in ("apa", "pfi") and expected and row["n"] is not None
        apart = bool(told) and abs(row["n"] - int(expected or 0)) > 1
        said.append(f"this run is over {row['n']} people, the printed value over {expected}" if apart else None)
    return pl.Series(said, dtype=pl.String)


def _impossible(cells: pl.DataFrame) -> pl.Series:
    """Why a printed value cannot be what it says, where the protocols or the tables themselves give the reason."""
    totals = over_one()
    said = [next((why for rule in RULES if (why := rule(row, totals))), None) for row in cells.iter_rows(named=True)]
    return pl.Series(said, dtype=pl.String)


Totals = dict[tuple[str, str], float]
Rule = Callable[[dict[str, object], Totals], str | None]


def over_one() -> Totals:
    """Rows of Table 5 whose shares add up to more than 100 %: `(model, gender)` and their sum."""
    table = published("apa_gender_bias").filter(pl.col("table") == 5)
    sums = table.select("model", "gender", total=pl.sum_horizontal(OCCUPATIONS))
    return {(_catalogued(m), g): total for m, g, total in sums.iter_rows() if total > 100 + 0.005 * len(OCCUPATIONS)}


def _adds_up(row: dict[str, object], totals: Totals) -> str | None:
    if (row["metric"], row["subset"]) != ("apa.occupation_probability", "actors"):
        return None
    total = totals.get((str(row["model"]), str(row["group"])))
    if total is None:
        return None
    return f"the eight shares of this row add up to {total:.1f} %: they are not the shares of one softmax"


def _no_such_rows(row: dict[str, object], totals: Totals) -> str | None:
    place = (row["metric"], row["dataset"], row["group"])
    if place in {
        ("perception.markedness", "fairface-adults", "male"),
        ("perception.markedness", "fairface-adults", "female"),
    }:
        return "the released script compares `Male` with `male`, finds no rows and writes 0"
    return None


def _other_valence(row: dict[str, object], totals: Totals) -> str | None:
    if row["source"] != "gras_valence":
        return None
    return "the authors' own group means give 14; every other cell of the printed table follows from them"


RULES: tuple[Rule, ...] = (_adds_up, _no_such_rows, _other_valence)


def counts(cells: pl.DataFrame) -> dict[str, int]:
    """Cells of each verdict, in the order of the verdicts."""
    return {verdict: int((cells["verdict"] == verdict).sum()) for verdict in VERDICTS}
