"""The studies' own options on the command line, and which studies a command line means."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beholder.cli.help import Command
from beholder.cli.options import WHAT
from beholder.core.errors import UsageError
from beholder.studies import STUDIES

if TYPE_CHECKING:
    from beholder.studies.study import Option, Study

Own = Mapping[str, object]  # the given options of the studies, by name


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


def chosen_studies(
    names: Sequence[str], own: Own, *, data: Path | None, dataset: str | None, models: Sequence[str] = ()
) -> list[Study]:
    """The named studies, the one that an option chooses, or what fits the data at hand; with their own options."""
    for study in STUDIES.values():
        if any(option.chooses and option.name in own for option in study.options):
            return [_chosen_by_option(study, names, own, dataset)]
    embedded = data is None and dataset is None and not models and not own
    studies = [STUDIES[name] for name in names or _defaults(data=data, dataset=dataset, embedded=embedded)]
    for study in studies:
        study.refuse_by_name()
    for name in own:
        takers = [study.name for study in STUDIES.values() if any(option.name == name for option in study.options)]
        if not {study.name for study in studies} & set(takers):
            choosers = [option.flag for taker in takers for option in STUDIES[taker].options if option.chooses]
            raise UsageError(_goes_with(name, takers, choosers))
    return [with_own_options(study, own) for study in studies]


def with_own_options(study: Study, own: Own) -> Study:
    """The study with those options that are its own."""
    mine = {option.name: own[option.name] for option in study.options if option.name in own}
    return study.configure(study, mine) if mine and study.configure else study


def _chosen_by_option(study: Study, names: Sequence[str], own: Own, dataset: str | None) -> Study:
    flag = next(option.flag for option in study.options if option.chooses)
    if names or not dataset:
        raise UsageError(f"{flag} defines its own study: add --dataset NAME or folder:PATH, and remove --benchmark.")
    return with_own_options(study, own)


def _goes_with(name: str, takers: Sequence[str], choosers: Sequence[str]) -> str:
    flag = f"--{name.replace('_', '-')}"
    named = [taker for taker in takers if not any(option.chooses for option in STUDIES[taker].options)]
    ways = [*choosers, *([f"--benchmark {' or '.join(named)}"] if named else [])]
    return f"{flag} goes with {' or '.join(ways)}."


def _defaults(*, data: Path | None, dataset: str | None, embedded: bool) -> list[str]:
    """What is asked when no study is named; of the embedded models in their world, the demo."""
    if embedded:
        return [study.name for study in STUDIES.values() if study.demo]
    wanted = ("always", "data") if data and dataset is None else ("always",)
    return [study.name for study in STUDIES.values() if study.default in wanted]
