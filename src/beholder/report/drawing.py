"""Charts in a page: compressed, drawn when they come into view, the most telling also as a static picture.

A process of its own draws them (`draw_child.py`), one for all charts. It is started anew when it ends or takes too
long; a chart that cannot be drawn becomes a sentence in its place.
"""

import atexit
import base64
import gzip
import html
import json
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from beholder.chapter.chart_style import PAGE_INK, PAPER_WIDTH
from beholder.core.errors import BeholderError
from beholder.core.files import write_whole
from beholder.report.report import Report

if TYPE_CHECKING:
    from beholder.chapter.charts import Figure

SECONDS = 60.0  # the longest that one chart may take
TRIES = 2  # processes that end one after the other before drawing is given up: then it is the machine, not a chart


class Undrawn(BeholderError):  # noqa: N818
    """A chart that could not be drawn."""


class Drawing(NamedTuple):
    """A figure in a page."""

    name: str
    title: str
    caption: str
    picture: str  # A static picture, for readers without scripts; empty for charts that are opened on request
    spec: str  # the chart, packed
    file: str  # the name of the file that it is saved as


class Painter:
    """The process that draws; it is started with the first request, and ends with this one."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()
        self._ended = 0
        self._library = ""
        atexit.register(self.close)

    def library(self) -> str:
        """Vega, Vega-Lite and Vega-Embed as one script, made once; empty where they cannot be had."""
        with self._lock, suppress(Undrawn):
            self._library = self._library or self.ask("library").replace("</script", "<\\/script")
        return self._library

    def ask(self, kind: str, spec: Mapping[str, object] | None = None) -> str:
        """What was drawn; raises `Undrawn`."""
        with self._lock:
            if self._ended >= TRIES:
                raise Undrawn("The library that draws charts cannot run here; memory may be short.")
            self._child = self._child or _started()
            line = _asked(self._child, json.dumps({"kind": kind, "spec": spec}).encode() + b"\n")
            if not line:
                self.close()
                self._ended += 1
                raise Undrawn("The library that draws charts ended, or took too long; memory may be short.")
            self._ended = 0
        reply = json.loads(line)
        if "error" in reply:
            raise Undrawn(f"The library that draws charts refuses it: {reply['error']}.")
        return str(reply["drawn"])

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.communicate()


def _started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name("draw_child.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the program, which then ends this one
    )


def _asked(child: subprocess.Popen[bytes], request: bytes) -> bytes:
    """The answer's line; empty if the process ended, or was ended because it took too long."""
    assert child.stdin is not None
    assert child.stdout is not None
    watchdog = threading.Timer(SECONDS, child.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        child.stdin.write(request)
        child.stdin.flush()
        return child.stdout.readline()
    except OSError:
        return b""
    finally:
        watchdog.cancel()


_PAINTER = Painter()
chart_library = _PAINTER.library


def prepare() -> None:
    """Begin to make what every page needs, while the page is put together."""
    threading.Thread(target=chart_library, daemon=True).start()


def svg(spec: Mapping[str, object]) -> str:
    """A chart as SVG; raises `Undrawn`."""
    return _PAINTER.ask("svg", spec)


def png(spec: Mapping[str, object]) -> bytes:
    """A chart as PNG; raises `Undrawn`."""
    return base64.b64decode(_PAINTER.ask("png", spec))


def drawing(figure: "Figure", name: str, *, file: str, still: bool = True) -> Drawing:
    """A figure, drawn."""
    spec = packed(figure.spec(ink=PAGE_INK, width="container"))
    shown = picture(figure) if still or not chart_library() else ""
    return Drawing(name, figure.title, figure.caption, shown, spec, file)


def picture(figure: "Figure") -> str:
    """The figure as a picture that says what it shows to who hears the page; a sentence if it cannot be drawn."""
    try:
        drawn = svg(figure.spec(ink=PAGE_INK, width=PAPER_WIDTH))
    except Undrawn as error:
        return f'<p class="undrawn">This chart is not shown. {html.escape(str(error))}</p>'
    said = html.escape(f"{figure.title}. {figure.caption}", quote=True)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{said}" ', 1)


def packed(value: object) -> str:
    """JSON, compressed, as text that can stand in a script element whatever it holds."""
    return base64.b64encode(gzip.compress(json.dumps(value).encode(), mtime=0)).decode()


# Charts as files for a paper

LONGEST = 120  # characters of a file's name; the end tells charts apart


def save_charts(report: Report, folder: Path, *, title: bool = True) -> list[Path]:
    """Every chart as `<study>-<dataset>-<name>.svg` and `.png`, for a paper; returns the paths."""
    paths = []
    for section in report.sections:
        for figure in section.figures:
            name, spec = f"{section.study.name}-{section.dataset}-{figure.name}", figure.paper(title=title)
            stem = re.sub(r"[^\w.-]+", "-", name)[-LONGEST:]
            for ending, data in (("svg", svg(spec).encode()), ("png", png(spec))):
                paths.append(folder / f"{stem}.{ending}")
                write_whole(paths[-1], data)
    return paths
