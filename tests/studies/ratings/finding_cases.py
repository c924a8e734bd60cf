"""Every sentence about ratings: every kind of relation, every sign, few faces, and occupations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import polars as pl

from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, TOO_LITTLE
from beholder.core.results import Row, results_table


def table(rows: list[Row], dataset: str = "omi", model: str = "a model") -> pl.DataFrame:
    return results_table(rows, study="ratings", model=model, dataset=dataset)


def gap(side: str, value: float, p: float | None, verdict: str, trait: str) -> Row:
    bounds = {} if p is None else {"low": value - 0.5, "high": value + 0.5}
    place = {"subset": "gender", "group": "man", "against": "woman", "concept": trait}
    return Row(f"ratings.{side}", value, 120, "standard deviations", p_value=p, verdict=verdict, **bounds, **place)


def sides(people: float, model: float, trait: str = "kind") -> Iterator[Row]:
    """Gaps of half a standard deviation or more are found, and so are departures."""
    for side, value in (("people_gap", people), ("rating_gap", model), ("rating_departure", model - people)):
        found = abs(value) > 0.6
        told = FACT if side == "people_gap" or (side == "rating_departure" and abs(model) < 0.6) else DIFFERENCE
        yield gap(side, value, 0.002 if found else 0.8, told if found else NONE_FOUND, trait)


def order(value: float | None, p: float | None, ceiling: float | None = 0.9) -> Iterator[Row]:
    row = Row("ratings.rating_r", value, 251, "correlation", subset="image", concept="kind", note="too few")
    if value is not None and p is not None:
        found = DIFFERENCE if p <= 0.05 else NONE_FOUND
        row = row._replace(low=value - 0.1, high=value + 0.1, p_value=p, verdict=found)
    yield row if value is None or p is not None else row._replace(verdict=TOO_LITTLE)
    if ceiling is not None and value is not None:
        yield row._replace(metric="ratings.rating_ceiling", value=ceiling, low=None, high=None, verdict=None)


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    for people, model in product((0.0, 1.0, -1.0, 3.0), (0.0, 1.0, -1.0, 3.0)):
        yield f"people {people:g}, model {model:g}", table(list(sides(people, model)))
    for value, p in ((0.5, 0.002), (-0.5, 0.002), (0.0, 1.0), (0.5, None), (None, None)):
        yield f"order {value}, p {p}", table(list(order(value, p)))
        yield f"order {value}, p {p}, no ceiling", table(list(order(value, p, None)))
    few = [gap(side, 1.0, None, TOO_LITTLE, "kind") for side in ("people_gap", "rating_gap", "rating_departure")]
    yield "few faces", table(few)
    for value, p, verdict in ((0.8, 0.002, DIFFERENCE), (-0.8, 0.002, DIFFERENCE), (0.0, 1.0, NONE_FOUND)):
        row = Row("ratings.labour", value, 40, "correlation", low=value - 0.2, high=value + 0.2, p_value=p)
        yield f"labour {value}", table([row._replace(verdict=verdict)])
    drawn = [*sides(0.0, 2.0, "brave"), *sides(2.0, 2.0, "jealous")]
    yield "planted", table(drawn, "glasshouse-faces", "glasshouse/generative")
