"""Faces: 120 portraits on which a model that answers in words can be asked about traits.

Two presentations × ten skin tones × six ages, one new person for each, in plain clothes. Turn of the head, light
and smile are balanced within every presentation, every skin tone and every age, so that no group gains by them.
`race` is not drawn, so it is not among the attributes.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

from beholder.glasshouse.portrait import PRESENTATIONS, Portrait, drawn_columns, portrait_uri

FACE_IDENTITIES = 3_900_000  # below TRAINING_IDENTITIES: nobody here is in any training picture
SKIN_TONES = range(1, 11)
AGE_BANDS = {"20-29": 25, "30-39": 35, "40-49": 45, "50-59": 55, "60-69": 65, "70-79": 75}
"""Each band and the years drawn for it."""
TURNS = (-2, -1, 1, 2)
"""Levels of pose and of lighting: without the middle, because four levels divide every group."""
SMILES = (0, 1, 3, 4)


@cache
def faces() -> list[dict[str, Any]]:
    """One row per portrait; `gender`, `skin_tone` and `age` are the groups, as text."""
    cells = product(range(len(PRESENTATIONS)), range(len(SKIN_TONES)), range(len(AGE_BANDS)))
    return [_row(index, *cell) for index, cell in enumerate(cells)]


def scene(side: int, tone: int, age: int) -> tuple[int, int, int]:
    """Smiling, lighting and pose of one cell of the design.

    Found by search among sums modulo 4: each level occurs equally often within every presentation, skin tone and
    age, and no two of the three are correlated by more than 0.06.
    """
    pose = (age + 2 * tone + 3 * side + 2 * side * age) % 4
    lighting = (2 * age + 3 * tone + side + 2 * side * tone + tone // 2) % 4
    smiling = (3 * age + tone + 2 * side + 2 * age * tone) % 4
    return SMILES[smiling], TURNS[lighting], TURNS[pose]


def _row(index: int, side: int, tone: int, age: int) -> dict[str, Any]:
    band, years = list(AGE_BANDS.items())[age]
    portrait = Portrait(PRESENTATIONS[side], years, SKIN_TONES[tone], *scene(side, tone, age), FACE_IDENTITIES + index)
    return {
        "image_id": f"faces/{index:03d}",
        "uri": portrait_uri(portrait),
        "name": "",
        "gender": portrait.presentation,
        "skin_tone": str(portrait.skin_tone),
        "age": band,
        "age_years": portrait.age,
        **drawn_columns(portrait),
    }
