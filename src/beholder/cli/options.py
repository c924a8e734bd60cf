"""The options of the commands, made from their declarations, and files of them: `beholder audit --config audit.toml`.

Every run writes its `audit.toml`, so that it can be repeated. Its keys are the long names of options; flags win.
"""

import inspect
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import typer
from typer.models import ParameterInfo

from beholder._options import AuditOptions
from beholder.cli import COMMANDS, Command, Commands, is_group
from beholder.core.errors import UsageError, masked
from beholder.core.files import Place, RemotePath, write_whole
from beholder.core.options import OUTPUT, WHAT, Option, declared_options
from beholder.core.read import read_text, read_toml
from beholder.core.types import Entry, Fields
from beholder.datasets import DATASETS
from beholder.studies import AUDITED, STUDIES

FolderOrNone = TypeVar("FolderOrNone", Place, Path | None)
Function = Callable[..., None]
NAMES = ", ".join(AUDITED)
KEYWORD = inspect.Parameter.KEYWORD_ONLY
LATEST = Path("runs/latest")
OPTIONS = declared_options(AuditOptions)
STUDY = f"One of {NAMES} (repeatable). Default: the studies that fit the data. `beholder list studies` describes them."
LOG = "Log the headline numbers to wandb, mlflow or tensorboard too (repeatable)."
MORE = "Print every sentence and the tables, and more messages."
OTHERS = (
    Option("study", STUDY, str, several=True, flags=("--study", "-s")),
    Option("log", LOG, str, several=True, metavar="TRACKER", panel=OUTPUT),
    Option("as_json", "Print the results as JSON.", bool, flags=("--json",), panel=OUTPUT),
    Option("quiet", "No progress, no summary.", bool, flags=("--quiet", "-q"), panel=OUTPUT),
    Option("verbose", MORE, bool, flags=("--verbose", "-v"), panel=OUTPUT),
)
SHARED = OPTIONS | {each.name: each for each in OTHERS}
"""A command's parameter of one of these names, without a declaration of its own, is that option."""


def takes(
    *names: str, study_options: bool = True, others: Mapping[str, Option] | None = None
) -> Callable[[Function], Function]:
    """Mark a command: its parameter `options` is a mapping of these options, of others, and of the studies' own."""

    def marked(function: Function) -> Function:
        vars(function)["takes"] = ([*(SHARED[name] for name in names), *(others or {}).values()], study_options)
        return function

    return marked


def study_options() -> list[Option]:
    """The options of all studies; one that several share is there once, with the first one's help."""
    options = [option for study in STUDIES.values() for option in study.options]
    return list({option.name: option for option in reversed(options)}.values())[::-1]


def made(path: str) -> Any:
    """A command or a group of the list, with its options."""
    entry, name = COMMANDS[path], path.rpartition(" ")[2]
    module, _, attribute = entry.run.partition(":")
    function: Any = getattr(import_module(f"beholder.cli.{module}"), attribute) if entry.run else None
    if is_group(path):
        group = typer.Typer(name=name, cls=Commands, help=entry.help, no_args_is_help=not function)
        if function:
            group.callback(invoke_without_command=True, help=entry.help)(_with_options(function, (), entry.options))
        return typer.main.get_group(group)
    options, of_studies = vars(function).get("takes", ((), False))
    command = built(name, function, [*options, *(study_options() if of_studies else ())], entry.options)
    command.describe(f"{entry.help}\n\n{function.__doc__ or ''}", entry.examples)
    return command


def built(
    name: str, function: Function, options: Sequence[Option], words: Mapping[str, Fields] = MappingProxyType({})
) -> Any:
    """A command with these options, as the command line takes it; `words` are of its other parameters."""
    app = typer.Typer(add_completion=False)
    app.command(name, cls=Command)(_with_options(function, options, words))
    return typer.main.get_command(app)


def _with_options(function: Function, options: Sequence[Option], words: Mapping[str, Fields]) -> Function:
    """The function as a command; its parameter `options` gets the given ones by name."""
    signature = inspect.signature(function, eval_str=True)

    def command(**given: object) -> None:
        chosen = {option.name: given.pop(option.name) for option in options}
        function(**given, **({"options": chosen} if "options" in signature.parameters else {}))

    parameters = []
    for each in (each for each in signature.parameters.values() if each.name != "options"):
        declared = hasattr(each.annotation, "__metadata__") or isinstance(each.default, ParameterInfo)
        if each.name in words:
            parameters.append(_told(each, words[each.name]))
        else:
            shared = each.name in SHARED and not declared
            parameters.append(_parameter(SHARED[each.name], bool(options)) if shared else each.replace(kind=KEYWORD))
    parameters += [_parameter(option) for option in options]
    vars(command)["__signature__"] = signature.replace(parameters=parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _told(parameter: inspect.Parameter, words: Fields) -> inspect.Parameter:
    """A command's own parameter, with the words that the list has for it."""
    rest = {name: said for name, said in words.items() if name not in ("argument", "flags")}
    declare: Any = typer.Argument if words.get("argument") else typer.Option
    declared = declare(*words.get("flags", ()), **rest)
    return parameter.replace(kind=KEYWORD, annotation=Annotated[parameter.annotation, declared])


def _parameter(option: Option, panels: bool = True) -> inspect.Parameter:
    kind: Any = option.kind
    if option.several:
        kind = list[option.kind] | None  # type: ignore[name-defined]
    elif option.default is None and kind is not bool:
        kind = kind | None
    same = {name: getattr(option, name) for name in ("help", "min", "max", "envvar", "metavar")}
    info = typer.Option(*(option.flags or (option.flag,)), rich_help_panel=option.panel if panels else None, **same)
    default = bool(option.default) if kind is bool else option.default
    return inspect.Parameter(option.name, KEYWORD, annotation=Annotated[kind, info], default=default)


def run_or_latest(folder: Path) -> Path:
    """A run folder; where none was named, the run that ended last."""
    if folder == LATEST and not folder.exists():
        raise UsageError("There is no run in runs/latest. Make one with `beholder audit`, or name a run folder.")
    return folder


RunFolder = Annotated[
    Path, typer.Argument(metavar="RUN", callback=run_or_latest, help="A run folder. Default: runs/latest.")
]


def writable(folder: FolderOrNone, option: str) -> FolderOrNone:
    """The folder, if it can be written, which is tried without making it; a store that can only be read passes."""
    if folder is None or isinstance(folder, RemotePath):
        return folder
    try:
        there = next(place for place in (folder, *folder.resolve().parents) if place.exists())
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name that is too long
        reason = getattr(error, "strerror", None) or "the name leads in a circle or cannot be used"
        raise UsageError(f"{option} {folder}: {reason}. Name another folder.") from error
    if not there.is_dir():
        raise UsageError(f"{option} {folder}: {there} is a file, not a folder. Name another one.")
    if not os.access(there, os.W_OK | os.X_OK) and not (option == "--store" and there == folder):
        raise UsageError(f"{option} {folder}: {there} is not writable. Name another folder.")
    return folder


# Files of options

FILE = "audit.toml"
# What lets pictures out or code in is said on the command line each time: a file may come from somebody else.
EACH_TIME = ("allow_upload", "trust_remote_code", "allow_pickle")
NAMING = ("models", "dataset")  # options whose value may name a folder, after a prefix such as `folder:`
SCHEME = re.compile(r"([a-z]+:)?(.*)", re.DOTALL)
LEFT_OUT = (*EACH_TIME, "config", "quiet", "verbose", "as_json", "help")


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take the file's entries as the defaults of the command's options."""
    if path is not None:
        context.default_map = {**(context.default_map or {}), **_entries(context, path)}
    return path


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        is_eager=True,
        callback=read_config,
        help=f"TOML file with the options of this command by their long names; paths in it begin in its folder, and "
        f"flags win over it. Every run writes its own ({FILE}).",
        rich_help_panel=WHAT,
    ),
]


def _entries(context: typer.Context, path: Path) -> Entry:
    entries, text, here = read_toml(path), read_text(path), path.resolve().parent
    known = {name: parameter for parameter in context.command.params for name in _names(parameter)}
    made = {}
    for key, value in entries.items():
        location = f"{path}, line {_line(text, key)}"
        key = "study" if key == "benchmark" else key  # as it was called before 1.0
        parameter = known.get(key.replace("_", "-"))
        if parameter is not None and (parameter.name in EACH_TIME or _of_a_cluster(parameter.name, value)):
            raise UsageError(f"{location}: {key!r} cannot come from a file. Say it each time: {parameter.opts[0]}.")
        if parameter is None or parameter.name in LEFT_OUT:
            near = get_close_matches(key.replace("_", "-"), known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It may say: {', '.join(sorted(known))}."
            raise UsageError(f"{location}: {key!r} is not known.{hint}")
        texts = _checked(context, parameter, key, value, location)
        made[str(parameter.name)] = _moved(parameter, texts, here, Path.cwd())
    return made


def _moved(parameter: Any, value: Any, start: Path, end: Path) -> Any:
    """An option's value whose paths begin in one folder, as it is written in another."""
    if isinstance(value, list | tuple):
        return [_moved(parameter, each, start, end) for each in value]
    paths = {option.name for option in (*SHARED.values(), *study_options()) if option.kind is Path}
    sure = parameter.name in {*paths, "store"}
    return moved(str(value), start, end, sure=sure) if value and (sure or parameter.name in NAMING) else value


def moved(value: str, start: Path, end: Path, *, sure: bool = False) -> str:
    """A path that begins in one folder, as it is written in another; what is no path, or may be none, stays."""
    prefix, text = SCHEME.match(value).groups("") if not sure else ("", value)  # type: ignore[union-attr]
    known = text in DATASETS or text == "null" or os.path.isabs(text) or text.startswith("~")
    if start == end or known or "://" in value or "\0" in text:
        return value
    there = (start / text).exists() or (sure and not (end / text).exists())  # what lies in neither is yet to be made
    return prefix + os.path.relpath(start / text, end) if there else value


def _of_a_cluster(name: str | None, value: object) -> bool:
    """Whether an option names a cluster of Ray, which can run code here."""
    return name == "engine" and str(value) not in ("local", "ray")


def _checked(context: typer.Context, parameter: Any, key: str, value: Any, location: str) -> Any:
    """The value as the option takes it; one word where a list is meant is a list of one."""
    several = parameter.multiple if parameter.param_type_name == "option" else parameter.nargs == -1
    value = [value] if several and not isinstance(value, list) else value
    texts = [str(each) for each in value] if several else value if isinstance(value, bool) else str(value)
    if any(isinstance(each, dict | list) for each in (value if several else [value])):
        form = "a list of plain values" if several else "one value"
        raise UsageError(f"{location}: {key!r} takes {form}, not {value!r}.")
    try:
        parameter.process_value(context, texts)
    except typer.BadParameter as error:
        raise UsageError(f"{location}: {key!r} is {value!r}. {error.message}.") from error
    return texts


def _names(parameter: Any) -> list[str]:
    """What an entry may be called: the option's long names, or the argument's name."""
    if parameter.param_type_name == "option":
        return [name.removeprefix("--") for name in parameter.opts if name.startswith("--")]
    return [str(parameter.name)]


def _line(text: str, key: str) -> int:
    starts = (key, f'"{key}"', f"[{key}", f"[[{key}")
    return next((n for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith(starts)), 1)


def write_config(context: typer.Context, folder: Path) -> None:
    """What was chosen for this run, by command line, file or environment, as `audit.toml`; its paths begin there."""
    here, home = Path.cwd(), folder.resolve()
    chosen = {
        _names(parameter)[0]: _moved(parameter, context.params[str(parameter.name)], here, home)
        for parameter in context.command.params
        if parameter.name in context.params
        and parameter.name not in LEFT_OUT
        and given(context, str(parameter.name))
        and not _of_a_cluster(parameter.name, context.params[str(parameter.name)])
    }
    lines = "\n".join(f"{key} = {as_toml(value)}" for key, value in chosen.items() if value is not None)
    write_whole(folder / FILE, masked(lines).encode("utf-8", "replace"))


def given(context: typer.Context, name: str) -> bool:
    """Whether a parameter was chosen, by the command line, by a file or by the environment."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def as_toml(value: object) -> str:
    """A value as TOML; a text is written as JSON writes it, which TOML reads too."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    return json.dumps(value if isinstance(value, bool | int | float) else str(value), ensure_ascii=False)
