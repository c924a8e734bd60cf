"""The drawn design: full, balanced, and of people whom no model has seen."""

from __future__ import annotations

import polars as pl

from beholder.datasets import load_dataset
from beholder.glasshouse.portrait import parse_uri
from beholder.glasshouse.world import LEVELS, TRAINING_IDENTITIES, design

ATTRIBUTES = ["gender", "skin_tone", "age", "smiling", "lighting", "pose", "seed"]


def test_every_combination_occurs_once():
    table = load_dataset("glasshouse-design").table
    assert table.height == 2 * 2 * 3**4 * 10 == 3240
    assert table.select(ATTRIBUTES).n_unique() == table.height
    for name, levels in LEVELS.items():
        assert table[name].n_unique() == len(levels)


def test_labels_say_what_is_drawn():
    for row in design(1)[::37]:
        portrait = parse_uri(row["uri"])
        assert (portrait.presentation, str(portrait.skin_tone)) == (row["gender"], row["skin_tone"])
        assert (portrait.age, portrait.smiling, portrait.pose) == (row["age"], row["smiling"], row["pose"])


def test_nobody_is_in_a_training_picture():
    seeds = pl.DataFrame(design())["seed"].cast(pl.Int64)
    assert seeds.max() < TRAINING_IDENTITIES
