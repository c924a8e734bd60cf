"""Counting in processes, on Ray's workers and from an object store: the same as by threads, whatever is lost."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from beholder.core.errors import DataError
from beholder.scores.ray_pool import RayOptions
from beholder.studies.exposure import captions, counting
from beholder.studies.exposure.captions import CaptionFile
from beholder.studies.exposure.counting import Counts, count_captions
from beholder.studies.exposure.mentions import Mentions, Term

MENTIONS = Mentions([Term("name", name) for name in ("Ana", "Bo Li", "Ana Cruz")])
RAY = RayOptions(workers=2)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Captions that can be read in ranges and others, with empty and unreadable ones; each longer than two chunks."""
    folder = tmp_path_factory.mktemp("captions")
    rng, paths = random.Random(9), [folder / name for name in ("a.tsv", "b.parquet", "c.txt.zst", "d.txt")]
    for path in paths:
        some = [rng.choice(["Ana", "bo li", "Ana Cruz", "", "x é"]) + " word" * rng.randrange(99) for _ in range(999)]
        said = [f"{text} {row}" if text else "" for row, text in enumerate(rng.choices(some, k=38_000))]
        text = "\n".join(["text", *said]).encode() + b"\n\xff\n"
        if path.suffix == ".parquet":
            pl.DataFrame({"text": said}).write_parquet(path, row_group_size=3000, compression="uncompressed")
        else:
            path.write_bytes(pa.compress(text, "zstd", asbytes=True) if path.suffix == ".zst" else text)
    return paths


@pytest.fixture(scope="module")
def here(paths: list[Path]) -> Counts:
    return count_captions([CaptionFile(path) for path in paths], MENTIONS)


def same(one: Counts, other: Counts) -> None:
    assert (one.apart.tolist(), one.inside.tolist()) == (other.apart.tolist(), other.inside.tolist())
    assert one.files == other.files


@pytest.mark.slow
def test_processes_count_as_threads_do_and_a_dead_one_is_told(
    paths: list[Path], here: Counts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(captions, "RANGE", 1)
    monkeypatch.setattr(counting, "LONG", 0)
    monkeypatch.setattr(counting, "usable_cores", lambda: 2)
    files = [CaptionFile(path) for path in paths]
    with monkeypatch.context() as patched:
        patched.setattr(counting, "_done", dying)
        with pytest.raises(DataError, match=r"(?s)process that reads captions died.*a\.tsv"):
            count_captions(files, MENTIONS, store=tmp_path)
    same(count_captions(files, MENTIONS, store=tmp_path), here)


def dying(job: Any, mentions: Mentions) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_ray_counts_as_this_machine_does_though_a_worker_is_killed(
    cluster: Any, paths: list[Path], here: Counts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(captions, "RANGE", 1)
    files = [CaptionFile(path) for path in paths]
    assert [len(list(file.ranges())) for file in files] == [3, 3, 1, 3]
    killed: list[int] = []

    @contextmanager
    def killing(label: str, total: int, done: int, later: int = 0) -> Iterator[Any]:
        def advance(count: int, note: str = "") -> None:
            if not killed:
                killed.append(own_worker())
                os.kill(killed[0], signal.SIGKILL)

        yield advance

    same(count_captions(files, MENTIONS, killing, ray=RAY), here)
    assert killed


def own_worker() -> int:
    """A worker of the cluster that this process has started, and of no other."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title, parent = (folder / "cmdline").read_bytes(), status(folder.name)
            if title.startswith(b"ray::_Worker") and status(parent) == str(os.getpid()):
                return int(folder.name)
        except FileNotFoundError:  # it has ended meanwhile
            continue
    raise AssertionError("there is no worker")


def status(process: str) -> str:
    """The process's parent."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]


@pytest.mark.slow
def test_ray_goes_on_where_another_engine_stopped_and_tells_of_damage(
    cluster: Any, paths: list[Path], here: Counts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(counting, "SECONDS", -1.0)
    stopped, add = [], counting._Counted.add

    def stopping(self: Any, seen: Any) -> int:
        stopped.append(1)
        if len(stopped) == 2:
            raise KeyboardInterrupt
        return add(self, seen)

    with monkeypatch.context() as patched:
        patched.setattr(counting._Counted, "add", stopping)
        with pytest.raises(KeyboardInterrupt):
            count_captions([CaptionFile(path) for path in paths], MENTIONS, store=tmp_path)
    assert counting._Counted(CaptionFile(paths[0]), MENTIONS, tmp_path).resume
    same(count_captions([CaptionFile(path) for path in paths], MENTIONS, store=tmp_path, ray=RAY), here)
    cut = tmp_path / "cut.txt.zst"
    cut.write_bytes(paths[2].read_bytes()[:-200])
    with pytest.raises(DataError, match=r"(?s)cut\.txt\.zst cannot be read.*after record [\d,]+, beyond byte"):
        count_captions([CaptionFile(cut)], MENTIONS, store=tmp_path, ray=RAY)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """An S3 of our own on this machine."""
    moto, s3fs = pytest.importorskip("moto.server"), pytest.importorskip("s3fs")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:{1}".format(*server.get_host_and_port()))
        for name, value in (("ACCESS_KEY_ID", "someone"), ("SECRET_ACCESS_KEY", "x"), ("DEFAULT_REGION", "us-east-1")):
            patched.setenv(f"AWS_{name}", value)
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("captions")
        yield "s3://captions"
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.mark.slow
def test_s3_gives_what_files_here_give(bucket: str, paths: list[Path], here: Counts):
    import s3fs

    for path in paths:
        s3fs.S3FileSystem().put_file(str(path), f"{bucket}/{path.name}")
    files = [CaptionFile(f"{bucket}/{path.name}") for path in paths]
    counts = count_captions(files, MENTIONS, store=captions.place(f"{bucket}/store"))
    assert (counts.apart.tolist(), counts.captions) == (here.apart.tolist(), here.captions)
    assert [tally.digest for tally in counts.files] == [tally.digest for tally in here.files]
    again = count_captions(files, MENTIONS, store=captions.place(f"{bucket}/store"))
    assert again.files == counts.files
    part = next(files[0].parts(files[0].size // 2))
    assert part.text
