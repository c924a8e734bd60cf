"""Results that make every sentence of Perception's findings: both signs, zero, one group, tiny and huge n."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import NamedTuple

import polars as pl

from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE
from beholder.core.results import Row, results_table


class Size(NamedTuple):
    """How large a difference is, in what is measured times 0.01, and how sure."""

    name: str
    value: float
    half: float | None
    """Half the width of the interval; None for none."""
    p_value: float | None
    n: int

    @property
    def verdict(self) -> str:
        return TOO_LITTLE if self.p_value is None else DIFFERENCE if self.p_value <= 0.05 else NONE_FOUND


SIZES = (
    Size("positive", 1.5, 0.6, 0.001, 240),
    Size("negative", -1.5, 0.6, 0.001, 240),
    Size("zero", 0.0, 0.6, 1.0, 240),
    Size("tiny n", 1.5, None, None, 1),
    Size("huge n", 0.02, 0.005, 0.0002, 2_000_000),
)
UNITS = ("cosine", "P(Yes)", "match logit")


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    """A description and a results table each."""
    for size in SIZES:
        for name, rows in _by_size(size).items():
            yield f"{name}, {size.name}", _table(rows)
    for unit in UNITS[1:]:
        mass = [Row("perception.answer_mass", 0.93, 240, "probability")] if unit == "P(Yes)" else []
        yield f"variant, {unit}", _table([_plain("delta_cosine", 0.01, unit=unit), *mass])
    yield "no neutral prompt", _table([_plain("cosine", 0.21)])
    yield "one group only", _table([_plain("delta_cosine", 0.01), _one_skew()])
    yield "ratings that cannot be compared", _table([_rating("warmth", None, 3, None)])


def _table(rows: list[Row]) -> pl.DataFrame:
    return results_table(rows, study="perception", model="a model", dataset="faces")


def _quiet(size: Size) -> Size:
    """What the other differences are: nothing, and as unsure as that one."""
    return size._replace(value=0.0) if size.half is None else SIZES[2]._replace(n=size.n)


def _by_size(size: Size) -> dict[str, list[Row]]:
    return {
        "effect": [
            _sized("causal_effect", size, subset="smiling", group="4", against="0", concept="communion_neg"),
            _sized("causal_effect", size, 0.5, subset="gender", group="man", against="woman", concept="warmth"),
            _sized("causal_effect", _quiet(size), subset="lighting", group="2", against="-2", concept="warmth"),
        ],
        "interaction": _interaction(size),
        "curves of groups": _departures(size),
        "gap within the other labels": [
            _sized("gap", size, variant=variant, subset="race", group="Asian", against=against, concept="competence")
            for against, variant in (("Black", None), ("Black", "within gender"))
        ]
        + [_sized("gap", _quiet(size), subset="race", group="Asian", against="White", concept="competence")],
        "gap of two groups": [
            _sized("gap", size, subset="gender", group="Male", against="Female", concept="agency_pos")
        ],
        "default": _markedness(size),
        "ranking": _skews(size),
        "neutral prompt": _narrowing(size),
        "ratings": [
            _rating("warmth", size.value / 2, size.n, size.p_value),
            *(
                _sized(side, size, 100 * factor, subset="gender", group="Male", against="Female", concept="warmth")
                for side, factor in (("people_gap", 0.1), ("rating_gap", 1.0), ("rating_departure", 0.9))
            ),
        ],
    }


def _sized(metric: str, size: Size, factor: float = 1.0, *, landmark: float | None = None, **place: str | None) -> Row:
    """A difference of that size in cosines: × 100 it is the size."""
    value, half = factor * size.value / 100, None if size.half is None else abs(factor) * size.half / 100
    bounds = {} if half is None else {"low": value - half, "high": value + half}
    row = Row(f"perception.{metric}", value, size.n, "cosine", p_value=size.p_value, **bounds, **place)
    return row._replace(landmark=landmark, p_at_most=True if size.name == "huge n" else None, verdict=size.verdict)


def _plain(metric: str, value: float, unit: str = "cosine") -> Row:
    row = Row(f"perception.{metric}", value, 240, unit, subset="everyone", group="everyone", concept="warmth")
    return row._replace(low=value - 0.002, high=value + 0.002)


def _interaction(size: Size) -> list[Row]:
    """Both groups fall; the difference has the size's sign."""
    place = {"subset": "smiling × skin_tone", "concept": "communion_neg"}
    rises = [
        _sized("slope", Size("", value, 0.4, 0.001, size.n), group=group, **place)
        for group, value in (("2", -5.0 + size.value), ("9", -5.0))
    ]
    return [_sized("interaction", size, group="2", against="9", **place), *rises]


def _departures(size: Size) -> list[Row]:
    rows = []
    for metric, factor in (("slope", 1.0), ("curvature", -1.0)):
        for group in ("black female", "black male", "white female"):
            own = size if group == "black female" else _quiet(size)
            place = {"subset": "smiling × race × gender", "group": group, "concept": "communion_pos"}
            rows.append(_sized(metric, Size("", 2.0 + own.value, 0.5, 0.001, size.n), factor, **place))
            rows.append(_sized(f"{metric}_departure", own, factor, **place))
    return rows


def _markedness(size: Size) -> list[Row]:
    rows = []
    for group, word, share in (("Male", "male", 40 + 10 * size.value), ("Female", "female", 40.0)):
        row = Row("perception.markedness", share, size.n, "per cent", "gender", group, concept=word, expected=35.0)
        rows.append(row if size.half is None else row._replace(low=share - 4, high=share + 4))
    gap = _sized("markedness_gap", size, 1000, landmark=0.0, subset="gender", group="Male", against="Female")
    return [*rows, gap._replace(unit="per cent")]


def _skews(size: Size) -> list[Row]:
    """A pool in which Black people are a quarter: the landmark. The top has more White people by 8 times the size."""
    rows = []
    for group, sign, pool in (("White", 1.0, 0.75), ("Black", -1.0, 0.25)):
        row = _sized("skew", size, subset="race", group=group, concept="mean", template="k=100")
        share, half = pool + 0.08 * sign * size.value, 0.08 * (size.half or 0.0)
        ends = {"value": share, **({} if size.half is None else {"low": share - half, "high": share + half})}
        row = row._replace(landmark=log(2 * pool), unit="natural logarithm")
        rows.append(row._replace(**{name: log(2 * end) for name, end in ends.items()}))
        rows.append(rows[-1]._replace(concept="warmth", low=None, high=None, p_value=None, verdict=None))
    return rows


def _one_skew() -> Row:
    return Row("perception.skew", None, 40, "natural logarithm", concept="mean", note="one group only")


def _narrowing(size: Size) -> list[Row]:
    gap = _sized("gap", SIZES[0], subset="gender", group="Male", against="Female", concept="agency_pos")
    value = 1 + size.value / 2
    row = Row("perception.narrowing", value, size.n, "ratio", "race × gender", concept="groups", landmark=1.0)
    return [gap, row]


def _rating(trait: str, r: float | None, n: int, p_value: float | None) -> Row:
    row = Row("perception.rating_r", r, n, "correlation", subset="image", concept=trait, note="too few to compare")
    if r is None or p_value is None:
        return row._replace(verdict=None if r is None else TOO_LITTLE)
    verdict = DIFFERENCE if p_value <= 0.05 else NONE_FOUND
    return row._replace(low=r - 0.1, high=r + 0.1, p_value=p_value, verdict=verdict)
