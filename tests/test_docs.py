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
from beholder.metrics.calibration import READINGS
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
        assert {word for word in words if word.startswith("-")} <= options_of(words), words


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


PAPERS = {"APA": "apa", "P-FI": "pfi", "GRAS": "gras", "Perception": "perception", "Disparity": "disparity"}


def section(title: str) -> str:
    """A paper's part of the page of the papers."""
    page = (ROOT / "docs" / "fidelity.md").read_text()
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("title", PAPERS)
def test_every_row_of_the_page_of_the_papers_names_what_exists(title: str):
    """Metrics, charts, commands, options, data sets and files; a dash only where nothing was tried."""
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in section(title).splitlines()]
    rows = [row for row in rows if len(row) > 1 and row[0] != "In the paper" and not row[0].startswith("---")]
    assert len(rows) > 4
    name = PAPERS[title]
    folders = [ROOT / "src/beholder/studies" / each for each in (name, "public_figures")]
    code = "".join(file.read_text() for folder in folders for file in folder.glob("*.py"))
    metrics = {metric.name for metric in STUDIES[name].measures.metrics}
    assert len(metrics & set(re.findall(r"`([\w.]+)`", section(title)))) > 3
    for row in rows:
        here, tried = row[1:3]
        assert tried.split()[0].strip(":;,") in {"run", "printed", "worlds", "read", "no", "authors'", "from", "scipy"}
        assert (here == "–") == (tried == "no"), row
        for chart in re.findall(r"(?<!\*)\*([\w-]+)\*(?!\*)", here if "chart" in here else ""):
            assert f'"{chart}' in code or f'f"{chart.partition("-")[0]}-{{' in code, chart
        for given in re.findall(r"`([^`]+)`", here):
            assert exists(given, name, metrics, folders[0]), given


def exists(given: str, study: str, metrics: set[str], folder: Path) -> bool:
    """Whether what stands between backquotes is a metric, data set, file, command or option."""
    if given.startswith("--"):
        return options_of(["audit"]) >= {given.split()[0]}
    command = given.removeprefix("beholder ").split()
    if given.startswith("beholder ") or command[0] == "replicate":
        return options_of(command) >= {word for word in command if word.startswith("-")}
    named = {f"{study}.{given}"} if "." not in given and "…" not in given else {given}
    ending = given.removeprefix("…")
    known = metrics | set(DATASETS) | set(READINGS)
    return (
        bool(known & {*named, given})
        or (folder / given).is_file()
        or any(metric.endswith(ending) for metric in metrics if ending != given)
    )


def options_of(words: list[str]) -> set[str]:
    """The options of a command and of what it belongs to; raises if there is no such command."""
    command, context, found = typer.main.get_command(app), None, {"--help"}
    while True:
        found |= {option for parameter in command.params for option in getattr(parameter, "opts", [])}
        if not hasattr(command, "commands"):
            return found
        context = command.make_context("beholder", words, parent=context, resilient_parsing=True)
        _, command, words = command.resolve_command(context, words)
