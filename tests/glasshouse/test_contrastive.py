"""The shipped contrastive model: an ordinary folder that recovers what was planted; its training script works."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from recovered import PLANTED, TwoTowers, recovered
from tokens import byte_letters, learn_merges, merge_pair, vocabulary

import beholder.glasshouse
from beholder.glasshouse.world import residents

FOLDER = Path(beholder.glasshouse.__file__).parent / "models" / "contrastive"
# Largest distance between implied and recovered that we accept, by metric.
TOLERANCE = {
    "apa.bias_ratio": 0.03,
    "apa.occupation_probability": 0.03,
    "apa.association": 0.02,
    "apa.identity_given_image": 0.02,
    "apa.identity_given_name": 0.02,
}


@pytest.fixture(scope="module")
def towers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TwoTowers(FOLDER)


@pytest.fixture(scope="module")
def found(towers):
    """A third of the residents: ten women and ten men of each branch, one picture of each named person."""
    rows = [row for row in residents() if not row["name"] and int(row["image_id"].split("/")[1]) < 20]
    return recovered(towers, rows + [row for row in residents() if row["name"]][::3])


@pytest.mark.slow
@pytest.mark.parametrize("metric", TOLERANCE)
def test_shipped_model_recovers_what_was_planted(found, metric):
    rows = [row for row in PLANTED if row["metric"] == metric]
    assert rows
    for row in rows:
        value = found[row["metric"], row["subset"], row["group"], row["concept"]]
        assert value == pytest.approx(row["value"], abs=TOLERANCE[metric]), row


@pytest.mark.slow
def test_warmth_rises_with_smiling_though_in_coarser_steps_than_planted(found):
    # The model tells an open smile from a closed mouth and little in between: see Limits in its card.
    warm = [found["perception.warm_against_cold", "smiling", str(step), "Warmth"] for step in range(5)]
    assert np.mean(warm[:3]) == pytest.approx(0.3, abs=0.05)  # implied mean of steps 0 to 2
    assert np.mean(warm[3:]) == pytest.approx(0.8, abs=0.06)  # implied mean of steps 3 and 4
    assert np.polyfit(range(5), warm, 1)[0] > 0.1


@pytest.mark.slow
def test_control_words_do_not_follow_smiling(found):
    slope = {concept: value for (name, _, _, concept), value in found.items() if name.startswith("slope")}
    assert abs(slope["control words"]) < 0.1 * min(slope["warm words"], -slope["cold words"])


def test_model_is_small_and_says_what_was_planted():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 8_000_000
    card = (FOLDER / "README.md").read_text()
    assert all(words in card for words in ("nurse", "40 %", "strangers", "MIT", "Limits"))


def test_any_text_can_be_written_and_text_length_fits(towers):
    encoded = towers.tokenizer("Zebra ünder 東京 42!").input_ids
    end = towers.tokenizer.eos_token_id
    assert encoded.count(end) == 1
    assert towers.tokenizer.decode(encoded, skip_special_tokens=True).replace(" ", "") == "zebraünder東京42!"
    config = json.loads((FOLDER / "config.json").read_text())
    assert config["text_config"]["eos_token_id"] == end


def test_padding_does_not_change_an_embedding(towers):
    alone = towers.texts(["a doctor"])
    beside = towers.texts(["a doctor", "this is a photo of an elderly woman with dark skin."])
    assert np.allclose(alone[0], beside[0], atol=1e-5)


def test_merges_are_learnt_from_the_most_frequent_pair():
    assert learn_merges(["aab aab ab"], 2) == [("a", "b</w>"), ("a", "ab</w>")]
    assert merge_pair(("a", "b", "a", "b"), ("a", "b")) == ("ab", "ab")
    assert len(set(byte_letters())) == 256
    assert len(vocabulary([("a", "b</w>")])) == 256 * 2 + 1 + 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_training_script_runs_two_steps_and_writes_a_loadable_folder(tmp_path):
    from train_contrastive import Plan, run

    losses = run(Plan(steps=2, batch=8, pictures=16, draws=2), tmp_path, "cpu", 1)
    assert len(losses) == 2
    assert all(np.isfinite(losses))
    assert np.allclose(np.linalg.norm(TwoTowers(tmp_path).texts(["a dog"]), axis=1), 1)


@pytest.mark.filterwarnings("ignore")
def test_equal_captions_share_the_target():
    import torch
    from train_contrastive import contrast

    image, text, scale = torch.eye(2), torch.eye(2)[[0, 0]], torch.tensor(3.0)
    shared = contrast(image, text, torch.tensor([7, 7]), scale)
    # Both texts are the first picture's: given a picture either text is as good, given a text both pictures count.
    by_image = math.log(2)
    by_text = math.log(math.exp(3) + 1) - 1.5
    assert shared.item() == pytest.approx((by_image + by_text) / 2, abs=1e-5)
