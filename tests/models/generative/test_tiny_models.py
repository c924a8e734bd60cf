"""The tiny models of ../shared score as the plain logits beside them, whichever picture was shown before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.models.load import LoadOptions, load_model

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.real
QUESTIONS = ["Is the person in the image a woman?", "nurse", "a photo of a doctor, a nurse and the politician"]


@pytest.fixture(scope="module")
def noise() -> list[Image.Image]:
    """The two pictures that plain_logits.npy is about."""
    rng = np.random.default_rng(3)
    return [Image.fromarray(rng.integers(0, 256, shape, np.uint8)) for shape in ((48, 64, 3), (80, 40, 3))]


def logits(scorer: Any, pictures: list[Image.Image]) -> Any:
    """Logits at the first answer position: pictures, questions, vocabulary."""
    cells: dict[tuple[int, int], Any] = {}
    for part in scorer._sharing.first_tokens([scorer.prepare(picture) for picture in pictures], QUESTIONS):
        for at in np.ndindex(len(part.rows), len(part.indices)):
            cells[part.rows[at[0]], part.indices[at[1]]] = part.logits[at].float().numpy()
    return np.array([[cells[row, index] for index in range(len(QUESTIONS))] for row in range(len(pictures))])


@pytest.mark.parametrize("shared_prefix", [True, False])
def test_the_picture_shown_before_does_not_move_mllama(
    shared: Path, noise: list[Image.Image], shared_prefix: bool
) -> None:
    folder, options = shared / "tiny-models" / "mllama", LoadOptions(shared_prefix=shared_prefix)
    plain = np.load(folder / "plain_logits.npy")
    for order in ([0, 1], [1, 0]):
        scorer = load_model(str(folder), options)
        after = np.concatenate([logits(scorer, [noise[index]]) for index in order])
        alone = np.concatenate([logits(load_model(str(folder), options), [noise[index]]) for index in order])
        np.testing.assert_allclose(after, alone, rtol=0, atol=1e-6)
        np.testing.assert_allclose(after, plain[order], rtol=0, atol=1e-4)
