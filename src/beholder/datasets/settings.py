"""Settings of a data set: what a user may choose about how it is read, as `--set NAME=VALUE`.

Values are text from the command line; each is read as what the loader needs, or refused with the setting's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder.core.digests import file_digest
from beholder.core.errors import MissingData, UnknownName, UsageError


def parse_settings(pairs: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE`, each name once.

    >>> parse_settings(["split=train2017", "without="])
    {'split': 'train2017', 'without': ''}
    """
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
        return {name: _content(value, folder) for name, value in self.chosen.items()}

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

    def path(self, name: str, folder: Path) -> Path | None:
        """A file or folder that is there, as named or inside the data set's folder; None where none was named."""
        value = self._values[name]
        if not value:
            return None
        existing = next((path for path in _candidates(value, folder) if path.exists()), None)
        if existing is None:
            looked = " and ".join(dict.fromkeys(map(str, _candidates(value, folder))))
            raise MissingData(f"--set {name}={value}: nothing is there (looked at {looked}).")
        return existing


def _candidates(value: str, folder: Path) -> list[Path]:
    return [Path(value).expanduser(), folder / value]


def _content(value: str, folder: Path) -> str:
    file = next((path for path in _candidates(value, folder) if value and path.is_file()), None)
    return file_digest(file) if file else value


# Steps


class Steps:
    """Filters in their order, as notes for the record."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.counts: list[int] = []

    def add(self, name: str, images: int) -> None:
        """A filter, and how many images are left after it."""
        self.counts.append(images)
        self.notes.append(f"step {len(self.counts)}, {name}: {images:,} images")

    def note(self, text: str) -> None:
        """Something to know between two steps."""
        self.notes.append(text)


def group_counts(table: pl.DataFrame, attribute: str) -> str:
    """How many images each group has.

    >>> group_counts(pl.DataFrame({"gender": ["man", "woman", "man"]}), "gender")
    'gender: man 2, woman 1'
    """
    counts = table[attribute].value_counts().sort(attribute)
    return f"{attribute}: " + ", ".join(f"{group} {count:,}" for group, count in counts.iter_rows())
