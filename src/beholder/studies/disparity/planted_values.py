"""Known truth for disparity: the values that the planted objects imply, under the metrics' own names."""

from __future__ import annotations

from typing import Any

from beholder.glasshouse.planted import planted_row
from beholder.glasshouse.planted_objects import PLANTED_OBJECTS, implied_average_precision, implied_gap

PLANTED: list[dict[str, Any]] = [
    *(
        planted_row("disparity.ap_gap", "gender", implied_gap(p.item), concept=p.item, note=f"planted: {p.note}")
        for p in PLANTED_OBJECTS
    ),
    *(
        planted_row(
            "disparity.average_precision",
            "gender",
            implied_average_precision(p.item, group),
            group=group,
            concept=p.item,
            note=f"planted: {p.whole[group]} of {p.wearers[group]} in view",
        )
        for p in PLANTED_OBJECTS
        for group in p.wearers
    ),
]
