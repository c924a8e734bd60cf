"""The studies' printed numbers beside ours: machinery that asks each study for what its paper prints.

`neighbours(metric, subset)` gives the published values of other models. Models keep the names their papers give them.
"""

from __future__ import annotations

from beholder.published.neighbours import caveats, neighbours, source_of

__all__ = ["caveats", "neighbours", "source_of"]
