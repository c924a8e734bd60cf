"""The studies' own options on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beholder.cli.help import Command
from beholder.cli.options import WHAT
from beholder.studies import STUDIES

if TYPE_CHECKING:
    from beholder.studies.study import Option


def study_options() -> list[Option]:
    """The options of all studies; one that several share is there once, with the first one's help."""
    options = [option for study in STUDIES.values() for option in study.options]
    return list({option.name: option for option in reversed(options)}.values())[::-1]


def with_options(function: Callable[..., None], options: Sequence[Option]) -> Callable[..., None]:
    """A command whose parameter `own` is a mapping, with a command-line option for each of its keys."""
    signature = inspect.signature(function, eval_str=True)

    def command(**given: object) -> None:
        used = {option.name: given.pop(option.name) for option in options}
        function(**given, own={name: value for name, value in used.items() if value not in (None, [], False)})

    kept = [parameter for parameter in signature.parameters.values() if parameter.name != "own"]
    parameters = [*kept, *(_parameter(option) for option in options)]
    vars(command)["__signature__"] = signature.replace(parameters=parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    vars(command)["takes_study_options"] = function
    return command


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = list[option.kind] | None if option.several else option.kind | None  # type: ignore[name-defined]
    if option.kind is bool:
        kind = bool
    annotation = Annotated[kind, typer.Option(option.flag, help=option.help, rich_help_panel=WHAT)]
    default = False if option.kind is bool else None
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def built(name: str, function: Callable[..., None], options: Sequence[Option]) -> Any:
    """A command with these options, as the command line takes it."""
    app = typer.Typer(add_completion=False)
    app.command(name, cls=Command)(with_options(function, options))
    return typer.main.get_command(app)
