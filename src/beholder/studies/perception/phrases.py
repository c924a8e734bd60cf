"""Words and numbers of Perception: dimensions, attributes, groups and scores, as a sentence needs them."""

from __future__ import annotations

from beholder.chapter.numbers import ABSENT, Result, has_interval
from beholder.studies.gras.phrases import MINUS, p_value
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import GROUPED

__all__ = [
    "ATTRIBUTES",
    "MINUS",
    "attribute",
    "bounds",
    "change",
    "dimension",
    "group",
    "number",
    "over",
    "p_value",
    "pair",
    "printed",
    "signed",
    "unit",
]

TITLES = {d.name: d.title for d in DIMENSIONS}
ATTRIBUTES = {"skin_tone": "skin tone", "seed": "identity"}
HUNDREDS = ("cosine", "P(Yes)")
"""Units that are printed × 100, as in the study."""
PRINTED = {"cosine": "cosine × 100", "P(Yes)": "points of P(Yes)", "match logit": "match logit"}


def dimension(name: str | None) -> str:
    """A dimension's title; a user's own as it is named.

    >>> dimension("agency_pos"), dimension("openness")
    ('Agency +', 'openness')
    """
    return TITLES.get(name or "", name or "")


def attribute(name: str | None) -> str:
    """As a sentence has it; crossed attributes each by itself.

    >>> attribute("smiling × skin_tone")
    'smiling × skin tone'
    """
    return " × ".join(ATTRIBUTES.get(part, part) for part in (name or "").split(" × "))


def unit(row: Result) -> str:
    """The unit as printed."""
    return PRINTED.get(row["unit"], str(row["unit"]))


def factor(row: Result) -> float:
    """By what a row's numbers are multiplied for printing."""
    return 100.0 if row["unit"] in HUNDREDS else 1.0


def printed(row: Result) -> Result:
    """Value and bounds as they are printed, for a mark."""
    scale = factor(row)
    return {key: None if row[key] is None else round(scale * row[key], 4) for key in ("value", "low", "high")}


def number(row: Result, key: str = "value", decimals: int = 2) -> str:
    """A value or bound as printed, with a true minus sign; a dash where there is none."""
    if row[key] is None:
        return ABSENT
    text = f"{factor(row) * row[key]:.{decimals}f}"
    return text.replace("-", MINUS) if float(text) else text.removeprefix("-")


def signed(row: Result, decimals: int = 2) -> str:
    """The same with its sign."""
    text = number(row, decimals=decimals)
    return f"+{text}" if row["value"] is not None and row["value"] > 0 and float(text) else text


def bounds(row: Result, decimals: int = 2) -> str:
    """The interval as printed; nothing where there is none."""
    if not has_interval(row):
        return ""
    low, high = number(row, "low", decimals), number(row, "high", decimals)
    return f"{low} to {high}" if MINUS in low + high else f"{low}–{high}"


def group(name: str | None, of: str = "") -> str:
    """A group as the data names it; a skin tone with its scale.

    >>> group("2 woman"), group("9", "skin_tone"), group("4", "smiling"), group("Black Female")
    ('MST 2 woman', 'MST 9', '4', 'Black Female')
    """
    name = name or ""
    tone = name.split(" ")[0].isdecimal() and (" " in name or of.endswith("skin_tone"))
    return f"MST {name}" if tone else name


def pair(row: Result) -> tuple[str, str]:
    """The two sides of `first over second`."""
    first, _, second = str(row["group"]).partition(" over ")
    return group(first, row["subset"] or ""), group(second, row["subset"] or "")


def change(row: Result) -> str:
    """What was changed: groups by their names, levels with their attribute (`smiling: 4 over 0`)."""
    return over(row) if row["subset"] in GROUPED else f"{attribute(row['subset'])}: {over(row)}"


def over(row: Result) -> str:
    """`first over second`, or the one group there is."""
    first, second = pair(row)
    return f"{first} over {second}" if second else first
