"""open_clip is tested where it is: in an environment of its own, chained to this one.

Its torchvision would change which image processors transformers takes, so it stays out of the project's own.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from beholder.core.errors import MissingExtra
from beholder.models.load import load_model

pytest.importorskip("torch")

ROOT = Path(__file__).parents[3]
PACKAGES = ["open_clip_torch==3.3.0", "torchvision==0.29.2", "timm==1.0.30", "ftfy==6.3.1", "wcwidth==0.9.4"]


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter of an environment that sees all of this one and open_clip; made once, kept in `.cache`."""
    folder = ROOT / ".cache" / "openclip-venv"
    interpreter, made_of = folder / "bin" / "python", folder / "made_of"
    recipe = "\n".join([sys.version, sysconfig.get_path("purelib"), *PACKAGES])
    if not made_of.is_file() or made_of.read_text() != recipe:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = [interpreter, "-m", "pip", "install", "-q", "--no-deps", *PACKAGES]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no open_clip: {done.stderr[-500:]}")
        own = subprocess.check_output(
            [interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        )
        chain = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        Path(own.strip(), "chained.pth").write_text(chain)
        made_of.write_text(recipe)
    return interpreter


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [["tests/models/openclip/adapter.py"], ["tests/models/test_conformance.py", "-k", "openclip"]],
    ids=["adapter", "conformance"],
)
def test_everything_passes_where_open_clip_is(python: Path, arguments: list[str]) -> None:
    plugins = ["-p", "torchvision_operators", "-p", "no:cacheprovider"]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "tests/models/openclip"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",  # beside other workers, threads only fight
        "PYTEST_ADDOPTS": "",
    }
    for name in [name for name in environment if name.startswith("PYTEST_XDIST")]:
        del environment[name]
    done = subprocess.run(
        [python, "-m", "pytest", *plugins, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " skipped" not in done.stdout


@pytest.mark.slow
def test_only_open_clip_and_its_own_are_apart(python: Path) -> None:
    names = ["open_clip", "torchvision", "timm", "torch", "transformers", "beholder"]
    code = f"import importlib.util as u; print(*[u.find_spec(name).origin for name in {names}], sep='\\n')"
    places = subprocess.check_output([python, "-c", code], text=True).splitlines()
    apart = [Path(place).is_relative_to(python.parents[1]) for place in places]
    assert apart == [True, True, True, False, False, False]


@pytest.mark.skipif(importlib.util.find_spec("open_clip") is not None, reason="open_clip is installed here")
def test_without_open_clip_the_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'beholder\[openclip\]'"):
        load_model("openclip:ViT-B-32-quickgelu/openai")
    with pytest.raises(MissingExtra, match=r"pip install 'beholder\[openclip\]'"):
        load_model("OpenCLIP ViT-H/14-L2B")
