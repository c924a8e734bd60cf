"""`beholder runs`: which runs there are, and what each of them shows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from beholder.cli.console import out, say_json


def runs_command(
    folder: Annotated[Path, typer.Argument(help="The folder that holds the runs.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """List runs, the newest first: models, studies, date, and how many findings have which verdict."""
    # Imported here so that other commands start without it.
    from beholder.core.errors import MissingData

    if not folder.is_dir():
        raise MissingData(f"There is no folder {folder}. `beholder audit` makes it, unless it is given --out.")
    entries = [entry for path in sorted(folder.iterdir()) if not path.is_symlink() and (entry := _entry(path))]
    entries.sort(key=lambda entry: str(entry["created"]), reverse=True)
    if as_json:
        say_json(entries)
        return
    table = Table("Folder", "Date", "Models", "Studies", "Findings")
    for entry in entries:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in entry["verdicts"].items())
        cells = (entry["folder"], entry["created"][:10], ", ".join(entry["models"]), ", ".join(entry["studies"]))
        table.add_row(*map(escape, cells), escape(entry["problem"] or verdicts))
    out.print(table)


def _entry(path: Path) -> dict[str, Any] | None:
    """A run in a few words; None for what is no run."""
    # Imported here so that other commands start without it.
    from beholder.comparison.family import VERDICTS
    from beholder.core.errors import BeholderError
    from beholder.core.read import read_json
    from beholder.core.record import read_record

    if not (path / "run.json").is_file():
        return None
    entry: dict[str, Any] = {"folder": str(path), "created": "", "models": [], "studies": [], "verdicts": {}}
    try:
        record = read_record(path)
        names = dict.fromkeys(str(model.get("name")) for model in record.models)
        entry |= {"created": record.created, "models": list(names), "studies": record.studies}
        if not record.finished:
            return {**entry, "problem": "unfinished: the same command continues it"}
        found = read_json(path / "findings.json")
        counts = Counter(str(each["verdict"]) for each in found["findings"])
        return {**entry, "verdicts": {name: counts[name] for name in VERDICTS if counts[name]}, "problem": ""}
    except (BeholderError, KeyError, TypeError) as error:
        return {**entry, "problem": f"cannot be read: {str(error).splitlines()[0]}"}
