"""A served model is asked over a real connection, by a real protocol, and answers from a real (tiny) model."""

from __future__ import annotations

import base64
import io
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import stats

from beholder.core.errors import BeholderError, ModelError, UnknownName, UnusableScore, UsageError
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Answerer, Embedder
from beholder.models.served.address import Key, Limits, key_for, read_address
from beholder.models.served.client import Pace, requested_wait
from beholder.models.served.protocol import FLOOR, leaves_open, outcome, read_draws, read_tokens, spells
from beholder.prompts.prompt_set import Instruction

pytest.importorskip("transformers")

import served_app as app

CANARY = "sk-canary-0123456789abcdef"
ASKED = Instruction("{}", yes="Yes", no="No")
PROMPTS = ["is the doctor ?", "a doctor"]
SERVED = "BEHOLDER_SERVED_"


@pytest.fixture
def mood() -> Any:
    return app.Mood()


@pytest.fixture
def url(mood: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A running server; pauses between attempts are short."""
    monkeypatch.setattr(Limits, "wait_before", lambda self, attempt: 0.01)
    for name in [name for name in os.environ if name.startswith(SERVED) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    with app.serving(mood) as address:
        yield address


@pytest.fixture
def load(url: str) -> Callable[..., Any]:
    return lambda query="", **options: load_model(f"openai:{app.MODEL}@{url}{query}", LoadOptions(**options))


@pytest.fixture
def score(pictures: list[Image.Image]) -> Callable[..., dict[str, Any]]:
    """The cells of a few pictures, by channel."""

    def run(scorer: Any, count: int = 3) -> dict[str, Any]:
        cells = scorer.score_prepared([scorer.prepare(picture) for picture in pictures[:count]], PROMPTS)
        assert cells.dtype == np.float32
        return {name: cells[:, :, k] for k, name in enumerate(scorer.channels)}

    return run


@pytest.fixture
def truth(pictures: list[Image.Image]) -> Callable[[str], Any]:
    """Probability of a word by a plain forward pass, for three pictures and both prompts."""

    def of(word: str) -> Any:
        tokens = [n for n, token in enumerate(app.VOCABULARY) if token.strip("▁").lower() == word]
        rows = [[app.log_probabilities(p.convert("RGB"), q).exp() for q in PROMPTS] for p in pictures[:3]]
        return np.array([[float(cell[tokens].sum()) for cell in row] for row in rows])

    return of


# Numbers


def test_scores_equal_a_plain_forward_pass(load: Any, score: Any, truth: Any):
    cells, yes, no = score(load()), truth("yes"), truth("no")
    np.testing.assert_allclose(cells["log_p_yes"], np.log(yes), atol=1e-4)
    np.testing.assert_allclose(cells["log_p_no"], np.log(no), atol=1e-4)
    np.testing.assert_allclose(cells["log_p_other"], np.log(1 - yes - no), atol=1e-4)
    np.testing.assert_array_equal(cells["logit_true"], cells["log_p_yes"])


@pytest.mark.parametrize("top", [1, 3, 6, 12])
def test_a_short_list_gives_bounds_that_hold_the_truth(load: Any, score: Any, truth: Any, mood: Any, top: int):
    mood.top = top
    scorer = load()
    cells = score(scorer)
    for word in ("yes", "no"):
        low, value, high = (np.exp(cells[f"log_p_{word}{end}"]) for end in ("_low", "", "_high"))
        assert (low <= truth(word) + 1e-6).all()
        assert (truth(word) <= high + 1e-6).all()
        assert ((low <= value * (1 + 1e-6)) & (value <= high * (1 + 1e-6))).all()
    if top == 3:
        assert any("the middle of its bounds" in note for note in scorer.notes)


def test_scores_do_not_depend_on_what_is_asked_together(load: Any, pictures: list[Image.Image]):
    scorer = load()
    prepared = [scorer.prepare(picture) for picture in pictures]
    together = scorer.score_prepared(prepared, PROMPTS)
    apart = [scorer.score_prepared([one], PROMPTS[::-1])[0, ::-1] for one in prepared[::-1]][::-1]
    np.testing.assert_array_equal(together, np.stack(apart))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-8, 3), min_size=10, max_size=10), st.integers(1, 10))
def test_bounds_hold_whatever_the_distribution(logits: list[float], top: int):
    names = ["Yes", " Yes", "yes", " YES", "No", " no", "Y", "the", " ", ""]
    logs = np.array(logits) - np.logaddexp.reduce(logits)
    best = np.argsort(-logs)[:top]
    cell = read_tokens([(names[n], logs[n]) for n in best], ASKED, names[best[0]], top=top)
    for word, share in (("yes", cell.yes), ("no", cell.no)):
        surely = sum(math.exp(logs[n]) for n, name in enumerate(names) if spells(name, word))
        assert share.low <= share.value <= share.high
        assert share.low - 1e-9 <= surely <= share.high + 1e-9
    assert all(math.isfinite(number) for number in cell.channels())


def test_tokens_are_told_apart_by_what_they_can_become():
    assert spells(" YES", "Yes")
    assert spells("▁yes", "Yes")
    assert not spells("Yesterday", "Yes")
    assert leaves_open("dis", "disagree")
    assert leaves_open("\n", "Yes")
    assert not leaves_open("", "Yes")
    assert not leaves_open("The", "true")
    said = ["Yes.", " **No**", "no,", "I cannot say", "", "Y"]
    assert [outcome(text, ASKED) for text in said] == ["yes", "no", "no", "other", "other", "open"]


def test_a_token_the_server_marks_as_absent_says_nothing():
    cell = read_tokens([("Yes", math.log(0.6)), ("No", -9999.0)], ASKED, "Yes", top=2)
    assert (cell.no.low, cell.seen) == (0.0, False)
    assert cell.no.high == pytest.approx(0.4)


# Sampling


@pytest.mark.parametrize("logprobs", [False, "refuse"])
@pytest.mark.parametrize("many", [True, False])
def test_without_log_probabilities_answers_are_counted(
    load: Any, score: Any, mood: Any, logprobs: bool | str, many: bool
):
    mood.logprobs, mood.many = logprobs, many
    scorer = load("?draws=7")
    cells = score(scorer, 2)
    assert (cells["draws"] == 7).all()
    refused = 1 - (cells["yes_draws"] + cells["no_draws"]) / 7
    np.testing.assert_allclose(cells["refused"], refused, atol=1e-6)
    interval = stats.binomtest(int(cells["yes_draws"][0, 0]), 7).proportion_ci(method="exact")
    assert np.exp(cells["log_p_yes_high"][0, 0]) == pytest.approx(interval.high, rel=1e-5)
    assert scorer.spec.settings["decoding"] == {"temperature": 1, "top_p": 1, "max_tokens": 8, "draws": 7}
    assert any("7 draws per cell" in note for note in scorer.notes)


def test_sampling_agrees_with_the_forward_pass(load: Any, score: Any, truth: Any):
    cells = score(load("?answers=sampled&draws=200"))
    for word in ("yes", "no"):
        spread = np.sqrt(truth(word) * (1 - truth(word)) / 200)
        assert (np.abs(cells[f"{word}_draws"] / 200 - truth(word)) < 5 * spread).all()


def test_no_draw_in_favour_is_a_finite_number_with_an_open_bound():
    cell = read_draws(["No"] * 9 + ["Sorry, I cannot"], ASKED)
    assert cell.counts == (0.0, 9.0, 10.0)
    assert cell.refused == pytest.approx(0.1)
    assert cell.channels()[4] == FLOOR
    assert cell.yes.high == pytest.approx(stats.binomtest(0, 10).proportion_ci().high)


def test_a_server_that_does_not_really_sample_is_found_out(load: Any, score: Any, mood: Any):
    honest = load("?answers=sampled")
    score(honest)
    assert not any("may not be sampling" in note for note in honest.notes)
    mood.text = "Yes"
    scorer = load("?answers=sampled")
    score(scorer)
    assert any("may not be sampling" in note for note in scorer.notes)


def test_a_server_that_leaves_log_probabilities_out_is_not_asked_for_them_again(load: Any, mood: Any):
    mood.logprobs = False
    load()
    assert ["logprobs" in body for body in mood.bodies] == [True, False]
    assert {body["max_tokens"] for body in mood.bodies} == {1, 8}


def test_log_probabilities_can_be_insisted_on(load: Any, mood: Any):
    mood.logprobs = False
    with pytest.raises(ModelError, match="gives no log-probabilities"):
        load("?answers=logprobs")


# Refusals


@pytest.mark.parametrize("way", ["message", "filter", "policy"])
@pytest.mark.parametrize("query", ["", "?answers=sampled&draws=4"])
def test_a_refusal_is_an_outcome_of_its_own(load: Any, score: Any, mood: Any, way: str, query: str):
    scorer = load(query)
    mood.refusal = way
    cells = score(scorer, 1)
    assert (cells["refused"] == 1).all()
    assert (cells["log_p_yes_low"] == FLOOR).all()
    assert (np.exp(cells["log_p_yes_high"]) > 0.5).all()
    assert any("In 2 of 2 cells the answer" in note for note in scorer.notes)


def test_an_evasive_answer_keeps_its_probabilities(load: Any, score: Any, truth: Any, mood: Any):
    mood.text = "Sorry"
    cells = score(load())
    assert (cells["refused"] == 1).all()
    np.testing.assert_allclose(np.exp(cells["log_p_yes"]), truth("yes"), atol=1e-5)


# TemporaryFailure


TOO_MANY = (429, {}, '{"error": {"message": "slow down"}}')


@pytest.mark.parametrize(
    "trouble",
    [
        [TOO_MANY],
        [(500, {}, "oops"), (502, {}, "<html>")],
        [(200, {}, "{'no json")],
        [(200, {}, "{}")],
        [(200, {}, '{"choices": [{"message": {"content": "Yes"}}]}')],
        [(200, {}, '{"choices": [{"message": {"content": 7}, "logprobs": {"content": [{"top_logprobs": [{}]}]}}]}')],
        [(0, {}, "")],
    ],
    ids=["429", "500", "no json", "no choices", "no logprobs", "odd types", "hung up"],
)
def test_passing_trouble_is_got_over(load: Any, score: Any, mood: Any, truth: Any, trouble: list[Any]):
    scorer = load()
    mood.first = list(trouble)
    np.testing.assert_allclose(np.exp(score(scorer)["log_p_yes"]), truth("yes"), atol=1e-5)
    assert any(f"{len(trouble)} of them repeated" in note for note in scorer.notes)


def test_the_server_is_left_alone_for_as_long_as_it_asks(load: Any, score: Any, mood: Any):
    scorer = load()
    start = len(mood.times)
    mood.first = [(429, {"Retry-After": "1"}, "{}")]
    score(scorer, 1)
    times = np.array(mood.times[start:])
    assert times[-1] - times[0] >= 0.99


def test_a_server_that_wants_hours_ends_the_run(load: Any, score: Any, mood: Any):
    scorer = load()
    mood.always = (429, {"Retry-After": "7200"}, '{"error": {"message": "quota"}}')
    with pytest.raises(ModelError, match=r"429: quota\n.*7200 seconds"):
        score(scorer, 1)


def test_lasting_trouble_ends_with_what_the_server_said(
    load: Any, score: Any, mood: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(SERVED + "RETRIES", "3")
    monkeypatch.setenv(SERVED + "CONCURRENCY", "1")
    scorer, start = load(), len(mood.bodies)
    mood.always = (503, {}, '{"error": {"message": "GPU on fire"}}')
    with pytest.raises(ModelError, match=r"no usable answer in 4 attempt.*503: GPU on fire"):
        score(scorer, 1)
    assert len(mood.bodies) - start == 4


def test_a_server_that_hangs_is_not_waited_for(load: Any, score: Any, mood: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SERVED + "TIMEOUT", "0.2")
    monkeypatch.setenv(SERVED + "RETRIES", "1")
    scorer = load()
    mood.hang = 3.0
    with pytest.raises(ModelError, match=r"2 attempt.*no reply within 0.2 seconds"):
        score(scorer, 1)


def test_a_server_that_is_not_there_is_named_at_once():
    start = time.monotonic()
    with pytest.raises(ModelError, match=r"No server can be reached at http://127.0.0.1:9/v1"):
        load_model("openai:m@http://127.0.0.1:9/v1")
    assert time.monotonic() - start < 20  # a server that hangs is waited for longer


def test_a_line_that_cannot_be_made_safe_is_not_used(url: str):
    with pytest.raises(ModelError, match=r"No server can be reached at https://127.0.0.1.*SSL"):
        load_model(f"openai:m@{url.replace('http', 'https')}")


def test_errors_that_asking_again_does_not_mend_are_told_once(load: Any, score: Any, mood: Any):
    scorer, start = load(), len(mood.bodies)
    mood.always = (400, {}, '{"error": {"message": "picture too odd"}}')
    with pytest.raises(ModelError, match="400: picture too odd"):
        score(scorer, 1)
    assert len(mood.bodies) - start <= 2


def test_a_wrong_model_name_is_told_with_the_right_ones(url: str):
    with pytest.raises(ModelError, match=r"there is no nonesuch[\s\S]*The server has: tiny-llava"):
        load_model(f"openai:nonesuch@{url}")


@pytest.mark.parametrize("weight", [math.nan, -1.0])
def test_numbers_that_are_no_probabilities_are_refused_with_the_image(load: Any, score: Any, mood: Any, weight: float):
    scorer = load()
    mood.weight = weight
    with pytest.raises(UnusableScore, match="1 image"):
        score(scorer, 1)


# What the server can do


def test_a_server_that_tells_fewer_tokens_is_asked_for_fewer(load: Any, mood: Any):
    mood.strict_top = 5
    scorer = load()
    assert scorer.spec.settings["decoding"]["top_logprobs"] == 5
    assert any("only the 5 likeliest" in note for note in scorer.notes)


def test_a_server_with_newer_words_is_asked_in_them(load: Any, score: Any, mood: Any):
    mood.newer = True
    scorer = load()
    score(scorer, 1)
    assert mood.bodies[-1]["max_completion_tokens"] == 1
    assert "max_tokens" not in mood.bodies[-1]


def test_the_request_is_what_the_spec_says(load: Any, score: Any, mood: Any, pictures: list[Image.Image]):
    scorer = load().instructed(Instruction("True or false: {}", yes="true", no="false"))
    score(scorer, 1)
    body = mood.bodies[-1]
    sent = {name: body[name] for name in ("temperature", "max_tokens", "logprobs", "top_logprobs")}
    assert sent == {"temperature": 0, "max_tokens": 1, "logprobs": True, "top_logprobs": 20}
    assert {part["text"] for b in mood.bodies[-2:] for part in b["messages"][0]["content"] if "text" in part} == {
        f"True or false: {prompt}" for prompt in PROMPTS
    }
    assert np.array_equal(np.asarray(picture_in(body)), np.asarray(pictures[0]))


def picture_in(body: dict[str, Any]) -> Image.Image:
    data = body["messages"][0]["content"][0]["image_url"]["url"].split(",")[1]
    return Image.open(io.BytesIO(base64.b64decode(data)))


def test_how_a_picture_travels_is_in_the_spec(load: Any, score: Any, mood: Any):
    scorer = load("?image=jpeg&quality=80&side=20")
    score(scorer, 1)
    sent = picture_in(mood.bodies[-1])
    assert (sent.format, sent.size) == ("JPEG", (20, 13))
    image = scorer.spec.settings["image"]
    assert (image["format"], image["quality"], image["longest_side"]) == ("jpeg", 80, 20)
    assert load().spec.digest != scorer.spec.digest


def test_the_instruction_is_in_the_spec_and_nothing_else_changes(load: Any):
    plain = load()
    told = plain.instructed(Instruction("Say true or false: {}", yes="true", no="false"))
    assert isinstance(plain, Answerer)
    assert not isinstance(plain, Embedder)
    assert told.spec.digest != plain.spec.digest
    assert told.instructed(ASKED).spec == plain.spec
    assert told.spec.settings["instruction"]["yes"] == "true"


def test_the_revision_is_what_the_server_says(load: Any, mood: Any):
    assert load().spec.revision == "random/llava"
    mood.fingerprint = "fp_7"
    assert load().spec.revision == "random/llava fp_7"
    assert load("?revision=mine").spec.revision == "mine"
    mood.models, mood.fingerprint = False, None
    scorer = load()
    assert scorer.spec.revision == "unknown"
    assert any("revision is unknown" in note for note in scorer.notes)


# Limits


def test_never_more_requests_at_once_than_allowed(load: Any, score: Any, mood: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SERVED + "CONCURRENCY", "3")
    mood.hang = 0.05
    score(load(), 6)
    assert 2 <= mood.most <= 3


def test_requests_keep_to_the_rate(load: Any, score: Any, mood: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SERVED + "RPM", "1200")
    scorer, start = load(), len(mood.times)
    score(scorer, 3)
    times = sorted(mood.times[start:])
    assert times[-1] - times[0] >= 5 * 0.05 - 0.03


def test_pauses_grow_and_are_not_all_alike():
    limits = Limits()
    waits = [[limits.wait_before(attempt) for _ in range(50)] for attempt in (1, 2, 3, 12)]
    for wait, longest in zip(waits, (0.5, 1.0, 2.0, 30.0), strict=True):
        assert longest / 2 <= min(wait) <= max(wait) <= longest
    assert len(set(waits[1])) > 10


def test_what_the_server_asks_for_is_read_in_every_form():
    assert requested_wait({"retry-after": "7"}) == 7
    assert requested_wait({"retry-after-ms": "1500"}) == 1.5
    assert requested_wait({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert requested_wait({"retry-after": "soon"}) is None
    assert requested_wait({}) is None


def test_a_rest_holds_everybody():
    pace = Pace(None)
    assert pace.seconds_until_turn() == 0
    pace.rest(5)
    assert [pace.seconds_until_turn() > 4.9 for _ in range(3)] == [True] * 3


def test_a_clock_that_jumps_back_makes_nobody_wait_for_it(monkeypatch: pytest.MonkeyPatch):
    clock = iter([10_000.0, 10_001.0, 5.0, 6.0])
    monkeypatch.setattr("beholder.models.served.client.time.monotonic", lambda: next(clock))
    pace = Pace(30)
    assert [pace.seconds_until_turn() for _ in range(4)] == [0.0, 1.0, 3.0, 4.0]


def test_requests_tokens_and_cost_are_counted_over_all_instructions(
    load: Any, score: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(SERVED + "PRICE_IN", "2.5")
    monkeypatch.setenv(SERVED + "PRICE_OUT", "10")
    scorer = load()
    score(scorer.instructed(ASKED), 2)
    note = next(note for note in scorer.notes if "requests" in note)
    assert note.startswith("7 requests, 0 of them repeated; 60 tokens in, 6 out; cost 0.0002 ")


@pytest.mark.parametrize(("name", "value"), [("RPM", "fast"), ("CONCURRENCY", "0"), ("TIMEOUT", "nan")])
def test_limits_that_make_no_sense_are_refused(name: str, value: str):
    with pytest.raises(UsageError, match=f"{SERVED}{name} is a number"):
        Limits.from_environment({SERVED + name: value})


# Secrets


def test_a_wrong_key_is_explained_without_it(load: Any, mood: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    mood.key = "another"
    with pytest.raises(ModelError, match="BEHOLDER_API_KEY") as caught:
        load()
    assert "canary" not in str(caught.value)


def test_a_key_that_would_break_a_header_is_not_sent_nor_shown():
    with pytest.raises(ModelError, match="BEHOLDER_API_KEY") as caught:
        key_for(urlsplit("https://api.example"), {"BEHOLDER_API_KEY": "canary\nX: y"})
    assert "canary" not in str(caught.value)


def test_a_general_key_never_travels_in_clear_text():
    both = {"OPENAI_API_KEY": "general"}
    assert key_for(urlsplit("http://gpu-box:8000/v1"), both) == Key("")
    assert key_for(urlsplit("https://api.example/v1"), both) == Key("general")
    assert key_for(urlsplit("http://127.0.0.1:8000/v1"), both) == Key("general")
    assert key_for(urlsplit("http://gpu-box:8000/v1"), {**both, "BEHOLDER_API_KEY": "its"}) == Key("its")


@pytest.mark.parametrize(
    ("name", "error", "told"),
    [
        ("m", ModelError, "openai:MODEL@URL"),
        ("@http://h/v1", ModelError, "openai:MODEL@URL"),
        ("m@http:///v1", ModelError, "not the address"),
        ("m@http://h:99999/v1", ModelError, "not the address"),
        ("m@http://me:canary@h/v1", ModelError, "environment variable"),
        ("m@http://h/v1?key=canary", UnknownName, "option of a served model"),
        ("m@http://h/v1?image=webp", UnknownName, "webp"),
        ("m@http://h/v1?draws=many", UsageError, "whole number"),
    ],
)
def test_addresses_that_make_no_sense_are_refused(name: str, error: type[BeholderError], told: str):
    with pytest.raises(error, match=told) as caught:
        load_model(f"openai:{name}")
    assert "canary" not in str(caught.value)


def test_an_address_is_taken_apart():
    address = read_address("org/model@v2@https://api.example:8443/v1/chat/completions?answers=sampled")
    assert (address.model, address.url.hostname, address.url.path) == ("org/model@v2", "api.example", "/v1")
    assert address.name == "openai:org/model@v2@https://api.example:8443/v1"
    assert address.asking.answers == "sampled"


# From the command line


@pytest.fixture
def audit(url: str, people: Callable[..., Path], tmp_path: Path) -> Callable[..., Any]:
    """`beholder audit` of the served model on ten small pictures, in a process of its own."""
    prompts = tmp_path / "prompts.csv"
    prompts.write_text("text\nis the doctor ?\na doctor\n")
    words = [
        "audit",
        f"openai:{app.MODEL}@{url}",
        "--dataset",
        f"folder:{people(10)}",
        "--prompts",
        str(prompts),
        "--by",
        "gender",
        "--out",
        str(tmp_path / "run"),
        "--store",
        str(tmp_path / "store"),
        "--batch-size",
        "1",
        "--draws",
        "100",
    ]
    environment = {**os.environ, "BEHOLDER_API_KEY": CANARY, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", "from beholder.cli import main; main()", *words]
    pipe = subprocess.PIPE
    return lambda: subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.slow
def test_ctrl_c_stops_at_once_and_finished_images_stay(audit: Any, mood: Any, tmp_path: Path):
    mood.hang, mood.hang_after = 60.0, 6
    process = audit()
    while len(mood.bodies) < 7 and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    assert process.wait(timeout=300) == 130, process.communicate()
    assert time.monotonic() - start < 45  # the server would answer after 60
    process.communicate()
    mood.hang, asked = 0.0, len(mood.bodies)
    again = audit()
    said = "".join(again.communicate(timeout=600))
    assert again.returncode == 0, said
    assert len(mood.bodies) - asked == 2 + 2 * 8  # two to see who is there; two images were finished before
    written = [path for path in (*(tmp_path / "run").rglob("*"), *(tmp_path / "store").rglob("*")) if path.is_file()]
    assert len(written) > 4
    assert not [path for path in written if b"canary" in path.read_bytes()]
    assert "canary" not in said
