"""`beholder gate`: rules that a model has to keep before it ships, for people and for pipelines.

Pipelines read JUnit XML, SARIF, or annotations and a summary for GitHub.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import polars as pl
import typer
from rich.markup import escape
from rich.table import Table

from beholder._gate import NO_WORSE, Verdict, judge_folder, read_rules
from beholder.chapter.numbers import ENDLESS, number
from beholder.cli.audit import paired_differences
from beholder.cli.console import note, out, say_json
from beholder.cli.options import LATEST, run_or_latest
from beholder.comparison.family import NOT_MEASURED, TOO_LITTLE
from beholder.comparison.means import OPEN
from beholder.core.errors import BeholderError, first_line
from beholder.core.files import write_whole
from beholder.core.record import version
from beholder.core.results import place
from beholder.report.comparison import COMPARED

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MARKS = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def gate_command(
    folder: Path = typer.Argument(
        LATEST,
        metavar="RUN",
        callback=run_or_latest,
        help="A run folder, or that of a comparison. Default: runs/latest.",
    ),
    rules: Path = Path("gate.toml"),
    baseline: Path | None = None,
    undecided: Literal["pass", "fail"] | None = None,
    junit: Path | None = None,
    sarif: Path | None = None,
    github: bool = False,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """A bound is kept if the whole interval keeps it, and broken if the whole interval breaks it, or if the number was
    not measured. In between it is undecided. A rule says what it requires: `shown`, `possible` or `no worse` than the
    baseline beyond chance.
    """
    asked = read_rules(rules, undecided=undecided)
    pairs = _pairs(folder, baseline) if baseline and any(rule.require == NO_WORSE for rule in asked) else None
    verdicts = judge_folder(folder, asked, baseline=baseline, pairs=pairs)
    if junit:
        write_whole(junit, as_junit(verdicts, folder.resolve().name))
    if sarif:
        write_whole(sarif, as_sarif(verdicts, rules))
    if github:
        sys.stdout.writelines(f"{line}\n" for line in github_lines(verdicts, rules))
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8", errors="replace") as file:
                file.write(github_summary(verdicts))
    if as_json:
        say_json(as_record(verdicts))
    elif not quiet:
        table = Table("", "Rule", "Number", "Why")
        for one in sorted(verdicts, key=lambda verdict: not verdict.stops):
            style = "red" if one.stops else "green" if one.verdict == "pass" else "yellow"
            cells = map(escape, (str(one.rule), number_of(one), one.reason))
            table.add_row(f"[{style}]{one.verdict}[/]", *cells)
        out.print(table)
        out.print(outcome(verdicts))
    raise typer.Exit(1 if any(one.stops for one in verdicts) else 0)


def _pairs(folder: Path, baseline: Path) -> pl.DataFrame | None:
    """Differences with people in pairs; where the scores of both runs are not there, it is said."""
    if (folder / COMPARED).is_file():
        return None
    try:
        return paired_differences(folder, baseline)
    except BeholderError as error:
        note(f"Compared as if the two runs had seen different people, which is too careful: {first_line(error)}")
        return None


# The verdicts as files


def number_of(one: Verdict) -> str:
    """The number with its interval, after its model and what it is of."""
    row = one.row
    if row is None:
        return "—"
    named = " ".join(filter(None, (f"{row['model']}:" if row.get("model") else "", place(row))))
    if row.get("value") is None:
        return f"{named} absent".strip()
    bounds = [] if row.get("low") is None or "first" in row else [row["low"], row["high"]]
    interval = " to ".join(ENDLESS if bound >= OPEN else f"{bound:.3g}" for bound in bounds)
    before = f"{row['first']:.3g} → " if row.get("first") is not None else ""
    return f"{named} {before}{row['value']:.3g}{interval and f' ({interval})'}".strip()


def as_record(verdicts: Sequence[Verdict]) -> dict[str, object]:
    """What `--json` prints."""
    same = ("verdict", "stops", "reason", "row")
    rows = [{"rule": str(one.rule), **{name: getattr(one, name) for name in same}} for one in verdicts]
    return {"passes": not any(one.stops for one in verdicts), "verdicts": rows}


def as_junit(verdicts: Sequence[Verdict], run: str) -> bytes:
    """JUnit XML: a test case for every check, named alike in every run; one that is undecided and passes is skipped."""
    stopped = [one for one in verdicts if one.stops]
    skipped = [one for one in verdicts if one.verdict == "undecided" and not one.stops]
    counts = {"tests": len(verdicts), "failures": len(stopped), "errors": 0, "skipped": len(skipped), "time": 0}
    numbers = {name: str(count) for name, count in counts.items()}
    suites = ElementTree.Element("testsuites", {"name": "beholder gate", **numbers})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "beholder gate", **numbers})
    about = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(about, "property", {"name": "run", "value": _xml(run)})
    for one, name in zip(verdicts, _names(verdicts), strict=True):
        attributes = {"classname": _xml(one.rule.metric or one.rule.finding), "name": _xml(name), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", attributes)
        said = _xml(f"{number_of(one)}: {one.reason}")
        if one in stopped:
            ElementTree.SubElement(case, "failure", {"message": _xml(one.reason), "type": one.verdict}).text = said
        elif one in skipped:
            ElementTree.SubElement(case, "skipped", {"message": _xml(f"{one.verdict}: {one.reason}")})
        ElementTree.SubElement(case, "system-out").text = said
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True))


def _names(verdicts: Sequence[Verdict]) -> list[str]:
    """What each check is called: its rule and of what its number is. A model's name is said where there are several."""
    several = [len({(one.row or {}).get(name) for one in verdicts if one.row}) > 1 for name in ("model", "dataset")]
    names: list[str] = []
    for one in verdicts:
        row = one.row or {}
        whose = [row.get(name) for name, many in zip(("model", "dataset"), several, strict=True) if many]
        name = ": ".join(filter(None, (str(one.rule), *whose, place(row))))
        again = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({again + 1})" if name in names else name)
    return names


def _xml(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)


def as_sarif(verdicts: Sequence[Verdict], rules: Path) -> bytes:
    """SARIF 2.1.0: a result for every check, at the line of its rule."""
    asked, file = list(dict.fromkeys(str(one.rule) for one in verdicts)), {"uri": rules.as_posix()}
    results = [
        {
            "ruleId": f"rule-{asked.index(str(one.rule)) + 1}",
            "ruleIndex": asked.index(str(one.rule)),
            "kind": {"pass": "pass", "undecided": "open"}.get(one.verdict, "fail") if not one.stops else "fail",
            "level": "error" if one.stops else "none",
            "message": {"text": f"{one.verdict}: {one.rule}: {number_of(one)}: {one.reason}"},
            "locations": [{"physicalLocation": {"artifactLocation": file, "region": {"startLine": one.rule.line}}}],
        }
        for one in verdicts
    ]
    known = [{"id": f"rule-{number}", "shortDescription": {"text": text}} for number, text in enumerate(asked, 1)]
    driver = {"name": "beholder gate", "version": version(), "rules": known}
    log = {"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=1, ensure_ascii=False).encode("utf-8", "replace")


def github_lines(verdicts: Sequence[Verdict], rules: Path) -> Iterator[str]:
    """A line for every check that fails or is undecided, which GitHub shows beside the file of rules."""
    for one in (one for one in verdicts if one.verdict != "pass"):
        kind, title = ("error", "Gate fails") if one.stops else ("warning", "Gate undecided")
        file = _escaped(rules.as_posix()).replace(":", "%3A").replace(",", "%2C")
        reason = _escaped(f"{one.rule}: {number_of(one)}: {one.reason}")
        yield f"::{kind} file={file},line={one.rule.line},title={title}::{reason}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def github_summary(verdicts: Sequence[Verdict]) -> str:
    """A table in Markdown, with what stops the model first."""
    lines = [f"### Beholder gate: {outcome(verdicts)}", "", "| | Rule | Number | Why |", "|---|---|---|---|"]
    for one in sorted(verdicts, key=lambda one: not one.stops):
        mark = "❌" if one.stops else "✅" if one.verdict == "pass" else "❔"
        cells = (f"{mark} {one.verdict}", str(one.rule), number_of(one), one.reason)
        lines.append("| " + " | ".join(MARKS.sub(r"\\\1", " ".join(cell.split())) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def outcome(verdicts: Sequence[Verdict]) -> str:
    """The result in a few words; what is undecided, or has too little data, never passes in silence."""
    stopped = sum(one.stops for one in verdicts)
    undecided = [one for one in verdicts if one.verdict == "undecided"]
    passing = [one for one in undecided if not one.stops]
    few = sum((one.row or {}).get("verdict") in (TOO_LITTLE, NOT_MEASURED) for one in passing)
    fails = "fails" if stopped == 1 else "fail"
    more = f", {len(undecided)} undecided" if undecided else ""
    why = f", {few} of them for want of data" if few else ""
    let = f" The rules let {number(len(passing), 'undecided check')} pass{why}." if passing else ""
    return f"{'Stopped' if stopped else 'Passes'}: {stopped} of {number(len(verdicts), 'check')} {fails}{more}.{let}"
