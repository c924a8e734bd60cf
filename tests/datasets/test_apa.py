"""APA's own layout, its stray blanks, its doubled athlete, and copies that deviate."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.comparison.groups import people_of
from beholder.core.errors import DataError, MissingData
from beholder.datasets import load_dataset
from beholder.datasets.apa import BRANCHES, load
from beholder.datasets.survey import damaged_images

ACTORS = '""\tUnnamed: 0\t"filename"\t"names"\t"film"\t"gender"\t"academy_award"\n'
ROW = '0 \t0 \t"000.jpg"\t"Ann Other "\t"A Film"\t" woman"\t0\n'


def write(folder: Path, text: str, name: str = "actors.txt") -> Path:
    base = folder / "benchmark-data-v1"
    base.mkdir(exist_ok=True)
    (base / name).write_text(text, encoding="utf-8")
    return folder


def test_blanks_are_stripped_and_index_columns_dropped(tmp_path: Path):
    table = load(write(tmp_path, ACTORS + ROW)).table
    assert table.select("image_id", "name", "gender", "academy_award").row(0) == (
        "actors/000.jpg",
        "Ann Other",
        "woman",
        "0",
    )


def test_a_copy_that_deviates_is_said_so(tmp_path: Path):
    notes = load(write(tmp_path, ACTORS + ROW)).notes
    assert "actors: 1 images, the published copy has 100" in notes
    assert "senate: the table senate.txt is not there" in notes


def test_a_missing_column_is_named(tmp_path: Path):
    text = (ACTORS + ROW).replace("academy_award", "oscars")
    with pytest.raises(DataError, match=r"actors.txt: the column 'academy_award' is missing"):
        load(write(tmp_path, text))


def test_a_row_without_a_name_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="row 2 has no names"):
        load(write(tmp_path, ACTORS + ROW.replace("Ann Other ", " ")))


def test_repeated_files_are_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"'actors/000\.jpg'"):
        load(write(tmp_path, ACTORS + ROW + ROW))


def test_text_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path):
    path = write(tmp_path, "") / "benchmark-data-v1" / "actors.txt"
    path.write_bytes((ACTORS + ROW).encode().replace(b"Ann", b"Ann\xe9"))
    with pytest.raises(DataError, match="line 2 is not UTF-8"):
        load(tmp_path)


def test_a_ragged_row_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="line 2 has 8 cells, the header has 7"):
        load(write(tmp_path, ACTORS + ROW.replace("\n", "\textra\n")))


def test_an_empty_folder_says_what_it_expected(tmp_path: Path):
    with pytest.raises(MissingData, match=r"actors\.txt"):
        load(tmp_path)


def test_a_file_name_that_climbs_out_stays_inside(tmp_path: Path):
    table = load(write(tmp_path, ACTORS + ROW.replace("000.jpg", "../../../etc/passwd"))).table
    assert table["uri"][0] == str(tmp_path / "benchmark-data-v1" / "actors") + "/passwd"


@pytest.mark.real
def test_the_published_copy_is_complete(data: Path):
    dataset = load_dataset("apa", data)
    counts = dict(dataset.table["branch"].value_counts().iter_rows())
    assert counts == {name: branch.images for name, branch in BRANCHES.items()}
    assert [note for note in dataset.notes if "published" in note] == []
    assert dataset.notes == (
        "athletes: 1 person stands there more than once; any of their photographs is right for the name",
    )
    assert dataset.where(branch="athletes").table["sport"].n_unique() == 16


@pytest.mark.real
def test_every_photograph_can_be_read(data: Path):
    assert damaged_images(load_dataset("apa", data).limit(20, by="branch")) == {}


@pytest.mark.real
def test_people_of_one_branch_are_told_apart(data: Path):
    """A table read from five files lay in pieces, over which polars panicked."""
    table = load_dataset("apa", str(data)).table
    for branch in BRANCHES:
        people = people_of(table.filter((table["branch"] == branch).to_numpy()))
        assert (people.column, len(people.codes)) == ("name", BRANCHES[branch].images)
