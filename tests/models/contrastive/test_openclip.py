"""open_clip is tested where it is: in an environment of its own, chained to this one.

Its torchvision would change which image processors transformers takes, so it stays out of the project's own.
"""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest
from chained_environment import ROOT, chained_python, run_tests

from beholder.core.errors import MissingExtra
from beholder.models.load import load_model

pytest.importorskip("torch")

PACKAGES = ["open_clip_torch==3.3.0", "torchvision==0.29.2", "timm==1.0.30", "ftfy==6.3.1", "wcwidth==0.9.4"]


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter of an environment that has open_clip too."""
    return chained_python("openclip", PACKAGES)


@pytest.mark.slow
def test_everything_passes_where_open_clip_is(python: Path) -> None:
    both = ["tests/models/openclip/adapter.py", "tests/models/test_conformance.py", "-k", "adapter.py or openclip"]
    run_tests(python, ["-p", "torchvision_operators", *both], PYTHONPATH=str(ROOT / "tests/models/openclip"))


@pytest.mark.slow
def test_only_open_clip_and_its_own_are_apart(python: Path) -> None:
    names = ["open_clip", "torchvision", "timm", "torch", "transformers", "beholder"]
    code = f"import importlib.util as u; print(*[u.find_spec(name).origin for name in {names}], sep='\\n')"
    places = subprocess.check_output([python, "-c", code], text=True).splitlines()
    apart = [Path(place).is_relative_to(python.parents[1]) for place in places]
    assert apart == [True, True, True, False, False, False]


@pytest.mark.skipif(importlib.util.find_spec("open_clip") is not None, reason="open_clip is installed here")
def test_without_open_clip_the_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'beholder-audit\[openclip\]'"):
        load_model("openclip:ViT-B-32-quickgelu/openai")
    with pytest.raises(MissingExtra, match=r"pip install 'beholder-audit\[openclip\]'"):
        load_model("OpenCLIP ViT-H/14-L2B")
