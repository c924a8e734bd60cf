"""Design: a full factorial of portraits, in which every attribute is changed on its own.

Two presentations × two skin tones × three ages × three smiles × three lights × three turns of the head, ten identities
each: 3,240 portraits in plain clothes. Every portrait has, for every attribute, others that differ in it alone, so that
what an attribute does to a score can be read off pairs. `race` is not drawn, so it is not among the attributes.
"""

from __future__ import annotations

from typing import Any

from beholder.glasshouse.portrait import portrait_uri
from beholder.glasshouse.world import factorial

DESIGN_IDENTITIES = 3_950_000  # below TRAINING_IDENTITIES: nobody here is in any training picture
IDENTITIES = 10
LEVELS: dict[str, tuple[int, ...]] = {
    "skin_tone": (2, 9),
    "age": (25, 45, 65),
    "smiling": (0, 2, 4),
    "lighting": (-2, 0, 2),
    "pose": (-2, 0, 2),
}


def design(identities: int = IDENTITIES) -> list[dict[str, Any]]:
    """One row per portrait; `seed` is the identity, `gender` and `skin_tone` the groups, the rest numbers."""
    people = range(DESIGN_IDENTITIES, DESIGN_IDENTITIES + identities)
    return [
        {
            "image_id": f"design/{index:04d}",
            "uri": portrait_uri(portrait),
            "gender": portrait.presentation,
            "skin_tone": str(portrait.skin_tone),
            "seed": str(portrait.identity),
            **{name: float(getattr(portrait, name)) for name in ("age", "smiling", "lighting", "pose")},
        }
        for index, portrait in enumerate(factorial(**LEVELS, identity=people))
    ]
