"""APA benchmark v1: 845 photographs of US politicians, actors and athletes, with names and sourced labels."""

import shutil
import tempfile
import urllib.request
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder.core.errors import DataError, MissingData
from beholder.core.files import leads_out
from beholder.core.read import read_labels
from beholder.datasets.dataset import Dataset, published

FOLDER = "benchmark-data-v1"
REPOSITORY = "https://github.com/uvavision/apa-bench"
ARCHIVE = f"{REPOSITORY}/archive/refs/heads/main.zip"


class Branch(NamedTuple):
    """What the published copy holds."""

    images: int
    women: int
    men: int
    columns: tuple[str, ...] = ()


BRANCHES = {
    "actors": Branch(100, 40, 60, ("film", "academy_award")),
    "athletes": Branch(109, 30, 79, ("sport",)),
    "house": Branch(436, 126, 310, ("party",)),
    "senate": Branch(100, 24, 76, ("party",)),
    "mayors": Branch(100, 33, 67, ("party",)),
}


def load(folder: Path) -> Dataset:
    """Every branch that is present; the notes list what is missing or differs from the published copy."""
    base = folder / FOLDER if (folder / FOLDER).is_dir() else folder
    present = [name for name in BRANCHES if (base / f"{name}.txt").is_file()]
    if not present:
        raise MissingData(f"No APA table lies at {base}: expected {', '.join(f'{name}.txt' for name in BRANCHES)}.")
    tables = [_load_branch(base, name) for name in present]
    notes = [f"{name}: the table {name}.txt is not there" for name in BRANCHES if name not in present]
    notes += [note for name, table in zip(present, tables, strict=True) for note in _deviations(name, table)]
    return Dataset("apa", "v1", SOURCE.licence, pl.concat(tables, how="diagonal"), tuple(notes))


def _load_branch(base: Path, branch: str) -> pl.DataFrame:
    columns = BRANCHES[branch].columns
    path, labels = base / f"{branch}.txt", ["names", "gender", *columns]
    raw = read_labels(path, "filename", labels, delimiter="\t", filled=2, climbs=True)  # of a path, the name is read
    return raw.select(
        (branch + "/" + pl.col("filename")).alias("image_id"),
        (str(base / branch) + "/" + pl.col("filename").str.replace_all(r"^.*[/\\]", "")).alias("uri"),
        pl.lit(branch).alias("branch"),
        pl.col("names").alias("name"),
        "gender",
        *columns,
    )


def _deviations(branch: str, table: pl.DataFrame) -> list[str]:
    """In what this copy differs from the published one, and whom it shows twice."""
    women, men = (table.filter(gender=word).height for word in ("woman", "man"))
    counts = zip(("images", "women", "men"), (table.height, women, men), BRANCHES[branch][:3], strict=True)
    notes = [f"{branch}: {have} {what}, the published copy has {want}" for what, have, want in counts if have != want]
    twice = table.filter(pl.col("name").is_duplicated()).n_unique("name") if table.height else 0
    if twice:
        who = "1 person stands" if twice == 1 else f"{twice} people stand"
        notes.append(f"{branch}: {who} there more than once; any of their photographs is right for the name")
    return notes


# Its public archive: fetched whole or not at all, and nothing outside its own folder

SWOLLEN = 100  # an archive of pictures that grows by more than this factor is none


def fetch_archive(url: str, folder: Path, *, keep: str) -> None:
    """Download a zip archive and move its folder named `keep` to `folder / keep`."""
    if (folder / keep).exists():
        raise DataError(f"{folder / keep} is there already; move it away to fetch a fresh copy.")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        archive = Path(scratch) / "archive.zip"
        try:
            with urllib.request.urlopen(url, timeout=60) as response, archive.open("wb") as file:
                shutil.copyfileobj(response, file)
        except OSError as error:
            raise MissingData(
                f"{url} could not be downloaded ({error}).\nOn a machine with a network: download that file, unpack "
                f"it, and put its folder '{keep}' at {folder / keep}."
            ) from error
        unpack_folder(archive, keep, folder / keep)


def unpack_folder(archive: Path, keep: str, target: Path) -> None:
    """The folder `keep`, wherever it stands in the archive; members that climb out are refused."""
    try:
        with zipfile.ZipFile(archive) as bundle, tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            _refuse_bomb(bundle, archive, target.parent)
            for name in bundle.namelist():
                if leads_out(name):
                    raise DataError(f"The archive names a file outside its folder: {name}.")
                bundle.extract(name, scratch)
            folders = sorted(path for path in Path(scratch).rglob(keep) if path.is_dir())
            if not folders:
                raise DataError(f"The archive holds no folder named '{keep}'.")
            folders[0].replace(target)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise DataError(f"{archive} is not a zip archive that can be unpacked: {error}") from error


def _refuse_bomb(bundle: zipfile.ZipFile, archive: Path, scratch: Path) -> None:
    """Raise if the files would fill the disk, or grow as no pictures do; a member never gives more than it says."""
    size = sum(member.file_size for member in bundle.infolist())
    free = shutil.disk_usage(scratch).free
    if size > free or size > SWOLLEN * archive.stat().st_size:
        raise DataError(
            f"{archive.name} has {archive.stat().st_size:,} bytes and would unpack to {size:,}; {free:,} are free. "
            "Nothing was unpacked."
        )


SOURCE = published("apa", load, fetch=lambda folder: fetch_archive(ARCHIVE, folder, keep=FOLDER))
