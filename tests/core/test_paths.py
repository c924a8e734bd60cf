"""Names out of other people's files lead nowhere but into their own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.core.errors import DataError, MissingData
from beholder.core.files import file_system, leads_out, links_out, place
from beholder.datasets import load_dataset

OUT = ("..", "../a", "a/../../b", "a\\..\\..\\b", "/etc/passwd", "\\\\host\\share\\a", "c:\\a", "s3://x/y", "a\0b")


@pytest.mark.parametrize("name", OUT)
def test_a_name_that_leads_out_is_found(name: str):
    assert leads_out(name)


@pytest.mark.parametrize("name", ["a.jpg", "a/b c/ü.jpg", "..a.jpg", "a..b", "./a.jpg", "ab:c/d e.jpg"])
def test_any_other_name_is_left_alone(name: str):
    assert not leads_out(name)


@pytest.mark.parametrize("protocol", ["zip", "github", "http", "simplecache::s3", "zip://a.csv::memory"])
def test_a_protocol_that_is_not_in_the_list_is_refused(protocol: str):
    uri = f"{protocol}://bucket/a"
    fault = "URIs cannot be chained with '::'" if "::" in uri else f"the protocol '{protocol}' is not allowed"
    for open_it in (place, Path, file_system, lambda uri: load_dataset(f"folder:{uri}")):
        with pytest.raises(MissingData) as refused:
            place(open_it(uri))
        message = str(refused.value)
        assert fault in message
        assert "Allowed: abfs, abfss, adl, az, file, gcs, gs, hf, memory" in message
        assert message.endswith("Copy the files to one of these, or here.")


def test_links_are_followed_to_where_they_end(tmp_path: Path):
    home, away = tmp_path / "home", tmp_path / "home-of-others"
    (home / "sub").mkdir(parents=True)
    away.mkdir()
    for folder in (home, away):
        (folder / "a.png").touch()
    (home / "own.png").symlink_to(home / "a.png")
    (home / "far.png").symlink_to("../home-of-others/a.png")
    (home / "folder").symlink_to(away)
    (tmp_path / "alias").symlink_to(home)
    for folder in (home, tmp_path / "alias"):
        led = {
            name: links_out(str(folder / name), str(folder)) for name in ("a.png", "own.png", "far.png", "sub/b.png")
        }
        assert led == {"a.png": False, "own.png": False, "far.png": True, "sub/b.png": False}
        assert links_out(str(folder / "folder" / "a.png"), str(folder))


def test_pictures_elsewhere_are_read_only_if_the_user_says_so(people, tmp_path: Path):
    away, home = people(2, "away"), people(2, "home")
    table = home / "people.csv"
    table.write_text(f"image,gender\n../away/00000.png,woman\n{away}/00001.png,man\n")
    with pytest.raises(DataError, match=r"row 2 names '\.\./away/00000\.png'(?s:.)*--set outside=allow"):
        load_dataset(f"folder:{home}")
    read = load_dataset(f"folder:{home}", settings={"outside": "allow"})
    assert [Path(uri).resolve() for uri in read.table["uri"]] == [away / "00000.png", away / "00001.png"]
    table.write_text("image,gender\nlink.png,woman\n00001.png,man\n")
    (home / "link.png").symlink_to(away / "00000.png")
    with pytest.raises(DataError, match=r"link\.png is a link to .*away/00000\.png(?s:.)*--set outside=allow"):
        load_dataset(f"folder:{home}")
    assert len(load_dataset(f"folder:{home}", settings={"outside": "allow"})) == 2
