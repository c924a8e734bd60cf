"""Evidence: what a run measured beside what laws and frameworks ask for, and plainly what it is no evidence of.

One document, as Markdown and as HTML. No photograph, no name of a person and no folder of a disk is in it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl
from markupsafe import escape as html_escape

from beholder.chapter.chapter import p_cell, ratio_cell
from beholder.chapter.numbers import percent
from beholder.comparison.impact import IMPACT_RATIO, SELECTION_RATE
from beholder.core.read import read_toml
from beholder.core.types import Entry
from beholder.datasets.survey import escape
from beholder.report import facts
from beholder.report.page import TEMPLATES, caveats
from beholder.report.report import Report, short_names
from beholder.report.scorecard import CELLS, scorecard

FRAMEWORKS = Path(__file__).with_name("evidence.toml")
ANSWERS = {"given": "answered here", "part": "answered in part", "none": "not answered here"}
OWN = "none: this run asks no prompts of your own of several groups (--prompts, --by)"


class Table(NamedTuple):
    """A table of texts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


Block = str | list[str] | Table  # a paragraph, a list, a table
Part = tuple[str, list[Block]]


def document(report: Report) -> list[Part]:
    """The parts of the document, each with its heading."""
    record, read = report.record, read_toml(FRAMEWORKS)
    findings = Table(("Model", "Study", *CELLS), list(_findings(report)))
    limits = [*caveats(report), *record.left_out]
    limits += [text for section in report.sections for text in section.study.tells.limitations]
    impact = list(_impact(report.results))
    made = f"Beholder {record.beholder}, {record.created[:10]}. Digest of the run: {record.digest or 'none'}."
    header = ("Label", "Prompt", "Group", "People", "Above the median", "Impact ratio", "95 % interval", "p")
    ratios: list[Block] = [
        "Share of a group's people who score above the median person, over that of the most selected group. Below 0.8 "
        "breaks the four-fifths rule, if the prompt is one that people would want to score high on. Intervals and p "
        "hold for all ratios together; the most selected group has none. Where nobody lies above the median, those at "
        "it count; groups of fewer than five people are left out.",
        Table(("Model", "Data", *header), impact) if impact else f"There are {OWN}.",
    ]
    mapped: list[Part] = [(each["title"], [_mapping(each["items"], bool(impact))]) for each in read["framework"]]
    return [
        ("What this is not evidence of", [list(read["not_evidence"])]),
        ("What was measured", [made, *_measured(report)]),
        ("Findings", [findings]),
        ("Impact ratios", ratios),
        ("Limits", [list(dict.fromkeys(limits)) or "None was recorded."]),
        *mapped,
    ]


def _measured(report: Report) -> Iterator[Block]:
    record, names = report.record, short_names(str(entry.get("name")) for entry in report.record.models)
    keys = ("revision", "precision", "digest")
    models = [
        [names.get(str(each["name"]), str(each["name"])), *(str(each.get(key) or "—") for key in keys)]
        for each in record.models
    ]
    yield Table(("Model", "Revision", "Precision", "Digest of settings"), models)
    yield [f"{section.study.title} on {section.dataset}: {section.study.question}" for section in report.sections]
    rows = [row for entry in record.datasets for row in _groups(entry)]
    yield Table(
        ("Data set", "Revision", "Licence", "Images", "Who", "Label", "Images by group", "Without a label"), rows
    )
    settings = {name: value for name, value in record.settings.items() if isinstance(value, bool | int | float)}
    yield "Settings: " + ", ".join(f"{name} {value}" for name, value in settings.items()) + "."


def _groups(entry: Entry) -> Iterator[list[str]]:
    """A line for each label of a data set, with how many images have none."""
    images = entry.get("images")
    about = [str(entry.get(key) or "—") for key in ("name", "revision", "licence")]
    about += [facts.part_of(entry) or f"{images}", facts.people(entry)]
    for label, every in (entry.get("groups") or {"—": {}}).items():
        counts = {name: count for name, count in every.items() if name}
        known, listed = sum(counts.values()), ", ".join(f"{name} {count:,}" for name, count in counts.items())
        yield [*about, label, listed or "—", f"{images - known:,}" if every and images is not None else "—"]


def _findings(report: Report) -> Iterator[list[str]]:
    for card in scorecard(report):
        for line in card.lines:
            yield [card.model, f"{card.title} on {card.dataset}", *line.cells]


def _impact(results: pl.DataFrame) -> Iterator[list[str]]:
    ratios = results.filter(pl.col("metric").str.ends_with(IMPACT_RATIO))
    key = ("model", "dataset", "subset", "concept", "template", "group")
    of = {(row["metric"].removesuffix(IMPACT_RATIO), *(row[name] for name in key)): row for row in ratios.to_dicts()}
    for row in results.filter(pl.col("metric").str.ends_with(SELECTION_RATE)).to_dicts():
        own = of.get((row["metric"].removesuffix(SELECTION_RATE), *(row[name] for name in key)))
        cell = ratio_cell(own) if own else None
        ratio = [cell.text, cell.detail, p_cell(own).text] if cell else ["1" if row["value"] else "—", "", ""]
        prompt = f"{row['concept']} ({row['template']})"
        about = [row["model"], row["dataset"], row["subset"], prompt, row["group"]]
        yield [*map(str, about), f"{row['n']:,}", percent(row["value"]), *ratio]


def _mapping(items: Sequence[Sequence[str]], ratios: bool) -> Table:
    """What is asked for beside what the document answers."""
    rows = []
    for number, asks, answer, where in items:
        known = ("part" if ratios else "none") if answer == "ratio" else answer
        rows.append([number, asks, ANSWERS[known], where if answer != "ratio" or ratios else OWN.capitalize()])
    return Table(("Item", "Asks for", "Answer", "Where"), rows)


TITLE = "Evidence from an audit of how a model sees people"


def as_markdown(report: Report) -> str:
    """The document as Markdown."""
    parts = [f"# {TITLE}"]
    for heading, blocks in document(report):
        parts += [f"## {escape(heading)}", *map(_markdown, blocks)]
    return "\n\n".join(parts) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, str):
        return escape(block)
    if isinstance(block, list):
        return "\n".join(f"- {escape(each)}" for each in block)
    lines = [block.header, ["---"] * len(block.header)]
    return "\n".join(f"| {' | '.join(map(escape, row))} |" for row in (*lines, *block.rows))


def as_html(report: Report) -> str:
    """The same as a page of its own, without a script."""
    parts = [f"<h1>{TITLE}</h1>"]
    for heading, blocks in document(report):
        parts += [f"<h2>{html_escape(heading)}</h2>", *map(_html, blocks)]
    return (TEMPLATES / "evidence.html").read_text("utf-8").replace("{{ body }}", "\n".join(parts))


def _html(block: Block) -> str:
    if isinstance(block, str):
        return f"<p>{html_escape(block)}</p>"
    if isinstance(block, list):
        return f"<ul>{''.join(f'<li>{html_escape(each)}</li>' for each in block)}</ul>"
    lines = [f"<tr>{''.join(f'<td>{html_escape(each)}</td>' for each in row)}</tr>" for row in block.rows]
    head = "".join(f"<th>{html_escape(each)}</th>" for each in block.header)
    return f"<div><table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
