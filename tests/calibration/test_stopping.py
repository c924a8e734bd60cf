"""Ctrl-C in the middle of a calibration: one message from the parent, none from the workers."""

from __future__ import annotations

import signal
import threading

from beholder.calibration.repeat import _unstopped


def test_workers_started_here_do_not_hear_ctrl_c_and_the_parent_does_again_afterwards():
    before = signal.getsignal(signal.SIGINT)
    with _unstopped():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_signals_are_left_alone():
    def seen() -> None:
        with _unstopped():
            found.append(signal.getsignal(signal.SIGINT))

    found: list[object] = []
    thread = threading.Thread(target=seen)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]
