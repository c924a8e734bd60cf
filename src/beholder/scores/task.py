"""Task: which images meet which prompts. A study is a list of them and questions about their scores."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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

    def sheet_name(self, image_keys: npt.NDArray[np.bytes_]) -> str:
        """Stands for the contents of the images and the texts of the prompts."""
        return hashlib.blake2b(image_keys.tobytes() + self.prompts.digest.encode(), digest_size=10).hexdigest()
