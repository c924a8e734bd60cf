"""The catalogue of models as Markdown, for docs/models.md: `python tools/models_table.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from beholder.models.catalog import ModelEntry, catalog, short

INTRODUCTION = (
    "What people audit today beside the studies' models, as their documentation names them. Any other model of these "
    "families works the same way, by its hub name."
)


def markdown_tables(entries: Sequence[ModelEntry]) -> str:
    """The models of the studies, then those of today, each as a table for the docs."""
    printed, newer = ([entry for entry in entries if bool(entry.studies) is wanted] for wanted in (True, False))
    return f"{markdown_table(printed)}\n\n## Models of today\n\n{INTRODUCTION}\n\n{markdown_table(newer)}"


def markdown_table(entries: Sequence[ModelEntry]) -> str:
    """The entries as one table."""
    head = ["Printed as", "Also", "Tables", "Family", "Named to Beholder", "Parameters", "Pairs", "Released", "Licence"]
    head += ["Memory"]
    lines = [head, ["---"] * len(head), *(_cells(entry) for entry in entries)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def markdown_notes(entries: Iterable[ModelEntry]) -> str:
    """What there is to know beside the table."""
    return "\n".join(f"- **{entry.name}**: {entry.note}" for entry in entries if entry.note)


def _cells(entry: ModelEntry) -> list[str]:
    tables = "; ".join(f"{study} {tables}".strip() for study, tables in entry.studies.items())
    memory = entry.memory("float32")
    named = f"`{entry.load}`" if entry.load else f"see its note ({entry.adapter})"
    return [
        entry.name,
        ", ".join(entry.aliases),
        tables,
        entry.family,
        named,
        short(entry.parameters),
        short(entry.training_pairs),
        entry.released or "unknown",
        entry.licence or "unknown",
        f"{memory / 1e9:.1f} GB" if memory else "unknown",
    ]


if __name__ == "__main__":
    print(markdown_tables(catalog()), markdown_notes(catalog()), sep="\n\n")
