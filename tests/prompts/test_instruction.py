"""How a study puts its prompts to a model that answers in words."""

from __future__ import annotations

import pytest

from beholder.prompts.prompt_set import Instruction


@pytest.mark.parametrize("prompt", ["Is this {person} kind?", "a {} b", "%s {0}", ""])
def test_braces_in_a_prompt_are_only_braces(prompt: str):
    assert Instruction("Answer yes or no: {}", yes="yes", no="no").ask(prompt) == f"Answer yes or no: {prompt}"


def test_equal_instructions_are_equal_and_cannot_be_changed():
    first, second = (Instruction("{}", yes="yes", no="no") for _ in range(2))
    assert first == second
    assert first != Instruction("{}", yes="yes", no="no", measure="No")
    with pytest.raises(AttributeError):
        first.yes = "true"  # type: ignore[misc]
