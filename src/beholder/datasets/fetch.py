"""Fetch a data set's public archive: whole or not at all, and nothing outside its own folder."""

from __future__ import annotations

import shutil
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from beholder.core.errors import BadImage, DataError, MissingData
from beholder.core.files import leads_out
from beholder.datasets.dataset import Dataset
from beholder.datasets.images import open_image

SWOLLEN = 100
"""An archive of pictures that grows by more than this factor is none."""


def fetch_archive(url: str, folder: Path, *, keep: str) -> None:
    """Download a zip archive and move its folder named `keep` to `folder / keep`."""
    if (folder / keep).exists():
        raise DataError(f"{folder / keep} is there already; move it away to fetch a fresh copy.")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        archive = Path(scratch) / "archive.zip"
        _download(url, archive, folder / keep)
        unpack_folder(archive, keep, Path(scratch) / "unpacked")
        (Path(scratch) / "unpacked").replace(folder / keep)


def _download(url: str, target: Path, destination: Path) -> None:
    try:
        with urllib.request.urlopen(url, timeout=60) as response, target.open("wb") as file:
            shutil.copyfileobj(response, file)
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise MissingData(
            f"{url} could not be downloaded ({error}).\nOn a machine with a network: download that file, unpack it, "
            f"and put its folder '{destination.name}' at {destination}."
        ) from error


def unpack_folder(archive: Path, keep: str, target: Path) -> None:
    """The files below the folder `keep`, wherever it stands in the archive; members that climb out are refused."""
    try:
        with zipfile.ZipFile(archive) as bundle:
            _refuse_bomb(bundle, archive, target.parent)
            for member in bundle.infolist():
                inside = _below(PurePosixPath(member.filename), keep)
                if inside is None or member.is_dir():
                    continue
                path = target / inside
                path.parent.mkdir(parents=True, exist_ok=True)
                with bundle.open(member) as source, path.open("wb") as file:
                    shutil.copyfileobj(source, file)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise DataError(f"{archive} is not a zip archive that can be unpacked: {error}") from error
    if not target.is_dir():
        raise DataError(f"The archive holds no folder named '{keep}'.")


def _refuse_bomb(bundle: zipfile.ZipFile, archive: Path, scratch: Path) -> None:
    """Raise if the files would fill the disk, or grow as no pictures do; a member never gives more than it says."""
    size = sum(member.file_size for member in bundle.infolist())
    free = shutil.disk_usage(scratch).free
    if size > free or size > SWOLLEN * archive.stat().st_size:
        raise DataError(
            f"{archive.name} has {archive.stat().st_size:,} bytes and would unpack to {size:,}; {free:,} are free. "
            "Nothing was unpacked."
        )


def _below(member: PurePosixPath, keep: str) -> Path | None:
    if leads_out(str(member)):
        raise DataError(f"The archive names a file outside its folder: {member}. Nothing was unpacked.")
    if keep not in member.parts[:-1]:
        return None
    return Path(*member.parts[member.parts.index(keep) + 1 :])


# Open every image of a data set and say which cannot be read

NAMED = 20
"""Unreadable images that a message names."""


def damaged_images(dataset: Dataset, advance: Callable[[int], None] = lambda count: None) -> dict[str, str]:
    """Image id → reason, for every image that cannot be read."""
    reasons = unreadable(dataset.table["uri"].to_list(), advance)
    named = zip(dataset.table["image_id"], dataset.table["uri"], strict=True)
    return {image_id: reasons[uri] for image_id, uri in named if uri in reasons}


def unreadable(uris: Sequence[str], advance: Callable[[int], None] = lambda count: None) -> dict[str, str]:
    """Address → reason, for every image that cannot be read."""
    reasons = {}
    with ThreadPoolExecutor() as pool:
        for uri, reason in zip(uris, pool.map(_reason, uris), strict=True):
            advance(1)
            if reason:
                reasons[uri] = reason
    return reasons


def unreadable_error(reasons: Mapping[str, str], images: int) -> DataError:
    """What to tell of images that cannot be read: all of them in one message, and what to do."""
    listed = "\n".join(f"  {uri}: {reason}" for uri, reason in list(reasons.items())[:NAMED])
    more = f"\n  … and {len(reasons) - NAMED} more" if len(reasons) > NAMED else ""
    return DataError(
        f"{len(reasons)} of {images:,} images cannot be read:\n{listed}{more}\n"
        "Replace them, or continue without them: --skip-bad-images."
    )


def _reason(uri: str) -> str | None:
    try:
        open_image(uri)
    except BadImage as error:
        return error.reason
    return None
