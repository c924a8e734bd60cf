"""The viewer: the right pictures in the right order, and nothing to anyone it is not for."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image
from starlette.testclient import TestClient

from beholder._audit import audit_models
from beholder._options import AuditOptions
from beholder._run import load_run
from beholder.chapter.finding import finding
from beholder.core.errors import MissingData, UnknownName
from beholder.core.record import Record
from beholder.core.results import SCHEMA
from beholder.datasets import load_dataset
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import prompt_set
from beholder.report.page import view_command
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.scores.store import Places, Store
from beholder.studies.custom.study import custom_study
from beholder.view import ScoredSet, opening, scored_sets
from beholder.view.server import LONGEST_QUERY, viewer, words

WORDS = prompt_set("words", [{"text": w, "level": "words", "concept": w} for w in ("kind", "cold")])
TOKEN = "secret-token"


def audited(place: Path, people_in: Callable[..., Path]) -> Path:
    """24 pictures and a run of two models over them, in one folder."""
    options = AuditOptions(
        dataset=f"folder:{people_in(place, 24)}", out=place / "run", store=place / "store", draws=100
    )
    audit_models(["null", "null:2"], [custom_study(WORDS, by=("gender",))], options)
    return place


@pytest.fixture(scope="module")
def place(people_in: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audited(tmp_path_factory.mktemp("view"), people_in)


@pytest.fixture
def sets(place: Path) -> list[ScoredSet]:
    return scored_sets([(place / "run", load_run(place / "run"))], Places(store=place / "store"))


@pytest.fixture
def client(sets: list[ScoredSet]) -> TestClient:
    return client_of(sets)


def client_of(sets: list[ScoredSet]) -> TestClient:
    return TestClient(viewer(sets, TOKEN), base_url="http://127.0.0.1:8765")


def get(client: TestClient, path: str, **query: object) -> Any:
    return client.get(f"/{TOKEN}/{path}", params={key: str(value) for key, value in query.items()})


def test_pictures_come_in_the_order_of_their_scores(client: TestClient, sets: list[ScoredSet]) -> None:
    answer = get(client, "api/rank", set=0, prompt=1, where=json.dumps({"gender": "woman"}), limit=50).json()
    scores = [row["score"] for row in answer["rows"]]
    women = sets[0].images["gender"].to_numpy() == "woman"
    assert scores == sorted(sets[0].scores[women, 1].tolist(), reverse=True)
    assert {row["labels"]["gender"] for row in answer["rows"]} == {"woman"}
    lowest = get(client, "api/rank", set=0, prompt=1, order="lowest", limit=1).json()["rows"][0]["score"]
    assert lowest == sets[0].scores[:, 1].min()


def test_two_models_score_the_same_picture(client: TestClient, sets: list[ScoredSet]) -> None:
    assert [scored.model for scored in sets] == ["null", "null:2"]
    for row in get(client, "api/rank", set=0, prompt=0, **{"with": 1}).json()["rows"]:
        assert row["other"] == pytest.approx(sets[1].scores[row["place"], 0])


def test_the_most_unlike_their_group_come_first(client: TestClient, sets: list[ScoredSet]) -> None:
    where = json.dumps({"gender": "man"})
    rows = get(client, "api/rank", set=0, prompt=0, where=where, surprising="gender").json()["rows"]
    scores, labels = sets[0].scores[:, 0], sets[0].images["gender"].to_numpy()
    higher = scores[labels == "man"].mean() > scores[labels != "man"].mean()
    assert rows[0]["score"] == (scores[labels == "man"].min() if higher else scores[labels == "man"].max())


def test_distributions_count_every_picture_once(client: TestClient, sets: list[ScoredSet]) -> None:
    spread = get(client, "api/distributions", set=0, prompt=0, by="gender").json()
    assert {group: sum(counts) for group, counts in spread["groups"].items()} == {"man": 12, "woman": 12}
    nearest = get(client, "api/nearest", set=0, prompt=0, value=float(sets[0].scores[3, 0])).json()
    assert nearest[0]["place"] == 3


def test_groups_say_how_many_people_they_have_and_what_was_found(client: TestClient, sets: list[ScoredSet]) -> None:
    """Twelve people, each shown as a man and as a woman."""
    assert get(client, "api/sets").json()[0]["people"] == "12 people, 24 pictures; each person counts once"
    row = {**dict.fromkeys(SCHEMA), "metric": "custom.gap", "group": "woman", "against": "man", "concept": "kind"}
    told = {**row, "value": 0.1, "verdict": "none found"}
    sets[0].compared = pl.DataFrame([told, {**told, "concept": "cold"}], schema=SCHEMA)
    spread = get(client, "api/distributions", set=0, prompt=0, by="gender").json()
    assert spread["people"] == {"man": 12, "woman": 12}
    (verdict,) = spread["verdicts"]
    assert verdict["said"] == "○ None found: gap, woman against man: 0.1"
    assert (verdict["verdict"], verdict["group"]) == ("none found", "woman")


def test_typical_pictures_of_the_groups_come_in_turn(client: TestClient, sets: list[ScoredSet]) -> None:
    rows = get(client, "api/rank", set=0, prompt=0, typical="gender", limit=50).json()["rows"]
    assert [row["labels"]["gender"] for row in rows] == ["man", "woman"] * 12
    women = [row["score"] for row in rows if row["labels"]["gender"] == "woman"]
    off = np.abs(np.array(women) - np.mean(women))
    assert (np.diff(off) >= -1e-12).all()


def test_only_the_images_of_the_run_are_shown(place: Path) -> None:
    options = AuditOptions(
        dataset=f"folder:{place / 'people'}", out=place / "few", store=place / "store", draws=100, limit=5
    )
    run = audit_models(["null"], [custom_study(WORDS, by=("gender",))], options)
    (few,) = scored_sets([(place / "few", load_run(place / "few"))], Places(store=place / "store"))
    assert few.images.height == run.record.datasets[0]["images"] == 10
    assert set(few.images["gender"]) == {"man", "woman"}


def test_it_opens_on_a_finding_in_the_words_of_the_report(sets: list[ScoredSet], place: Path) -> None:
    row = {**dict.fromkeys(SCHEMA), "study": "custom", "model": "null:2", "dataset": sets[1].task.dataset.name}
    row |= {"metric": "custom.gap", "group": "woman", "against": "man", "concept": "cold", "n": 24}
    told = finding(row, "custom", "Colder", "A sentence.", shown=True, answer="The model says “cold” more for women.")
    run = replace(load_run(place / "run"), _report=SimpleNamespace(findings=[told._replace(id="here")]))
    found = opening(sets, [run], "here")
    assert found is not None
    assert (found.set, found.prompt, found.by) == (1, 1, "gender")
    assert (found.badge, found.answer) == ("● Difference found", "The model says “cold” more for women.")
    assert get(
        TestClient(viewer(sets, TOKEN, None, found), base_url="http://127.0.0.1:8765"), "api/opening"
    ).json() == (found._asdict())
    assert opening(sets, [run]) == found
    with pytest.raises(UnknownName, match="here"):
        opening(sets, [run], "elsewhere")


def test_the_reports_page_beside_the_viewer_links_each_finding_to_its_pictures(
    sets: list[ScoredSet], place: Path
) -> None:
    run = load_run(place / "run")
    run.places = Places(store=place / "store")
    app = viewer(sets, TOKEN, runs=[(place / "run", run)])
    client = TestClient(app, base_url="http://127.0.0.1:8765")
    assert [each["report"] for each in get(client, "api/sets").json()] == [0, 0]
    page = get(client, "run/0/report.html")
    assert "script-src" not in page.headers["content-security-policy"]
    found = run.findings[0]
    assert f'href="../../?finding={found.id}"' in page.text
    assert "beholder view" not in page.text
    opens = get(client, "api/opening", finding=found.id).json()
    assert opens["badge"] == found.badge
    assert get(client, "run/0/results.csv").content == (place / "run" / "results.csv").read_bytes()
    assert [get(client, f"run/0/{name}").status_code for name in ("secret.txt", ".lock")] == [404, 404]
    assert get(client, "run/7/report.html").status_code == 400


def test_the_page_has_the_command_that_opens_its_pictures() -> None:
    told = ["beholder", "audit", "clip", "--data", "my data", "--store=s", "--set", "a=b", "--limit", "9"]
    command = view_command(Record(command=told), "runs/x y")
    assert command == "beholder view 'runs/x y' --data 'my data' --store s --set a=b --finding "


def test_captions_read_as_words() -> None:
    labels = {"gender": "woman", "smiling": "true", "hat": "false", "skin_tone": "7", "party": None}
    assert [words(name, value) for name, value in labels.items()] == ["woman", "smiling", "", "skin tone 7", ""]


def test_a_picture_is_a_small_copy_of_the_file(client: TestClient) -> None:
    answer = get(client, "picture/0/0", side=64)
    assert answer.headers["content-type"] == "image/jpeg"
    assert max(Image.open(io.BytesIO(answer.content)).size) <= 64


@pytest.mark.parametrize("path", ["", "api/sets", "picture/0/0", "view.js"])
def test_a_wrong_token_gets_nothing(client: TestClient, path: str) -> None:
    assert client.get(f"/wrong/{path}").status_code == 403


def test_another_origin_and_another_host_are_refused(client: TestClient) -> None:
    assert client.get(f"/{TOKEN}/api/sets", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get(f"/{TOKEN}/api/sets", headers={"host": "evil.example"}).status_code == 400
    assert client.post(f"/{TOKEN}/api/sets").status_code == 405


@pytest.mark.parametrize("name", ["../server.py", "..%2Fserver.py", "%2e%2e/server.py", "..%5cserver.py", "server.py"])
def test_no_other_file_is_reachable(client: TestClient, name: str) -> None:
    assert client.get(f"/{TOKEN}/{name}").status_code in (403, 404)


@pytest.mark.parametrize(
    "query",
    [
        {"set": 9, "prompt": 0},
        {"set": -1, "prompt": 0},
        {"set": 0, "prompt": 99},
        {"set": "x", "prompt": 0},
        {"prompt": 0},
        {"set": 0, "prompt": 0, "where": "not json"},
        {"set": 0, "prompt": 0, "where": '{"nothing": "x"}'},
        {"set": 0, "prompt": 0, "surprising": "gender"},
    ],
)
def test_a_bad_question_is_refused_in_words(client: TestClient, query: dict[str, object]) -> None:
    answer = get(client, "api/rank", **query)
    assert answer.status_code == 400
    assert answer.text.startswith("This cannot be answered")


def test_a_question_that_is_too_long_is_refused(client: TestClient) -> None:
    assert get(client, "api/sets", x="y" * LONGEST_QUERY).status_code == 414


def test_a_changed_or_missing_or_linked_picture_is_refused(people_in: Callable[..., Path], tmp_path: Path) -> None:
    place = audited(tmp_path, people_in)
    client = client_of(scored_sets([(place / "run", load_run(place / "run"))], Places(store=place / "store")))
    secret = tmp_path / "secret.png"
    Image.new("RGB", (16, 16), "red").save(secret)
    first, second, third = (place / "people" / f"0000{i}.png" for i in range(3))
    assert get(client, "picture/0/0").status_code == 200
    time.sleep(0.01)
    Image.new("RGB", (40, 40), "blue").save(first)
    second.unlink()
    third.unlink()
    third.symlink_to(secret)
    refused = [get(client, f"picture/0/{place}") for place in range(3)]
    assert [answer.status_code for answer in refused] == [404, 404, 404]
    assert "has changed" in refused[0].text
    assert "no longer there" in refused[1].text
    assert "outside" in refused[2].text


def test_a_store_without_scores_says_what_to_name(place: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="--store DIR"):
        scored_sets([(place / "run", load_run(place / "run"))], Places(store=tmp_path / "elsewhere"))


def test_answers_let_nothing_else_run(client: TestClient) -> None:
    headers = get(client, "").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


# In a browser, with 100,000 pictures


@pytest.fixture
def many() -> ScoredSet:
    drawn, count = load_dataset("glasshouse").limit(40), 100_000
    base = drawn.table
    table = base[[i % base.height for i in range(count)]].with_columns(
        image_id=pl.Series([f"{i:06}" for i in range(count)])
    )
    dataset = type(drawn)("glasshouse", "1", "MIT", table)
    values = np.random.default_rng(1).normal(size=(count, len(WORDS), 1)).astype(np.float32)
    scored = ScoredSet(
        "run",
        "custom",
        ModelSpec("<b>model</b>", "a", "w", "r"),
        Task("t", dataset, WORDS),
        Store(Path()),
        None,
        pl.DataFrame(schema=SCHEMA),
    )
    scored.__dict__["matrix"] = ScoreMatrix("t", table, WORDS.table, ("cosine",), values)
    return scored


@pytest.fixture
def address(many: ScoredSet) -> Iterator[str]:
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(viewer([many], TOKEN), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    for _ in range(200):
        if server.started:
            break
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/{TOKEN}/"
    server.should_exit = True
    thread.join(10)


@pytest.mark.slow
def test_a_hundred_thousand_pictures_scroll(address: str, many: ScoredSet, browser: Any) -> None:
    messages: list[str] = []
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(address)
    page.wait_for_selector("#list figure img")
    assert "100,000 pictures" in page.inner_text("#count")
    assert page.locator("#list figure").count() < 100
    first = page.inner_text("#list figure >> nth=0")
    assert float(first.split(" ")[1].replace("−", "-")) == pytest.approx(100 * many.scores[:, 0].max(), rel=1e-3)
    page.eval_on_selector("#list", "list => { list.scrollTop = list.scrollHeight; }")
    page.wait_for_selector('figure[data-at="99999"]')
    assert page.locator("#list figure").count() < 100
    page.select_option("select[name=order]", "lowest")
    page.wait_for_selector('figure[data-at="0"]')
    page.hover("#spread svg")
    page.wait_for_selector("#under img")
    assert "<b>model</b>" in page.inner_text("select[name=set]")
    page.close()
    assert messages == []


ODD_FILTERS = ["[]", "null", "5", '"x"', "true", "{", "", "1e999", "9" * 400, '{"gender": 5}', '{"gender": null}',
    '{"gender": {}}', '{"gender": ["woman"]}', '{"nothing": "x"}', '{"\\ud800": "x"}', '{"a":' * 250 + "1" + "}" * 250,
    "[" * 1200]  # fmt: skip


@pytest.mark.parametrize("where", ODD_FILTERS)
def test_a_filter_that_is_none_is_told(where: str, client: TestClient) -> None:
    for path, more in (("rank", {}), ("rank", {"surprising": "gender"}), ("nearest", {"value": 0.1})):
        answer = get(client, f"api/{path}", set=0, prompt=0, where=where, **more)
        assert answer.status_code == 400, (path, answer.text)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"surprising": "nothing"}, "no attribute 'nothing'"),
        ({"surprising": "gender"}, "no group ''.\nIt has: man, woman"),
        ({"surprising": "gender", "where": '{"gender": "robot"}'}, "no group 'robot'"),
        ({"typical": "nothing"}, "no attribute 'nothing'"),
        ({"prompt": 99}, "no prompt 99"),
        ({"set": -1}, "no set -1"),
        ({"limit": "x"}, "'x'"),
    ],
)
def test_a_question_that_cannot_be_answered_is_told(query: dict[str, object], told: str, client: TestClient) -> None:
    answer = get(client, "api/rank", **({"set": 0, "prompt": 0} | query))
    assert (answer.status_code, told in answer.text) == (400, True), answer.text


def test_an_address_that_is_none_is_told(client: TestClient) -> None:
    codes = {path: client.get(path).status_code for path in ("/%C3%A9/api/sheets", f"/{TOKEN}/api/sheets", "/", "//")}
    assert set(codes.values()) == {404}
    assert {client.get(f"/{each}/api/sets").status_code for each in ("%C3%A9", "%00", "x")} == {403}
    assert get(client, "api/rank").text == "This cannot be answered: the question lacks 'set'."
    assert get(client, "picture/9/0").status_code == 400
    assert get(client, f"picture/{10**30}/{10**30}").status_code == 400
