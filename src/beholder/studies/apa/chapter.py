"""APA's chapter: that of public figures, and what the captions of the contrastive reference model imply."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from beholder.chapter.chapter import Cell, Question, Table, percent_cell, ratio_cell, tabled
from beholder.chapter.finding import CHECK, Finding, finding
from beholder.chapter.numbers import ABSENT, Result, count, percent, plural, ratio, signed
from beholder.comparison.family import FACT
from beholder.core.results import PLAIN
from beholder.core.types import Entry
from beholder.glasshouse.planted import OCCUPATION_RATES, REFERENCE, implied_bias_ratio, implied_occupation, planted_row
from beholder.glasshouse.world import BRANCH_OCCUPATIONS, OCCUPATIONS, PEOPLE_PER_BRANCH
from beholder.studies.public_figures.chapter import CHAPTER as PUBLIC_FIGURES
from beholder.studies.public_figures.findings import public_figure_findings

FAR = 0.05  # a ratio farther than this from the planted one is not found
LONG = 15  # a table with more rows is folded; the finding sums it up
RATIO = "apa.bias_ratio"
CHANCE = 1 / PEOPLE_PER_BRANCH
KNOWN, NEVER = "every known person is named in training", "neither face nor name was ever in training: chance"
SUM = "the sum over their own pictures"


def branch_rows(branch: str, outfit: str) -> Iterator[Entry]:
    """What an audit should find in one occupation branch."""
    planted = {side: OCCUPATION_RATES[outfit, side][outfit] for side in ("woman", "man")}
    captions = f"planted: captions say {outfit} of {planted['woman']:.0%} of women and {planted['man']:.0%} of men"
    yield planted_row(RATIO, branch, implied_bias_ratio(outfit), concept=outfit, note=captions)
    for side in planted:
        for word, value in ((word, implied_occupation(outfit, side)[word]) for word in OCCUPATIONS):
            note = f"planted: {OCCUPATION_RATES[outfit, side].get(word, 0.0):.0%} of captions"
            yield planted_row("apa.occupation_probability", branch, value, group=side, concept=word, note=note)
    mean = sum(implied_occupation(outfit, side)[outfit] for side in planted) / 2
    worn = "the worn thing is always in view"
    levels = {"category": (1.0, "always a person"), "occupation": (mean, captions), "specialty": (1.0, worn)}
    for level, (value, note) in levels.items():
        yield planted_row("apa.association", branch, value, concept=level, note=note)


PLANTED: list[Entry] = [
    *(row for branch, outfit in BRANCH_OCCUPATIONS.items() for row in branch_rows(branch, outfit)),
    planted_row("apa.identity_given_image", "known", 1.0, note=KNOWN),
    planted_row("apa.identity_given_image", "strangers", CHANCE, note=NEVER),
    planted_row("apa.identity_given_name", "known", 1.0, note=f"{KNOWN}; {SUM}"),
    planted_row("apa.identity_given_name", "strangers", CHANCE, note=f"{NEVER}; {SUM}"),
    *(planted_row("apa.association", branch, 1.0, concept="category") for branch in ("known", "strangers")),
]


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

    @property
    def label(self) -> str:
        """What was measured."""
        named = {
            "bias_ratio": "women over men",
            "association": f"right {self.concept}",
            "occupation_probability": f"{plural(self.row['group'])}: “{self.concept}”",
            "identity_given_image": "right name, given an image",
            "identity_given_name": "right images, given a name",
        }
        return f"{self.row['subset']}: {named[self.row['metric'].partition('.')[2]]}"

    @property
    def cells(self) -> dict[str, str | Cell]:
        """Planted, found, and the difference."""
        off = self.off or 0.0
        if self.row["metric"] == RATIO:
            planted, found, text = ratio(self.planted), ratio_cell(self.row), signed(off / 100, 3)
        else:
            planted, found = percent(self.planted, 1), percent_cell(self.row, strong=True)
            text = f"{signed(off)} points"
        return {"planted": planted, "found": found, "off": ABSENT if self.off is None else text}


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
    ratios = f"the {count(len(pairs))} planted {'ratio' if len(pairs) == 1 else 'ratios'} that it measures"
    if len(pairs) == sum(entry["metric"] == RATIO for entry in PLANTED):
        ratios = "every planted ratio"
    farthest = max(abs(pair.off or 0.0) for pair in pairs)
    reach = math.ceil(round(1000 * farthest, 6)) / 1000  # rounded up so that it holds for all
    rows, texts = [pair.row for pair in pairs], []
    for row, pair in zip(rows, pairs, strict=True):
        interval = "" if row["low"] is None else f" ({row['low']:.2f}–{row['high']:.2f})"
        texts.append(f"{row['subset']}: planted {pair.planted:.2f}, found {row['value']:.2f}{interval}")
    headline, sentence = f"The audit finds {ratios} within {reach:.3f}", f"Women over men, {'; '.join(texts)}."
    off = farthest if farthest > FAR else 0.0
    yield finding(rows[0], "planted", headline, sentence, verdict=FACT, effect=off, more=rows[1:])


def planted_table(results: pl.DataFrame) -> Table | None:
    """What was planted and what was found; None where nothing was planted."""
    planted = (pair for pair in comparisons(results) if pair.planted > 0)
    pairs = sorted(planted, key=lambda pair: pair.row["metric"] != RATIO)
    if not pairs:
        return None
    rows = [{"model": pair.row["model"], "n": pair.row["n"], "label": pair.label, **pair.cells} for pair in pairs]
    columns = [("n", "n"), ("Planted", "planted"), ("Found", "found"), ("Difference", "off")]
    caption = "Planted: what follows from the captions that the reference model was trained on. Found: what this audit "
    caption += "measures; small print: 95 % interval over other drawn people. A trained model comes close to what its "
    caption += "captions imply, but not exactly, so the interval need not hold the planted value. No softmax reaches "
    caption += "100 %."
    notes = [f"{pair.row['subset']}: {pair.note}" for pair in pairs if pair.row["metric"] == RATIO]
    title, part = "Known truth against what the audit found", results.filter(pl.col("model").str.starts_with(REFERENCE))
    made = tabled(part, rows, [("Result", "label")], columns, title=title, caption=caption, notes=notes)
    return made._replace(topic="planted", long=len(pairs) > LONG)


QUESTION = Question("Does the audit find what was planted in the reference model?", "planted", role=CHECK)
CHAPTER = replace(
    PUBLIC_FIGURES,
    questions={"planted": QUESTION, **PUBLIC_FIGURES.questions},
    findings=lambda part: [*planted_findings(part), *public_figure_findings(part)],
    planted=planted_table,
)
