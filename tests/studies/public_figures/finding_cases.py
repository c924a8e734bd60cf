"""Every template of a finding about public figures: both signs, none, one group, few people, very many."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.comparison.family import verdict_of
from beholder.core.results import Row, results_table

Case = tuple[str, pl.DataFrame]
POOL = "politicians"


def cases(study: str = "apa", dataset: str = "apa") -> Iterator[Case]:
    """A description, and the rows of one model."""
    for make in (_ratios, _gaps, _levels, _names, _slopes):
        for description, rows in make():
            named = [row._replace(metric=f"{study}.{row.metric}", verdict=_verdict(row)) for row in rows]
            yield description, results_table(named, study=study, model="model", dataset=dataset)


def _verdict(row: Row) -> str | None:
    """What the engine would say; of what it does not judge, nothing."""
    judged = row.metric.endswith(("bias_ratio", "either_word_ratio", "branch_ratio", "gap")) or row.landmark is not None
    few = 3 if row.low is None else 30
    return verdict_of(row.p_value, few) if judged and "without" not in row.metric else None


Rows = Iterator[tuple[str, list[Row]]]


# Women and men


def _ratio(value: float, reach: float | None, p_value: float | None, n: int = 636, pool: str = POOL) -> Row:
    low, high = (None, None) if reach is None else (value / reach, value * reach)
    return Row("bias_ratio", value, n, "ratio", subset=pool, low=low, high=high, p_value=p_value, landmark=1.0)


def _sides(women: float, men: float, n: int = 300, pool: str = POOL, words: tuple[str, str] | None = None) -> list[Row]:
    named = words or ("politician", "politician")
    return [
        Row("occupation_probability", value, n, "probability", subset=pool, group=group, concept=word)
        for group, value, word in zip(("woman", "man"), (women, men), named, strict=True)
    ]


def _ratios() -> Rows:
    yield "women get less", [_ratio(0.46, 1.2, 0.003)._replace(p_at_most=True), *_sides(0.16, 0.35)]
    yield "men get less", [_ratio(1.4, 1.1, 0.01), *_sides(0.7, 0.5)]
    yield "alike", [_ratio(1.0, 1.1, 0.9), *_sides(0.4, 0.4)]
    yield "found, but within 5 % of 1", [_ratio(1.01, 1.005, 0.001, 100_000), *_sides(0.505, 0.5, 50_000)]
    yield "a difference that could be, not found", [_ratio(0.8, 1.4, 0.08)]
    yield "two pools without a difference", [_ratio(0.9, 1.3, 0.8), _ratio(1.1, 1.3, 0.8, 109, "athletes")]
    yield "too few people", [_ratio(0.5, None, None, 6), *_sides(0.2, 0.4, 3)]
    yield "one gender only", _sides(0.2, 0.4)[:1]
    yield "without probabilities", [_ratio(0.46, 1.2, 0.003)]
    either = [
        Row("either_word_probability", v, 50, "probability", subset="actors", group=g, concept="actor or actress")
        for g, v in (("woman", 0.6), ("man", 0.8))
    ]
    published = _ratio(0.5, 1.1, 0.003, 100, "actors")
    words = _sides(0.3, 0.6, 50, "actors", ("actress", "actor"))
    less = published._replace(metric="either_word_ratio", value=0.75, low=0.68, high=0.83)
    alike = less._replace(value=1.0, low=0.9, high=1.1, p_value=0.9)
    yield "actors, either word: women get less", [published, less, *words, *either]
    same = [row._replace(value=0.7) for row in either]
    yield "actors, either word: alike, though the published measure differs", [published, alike, *words, *same]
    branches = [
        _ratio(value, 1.3, 0.01, 100)._replace(metric="branch_ratio", subset=branch, concept=POOL)
        for branch, value in (("house", 0.5), ("senate", 0.26), ("mayors", 0.45))
    ]
    without = [
        _ratio(value, 1.1, None)._replace(metric="ratio_without", concept=word)
        for word, value in (("teacher", 0.47), ("actress", 1.06))
    ]
    yield "by branch, and with an option that turns it around", [_ratio(0.46, 1.2, 0.003), *branches, *without]
    within = _ratio(0.5, 1.2, 0.003)._replace(variant="within branch")
    yield "within branches", [_ratio(0.46, None, None), within, *branches, *_sides(0.16, 0.35)]
    opposite = [branches[0]._replace(value=0.5, low=0.4, high=0.6), branches[1]._replace(value=2.0, low=1.6, high=2.5)]
    yield "opposite branches", [_ratio(1.0, 1.3, 0.9), *opposite]
    yield "men get nothing", [_ratio(1e6, None, None)._replace(low=3.0, high=1e6, p_value=0.003), *_sides(0.5, 0.0)]


def _gap(concept: str, value: float, p_value: float | None, reach: float | None = 0.02, n: int = 636) -> Row:
    low, high = (None, None) if reach is None else (value - reach, value + reach)
    row = Row("occupation_gap", value, n, "probability", subset=POOL, concept=concept, low=low, high=high)
    return row._replace(group="woman", against="man", p_value=p_value, landmark=0.0)


def _gaps() -> Rows:
    receptionist = _sides(0.12, 0.02, words=("receptionist", "receptionist"))
    yield "women get a wrong answer more", [_gap("receptionist", 0.1, 0.004), *receptionist]
    yield "men get a wrong answer more", [_gap("salesperson", -0.1, 0.01)]
    yield "several were found", [_gap(f"occupation {i}", (-1) ** i * (0.3 - 0.03 * i), 0.01) for i in range(6)]
    yield "no difference at all", [_gap("teacher", 0.0, 1.0), _gap("assistant", 0.0, 1.0)]
    yield "the widest is not found", [_gap("teacher", 0.05, 0.3, 0.08), _gap("assistant", 0.01, 0.9)]
    yield "within branches the other way round than in the pool", [_gap("receptionist", -0.05, 0.01), *receptionist]
    yield "too few people for a difference", [_gap("teacher", 0.3, None, None, 6)]
    branch = _gap("teacher", 0.3, 0.01)._replace(subset="senate", variant="within branch")
    yield "in one branch only", [_gap("teacher", 0.1, 0.3, 0.12), branch]
    yield "very many people", [_gap("teacher", 0.002, 0.001, 0.0005, 1_000_000)]


# Association


def _level(level: str, value: float, reach: float | None = 0.03, branch: str = "senate", n: int = 100) -> Row:
    low, high = (None, None) if reach is None else (value - reach, value + reach)
    place = {"subset": branch, "concept": level}
    return Row("association", value, n, "probability", low=low, high=high, chance=1 / 7, **place)


def _tested(value: float, others: float, p_value: float | None, branch: str = "athletes") -> list[Row]:
    """A specialty that differs between people: the published row, and the one that decides."""
    row = _level("specialty", value, branch=branch)._replace(landmark=others, p_value=p_value)
    return [row, row._replace(variant="within gender")]


def _levels() -> Rows:
    yield "three levels of one branch", [_level("category", 0.9), _level("occupation", 0.5), _level("specialty", 0.25)]
    yield "specialty at chance", [_level("specialty", 1 / 7)]
    yield "specialty known", [_level("specialty", 0.9)]
    yield "specialty never right", [_level("specialty", 0.0, None)]
    yield "awards no better than gender tells", _tested(0.32, 0.31, 0.4, "actors")
    yield "sports are recognised", [_level("category", 0.9), *_tested(0.3, 0.1, 0.01)]
    yield "sports, and awards not", [*_tested(0.3, 0.1, 0.01), *_tested(0.32, 0.31, 0.4, "actors")]
    few = [row._replace(low=None, high=None) for row in _tested(0.3, 0.1, None)]
    yield "too few people at every level", [_level("category", 1.0, None, n=3), *few]
    yield "very many people at every level", [_level("specialty", 0.143, 0.00005, n=10_000_000)]


# Names


def _name(value: float, p_value: float | None, *, branch: str = "senate", given: str = "image", n: int = 100) -> Row:
    row = Row(f"identity_given_{given}", value, n, "probability", subset=branch, chance=1 / n, p_value=p_value)
    return row._replace(low=value * 0.8, high=min(1.0, value * 1.2), landmark=1.5 / n)


def _names() -> Rows:
    both = [_name(0.8, 0.02), _name(0.7, 0.02, given="name")]
    yield "names are known in both directions", [each._replace(p_at_most=True) for each in both]
    yield "names are known given an image only", [_name(0.8, 0.02), _name(0.016, 0.4, given="name")]
    yield "names of some branches", [*both, _name(0.02, 0.3, branch="mayors"), _name(0.01, 1.0, branch="house", n=436)]
    yield "five branches", [_name(v, 0.01, branch=b) for b, v in (("actors", 0.9), ("house", 0.3), ("senate", 0.6))]
    yield "no more than exchanged names", [_name(0.015, 0.6), _name(0.0149, 0.7, given="name")]
    yield "less than exchanged names", [_name(0.005, 1.0)]
    yield "no belief on any right name", [_name(0.0, 1.0)._replace(low=None, high=None, landmark=0.0)]
    yield "without exchanged names", [_name(0.3, None)._replace(landmark=None)]
    yield "too few people for names", [_name(0.9, 0.3, n=3)._replace(low=None, high=None)]
    yield "very many names", [_name(0.001, 0.01, n=100_000)]


# Models


def _slope(concept: str, value: float, p_value: float, subset: str | None = None, *, pairs: bool = False) -> Row:
    metric = "scale_pairs" if pairs else "scale_parameters"
    row = Row(metric, value, 39, "per tenfold", subset=subset, concept=concept, p_value=p_value, landmark=0.0)
    return row._replace(low=value - 0.03, high=value + 0.03)


def _slopes() -> Rows:
    yield "larger models know more names", [_slope("identity_given_image", 0.1, 0.01)]
    yield "larger models know fewer names", [_slope("identity_given_name", -0.1, 0.01)]
    yield "b comes nearer to 1", [_slope("bias_ratio", -0.2, 0.01, POOL), _slope("association", 0.0, 1.0, "occupation")]
    yield "b goes away from 1 with training pairs", [_slope("bias_ratio", 0.2, 0.01, POOL, pairs=True)]
    yield "no slope was found", [_slope("bias_ratio", 0.02, 0.4, POOL), _slope("association", 0.0, 1.0, "occupation")]
