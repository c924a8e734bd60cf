"""The summary of an audit: in the terminal a line for every question and on request all tables; and in a notebook."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from markupsafe import escape as html_escape
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from beholder.chapter.chapter import Cell, Table
from beholder.chapter.chart_style import PAPER_INK, PAPER_WIDTH, config
from beholder.chapter.finding import CHECK, Finding
from beholder.chapter.numbers import ABSENT, GROUPS, number, picture
from beholder.comparison.family import DIFFERENCE, NAMES, VERDICTS
from beholder.core.errors import UnknownName
from beholder.core.record import Record
from beholder.datasets import own_data
from beholder.report.facts import conflicts, people, unbalanced
from beholder.report.report import NOISE, Report, Section
from beholder.report.scorecard import CELLS, Line, scorecard

if TYPE_CHECKING:
    import altair as alt

    from beholder.chapter.charts import Figure


TOP = 5  # answers and known truths that the terminal shows; the report has all
MOST_MOVED = 5
ENDLESS = 10_000  # columns of a pipe or a log, where nothing is cut and nothing is broken


def print_summary(report: Report, console: Console, *, verbose: bool = False) -> None:
    """The answers that matter most, a line each, and where the rest is. With `verbose`, sentences and tables."""
    # Names are shown as they are, whatever brackets they hold.
    if not console.is_terminal:
        console = Console(file=console.file, width=ENDLESS, highlight=False, color_system=None)
    if report.results["value"].is_null().all():
        console.print("Nothing could be measured.")
    findings, sensitivity = [each for section in report.sections for each in section.findings], report.sensitivity
    heading = None
    for finding in findings if verbose else ():
        if heading != (heading := f"{finding.model}, {finding.study} on {finding.dataset}"):
            console.print(f"\n[bold]{escape(heading)}[/bold]")
        style = "bold" if finding.shown else "dim bold"
        text = Text.assemble((f"{finding.headline}. ", style), finding.sentence, (f" ({finding.marked})", "dim"))
        console.print(Padding(text, (0, 0, 0, 2)))
    for section in report.sections:
        if verbose or not section.findings:
            console.print(f"\n[bold]{escape(section.title)}[/bold] on {escape(section.dataset)}")
            for table in (section.planted, *section.tables):
                if table is not None and not table.long:
                    _print_table(table, console)
    for remark in _remarks(report.record, findings):
        console.print(remark)
    if sensitivity is not None:
        _print_table(sensitivity._replace(rows=sensitivity.rows[: None if verbose else MOST_MOVED]), console)
    for section in report.sections:
        _print_planted(section, console)
    _print_answers([line for card in scorecard(report) for line in card.lines], console, verbose=verbose)


def _print_planted(section: Section, console: Console) -> None:
    """The first of what was planted beside what was found, where there is such a thing."""
    if section.planted is None:
        return
    table, rest = section.planted, len(section.planted.rows) - TOP
    notes = [f"{rest} more are in the report."] if rest > 0 else []
    title = next((each.headline for each in section.findings if each.role == CHECK), table.title)
    _print_table(table._replace(title=title, rows=table.rows[:TOP], notes=tuple(notes)), console)


def _print_answers(lines: list[Line], console: Console, *, verbose: bool) -> None:
    """One line for every answer, never cut: differences first, the most unequal on top; and where the rest is."""
    lines = sorted((line for line in lines if line.finding.role != CHECK), key=lambda line: _rank(line.finding))
    counts = Counter(line.finding.said for line in lines)
    several = len({line.finding.model for line in lines}) > 1
    if lines:
        listed = ", ".join(f"{NAMES[verdict]} {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
        console.print(f"\n[bold]{number(len(lines), 'answer')}[/bold]: {listed}")
    for line in lines[:TOP]:
        console.print(_hanging(answer(line, several=several), console.width))
    if (rest := len(lines) - TOP) > 0:
        more = number(rest, "more answer is", "more answers are")
        console.print(f"{more} {'above' if verbose else 'in the report; `beholder report --verbose` prints all'}.")


def _rank(finding: Finding) -> tuple[bool, int, float]:
    noise = re.search(NOISE, finding.model) is not None
    return noise, VERDICTS.index(finding.said), -finding.distance


def answer(line: Line, *, several: bool) -> Text:
    """Verdict, answer, number with its interval, and how many it is about; whose it is, among `several` models."""
    found, interval = line.finding, f", {line.interval}" if line.interval else ""
    whose, text = f" ({one_line(found.model)})" if several else "", one_line(found.answer or found.headline).rstrip(".")
    known = line.number == ABSENT or (not interval and re.search(r"\d", text) is not None)
    about = "; ".join(filter(None, ("" if known else f"{line.number}{interval}", counted(line))))
    rest = f". And {number(line.more, 'more answer', 'more answers')} like it" if line.more else ""
    style = "" if found.said == DIFFERENCE else "dim"
    told = (f"{found.badge}{whose}: ", f"bold {style}"), (text, style)
    return Text.assemble(*told, (f" ({about})" if about else "", "dim"), (rest, "dim"))


def counted(line: Line) -> str:
    """How many people or things the number rests on; of both groups, where the finding names them."""
    first, contrasts = next(iter(line.finding.rows), {}), line.finding.contrasts
    if contrasts and (sides := contrasts[0].sides):
        return " + ".join(f"{side.n:,} {GROUPS.get(side.group, f'labelled {side.group}')}" for side in sides)
    return f"{line.n} {f'{picture(first)}s' if line.counts == 'images' else line.counts}" if line.n else ""


def _hanging(text: Text, width: int) -> Text:
    """A paragraph whose further lines stand below its words, not below its sign."""
    return Text("\n  ").join(text.wrap(Console(width=width), width - 2))


def _print_table(table: Table, console: Console) -> None:
    """Model after model, each as full as the terminal is wide."""
    for part in by_model(table):
        bare = part._replace(rows=[[cell._replace(detail="") for cell in row] for row in part.rows])
        for view in map(rich_table, (part, without_extras(part), without_extras(bare))):
            if Measurement.get(console, console.options.update(width=ENDLESS), view).maximum <= console.width:
                break
        console.print("", view, sep="\n")


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
    """A name that holds line breaks or tabs, in one line of a table."""
    return " ".join(text.split())


def _remarks(record: Record, findings: list[Finding]) -> Iterator[str]:
    """What was left out, who counts as a person, what could not be balanced, and labels that go together."""
    yield from (f"[dim]Left out: {escape(line)}[/dim]" for line in record.left_out)
    for first in record.bad_images[:1]:
        unread = f"[yellow]{number(len(record.bad_images), 'image')} could not be read[/yellow]"
        yield f"{unread}, such as {escape(first['image'])}: {escape(first['reason'])}"
    yield from (f"[yellow]{escape(line)}[/yellow]" for line in record.notes)
    for entry in record.datasets:
        own = entry.get("notes") or [] if own_data(str(entry.get("origin")))[0] else []
        for line in filter(None, (people(entry), *conflicts(entry), *unbalanced(entry), *own)):
            yield f"[dim]{escape(str(entry.get('name')))}: {escape(line)}[/dim]"
    for line in dict.fromkeys(f"{each.headline}: {each.sentence}" for each in findings if each.kind == "balance"):
        yield f"[yellow]{escape(line)}[/yellow]"


# In a notebook: the scorecard as a table, charts as Altair charts


def report_html(report: Report) -> str:
    """The scorecard: one line for every question that was asked."""
    parts = []
    for card in scorecard(report):
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in CELLS)
        rows = ([f"<td style='text-align:left'>{html_escape(cell)}</td>" for cell in line.cells] for line in card.lines)
        body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
        title = f"<b>{html_escape(card.model)}</b>, {html_escape(card.title)} on {html_escape(card.dataset)}"
        parts.append(f"<p>{title}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return "".join(parts) or "<p>No finding is written about these results; see <code>run.results</code>.</p>"


class Charts(dict[str, "alt.Chart | alt.LayerChart"]):
    """The charts of a run by name, such as `study.chart_name`; each displays itself in a notebook."""

    def __init__(self, report: Report) -> None:
        drawn = [(section.study.name, figure) for section in report.sections for figure in section.figures]
        super().__init__((f"{study}.{figure.name.replace('-', '_')}", titled(figure)) for study, figure in drawn)

    def __missing__(self, name: str) -> "alt.Chart | alt.LayerChart":
        raise UnknownName("chart", name, list(self))

    def __repr__(self) -> str:
        return f"Charts({', '.join(self)})"


def titled(figure: "Figure") -> "alt.Chart | alt.LayerChart":
    """A figure as an Altair chart with its title inside."""
    import altair  # large

    chart = figure.chart.properties(width=PAPER_WIDTH, title=altair.TitleParams(figure.title, subtitle=figure.caption))
    configured: alt.Chart | alt.LayerChart = chart.configure(**{**config(PAPER_INK), "background": "white"})
    return configured
