"""Exports: a run's findings and tables for a paper, a pull request or a model's card.

The words are those of the page. Names come from strangers: what would be markup in the target is escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

import polars as pl

from beholder.chapter.table import Cell, Table
from beholder.core.results import place
from beholder.report.page import title
from beholder.report.report import Report, Section

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "−": "$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "²": "$^2$",
    "Δ": r"$\Delta$",
    "δ": r"$\delta$",
    "ω": r"$\omega$",
}
MARKS = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def markdown(report: Report) -> str:
    """Findings, then every table that the page shows open."""
    parts = [part for section in report.sections for part in _section(section, "##")]
    return "\n\n".join([f"# {_md(title(report))}", *parts, _origin(report)]) + "\n"


def card(report: Report) -> str:
    """A section for a model's card, with the numbers that have an interval in the card's own index above it."""
    parts = [part for section in report.sections for part in _findings(section, "###")]
    index = json.dumps({"model-index": _index(report.results)}, indent=1, ensure_ascii=False)
    return "\n\n".join([f"---\n{index}\n---", "## How it sees people", *parts, _origin(report)]) + "\n"


def latex(report: Report) -> str:
    """Every table that the page shows open, as `table` environments with booktabs' rules."""
    tables = [table for section in report.sections for table in _shown(section)]
    return "\n\n".join(["% \\usepackage{booktabs}", *map(_latex_table, tables)]) + "\n"


FORMATS: Mapping[str, Callable[[Report], str]] = {"markdown": markdown, "latex": latex, "card": card}


def _shown(section: Section) -> list[Table]:
    tables = [table for table in (section.planted, *section.tables) if table is not None and table.rows]
    return [table for table in tables if table.exported or not table.long]


def _section(section: Section, mark: str) -> Iterator[str]:
    yield from _findings(section, mark)
    for table in _shown(section):
        yield f"{mark}# {_md(table.title)}\n\n{_md_table(table)}\n\n{_md(table.caption)}"


def _findings(section: Section, mark: str) -> Iterator[str]:
    yield f"{mark} {_md(section.title)} on {_md(section.dataset)}\n\n{_md(section.study.question)}"
    mine = section.findings
    several = len({one.model for one in mine}) > 1
    for one in mine:
        whose = f"{_md(one.model)}: " if several else ""
        yield f"- **{whose}{_md(one.headline)}.** {_md(one.sentence)}"


def _origin(report: Report) -> str:
    record = report.record
    command = " ".join(record.command).replace("`", "'")
    told = f"By `beholder {command}`, " if command else "By "
    return f"{told}Beholder {_md(record.beholder)}, {_md(record.created[:10])}. Labels are perceived or sourced."


def _index(results: pl.DataFrame) -> list[dict[str, object]]:
    """The card's index: one entry a model, one result a data set, one metric a number."""
    return [
        {
            "name": model,
            "results": [
                {
                    "task": {"type": "image-text-to-text"},
                    "dataset": {"type": dataset, "name": dataset},
                    "metrics": [_metric(row) for row in rows.iter_rows(named=True)],
                }
                for (dataset,), rows in mine.group_by("dataset", maintain_order=True)
            ],
        }
        for (model,), mine in _headline(results).group_by("model", maintain_order=True)
    ]


def _headline(results: pl.DataFrame) -> pl.DataFrame:
    """Numbers with an interval that are not about single words or wordings: a card has no room for thousands."""
    return results.filter(pl.col("low").is_not_null() & pl.col("template").is_null() & pl.col("group").is_null())


def _metric(row: Mapping[str, object]) -> dict[str, object]:
    name = " · ".join(filter(None, (str(row["metric"]), place(row))))
    interval = {"low": row["low"], "high": row["high"], "n": row["n"], "unit": row["unit"]}
    return {"type": row["metric"], "name": name, "value": row["value"], "args": interval}


def _md(text: str) -> str:
    """Words that are words and nothing else.

    >>> _md("<b> a|b *c*")
    '\\\\<b\\\\> a\\\\|b \\\\*c\\\\*'
    """
    return MARKS.sub(r"\\\1", " ".join(text.split()))


def _md_table(table: Table) -> str:
    lines = [[_md(head) for head in table.header], *([_md(_whole(cell)) for cell in row] for row in table.rows)]
    rule = [":--" if place < table.labels else "--:" for place in range(len(table.header))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))


def _latex_table(table: Table) -> str:
    columns = "l" * table.labels + "r" * (len(table.header) - table.labels)
    body = [" & ".join(_tex(_whole(cell)) for cell in row) + r" \\" for row in table.rows]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_tex(table.title)}. {_tex(table.caption)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(map(_tex, table.header)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _tex(text: str) -> str:
    r"""Words that LaTeX sets as they are.

    >>> _tex("50 % of a_b")
    '50 \\% of a\\_b'
    """
    return "".join(LATEX.get(sign, sign) for sign in " ".join(text.split()))


def _whole(cell: Cell) -> str:
    small = " · ".join(filter(None, (cell.detail, cell.remark)))
    return f"{cell.text} ({small})" if small else cell.text
