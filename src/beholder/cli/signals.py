"""Signals: Ctrl-C, SIGTERM and SIGHUP stop a command in good order, so that finished work is kept."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Self

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
AGAIN = b"\nStill keeping finished work. Once more, and the program ends at once.\n"


class Stops:
    """The first signal is a `KeyboardInterrupt`, the second is answered with a sentence, the third ends the process."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._before: dict[int, signal.Handlers] = {}
        self.received: list[int] = []

    @property
    def status(self) -> int:
        """The exit status, as a shell counts it."""
        return 128 + (self.received[0] if self.received else signal.SIGINT)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            usual = (signal.SIG_DFL, signal.default_int_handler)  # what is ignored, as under nohup, stays ignored
            for number in (getattr(signal, name) for name in NAMES if hasattr(signal, name)):
                if signal.getsignal(number) in usual:
                    self._before[number] = signal.signal(number, self._stop)  # type: ignore[assignment]
        return self

    def __exit__(self, *_: object) -> None:
        if not self.received:  # after a stop, threads that still end must not be interrupted with a traceback
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a child that was forked: its parent stops the work
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self.received.append(number)
        if len(self.received) == 1:
            raise KeyboardInterrupt
        if len(self.received) > 2:
            os._exit(self.status)
        os.write(2, AGAIN)
