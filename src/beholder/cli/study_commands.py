"""Commands that a study brings along: it reads files in place of a model, and leaves a run like any audit.

Annotations are evaluated where a function is made: they name the study's own texts.
"""

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beholder.cli import options as common
from beholder.cli.console import bar, show_run
from beholder.cli.study_options import built
from beholder.studies import STUDIES

if TYPE_CHECKING:
    from beholder.studies.study import Command


def study_command(name: str) -> Any:
    """The command of that name, or None."""
    commands = [study.command for study in STUDIES.values() if study.command and study.command.name == name]
    if not commands:
        return None
    command = built(name, _function(commands[0]), commands[0].options)
    command.show_examples(commands[0].examples)
    return command


def study_command_names() -> list[str]:
    """The names of all such commands."""
    return [study.command.name for study in STUDIES.values() if study.command]


def _function(command: "Command") -> Callable[..., None]:
    def run_command(
        files: Annotated[list[str], typer.Argument(help=command.files)],
        data: common.Data = None,
        output: common.RunOut = None,
        store: common.StoreFolder = None,
        draws: common.Draws = 2000,
        seed: common.Seed = 20260801,
        as_json: common.AsJson = False,
        quiet: common.Quiet = False,
        *,
        own: Mapping[str, object],
    ) -> None:
        # Imported here so that other commands start without it.
        from beholder._run import Run
        from beholder._run_folder import file_stamps, finish, run_folder
        from beholder.core.digests import digest
        from beholder.core.files import write_whole
        from beholder.core.progress import silent
        from beholder.core.record import Record
        from beholder.report.page import write_page
        from beholder.studies.study import CommandOptions, MeasureOptions, load

        started = time.monotonic()
        options = CommandOptions(
            common.store_folder(store),
            data,
            MeasureOptions(draws=draws, seed=seed),
            silent if quiet else partial(bar, unit=command.unit),
            own,
        )
        chosen = {name: str(value) for name, value in own.items()}
        stamps = file_stamps([Path(file) for file in files])
        begun = Record(digest=digest([command.name, files, stamps, str(data), draws, seed, chosen]))
        with run_folder(begun, common.writable(output, "--out"), command.name) as (folder, _):
            measured = load(command.run)(files, options)
            run = Run(measured.results, measured.record, folder=folder)
            run.record.created, run.record.digest, run.record.command = begun.created, begun.digest, sys.argv[1:]
            run.record.seconds = round(time.monotonic() - started, 1)
            run.save(folder)
            for name, data_ in measured.files.items():
                write_whole(folder / name, data_)
            run.save_findings(folder)
            write_page(run.report, folder)
            finish(run.record, folder)
        show_run(run, as_json=as_json, quiet=quiet)

    run_command.__doc__ = command.help
    return run_command
