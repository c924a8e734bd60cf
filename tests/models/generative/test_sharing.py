"""Questions that share what they begin with get the answers they would get alone, and say so if they do not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import OutOfMemory, UnusableScore
from beholder.models.load import LoadOptions, load_model
from beholder.prompts.prompt_set import Instruction

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from beholder.models.generative.loaded_model import LoadedModel  # noqa: E402
from beholder.models.generative.model_types import Reuse  # noqa: E402
from beholder.models.generative.tree import ways  # noqa: E402

FAMILIES = ["qwen2_5_vl", "llava", "gemma3", "paligemma", "blip-2", "smolvlm"]
CAUSAL = [name for name in FAMILIES if name != "paligemma"]
WORDS = ["person", "image", "woman", "man", "doctor", "nurse", "smiling", "photo", "dog", "the", "a", "is", "of"]
ASK = Instruction("Answer Yes or No. Question: {} Answer Yes or No", yes="Yes", no="No")
Load = Callable[..., Any]


def ragged(count: int = 24, seed: int = 5) -> list[str]:
    """From 1 to about 60 tokens; some begin others, some come twice."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 40, count)
    free = [" ".join(rng.choice(WORDS, length)) for length in lengths]
    return ["dog", *free, free[0], f"{free[0]} dog", f"{free[0]} dog smiling", free[3], "dog"]


@pytest.fixture
def load(tiny_generative: Callable[[str], Path]) -> Load:
    def loaded(family: str, **options: Any) -> Any:
        return load_model(str(tiny_generative(family)), LoadOptions(**options)).instructed(ASK)  # type: ignore[attr-defined]

    return loaded


def score(scorer: Any, pictures: list[Image.Image], questions: list[str]) -> Any:
    return scorer.score_prepared([scorer.prepare(picture) for picture in pictures], questions)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_shared_and_plain_agree_on_ragged_questions(family: str, load: Load, pictures: list[Image.Image]) -> None:
    shown = [*pictures[:2], pictures[3]]
    shared, plain = load(family), load(family, shared_prefix=False)
    for questions in (ragged(), ["dog"], ["dog", "dog"], ["is the", "is the person", "is the person a man"]):
        np.testing.assert_allclose(score(shared, shown, questions), score(plain, shown, questions), rtol=0, atol=1e-5)
    told = [note for note in shared.notes if "share what they begin with" in note]
    assert len(told) == (1 if family in CAUSAL else 0)
    assert not [note for note in plain.notes if "share" in note]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_half_precision_agrees_within_its_tolerance(family: str, load: Load, pictures: list[Image.Image]) -> None:
    from beholder.models.torch_scorer import TOLERANCE

    shared, plain = (load(family, precision="bf16", shared_prefix=how) for how in (True, False))
    apart = np.abs(score(shared, pictures[:2], ragged()) - score(plain, pictures[:2], ragged()))
    assert apart[:, :, 1:].max() <= TOLERANCE["log-probability"]["bfloat16"]
    assert not [note for note in shared.notes if "which is slow" in note]


@pytest.mark.slow
@pytest.mark.parametrize("family", CAUSAL)
def test_several_pictures_go_through_at_once(
    family: str, load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = [pictures[0], pictures[0].transpose(Image.Transpose.FLIP_LEFT_RIGHT), pictures[5]]
    scorer = load(family)
    one_by_one = score(scorer, shown, ragged())
    monkeypatch.setattr(scorer._sharing, "_together", 3)
    sizes = recorded(scorer, monkeypatch)
    together = score(scorer, shown, ragged())
    assert sizes == [(3, len(ragged()))]
    np.testing.assert_allclose(together, one_by_one, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_pictures_of_other_sizes_are_tokenised_once_and_rightly(
    load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Qwen gives every size its own number of tokens; all but two questions are respelled, not read again."""
    scorer, plain = load("qwen2_5_vl"), load("qwen2_5_vl", shared_prefix=False)
    sizes = [(32, 32), (48, 32), (64, 48), (48, 32)]
    shown = [pictures[0].resize(size) for size in sizes]
    expected = score(plain, shown, ragged())
    calls, encode = [], scorer._loaded.encode
    monkeypatch.setattr(scorer._loaded, "encode", lambda picture, text: calls.append(text) or encode(picture, text))
    np.testing.assert_allclose(score(scorer, shown, ragged()), expected, rtol=0, atol=1e-5)
    assert len(calls) == len(ragged()) + 2 + 2 + 1  # the first size; two more; one that was seen before
    calls.clear()
    score(scorer, shown, ragged())
    assert len(calls) == len(shown)


def recorded(scorer: Any, monkeypatch: pytest.MonkeyPatch, room: float = np.inf) -> list[tuple[int, int]]:
    """Pictures and questions of every pass over a tree; passes larger than the room run out of memory."""
    runner, passes = scorer._sharing._runner, []
    inner = runner.logits

    def logits(tree: Any, inputs: Any) -> Any:
        passes.append((len(inputs["input_ids"]), len(tree.last_tokens)))
        if np.prod(passes[-1]) > room:
            raise OutOfMemory("The model ran out of memory")
        return inner(tree, inputs)

    monkeypatch.setattr(runner, "logits", logits)
    return passes


def test_memory_that_runs_out_halves_pictures_then_questions(
    load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer, shown, questions = load("llava"), pictures[:2], ragged(6)
    expected = score(scorer, shown, questions)
    monkeypatch.setattr(scorer._sharing, "_together", 2)
    passes = recorded(scorer, monkeypatch, room=6)
    np.testing.assert_allclose(score(scorer, shown, questions), expected, rtol=0, atol=1e-5)
    assert passes[:4] == [(2, 12), (1, 12), (1, 6), (1, 6)]
    monkeypatch.undo()
    passes = recorded(scorer, monkeypatch, room=0)
    with pytest.raises(OutOfMemory):
        score(scorer, shown, questions)
    assert passes[-1] == (1, 1)


@pytest.mark.slow
def test_a_model_on_which_sharing_fails_is_asked_the_plain_way_and_says_so(
    load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = score(load("llava", shared_prefix=False), pictures[:2], ragged())
    scorer = load("llava")
    inner = scorer._sharing._runner.logits
    monkeypatch.setattr(scorer._sharing._runner, "logits", lambda tree, inputs: inner(tree, inputs).roll(1, dims=1))
    with caplog.at_level(logging.WARNING, "beholder.models.generative.sharing"):
        cells = score(scorer, pictures[:2], ragged())
    np.testing.assert_allclose(cells, expected, rtol=0, atol=1e-5)
    (note,) = [note for note in scorer.notes if "which is slow" in note]
    assert "more than 0.0001" in note
    assert note in caplog.text


@pytest.mark.slow
def test_a_model_that_breaks_on_a_tree_is_asked_the_plain_way_and_says_why(
    load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = score(load("llava", shared_prefix=False), pictures[:2], ragged())
    scorer = load("llava")

    def broken(tree: Any, inputs: Any) -> Any:
        raise TypeError("forward() got an unexpected keyword argument 'position_ids'")

    monkeypatch.setattr(scorer._sharing._runner, "logits", broken)
    np.testing.assert_allclose(score(scorer, pictures[:2], ragged()), expected, rtol=0, atol=1e-5)
    (note,) = [note for note in scorer.notes if "which is slow" in note]
    assert "unexpected keyword argument" in note


@pytest.mark.slow
def test_a_kernel_that_breaks_is_given_up_before_sharing_is(
    load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = score(load("llava", shared_prefix=False), pictures[:2], ragged())
    scorer = load("llava")
    runner = scorer._sharing._runner
    inner = runner.logits

    def logits(tree: Any, inputs: Any) -> Any:
        if runner._kernel is not None:
            raise RuntimeError("no kernel for this card")
        return inner(tree, inputs)

    monkeypatch.setattr(runner, "_kernel", object())
    monkeypatch.setattr(runner, "logits", logits)
    np.testing.assert_allclose(score(scorer, pictures[:2], ragged()), expected, rtol=0, atol=1e-5)
    told = [note for note in scorer.notes if "kernel" in note or "share" in note]
    assert "no kernel for this card" in told[0]
    assert "block by block" in told[1]


def test_what_breaks_after_it_was_proved_is_not_hidden(
    load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = load("llava")
    score(scorer, pictures[:1], ragged())

    def broken(tree: Any, inputs: Any) -> Any:
        raise RuntimeError("the card has fallen off the bus")

    monkeypatch.setattr(scorer._sharing._runner, "logits", broken)
    with pytest.raises(UnusableScore, match="RuntimeError: the card has fallen off"):
        score(scorer, pictures[:1], ragged())


def test_a_picture_that_gives_nan_disproves_nothing(load: Load, pictures: list[Image.Image]) -> None:
    scorer = load("llava")
    prepared = [scorer.prepare(picture) for picture in pictures[:2]]
    spoilt = {name: values * float("nan") for name, values in prepared[0].features.items()}
    from beholder.core.errors import UnusableScore

    with pytest.raises(UnusableScore):
        scorer.score_prepared([prepared[0]._replace(features=spoilt), prepared[1]], ragged())
    assert scorer._sharing._runner is not None
    score(scorer, pictures[:1], ragged())
    assert [note for note in scorer.notes if "share what they begin with" in note]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["paligemma", "blip-2-t5"])
def test_where_the_picture_looks_at_the_words_the_tower_looks_once(
    family: str, load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    from beholder.models.generative.model_types import Reuse
    from beholder.models.generative.tree import image_tower

    scorer, plain = load(family, batch_size=4), load(family, shared_prefix=False)
    assert scorer._sharing.reuse is Reuse.FEATURES
    tower = image_tower(scorer._loaded.model)
    looks, inner = [], tower.forward
    monkeypatch.setattr(tower, "forward", lambda pixels, **kwargs: looks.append(len(pixels)) or inner(pixels, **kwargs))
    cells = score(scorer, pictures[:2], ragged())
    assert looks == [1, 1]
    np.testing.assert_allclose(cells, score(plain, pictures[:2], ragged()), rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", ["paligemma", "blip-2-t5", "llava"])
def test_several_pictures_fill_a_batch_where_questions_do_not(
    family: str, load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where memory holds two prompts at once."""
    shown, questions = [*pictures[:3], pictures[5]], ["dog", "is the person a man"]
    scorer = load(family, shared_prefix=family != "llava")
    alone = np.concatenate([score(scorer, [picture], questions) for picture in shown])
    sizes, memory, inner = [], {}, scorer._loaded.model.generate

    def generate(input_ids: Any, **kwargs: Any) -> Any:
        sizes.append(len(input_ids))
        if len(input_ids) > memory["room"]:
            raise OutOfMemory("The model ran out of memory")
        return inner(input_ids=input_ids, **kwargs)

    monkeypatch.setattr(scorer._loaded.model, "generate", generate)
    for room, expected in ((8, [8]), (4, [8, 4, 4]), (1, [4, 2, 1, 1, 1, 1, 1, 1, 1, 1])):
        sizes.clear()
        memory["room"] = room
        np.testing.assert_allclose(score(scorer, shown, questions), alone, rtol=0, atol=1e-5)
        assert sizes == expected


def test_a_layer_of_the_language_model_sees_each_token_once(
    load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The point of it all: tokens through the model are those of the tree, not those of the prompts."""
    scorer = load("llava")
    score(scorer, pictures[:1], ragged())
    layer = scorer._sharing._runner._text.layers[0]
    tokens: list[int] = []
    layer.register_forward_pre_hook(lambda _, args: tokens.append(args[0].shape[1]))
    score(scorer, pictures[:1], ragged())
    (layout,) = scorer._sharing._layouts.values()
    assert tokens == [layout.tree().size]
    assert tokens[0] < 0.5 * sum(text["input_ids"].shape[1] for text in layout.texts)


def test_what_was_proved_is_checked_again_for_longer_prompts(
    load: Load, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose kept beginning goes wrong from some length on is found out by the first longer picture."""
    scorer, plain = load("qwen2_5_vl"), load("qwen2_5_vl", shared_prefix=False)
    short, long = pictures[0].resize((32, 32)), pictures[0].resize((96, 96))
    runner, longest = scorer._sharing._runner, []
    right = runner.logits

    def sparse(tree: Any, inputs: Any) -> Any:
        longest.append(int(tree.depth.max()))
        logits = right(tree, inputs)
        return logits if longest[-1] <= longest[0] else logits + torch.linspace(0, 1, logits.shape[-1])

    monkeypatch.setattr(runner, "logits", sparse)
    for picture in (short, long, long):
        np.testing.assert_allclose(
            score(scorer, [picture], ragged(8)), score(plain, [picture], ragged(8)), rtol=0, atol=1e-5
        )
    assert longest[1] > longest[0]
    assert any("which is slow" in note for note in scorer.notes)


@pytest.mark.parametrize("setting", [("index_topk", 64), ("layer_types", ["full_attention", "minimax_m3_sparse"])])
def test_nothing_is_shared_by_a_model_that_attends_to_a_choice_of_tokens(load: Load, setting: Any) -> None:
    model = load("qwen2_5_vl")._loaded.model
    setattr(model.config.get_text_config(), *setting)
    assert ways(model) == [Reuse.NOTHING]


def test_a_model_whose_pictures_cannot_be_put_together_is_shown_one_at_a_time(
    tiny_generative: Callable[[str], Path], pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = LoadedModel.answers

    def alone(self: Any, texts: Any, shown: Any) -> Any:
        answers = right(self, texts, shown)
        return answers if len(texts) * len(shown) == 1 else answers + torch.linspace(0, 1, answers.shape[-1])

    expected = score(load_model(str(tiny_generative("llava"))), pictures[:3], ["dog", "a doctor"])
    monkeypatch.setattr(LoadedModel, "answers", alone)
    scorer: Any = load_model(str(tiny_generative("llava")), LoadOptions(shared_prefix=False))
    assert any("one at a time" in note for note in scorer.notes)
    np.testing.assert_allclose(score(scorer, pictures[:3], ["dog", "a doctor"]), expected, rtol=0, atol=1e-5)
