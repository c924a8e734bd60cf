"""Every sentence about pairs: at both signs, at zero, of few scenes and of many, and of tables of occupations."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.comparison.family import verdict_of
from beholder.core.results import Row, results_table

SIZES = (
    ("positive", 0.12, 0.05, 0.002, 47),
    ("negative", -0.12, 0.05, 0.002, 47),
    ("zero", 0.0, 0.05, 1.0, 47),
    ("small", 0.004, 0.001, 0.01, 2000),
    ("few", 0.3, None, None, 4),
)


def table(rows: list[Row], dataset: str = "pairs", model: str = "a model") -> pl.DataFrame:
    return results_table(rows, study="pairs", model=model, dataset=dataset)


def row(metric: str, value: float, half: float | None, p: float | None, n: int, **place: str | None) -> Row:
    made = Row(f"pairs.{metric}", value, n, "probability", p_value=p, verdict=verdict_of(p, n), **place)
    return made if half is None else made._replace(low=value - half, high=value + half)


def gaps(value: float, half: float | None, p: float | None, n: int, **place: str | None) -> Iterator[Row]:
    both = {"group": "man", "against": "woman"}
    for metric, mean in (("gap", "choice"), ("unclear_gap", "unclear")):
        yield row(metric, value, half, p, n, subset="gender", **both, **place)
        for group, share in (("man", 0.5 + value / 2), ("woman", 0.5 - value / 2)):
            yield Row(f"pairs.{mean}", share, 2 * n, "probability", subset="gender", group=group, **place)
    crossed = {"group": "man × Black", "against": "woman × White"}
    yield row("interaction", value, half, p, n, subset="gender × race", **crossed, **place)


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, *size in SIZES:
        yield f"all scenes, {name}", table(list(gaps(*size)))
        yield f"crime, {name}", table(list(gaps(*size, template="potential_crime")))
        yield f"a question, {name}", table(list(gaps(*size, template="status", concept="wealthy rather than poor")))
        yield f"own pairs, {name}", table(list(gaps(*size)), "folder:mine")
        value, half, p, n = size
        yield f"tables, {name}", table(list(occupations(value, half, p, n)), "genderbias-vl")
    drawn = [gap for part in ("doctors", "judges") for gap in gaps(*SIZES[0][1:], template=part)]
    yield "planted", table(drawn, "glasshouse-pairs", "glasshouse/contrastive")


def occupations(value: float, half: float | None, p: float | None, n: int) -> Iterator[Row]:
    yield row("mean_size", 2 + value, None, p, n)._replace(unit="points", expected=1.9)
    yield Row("pairs.largest", 9.0, n, "points")
    yield row("signed", value, half, p, n)._replace(unit="points")
    yield row("labour", value, half, p, n)._replace(unit="correlation")
