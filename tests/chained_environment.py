"""Environments that see all of this one and some packages more; made once, kept in `.cache`."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def chained_python(name: str, packages: Sequence[str]) -> Path:
    """The interpreter of such an environment; without the packages tests are skipped, and fail in CI."""
    folder = ROOT / ".cache" / f"{name}-venv"
    interpreter, made_of = folder / "bin" / "python", folder / "made_of"
    recipe = "\n".join([sys.version, sysconfig.get_path("purelib"), *packages])
    if not made_of.is_file() or made_of.read_text() != recipe:
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
        pip = [sys.executable, "-m", "pip", "--python", interpreter]
        install = [*pip, "install", "-q", "--no-deps", "--no-compile", *packages]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no {packages[0]}: {done.stderr[-500:]}")
        own = subprocess.check_output(
            [interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        )
        chain = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        Path(own.strip(), "chained.pth").write_text(chain)
        made_of.write_text(recipe)
    return interpreter


def run_tests(interpreter: Path, arguments: Sequence[str], **environment: str) -> None:
    """Run tests with it; all must pass, and none may be skipped."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    kept |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTEST_ADDOPTS": "", **environment}  # threads only fight
    command = [interpreter, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " skipped" not in done.stdout
