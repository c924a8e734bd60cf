"""`wds:URI`: webdataset tars. Members with the same key are one row: `a.jpg` with `a.json`, `a.cls` or `a.txt`.

Each tar is looked through once, and that of a URI is noted in the user's cache; every picture is then read by its
place, so that a run can go on in the middle. A picture that a tar is cut off in counts as one that cannot be read.
"""

import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Self

import polars as pl

from beholder.core.digests import content_digest, digest
from beholder.core.errors import DataError, MissingData, first_line, masked
from beholder.core.files import cache_folder, remote_errors, write_whole
from beholder.core.read import parse_json
from beholder.core.tables import table_of, with_plain_names
from beholder.core.types import Entry
from beholder.datasets import content
from beholder.datasets.content import Part, is_file, is_folder, is_remote, joined
from beholder.datasets.dataset import Dataset
from beholder.datasets.folder import OWN, allows_links, base_name, is_image, refuse_links
from beholder.datasets.settings import Settings, choices

RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
MEMBER = re.compile(r"((?:.*/)?[^./]+)\.([^/]+)", re.DOTALL)  # key and ending: before and after the first dot
TEXTS = ("txt", "text", "cls")
LONGEST = 1 << 20  # labels of more bytes than this are none
VERSION = 1  # of what is noted of a tar
BLOCK, LOOKED_THROUGH = 1 << 16, 8  # bytes of a tar behind a URI, and tars, that are read at a time
Record = Entry


def load(place: str, chosen: Mapping[str, str] | None = None) -> Dataset:
    """One row for every picture, with what its labels say."""
    settings, tars = Settings(f"wds:{place}", choices("wds"), chosen), shards(place)
    for path in tars:
        refuse_links([path], place if is_folder(place) else path, outside=allows_links(settings))
    with ThreadPoolExecutor(LOOKED_THROUGH) as pool:
        found = list(pool.map(_looked_through, tars))
    rows = [row for shard in found for row in shard.rows]
    if not rows:
        raise DataError(f"wds:{place}: no picture is in these tars.")
    table = with_plain_names(table_of(rows), f"wds:{place}")
    if table["image_id"].is_duplicated().any():
        table = table.with_columns(image_id=pl.col("_shard") + "/" + pl.col("image_id"))
    table = table.drop("_shard").select("image_id", "uri", pl.exclude("image_id", "uri"))
    places = [[row["_shard"], row["uri"].rpartition("#")[0].rpartition("#")[2]] for row in rows]
    revision = digest([places, table.drop("uri").hash_rows().to_list()])
    notes = tuple(shard.note for shard in found if shard.note)
    home = place if is_folder(place) else content.parent(place)
    return Dataset(f"wds:{base_name(home)}", revision, OWN, table, notes, made=True)


def shards(place: str) -> list[str]:
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


def _looked_through(path: str) -> "_Shard":
    """The tar; of one behind a URI, what was noted of it when it was looked through before."""
    if not is_remote(path):
        return _Shard(path).looked_through()
    known = cache_folder() / "remote" / "tars" / f"{digest([VERSION, content.stamp(path)])}.json"
    with suppress(OSError, ValueError, TypeError):
        check, _, data = known.read_bytes().partition(b"\n")
        if check.decode() == content_digest(data):
            return _Shard(path, *json.loads(data))
    shard = _Shard(path).looked_through()
    data = json.dumps([shard.labels, shard.pictures, shard.note]).encode()
    with suppress(OSError):
        write_whole(known, content_digest(data).encode() + b"\n" + data, private=True)
    return shard


@dataclass
class _Shard:
    """One tar: what the labels say, where the pictures are (start, size, name), and what there is to say of it."""

    path: str
    labels: dict[str, Record] = field(default_factory=dict)
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
    def rows(self) -> Iterator[Record]:
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
        if is_image(member.name) and key not in self.pictures:
            self.pictures[key] = member.offset_data, member.size, member.name
        elif member.size <= LONGEST and (ending == "json" or ending in TEXTS):
            self.labels.setdefault(key, {}).update(_labels(tar, member, ending, self.path))

    def _cut_off(self, size: int) -> None:
        """Note that the tar ends in the middle of a picture; reading that picture will fail, and say so."""
        start, length, name = next(reversed(self.pictures.values()), (0, 0, ""))
        if start + length > size:
            self.note = f"{masked(self.path)} is cut off in {name}: nothing is known of what came after it"


def _labels(tar: tarfile.TarFile, member: tarfile.TarInfo, ending: str, path: str) -> Record:
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
