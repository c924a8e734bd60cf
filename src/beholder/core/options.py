"""Options, each declared once: a field of a dataclass, whose help and bounds are in `options.toml`.

The command line, `beholder.audit()`, `audit.toml` and the settings in `run.json` are made from these declarations.
"""

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from beholder.core.types import Entry

WHAT, OUTPUT = "What to audit", "Output"  # panels of `--help`
EFFECT, COST = "What the data can show", "What it costs (with --cost)"


@dataclass(frozen=True)
class Option:
    """An option by name: `Option("traits", "Own traits …")` is `--traits FILE`."""

    name: str
    help: str
    kind: type = Path
    several: bool = False  # whether it may be given more than once
    chooses: bool = False  # whether giving it chooses the study, in place of --study
    default: object = None
    flags: tuple[str, ...] = ()  # how it is typed, where that is not `--name`
    panel: str | None = WHAT
    min: float | None = None
    max: float | None = None
    envvar: str | None = None
    metavar: str | None = None
    parse: Callable[[Any], object] | None = None  # from what a user gives, or None, to the field's value
    recorded: bool = False  # whether `run.json` has it among the settings

    @property
    def flag(self) -> str:
        """As it is typed.

        >>> Option("word_vectors", "").flag
        '--word-vectors'
        """
        return self.flags[0] if self.flags else f"--{self.name.replace('_', '-')}"


KINDS = {"file": Path, "text": str, "number": int, "decimal": float, "flag": bool}  # as TOML names them


def option(default: Any, **more: Any) -> Any:
    """A field that is an option; a callable makes its default."""
    made = callable(default)
    several = made or isinstance(default, tuple)
    kind = str if several or default is None else type(default)
    declared = Option("", "", **{"kind": kind, "several": several, "default": None if several else default, **more})
    metadata = {"option": declared}
    return field(default_factory=default, metadata=metadata) if made else field(default=default, metadata=metadata)


def declared_options(declaring: type) -> dict[str, Option]:
    """The options of a dataclass, by the names of their fields, with their words from `options.toml`."""
    words: Entry = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    declared = {each.name: each.metadata["option"] for each in fields(declaring) if "option" in each.metadata}
    told = {name: own for home in declaring.__mro__[::-1] for name, own in words.get(home.__name__, {}).items()}
    return {name: replace(each, name=name, **read_words(told[name])) for name, each in declared.items()}


def read_words(given: Entry) -> Entry:
    """An option's words as TOML has them, as fields of `Option`."""
    return {
        name: KINDS[own] if name == "kind" else tuple(own) if name == "flags" else own for name, own in given.items()
    }


def names_of(texts: str | Iterable[str] | None) -> tuple[str, ...]:
    """Names of columns that were given once or several times, also with commas between them.

    >>> names_of(["gender,race", "age"])
    ('gender', 'race', 'age')
    """
    return tuple(name for text in values_of(texts) for each in text.split(",") if (name := each.strip()))


def values_of(texts: str | Path | Iterable[Any] | None) -> tuple[Any, ...]:
    """What was given once or several times."""
    if texts is None:
        return ()
    return tuple(texts) if isinstance(texts, Iterable) and not isinstance(texts, str) else (texts,)
