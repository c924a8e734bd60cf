"""Do the printed tables of P-FI agree with themselves and with APA's?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from beholder.studies.apa.checks import ratio_check, totals
from beholder.studies.apa.printed import PRINTED as APA
from beholder.studies.printed import Check, Printed

CLOSE = 0.005 * 7
"""By how much seven figures of two places may miss 100."""
ENDS = ("_given_name", "_given_image")
"""How the metrics of the columns Text and Image end."""


def pfi_checks(printed: Printed, ledger: pl.DataFrame) -> Iterator[Check]:
    """Every check of P-FI's two tables."""
    yield ratio_check("pfi", "Table 1", ledger)
    yield _sums(printed.cells.with_columns(model="printed_as"))
    yield _exchanged(printed.cells)


def _sums(cells: pl.DataFrame) -> Check:
    sums = totals(cells, "Table 1")
    off = {row: total for row, total in sums.items() if abs(total - 100) > CLOSE}
    listed = tuple(f"{model}, {gender}: {total:.2f} %" for (model, gender), total in off.items())
    n = len(sums)
    finding = f"{n - len(off)} of {n} rows add up to 100 %" + (", within rounding." if off else ".")
    return Check("pfi", "Table 1", "The seven shares of a row add up to 100 %", n - len(off), n, finding, listed)


def _exchanged(cells: pl.DataFrame) -> Check:
    """Given a name or given an image: P-FI and APA on the same photographs should agree column by column."""
    others = {key: scores for _, key, scores in _identity(APA.cells)}
    listed, n = [], 0
    for name, key, (text, image) in _identity(cells):
        other = others[key]
        n += 1
        if math.dist((text, image), other[::-1]) < math.dist((text, image), other):
            listed.append(
                f"{name}, {key[1]}: P-FI text {text:g} and image {image:g}, "
                f"APA text {other[0]:g} and image {other[1]:g}"
            )
    finding = (
        f"In {len(listed)} of {n} (model, branch) pairs P-FI's Text and Image lie nearer to APA's when exchanged: "
        "compare both directions with both tables."
    )
    rule = "Text and Image mean the same as in APA's Table 8"
    return Check("pfi", "Table 2", rule, n - len(listed), n, finding, tuple(listed))


def _identity(cells: pl.DataFrame) -> Iterator[tuple[str, tuple[str, str], tuple[float, float]]]:
    """Printed name, model and branch, and the scores given a name and given an image in per cent."""
    rows = cells.filter(pl.col("metric").str.contains(r"\.identity_given_")).with_columns(pl.col("printed") * 100)
    for (name, model), scores in rows.group_by("printed_as", "model", maintain_order=True):
        for (branch,), pair in scores.group_by("subset", maintain_order=True):
            text, image = (pair.row(by_predicate=pl.col("metric").str.ends_with(end), named=True) for end in ENDS)
            yield str(name), (str(model), str(branch)), (text["printed"], image["printed"])
