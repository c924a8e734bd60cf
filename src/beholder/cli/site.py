"""`beholder site`: many runs and the published tables as a static site."""

from __future__ import annotations

from pathlib import Path

import typer

from beholder.cli.console import err


def site_command(
    runs: list[Path] = typer.Argument(None, help="Run folders; none for the published tables alone."),
    output: Path = typer.Option(Path("beholder-site"), "--out", "-o", help="Folder to write the site into."),
    rules: Path = typer.Option(None, help="TOML file of gate rules; each run then shows whether it passes."),
    published: bool = typer.Option(True, help="Show the published tables of the studies beside the runs."),
    title: str = typer.Option("How models see people", help="Title of the site."),
) -> None:
    """Build a static site: models against questions, a page for each, and a scatter of any two numbers.

    Any web server can serve the folder. It holds the runs' reports and numbers, and no photograph.
    """
    # Imported here so that other commands start without it.
    from beholder._gate import read_rules
    from beholder.site.build import build_site

    index = build_site(runs or [], output, rules=read_rules(rules) if rules else (), published=published, title=title)
    err.print(f"Site: {index.resolve()}", markup=False, soft_wrap=True)
