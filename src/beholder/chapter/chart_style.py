"""How charts look: colours that colour-blind readers can tell apart, and ink that follows the page.

In the page text and axes are drawn in `currentColor`, so one drawing serves light and dark; in files they are dark.
"""

from beholder.core.types import Entry

Spec = Entry  # Vega-Lite, or a part of it

WOMEN, MEN = "#c9741f", "#2a9d8f"  # the same everywhere; shapes tell them apart as well
GROUP_COLOURS = {"woman": WOMEN, "man": MEN}
GROUP_SHAPES = {"woman": "circle", "man": "square"}
SERIES = ("#4c86c0", "#c9741f", "#2a9d8f", "#b45a9c", "#9a8b1f", "#c8553d", "#7a7fd1", "#6b8e4e")
"""Models, or groups other than women and men."""
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
QUIET = "#858585"
PAGE_INK, PAPER_INK = "currentColor", "#222222"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
PAPER_WIDTH = 560


def config(ink: str) -> Spec:
    """Vega-Lite configuration: no frame, no background, faint grid."""
    text = {"labelColor": ink, "titleColor": ink, "labelFont": FONT, "titleFont": FONT}
    axis = {**text, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelLimit": 130}
    lines = {"domainColor": ink, "domainOpacity": 0.35, "tickColor": ink, "tickOpacity": 0.35}
    grid = {"gridColor": ink, "gridOpacity": 0.12}
    legend = {**text, "labelFontSize": 12, "title": None, "orient": "top", "labelLimit": 220}
    symbol = {"symbolStrokeWidth": 0, "symbolOpacity": 1, "offset": 6}
    title = {"color": ink, "font": FONT, "fontSize": 14, "anchor": "start", "fontWeight": 600, "offset": 10}
    parts = {"axis": {**axis, **lines, **grid}, "legend": {**legend, **symbol}, "title": title}
    return {"background": None, "font": FONT, "view": {"stroke": None}, **parts}


def series_colours(names: list[str]) -> list[str]:
    """A colour for each name; women and men keep theirs."""
    if set(names) <= set(GROUP_COLOURS):
        return [GROUP_COLOURS[name] for name in names]
    return [SERIES[place % len(SERIES)] for place in range(len(names))]


def series_shapes(names: list[str]) -> dict[str, str]:
    """A shape for each name, so that nothing is told by colour alone; women and men keep theirs."""
    return {name: GROUP_SHAPES.get(name, SHAPES[place % len(SHAPES)]) for place, name in enumerate(names)}


def legend_columns(names: list[str]) -> int:
    """As many as fit side by side on a phone."""
    return max(1, min(len(names), 42 // (max(map(len, names), default=1) + 4)))


BELOW, ABOVE = "59, 127, 196", "212, 98, 50"  # RGB of a diverging scale, for colour-blind readers too
