"""Settings: the facts of a run's record, as label and text, so that a reader can repeat it."""

import json
import shlex
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from beholder.chapter.numbers import number
from beholder.core.record import Record
from beholder.core.types import Entry
from beholder.prompts.prompt_set import NAMES_LEVEL, UNLISTED
from beholder.studies import STUDIES

Fact = tuple[str, str]  # a label and what it says
REST = ("settings", "files")  # what is long in a model's entry: preprocessing, files


class Thing(NamedTuple):
    """A model or a data set with its facts; `more` is shown on request."""

    name: str
    facts: list[Fact]
    notes: list[str]
    more: str = ""


def model_things(record: Record) -> list[Thing]:
    """Every model with what fixes its scores."""
    things = []
    for entry in record.models:
        facts = list(_facts(entry, skip=("name", "notes", *REST)))
        rest = {key: entry[key] for key in REST if entry.get(key)}
        more = json.dumps(rest, indent=1, ensure_ascii=False, default=str) if rest else ""
        things.append(Thing(_text(entry.get("name")), facts, [*map(_text, entry.get("notes") or [])], more))
    return things


def dataset_things(record: Record) -> list[Thing]:
    """Every data set with its revision, licence and size."""
    things = []
    for entry in record.datasets:
        notes = [*conflicts(entry), *unbalanced(entry), *map(_text, entry.get("notes") or [])]
        things.append(Thing(_text(entry.get("name")), list(_dataset_facts(entry)), notes))
    return things


def run_facts(record: Record) -> list[Fact]:
    """How the run was made."""
    settings = record.settings
    versions = ", ".join(f"{name} {version}" for name, version in record.machine.items())
    facts = [
        ("Made", record.created.replace("T", " ")),
        ("Computed", _as_printed(record) if settings.get("compat") else "as the study describes it"),
        ("Intervals", _intervals(record)),
        *_facts(settings, skip=("compat", "draws", "seed")),
        ("Versions", f"beholder {record.beholder}, {versions}"),
    ]
    return [(label, text) for label, text in facts if text]


def command(record: Record) -> str:
    """What was typed, to be typed again; a run made from Python has none."""
    words = record.command[1:] if record.command[:1] == ["beholder"] else record.command
    return shlex.join(["beholder", *words]) if words else ""


def _as_printed(record: Record) -> str:
    """What `--compat` follows, study by study."""
    known = [STUDIES[name] for name in record.studies if name in STUDIES]
    follows = [f"{study.short or study.title}: {study.tells.compat}" for study in known if study.tells.compat]
    return "; ".join(["as printed, faults included", *follows])


def _intervals(record: Record) -> str:
    """What the intervals were made of: draws of people, or what a study says of its own."""
    settings, known = record.settings, [STUDIES[name] for name in record.studies if name in STUDIES]
    draws, own = settings.get("draws"), [study for study in known if study.tells.intervals]
    parts = [f"{draws} draws of people"] if draws and (len(own) < len(known) or not known) else []
    parts += [f"{study.short}: {study.tells.intervals}" if parts else study.tells.intervals for study in own]
    return f"95 %, {'; '.join(parts)}, seed {settings.get('seed')}" if parts else ""


def part_of(entry: Entry) -> str:
    """How many images of a data set were looked at, such as `200 of 1,845`; empty where it was all of them."""
    images, whole = entry.get("images"), entry.get("of")
    return "" if images is None or whole in (None, images) else f"{images:,} of {whole:,}"


def people(entry: Entry) -> str:
    """Who counts as a person in a data set."""
    known = entry.get("persons") or {}
    by = f"by the column {known['column']}" if known.get("column") else "no column says who is shown"
    return f"{known['described']} ({by})" if known else ""


def conflicts(entry: Entry) -> list[str]:
    """Labels that differ between pictures of one person."""
    known = entry.get("persons") or {}
    return [
        f"every person is shown with more than one {name}: each is compared with themselves"
        if count == known["people"]
        else f"{number(count, 'person has', 'people have')} pictures with different labels of {name}"
        for name, count in (known.get("conflicts") or {}).items()
    ]


def unbalanced(entry: Entry) -> list[str]:
    """What `--limit` could not balance."""
    return [f"--limit: {text}" for text in (entry.get("selection") or {}).get("uneven", [])]


def _facts(entry: Entry, *, skip: tuple[str, ...]) -> Iterator[Fact]:
    for key, value in entry.items():
        if key not in skip and value not in (None, "", [], {}):
            yield key.replace("_", " ").capitalize(), _text(value)


def _dataset_facts(entry: Entry) -> Iterator[Fact]:
    if entry.get("images") is not None:
        yield "Images", part_of(entry) or f"{entry['images']:,}"
    yield "Who is shown", people(entry)
    yield from _facts(entry, skip=("name", "images", "of", "persons", "selection", "notes"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


FEW_PROMPTS = 12  # prompts of one level that are shown; the file has them all


class Asked(NamedTuple):
    """A level of a prompt set: its prompts compete with each other."""

    name: str
    number: int
    texts: list[str]
    more: int


def prompts_asked(prompts: pl.DataFrame, study: str, dataset: str) -> list[Asked]:
    """Set by set and level by level; sets with the same prompts are listed together, and nobody's name is."""
    levels: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for (name, level), part in prompts.filter(study=study, dataset=dataset).group_by(
        "set", "level", maintain_order=True
    ):
        levels.setdefault(tuple(part["text"]), []).append((str(name or ""), str(level or "")))
    asked = []
    for texts, named in levels.items():
        shown = [] if named[0][1] in (NAMES_LEVEL, UNLISTED) else list(texts[:FEW_PROMPTS])
        names = ", ".join(": ".join(filter(None, pair)) for pair in named)
        asked.append(Asked(names, len(texts), shown, len(texts) - len(shown) if shown else 0))
    return asked


def images_of(record: Record, dataset: str) -> str:
    """How many images a data set gave: `200 of 845`; nothing where the record does not say."""
    entry = next((each for each in record.datasets if each.get("name") == dataset), {})
    return part_of(entry) or (f"{entry['images']:,}" if entry.get("images") is not None else "")
