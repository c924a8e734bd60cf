"""The calibration page: what is promised and kept, known weaknesses in words, power curves, every trial in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import altair as alt
import numpy as np

from beholder.calibration.summary import calibration_table
from beholder.calibration.weaknesses import weaknesses
from beholder.chapter.chart_parts import Layers
from beholder.chapter.chart_style import QUIET, SERIES
from beholder.chapter.figure import Figure
from beholder.chapter.numbers import ABSENT
from beholder.chapter.table import Cell, Table
from beholder.core.files import write_whole
from beholder.core.written_tables import write_table
from beholder.report.drawing import Drawing, chart_library, drawing
from beholder.report.page import TEMPLATES, environment, policy
from beholder.studies import STUDIES
from beholder.studies.trial_summary import (
    COVERAGE,
    ENOUGH,
    EXCEPTION,
    FAILS,
    FALSE_ALARMS,
    HOLDS,
    Share,
    Summary,
    Weakness,
)

KINDS = (HOLDS, EXCEPTION, FAILS)


class Promise(NamedTuple):
    """What is promised of all metrics, and whether it is kept."""

    headline: str
    sentence: str
    kept: bool


def write_calibration(summaries: list[Summary], folder: Path, *, settings: str) -> Path:
    """Write `calibration.html`, `calibration.parquet` and `calibration.csv`; return the page's path."""
    table = calibration_table(summaries)
    write_table(table, folder, "calibration")
    path = folder / "calibration.html"
    write_whole(path, render_calibration(summaries, settings=settings).encode("utf-8", "replace"))
    return path


def render_calibration(summaries: list[Summary], *, settings: str) -> str:
    """The page as text."""
    scripts = [chart_library(), *((TEMPLATES / name).read_text(encoding="utf-8") for name in ("files.js", "page.js"))]
    metrics = len({each.trial.metric for each in summaries})
    said: list[Weakness] = weaknesses(summaries)
    return (
        environment()
        .get_template("calibration.html.j2")
        .render(
            title="The instrument against known truth",
            subtitle=f"{metrics} metrics in {len(summaries)} trials · {settings}",
            promises=promises(summaries),
            weaknesses=said,
            drawings=list(_drawings(summaries)),
            tables=[coverage_table(summaries), alarm_table(summaries), bias_table(summaries)],
            citation=f"Beholder {metadata.version('beholder')}, calibration against the Glasshouse oracle; {settings}.",
            css=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
            scripts=scripts,
            policy=policy(scripts),
        )
    )


# Promises


def promises(summaries: list[Summary]) -> list[Promise]:
    """Coverage and false alarms, over all trials that are promised to keep them."""
    low, high = COVERAGE
    often = f"{100 * low:.0f} to {100 * high:.0f} of 100 worlds"
    covers = f"95 % intervals cover in {often} with at least {ENOUGH} images a group"
    alarms = f"Corrected tests raise a false alarm in at most {100 * FALSE_ALARMS:.0f} of 100 worlds without effect"
    covered = [each for each in summaries if each.coverage_verdict and each.trial.n >= ENOUGH]
    tested = [each for each in summaries if each.alarm_verdict]
    both = ((covers, covered, "coverage"), (alarms, tested, "alarm"))
    return [_promise(headline, judged, what) for headline, judged, what in both if judged]


def _promise(headline: str, judged: list[Summary], what: str) -> Promise:
    def share(each: Summary) -> float:
        return 100 * (each.coverage if what == "coverage" else each.called).value

    by = {name: [each for each in judged if getattr(each, f"{what}_verdict") == name] for name in KINDS}
    kept = [share(each) for each in by[HOLDS]]
    span = f" ({min(kept):.1f} to {max(kept):.1f})" if kept else ""
    sentence = f"{len(by[HOLDS])} of {len(judged)} trials do{span}"
    if by[EXCEPTION]:
        sentence += f"; {len(by[EXCEPTION])} are known exceptions, which stand in the table with their reason"
    listed = "; ".join(f"{each.trial.name}: {share(each):.1f}" for each in by[FAILS])
    sentence += f". Not kept: {listed}." if listed else "."
    return Promise(headline, sentence, not by[FAILS])


# Curves


def _drawings(summaries: list[Summary]) -> Iterator[Drawing]:
    for place, figure in enumerate(figures(summaries)):
        yield drawing(figure, f"power-{place}", file=f"power-{place}")


def figures(summaries: list[Summary]) -> Iterator[Figure]:
    """Power against the size of the effect, a line for every number of images."""
    for metric, title, axis in filter(None, (study.power_curve for study in STUDIES.values())):
        mine = [
            each
            for each in summaries
            if each.trial.metric == metric and not each.trial.kind and np.isfinite(each.called.value)
        ]
        rows = [
            {
                "effect": each.trial.effect,
                "called": each.called.value,
                "low": each.called.low,
                "high": each.called.high,
                "images": each.trial.curve,
            }
            for each in mine
        ]
        first = {(row["images"], row["effect"]): row for row in reversed(rows)}
        points = Counter(images for images, _ in first)
        rows = [row for row in reversed(first.values()) if points[row["images"]] > 1]  # one point is no curve
        if rows:
            caption = "Share of worlds with corrected p ≤ 0.05. At 0: false alarms. Line at 80 %."
            yield Figure(f"power-{metric}", title, caption, _curve(rows, axis), "power")


def _curve(rows: list[dict[str, object]], axis: str) -> Layers:
    data = alt.Data(values=rows)  # type: ignore[no-untyped-call]  # altair leaves this class untyped
    names = list(dict.fromkeys(str(row["images"]) for row in rows))
    colour = alt.Color(
        "images:N",
        scale=alt.Scale(domain=names, range=[SERIES[i % len(SERIES)] for i in range(len(names))]),
        legend=alt.Legend(columns=1),
    )
    base = alt.Chart(data).encode(x=alt.X("effect:Q", title=axis), color=colour)
    y = alt.Y("called:Q", title="found", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    marks = alt.Data(values=[{"power": 0.8}])  # type: ignore[no-untyped-call]
    rule = alt.Chart(marks).mark_rule(color=QUIET, strokeDash=[4, 3]).encode(y="power:Q")
    tooltip = ["images:N", "effect:Q", alt.Tooltip("called:Q", format=".3f")]
    return alt.layer(
        rule,
        base.mark_line(strokeWidth=2, opacity=0.7).encode(y=y),
        base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(y="low:Q", y2="high:Q"),
        base.mark_point(filled=True, size=55, opacity=1).encode(y=y, tooltip=tooltip),
    ).properties(height=220)


# Tables


def _share(share: Share, *, strong: bool = False) -> Cell:
    if not np.isfinite(share.value):
        return Cell(ABSENT)
    return Cell(f"{100 * share.value:.1f}", f"{100 * share.low:.1f}–{100 * share.high:.1f}", strong)


def _place(found: Summary) -> list[Cell]:
    trial = found.trial
    return [Cell(trial.metric), Cell(trial.setting + (f" ({trial.kind})" if trial.kind else ""))]


def coverage_table(summaries: list[Summary]) -> Table:
    """How often the interval holds the truth."""
    mine = [each for each in summaries if np.isfinite(each.coverage.value)]
    body = [
        [*_place(each), Cell(str(each.repetitions)), _share(each.coverage, strong=True), Cell(each.coverage_verdict)]
        for each in mine
    ]
    notes = dict.fromkeys(
        f"{each.trial.metric}: {each.trial.exception}."
        for each in mine
        if each.coverage_verdict == EXCEPTION and each.trial.exception
    )
    return Table(
        "Coverage of 95 % intervals",
        "Worlds in which the interval holds the true value, in 100. Kinds in brackets (percentile, BCa …) "
        "are there for comparison; no study uses them.",
        ["Metric", "World", "Repetitions", "Covers", "Promise"],
        body,
        2,
        tuple(notes),
    )


def alarm_table(summaries: list[Summary]) -> Table:
    """How often a test calls a difference."""
    mine = [each for each in summaries if np.isfinite(each.called.value)]
    body = []
    for each in mine:
        cells = [_share(each.called, strong=True), Cell("")]
        cells = cells if each.trial.nothing_there else cells[::-1]
        body.append([*_place(each), Cell(str(each.repetitions)), *cells, Cell(each.alarm_verdict)])
    return Table(
        "False alarms and power",
        "Worlds with corrected p ≤ 0.05, in 100: false alarms where nothing is there, power where something is.",
        ["Metric", "World", "Repetitions", "False alarms", "Power", "Promise"],
        body,
        2,
    )


def bias_table(summaries: list[Summary]) -> Table:
    """How far values lie from the truth, on average and from world to world."""
    mine = [
        each for each in summaries if np.isfinite(each.bias) and each.trial.kind not in ("percentile", "accelerated")
    ]
    body = []
    for each in mine:
        bias = Cell(f"{each.bias:+.3g}", f"± {1.96 * each.bias_error:.2g}")
        body.append([*_place(each), _number(each.trial.truth), _number(each.mean), bias, _number(each.spread)])
    return Table(
        "Bias and spread",
        "The true value, the mean of the repetitions, their difference with its Monte Carlo error, and how far single "
        "worlds lie apart (standard deviation). In the metric's own unit.",
        ["Metric", "World", "Truth", "Mean", "Bias", "Spread"],
        body,
        2,
    )


def _number(value: float) -> Cell:
    return Cell(f"{value:.3g}" if np.isfinite(value) else ABSENT)
