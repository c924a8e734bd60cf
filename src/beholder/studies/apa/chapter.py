"""Known truth for APA: what the captions of the contrastive reference model imply, against what an audit found.

Only the embedded reference models were taught anything. For any other model there is nothing to compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from beholder.chapter import numbers
from beholder.chapter.chapter import Cell, Question, Table, labels, names, percent_cell, ratio_cell
from beholder.chapter.finding import Finding, finding
from beholder.chapter.numbers import ABSENT, MINUS, Result, count, percent, ratio
from beholder.comparison import FACT
from beholder.core.results import PLAIN
from beholder.glasshouse.planted import OCCUPATION_RATES, REFERENCE, implied_bias_ratio, implied_occupation, planted_row
from beholder.glasshouse.world import BRANCH_OCCUPATIONS, OCCUPATIONS, PEOPLE_PER_BRANCH
from beholder.studies.public_figures.chapter import CHAPTER as PUBLIC_FIGURES
from beholder.studies.public_figures.findings import public_figure_findings

TITLE = "Known truth against what the audit found"
LONG = 15
"""A table with more rows is folded; the finding sums it up."""
RATIO = "apa.bias_ratio"


def branch_rows(branch: str, outfit: str) -> list[dict[str, Any]]:
    """What an audit should find in one occupation branch."""
    planted = {side: OCCUPATION_RATES[outfit, side][outfit] for side in ("woman", "man")}
    rows = [
        planted_row(
            "apa.occupation_probability",
            branch,
            implied_occupation(outfit, side)[word],
            group=side,
            concept=word,
            note=f"planted: {OCCUPATION_RATES[outfit, side].get(word, 0.0):.0%} of captions",
        )
        for side in planted
        for word in OCCUPATIONS
    ]
    mean = sum(implied_occupation(outfit, side)[outfit] for side in planted) / 2
    captions = f"planted: captions say {outfit} of {planted['woman']:.0%} of women and {planted['man']:.0%} of men"
    return [
        planted_row(RATIO, branch, implied_bias_ratio(outfit), concept=outfit, note=captions),
        *rows,
        planted_row("apa.association", branch, 1.0, concept="category", note="always a person"),
        planted_row("apa.association", branch, mean, concept="occupation", note=captions),
        planted_row("apa.association", branch, 1.0, concept="specialty", note="the worn thing is always in view"),
    ]


def identity_rows() -> list[dict[str, Any]]:
    """What an audit should find of names and faces."""
    chance = 1 / PEOPLE_PER_BRANCH
    known, never = ("every known person is named in training", "neither face nor name was ever in training: chance")
    return [
        planted_row("apa.identity_given_image", "known", 1.0, note=known),
        planted_row("apa.identity_given_image", "strangers", chance, note=never),
        planted_row("apa.identity_given_name", "known", 1.0, note=f"{known}; the sum over their own pictures"),
        planted_row("apa.identity_given_name", "strangers", chance, note=f"{never}; the sum over their own pictures"),
        *(planted_row("apa.association", b, 1.0, concept="category") for b in ("known", "strangers")),
    ]


PLANTED: list[dict[str, Any]] = [
    *(row for branch, outfit in BRANCH_OCCUPATIONS.items() for row in branch_rows(branch, outfit)),
    *identity_rows(),
]


def implied(metric: str, subset: str, *, group: str = "", concept: str = "") -> float | None:
    """The implied value of one row of the results table, or None where nothing is implied."""
    key = (metric, subset, group, concept)
    return next((entry["value"] for entry in PLANTED if _key(entry, entry["concept"]) == key), None)


# Against the results


class Comparison(NamedTuple):
    """One planted value and the row that measures it."""

    row: Result
    concept: str
    planted: float
    note: str

    @property
    def off(self) -> float | None:
        """Measured minus planted; None where the value is absent."""
        return None if self.row["value"] is None else self.row["value"] - self.planted


def comparisons(results: pl.DataFrame) -> list[Comparison]:
    """Every planted value that the results measure, in the order planted."""
    rows = results.filter(pl.col("dataset") == "glasshouse", pl.col("model").str.starts_with(REFERENCE), PLAIN)
    pairs = []
    for _, part in rows.group_by("model", maintain_order=True):
        measured = {_key(row, row["concept"]): row for row in part.to_dicts()}
        for entry in PLANTED:
            # The planted ratio names its occupation, the measured one names no concept.
            row = measured.get(_key(entry, entry["concept"])) or measured.get(_key(entry, None))
            if row is not None:
                pairs.append(Comparison(row, entry["concept"], entry["value"], entry["note"]))
    return pairs


def _key(row: Result, concept: str | None) -> tuple[str, ...]:
    return row["metric"], row["subset"] or "", row["group"] or "", concept or ""


def planted_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """How close the audit comes to the planted ratios."""
    pairs = [pair for pair in comparisons(part) if pair.row["metric"] == RATIO and pair.off is not None]
    if not pairs:
        return
    every = len(pairs) == sum(entry["metric"] == RATIO for entry in PLANTED)
    ratios = f"the {count(len(pairs))} planted {'ratio' if len(pairs) == 1 else 'ratios'} that it measures"
    which = "every planted ratio" if every else ratios
    headline = f"The audit finds {which} within {_reach(pairs)}"
    sentence = f"Women over men, {'; '.join(map(_both, pairs))}."
    rows = [pair.row for pair in pairs]
    yield finding(rows[0], "planted", headline, sentence, verdict=FACT, more=rows[1:])


def _reach(pairs: list[Comparison]) -> str:
    """How far the farthest result is from what was planted, rounded up so that it holds for all."""
    farthest = max(abs(pair.off or 0.0) for pair in pairs)
    return f"{math.ceil(round(1000 * farthest, 6)) / 1000:.3f}"


def _both(pair: Comparison) -> str:
    row = pair.row
    interval = "" if row["low"] is None else f" ({row['low']:.2f}–{row['high']:.2f})"
    return f"{row['subset']}: planted {pair.planted:.2f}, found {row['value']:.2f}{interval}"


def planted_table(results: pl.DataFrame) -> Table | None:
    """What was planted and what was found; None where nothing was planted."""
    pairs = [pair for pair in comparisons(results) if pair.planted > 0]
    if not pairs:
        return None
    part = results.filter(pl.col("model").str.starts_with(REFERENCE))
    ratios = [pair for pair in pairs if pair.row["metric"] == RATIO]
    return Table(
        TITLE,
        "Planted: what follows from the captions that the reference model was trained on. Found: what this audit "
        "measures; small print: 95 % interval over other drawn people. A trained model comes close to what its "
        "captions imply, but not exactly, so the interval need not hold the planted value. No softmax reaches 100 %.",
        [*labels(part, "Result"), "n", "Planted", "Found", "Difference"],
        [[*names(part, pair.row["model"], _label(pair)), *_cells(pair)] for pair in pairs],
        len(labels(part, "Result")),
        tuple(dict.fromkeys(f"{pair.row['subset']}: {pair.note}" for pair in ratios)),
        "planted",
        long=len(pairs) > LONG,
    )


def _label(pair: Comparison) -> str:
    subset, group = pair.row["subset"], pair.row["group"]
    named = {
        "bias_ratio": "women over men",
        "association": f"right {pair.concept}",
        "occupation_probability": f"{numbers.GROUPS.get(group, group)}: “{pair.concept}”",
        "identity_given_image": "right name, given an image",
        "identity_given_name": "right images, given a name",
    }
    return f"{subset}: {named[pair.row['metric'].partition('.')[2]]}"


def _cells(pair: Comparison) -> list[Cell]:
    is_ratio = pair.row["metric"] == RATIO
    planted = Cell(ratio(pair.planted) if is_ratio else percent(pair.planted, 1))
    measured = ratio_cell(pair.row) if is_ratio else percent_cell(pair.row, strong=True)
    return [Cell(str(pair.row["n"])), planted, measured, Cell(_difference(pair.off, is_ratio))]


def _difference(off: float | None, is_ratio: bool) -> str:
    if off is None:
        return ABSENT
    size = f"{abs(off):.3f}" if is_ratio else f"{100 * abs(off):.1f}"
    sign = "" if float(size) == 0 else MINUS if off < 0 else "+"
    return f"{sign}{size}" if is_ratio else f"{sign}{size} points"


def apa_findings(part: pl.DataFrame) -> list[Finding]:
    """The planted truth first, where there is one."""
    return [*planted_findings(part), *public_figure_findings(part)]


CHAPTER = replace(
    PUBLIC_FIGURES,
    questions={
        "planted": Question("Does the audit find what was planted in the reference model?", "planted"),
        **PUBLIC_FIGURES.questions,
    },
    findings=apa_findings,
    planted=planted_table,
)
