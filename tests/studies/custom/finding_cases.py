"""Results tables that bring every sentence about own prompts to the page: both signs, zero, one group, few, many."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.comparison.family import verdict_of
from beholder.core.results import Row, results_table
from beholder.metrics.group_tests import EQUIVALENT, UNDECIDED
from beholder.prompts.prompt_set import ONE_LEVEL


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    """A description, and the results of one model."""
    yield "a gap is shown", _table(*_gap(0.15, 0.002))
    yield "a gap the other way round is shown", _table(*_gap(0.15, 0.002, groups=("man", "woman")))
    yield "a gap in P(yes)", _table(*_gap(0.15, 0.002, metric="custom.p_yes"))
    yield "a gap in the presence of a concept", _table(*_gap(0.15, 0.002, metric="custom.presence"))
    yield "a gap in the correct prompt", _table(*_gap(0.15, 0.002, metric="custom.association"))
    yield (
        "a gap in how often the correct prompt comes first",
        _table(*_gap(0.15, 0.002, metric="custom.association_top1")),
    )
    yield "a gap among prompts without levels", _table(*_gap(0.15, 0.002, level=ONE_LEVEL))
    yield "the p-value is the smallest that the shuffles give", _table(*_gap(0.15, 0.003, at_most=True))
    yield "no gap is shown", _table(*_gap(0.02, 0.4, width=0.1))
    yield "no gap at all", _table(*_gap(0.0, 1.0, width=0.1))
    yield "a gap within another label is shown", _table(*_within(0.15, 0.08, 0.01))
    yield "a gap is another label's doing", _table(*_within(0.15, 0.01, 0.6))
    yield "another label goes together with the groups", _table(*_gap(0.15, 0.002), *_together())
    yield "no gap is shown, and most are shown to be small", _table(*_gap(0.0, 1.0, width=0.02), *_alike())
    yield "very few people", _table(*_gap(0.5, None, width=None, n=6))
    yield "very many people, a tiny gap", _table(*_gap(0.0012, 0.001, width=0.0008, n=4_000_000))
    yield "one group only", _table(*_means(0.5, 0.5)[:1])
    yield "rises with a number", _table(_slope(0.004, 0.001))
    yield "falls with a number", _table(_slope(-0.004, 0.001))
    yield "no slope is shown", _table(_slope(0.0001, 0.9))
    yield "an intersection above", _table(_interaction(0.08, 0.01))
    yield "an intersection below", _table(_interaction(-0.08, 0.01))
    yield (
        "nine gaps, of which four are said",
        _table(*(row for k in range(9) for row in _gap(0.15 + k / 100, 0.001, concept=f"mood {k}"))),
    )


def _table(*rows: Row) -> pl.DataFrame:
    return results_table(rows, study="custom", model="clip", dataset="photos")


def _means(first: float, second: float, *, metric: str = "custom.probability", **columns: str) -> list[Row]:
    row = Row(metric, first, 40, "probability", subset="gender", group="woman", low=first - 0.03, high=first + 0.03)
    row = row._replace(**{"concept": "calm", "template": "mood", **columns})
    return [row, row._replace(value=second, group="man", low=second - 0.03, high=second + 0.03)]


def _gap(
    value: float,
    p_value: float | None,
    *,
    groups: tuple[str, str] = ("woman", "man"),
    metric: str = "custom.probability",
    level: str = "mood",
    concept: str = "calm",
    width: float | None = 0.1,
    n: int = 80,
    at_most: bool | None = None,
) -> list[Row]:
    means = _means(0.4, 0.4, metric=metric, concept=concept, template=level)
    means = [row._replace(value=0.4 + value if row.group == groups[0] else 0.4) for row in means]
    name = metric.removesuffix("probability") + "gap" if metric == "custom.probability" else f"{metric}_gap"
    row = Row(name, value, n, "probability", "gender", *groups, concept=concept, template=level, p_value=p_value)
    bounds = {} if width is None else {"low": value - width / 2, "high": value + width / 2}
    return [*means, row._replace(verdict=verdict_of(p_value, n // 2), p_at_most=at_most, **bounds)]


def _within(crude: float, value: float, p_value: float) -> list[Row]:
    *means, plain = _gap(crude, p_value)
    decided = plain._replace(value=value, low=value - 0.05, high=value + 0.05, variant="within branch")
    return [*means, plain._replace(low=None, high=None, p_value=None), decided]


def _together() -> list[Row]:
    row = Row("custom.balance", 0.8, 40, "probability", "gender", "woman", concept="branch", template="actor")
    return [row, row._replace(group="man", value=0.2), row._replace(template="judge", value=0.2)]


def _alike() -> list[Row]:
    row = Row("custom.equivalence", 0.012, 80, "probability", "gender", concept="calm", template="mood", delta=0.02)
    return [row._replace(equivalence=EQUIVALENT), row._replace(concept="tired", equivalence=UNDECIDED)]


def _slope(value: float, p_value: float) -> Row:
    row = Row("custom.slope", value, 300, "probability", "age", concept="calm", template="mood", p_value=p_value)
    return row._replace(low=value - 0.002, high=value + 0.002, verdict=verdict_of(p_value, 300))


def _interaction(value: float, p_value: float) -> Row:
    row = Row("custom.interaction", value, 12, "probability", "gender × tone", "woman × 10", concept="calm")
    bounds = {"low": value - 0.05, "high": value + 0.05}
    return row._replace(template="mood", p_value=p_value, verdict=verdict_of(p_value, 12), **bounds)
