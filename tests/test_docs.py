"""The docs tell the truth: every link leads somewhere, every command exists with its options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from beholder.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path):
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert missing == []


def commands(page: Path) -> list[list[str]]:
    lines = [
        line.split(" #")[0]
        for block in BLOCK.findall(page.read_text())
        for line in block.replace("\\\n", " ").splitlines()
    ]
    return [shlex.split(line)[1:] for line in lines if line.startswith("beholder ")]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_every_command_and_option_exists(page: Path):
    for words in commands(page):
        command, context = typer.main.get_command(app), None
        while hasattr(command, "commands"):
            context = command.make_context("beholder", words, parent=context, resilient_parsing=True)
            _, command, words = command.resolve_command(context, words)
        known = {option for parameter in command.params for option in getattr(parameter, "opts", [])}
        assert {word for word in words if word.startswith("-")} <= known | {"--help"}, words


def test_every_make_target_in_the_docs_exists():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        used = {
            name
            for block in BLOCK.findall(page.read_text())
            for name in re.findall(r"^make (\w+)", block, re.MULTILINE)
        }
        assert used <= targets, page
