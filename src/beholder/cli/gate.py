"""`beholder gate`: rules that a model has to keep before it ships, for people and for pipelines."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from beholder.cli import gate_files
from beholder.cli import options as common
from beholder.cli.console import out, say_json


class Undecided(StrEnum):
    """What an undecided check does."""

    passes = "pass"
    fails = "fail"


def gate_command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            callback=common.run_or_latest,
            help="A run folder, or that of a comparison. Default: runs/latest.",
        ),
    ] = common.LATEST,
    rules: Annotated[Path, typer.Option("--rules", "-r", help="TOML file with the rules; see docs/gate.md.")] = Path(
        "gate.toml"
    ),
    baseline: Annotated[
        Path | None, typer.Option(help="Run folder of the last release, for rules that say `no worse`.")
    ] = None,
    undecided: Annotated[
        Undecided | None, typer.Option(help="What an undecided check does. Default: what the rules say, else pass.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML.")] = None,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write SARIF 2.1.0.")] = None,
    github: Annotated[
        bool, typer.Option("--github", help="Print annotations for GitHub, and add a table to its step summary.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every verdict as JSON.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print no table; set only the exit status and write files.")
    ] = False,
) -> None:
    """Check a run against rules. Exit status: 0 if it passes, 1 if it fails, 2 if a rule cannot be used.

    A bound is kept if the whole interval keeps it, and broken if the whole interval breaks it, or if the number was not
    measured. In between it is undecided. A rule says what it requires: `shown`, `possible` or `no worse` than the
    baseline beyond chance.
    """
    # Imported here so that other commands start without it.
    from beholder._gate import judge_folder, read_rules
    from beholder.core.files import write_whole

    verdicts = judge_folder(folder, read_rules(rules, undecided=undecided and undecided.value), baseline=baseline)
    if junit:
        write_whole(junit, gate_files.junit(verdicts, folder.resolve().name))
    if sarif:
        write_whole(sarif, gate_files.sarif(verdicts, rules))
    if github:
        sys.stdout.writelines(f"{line}\n" for line in gate_files.github_lines(verdicts, rules))
        if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
            with Path(summary).open("a", encoding="utf-8", errors="replace") as file:
                file.write(gate_files.summary(verdicts))
    if as_json:
        say_json(gate_files.as_json(verdicts))
    elif not quiet:
        table = Table("", "Rule", "Number", "Why")
        for one in sorted(verdicts, key=lambda verdict: not verdict.stops):
            style = "red" if one.stops else "green" if one.verdict == "pass" else "yellow"
            cells = map(escape, (str(one.rule), gate_files.number_of(one), one.reason))
            table.add_row(f"[{style}]{one.verdict}[/]", *cells)
        out.print(table)
        out.print(gate_files.outcome(verdicts))
    raise typer.Exit(1 if any(one.stops for one in verdicts) else 0)
