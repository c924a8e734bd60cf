"""Run folders: every run has its own, and no run is overwritten.

runs/2026-11-15-clip-b16-apa   the date, the model and the studies; a number is added if the name is taken
runs/latest                    a link to the run that ended last

A folder says from the start which run it belongs to (`digest` in its run.json). The same command continues an
unfinished run. A folder of another run, or one that another process is writing into, is refused.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from beholder.core.errors import BeholderError, UsageError
from beholder.core.files import write_whole
from beholder.core.read import read_json
from beholder.core.record import Record, checked_record

try:
    import fcntl
except ImportError:  # not on Windows: folders are not locked there
    fcntl = None  # type: ignore[assignment]


RUNS = Path("runs")
LATEST = RUNS / "latest"
RECORDS = {"run.json": "results.parquet", "comparison.json": "comparison.parquet"}
"""Each file that says what a folder holds, and the file of results that comes with it."""
FILES = (
    *("results.parquet", "results.csv", "findings.json", "prompts.csv", "run.json", "perturbed.parquet"),
    *("report.html", "audit.toml", "comparison.parquet", "comparison.csv", "comparison.json", "comparison.html"),
)
LONGEST = 60  # characters of a folder's name that come from model and studies


@contextmanager
def run_folder(
    record: Record, out: Path | None, named: str, *, file: str = "run.json"
) -> Iterator[tuple[Path, Record | None]]:
    """The folder of the run that `record` begins, for this process alone, and what it recorded when it was stopped.

    Without `out` it is the unfinished folder of the same run, or a new one that is called after `named`.
    """
    if out is None:
        out = _unfinished(record.digest) or _new(named)
    with _dropped_if_nothing_came(out, file), locked(out):
        earlier = recorded(out)
        same = earlier is not None and earlier.digest == record.digest
        if not same and _has_results(out):
            raise UsageError(
                f"{out} holds another run, which is not overwritten. Name another folder with --out, or delete it."
            )
        for name in FILES:
            if (out / name).is_dir():
                raise UsageError(f"{out / name} is a folder, but the run writes a file of that name. Move it away.")
        record.finished = False
        if earlier and same:
            record.created, record.seconds = earlier.created, 0.0 if earlier.finished else earlier.seconds
            yield out, earlier
        else:
            write_whole(out / file, record.as_json())
            yield out, None


@contextmanager
def _dropped_if_nothing_came(out: Path, file: str) -> Iterator[None]:
    """A run that could not begin (a model that does not exist, say) leaves no folder behind."""
    before = (out / file).exists()
    try:
        yield
    except BeholderError:
        if not before and not _has_results(out):
            (out / file).unlink(missing_ok=True)
            with suppress(OSError):  # something else lies there
                out.rmdir()
        raise


def _has_results(folder: Path) -> bool:
    return any((folder / results).exists() for results in RECORDS.values())


def finish(record: Record, folder: Path) -> None:
    """The run is over: its record says so, and `latest` beside it leads to it."""
    record.finished = True
    write_whole(folder / "run.json", record.as_json())
    if folder.parent.resolve() == RUNS.resolve():
        _link(folder)


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


def recorded(folder: Path) -> Record | None:
    """What a folder says about its run or comparison; None if it holds none, or one that cannot be read."""
    for name in RECORDS:
        with suppress(BeholderError):
            return checked_record(read_json(folder / name), folder / name)
    return None


def folder_name(models: Sequence[str], studies: Sequence[str]) -> str:
    """What a run folder is called after its date.

    >>> folder_name(["openai/clip-vit-base-patch32", "b", "c"], ["apa"])
    'clip-vit-base-patch32-and-2-more-apa'
    """
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
        entry = recorded(folder)
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


def _link(folder: Path) -> None:
    """Let `latest` lead to the folder; a disk without links goes without."""
    part = LATEST.with_name(f".latest.{os.getpid()}")
    with suppress(OSError):
        part.unlink(missing_ok=True)
        part.symlink_to(folder.name)
        part.replace(LATEST)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of the folder. The lock ends with the process, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".lock"
    while True:
        with path.open("w") as file:
            _lock(file, folder)
            if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                continue  # the process before us has just ended, and took its lock file along
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _lock(file: IO[str], folder: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise UsageError(
                f"Another process is writing into {folder}. Wait for it to end, or name another folder with --out."
            ) from error
        # Other errors: this disk knows no locks.
