"""The proof at start catches planted faults: a model that would be scored wrongly is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from beholder.core.errors import ModelError
from beholder.models.load import LoadOptions, load_model

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from beholder.models.generative import loaded_model, reuse, texts, tree  # noqa: E402

WAYS = [LoadOptions(shared_prefix=shared) for shared in (True, False)]


@pytest.mark.real
@pytest.mark.parametrize("options", WAYS)
def test_a_cached_mask_is_refused(shared: Path, options: LoadOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "OF_TOKENS", {*texts.OF_TOKENS, "cross_attention_mask"})
    with pytest.raises(ModelError, match=r"refused: cross_attention_mask of one picture .* what came before"):
        load_model(str(shared / "tiny-models" / "mllama"), options)


@pytest.mark.parametrize("options", WAYS)
def test_a_cached_picture_is_refused(
    tiny_generative: Callable[[str], Path], options: LoadOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, shown = texts.Texts.layout, {}

    def cached(self: Any, questions: Any, encode: Any) -> Any:
        layout, seen = inner(self, questions, encode)
        return layout, shown.setdefault(id(self), seen)

    monkeypatch.setattr(texts.Texts, "layout", cached)
    with pytest.raises(ModelError, match="refused: pixel_values"):
        load_model(str(tiny_generative("llava")), options)


def test_padding_that_is_read_as_words_is_refused(
    tiny_generative: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = loaded_model._padded
    monkeypatch.setattr(loaded_model, "_padded", lambda row, length, value: inner(row, length, value or 1))
    with pytest.raises(ModelError, match="refused: answers differ by"):
        load_model(str(tiny_generative("llava")))


def shuffle_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tree._Planted._positions
    monkeypatch.setattr(tree._Planted, "_positions", lambda *given: inner(*given).roll(1, dims=-1))


def test_shuffled_positions_in_the_tree_end_the_tree(
    tiny_generative: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffle_tree(monkeypatch)
    scorer: Any = load_model(str(tiny_generative("llava")))
    assert isinstance(scorer._sharing._runner, reuse.TrunkRunner)
    assert "each question goes on from there, because the largest difference" in scorer.notes[0]


def shuffled(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = reuse._after
    monkeypatch.setattr(reuse, "_after", lambda *given: inner(*given).flip(-1))


def spoilt_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """All branches go on where the last batch of them ended."""
    monkeypatch.setattr(reuse, "_copied", lambda kept, pictures, branches: kept)
    monkeypatch.setattr(loaded_model, "QUESTIONS", {"cpu": 1})


def wrong_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Padding behind the branches is read as if it were their last word."""
    monkeypatch.setattr(torch, "searchsorted", lambda read, ends: torch.full_like(ends, len(read) - 1))


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
    assert reuse._after(picture, 2, 3).tolist() == [[[7, 8, 9]] * 2] * 3
    counted = torch.cat([torch.arange(5)[None, None], picture])
    assert reuse._after(counted, 1, 2).tolist() == [[[5, 6]], *[[[7, 8]]] * 3]
    assert reuse._after(torch.tensor([[0, 1, 2]]), 2, 2).tolist() == [[3, 4]] * 2
