"""The commands, named as `module:function`: a module is imported when its command runs or its help is asked for.

Ctrl-C and disk errors are handled here too.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import FrameType
from typing import (
    Any,  # typer keeps the types that a group's methods take private
    NamedTuple,
    Self,
)

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from beholder.cli.console import err
from beholder.core.errors import UsageError, masked
from beholder.core.progress import require_memory
from beholder.studies import COMMANDS as BROUGHT
from beholder.studies import STUDIES


class Entry(NamedTuple):
    """A command of the list."""

    target: str
    """`module:function` in `beholder.cli`; empty for a group without options, and for the command of a study."""
    summary: str
    """The first paragraph of its help; the others are the function's docstring."""
    examples: tuple[tuple[str, str], ...] = ()
    """What for, and what to type."""


COMMANDS = {
    "audit": Entry(
        "audit:audit_command",
        "Audit models: compute missing scores, measure, and write a report.",
        (
            ("the embedded models in their world, offline", "beholder audit"),
            ("a hub model on photographs", "beholder audit openai/clip-vit-base-patch32 -s apa --data DIR"),
            ("two models, a quick look", "beholder audit onnx:A onnx:B -s disparity --data DIR --limit 50"),
            (
                "your own images and prompts",
                "beholder audit MODEL --dataset folder:PHOTOS --prompts words.csv --by gender",
            ),
        ),
    ),
    "measure": Entry(
        "audit:measure_command",
        "Measure scores from files. A subset of images or prompts is enough; the output lists what is missing.",
        (
            ("a table of scores", "beholder measure apa --scores scores.parquet --data DIR --model mine"),
            ("a detector's COCO results", "beholder measure disparity --scores results.json --data DIR"),
        ),
    ),
    "compare": Entry(
        "audit:compare_command",
        "Show where models differ from the first on the same questions and the same people.",
        (
            ("a model before and after a change", "beholder compare ./before ./after -s apa --data DIR"),
            ("two runs, from their stored scores", "beholder compare RUN-1 RUN-2"),
            ("against noise, in the embedded world", "beholder compare null glasshouse/contrastive"),
        ),
    ),
    "gate": Entry(
        "gate:gate_command",
        "Check a run against rules. Exit status: 0 if it passes, 1 if it fails, 2 if a rule cannot be used.",
        (
            ("a run against rules", "beholder gate RUN --rules gate.toml"),
            (
                "no worse than the last release",
                "beholder gate RUN --rules gate.toml --baseline LAST-RUN --junit gate.xml",
            ),
        ),
    ),
    "runs": Entry(
        "runs:runs_command",
        "List runs, the newest first: models, studies, date, and how many findings have which verdict.",
    ),
    "verify": Entry(
        "audit:verify_command",
        "Measure a run again from the store, without its models, and say what changed.",
        (("measure a run again from its stored scores", "beholder verify RUN"),),
    ),
    "report": Entry(
        "runs:report_command",
        "Rewrite report.html from a run folder and print its summary.",
        (
            ("the page of a run again", "beholder report RUN"),
            ("charts for a paper", "beholder report RUN --figures figures"),
        ),
    ),
    "site": Entry(
        "runs:site_command",
        "Build a static site: models against questions, a page for each, and a scatter of any two numbers.",
    ),
    "view": Entry(
        "runs:view_command",
        "Show the pictures behind the numbers: ranked by score, filtered by group, two models side by side.",
    ),
    "export": Entry(
        "runs:export_command",
        "Write a run's findings and numbers for other places: papers, model cards, leaderboards, experiment trackers.",
    ),
    "replicate": Entry(
        "checks:replicate_command",
        "Compare every published number with ours, with difference, interval and verdict; check the printed tables.",
        (
            ("do the printed tables agree with themselves", "beholder replicate"),
            ("compare a run with the printed numbers of its model", "beholder replicate RUN --as ViT-B/32"),
        ),
    ),
    "calibrate": Entry(
        "checks:calibrate_command",
        "Test every claim of every study in worlds of known truth: false alarms, intervals, unfair models.",
        (
            ("one study in noise, quickly", "beholder calibrate -s gras --world noise --worlds 100"),
            ("everything, as in the docs", "beholder calibrate --into docs/calibration.md"),
        ),
    ),
    "plan": Entry(
        "plan:plan_command",
        "Before a run: show the smallest effect that this data set can show, at 5 % after correction; or, with "
        "--cost, what the run costs.",
        (
            ("what can be seen with these images", "beholder plan apa --data DIR"),
            ("how many images a gap of 5 points takes", "beholder plan gras --data DIR --effect 0.05"),
            ("what a model costs here, rehearsed for 10 seconds", "beholder plan apa --data DIR --cost ./clip"),
            (
                "the same for a million images on eight H200",
                "beholder plan gras --data DIR --cost Qwen2.5-VL-3B-Instruct --on h200 --cards 8 --images 1000000",
            ),
        ),
    ),
    "list": Entry("", "List models, data sets, studies, prompts and metrics."),
    "list models": Entry(
        "listing:models",
        "List the forms of a model name, and all models of the catalogue; with --family, its architectures too.",
        (("what fits into this machine", "beholder list models --fits --max-parameters 500M"),),
    ),
    "list datasets": Entry("listing:datasets", "Data sets, with licence and size."),
    "list studies": Entry("listing:studies", "Studies, with their question and data."),
    "list metrics": Entry("listing:metrics", "Metrics, with their unit and what their values mean."),
    "list prompts": Entry(
        "listing:prompts",
        "The prompts of a study (with the names where its data is at hand), or of a file of your own.",
        (
            ("what GRAS asks", "beholder list prompts -s gras"),
            ("check a file of your own", "beholder list prompts --file words.csv"),
        ),
    ),
    "data": Entry("", "Show, fetch and verify data sets."),
    "data check": Entry(
        "data:check",
        "Say what was understood: columns, groups, crossings, look-alikes, unreadable images, which studies fit.",
    ),
    "data list": Entry("data:list_command", "List all data sets with licence, number of images found, and origin."),
    "data where": Entry(
        "data:where", "Show the folder of a data set, how many of its images are there, and how to get it."
    ),
    "data settings": Entry("data:settings_command", "List the settings of a data set for --set NAME=VALUE."),
    "data verify": Entry(
        "data:verify",
        "Read the tables, open every image, and say what is missing or damaged. Exit status 1 if anything is.",
        (("open every image and name those that are damaged", "beholder data verify apa --data DIR"),),
    ),
    "data card": Entry(
        "data:card",
        "Write a data card: who is in it and how many, by whose word, picture sizes, look-alikes, intended use.",
    ),
    "data mend": Entry("data:mend", "Repair a table that a spreadsheet damaged; the damaged file is kept."),
    "data fetch": Entry(
        "data:fetch",
        "Download a data set that may be downloaded freely.",
        (("into DIR/apa", "beholder data fetch apa --data DIR"),),
    ),
    "store": Entry("store:show_command", "Show, check and clean the store of scores."),
    "store verify": Entry(
        "store:verify_command",
        "Check every block, remembered digest and manifest; exit with 1 if something is wrong. Nothing is changed.",
        (("check everything", "beholder store verify --store DIR"),),
    ),
    "store clean": Entry(
        "store:clean_command",
        "Remove models that match every condition. Shows them and asks first.",
        (("models that nobody used for a month", "beholder store clean --older-than 30d"),),
    ),
    "bench": Entry("", "Compare the speed of several methods on this machine."),
    "bench generative": Entry(
        "checks:generative_command",
        "Time 500 questions about a picture: the authors' loop, batches, copied prefixes, our method, and the "
        "theoretical minimum.",
        (
            ("on this machine, small", "beholder bench generative llava-1.5-7b"),
            ("on a GPU, at true size", "beholder bench generative --full"),
        ),
    ),
    **{name: Entry("", summary) for name, summary in BROUGHT.items()},
}
FORMERLY = {"list benchmarks": "list studies"}  # as it was called before 1.0
BENCHMARK = re.compile(r"^(?:--benchmark|-b)(=.*)?$", re.DOTALL)


class Command(TyperCommand):
    """A command whose help ends with examples, and names types as a person would."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        for param in self.params:
            vars(param)["display_type_rich"] = partial(_kind, param)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments; `--benchmark` and `-b` are read as `--study`, as they were called before 1.0."""
        known = {option for param in self.params for option in param.opts}
        end = args.index("--") if "--" in args else len(args)
        if "--study" in known:
            args = [BENCHMARK.sub(r"--study\1", each) if place < end else each for place, each in enumerate(args)]
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


RESUMES = ("audit", "compare", "calibrate")
"""Commands that keep what they did and go on from there."""
REFUSED = {
    getattr(errno, name)
    for name in "EACCES EPERM EROFS ENOSPC EDQUOT EEXIST ENOTDIR EISDIR ENOTEMPTY ELOOP ENAMETOOLONG EFBIG "
    "EMFILE ENFILE EIO ESTALE".split()
    if hasattr(errno, name)
}
"""What a disk answers when the user can fix it; any other error of a file is ours, and keeps its traceback."""


class Commands(TyperGroup):
    """The commands of the list, and those that studies bring along.

    Ctrl-C, SIGTERM or SIGHUP is answered with what was kept, a full or closed disk with its name.
    """

    listing = False
    """Whether only the names and first lines are wanted: nothing is imported for that."""

    def __init__(self, *, name: str | None = None, **attributes: Any) -> None:
        super().__init__(name=name, **attributes)
        self._path = "" if name == "beholder" else f"{name} "
        for path, entry in COMMANDS.items():
            if path.startswith(self._path) and " " not in (last := path.removeprefix(self._path)):
                self.commands[last] = TyperCommand(last, help=entry.summary)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command by name; while they are listed, only what the list says of it."""
        path = FORMERLY.get(self._path + cmd_name, self._path + cmd_name)
        if self.listing and path in COMMANDS:
            return super().get_command(ctx, cmd_name)
        if path in COMMANDS and (COMMANDS[path].target or is_group(path)):
            return import_module("beholder.cli.options").made(path)
        return None if self._path else import_module("beholder.cli.audit").study_command(cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names; those of plug-ins come last."""
        plugged = [] if self._path else [STUDIES[name] for name in STUDIES if not STUDIES.came_with_beholder(name)]
        return [*super().list_commands(ctx), *(study.command.name for study in plugged if study.command)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of commands."""
        self.listing = True
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
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
