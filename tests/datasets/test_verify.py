"""Every image is opened, and those that cannot be read are named with the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from beholder.datasets import load_dataset
from beholder.datasets.survey import damaged_images


def test_damaged_images_are_named_and_all_are_counted(people: Callable[..., Path]):
    folder, opened = people(5), []
    dataset = load_dataset(f"folder:{folder}")
    (folder / "00001.png").write_bytes(b"")
    (folder / "00003.png").unlink()
    found = damaged_images(dataset, opened.append)
    assert found == {"00001.png": "the file is empty (0 bytes)", "00003.png": "the file does not exist"}
    assert opened == [1] * 5
