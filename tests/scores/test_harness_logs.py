"""Logs of lmms-eval and inspect_ai, made by those programs, are read as the probabilities that they hold."""

from __future__ import annotations

import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from beholder.core.errors import BadScores
from beholder.scores.imported import is_harness_log, read_harness_log

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
INSPECT, LMMS = EXAMPLES / "inspect_ai.eval", EXAMPLES / "lmms_samples_beholder.jsonl"


def inspect_samples() -> list[dict[str, Any]]:
    """The samples of the real archive, read by hand: every member follows its local header."""
    data, samples = INSPECT.read_bytes(), []
    for member in zipfile.ZipFile(io.BytesIO(data)).infolist():
        if member.filename.startswith("samples/"):
            start = data.index(member.filename.encode(), member.header_offset) + len(member.filename)
            start += int.from_bytes(data[member.header_offset + 28 : member.header_offset + 30], "little")
            packed = pa.py_buffer(data[start : start + member.compress_size])
            samples.append(json.loads(pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read()))
    return samples


def test_a_log_of_inspect_ai_gives_the_mass_of_every_spelling_of_yes() -> None:
    assert is_harness_log(INSPECT)
    log = read_harness_log(INSPECT)
    assert (log.table.columns[2], log.table.height) == ("log_p_yes", 30)
    found = {(image, prompt): math.exp(score) for image, prompt, score, *_ in log.table.rows()}
    for sample in inspect_samples():
        tokens = sample["output"]["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        yes = sum(math.exp(each["logprob"]) for each in tokens if each["token"].strip().lower() == "yes")
        key = sample["metadata"]["image_id"], sample["metadata"]["prompt_id"]
        assert found[key] == pytest.approx(yes, abs=1e-9)


def test_a_log_of_inspect_ai_as_json_is_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": {}, "samples": inspect_samples()}))
    assert is_harness_log(path)
    read, archived = (read_harness_log(each).table.sort(pl.all()) for each in (path, INSPECT))
    assert read.equals(archived)


def test_coco_results_are_no_log(tmp_path: Path) -> None:
    (tmp_path / "boxes.json").write_text('[{"image_id": 1, "score": 0.5}]')
    assert not is_harness_log(tmp_path / "boxes.json")


def test_samples_of_lmms_eval_give_the_likelihood_of_yes() -> None:
    log = read_harness_log(LMMS)
    assert (log.table.columns[2], log.table.height) == ("log_p_yes", 60)
    for line, cell in zip(LMMS.read_text().splitlines(), log.table.rows(), strict=True):
        sample = json.loads(line)
        yes = float(sample["filtered_resps"][0].strip("()").split(",")[0])
        assert cell[:3] == (sample["beholder"]["image_id"], sample["beholder"]["prompt_id"], yes)


def written(folder: Path, *samples: dict[str, Any]) -> Path:
    (folder / "x_samples_y.jsonl").write_text("\n".join(map(json.dumps, samples)))
    return folder / "x_samples_y.jsonl"


def test_choices_that_are_prompts_are_scored_one_by_one(tmp_path: Path) -> None:
    doc = {"image_id": "a.png", "choices": ["a warm person", "a cold person"]}
    path = written(tmp_path, {"doc": doc, "resps": [[[-2.5, False]], [[-1.5, True]]]})
    log = read_harness_log(path)
    assert log.table.rows() == [("a.png", "a warm person", -2.5), ("a.png", "a cold person", -1.5)]
    assert (log.table.columns[2:], log.notes) == (["logit_true"], [])


def test_our_own_scores_are_read_back(tmp_path: Path) -> None:
    row = {"image_id": "a.png", "prompt_id": "p", "channel": "cosine", "score": 0.25, "gender": "woman"}
    log = read_harness_log(written(tmp_path, row, {**row, "prompt_id": "q", "score": None}))
    assert log.table.rows() == [("a.png", "p", 0.25), ("a.png", "q", None)]
    assert log.table.columns[2:] == ["cosine"]


def test_a_separator_of_lines_in_a_text_ends_no_line(tmp_path: Path) -> None:
    row = {"image_id": "a\u2028.png", "prompt_id": "p", "score": 0.25}
    (tmp_path / "scores.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\r\n")
    assert read_harness_log(tmp_path / "scores.jsonl").table.rows() == [("a\u2028.png", "p", 0.25)]


YES_NO = {"image_id": "a", "prompt_id": "p"}
PAIRS = [["-1.0", "False"], ["-2.0", "False"]]


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"filtered_resps": PAIRS}, "line 1: nothing says of which image.*process_results returns"),
        ({"cell": YES_NO, "filtered_resps": ["yes"]}, "no log-probabilities. .*multiple_choice or loglikelihood"),
        ({"cell": YES_NO, "filtered_resps": [*PAIRS, *PAIRS]}, "4 log-likelihoods and 2 choices"),
        ({"cell": {**YES_NO, "choices": ["A", "B"]}, "filtered_resps": PAIRS}, "choices are A, B; .*Yes and No"),
    ],
)
def test_what_a_log_of_lmms_eval_lacks_is_said(sample: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(BadScores, match=said):
        read_harness_log(written(tmp_path, sample))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"metadata": {}}, "sample 1: nothing says of which image.*the sample's metadata"),
        ({"metadata": {"image_id": "a"}}, "it has no prompt_id"),
        ({"output": {"choices": [{"message": {"content": "Yes"}}]}}, "--logprobs --top-logprobs 20"),
    ],
)
def test_what_a_log_of_inspect_ai_lacks_is_said(changed: dict[str, Any], said: str, tmp_path: Path) -> None:
    sample = {**inspect_samples()[0], "id": 1, **changed}
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 2, "status": "success", "eval": {}, "samples": [sample]}))
    with pytest.raises(BadScores, match=said):
        read_harness_log(path)


@pytest.mark.parametrize("end", [0, 1, 200, 30_000])
def test_a_damaged_archive_is_an_error_of_ours(end: int, tmp_path: Path) -> None:
    (tmp_path / "cut.eval").write_bytes(INSPECT.read_bytes()[:end])
    with pytest.raises(BadScores, match="not an archive that can be read"):
        read_harness_log(tmp_path / "cut.eval")


def test_a_flipped_byte_is_an_error_or_changes_nothing_silently(tmp_path: Path) -> None:
    data = INSPECT.read_bytes()
    before = read_harness_log(INSPECT).table
    for place in range(1000, len(data), 6007):
        (tmp_path / "bad.eval").write_bytes(data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :])
        try:
            read = read_harness_log(tmp_path / "bad.eval").table
        except BadScores:
            continue
        assert read.equals(before)
