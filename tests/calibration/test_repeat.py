"""Repetitions: seeded, in any number of processes, and continued where they stopped."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from beholder.calibration import repeat as repeating
from beholder.calibration.experiments import chosen_experiments, experiments
from beholder.calibration.repeat import Block, _unstopped, repeat, simulate


def test_a_repetition_depends_on_its_number_alone():
    name = "identity 30"
    whole, part = simulate(Block(name, 3, 0, 6)), simulate(Block(name, 3, 4, 6))
    np.testing.assert_array_equal(whole[4:], part)
    assert not np.array_equal(whole[:1], simulate(Block(name, 4, 0, 1)))


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    chosen = [experiments()["identity 30"]]
    fresh = repeat(chosen, tmp_path / "a", repetitions=120, seed=1, workers=1)["identity 30"]
    done: list[Block] = []

    def stop_after_one(block: Block, folder: Path) -> None:
        if done:
            raise KeyboardInterrupt
        done.append(block)
        work(block, folder)

    work = repeating._work
    monkeypatch.setattr(repeating, "_work", stop_after_one)
    with pytest.raises(KeyboardInterrupt):
        repeat(chosen, tmp_path / "b", repetitions=120, seed=1, workers=1)
    kept = len(list((tmp_path / "b" / "blocks").glob("*.npy")))
    monkeypatch.setattr(repeating, "_work", work)
    resumed = repeat(chosen, tmp_path / "b", repetitions=120, seed=1, workers=1)["identity 30"]
    assert kept == 1
    np.testing.assert_array_equal(fresh, resumed)


@pytest.mark.slow
def test_a_damaged_block_is_drawn_again(tmp_path: Path):
    chosen = chosen_experiments(["apa.association_top1"])[:1]
    asked = {"repetitions": 20, "seed": 1, "workers": 1}
    whole = repeat(chosen, tmp_path, **asked)
    for path in (tmp_path / "blocks").iterdir():
        path.write_bytes(path.read_bytes()[:100])
    again = repeat(chosen, tmp_path, **asked)
    np.testing.assert_equal(again, whole)


def test_two_processes_give_what_one_gives(tmp_path: Path):
    chosen = [experiments()["identity 30"]]
    one, two = (repeat(chosen, tmp_path / str(n), repetitions=120, seed=1, workers=n)["identity 30"] for n in (1, 2))
    np.testing.assert_array_equal(one, two)


# Ctrl-C: one message from the parent, none from the workers


def test_workers_started_here_do_not_hear_ctrl_c_and_the_parent_does_again_afterwards():
    before = signal.getsignal(signal.SIGINT)
    with _unstopped():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_signals_are_left_alone():
    def seen() -> None:
        with _unstopped():
            handlers.append(signal.getsignal(signal.SIGINT))

    handlers: list[object] = []
    thread = threading.Thread(target=seen)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]
