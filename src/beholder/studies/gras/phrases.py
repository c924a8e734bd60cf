"""Words and numbers of GRAS: attributes, groups and points, as a sentence needs them.

Groups are labels that annotators or a classifier gave to pictures; they are named as the data names them.
"""

from __future__ import annotations

import re

from beholder.chapter.numbers import ABSENT, Result, has_interval
from beholder.studies.gras.prompts import TEMPLATES

TITLES = {"skin_tone": "skin tone"}
MINUS = "−"
_EXPECTED = re.compile(r"([0-9.]+) expected without any bias")


def attribute(name: str) -> str:
    """As a sentence has it."""
    return TITLES.get(name, name)


def group(name: str, of: str) -> str:
    """A group as the data names it; a skin tone with its scale.

    >>> group("6", "skin_tone"), group("East Asian", "race")
    ('MST 6', 'East Asian')
    """
    return f"MST {name}" if of == "skin_tone" and name.isdecimal() else name


def pair(row: Result) -> tuple[str, str]:
    """The higher and the lower group of a gap; the row names them as `higher over lower`."""
    higher, _, lower = str(row["group"]).partition(" over ")
    return group(higher, row["subset"]), group(lower, row["subset"])


def between(row: Result) -> str:
    """`Female over Male`."""
    higher, lower = pair(row)
    return f"{higher} over {lower}" if lower else higher


def wording(template: str) -> str:
    """A template in its own words, where it is the study's."""
    return TEMPLATES.get(template, "").replace("{}", "…")


def points(value: float | None, decimals: int = 1) -> str:
    """A difference of probabilities in points, with a true minus sign.

    >>> points(0.0994), points(-0.0084), points(None)
    ('9.9', '−0.8', '—')
    """
    if value is None:
        return ABSENT
    text = f"{100 * value:.{decimals}f}"
    return text.replace("-", MINUS) if float(text) else text.removeprefix("-")


def signed(value: float | None, decimals: int = 1) -> str:
    """The same with its sign.

    >>> signed(0.035), signed(-0.047)
    ('+3.5', '−4.7')
    """
    text = points(value, decimals)
    return f"+{text}" if value is not None and value > 0 and float(text) else text


def points_decimals(row: Result) -> int:
    """One, or two where the interval is narrow or the gap small."""
    narrow = has_interval(row) and row["high"] - row["low"] < 0.005
    return 2 if narrow or abs(row["value"] or 0.0) < 0.005 else 1


def points_range(row: Result) -> str:
    """The bounds of a gap in points; `to` between them where one is negative."""
    if not has_interval(row):
        return ""
    places = points_decimals(row)
    low, high = points(row["low"], places), points(row["high"], places)
    return f"{low} to {high}" if MINUS in low + high else f"{low}–{high}"


def score(value: float | None) -> str:
    """A score of 100: as many decimals as the study prints, none where they are 0.

    >>> score(98.25), score(99.0), score(21.333)
    ('98.25', '99', '21.3')
    """
    if value is None:
        return ABSENT
    quarters = abs(4 * value - round(4 * value)) < 1e-9  # four attributes of 100 traits
    return f"{value:.2f}".rstrip("0").rstrip(".") if quarters else f"{value:.1f}"


def p_value(value: float | None) -> str:
    """A p-value as it is read: never 0.

    >>> p_value(0.0312), p_value(1e-9)
    ('0.031', '< 0.001')
    """
    if value is None:
        return ABSENT
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def without_bias(row: Result) -> str:
    """What the count would be without any bias, where the row's note says so: no count stands alone.

    >>> without_bias({"note": "traits of which any wording has p ≤ 0.05; 21.4 expected without any bias"})
    '21 without bias'
    """
    found = _EXPECTED.search(row.get("note") or "")
    return f"{float(found[1]):.0f} without bias" if found else ""
