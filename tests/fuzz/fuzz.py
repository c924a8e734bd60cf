"""Fuzz every reader: `python tests/fuzz/fuzz.py --cases 20000`. Exit status 1 if anything but our errors came out.

Cases run in worker processes that are started anew when one dies. A case may take 20 seconds and 4 GB. What fails is
kept in `tests/fuzz/corpus`, and replayed by the tests from then on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
SECONDS, BYTES = int(os.environ.get("FUZZ_SECONDS", "20")), 4 << 30
CHANNEL = 9
"""A worker's words to its watcher; what the program prints goes nowhere."""
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "models")]


class TookTooLong(BaseException):
    """A case that ran past its time."""


def attempt(target: Any, folder: Path, data: bytes) -> BaseException | None:
    """What comes out of a call on a damaged file that is not an error of ours; the file is put right again."""
    from beholder.core.errors import BeholderError

    home = target.prepare(folder)
    path = home / target.file
    path.write_bytes(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.call(home)
    except BeholderError:
        return None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of polars is no Exception
        return error
    finally:
        path.write_bytes(target.files[target.file])
    return None


def mutant(target: Any, seed: int) -> bytes:
    """The damaged file of a case."""
    from mutations import damaged

    return damaged(target.file, target.files[target.file], Random(f"{target.name} {seed}"))


def place_of(error: BaseException) -> str:
    """The error's kind and the innermost line of ours that it came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/src/beholder/" in frame.filename]
    where = f"{frames[-1].filename.split('/src/beholder/')[-1]}:{frames[-1].name}" if frames else "?"
    return f"{type(error).__name__} in {where}"


def keep(target: Any, data: bytes) -> Path:
    """The damaged file in the corpus."""
    ending = "".join(Path(target.file).suffixes)
    path = CORPUS / f"{target.name}@{hashlib.sha256(data).hexdigest()[:10]}{ending}"
    CORPUS.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def work(argv: argparse.Namespace) -> None:
    """One worker: cases `first`, `first + step` … of every chosen target, each said before it runs and after."""
    from targets import targets

    def stop(*_: object) -> None:
        raise TookTooLong

    signal.signal(signal.SIGALRM, stop)
    os.dup2(1, CHANNEL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    every = chosen(targets(), argv.targets)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        for target in every:
            target.prepare(Path(scratch))
        for target in [target for target in every if target.weight < 0.1][:1]:
            target.call(target.prepare(Path(scratch)))  # loads torch, which may take longer than a case
        resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
        for number, (target, seed) in enumerate(cases(every, argv.seed)):
            if number < argv.first or (number - argv.start) % argv.step or number >= argv.cases:
                if number >= argv.cases:
                    sys.stderr.flush()
                    os._exit(0)  # some libraries abort when they are unloaded
                continue
            data = mutant(target, seed)
            say({"case": number, "target": target.name, "seed": seed})
            signal.alarm(SECONDS)
            began = time.monotonic()
            error = attempt(target, Path(scratch), data)
            signal.alarm(0)
            say({"done": number, "took": time.monotonic() - began, "error": error and place_of(error)})
            if error is not None and argv.verbose:
                traceback.print_exception(error)


def say(entry: dict[str, object]) -> None:
    os.write(CHANNEL, json.dumps(entry).encode() + b"\n")


def chosen(known: dict[str, Any], names: list[str]) -> list[Any]:
    return [target for name, target in known.items() if not names or any(each in name for each in names)]


def cases(every: list[Any], seed: int) -> Iterator[tuple[Any, int]]:
    """Targets in turn, dear ones less often; without end."""
    owed = [0.0] * len(every)
    turn = seed
    while True:
        turn += 1
        for place, target in enumerate(every):
            owed[place] += target.weight
            if owed[place] >= 1:
                owed[place] -= 1
                yield target, turn


def watch(argv: argparse.Namespace, start: int, report: Any) -> Iterator[None]:
    """One worker after the other until its share is done; gives way after every word."""
    first = argv.first
    while True:
        words = [sys.executable, __file__, *argv.words, "--worker", "--first", str(first), "--start", str(start)]
        child = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=None if argv.verbose else subprocess.DEVNULL, bufsize=0
        )
        assert child.stdout is not None
        os.set_blocking(child.stdout.fileno(), False)
        rest, current, heard = b"", None, time.monotonic()
        while True:
            chunk = child.stdout.read(1 << 16)
            if chunk is None:
                if time.monotonic() - heard > SECONDS * 3:
                    child.kill()
                yield
                time.sleep(0.02)
                continue
            if not chunk:
                break
            heard = time.monotonic()
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                entry = json.loads(line)
                current = entry if "case" in entry else report(current, entry) or None
            yield
        if child.wait() == 0:
            return
        if current is None:
            raise SystemExit(f"A worker ended with {child.returncode} between cases: run it with --verbose.")
        report(current, {"took": 0, "error": f"the process ended with {child.returncode}"})
        first = int(current["case"]) + 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", help="Parts of targets' names; without: all.")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--step", type=int, default=2, help="Worker processes.")
    parser.add_argument("--first", type=int, default=0, help="Go on at this case.")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--no-keep", action="store_true")
    argv = parser.parse_args()
    argv.words = [word for word in sys.argv[1:]]
    if argv.worker:
        return work(argv)
    from targets import targets

    known, began = targets(), time.monotonic()
    done: Counter[str] = Counter()
    failed: dict[str, list[tuple[str, int]]] = {}
    slow: dict[str, float] = {}
    spent: Counter[str] = Counter()

    def report(case: dict[str, Any], result: dict[str, Any]) -> None:
        name = case["target"]
        done[name] += 1
        spent[name] += result["took"]
        slow[name] = max(slow.get(name, 0), result["took"])
        if result["error"]:
            failed.setdefault(f"{name}: {result['error']}", []).append((name, case["seed"]))
            print(f"{name}, seed {case['seed']}: {result['error']}", flush=True)
        if (total := sum(done.values())) % 10_000 == 0:
            bad = sum(map(len, failed.values()))
            print(f"{total:,} cases in {time.monotonic() - began:.0f} s, {bad} failures", flush=True)

    running = [watch(argv, start, report) for start in range(argv.step)]
    while running:
        running = [each for each in running if next(each, "over") is None]
    for what, which in sorted(failed.items(), key=lambda item: -len(item[1])):
        name, seed = min(which, key=lambda each: len(mutant(known[each[0]], each[1])))
        kept = "" if argv.no_keep else f", {keep(known[name], mutant(known[name], seed)).name}"
        print(f"{len(which):6} {what} (seed {seed}{kept})")
    total, bad = sum(done.values()), sum(map(len, failed.values()))
    for name in sorted(done):
        if argv.verbose or "FUZZ_TIMES" in os.environ:
            each = 1000 * spent[name] / done[name]
            print(f"{name:28} {done[name]:7} cases, {each:8.2f} ms each, slowest {slow[name]:.2f} s")
    slowest = max(slow, key=lambda name: slow[name])
    took = f"{total:,} cases of {len(done)} targets in {time.monotonic() - began:.0f} s"
    print(f"{took}: {bad} failures of {len(failed)} kinds. Slowest: {slow[slowest]:.1f} s ({slowest}).")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
