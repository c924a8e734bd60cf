"""Published sets of faces: FairFace, UTKFace, the adults of both as Perception takes them, GRAS, and CausalFace.

UTKFace's labels are a model's estimates, then checked. Adults are White, Black and Asian, 20 years and older:
FairFace's East and Southeast Asian are joined (`source_race` keeps the source's word), its age bands stand at their
midpoints. GRAS is a selection of 3,570 FairFace and 1,440 AI-Face images, balanced over its four attributes.
CausalFace's 18,000 synthetic faces, in which one attribute at a time is changed, are handed out by its authors. A seed
is one identity in six prototypes (race × gender), in `final_picked_*/seed_<N>/{race}_{gender}_{abbr}_{value}*`.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.core.errors import DataError, MissingData
from beholder.core.read import read_delimited, read_labels, require_columns
from beholder.datasets.dataset import Dataset, published
from beholder.datasets.images import SQUARE, Box, changed_uri, crop_uri, files_of
from beholder.datasets.settings import Settings, choices

# FairFace

SPLITS = ("train", "val")
AGES = ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70")
SPREADSHEET_DATES = {  # what spreadsheets make of the age bands when they take them for dates
    **dict.fromkeys(("9-Mar", "09-Mar", "3-Sep", "03-Sep", "Mar-09", "Mar-9"), "3-9"),
    **dict.fromkeys(("19-Oct", "Oct-19"), "10-19"),
    **dict.fromkeys(("2-Jan", "Feb-00", "2-Feb"), "0-2"),
}


def load_fairface(folder: Path) -> Dataset:
    """The labels of every split that is there; the images may be only some of them."""
    paths = {split: folder / f"fairface_label_{split}.csv" for split in SPLITS}
    tables = []
    for split, path in paths.items():
        if path.is_file():
            raw = read_labels(path, "file", ["age", "gender", "race"])
            _refuse_dates(raw["age"], path)
            uri = (str(folder) + "/" + pl.col("file")).alias("uri")
            labels = (pl.lit(split).alias("split"), "age", "gender", "race")
            tables.append(raw.select(pl.col("file").alias("image_id"), uri, *labels))
    if not tables:
        expected = " or ".join(path.name for path in paths.values())
        raise MissingData(f"No FairFace labels lie at {folder}: expected {expected}.")
    notes = tuple(f"{split}: the labels are not there" for split, path in paths.items() if not path.is_file())
    return Dataset("fairface", "padding 0.25", "CC BY 4.0", pl.concat(tables), notes, partial=True)


def _refuse_dates(ages: pl.Series, path: Path) -> None:
    odd = sorted(set(ages.drop_nulls()) - set(AGES))
    if damaged := [age for age in odd if age in SPREADSHEET_DATES]:
        raise DataError(
            f"{path}: a spreadsheet has turned age bands into dates ({', '.join(damaged)}; the bands are "
            f"{', '.join(AGES)}).\nGet the original labels again, or mend this copy: beholder data mend fairface"
        )
    if odd:
        raise DataError(f"{path}: unknown age bands {', '.join(odd)}. FairFace has: {', '.join(AGES)}.")


def mend_fairface(folder: Path) -> list[str]:
    """Turn spreadsheet dates back into age bands; the damaged table is kept beside the mended one."""
    messages = []
    for path in (folder / f"fairface_label_{split}.csv" for split in SPLITS):
        if path.is_file():
            table = read_delimited(path)
            require_columns(table, ["age"], path)
            if damaged := table["age"].is_in(list(SPREADSHEET_DATES)).sum():
                path.rename(path.with_suffix(".csv.damaged"))
                table.with_columns(pl.col("age").replace(SPREADSHEET_DATES)).write_csv(path)
                messages.append(f"{path}: {damaged} ages mended; the damaged table is {path.name}.damaged")
    return messages


FAIRFACE = published("fairface", load_fairface)

# UTKFace

# Age in years, gender 0 male 1 female, race 0 to 4, and when it was collected, to the millisecond.
NAME = re.compile(r"(?P<age>\d{1,3})_(?P<gender>[01])_(?P<race>[0-4])_(?P<time>\d{17})\.jpg(?:\.chip\.jpg)?", re.ASCII)
GENDERS = ("Male", "Female")
RACES = ("White", "Black", "Asian", "Indian", "Others")


def load_utkface(folder: Path) -> Dataset:
    """Every picture whose name can be read; the others (8 in the public copy) are listed in the notes."""
    home = folder / "UTKFace" if (folder / "UTKFace").is_dir() else folder
    files = sorted(path.name for path in home.iterdir() if path.suffix.lower() in {".jpg", ".jpeg", ".png"})
    if not files:
        raise MissingData(f"No UTKFace pictures lie at {home}: expected {UTKFACE.layout}.")
    named = {name: match for name in files if (match := NAME.fullmatch(name))}
    ages = [int(match["age"]) for match in named.values()]
    columns = {
        "image_id": pl.Series(list(named), dtype=pl.String),
        "uri": pl.Series([str(home / name) for name in named], dtype=pl.String),
        "age": pl.Series(ages, dtype=pl.Int64),
        "age_band": pl.Series([age_band(age) for age in ages], dtype=pl.String),
        "gender": pl.Series([GENDERS[int(match["gender"])] for match in named.values()], dtype=pl.String),
        "race": pl.Series([RACES[int(match["race"])] for match in named.values()], dtype=pl.String),
    }
    unread = [name for name in files if name not in named]
    notes = [f"{len(unread)} names do not parse and are left out: {', '.join(map(repr, unread))}"] if unread else []
    return Dataset("utkface", "aligned and cropped", UTKFACE.licence, pl.DataFrame(columns), tuple(notes))


def age_band(age: int) -> str:
    """FairFace's band of an age in years."""
    return next((band for band in AGES[:-1] if age <= int(band.partition("-")[2])), AGES[-1])


UTKFACE = published("utkface", load_utkface)

# Adults

JOINED = {"White": "White", "Black": "Black", "East Asian": "Asian", "Southeast Asian": "Asian", "Asian": "Asian"}
MIDPOINTS = {"20-29": 25.0, "30-39": 35.0, "40-49": 45.0, "50-59": 55.0, "60-69": 65.0, "more than 70": 70.0}
YOUNGEST = 20
FAIRFACE_NAME, UTKFACE_NAME = "fairface-adults", "utkface-adults"
IN_THE_STUDY = {FAIRFACE_NAME: 38_744, UTKFACE_NAME: 14_630}  # of FairFace, of its training part
RELEASED_SEED = 42
PROTOTYPES = 6  # races times genders, which the released script counts on


def adults(whole: Dataset) -> Dataset:
    """The study's part of FairFace or of UTKFace; any other data set as it is."""
    if whole.name == "fairface":
        midpoint = pl.col("age_band").replace_strict(MIDPOINTS, default=None, return_dtype=pl.Float64)
        table = whole.table.rename({"age": "age_band"}).with_columns(midpoint.alias("age"))
        return _adults(whole, table, FAIRFACE_NAME, in_study=pl.col("split") == "train")
    if whole.name == "utkface":
        return _adults(whole, whole.table.cast({"age": pl.Float64}), UTKFACE_NAME, in_study=pl.lit(True))
    return whole


def studied(dataset: Dataset) -> Dataset:
    """The study's own images: of FairFace its training part, where any of it is here; of the others all."""
    if "split" not in dataset.attributes or "train" not in dataset.attribute("split"):
        return dataset
    return dataset.where(split="train")


def _adults(whole: Dataset, table: pl.DataFrame, name: str, *, in_study: pl.Expr) -> Dataset:
    joined = pl.col("race").replace_strict(JOINED, default=None, return_dtype=pl.String)
    table = table.with_columns(pl.col("race").alias("source_race"), joined.alias("race")).drop_nulls("race")
    table = table.with_columns(pl.Series("released_balance", balanced(table, table.select(of=in_study)["of"])))
    adults = table.filter((pl.col("age") >= YOUNGEST).fill_null(False))
    listed, taken = adults.filter(in_study).height, IN_THE_STUDY[name]
    notes = [f"of the {taken} images that the study takes, the tables here list {listed}"]
    return replace(whole, name=name, table=adults, notes=(*whole.notes, *(notes if listed != taken else [])))


def balanced(table: pl.DataFrame, in_study: pl.Series | None = None, seed: int = RELEASED_SEED) -> list[bool]:
    """Which rows the released script's draw takes: a sixth of all from each race and gender, each with the same seed.

    Ages under 20 are dropped afterwards, so what is left is not balanced. `--compat` ranks those of them that are here.
    """
    studied = np.ones(table.height, bool) if in_study is None else in_study.to_numpy()
    rows = table.with_row_index().filter(pl.Series(studied))
    taken, quota = np.zeros(table.height, dtype=bool), rows.height // PROTOTYPES
    for group in rows.group_by("race", "gender").agg(pl.col("index"))["index"]:
        draw = np.random.RandomState(seed)  # the generator of the released script's library
        taken[group.to_numpy()[draw.choice(len(group), size=min(quota, len(group)), replace=False)]] = True
    return [bool(row) for row in taken]


FAIRFACE_ADULTS = published(FAIRFACE_NAME, lambda folder: adults(load_fairface(folder)))
UTKFACE_ADULTS = published(UTKFACE_NAME, lambda folder: adults(load_utkface(folder)))

# GRAS

AIFACE = "aiface"
COLUMNS = {"fairface": {"gender": "gender", "race": "race", "age": "age"}, AIFACE: {"Skin Tone": "skin_tone"}}
PREFIXES = {"fairface": "FairFace/", AIFACE: "AIFace/"}  # of the lists' file names, before the name in the own folder
PERSON = r"/((?:nm)?[0-9]+)_[^/]*$"  # AI-Face's images from IMDB-WIKI begin with a person's number in their own source
BALANCE = {"gender": 1785, "race": 510, "age": 714, "skin_tone": 144}  # images of each group, as published


def load_gras(folder: Path) -> Dataset:
    """Both lists as far as they are there; which images are there is another matter (`Dataset.present`)."""
    paths = {part: folder / f"selected_images_{part}.csv" for part in COLUMNS}
    tables = [_gras_part(path, part) for part, path in paths.items() if path.is_file()]
    if not tables:
        raise MissingData(f"No GRAS list lies at {folder}: expected {paths['fairface'].name}.")
    table = pl.concat(tables, how="diagonal")
    notes = [f"the {part} list is not there" for part, path in paths.items() if not path.is_file()]
    notes += imbalances(table)
    return Dataset("gras", "as published", "the parts' own", table, tuple(notes), partial=True, remarks=imbalances)


def _gras_part(path: Path, part: str) -> pl.DataFrame:
    raw = read_labels(path, "file", list(COLUMNS[part]))
    inside = pl.col("file").str.strip_prefix(PREFIXES[part])
    columns = [
        pl.col("file").alias("image_id"),
        (str(path.parent.parent / part) + "/" + inside).alias("uri"),
        pl.lit(part).alias("part"),
        *[pl.col(source).alias(name) for source, name in COLUMNS[part].items()],
    ]
    if part == AIFACE:  # where an image was taken from (`FFHQ`, `imdb_wiki/imdb`), and the number of its person, if any
        source = inside.str.extract(r"^(.*)/[^/]*$").str.extract(r"^([^/]+(?:/[^/]+)?)")
        person = pl.concat_str(source, inside.str.extract(PERSON), separator=" ")
        columns += [source.alias("source"), person.alias("person")]
    return raw.select(columns)


def as_released(dataset: Dataset) -> Dataset:
    """With the images of AI-Face made squares of 256, as all five released scripts do."""
    table = dataset.table
    if "part" not in table.columns:
        return dataset
    parts = zip(table["uri"], table["part"], strict=True)
    uris = [changed_uri(uri, SQUARE) if part == AIFACE else uri for uri, part in parts]
    return replace(dataset, table=table.with_columns(pl.Series("uri", uris, pl.String)), made=True)


def imbalances(table: pl.DataFrame) -> list[str]:
    """In which groups the selection at hand deviates from the published balance."""
    notes = []
    for attribute in [name for name in BALANCE if name in table.columns]:
        counts = table[attribute].drop_nulls().value_counts().sort(attribute)
        odd = [f"{group} {count}" for group, count in counts.iter_rows() if count != BALANCE[attribute]]
        if odd:
            notes.append(f"{attribute} is not balanced as published ({BALANCE[attribute]} each): {', '.join(odd)}")
    return notes


GRAS = published("gras", load_gras)

# CausalFace

PEOPLE = tuple(product(("asian", "black", "white"), ("female", "male")))  # the six prototypes of an identity


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
CAUSALFACE_FILES = 100 * len(PEOPLE) * sum(len(varied.values) for varied in VARIED.values())  # of 100 seeds
ADJUSTED, AS_MADE = "adjusted", "as-made"
SCHEMA = {
    **dict.fromkeys(("image_id", "uri", "varied", "race", "gender", "seed"), pl.String),
    **dict.fromkeys(VARIED, pl.Float64),
}


def load_causalface(folder: Path, settings: Mapping[str, str] | None = None) -> Dataset:
    """Every file of the design that is there; the notes say how many are missing from which seed."""
    adjusted = (
        Settings("causalface", choices("causalface"), settings).one_of("brightness", (ADJUSTED, AS_MADE)) == ADJUSTED
    )
    present = [attribute for attribute in VARIED if (folder / f"final_picked_{attribute}").is_dir()]
    if not present:
        raise MissingData(f"No CausalFace pictures lie at {folder}: expected {CAUSALFACE.layout}.")
    rows: list[dict[str, object]] = []
    notes = [f"final_picked_{attribute} is not there" for attribute in VARIED if attribute not in present]
    for attribute in present:
        holds = {seed: set(os.listdir(seed)) for seed in seeds(folder / f"final_picked_{attribute}")}
        there = set().union(*holds.values())
        # Values that no seed has a file for were never part of this copy.
        known = ((v, pair) for v in VARIED[attribute].values for pair in PEOPLE)
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
    return Dataset("causalface", revision, CAUSALFACE.licence, table, tuple(notes), made=True)


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
    for (race, gender), value in product(PEOPLE, values):
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


CAUSALFACE = published("causalface", load_causalface)
