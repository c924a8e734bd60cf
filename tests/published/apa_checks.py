"""Do the printed tables of APA agree with themselves? P-FI, its predecessor, asks the same of its ratios."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from beholder.studies.apa.printed import SIZES
from beholder.studies.printed import EQUAL, Check, Printed

CLOSE = 0.005 * 8
"""By how much eight figures of two places may miss 100."""
BRANCHES = ("actors", "senate", "house", "mayors", "athletes")
PRINTED_PAIRS = 1_942_777
MODELS = 39

RIGHT = {
    "actors": {"woman": "actress", "man": "actor"},
    "politicians": {"woman": "politician", "man": "politician"},
    "athletes": {"woman": "athlete", "man": "athlete"},
}
"""The occupation from which a pool's ratio is taken."""

Totals = dict[tuple[str, str], float]
"""Per cent by model and gender."""


def apa_checks(printed: Printed, ledger: pl.DataFrame) -> Iterator[Check]:
    """Every check of APA's tables and text."""
    yield ratio_check("apa", "Tables 5–7", ledger)
    yield from _sums(ledger)
    yield _float16("Tables 5–7", ledger.filter(metric="apa.occupation_probability"))
    identity = ledger.filter(source="apa_identity")
    yield _float16("Table 8", identity)
    yield _two_places(identity)
    yield from _extremes(ledger.filter(metric="apa.bias_ratio"))
    yield from _text()


def ratio_check(study: str, table: str, ledger: pl.DataFrame) -> Check:
    """Whether ratios follow from the printed rows they are of."""
    ratios = ledger.filter(metric=f"{study}.bias_ratio")
    off = ratios.filter(pl.col("verdict") != EQUAL)
    listed = tuple(
        f"{row['model']}, {row['subset']}: printed {row['printed']:g}, its rows give {row['value']:.4f}"
        for row in off.to_dicts()
    )
    n = ratios.height
    finding = (
        f"All {n} (model, table) ratios follow from their rows."
        if off.is_empty()
        else f"{off.height} of {n} ratios do not follow from their rows."
    )
    rule = "The ratio b is that of its own two rows, within rounding"
    return Check(study, table, rule, n - off.height, n, finding, listed)


def totals(cells: pl.DataFrame, place: str) -> Totals:
    """What the shares of each row of a table add up to."""
    shares = cells.filter(pl.col("metric").str.ends_with(".occupation_probability"), place=place)
    sums = shares.group_by("model", "group", maintain_order=True).agg(total=(100 * pl.col("printed")).round(2).sum())
    return {(model, gender): total for model, gender, total in sums.iter_rows()}


def over_one(cells: pl.DataFrame) -> Totals:
    """Rows of Table 5 whose shares add up to more than 100 %."""
    return {row: total for row, total in totals(cells, "Table 5").items() if total > 100 + CLOSE}


def _sums(cells: pl.DataFrame) -> Iterator[Check]:
    """Shares of one softmax add up to 100, or to less where a column was dropped; never to more."""
    over = over_one(cells)
    models = {model for model, _ in over}
    finding = (
        f"{len(over)} rows add up to more than 100 %, up to {max(over.values()):.1f} %: all are of the "
        f"{len(models)} CLIP and OpenCLIP models. Their cells are not shares of one softmax."
    )
    rule = "Shares of belief in a row add up to at most 100 %"
    listed = tuple(f"{model}, {gender}: {total:.1f} %" for (model, gender), total in over.items())
    n = len(totals(cells, "Table 5"))
    yield Check("apa", "Table 5", rule, n - len(over), n, finding, listed)
    for table in ("Table 6", "Table 7"):
        yield _same_prompts(table, totals(cells, table), models)


def _same_prompts(table: str, sums: Totals, clip: set[str]) -> Check:
    """With the ninth column dropped a row should fall short of 100 by what stood there."""
    whole = [row for row, total in sums.items() if abs(total - 100) <= CLOSE]
    always = {model for model, _ in sums} - {model for model, _ in sums.keys() - set(whole)}
    short = max((100 - total for total in sums.values() if total < 100 - CLOSE), default=0.0)
    finding = (
        f"{len(whole)} of {len(sums)} rows add up to 100 % without the ninth prompt, actress; the others fall "
        f"short by up to {short:.1f} points. Both rows add up for {len(always)} models, and "
        f"{len(clip & always)} of these are the {len(clip)} that exceed 100 % in Table 5: their "
        "shares look taken over eight prompts, the others' over nine, so that the two kinds of figure do not compare."
    )
    rule = "Every model's shares are over the same prompts (eight columns always add up to 100 %, or never)"
    return Check("apa", table, rule, len(whole), len(sums), finding)


def _float16(table: str, cells: pl.DataFrame) -> Check:
    """The released scripts take means in float16: other figures were made in another way."""
    halves = np.arange(15361, dtype=np.uint16).view(np.float16).astype(np.float64)  # all float16 from 0 to 1
    grid = set(np.round(100 * halves, 2).tolist())
    side = {"apa.identity_given_image": "image", "apa.identity_given_name": "text"}
    off = [
        f"{row['model']}, {row['subset']} {row['concept'] or side[row['metric']]}: {100 * row['printed']:g}"
        for _, part in cells.group_by("model", maintain_order=True)
        for row in part.to_dicts()
        if round(100 * row["printed"], 2) not in grid
    ]
    finding = f"{len(off)} of {cells.height} figures cannot be float16 means rounded to two places"
    finding += ": they were made or printed in another way." if off else "."
    rule = "Figures are float16 means, as the released scripts take them"
    return Check("apa", table, rule, cells.height - len(off), cells.height, finding, tuple(off))


def _two_places(cells: pl.DataFrame) -> Check:
    ends_in_zero = (pl.col("printed") * 10_000).round(0).cast(pl.Int64) % 10 == 0
    shares = cells.group_by("model", maintain_order=True).agg(share=ends_in_zero.mean())
    coarse = shares.filter(pl.col("share") >= 0.8)["model"].to_list()
    finding = f"{len(coarse)} models' figures nearly all end in 0: they were rounded to one place and padded."
    n = shares.height
    return Check("apa", "Table 8", "Figures carry two places", n - len(coarse), n, finding, tuple(coarse))


TABLE_1 = {"lowest": 0.317, "most balanced": 1.008}
"""What Table 1 calls so among politicians."""


def _extremes(ratios: pl.DataFrame) -> Iterator[Check]:
    """What Table 1 and the text call the lowest, the most balanced and most ratios, against all of Tables 5–7."""
    politicians = ratios.filter(subset="politicians").with_columns(away=(pl.col("printed") - 1).abs())
    for name, column in (("lowest", "printed"), ("most balanced", "away")):
        row = politicians.sort(column, maintain_order=True).row(0, named=True)
        finding = (
            f"The {name} ratio of politicians is {TABLE_1[name]} in Table 1; Table 6 has {row['printed']} "
            f"({row['model']})."
        )
        rule = f"The {name} politicians' ratio of Table 1 is that of Table 6"
        yield Check("apa", "Table 1", rule, int(row["printed"] == TABLE_1[name]), 1, finding)
    below = {pool: int((part["printed"] < 1).sum()) for (pool,), part in ratios.group_by("subset", maintain_order=True)}
    most = [pool for pool, number in below.items() if 2 * number > MODELS]
    listing = ", ".join(f"{pool} {number} of {MODELS}" for pool, number in below.items())
    finding = f"The text has “most ratios fall below 1”. Below 1 are: {listing}."
    yield Check("apa", "text", "Most ratios of every pool lie below 1", len(most), len(below), finding)


def _text() -> Iterator[Check]:
    """What the paper's text says about its data, against the data."""
    images = SIZES["athletes"][None]
    finding = f"The text has {images} images × 6 = 600; that is {6 * images}."
    yield Check("apa", "text", "Products of images and prompts are right", 0, 1, finding)
    finding = (
        "The text words the prompt “a picture of”; the released prompts and scripts have “a photo of”, and so have we."
    )
    yield Check("apa", "text", "The prompt of the text is that of the scripts", 0, 1, finding)
    pairs = sum(SIZES[branch][None] ** 2 for branch in BRANCHES)
    finding = f"{PRINTED_PAIRS:,} identity pairs are printed; the branches' squares add up to {pairs:,}."
    yield Check("apa", "text", "The identity pairs are those of the five branches", 0, 1, finding)
    finding = "The text has 30 women and 60 men among 100 actors; the appendix and the data have 40 and 60."
    yield Check("apa", "text", "Women and men add up to the actors", 0, 1, finding)
    finding = "“14 sports” in one place; the data has 16."
    yield Check("apa", "text", "The number of sports is that of the data", 0, 1, finding)
    finding = "A row called MetaCLIP-b32-400M has the numbers of Table 7's MetaCLIP-114-400m (which is MetaCLIP-L14)."
    yield Check("apa", "Table 1", "Rows of Table 1 are those of Tables 5–7 of the same name", 0, 1, finding)


def ratios_from_rows(cells: pl.DataFrame) -> pl.DataFrame:
    """Each ratio from its own two rows; the bounds are what rounding leaves open."""
    shares = {
        (row["model"], row["subset"], row["group"], row["concept"]): row["printed"]
        for row in cells.filter(pl.col("metric").str.ends_with(".occupation_probability")).to_dicts()
    }
    half = 0.5e-4
    rows = []
    for row in cells.filter(pl.col("metric").str.ends_with(".bias_ratio")).to_dicts():
        model, pool = row["model"], row["subset"]
        women, men = (shares[model, pool, gender, RIGHT[pool][gender]] for gender in ("woman", "man"))
        rows.append(
            {
                **{name: row[name] for name in ("model", "dataset", "metric", "subset")},
                "value": women / men,
                "low": (women - half) / (men + half),
                "high": (women + half) / (men - half),
                "note": f"{100 * women:g} over {100 * men:g}, as printed in the same table",
            }
        )
    return pl.DataFrame(rows)
