"""The command line. A module is imported when its command of `commands.toml` runs or its help is asked for.

Ctrl-C and disk errors are handled here too.
"""

import errno
import os
import shlex
import signal
import sys
import tempfile
import threading
import tomllib
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple, Self  # Any: typer keeps the types that a group's methods take private

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from beholder.cli.console import err
from beholder.core.catalog import load_plugins
from beholder.core.errors import BeholderError, UsageError, first_line, masked
from beholder.core.progress import ADVICE, ran_out, require_memory
from beholder.core.types import Fields
from beholder.studies import COMMANDS as BROUGHT
from beholder.studies import STUDIES

LIST = Path(__file__).with_name("commands.toml")


class Entry(NamedTuple):
    """A command of the list."""

    help: str  # the first paragraph of its help; the others are the function's docstring
    run: str = ""  # `module:function` in `beholder.cli`; empty for a group without options and a study's command
    examples: Sequence[tuple[str, str]] = ()
    options: Mapping[str, Fields] = MappingProxyType({})  # words of its own parameters; the others are shared options


COMMANDS = {
    **{name: Entry(**each) for name, each in tomllib.loads(LIST.read_text(encoding="utf-8")).items()},
    **{name: Entry(summary) for name, summary in BROUGHT.items()},
}
FORMERLY = {"list benchmarks": "list studies"}  # as it was called before 1.0
FORMER_FLAGS = {"--benchmark": "--study", "-b": "--study", "--cards": "--gpus"}


class Command(TyperCommand):
    """A command whose help ends with examples, and names types as a person would."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        for param in self.params:
            vars(param)["display_type_rich"] = partial(_kind, param)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments; an option may still be called as it was before 1.0."""
        known = {option for param in self.params for option in param.opts}
        end = args.index("--") if "--" in args else len(args)
        for place, (flag, sign, value) in enumerate(each.partition("=") for each in args[:end]):
            if FORMER_FLAGS.get(flag) in known:
                args[place] = FORMER_FLAGS[flag] + sign + value
        return super().parse_args(ctx, args)

    def describe(self, paragraphs: str, examples: Sequence[tuple[str, str]]) -> None:
        """Set the help; lines break where the terminal does, and examples come last."""
        self.help = "\n\n".join(" ".join(part.split()) for part in paragraphs.strip().split("\n\n"))
        lines = [f"{what}:\n\n  [bold]{escape(typed)}[/bold]" for what, typed in examples]
        self.epilog = "\n\n".join(["[dim]Examples[/dim]", *lines]) if lines else None


def _kind(param: Any, ctx: Any) -> str | None:
    """What an option takes: nothing is said of a switch, and a list is several of a kind."""
    if getattr(param, "is_flag", False):
        return None
    kind = str(type(param).display_type_rich(param, ctx) or "")
    return kind.replace("list[", "").replace("]", "").lower()


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


RESUMES = ("audit", "compare", "calibrate")  # commands that keep what they did and go on from there
REFUSED = {
    getattr(errno, name)
    for name in "EACCES EPERM EROFS ENOSPC EDQUOT EEXIST ENOTDIR EISDIR ENOTEMPTY ELOOP ENAMETOOLONG EFBIG "
    "EMFILE ENFILE EIO ESTALE".split()
    if hasattr(errno, name)
}  # what a disk answers when the user can fix it; any other error of a file is ours, and keeps its traceback


class Commands(TyperGroup):
    """The commands of the list and of studies; Ctrl-C and disk errors are answered with a sentence."""

    listing = False  # whether only the names and first lines are wanted: nothing is imported for that

    def __init__(self, *, name: str | None = None, **attributes: Any) -> None:
        super().__init__(name=name, **attributes)
        self._path = "" if name == "beholder" else f"{name} "
        for path, entry in COMMANDS.items():
            if path.startswith(self._path) and " " not in (last := path.removeprefix(self._path)):
                self.commands[last] = TyperCommand(last, help=entry.help)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by name; while they are listed, only what the list says of it."""
        path = FORMERLY.get(self._path + cmd_name, self._path + cmd_name)
        if self.listing and path in COMMANDS:
            return super().get_command(ctx, cmd_name)
        if path in COMMANDS and (COMMANDS[path].run or is_group(path)):
            return import_module("beholder.cli.options").made(path)
        return None if self._path else import_module("beholder.cli.audit").study_command(cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names; those of plug-ins come last."""
        plugged = [] if self._path else [STUDIES[name] for name in STUDIES if not STUDIES.came_with_beholder(name)]
        return [*super().list_commands(ctx), *(study.command.name for study in plugged if study.command)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.listing = True
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        if self._path:
            return super().invoke(ctx)
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


def is_group(path: str) -> bool:
    return any(other.startswith(f"{path} ") for other in COMMANDS)


def stopped(command: str | None, arguments: list[str]) -> str:
    """What to say after Ctrl-C: what is kept, and how to go on."""
    if command not in RESUMES:
        return "\nStopped."
    again = shlex.join(["beholder", *map(masked, arguments)])
    return f"\nStopped. Finished work is kept. To continue, run:\n  {again}"


app = typer.Typer(
    name="beholder",
    cls=Commands,
    help="Audit how a vision-language model sees people. Without a model and without data, `beholder audit` audits "
    "the embedded reference models on the embedded world, offline.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    plugin: list[str] = typer.Option(
        None,
        is_eager=True,
        callback=lambda named: load_plugins(named or ()),  # before a command is looked up: it may be a plug-in's
        help="Your own Python file or module to load first. It can add models, data sets and studies "
        "(repeatable; also BEHOLDER_PLUGINS).",
    ),
) -> None:
    if version:
        typer.echo(f"beholder {import_module('beholder.core.record').version()}")
        raise typer.Exit


def main() -> None:
    """Run; whatever goes wrong is a message for the user, never a traceback."""
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except BeholderError as error:
        _say(type(error).__name__, str(error))
        sys.exit(2)
    except typer.Abort:
        sys.exit(1)
    except BaseException as error:  # polars panics with no Exception
        if isinstance(error, SystemExit | KeyboardInterrupt):
            raise
        if message := getattr(error, "format_message", None):  # the parser's: a wrong option, a value of another kind
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "beholder"
            if said := message():  # without a command, its help was shown
                _say("UsageError", f"{said}\nSee: {path} --help")
        elif ran_out(error):
            _say("OutOfMemory", f"{first_line(error)}.\n{ADVICE}")
        else:
            _say("Fault", _fault(error))
        sys.exit(2)


def _say(kind: str, text: str) -> None:
    err.print(f"[bold red]{kind}:[/]", end=" ")
    err.print(text, markup=False, highlight=False, soft_wrap=True)  # commands in it can be copied


def _fault(error: BaseException) -> str:
    """What to say of an error that is ours, and where its traceback is kept."""
    command = shlex.join(["beholder", *map(masked, sys.argv[1:])])
    with tempfile.NamedTemporaryFile("w", prefix="beholder-fault-", suffix=".txt", delete=False) as file:
        file.write(
            masked(f"beholder {import_module('beholder.core.record').version()}\n{command}\n\n{traceback.format_exc()}")
        )
    return (
        f"this should not have happened ({type(error).__name__}: {masked(first_line(error))}).\n"
        f"Please report it with the file {file.name}: it has the command and the traceback; look through it first, "
        "since it may name files of yours."
    )
