"""The gate: may this model ship? Rules about the numbers of a run, each decided with its uncertainty.

A rule says which of three things it means:

    at_least = 0.8, require = "shown"       the whole interval lies above 0.8
    at_least = 0.8, require = "possible"    the interval does not lie below 0.8
    require = "no worse"                    not shown to be worse than the baseline

A rule with a bound and without `require` passes if the whole interval keeps the bound, fails if the whole interval
breaks it, and is undecided in between, and where there is too little data. What was not measured fails: it was not
shown. Where a number was also measured within strata, that row decides, unless the rule names a `variant`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars as pl
from scipy.stats import norm
from scipy.stats import t as student

from beholder._run import load_run
from beholder.chapter.finding import Finding, deciding
from beholder.comparison.family import DIFFERENCE, NONE_FOUND, NOT_MEASURED, TOO_LITTLE, VERDICTS
from beholder.comparison.groups import REST
from beholder.comparison.impact import FOUR_FIFTHS, IMPACT_RATIO
from beholder.core.errors import UnknownName, UsageError
from beholder.core.read import read_text, read_toml
from beholder.core.record import Record
from beholder.core.results import KEY
from beholder.core.types import Entry, Fields
from beholder.report.comparison import COMPARED, read_comparison
from beholder.studies import STUDIES

WHERE = ("study", "model", "dataset", *KEY[1:])
BOUNDS = ("at_least", "at_most")
SHOWN, POSSIBLE, NO_WORSE = REQUIRED = ("shown", "possible", "no worse")
PAIRED = ("first", "second", "difference", "low", "high")
BETTER = ("closer", "higher", "lower")
ALIASES = {"shown": DIFFERENCE, "not shown": NONE_FOUND}  # verdicts as rules of earlier versions name them
PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"
READY: dict[str, Entry] = {"four-fifths": {"metric": IMPACT_RATIO, "at_least": FOUR_FIFTHS}}
"""Rules that only need a name; a metric is named by its ending, and is the first that a study has."""
LEVEL = 0.05  # how often an unchanged model may fail by chance, over all numbers that are compared with the baseline


@dataclass(frozen=True)
class Rule:
    """What numbers of one metric, or the findings of one question, have to be."""

    metric: str
    where: Mapping[str, str] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None
    require: str | None = None  # `shown`, `possible` or `no worse`
    better: str = "closer"  # with `no worse`: `higher`, `lower`, or `closer` to the value without any effect
    by: float | None = None  # with `no worse`: how much worse is allowed, which then has to be shown
    finding: str = ""  # in place of a metric: a question of a study, such as `apa.bias`
    verdict_not: str = ""
    undecided: str = PASS  # what becomes of the model where the rule is undecided
    line: int = 1  # where the rule begins in its file

    def __str__(self) -> str:
        location = ", ".join(f"{name} {value}" for name, value in self.where.items())
        bounds = [f"at {name[3:]} {bound:g}" for name in BOUNDS if (bound := getattr(self, name)) is not None]
        wanted = " and ".join(bounds) or f"not {self.verdict_not}" * bool(self.finding)
        if self.require == NO_WORSE:
            wanted = f"no worse than the baseline{f' by more than {self.by:g}' if self.by is not None else ''}"
        elif self.require:
            wanted += f", {self.require}"
        name = self.metric or self.finding
        return f"{name} ({location}) {wanted}" if location else f"{name} {wanted}"


class Verdict(NamedTuple):
    """What became of a rule at one number; `row` is None where there was none."""

    rule: Rule
    row: Fields | None
    verdict: str
    reason: str

    @property
    def stops(self) -> bool:
        """Whether the model may not pass."""
        return FAIL in (self.verdict, self.rule.undecided if self.verdict == UNDECIDED else "")


def read_rules(path: Path, *, undecided: str | None = None) -> list[Rule]:
    """The rules of a TOML file, `[[rule]]` after `[[rule]]`; `undecided` goes before what the file says."""
    if not path.is_file():
        raise UsageError(f"There is no file of rules at {path}. It is TOML; docs/gate.md shows one.")
    read = read_toml(path)
    entries, default = read.get("rule"), read.get("undecided", PASS)
    rules = entries if isinstance(entries, list) else []
    if not rules or not all(isinstance(rule, dict) for rule in rules) or not set(read) <= {"rule", "undecided"}:
        raise UsageError(
            f"{path} has no rules: it is a list of [[rule]], and may begin with `undecided`. docs/gate.md shows one."
        )
    if default not in (PASS, FAIL):
        raise UsageError(f"{path}: undecided is {PASS!r} or {FAIL!r}, not {default!r}.")
    lines = [number for number, line in enumerate(read_text(path).splitlines(), 1) if line.strip().startswith("[[")]
    lines += [1] * len(rules)  # rules may also be written in one line
    numbered = enumerate(zip(rules, lines, strict=False), 1)
    return [_rule(entry, f"{path}, rule {n}", undecided or default, line) for n, (entry, line) in numbered]


def _rule(entry: Fields, location: str, undecided: str, line: int) -> Rule:
    if (ready := entry.get("ready")) is not None:
        if ready not in READY:
            raise UnknownName("ready rule", str(ready), READY, where=location)
        metrics = (metric.name for study in STUDIES.values() for metric in study.measures.metrics)
        metric = next(name for name in metrics if name.endswith(f".{READY[ready]['metric']}"))
        entry = {**READY[ready], "metric": metric, **{key: value for key, value in entry.items() if key != "ready"}}
    known = ("ready", "metric", "finding", *WHERE, *BOUNDS, "require", "better", "by", "verdict_not", "undecided")
    for key in entry:
        if key not in known:
            near = get_close_matches(key, known, 1) or (["require"] if key == "shown" else [])
            hint = f" Did you mean {near[0]!r}?" if near else f" It may say: {', '.join(known)}."
            raise UsageError(f"{location}: {key!r} is not known.{hint}")
    choices = {"require": REQUIRED, "better": BETTER, "verdict_not": (*VERDICTS, *ALIASES), "undecided": (PASS, FAIL)}
    for key, allowed in choices.items():
        if entry.get(key, allowed[0]) not in allowed:
            raise UsageError(f"{location}: {key} is one of {', '.join(allowed)}, not {entry[key]!r}.")
    numbers = [entry[key] for key in (*BOUNDS, "by") if key in entry]
    if not all(type(each) in (int, float) and math.isfinite(each) for each in numbers):
        raise UsageError(f"{location}: at_least, at_most and by are numbers.")
    undecided = entry.get("undecided", undecided)
    where = {name: str(entry[name]) for name in WHERE if name in entry}
    if isinstance(entry.get("finding"), str) and "verdict_not" in entry and "metric" not in entry:
        if extra := sorted(set(entry) - {"finding", "verdict_not", "model", "dataset", "undecided"}):
            raise UsageError(f"{location}: a rule about a finding does not take {', '.join(extra)}.")
        unwanted = str(ALIASES.get(entry["verdict_not"], entry["verdict_not"]))
        return Rule("", where, finding=entry["finding"], verdict_not=unwanted, undecided=undecided, line=line)
    bounds = {name: entry[name] for name in BOUNDS if name in entry}
    if not isinstance(entry.get("metric"), str) or bool(bounds) == (entry.get("require") == NO_WORSE):
        raise UsageError(
            f"{location}: a rule needs a metric with at_least or at_most, a metric with require = {NO_WORSE!r}, "
            "or a finding with verdict_not."
        )
    if entry.get("require") != NO_WORSE and {"better", "by"} & set(entry):
        raise UsageError(f"{location}: better and by go with require = {NO_WORSE!r}.")
    undecided = {SHOWN: FAIL, POSSIBLE: PASS}.get(entry.get("require", ""), undecided)
    named = {name: entry[name] for name in ("require", "better", "by") if name in entry}
    return Rule(entry["metric"], where, **bounds, **named, undecided=undecided, line=line)


def refuse_unknown_names(rules: Iterable[Rule], results: pl.DataFrame, record: Record) -> None:
    """Raise for a metric, finding, subset, group … that does not exist: a misspelt rule must not decide anything."""
    listed = (each.name for study in STUDIES.values() for each in study.measures.metrics)
    own = (str(each["name"]) for study in record.declared.values() for each in study.get("metrics", []))
    metrics = {*results["metric"], *own, *listed}
    for rule in rules:
        chapters = [(study.name, study.part("chapter")) for study in STUDIES.values() if rule.finding]
        questions = [f"{name}.{kind}" for name, chapter in chapters if chapter for kind in chapter.questions]
        if rule.finding and rule.finding not in questions:
            raise UnknownName("finding", rule.finding, questions)
        if rule.metric and rule.metric not in metrics:
            raise UnknownName("metric", rule.metric, metrics)
        if rule.metric in results["metric"]:
            for name, value in rule.where.items():
                if value not in (known := results[name].drop_nulls().unique()).to_list():
                    raise UnknownName(name, value, known, where="This run")


def judged(
    results: pl.DataFrame,
    rules: Iterable[Rule],
    *,
    changes: pl.DataFrame | None = None,
    findings: Callable[[], Sequence[Finding]] = list,
) -> list[Verdict]:
    """Every rule at every number it is about.

    `changes` are the numbers beside those of the baseline (`changed`, or the table of a comparison). Intervals of pairs
    hold for all of them together; the others are widened. `findings` is called if a rule is about one.
    """
    rules = list(rules)
    matched = {id(rule): _matching(changes, rule) for rule in rules if rule.require == NO_WORSE and changes is not None}
    compared = sum(rows.height - int(rows["paired"].sum()) for rows in matched.values())
    verdicts: list[Verdict] = []
    for rule in rules:
        if rule.finding:
            verdicts += _findings_judged(rule, findings())
        elif rule.require == NO_WORSE and changes is None:
            verdicts.append(Verdict(rule, None, UNDECIDED, "there is no baseline to compare with"))
        else:
            rows = matched.get(id(rule), _matching(results, rule))
            for row in rows.iter_rows(named=True):
                bound = rule.require != NO_WORSE
                wider = 1.0 if bound or row["paired"] else _wider(compared, row["n"])
                found = decided(rule, row) if bound else decided_change(rule, row, wider)
                verdicts.append(Verdict(rule, row, *found))
            if rows.is_empty():
                verdicts.append(Verdict(rule, None, FAIL, _why_none(results, rule)))
    return verdicts


def judge_folder(
    folder: Path, rules: Sequence[Rule], *, baseline: Path | None = None, pairs: pl.DataFrame | None = None
) -> list[Verdict]:
    """Every rule at the numbers of a run, beside those of a baseline, or at the differences of a comparison.

    `pairs` are differences from the baseline with people in pairs: they decide where there are some.
    """
    if (folder / COMPARED).is_file():
        if baseline is not None:
            raise UsageError(f"{folder} is a comparison: it has its baseline. Leave --baseline out.")
        comparison = read_comparison(folder)
        table = comparison.table.with_columns(value=pl.col("difference"))
        refuse_unknown_names(rules, table, comparison.record)
        return judged(table, rules, changes=comparison.table.with_columns(value="second", paired=True))
    run = load_run(folder)
    refuse_unknown_names(rules, run.results, run.record)
    if baseline is None and (rule := next((rule for rule in rules if rule.require == NO_WORSE), None)):
        raise UsageError(f"The rule '{rule}' needs the run of the last release: add --baseline RUN.")
    changes = changed(run.results, load_run(baseline).results, pairs) if baseline else None
    return judged(run.results, rules, changes=changes, findings=lambda: run.findings)


def _matching(table: pl.DataFrame, rule: Rule) -> pl.DataFrame:
    """The rows that a rule is about: of a number that was also measured within strata, the row that decides."""
    rows = table.filter(pl.col("metric") == rule.metric)
    rows = rows if "variant" in rule.where else deciding(rows)
    return rows.filter(*(pl.col(name) == value for name, value in rule.where.items()))


def _findings_judged(rule: Rule, findings: Sequence[Finding]) -> Iterator[Verdict]:
    asked = [each for each in findings if f"{each.study}.{each.kind}" == rule.finding]
    mine = [each for each in asked if all(getattr(each, name) == value for name, value in rule.where.items())]
    if not mine:
        yield Verdict(rule, None, FAIL, "nothing was found out about this question")
    for each in mine:
        unknown = each.verdict in (TOO_LITTLE, NOT_MEASURED)
        verdict = FAIL if each.verdict == rule.verdict_not else UNDECIDED if unknown else PASS
        first = each.rows[0] if each.rows else {}
        numbers = {name: first.get(name) for name in (*KEY, "value", "low", "high")}
        whose = {"model": each.model, "dataset": each.dataset, "finding": each.id, "verdict": each.verdict}
        yield Verdict(rule, {**whose, **numbers}, verdict, f"{each.marked}: {each.headline}")


def decided(rule: Rule, row: Fields) -> tuple[str, str]:
    """The verdict on one number, and why."""
    value, low, high = row["value"], row["low"], row["high"]
    if value is None:
        return FAIL, f"absent: {row['note'] or 'not measured'}"
    least = -math.inf if rule.at_least is None else rule.at_least
    most = math.inf if rule.at_most is None else rule.at_most
    kept = least <= value <= most
    if row.get("verdict") == TOO_LITTLE:
        return UNDECIDED, f"{TOO_LITTLE}: the value {'keeps' if kept else 'breaks'} the bound, which means little"
    if low is None or high is None:
        lone = UNDECIDED, "the value keeps the bound, but has no interval"
        return lone if kept else (FAIL, "the value breaks the bound")
    if least <= low and high <= most:
        return PASS, "the whole interval keeps the bound"
    if high < least or low > most:
        return FAIL, "the whole interval breaks the bound"
    return UNDECIDED, f"the value {'keeps' if kept else 'breaks'} the bound, and the interval allows both"


def decided_change(rule: Rule, row: Fields, wider: float = 1.0) -> tuple[str, str]:
    """The verdict on a change since the baseline, and why; its interval is made `wider`, as many are looked at."""
    if row["first"] is None and row["second"] is None:
        return UNDECIDED, "measured in neither run"
    if row["second"] is None:
        return FAIL, "measured in the baseline, but not in this run"
    if row["first"] is None:
        return UNDECIDED, "not measured in the baseline"
    if rule.better == "closer" and row.get("landmark") is None:
        raise UsageError(f"{rule.metric} has no value without effect. Say better = 'higher' or better = 'lower'.")
    worse, low, high = worsening(rule.better, row, wider)
    if row.get("verdict") == TOO_LITTLE:
        return UNDECIDED, f"{TOO_LITTLE}: worse by {worse:.3g}, which means little"
    if low is None or high is None:
        return (PASS, "not worse") if worse <= (rule.by or 0.0) else (UNDECIDED, "worse, but without an interval")
    change = f"worse by {worse:.3g} ({low:.3g} to {high:.3g}{', in pairs' if row.get('paired') else ''})"
    if low > (rule.by or 0.0):
        return FAIL, f"{change}: more than chance{' and more than is allowed' if rule.by else ''}"
    if rule.by is None or high <= rule.by:
        return PASS, f"{change}: {'not shown to be worse' if rule.by is None else 'no more than is allowed'}"
    return UNDECIDED, f"{change}: it may be more than is allowed"


def worsening(better: str, row: Fields, wider: float = 1.0) -> tuple[float, float | None, float | None]:
    """By how much a number became worse, with its interval: below 0 is better.

    Distances of ratios from their landmark are counted on the scale of logarithms: half is as far as double.
    """
    landmark, first, second = row.get("landmark") or 0.0, row["first"], row["second"]

    def cost(value: float) -> float:
        if better != "closer":
            return -value if better == "higher" else value
        if row.get("unit") == "ratio" and landmark > 0:
            return abs(math.log(max(value, 1e-9) / landmark))
        return abs(value - landmark)

    before = cost(first)
    if row["low"] is None or row["high"] is None:
        return cost(second) - before, None, None
    ends = [second + wider * (end - (second - first)) for end in (row["low"], row["high"])]
    inside = better == "closer" and ends[0] <= landmark <= ends[1]
    costs = [cost(end) for end in ends] + [0.0] * inside
    # 0.3 - 0.2 is not 0.1 to a machine
    return cost(second) - before, round(min(costs) - before, 12), round(max(costs) - before, 12)


@cache
def _wider(compared: int, n: int | None) -> float:
    """How much wider an interval is if all of them together shall be wrong in one of twenty cases only."""
    # Student's t with half of a run's people, as most numbers are about two groups.
    tail = 1 - LEVEL / 2 / max(1, compared)
    return float(student.ppf(tail, max(2.0, (n or 0) / 2 - 1)) / norm.ppf(1 - LEVEL / 2)) if compared else 1.0


def changed(results: pl.DataFrame, baseline: pl.DataFrame, pairs: pl.DataFrame | None = None) -> pl.DataFrame:
    """Every number beside that of the baseline: `first`, `second`, and the interval of their difference.

    Where there is no interval of `pairs`, the two runs count as independent (Zou and Donner's MOVER). If both saw the
    same pictures, that is too wide rather than too narrow. Models are matched by name, or alone whatever they
    are called.
    """
    alone = results["model"].n_unique() == 1 == baseline["model"].n_unique()
    keys = ["study", *([] if alone else ["model"]), "dataset", *KEY]
    first = baseline.select(*keys, first="value", first_low="low", first_high="high").unique(keys, maintain_order=True)
    first = _turned(first, results, keys, ("first", "first_low", "first_high"))
    both = results.rename({"value": "second"}).join(first, on=keys, how="full", coalesce=True, nulls_equal=True)
    difference = pl.col("second") - pl.col("first")
    below, above = pl.col("second") - pl.col("low"), pl.col("high") - pl.col("second")
    first_below, first_above = pl.col("first") - pl.col("first_low"), pl.col("first_high") - pl.col("first")
    sides = ((below, first_above), (above, first_below))
    down, up = ((own.clip(0.0) ** 2 + other.clip(0.0) ** 2).sqrt() for own, other in sides)
    table = both.with_columns(difference=difference, low=difference - down, high=difference + up, value="second")
    if pairs is None:
        return table.with_columns(paired=False)
    known = _turned(pairs.filter(pl.col("low").is_not_null()).select(*keys, *PAIRED), results, keys, PAIRED)
    table = table.join(known, on=keys, how="left", nulls_equal=True, suffix="_paired")
    paired = table["low_paired"].is_not_null()
    taken = (pl.when(paired).then(pl.col(f"{name}_paired")).otherwise(pl.col(name)).alias(name) for name in PAIRED)
    return table.with_columns(*taken, paired=paired).with_columns(value="second")


def _turned(table: pl.DataFrame, results: pl.DataFrame, keys: Sequence[str], numbers: Sequence[str]) -> pl.DataFrame:
    """The numbers of a table with every widest gap seen from the side from which the results see it.

    Which two groups lie farthest apart, and which of them is higher, may change from run to run.
    """
    gaps = [metric.name for study in STUDIES.values() for metric in study.measures.metrics if metric.one_way]
    loose = [name for name in keys if name not in ("group", "against")]
    one = pl.col("metric").is_in(gaps) & pl.col("against").is_not_null() & (pl.col("against") != REST)
    mine = results.filter(one, pl.col("value").is_not_null()).filter(pl.struct(loose).is_unique())
    mine = mine.select(*loose, own="group", other="against", now="value")
    some, rest = table.filter(one), table.filter(~one.fill_null(False))
    some = some.join(mine, on=loose, how="left", nulls_equal=True)
    known = some["own"].is_not_null() & some.select(pl.struct(loose).is_unique()).to_series()
    same, opposite = pl.col("group") == pl.col("own"), pl.col("group") == pl.col("other")
    another = ~(same & (pl.col("against") == pl.col("other"))) & ~(opposite & (pl.col("against") == pl.col("own")))
    turn = known & ((opposite & ~another) | (another & (pl.col(numbers[0]).sign() != pl.col("now").sign())))
    low, high = numbers[-2:]
    ends = [
        pl.when(turn).then(-pl.col(end)).otherwise(pl.col(name)).alias(name) for name, end in ((low, high), (high, low))
    ]
    values = [pl.when(turn).then(-pl.col(name)).otherwise(pl.col(name)).alias(name) for name in numbers[:-2]]
    named = (
        pl.when(known).then(new).otherwise(old).alias(old) for new, old in (("own", "group"), ("other", "against"))
    )
    return pl.concat([some.with_columns(*values, *ends, *named).select(table.columns), rest])


def _why_none(results: pl.DataFrame, rule: Rule) -> str:
    measured = results.filter(pl.col("metric") == rule.metric)
    if measured.is_empty():
        return f"nothing was measured by that name; this run has {_some(results['metric'])}"
    for name, value in rule.where.items():
        if value not in (known := measured[name].drop_nulls()).to_list():
            return f"no {name} is called {value!r}; there is {_some(known)}"
    return "No row matches all of these filters"


def _some(names: pl.Series) -> str:
    known: Sequence[str] = names.unique(maintain_order=True).to_list()
    return ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "") or "nothing"
