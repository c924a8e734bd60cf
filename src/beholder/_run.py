"""Run: what an audit leaves behind: results, how they came about, and what they show.

OUT/results.parquet, OUT/results.csv   the tidy table
OUT/findings.json                      what the results show, with verdicts
OUT/prompts.csv                        every prompt, word by word
OUT/run.json                           models, data, settings, what was left out
OUT/perturbed.parquet                  the results after small changes of the pictures (`--perturb`)
OUT/report.html                        the page
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from beholder.chapter.finding import Finding
from beholder.core.errors import UnknownName
from beholder.core.files import store_folder, write_whole
from beholder.core.record import Record, read_record
from beholder.core.results import NEVER_NULL, SCHEMA, read_results, read_rows, write_results
from beholder.core.tables import as_csv, read_own_csv
from beholder.core.types import Entry
from beholder.datasets import data_root
from beholder.prompts.prompt_set import SCHEMA as PROMPT
from beholder.report.report import PERTURBED, Report, build_report
from beholder.report.summary import Charts, report_html
from beholder.scores.recorded import Places, recorded, scores_of
from beholder.scores.score_matrix import Task

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
    places: Places | None = field(default=None, compare=False)
    """Where its pictures and scores lie, while the program that made it runs."""
    asked: Any = field(default=None, compare=False)
    """What was asked (studies and options), while the program that made it runs."""
    own_stores: list[Path] = field(default_factory=list, compare=False)
    """Scores that are kept as long as this object: those of a function that has no revision."""
    _report: Report | None = field(default=None, compare=False)

    @property
    def report(self) -> Report:
        """What the results show; computed when it is first asked for, and again after more rows were added."""
        if self._report is None:
            self._report = build_report(self.results, self.record, self.prompts, self.perturbed, folder=self.folder)
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
        return {
            "results": self.results.to_dicts(),
            "findings": [finding.as_dict() for finding in self.findings],
            "left_out": self.record.left_out,
            "bad_images": self.record.bad_images,
        }

    def save(self, folder: Path) -> None:
        """Write the results and their record, while the run goes on."""
        write_results(self.results, folder)
        if self.prompts.height:
            write_whole(folder / "prompts.csv", as_csv(self.prompts))
        if self.perturbed.height:
            buffer = io.BytesIO()
            self.perturbed.write_parquet(buffer)
            write_whole(folder / "perturbed.parquet", buffer.getvalue())
        write_whole(folder / "run.json", self.record.as_json())

    def save_findings(self, folder: Path) -> None:
        """Write `findings.json`, when the run is over."""
        entries = {"findings": [finding.as_dict() for finding in self.findings]}
        write_whole(
            folder / "findings.json",
            (json.dumps(entries, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace"),
        )


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
