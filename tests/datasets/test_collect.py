"""Portraits from a stand-in that replays what the wikis' API documents: pages, files, statements, and being busy."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest
from PIL import Image
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.errors import DataError, MissingData, UsageError
from beholder.datasets.collect import Wiki, collect, is_free, read_names
from beholder.studies.apa.study import APA

STATED = {"Q1": "Q6581072", "Q2": "Q6581097", "Q5": "Q48270"}  # what Wikidata states as P21


def page(title: str, item: str = "", image: str = "", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"pageid": len(title), "ns": 0, "title": title, **more}
    if item:
        made["pageprops"] = {"wikibase_item": item, **more.pop("pageprops", {})}
    return made | ({"pageimage": image} if image else {})


PAGES = {
    "Ana Sol": page("Ana Sol", "Q1", "Ana_Sol.jpg"),
    "Bo Li (cook)": page("Bo Li (cook)", "Q2", "Bo.png"),
    "Cy Roe": page("Cy Roe", "Q3", "Poster.jpg"),
    "Di Fox": page("Di Fox", "Q4"),
    "Ed Kim": page("Ed Kim", "Q5", "Ed.jpg"),
    "Flag Man": page("Flag Man", "Q6", "Flag.svg"),
    "John Smith": {**page("John Smith"), "pageprops": {"disambiguation": "", "wikibase_item": "Q7"}},
}
MOVED = {"bo li": "Bo li", "Bo li": "Bo Li (cook)"}  # the wiki's capital, then a redirect


def meta(licence: str, short: str, **more: str) -> dict[str, Any]:
    facts = {"License": licence, "LicenseShortName": short, **more}
    return {name: {"value": value, "source": "commons-desc-page"} for name, value in facts.items()}


ARTIST = '<a href="//x/User:Eve" title="User:Eve">Eve &amp; <b>Co</b></a><script>alert(1)</script>'
FILES = {
    "Ana Sol.jpg": meta("cc-by-sa-4.0", "CC BY-SA 4.0", Artist=ARTIST, LicenseUrl="https://cc/by-sa/4.0"),
    "Bo.png": meta("pd", "Public domain", Artist="=cmd|' /C calc'!A0"),
    "Poster.jpg": meta("", "Fair use", NonFree="true"),
    "Ed.jpg": meta("cc0", "CC0"),
    "Flag.svg": meta("pd", "Public domain"),
}


class Standin(BaseHTTPRequestHandler):
    """Answers as the documentation has them."""

    asked: ClassVar[list[str]] = []
    agents: ClassVar[set[str]] = set()
    busy = 0
    gone: ClassVar[set[str]] = set()

    def log_message(self, *about: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        kind, server = type(self), f"http://{self.headers['Host']}"
        kind.asked.append(self.path)
        kind.agents.add(self.headers["User-Agent"])
        if kind.busy:
            kind.busy -= 1
            self.send_response(429)
            self.send_header("Retry-After", "7")
            self.end_headers()
            return
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        body = answer(query, server) if query else picture(self.path)
        self.send_response(404 if self.path in kind.gone else 200)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())


def picture(path: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 50), (len(path) % 256, 90, 120)).save(file, "PNG" if path.endswith("png") else "JPEG")
    return file.getvalue()


def answer(query: dict[str, str], server: str) -> dict[str, Any]:
    assert (query["format"], query["formatversion"], query["maxlag"]) == ("json", "2", "5")
    if query["action"] == "wbgetentities":
        return {"entities": {item: entity(item) for item in query["ids"].split("|")}, "success": 1}
    titles = query["titles"].split("|")
    if query["prop"] == "imageinfo":
        plain = {title: title.replace("_", " ") for title in titles}
        normalized = [{"fromencoded": False, "from": a, "to": b} for a, b in plain.items() if a != b]
        return {
            "batchcomplete": True,
            "query": {"normalized": normalized, "pages": [file(t, server) for t in plain.values()]},
        }
    moves = [{"from": name, "to": to} for name, to in MOVED.items()]
    ends = {"bo li": "Bo Li (cook)"}
    pages = [PAGES.get(ends.get(title, title), {"ns": 0, "title": title, "missing": True}) for title in titles]
    return {"batchcomplete": True, "query": {"normalized": moves[:1], "redirects": moves[1:], "pages": pages}}


def file(title: str, server: str) -> dict[str, Any]:
    name = title.removeprefix("File:")
    mime = {"svg": "image/svg+xml", "png": "image/png", "jpg": "image/jpeg"}[name[-3:]]
    info = {
        "url": f"{server}/files/{name}".replace(" ", "_"),
        "mime": mime,
        "sha1": name,
        "size": 9,
        "width": 40,
        "height": 50,
    }
    info |= {"thumburl": f"{server}/thumb/{name}".replace(" ", "_"), "descriptionurl": f"{server}/wiki/File:{name}"}
    return {
        "ns": 6,
        "title": title,
        "missing": True,
        "known": True,
        "imageinfo": [{**info, "extmetadata": FILES[name]}],
    }


def entity(item: str) -> dict[str, Any]:
    if item not in STATED:
        return {"id": item, "claims": {}}
    value = {"value": {"entity-type": "item", "id": STATED[item]}, "type": "wikibase-entityid"}
    snak = {"snaktype": "value", "property": "P21", "datavalue": value}
    return {"id": item, "claims": {"P21": [{"mainsnak": snak, "rank": "normal", "references": [{"snaks": {}}]}]}}


@pytest.fixture
def server() -> Iterator[str]:
    Standin.asked, Standin.agents, Standin.busy, Standin.gone = [], set(), 0, set()
    http = ThreadingHTTPServer(("127.0.0.1", 0), Standin)
    threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


ROWS = """name,title,branch,occupation,gender
Ana Sol,,kitchen,cook,
Bo Li,bo li,kitchen,cook,man
Cy Roe,,kitchen,cook,
Di Fox,,court,judge,
Ed Kim,,court,judge,
Flag Man,,court,judge,
John Smith,,court,judge,
Nobody There,,court,judge,
"""


@pytest.fixture
def wiki(server: str, tmp_path: Path) -> Wiki:
    waits: list[float] = []
    made = Wiki("https://example.org/me", tmp_path / "out" / ".answers", server, server, sleep=waits.append)
    vars(made)["waits"] = waits
    return made


@pytest.fixture
def names(tmp_path: Path) -> pl.DataFrame:
    (tmp_path / "people.csv").write_text(ROWS)
    return read_names(tmp_path / "people.csv")


def test_portraits_come_with_licence_attribution_and_a_stated_group(wiki: Wiki, names: pl.DataFrame, tmp_path: Path):
    table, without = collect(names, tmp_path / "out", wiki)
    rows = {row["name"]: row for row in table.to_dicts()}
    assert list(rows) == ["Ana Sol", "Bo Li", "Ed Kim"]
    ana = rows["Ana Sol"]
    assert (ana["licence"], ana["licence_url"]) == ("CC BY-SA 4.0", "https://cc/by-sa/4.0")
    assert ana["artist"] == "Eve & Co alert(1)"  # its markup is gone, and nothing of it is run
    assert (ana["gender"], ana["gender_source"]) == ("woman", f"{wiki.wikidata}/wiki/Q1#P21 (1 references)")
    assert (rows["Bo Li"]["gender"], rows["Bo Li"]["gender_source"]) == ("man", "the user's table")
    assert rows["Ed Kim"]["gender"] == "non-binary"
    assert rows["Bo Li"]["page"] == f"{wiki.url}/wiki/Bo_Li_(cook)"
    assert without == {
        "Cy Roe": "the licence is not free: Fair use",
        "Di Fox": "the page has no free picture",
        "Flag Man": "the page's picture is no photograph (image/svg+xml)",
        "John Smith": "several people have this name: add a column 'title' with the page that is meant",
        "Nobody There": "no page of this title: add a column 'title'",
    }
    assert "'=cmd" in (tmp_path / "out" / "people.csv").read_text()  # a spreadsheet runs no attribution


def test_what_is_collected_can_be_audited(wiki: Wiki, names: pl.DataFrame, tmp_path: Path):
    from beholder.datasets import load_dataset

    collect(names, tmp_path / "out", wiki)
    dataset = load_dataset(f"folder:{tmp_path / 'out' / 'people.csv'}")
    assert len(dataset.present()) == 3
    assert [task.name for task in APA.asks.tasks(dataset)][:2] == ["kitchen/association", "kitchen/identity"]


def test_the_servers_are_asked_in_turn_with_a_pause_and_a_contact(wiki: Wiki, names: pl.DataFrame, tmp_path: Path):
    Standin.busy = 2
    collect(names, tmp_path / "out", wiki)
    waits = vars(wiki)["waits"]
    assert len(Standin.asked) == 2 + 3 + 3  # twice busy; pages, files and statements at once; three pictures
    assert waits.count(1.0) == len(Standin.asked)
    assert [wait for wait in waits if wait != 1.0] == [7.0, 10.0]  # as the server says, and longer each time
    (agent,) = Standin.agents
    assert agent.startswith("Beholder/")
    assert "https://example.org/me" in agent


def test_the_same_command_again_asks_for_nothing(wiki: Wiki, names: pl.DataFrame, tmp_path: Path):
    first, _ = collect(names, tmp_path / "out", wiki)
    Standin.asked.clear()
    again, _ = collect(names, tmp_path / "out", wiki)
    assert Standin.asked == []
    assert again.equals(first)


def test_a_lost_picture_alone_is_fetched_again(wiki: Wiki, names: pl.DataFrame, tmp_path: Path):
    table, _ = collect(names, tmp_path / "out", wiki)
    (tmp_path / "out" / table["image"][0]).unlink()
    Standin.asked.clear()
    collect(names, tmp_path / "out", wiki)
    assert [path.partition("?")[0] for path in Standin.asked] == ["/thumb/Ana_Sol.jpg"]


def test_a_picture_that_is_gone_leaves_the_others(wiki: Wiki, names: pl.DataFrame, tmp_path: Path):
    Standin.gone = {"/thumb/Ana_Sol.jpg"}
    table, without = collect(names, tmp_path / "out", wiki)
    assert table["name"].to_list() == ["Bo Li", "Ed Kim"]
    assert "answered 404" in without["Ana Sol"]


def test_other_licences_are_taken_only_when_asked_for(wiki: Wiki, names: pl.DataFrame, tmp_path: Path):
    table, _ = collect(names, tmp_path / "out", wiki, free_only=False)
    assert "Fair use" in table["licence"].to_list()
    assert "pilicense=any" in Standin.asked[0]


def test_a_server_that_stays_busy_is_left_alone(wiki: Wiki, names: pl.DataFrame, tmp_path: Path):
    Standin.busy = 100
    with pytest.raises(MissingData, match="too busy"):
        collect(names, tmp_path / "out", wiki)
    assert len(Standin.asked) == 6


def test_pictures_lie_where_the_wikis_keep_them(wiki: Wiki):
    with pytest.raises(DataError, match="not where"):
        wiki.picture("http://169.254.169.254/latest")


def test_a_contact_is_needed(names: pl.DataFrame, tmp_path: Path):
    with pytest.raises(UsageError, match="--contact"):
        collect(names, tmp_path, Wiki(" ", tmp_path))


@pytest.mark.parametrize(
    ("licence", "free"),
    [
        ("CC BY 2.0", True),
        ("CC BY-SA 3.0 de", True),
        ("CC0", True),
        ("Public domain", True),
        ("CC BY-NC 2.0", False),
        ("CC BY-ND 4.0", False),
        ("CC BY-NC-SA 4.0", False),
        ("Attribution-ShareAlike 3.0", True),
        ("Attribution-NonCommercial-NoDerivs 2.0", False),
        ("False licence", False),
        ("Fair use", False),
        ("", False),
    ],
)
def test_only_licences_for_anything_are_free(licence: str, free: bool):
    assert is_free({"extmetadata": meta("", licence)}) is free


def test_an_answer_of_another_form_is_refused(wiki: Wiki, names: pl.DataFrame, tmp_path: Path, monkeypatch):
    monkeypatch.setitem(PAGES, "Ana Sol", {"title": 7})
    with pytest.raises(DataError, match=r"pages\[1\].title must be a text"):
        collect(names, tmp_path / "out", wiki)


def test_the_command_says_whom_it_did_not_find(server: str, names: pl.DataFrame, tmp_path: Path):
    options = ["--wiki", server, "--wikidata", server, "--contact", "me", "--pause", "0"]
    command = ["data", "collect", str(tmp_path / "people.csv"), "--out", str(tmp_path / "out"), *options]
    said = CliRunner().invoke(app, command, catch_exceptions=False).stdout
    assert "3 of 8 people have a picture." in said
    assert "Nobody There: no page of this title" in said
