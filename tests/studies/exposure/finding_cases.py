"""Results tables that bring every sentence about captions to the page: both signs, zero, one group, few, many."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE
from beholder.core.results import Row, results_table
from beholder.studies.exposure.measures import ADJUSTED, CRUDE, EVERYONE, RATIO, TYPICAL, UNADJUSTED


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    """A description, and the results of one set of captions or of one model."""
    yield from _named()
    yield from _ratios()
    for sign, value in (("better", 0.4), ("worse", -0.4), ("no link", 0.0)):
        yield f"known and named: {sign}", _table(_correlation(value))
    few = Row("exposure.identity_correlation", 0.9, 4, "correlation", "senate", verdict=TOO_LITTLE)
    yield "known and named: few people", _table(few)
    both = _correlation(0.1), _correlation(0.6)._replace(subset="mayors"), _correlation(0.05)
    yield "known and named: one branch", _table(*both[:2], both[2]._replace(subset=EVERYONE))
    yield "known and named: very many people", _table(_correlation(0.012, width=0.004, n=2_000_000))
    yield "gap in known names: women less", _table(*_gap(0.6, 0.95))
    yield "gap in known names: women more", _table(*_gap(1.6, 1.7))
    yield "gap in known names: none", _table(*_gap(1.0, 1.0))
    yield "gap in known names: few people", _table(*_gap(1.2, 1.1, width=None, n=8))
    pooled = [row._replace(subset=EVERYONE) for row in _gap(1.0, 1.1)]
    yield "gap in known names: one branch", _table(*pooled, *_gap(1.6, 1.7), _gap(1.0, 1.0)[0]._replace(subset="house"))


def _named() -> Iterator[tuple[str, pl.DataFrame]]:
    yield "nobody is named", _table(*_never(1.0, 1.0), *_words(0, 0))
    yield "everybody is named", _table(*_never(0.0, 0.0), *_words(12, 3))
    yield "one of very many", _table(*_never(1.0, 1 - 1e-6, n=1_000_000), *_words(2_000_000, 1, captions=10**9))
    yield "only women are in the data", _table(_never(0.5, 0.5)[0], *_words(0, 1, captions=1))


def _ratios() -> Iterator[tuple[str, pl.DataFrame]]:
    some = (("senate", 0.7, 0.02), ("mayors", 1.4, 0.03), ("house", 1.0, 1.0))
    yield "women are named less; branches differ both ways", _ratio(0.8, 0.7, 0.9, 0.001, some, crude=1.15)
    yield "men are named less; no branch is shown", _ratio(1.3, 1.1, 1.5, 0.01, (("senate", 1.3, 0.2),) * 2, crude=1.0)
    yield "alike over all branches, one branch differs", _ratio(1.0, 0.9, 1.1, 1.0, some[:1] + some[2:], crude=1.0)
    yield "the p-value is the smallest that the draws give", _ratio(0.5, 0.4, 0.6, 0.002, some, 0.5, at_most=True)
    yield "none found in any branch", _ratio(0.9, 0.8, 1.1, 0.51, some[2:] * 2, crude=0.9)
    yield "men are never named", _ratio(4.0, 1.2, 9.0, 0.001)
    yield "one branch alone", _ratio(0.7, 0.6, 0.8, 0.002)
    yield "one branch of very few", _ratio(0.4, None, None, None)
    yield "very many people, a tiny difference", _ratio(0.9991, 0.9985, 0.9996, 0.001, some, crude=1.0002)


def _ratio(
    value: float,
    low: float | None,
    high: float | None,
    p_value: float | None,
    branches: tuple[tuple[str, float, float], ...] = (),
    crude: float | None = None,
    at_most: bool | None = None,
) -> pl.DataFrame:
    pooled = EVERYONE if branches else "senate"
    row = Row(RATIO, value, 400, "ratio", pooled, concept=TYPICAL, low=low, high=high, p_value=p_value)
    rows = [row._replace(p_at_most=at_most, verdict=_verdict(p_value))]
    for subset, each, p in branches:
        low, high = (each * 0.85, each * 1.15) if p > 0.05 else (each * 0.95, each * 1.05)
        rows.append(row._replace(subset=subset, value=each, low=low, high=high, p_value=p, verdict=_verdict(p)))
    if crude:
        rows.append(row._replace(concept=CRUDE[TYPICAL], value=crude, low=None, high=None, p_value=None))
    means = [Row("exposure.captions", 3.0, 40, "captions", row.subset, group="woman") for row in rows]
    return _table(*means, *rows)


def _never(women: float, men: float, n: int = 20) -> list[Row]:
    return [
        Row(
            "exposure.never",
            value,
            n,
            "probability",
            "senate",
            group=group,
            low=0.9 * value,
            high=min(1.0, value + 0.1),
        )
        for group, value in (("woman", women), ("man", men))
    ]


def _words(actress: int, actor: int, captions: int = 9000) -> list[Row]:
    return [
        Row("exposure.category", value, captions, "captions", "occupation", group=group, concept=word)
        for word, group, value in (("actress", "woman", actress), ("actor", "man", actor))
    ]


def _verdict(p_value: float | None) -> str:
    return TOO_LITTLE if p_value is None else DIFFERENCE if p_value <= 0.05 else NONE_FOUND


def _correlation(value: float, width: float = 0.2, n: int = 400) -> Row:
    row = Row("exposure.identity_correlation", value, n, "correlation", "senate")
    p_value = 0.001 if abs(value) > width / 2 else 0.6
    return row._replace(low=value - width / 2, high=value + width / 2, p_value=p_value, verdict=_verdict(p_value))


def _gap(before: float, after: float, width: float | None = 0.1, n: int = 400) -> list[Row]:
    rows = []
    for concept, value in ((UNADJUSTED, before), (ADJUSTED, after)):
        row = Row("exposure.identity_gap", value, n, "ratio", "senate", concept=concept, verdict=TOO_LITTLE)
        if width is not None:
            p_value = 0.01 if abs(value - 1) > width / 2 else 0.7
            bounds = {"low": value - width / 2, "high": value + width / 2}
            row = row._replace(**bounds, p_value=p_value, verdict=_verdict(p_value))
        rows.append(row)
    return rows


def _table(*rows: Row) -> pl.DataFrame:
    return results_table(rows, study="exposure", model="captions.txt", dataset="apa")
