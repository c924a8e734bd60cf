"""Every script of speed/ runs at its smallest size, and the page is made of what they printed."""

from __future__ import annotations

import json
import runpy
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

for extra in ("torch", "transformers", "sklearn"):
    pytest.importorskip(extra)

import bench  # noqa: E402
import growth  # noqa: E402
import run  # noqa: E402

SPEED = Path(run.__file__).parent
HELPERS = {"architectures", "bench", "rehearsal", "run"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, script in run.SCRIPTS.items() if script.quick is not None])
def test_every_script_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split((run.SCRIPTS[name].quick or "").replace("WORK", str(tmp_path)))
    if name == "store":  # changes the modules that it loads, and starts processes of its own functions
        subprocess.run([sys.executable, SPEED / "store.py", *words], check=True)
        return
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *words])
    monkeypatch.setattr(bench, "alone", lambda way, work, *given: bench._alone(way, work, given))
    with suppress(SystemExit):  # the command line ends the process
        runpy.run_path(str(SPEED / f"{name}.py"), run_name="__main__")
    assert capfd.readouterr().out.strip()


def test_every_script_is_on_the_list() -> None:
    assert {path.stem for path in SPEED.glob("*.py")} - HELPERS == set(run.SCRIPTS)


def test_the_exponent_is_the_slope_of_the_logarithms() -> None:
    rng, sizes = np.random.default_rng(0), np.array([100.0, 200, 400, 800, 1600])
    seconds = 3 * sizes**1.3 * np.exp(rng.normal(0, 0.05, 5))
    (slope, _), covariance = np.polyfit(np.log(sizes), np.log(seconds), 1, cov=True)
    fit = growth.power_law(sizes, seconds)
    assert fit.exponent == pytest.approx(slope)
    assert (fit.high - fit.low) / 2 == pytest.approx(3.1824463 * np.sqrt(covariance[0, 0]))  # t of 3 degrees
    assert fit.low < 1.3 < fit.high


def test_the_page_takes_each_devices_part_and_leaves_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "RESULTS.md"
    marks = "<!-- cpu: made by speed/run.py -->\nold\n<!-- cpu: end -->"
    page.write_text(f"# Results\n\n{marks}\n\nBy hand.\n\n<!-- cuda: made by speed/run.py -->\n<!-- cuda: end -->\n")
    monkeypatch.setattr(run, "PAGE", page)
    ways = [bench.Way("ours", 0.5, 0.25), bench.Way("a loop", 2.0, 1.0)]
    ran = {"command": "python speed/gras.py", "seconds": 3.0, "processor_seconds": 2.0, "load_before": 0.1}
    claims = [bench.compared("Tests of all traits", ways)._asdict()]
    kept = {"machine": {"date": "2026-11-16"}, "scripts": {"gras": {**ran, "claims": claims}}}
    (tmp_path / "cpu.json").write_text(json.dumps(kept))
    run.render(tmp_path)
    text = page.read_text()
    assert "| a loop | 2       | 1                 | 4     |" in text
    assert "old" not in text
    assert "By hand." in text
    assert "many times as fast as scipy" in text
