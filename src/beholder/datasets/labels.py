"""Labels as tables really have them: values that look alike, and the user's own map of them.

Nothing is merged here: who knows the data maps them (`--map`), or says that they are meant (`--keep-codes`).
"""

import csv
import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder.core.errors import DataError, UnknownName, UsageError
from beholder.core.read import column_in, read_delimited, read_table
from beholder.datasets.dataset import Dataset
from beholder.datasets.selection import MOST_VALUES, numbers_of

Map = dict[str, str | None]  # a value, and the group it stands for; None: no label
FIRST = 8  # values that a message lists
MOST = 100  # different values above which spellings are not compared
NONE = "no label"
READINGS = dict(read_delimited(Path(__file__).with_name("readings.csv")).rows())  # groups and the words for them
ALWAYS_NONE = frozenset("n/a #n/a nan null ? ?? ??? - --".split())  # stand for no label even where they stand alone
BETWEEN = re.compile(r"(?<=\w)[\s_.'’–—-]+(?=\w)")
DASH = re.compile(r"\s*[–—-]\s*")
ROMAN = re.compile("[ivxlc]+")


class Alike(NamedTuple):
    """Values of a column that may mean one group."""

    values: tuple[str, ...]
    reading: str  # the group they seem to mean: a suggestion, never applied; empty where several are possible


class LookAlikes(NamedTuple):
    """All of them in a column."""

    column: str
    alike: tuple[Alike, ...]

    def __str__(self) -> str:
        """What looks alike, and what to type."""
        options = " ".join(self.options)
        return f"{self.said}.\nMap them, for example with {options}\nOr say that they are meant: --keep-codes"

    @property
    def said(self) -> str:
        """What looks alike, in words."""
        same = "; ".join(first_of(each.values) for each in self.alike if each.reading != NONE)
        none = "; ".join(first_of(each.values) for each in self.alike if each.reading == NONE)
        parts = [f"values look alike ({same})"] if same else []
        return " and ".join([*parts, *([f"values may stand for no label ({none})"] if none else [])])

    @property
    def options(self) -> list[str]:
        """The suggested map, ready to paste."""
        return [map_option(self.column, each.values, each.reading) for each in self.alike]


def map_option(column: str, values: Sequence[str], group: str = NONE) -> str:
    """What to type so that these values are one group; three dots stand for one that cannot be guessed."""
    once = dict.fromkeys(each.strip() for each in values)  # a map takes no notice of blanks around a value
    cells = ['"' + each.replace('"', '""') + '"' if set(each) & set(',="') else each for each in once]
    target = "" if group == NONE else group or "…"
    return "--map " + shlex.quote(f"{column}: {', '.join(cells)} = {target}".strip())


def first_of(values: Sequence[str]) -> str:
    """The first few of a list, and how many more there are."""
    shown = [each if each == each.strip() else repr(each) for each in values[:FIRST]]
    return ", ".join(shown) + (f" and {len(values) - FIRST} more" if len(values) > FIRST else "")


def plain(value: str) -> str:
    """A value without what only spellings tell apart: case, accents, blanks and dashes inside, a dot at its end."""
    letters = unicodedata.normalize("NFKD", value.strip().replace("ß", "ss")).casefold()
    letters = "".join(each for each in letters if not unicodedata.combining(each))
    if any(each.isdigit() for each in letters):
        return DASH.sub("-", " ".join(letters.replace("_", " ").split()))
    return BETWEEN.sub("", letters).rstrip(" .,;:") or letters


CONCEPTS = {plain(word): concept for concept, words in READINGS.items() for word in words.split()}


def look_alikes(column: pl.Series) -> LookAlikes | None:
    """The values of a column that may mean one group; None where all are plainly different, or are numbers."""
    table = column.drop_nulls().cast(pl.String).alias("value").value_counts(name="count")
    counts: dict[str, int] = dict(table.sort("count", "value", descending=[True, False]).rows())
    if column.dtype != pl.String or len(counts) > MOST:
        return None
    if numbers_of(column) is not None:
        return _found(column.name, _same_numbers(counts), {}) if len(counts) <= MOST_VALUES else None
    read = _readings(list(counts))
    pairs = [pair for pair in combinations(counts, 2) if _alike(*pair, counts, read)]
    return _found(column.name, _joined(counts, pairs), read)


def _found(column: str, joined: Iterable[Sequence[str]], read: Mapping[str, str]) -> LookAlikes | None:
    found = []
    for values in joined:
        named = {read[each] for each in values if each in read}
        placeholder = all(each.strip().casefold() in ALWAYS_NONE for each in values)
        if len(values) > 1 or placeholder:
            once = dict.fromkeys(each.strip() for each in values) if placeholder or len(values) > 2 else values
            found.append(Alike(tuple(once), NONE if placeholder else _reading(values, named)))
    return LookAlikes(column, tuple(found)) if found else None


def _reading(values: Sequence[str], concepts: Set[str]) -> str:
    """The group that values seem to mean: by the words known here, else the whole word, else the commonest spelling."""
    if concepts:
        concept, *others = concepts
        return "" if others else next((each.strip() for each in values if plain(each) == concept), concept)
    short = any(_abbreviates(*sorted(pair, key=len)) for pair in combinations(values, 2))
    return (max(values, key=len) if short else values[0]).strip()


def _readings(values: Sequence[str]) -> dict[str, str]:
    """What each value seems to mean. Letters are read where all are known, and none begins a word of other meaning."""
    read = {each: CONCEPTS[plain(each)] for each in values if plain(each) in CONCEPTS}
    letters = [each for each in values if len(plain(each)) == 1 and plain(each).isalpha()]
    for letter in letters:
        others = {read[each] for each in read if len(plain(each)) > 1 and plain(each)[0] == plain(letter)}
        if others - {read.get(letter, "")} or not set(letters) <= set(read):
            read.pop(letter, None)
    return read


def _alike(one: str, other: str, counts: Mapping[str, int], read: Mapping[str, str]) -> bool:
    first, second = plain(one), plain(other)
    if first == second:
        return True
    if one in read and other in read:
        return read[one] == read[other]
    short, long = sorted((one, other), key=lambda each: len(plain(each)))
    if _abbreviates(short, long):
        return read.get(short) not in {concept for value, concept in read.items() if value != short}
    few = min(counts[one], counts[other]) * 5 <= max(counts[one], counts[other])
    return _misspelt(one, other, rare=few)


def _abbreviates(short: str, long: str) -> bool:
    """Whether a letter, or a beginning with a dot, stands for a longer word: `m` for `medium`, `Am.` for `American`."""
    start, whole = plain(short), plain(long)
    if len(whole) < 3 or not start.isalpha() or not whole.startswith(start) or ROMAN.fullmatch(whole):
        return False
    return len(start) == 1 or short.strip().endswith(".")


def _misspelt(one: str, other: str, *, rare: bool) -> bool:
    """Whether one word of the two values differs in one letter, which is neither the first nor an ending of gender."""
    first, second = (
        re.findall(r"[^\W\d_]+|\d+", unicodedata.normalize("NFC", each).casefold()) for each in (one, other)
    )
    if len(first) != len(second):
        return False
    words = [pair for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    if len(words) != 1 or not all(each.isalpha() for each in words[0]):
        return False
    short, long = sorted(words[0], key=len)
    if len(long) < 5 or short[0] != long[0] or len(long) - len(short) > 1:
        return False
    if len(short) < len(long):
        return any(long[:place] + long[place + 1 :] == short for place in range(len(long)))
    places = [place for place in range(len(long)) if short[place] != long[place]]
    if len(places) == 2:  # side by side and exchanged
        return places[1] - places[0] == 1 and sorted(short) == sorted(long)
    ending = {short[-1], long[-1]} == {"a", "o"} and places == [len(long) - 1]
    return len(places) == 1 and not ending and (len(long) > 5 or rare)


def _same_numbers(counts: Mapping[str, int]) -> Iterator[list[str]]:
    """Numbers that are written in two ways, such as `1` and `1.0`."""
    written: dict[float, list[str]] = {}
    for text in counts:
        written.setdefault(float(text.replace(",", ".")), []).append(text)
    return (texts for texts in written.values() if len(texts) > 1)


def _joined(values: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Values in sets: two that are alike are in one."""
    sets = {value: [value] for value in values}
    for one, other in pairs:
        if sets[one] is not sets[other]:
            sets[one] += sets[other]
            sets.update(dict.fromkeys(sets[other], sets[one]))
    return list({id(each): each for each in sets.values()}.values())


# The user's own map


def parse_maps(options: Iterable[str]) -> dict[str, Map]:
    """Of every `COLUMN=FILE` and `COLUMN: VALUE, VALUE = GROUP`, what each value stands for."""
    maps: dict[str, Map] = {}
    for option in options:
        head, sign, rest = option.partition(":") if ":" in option.partition("=")[0] else option.partition("=")
        column = head.strip()
        if not column or not rest.strip():
            raise UsageError(
                f"--map {option}: write a column and a table of two columns (value, group), --map gender=map.csv, or "
                "values and their group, --map 'gender: m, M, male = man'."
            )
        read = _inline(option, rest) if sign == ":" else _table(Path(rest.strip()).expanduser())
        known = maps.setdefault(column, {})
        for value, group in read.items():
            if known.setdefault(value, group) != group:
                raise UsageError(f"--map {column}: {value!r} stands for {known[value]!r} and for {group!r}.")
    return maps


def _inline(option: str, text: str) -> Map:
    values, sign, group = text.rpartition("=")
    cells = [each.strip() for each in next(csv.reader([values.strip()], skipinitialspace=True), [])]
    if not sign or not any(cells):
        raise UsageError(f"--map {option}: write values, = and their group: --map 'gender: m, M, male = man'.")
    return {each: group.strip() or None for each in cells if each}


def _table(path: Path) -> Map:
    """A table of values and groups; an empty group means no label."""
    table = read_table(path)
    if len(table.columns) != 2:
        raise DataError(f"{path}: a map has two columns, value and group; this table has: {', '.join(table.columns)}.")
    made: Map = {}
    for value, group in table.cast(pl.String).drop_nulls(table.columns[0]).iter_rows():
        if made.setdefault(value.strip(), group) != group:
            raise DataError(f"{path}: {value!r} stands for {made[value.strip()]!r} and for {group!r}.")
    return made


def unclear_labels(dataset: Dataset, names: Iterable[str]) -> dict[str, LookAlikes]:
    """Those of the labels in which values look alike while nobody has said whether they are one group."""
    columns = dict.fromkeys(column_in(dataset.table, name) for name in names if not dataset.codes_meant)
    found = {name: look_alikes(dataset.table[name]) for name in columns if name in dataset.table.columns}
    return {name: each for name, each in found.items() if each is not None}


def without_labels(dataset: Dataset, names: Iterable[str]) -> Dataset:
    """The data set with nothing in these columns: what is not known is not compared."""
    empty = [pl.lit(None, pl.String).alias(name) for name in names]
    return replace(dataset, table=dataset.table.with_columns(empty)) if empty else dataset


def mapped(dataset: Dataset, maps: Mapping[str, Map], *, keep_codes: bool = False) -> Dataset:
    """The data set with the mapped values, and a note on what became of them."""
    dataset = replace(dataset, codes_meant=True) if keep_codes else dataset
    columns, notes = [], list[str]()
    for name, meanings in maps.items():
        column = dataset.attribute(name)
        texts = column.cast(pl.String).str.strip_chars()
        known, changed = set(texts.drop_nulls()), [value for value in meanings if value in set(texts)]
        if not changed:
            raise UnknownName("value", next(iter(meanings), ""), known, where=f"--map {name}: the column")
        columns.append(texts.replace(meanings).alias(column.name))
        groups = dict.fromkeys(meanings[value] for value in changed)
        read = [f"{first_of([v for v in changed if meanings[v] == group])} as {group or NONE}" for group in groups]
        notes.append(f"{column.name} is read by the given map (--map): {'; '.join(read)}")
        if absent := [value for value in meanings if value not in known]:
            notes.append(f"{column.name} has no {first_of(absent)}, which the map names")
    table = dataset.table.with_columns(columns)
    return replace(dataset, table=table, notes=(*dataset.notes, *notes)) if maps else dataset
