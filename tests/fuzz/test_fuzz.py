"""Whatever a file holds, only errors of ours come out; files that once failed are read again in every run.

`make fuzz` runs many more cases (`fuzz.py`), in processes that may die.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import fuzz
import oracles
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mutations import damaged
from PIL import Image
from targets import Target, targets

HEAVY = 0.1
"""Targets of less weight load a model: the long run has them."""
LIGHT = {name: target for name, target in targets().items() if target.weight >= HEAVY}
KEPT = [path for path in sorted(fuzz.CORPUS.iterdir()) if path.name.partition("@")[0] in LIGHT]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def checked(target: Target, data: bytes, scratch: Path) -> None:
    error = fuzz.attempt(target, scratch, data)
    if error is not None:
        raise AssertionError(fuzz.place_of(error)) from error


@pytest.mark.parametrize("name", sorted({path.name.partition("@")[0] for path in KEPT}))
def test_what_once_failed_is_told(name: str, scratch: Path) -> None:
    for path in KEPT:
        if path.name.partition("@")[0] == name:
            checked(LIGHT[name], path.read_bytes(), scratch)


@pytest.mark.parametrize("name", sorted(LIGHT))
def test_a_sound_file_is_read(name: str, scratch: Path) -> None:
    target = LIGHT[name]
    if name != "model.name":  # there is no network
        target.call(target.prepare(scratch))


UNSEEN = (
    "model.name",
    "labels.json",
    "masks.json",
    "maps.",
    "scores.eval",
    "scores.jsonl",
    "run-run.json",
    "rules.toml",
)
"""Targets of which a changed value may be read as well, or which oracles know in part."""


def other(value: object) -> object:
    """The same form with other values."""
    if isinstance(value, dict):
        return {key: other(each) for key, each in value.items()}
    if isinstance(value, list):
        return [other(each) for each in value]
    return (
        value + 7
        if isinstance(value, int | float) and not isinstance(value, bool)
        else f"{value}x".replace("dog", "cat")
    )


def changed(path: Path) -> bytes:
    """The file with other values in it, for the oracles alone."""
    data = path.read_bytes()
    if path.suffix == ".parquet":
        table = pl.read_parquet(data)
        kinds = (pl.col(pl.String).str.replace_all("dog", "cat") + "x", pl.col(pl.Float64) + 7.5, pl.col(pl.Int64) + 7)
        table = table.with_columns(*kinds).with_columns(
            pl.col(column).struct.with_fields(bytes=pl.lit(b"x"))
            for column, kind in table.schema.items()
            if kind.is_nested()
        )
        table.write_parquet(sink := io.BytesIO())
        return sink.getvalue()
    if path.suffix == ".json":
        return json.dumps(other(json.loads(data))).encode()
    if path.suffix == ".jsonl":
        return "\n".join(json.dumps(other(json.loads(line))) for line in data.decode().splitlines()).encode()
    if path.suffix in (".png", ".jpg"):
        Image.new("RGB", (8, 8), "red").save(sink := io.BytesIO(), "PNG")
        return sink.getvalue()
    if path.suffix in (".npy", ".tar"):
        return data[:-100] + bytes(100) if path.suffix == ".npy" else data.replace(b"PNG", b"XXX")
    if path.suffix == ".gz":
        return gzip.compress(gzip.decompress(data).replace(b"dog", b"cat"))
    if path.suffix == ".zst":
        plain = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
        return bytes(pa.compress(plain.replace(b"dog", b"cat"), "zstd", asbytes=True))
    if path.suffix == ".toml":
        return re.sub(rb'"[^"]+"', b'"other"', data)
    head, newline, rest = data.partition(b"\n") if path.suffix in (".csv", ".tsv") else (b"", b"", data)
    return head + newline + re.sub(rb"[a-z0-9]", lambda match: b"b" if match[0] == b"a" else b"a", rest)


@pytest.mark.parametrize("name", sorted(name for name in LIGHT if not name.startswith(UNSEEN)))
def test_an_oracle_finds_a_wrong_value(name: str, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read as it is, and the oracle is told that it holds something else."""
    target = LIGHT[name]
    home = target.prepare(scratch)
    monkeypatch.setattr(oracles.TRUTH, "read", changed)
    with pytest.raises(oracles.WrongValueError):
        target.call(home)


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
@pytest.mark.parametrize("name", sorted(name for name, target in LIGHT.items() if target.weight == 1))
def test_a_damaged_file_is_told(name: str, scratch: Path, data: st.DataObject) -> None:
    target = LIGHT[name]
    rng: Random = data.draw(st.randoms(use_true_random=False))
    checked(target, damaged(target.file, target.files[target.file], rng), scratch)


@pytest.mark.slow
def test_a_process_that_dies_or_hangs_is_counted(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(fuzz.__file__)), "rules", "labels.json", "--cases", "40", "--no-keep"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "40 cases of 2 targets" in done.stdout
    assert done.returncode == 0, done.stdout
