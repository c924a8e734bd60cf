"""What stands in for parts of a model while a tree is run: it gives what they give, does less, and goes away."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from architectures import ARCHITECTURES  # noqa: E402

from beholder.models.generative.tree import _LastStep, _tower_layers  # noqa: E402
from beholder.models.generative.tree_attention import CompiledLayers  # noqa: E402


class FeedForward(torch.nn.Module):
    """Counts the tokens that it is given."""

    def __init__(self, *, experts: bool = False) -> None:
        super().__init__()
        self.linear, self.experts, self.given = torch.nn.Linear(4, 4), experts, 0

    def forward(self, states: Any) -> Any:
        self.given += states.shape[1]
        return (self.linear(states), None) if self.experts else self.linear(states)


def test_only_tokens_that_are_read_go_through_the_last_step() -> None:
    module, states, places = FeedForward(), torch.randn(2, 9, 4), torch.tensor([8, 2, 2, 5])
    expected = module(states)
    module.given = 0
    with _LastStep(module, compiling=False).reading(places):
        found = module(states)
    assert module.given == len(places)
    torch.testing.assert_close(found[:, places], expected[:, places], rtol=0, atol=1e-6)
    assert found[:, [0, 1, 3, 4, 6, 7]].abs().max() == 0
    assert "forward" not in vars(module)


def test_experts_that_give_more_than_states_are_left_alone() -> None:
    module, states = FeedForward(experts=True), torch.randn(2, 9, 4)
    with _LastStep(module, compiling=False).reading(torch.tensor([1])):
        found, more = module(states)
    torch.testing.assert_close(found, module(states)[0])
    assert more is None


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_layers_that_look_are_found(name: str) -> None:
    model = ARCHITECTURES[name].build(tiny=True, device="cpu", dtype=torch.float32)
    layers = _tower_layers(model)
    config = model.config.vision_config
    assert len(layers) == (config.depth if hasattr(config, "depth") else config.num_hidden_layers)
    assert all("Vision" in type(one).__name__ or "Encoder" in type(one).__name__ for one in layers)


def test_a_model_whose_tower_is_not_known_has_no_layers_that_look() -> None:
    assert _tower_layers(torch.nn.Linear(2, 2)) == []


def test_compiled_layers_stand_in_their_places_only_while_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda forward: lambda states: forward(states) + 1)
    layers = [torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
    states = torch.randn(3, 2)
    plain = [layer(states) for layer in layers]
    with CompiledLayers(layers).in_place():
        for layer, expected in zip(layers, plain, strict=True):
            torch.testing.assert_close(layer(states), expected + 1)
    for layer, expected in zip(layers, plain, strict=True):
        assert torch.equal(layer(states), expected)


def test_what_is_compiled_is_kept_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    CompiledLayers([])
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "beholder-compiled")
    assert (tmp_path / "beholder-compiled").stat().st_mode & 0o077 == 0
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "elsewhere")
    CompiledLayers([])
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "elsewhere"
