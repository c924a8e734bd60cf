"""Do the printed tables agree with themselves? Checks that need no model, each with what it found.

A check names the rule that a table's numbers must obey, counts how many do, and lists those that do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import stats

from beholder.published.ledger import EQUAL, Totals, ledger, over_one
from beholder.published.printed import MEAN, OCCUPATIONS, catalogued
from beholder.published.tables import published
from beholder.studies.gras import result_files as gras

CLOSE = 0.005 * len(OCCUPATIONS)
"""By how much eight figures of two places may miss 100."""
POINTS = {"smiling": 10, "lighting": 8, "pose": 5}
"""Values of each attribute over which Table S.2 correlates two curves."""
PAIRS = {"actors": 100, "senate": 100, "house": 436, "mayors": 100, "athletes": 109}
PRINTED_PAIRS = 1_942_777
DESIRED = {"white": 1 / 3, "black": 1 / 3, "asian": 1 / 3, "male": 1 / 2, "female": 1 / 2}


class Check(NamedTuple):
    """A rule, how many numbers obey it, and what is to be said of the others."""

    study: str
    table: str
    rule: str
    obey: int
    of: int
    finding: str
    exceptions: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every number obeys."""
        return self.obey == self.of


def consistency() -> list[Check]:
    """Every check, study by study."""
    return [check for find in CHECKS for check in find()]


# APA and P-FI


def _ratios() -> Iterator[Check]:
    cells = ledger().filter(pl.col("metric").str.ends_with("bias_ratio"))
    for study, source, table in (("apa", "apa_gender_bias", "Tables 5–7"), ("pfi", "pfi_gender_bias", "Table 1")):
        mine = cells.filter(source=source)
        off = mine.filter(pl.col("verdict") != EQUAL)
        listed = tuple(
            f"{row['model']}, {row['subset']}: printed {row['printed']:g}, its rows give {row['value']:.4f}"
            for row in off.to_dicts()
        )
        rule = "The ratio b is that of its own two rows, within rounding"
        said = (
            f"All {mine.height} (model, table) ratios follow from their rows."
            if off.is_empty()
            else (f"{off.height} of {mine.height} ratios do not follow from their rows.")
        )
        yield Check(study, table, rule, mine.height - off.height, mine.height, said, listed)


def _sums() -> Iterator[Check]:
    """Shares of one softmax add up to 100, or to less where a column was dropped; never to more."""
    table = published("apa_gender_bias").with_columns(total=pl.sum_horizontal(OCCUPATIONS))
    over = over_one()
    said = (
        f"{len(over)} rows add up to more than 100 %, up to {max(over.values()):.1f} %: all are of the "
        f"{len({model for model, _ in over})} CLIP and OpenCLIP models. Their cells are not shares of one softmax."
    )
    rule = "Shares of belief in a row add up to at most 100 %"
    rows = table.filter(pl.col("table") == 5).height
    yield Check("apa", "Table 5", rule, rows - len(over), rows, said, _totals_listed(over))
    for number in (6, 7):
        yield _whole(table.filter(pl.col("table") == number), number, {model for model, _ in over})


def _totals_listed(totals: Totals) -> tuple[str, ...]:
    return tuple(f"{model}, {gender}: {total:.1f} %" for (model, gender), total in totals.items())


def _whole(rows: pl.DataFrame, number: int, clip: set[str]) -> Check:
    """With the ninth column dropped a row should fall short of 100 by what stood there."""
    whole = rows.filter((pl.col("total") - 100).abs() <= CLOSE)
    names = {catalogued(model) for model in rows["model"]}
    always = names - {catalogued(model) for model in rows.filter((pl.col("total") - 100).abs() > CLOSE)["model"]}
    short = rows.filter(pl.col("total") < 100 - CLOSE)
    said = (
        f"{whole.height} of {rows.height} rows add up to 100 % without the ninth prompt, actress; the others fall "
        f"short by up to {_lowest(short):.1f} points. Both rows add up for {len(always)} models, and "
        f"{len(clip & always)} of these are the {len(clip)} that exceed 100 % in Table 5: their "
        "shares look taken over eight prompts, the others' over nine, so that the two kinds of figure do not compare."
    )
    offered = "Every model's shares are over the same prompts (eight columns always add up to 100 %, or never)"
    return Check("apa", f"Table {number}", offered, whole.height, rows.height, said)


def _lowest(rows: pl.DataFrame) -> float:
    return max((100 - total for total in rows["total"]), default=0.0)


def _half_grid() -> Iterator[Check]:
    """The released scripts take means in float16: other figures were made in another way."""
    halves = np.arange(15361, dtype=np.uint16).view(np.float16).astype(np.float64)  # all float16 from 0 to 1
    grid = set(np.round(100 * halves, 2).tolist())
    for name, table in (("apa_gender_bias", "Tables 5–7"), ("apa_identity", "Table 8")):
        printed = published(name)
        columns = [c for c in printed.columns if c not in ("table", "subset", "model", "gender", "ratio")]
        off = [
            f"{row['model']}, {row.get('subset', '')} {column}".replace("  ", " ").replace("_", " ")
            + f": {row[column]:g}"
            for row in printed.to_dicts()
            for column in columns
            if round(row[column], 2) not in grid
        ]
        total = printed.height * len(columns)
        said = f"{len(off)} of {total} figures cannot be float16 means rounded to two places"
        said += ": they were made or printed in another way." if off else "."
        rule = "Figures are float16 means, as the released scripts take them"
        yield Check("apa", table, rule, total - len(off), total, said, tuple(off))


def _one_place() -> Iterator[Check]:
    table = published("apa_identity")
    columns = [c for c in table.columns if c != "model"]
    coarse = [
        row["model"]
        for row in table.to_dicts()
        if sum(round(100 * row[c]) % 10 == 0 for c in columns) >= 0.8 * len(columns)
    ]
    said = f"{len(coarse)} models' figures nearly all end in 0: they were rounded to one place and padded."
    rule, n = "Figures carry two places", table.height
    yield Check("apa", "Table 8", rule, n - len(coarse), n, said, tuple(coarse))


def _exchanged() -> Iterator[Check]:
    """Given a name or given an image: P-FI and APA on the same photographs should agree column by column."""
    apa = {catalogued(row["model"]): row for row in published("apa_identity").to_dicts()}
    nearer, exchanged, listed = 0, 0, []
    for row in published("pfi_retention").to_dicts():
        other = apa[catalogued(row["model"])]
        for branch in ("house", "senate", "mayors"):
            ours = [row[f"{branch}_{side}"] for side in ("text", "image")]
            theirs = [other[f"{branch}_{side}"] for side in ("text", "image")]
            straight = math.dist(ours, theirs)
            crossed = math.dist(ours, theirs[::-1])
            nearer, exchanged = nearer + (straight <= crossed), exchanged + (crossed < straight)
            if crossed < straight:
                listed.append(
                    f"{row['model']}, {branch}: P-FI text {ours[0]:g} and image {ours[1]:g}, "
                    f"APA text {theirs[0]:g} and image {theirs[1]:g}"
                )
    total = nearer + exchanged
    said = (
        f"In {exchanged} of {total} (model, branch) pairs P-FI's Text and Image lie nearer to APA's when exchanged: "
        "compare both directions with both tables."
    )
    yield Check(
        "pfi", "Table 2", "Text and Image mean the same as in APA's Table 8", nearer, total, said, tuple(listed)
    )


def _pfi_sums() -> Iterator[Check]:
    table = published("pfi_gender_bias")
    offered = [name for name in OCCUPATIONS if name in table.columns]
    off = table.with_columns(total=pl.sum_horizontal(offered)).filter((pl.col("total") - 100).abs() > 0.005 * 7)
    listed = tuple(f"{row['model']}, {row['gender']}: {row['total']:.2f} %" for row in off.to_dicts())
    n = table.height
    said = f"{n - off.height} of {n} rows add up to 100 %" + ("." if off.is_empty() else ", within rounding.")
    yield Check("pfi", "Table 1", "The seven shares of a row add up to 100 %", n - off.height, n, said, listed)


def _texts() -> Iterator[Check]:
    """What the paper's text says of its data, against the data."""
    pairs = sum(n**2 for n in PAIRS.values())
    said = f"{PRINTED_PAIRS:,} identity pairs are printed; the branches' squares add up to {pairs:,}."
    yield Check("apa", "text", "The identity pairs are those of the five branches", 0, 1, said)
    said = "The text has 30 women and 60 men among 100 actors; the appendix and the data have 40 and 60."
    yield Check("apa", "text", "Women and men add up to the actors", 0, 1, said)
    said = "“14 sports” in one place; the data has 16."
    yield Check("apa", "text", "The number of sports is that of the data", 0, 1, said)
    said = "A row called MetaCLIP-b32-400M has the numbers of Table 7's MetaCLIP-114-400m (which is MetaCLIP-L14)."
    yield Check("apa", "Table 1", "Rows of Table 1 are those of Tables 5–7 of the same name", 0, 1, said)


# GRAS


def _gras() -> Iterator[Check]:
    table = published("gras_scores")
    exact = [abs(gras.score(model) - value) < 0.005 for model, value in table.select("model", "gras_bias_score").rows()]
    said = "The rule (any wording at p ≤ 0.05, mean over attributes) applied to the authors' p-values gives each score."
    yield Check("gras", "scores", "The score follows from the result files", sum(exact), len(exact), said)
    whole = (table["gras_bias_score"] + table["unbiased_share_as_in_the_abstract"] - 100).abs() < 0.005
    said = "The abstract prints 100 less the score, under which higher is fairer: one score with two names."
    yield Check("gras", "abstract", "The abstract's figures are the complements", int(whole.sum()), len(whole), said)
    yield _group_means()
    found = gras.valence_share("paligemma2-3b-mix-224", "age", "30-39", "negative")
    said = (
        f"paligemma2-3b-mix-224, age 30–39, negative: 22 is printed, the authors' own group means give {found:.0f}. "
        "The other cells of the printed table are not at hand; the protocol file says that they do follow."
    )
    yield Check("gras", "valence table", "Valence shares follow from the result files", 0, 1, said)


def _group_means() -> Check:
    """Groups are of equal size, so that their mean is the overall mean."""
    keys = ["model", "attribute", "trait", "template"]
    cells = gras.gras_results()
    means = cells.filter(what="group_mean").group_by(keys).agg(mean=pl.col("value").mean())
    both = cells.filter(what="overall_mean").join(means, on=keys, nulls_equal=True)
    obey = int(((both["value"] - both["mean"]).abs() < 1e-9).sum())
    rule = "Overall means are the means of the groups, which are of equal size"
    said = f"{obey:,} of {both.height:,} overall means are."
    return Check("gras", "result files", rule, obey, both.height, said)


# Perception


def _perception_s1() -> Iterator[Check]:
    table = published("perception_table_s1")
    sets = ["causalface", "fairface", "utkface"]
    value = {(row["metric"], row["category"], name): row[name] for row in table.to_dicts() for name in sets}
    zeros = [key for key, number in value.items() if key[0] == "markedness_pct" and number == 0]
    listed = tuple(f"{name}, {category}: printed 0.00" for _, category, name in zeros)
    said = "The released script compares `Male` with `male`, finds no rows and writes 0: they are unpublished."
    yield Check("perception", "Table S.1", "Markedness is of the group's own images", 15 - len(zeros), 15, said, listed)
    yield _largest_skew(value, sets)
    yield _skew_total(value, sets)


def _largest_skew(value: dict[tuple[str, str, str], float], sets: list[str]) -> Check:
    """A mean of maxima is at least the maximum of the means."""
    of = {"gender": ("male", "female"), "race": ("white", "black", "asian")}
    low = [
        f"{name}, {attribute}"
        for name in sets
        for attribute, groups in of.items()
        if value["maxskew_at_1000", attribute, name] < max(value["skew_at_1000", g, name] for g in groups) - 0.01
    ]
    said = f"{6 - len(low)} of 6 MaxSkews are at least the largest Skew of their groups, as means of maxima must be."
    return Check("perception", "Table S.1", "MaxSkew is at least the largest Skew", 6 - len(low), 6, said, tuple(low))


def _skew_total(value: dict[tuple[str, str, str], float], sets: list[str]) -> Check:
    """Shares add up to 1, and the exponential of a mean log is at most the mean."""
    over = []
    for name in sets:
        for groups in (("male", "female"), ("white", "black", "asian")):
            total = sum(DESIRED[g] * math.exp(value["skew_at_1000", g, name]) for g in groups)
            if total > 1 + 0.005 * 1.4:  # each Skew is rounded to two places
                over.append(f"{name}, {groups[0]} …: {total:.3f}")
    rule = "The shares that the Skews stand for add up to at most 1"
    return Check("perception", "Table S.1", rule, 6 - len(over), 6, f"{6 - len(over)} of 6 do.", tuple(over))


def _perception_s2() -> Iterator[Check]:
    table = published("perception_table_s2").filter(pl.col("dimensions") != "average")
    off = []
    for row in table.to_dicts():
        for attribute, points in POINTS.items():
            r, printed = float(row[f"{attribute}_r"]), row[f"{attribute}_p"]
            low, high = sorted(_correlation_p(x, points) for x in (abs(r) - 0.005, abs(r) + 0.005))
            fits = low < 0.01 if printed.startswith("<") else low - 0.005 <= float(printed) <= high + 0.005
            if not fits:
                off.append(f"{row['dimensions']}, {attribute}: r = {r:g} over {points} points, p printed as {printed}")
    rule, n = "p is that of r over the attribute's values", table.height * len(POINTS)
    said = f"{n - len(off)} of {n} p-values follow from their r and the number of values."
    yield Check("perception", "Table S.2", rule, n - len(off), n, said, tuple(off))
    averages = ledger().filter((pl.col("source") == "perception_table_s2") & (pl.col("concept") == MEAN))
    obey = int((averages["verdict"] == EQUAL).sum())
    rule, said = "The last row is the mean of the three above", f"{obey} of {averages.height} averages are."
    yield Check("perception", "Table S.2", rule, obey, averages.height, said)


def _correlation_p(r: float, points: int) -> float:
    """Two-sided p of a Pearson correlation."""
    r = min(r, 1 - 1e-12)
    statistic = r * math.sqrt((points - 2) / (1 - r**2))
    return float(2 * stats.t.sf(statistic, points - 2))


CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (
    _ratios,
    _sums,
    _half_grid,
    _one_place,
    _texts,
    _pfi_sums,
    _exchanged,
    _gras,
    _perception_s1,
    _perception_s2,
)
