"""Numbers of a site: one table of what runs measured and of what papers print, told apart by what compares.

A number is of a model, at a place (metric, subset, group …). Numbers at one place are ranked together only if they
were measured in the same way: the whole data set, the published measure. Others are shown grey, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from beholder.core.results import KEY, PLAIN
from beholder.models.catalog import lookup
from beholder.report.report import NOISE, slug
from beholder.run import Run, load_run
from beholder.studies import STUDIES
from beholder.studies.printed import printed_of

PLACE = ("benchmark", "dataset", *KEY[:-1])
SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("model", *PLACE), pl.String()),
    **dict.fromkeys(("value", "low", "high", "landmark"), pl.Float64()),
    "n": pl.Int64(),
    "unit": pl.String(),
    "source": pl.String(),
    "run": pl.String(),
    "date": pl.String(),
    "reason": pl.String(),
}
"""`run` is empty for a published number; `reason` says why a number does not compare, and is empty if it does."""


@dataclass(frozen=True)
class SiteRun:
    """A run with the name of its folder in the site."""

    name: str
    folder: Path
    run: Run


def open_runs(folders: Iterable[Path]) -> list[SiteRun]:
    """The runs, each under a name of its own."""
    runs: list[SiteRun] = []
    for folder in folders:
        base = slug(folder.resolve().name) or "run"
        taken = {each.name for each in runs}
        name = next(name for name in (base, *(f"{base}-{i}" for i in range(2, 10_000))) if name not in taken)
        runs.append(SiteRun(name, folder, load_run(folder)))
    return runs


def site_numbers(runs: Iterable[SiteRun], *, published: bool = True) -> pl.DataFrame:
    """Every number of the runs, and every printed one at a place that several models have."""
    tables = [_measured(each) for each in runs]
    if published:
        tables += [table for name in STUDIES if (table := _printed(name)) is not None]
    return pl.concat([pl.DataFrame(schema=SCHEMA), *tables])


def _measured(each: SiteRun) -> pl.DataFrame:
    results = each.run.report.results.filter(~pl.col("model").str.contains(NOISE), pl.col("value").is_not_null(), PLAIN)
    reasons = {str(entry.get("name")): _reason(each.run, entry) for entry in each.run.record.datasets}
    variant = pl.when(pl.col("variant").is_not_null()).then(pl.lit("a variant of the published measure"))
    return results.with_columns(
        model=pl.col("model").map_elements(_catalogued, pl.String),
        source=pl.lit(f"run {each.name}"),
        run=pl.lit(each.name),
        date=pl.lit(each.run.record.created[:10]),
        reason=pl.coalesce(
            pl.col("dataset").replace_strict(reasons, default="", return_dtype=pl.String).replace("", None),
            variant,
            pl.lit(""),
        ),
    ).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def _reason(run: Run, entry: dict[str, Any]) -> str:
    images, whole = entry.get("images"), entry.get("of")
    if images is not None and whole not in (None, images):
        return f"{images:,} of {whole:,} images"
    return "as the released scripts compute it" if run.record.settings.get("compat") else ""


def _printed(study: str) -> pl.DataFrame | None:
    printed = printed_of(study)
    if printed is None:
        return None
    cells = printed.cells.filter(pl.col("model").is_not_null() & (pl.col("model") != ""))
    known = {metric.name: metric.landmark for metric in STUDIES[study].metrics}
    table = cells.with_columns(
        benchmark=pl.lit(study),
        value=pl.col("printed"),
        low=pl.lit(None, pl.Float64),
        high=pl.lit(None, pl.Float64),
        landmark=pl.col("metric").replace_strict(known, default=None, return_dtype=pl.Float64),
        n=pl.lit(None, pl.Int64),
        source=pl.lit("published, ") + pl.col("place"),
        run=pl.lit(""),
        date=pl.lit(""),
        reason=pl.lit(""),
    )
    return table.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def _catalogued(model: str) -> str:
    entry = lookup(model)
    return entry.name if entry else model


@dataclass(frozen=True)
class Question:
    """A place whose numbers are compared between models."""

    slug: str
    """The name of its page."""
    key: dict[str, str | None]
    """The place, by column."""
    numbers: pl.DataFrame

    @property
    def title(self) -> str:
        """The place in words."""
        metric = str(self.key["metric"]).split(".", 1)[-1].replace("_", " ").capitalize()
        named = [str(self.key[name]) for name in ("subset", "group", "concept", "template") if self.key[name]]
        against = f" against {self.key['against']}" if self.key["against"] else ""
        return f"{metric}: {', '.join(named)}{against}" if named else metric

    @property
    def headline(self) -> bool:
        """Whether it is about all people of a subset and all prompts: such places make the front page."""
        return not any(self.key[name] for name in ("group", "against", "concept", "template"))

    @property
    def unit(self) -> str:
        """The unit of its numbers."""
        return str(self.numbers["unit"][0])


def questions(numbers: pl.DataFrame, *, models: int = 2) -> list[Question]:
    """The places that at least so many models have, in the order of the tables, each with a page name of its own."""
    made: dict[str, Question] = {}
    for place, part in numbers.group_by(PLACE, maintain_order=True):
        if part["model"].n_unique() < models:
            continue
        base = slug(" ".join(str(word) for word in place[2:] if word))
        name = next(name for name in (base, *(f"{base}-{i}" for i in range(2, 10_000))) if name not in made)
        made[name] = Question(name, dict(zip(PLACE, map(_text, place), strict=True)), part)
    return list(made.values())


def _text(value: object) -> str | None:
    return None if value is None else str(value)
