"""Data sets in shards: `wds:URI`, webdataset tars, and `hf:NAME_OR_PATH`, Parquet shards or Arrow of Hugging Face.

Of a tar, members with the same key are one row: `a.jpg` with `a.json`, `a.cls` or `a.txt`. Each is looked through once,
and that of a URI is noted in the user's cache; a picture that a tar is cut off in counts as one that cannot be read. Of
Parquet and Arrow only the attributes are read here. Every picture is then read by its place or row group when it is
needed, so that a run can go on in the middle.
"""

import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple, Self

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import PanicException, PolarsError

from beholder.core.digests import content_digest, digest
from beholder.core.errors import BeholderError, DataError, MissingData, first_line, masked
from beholder.core.files import cache_folder, remote_errors, write_whole
from beholder.core.read import parse_json, table_of, with_plain_names
from beholder.core.types import Entry
from beholder.datasets import content, folder
from beholder.datasets.content import Part, is_file, is_folder, is_remote, joined
from beholder.datasets.dataset import Dataset
from beholder.datasets.settings import Settings, choices

# Tars

RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
MEMBER = re.compile(r"((?:.*/)?[^./]+)\.([^/]+)", re.DOTALL)  # key and ending: before and after the first dot
TEXTS = ("txt", "text", "cls")
LONGEST = 1 << 20  # labels of more bytes than this are none
VERSION = 1  # of what is noted of a tar
BLOCK, LOOKED_THROUGH = 1 << 16, 8  # bytes of a tar behind a URI, and tars, that are read at a time


def load_wds(place: str, chosen: Mapping[str, str] | None = None) -> Dataset:
    """One row for every picture, with what its labels say."""
    settings, paths = Settings(f"wds:{place}", choices("wds"), chosen), tars(place)
    for path in paths:
        folder.refuse_links([path], place if is_folder(place) else path, outside=folder.allows_links(settings))
    with ThreadPoolExecutor(LOOKED_THROUGH) as pool:
        found = list(pool.map(_looked_through, paths))
    rows = [row for tar in found for row in tar.rows]
    if not rows:
        raise DataError(f"wds:{place}: no picture is in these tars.")
    table = with_plain_names(table_of(rows), f"wds:{place}")
    if table["image_id"].is_duplicated().any():
        table = table.with_columns(image_id=pl.col("_shard") + "/" + pl.col("image_id"))
    table = table.drop("_shard").select("image_id", "uri", pl.exclude("image_id", "uri"))
    places = [[row["_shard"], row["uri"].rpartition("#")[0].rpartition("#")[2]] for row in rows]
    revision = digest([places, table.drop("uri").hash_rows().to_list()])
    notes = tuple(tar.note for tar in found if tar.note)
    home = place if is_folder(place) else content.parent(place)
    return Dataset(f"wds:{folder.base_name(home)}", revision, folder.OWN, table, notes, made=True)


def tars(place: str) -> list[str]:
    """The tars that are meant, all of which are there."""
    if is_folder(place):
        found = [joined(place, name) for name in content.files_below(place) if name.lower().endswith(".tar")]
        if not found:
            raise MissingData(f"There is no .tar in {place}.")
        return found
    found = list(_expanded(place))
    missing = [path for path in found if not is_file(path)]
    if missing:
        raise MissingData(f"{len(missing)} of {len(found)} tars are not there; the first is {missing[0]}.")
    return found


def _expanded(place: str) -> Iterator[str]:
    """Every name that `{000..009}` stands for."""
    match = RANGE.search(place)
    if not match:
        yield place
        return
    for number in range(int(match[1]), int(match[2]) + 1):
        yield from _expanded(f"{place[: match.start()]}{number:0{len(match[1])}}{place[match.end() :]}")


def _looked_through(path: str) -> "_Tar":
    """The tar; of one behind a URI, what was noted of it when it was looked through before."""
    if not is_remote(path):
        return _Tar(path).looked_through()
    known = cache_folder() / "remote" / "tars" / f"{digest([VERSION, content.stamp(path)])}.json"
    with suppress(OSError, ValueError, TypeError):
        check, _, data = known.read_bytes().partition(b"\n")
        if check.decode() == content_digest(data):
            return _Tar(path, *json.loads(data))
    tar = _Tar(path).looked_through()
    data = json.dumps([tar.labels, tar.pictures, tar.note]).encode()
    with suppress(OSError):
        write_whole(known, content_digest(data).encode() + b"\n" + data, private=True)
    return tar


@dataclass
class _Tar:
    """One tar: what the labels say, where the pictures are (start, size, name), and what there is to say of it."""

    path: str
    labels: dict[str, Entry] = field(default_factory=dict)
    pictures: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    note: str = ""

    def looked_through(self) -> Self:
        """The same, after its members were read."""
        path = self.path
        with remote_errors(path, "read"):
            try:
                with content.open_binary(path, block=BLOCK) as raw:
                    self._look_through(raw)
            except (tarfile.TarError, ValueError, OverflowError, MemoryError) as error:
                raise DataError(
                    f"{path} cannot be read as a tar: {first_line(error)}.\n"
                    "It may be cut off, so get it again; or it may be packed (.tar.gz), so unpack it: "
                    "pictures are read from their places in the tar."
                ) from error
            except OSError as error:
                raise DataError(f"{path} cannot be read: {first_line(error)}") from error
        return self

    @property
    def rows(self) -> Iterator[Entry]:
        """A row for every picture, in its order."""
        name = PurePosixPath(self.path).name
        for key, place in self.pictures.items():
            part = Part("wds", self.path, *place)
            yield {**self.labels.get(key, {}), "image_id": key, "uri": str(part), "_shard": name}

    def _look_through(self, raw: Any) -> None:
        size = raw.seek(0, 2)
        raw.seek(0)
        with tarfile.open(fileobj=raw, mode="r:") as tar:
            try:
                for member in tar:
                    self._take(tar, member)
            except tarfile.ReadError:
                self._cut_off(size)
                if not self.note:
                    raise
            self._cut_off(size)

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        match = MEMBER.fullmatch(member.name)
        if member.size < 0:
            raise tarfile.ReadError(f"{member.name} has {member.size} bytes")
        if not member.isfile() or not match or PurePosixPath(member.name).name.startswith("."):
            return
        key, ending = match[1], match[2].lower()
        if folder.is_image(member.name) and key not in self.pictures:
            self.pictures[key] = member.offset_data, member.size, member.name
        elif member.size <= LONGEST and (ending == "json" or ending in TEXTS):
            self.labels.setdefault(key, {}).update(_labels(tar, member, ending, self.path))

    def _cut_off(self, size: int) -> None:
        """Note that the tar ends in the middle of a picture; reading that picture will fail, and say so."""
        start, length, name = next(reversed(self.pictures.values()), (0, 0, ""))
        if start + length > size:
            self.note = f"{masked(self.path)} is cut off in {name}: nothing is known of what came after it"


def _labels(tar: tarfile.TarFile, member: tarfile.TarInfo, ending: str, path: str) -> Entry:
    """What a label file says: the fields of a JSON object, or a text by its ending."""
    file = tar.extractfile(member)
    assert file is not None  # a plain member
    data = file.read()
    try:
        if ending != "json":
            return {ending: data.decode().strip()}
        value = parse_json(data.decode(), f"{path}: {member.name}")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: {member.name} cannot be read: {first_line(error)}") from error
    if not isinstance(value, dict):
        return {"json": value}
    return {key: each for key, each in value.items() if not isinstance(each, (dict, list))}


# Parquet and Arrow

ENDINGS = (".parquet", ".arrow")
SPLIT = re.compile(r"(.+?)-\d{5}-of-\d{5}")  # how the files of a split are named: train-00000-of-00002.parquet
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
CONVERTED = "@refs%2Fconvert%2Fparquet"  # where the hub keeps every data set as Parquet


class _Shard(NamedTuple):
    path: str
    name: str  # below the folder of the data set
    table: pa.Table  # all columns but the pictures
    sizes: list[int]  # rows of every row group
    column: str


def load_hf(place: str, chosen: Mapping[str, str] | None = None) -> Dataset:
    """All rows with a picture, or those of one split; a folder of image files is read as `folder:PATH` is."""
    settings = Settings(f"hf:{place}", choices("hf"), chosen)
    home, names = _files(place)
    names = [name for name in names if not name or name.lower().endswith(ENDINGS)]
    files = [joined(home, name) if name else home for name in names]
    folder.refuse_links(files, home, outside=folder.allows_links(settings))
    split = settings.text("split")
    splits = {name: _split(name) for name in names}
    if split and split not in splits.values():
        raise DataError(f"hf:{place} has no split {split!r}. It has: {', '.join(sorted(set(splits.values())))}.")
    wanted = [name for name in names if split in ("", splits[name])]
    shards = [shard for name in wanted for shard in _shards(home, name, settings.text("image"))]
    if not shards:
        if is_folder(home) and not settings.chosen:
            return folder.load(home)
        raise DataError(
            f"hf:{place}: no Parquet or Arrow file there has a column of pictures.\n"
            f"Files: {', '.join(names[:10]) or 'none'}. Name the column with --set image=NAME."
        )
    tables = [_attributes(shard, splits[shard.name] if len(set(splits.values())) > 1 else None) for shard in shards]
    table = pl.concat(tables, how="diagonal_relaxed")
    if table["image_id"].is_duplicated().any():
        ids = [f"{shard.name}#{row}" for shard in shards for row in range(sum(shard.sizes))]
        table = table.with_columns(pl.Series("image_id", ids))
    revision = digest([[shard.name, sum(shard.sizes)] for shard in shards] + [table.drop("uri").hash_rows().to_list()])
    schemas = ((field, shard.column) for shard in shards for field in shard.table.schema)
    others = [field for field, images in schemas if field.name != images]
    unread = dict.fromkeys(field.name for field in others if _no_label(field.type))
    notes = (f"columns of lists, records, bytes and spans of time are left out: {', '.join(unread)}",) if unread else ()
    return Dataset(f"hf:{folder.base_name(place)}", revision, folder.OWN, table, notes, made=True)


def _files(place: str) -> tuple[str, list[str]]:
    """The folder of the data set and the names of its files; a single file has the name ``."""
    if is_file(place):
        return place, [""] if place.lower().endswith(ENDINGS) else []
    if is_remote(place) or is_folder(place):
        return place, content.files_below(place)
    if not HUB_ID.fullmatch(place):
        raise MissingData(f"There is no folder and no file at {place}.")
    try:
        for home in (f"hf://datasets/{place}", f"hf://datasets/{place}{CONVERTED}"):
            names = content.files_below(home)
            if any(name.endswith(".parquet") for name in names):
                return home, names
    except BeholderError:
        raise
    except Exception as error:  # huggingface_hub gives the errors of several libraries
        raise MissingData(
            f"There is no folder {place} here, and the hub gives no data set of that name: "
            f"{first_line(error).rstrip('.')}."
        ) from error
    raise MissingData(f"The hub's data set {place} has no Parquet files.")


def _split(name: str) -> str:
    """The split of a shard by its name, else by its folder."""
    path = PurePosixPath(name)
    match = SPLIT.fullmatch(path.stem)
    if match and match[1] != "data":
        return match[1]
    return path.parent.name or path.stem


def _shards(home: str, name: str, wanted: str) -> Iterator[_Shard]:
    """The shard, if it has pictures."""
    path, name = joined(home, name) if name else home, name or folder.base_name(home)
    try:
        if path.endswith(".arrow"):
            if is_remote(path):
                raise DataError(f"{path}: Arrow files are read on this machine only. Copy it here, or save as Parquet.")
            batches = content.record_batches(path, content.stamp(path))
            sizes, schema = [batch.num_rows for batch in batches], batches[0].schema if batches else pa.schema([])
            column = _image_column(schema, path, wanted)
            if column:
                yield _Shard(path, name, pa.Table.from_batches(batches).drop_columns([column]), sizes, column)
            return
        with content.open_binary(path) as raw:
            file = pq.ParquetFile(raw)
            column = _image_column(file.schema_arrow, path, wanted)
            if column:
                others = [each for each in file.schema_arrow.names if each != column]
                sizes = [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)]
                path_too = [f"{column}.path"] if pa.types.is_struct(file.schema_arrow.field(column).type) else []
                table = file.read(columns=[*others, *path_too])
                table.validate(full=True)
                yield _Shard(path, name, table, sizes, column)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {first_line(error)}") from error


def _image_column(schema: pa.Schema, path: str, wanted: str) -> str | None:
    """The column that holds pictures: bytes, or bytes with a path; by name if there are several."""
    repeated = [name for name in schema.names if schema.names.count(name) > 1]
    if repeated:
        raise DataError(f"{path}: the column {repeated[0]!r} occurs more than once.")
    if wanted and wanted not in schema.names:
        raise DataError(f"{path} has no column {wanted!r}. It has: {', '.join(schema.names)}.")
    features = _features(schema, path)
    declared = [name for name in schema.names if features.get(name, {}).get("_type") == "Image"]
    fitting = [wanted] if wanted else declared or [field.name for field in schema if _holds_bytes(field.type)]
    if len(fitting) > 1:
        named = f"{', '.join(fitting)}.\nName one of them: --set image={fitting[0]}"
        raise DataError(f"{path} has several columns of pictures: {named}")
    return fitting[0] if fitting else None


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0 and kind.get_field_index("path") >= 0)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _features(schema: pa.Schema, path: str) -> dict[str, Entry]:
    """What `datasets` says of its columns."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        json.dumps(features, ensure_ascii=False).encode()
        return {name: feature for name, feature in features.items() if isinstance(feature, dict)}
    except UnicodeEncodeError as error:
        raise DataError(f"{path}: the names of its classes have half a character (a lone surrogate).") from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return {}


def _no_label(kind: pa.DataType) -> bool:
    """Whether values of this kind cannot stand for a group or a number."""
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return bool(binary or pa.types.is_nested(kind) or pa.types.is_duration(kind))


def _attributes(shard: _Shard, split: str | None) -> pl.DataFrame:
    """The columns that can be attributes; class numbers by their names."""
    features, schema = _features(shard.table.schema, shard.path), shard.table.schema
    plain = [field.name for field in schema if field.name != shard.column and not _no_label(field.type)]
    try:
        columns = shard.table.select(plain).replace_schema_metadata()
        table = pl.DataFrame(pl.from_arrow(columns)) if plain else pl.DataFrame()
    except (PolarsError, PanicException) as error:
        raise DataError(f"{shard.path} cannot be read: {first_line(error)}") from error
    for name in plain:
        names = features.get(name, {}).get("names")
        if isinstance(names, list) and table[name].dtype.is_integer():
            known = dict(enumerate(map(str, names)))
            labels = [known.get(value) if value is not None else None for value in table[name]]
            table = table.with_columns(pl.Series(name, labels, pl.String))
    table = with_plain_names(table, shard.path)
    ids: list[str | None] = [None]
    if "image_id" in table.columns:
        ids = table["image_id"].cast(pl.String).to_list()
    elif shard.column in shard.table.column_names:  # the pictures' own names; in Arrow folders they are not read
        ids = [row.get("path") if row else None for row in shard.table.column(shard.column).to_pylist()]
    if None in ids or len(set(ids)) < len(ids):
        ids = [f"{shard.name}#{row}" for row in range(sum(shard.sizes))]
    cells = ((group, row) for group, size in enumerate(shard.sizes) for row in range(size))
    uris = [str(Part("hf", shard.path, group, row, shard.column)) for group, row in cells]
    keys = pl.DataFrame({"image_id": ids, "uri": uris}, schema={"image_id": pl.String, "uri": pl.String})
    table = keys.hstack(table.drop("image_id", "uri", strict=False))
    return table.with_columns(split=pl.lit(split)) if split and "split" not in table.columns else table
