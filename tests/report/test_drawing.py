"""Charts are drawn by another process: its death costs a chart, never the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from made_runs import custom_results, record

from beholder._run import Run
from beholder.report import drawing
from beholder.report.drawing import Painter, Undrawn

BARS = {"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a", "type": "quantitative"}}}
LIMITED = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv.pop(1)) << 20,) * 2); "


@pytest.mark.slow
def test_a_process_that_ends_costs_one_chart_and_is_started_anew() -> None:
    painter = Painter()
    assert painter.ask("svg", BARS).startswith("<svg")
    painter._child.kill()
    with pytest.raises(Undrawn, match="ended, or took too long"):
        painter.ask("svg", BARS)
    assert painter.ask("svg", BARS).startswith("<svg")
    with pytest.raises(Undrawn, match="refuses it"):
        painter.ask("svg", {"mark": 5})
    painter.close()


def test_drawing_is_given_up_where_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    code = [sys.executable, "-c", "import sys; sys.stdin.readline()"]
    ended = lambda: started.append(1) or subprocess.Popen(code, stdin=-1, stdout=-1)  # noqa: E731
    monkeypatch.setattr(drawing, "_started", ended)
    painter = Painter()
    for _ in range(5):
        with pytest.raises(Undrawn, match="memory may be short"):
            painter.ask("svg", BARS)
    assert len(started) == drawing.TRIES


def test_a_chart_that_cannot_be_drawn_is_a_sentence_on_the_page(
    tmp_path: Path, custom_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(spec: object) -> str:
        raise Undrawn("It is <too> large.")

    monkeypatch.setattr(drawing, "svg", refuse)
    figure = custom_run.report.sections[0].figures[0]
    assert drawing.picture(figure) == '<p class="undrawn">This chart is not shown. It is &lt;too&gt; large.</p>'


def limited(megabytes: int, *words: object) -> subprocess.CompletedProcess[str]:
    code = LIMITED + "from beholder.cli import main; main()"
    command = [sys.executable, "-c", code, str(megabytes), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_process_that_may_use_too_little_memory_says_so(tmp_path: Path) -> None:
    done = limited(1200, "report", tmp_path)
    assert (done.returncode, "may use 1.2 GB of memory. Beholder needs at least 2 GB" in done.stderr) == (2, True)
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_page_is_written_where_the_chart_library_cannot_run(tmp_path: Path) -> None:
    Run(custom_results(), record("clip", dataset="photos")).save(tmp_path)
    done = limited(2500, "report", tmp_path, "--quiet")
    assert done.returncode == 0, done.stderr
    assert "This chart is not shown." in (tmp_path / "report.html").read_text()
