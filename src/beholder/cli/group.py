"""The commands: those with options of the studies, those that studies bring; Ctrl-C and disk errors are handled."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from contextlib import suppress
from typing import Any  # typer keeps the types that a group's methods take private

import typer
from typer.core import TyperGroup

from beholder.cli.console import err
from beholder.cli.signals import Stops
from beholder.cli.study_commands import study_command, study_command_names
from beholder.cli.study_options import built, study_options
from beholder.core.errors import UsageError, masked
from beholder.core.memory import require_memory

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
