"""Known truth for smiling and warmth: what the captions of the contrastive reference model imply."""

from __future__ import annotations

from beholder.glasshouse.planted import WARM_RATES, implied_warmth, planted_row

_NOTE = "softmax of a warm word against a cold one; planted: the same rate of warm captions"
SHARES = [
    planted_row(
        "perception.warm_against_cold", "smiling", implied_warmth(step), group=str(step), concept="Warmth", note=_NOTE
    )
    for step in WARM_RATES
]
SIGNS = [
    planted_row("perception.slope_sign", "smiling", sign, concept=concept, note="the sign is what is planted")
    for concept, sign in (("Warmth", 1.0), ("Communion +", 1.0), ("Communion -", -1.0), ("Competence", 0.0))
]
PLANTED = [*SHARES, *SIGNS]
