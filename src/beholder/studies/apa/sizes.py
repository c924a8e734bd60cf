"""How many people the published figures of APA and P-FI are about, by branch or pool and by gender."""

from __future__ import annotations

SIZES: dict[str, dict[str | None, int]] = {
    "actors": {None: 100, "woman": 40, "man": 60},
    "athletes": {None: 109, "woman": 30, "man": 79},
    "politicians": {None: 636, "woman": 183, "man": 453},
    "house": {None: 436, "woman": 126, "man": 310},
    "senate": {None: 100, "woman": 24, "man": 76},
    "mayors": {None: 100, "woman": 33, "man": 67},
}
"""The key None counts everyone."""
