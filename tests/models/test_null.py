"""Noise is noise: uniform, the same for the same picture and prompt, and unrelated between any two of them."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from beholder.models.scorer import NullScorer, _unit

PROMPTS = [f"a person called {number}" for number in range(40)]


@pytest.fixture(scope="module")
def pictures() -> list[Image.Image]:
    """Pictures that differ in little: one pixel is a shade lighter from one to the next."""
    planes = np.zeros((300, 4, 4, 3), dtype=np.uint8)
    planes[:, 0, 0, 0], planes[:, 0, 0, 1] = np.arange(300) % 256, np.arange(300) // 256
    return [Image.fromarray(plane) for plane in planes]


def noise(pictures: list[Image.Image], prompts: list[str], seed: int = 0) -> np.ndarray:
    scorer = NullScorer(seed)
    return scorer.score_prepared([scorer.prepare(picture) for picture in pictures], prompts)[:, :, 0]


def test_noise_is_uniform_in_every_row_and_column(pictures: list[Image.Image]):
    cells = noise(pictures, PROMPTS)
    everywhere = stats.uniform(-1, 2)
    assert stats.kstest(cells.ravel(), everywhere.cdf).pvalue > 0.01
    for axis, count in ((0, 40), (1, 300)):
        p_values = [stats.kstest(line, everywhere.cdf).pvalue for line in np.moveaxis(cells, axis, 1)]
        assert len(p_values) == count
        assert min(p_values) > 0.001 / count


def test_neither_prompts_nor_pictures_nor_seeds_are_related(pictures: list[Image.Image]):
    cells, others = noise(pictures, PROMPTS), noise(pictures, PROMPTS, seed=1)
    by_prompt = np.corrcoef(cells.T)[np.triu_indices(40, 1)]
    assert np.abs(by_prompt).max() < 4.5 / np.sqrt(300)
    assert by_prompt.std() == pytest.approx(1 / np.sqrt(300), rel=0.15)
    by_picture = np.corrcoef(cells)[np.triu_indices(300, 1)]
    assert by_picture.std() == pytest.approx(1 / np.sqrt(40), rel=0.1)
    assert abs(np.corrcoef(cells.ravel(), others.ravel())[0, 1]) < 4 / np.sqrt(cells.size)


def test_company_and_order_do_not_matter(pictures: list[Image.Image]):
    cells = noise(pictures[:5], PROMPTS)
    np.testing.assert_array_equal(noise(pictures[:5][::-1], PROMPTS[::-1])[::-1, ::-1], cells)
    assert noise(pictures[2:3], PROMPTS[7:8])[0, 0] == cells[2, 7]
    assert noise([], PROMPTS).shape == (0, 40)


def test_two_numbers_are_mixed_as_splitmix64_mixes_one():
    """The first outputs of the reference generator of seed 0, which adds 0x9E3779B97F4A7C15 each time."""
    outputs = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    for step, output in enumerate(outputs, start=1):
        assert _unit(0, step) == output / 2**63 - 1
