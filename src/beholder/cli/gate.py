"""`beholder gate`: rules that a model has to keep before it ships, for people and for pipelines."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table

from beholder.cli.console import out, say_json


def gate_command(
    rules: Path = typer.Argument(..., help="TOML file with the rules; see docs/gate.md."),
    folder: Path = typer.Argument(Path("beholder-run"), help="A run folder."),
    as_json: bool = typer.Option(False, "--json", help="Print every verdict as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print nothing; set only the exit status."),
) -> None:
    """Check a run against rules. Exit status: 0 if it passes, 1 if it fails.

    A rule holds if the whole interval keeps the bound. It fails if the whole interval breaks it, or if the number was
    not measured. Otherwise it is open, which passes unless the rule says `shown = true`.
    """
    # Imported here so that other commands start without it.
    from beholder.core.results import place
    from beholder.gate import judged, read_rules
    from beholder.run import load_run

    verdicts = judged(load_run(folder).results, read_rules(rules))
    stopped = [verdict for verdict in verdicts if verdict.stops]
    if as_json:
        say_json(
            {
                "passes": not stopped,
                "verdicts": [
                    {
                        "rule": str(one.rule),
                        "verdict": one.verdict,
                        "stops": one.stops,
                        "reason": one.reason,
                        "row": one.row,
                    }
                    for one in verdicts
                ],
            }
        )
    elif not quiet:
        table = Table("", "Rule", "Number", "Why")
        for one in sorted(verdicts, key=lambda verdict: not verdict.stops):
            row = one.row
            number = "—" if row is None else f"{row['model']}: {place(row)} {_shown(row)}"
            style = "red" if one.stops else "green" if one.verdict == "holds" else "yellow"
            table.add_row(f"[{style}]{one.verdict}[/]", *map(escape, (str(one.rule), number, one.reason)))
        out.print(table)
        out.print(f"{'Stopped' if stopped else 'Passes'}: {len(stopped)} of {len(verdicts)} checks fail.")
    raise typer.Exit(1 if stopped else 0)


def _shown(row: dict[str, object]) -> str:
    if row["value"] is None:
        return "absent"
    interval = f" ({row['low']:.3g} to {row['high']:.3g})" if row["low"] is not None else ""
    return f"{row['value']:.3g}{interval}"
