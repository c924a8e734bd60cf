"""Do the printed tables of P-FI agree with themselves and with APA's?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl
from apa_checks import ratio_check, totals

from beholder.studies.apa.printed import PRINTED as APA
from beholder.studies.apa.printed import SIZES
from beholder.studies.printed import Check, Printed

CLOSE = 0.005 * 7
"""By how much seven figures of two places may miss 100."""
ENDS = ("_given_image", "_given_name")
"""How the metrics of P-FI's columns Text and Image end, as the caption of its Table 2 defines them."""
LISTED_MODELS = 16
"""Models that P-FI's text lists."""


def pfi_checks(printed: Printed, ledger: pl.DataFrame) -> Iterator[Check]:
    """Every check of P-FI's two tables."""
    yield ratio_check("pfi", "Table 1", ledger)
    yield _sums(printed.cells.with_columns(model="printed_as"))
    yield _directions(printed.cells)
    yield from _text(printed)


def _sums(cells: pl.DataFrame) -> Check:
    sums = totals(cells, "Table 1")
    off = {row: total for row, total in sums.items() if abs(total - 100) > CLOSE}
    listed = tuple(f"{model}, {gender}: {total:.2f} %" for (model, gender), total in off.items())
    n = len(sums)
    finding = f"{n - len(off)} of {n} rows add up to 100 %" + (", within rounding." if off else ".")
    return Check("pfi", "Table 1", "The seven shares of a row add up to 100 %", n - len(off), n, finding, listed)


def _directions(cells: pl.DataFrame) -> Check:
    """Given an image or given a name: P-FI and APA on the same photographs should agree column by column."""
    others = {key: scores for _, key, scores in _identity(APA.cells)}
    listed, n = [], 0
    for name, key, (given_image, given_name) in _identity(cells):
        other = others[key]
        n += 1
        if math.dist((given_image, given_name), other[::-1]) <= math.dist((given_image, given_name), other):
            listed.append(
                f"{name}, {key[1]}: P-FI {given_image:g} given an image and {given_name:g} given a name, "
                f"APA {other[0]:g} and {other[1]:g}"
            )
    finding = (
        "The caption defines Text Score as identifying the unique name, which is APA's Image Score; the body text "
        f"reads the other way. As the caption has it, {n - len(listed)} of {n} (model, branch) pairs lie nearer to "
        "APA's than exchanged."
    )
    rule = "Text and Image, as the caption defines them, agree with APA's Table 8 of the same direction"
    return Check("pfi", "Table 2", rule, n - len(listed), n, finding, tuple(listed))


def _text(printed: Printed) -> Iterator[Check]:
    """What the paper's text says, against its data and tables."""
    actors, athletes = (SIZES[branch][None] for branch in ("actors", "athletes"))
    finding = f"The text has “109 actors, and 100 athletes”; the data has {actors} actors and {athletes} athletes."
    yield Check("pfi", "text", "The numbers of actors and athletes are those of the data", 0, 1, finding)
    models = printed.cells["model"].drop_nulls().n_unique()
    finding = f"The text lists {LISTED_MODELS} models; the tables print figures of {models}."
    yield Check("pfi", "text", "Every listed model has printed figures", models, LISTED_MODELS, finding)


def _identity(cells: pl.DataFrame) -> Iterator[tuple[str, tuple[str, str], tuple[float, float]]]:
    """Printed name, model and branch, and the scores given an image and given a name in per cent."""
    rows = cells.filter(pl.col("metric").str.contains(r"\.identity_given_")).with_columns(pl.col("printed") * 100)
    for (name, model), scores in rows.group_by("printed_as", "model", maintain_order=True):
        for (branch,), pair in scores.group_by("subset", maintain_order=True):
            image, name_given = (pair.row(by_predicate=pl.col("metric").str.ends_with(end), named=True) for end in ENDS)
            yield str(name), (str(model), str(branch)), (image["printed"], name_given["printed"])
