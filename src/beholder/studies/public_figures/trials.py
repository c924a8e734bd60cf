"""How APA and P-FI are tried: two branches of one pool, their occupations, a specialty that differs, and names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl

from beholder.core.results import Row
from beholder.prompts.prompt_set import correct_for, prompt_set
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.apa.prompts import identity_prompts
from beholder.studies.public_figures.identity import IDENTITY
from beholder.studies.public_figures.measures import ASSOCIATION
from beholder.studies.public_figures.study import public_figure_measures
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import GENDER_ONLY, SOURCE_ONLY, UNFAIR, Trial, World

BRANCHES = {"a": "house", "b": "senate"}
OCCUPATIONS = ("politician", "receptionist", "teacher", "scientist", "assistant")
SPORTS = {"x": "Tennis", "y": "Golf"}  # what the source stands for: the right answer at the specialty level
RULES: dict[str, dict[str, str | None]] = {
    "category": {"person": "*", "dog": None},
    "occupation": {word: "*" if word == "politician" else None for word in OCCUPATIONS},
    "specialty": {sport: correct_for(sport=sport) for sport in SPORTS.values()},
}
ROWS = [(level, word, rule) for level, rules in RULES.items() for word, rule in rules.items()]
PROMPTS = prompt_set(
    "trials", [{"text": word, "level": level, "concept": word, "correct_for": rule} for level, word, rule in ROWS]
).table
NAMES = 30  # so many people of each branch are asked for by name


def measured(prefix: str, world: World, options: MeasureOptions) -> Iterator[Row]:
    """The study's own rows."""
    table = world.table.with_columns(
        branch=pl.col("branch").replace(BRANCHES), sport=pl.col("source").replace(SPORTS), name=pl.col("person")
    )
    matrices = {}
    for branch in BRANCHES.values():
        mine = (table["branch"] == branch).to_numpy()
        images, cells, count = table.filter(mine), world.scores[mine], PROMPTS.height
        names = images["name"].unique(maintain_order=True)[:NAMES].to_list()
        known = images["name"].is_in(names).to_numpy()
        asked = identity_prompts("names", "{}", names).table
        faces = cells[known, count : count + len(names)]
        for kind, shown, prompts, scores in (
            (ASSOCIATION, images, PROMPTS, cells[:, :count]),
            (IDENTITY, images.filter(known), asked, faces),
        ):
            name = f"{branch}/{kind}"
            matrix = ScoreMatrix(name, shown, prompts, ("score",), scores[:, :, None], kind=kind, part=branch)
            matrices[name] = matrix
    for measure in public_figure_measures(prefix, {"politicians": tuple(BRANCHES.values())}):
        yield from measure(matrices, options)


def trials(prefix: str) -> Trial:
    """Gender only: all that compares women and men. Source only: the specialty, which the source decides."""
    of_gender = (f"{prefix}.bias", f"{prefix}.branch", f"{prefix}.occupation", f"{prefix}.refusal")
    return Trial(
        prompts=PROMPTS.height + NAMES,
        measure=partial(measured, prefix),
        true={GENDER_ONLY: of_gender, UNFAIR: of_gender, SOURCE_ONLY: (f"{prefix}.association",)},
        found=(f"{prefix}.bias_ratio", f"{prefix}.occupation_gap"),
    )


APA_TRIALS, PFI_TRIALS = trials("apa"), trials("pfi")
