"""How far apart two ways of asking may be, and how that is measured."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from beholder.models.generative.prompt_tree import prompt_tree  # noqa: E402
from beholder.models.generative.reuse import difference, sample_questions, tolerance  # noqa: E402


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
    assert tolerance(dtype, logits) == pytest.approx(expected)


def test_a_step_is_what_separates_neighbours_in_the_precision() -> None:
    """Against the numbers themselves: the next number above 31 in bfloat16."""
    above = torch.tensor(31.0, dtype=torch.bfloat16).view(torch.int16) + 1
    step = float(above.view(torch.bfloat16)) - 31.0
    assert tolerance(torch.bfloat16, torch.tensor([[31.0, 0.0]])) == pytest.approx(4 * step)


def test_the_difference_is_the_largest_among_the_ten_likeliest() -> None:
    rng = np.random.default_rng(0)
    plain = torch.from_numpy(rng.normal(size=(3, 40)) * 3)
    ours = plain + torch.from_numpy(rng.normal(size=(3, 40)) * 0.1)
    worst = 0.0
    for mine, theirs in zip(ours.numpy(), plain.numpy(), strict=True):
        mine, theirs = (values - np.log(np.exp(values).sum()) for values in (mine, theirs))
        worst = max(worst, *(abs(mine[token] - theirs[token]) for token in np.argsort(theirs)[-10:]))
    assert difference(ours, plain) == pytest.approx(worst, abs=1e-6)
    ours[1, 7] = torch.nan
    assert difference(ours, plain) == float("inf")


def test_the_shortest_and_the_longest_question_are_asked_both_ways() -> None:
    rng = np.random.default_rng(1)
    prompts = [rng.integers(0, 9, length).tolist() for length in [5] * 40 + [2, 30]]
    places = sample_questions(prompt_tree(prompts))
    assert {40, 41} <= set(places)
    assert len(places) == len(set(places)) <= 8
