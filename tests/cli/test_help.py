"""`--help`: worth reading, and its examples can be typed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from beholder.cli import COMMANDS, app
from beholder.studies import STUDIES

RUN = CliRunner()
BROUGHT = [study.command for study in STUDIES.values() if study.command]
TYPED = [typed for each in (*COMMANDS.values(), *BROUGHT) for _, typed in each.examples]


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name in command.list_commands(CONTEXT) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(CONTEXT, name), (*path, name))


ROOT = typer.main.get_command(app)
CONTEXT = ROOT.make_context("beholder", [], resilient_parsing=True)
ALL = dict(commands(ROOT))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_option_says_what_it_means(path: tuple[str, ...]):
    silent = [param.name for param in ALL[path].params if not getattr(param, "help", "")]
    assert not silent
    assert RUN.invoke(app, [*path, "--help"]).exit_code == 0


def test_the_list_names_every_command_and_says_what_it_does():
    assert set(COMMANDS) == {" ".join(path) for path in ALL if path}
    for command in BROUGHT:
        assert command.help.startswith(COMMANDS[command.name].help)


@pytest.mark.parametrize("typed", TYPED)
def test_every_example_can_be_typed(typed: str):
    words = shlex.split(typed)[1:]
    path = max((path for path in ALL if tuple(words[: len(path)]) == path), key=len)
    context = ALL[path].make_context(path[-1], words[len(path) :])
    assert context.command is ALL[path]


def test_help_names_kinds_as_a_person_would():
    text = RUN.invoke(app, ["audit", "--help"]).output
    assert "list[" not in text
    assert "<bool>" not in text.replace("--help  -h      <bool>", "")
    assert "Examples" in text


def test_paragraphs_break_where_the_terminal_does_and_not_where_the_source_does():
    helps = [command.help for path, command in ALL.items() if path and not hasattr(command, "commands")]
    assert all(helps)
    assert not [said for said in helps if "\n" in said.replace("\n\n", "")]
