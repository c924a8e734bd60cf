"""Dataset: pictures of people with their attributes in the source's own words: sourced or perceived, never "true"."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import polars as pl

from beholder.core.digests import FileDigests, digest
from beholder.core.errors import DataError, MissingData, UnknownName, UsageError
from beholder.core.read import column_in
from beholder.core.types import Entry
from beholder.datasets import FACTS
from beholder.datasets.content import digest_of, is_file, stamp
from beholder.datasets.images import DRAWN, OF_FILES, Changed, Source, changed_uri, files_of, is_plain_file, source_of
from beholder.datasets.selection import NUMBERS, Edges, Selection, binned, numbers_of, select
from beholder.datasets.settings import GroupWords, Setting, Settings, Steps, choices, group_counts
from beholder.glasshouse.portrait import RENDERER_VERSION

SCHEMA: dict[str, pl.DataType] = {
    "image_id": pl.String(),
    "concept": pl.String(),
    "instances": pl.Int32(),
    "area": pl.Float32(),
    "names": pl.List(pl.String()),
}
"""`area` is the share of the picture that the concept's largest box covers, null where no box is known; `names` are
the annotators' words behind the concept, each once, in the order of their first use."""


def check_objects(objects: pl.DataFrame, image_ids: pl.Series, where: str) -> None:
    """Raise for a table of another form, for pictures that are not in the data set, for rows that stand twice."""
    if dict(objects.schema) != SCHEMA:
        raise DataError(f"{where}: the table of objects has {dict(objects.schema)}.\nIt must have exactly {SCHEMA}.")
    strangers = objects.join(image_ids.cast(pl.String).to_frame(), on="image_id", how="anti")
    if strangers.height:
        raise DataError(
            f"{where}: {strangers.height} objects are in pictures that the data set does not have, "
            f"the first is {strangers['image_id'][0]!r}."
        )
    keys = objects.select(pl.col("image_id").hash(1) ^ pl.col("concept").hash(2)).to_series()
    if keys.n_unique() == objects.height:  # far less memory than the rows themselves; equal rows have equal keys
        return
    twice = objects.filter(objects.select("image_id", "concept").is_duplicated())
    if twice.height:
        raise DataError(f"{where}: {twice['concept'][0]!r} stands twice for image {twice['image_id'][0]!r}.")


def objects_in(objects: pl.DataFrame, image_ids: pl.Series) -> pl.DataFrame:
    """The objects in these pictures, in the order they stood."""
    return objects.join(image_ids.to_frame(), on="image_id", how="semi", maintain_order="left")


# Dataset

KEYS = ("image_id", "uri")


@dataclass(frozen=True)
class Dataset:
    """Images with attributes. `table` has `image_id`, `uri` and one text or number column per attribute.

    >>> table = pl.DataFrame({"image_id": ["a"], "uri": ["/photos/a.jpg"], "gender": ["woman"]})
    >>> Dataset("staff", revision="2026", licence="internal", table=table).attributes
    ['gender']
    """

    name: str
    revision: str
    licence: str
    table: pl.DataFrame
    notes: tuple[str, ...] = ()  # what a reader of the results should know about the data
    partial: bool = False  # whether users often have only some of its images; missing ones are left out and counted
    remarks: Callable[[pl.DataFrame], Sequence[str]] = field(default=lambda table: (), compare=False)
    """Notes on the rows that are left, such as groups that are no longer balanced."""
    objects: pl.DataFrame | None = field(default=None, compare=False)
    """The annotated objects, one row per picture and concept (`SCHEMA`); None without annotations."""
    group_words: GroupWords | None = None  # the words that its groups were read from; None if the source labels them
    source_ids: frozenset[str] | None = None  # every image of the source, also those filtered out; None: all are here
    codes_meant: bool = False  # whether values that look alike (`m`, `male`) are meant as different groups
    made: bool = False  # whether its loader wrote the addresses: only then may they name crops, changes, parts of files

    def __post_init__(self) -> None:
        missing = [key for key in KEYS if key not in self.table.columns]
        if missing:
            columns = ", ".join(self.table.columns)
            raise DataError(f"{self.name}: the table lacks the column {missing[0]!r}. It has: {columns}.")
        ids = self.table["image_id"]
        if twice := ids.filter(ids.is_duplicated()).unique(maintain_order=True).to_list():
            raise DataError(
                f"{self.name}: {len(twice)} image ids occur more than once; the first is {twice[0]!r}.\n"
                "Every image needs its own id: remove or rename the repeated rows."
            )
        internal = pl.Series(dtype=pl.String) if self.made else self.table["uri"].cast(pl.String)
        if odd := internal.filter(internal.str.contains(OF_FILES).fill_null(False)).head(1).to_list():
            advice = "Write the name of an image file (with ./ before it)."
            raise DataError(f"{self.name}: {odd[0]!r} is no address of a file. {advice}")
        object.__setattr__(self, "table", self.table.rechunk())  # read from several files, it comes in pieces
        if self.objects is not None:
            check_objects(self.objects, self.table["image_id"], self.name)

    def __len__(self) -> int:
        return self.table.height

    @property
    def attributes(self) -> list[str]:
        """The names of all attributes."""
        return [column for column in self.table.columns if column not in KEYS]

    def attribute(self, name: str) -> pl.Series:
        """One attribute's values, in row order; its name may be written otherwise, `Gender` for `gender`."""
        column = column_in(self.table, name)
        if column not in self.table.columns:
            raise UnknownName("attribute", name, self.attributes, where=self.name)
        return self.table[column]

    @property
    def concepts(self) -> list[str]:
        """Every annotated concept, sorted; empty without annotations."""
        return [] if self.objects is None else self.objects["concept"].unique().sort().to_list()

    def where(self, **equals: str) -> Self:
        """The rows whose attributes have these values."""
        matches = [self.attribute(name).cast(pl.String) == value for name, value in equals.items()]
        return self._with_rows(self.table.filter(*matches))

    def present(self) -> Self:
        """The rows whose image file exists, with a note on how many are missing; unchanged unless `partial`."""
        if not self.partial:
            return self
        there = [is_present(uri) for uri in self.table["uri"]]
        if not (missing := there.count(False)):
            return self
        table = self.table.filter(there)
        note = f"{missing} of {len(there)} images are missing and left out"
        return replace(self._with_rows(table), notes=(*self.notes, note, *self.remarks(table)))

    def limit(self, count: int | None, *, by: str | None = None) -> Self:
        """`count` rows (of every value of `by`, when it is given and known), spread evenly over the groups."""
        return self if count is None else self.selected(select(self.table, count, each=by))

    def selected(self, selection: Selection) -> Self:
        """The rows that were selected."""
        return self._with_rows(self.table[selection.rows])

    def perturbed(self, change: str) -> Self:
        """The same people, every picture after a small change (`datasets.images.CHANGES`)."""
        uris = [changed_uri(uri, change) for uri in self.table["uri"]]
        return replace(self, table=self.table.with_columns(pl.Series("uri", uris, pl.String)), made=True)

    def _with_rows(self, table: pl.DataFrame) -> Self:
        """These rows, and the objects in their pictures."""
        objects = None if self.objects is None else objects_in(self.objects, table["image_id"])
        return replace(self, table=table, objects=objects)


def is_present(uri: str) -> bool:
    """Whether everything that a picture is made of is there."""
    return all(map(is_file, files_of(uri)))


def with_steps(dataset: Dataset, steps: Steps, every: Iterable[str]) -> Dataset:
    """A selection by words: its notes are the steps and how many images each group has, also of what will be left."""
    assert dataset.group_words is not None
    counts = partial(group_counts, attribute=dataset.group_words.attribute)
    notes = (*steps, counts(dataset.table))
    return replace(dataset, notes=notes, partial=True, remarks=lambda rows: [counts(rows)], source_ids=frozenset(every))


def with_bins(dataset: Dataset, bins: Mapping[str, Edges]) -> Dataset:
    """The data set with these columns as bins; the numbers stay in a column of their own."""
    columns = []
    for name, edges in bins.items():
        numbers = numbers_of(dataset.attribute(name))
        if numbers is None:
            raise UsageError(f"--bins {name}: the values of {name!r} in {dataset.name} are not numbers.")
        name = numbers.name
        columns += [binned(numbers, edges).alias(name), numbers.alias(name + NUMBERS)]
    return replace(dataset, table=dataset.table.with_columns(columns)) if columns else dataset


class ImageDigests(FileDigests):
    """Digests of image contents, so that equal pictures are scored once wherever they are stored."""

    _stamp, _digest_of = staticmethod(stamp), staticmethod(digest_of)

    def of(self, uris: Sequence[str]) -> list[str | None]:
        """One digest per address; None for a file that does not exist."""
        files = list(dict.fromkeys(path for uri in uris for path in files_of(uri)))
        content = dict(zip(files, super().of(files), strict=True))
        return [_image_digest(source_of(uri), content) for uri in uris]

    def remembered(self, uris: Sequence[str]) -> list[str | None]:
        """As `of`, without reading plain files that are not known yet: those are NOT_HASHED."""
        plain = [uri for uri in uris if is_plain_file(uri)]
        known = dict(zip(plain, super().remembered(plain), strict=True))
        made = [uri for uri in uris if uri not in known]
        known.update(zip(made, self.of(made), strict=True))
        return [known[uri] for uri in uris]


def _image_digest(source: Source, content: Mapping[str, str | None]) -> str | None:
    """A file's own digest; for a crop, that of its files and of how it is cut; for a drawing, that of its address."""
    if isinstance(source, str):
        return digest([source, RENDERER_VERSION]) if source.startswith(DRAWN) else content[source]
    if isinstance(source, Changed):
        whole = _image_digest(source.source, content)
        return digest([whole, source.change]) if whole else None
    needed = [content[path] for path in (source.path, source.match) if path]
    return None if None in needed else digest([needed, [source.box, source.match is not None]])


@dataclass(frozen=True)
class DatasetSource:
    """A data set that Beholder knows by name: its licence, its origin, its folder, how to get and how to read it."""

    name: str
    title: str
    licence: str
    origin: str  # where a person can get it
    layout: str  # what its folder must hold
    images: int  # how many images the published set has
    load: Callable[..., Dataset]  # reads it from its folder; also takes the chosen settings if it has any
    fetch: Callable[[Path], None] | None = None  # downloads it into a folder; None if its licence or size forbids that
    embedded: bool = False  # made by Beholder itself: needs no folder
    directory: str = ""  # the name of its folder, if it differs from its own name
    count: Callable[[Path], int] | None = None  # counts images without reading tables; None if its table names them all
    settings: Mapping[str, Setting] = field(default_factory=dict)  # what the user can choose about how it is read
    labels: str = ""  # where the labels of people come from
    intended: str = ""  # what it was made for
    photographs: str = ""  # whether a page may show them: "yes: …" or "no: …", and why; empty where nobody said so

    def folder(self, root: str | Path) -> Path:
        """Its own folder below the folder of all data sets."""
        return Path(root) / (self.directory or self.name)

    def open(self, root: str | Path | None, chosen: Mapping[str, str] | None = None) -> Dataset:
        """Read it, or raise an error that says how to get it."""
        Settings(self.name, self.settings, chosen)  # refuses unknown settings before anything is read
        folder, missing = Path() if self.embedded else self.folder(root or "DIR"), ""
        if root is None and not self.embedded:
            missing = f"The data set '{self.name}' needs a folder."
        elif root is not None and not self.embedded and not Path(root).is_dir():
            missing = f"There is no folder {root}, so the data set '{self.name}' is not there."
        elif not folder.is_dir():
            missing = f"The data set '{self.name}' is not at {folder}."
        if missing:
            raise MissingData(f"{missing}\n{self.how_to_get(Path(root or 'DIR'))}")
        return self.load(folder, chosen) if self.settings else self.load(folder)

    def how_to_get(self, root: Path) -> str:
        """How to get it, for a person."""
        fetch = f"Run: beholder data fetch {self.name} --data {root}\nOr get it" if self.fetch else "Get it"
        return (
            f"{fetch} from {self.origin} and put it at {self.folder(root)} ({self.layout}), "
            "then pass the folder above it as --data (or set BEHOLDER_DATA)."
        )


def published(name: str, load: Callable[..., Dataset], **others: Any) -> DatasetSource:
    """A data set that comes with Beholder; what is known of it stands in `sources.csv`."""
    facts: Entry = {key: value for key, value in FACTS[name].items() if key != "read_by"}
    facts["images"] = int(facts["images"])
    return DatasetSource(load=load, settings=choices(name), **facts, **others)
