"""Verification: does a run's table come out again, measured anew from the store and without its models?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from beholder._options import AuditOptions
from beholder._run import Run
from beholder._steps import add_across, from_store, measure
from beholder.core.errors import MissingData
from beholder.core.results import KEY
from beholder.models.spec import ModelSpec
from beholder.studies.inquiry import Inquiry, open_inquiries
from beholder.studies.study import Study

ROW = ("study", "model", "dataset", *KEY)
NUMBERS = ("value", "low", "high", "p_value", "expected", "chance")
EXACT = ("n", "unit", "verdict", "equivalence")
TOLERANCE = 1e-6  # a smaller difference, in units of the number, is that of another machine's rounding


class Verified(NamedTuple):
    """The rows of a run, by what became of them."""

    same: int
    changed: pl.DataFrame  # with the old numbers, and the new ones as `NAME_now`
    gone: pl.DataFrame
    new: pl.DataFrame

    @property
    def holds(self) -> bool:
        """Whether nothing changed."""
        return self.changed.is_empty() and self.gone.is_empty() and self.new.is_empty()


def verify_run(run: Run, studies: Sequence[Study], options: AuditOptions) -> Verified:
    """Measure everything again from the scores in the store, and set it beside the run's results."""
    again = Run()
    inquiries = [inquiry for study in studies for inquiry in open_inquiries(study, options, again.record)]
    specs: dict[str, list[ModelSpec]] = {}
    for entry in run.record.models:
        if set(entry) >= set(ModelSpec.__dataclass_fields__):
            spec = ModelSpec(**{name: entry[name] for name in ModelSpec.__dataclass_fields__})
            specs.setdefault(spec.name, []).append(spec)
    for name, ways in specs.items():
        for inquiry in inquiries:
            if not run.results.filter(study=inquiry.study.name, model=name, dataset=inquiry.dataset.name).is_empty():
                again.add(_measured(name, ways, inquiry, run, options))
    add_across(again, studies, options)
    return compared(run.results, again.results)


def _measured(name: str, ways: Sequence[ModelSpec], inquiry: Inquiry, run: Run, options: AuditOptions) -> pl.DataFrame:
    matrices = from_store(ways, inquiry, options)
    readable = ~pl.col("uri").is_in([entry["image"] for entry in run.record.bad_images])
    if matrices is None or any(
        matrix.images.height < (matrix.dataset or inquiry.dataset).table.filter(readable).height for matrix in matrices
    ):
        raise MissingData(
            f"The store {options.store} lacks scores of {name} for {inquiry.study.name} on {inquiry.dataset.name}.\n"
            "Name the store that the audit used with --store. Or repeat the audit, which fills it."
        )
    return measure(inquiry, matrices, options.measure, model=name)


def compared(before: pl.DataFrame, now: pl.DataFrame) -> Verified:
    """Two tables of results, row by row."""
    old, new = (table.with_columns(row=pl.int_range(pl.len()).over(ROW)) for table in (before, now))
    keys = [*ROW, "row"]
    both = old.join(new, on=keys, how="inner", nulls_equal=True, suffix="_now", maintain_order="left")
    differs = pl.any_horizontal(
        *(~_close(name) for name in NUMBERS), *(pl.col(name).ne_missing(pl.col(f"{name}_now")) for name in EXACT)
    )
    changed = both.filter(differs)
    gone, added = (a.join(b, on=keys, how="anti", nulls_equal=True) for a, b in ((old, new), (new, old)))
    return Verified(both.height - changed.height, changed, gone, added)


def _close(name: str) -> pl.Expr:
    old, new = pl.col(name), pl.col(f"{name}_now")
    near = (old - new).abs() <= TOLERANCE * pl.max_horizontal(pl.lit(1.0), old.abs())
    return (old.is_null() & new.is_null()) | near.fill_null(False)
