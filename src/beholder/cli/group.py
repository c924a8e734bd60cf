"""The commands: those with options of the studies, those that studies bring; Ctrl-C and disk errors are handled."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import (
    Any,  # typer keeps the types that a group's methods take private
    Self,
)

import typer
from typer.core import TyperGroup

from beholder.cli.console import err
from beholder.cli.study_commands import study_command, study_command_names
from beholder.cli.study_options import built, study_options
from beholder.core.errors import UsageError, masked
from beholder.core.progress import require_memory

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


# The commands

RESUMES = ("audit", "compare", "calibrate")
"""Commands that keep what they did and go on from there."""
REFUSED = {
    getattr(errno, name)
    for name in "EACCES EPERM EROFS ENOSPC EDQUOT EEXIST ENOTDIR EISDIR ENOTEMPTY ELOOP ENAMETOOLONG EFBIG "
    "EMFILE ENFILE EIO ESTALE".split()
    if hasattr(errno, name)
}
"""What a disk answers when it is the user's to mend; any other trouble with a file is ours, and keeps its traceback."""


class Commands(TyperGroup):
    """The commands; Ctrl-C, SIGTERM or SIGHUP is answered with what was kept, a full or closed disk with its name."""

    listing = False
    """Whether only the names and first lines are wanted: the studies are not loaded for that."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by name, with the options of the studies where it takes them."""
        command = super().get_command(ctx, cmd_name)
        function = getattr(getattr(command, "callback", None), "takes_study_options", None)
        if function is not None and not self.listing:
            return built(cmd_name, function, study_options())
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of commands."""
        self.listing = True
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        with Stops() as stops:
            try:
                require_memory()
                return super().invoke(ctx)
            except KeyboardInterrupt:
                with suppress(OSError):  # the terminal may be gone
                    err.print(stopped(ctx.invoked_subcommand, sys.argv[1:]), markup=False, soft_wrap=True)
                raise typer.Exit(stops.status) from None
            except OSError as error:
                if error.errno is None or error.errno not in REFUSED:
                    raise
                raise UsageError(f"{error.filename or 'The disk'}: {os.strerror(error.errno)}.") from error


class AllCommands(Commands):
    """The commands, and those that studies bring along."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by name; a study's own where there is no other."""
        return super().get_command(ctx, cmd_name) or study_command(cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names."""
        return [*super().list_commands(ctx), *study_command_names()]


def stopped(command: str | None, arguments: list[str]) -> str:
    """What to say after Ctrl-C: what is kept, and how to go on."""
    if command not in RESUMES:
        return "\nStopped."
    again = shlex.join(["beholder", *map(masked, arguments)])
    return f"\nStopped. Finished work is kept. To continue, run:\n  {again}"
