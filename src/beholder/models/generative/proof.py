"""The proof at start: no score depends on the picture or the question that came before it.

Three pictures, two of one shape and one of another, are shown in both orders. What the model is given must be what
its processor makes of each picture and question alone, value by value, and the answers must be those to each alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PIL import Image

from beholder.models.checkpoint.checkpoint import torch
from beholder.models.checkpoint.torch_scorer import running, sample_picture
from beholder.models.generative.loaded_model import LoadedModel
from beholder.models.generative.reuse import difference, tolerance
from beholder.models.generative.texts import Encoded
from beholder.models.torch_types import Tensor

if TYPE_CHECKING:
    from beholder.models.generative.sharing import Sharing

QUESTIONS = ("Is there a person in the image?", "nurse", "a photo of a doctor, a nurse and a politician")
WIDE = (1200, 400)
"""Width and height of the second picture: models that cut pictures into tiles cut it into several."""
ORDERS = ((0, 1, 2), (2, 1, 0))


@dataclass
class Proof:
    """Three pictures, and what the processor and the model make of each with each question alone."""

    images: list[Image.Image]
    inputs: list[list[Encoded]]
    answers: list[Tensor]

    @classmethod
    def of(cls, loaded: LoadedModel) -> Proof:
        """Ask every question about every picture alone."""
        first = sample_picture()
        wide = first.transpose(Image.Transpose.FLIP_LEFT_RIGHT).resize(WIDE)
        images = [first, wide, first.transpose(Image.Transpose.FLIP_TOP_BOTTOM)]
        encoded = [[loaded.encode_alone(image, question) for question in QUESTIONS] for image in images]
        with running(loaded.model):
            answers = [torch.cat([loaded.logits([text], seen) for text, seen in row]) for row in encoded]
        return cls(images, [[text | seen for text, seen in row] for row in encoded], answers)

    def fault(self, sharing: Sharing, order: Sequence[int]) -> str | None:
        """What differs from asking alone when the pictures come in this order; None if nothing does."""
        loaded = sharing.loaded
        pictures = [loaded.pictures.develop(self.images[index]) for index in order]
        for index, picture in zip(order, pictures, strict=True):
            layout, seen = sharing.layout(picture, QUESTIONS)
            for text, alone in zip(layout.texts, self.inputs[index], strict=True):
                if names := _unequal(text | seen, alone):
                    return f"{', '.join(names)} of one picture and question depends on what came before"
        with running(loaded.model):
            for part in sharing.first_tokens(pictures, QUESTIONS):
                for row, logits in zip(part.rows, part.logits, strict=True):
                    alone = self.answers[order[row]][part.indices]
                    far, limit = difference(logits, alone), tolerance(loaded.model.dtype, alone)
                    if not far <= limit:
                        return f"answers differ by {far:.2g} in log-probability from those alone, more than {limit:.2g}"
        return None


def _unequal(ours: Encoded, alone: Encoded) -> list[str]:
    """The names of the inputs that differ in any value."""
    names = sorted({*ours, *alone})
    return [name for name in names if not (name in ours and name in alone and torch.equal(ours[name], alone[name]))]
