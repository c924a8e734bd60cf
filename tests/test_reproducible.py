"""The same command gives the same bytes, whatever the threads, the locale, the clock's zone, the umask, the hash seed
and the folder it runs in. Only the time that a run took and began is its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

RUN = "import os, sys; os.umask(int(os.environ['UMASK'], 8)); from beholder.cli import main; main()"
AUDIT = (
    "audit glasshouse/contrastive null --prompts prompts.csv --dataset folder:people --by gender "
    "--draws 100 --perturb 1 --out run --store store"
)
SETTINGS = (
    {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC",
     "UMASK": "022"},
    {"OMP_NUM_THREADS": "2", "POLARS_MAX_THREADS": "3", "PYTHONHASHSEED": "4242", "LC_ALL": "POSIX",
     "TZ": "Pacific/Kiritimati", "UMASK": "077", "COLUMNS": "40"},
)  # fmt: skip


def without_time(folder: Path, name: str) -> bytes:
    """A file's bytes without the two times that the run recorded."""
    data, record = (folder / name).read_bytes(), json.loads((folder / "run.json").read_text())
    if name not in ("run.json", "report.html"):
        return data
    created, seconds = record["created"], record["seconds"]
    for text in (created, created.replace("T", " "), f'"seconds": {seconds}', f"{seconds:,.0f} seconds"):
        data = data.replace(text.encode(), b"TIME")
    return data


@pytest.mark.slow
def test_the_same_command_gives_the_same_bytes_anywhere(people: Callable[..., Path], tmp_path: Path):
    made = people(16)
    runs = []
    for number, settings in enumerate(SETTINGS):
        place = tmp_path / f"run {number}" / ("x" * number * 50 or "a")
        place.mkdir(parents=True)
        shutil.copytree(made, place / "people")
        (place / "prompts.csv").write_text("text,concept\na kind person,kind\na cold person,cold\n")
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", **settings}
        command = [sys.executable, "-c", RUN, *AUDIT.split()]
        runs.append((place, subprocess.Popen(command, cwd=place, env=environment, stderr=subprocess.PIPE, text=True)))
    told = [process.communicate(timeout=600)[1] for _, process in runs]
    assert [process.returncode for _, process in runs] == [0, 0], told
    first, second = (place / "run" for place, _ in runs)
    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(path.name for path in second.iterdir())
    assert {"results.parquet", "results.csv", "findings.json", "report.html", "perturbed.parquet"} <= set(names)
    assert [name for name in names if without_time(first, name) != without_time(second, name)] == []
    scores = [{path.name: path.read_bytes() for path in (place / "store").rglob("*.parquet")} for place, _ in runs]
    assert scores[0] == scores[1]
