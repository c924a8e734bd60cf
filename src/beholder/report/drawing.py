"""Charts in a page: compressed, drawn when they come into view, the most telling also as a static picture."""

from __future__ import annotations

import base64
import gzip
import html
import json
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from beholder.chapter.chart_style import PAGE_INK, PAPER_WIDTH

if TYPE_CHECKING:
    from beholder.chapter.figure import Figure


class Drawing(NamedTuple):
    """A figure in a page."""

    name: str
    title: str
    caption: str
    picture: str
    """A static picture, for readers without scripts; empty for charts that are opened on request."""
    spec: str
    """The chart, packed."""
    file: str
    """The name of the file that it is saved as."""


def drawing(figure: Figure, name: str, *, file: str, still: bool = True) -> Drawing:
    """A figure, drawn."""
    spec = packed(figure.spec(ink=PAGE_INK, width="container"))
    return Drawing(name, figure.title, figure.caption, picture(figure) if still else "", spec, file)


def picture(figure: Figure) -> str:
    """The figure as a picture that says what it shows to who hears the page."""
    import vl_convert  # loads a JavaScript engine

    svg: str = vl_convert.vegalite_to_svg(figure.spec(ink=PAGE_INK, width=PAPER_WIDTH), allowed_base_urls=[])
    said = html.escape(f"{figure.title}. {figure.caption}", quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{said}" ', 1)


def packed(value: Any) -> str:
    """JSON, compressed, as text that can stand in a script element whatever it holds."""
    return base64.b64encode(gzip.compress(json.dumps(value).encode(), mtime=0)).decode()


def unpacked(text: str) -> Any:
    """What was packed."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


@cache
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    expose = "window.vegaEmbed = vegaEmbed;"
    return str(vl_convert.javascript_bundle(expose)).replace("</script", "<\\/script")
