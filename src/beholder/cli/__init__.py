"""The command line: `beholder audit`, `measure`, `compare` and so on; `commands` lists them."""

from __future__ import annotations

import sys
from importlib import metadata

import typer
from rich.markup import escape

from beholder.cli.commands import Commands
from beholder.cli.console import err
from beholder.core.catalog import load_plugins
from beholder.core.errors import BeholderError, first_line
from beholder.core.progress import ADVICE, ran_out

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
        typer.echo(f"beholder {metadata.version('beholder')}")
        raise typer.Exit


def main() -> None:
    """Run; an error of ours is a message for the user, never a traceback."""
    try:
        app()
    except BeholderError as error:
        err.print(f"[bold red]{type(error).__name__}:[/]", end=" ")
        err.print(str(error), markup=False, highlight=False, soft_wrap=True)  # commands in it can be copied
        sys.exit(2)
    except BaseException as error:  # polars panics with no Exception
        if isinstance(error, SystemExit | KeyboardInterrupt) or not ran_out(error):
            raise
        err.print(f"[bold red]OutOfMemory:[/] {escape(first_line(error))}.", highlight=False, soft_wrap=True)
        err.print(ADVICE, soft_wrap=True)
        sys.exit(2)
