"""Run: what an audit leaves behind: results, how they came about, and what they show.

OUT/results.parquet, OUT/results.csv   the tidy table
OUT/findings.json                      what the results show, with verdicts
OUT/prompts.csv                        every prompt, word by word
OUT/run.json                           models, data, settings, what was left out
OUT/perturbed.parquet                  the results after small changes of the pictures (`--perturb`)
OUT/report.html                        the page

Every run has a folder of its own, and no run is overwritten.

runs/2026-11-15-clip-b16-apa   the date, the model and the studies; a number is added if the name is taken
runs/latest                    a link to the run that ended last

A folder says from the start which run it belongs to (`digest` in its run.json). The same command continues an
unfinished run. A folder of another run, or one that another process is writing into, is refused.
"""

import errno
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from beholder.chapter.finding import Finding
from beholder.core.errors import BeholderError, UnknownName, UsageError
from beholder.core.files import lock, remove_dead, store_folder, write_whole
from beholder.core.read import as_csv, read_json, read_own_csv, write_table
from beholder.core.record import Record, checked_record, read_record
from beholder.core.results import NEVER_NULL, SCHEMA, read_results, read_rows
from beholder.core.types import Entry
from beholder.datasets import data_root
from beholder.prompts.prompt_set import SCHEMA as PROMPT
from beholder.report.report import PERTURBED, Report, build_report
from beholder.report.summary import Charts, report_html
from beholder.scores.score_matrix import Task
from beholder.scores.store import Places, recorded, scores_of

PROMPTS = {"study": pl.String, "dataset": pl.String, "set": pl.String, **PROMPT}
OTHER_KEYS = ("template", "against", "concept", "subset")
"""What tells the numbers of a group apart, what is seldom there first."""


@dataclass(repr=False)
class Run:
    """Results and their record; `beholder.audit` makes one, `beholder.load_run` reads one.

    >>> run = Run()
    >>> run.findings, run.results.height
    ([], 0)
    """

    results: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    record: Record = field(default_factory=Record)
    prompts: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PROMPTS))
    """What was asked, with the results' `study` and `dataset`, and the name of its set."""
    perturbed: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PERTURBED))
    """The results after small changes of the pictures, with the name of the `change`."""
    folder: Path | None = field(default=None, compare=False)  # where it is kept
    places: Places | None = field(default=None, compare=False)  # of its pictures and scores, while its program runs
    asked: Any = field(default=None, compare=False)  # the studies and options, while its program runs
    own_stores: list[Path] = field(default_factory=list, compare=False)  # of functions without a revision
    _report: Report | None = field(default=None, compare=False)

    @property
    def report(self) -> Report:
        """What the results show; computed when it is first asked for, and again after more rows were added."""
        if self._report is None:
            made = self.results, self.record, self.prompts, self.perturbed
            places = self.places or Places(data_root(), store_folder())
            self._report = build_report(*made, folder=self.folder, places=places)
        return self._report

    @property
    def findings(self) -> list[Finding]:
        """What the results show, with verdicts."""
        return self.report.findings

    @property
    def charts(self) -> Charts:
        """The charts by name, as Altair charts."""
        return Charts(self.report)

    def by_group(self, metric: str, by: str | None = None) -> pl.DataFrame:
        """The numbers of a metric, group by group, with interval and n; `by` keeps the groups of one attribute.

        `.to_pandas()` turns it into a frame of pandas.
        """
        rows = self.results.filter(pl.col("metric") == metric, pl.col("group").is_not_null())
        if rows.is_empty():
            grouped = self.results.filter(pl.col("group").is_not_null())["metric"].unique(maintain_order=True)
            raise UnknownName("metric with groups", metric, grouped.to_list())
        if by is not None:
            groups = {name for data in self.record.datasets for name in data.get("groups", {}).get(by, {})}
            rows = rows.filter(pl.col("group").is_in(list(groups)) | (pl.col("subset") == by))
        return rows.select("group", "value", "low", "high", "p_value", "unit", "dataset", *OTHER_KEYS, "model", "n")

    def scores(
        self,
        study: str | None = None,
        *,
        model: str | None = None,
        dataset: str | None = None,
        data: Path | str | None = None,
        store: Path | str | None = None,
    ) -> pl.DataFrame:
        """The raw scores with their labels: one row for every image, prompt and channel.

        They are read from the store. `data` and `store` say where the data sets and the store lie, if not where the
        run was made or where the command line looks for them.
        """
        here = self.places or Places(data_root(), store_folder())
        here = replace(here, data=Path(data) if data else here.data, store=store_folder(store) if store else here.store)
        wanted = {"study": study, "model": model, "dataset": dataset}
        for name, value in wanted.items():
            if value is not None and value not in (known := self.results[name].unique(maintain_order=True)):
                raise UnknownName(name, value, known.to_list(), where="This run")
        stores = [here.store, *self.own_stores]
        return scores_of(recorded(self.record, self.prompts, here), stores, wanted)

    def __repr__(self) -> str:
        """A line for the run and one for each finding."""
        models = ", ".join(str(model["name"]) for model in self.record.models) or "no model"
        studies = ", ".join(self.record.studies) or "no study"
        findings = "".join(f"\n  {each.marked}: {each.headline}" for each in self.findings)
        return f"Run of {models} on {studies}, {self.results.height} results{findings}"

    def _repr_html_(self) -> str:
        """In a notebook: the scorecard."""
        return report_html(self.report)

    def add(self, results: pl.DataFrame, change: str = "") -> None:
        """More rows of the same table, or the table once more after a small `change` of every picture."""
        if change:
            self.perturbed = pl.concat([self.perturbed, results.with_columns(change=pl.lit(change))])
        else:
            self.results = pl.concat([self.results, results])
        self._report = None

    def add_prompts(self, study: str, tasks: Iterable[Task]) -> None:
        """What the tasks ask; asked of several models, it is kept once."""
        for task in tasks:
            where = {"study": study, "dataset": task.dataset.name, "set": task.prompts.name}
            named = task.prompts.table.with_columns(pl.lit(value).alias(key) for key, value in where.items())
            both = pl.concat([self.prompts, named], how="diagonal")
            self.prompts = both.select(list(PROMPTS)).unique(maintain_order=True)

    def as_json(self) -> Entry:
        """What `--json` prints."""
        found = {"results": self.results.to_dicts(), "findings": [finding.as_dict() for finding in self.findings]}
        return {**found, "left_out": self.record.left_out, "bad_images": self.record.bad_images}

    def save(self, folder: Path) -> None:
        """Write the results and their record, while the run goes on."""
        write_table(self.results, folder, "results")
        if self.prompts.height:
            write_whole(folder / "prompts.csv", as_csv(self.prompts))
        if self.perturbed.height:
            buffer = io.BytesIO()
            self.perturbed.write_parquet(buffer)
            write_whole(folder / "perturbed.parquet", buffer.getvalue())
        write_whole(folder / "run.json", self.record.as_json())

    def save_findings(self, folder: Path) -> None:
        """Write `findings.json`, when the run is over."""
        write_whole(folder / "findings.json", self.findings_json())

    def findings_json(self) -> bytes:
        """What `findings.json` holds."""
        entries = {"findings": [finding.as_dict() for finding in self.findings]}
        text = json.dumps(entries, indent=1, ensure_ascii=False) + "\n"
        return text.encode("utf-8", "replace")


def load_run(folder: Path | str) -> Run:
    """A run from its folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     Run().save(Path(folder))
    ...     load_run(folder).results.height
    0
    """
    folder = Path(folder)
    record, results, path = read_record(folder), read_results(folder), folder / "prompts.csv"
    prompts = read_own_csv(path, PROMPTS) if path.is_file() else pl.DataFrame(schema=PROMPTS)
    run = Run(results, record, prompts, folder=folder)
    if (folder / "perturbed.parquet").is_file():
        run.perturbed = read_rows(folder / "perturbed.parquet", PERTURBED, (*NEVER_NULL, "change"))
    return run


# Run folders

RUNS = Path("runs")
RECORDS = {"run.json": "results.parquet", "comparison.json": "comparison.parquet"}
"""Each file that says what a folder holds, and the file of results that comes with it."""
FILES = (
    *("results.parquet", "results.csv", "findings.json", "prompts.csv", "run.json", "perturbed.parquet"),
    *("report.html", "report.png", "audit.toml"),
    *("comparison.parquet", "comparison.csv", "comparison.json", "comparison.html"),
)
LONGEST = 60  # characters of a folder's name that come from model and studies


@contextmanager
def run_folder(
    record: Record, out: Path | None, named: str, *, file: str = "run.json"
) -> Iterator[tuple[Path, Record | None]]:
    """The run's folder (`out`, its unfinished one, or a new one), for this process alone, and its earlier record."""
    out = out or _unfinished(record.digest) or _new(named)
    before = (out / file).exists()
    try:
        with locked(out):
            remove_dead(out)
            earlier = _record_in(out)
            same = earlier is not None and earlier.digest == record.digest
            if not same and _has_results(out):
                raise UsageError(
                    f"{out} holds another run, which is not overwritten. Name another folder with --out, or delete it."
                )
            if blocked := next((out / name for name in FILES if (out / name).is_dir()), None):
                raise UsageError(f"{blocked} is a folder, but the run writes a file of that name. Move it away.")
            record.finished = False
            if earlier and same:
                record.created, record.seconds = earlier.created, 0.0 if earlier.finished else earlier.seconds
            else:
                write_whole(out / file, record.as_json())
            yield out, earlier if same else None
    except BeholderError:  # a run that could not begin (a model that does not exist, say) leaves no folder behind
        if not before and not _has_results(out):
            (out / file).unlink(missing_ok=True)
            with suppress(OSError):  # something else lies there
                out.rmdir()
        raise


def _has_results(folder: Path) -> bool:
    return any((folder / results).exists() for results in RECORDS.values())


def finish(record: Record, folder: Path) -> None:
    """The run is over: its record says so, and `latest` beside it leads to it; a disk without links goes without."""
    record.finished = True
    write_whole(folder / "run.json", record.as_json())
    if folder.parent.resolve() == RUNS.resolve():
        part = RUNS / f".latest.{os.getpid()}"
        with suppress(OSError):
            part.unlink(missing_ok=True)
            part.symlink_to(folder.name)
            part.replace(RUNS / "latest")


def refuse_other_weights(earlier: Record | None, record: Record, folder: Path) -> None:
    """Raise if a model of this name had other weights or settings when the run was made."""
    if earlier is None or not earlier.finished:
        return
    for entry in record.models:
        known = [model.get("digest") for model in earlier.models if model.get("name") == entry.get("name")]
        if known and entry.get("digest") not in known:
            raise UsageError(
                f"{folder} holds a run of {entry.get('name')} with other weights or settings. It is not overwritten. "
                "Name another folder with --out, or delete it."
            )


def _record_in(folder: Path) -> Record | None:
    """What a folder says about its run or comparison; None if it holds none, or one that cannot be read."""
    for name in RECORDS:
        with suppress(BeholderError):
            return checked_record(read_json(folder / name), folder / name)
    return None


def folder_name(models: Sequence[str], studies: Sequence[str]) -> str:
    """What a run folder is called after its date."""
    first = re.split(r"[/\\]", models[0].rstrip("/\\"))[-1] if models else ""
    more = f"and-{len(models) - 1}-more" if len(models) > 1 else ""
    studies = [*studies[:3], *([f"and-{len(studies) - 3}-more"] if len(studies) > 3 else [])]
    return "-".join(filter(None, (_slug(first)[:LONGEST], more, *map(_slug, studies))))


def file_stamps(paths: Iterable[Path]) -> list[list[object]]:
    """What tells files from those that lay there before: name, size and time of change."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    found = [(file, file.stat()) for file in files if file.exists()]
    return [[str(file), status.st_size, status.st_mtime_ns] for file, status in found]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")


def _unfinished(digest: str) -> Path | None:
    """The newest unfinished folder of this run that no process is writing into."""
    for folder in sorted((path for path in RUNS.glob("*") if not path.is_symlink()), reverse=True):
        entry = _record_in(folder)
        if entry and entry.digest == digest and not entry.finished:
            with suppress(BeholderError), locked(folder):
                return folder
    return None


def _new(named: str) -> Path:
    date = datetime.now(UTC).date().isoformat()
    RUNS.mkdir(parents=True, exist_ok=True)
    for number in range(1, 100_000):
        folder = RUNS / "-".join(filter(None, (date, named[: 2 * LONGEST], str(number) if number > 1 else "")))
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise UsageError(f"{RUNS} has no free name left for {named}. Name a folder with --out.")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of the folder. The lock ends with the process, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".lock"
    while True:
        with path.open("w") as file:
            try:
                lock(file)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.EACCES):  # else this disk knows no locks
                    raise UsageError(
                        f"Another process is writing into {folder}. Wait for it to end, or name another folder with "
                        "--out."
                    ) from error
            if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                continue  # the process before us has just ended, and took its lock file along
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return
