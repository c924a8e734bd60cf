"""Peak memory does not grow with the number of images, embeddings aside."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "speed" / "memory.py"


@pytest.mark.slow
def test_twenty_times_the_images_take_no_more_memory():
    specification = importlib.util.spec_from_file_location("memory", SCRIPT)
    memory = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(memory)
    few, many = memory.peak_megabytes(1_000), memory.peak_megabytes(20_000)
    pictures = 19_000 * 3 * 224 * 224 * 4 / 2**20  # what keeping the prepared pictures would take: 11 GB
    assert many - few < pictures / 50  # what is in flight; a loaded machine has more of it
