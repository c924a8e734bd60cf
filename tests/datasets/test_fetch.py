"""Fetching: whole or not at all, nothing outside the folder, and a clear word when there is no network."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from beholder.core.errors import DataError, MissingData
from beholder.datasets import DATASETS
from beholder.datasets.apa import fetch_archive, unpack_folder


def archive(path: Path, names: list[str]) -> Path:
    with zipfile.ZipFile(path, "w") as bundle:
        for name in names:
            bundle.writestr(name, name)
    return path


def test_the_wanted_folder_is_taken_out_of_the_archive(tmp_path: Path):
    path = archive(tmp_path / "a.zip", ["repo-main/data/actors.txt", "repo-main/data/actors/0.jpg", "repo-main/x.py"])
    fetch_archive(path.as_uri(), tmp_path / "apa", keep="data")
    found = sorted(str(p.relative_to(tmp_path / "apa")) for p in (tmp_path / "apa").rglob("*") if p.is_file())
    assert found == ["data/actors.txt", "data/actors/0.jpg"]
    assert (tmp_path / "apa/data/actors/0.jpg").read_text() == "repo-main/data/actors/0.jpg"


def test_a_member_that_climbs_out_is_refused(tmp_path: Path):
    path = archive(tmp_path / "a.zip", ["repo/data/../../../evil.txt"])
    with pytest.raises(DataError, match="outside its folder"):
        unpack_folder(path, "data", tmp_path / "out")
    assert not (tmp_path / "evil.txt").exists()


def test_an_archive_without_the_folder_leaves_nothing(tmp_path: Path):
    path = archive(tmp_path / "a.zip", ["repo/readme"])
    with pytest.raises(DataError, match="no folder named 'data'"):
        fetch_archive(path.as_uri(), tmp_path / "apa", keep="data")
    assert list((tmp_path / "apa").iterdir()) == []


def test_what_is_there_is_not_overwritten(tmp_path: Path):
    (tmp_path / "apa" / "data").mkdir(parents=True)
    with pytest.raises(DataError, match="is there already"):
        fetch_archive("file:///nowhere", tmp_path / "apa", keep="data")


def test_without_a_network_the_error_says_what_to_download_and_where_to_put_it(tmp_path: Path):
    fetch = DATASETS["apa"].fetch
    assert fetch is not None
    with pytest.raises(MissingData) as caught:
        fetch(tmp_path / "apa")
    assert "apa-bench/archive" in str(caught.value)
    assert str(tmp_path / "apa" / "benchmark-data-v1") in str(caught.value)


def test_an_archive_that_would_fill_the_disk_is_refused(tmp_path: Path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("repo/data/zeros.bin", bytes(1 << 22))
    with pytest.raises(DataError, match=r"would unpack to 4,194,304; .*Nothing was unpacked"):
        unpack_folder(path, "data", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_in_an_archive_becomes_a_plain_file(tmp_path: Path):
    link = zipfile.ZipInfo("repo/data/link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as bundle:
        bundle.writestr(link, "/etc/passwd")
    unpack_folder(tmp_path / "a.zip", "data", tmp_path / "out")
    assert not (tmp_path / "out" / "link").is_symlink()
    assert (tmp_path / "out" / "link").read_text() == "/etc/passwd"
