"""Numbers as text: as many decimals as the interval supports, and a dash where there is nothing.

Absent is shown as "—", never as 0.
"""

import math
from collections.abc import Sequence

from beholder.comparison.groups import REST
from beholder.comparison.means import OPEN
from beholder.core.types import Entry

ABSENT, ENDLESS, MINUS = "—", "∞", "−"
Result = Entry  # one row of the results table


def percent(value: float | None, decimals: int | None = None) -> str:
    """A probability in per cent."""
    if value is None:
        return ABSENT
    places = _places_of(value) if decimals is None else decimals
    if 0 < value < 0.5 * 10 ** -(places + 2):
        return f"< {10**-places:.{places}f} %"
    return f"{100 * value:.{places}f} %"


def percent_range(low: float | None, high: float | None, decimals: int = 0) -> str:
    """Two probabilities with one sign, with as many more decimals as it takes to tell them apart, and from 0."""
    if low is None or high is None:
        return ABSENT
    texts = [[f"{100 * bound:.{places}f}" for bound in (low, high)] for places in range(decimals, decimals + 5)]
    apart = (pair for pair in texts if pair[0] != pair[1] and (low <= 0 or float(pair[0])))
    return f"{'–'.join(next(apart, texts[0]))} %"


def span(values: list[float]) -> str:
    """The range of several probabilities, or the one there is."""
    low, high = min(values), max(values)
    places = max(0 if 0.1 <= v <= 0.99 or v in (0.0, 1.0) else 1 for v in (low, high))
    if f"{100 * low:.{places}f}" == f"{100 * high:.{places}f}":
        return percent(high, places)
    return percent_range(low, high, places)


def _places_of(value: float) -> int:
    if value in (0.0, 1.0):
        return 0
    if value < 0.01:
        return 2
    return 1 if value < 0.1 or value > 0.99 else 0


def decimals_for(row: Result, *, least: int = 0) -> int:
    """Decimals of a percentage such that its interval spans at least a few units of the last place."""
    if row["low"] is None or row["high"] is None:
        return max(least, _places_of(row["value"] or 0.0))
    width = row["high"] - row["low"]
    return max(least, next((places for places in range(6) if width >= 0.03 * 0.1**places), 2))


def ratio_decimals(row: Result) -> int:
    """Two, or as many as it takes to tell the bounds from 1."""
    numbers = [row[key] for key in ("low", "high") if row[key] is not None]
    return next((p for p in (2, 3, 4) if all(x == 1 or round(x, p) != 1 for x in numbers)), 2)


def ratio(value: float | None, decimals: int = 2) -> str:
    """A ratio: `0.62`; the sign of infinity where the second of the two is 0."""
    return ABSENT if value is None else ENDLESS if value >= OPEN else f"{value:.{decimals}f}"


def ratio_range(row: Result) -> str:
    """The bounds of a ratio: `0.55–0.70`, or `1.20–∞` where it is open-ended."""
    places = ratio_decimals(row)
    if row["low"] is None or row["high"] is None:
        return ABSENT
    return f"{ratio(row['low'], places)}–{ratio(row['high'], places)}"


def decimal(value: float | None, form: str = ".2f") -> str:
    """A plain number: `0.62`, with a true minus sign."""
    return ABSENT if value is None else f"{value:{form}}".replace("-", MINUS)


def times(value: float) -> str:
    """How many times: `3.2`, `85`."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def options(row: Result) -> int | None:
    """Among how many options the model chose, where chance is known."""
    return round(1 / row["chance"]) if row.get("chance") else None


def has_interval(row: Result) -> bool:
    """Whether the row says how far its value could move; an interval without width does not."""
    return row["low"] is not None and row["high"] is not None and row["low"] < row["high"]


def log_distance(value: float, landmark: float) -> float:
    """How many e-folds a value lies from a landmark; 0 at it, infinite at 0."""
    return math.inf if value <= 0 else abs(math.log(value / landmark))


def uncertainty(row: Result, *, decimals: int) -> str:
    """The bracket after a percentage."""
    if not has_interval(row):
        return f"n = {row['n']}, no interval"
    return f"95 % interval {percent_range(row['low'], row['high'], decimals)}, n = {row['n']}"


def points(value: float | None, decimals: int = 1, scale: float = 100.0) -> str:
    """A difference of probabilities in points, with a true minus sign; or another number, times its `scale`."""
    if value is None:
        return ABSENT
    text = f"{scale * value:.{decimals}f}"
    return text.replace("-", MINUS) if float(text) else text.removeprefix("-")


def signed(value: float | None, decimals: int = 1, scale: float = 100.0) -> str:
    """The same with its sign."""
    text = points(value, decimals, scale)
    return f"+{text}" if value is not None and value > 0 and float(text) else text


def points_decimals(row: Result) -> int:
    """One, or two where the interval is narrow or the gap small; more where a bound beside 0 would print as 0."""
    narrow = has_interval(row) and row["high"] - row["low"] < 0.005
    least = 2 if narrow or abs(row["value"] or 0.0) < 0.005 else 1
    ends = [row["low"], row["high"]] if has_interval(row) and row["low"] * row["high"] > 0 else []
    return next((p for p in range(least, 6) if all(round(100 * end, p) for end in ends)), least)


def points_range(row: Result) -> str:
    """The bounds of a gap in points."""
    return between(row, points_decimals(row)) if has_interval(row) else ""


def between(row: Result, decimals: int, scale: float = 100.0) -> str:
    """The bounds of an interval; `to` between them where one is negative."""
    low, high = (points(row[end], decimals, scale) for end in ("low", "high"))
    return f"{low} to {high}" if MINUS in low + high else f"{low}–{high}"


def row_p_value(row: Result) -> str:
    """A p-value as it is read: never 0, and a bound where it is the smallest that the shuffles could give."""
    value = row["p_value"]
    if value is None:
        return ABSENT
    text = "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"
    return f"≤ {text}" if row.get("p_at_most") and value >= 0.001 else text


def quantity(value: float, unit: str, landmark: float | None = None, decimals: int = 1) -> str:
    """A number in the words of its unit: a probability in per cent, a difference of two in points, a ratio plain."""
    if unit in ("probability", "average precision"):
        return f"{points(value, decimals)} points" if landmark == 0 or value < 0 else percent(value)
    if unit == "per cent":
        return f"{value:.1f} %"
    if unit == "cosine":
        return decimal(100 * value)
    if unit == "ratio":
        return ratio(value)
    whole = value == int(value) and abs(value) >= 1
    return decimal(value, ",.0f" if whole else ".2g")


# Words that sentences of every chapter need

GROUPS = {"woman": "women", "man": "men"}  # groups whose plural is known
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def count(number: int) -> str:
    """Small numbers as words."""
    return NUMBERS[number] if 0 <= number < len(NUMBERS) else str(number)


def number(count: int, one: str, several: str = "") -> str:
    """A count with its noun (and verb), in the singular for one."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plural(group: str) -> str:
    """The people of a group, as far as their plural is known."""
    return GROUPS.get(group, group)


def people(group: str) -> str:
    """The people of a group; of one whose plural is unknown, those with its label."""
    return group if group == REST else GROUPS.get(group, f"those labelled {group}")


def drawn(dataset: str) -> bool:
    """Whether the pictures are drawings of nobody."""
    return dataset.startswith("glasshouse")


def picture(row: Result) -> str:
    """What the model was shown."""
    return "drawing" if drawn(row["dataset"]) else "photograph"
