"""The replication page: verdicts counted, the printed tables checked against themselves, and every cell with filters.

One HTML file that opens from disk and asks the network for nothing, like the report.
"""

from __future__ import annotations

import io
import json
from importlib import metadata
from pathlib import Path
from typing import Any

import polars as pl

from beholder.core.files import write_whole
from beholder.models.catalog import STUDIES
from beholder.published.consistency import Check, consistency
from beholder.published.ledger import (
    CANNOT_BE,
    DATA,
    DIFFERS,
    EQUAL,
    NOT_MEASURED,
    RUN,
    TABLES,
    VERDICTS,
    WITHIN,
    counts,
)
from beholder.published.tables import SOURCES
from beholder.report.number_table import Column, Ledger, packed
from beholder.report.page import TEMPLATES, environment, policy

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


def write_replication(cells: pl.DataFrame, folder: Path, *, models: list[str]) -> Path:
    """Write `replication.html`, `ledger.parquet`, `ledger.csv` and `consistency.json`; return the page's path."""
    checks = consistency()
    for name, write in (("ledger.parquet", cells.write_parquet), ("ledger.csv", cells.write_csv)):
        buffer = io.BytesIO()
        write(buffer)
        write_whole(folder / name, buffer.getvalue())
    listed = [{**check._asdict(), "holds": check.holds} for check in checks]
    write_whole(folder / "consistency.json", json.dumps(listed, indent=1, ensure_ascii=False).encode())
    path = folder / "replication.html"
    write_whole(path, render_replication(cells, checks, models=models).encode("utf-8", "replace"))
    return path


def render_replication(cells: pl.DataFrame, checks: list[Check], *, models: list[str]) -> str:
    """The page as text."""
    scripts = [(TEMPLATES / "ledger.js").read_text(encoding="utf-8")]
    css = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("page.css", "ledger.css")]
    number = counts(cells)
    return (
        environment()
        .get_template("replication.html.j2")
        .render(
            title="Printed beside measured" if models else "The printed tables, checked",
            subtitle=f"{cells.height:,} printed numbers of five studies"
            + (f" · {', '.join(models)}" if models else ""),
            lead=_lead(cells, models),
            verdicts=[(verdict, f"{number[verdict]:,}", meaning) for verdict, meaning in VERDICTS.items()],
            agreement=_agreement(checks),
            checks=sorted(checks, key=lambda check: check.holds),
            names={study: name.split(",")[0] for study, name in STUDIES.items()},
            ledger=_ledger(cells),
            sources=list(SOURCES.values()),
            citation=f"Beholder {metadata.version('beholder')}, replication ledger; {', '.join(models) or 'no run'}.",
            css="\n".join(css),
            scripts=scripts,
            policy=policy(scripts),
        )
    )


def _ledger(cells: pl.DataFrame) -> Ledger:
    lines = [_line(row) for row in _telling_first(cells)]
    table = pl.DataFrame(lines, schema=dict.fromkeys(FIELDS, pl.String), orient="row")
    return Ledger(packed(table, COLUMNS), FILTERS, COLUMNS, cells.height, _scope(cells))


def _telling_first(cells: pl.DataFrame) -> list[dict[str, Any]]:
    """Cells with something beside them before those without, what differs first."""
    order = {DIFFERS: 0, WITHIN: 1, EQUAL: 2, CANNOT_BE: 3, NOT_MEASURED: 4}
    return cells.sort(pl.col("verdict").replace_strict(order), maintain_order=True).to_dicts()


def _lead(cells: pl.DataFrame, models: list[str]) -> str:
    there = cells.filter(pl.col("value").is_not_null())["origin"]
    compared, derived, counted = (int((there == origin).sum()) for origin in (RUN, TABLES, DATA))
    tables = f"{derived:,} printed numbers follow from other printed ones and are computed from those"
    tables += f", {counted} sizes of data sets are counted in the data" if counted else ""
    if not models:
        return f"No run was named, so no model was asked: {tables}; the rest waits for a run."
    return f"{compared:,} printed numbers stand beside this run's ({', '.join(models)}); {tables}."


def _agreement(checks: list[Check]) -> str:
    broken = [check for check in checks if not check.holds]
    return (
        f"{len(checks)} rules that the printed numbers must obey were checked; {len(broken)} are broken somewhere. "
        "A marked line is broken."
    )


def _scope(cells: pl.DataFrame) -> str:
    text = "In our units: a printed per cent of belief is a probability. Small print: 95 % interval."
    if not (cells["source"] == "gras_results").any():
        text += (
            " GRAS's result files (92,000 numbers of 5 models) are checked above; "
            "they stand here cell by cell when a run on one of these models is named."
        )
    return text


def _line(row: dict[str, Any]) -> list[str]:
    """A row of the ledger as the page shows it."""
    study = STUDIES[row["benchmark"]].split(",")[0]
    place = [row["dataset"] if row["benchmark"] in ("perception", "disparity") else None]
    place += [row[key] for key in ("subset", "group", "concept", "template")]
    metric = row["metric"].partition(".")[2].replace("_", " ").replace(".", ", ")
    what = " · ".join([metric, *(str(part) for part in place if part)])
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
        what,
        _number(row, row["printed"]),
        "" if row["value"] is None else _number(row, row["value"], more=1),
        interval,
        difference,
        note or "",
    ]


def _places(row: dict[str, Any]) -> int:
    step = row["step"]
    return max(0, min(6, next((p for p in range(7) if 10**-p <= step * 1.01), 6)))


def _number(row: dict[str, Any], value: float, more: int = 0) -> str:
    if row["source"] == "gras_results":
        return f"{value:.4g}"
    return f"{value:.{_places(row) + more}f}" if _places(row) else f"{value:,.0f}"
