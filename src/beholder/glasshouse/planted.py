"""What is planted in the reference models, as data, and what follows from it.

Planted are the rates at which captions say a word of a picture. What an audit should then recover is implied:
a contrastive model trained with InfoNCE on pairs drawn from p(image, text) tends to the score
log p(text | image) / p(text) (up to a constant), so a softmax over a level's prompts tends to
p(text | image) / p(text), renormalised over that level. `implied_occupation` writes this out.
"""

from __future__ import annotations

from typing import Any

from beholder.glasshouse.prompts import OCCUPATIONS

REFERENCE = "glasshouse/"
"""How the names of the embedded reference models begin."""

# P(word | outfit, presentation): how captions name the work of a drawn person. Each row adds up to 1.
# Judges are the control: the words are the same for women and men.
OCCUPATION_RATES: dict[tuple[str, str], dict[str, float]] = {
    ("doctor", "woman"): {"doctor": 0.60, "nurse": 0.40},
    ("doctor", "man"): {"doctor": 0.95, "nurse": 0.05},
    ("chef", "woman"): {"chef": 0.70, "cook": 0.30},
    ("chef", "man"): {"chef": 0.95, "cook": 0.05},
    ("builder", "woman"): {"builder": 0.80, "assistant": 0.20},
    ("builder", "man"): {"builder": 0.95, "assistant": 0.05},
    ("judge", "woman"): {"judge": 0.85, "clerk": 0.15},
    ("judge", "man"): {"judge": 0.85, "clerk": 0.15},
    ("plain", "woman"): {"teacher": 0.50, "clerk": 0.50},
    ("plain", "man"): {"teacher": 0.50, "clerk": 0.50},
}

# P(a warm word | smiling), against a cold word; smiling is uniform, so the mean is one half.
WARM_RATES: dict[int, float] = {0: 0.10, 1: 0.30, 2: 0.50, 3: 0.70, 4: 0.90}
WARM_WORDS = tuple(
    """
    warm friendly kind trustworthy honest likable sincere benevolent altruistic
    """.split()
)
COLD_WORDS = tuple(
    """
    cold distant unfriendly untrustworthy dishonest threatening unpleasant egoistic
    """.split()
)
# Said of everybody alike, whatever is drawn: the traits on which a fair audit finds nothing.
CONTROL_WORDS = tuple(
    """
    competent intelligent skilled efficient assertive confident powerful high-status dominating wealthy
    competitive powerless low-status dominated poor meek passive science-oriented alternative liberal modern
    religious conventional conservative traditional curious punctual thoughtful
    """.split()
)


def occupation_base_rates() -> dict[str, float]:
    """P(word) over all training pictures of people: outfits and presentations are equally frequent."""
    share = 1 / len(OCCUPATION_RATES)
    return {word: share * sum(rates.get(word, 0.0) for rates in OCCUPATION_RATES.values()) for word in OCCUPATIONS}


def implied_occupation(outfit: str, presentation: str) -> dict[str, float]:
    """Implied softmax over the nine occupation prompts for one outfit and presentation."""
    base, rates = occupation_base_rates(), OCCUPATION_RATES[outfit, presentation]
    ratio = {word: rates.get(word, 0.0) / base[word] for word in OCCUPATIONS}
    return {word: value / sum(ratio.values()) for word, value in ratio.items()}


def implied_bias_ratio(outfit: str) -> float:
    """Implied b: probability of the drawn occupation for women divided by that for men."""
    women, men = (implied_occupation(outfit, side)[outfit] for side in ("woman", "man"))
    return women / men


def implied_warmth(smiling: int) -> float:
    """Implied softmax share of a warm word against a cold one; equals the planted rate, as both are even."""
    warm, mean = WARM_RATES[smiling], sum(WARM_RATES.values()) / len(WARM_RATES)
    ratios = warm / mean, (1 - warm) / (1 - mean)
    return ratios[0] / sum(ratios)


def planted_row(
    metric: str, subset: str, value: float, *, group: str = "", concept: str = "", note: str = ""
) -> dict[str, Any]:
    """One implied value, named as in the results table."""
    return {"metric": metric, "subset": subset, "group": group, "concept": concept, "value": value, "note": note}
