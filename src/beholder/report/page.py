"""The page: everything a run found, in one HTML file that opens from disk and asks the network for nothing.

Whatever comes from data is escaped; the page's own scripts are the only ones its policy lets run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from beholder.chapter import phrases as words
from beholder.chapter.chart_style import PAGE_INK, PAPER_WIDTH
from beholder.chapter.finding import Finding
from beholder.chapter.table import Table
from beholder.core.files import write_whole
from beholder.report.chapters import Chapter, chapters
from beholder.report.facts import command, dataset_things, model_things, run_facts
from beholder.report.findings import findings
from beholder.report.number_table import results_ledger
from beholder.report.prompts_asked import Asked, images_of, what_was_asked
from beholder.report.short_names import shortly_named
from beholder.report.top_findings import brief, first_sentence
from beholder.report.topics import TOPICS, metrics_of, topic_of
from beholder.run import Run

if TYPE_CHECKING:
    from jinja2 import Environment

    from beholder.chapter.figure import Figure

TEMPLATES = Path(__file__).parent / "templates"
FEW = 5
"""Lists up to this long are shown open."""


class Drawing(NamedTuple):
    """A figure in the page: its static picture, replaced by the living one where scripts run."""

    name: str
    title: str
    caption: str
    picture: str
    spec: str
    topic: str
    wide: bool


class Part(NamedTuple):
    """One of the things a benchmark asks about: its charts, its tables, and the metrics they show."""

    anchor: str
    title: str
    drawings: list[Drawing]
    tables: list[Table]
    metrics: list[str]


class Section(NamedTuple):
    """A chapter with what the page adds to it."""

    anchor: str
    title: str
    chapter: Chapter
    findings: list[tuple[str, list[Finding]]]
    parts: list[Part]
    prompts: list[Asked]
    images: str


class Headline(NamedTuple):
    """A finding of the first screen, and where it is shown in full."""

    finding: Finding
    sentence: str
    whose: str
    anchor: str


def write_report(run: Run, folder: Path) -> Path:
    """Write `report.html` beside the results and return its path."""
    path = folder / "report.html"
    write_whole(path, render(run).encode("utf-8", "replace"))
    return path


def render(run: Run) -> str:
    """The page as text; equal runs give equal pages."""
    run = shortly_named(run)
    found, parts = findings(run), chapters(run)
    sections = [section(run, chapter, heading, found) for chapter, heading in zip(parts, headings(parts), strict=True)]
    ledger = results_ledger(run.results)
    scripts = [chart_library(), _template("page.js"), _template("ledger.js")] if parts else []
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            title=title(run),
            headlines=headlines(found, sections),
            measured=run.results["value"].is_not_null().any(),
            facts=run_facts(run.record),
            command=command(run.record),
            models=model_things(run.record),
            datasets=dataset_things(run.record),
            sections=sections,
            ledger=ledger,
            record=run.record,
            prompts=run.prompts.height > 0,
            citation=citation(run, parts),
            few=FEW,
            belief=any(part.name not in ("gras", "perception", "disparity", "exposure") for part in parts) or not parts,
            css=_template("page.css") + _template("ledger.css"),
            scripts=scripts,
            policy=policy(scripts),
        )
    )


def headings(parts: list[Chapter]) -> list[tuple[str, str]]:
    """An anchor and a title for every chapter; one benchmark on several data sets is told apart by them."""
    titles = [part.title for part in parts]
    return [
        (
            f"{re.sub('[^a-z0-9]+', '-', part.name.lower())}-{place}",
            part.title if titles.count(part.title) == 1 else f"{part.title}, on {part.dataset}",
        )
        for place, part in enumerate(parts, 1)
    ]


def section(run: Run, chapter: Chapter, heading: tuple[str, str], found: list[Finding]) -> Section:
    """A chapter with its findings, its parts and its words."""
    mine = [each for each in found if (each.benchmark, each.dataset) == (chapter.name, chapter.dataset)]
    models = dict.fromkeys(each.model for each in mine)
    return Section(
        *heading,
        chapter,
        [(model, [each for each in mine if each.model == model]) for model in models],
        parts_of(chapter, heading[0]),
        what_was_asked(run.prompts, chapter.name, chapter.dataset),
        images_of(run.record, chapter.dataset),
    )


def headlines(found: list[Finding], sections: list[Section]) -> list[Headline]:
    """The five findings of the first screen."""
    places = {(each.chapter.name, each.chapter.dataset): each for each in sections}
    several = len({(each.benchmark, each.dataset, each.model) for each in found}) > 1
    made = []
    for each in brief(found):
        where = places[each.benchmark, each.dataset]
        whose = f"{each.model}, {where.title}" if several else ""
        anchors = {part.anchor for part in where.parts} | (
            {f"{where.anchor}-planted"} if where.chapter.planted else set()
        )
        exact = f"{where.anchor}-{topic_of(each.kind)}"
        made.append(Headline(each, first_sentence(each.sentence), whose, exact if exact in anchors else where.anchor))
    return made


def title(run: Run) -> str:
    """What was audited, in a line."""
    models = list(dict.fromkeys(run.results["model"])) or [str(model.get("name")) for model in run.record.models]
    if not models:
        return "An audit"
    if run.record.benchmarks == ["exposure"]:
        return " beside ".join([f"Who is named in {models[0]}", *models[1:]])
    who = words.listed(models) if len(models) < 4 else f"{words.count(len(models))} models"
    return f"How {who} {'sees' if len(models) == 1 else 'see'} people"


def citation(run: Run, parts: list[Chapter]) -> str:
    """What to write down so that these numbers can be found again."""
    record = run.record
    said = [f"Beholder {record.beholder}, run of {record.created}", *dict.fromkeys(part.title for part in parts)]
    said += [f"model {model.get('name')} ({str(model.get('digest') or 'no digest')[:12]})" for model in record.models]
    said += [f"data set {data.get('name')} {data.get('revision') or ''}".strip() for data in record.datasets]
    return "; ".join(said) + "."


def parts_of(chapter: Chapter, anchor: str) -> list[Part]:
    """A chapter's charts and tables, topic by topic."""
    drawn, measured = drawings(chapter, anchor), list(chapter.metrics)
    made = [
        Part(
            f"{anchor}-{key}",
            topic.title,
            [drawing for drawing in drawn if drawing.topic == key],
            [table for table in chapter.tables if table.topic == key],
            metrics_of(key, measured),
        )
        for key, topic in TOPICS.items()
    ]
    return [part for part in made if part.drawings or part.tables]


def drawings(chapter: Chapter, anchor: str) -> list[Drawing]:
    """The chapter's figures, drawn."""
    from beholder.report.charts import figures  # loads altair

    return [
        Drawing(
            f"{anchor}-figure-{place}",
            figure.title,
            figure.caption,
            still(figure),
            script_json(figure.spec(ink=PAGE_INK, width="container")),
            figure.topic,
            figure.wide,
        )
        for place, figure in enumerate(figures(chapter.results))
    ]


def still(figure: Figure) -> str:
    """The figure as a picture that says what it shows to who hears the page."""
    import vl_convert  # loads a JavaScript engine

    svg: str = vl_convert.vegalite_to_svg(figure.spec(ink=PAGE_INK, width=PAPER_WIDTH), allowed_base_urls=[])
    said = html.escape(f"{figure.title}. {figure.caption}", quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{said}" ', 1)


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def script_json(value: Any) -> str:
    """JSON that can stand in a script element whatever it holds.

    >>> script_json({"name": "</script>"})
    '{"name": "\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    expose = "window.vegaEmbed = vegaEmbed;"
    return str(vl_convert.javascript_bundle(expose)).replace("</script", "<\\/script")


def policy(scripts: list[str]) -> str:
    """Content security policy: nothing from anywhere, and no script but ours."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return (
        f"default-src 'none'; script-src {hashes or 'none'}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(TEMPLATES)
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    made = Environment(loader=loader, autoescape=True, finalize=keep_together, **options)
    made.filters["script_json"] = script_json
    return made


def keep_together(value: Any) -> Any:
    """A number and its per cent sign on one line, and `n = 100`; markup stays as it is."""
    return value.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0") if type(value) is str else value
