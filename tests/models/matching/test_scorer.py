"""Matching scores are those of the model's own forward pass, and no picture passes the vision tower twice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import ModelError, OutOfMemory, UnusableScore
from beholder.models.load import LoadOptions, load_model
from beholder.scores.score_matrix import CHANNELS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from conformance import matching  # noqa: E402

NAMES = ["blip", "blip-2", "albef"]
WORDS = ["photo", "of", "the", "smiling", "doctor", "and", "nurse", ",", "woman", "dog", "tree"]
PROMPTS = ["a photo of a doctor", "nurse.", "A photo of the smiling woman, and the man", "dog", "the tree"]


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("matching")
    made: dict[str, Any] = matching.cases(folder)
    return {name: case | {"folder": folder / name} for name, case in made.items()}


@pytest.fixture
def load(cases: dict[str, Any]) -> Callable[..., Any]:
    return lambda name, **options: cases[name]["load"](LoadOptions(device="cpu", **options))


def scores(scorer: Any, pictures: list[Image.Image], prompts: list[str]) -> Any:
    return scorer.score_prepared([scorer.prepare(picture) for picture in pictures], prompts)


def vision_tower(scorer: Any) -> Any:
    model = scorer._matcher._model
    return getattr(model, "vision_model", None) or model.visual_encoder


def text_layers(scorer: Any) -> Any:
    model = scorer._matcher._model
    if hasattr(model, "layer"):
        return model.layer
    return (model.qformer if hasattr(model, "qformer") else model.text_encoder).encoder.layer


def projections(attention: Any) -> Any:
    return attention.self if hasattr(attention, "self") else attention.attention


def tokens_through(module: Any) -> list[int]:
    """Filled, from now on, with how many tokens pass the module each time."""
    counts: list[int] = []
    module.register_forward_hook(lambda module, args, output: counts.append(args[0][..., 0].numel()))
    return counts


def meeting(scorer: Any, pictures: list[Image.Image], prompts: list[str]) -> tuple[Any, Any]:
    """Pictures and prompts just before they meet."""
    with torch.inference_mode():
        pixels = scorer._pixels([scorer.prepare(picture) for picture in pictures])
        return scorer._matcher.pictures(pixels).states, scorer._begun(tuple(prompts))


@pytest.mark.parametrize("name", NAMES)
def test_scores_equal_the_obvious_loop(
    name: str, cases: dict[str, Any], load: Any, pictures: list[Image.Image]
) -> None:
    expected = np.array([[cases[name]["plain"](picture, text) for text in PROMPTS] for picture in pictures])
    assert np.ptp(expected, axis=0).max(axis=0).min() > 0.05, "the tiny model tells no pictures apart"
    assert np.ptp(expected, axis=1).max(axis=0).min() > 0.05, "the tiny model tells no prompts apart"
    np.testing.assert_allclose(scores(load(name), pictures, PROMPTS), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_neither_block_nor_batch_nor_order_changes_a_score(name: str, load: Any, pictures: list[Image.Image]) -> None:
    expected = scores(load(name), pictures, PROMPTS)
    for block_tokens, batch_size in ((1, 1), (16, 3), (80, 7), (10_000, 100)):
        scorer = load(name, batch_size=batch_size)
        scorer.block_tokens = block_tokens
        np.testing.assert_allclose(scores(scorer, pictures, PROMPTS), expected, atol=1e-5)
    backwards = scores(load(name), pictures[::-1], PROMPTS[::-1])[::-1, ::-1]
    np.testing.assert_allclose(backwards, expected, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_longer_prompts_beside_it_do_not_change_a_prompt(name: str, load: Any, pictures: list[Image.Image]) -> None:
    alone = scores(load(name), pictures[:2], ["dog"])
    beside = scores(load(name), pictures[:2], ["dog", "a photo of " + "the smiling man and the woman " * 4])
    np.testing.assert_allclose(beside[:, :1], alone, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_prompts_of_every_length_equal_the_obvious_loop(
    name: str, cases: dict[str, Any], load: Any, pictures: list[Image.Image]
) -> None:
    words = ["a", *WORDS]
    prompts = [" ".join((words * 3)[:length]) for length in (26, 1, 7, 2, 13, 1, 7)]
    expected = [[cases[name]["plain"](picture, text) for text in prompts] for picture in pictures[:2]]
    np.testing.assert_allclose(scores(load(name), pictures[:2], prompts), expected, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_passes_the_vision_tower_once(name: str, load: Any, pictures: list[Image.Image]) -> None:
    scorer, seen = load(name, batch_size=3), []
    vision_tower(scorer).register_forward_hook(
        lambda module, args, kwargs, output: seen.append(len(kwargs["pixel_values"])), with_kwargs=True
    )
    scorer.block_tokens = 8
    scores(scorer, pictures, PROMPTS)
    assert seen == [3, 3, 1]


@pytest.mark.parametrize("name", NAMES)
def test_what_prompts_read_of_a_picture_is_computed_once_for_all_of_them(
    name: str, load: Any, pictures: list[Image.Image]
) -> None:
    scorer = load(name)
    states, begun = meeting(scorer, pictures, PROMPTS)
    scorer.block_tokens = 1  # every pair alone
    layers = [layer for layer in text_layers(scorer) if hasattr(layer, "crossattention")]
    seen = [tokens_through(projections(layer.crossattention).key) for layer in layers]
    scorer._logits(states, begun)
    assert [sum(counts) for counts in seen] == [len(pictures) * states.shape[1]] * len(layers)


@pytest.mark.parametrize("name", NAMES)
def test_only_what_a_score_needs_of_both_runs_for_a_pair(name: str, load: Any, pictures: list[Image.Image]) -> None:
    scorer = load(name)
    states, begun = meeting(scorer, pictures, PROMPTS)
    layers, queries = text_layers(scorer), 3 if name == "blip-2" else 0
    before = {"blip": 1, "blip-2": 1, "albef": 3}[name]  # ALBEF: two without a picture, then the first that fuses
    first = [tokens_through(projections(layer.attention).key) for layer in layers[:before]]
    last = projections(layers[-1].attention)
    read, readers = tokens_through(last.key), tokens_through(last.query)
    scorer._logits(states, begun)
    unpadded = sum(len(ids) + queries for ids in scorer._tokens(PROMPTS))
    assert sum(map(sum, first)) == 0, "a text before it meets a picture is computed again"
    assert sum(read) == len(pictures) * unpadded, "texts are padded"
    assert sum(readers) == len(pictures) * len(PROMPTS) * (queries or 1), "more is read than the head takes"


@pytest.mark.parametrize("name", NAMES)
def test_prompts_are_encoded_once_for_all_batches_of_pictures(
    name: str, load: Any, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer, seen = load(name, batch_size=2), []
    texts = scorer._matcher.texts
    monkeypatch.setattr(scorer._matcher, "texts", lambda ids: seen.append(len(ids)) or texts(ids))
    for picture in pictures:
        scores(scorer, [picture], PROMPTS)
    assert sum(seen) == len(PROMPTS)


def test_other_prompts_are_not_answered_with_the_last_ones(load: Any, pictures: list[Image.Image]) -> None:
    scorer = load("albef")
    first, second = (scores(scorer, pictures[:1], prompts) for prompts in (["dog", "tree"], ["tree", "dog"]))
    np.testing.assert_allclose(first, second[:, ::-1], atol=1e-5)
    assert not np.allclose(first, second, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_the_head_is_what_a_softmax_over_prompts_takes(name: str, load: Any) -> None:
    channels = load(name).channels
    assert next(channel for channel in CHANNELS["logit"] if channel in channels) == "match_logit"
    assert "cosine" not in channels, "a matrix would take the cosine before the head"


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_is_close_and_is_another_model(name: str, load: Any, pictures: list[Image.Image]) -> None:
    full, half = load(name), load(name, precision="bf16")
    difference = np.abs(scores(full, pictures, PROMPTS) - scores(half, pictures, PROMPTS)).max()
    assert 0 < difference < 0.15
    assert full.spec.digest != half.spec.digest


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_that_gives_nan_is_told_by_its_position(name: str, load: Any, pictures: list[Image.Image]) -> None:
    scorer = load(name, batch_size=2)
    prepared = [scorer.prepare(picture) for picture in pictures]
    prepared[4] = np.full_like(prepared[4], np.nan)
    with pytest.raises(UnusableScore) as raised:
        scorer.score_prepared(prepared, PROMPTS)
    assert (raised.value.kind, raised.value.positions) == ("image", (4,))


def test_nothing_asked_is_nothing_scored(load: Any, pictures: list[Image.Image]) -> None:
    assert scores(load("blip"), [], PROMPTS).shape == (0, len(PROMPTS), 3)
    assert scores(load("blip"), pictures[:2], []).shape == (2, 0, 3)


def test_blocks_halve_until_they_fit(load: Any, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch) -> None:
    scorer, expected = load("blip"), scores(load("blip"), pictures, PROMPTS)
    match = scorer._matcher.match

    def small(seen: Any, begun: Any) -> Any:
        if len(seen[0][0]) * len(begun) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")
        return match(seen, begun)

    monkeypatch.setattr(scorer._matcher, "match", small)
    np.testing.assert_allclose(scores(scorer, pictures, PROMPTS), expected, atol=1e-5)
    assert scorer.block_tokens < 2048


def test_texts_halve_until_they_fit(load: Any, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = ["a dog", "the tree", "a man", "the nurse"]
    scorer, expected = load("albef"), scores(load("albef"), pictures[:1], prompts)
    texts = scorer._matcher.texts

    def small(ids: Any) -> Any:
        if len(ids) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")
        return texts(ids)

    monkeypatch.setattr(scorer._matcher, "texts", small)
    np.testing.assert_allclose(scores(scorer, pictures[:1], prompts), expected, atol=1e-5)


def test_a_pair_that_does_not_fit_is_told_as_such(
    load: Any, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    scorer = load("blip")
    monkeypatch.setattr(scorer._matcher, "match", full)
    with pytest.raises(OutOfMemory, match="20 GiB"):
        scores(scorer, pictures[:1], PROMPTS)


def test_a_prompt_that_is_too_long_is_cut_and_noted_once(load: Any, pictures: list[Image.Image]) -> None:
    scorer = load("blip")
    assert scorer.notes == []
    long = "a photo of " + "the man and " * 20
    scores(scorer, pictures[:1], [long])
    scores(scorer, pictures[:1], [long, "dog"])
    assert len(scorer.notes) == 1
    assert "cut to the model's 40" in scorer.notes[0]


def test_the_spec_holds_what_moves_a_score(load: Any) -> None:
    settings = load("blip").spec.settings
    assert settings["architecture"] == "BlipForImageTextRetrieval"
    assert settings["image_processor"]["class"] == "BlipImageProcessorPil"
    assert settings["text"]["max_length"] == 40


def test_a_model_whose_own_forward_pass_differs_is_refused(
    cases: dict[str, Any], load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from beholder.models.matching import BlipMatcher

    match = BlipMatcher.match
    monkeypatch.setattr(BlipMatcher, "match", lambda *args: match(*args) + 0.01)
    with pytest.raises(ModelError, match="scored wrongly"):
        load("blip")


@pytest.mark.parametrize("name", ["blip", "blip-2"])
def test_missing_weights_are_an_error_that_names_them(name: str, cases: dict[str, Any], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(cases[name]["folder"], tmp_path / name))
    weights = load_file(folder / "model.safetensors")
    del weights["itm_head.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"missing: itm_head\.weight"):
        load_model(str(folder))


def test_a_blip_2_with_places_for_its_queries_is_read_too(
    cases: dict[str, Any], tmp_path: Path, pictures: list[Image.Image]
) -> None:
    folder = Path(shutil.copytree(cases["blip-2"]["folder"], tmp_path / "newer"))
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"image_token_index": 5}))
    newer, older = load_model(str(folder)), cases["blip-2"]["load"](LoadOptions(device="cpu"))
    np.testing.assert_allclose(scores(newer, pictures, PROMPTS), scores(older, pictures, PROMPTS), atol=1e-6)
