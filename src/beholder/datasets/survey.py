"""Survey of a data set: how each column is read, groups and their crossings, picture sizes, look-alikes."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from PIL import Image

from beholder.core.errors import BadImage
from beholder.datasets.dataset import Dataset, DatasetSource
from beholder.datasets.images import is_transparent, on_white, open_image, unreadable
from beholder.datasets.labels import first_of, map_option, unclear_labels
from beholder.datasets.selection import MOST_VALUES, not_numbers, numbers_of

MOST_GROUPS = 50  # a text column with more different values identifies people or pictures rather than groups
IDENTIFIERS = ("name", "person")  # columns that identify people, however few they are
MOST_CROSSED = 12  # columns with more groups are not crossed with others
ALIKE_BITS = 7  # pictures whose 64-bit difference hashes differ in at most this many bits may look alike
CHUNKS = 8
ALIKE = 0.97  # they do if their small copies correlate so: of 5,000 faces of FairFace no two people's did
SIDE = 16


class Look(NamedTuple):
    """What a picture looks like: its difference hash, and a small grey copy with mean 0 and length 1."""

    hash: int
    small: npt.NDArray[np.float32]


class Column(NamedTuple):
    """How a column is read."""

    name: str
    role: str  # `groups`, `numbers`, `person`, `unclear` (values look alike) or `ignored`
    how: str  # in words: what is made of it, or why nothing is
    values: int  # how many different ones there are
    missing: int  # how many images lack a label


class Survey(NamedTuple):
    """What a data set holds."""

    images: int
    columns: list[Column]
    damaged: dict[str, str]  # image id → why the picture cannot be read
    sizes: list[tuple[int, int]]  # width and height of every picture that can be read
    transparent: list[str]  # image ids of pictures with transparent pixels
    alike: dict[str, str]  # image id → an earlier image that looks like it
    groups: dict[str, pl.DataFrame]  # of columns with groups: `group` and `count`, the largest first; null: no label
    numbers: dict[str, tuple[float, float, float]]  # of every column of numbers: lowest, median, highest
    crossings: dict[tuple[str, str], pl.DataFrame]  # `first`, `second` and `count`, those of 0 included


def survey(dataset: Dataset, advance: Callable[[int], None] = lambda count: None) -> Survey:
    """Look at every picture and count every label."""
    looks, sizes, damaged = dict[str, Look](), list[tuple[int, int]](), dict[str, str]()
    transparent: list[str] = []
    with ThreadPoolExecutor() as pool:
        for image, seen in zip(dataset.table["image_id"], pool.map(_look, dataset.table["uri"]), strict=True):
            advance(1)
            if isinstance(seen, str):
                damaged[image] = seen
            else:
                size, looks[image], lets_through = seen
                sizes.append(size)
                transparent += [image] if lets_through else []
    columns = columns_of(dataset)
    texts = {each.name: dataset.table[each.name].cast(pl.String) for each in columns if each.role != "numbers"}
    numbers = {each.name: numbers_of(dataset.table[each.name]) for each in columns if each.role == "numbers"}
    ranges = {name: _range(column) for name, column in numbers.items() if column is not None}
    few = [each.name for each in columns if each.role not in ("numbers", "person") and each.values <= MOST_GROUPS]
    groups = {name: _counts(texts[name]) for name in few}
    crossed = [each.name for each in columns if each.role == "groups" and each.values <= MOST_CROSSED]
    crossings = {(a, b): _crossing(texts[a], texts[b]) for a, b in combinations(crossed, 2)}
    alike = look_alikes(looks)
    return Survey(len(dataset), columns, damaged, sizes, transparent, alike, groups, ranges, crossings)


def damaged_images(dataset: Dataset, advance: Callable[[int], None] = lambda count: None) -> dict[str, str]:
    """Image id → reason, for every image that cannot be read."""
    reasons = unreadable(dataset.table["uri"].to_list(), advance)
    named = zip(dataset.table["image_id"], dataset.table["uri"], strict=True)
    return {image_id: reasons[uri] for image_id, uri in named if uri in reasons}


def columns_of(dataset: Dataset) -> list[Column]:
    """How each column is read: as groups, as numbers, as the person who is shown, or not at all."""
    columns = {name: _column(dataset.table[name]) for name in dataset.attributes}
    for name, found in unclear_labels(dataset, [name for name in columns if columns[name].role == "groups"]).items():
        columns[name] = columns[name]._replace(role="unclear", how=found.said)
    return list(columns.values())


def _column(column: pl.Series) -> Column:
    values, numbers = column.drop_nulls().n_unique(), numbers_of(column)
    role, how = "ignored", f"{values:,} different texts are too many for groups"
    if column.name.lower() in IDENTIFIERS:
        role, how = "person", f"{values:,} people: intervals resample people rather than images"
    elif values < 2:
        how = "no image has a value" if not values else "every image has the same value"
    elif numbers is not None and (values > MOST_VALUES or column.dtype.is_numeric()):
        low, middle, high = _range(numbers)
        bins = f"; five bins, or your own: --bins {column.name}=EDGE,EDGE" if values > MOST_VALUES else ""
        role, how = "numbers", f"{low:g} to {high:g}, median {middle:g}{bins}"
    elif values <= MOST_GROUPS:
        listed = [f"{group} {count:,}" for group, count in _counts(column.cast(pl.String)).drop_nulls("group").rows()]
        role, how = "groups", ", ".join(listed[:MOST_CROSSED]) + (" …" if len(listed) > MOST_CROSSED else "")
    if role != "person" and numbers is None and (others := not_numbers(column)):
        role, how = "ignored", f"{values - len(others):,} numbers, and texts that are none: {first_of(others)}; "
        how += f"leave these empty: {map_option(column.name, others)}"
    return Column(column.name, role, how, values, column.null_count())


def group_counts(dataset: Dataset) -> dict[str, dict[str, int]]:
    """Of every column with few groups: how many images each group has. Nobody's name is among them."""
    columns = {name: dataset.table[name] for name in dataset.attributes if name.lower() not in IDENTIFIERS}
    few = {name: column for name, column in columns.items() if 1 < column.drop_nulls().n_unique() <= MOST_CROSSED}
    return {name: dict(_counts(column.cast(pl.String)).drop_nulls("group").rows()) for name, column in few.items()}


def _look(uri: str) -> tuple[tuple[int, int], Look, bool] | str:
    """A picture's size, what it looks like and whether it is transparent, or why it cannot be read."""
    try:
        picture = open_image(uri, alpha=True)
    except BadImage as error:
        return error.reason
    return picture.size, look_of(on_white(picture)), is_transparent(picture)


def look_of(picture: Image.Image) -> Look:
    """Of the hash, 64 bits: is each of 8 × 8 places darker than its right neighbour?"""
    grey = picture.convert("L")
    places = np.asarray(grey.resize((9, 8), Image.Resampling.BOX), dtype=np.int16)
    bits = np.packbits(places[:, :-1] < places[:, 1:]).tobytes()
    small = np.asarray(grey.resize((SIDE, SIDE), Image.Resampling.BOX), dtype=np.float32).ravel()
    small = small - small.mean()
    return Look(int.from_bytes(bits, "big"), small / max(float(np.linalg.norm(small)), 1e-9))


def look_alikes(looks: dict[str, Look]) -> dict[str, str]:
    """Each image that looks like an earlier one → the first: a pair within ALIKE_BITS agrees in at least one chunk."""
    if not looks:
        return {}
    ids, hashes = list(looks), np.array([look.hash for look in looks.values()], dtype=np.uint64)
    small, first = np.stack([look.small for look in looks.values()]), np.arange(len(ids))
    for chunk in range(CHUNKS):
        part = (hashes >> np.uint64(64 // CHUNKS * chunk)) & np.uint64(2 ** (64 // CHUNKS) - 1)
        order = np.argsort(part, kind="stable")
        for bucket in np.split(order, np.flatnonzero(np.diff(part[order])) + 1):
            for place, image in enumerate(bucket[:-1], start=1):
                later = bucket[place:][np.bitwise_count(hashes[bucket[place:]] ^ hashes[image]) <= ALIKE_BITS]
                later = later[small[later] @ small[image] >= ALIKE]
                first[later] = np.minimum(first[later], image)
    return {ids[image]: ids[other] for image, other in enumerate(first) if other != image}


def _counts(column: pl.Series) -> pl.DataFrame:
    table = column.alias("group").value_counts().cast({"count": pl.Int64})
    return table.sort("count", "group", descending=[True, False], nulls_last=True)


def _range(column: pl.Series) -> tuple[float, float, float]:
    low, middle, high = (float(x) for x in np.percentile(column.drop_nulls().to_numpy(), [0, 50, 100]))
    return low, middle, high


def _crossing(first: pl.Series, second: pl.Series) -> pl.DataFrame:
    pairs = pl.DataFrame({"first": first, "second": second}).drop_nulls()
    first_values, second_values = (pairs.select(pl.col(name).unique().sort()) for name in pairs.columns)
    every = first_values.join(second_values, how="cross")
    counted = pairs.group_by("first", "second").len("count")
    return every.join(counted, on=["first", "second"], how="left").with_columns(pl.col("count").fill_null(0))


TO_BE_STATED = "Not stated. Write it here before you share this data sheet."
UNINTENDED = """Identifying people, deciding anything about a person, or inferring from a face who someone is, \
what they feel or what they can do."""
FEW = 10  # a crossing with fewer images supports hardly any comparison


def datasheet(dataset: Dataset, survey: Survey, source: DatasetSource | None = None) -> str:
    """The data sheet as Markdown, without pictures and without names of people."""
    notes = ["", "## Notes", "", *(f"- {escape(note)}" for note in dataset.notes)] if dataset.notes else []
    facts = {
        "Title": source.title if source else dataset.name,
        "Revision": dataset.revision,
        "Licence": dataset.licence,
        "Origin": source.origin if source else TO_BE_STATED,
        "Labels": (source and source.labels) or TO_BE_STATED,
        "Intended use": (source and source.intended) or TO_BE_STATED,
        "Unintended use": UNINTENDED,
    }
    head = [f"# Data sheet: {escape(dataset.name)}", "", *_table(["", ""], list(facts.items()))]
    return "\n".join([*head, *_people(survey), *_pictures(survey), *notes]) + "\n"


def _people(survey: Survey) -> Iterator[str]:
    missing = {column.name: column.missing for column in survey.columns}
    yield from ("", "## Who is in it", "")
    yield "Labels are perceived or sourced. Groups have the names that the data gives them."
    for name, groups in survey.groups.items():
        rows = [[group or "no label", str(count), f"{count / survey.images:.0%}"] for group, count in groups.rows()]
        yield from ("", f"### {escape(name)}", "", *_table(["group", "images", "share"], rows))
    others = {name: f"{low:g} to {high:g}, median {middle:g}" for name, (low, middle, high) in survey.numbers.items()}
    many = [each for each in survey.columns if each.role != "numbers" and each.name not in survey.groups]
    others |= {each.name: f"{each.values} different values, not listed" for each in many}
    if others:
        rows = [[name, f"{values}; {missing[name]} missing"] for name, values in others.items()]
        yield from ("", "### Other columns", "", *_table(["column", "values"], rows))
    for (first, second), counts in survey.crossings.items():
        wide = counts.pivot("second", index="first", values="count")
        cells = _table(["", *wide.columns[1:]], [[str(cell) for cell in row] for row in wide.rows()])
        yield from ("", f"### {escape(first)} and {escape(second)}", "", *cells)
        if few := counts.filter(pl.col("count") < FEW).height:
            yield from ("", f"{few} of {counts.height} crossings have fewer than {FEW} images.")


def _pictures(survey: Survey) -> Iterator[str]:
    yield from ("", "## Pictures", "")
    rows = [["Images in the table", str(survey.images)], ["Cannot be read", str(len(survey.damaged))]]
    if survey.sizes:
        for what, values in (("Width", [w for w, _ in survey.sizes]), ("Height", [h for _, h in survey.sizes])):
            rows.append([f"{what} in pixels", f"{min(values)} to {max(values)}, median {median(values):g}"])
    if survey.transparent:
        rows.append(["Transparent, shown on white", str(len(survey.transparent))])
    rows.append(["Look like an earlier picture", str(len(survey.alike))])
    yield from _table(["", ""], rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(escape, header))} |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield f"| {' | '.join(map(escape, row))} |"


def escape(text: str) -> str:
    """Text from strangers as Markdown that shows it and does nothing else: no markup, no link, no second line."""
    plain = " ".join(text.split())
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#!" else c for c in plain)
