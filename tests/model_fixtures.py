"""What tests of models share: pictures, prompts, a folder of each tiny model, and the real generative one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_two_towers import BUILDERS


@pytest.fixture(scope="session")
def pictures() -> list[Image.Image]:
    """Seven noisy pictures of odd sizes; one is grey, one has transparency, one is smaller than a patch."""
    rng = np.random.default_rng(7)
    sizes = [(40, 60), (33, 32), (32, 32), (71, 35), (5, 9)]
    rgb = [Image.fromarray(rng.integers(0, 256, (h, w, 3), dtype=np.uint8)) for h, w in sizes]
    return [*rgb, rgb[0].convert("L"), rgb[1].convert("RGBA")]


@pytest.fixture(scope="session")
def prompts() -> list[str]:
    return ["a photo of a doctor", "nurse", "a photo of the smiling woman and the man", "Dog"]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`tiny_model("siglip")` is the folder of a tiny random SigLIP; each is made once."""
    pytest.importorskip("transformers")
    made: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in made:
            made[family] = tmp_path_factory.mktemp("models") / f"tiny-{family}"
            BUILDERS[family](made[family])
        return made[family]

    return folder


@pytest.fixture(scope="session")
def tiny_generative(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`tiny_generative("llava")` is the folder of a tiny random LLaVA; each is made once."""
    from conformance import generative

    made: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in made:
            made[family] = generative.save(tmp_path_factory.mktemp("generative") / family, family)
        return made[family]

    return folder


@pytest.fixture
def clip_copy(tiny_model: Callable[[str], Path], tmp_path: Path) -> Path:
    """A tiny CLIP that a test may damage."""
    return Path(shutil.copytree(tiny_model("clip"), tmp_path / "clip"))


@pytest.fixture(scope="session")
def bridge_vlm(assembled: Callable[[str, str], Path]) -> Path:
    """The real generative model; it answers questions of objects, gender and age."""
    return assembled("get-bridge-vlm", "bridge-vlm")
