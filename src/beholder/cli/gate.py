"""`beholder gate`: rules that a model has to keep before it ships, for people and for pipelines."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.markup import escape
from rich.table import Table

from beholder.cli.console import out, say_json


def gate_command(
    rules: Path = typer.Argument(..., help="TOML with the rules; docs/gate.md shows one."),
    folder: Path = typer.Argument(Path("beholder-run"), help="A run folder that an audit left."),
    as_json: bool = typer.Option(False, "--json", help="Print every verdict as JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Only the exit status."),
) -> None:
    """Hold a run against rules: exit status 0 if the model passes, 1 if a rule stops it.

    A number holds if its whole interval keeps the bound, fails if its whole interval breaks it, and is open in
    between; open numbers pass unless the rule asks for the bound to be shown. What was not measured fails.
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
        out.print(f"{'Stopped' if stopped else 'Passes'}: {len(stopped)} of {len(verdicts)} numbers stop the model.")
    raise typer.Exit(1 if stopped else 0)


def _shown(row: dict[str, object]) -> str:
    if row["value"] is None:
        return "absent"
    interval = f" ({row['low']:.3g} to {row['high']:.3g})" if row["low"] is not None else ""
    return f"{row['value']:.3g}{interval}"
