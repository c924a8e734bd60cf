"""Instruction: how a study puts its prompts to a model that answers in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """How a benchmark puts its prompts to a model that answers in words."""

    template: str
    """What the model reads beside the picture; `{}` stands for the prompt."""
    yes: str
    """The answer that agrees; its raw logit is the channel `logit_true`."""
    no: str
    read_off: str | None = None
    """The agreeing answer as a released script writes it, where it reads another token than `yes` has (` Yes`)."""

    def ask(self, prompt: str) -> str:
        """The words of one question; braces in the prompt are only braces."""
        return self.template.replace("{}", prompt)
