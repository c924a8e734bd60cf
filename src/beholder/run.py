"""Run: what an audit leaves behind. A folder with the results, a record of how they came about, and a page.

OUT/results.parquet, OUT/results.csv   the tidy table
OUT/prompts.csv                        every prompt, word by word
OUT/run.json                           models, data, settings, what was left out
OUT/report.html                        the page
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import polars as pl

from beholder.core.errors import MissingData
from beholder.core.files import write_whole
from beholder.core.results import SCHEMA, read_results, write_results
from beholder.prompts.prompt_set import SCHEMA as PROMPT
from beholder.scores.task import Task

PROMPTS = {"benchmark": pl.String, "dataset": pl.String, "set": pl.String, **PROMPT}
LIBRARIES = ("numpy", "scipy", "polars", "pillow", "torch", "transformers", "onnxruntime")


@dataclass
class Record:
    """How the results came about; everything in it is JSON."""

    beholder: str = field(default_factory=lambda: metadata.version("beholder"))
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    command: list[str] = field(default_factory=list)
    seconds: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    benchmarks: list[str] = field(default_factory=list)
    declared: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What benchmarks with measures of the user's own say of themselves (`Benchmark.declaration`), by name."""
    models: list[dict[str, Any]] = field(default_factory=list)
    datasets: list[dict[str, Any]] = field(default_factory=list)
    bad_images: list[dict[str, str]] = field(default_factory=list)
    """Images that could not be read: `image`, `reason`."""
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    machine: dict[str, str] = field(default_factory=lambda: machine())

    def add_model(self, model: dict[str, Any]) -> None:
        """A model as it was asked, once for every way of asking; what it has to say last is kept."""
        self.models = [known for known in self.models if known.get("digest") != model["digest"]] + [model]


@dataclass
class Run:
    """Results and their record."""

    results: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    record: Record = field(default_factory=Record)
    prompts: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PROMPTS))
    """What was asked, with the results' `benchmark` and `dataset`, and the name of its set."""

    def add(self, results: pl.DataFrame) -> None:
        """More rows of the same table."""
        self.results = pl.concat([self.results, results])

    def add_prompts(self, benchmark: str, tasks: Iterable[Task]) -> None:
        """What the tasks ask; asked of several models, it stands once."""
        for task in tasks:
            where = {"benchmark": benchmark, "dataset": task.dataset.name, "set": task.prompts.name}
            named = task.prompts.table.with_columns(pl.lit(value).alias(key) for key, value in where.items())
            both = pl.concat([self.prompts, named], how="diagonal")
            self.prompts = both.select(list(PROMPTS)).unique(maintain_order=True)

    def save(self, folder: Path) -> None:
        """Write everything but the page."""
        write_results(self.results, folder)
        if self.prompts.height:
            write_whole(folder / "prompts.csv", self.prompts.write_csv().encode("utf-8", "replace"))
        write_whole(
            folder / "run.json",
            json.dumps(asdict(self.record), indent=1, ensure_ascii=False).encode("utf-8", "replace"),
        )


def load_run(folder: Path) -> Run:
    """A run from its folder."""
    if not (folder / "run.json").is_file():
        raise MissingData(
            f"{folder} is no run folder: it has no run.json. Make one with: beholder audit --out {folder}"
        )
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    asked = folder / "prompts.csv"
    prompts = pl.read_csv(asked, schema=PROMPTS) if asked.is_file() else pl.DataFrame(schema=PROMPTS)
    return Run(read_results(folder), Record(**record), prompts)


def machine() -> dict[str, str]:
    """What the numbers were computed with."""
    versions = {name: version for name in LIBRARIES if (version := _version(name))}
    return {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}", **versions}


def _version(library: str) -> str | None:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None
