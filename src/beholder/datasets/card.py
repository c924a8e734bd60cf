"""Data card: who is in a data set, how many, by whose word, and what it may be used for.

Markdown, without pictures and without names of people.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import polars as pl

from beholder.datasets.dataset import Dataset, DatasetSource
from beholder.datasets.survey import Survey

TO_BE_STATED = "Not stated. Write it here before you share this card."
UNINTENDED = (
    "Identifying people, deciding anything about a person, or inferring from a face who someone is, "
    "what they feel or what they can do."
)
FEW = 10
"""A crossing with fewer images supports hardly any comparison."""


def data_card(dataset: Dataset, survey: Survey, source: DatasetSource | None = None) -> str:
    """The card as Markdown."""
    return "\n".join([*_head(dataset, source), *_people(survey), *_pictures(survey), *_notes(dataset)]) + "\n"


def _head(dataset: Dataset, source: DatasetSource | None) -> Iterator[str]:
    yield f"# Data card: {escape(dataset.name)}"
    yield ""
    yield from _table(
        ["", ""],
        [
            ["Title", source.title if source else dataset.name],
            ["Revision", dataset.revision],
            ["Licence", dataset.licence],
            ["Origin", source.origin if source else TO_BE_STATED],
            ["Labels", source.labels if source and source.labels else TO_BE_STATED],
            ["Intended use", source.intended if source and source.intended else TO_BE_STATED],
            ["Unintended use", UNINTENDED],
        ],
    )


def _people(survey: Survey) -> Iterator[str]:
    missing = {column.name: column.missing for column in survey.columns}
    yield from ("", "## Who is in it", "")
    yield "Labels are perceived or sourced. Groups have the names that the data gives them."
    for name, groups in survey.groups.items():
        rows = [[group or "no label", str(count), f"{count / survey.images:.0%}"] for group, count in groups.rows()]
        yield from ("", f"### {escape(name)}", "", *_table(["group", "images", "share"], rows))
    others = [
        *(
            [name, f"{low:g} to {high:g}, median {middle:g}; {missing[name]} missing"]
            for name, (low, middle, high) in survey.numbers.items()
        ),
        *(
            [name, f"{count} different values, not listed; {missing[name]} missing"]
            for name, count in survey.identifiers.items()
        ),
    ]
    if others:
        yield from ("", "### Other columns", "", *_table(["column", "values"], others))
    for (first, second), counts in survey.crossings.items():
        yield from ("", f"### {escape(first)} and {escape(second)}", "", *_crossing(counts))


def _crossing(counts: pl.DataFrame) -> Iterator[str]:
    wide = counts.pivot("second", index="first", values="count")
    yield from _table(["", *wide.columns[1:]], [[str(cell) for cell in row] for row in wide.rows()])
    few = counts.filter(pl.col("count") < FEW).height
    if few:
        yield ""
        yield f"{few} of {counts.height} crossings have fewer than {FEW} images."


def _pictures(survey: Survey) -> Iterator[str]:
    yield from ("", "## Pictures", "")
    rows = [["Images in the table", str(survey.images)], ["Cannot be read", str(len(survey.damaged))]]
    if survey.sizes:
        for what, values in (("Width", [w for w, _ in survey.sizes]), ("Height", [h for _, h in survey.sizes])):
            rows.append([f"{what} in pixels", f"{min(values)} to {max(values)}, median {median(values):g}"])
    rows.append(["Look like an earlier picture", str(len(survey.alike))])
    yield from _table(["", ""], rows)


def _notes(dataset: Dataset) -> Iterator[str]:
    if dataset.notes:
        yield from ("", "## Notes", "", *(f"- {escape(note)}" for note in dataset.notes))


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(escape, header))} |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield f"| {' | '.join(map(escape, row))} |"


def escape(text: str) -> str:
    """Text from strangers as Markdown that shows it and does nothing else: no markup, no link, no second line."""
    plain = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#!" else c for c in plain)
