"""The summary at the end of an audit: headline findings and the small tables, in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from beholder.report.chapters import chapters
from beholder.report.findings import Finding, findings
from beholder.report.tables import Cell, Table
from beholder.run import Run


def print_summary(run: Run, console: Console) -> None:
    """What was found, then the tables that are not long; names are shown as they are, whatever brackets they hold."""
    _print_findings(findings(run), console)
    for chapter in chapters(run):
        console.print(f"\n[bold]{escape(chapter.title)}[/bold] on {escape(chapter.dataset)}")
        for table in (chapter.planted, *chapter.tables):
            if table is not None and not table.long:
                console.print(rich_table(table))
    _print_left_out(run, console)


def _print_findings(found: list[Finding], console: Console) -> None:
    if not found:
        console.print("Nothing could be measured.")
    model = None
    for finding in found:
        if finding.model != model:
            model = finding.model
            console.print(f"\n[bold]{escape(model)}[/bold]")
        style = "bold" if finding.shown else "dim bold"
        text = Text.assemble((f"{finding.headline}. ", style), finding.sentence)
        console.print(Padding(text, (0, 0, 0, 2)))


def rich_table(table: Table) -> RichTable:
    """A table for the terminal: details behind the values."""
    made = RichTable(title=escape(table.title), title_justify="left", box=None, pad_edge=False, header_style="dim")
    for place, name in enumerate(table.header):
        label = place < table.labels
        made.add_column(escape(name), justify="left" if label else "right", overflow="fold", no_wrap=not label)
    for row in table.rows:
        made.add_row(*map(_cell, row))
    if table.notes:
        made.caption, made.caption_justify = escape("\n".join(table.notes)), "left"
    return made


def _cell(cell: Cell) -> Text:
    text = Text(cell.text, style="bold" if cell.strong else "")
    return text.append(f"\n{cell.detail}", style="dim") if cell.detail else text


def _print_left_out(run: Run, console: Console) -> None:
    record = run.record
    for line in record.left_out:
        console.print(f"[dim]Left out: {escape(line)}[/dim]")
    if record.bad_images:
        first, number = record.bad_images[0], len(record.bad_images)
        console.print(
            f"[yellow]{number} image{'s' if number > 1 else ''} could not be read[/yellow], such as "
            f"{escape(first['image'])}: {escape(first['reason'])}"
        )
