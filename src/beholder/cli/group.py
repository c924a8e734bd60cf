"""How a command ends that does not end by itself: stopped by hand, or refused by the disk."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from beholder.cli.console import err
from beholder.core.errors import UsageError

RESUMES = ("audit", "compare", "calibrate")
"""Commands that keep what they did and go on from there."""
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EEXIST, errno.ENOTDIR)
"""What a disk answers when it is the user's to mend; any other trouble with a file is ours, and keeps its traceback."""


class Commands(TyperGroup):
    """The commands; Ctrl-C is answered with what was kept, a full or closed disk with its name."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            err.print(stopped(ctx.invoked_subcommand, sys.argv[1:]), markup=False, soft_wrap=True)
            raise typer.Exit(130) from None
        except OSError as error:
            if error.errno not in REFUSED:
                raise
            raise UsageError(f"{error.filename or 'The disk'}: {os.strerror(error.errno)}.") from error


def stopped(command: str | None, arguments: list[str]) -> str:
    """What to say after Ctrl-C: what is kept, and how to go on."""
    if command not in RESUMES:
        return "\nStopped."
    again = shlex.join(["beholder", *arguments])
    return f"\nStopped. What was done is kept; the same command goes on from here:\n  {again}"


def writable(folder: Path, option: str) -> Path:
    """The folder, if something can be written there: asked before the work, and without making it."""
    there = next(place for place in (folder, *folder.resolve().parents) if place.exists())
    if not there.is_dir():
        raise UsageError(f"{option} {folder}: {there} is a file, and results need a folder. Name another one.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {folder}: nothing may be written to {there}. Name another folder.")
    return folder
