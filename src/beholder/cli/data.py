"""`beholder list` and `beholder data`: what Beholder knows by name, which data are here, and how to get them."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from beholder._options import AuditOptions
from beholder.chapter.numbers import Result, number
from beholder.cli.console import bar, err, note, out, say, say_json, show
from beholder.cli.options import takes, writable
from beholder.cli.plan import Fit, fitting_studies
from beholder.comparison.groups import people_of
from beholder.core.errors import NO_FILE, UnknownName, UsageError
from beholder.core.files import write_whole
from beholder.core.read import as_csv
from beholder.core.types import Fields
from beholder.cost.subject import sized
from beholder.datasets import DATASETS, OWN_DATA, data_root, load_dataset
from beholder.datasets.collect import Wiki, collect, read_names
from beholder.datasets.croissant import croissant
from beholder.datasets.dataset import Dataset, DatasetSource, is_present, with_bins
from beholder.datasets.faces import mend_fairface
from beholder.datasets.labels import unclear_labels, without_labels
from beholder.datasets.selection import MOST_GROUPS, parse_bins, sample
from beholder.datasets.settings import choices, parse_settings
from beholder.datasets.survey import Survey, damaged_images, datasheet, survey
from beholder.models.catalog import FAMILIES, FOLDER_FORMS, architectures, count_of, selected, short
from beholder.models.load import reference_models
from beholder.models.spec import this_machine
from beholder.prompts.prompt_set import read_prompts
from beholder.studies import STUDIES
from beholder.studies.inquiry import default_dataset, opened, with_study_options

NAMED = 10  # images that are listed of each kind; `--json` has them all
LISTED = 20  # damaged pictures, or people without one, that are listed where nothing else is
# Beyond these, a difference cannot be, or is too large to expect: groups four deviations apart hardly overlap.
LARGEST = {"probability": 1.0, "average precision": 1.0, "standard deviations": 4.0}
SHOWN = dict(metric="subset", comparison="concept", images="n", smallest="value", unit="unit", note="note")
UNITS = {"1 − b": "below a ratio of 1"}
Source = Annotated[str, typer.Argument(metavar="NAME", help="A data set's name, folder:PATH, hf:NAME or wds:URI.")]


READ = ("data", "settings", "image_column", "map", "keep_codes")  # how a data set is read


@takes(*READ, study_options=False)
def check(name: Source, as_json: bool = False, *, options: Fields) -> None:
    """Exit status 1 if an image cannot be read, values look alike, or no study fits."""
    dataset, seen = surveyed(name, options)
    unclear = unclear_labels(dataset, [column.name for column in seen.columns if column.role == "unclear"])
    found = checked(dataset, seen, fitting_studies(without_labels(dataset, unclear)))
    found["unclear"] = {name: {"values": each.said, "suggested": each.options} for name, each in unclear.items()}
    if as_json:
        say_json(found)
    else:
        say("\n".join(report_lines(found)))
    if unclear or found["unreadable"] or not any(study["fits"] for study in found["studies"]):
        raise typer.Exit(1)


def surveyed(name: str, options: Fields) -> tuple[Dataset, Survey]:
    """The images that are there, and a look at every one of them."""
    dataset = opened(name, AuditOptions.of(**options)).present()
    with bar(f"looking at {name}", len(dataset), 0) as advance:
        return dataset, survey(dataset, advance)


def checked(dataset: Dataset, seen: Survey, fits: Sequence[Fit]) -> Result:
    """Everything that the check found, as JSON."""
    planned = [(fit.study, row) for fit in fits if fit.detectable is not None for row in fit.detectable.to_dicts()]
    return {
        "name": dataset.name,
        "images": seen.images,
        "notes": list(dataset.notes),
        "columns": [column._asdict() for column in seen.columns],
        "groups": {name: dict(counts.drop_nulls("group").rows()) for name, counts in seen.groups.items()},
        "crossings": [
            {"columns": list(pair), "cells": counts.rename({"first": pair[0], "second": pair[1]}).to_dicts()}
            for pair, counts in seen.crossings.items()
        ],
        "look_alikes": seen.alike,
        "unreadable": seen.damaged,
        "transparent": seen.transparent,
        "studies": [{name: getattr(fit, name) for name in ("study", "fits", "why")} for fit in fits],
        "can_show": [{"study": name, **{key: row[column] for key, column in SHOWN.items()}} for name, row in planned],
    }


def report_lines(found: Result) -> Iterator[str]:
    """The same for a person."""
    bad = found["unreadable"]
    lost = sum(reason == NO_FILE for reason in bad.values())
    faults = [f"{number(lost, 'row')} without a picture"] * bool(lost)
    faults += [f"{len(bad) - lost:,} cannot be read"] * (len(bad) > lost)
    state = ", ".join(faults) or "all can be read"
    yield f"{found['name']}: {found['images']:,} images, {state}."
    yield from (f"  {image}: {reason}" for image, reason in list(bad.items())[:NAMED])
    yield from _more(len(bad))
    if clear := found["transparent"]:
        yield f"  {len(clear):,} are transparent ({clear[0]}): models see white there, open_clip the hidden colour"
    yield from (f"  note: {note}" for note in found["notes"])
    yield from ("", "Columns")
    width = max((len(column["name"]) for column in found["columns"]), default=0)
    for column in found["columns"]:
        missing = f"; missing for {column['missing']:,}" if column["missing"] else ""
        yield f"  {column['name']:<{width}}  {column['role']:<8} {column['how']}{missing}"
    if not found["columns"]:
        yield "  none: there are no attributes to compare people by"
    for name, unclear in found["unclear"].items():
        yield from ("", f"{name} is not compared: {unclear['values']}. To map them, for example:")
        yield from (f"  {option}" for option in unclear["suggested"])
        yield "  or, if they are meant as different groups: --keep-codes"
    if found["crossings"]:
        yield from ("", "Crossings")
    for crossing in found["crossings"]:
        (first, second), cells = crossing["columns"], sorted(crossing["cells"], key=lambda cell: cell["count"])
        numbers = f"{len(cells)} cells of {cells[0]['count']:,} to {cells[-1]['count']:,} images"
        yield f"  {first} × {second}: {numbers}; the fewest: {cells[0][first]} × {cells[0][second]}"
    alike = found["look_alikes"]
    if alike:
        yield from ("", f"{len(alike):,} images look like an earlier one; copies make intervals too narrow")
        yield from (f"  {image} looks like {first}" for image, first in list(alike.items())[:NAMED])
        yield from _more(len(alike))
    yield from ("", "Studies")
    for study in found["studies"]:
        yield f"  {study['study']:<11} {'fits' if study['fits'] else 'does not fit'}: {study['why']}"
    if found["can_show"]:
        yield from ("", "Smallest difference that these numbers show (4 of 5 times, at 5 % after correction)")
    for row in found["can_show"]:
        value, unit = row["smallest"], row["unit"]
        none = value is None or value > LARGEST.get(unit, math.inf)
        size = "none of a likely size can be shown" if none else f"{value:.2f} {UNITS.get(unit, unit)}"
        yield f"  {row['metric']} by {row['comparison']}: {size} ({row['images']:,} images)"


def _more(count: int) -> Iterator[str]:
    if count > NAMED:
        yield f"  … and {count - NAMED:,} more; --json lists them all"


NAME = typer.Argument(..., help="A data set's name; `beholder data list` has them all.")


def list_command(data: Path | None = None, as_json: bool = False) -> None:
    root = data_root(data)
    rows: list[dict[str, object]] = []
    for source in DATASETS.values():
        here = images_here(source, root)
        state = "complete" if here >= source.images else "partly here" if here else "not here"
        facts = {"images": source.images, "here": here, "state": "embedded" if source.embedded else state}
        about = {"licence": source.licence, "origin": source.origin}
        rows.append({"name": source.name, "title": source.title, **facts, **about})
    show(rows, as_json)


def images_here(source: DatasetSource, root: Path | None) -> int:
    """How many of a data set's images lie in its folder."""
    if source.embedded:
        return source.images
    if root is None or not source.folder(root).is_dir():
        return 0
    if source.count is not None:
        return source.count(source.folder(root))
    return sum(map(is_present, source.open(root).table["uri"]))


def where(name: str = NAME, data: Path | None = None) -> None:
    source, root = DATASETS[name], data_root(data)
    if source.embedded:
        out.print(f"{name} is drawn by Beholder itself: it needs no folder.")
        return
    folder = source.folder(root or Path("DIR"))
    here = images_here(source, root)
    state = f"{here:,} of {source.images:,} images are there" if folder.is_dir() else "is not there"
    say(f"{folder} ({state})")
    if not folder.is_dir():
        say(source.how_to_get(root or Path("DIR")))


def settings_command(name: str, as_json: bool = False) -> None:
    scheme = name.partition(":")[0]
    known = choices(scheme) if f"{scheme}:" in OWN_DATA else DATASETS[name].settings
    rows: list[dict[str, object]] = [{"setting": each, **setting._asdict()} for each, setting in known.items()]
    if rows or as_json:
        show(rows, as_json)
    else:
        out.print(f"{name} is read in one way only.", markup=False)


@takes(*READ, study_options=False)
def verify(name: Source, as_json: bool = False, *, options: Fields) -> None:
    dataset = opened(name, AuditOptions.of(**options))
    with bar(f"opening {name}", len(dataset), 0) as advance:
        damaged = damaged_images(dataset, advance)
    if as_json:
        say_json({"name": name, "images": len(dataset), "notes": list(dataset.notes), "damaged": damaged})
    else:
        say(f"{name}: {len(dataset)} images in the table, {len(dataset) - len(damaged)} can be read.")
        notes = [f"note: {note}" for note in dataset.notes]
        reasons = [f"{count} × {reason}" for reason, count in Counter(damaged.values()).most_common(5)]
        for line in (*notes, *reasons, *(f"{image}: {reason}" for image, reason in list(damaged.items())[:LISTED])):
            say(f"  {line}")
    if damaged:
        raise typer.Exit(1)


@takes(*READ, study_options=False)
def card(name: Source, write_to: Path | None = None, as_croissant: bool = False, *, options: Fields) -> None:
    dataset, seen = surveyed(name, options)
    text = croissant(name, dataset, seen) if as_croissant else datasheet(dataset, seen, DATASETS.get(name))
    if write_to:
        write_whole(write_to, text.encode())
        note(f"The card of {name} is at {write_to}.")
    else:
        out.print(text, markup=False, highlight=False, soft_wrap=True, end="")


def select_command(
    name: Source,
    by: list[str] = typer.Option(..., "--by", help="An attribute to balance over (repeatable): all are crossed."),
    each: int | None = None,
    count: int | None = None,
    keep: list[str] | None = None,
    write_to: Path | None = None,
    data: Path | None = None,
    settings: list[str] | None = None,
    bins: list[str] | None = None,
    person: str | None = None,
    seed: int | None = None,
    as_json: bool = False,
) -> None:
    """The same seed chooses the same images. Nobody's second picture is taken before everybody's first."""
    if (each is None) == (count is None):
        raise UsageError("Say how many: --each N images of every cell, or --count N in all.")
    dataset = with_bins(opened(name, AuditOptions.of(data=data, settings=settings)), parse_bins(bins or ()))
    by = list(dict.fromkeys(dataset.attribute(attribute).name for attribute in by))
    for attribute, values in parse_settings(keep or ()).items():
        column = dataset.attribute(attribute).cast(pl.String)
        if unknown := [value for value in values.split(",") if value not in column]:
            raise UnknownName(f"value of {attribute}", unknown[0], column.drop_nulls().unique().sort().to_list())
        dataset = replace(dataset, table=dataset.table.filter(column.is_in(values.split(","))))
    for attribute in by:
        if (groups := dataset.table[attribute].drop_nulls().n_unique()) > MOST_GROUPS:
            raise UsageError(f"{attribute} has {groups:,} values, which are no groups. Make some: --bins {attribute}=…")
    people = people_of(dataset.table, person).codes
    drawn = sample(dataset.table, by, each=each, count=count, people=people, seed=20260801 if seed is None else seed)
    chosen, sizes = dataset.table[drawn.rows], drawn.cells["chosen"].to_list() or [0]
    short = drawn.cells.filter(pl.col("short") > 0)
    if write_to:
        write_whole(write_to, as_csv(chosen.rename({"uri": "image"})))
    if as_json:
        say_json({"images": chosen["image_id"].to_list(), "cells": drawn.cells.to_dicts(), "seed": seed})
        return
    of_each = f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    say(f"{len(chosen):,} of {len(dataset):,} images; {number(len(sizes), 'cell')} of {of_each} images.")
    if drawn.unlabelled:
        say(f"{drawn.unlabelled:,} images lack one of these labels and are left out.")
    say("Every cell is full." if short.is_empty() else f"{number(short.height, 'cell')} could not be filled:")
    show(short.to_dicts(), as_json=False) if short.height else None
    if write_to:
        note(f"The list is at {write_to}. Audit it: --dataset folder:{write_to} --set outside=allow")


def mend(name: str = "fairface", data: Path | None = None) -> None:
    root = data_root(data)
    if name != "fairface" or root is None:
        raise UsageError("Only FairFace's labels can be mended: beholder data mend fairface --data DIR.")
    for line in mend_fairface(root / "fairface") or ["Nothing to mend: every age is an age band."]:
        say(line)


def fetch(name: str = NAME, data: Path | None = None) -> None:
    source, root = DATASETS[name], data_root(data)
    if source.embedded:
        err.print(f"{name} is drawn by Beholder itself: there is nothing to fetch.")
        return
    if root is None:
        raise UsageError("Name a folder with --data DIR (or set BEHOLDER_DATA).")
    if source.fetch is None:
        raise UsageError(f"{name} may not be fetched by a program.\n{source.how_to_get(root)}")
    source.fetch(source.folder(root))
    note(f"{name} is at {source.folder(root)}; check it with: beholder data verify {name}")


def collect_command(
    people: Path,
    out: Path = typer.Option(..., "--out", "-o", help="Folder for people.csv, the pictures and kept answers."),
    contact: str = typer.Option(
        "", envvar="BEHOLDER_CONTACT", help="An address or page of yours, which Wikimedia asks every program to send."
    ),
    any_licence: bool = False,
    wiki: str = "https://en.wikipedia.org",
    wikidata: str = "https://www.wikidata.org",
    width: int = 640,
    pause: float = 1.0,
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
    for name, reason in list(without.items())[:LISTED]:
        say(f"  {name}: {reason}")
    if len(without) > LISTED:
        say(f"  … and {len(without) - LISTED} more in without.csv")
    unknown = table["gender"].null_count()
    if unknown:
        say(f"{number(unknown, 'person has', 'people have')} no gender in the table or in Wikidata.")
    note(f"Audit them: beholder audit MODEL --people {out / 'people.csv'}")


FIELDS = "studies family adapter source unpinned parameters training_pairs released licence".split()


def form_rows() -> list[dict[str, object]]:
    """The forms that the name of a model can take, beside the models of the studies."""
    own = [(name, name.partition("/")[2], "a reference model that comes with Beholder") for name in reference_models()]
    folders = [(form, "any", what) for form, what in FOLDER_FORMS.items()]
    schemes = [(family.form, family.kind, family.what) for family in FAMILIES.values() if family.form]
    return [{"name": name, "family": kind, "what": what} for name, kind, what in (*own, *folders, *schemes)]


def model_rows(
    *, family: str | None = None, study: str | None = None, max_parameters: str | None = None, fits: bool = False
) -> list[dict[str, object]]:
    """The models of the studies, filtered; `fits` keeps those that run on this machine."""
    limit = count_of(max_parameters) if max_parameters else None
    machine = this_machine()
    return [
        {
            "name": entry.name,
            "aliases": list(entry.aliases),
            **{name: getattr(entry, name) for name in FIELDS},
            **{name: getattr(entry, name) or None for name in ("load", "revision", "reference", "note")},
            "memory_bytes": entry.memory("float32"),
            "runs_here": entry.fits(machine),
        }
        for entry in map(sized, selected(family=family, study=study))
        if limit is None or (entry.parameters and entry.parameters <= limit)
        if not fits or entry.fits(machine) in ("gpu", "cpu")
    ]


def architecture_rows(family: str) -> list[dict[str, object]]:
    """The architectures of a kind of model: whether Beholder scores them exactly, and what they need."""
    rows: list[dict[str, object]] = []
    for each in (each for each in architectures() if each.kind == family):
        named = {"model_type": each.model_type, "architecture": each.architecture, "scores": each.state}
        needs = {"computed once": each.shared or "nothing", "needs": f"torch, {each.extra}" if each.extra else "torch"}
        rows.append({**named, **needs, "why": each.why or None})
    return rows


def readable(row: Result) -> dict[str, object]:
    """A row of the catalogue for a terminal."""
    tables = "; ".join(f"{study} {tables}".strip() for study, tables in row["studies"].items())
    sizes = {"size": short(row["parameters"]), "trained on pairs": short(row["training_pairs"])}
    about = {"released": row["released"] or "unknown", "tables": tables, "runs here": row["runs_here"]}
    return {"name": row["name"], "family": row["family"], **sizes, **about}


def models(
    family: str | None = None,
    study: str | None = None,
    max_parameters: str | None = None,
    fits: bool = False,
    as_json: bool = False,
) -> None:
    rows = model_rows(family=family, study=study, max_parameters=max_parameters, fits=fits)
    forms = [] if family or study or max_parameters or fits else form_rows()
    known = architecture_rows(family) if family else []
    if as_json:
        say_json([*forms, *rows, *known])
        return
    if forms:
        show(forms, as_json)
    show([readable(row) for row in rows], as_json)
    if known:
        show([{key: value for key, value in row.items() if key != "why"} for row in known], as_json)


def datasets(as_json: bool = False) -> None:
    fields = ("name", "title", "images", "licence", "origin")
    rows: list[dict[str, object]] = [{name: getattr(each, name) for name in fields} for each in DATASETS.values()]
    forms = {
        "folder:PATH": "images with a table of attributes, or a folder for each class",
        "hf:NAME_OR_PATH": "a Hugging Face data set with a column of images",
        "wds:URI": "webdataset tars",
    }
    rows += [{"name": n, "title": t, "images": None, "licence": "yours", "origin": "you"} for n, t in forms.items()]
    show(rows, as_json)


def studies(as_json: bool = False) -> None:
    fields = ("name", "question", "datasets", "citation", "compat follows")
    known = [
        (s.name, s.question, ", ".join(s.asks.datasets), s.citation, s.tells.compat or None) for s in STUDIES.values()
    ]
    show([dict(zip(fields, each, strict=True)) for each in known], as_json)


def metrics(as_json: bool = False) -> None:
    known = [metric for study in STUDIES.values() for metric in study.measures.metrics]
    show([{"metric": each.name, "unit": each.unit, "meaning": each.meaning} for each in known], as_json)


@takes("data", "dataset", "people")
def prompts(study: str = "", file: Path | None = None, as_json: bool = False, *, options: Mapping[str, object]) -> None:
    if file:
        sets = [read_prompts(file)]
    else:
        chosen = AuditOptions.of(**options)
        asked = with_study_options(STUDIES[study or next(iter(STUDIES))], chosen.study_options)
        dataset = load_dataset(chosen.dataset or default_dataset(asked, chosen.data), chosen.data)
        sets = [task.prompts for task in asked.asks.tasks(dataset)]
    show([{"set": each.name, **row} for each in sets for row in each.table.drop("prompt_id").to_dicts()], as_json)
