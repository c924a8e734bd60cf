"""Study: a question about how a model sees people, declared as a value.

A study says which images meet which prompts (`tasks`) and what is computed from the scores (`measures`). A measure is a
pure function of the filled matrices; whatever else it needs is in `MeasureOptions`. Everything else about the study
(its chapter of the report, planning, calibration trials, printed numbers) lies in the same folder. It is named here as
`module:attribute` and loaded when it is needed.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from beholder.comparison.groups import people_of
from beholder.comparison.shuffles import SHUFFLES
from beholder.core.errors import UsageError
from beholder.core.files import Place
from beholder.core.options import Option as Option
from beholder.core.options import names_of, option
from beholder.core.options import read_words as option_words
from beholder.core.progress import Progress, silent
from beholder.core.read import column_in, read_delimited
from beholder.core.record import Record
from beholder.core.results import Row
from beholder.core.types import Entry, Fields
from beholder.datasets.dataset import Dataset
from beholder.datasets.selection import Selection, group_attributes, select
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import Instruction
from beholder.scores.score_matrix import ScoreMatrix, Task


@dataclass(frozen=True)
class MeasureOptions:
    """The options of a measure."""

    compat: bool = option(False)
    draws: int = option(2000)
    permutations: int = 100
    """Shuffles behind an expectation under no effect."""
    values_only: bool = False
    """Whether intervals and p-values are left out as far as that saves time: `compare` reads values alone."""
    seed: int = option(20260801)
    delta: float | None = option(None)
    person: str | None = option(None)
    within: tuple[str, ...] = option((), parse=names_of)
    shuffles: int = SHUFFLES
    """Shuffles behind every verdict."""

    def rng(self) -> np.random.Generator:
        """A fresh generator: equal options give equal intervals."""
        return np.random.default_rng(self.seed)


Matrices = Mapping[str, ScoreMatrix]  # filled matrices by task name
Measure = Callable[[Matrices, MeasureOptions], Iterable[Row]]
Tasks = Callable[[Dataset], Sequence[Task]]


@dataclass(frozen=True)
class Metric:
    """A number that a study gives: its name, where the page shows it, its unit and what its values mean."""

    name: str
    topic: str
    """The topics of the chapter that show it, separated by blanks."""
    unit: str
    meaning: str
    landmark: float | None = None
    """The value without any effect: 0 for a difference, 1 for a ratio."""
    paired: bool = False
    """Whether its rows compare two groups, `group` and `against`."""
    chance_only: bool = False
    """Whether it tells what shuffled labels give, whatever the model."""
    counts: str = "images"
    """What `n` counts."""
    below: str = ""
    """What a value below the landmark means, in words such as `women get a lower probability than men`."""
    above: str = ""
    """What a value above it means."""

    @property
    def one_way(self) -> bool:
        """Whether it is a difference of two groups, which has the opposite sign when seen from the other."""
        return self.paired and self.landmark == 0


def read_metrics(path: Path, prefix: str = "") -> tuple[Metric, ...]:
    """The metrics of a study's `metrics.csv`, with `prefix` before their names."""
    kinds: Mapping[str, Callable[[str], Any]] = {"landmark": float, "paired": bool, "chance_only": bool}
    rows = read_delimited(path).with_columns(name=prefix + pl.col("name")).to_dicts()
    return tuple(Metric(**{name: kinds.get(name, str)(cell) for name, cell in row.items() if cell}) for row in rows)


@dataclass(frozen=True)
class Command:
    """A command of a study that reads files in place of a model: `beholder NAME FILE …`."""

    name: str
    help: str
    files: str  # what the files are
    run: str  # `module:function`, given the files and a `CommandOptions`; returns the `Measured` of a run
    options: tuple[Option, ...] = ()
    unit: str = "images"  # what its progress counts
    examples: tuple[tuple[str, str], ...] = ()  # for its help: what for, and what to type


@dataclass(frozen=True)
class CommandOptions:
    """What a command of a study is given."""

    store: Place
    data: Path | None = None
    measure: MeasureOptions = MeasureOptions()
    progress: Progress = silent
    study_options: Fields = field(default_factory=dict)  # the command's own options that were used


class Measured(NamedTuple):
    """What a command of a study gives back."""

    results: pl.DataFrame
    record: Record
    files: Mapping[str, bytes] = MappingProxyType({})  # more files for the run folder, by name


TRUE_OR_FALSE = Instruction(
    "Indicate if the following statement is true or false, and please only output 'true' or 'false': {}",
    yes="true",
    no="false",
)  # how a model that answers in words is asked about a statement


@dataclass(frozen=True)
class Asks:
    """What is put to a model: images and prompts."""

    datasets: tuple[str, ...] = ()
    """Data sets it can be asked on; the first is the study's own."""
    tasks: Tasks = lambda dataset: ()
    statements: Tasks | None = None
    """What is scored instead for models that match pictures with texts and cannot be asked a question."""
    detector_tasks: Tasks | None = None
    """What is scored instead for detectors and segmenters."""
    instruction: Instruction = TRUE_OR_FALSE
    """How a model that answers in words is asked."""
    compat_instruction: Callable[[ModelSpec], Instruction] | None = None
    """How the authors' released scripts ask, where that differs."""
    compat_tasks: Tasks | None = None
    """What the authors' released scripts score, where that differs."""
    layouts: tuple[Tasks, ...] = ()
    """Other tables of scores that `beholder measure` takes: their columns as prompts, tried in turn."""
    all_datasets: bool = False
    """Whether it is asked on all of its data sets that are at hand, rather than on the first."""
    belief: bool = False
    """Whether it reads a score as the share of belief that a prompt gets among those of its level."""
    limit_by: str | None = None
    """The attribute that `--limit` takes its share of; else the first that is compared."""
    reference_models: tuple[str, ...] = ("glasshouse/contrastive", "null")
    """The embedded models that are audited when no model is named."""


@dataclass(frozen=True)
class Measures:
    """What is computed from the scores."""

    functions: tuple[Measure, ...] = ()
    metrics: tuple[Metric, ...] = ()
    across: Callable[[pl.DataFrame, bool], pl.DataFrame] | None = None
    """More rows, from the results of all models and data sets together; the flag is `compat`."""
    compares: tuple[str, ...] = ()
    """The attributes whose groups it compares; the data needs at least one of them."""
    every: bool = False
    """Whether the user asked for each of these attributes: one that cannot be compared is then reported."""
    within: tuple[str, ...] = ()
    """Other labels that its groups are compared within, as far as the data has them."""


@dataclass(frozen=True)
class Tells:
    """What the page says of it."""

    chapter: str = ""
    """`module:CHAPTER`: findings, tables and charts; without it the page has plain tables."""
    limitations: tuple[str, ...] = ()
    of_photographs: tuple[str, ...] = ()
    """Limitations that hold for photographs of people, and not for drawings."""
    compat: str = ""
    """What `--compat` follows: the authors' released scripts, the paper, or each for what."""
    choices: tuple[str, ...] = ()
    """What the paper leaves open, and what is taken here: `docs/fidelity.md` lists them."""
    intervals: str = ""
    """How the intervals are computed, where they are not made of draws of people."""


LISTS = ("choices", "limitations", "of_photographs")


class Words(NamedTuple):
    """A study in words: the `study.toml` of its room."""

    about: Entry  # title, short title, question, citation
    tells: Tells
    options: tuple[Option, ...]
    command: Entry  # its command's name, help, files, unit, examples


def read_words(module: str, **numbers: object) -> Words:
    """Those of the room of this module; `{name}` in choices and limitations stands for the number of that name."""
    room = module.rpartition(".")[0]
    text: Entry = tomllib.loads((files(room) / "study.toml").read_text("utf-8"))
    about: Entry = {name: text.pop(name) for name in ("title", "short", "question", "citation") if name in text}
    options = [Option(name, **option_words(given)) for name, given in text.pop("options", {}).items()]
    told: Entry = {name: tuple(line.format(**numbers) for line in text[name]) for name in LISTS if name in text}
    told |= {name: text[name] for name in ("compat", "intervals") if name in text}
    tells = Tells(f"{room}.chapter:CHAPTER", **told)
    name: Entry = {"name": room.rpartition(".")[2]}
    return Words(name | about, tells, tuple(options), name | text.get("command", {}))


@dataclass(frozen=True)
class Plans:
    """What is known of it before and beside a run; each is `module:attribute`, the plan may be the function itself."""

    plan: str | Callable[..., Iterable[Any]] = ""
    """`function(dataset, PlanOptions)`: rows that say how large an effect can be found."""
    trials: str = ""
    """How `beholder calibrate` tries it in worlds of known truth."""
    printed: str = ""
    """The printed numbers of the paper."""


@dataclass(frozen=True)
class Study:
    """A question, what to score, what to measure, and where the rest of the study lies."""

    name: str
    title: str
    question: str
    citation: str
    asks: Asks = Asks()
    measures: Measures = Measures()
    tells: Tells = Tells()
    plans: Plans = Plans()
    short: str = ""
    """The title in a word or two."""
    default: str = ""
    """When it is asked although no study was named: `always`, or `data` when a data folder is named."""
    demo: bool = False
    """Whether it is part of the demo: neither model, study nor data are named."""
    options: tuple[Option, ...] = ()
    configure: Callable[["Study", Fields], "Study"] | None = None
    """The study with the user's own options; given those of `options` that were used."""
    command: Command | None = None

    def refuse_by_name(self) -> None:
        """An error that says how to ask the study, where its name alone is not enough."""
        chosen_by = next((option.flag for option in self.options if option.chooses), None)
        if self.command and not self.measures.functions:
            raise UsageError(f"{self.name} reads files in place of a model: use `beholder {self.command.name} FILE`.")
        if chosen_by and not self.asks.datasets:
            raise UsageError(f"{self.name} needs more than its name: use {chosen_by} in place of --study.")

    def metric(self, name: str) -> Metric | None:
        """The metric of that name, if it is one of the study's."""
        return next((metric for metric in self.measures.metrics if metric.name == name), None)

    def declaration(self) -> Entry:
        """What it says of itself, as JSON: a run keeps it for a user's own study, and the page reads it there."""
        return {
            "title": self.title,
            "question": self.question,
            "citation": self.citation,
            "limitations": list(self.tells.limitations),
            "of_photographs": list(self.tells.of_photographs),
            "metrics": [asdict(metric) for metric in self.measures.metrics],
        }

    def select(self, dataset: Dataset, count: int, person: str | None = None, within: Sequence[str] = ()) -> Selection:
        """So many images of each group that `limit_by`, or what is compared first, divides them into."""
        names = [column_in(dataset.table, name) for name in (*self.measures.compares, *self.measures.within, *within)]
        people = people_of(dataset.table, person).codes
        grouped = [name for name in names[:1] if name in group_attributes(dataset.table)]
        each = self.asks.limit_by or next(iter(grouped), None)
        return select(dataset.table, count, names, each=each, people=people)

    def tasks_of(self, *, answers: bool = False, detects: bool = False, compat: bool = False) -> Tasks:
        """What makes the tasks for a model that answers in words, for a detector, or for one that is neither."""
        asks = self.asks
        if compat and asks.compat_tasks and (answers or not asks.statements):
            return asks.compat_tasks
        if detects and asks.detector_tasks:
            return asks.detector_tasks
        return asks.tasks if answers or not asks.statements else asks.statements

    def part(self, name: str) -> Any:
        """What `chapter`, `plan`, `trials` or `printed` names, loaded; None where it names nothing."""
        named = getattr(self.tells if name == "chapter" else self.plans, name)
        return named if callable(named) else resolve_name(named) if named else None
