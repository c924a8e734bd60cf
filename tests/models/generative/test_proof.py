"""The proof at start catches planted faults: a model that would be scored wrongly is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beholder.core.errors import ModelError
from beholder.models.load import LoadOptions, load_model

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from beholder.models.generative import loaded_model, sharing, tree  # noqa: E402
from beholder.models.generative.prompt_tree import prompt_tree  # noqa: E402

WAYS = [LoadOptions(shared_prefix=shared) for shared in (True, False)]


@pytest.mark.real
@pytest.mark.parametrize("options", WAYS)
def test_a_cached_mask_is_refused(shared: Path, options: LoadOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "OF_TOKENS", {*sharing.OF_TOKENS, "cross_attention_mask"})
    with pytest.raises(ModelError, match=r"refused: cross_attention_mask of one picture .* what came before"):
        load_model(str(shared / "tiny-models" / "mllama"), options)


@pytest.mark.parametrize("options", WAYS)
def test_a_cached_picture_is_refused(
    tiny_generative: Callable[[str], Path], options: LoadOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, shown = sharing.Sharing.layout, {}

    def cached(self: Any, picture: Any, questions: Any) -> Any:
        layout, seen = inner(self, picture, questions)
        return layout, shown.setdefault(id(self), seen)

    monkeypatch.setattr(sharing.Sharing, "layout", cached)
    with pytest.raises(ModelError, match="refused: pixel_values"):
        load_model(str(tiny_generative("llava")), options)


def test_where_padding_is_read_as_words_each_picture_goes_alone(
    tiny_generative: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = loaded_model.stacked

    def unmasked(given: Any, **options: Any) -> Any:
        batch = inner(given, **options)
        return batch | {"attention_mask": torch.ones_like(batch["attention_mask"])}

    monkeypatch.setattr(loaded_model, "stacked", unmasked)
    scorer: Any = load_model(str(tiny_generative("llava")))
    assert any("one at a time, because together" in note for note in scorer.notes)


def shuffle_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tree._positions
    monkeypatch.setattr(tree, "_positions", lambda *given: inner(*given).roll(1, dims=-1))


def test_shuffled_positions_in_the_tree_end_the_tree(
    tiny_generative: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffle_tree(monkeypatch)
    scorer: Any = load_model(str(tiny_generative("llava")))
    assert isinstance(scorer._sharing._runner, tree.TrunkRunner)
    assert "each question goes on from there, because the largest difference" in scorer.notes[0]


def shuffled(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tree._after
    monkeypatch.setattr(tree, "_after", lambda *given: inner(*given).flip(-1))


def spoilt_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """All branches go on where the last batch of them ended."""
    monkeypatch.setattr(tree, "_copied", lambda kept, pictures, branches: kept)
    monkeypatch.setattr(loaded_model, "QUESTIONS", {"cpu": 1})


def wrong_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding behind the branches is read as if it were their last word."""
    monkeypatch.setattr(torch, "searchsorted", lambda read, ends: torch.full_like(ends, len(read) - 1))


@pytest.mark.slow
@pytest.mark.parametrize("plant", [shuffled, spoilt_copy, wrong_end])
def test_a_fault_in_the_kept_beginning_ends_sharing(
    plant: Callable[[pytest.MonkeyPatch], None], tiny_generative: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffle_tree(monkeypatch)
    plant(monkeypatch)
    scorer: Any = load_model(str(tiny_generative("qwen2_5_vl")))
    assert scorer._sharing._runner is None
    assert "one by one, which is slow" in scorer.notes[0]


def test_words_behind_a_picture_go_on_after_its_largest_coordinate() -> None:
    """The trunk may end with the picture: time 3, rows 3 to 5, columns 3 to 6."""
    picture = torch.tensor([[[0, 1, 2, 3, 3]], [[0, 1, 2, 5, 5]], [[0, 1, 2, 5, 6]]])
    assert tree._after(picture, 2, 3).tolist() == [[[7, 8, 9]] * 2] * 3
    counted = torch.cat([torch.arange(5)[None, None], picture])
    assert tree._after(counted, 1, 2).tolist() == [[[5, 6]], *[[[7, 8]]] * 3]
    assert tree._after(torch.tensor([[0, 1, 2]]), 2, 2).tolist() == [[3, 4]] * 2


@pytest.mark.parametrize(
    ("dtype", "largest", "expected"),
    [
        (torch.float32, 30.0, 1e-4),
        (torch.bfloat16, 8.0, 0.3),
        (torch.bfloat16, 31.0, 4 * 16 * 2**-7),
        (torch.bfloat16, 40.0, 4 * 32 * 2**-7),
        (torch.float16, 8.0, 0.05),
        (torch.float16, 31.0, 4 * 16 * 2**-10),
    ],
)
def test_the_tolerance_grows_with_the_steps_of_the_precision(
    dtype: torch.dtype, largest: float, expected: float
) -> None:
    logits = torch.tensor([[largest, 1.0, *[0.0] * 20, -1000.0]])
    assert sharing.tolerance(dtype, logits) == pytest.approx(expected)


def test_a_step_is_what_separates_neighbours_in_the_precision() -> None:
    """Against the numbers themselves: the next number above 31 in bfloat16."""
    above = torch.tensor(31.0, dtype=torch.bfloat16).view(torch.int16) + 1
    step = float(above.view(torch.bfloat16)) - 31.0
    assert sharing.tolerance(torch.bfloat16, torch.tensor([[31.0, 0.0]])) == pytest.approx(4 * step)


def test_the_difference_is_the_largest_among_the_ten_likeliest() -> None:
    rng = np.random.default_rng(0)
    plain = torch.from_numpy(rng.normal(size=(3, 40)) * 3)
    ours = plain + torch.from_numpy(rng.normal(size=(3, 40)) * 0.1)
    worst = 0.0
    for mine, theirs in zip(ours.numpy(), plain.numpy(), strict=True):
        mine, theirs = (values - np.log(np.exp(values).sum()) for values in (mine, theirs))
        worst = max(worst, *(abs(mine[token] - theirs[token]) for token in np.argsort(theirs)[-10:]))
    assert sharing.difference(ours, plain) == pytest.approx(worst, abs=1e-6)
    ours[1, 7] = torch.nan
    assert sharing.difference(ours, plain) == float("inf")


def test_the_shortest_and_the_longest_question_are_asked_both_ways() -> None:
    rng = np.random.default_rng(1)
    prompts = [rng.integers(0, 9, length).tolist() for length in [5] * 40 + [2, 30]]
    places = sharing.sample_questions(prompt_tree(prompts))
    assert {40, 41} <= set(places)
    assert len(places) == len(set(places)) <= 8
