"""A model that rounds on the way is told apart from one that does not, and its findings are shown after noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from beholder._audit import audit_models
from beholder._options import AuditOptions
from beholder.comparison.family import judge
from beholder.comparison.groups import Groups, People
from beholder.comparison.means import compare_groups
from beholder.core.record import Record
from beholder.models.catalog import FAMILIES, Family
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import LIMIT, ContrastiveScorer, Floats, NullScorer, movement, redrawn, shaken, unit_rows
from beholder.models.served.protocol import CHANNELS, COUNTS, read_draws
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import PLAIN
from beholder.scores.score_matrix import ScoreMatrix

PROMPTS = ["a photo of a person", "a photo of a dog"]


class Rounding(ContrastiveScorer):
    """Mean colours of a picture, rounded to steps as wide as the largest of them over 127: dynamic quantisation."""

    def __init__(self, *, rounds: bool) -> None:
        self.spec = ModelSpec("rounding" if rounds else "plain", "rounding", "none", "1", settings={"logit_scale": 1.0})
        self._rounds = rounds

    def prepare(self, image: Image.Image) -> Any:
        return np.asarray(image.convert("RGB").resize((16, 16)), np.float32) / 255 - 0.5

    def embed_prepared(self, prepared: Sequence[Any]) -> Floats:
        rows = np.stack([picture.reshape(-1) for picture in prepared])
        if self._rounds:
            step = np.abs(rows).max(axis=1, keepdims=True) / 3
            rows = np.round(rows / step) * step
        mix = np.random.default_rng(0).normal(size=(rows.shape[1], 8))
        return unit_rows(rows @ mix)

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        rngs = [np.random.default_rng(sum(text.encode())) for text in texts]
        return unit_rows(np.stack([rng.normal(size=8) for rng in rngs]))


def test_float_arithmetic_is_stable_and_a_served_model_is_not_asked() -> None:
    moved = movement(Rounding(rounds=False), PROMPTS)
    assert moved is not None
    assert moved[0] < 1e-5
    assert movement(NullScorer(1), PROMPTS) is None


def test_transformers_models_are_nudged(tiny_model: Callable[[str], Path]) -> None:
    pytest.importorskip("transformers")
    for family in ("clip", "siglip2"):
        moved = movement(load_model(str(tiny_model(family))), PROMPTS)
        assert moved is not None
        assert 0 <= moved[0] < 1e-4


@pytest.mark.real
def test_a_quantised_tower_moves(bridge: Path) -> None:
    pytest.importorskip("onnxruntime")
    moved = movement(load_model(f"onnx:{bridge}"), PROMPTS)
    assert moved is not None
    assert moved[0] > LIMIT


def test_noise_stays_in_the_range_of_its_channel() -> None:
    cells = np.array([[[0.0, -1.0], [1.0, np.nan]], [[0.5, -3.0], [0.25, -2.0]]])
    noisy = shaken(cells, np.array([0.1, 0.0], np.float32), np.random.default_rng(1))
    assert np.nanmax(np.abs(noisy - cells)) <= 0.1
    assert noisy[..., 0].min() >= 0
    assert noisy[..., 0].max() <= 1
    np.testing.assert_array_equal(noisy[..., 1], cells[..., 1])


def test_answers_drawn_again_spread_as_binomial_counts_do() -> None:
    channels = ("logit_true", "log_p_yes", "log_p_no", "refused", "yes_draws", "no_draws", "draws")
    cells = np.tile(np.array([0, 0, 0, 0.1, 12, 6, 20], np.float32), (400, 5, 1))
    made = redrawn(cells, channels, np.random.default_rng(2))
    yes, no = made[:, :, 4], made[:, :, 5]
    assert yes.mean() == pytest.approx(12, abs=0.2)
    assert yes.var() == pytest.approx(20 * 0.6 * 0.4, rel=0.1)
    assert (yes + no <= 20).all()
    np.testing.assert_allclose(np.exp(made[:, :, 1]), (yes + 0.5) / 21.5, rtol=1e-5)
    np.testing.assert_allclose(made[:, :, 3], (20 - yes - no) / 20, atol=1e-6)


def test_intervals_over_people_hold_the_noise_of_drawn_answers() -> None:
    """Groups that differ by 0.4 in P(Yes), 4 answers a question: 95 of 100 intervals hold 0.4, and not by luck."""
    rng, worlds, each = np.random.default_rng(5), 200, 100
    truth = np.repeat([0.7, 0.3], each)[:, None] + rng.uniform(-0.2, 0.2, (2 * each, worlds))
    told = np.array([read_draws(["Yes"] * n + ["No"] * (4 - n), PLAIN).channels() for n in range(5)], np.float32)
    tables = (pl.DataFrame({name: list(map(str, range(n)))}) for name, n in (("image_id", 2 * each), ("text", worlds)))
    matrix = ScoreMatrix("t", *tables, (*CHANNELS, *COUNTS), told[rng.binomial(4, truth)])
    groups, people = Groups("group", ["a", "b"], np.repeat([0, 1], each)), People(np.arange(2 * each))

    def intervals(values: Any) -> Any:
        (judged,) = judge([compare_groups(values, groups, people, rng, shuffles=99)])
        return judged.own[0][0], judged.own[1][0]

    low, high = intervals(matrix.quantity("probability").cells)
    assert 0.9 < np.mean((low <= 0.4) & (high >= 0.4)) < 0.99
    certain = intervals(truth)
    assert np.mean(high - low) > 1.5 * np.mean(certain[1] - certain[0])


def test_half_precision_is_nudged_by_one_of_its_own_steps(tiny_model: Callable[[str], Path]) -> None:
    pytest.importorskip("transformers")
    moved = movement(load_model(str(tiny_model("clip")), LoadOptions(precision="bfloat16")), PROMPTS)
    assert moved is not None
    assert moved[0] > 1e-4  # a nudge of a millionth would be rounded away


def test_the_record_keeps_how_far_and_says_so_once() -> None:
    record = Record(models=[{"name": "m"}])
    record.add_rounding("m", 0.0069, nudge=1e-6)
    record.add_rounding("m", 0.0069, nudge=1e-6)
    (entry,) = record.models
    assert entry["moved_by_rounding"] == 0.0069
    assert [note for note in entry["notes"] if "by up to 0.0069" in note] == entry["notes"]


@pytest.mark.slow
def test_a_run_shows_what_rounding_does_to_each_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beholder._steps.movement", lambda scorer, prompts: np.array([0.05], np.float32))
    family = Family("rounding", "contrastive", "a test", lambda rest, options: Rounding(rounds=True), form="rounding:")
    monkeypatch.setitem(FAMILIES._things, "rounding", family)
    options = AuditOptions(out=tmp_path / "run", store=tmp_path / "store", limit=8, draws=50)
    run = audit_models(["rounding:x"], ["apa"], options)
    assert run.record.models[0]["moved_by_rounding"] == pytest.approx(0.05)
    assert run.perturbed.height
    assert "as rounding moves it" in (tmp_path / "run" / "report.html").read_text()
