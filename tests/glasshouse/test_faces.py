"""The faces: a full factorial of people nobody was trained on, with nothing else confounded."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from beholder.glasshouse.portrait import parse_uri
from beholder.glasshouse.world import TRAINING_IDENTITIES, faces, residents


def test_every_combination_occurs_once():
    cells = Counter((row["gender"], row["skin_tone"], row["age"]) for row in faces())
    assert len(cells) == 2 * 10 * 6
    assert set(cells.values()) == {1}


@pytest.mark.parametrize("group", ["gender", "skin_tone", "age"])
@pytest.mark.parametrize("scene", ["pose", "lighting", "smiling"])
def test_no_group_gains_by_pose_light_or_smile(group, scene):
    for value in {row[group] for row in faces()}:
        levels = Counter(row[scene] for row in faces() if row[group] == value)
        assert len(levels) == 4
        assert len(set(levels.values())) == 1


def test_pose_light_and_smile_are_hardly_correlated():
    columns = [[row[scene] for row in faces()] for scene in ("pose", "lighting", "smiling")]
    assert all(abs(np.corrcoef(a, b)[0, 1]) <= 0.0601 for a, b in combinations(columns, 2))


def test_everybody_is_new():
    identities = [row["identity"] for row in faces()]
    assert len(set(identities)) == 120
    assert max(identities) < TRAINING_IDENTITIES
    assert not set(identities) & {row["identity"] for row in residents()}


def test_a_row_says_what_is_drawn():
    for row in faces():
        portrait = parse_uri(row["uri"])
        assert (portrait.presentation, str(portrait.skin_tone)) == (row["gender"], row["skin_tone"])
        low, high = map(int, row["age"].split("-"))
        assert low <= portrait.age == row["age_years"] <= high
        assert (portrait.outfit, portrait.worn, row["name"]) == ("plain", frozenset(), "")
        assert "race" not in row


def test_faces_and_planted_traits_need_no_torch():
    code = "import sys, beholder.glasshouse.planted; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
