"""The replication page: counts of verdicts, checks of the printed tables, and every cell with filters.

Like the report it is one HTML file that opens from disk without a network.
"""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import polars as pl

from beholder.core.files import write_whole
from beholder.core.results import place
from beholder.core.tables import write_table
from beholder.published.ledger import DATA, NOWHERE, ORIGINS, RUN, TABLES, VERDICTS, as_records, counts, printed_studies
from beholder.report.number_table import Column, Ledger, packed
from beholder.report.page import TEMPLATES, environment, policy
from beholder.studies import STUDIES
from beholder.studies.printed import CANNOT_BE, DIFFERS, EQUAL, NOT_MEASURED, WITHIN, Check, Source

FILTERS = [("study", "Study"), ("table", "Table"), ("model", "Model"), ("metric", "Metric"), ("verdict", "Verdict")]
FIELDS = (
    "study",
    "table",
    "model",
    "metric",
    "verdict",
    "where",
    "what",
    "printed",
    "ours",
    "interval",
    "difference",
    "reason",
)
COLUMNS = [
    Column("Where", ("where",), "name"),
    Column("Model", ("model",)),
    Column("What", ("what",)),
    Column("Printed", ("printed",), "number"),
    Column("Ours", ("ours",), "number", ("interval",)),
    Column("Difference", ("difference",), "number"),
    Column("Verdict", ("verdict",), "reason", ("reason",), dot=True),
]

ORIGIN_NAMES = {RUN: "From this run", TABLES: "From printed tables", DATA: "Counted in data", NOWHERE: "None of ours"}
"""Headings of the columns that count verdicts."""


def write_replication(cells: pl.DataFrame, checks: list[Check], folder: Path, *, models: list[str]) -> Path:
    """Write `replication.html`, `ledger.parquet`, `ledger.csv` and `consistency.json`; return the page's path."""
    write_table(cells, folder, "ledger")
    records = json.dumps(as_records(checks), indent=1, ensure_ascii=False)
    write_whole(folder / "consistency.json", records.encode())
    path = folder / "replication.html"
    write_whole(path, render_replication(cells, checks, models=models).encode("utf-8", "replace"))
    return path


def render_replication(cells: pl.DataFrame, checks: list[Check], *, models: list[str]) -> str:
    """The page as text."""
    scripts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("files.js", "ledger.js")]
    css = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("page.css", "ledger.css")]
    number = counts(cells)
    origins = [origin for origin in ORIGINS if any(each[origin] for each in number.values())]
    sources = [source for _, printed in printed_studies() for source in printed.sources]
    return (
        environment()
        .get_template("replication.html.j2")
        .render(
            title="Printed beside measured" if models else "The printed tables, checked",
            subtitle=" · ".join([_size(cells), *models]),
            lead=_lead(cells, models),
            verdicts=[
                (verdict, [f"{number[verdict][origin]:,}" for origin in origins], meaning)
                for verdict, meaning in VERDICTS.items()
            ],
            origins=[ORIGIN_NAMES[origin] for origin in origins],
            agreement=_agreement(checks),
            checks=sorted(checks, key=lambda check: check.holds),
            names={check.study: _name(check.study) for check in checks},
            ledger=_ledger(cells, sources),
            sources=sources,
            citation=f"Beholder {metadata.version('beholder')}, replication ledger; {', '.join(models) or 'no run'}.",
            css="\n".join(css),
            scripts=scripts,
            policy=policy(scripts),
        )
    )


def _name(study: str) -> str:
    return STUDIES[study].short or STUDIES[study].title


def _size(cells: pl.DataFrame) -> str:
    studies = cells["study"].n_unique()
    return f"{cells.height:,} printed numbers of {studies} {'study' if studies == 1 else 'studies'}"


def _ledger(cells: pl.DataFrame, sources: list[Source]) -> Ledger:
    datasets = cells.group_by("study").agg(pl.col("dataset").n_unique())
    several = set(datasets.filter(pl.col("dataset") > 1)["study"])
    lines = [_line(row, dataset=row["study"] in several) for row in _telling_first(cells)]
    table = pl.DataFrame(lines, schema=dict.fromkeys(FIELDS, pl.String), orient="row")
    return Ledger(
        packed(table, COLUMNS, [name for name, _ in FILTERS]), FILTERS, COLUMNS, cells.height, _scope(cells, sources)
    )


def _telling_first(cells: pl.DataFrame) -> list[dict[str, Any]]:
    """Cells that have a value of ours come before those without; what differs comes first."""
    order = {DIFFERS: 0, WITHIN: 1, EQUAL: 2, CANNOT_BE: 3, NOT_MEASURED: 4}
    return cells.sort(pl.col("verdict").replace_strict(order), maintain_order=True).to_dicts()


def _lead(cells: pl.DataFrame, models: list[str]) -> str:
    origins = cells.filter(pl.col("value").is_not_null())["origin"]
    compared, derived, counted = (int((origins == origin).sum()) for origin in (RUN, TABLES, DATA))
    tables = f"{derived:,} printed numbers follow from other printed ones and are computed from those"
    tables += f", {counted} sizes of data sets are counted in the data" if counted else ""
    if not models:
        return f"No run was named, so no model was asked: {tables}. The others need a run."
    return f"{compared:,} printed numbers are compared with this run ({', '.join(models)}); {tables}."


def _agreement(checks: list[Check]) -> str:
    broken = [check for check in checks if not check.holds]
    return (
        f"{len(checks)} rules that the printed numbers must obey were checked. {len(broken)} are broken somewhere: "
        "their lines are marked."
    )


def _scope(cells: pl.DataFrame, sources: list[Source]) -> str:
    text = "Values are in our units: a printed per cent of belief is a probability. Small print: 95 % interval."
    there = set(cells["source"])
    for source in sources:
        if source.on_request and source.name not in there:
            text += (
                f" {source.printed_in} ({source.contents}): checked above; compared cell by cell with a run on one of "
                "these models."
            )
    return text


def _line(row: dict[str, Any], *, dataset: bool) -> list[str]:
    """A row of the ledger as the page shows it."""
    study = _name(row["study"])
    metric = row["metric"].partition(".")[2].replace("_", " ").replace(".", ", ")
    parts = [metric, row["dataset"] if dataset else "", place(row)]
    interval = "" if row["low"] is None else f"{_number(row, row['low'])}–{_number(row, row['high'])}"
    difference = "" if row["difference"] is None else f"{row['difference']:+.{_places(row)}f}"
    note = row["reason"] or (row["note"] if row["origin"] != RUN and row["verdict"] != NOT_MEASURED else "")
    return [
        study,
        row["place"],
        row["model"] or "",
        row["metric"],
        row["verdict"],
        f"{study}, {row['place']}",
        " · ".join(part for part in parts if part),
        _number(row, row["printed"]),
        "" if row["value"] is None else _number(row, row["value"], more=1),
        interval,
        difference,
        note or "",
    ]


def _places(row: dict[str, Any]) -> int:
    """Decimals of the last printed place."""
    return next((places for places in range(6) if 10**-places <= row["step"] * 1.01), 6)


def _number(row: dict[str, Any], value: float, more: int = 0) -> str:
    if row["step"] < 1e-9 * max(1.0, abs(row["printed"])):  # a file gives the number unrounded
        return f"{value:.4g}"
    return f"{value:.{_places(row) + more}f}" if _places(row) else f"{value:,.0f}"
