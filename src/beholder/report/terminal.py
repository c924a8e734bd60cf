"""The summary at the end of an audit: headline findings and the small tables, in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from beholder.chapter.finding import Finding
from beholder.chapter.table import Cell, Table
from beholder.core.record import Record
from beholder.report.report import Report
from beholder.report.top_findings import top_findings

GAP = 2


def print_summary(report: Report, console: Console) -> None:
    """What was found, then the tables that are not long, then the top findings: they stand last, where the eye is.

    Names are shown as they are, whatever brackets they hold.
    """
    if report.results["value"].is_null().all():
        console.print("Nothing could be measured.")
    _print_findings(report.findings, console)
    for section in report.sections:
        console.print(f"\n[bold]{escape(section.title)}[/bold] on {escape(section.dataset)}")
        for table in (section.planted, *section.tables):
            if table is not None and not table.long:
                _print_table(table, console)
    if report.sensitivity is not None:
        _print_table(report.sensitivity, console)
    _print_left_out(report.record, console)
    _print_top(report.findings, console)


def _print_table(table: Table, console: Console) -> None:
    """Model after model, each as full as the terminal is wide."""
    for part in by_model(table):
        for view in (part, without_extras(part), without_extras(without_details(part))):
            if width(view) <= console.width:
                break
        console.print("", rich_table(view), sep="\n")


def _print_findings(findings: list[Finding], console: Console) -> None:
    heading = None
    for finding in findings:
        if heading != (heading := f"{finding.model}, {finding.study} on {finding.dataset}"):
            console.print(f"\n[bold]{escape(heading)}[/bold]")
        style = "bold" if finding.shown else "dim bold"
        text = Text.assemble((f"{finding.headline}. ", style), finding.sentence)
        console.print(Padding(text, (0, 0, 0, 2)))


def _print_top(findings: list[Finding], console: Console) -> None:
    """The headlines of the first screen of the page, a line each."""
    few = top_findings(findings)
    several = len({(each.study, each.dataset, each.model) for each in findings}) > 1
    if few:
        console.print("\n[bold]In short[/bold]")
    for each in few:
        whose = f" ({each.model}, {each.study} on {each.dataset})" if several else ""
        line = Text.assemble((each.headline, "bold" if each.shown else "dim bold"), (whose, "dim"))
        console.print(Padding(line, (0, 0, 0, 2)))


def by_model(table: Table) -> Iterator[Table]:
    """A table of several models as one table for each."""
    if table.header[0] != "Model":
        yield table
        return
    for model in dict.fromkeys(row[0].text for row in table.rows):
        rows = [row[1:] for row in table.rows if row[0].text == model]
        title, labels = f"{table.title}: {model}", table.labels - 1
        yield table._replace(title=title, header=table.header[1:], rows=rows, labels=labels)


def without_extras(table: Table) -> Table:
    """Without the numbers that stand beside others."""
    kept = [column for column, name in enumerate(table.header) if name not in table.extras]
    rows = [[row[column] for column in kept] for row in table.rows]
    return table._replace(header=[table.header[column] for column in kept], rows=rows)


def without_details(table: Table) -> Table:
    """Without the small print."""
    return table._replace(rows=[[cell._replace(detail="") for cell in row] for row in table.rows])


def width(table: Table) -> int:
    """Columns that a table takes in the terminal."""
    widths = [
        max([len(name), *(len(part) for row in table.rows for part in (row[column].text, row[column].detail))])
        for column, name in enumerate(table.header)
    ]
    return sum(widths) + GAP * len(widths)


def rich_table(table: Table) -> RichTable:
    """A table for the terminal: intervals under the values."""
    made = RichTable(box=None, pad_edge=False, header_style="dim")
    made.title, made.title_justify, made.title_style = escape(table.title), "left", "bold"
    for column, name in enumerate(table.header):
        justify: Literal["left", "right"] = "left" if column < table.labels else "right"
        width = 6 if justify == "left" else 3
        made.add_column(escape(one_line(name)), justify=justify, overflow="fold", min_width=width)
    for row in table.rows:
        made.add_row(*map(_cell, row))
    if table.notes:
        made.caption, made.caption_justify = escape("\n".join(table.notes)), "left"
    return made


def _cell(cell: Cell) -> Text:
    text = Text(one_line(cell.text), style="bold" if cell.strong else "")
    return text.append(f"\n{one_line(cell.detail)}", style="dim") if cell.detail else text


def one_line(text: str) -> str:
    """A name that holds line breaks or tabs, in one line of a table.

    >>> one_line("line\\nbreak")
    'line break'
    """
    return " ".join(text.split())


def _print_left_out(record: Record, console: Console) -> None:
    for line in record.left_out:
        console.print(f"[dim]Left out: {escape(line)}[/dim]")
    if record.bad_images:
        first, number = record.bad_images[0], len(record.bad_images)
        console.print(
            f"[yellow]{number} image{'s' if number > 1 else ''} could not be read[/yellow], such as "
            f"{escape(first['image'])}: {escape(first['reason'])}"
        )
