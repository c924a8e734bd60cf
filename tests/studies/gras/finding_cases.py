"""Every template of GRAS's findings at both signs, at zero, with one group, with tiny and with huge n.

`cases` gives results tables; a script renders them all for a person to read.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.core.results import Row, results_table

POINTS = (("a gap", 0.12, 0.03, 0.002), ("no gap at all", 0.0, 0.03, None), ("a small gap", 0.004, 0.001, 0.004))
SIZES = (("few images", 6), ("many images", 500_000))


def table(rows: list[Row], dataset: str = "gras") -> pl.DataFrame:
    return results_table(rows, benchmark="gras", model="vlm", dataset=dataset)


def gap(trait: str, value: float, margin: float | None, p: float | None, **columns: object) -> Row:
    """A row of `largest_gap` by gender."""
    row = Row("gras.largest_gap", value, 1000, "probability", subset="gender", concept=trait, p_value=p)
    row = row._replace(group="Male", against="Female", p_at_most=p is not None and p < 0.003)
    if margin is not None:
        row = row._replace(low=value - margin, high=value + margin)
    return row._replace(**columns)


def biased(*attributes: str) -> list[Row]:
    return [Row("gras.biased_traits", 50.0, 100, "per cent", subset=name, expected=21.0) for name in attributes]


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    """Descriptions and results tables."""
    for find in (_scores, _gaps, _sources, _valence, _crossed, _wordings, _answers, _refusals, _planted):
        yield from find()


def _scores() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, value, p in (("above chance", 98.25, 0.01), ("at chance", 21.0, 0.5), ("zero", 0.0, 1.0)):
        for traits in (100, 4, 1):
            rows = [
                *biased("gender", "race", "age", "skin_tone"),
                Row("gras.bias_score", value, traits, "per cent", p_value=p, p_at_most=p == 0.01, expected=20.5),
                Row("gras.bias_score_expected", 20.5, traits, "per cent", low=14.0, high=28.0),
                Row("gras.bias_score_shown", value / 2, traits, "per cent"),
                Row("gras.bias_score_sized", value / 4, traits, "per cent"),
            ]
            yield f"score {name}, {traits} traits", table(rows)
            yield f"score {name}, {traits} traits, an attribute missing", table([*rows[:3], *rows[4:]])
    yield "score without shuffles", table([*biased("age"), Row("gras.bias_score", 30.0, 100, "per cent")])
    variant = [row._replace(variant="statement against denial") for row in rows]
    yield "a model that matches texts", table(variant)
    yield "nothing to compare", table([Row("gras.wording_range", 0.02, 3, "probability", concept="kind")])


def _gaps() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, value, margin, p in POINTS:
        for size, n in SIZES:
            yield f"{name}, {size}", table([*biased("gender"), gap("kind", value, margin, p, n=n)])
    shown, wider = gap("kind", 0.12, 0.03, 0.002), gap("cold", 0.3, 0.4, 0.4)
    yield "one gap shown of two", table([*biased("gender"), shown, gap("cold", 0.02, 0.03, 0.6)])
    yield "a wider gap is not shown", table([*biased("gender"), shown, wider])
    yield "two gaps shown", table([*biased("gender"), shown, gap("cold", 0.1, 0.03, 0.002)])
    yield "three gaps shown", table([*biased("gender"), shown, gap("a", 0.1, 0.03, 0.002), gap("b", 0.1, 0.03, 0.01)])
    yield (
        "no gap shown by two attributes",
        table([*biased("gender", "age"), wider, wider._replace(subset="age", group="60-69", against="20-29")]),
    )
    yield "equal answers within groups", table([*biased("gender"), gap("kind", 0.5, 0.0, 0.001)])
    yield "too few people", table([*biased("gender"), gap("kind", 0.5, None, None, n=4)])
    yield "drawings", table([*biased("gender"), shown], dataset="glasshouse-faces")


def _sources() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, crude, adjusted, value in (
        ("lost", 0.002, 0.5, 0.01),
        ("turned round", 0.002, 0.5, -0.02),
        ("kept", 0.002, 0.002, 0.11),
        ("only with sources", 0.5, 0.002, 0.15),
        ("neither", 0.5, 0.5, 0.0),
    ):
        first = gap("kind", 0.12, 0.03 if crude < 0.05 else 0.2, crude)
        again = gap("kind", value, 0.03, adjusted, metric="gras.adjusted_gap")
        yield f"gap {name} at the same mix of sources", table([*biased("gender"), first, again])


def _valence() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, value, p in (("above", 98.0, 0.004), ("below", 2.0, 0.004), ("at chance", 30.0, 1.0), ("zero", 0.0, 0.2)):
        for traits in (50, 1):
            row = Row("gras.valence_share", value, traits, "per cent", subset="gender", group="Male", p_value=p)
            row = row._replace(concept="negative", landmark=30.0, low=max(value - 9, 0.0), high=min(value + 9, 100.0))
            both = [row, row._replace(group="Female", value=31.0, low=20.0, high=42.0, p_value=0.9)]
            yield f"valence share {name}, {traits} traits", table(both)
            yield f"valence share {name}, {traits} traits, one group", table([row])
    yield "valence share untested", table([row._replace(p_value=None, low=None, high=None)])


def _crossed() -> Iterator[tuple[str, pl.DataFrame]]:
    for off, p_off in ((0.05, 0.01), (0.0, 1.0)):
        for together, single in ((0.002, 0.01), (0.002, 0.3), (0.6, 0.7)):
            rows = [Row("gras.interaction_spread", 0.02, 100, "probability", p_value=together)]
            for group, sign in (("Female × White", 1), ("Male × White", 0), ("Male × Black", -1)):
                v, n = sign * off, 5 if sign else 50_000
                row = Row("gras.intersection", v, n, "probability", group=group, low=v - 0.01, high=v + 0.01)
                rows.append(row._replace(expected=0.8 * v, p_value=p_off if sign else 1.0))
                own = sign * 0.03
                beyond = row._replace(metric="gras.interaction", value=own, low=own - 0.01, high=own + 0.01)
                rows.append(beyond._replace(expected=None, p_value=single))
            yield (
                f"intersections {off:g} off the mean, interaction p {together:g}, single cells p {single:g}",
                table(rows),
            )


def _wordings() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, value, low, high in (
        ("agree", 0.02, 0.0, 0.06),
        ("matter in part", 0.3, 0.2, 0.4),
        ("matter most", 0.8, 0.7, 0.9),
        ("uncertain", 0.2, 0.0, 0.7),
        ("without interval", 0.2, None, None),
    ):
        row = Row("gras.wording_share", value, 1000, "share", subset="gender", low=low, high=high)
        yield f"wordings {name}", table([row])
        yield (
            f"wordings {name}, two attributes",
            table([row, row._replace(subset="race", value=0.04, low=0.0, high=0.08)]),
        )
    for moved, low, high, traits in (
        (93.0, 90.0, 96.0, 100),
        (0.0, 0.0, 0.0, 100),
        (40.0, 0.0, 100.0, 5),
        (100.0, None, None, 1),
    ):
        rows = [Row("gras.wording_sensitive", moved, traits, "per cent", low=low, high=high)]
        top = Row(
            "gras.wording_range", moved / 1000, 1000, "probability", concept="kind", low=low and 0.02, high=high and 0.2
        )
        tests = [
            Row(f"gras.template_{test}", 9.0, 1000, "statistic", concept="kind", p_value=0.001 if moved else 0.5)
            for test in ("anova", "friedman")
        ]
        yield f"{moved:g} % of {traits} traits depend on the wording, {low}–{high}", table([*rows, top, *tests])


def _answers() -> Iterator[tuple[str, pl.DataFrame]]:
    for wordings in (1, 5):
        rows = [Row("gras.answer_mass", 0.1 + k / 100, 9, "probability", template=f"T{k}") for k in range(wordings)]
        yield f"hardly answers, {wordings} wordings", table(rows)


def _refusals() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, shares, p in (
        ("differ", {"Black": 0.4, "White": 0.1}, 0.001),
        ("alike", {"Black": 0.2, "White": 0.2}, 0.9),
        ("one group", {"Black": 0.4}, None),
        ("none", {"Black": 0.0, "White": 0.0}, None),
    ):
        rows = [
            Row("gras.refusal_share", share, 50, "probability", subset="race", group=group, p_value=p)
            for group, share in shares.items()
        ]
        yield f"refusals {name}", table(rows)


def _planted() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, higher, lower, p in (
        ("found", "woman", "man", 0.002),
        ("reversed", "man", "woman", 0.002),
        ("missed", "woman", "man", 0.4),
    ):
        row = gap("brave", 0.19, 0.02, p, group=higher, against=lower)
        results = results_table(
            [*biased("gender"), row], benchmark="gras", model="glasshouse/generative", dataset="glasshouse-faces"
        )
        yield f"planted association {name}", results
