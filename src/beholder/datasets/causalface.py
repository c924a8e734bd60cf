"""CausalFace: 18,000 synthetic faces in which one attribute at a time is changed. On request from its authors.

A seed is one identity in six prototypes (race × gender), in `final_picked_*/seed_<N>/{race}_{gender}_{abbr}_{value}*`.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder.core.errors import MissingData
from beholder.datasets.dataset import Dataset, published
from beholder.datasets.faces import balanced
from beholder.datasets.images import Box, crop_uri, files_of
from beholder.datasets.settings import Settings, choices

RACES, GENDERS = ("asian", "black", "white"), ("female", "male")


class Varied(NamedTuple):
    """One of the four attributes that are varied: how its files are named and which values it takes."""

    abbreviation: str
    values: list[str]
    suffixes: tuple[str, ...]  # endings, the preferred first: with brightness corrected, then without


VARIED = {
    "age": Varied("age", "0.8 1.4 2.0 2.3 2.6 2.9 3.2 3.5 3.8 4.4".split(), ("_o2_corrected", "_o2")),
    "lighting": Varied("l", "-1 0 1 2 3 4 5 6".split(), ("",)),
    "pose": Varied("y", "-3.0 -1.5 0.0 1.5 3.0".split(), ("",)),
    "smiling": Varied("smiling", "-2.5 -1.5 -0.5 0 0.5 1 1.5 2 3 4".split(), ("_o2_corrected", "_o2")),
}
CROP = 432
FILES = 100 * len(RACES) * len(GENDERS) * sum(len(varied.values) for varied in VARIED.values())  # of 100 seeds
ADJUSTED, AS_MADE = "adjusted", "as-made"
SETTINGS = choices("causalface")
SCHEMA = {
    **dict.fromkeys(("image_id", "uri", "varied", "race", "gender", "seed"), pl.String),
    **dict.fromkeys(VARIED, pl.Float64),
}


def load(folder: Path, settings: Mapping[str, str] | None = None) -> Dataset:
    """Every file of the design that is there; the notes say how many are missing from which seed."""
    adjusted = Settings("causalface", SETTINGS, settings).one_of("brightness", (ADJUSTED, AS_MADE)) == ADJUSTED
    present = [attribute for attribute in VARIED if (folder / f"final_picked_{attribute}").is_dir()]
    if not present:
        raise MissingData(f"No CausalFace pictures lie at {folder}: expected {SOURCE.layout}.")
    rows: list[dict[str, object]] = []
    notes = [f"final_picked_{attribute} is not there" for attribute in VARIED if attribute not in present]
    for attribute in present:
        holds = {seed: set(os.listdir(seed)) for seed in seeds(folder / f"final_picked_{attribute}")}
        there, pairs = set().union(*holds.values()), list(product(RACES, GENDERS))
        # Values that no seed has a file for were never part of this copy.
        known = ((v, pair) for v in VARIED[attribute].values for pair in pairs)
        values = list(dict.fromkeys(v for v, pair in known if not there.isdisjoint(file_names(attribute, *pair, v))))
        absent = [value for value in VARIED[attribute].values if value not in values]
        notes += [f"{attribute}: no seed has a file for {', '.join(absent)}"] if absent else []
        for seed, files in holds.items():
            pictures = list(_pictures(seed, files, attribute, values, adjusted=adjusted))
            rows += [row for row in pictures if row is not None]
            missing = pictures.count(None)
            if missing:
                notes.append(f"{attribute}, {seed.name}: {missing} of {len(pictures)} files are missing")
    notes += _uncorrected(rows) if adjusted else ["brightness is as the pictures were made: not adjusted"]
    table = pl.DataFrame(rows, schema=SCHEMA)
    # The released ranking scripts read the age block alone.
    table = table.with_columns(pl.Series("released_balance", balanced(table, table["varied"] == "age")))
    revision = "as released" if adjusted else "as released, brightness not adjusted"
    return Dataset("causalface", revision, SOURCE.licence, table, tuple(notes), made=True)


def seeds(folder: Path) -> list[Path]:
    """The folders of the seeds, by number."""
    named = [path for path in folder.iterdir() if path.is_dir() and path.name.removeprefix("seed_").isdecimal()]
    return sorted(named, key=lambda path: int(path.name.removeprefix("seed_")))


def file_names(attribute: str, race: str, gender: str, value: str) -> list[str]:
    """What a picture's file may be called, the preferred first."""
    varied = VARIED[attribute]
    return [f"{race}_{gender}_{varied.abbreviation}_{value}{suffix}.png" for suffix in varied.suffixes]


def _pictures(
    seed: Path, files: set[str], attribute: str, values: list[str], *, adjusted: bool
) -> Iterator[dict[str, object] | None]:
    """A row for every file that the design asks of a seed, None where it is missing."""
    for race, gender, value in product(RACES, GENDERS, values):
        names = file_names(attribute, race, gender, value)[:: 1 if adjusted else -1]
        name = next((name for name in names if name in files and (adjusted or "_corrected" not in name)), None)
        if name is None:
            yield None
            continue
        levels = {other: float(value) if other == attribute else None for other in VARIED}
        labels = {"race": race, "gender": gender, "seed": seed.name.removeprefix("seed_")}
        uri = _uri(seed / name, attribute, value, adjusted=adjusted)
        yield {"image_id": f"{attribute}/{seed.name}/{name}", "uri": uri, "varied": attribute, **labels, **levels}


def _uri(path: Path, attribute: str, value: str, *, adjusted: bool) -> str:
    """The study's crop; a smile that is not brightness-corrected is made as bright as the same person's at 0."""
    match = None
    if adjusted and attribute == "smiling" and not path.stem.endswith("_corrected") and float(value) != 0:
        reference = path.with_name(path.name.replace(f"_smiling_{value}_", "_smiling_0_"))
        match = reference if reference.is_file() else None
    return crop_uri(path, crop_box(attribute, float(value)), match)


def crop_box(attribute: str, value: float) -> Box:
    """432 × 432 from the top; further left or right for a turned head."""
    left = 40 if attribute != "pose" or value == 0 else 0 if value < 0 else 80  # the head stays in it
    return left, 0, left + CROP, CROP


def _uncorrected(rows: list[dict[str, object]]) -> Iterator[str]:
    """What was done about brightness."""
    kinds: Counter[str] = Counter()
    for row in rows:
        if row["varied"] == "smiling" and row["smiling"] != 0 and "_corrected" not in str(row["image_id"]):
            kinds["matched" if len(files_of(str(row["uri"]))) > 1 else "alone"] += 1
    if kinds["matched"]:
        yield f"brightness of {kinds['matched']} smiling variants is corrected by Beholder (no _o2_corrected file)"
    if kinds["alone"]:
        yield f"{kinds['alone']} smiling variants keep their brightness: the same person's picture at 0 is missing"


SOURCE = published("causalface", load, settings=SETTINGS)
