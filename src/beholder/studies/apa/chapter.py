"""APA's chapter: that of public figures, and what the captions of the contrastive reference model imply."""

import math
from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from beholder.chapter.chapter import Column, Question, Table, percent_cell, ratio_cell, tabled
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


LABELS = {
    "bias_ratio": "women over men",
    "association": "right {word}",
    "occupation_probability": "{group}: “{word}”",
    "identity_given_image": "right name, given an image",
    "identity_given_name": "right images, given a name",
}


def comparisons(results: pl.DataFrame) -> list[Result]:
    """The rows that measure a planted value, in the order planted: with it, what it is of, and how far they are off."""
    rows = results.filter(pl.col("dataset") == "glasshouse", pl.col("model").str.starts_with(REFERENCE), PLAIN)
    made = []
    for _, part in rows.group_by("model", maintain_order=True):
        measured = {_key(row, row["concept"]): row for row in part.to_dicts()}
        for entry in PLANTED:
            # The planted ratio names its occupation, the measured one names no concept.
            if row := measured.get(_key(entry, entry["concept"])) or measured.get(_key(entry, None)):
                off = None if row["value"] is None else row["value"] - entry["value"]
                label = LABELS[row["metric"].partition(".")[2]]
                label = label.format(word=entry["concept"], group=plural(row["group"]))
                told = {"planted": entry["value"], "about": entry["note"], "label": f"{row['subset']}: {label}"}
                made.append({**row, **told, "off": off})
    return made


def _key(row: Result, concept: str | None) -> tuple[str, ...]:
    return row["metric"], row["subset"] or "", row["group"] or "", concept or ""


def planted_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """How close the audit comes to the planted ratios."""
    rows = [row for row in comparisons(part) if row["metric"] == RATIO and row["off"] is not None]
    if not rows:
        return
    ratios = f"the {count(len(rows))} planted {'ratio' if len(rows) == 1 else 'ratios'} that it measures"
    if len(rows) == sum(entry["metric"] == RATIO for entry in PLANTED):
        ratios = "every planted ratio"
    farthest = max(abs(row["off"]) for row in rows)
    reach = math.ceil(round(1000 * farthest, 6)) / 1000  # rounded up so that it holds for all
    texts = []
    for row in rows:
        interval = "" if row["low"] is None else f" ({row['low']:.2f}–{row['high']:.2f})"
        texts.append(f"{row['subset']}: planted {row['planted']:.2f}, found {row['value']:.2f}{interval}")
    headline, sentence = f"The audit finds {ratios} within {reach:.3f}", f"Women over men, {'; '.join(texts)}."
    off = farthest if farthest > FAR else 0.0
    yield finding(rows[0], "planted", headline, sentence, verdict=FACT, effect=off, more=rows[1:])


def planted_table(results: pl.DataFrame) -> Table | None:
    """What was planted and what was found; None where nothing was planted."""
    planted = (row for row in comparisons(results) if row["planted"] > 0)
    rows = sorted(planted, key=lambda row: row["metric"] != RATIO)
    if not rows:
        return None
    columns: list[Column] = [
        ("n", "n"),
        ("Planted", lambda row: ratio(row["planted"]) if row["metric"] == RATIO else percent(row["planted"], 1)),
        ("Found", lambda row: ratio_cell(row) if row["metric"] == RATIO else percent_cell(row, strong=True)),
        ("Difference", _off),
    ]
    caption = "Planted: what follows from the captions that the reference model was trained on. Found: what this audit "
    caption += "measures; small print: 95 % interval over other drawn people. A trained model comes close to what its "
    caption += "captions imply, but not exactly, so the interval need not hold the planted value. No softmax reaches "
    caption += "100 %."
    notes = [f"{row['subset']}: {row['about']}" for row in rows if row["metric"] == RATIO]
    title, part = "Known truth against what the audit found", results.filter(pl.col("model").str.starts_with(REFERENCE))
    named: Entry = {"title": title, "topic": "planted", "long": len(rows) > LONG}
    return tabled(part, rows, [("Result", "label")], columns, caption=caption, notes=notes, **named)


def _off(row: Result) -> str:
    """Measured minus planted."""
    if row["off"] is None:
        return ABSENT
    return signed(row["off"] / 100, 3) if row["metric"] == RATIO else f"{signed(row['off'])} points"


QUESTION = Question("Does the audit find what was planted in the reference model?", "planted", role=CHECK)
CHAPTER = replace(
    PUBLIC_FIGURES,
    questions={"planted": QUESTION, **PUBLIC_FIGURES.questions},
    findings=lambda part: [*planted_findings(part), *public_figure_findings(part)],
    planted=planted_table,
)
