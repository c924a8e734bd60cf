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

from beholder.models.generative import loaded_model, texts, tree  # noqa: E402

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


def test_shuffled_positions_in_the_tree_end_sharing(
    tiny_generative: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tree._Planted._positions
    monkeypatch.setattr(tree._Planted, "_positions", lambda *given: inner(*given).roll(1, dims=-1))
    scorer: Any = load_model(str(tiny_generative("llava")))
    assert scorer._sharing._runner is None
    assert "one by one, which is slow" in scorer.notes[0]
