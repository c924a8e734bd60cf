"""Settings of a data set: what a user may choose about how it is read, as `--set NAME=VALUE`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder.core.digests import file_digest
from beholder.core.errors import DataError, MissingData, UnknownName, UsageError
from beholder.core.read import read_delimited, read_table, text_columns


def parse_settings(pairs: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE`, each name once."""
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {pair}: a setting is written NAME=VALUE, as in --set split=train2017.")
        if name in settings:
            raise UsageError(f"--set {name} is given twice.")
        settings[name] = value
    return settings


class Setting(NamedTuple):
    """One thing that may be chosen."""

    default: str
    meaning: str


def choices(dataset: str) -> dict[str, Setting]:
    """What may be chosen for a data set, as `settings.csv` has it."""
    table = read_delimited(Path(__file__).with_name("settings.csv")).filter(dataset=dataset).fill_null("")
    return {name: Setting(default, meaning) for _, name, default, meaning in table.iter_rows()}


class Settings:
    """What was chosen for one data set, over its defaults."""

    def __init__(self, dataset: str, known: Mapping[str, Setting], chosen: Mapping[str, str] | None) -> None:
        self.chosen = dict(chosen or {})
        for name in self.chosen:
            if name not in known:
                raise UnknownName("setting", name, known, where=f"The data set '{dataset}'")
        self._values = {name: setting.default for name, setting in known.items()} | self.chosen

    def contents(self, folder: Path) -> dict[str, str]:
        """What was chosen, files by their bytes: the same on any machine, and other when a file is."""
        contents = dict(self.chosen)
        for name, value in self.chosen.items():
            files = [path for path in (Path(value).expanduser(), folder / value) if value and path.is_file()]
            contents[name] = file_digest(files[0]) if files else value
        return contents

    def text(self, name: str) -> str:
        """The value as it was written."""
        return self._values[name]

    def one_of(self, name: str, known: Iterable[str]) -> str:
        """One of a few words."""
        if self._values[name] not in (names := list(known)):
            raise UnknownName("value", self._values[name], names, where=f"The setting '{name}'")
        return self._values[name]

    def words(self, name: str) -> tuple[str, ...]:
        """Words between commas; none for an empty value."""
        return tuple(word.strip() for word in self._values[name].split(",") if word.strip())

    def number(self, name: str) -> int:
        """A whole number from 0."""
        if not self._values[name].isdecimal():
            raise UsageError(f"--set {name}={self._values[name]}: a whole number is needed.")
        return int(self._values[name])

    def groups(self, folder: Path, default: "GroupWords") -> "GroupWords":
        """The user's own groups, where a table of them is named."""
        path = self.path("groups", folder)
        return read_group_words(path) if path else default

    def path(self, name: str, folder: Path, usual: str = "") -> Path | None:
        """A file or folder that is there, as named or inside the data set's folder; else the usual one, or None."""
        value = self._values[name]
        if not value:
            return folder / usual if usual and (folder / usual).is_file() else None
        places = [Path(value).expanduser(), folder / value]
        existing = next((path for path in places if path.exists()), None)
        if existing is None:
            looked = " and ".join(dict.fromkeys(map(str, places)))
            raise MissingData(f"--set {name}={value}: nothing is there (looked at {looked}).")
        return existing


class Steps(list[str]):
    """Filters in their order, and what there is to know between them, as notes for the record."""

    def add(self, name: str, images: int) -> None:
        """A filter, and how many images are left after it."""
        number = 1 + sum(note.startswith("step ") for note in self)
        self.append(f"step {number}, {name}: {images:,} images")


def group_counts(table: pl.DataFrame, attribute: str) -> str:
    """How many images each group has."""
    counts = table[attribute].value_counts().sort(attribute)
    return f"{attribute}: " + ", ".join(f"{group} {count:,}" for group, count in counts.iter_rows())


# Groups reported by words: whom a caption or an annotation speaks of, as far as annotators' words say what they saw. A
# picture belongs to a group only if all words that occur point to that one; others are left out and counted.

CUTS = {"letters": re.compile(r"\w+"), "apostrophes": re.compile(r"[\w']+"), "blanks": re.compile(r"\S+")}
"""Where a word ends. `letters`: at anything that is no letter, so "man's" names a man. `apostrophes`: "man's" is a
word of its own. `blanks`: only at blanks, so "man." and "man," are words of their own too."""


@dataclass(frozen=True)
class GroupWords:
    """An attribute and the words that stand for each of its groups."""

    attribute: str
    words: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        if len(self.words) < 2 or not all(self.words.values()):
            raise DataError(f"{self.attribute}: at least two groups are needed, each with its words.")
        seen: dict[str, str] = {}
        for group, word in ((group, word) for group, words in self.words.items() for word in words):
            if seen.setdefault(word, group) != group:
                both = f"{seen[word]} and for {group}"
                raise DataError(f"{self.attribute}: {word!r} stands for {both}; a word has one group.")

    def named(self, words: Iterable[str]) -> tuple[str, ...]:
        """The groups that these words name."""
        present = set(words)
        return tuple(group for group, own in self.words.items() if not present.isdisjoint(own))


# The study's words for captions
WOMAN = tuple("woman womans women girl girls lady ladies mother mothers daughter daughters she her hers".split())
MAN = tuple("man mans men boy boys father fathers son sons he his him".split())
GENDER_WORDS = GroupWords("gender", {"woman": WOMAN, "man": MAN})


def words_of(text: str, cut: str = "letters") -> set[str]:
    """The words of a text, in lower case."""
    return set(CUTS[cut].findall(text.lower()))


def require_words(words: Iterable[str], cut: str) -> None:
    """Raise for a word that this way of cutting text can never produce: it would never match."""
    for word in words:
        if words_of(word, cut) != {word}:
            how = f"where words are cut by {cut}"
            raise DataError(f"{word!r} is no single word in lower case, {how}: no caption could say it.")


def read_group_words(path: Path) -> GroupWords:
    """Groups from a table with the columns `group` and `word`; the attribute is called as the file is."""
    table = text_columns(read_table(path), ["group", "word"], path)
    words: dict[str, list[str]] = {}
    for group, word in table.select("group", "word").iter_rows():
        words.setdefault(group, []).append(word.lower())
    try:
        return GroupWords(path.stem, {group: tuple(dict.fromkeys(listed)) for group, listed in words.items()})
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
