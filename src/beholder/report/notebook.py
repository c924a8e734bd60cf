"""A run in a notebook: the scorecard as a table, findings as sentences, charts as Altair charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from markupsafe import escape

from beholder.chapter.chart_style import PAPER_INK, PAPER_WIDTH, config
from beholder.core.errors import UnknownName
from beholder.report.report import Report
from beholder.report.scorecard import scorecard

if TYPE_CHECKING:
    import altair as alt

    from beholder.chapter.charts import Figure

HEADER = ("Verdict", "Question", "Answer", "Number", "95 % interval", "n")


def report_html(report: Report) -> str:
    """The scorecard: one line for every question that was asked."""
    parts = []
    for card in scorecard(report, [""] * len(report.sections)):
        cells = [
            (line.finding.marked, line.question, line.finding.headline, line.number, line.interval, line.n)
            for line in card.lines
        ]
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in HEADER)
        body = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in cells
        )
        title = f"<b>{escape(card.model)}</b>, {escape(card.title)} on {escape(card.dataset)}"
        parts.append(f"<p>{title}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return "".join(parts) or "<p>No finding is written about these results; see <code>run.results</code>.</p>"


class Charts(Mapping[str, "alt.Chart | alt.LayerChart"]):
    """The charts of a run by name, such as `study.chart_name`; each displays itself in a notebook."""

    def __init__(self, report: Report) -> None:
        self._figures = {
            f"{section.study.name}.{figure.name.replace('-', '_')}": figure
            for section in report.sections
            for figure in section.figures
        }

    def __getitem__(self, name: str) -> alt.Chart | alt.LayerChart:
        if name not in self._figures:
            raise UnknownName("chart", name, list(self._figures))
        return titled(self._figures[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    def __repr__(self) -> str:
        return f"Charts({', '.join(self._figures)})"


def titled(figure: Figure) -> alt.Chart | alt.LayerChart:
    """A figure as an Altair chart with its title inside."""
    import altair  # large

    chart = figure.chart.properties(width=PAPER_WIDTH, title=altair.TitleParams(figure.title, subtitle=figure.caption))
    configured: alt.Chart | alt.LayerChart = chart.configure(**{**config(PAPER_INK), "background": "white"})
    return configured
