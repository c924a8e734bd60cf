"""Printed numbers: what a study's paper prints, cell by cell, and what is known about these cells.

A study declares a `Printed` in its folder. The cells are a tidy CSV file. Each cell has the place that a row of our
results table has, so that a run's rows find the printed number. `printed` is in our unit and `step` is the unit of the
last printed place. The machinery in `beholder.published` compares the cells with a run.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

import polars as pl

from beholder.core.types import Entry, Fields
from beholder.models.catalog import lookup
from beholder.studies import STUDIES

PLACE = ("model", "dataset", "metric", "subset", "group", "against", "concept", "template")
"""The columns that tell the numbers of one study apart."""
CELL: dict[str, pl.DataType] = dict.fromkeys(("source", "place", *PLACE, "printed", "step", "unit"), pl.String())
CELL |= {"printed": pl.Float64(), "step": pl.Float64()}  # the columns of a file of cells
# The verdicts on a printed number
BELOW = pl.col("step") / 2  # stands for all numbers from 0 to the printed bound `<0.01`: no other number is printed so
PRINTED_PLACE = ("metric", "subset", "group", "concept")
NOTHING_PRINTED = pl.DataFrame(schema={"model": pl.String, "value": pl.Float64})
P_VALUE = ".p_value"  # how the metric of a printed p ends, after that of its number
EQUAL, WITHIN, DIFFERS = "equal within rounding", "within interval", "differs"
CANNOT_BE, NOT_MEASURED = "cannot be", "not measured"

T = TypeVar("T")
Cell = Fields  # a row of the ledger


class Source(NamedTuple):
    """Where numbers were printed, and what to know before comparing with them."""

    name: str
    printed_in: str
    contents: str
    caveats: tuple[str, ...] = ()
    half_precision: bool = False  # whether its figures are means in float16
    on_request: bool = False  # whether its cells come from `Printed.more`: only for the models of a run


def sources_beside(file: Path) -> tuple[Source, ...]:
    """Those of a file of cells, from `sources.json` beside it."""
    entries: list[Entry] = json.loads(file.with_name("sources.json").read_bytes())
    return tuple(Source(**{**entry, "caveats": tuple(entry.get("caveats", ()))}) for entry in entries)


class Check(NamedTuple):
    """A rule that printed numbers must obey, how many do, and which do not."""

    study: str
    table: str
    rule: str
    obey: int
    of: int
    finding: str
    exceptions: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every number obeys."""
        return self.obey == self.of


class Size(NamedTuple):
    """A count in the data at hand."""

    number: int
    partial: str | None = None  # why it does not compare, where only a part of the source is here
    hint: str | None = None  # what may explain a difference


Sizes = Mapping[tuple[str, str], Size]  # counts by data set and by what is counted


@dataclass(frozen=True)
class Printed:
    """The printed numbers of a study."""

    file: Path | bytes  # cells as CSV or a file of it, with the columns of `CELL`; models as the paper names them
    sources: tuple[Source, ...]
    more: Callable[[], pl.DataFrame] | None = None  # more cells, which are compared only with a run on their models
    sizes: Callable[[Path], Sizes] = lambda data: {}  # printed sizes of data sets, counted again in a folder of data
    impossible: Callable[[Cell], str | None] = lambda cell: None  # why a number cannot be what its table says
    partial: Callable[[Cell], str | None] = lambda cell: None  # why a run's value does not compare with the printed one
    whole: Callable[[Cell], bool] = lambda cell: False
    """Whether `partial` alone says that, however many images were used."""
    explained: Callable[[Cell], str | None] = lambda cell: None  # what may explain that a run's value differs
    unlike: Callable[[Cell, str], str | None] = lambda row, model: None
    """Why a printed model's number is another quantity than a run's row; given the row and the catalogue's name."""
    lower_case_groups: bool = False  # whether data sets spell a group in several ways (Male, male)
    no_neighbours: tuple[tuple[str, str], ...] = ()  # metrics and subsets not shown beside other models

    @cached_property
    def table(self) -> pl.DataFrame:
        """The file as it is: a printed value is a text, such as `<0.01`."""
        text = self.file if isinstance(self.file, bytes) else self.file.read_bytes()
        return pl.read_csv(text, schema={**CELL, "printed": pl.String()})

    @cached_property
    def cells(self) -> pl.DataFrame:
        """The printed figures; `model` is the catalogue's name and `printed_as` the paper's."""
        number, below = pl.col("printed").cast(pl.Float64, strict=False), pl.col("printed").str.starts_with("<")
        printed = pl.when(below).then(BELOW).otherwise(number)
        figures = self.table.with_columns(printed=printed, printed_as="model")
        return figures.drop_nulls("printed").with_columns(pl.col("model").map_elements(catalogued, pl.String))

    @property
    def derived(self) -> pl.DataFrame:
        """Values that follow from the printed cells alone, as columns of a results table: `derived.csv` beside them."""
        return self._beside("derived.csv", pl.read_csv, pl.DataFrame())

    @property
    def checks(self) -> list[Check]:
        """Whether the printed numbers agree with each other: `checks.json` beside them."""
        entries: list[Entry] = self._beside("checks.json", json.loads, [])
        return [Check(**{**entry, "exceptions": tuple(entry["exceptions"])}) for entry in entries]

    def _beside(self, name: str, read: Callable[[bytes], T], absent: T) -> T:
        path = None if isinstance(self.file, bytes) else self.file.with_name(name)
        return read(path.read_bytes()) if path is not None and path.is_file() else absent

    def source_of(self, metric: str) -> Source | None:
        """The first source that prints a metric."""
        names = self.cells.filter(metric=metric)["source"]
        return next((source for source in self.sources if source.name == names[0]), None) if len(names) else None

    def provenance(self, metric: str) -> tuple[str, ...]:
        """Notes under a table that shows printed values of a metric: their source and its caveats."""
        source = self.source_of(metric)
        return (f"Published: {source.printed_in}; {source.contents}.", *source.caveats) if source else ()

    def neighbours(
        self, metric: str, subset: str | None = None, *, group: str | None = None, concept: str | None = None
    ) -> pl.DataFrame:
        """`model, value` of every published model under its printed name; no row where nothing was published."""
        known = {} if (metric, subset) in self.no_neighbours else self._by_place
        return known.get((metric, subset or None, group or None, concept or None), NOTHING_PRINTED)

    @cached_property
    def _by_place(self) -> dict[tuple[object, ...], pl.DataFrame]:
        """The neighbours of every place: a report asks for those of each of its rows."""
        places = self.cells.filter(pl.col("printed") != BELOW).group_by(*PRINTED_PLACE, maintain_order=True)
        return {place: rows.select(model="printed_as", value="printed") for place, rows in places}


def alike(printed: Printed, row: Cell) -> tuple[pl.DataFrame, dict[str, int]]:
    """Published models whose number is the same quantity as a run's row, and how many are not, by the reason."""
    others = printed.neighbours(row["metric"], row["subset"], group=row["group"], concept=row["concept"])
    reasons = [printed.unlike(row, catalogued(model)) for model in others["model"]]
    left_out = {reason: reasons.count(reason) for reason in dict.fromkeys(reasons) if reason}
    return others.filter(pl.Series([reason is None for reason in reasons], dtype=pl.Boolean)), left_out


@cache
def catalogued(name: str) -> str:
    """A printed name as the catalogue of models spells it: papers give one model several names."""
    entry = lookup(name)
    return entry.name if entry else name


def printed_of(study: str) -> Printed | None:
    """The printed numbers of a study; None where it has none."""
    printed: Printed | None = STUDIES[study].part("printed") if study in STUDIES else None
    return printed


def part_of_source(here: int, whole: int) -> str | None:
    """Why a count does not compare, where a part of the images is here."""
    return f"{here:,} of the source's {whole:,} images are in the tables here" if here < whole else None
