"""The tree's leaves spell exactly the prompts, and each token is there once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beholder.models.generative.prompt_tree import prompt_tree

SEQUENCES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=14)


@given(SEQUENCES)
def test_leaves_spell_the_prompts(sequences: list[list[int]]) -> None:
    tree = prompt_tree(sequences)
    assert [tree.spelled(number) for number in range(len(sequences))] == sequences


@given(SEQUENCES)
def test_what_is_shared_is_there_once(sequences: list[list[int]]) -> None:
    beginnings = {tuple(sequence[: place + 1]) for sequence in sequences for place in range(len(sequence))}
    tree = prompt_tree(sequences)
    assert tree.size == len(beginnings)
    assert len(set(tree.last_tokens)) == len({tuple(sequence) for sequence in sequences})


@given(SEQUENCES)
def test_a_token_sees_what_stands_before_it_in_its_own_prompt_and_nothing_else(sequences: list[list[int]]) -> None:
    tree = prompt_tree(sequences)
    for number, sequence in enumerate(sequences):
        last = tree.last_tokens[number]
        before = [*tree.ancestors(last), last]
        assert tree.ids[before].tolist() == sequence
        assert tree.depth[before].tolist() == list(range(len(sequence)))


@given(SEQUENCES)
def test_the_trunk_is_seen_by_all_and_no_prompt_ends_in_it(sequences: list[list[int]]) -> None:
    tree = prompt_tree(sequences)
    assert (tree.end[: tree.trunk] == tree.size).all()
    assert (tree.last_tokens >= tree.trunk).all()
    longest = next(
        count
        for count in range(min(map(len, sequences)), -1, -1)
        if len({tuple(sequence[:count]) for sequence in sequences}) == 1
    )
    assert tree.trunk == min(longest, min(map(len, sequences)) - 1)


def test_nothing_makes_no_tree() -> None:
    with pytest.raises(ValueError, match="at least one token"):
        prompt_tree([])
    with pytest.raises(ValueError, match="at least one token"):
        prompt_tree([[1], []])
