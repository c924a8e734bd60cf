"""Groups told by words: whom a caption or an annotation speaks of, as far as its words say.

The words are annotators', about what they saw. A picture belongs to a group only if all words that occur point
to that one; who names several groups, or none, is left out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from beholder.core.errors import DataError
from beholder.core.tables import read_table, require_columns

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
        for group, words in self.words.items():
            for word in words:
                if seen.setdefault(word, group) != group:
                    raise DataError(
                        f"{self.attribute}: {word!r} stands for {seen[word]} and for {group}; a word has one group."
                    )

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups, in the order they were declared."""
        return tuple(self.words)

    def named(self, words: Iterable[str]) -> tuple[str, ...]:
        """The groups that these words name.

        >>> GENDER_WORDS.named({"a", "boy", "and", "his", "dog"})
        ('man',)
        """
        present = set(words)
        return tuple(group for group, own in self.words.items() if not present.isdisjoint(own))


GENDER_WORDS = GroupWords(
    "gender",
    {
        "woman": tuple(
            """
    woman womans women girl girls lady ladies mother mothers daughter daughters she her hers
    """.split()
        ),
        "man": ("man", "mans", "men", "boy", "boys", "father", "fathers", "son", "sons", "he", "his", "him"),
    },
)
"""The study's words for captions."""


def words_of(text: str, cut: str = "letters") -> set[str]:
    """The words of a text, in lower case.

    >>> sorted(words_of("A man's hat.")), sorted(words_of("A man's hat.", "blanks"))
    (['a', 'hat', 'man', 's'], ['a', 'hat.', "man's"])
    """
    return set(CUTS[cut].findall(text.lower()))


def require_words(words: Iterable[str], cut: str) -> None:
    """Raise for a word that this way of cutting text can never produce: it would never match."""
    for word in words:
        if words_of(word, cut) != {word}:
            raise DataError(
                f"{word!r} is no single word in lower case, where words are cut by {cut}: no caption could say it."
            )


def read_group_words(path: Path) -> GroupWords:
    """Groups from a table with the columns `group` and `word`; the attribute is called as the file is."""
    table = read_table(path)
    require_columns(table, ["group", "word"], path)
    words: dict[str, list[str]] = {}
    for row, (group, word) in enumerate(table.select("group", "word").iter_rows(), start=2):
        if not group or not word:
            raise DataError(f"{path}: row {row} has no {'word' if group else 'group'}.")
        words.setdefault(str(group), []).append(str(word).strip().lower())
    try:
        return GroupWords(path.stem, {group: tuple(dict.fromkeys(listed)) for group, listed in words.items()})
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
