"""The gate: may this model ship? Rules about the numbers of a run, each decided with its uncertainty.

A rule names a metric, optionally what it is of, and a bound. A number holds if its whole interval keeps the bound,
fails if its whole interval breaks it, and is open in between. A rule that finds no number, or one that is absent,
fails: what was not measured was not shown.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from beholder.core.errors import UsageError
from beholder.core.results import KEY

WHERE = ("benchmark", "model", "dataset", *KEY[1:])
BOUNDS = ("at_least", "at_most")
HOLDS, FAILS, OPEN = "holds", "fails", "open"


@dataclass(frozen=True)
class Rule:
    """A bound that numbers of one metric have to keep."""

    metric: str
    where: Mapping[str, str]
    at_least: float | None = None
    at_most: float | None = None
    shown: bool = False
    """Whether an open number stops the model: the bound must be shown to be kept, not only not shown to be broken."""

    def __str__(self) -> str:
        location = ", ".join(f"{name} {value}" for name, value in self.where.items())
        bounds = [f"at {name[3:]} {bound:g}" for name in BOUNDS if (bound := getattr(self, name)) is not None]
        name = f"{self.metric} ({location})" if location else self.metric
        return f"{name} {' and '.join(bounds)}{', shown' if self.shown else ''}"


class Verdict(NamedTuple):
    """What became of a rule at one number; `row` is None where there was none."""

    rule: Rule
    row: dict[str, Any] | None
    verdict: str
    reason: str

    @property
    def stops(self) -> bool:
        """Whether the model may not pass."""
        return self.verdict == FAILS or (self.verdict == OPEN and self.rule.shown)


def read_rules(path: Path) -> list[Rule]:
    """The rules of a TOML file, `[[rule]]` after `[[rule]]`."""
    if not path.is_file():
        raise UsageError(f"There is no file of rules at {path}. It is TOML; docs/gate.md shows one.")
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    entries = read.get("rule")
    if not isinstance(entries, list) or not entries or set(read) != {"rule"}:
        raise UsageError(f"{path} has no rules: it is a list of [[rule]] and nothing else. docs/gate.md shows one.")
    return [_rule(entry, f"{path}, rule {number}") for number, entry in enumerate(entries, 1)]


def _rule(entry: Mapping[str, Any], location: str) -> Rule:
    for key in entry:
        if key not in ("metric", "shown", *WHERE, *BOUNDS):
            near = get_close_matches(key, ["metric", "shown", *WHERE, *BOUNDS], 1)
            hint = (
                f" Did you mean {near[0]!r}?"
                if near
                else f" It may say: metric, shown, {', '.join((*WHERE, *BOUNDS))}."
            )
            raise UsageError(f"{location}: {key!r} is not known.{hint}")
    bounds = {name: entry.get(name) for name in BOUNDS}
    numbers = [bound for bound in bounds.values() if bound is not None]
    if not isinstance(entry.get("metric"), str) or not numbers or not all(map(_is_number, numbers)):
        raise UsageError(f"{location}: a rule needs a metric and a number as at_least or at_most.")
    if not isinstance(entry.get("shown", False), bool):
        raise UsageError(f"{location}: shown is true or false.")
    where = {name: str(entry[name]) for name in WHERE if name in entry}
    return Rule(entry["metric"], where, **bounds, shown=entry.get("shown", False))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def judged(results: pl.DataFrame, rules: Iterable[Rule]) -> list[Verdict]:
    """Every rule at every number it is about."""
    return [verdict for rule in rules for verdict in _judged(results, rule)]


def _judged(results: pl.DataFrame, rule: Rule) -> Iterator[Verdict]:
    measured = results.filter(pl.col("metric") == rule.metric)
    rows = measured.filter(*(pl.col(name) == value for name, value in rule.where.items()))
    if rows.is_empty():
        yield Verdict(rule, None, FAILS, _why_none(results, measured, rule))
    for row in rows.iter_rows(named=True):
        yield Verdict(rule, row, *decided(rule, row))


def decided(rule: Rule, row: Mapping[str, Any]) -> tuple[str, str]:
    """The verdict on one number, and why."""
    if row["value"] is None:
        return FAILS, f"absent: {row['note'] or 'not measured'}"
    least = -float("inf") if rule.at_least is None else rule.at_least
    most = float("inf") if rule.at_most is None else rule.at_most
    if row["low"] is None or row["high"] is None:
        kept = least <= row["value"] <= most
        return (OPEN, "kept, but without an interval") if kept else (FAILS, "broken; there is no interval")
    if least <= row["low"] and row["high"] <= most:
        return HOLDS, "the whole interval keeps the bound"
    if row["high"] < least or row["low"] > most:
        return FAILS, "the whole interval breaks the bound"
    return OPEN, "the interval holds the bound: more images would decide"


def _why_none(results: pl.DataFrame, measured: pl.DataFrame, rule: Rule) -> str:
    if measured.is_empty():
        return f"nothing was measured by that name; this run has {_some(results['metric'])}"
    for name, value in rule.where.items():
        if value not in (known := measured[name].drop_nulls()).to_list():
            return f"no {name} is called {value!r}; there is {_some(known)}"
    return "No row matches all of these filters"


def _some(names: pl.Series, most: int = 8) -> str:
    known: Sequence[str] = names.unique(maintain_order=True).to_list()
    return ", ".join(known[:most]) + (f" and {len(known) - most} more" if len(known) > most else "") or "nothing"
