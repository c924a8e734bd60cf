"""Words and numbers of Perception: dimensions, attributes, groups and scores, as a sentence needs them."""

from __future__ import annotations

from beholder.chapter.numbers import ABSENT, MINUS, Result, has_interval
from beholder.comparison.groups import CROSSING
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import CROSSED, GROUPED, INTERACTIONS

TITLES = {d.name: d.title for d in DIMENSIONS}
ATTRIBUTES = {"skin_tone": "skin tone", "seed": "identity"}
MOST_DECIMALS = 6
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
    """An attribute, a grouping or an interaction, in words.

    >>> attribute("skin_tone"), attribute("smiling × skin_tone")
    ('skin tone', 'smiling × skin tone')
    """
    name = name or ""
    parts = CROSSED.get(name) or INTERACTIONS.get(name) or (name,)
    return CROSSING.join(ATTRIBUTES.get(part, part) if part == name else attribute(part) for part in parts)


def unit(row: Result) -> str:
    """The unit as printed."""
    return PRINTED.get(row["unit"], str(row["unit"]))


def factor(row: Result) -> float:
    """The factor by which a row's numbers are multiplied for printing."""
    return 100.0 if row["unit"] in HUNDREDS else 1.0


def printed(row: Result, centre: float = 0.0) -> Result:
    """Value and bounds as a chart draws them, less a `centre`."""
    numbers = {key: row[key] for key in ("value", "low", "high")}
    return {key: None if x is None else round(factor(row) * (x - centre), 4) for key, x in numbers.items()}


def dot(row: Result, group: str, centre: float = 0.0) -> Result:
    """A row as a chart of dimensions and groups draws it."""
    return {"dimension": dimension(row["concept"]), "group": group, "n": row["n"], **printed(row, centre)}


def decimal(value: float, form: str = ".2f") -> str:
    """A number with a true minus sign.

    >>> decimal(-0.354), decimal(0.3, "+.2f")
    ('−0.35', '+0.30')
    """
    return f"{value:{form}}".replace("-", MINUS)


def decimals_of(row: Result, least: int = 2) -> int:
    """Decimals such that an interval has a width to see, and its bounds are told from the value of no effect.

    >>> decimals_of({"low": 0.0001, "high": 0.0003, "landmark": None, "unit": "cosine"})
    3
    """
    if not has_interval(row):
        return least
    scale, landmark = factor(row), row.get("landmark") or 0.0
    width, off = scale * (row["high"] - row["low"]), [scale * (row[end] - landmark) for end in ("low", "high")]
    return next(
        (p for p in range(least, MOST_DECIMALS) if width >= 2 * 10**-p and min(map(abs, off)) >= 0.5 * 10**-p), least
    )


def number(row: Result, key: str = "value", decimals: int | None = None) -> str:
    """A value or bound as printed, with a true minus sign; a dash where there is none."""
    if row[key] is None:
        return ABSENT
    text = f"{factor(row) * row[key]:.{decimals_of(row) if decimals is None else decimals}f}"
    return text.replace("-", MINUS) if float(text) else text.removeprefix("-")


def signed(row: Result, decimals: int | None = None) -> str:
    """The same with its sign."""
    text = number(row, decimals=decimals)
    return f"+{text}" if row["value"] is not None and row["value"] > 0 and float(text) else text


def bounds(row: Result, decimals: int | None = None) -> str:
    """The interval as printed; nothing where there is none."""
    if not has_interval(row):
        return ""
    low, high = number(row, "low", decimals), number(row, "high", decimals)
    return f"{low} to {high}" if MINUS in low + high else f"{low}–{high}"


def counted(number: int, one: str, several: str = "") -> str:
    """A number of things.

    >>> counted(1, "identity", "identities"), counted(24, "difference")
    ('1 identity', '24 differences')
    """
    return f"{number} {one if number == 1 else several or one + 's'}"


def how_many(found: int, number: int, thing: str, where: str = "") -> str:
    """How many of several things are found.

    >>> how_many(1, 24, "difference"), how_many(0, 1, "departure", "in slope")
    ('1 of 24 differences is found', '0 of 1 departure in slope are found')
    """
    things = " ".join(part for part in (counted(number, thing), where) if part)
    return f"{found} of {things} {'is' if found == 1 else 'are'} found"


def group(name: str, grouping: str | None) -> str:
    """A group as the data names it; a skin tone with its scale. `grouping` is the attribute, or several crossed.

    >>> group("9", "skin_tone"), group("2 woman", "skin_tone × gender"), group("2 or more races", "race")
    ('MST 9', 'MST 2 woman', '2 or more races')
    """
    first = CROSSED.get(grouping or "", (grouping,))[0]
    return f"MST {name}" if first == "skin_tone" and name.split(" ")[0].isdecimal() else name


def pair(row: Result, grouping: str | None = None) -> tuple[str, str]:
    """The two groups that a row compares; without a `grouping` the row's subset is one."""
    _, grouped = INTERACTIONS.get(row["subset"], ("", row["subset"]))
    return group(row["group"], grouping or grouped), group(row["against"], grouping or grouped)


def against(row: Result) -> str:
    """`first against second`, or the one group there is."""
    return group(row["group"], row["subset"]) if row["against"] is None else " against ".join(pair(row))


def change(row: Result) -> str:
    """What was changed: groups by their names, levels with their attribute (`smiling: 4 against 0`)."""
    return against(row) if row["subset"] in GROUPED else f"{attribute(row['subset'])}: {against(row)}"
