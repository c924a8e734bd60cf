"""`beholder data collect`: portraits of named people, with licence and attribution."""

from pathlib import Path

import typer

from beholder.chapter.numbers import number
from beholder.cli.console import bar, note, say
from beholder.cli.options import writable
from beholder.datasets.collect import Wiki, collect, read_names

NAMED = 20


def collect_command(
    people: Path = typer.Argument(..., help="A table with a column name; title, branch, gender and others are kept."),
    out: Path = typer.Option(..., "--out", "-o", help="Folder for people.csv, the pictures and kept answers."),
    contact: str = typer.Option(
        "", envvar="BEHOLDER_CONTACT", help="An address or page of yours, which Wikimedia asks every program to send."
    ),
    any_licence: bool = typer.Option(False, "--any-licence", help="Also take pictures whose licence is not free."),
    wiki: str = typer.Option("https://en.wikipedia.org", help="The Wikipedia whose pages are read."),
    wikidata: str = typer.Option("https://www.wikidata.org", help="Where groups are stated that the table lacks."),
    width: int = typer.Option(640, min=64, help="Width of the pictures in pixels."),
    pause: float = typer.Option(1.0, min=0, help="Seconds between two requests."),
    quiet: bool = False,
) -> None:
    """Run it again to go on where it stopped. Groups are those of the table or stated by Wikidata, never guessed."""
    names = read_names(people)
    writable(out, "--out")
    asked = Wiki(contact, out / ".answers", wiki.rstrip("/"), wikidata.rstrip("/"), pause)
    with bar("collecting", names.height, 0) as advance:
        table, without = collect(names, out, asked, free_only=not any_licence, width=width, advance=advance)
    if quiet:
        return
    say(f"{table.height} of {number(names.height, 'person', 'people')} have a picture.")
    for name, reason in list(without.items())[:NAMED]:
        say(f"  {name}: {reason}")
    if len(without) > NAMED:
        say(f"  … and {len(without) - NAMED} more in without.csv")
    unknown = table["gender"].null_count()
    if unknown:
        say(f"{number(unknown, 'person has', 'people have')} no gender in the table or in Wikidata.")
    note(f"Audit them: beholder audit MODEL --people {out / 'people.csv'}")
