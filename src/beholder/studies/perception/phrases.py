"""Words, numbers and rows of Perception, as a sentence, a table or a chart needs them."""

from __future__ import annotations

import polars as pl

from beholder.chapter.finding import deciding_rows, metric_rows
from beholder.chapter.numbers import ABSENT, MINUS, Result, has_interval
from beholder.chapter.numbers import number as counted
from beholder.comparison.family import DIFFERENCE
from beholder.comparison.groups import CROSSING
from beholder.studies.perception.prompts import DIMENSIONS
from beholder.studies.perception.scores import CROSSED, EVERYONE, GROUPED, INTERACTIONS

TITLES = {d.name: d.title for d in DIMENSIONS}
ATTRIBUTES = {"skin_tone": "skin tone", "seed": "identity"}
MOST_DECIMALS = 6
PRINTED = {"cosine": "cosine × 100", "P(Yes)": "points of P(Yes)"}  # units that are printed × 100, as in the study


def dimension(name: str | None) -> str:
    """A dimension's title; a user's own as it is named."""
    return TITLES.get(name or "", name or "")


def attribute(name: str | None) -> str:
    """An attribute, a grouping or an interaction, in words."""
    name = name or ""
    parts = CROSSED.get(name) or INTERACTIONS.get(name) or (name,)
    return CROSSING.join(ATTRIBUTES.get(part, part) if part == name else attribute(part) for part in parts)


def unit(row: Result) -> str:
    """The unit as printed."""
    return PRINTED.get(row["unit"], str(row["unit"]))


def factor(row: Result) -> float:
    """The factor by which a row's numbers are multiplied for printing."""
    return 100.0 if row["unit"] in PRINTED else 1.0


def printed(row: Result, centre: float = 0.0) -> Result:
    """Value and bounds as a chart draws them, less a `centre`."""
    numbers = {key: row[key] for key in ("value", "low", "high")}
    return {key: None if x is None else round(factor(row) * (x - centre), 4) for key, x in numbers.items()}


def decimal(value: float, form: str = ".2f") -> str:
    """A number with a true minus sign."""
    return f"{value:{form}}".replace("-", MINUS)


def decimals_of(row: Result, least: int = 2) -> int:
    """Decimals such that an interval has a width to see, and its bounds are told from the value of no effect."""
    if not has_interval(row):
        return least
    scale, landmark = factor(row), row.get("landmark") or 0.0
    width, off = scale * (row["high"] - row["low"]), min(scale * abs(row[end] - landmark) for end in ("low", "high"))
    enough = (p for p in range(least, MOST_DECIMALS) if width >= 2 * 10**-p and off >= 0.5 * 10**-p)
    return next(enough, least)


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


def how_many(clear: int, count: int, thing: str, where: str = "") -> str:
    """`1 of 24 differences is found`."""
    things = f"{counted(count, thing)} {where}".strip()
    return f"{clear} of {things} {'is' if clear == 1 else 'are'} found"


def group(name: str, grouping: str | None) -> str:
    """A group as the data names it; a skin tone with its scale. `grouping` is the attribute, or several crossed."""
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


# Rows selected for a reader


def finest(part: pl.DataFrame) -> str:
    """The finest grouping there is: `race × gender`, an attribute alone, or everyone."""
    return str([EVERYONE, *metric_rows(part, "delta_cosine")["subset"].unique(maintain_order=True)][-1])


def grouping_of(part: pl.DataFrame) -> dict[str, str]:
    """The grouping that each group belongs to."""
    return dict(metric_rows(part, "delta_cosine").select("group", "subset").iter_rows())


def score_unit(part: pl.DataFrame) -> str:
    """What the scores are."""
    return str([*metric_rows(part, "delta_cosine")["unit"].head(1), "cosine"][0])


def printed_unit(part: pl.DataFrame) -> str:
    """The same as printed."""
    return unit({"unit": score_unit(part)})


def found(row: Result | None) -> bool:
    """Whether the comparison found a difference."""
    return row is not None and row["verdict"] == DIFFERENCE


def beyond(row: Result) -> float:
    """How far a value is from its landmark, the value of no effect."""
    return float(row["value"] - (row["landmark"] or 0.0))


def decided(part: pl.DataFrame, metric: str, **where: str) -> tuple[list[Result], list[Result]]:
    """The rows of a metric that decide, those farthest from their landmarks first; and those of them that are found."""
    rows = sorted(deciding_rows(part, metric).filter(**where).to_dicts(), key=lambda row: -abs(beyond(row)))
    return rows, [row for row in rows if found(row)]


def by_place(part: pl.DataFrame, metric: str) -> dict[tuple[str | None, ...], Result]:
    """The rows of a metric by model, subset, groups and concept."""
    return {place(row): row for row in metric_rows(part, metric).to_dicts()}


def place(row: Result) -> tuple[str | None, ...]:
    """What a row is about, whatever its metric."""
    return tuple(row[name] for name in ("model", "subset", "group", "against", "concept"))
