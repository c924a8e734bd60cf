"""Attention over a packed tree is that of each prompt by itself."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from beholder.models.generative import tree_attention as attention  # noqa: E402
from beholder.models.generative.prompt_tree import PromptTree, prompt_tree  # noqa: E402
from beholder.models.generative.tree_attention import TreeMask, window_attention  # noqa: E402

HEADS, SHARED, WIDTH = 6, 3, 8


def random_prompts(seed: int, *, trunk: int, count: int, longest: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    beginning = rng.integers(0, 9, trunk).tolist()
    return [[*beginning, *rng.integers(0, 3, rng.integers(1, longest)).tolist()] for _ in range(count)]


def states(size: int, seed: int, pictures: int = 2) -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(pictures, HEADS, size, WIDTH), *[(pictures, HEADS // SHARED, size, WIDTH)] * 2]
    query, key, value = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return query, key, value


def alone(tree: PromptTree, prompt: int, window: int | None, query: Any, key: Any, value: Any) -> Any:
    """The last token of one prompt, attending to its own tokens by hand."""
    last = int(tree.last_tokens[prompt])
    places = [*tree.ancestors(last).tolist(), last][-(window or tree.size) :]
    keys, values = (part[:, :, places].repeat_interleave(SHARED, dim=1) for part in (key, value))
    scores = (query[:, :, last, None] * keys).sum(-1) / WIDTH**0.5
    return (scores.softmax(-1)[..., None] * values).sum(2)


@pytest.mark.parametrize("window", [None, 5, 40])
@pytest.mark.parametrize(("trunk", "count", "longest"), [(20, 60, 12), (1, 3, 3), (70, 1, 5), (3, 200, 5)])
def test_each_prompt_attends_as_if_it_were_alone(trunk: int, count: int, longest: int, window: int | None) -> None:
    tree = prompt_tree(random_prompts(1, trunk=trunk, count=count, longest=longest))
    query, key, value = states(tree.size, 2)
    seen = attention._blocks(query, key, value, TreeMask(tree), window, WIDTH**-0.5)
    for prompt in range(count):
        expected = alone(tree, prompt, window, query, key, value)
        torch.testing.assert_close(seen[:, :, tree.last_tokens[prompt]], expected, rtol=0, atol=1e-12)


def test_a_trunk_that_looks_ahead_within_a_picture_does_so_in_the_tree() -> None:
    tree = prompt_tree(random_prompts(3, trunk=12, count=9, longest=6))
    own = np.tril(np.ones((12, 12), dtype=bool))
    own[2:8, 2:8] = True
    query, key, value = states(tree.size, 4)
    seen = attention._blocks(query, key, value, TreeMask(tree, {None: torch.from_numpy(own)}), None, WIDTH**-0.5)
    keys, values = (part[:, :, :12].repeat_interleave(SHARED, dim=1) for part in (key, value))
    scores = (query[:, :, :12] @ keys.transpose(-1, -2) / WIDTH**0.5).masked_fill(~torch.from_numpy(own), -torch.inf)
    torch.testing.assert_close(seen[:, :, :12], scores.softmax(-1) @ values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("window", [None, 4])
def test_the_kernels_mask_is_the_rule(window: int | None) -> None:
    tree = prompt_tree(random_prompts(5, trunk=140, count=30, longest=20))
    own = np.tril(np.ones((140, 140), dtype=bool))
    own[10:30, 10:30] = True
    mask = TreeMask(tree, {window: torch.from_numpy(own)}, padded=-tree.size % attention.ALIGNED)
    blocks = mask.block_mask(window, "cpu")
    place = torch.arange(mask.size)
    found = blocks.mask_mod(None, None, place[:, None], place[None, :]).numpy()
    expected = np.zeros((tree.size, tree.size), dtype=bool)
    for token in range(tree.size):
        expected[token, [*tree.ancestors(token), token][-(window or tree.size) :]] = True
    expected[:140, :140] = own
    np.testing.assert_array_equal(found[: tree.size, : tree.size], expected)
    assert (found[tree.size :].sum(axis=1) == 1).all(), "a token of no meaning sees itself only"
    assert not found[: tree.size, tree.size :].any()


def test_a_soft_cap_is_refused() -> None:
    query, key, value = states(4, 0)
    with pytest.raises(NotImplementedError, match="soft cap"):
        attention.tree_attention(None, query, key, value, None, softcap=50.0)


@pytest.mark.parametrize("borders", [[0, 4, 8, 12], [0, 3, 4, 9, 12], [0, 12], [0, 5, 5, 12]])
def test_windows_at_once_are_windows_one_by_one(borders: list[int]) -> None:
    generator = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(1, 2, 12, 8, generator=generator, dtype=torch.float64) for _ in range(3))
    seen, _ = window_attention(None, query, key, value, None, scaling=0.3, cu_seq_lens_q=torch.tensor(borders))
    for begin, end in pairwise(borders):
        part = [state[:, :, begin:end] for state in (query, key, value)]
        weights = (part[0] @ part[1].transpose(-1, -2) * 0.3).softmax(-1)
        torch.testing.assert_close(seen[:, begin:end], (weights @ part[2]).transpose(1, 2), rtol=0, atol=1e-12)
