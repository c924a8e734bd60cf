"""`beholder data check`: what was understood of a data set, which studies fit it, and what its numbers can show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beholder.cli.console import bar, out, say_json
from beholder.cli.options import Data, DatasetSettings

if TYPE_CHECKING:
    from beholder.datasets.dataset import Dataset
    from beholder.datasets.survey import Survey
    from beholder.plan import Fit

NAMED = 10
"""Images that are listed of each kind; `--json` has them all."""
LARGEST = {"probability": 1.0, "average precision": 1.0, "standard deviations": 4.0}
"""Beyond these, a difference cannot be, or is too large to expect: groups four deviations apart hardly overlap."""
UNITS = {"1 − b": "below a ratio of 1"}
Checked = dict[str, Any]
Source = Annotated[str, typer.Argument(metavar="NAME", help="A data set's name, folder:PATH, hf:NAME or wds:URI.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def check(name: Source, data: Data = None, settings: DatasetSettings = None, as_json: AsJson = False) -> None:
    """Say what was understood: columns, groups, crossings, look-alikes, unreadable images, which studies fit.

    Exit status 1 if an image cannot be read or no study fits.
    """
    # Imported here so that other commands start without it.
    from beholder.plan import fitting_studies

    dataset, seen = surveyed(name, data, settings)
    found = checked(dataset, seen, fitting_studies(dataset))
    if as_json:
        say_json(found)
    else:
        out.print("\n".join(told(found)), markup=False, highlight=False, soft_wrap=True)
    if found["unreadable"] or not any(study["fits"] for study in found["studies"]):
        raise typer.Exit(1)


def opened(name: str, data: Path | None, settings: list[str] | None) -> Dataset:
    """A data set by what a user calls it."""
    # Imported here so that other commands start without it.
    from beholder.datasets import data_root, open_dataset
    from beholder.datasets.settings import parse_settings

    return open_dataset(name, data_root(data), parse_settings(settings or ()))


def surveyed(name: str, data: Path | None, settings: list[str] | None) -> tuple[Dataset, Survey]:
    """The images that are there, and a look at every one of them."""
    # Imported here so that other commands start without it.
    from beholder.datasets.survey import survey

    dataset = opened(name, data, settings).present()
    with bar(f"looking at {name}", len(dataset), 0) as advance:
        return dataset, survey(dataset, advance)


def checked(dataset: Dataset, seen: Survey, fits: Sequence[Fit]) -> Checked:
    """Everything that the check found, as JSON."""
    return {
        "name": dataset.name,
        "images": seen.images,
        "notes": list(dataset.notes),
        "columns": [column._asdict() for column in seen.columns],
        "groups": {name: dict(counts.drop_nulls("group").rows()) for name, counts in seen.groups.items()},
        "crossings": [
            {"columns": list(pair), "cells": counts.rename({"first": pair[0], "second": pair[1]}).to_dicts()}
            for pair, counts in seen.crossings.items()
        ],
        "look_alikes": seen.alike,
        "unreadable": seen.damaged,
        "studies": [{"study": fit.study, "fits": fit.fits, "why": fit.why} for fit in fits],
        "can_show": [
            {
                "study": fit.study,
                "metric": row["subset"],
                "comparison": row["concept"],
                "images": row["n"],
                "smallest": row["value"],
                "unit": row["unit"],
                "note": row["note"],
            }
            for fit in fits
            if fit.detectable is not None
            for row in fit.detectable.to_dicts()
        ],
    }


def told(found: Checked) -> Iterator[str]:
    """The same for a person."""
    bad = found["unreadable"]
    state = f"{len(bad):,} cannot be read" if bad else "all can be read"
    yield f"{found['name']}: {found['images']:,} images, {state}."
    yield from (f"  {image}: {reason}" for image, reason in list(bad.items())[:NAMED])
    yield from _more(len(bad))
    yield from (f"  note: {note}" for note in found["notes"])
    yield from ("", "Columns")
    width = max((len(column["name"]) for column in found["columns"]), default=0)
    for column in found["columns"]:
        missing = f"; missing for {column['missing']:,}" if column["missing"] else ""
        yield f"  {column['name']:<{width}}  {column['role']:<8} {column['how']}{missing}"
    if not found["columns"]:
        yield "  none: there are no attributes to compare people by"
    if found["crossings"]:
        yield from ("", "Crossings")
        yield from map(_crossing, found["crossings"])
    alike = found["look_alikes"]
    if alike:
        yield from ("", f"{len(alike):,} images look like an earlier one; copies make intervals too narrow")
        yield from (f"  {image} looks like {first}" for image, first in list(alike.items())[:NAMED])
        yield from _more(len(alike))
    yield from ("", "Studies")
    for study in found["studies"]:
        yield f"  {study['study']:<11} {'fits' if study['fits'] else 'does not fit'}: {study['why']}"
    if found["can_show"]:
        yield from ("", "Smallest difference that these numbers show (4 of 5 times, at 5 % after correction)")
        yield from map(_shown, found["can_show"])


def _crossing(crossing: Checked) -> str:
    first, second = crossing["columns"]
    cells = crossing["cells"]
    fewest = min(cells, key=lambda cell: cell["count"])
    return (
        f"  {first} × {second}: {len(cells)} cells of {fewest['count']:,} to "
        f"{max(cell['count'] for cell in cells):,} images; the fewest: {fewest[first]} × {fewest[second]}"
    )


def _shown(row: Checked) -> str:
    value, unit = row["smallest"], row["unit"]
    none = value is None or value > LARGEST.get(unit, math.inf)
    size = "none of a likely size can be shown" if none else f"{value:.2f} {UNITS.get(unit, unit)}"
    return f"  {row['metric']} by {row['comparison']}: {size} ({row['images']:,} images)"


def _more(count: int) -> Iterator[str]:
    if count > NAMED:
        yield f"  … and {count - NAMED:,} more; --json lists them all"
