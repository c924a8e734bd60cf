"""Trial of own prompts: four prompts of one level, by gender and brightness, within branch and image source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from beholder.core.results import Row
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.custom.study import custom_study
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import BRIGHTNESS_ONLY, GENDER_ONLY, Trial, World

PROMPTS = prompt_set("made", [{"text": f"prompt {i}", "level": "all", "concept": f"prompt {i}"} for i in range(4)])
BY, WITHIN = ("gender", "brightness"), ("branch", "source")


def measure(world: World, options: MeasureOptions) -> Iterator[Row]:
    """Scores as logits; the study's own rows."""
    matrix = ScoreMatrix("custom", world.table, PROMPTS.table, ("score",), world.scores[:, :, None])
    (rows,) = custom_study(PROMPTS, by=BY).measures.functions
    yield from rows({"custom": matrix}, replace(options, within=WITHIN))


TRIALS = Trial(
    prompts=len(PROMPTS),
    measure=measure,
    true={
        GENDER_ONLY: ("custom.gap:gender", "custom.custom:gender"),
        BRIGHTNESS_ONLY: ("custom.gap:brightness", "custom.slope:brightness", "custom.custom:brightness"),
    },
    found=("custom.gap", "custom.custom"),
)
