"""Which branches are pooled, and how many people the published figures of APA and P-FI are about."""

from __future__ import annotations

from beholder.datasets.apa import BRANCHES

EIGHT = "eight occupations, without actress"
"""The variant of rows that were measured with `--options 8`."""
POOLS = {"actors": ("actors",), "politicians": ("house", "senate", "mayors"), "athletes": ("athletes",)}


def _size(*branches: str) -> dict[str | None, int]:
    parts = [BRANCHES[name] for name in branches]
    women, men = sum(part.women for part in parts), sum(part.men for part in parts)
    return {None: sum(part.images for part in parts), "woman": women, "man": men}


SIZES = {name: _size(*branches) for name, branches in {**{name: (name,) for name in BRANCHES}, **POOLS}.items()}
"""By branch or pool and by gender; the key None counts everyone."""
