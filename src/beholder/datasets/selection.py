"""Selection: some of a data set's images, spread as evenly as the data allow over the groups that will be compared.

Image after image, the next is of the cell that has been chosen least so far, counted in the crossing of all attributes,
of every two of them, and of each alone. Among equals the first is taken, so fewer images are always part of more.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import UsageError
from beholder.core.types import Entry

SETS = ("seed", "pair")  # rows with one value of such an attribute are of use only as a whole: sets come one by one
MOST_GROUPS = 20  # an attribute with more values than this, such as a name, has no groups
UNEVEN = 2.0  # a group that is so many times as large as another is called uneven
TOGETHER = 0.2  # Cramér's V from which on two attributes are said to fall together
Codes = npt.NDArray[np.int_]


class Uneven(NamedTuple):
    """An attribute whose groups, or two attributes whose crossing, could not be balanced."""

    attributes: tuple[str, ...]
    counts: dict[str, int]  # how many images each group, or each cell of the crossing, has

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count:,}" for name, count in self.counts.items())
        if len(self.attributes) == 1:
            return f"{self.attributes[0]} is uneven: {counts}"
        return f"{' and '.join(self.attributes)} fall together: {counts}"


class Selection(NamedTuple):
    """Which rows were chosen, over what they were spread, and what could not be balanced."""

    rows: list[int]  # places in the table, in table order
    over: tuple[str, ...]
    of: int  # how many rows there were to choose from
    uneven: tuple[Uneven, ...] = ()
    each: str | None = None  # the attribute of which every value has so many

    def as_dict(self) -> Entry:
        """For the record of a run."""
        return {"over": list(self.over), "uneven": [str(each) for each in self.uneven], "each": self.each}


def group_attributes(table: pl.DataFrame) -> list[str]:
    """The attributes that divide the rows into a few groups."""
    named = [name for name in table.columns if name not in ("image_id", "uri", *SETS)]
    return [name for name in named if 1 < table[name].n_unique() <= MOST_GROUPS]


def select(
    table: pl.DataFrame, count: int, over: Sequence[str] = (), *, each: str | None = None, people: Codes | None = None
) -> Selection:
    """`count` rows (of every value of `each`, where the table has it), spread over the crossing of `over`.

    Of `over`, attributes count that divide the rows into a few groups; if there is none, all that do. Other `people`
    come before other pictures of one.
    """
    few, together = group_attributes(table), np.zeros(table.height, dtype=int)
    parted = [each] if each in table.columns and each is not None else []
    names = list(dict.fromkeys([*parted, *([name for name in over if name in few] or few)]))
    codes = np.stack([_codes(table[name]) for name in names] or [together], axis=1)
    parts = _codes(table[parted[0]]) if parted else together
    matched = next((name for name in SETS if name in table.columns), None)
    sets = _codes(table[matched]) if matched else together
    who = np.arange(table.height) if people is None else people
    picture = pl.DataFrame({"who": who}).select(pl.int_range(pl.len()).over("who")).to_series().to_numpy()
    order = np.argsort(picture, kind="stable")  # everybody's first picture, everybody's second …
    rows = sorted(order[_spread(codes[order], parts[order], sets[order], count)].tolist())
    return Selection(rows, tuple(names), table.height, tuple(_uneven(table[rows], names)), *parted)


class Sample(NamedTuple):
    """A balanced sample: its rows, and how many there were, are and are short of in every cell of a crossing."""

    rows: list[int]
    cells: pl.DataFrame  # the attributes, `candidates`, `chosen` and `short`; also of cells that have none
    unlabelled: int  # rows that lack one of the labels: none of them is chosen


def sample(
    table: pl.DataFrame,
    by: Sequence[str],
    *,
    each: int | None = None,
    count: int | None = None,
    people: Codes,
    seed: int,
) -> Sample:
    """As many rows of every cell of a crossing (`each`), or so many in all (`count`), drawn at random.

    A cell that has too few gives all it has. With `count`, others then give more; with `each`, they do not.
    """
    cell = pl.concat_str([pl.col(name).cast(pl.String) for name in by], separator="\0")
    order = np.random.default_rng(seed).permutation(table.height)
    shuffled = table[order].with_columns(place=order, who=people[order], cell=cell).filter(pl.col("cell").is_not_null())
    labels = shuffled.select(*by, "cell")
    if count is None:
        chosen = select(labels, each or 0, by, each="cell", people=shuffled["who"].to_numpy())
    else:
        chosen = select(labels.drop("cell"), count, by, people=shuffled["who"].to_numpy())
    counted, taken = labels.group_by(by).agg(candidates=pl.len()), labels[chosen.rows].group_by(by).agg(chosen=pl.len())
    wanted = each if count is None else -(-count // max(1, counted.height))
    cells = table.select(pl.col(by[0]).drop_nulls().unique())
    for name in by[1:]:
        cells = cells.join(table.select(pl.col(name).drop_nulls().unique()), how="cross")
    cells = cells.join(counted, on=by, how="left").join(taken, on=by, how="left").fill_null(0).sort(by)
    short = (pl.lit(wanted, pl.Int64) - pl.col("candidates").cast(pl.Int64)).clip(0)
    rows = sorted(shuffled["place"].gather(chosen.rows).to_list())
    return Sample(rows, cells.with_columns(short=short), table.height - shuffled.height)


def _codes(values: pl.Series) -> Codes:
    """A number for every value, and one for none."""
    return np.asarray(values.cast(pl.String).fill_null("").rank("dense").to_numpy(), dtype=int) - 1


def _spread(codes: Codes, parts: Codes, sets: Codes, count: int) -> list[int]:
    """Rows of `codes[rows, attributes]`, the same number of every part: they take turns, set after set."""
    kinds, first, kind_of = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    kind_of, part_of = kind_of.ravel(), parts[first]
    columns = range(kinds.shape[1])
    crossings = (tuple(columns), *combinations(columns, 2), *((column,) for column in columns))  # all, every two, each
    crossed = [np.unique(kinds[:, list(of)], axis=0, return_inverse=True)[1].ravel() for of in crossings]
    cells = np.array([column.max(initial=0) + 1 for column in crossed], dtype=np.float64)
    crossed_of, cost = np.stack(crossed, axis=1), np.zeros(len(kinds))
    places, left = list(dict.fromkeys(parts.tolist())), dict.fromkeys(parts.tolist(), count)
    chosen: list[int] = []
    for one in dict.fromkeys(sets.tolist()):
        waiting: list[list[int]] = [[] for _ in kinds]
        for row in np.flatnonzero(sets == one)[::-1].tolist():  # the first last: it is taken from the end
            waiting[kind_of[row]].append(row)
        ahead = np.array([queue[-1] if queue else len(codes) for queue in waiting])
        turns = [place for place in places if left[place]]
        while turns:
            for place in list(turns):
                there = np.flatnonzero((part_of == place) & (ahead < len(codes)))
                if not len(there) or not left[place]:
                    turns.remove(place)
                    continue
                cheapest = there[cost[there] == cost[there].min()]
                kind = cheapest[ahead[cheapest].argmin()]
                chosen.append(waiting[kind].pop())
                ahead[kind] = waiting[kind][-1] if waiting[kind] else len(codes)
                left[place] -= 1
                cost += (crossed_of == crossed_of[kind]) @ cells  # in parts of what each cell is due
    return chosen


def _uneven(table: pl.DataFrame, names: Sequence[str]) -> Iterator[Uneven]:
    """What is out of balance; images without a label are left out."""
    texts = table.select(pl.col(name).cast(pl.String) for name in names)
    for name in names:
        counts = dict(texts[name].drop_nulls().value_counts(sort=False).sort(name).rows())
        if len(counts) > 1 and max(counts.values()) > max(UNEVEN * min(counts.values()), min(counts.values()) + 1):
            yield Uneven((name,), counts)
    for pair in combinations(names, 2):
        counts = _fallen_together(texts.select(pair).drop_nulls())
        if counts:
            yield Uneven(pair, counts)


def _fallen_together(pair: pl.DataFrame) -> dict[str, int]:
    """The cells of a crossing whose attributes fall together; empty where they do not."""
    first, second = (pair[name].unique().sort().to_list() for name in pair.columns)
    if min(len(first), len(second)) < 2:
        return {}
    counted = dict(((a, b), n) for a, b, n in pair.group_by(pair.columns).len().rows())
    counts = np.array([[counted.get((a, b), 0) for b in second] for a in first], dtype=np.float64)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    excess = ((counts - expected) ** 2 / expected).sum() / counts.sum() / (min(counts.shape) - 1)
    if np.sqrt(excess) < TOGETHER or np.ptp(counts) <= 1:
        return {}
    return {f"{a} {b}": int(counts[i, k]) for i, a in enumerate(first) for k, b in enumerate(second)}


MOST_VALUES = 12  # numbers with more different values are put into bins before groups are made of them
QUANTILES = 5
NUMBERS = " in numbers"  # what is added to the name of a column whose numbers were put into bins: it keeps the numbers
WITH_COMMA = r"^\s*([+-]?\d+),(\d+)\s*$"
DECIMAL_COMMA = r"^\s*[+-]?(\d+,(\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+)\s*$"
Edges = tuple[float, ...]


def parse_bins(options: Sequence[str]) -> dict[str, Edges]:
    """Column and edges of every `NAME=EDGE,EDGE,…`."""
    bins: dict[str, Edges] = {}
    for option in options:
        name, _, text = option.partition("=")
        try:
            bins[name] = edges = tuple(float(edge) for edge in text.split(","))
        except ValueError:
            edges = ()
        if not name or len(edges) < 2 or list(edges) != sorted(set(edges)) or not np.isfinite(edges).all():
            raise UsageError(f"--bins {option}: write a column and ascending edges, such as --bins age=0,18,30,50,70.")
    return bins


def with_points(column: pl.Series) -> pl.Series:
    """Numbers with decimal commas with points, where one of them cannot be a comma between thousands: `23,5`."""
    if column.dtype != pl.String:
        return column
    column = column.str.strip_chars()
    return column if not column.str.contains(DECIMAL_COMMA).any() else column.str.replace(WITH_COMMA, "$1.$2")


def numbers_of(column: pl.Series) -> pl.Series | None:
    """The column as numbers, also with decimal commas; None where a value is none, or where there is nothing."""
    numbers = with_points(column).cast(pl.Float64, strict=False) if column.dtype != pl.Boolean else None
    if numbers is None or numbers.null_count() > column.null_count() or not numbers.drop_nulls().is_finite().all():
        return None
    return numbers if numbers.drop_nulls().len() else None


def not_numbers(column: pl.Series) -> list[str]:
    """The texts of a column of many numbers that are none, such as `n/a` among ages; empty where most are texts."""
    if column.dtype != pl.String:
        return []
    texts = column.drop_nulls().unique(maintain_order=True)
    others = texts.filter(with_points(texts).cast(pl.Float64, strict=False).is_null()).to_list()
    return others if len(others) <= len(texts) / 5 and len(texts) > MOST_VALUES else []


def quantile_edges(numbers: pl.Series) -> Edges:
    """Edges that put about as many images into each of five bins."""
    known = numbers.drop_nulls().to_numpy()
    cuts = np.quantile(known, np.arange(1, QUANTILES) / QUANTILES, method="higher")
    return tuple(np.unique([known.min(), *cuts]).tolist())


def binned(numbers: pl.Series, edges: Edges) -> pl.Series:
    """The bin of each number, by name; a bin holds its lower edge, and the last one everything above."""
    names = bin_names(numbers, edges)
    place = np.searchsorted(np.array(edges), numbers.fill_null(edges[0]).to_numpy(), side="right")
    return pl.Series(numbers.name, [names[each] for each in place], dtype=pl.String).set(numbers.is_null(), None)


def bin_names(numbers: pl.Series, edges: Edges) -> list[str]:
    """Names of the bins, from what lies under the first edge to what lies over the last."""
    known = numbers.drop_nulls()
    whole = bool((known == known.round()).all()) and all(float(edge).is_integer() for edge in edges)
    texts = [f"{edge:g}" for edge in edges]
    between = [
        (texts[i] if edges[i + 1] - edges[i] == 1 else f"{texts[i]}–{edges[i + 1] - 1:g}")
        if whole
        else f"{texts[i]} to under {texts[i + 1]}"
        for i in range(len(edges) - 1)
    ]
    return [f"under {texts[0]}", *between, f"{texts[-1]} and over"]
