"""Replication: every printed number beside ours, with difference, interval and verdict; and the page of it."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder import __version__
from beholder.calibration.claims import WIDER, promises
from beholder.chapter.numbers import ABSENT, Result
from beholder.chapter.numbers import number as count
from beholder.core.errors import UsageError
from beholder.core.files import write_whole
from beholder.core.read import read_text, write_table
from beholder.core.record import version
from beholder.core.results import PLAIN, place
from beholder.core.results import SCHEMA as RESULTS
from beholder.models.catalog import catalog, lookup
from beholder.report.page import Column, Ledger, rendered, save_page
from beholder.studies import STUDIES
from beholder.studies.printed import (
    CANNOT_BE,
    CELL,
    DIFFERS,
    EQUAL,
    NOT_MEASURED,
    P_VALUE,
    PLACE,
    WITHIN,
    Cell,
    Check,
    Printed,
    Sizes,
    Source,
    printed_of,
)
from beholder.studies.worlds import DESIGNS, NOISE, SMALLEST, WORLDS

BEGIN, END = "<!-- made by `beholder calibrate --into` -->", "<!-- end -->"
HOT = 0.12  # false alarms that have the full colour


class HeatCell(NamedTuple):
    """A claim in a world: per cent of worlds in which it is called."""

    text: str
    detail: str = ""  # per cent of worlds in which its intervals hold the truth
    kind: str = ""  # `true` where the claim is true, `broken` where a promise is not kept
    heat: float = 0.0


class Heat(NamedTuple):
    """All claims in all worlds of one design."""

    design: str
    worlds: list[str]
    rows: list[tuple[str, list[HeatCell]]]


def write_calibration(table: pl.DataFrame, folder: Path) -> Path:
    """Write `calibration.html`, `.parquet` and `.csv`; return the page's path."""
    write_table(table, folder, "calibration")
    return save_page(folder / "calibration.html", render_calibration(table))


def render_calibration(table: pl.DataFrame) -> str:
    """The page as text."""
    return rendered(
        "calibration.html.j2",
        title="Every claim in worlds of known truth",
        subtitle=described(table),
        promises=promises(table),
        heats=heats(table),
        published=published(table),
        citation=f"Beholder {__version__}, calibration; {described(table)}.",
    )


def described(table: pl.DataFrame) -> str:
    """How much was drawn."""
    drawn = table.unique(["study", "design", "world"])
    return f"{table['claim'].n_unique()} claims in {drawn.height:,} cells, {drawn['worlds'].sum():,} worlds"


def heats(table: pl.DataFrame) -> list[Heat]:
    """A table for each design."""
    made = []
    for design in (*DESIGNS, SMALLEST):
        part = table.filter(pl.col("design") == design, (pl.col("tests") == 0) | (pl.col("null") + pl.col("true") > 0))
        worlds = [world for world in WORLDS if world in part["world"]]
        cells = {(row["claim"], row["world"]): heat_cell(row) for row in part.iter_rows(named=True)}
        names = sorted(part["claim"].unique())
        rows = [(name, [cells.get((name, world), HeatCell(ABSENT)) for world in worlds]) for name in names]
        if rows:
            made.append(Heat(design, worlds, rows))
    return made


def heat_cell(row: Result) -> HeatCell:
    """What is called, and beside it how often the intervals hold."""
    shares = {name: row[name] for name in ("alarms", "power", "coverage") if row[name] is not None}
    percent = {name: f"{100 * share:.1f}".removesuffix(".0") for name, share in shares.items()}
    detail = percent.pop("coverage", "")
    kind = "true" if row["alarms"] is None and percent else ""
    kind = kind if row["verdict"] in ("", WIDER) else "broken"
    return HeatCell(" / ".join(percent.values()) or ABSENT, detail, kind, min(1.0, (row["alarms"] or 0.0) / HOT))


def published(table: pl.DataFrame) -> list[str]:
    """What the papers' own p-values would call in noise, read one by one."""
    noise = table.filter(pl.col("world") == NOISE, pl.col("tests") > 0)
    shares = noise.group_by("claim", maintain_order=True).agg(pl.col("small").sum() / pl.col("worlds").sum())
    return [f"{claim}: {100 * share:.0f} % of worlds" for claim, share in shares.iter_rows()]


# docs/calibration.md


def write_into(page: Path, table: pl.DataFrame) -> None:
    """Put the promises and the tables into a Markdown page, between its two marks."""
    before, found, rest = read_text(page).partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise UsageError(f"{page} has no place for the tables. Add two lines to it:\n{BEGIN}\n{END}")
    write_whole(page, f"{before}{BEGIN}\n{markdown(table)}\n{END}{after}".encode())


def markdown(table: pl.DataFrame) -> str:
    """The same as on the page."""
    said = [
        f"- **{each.headline}**: {each.sentence}" + "".join(f"\n  - not kept: {broken}" for broken in each.broken)
        for each in promises(table)
    ]
    parts = [f"{described(table)}.", "\n".join(said)]
    for heat in heats(table):
        lines = [["Claim", *heat.worlds], ["---"] * (len(heat.worlds) + 1)]
        lines += [[f"`{name}`", *map(_marked, cells)] for name, cells in heat.rows]
        rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts.append(f"<details><summary>{heat.design}</summary>\n\n{rows}\n\n</details>")
    if published(table):
        parts.append("p ≤ 0.05 of the papers' own tests, for any of their numbers, in worlds of noise:\n")
        parts.append("\n".join(f"- {line}" for line in published(table)))
    return "\n\n".join(parts)


def _marked(cell: HeatCell) -> str:
    text = {"true": f"*{cell.text}*", "broken": f"**{cell.text}**"}.get(cell.kind, cell.text)
    return f"{text} ({cell.detail})" if cell.detail else text


VERDICTS = {
    EQUAL: "our value rounds to the printed one (after float16 means, where the study takes these)",
    WITHIN: "the printed value lies in our 95 % interval",
    DIFFERS: "the printed value lies outside our interval, or we have no interval and our value is another",
    CANNOT_BE: "the printed value cannot be what its table says it is; the reason stands beside it",
    NOT_MEASURED: "we have no value to compare it with",
}
SCHEMA: dict[str, pl.DataType] = {
    **RESULTS,
    **dict.fromkeys(("source", "place"), pl.String()),
    **dict.fromkeys(("printed", "step", "difference"), pl.Float64()),
    **dict.fromkeys(("verdict", "reason", "origin"), pl.String()),
}
Parts = Mapping[str, str]  # of data sets of which the run looked at some images only, how many these are
NO_PARTS: Parts = {}  # every data set was used whole
RUN, TABLES, DATA, NOWHERE = ORIGINS = ("run", "printed tables", "data", "none")  # where our value comes from
_OURS: dict[str, pl.DataType] = {
    **{name: kind for name, kind in RESULTS.items() if name not in ("study", "verdict", "unit")},
    "origin": pl.String(),
}


def printed_studies() -> Iterator[tuple[str, Printed]]:
    """Every study that declares printed numbers, with its name."""
    return ((name, printed) for name in STUDIES if (printed := printed_of(name)) is not None)


def ledger(results: pl.DataFrame | None = None, data: Path | None = None, parts: Parts = NO_PARTS) -> pl.DataFrame:
    """Every printed cell with our value: from a run on printed models, and from sizes counted in the folder of data."""
    own = _of_run(results) if results is not None else None
    return pl.concat([ledger_of(name, printed, own, data, parts) for name, printed in printed_studies()])


def ledger_of(
    name: str, printed: Printed, own: pl.DataFrame | None = None, data: Path | None = None, parts: Parts = NO_PARTS
) -> pl.DataFrame:
    """The part of one study; `own` are rows of a run on printed models."""
    sizes = printed.sizes(data) if data is not None else {}
    derived = printed.derived.with_columns(origin=pl.lit(TABLES))
    tables = pl.concat([pl.DataFrame(schema=_OURS), derived], how="diagonal_relaxed")
    cells, ours = printed.cells.select(list(CELL)), [tables, _of_data(name, sizes)]
    if own is not None:
        mine = own.filter(study=name)
        if printed.lower_case_groups:
            mine = mine.with_columns(pl.col("group", "against").str.to_lowercase())
        ours.insert(0, mine.select(list(_OURS)))
        if printed.more and not mine.is_empty():
            cells = pl.concat([cells, printed.more().filter(pl.col("model").is_in(mine["model"].unique().implode()))])
    values = pl.concat(ours).unique(PLACE, keep="first", maintain_order=True)
    joined = cells.join(values, on=PLACE, how="left", nulls_equal=True, maintain_order="left")
    joined = joined.with_columns(study=pl.lit(name), difference=pl.col("value") - pl.col("printed"))
    return judged(joined, printed, sizes, parts).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


# Our values


def printed_name(model: str) -> str | None:
    """The printed name of a run's model: by its name, its hub id or what it was loaded as; None if none prints it."""
    bare = re.sub(r"@[^/]*$", "", model)
    entry = lookup(model) or next((each for each in catalog() if bare in (each.load, each.source)), None)
    if entry:
        return entry.name
    return model if any(model in printed.cells["model"] for _, printed in printed_studies()) else None


def _of_run(results: pl.DataFrame) -> pl.DataFrame:
    """The rows of a run on printed models, and each p-value as a row of its own."""
    names = {model: name for model in results["model"].unique() if (name := printed_name(model))}
    rows = results.filter(pl.col("model").is_in(list(names)), PLAIN)
    rows = rows.with_columns(pl.col("model").replace(names), origin=pl.lit(RUN))
    p_values = rows.filter(pl.col("p_value").is_not_null()).with_columns(
        pl.concat_str("metric", pl.lit(P_VALUE)).alias("metric"),
        value="p_value",
        **dict.fromkeys(("low", "high"), pl.lit(None, pl.Float64)),
    )
    return pl.concat([rows, p_values])


def _of_data(study: str, sizes: Sizes) -> pl.DataFrame:
    """Sizes counted in the data."""
    rows = [
        {"dataset": dataset, "concept": concept, "value": float(size.number), "n": size.number}
        for (dataset, concept), size in sizes.items()
    ]
    same = {"metric": f"{study}.count", "note": "counted in the data", "origin": DATA}
    return pl.DataFrame([{**row, **same} for row in rows], schema=_OURS)


# Verdicts


def judged(joined: pl.DataFrame, printed: Printed, sizes: Sizes, parts: Parts = NO_PARTS) -> pl.DataFrame:
    """A verdict for every cell, and its reason where it needs one."""
    cells = zip(joined.iter_rows(named=True), _tolerance(joined, printed), strict=True)
    made = [_verdict(row, tolerance, printed, sizes, parts) for row, tolerance in cells]
    return joined.with_columns(pl.DataFrame(made, {"verdict": pl.String, "reason": pl.String}, orient="row"))


def _verdict(row: Cell, tolerance: float, printed: Printed, sizes: Sizes, parts: Parts) -> tuple[str, str | None]:
    """Reasons are what the study says of a run's value, or what was noted when a size was counted."""
    origin, half = row["origin"], row["step"] / 2
    size = sizes[row["dataset"], row["concept"]] if origin == DATA else None
    of_run = printed.partial(row) or (None if printed.whole(row) else parts.get(row["dataset"] or ""))
    partial = size.partial if size else of_run if origin == RUN else None
    known, bounded = row["value"] is not None and partial is None, row["low"] is not None and row["high"] is not None
    inside = bounded and row["low"] <= row["printed"] + half and row["printed"] - half <= row["high"]
    if known and (abs(row["difference"]) <= tolerance or (origin == TABLES and inside)):
        return EQUAL, None
    if (impossible := printed.impossible(row)) is not None:
        return CANNOT_BE, impossible
    if not known:
        return NOT_MEASURED, None if row["value"] is None else partial
    if inside:
        return WITHIN, None
    return DIFFERS, size.hint if size else printed.explained(row) if origin == RUN else None


def _tolerance(cells: pl.DataFrame, printed: Printed) -> pl.Series:
    """Half the last printed place, a hair for binary fractions, and what a float16 mean may move by."""
    values = cells["printed"].abs().to_numpy()
    halves = cells["source"].is_in([source.name for source in printed.sources if source.half_precision]).to_numpy()
    grid = np.spacing(np.where(halves, values, 0.0).astype(np.float16)).astype(np.float64)
    moved = np.where((cells["unit"] == "ratio").fill_null(False).to_numpy(), values * 2.0**-10, grid / 2)
    return pl.Series(cells["step"].to_numpy() * 0.5 * (1 + 1e-6) + np.where(halves, moved, 0.0))


def counts(cells: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Cells of each verdict, in the order of the verdicts, by where our value comes from; NOWHERE: we have none."""
    origins = cells["origin"].fill_null(NOWHERE)
    return {
        verdict: {origin: int(((cells["verdict"] == verdict) & (origins == origin)).sum()) for origin in ORIGINS}
        for verdict in VERDICTS
    }


# Do the printed tables agree with themselves? Every study's checks, which need no model


def consistency() -> list[Check]:
    """Every check, study by study."""
    return [check for _, printed in printed_studies() for check in printed.checks]


def as_records(checks: list[Check]) -> list[dict[str, object]]:
    """The checks as JSON."""
    return [{**check._asdict(), "holds": check.holds} for check in checks]


# The page

FILTERS = [("study", "Study"), ("table", "Table"), ("model", "Model"), ("metric", "Metric"), ("verdict", "Verdict")]
FIELDS = "study table model metric verdict where what printed ours interval difference reason".split()
COLUMNS = [
    Column("Where", ("where",), "name"),
    Column("Model", ("model",)),
    Column("What", ("what",)),
    Column("Printed", ("printed",), "number"),
    Column("Ours", ("ours",), "number", ("interval",)),
    Column("Difference", ("difference",), "number"),
    Column("Verdict", ("verdict",), "reason", ("reason",), dot=True),
]

SCOPE = "Values are in our units: a printed per cent of belief is a probability. Small print: 95 % interval."
# Headings of the columns that count verdicts
ORIGIN_NAMES = {RUN: "From this run", TABLES: "From printed tables", DATA: "Counted in data", NOWHERE: "None of ours"}


def write_replication(cells: pl.DataFrame, checks: list[Check], folder: Path, *, models: list[str]) -> Path:
    """Write `replication.html`, `ledger.parquet`, `ledger.csv` and `consistency.json`; return the page's path."""
    write_table(cells, folder, "ledger")
    records = json.dumps(as_records(checks), indent=1, ensure_ascii=False)
    write_whole(folder / "consistency.json", records.encode())
    return save_page(folder / "replication.html", render_replication(cells, checks, models=models))


def render_replication(cells: pl.DataFrame, checks: list[Check], *, models: list[str]) -> str:
    """The page as text."""
    number, studies = counts(cells), count(cells["study"].n_unique(), "study", "studies")
    origins = [origin for origin in ORIGINS if any(each[origin] for each in number.values())]
    shares = {verdict: [f"{each[origin]:,}" for origin in origins] for verdict, each in number.items()}
    sources = [source for _, printed in printed_studies() for source in printed.sources]
    return rendered(
        "replication.html.j2",
        ("files.js", "ledger.js"),
        title="Printed beside measured" if models else "The printed tables, checked",
        subtitle=" · ".join([f"{cells.height:,} printed numbers of {studies}", *models]),
        lead=_lead(cells, models),
        verdicts=[(verdict, shares[verdict], meaning) for verdict, meaning in VERDICTS.items()],
        origins=[ORIGIN_NAMES[origin] for origin in origins],
        agreement=f"{len(checks)} rules that the printed numbers must obey were checked. "
        f"{sum(not check.holds for check in checks)} are broken somewhere: their lines are marked.",
        checks=sorted(checks, key=lambda check: check.holds),
        names={check.study: _name(check.study) for check in checks},
        ledger=_ledger(cells, sources),
        sources=sources,
        citation=f"Beholder {version()}, replication ledger; {', '.join(models) or 'no run'}.",
    )


def _name(study: str) -> str:
    return STUDIES[study].short or STUDIES[study].title


def _ledger(cells: pl.DataFrame, sources: list[Source]) -> Ledger:
    datasets = cells.group_by("study").agg(pl.col("dataset").n_unique())
    several = set(datasets.filter(pl.col("dataset") > 1)["study"])
    order = {DIFFERS: 0, WITHIN: 1, EQUAL: 2, CANNOT_BE: 3, NOT_MEASURED: 4}  # what differs comes first
    ordered = cells.sort(pl.col("verdict").replace_strict(order), maintain_order=True)
    lines = [_line(row, dataset=row["study"] in several) for row in ordered.to_dicts()]
    table = pl.DataFrame(lines, schema=dict.fromkeys(FIELDS, pl.String), orient="row")
    there = set(cells["source"])
    absent = [each for each in sources if each.on_request and each.name not in there]
    later = ": checked above; compared cell by cell with a run on one of these models."
    said = " ".join([SCOPE, *(f"{each.printed_in} ({each.contents}){later}" for each in absent)])
    return Ledger(table, COLUMNS, FILTERS, said)


def _lead(cells: pl.DataFrame, models: list[str]) -> str:
    origins = cells.filter(pl.col("value").is_not_null())["origin"]
    compared, derived, counted = (int((origins == origin).sum()) for origin in (RUN, TABLES, DATA))
    tables = f"{derived:,} printed numbers follow from other printed ones and are computed from those"
    tables += f", {counted} sizes of data sets are counted in the data" if counted else ""
    if not models:
        return f"No run was named, so no model was asked: {tables}. The others need a run."
    return f"{compared:,} printed numbers are compared with this run ({', '.join(models)}); {tables}."


def _line(row: Cell, *, dataset: bool) -> list[str]:
    """A row of the ledger as the page shows it."""
    study = _name(row["study"])
    metric = row["metric"].partition(".")[2].replace("_", " ").replace(".", ", ")
    parts = [metric, row["dataset"] if dataset else "", place(row)]
    interval = "" if row["low"] is None else f"{_number(row, row['low'])}–{_number(row, row['high'])}"
    difference = "" if row["difference"] is None else f"{row['difference']:+.{_places(row)}f}"
    note = row["reason"] or (row["note"] if row["origin"] != RUN and row["verdict"] != NOT_MEASURED else "")
    ours = "" if row["value"] is None else _number(row, row["value"], more=1)
    return [
        *(study, row["place"], row["model"] or "", row["metric"], row["verdict"], f"{study}, {row['place']}"),
        *(" · ".join(filter(None, parts)), printed_text(row), ours, interval, difference, note or ""),
    ]


def _places(row: Cell) -> int:
    """Decimals of the last printed place."""
    return next((places for places in range(6) if 10**-places <= row["step"] * 1.01), 6)


def printed_text(row: Cell) -> str:
    """A printed number as it is printed: one that stands for all below a bound as that bound."""
    return f"<{_number(row, row['step'])}" if row["printed"] == row["step"] / 2 else _number(row, row["printed"])


def _number(row: Cell, value: float, more: int = 0) -> str:
    if row["step"] < 1e-9 * max(1.0, abs(row["printed"])):  # a file gives the number unrounded
        return f"{value:.4g}"
    return f"{value:.{_places(row) + more}f}" if _places(row) else f"{value:,.0f}"
