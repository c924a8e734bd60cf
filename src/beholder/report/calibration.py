"""The calibration page, and the tables of docs/calibration.md: what is promised, and every claim in every world."""

from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder import __version__
from beholder.calibration.claims import WIDER, promises
from beholder.chapter.numbers import ABSENT, Result
from beholder.core.errors import UsageError
from beholder.core.files import write_whole
from beholder.core.read import read_text
from beholder.core.tables import write_table
from beholder.report.page import rendered, save_page
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
