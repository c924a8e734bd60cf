"""A run is a file: `beholder audit --config audit.toml`. Its keys are the command's own options; flags win over it.

Every run writes its `audit.toml`, so that it can be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from beholder.cli.options import WHAT
from beholder.core.errors import UsageError, masked
from beholder.core.files import write_whole
from beholder.core.read import read_text, read_toml

FILE = "audit.toml"
EACH_TIME = ("yes", "trust_remote_code", "allow_pickle")
"""What lets pictures out or code in is said on the command line each time: a file may come from somebody else."""
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
        help=f"TOML file with the options of this command by their long names; flags win over it. Every run writes "
        f"its own ({FILE}).",
        rich_help_panel=WHAT,
    ),
]


def _entries(context: typer.Context, path: Path) -> dict[str, Any]:
    entries, text = read_toml(path), read_text(path)
    known = {name: parameter for parameter in context.command.params for name in _names(parameter)}
    made = {}
    for key, value in entries.items():
        location = f"{path}, line {_line(text, key)}"
        key = "study" if key == "benchmark" else key  # as it was called before 1.0
        parameter = known.get(key.replace("_", "-"))
        if parameter is not None and parameter.name in EACH_TIME:
            raise UsageError(f"{location}: {key!r} cannot come from a file. Say it each time: {parameter.opts[0]}.")
        if parameter is None or parameter.name in LEFT_OUT:
            near = get_close_matches(key.replace("_", "-"), known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else f" It may say: {', '.join(sorted(known))}."
            raise UsageError(f"{location}: {key!r} is not known.{hint}")
        made[str(parameter.name)] = _checked(context, parameter, key, value, location)
    return made


def _checked(context: typer.Context, parameter: Any, key: str, value: Any, location: str) -> Any:
    """The value as the option takes it; one word where a list is meant is a list of one."""
    several = parameter.multiple if parameter.param_type_name == "option" else parameter.nargs == -1
    value = [value] if several and not isinstance(value, list) else value
    texts = [str(each) for each in value] if several else value if isinstance(value, bool) else str(value)
    if isinstance(value, dict) or (isinstance(value, list) and not several):
        raise UsageError(f"{location}: {key!r} takes one value, not {value!r}.")
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
    """The line on which an entry or a table of that name begins."""
    starts = (key, f'"{key}"', f"[{key}", f"[[{key}")
    return next((n for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith(starts)), 1)


def write_config(context: typer.Context, folder: Path) -> None:
    """What was chosen for this run, by the command line, by a file or by the environment, as `audit.toml`."""
    chosen = {
        _names(parameter)[0]: context.params[str(parameter.name)]
        for parameter in context.command.params
        if parameter.name in context.params and parameter.name not in LEFT_OUT and given(context, str(parameter.name))
    }
    write_whole(folder / FILE, masked(as_toml(chosen)).encode("utf-8", "replace"))


def given(context: typer.Context, name: str) -> bool:
    """Whether a parameter was chosen, by the command line, by a file or by the environment."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def as_toml(entries: Mapping[str, Any]) -> str:
    """Entries as TOML; a text is written as JSON writes it, which TOML reads too.

    >>> print(as_toml({"models": ("a",), "limit": 3, "compat": True}))
    models = ["a"]
    limit = 3
    compat = true
    """
    return "\n".join(f"{key} = {_value(value)}" for key, value in entries.items() if value is not None)


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value if isinstance(value, bool | int | float) else str(value), ensure_ascii=False)
