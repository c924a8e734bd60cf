"""Check the docs: links, commands and options exist, every page can be reached, the README has the demo's numbers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import polars as pl
import pytest
import typer
from choices_list import markdown_choices

from beholder.cli import app
from beholder.datasets import DATASETS
from beholder.glasshouse.planted import implied_bias_ratio
from beholder.studies import STUDIES

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path):
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert missing == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page as GitHub names them: headings without punctuation, blanks as hyphens."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_an_anchor_finds_it(page: Path):
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text())
    missing = [(file, anchor) for file, anchor in links if anchor not in anchors(page.parent / file if file else page)]
    assert missing == []


def test_every_page_is_reached_from_the_readme():
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        linked = [(page.parent / link).resolve() for link in LINK.findall(page.read_text())]
        ahead += [each for each in linked if each.suffix == ".md" and each not in reached]
    assert [page.name for page in PAGES if page not in reached] == []


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


def test_the_list_of_pages_has_them_all():
    listed = {(ROOT / "docs" / link).resolve() for link in LINK.findall((ROOT / "docs" / "README.md").read_text())}
    assert {page for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"} <= listed


def test_the_page_of_data_sets_has_them_all():
    page = (ROOT / "docs" / "data.md").read_text()
    for source in DATASETS.values():
        assert f"`{source.name}`" in page or f"`-{source.name.partition('-')[2]}`" in page
        assert f"{source.images:,}" in page
        assert source.embedded or f"  {source.directory or source.name}/" in page


def test_every_make_target_in_the_docs_exists():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        used = {
            name
            for block in BLOCK.findall(page.read_text())
            for name in re.findall(r"^make ([\w-]+)", block, re.MULTILINE)
        }
        assert used <= targets, page


def test_the_ratios_in_the_readme_are_those_of_the_demo():
    """`make demo` prints them; its golden copy holds them."""
    demo = pl.read_parquet(ROOT / "tests" / "golden" / "demo.parquet")
    ratios = demo.filter(metric="apa.bias_ratio", model="glasshouse/contrastive").to_dicts()
    lines = [
        f"  | {row['subset']} | {implied_bias_ratio(row['subset'][:-1]):.2f} | {row['value']:.2f} "
        f"| {row['low']:.2f}–{row['high']:.2f} |"
        for row in ratios
    ]
    assert "\n".join(lines) in (ROOT / "README.md").read_text()


def test_the_choices_that_no_paper_states_are_those_of_the_code():
    """`python tools/choices_list.py` prints them."""
    page = (ROOT / "docs" / "fidelity.md").read_text()
    listed = page.partition("<!-- choices -->\n")[2].partition("\n<!-- end -->")[0]
    assert listed == markdown_choices()
    assert all(f"**{study.short}** (" in listed for study in STUDIES.values() if study.plans.printed)


def test_every_metric_on_the_page_of_the_papers_exists():
    page = (ROOT / "docs" / "fidelity.md").read_text()
    sections = {"APA": "apa", "P-FI": "pfi", "GRAS": "gras", "Perception": "perception", "Disparity": "disparity"}
    for title, name in sections.items():
        part = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        known = {metric.name for metric in STUDIES[name].measures.metrics}
        named = set(re.findall(rf"`({name}\.[a-z_0-9]+)`", part))
        assert named <= known, named - known
        assert len(named) > 3
