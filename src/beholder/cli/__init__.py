"""The command line, a short module for each of `beholder audit`, `measure`, `compare` and so on."""

from __future__ import annotations

import sys

import typer
from polars.exceptions import PanicException
from rich.markup import escape

from beholder.cli import (
    audit,
    bench,
    calibrate,
    compare,
    data,
    export,
    gate,
    listing,
    measure,
    plan,
    replicate,
    report,
    runs,
    site,
    store,
    verify,
    view,
)
from beholder.cli.console import err
from beholder.cli.group import AllCommands
from beholder.cli.help import Command
from beholder.cli.study_options import with_options
from beholder.core.catalog import load_plugins
from beholder.core.errors import BeholderError, first_line
from beholder.core.progress import ADVICE, ran_out

app = typer.Typer(
    name="beholder",
    cls=AllCommands,
    help="Audit how a vision-language model sees people. Without a model and without data, `beholder audit` audits "
    "the embedded reference models on the embedded world, offline.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("audit", cls=Command)(with_options(audit.audit_command, ()))
app.command("measure", cls=Command)(with_options(measure.measure_command, ()))
app.command("compare", cls=Command)(with_options(compare.compare_command, ()))
app.command("gate", cls=Command)(gate.gate_command)
app.command("runs", cls=Command)(runs.runs_command)
app.command("verify", cls=Command)(verify.verify_command)
app.command("report", cls=Command)(report.report_command)
app.command("site", cls=Command)(site.site_command)
app.command("view", cls=Command)(view.view_command)
app.command("export", cls=Command)(export.export_command)
app.command("replicate", cls=Command)(replicate.replicate_command)
app.command("calibrate", cls=Command)(calibrate.calibrate_command)
app.command("plan", cls=Command)(plan.plan_command)
app.add_typer(listing.app, name="list")
app.add_typer(data.app, name="data")
app.add_typer(store.app, name="store")
app.add_typer(bench.app, name="bench")


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
        from importlib.metadata import version as installed

        typer.echo(f"beholder {installed('beholder')}")
        raise typer.Exit


def main() -> None:
    """Run; an error of ours is a message for the user, never a traceback."""
    try:
        app()
    except BeholderError as error:
        err.print(f"[bold red]{type(error).__name__}:[/]", end=" ")
        err.print(str(error), markup=False, highlight=False, soft_wrap=True)  # commands in it can be copied
        sys.exit(2)
    except (Exception, PanicException) as error:
        if not ran_out(error):
            raise
        err.print(f"[bold red]OutOfMemory:[/] {escape(first_line(error))}.", highlight=False, soft_wrap=True)
        err.print(ADVICE, soft_wrap=True)
        sys.exit(2)
