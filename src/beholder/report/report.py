"""Report: what a run shows, computed once: sections with findings, tables and charts.

The page, the terminal, the exports and the gate all read it; none of them computes a finding.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
from polars.exceptions import PanicException, PolarsError

from beholder.chapter.chapter import Cell, Chapter, Question, Table
from beholder.chapter.finding import Finding, by_model, stored
from beholder.chapter.numbers import ABSENT, drawn, has_interval
from beholder.comparison.family import NOT_MEASURED
from beholder.core.digests import digest
from beholder.core.errors import DataError, first_line
from beholder.core.record import Record
from beholder.core.results import KEY, SCHEMA
from beholder.core.types import Entry
from beholder.report.facts import part_of
from beholder.report.number_table import plain_tables
from beholder.scores.store import Places
from beholder.studies import STUDIES
from beholder.studies.study import Metric, Study

if TYPE_CHECKING:
    from beholder.chapter.charts import Figure


_PATH = re.compile(r"(?:onnx:)?(?:/|~/|\.{1,2}/|[A-Za-z]:\\)\S*")


def short_names(models: Iterable[str]) -> dict[str, str]:
    """A short name for every local folder among the models, where no two would share it."""
    known = list(dict.fromkeys(models))
    paths = [name for name in known if _PATH.fullmatch(name)]
    last = {name: re.split(r"[/\\]", name.rstrip("/\\"))[-1].lstrip(".~") for name in paths}
    short = {name: word for name, word in last.items() if word}
    taken = Counter([*short.values(), *(name for name in known if name not in short)])
    return {name: word for name, word in short.items() if taken[word] == 1}


def shortened(results: pl.DataFrame) -> pl.DataFrame:
    """The results with their models under their short names; the record keeps the long ones."""
    short = short_names(results["model"])
    # The subset is a model where two are compared.
    return results.with_columns(pl.col("model", "subset").replace(short)) if short else results


# How far small changes of the pictures move the number behind each finding, against its interval

PLACE = ("study", "dataset", "model", *KEY)
PERTURBED = {**SCHEMA, "change": pl.String()}  # the results once more for every change, with what was changed


class Move(NamedTuple):
    """How far the number of a finding moved."""

    finding: Finding
    low: float
    high: float  # the lowest and the highest value, the unchanged pictures included
    share: float | None  # their distance as a share of the width of the interval; None without an interval


def moves(findings: list[Finding], perturbed: pl.DataFrame) -> list[Move]:
    """One for every finding whose number was measured after changes too, the most moved first."""
    made = []
    values = {place: group["value"] for place, group in perturbed.drop_nulls("value").group_by(PLACE)}
    for finding in findings:
        row = finding.rows[0] if finding.rows else {}
        after = values.get(tuple(stored(row).get(name) for name in PLACE))
        if after is None or row.get("value") is None:
            continue
        after = -after if row.get("swapped") else after
        low, high = min(row["value"], *after), max(row["value"], *after)
        share = (high - low) / (row["high"] - row["low"]) if has_interval(row) else None
        made.append(Move(finding, low, high, share))
    return sorted(made, key=lambda move: -(move.share or 0.0))


def sensitivity_table(findings: list[Finding], perturbed: pl.DataFrame) -> Table | None:
    """Each finding's number, how far it moved, and how much of its interval that is; None if nothing was changed."""
    moved = moves(findings, perturbed)
    if not moved:
        return None
    changes = perturbed["change"].unique(maintain_order=True).to_list()
    caption = (
        f"The same measures after each of {len(changes)} small changes of every picture or score: {'; '.join(changes)}."
        " Above 100 %, the changes move the number by more than the width of its interval."
    )
    several = len({move.finding.model for move in moved}) > 1
    rows = []
    for move in moved:
        row, whose = move.finding.rows[0], [Cell(move.finding.model)] if several else []
        interval = f"{_short(row['low'])} to {_short(row['high'])}" if has_interval(row) else ""
        after = Cell(f"{_short(move.low)} to {_short(move.high)}")
        share = Cell("no interval" if move.share is None else f"{move.share:.0%}", strong=(move.share or 0) > 1)
        rows.append([*whose, Cell(move.finding.headline), Cell(_short(row["value"]), interval), after, share])
    header = [*(["Model"] if several else []), "Finding", "Number", "After small changes", "Share of the interval"]
    return Table("How far small changes of the pictures move the findings", caption, header, rows, labels=1 + several)


def _short(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


# Report

DRAWN_LIMITATIONS = (
    "The people are drawn: what a model makes of drawings need not hold for photographs of anyone.",
    "Two gender presentations are drawn, woman and man; others are not represented.",
)
NOISE = r"^null(:\d+)?$"  # the names of models whose scores are random
LONGEST_SLUG = 200
MOST_FIGURES = 40  # of one study on one data set
MOST_MODELS = 40  # in a chart
MOST_ROWS = 1_000  # of a table; the files have all
PLAIN = Chapter(topics={"results": "Results"})


@dataclass(frozen=True)
class Section:
    """A study on a data set: question, results, what they mean, what they cannot say."""

    study: Study
    chapter: Chapter
    dataset: str
    results: pl.DataFrame
    findings: list[Finding]
    tables: list[Table]
    published: Table | None
    planted: Table | None
    limitations: list[str]
    noise: list[Finding] = field(default_factory=list)  # what is found in random scores, audited beside other models
    folder: Path | None = None  # where the results were read from; None if they were just computed

    @property
    def title(self) -> str:
        """The study's own title; in the embedded world only its questions are the study's."""
        if drawn(self.dataset) and STUDIES.came_with_beholder(self.study.name):
            return f"{self.study.short or self.study.title}'s questions in the embedded world"
        return self.study.title

    @cached_property
    def metrics(self) -> list[Metric]:
        """What was measured, in the study's order."""
        measured = set(self.results["metric"])
        return [metric for metric in self.study.measures.metrics if metric.name in measured]

    @cached_property
    def figures(self) -> "list[Figure]":
        """Every chart; made when they are first asked for."""
        with _read_from(self.folder, self.study.name):
            few, whole = by_model(self.results)[:MOST_MODELS], self.results["model"].n_unique()
            table = self.results if len(few) == whole else pl.concat([part for _, part in few])
            made = list(islice(self.chapter.figures(table), MOST_FIGURES + 1))
            made = [figure.titled(self.findings) for figure in made]
        if len(few) < whole:
            note = f" Drawn are the first {MOST_MODELS} of {whole:,} models; all are in results.csv."
            made = [figure._replace(caption=f"{figure.caption}{note}") for figure in made]
        if len(made) > MOST_FIGURES:
            more = f"{made[MOST_FIGURES - 1].caption} More of them are not drawn; all numbers are in results.csv."
            made[MOST_FIGURES - 1 :] = [made[MOST_FIGURES - 1]._replace(caption=more)]
        return made


@dataclass(frozen=True)
class Report:
    """Everything that a run shows."""

    results: pl.DataFrame  # with the models' short names
    record: Record
    prompts: pl.DataFrame
    sections: list[Section]
    perturbed: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PERTURBED))
    """The results after small changes of the pictures, where that was asked for."""
    places: Places | None = None  # where its pictures and scores lie, where that is known
    photographs: tuple[str, ...] = ()  # the data sets whose photographs are shown

    @property
    def models(self) -> list[str]:
        """The models that findings are written about, by the names that the page uses."""
        return list(dict.fromkeys(model for section in self.sections for model in section.results["model"]))

    @property
    def findings(self) -> list[Finding]:
        """All findings, section by section, those in noise last."""
        return [finding for section in self.sections for finding in (*section.findings, *section.noise)]

    @property
    def sensitivity(self) -> Table | None:
        """How far small changes of the pictures move the findings."""
        return sensitivity_table(self.findings, self.perturbed)


def build_report(
    results: pl.DataFrame,
    record: Record,
    prompts: pl.DataFrame,
    perturbed: pl.DataFrame | None = None,
    *,
    folder: Path | None = None,
    places: Places | None = None,
) -> Report:
    """The report of a run, from its results and their record; `folder` is where they were read from."""
    results, sections = shortened(results), []
    for (name, dataset), part in results.group_by(["study", "dataset"], maintain_order=True):
        with _read_from(folder, str(name)):
            sections.append(replace(_section(str(name), str(dataset), part, results, record), folder=folder))
    report = Report(results, record, prompts, sections, places=places)
    return report if perturbed is None else replace(report, perturbed=shortened(perturbed))


@contextmanager
def _read_from(folder: Path | None, study: str) -> Iterator[None]:
    """Rows from a file may lack what a study always writes; that is reported, and that it may be a fault of ours."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, PolarsError, PanicException) as error:
        if folder is None:
            raise
        raise DataError(
            f"{folder / 'results.parquet'}: the rows of {study!r} cannot be shown "
            f"({type(error).__name__}: {first_line(error)}).\n"
            "A row is missing or was changed, another version of the study wrote them, or Beholder has a fault. "
            "Make the run again; if that does not help, please report it."
        ) from error


def _section(name: str, dataset: str, whole: pl.DataFrame, results: pl.DataFrame, record: Record) -> Section:
    study = study_of(name, record)
    others = results.filter(pl.col("study") != name, pl.col("dataset") == dataset)
    chapter = study.part("chapter") or PLAIN
    random = pl.col("model").str.contains(NOISE)
    part = whole.filter(~random) if not whole.select(random.all()).item() else whole
    ours = pl.col("metric").is_in([metric.name for metric in (STUDIES.get(name) or study).measures.metrics])
    others_rows = part.filter(~ours)
    tables = list(chapter.tables(part.filter(ours) if others_rows.height else part))
    tables += plain_tables(others_rows if tables else part)
    for number, table in enumerate(tables):  # a name that a row lacks is shown as absent
        first, more = table.rows[:MOST_ROWS], len(table.rows) - MOST_ROWS
        rows = [[cell if cell.text is not None else cell._replace(text=ABSENT) for cell in row] for row in first]
        notes = (*table.notes, f"{more:,} more rows are in results.csv.") if more > 0 else table.notes
        header = [ABSENT if head is None else head for head in table.header]
        tables[number] = table._replace(header=header, rows=rows, notes=notes)
    findings = [*_findings(chapter, part, others), *_not_compared(part, record)]
    limits = list(_limitations(study, chapter, part, record))
    noise = list(_findings(chapter, whole.filter(random), others)) if part.height < whole.height else []
    known = chapter.published(part), chapter.planted(part)
    return Section(study, chapter, dataset, part, findings, tables, *known, limits, noise)


def study_of(name: str, record: Record) -> Study:
    """The study as it came with Beholder, or as the run's record declares it."""
    study = STUDIES.get(name) or Study(name, name, "", "")
    entry = record.declared.get(name)
    if entry is None:
        return study
    named = {name: entry[name] for name in ("title", "question", "citation") if name in entry}
    limits: Entry = {name: tuple(entry[name]) for name in ("limitations", "of_photographs") if name in entry}
    metrics = tuple(Metric(**metric) for metric in entry.get("metrics", []))
    tells, measures = replace(study.tells, **limits), replace(study.measures, metrics=metrics)
    return replace(study, tells=tells, measures=measures, **named)


def _findings(chapter: Chapter, part: pl.DataFrame, others: pl.DataFrame) -> Iterator[Finding]:
    """Model by model, each finding with its question and an id that stays the same from run to run."""
    counted: Counter[str] = Counter()
    for model, mine in by_model(part):
        beside = chapter.beside(mine, others.filter(pl.col("model") == model))
        for finding in (*chapter.findings(mine), *beside):
            text, topic, card, role = chapter.questions.get(finding.kind) or Question("", finding.kind)
            base = slug(f"{finding.study} {finding.dataset} {finding.model} {finding.kind}")
            counted[base] += 1
            name = base if counted[base] == 1 else f"{base}-{counted[base]}"
            yield finding._replace(id=name, question=text, topic=topic, card=finding.card or card, role=role)


def _not_compared(part: pl.DataFrame, record: Record) -> Iterator[Finding]:
    """The labels that were asked for and not compared, as findings of each model."""
    study, dataset = part.row(0, named=True)["study"], part.row(0, named=True)["dataset"]
    for entry in record.not_compared:
        label, models = entry["label"], part["model"].unique(maintain_order=True)
        for model in models if (entry["study"], entry["dataset"]) == (study, dataset) else ():
            whose, headline = (study, dataset, model), f"By {label} nothing was compared"
            found = Finding(*whose, "label", headline, f"{entry['reason'].rstrip('.')}.", NOT_MEASURED, 0.0)
            name = slug(f"{study} {dataset} {model} label {label}")
            yield found._replace(id=name, question=f"Does anything differ by {label}?", topic=f"by {label}")


def slug(text: str) -> str:
    """A text as part of an address; one too long for a file's name ends in a digest."""
    short = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return short if len(short) <= LONGEST_SLUG else f"{short[: LONGEST_SLUG - 40]}-{digest(text)}"


def _limitations(study: Study, chapter: Chapter, part: pl.DataFrame, record: Record) -> Iterator[str]:
    yield from DRAWN_LIMITATIONS if drawn(str(part["dataset"][0])) else study.tells.of_photographs
    yield from study.tells.limitations
    yield from chapter.limitations(part)
    if any(map(part_of, record.datasets)):
        yield "Only a part of the images was used."
    if record.settings.get("compat") and study.tells.compat and not drawn(str(part["dataset"][0])):
        yield f"Computed as printed: values, not verdicts and intervals, follow {study.tells.compat}."
