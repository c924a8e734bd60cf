"""Task: which images meet which prompts. A benchmark is a list of them and questions about their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from beholder.core.digests import digest
from beholder.datasets.dataset import Dataset
from beholder.prompts.prompt_set import PromptSet


@dataclass(frozen=True)
class Task:
    """One sheet to be filled: every image of `dataset` against every prompt of `prompts`."""

    name: str
    dataset: Dataset
    prompts: PromptSet
    kind: str = ""
    """What is asked, where a study asks several things: its measures pick their sheets by this."""
    part: str = ""
    """The part of the data set that the sheet is about, such as a branch."""

    def sheet_name(self, image_keys: Sequence[str]) -> str:
        """Stands for the contents of the images and the texts of the prompts."""
        return digest([list(image_keys), self.prompts.digest])
