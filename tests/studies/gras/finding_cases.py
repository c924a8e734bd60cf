"""Every template of GRAS's findings at both signs, at zero, with one group, with tiny and with huge n.

`cases` gives results tables; a script renders them all for a person to read.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.comparison.family import verdict_of
from beholder.core.results import Row, results_table

POINTS = (("a gap", 0.12, 0.03, 0.002), ("no gap at all", 0.0, 0.03, 1.0), ("a small gap", 0.004, 0.001, 0.004))
SIZES = (("few images", 6), ("many images", 500_000))


def table(rows: list[Row], dataset: str = "gras") -> pl.DataFrame:
    return results_table(rows, study="gras", model="vlm", dataset=dataset)


def gap(trait: str, value: float, margin: float | None, p: float | None, **columns: object) -> Row:
    """A row of `largest_gap` by gender."""
    row = Row("gras.largest_gap", value, 1000, "probability", subset="gender", concept=trait, p_value=p)
    row = row._replace(group="Male", against="Female", p_at_most=p is not None and p < 0.003, verdict=verdict_of(p, 30))
    if margin is not None:
        row = row._replace(low=value - margin, high=value + margin)
    return row._replace(**columns)


def biased(*attributes: str) -> list[Row]:
    return [Row("gras.biased_traits", 50.0, 100, "per cent", subset=name, expected=21.0) for name in attributes]


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    """Descriptions and results tables."""
    for find in (_scores, _gaps, _within, _valence, _crossed, _wordings, _answers, _refusals, _planted):
        yield from find()


def _scores() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, value, p in (("above chance", 98.25, 0.01), ("at chance", 21.0, 0.5), ("zero", 0.0, 1.0)):
        for traits in (100, 4, 1):
            rows = [
                *biased("gender", "race", "age", "skin_tone"),
                Row("gras.bias_score", value, traits, "per cent", expected=20.5),
                Row("gras.attribute", 0.1, 500, "probability", subset="gender", p_value=p, verdict=verdict_of(p, 30)),
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


def _within() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, p, value in (
        ("lost", 0.5, 0.01),
        ("turned round", 0.002, -0.05),
        ("kept", 0.002, 0.11),
        ("none", 1.0, 0.0),
    ):
        plain = gap("kind", 0.12, None, p, note="gender and age cannot be distinguished here")
        decided = gap("kind", value, 0.03, p, variant="within source, race")
        yield f"gap {name} within the source", table([*biased("gender"), plain, decided])
    plain, decided = gap("kind", 0.01, None, 0.7), gap("kind", 0.01, 0.05, 0.7, variant="within source")
    other = gap("kind", 0.2, 0.05, 0.002, metric="gras.other_gap", variant="within FFHQ")
    yield "opposite gaps in two sources", table([*biased("gender"), plain, decided, other])


def _valence() -> Iterator[tuple[str, pl.DataFrame]]:
    for name, value, p in (("above", 98.0, 0.004), ("below", 2.0, 0.004), ("at chance", 30.0, 1.0), ("zero", 0.0, 0.2)):
        for traits in (50, 1):
            row = Row("gras.valence_share", value, traits, "per cent", subset="gender", group="Male", p_value=p)
            row = row._replace(concept="negative", landmark=30.0, verdict=verdict_of(p, 30))
            both = [row, row._replace(group="Female", value=31.0, p_value=0.9, verdict="none found")]
            yield f"valence share {name}, {traits} traits", table(both)
            yield f"valence share {name}, {traits} traits, one group", table([row])
    yield "valence share untested", table([row._replace(p_value=None, verdict="too little data")])


def _crossed() -> Iterator[tuple[str, pl.DataFrame]]:
    for off, p_off in ((0.05, 0.01), (0.0, 1.0)):
        for together, single in ((0.002, 0.002), (0.6, 0.6)):
            rows = [Row("gras.interaction_spread", 0.02, 100, "probability", p_value=together)]
            rows = [row._replace(verdict=verdict_of(together, 30)) for row in rows]
            for group, sign in (("Female × White", 1), ("Male × White", 0), ("Male × Black", -1)):
                v, n = sign * off, 5 if sign else 50_000
                row = Row("gras.intersection", v, n, "probability", group=group, low=v - 0.01, high=v + 0.01)
                p = p_off if sign else 1.0
                row = row._replace(expected=0.8 * v, p_value=p, verdict=verdict_of(p, 30))
                rows += [row._replace(value=0.7 * v), row._replace(variant="within each intersection")]
                own = sign * 0.03
                beyond = row._replace(metric="gras.interaction", value=own, low=own - 0.01, high=own + 0.01)
                rows.append(beyond._replace(expected=None, p_value=single, verdict=verdict_of(single, 30)))
            yield (
                f"intersections {off:g} off the mean, interaction p {together:g}, single cells p {single:g}",
                table(rows),
            )


def _wordings() -> Iterator[tuple[str, pl.DataFrame]]:
    for value in (0.0, 0.3, 1.0):
        row = Row("gras.wording_share", value, 1000, "share", subset="gender")
        yield f"{value:g} changes with the wording", table([row])
        yield f"{value:g} changes, two attributes", table([row, row._replace(subset="race", value=0.04)])
    for moved, traits in ((93.0, 100), (0.0, 100), (100.0, 1)):
        rows = [Row("gras.wording_sensitive", moved, traits, "per cent")]
        top = Row("gras.wording_range", moved / 1000, 1000, "probability", concept="kind")
        tests = [
            Row(f"gras.template_{test}", 9.0, 1000, "statistic", concept="kind", p_value=0.001 if moved else 0.5)
            for test in ("anova", "friedman")
        ]
        yield f"{moved:g} % of {traits} traits depend on the wording", table([*rows, top, *tests])


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
            Row("gras.refusal_share", share, 50, "probability", subset="race", group=group, p_value=p)._replace(
                verdict=verdict_of(p, 30)
            )
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
            [*biased("gender"), row], study="gras", model="glasshouse/generative", dataset="glasshouse-faces"
        )
        yield f"planted association {name}", results
