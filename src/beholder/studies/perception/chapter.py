"""Perception's chapter of the report: first what can be said in a sentence, since a run has thousands of rows."""

from __future__ import annotations

import polars as pl

from beholder.chapter.chapter import Cell, Chapter, Question, Table
from beholder.chapter.numbers import Result
from beholder.chapter.queries import metric_rows
from beholder.datasets.glasshouse import DESIGN_NAME
from beholder.glasshouse.planted import WARM_RATES, implied_warmth, planted_row
from beholder.studies.perception import phrases, queries
from beholder.studies.perception.charts import perception_figures
from beholder.studies.perception.findings import perception_findings
from beholder.studies.perception.tables import perception_published, perception_tables

REFERENCE = "glasshouse/contrastive"
PLANTED = {"warmth": "more", "communion_pos": "more", "communion_neg": "less"}
"""What an open smile adds, by dimension; in all other dimensions nothing was planted."""
NOTHING = "nothing"


def perception_planted(part: pl.DataFrame) -> Table | None:
    """The planted and the measured effect of smiling on each dimension, and how many other effects are found."""
    reference = part.filter((pl.col("model") == REFERENCE) & (pl.col("dataset") == DESIGN_NAME))
    effects = metric_rows(reference, "causal_effect")
    smiling = effects.filter(pl.col("subset") == "smiling").to_dicts()
    if not smiling:
        return None
    others = [row for row in effects.to_dicts() if row["subset"] != "smiling"]
    called = [row for row in others if queries.found(row)]
    largest = max((abs(row["value"]) for row in others), default=0.0)
    caption = (
        f"The effect of an open smile (4 against 0), {phrases.unit(smiling[0])}; small print: interval over "
        "identities. The reference model's captions use warm words for people who smile, cold words for people who do "
        "not, and all other words for everybody alike."
    )
    note = (
        f"No effect of gender, skin tone, age, light or pose was planted; {len(called)} of their {len(others)} "
        f"effects are found, and the largest is {100 * largest:.2f}: a trained model is not "
        "exactly what its captions imply."
    )
    title, header = "Known truth against what the audit found", ["Dimension", "Planted", "Found", "Verdict"]
    return Table(title, caption, header, [_cells(row) for row in smiling], 1, (note,), "planted")


def _cells(row: Result) -> list[Cell]:
    planted = PLANTED.get(row["concept"], NOTHING)
    measured = NOTHING if not queries.found(row) else "more" if row["value"] > 0 else "less"
    return [
        Cell(phrases.dimension(row["concept"])),
        Cell(planted),
        Cell(phrases.signed(row), phrases.bounds(row), strong=planted != NOTHING),
        Cell("as planted" if measured == planted else "found, not planted" if planted == NOTHING else "not found"),
    ]


# Values for the model card and its tests

NOTE = "softmax of a warm word against a cold one; planted: the same rate of warm captions"
SHARES = [
    planted_row("perception.warm_against_cold", "smiling", implied_warmth(k), group=str(k), concept="Warmth", note=NOTE)
    for k in WARM_RATES
]
SIGNS = [
    planted_row("perception.slope_sign", "smiling", sign, concept=concept, note="the sign is what is planted")
    for concept, sign in (("Warmth", 1.0), ("Communion +", 1.0), ("Communion -", -1.0), ("Competence", 0.0))
]
WARMTH = [*SHARES, *SIGNS]
"""What the captions imply for smiling and warmth."""


# Perception's chapter of the report

TOPICS = {
    "judgements": "How groups are judged",
    "effects": "What changes the judgement",
    "curves": "Judgements over age and smiling",
    "ranking": "Who comes first, and who is the default",
    "neutral": "The neutral prompt",
    "confounds": "What else may explain the judgement",
    "ratings": "Compared with people's ratings",
}
QUESTIONS = {
    "variant": Question("Is this the published measure?", "judgements"),
    "effect": Question("Which attribute changes the judgement when all else stays the same?", "effects"),
    "interaction": Question("Does an attribute have the same effect on every group?", "effects"),
    "stand_out": Question("Does the curve of one group stand out from those of the others?", "curves"),
    "gap": Question("How differently does the model judge groups of photographs?", "judgements"),
    "markedness": Question("Which group does the model treat as the default?", "ranking"),
    "ranking": Question("Which group comes first in the model's rankings?", "ranking"),
    "neutral": Question("What changes when the neutral prompt is subtracted?", "neutral"),
    "ratings": Question("Does the model put faces in the same order as people do?", "ratings"),
}

CHAPTER = Chapter(
    topics=TOPICS,
    questions=QUESTIONS,
    findings=perception_findings,
    tables=perception_tables,
    figures=perception_figures,
    published=perception_published,
    planted=perception_planted,
    glossary=("Judgements are cosines times 100: only differences between them mean something.",),
)
