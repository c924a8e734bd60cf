"""The page: everything a run found, in one HTML file that opens from disk and asks the network for nothing.

Whatever comes from data is escaped; the page's own scripts are the only ones its policy lets run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from beholder.chapter import phrases
from beholder.chapter.chart_style import PAGE_INK, PAPER_WIDTH
from beholder.chapter.finding import Finding
from beholder.chapter.table import Table
from beholder.core.files import write_whole
from beholder.report.facts import command, dataset_things, model_things, run_facts
from beholder.report.number_table import results_ledger
from beholder.report.prompts_asked import Asked, images_of, prompts_asked
from beholder.report.report import Report, Section, slug
from beholder.report.top_findings import first_sentence, top_findings

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
    """One of the things a study asks about: its charts, its tables, and the metrics they show."""

    anchor: str
    title: str
    drawings: list[Drawing]
    tables: list[Table]
    metrics: list[str]


class PageSection(NamedTuple):
    """A section of the report with what the page adds to it."""

    anchor: str
    title: str
    section: Section
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


def write_page(report: Report, folder: Path) -> Path:
    """Write `report.html` beside the results and return its path."""
    path = folder / "report.html"
    write_whole(path, render(report).encode("utf-8", "replace"))
    return path


def render(report: Report) -> str:
    """The page as text; equal runs give equal pages."""
    sections = [
        page_section(report, section, heading)
        for section, heading in zip(report.sections, headings(report.sections), strict=True)
    ]
    record, scripts = report.record, [chart_library(), _template("page.js"), _template("ledger.js")]
    scripts = scripts if sections else []
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            title=title(report),
            headlines=headlines(report.findings, sections),
            measured=report.results["value"].is_not_null().any(),
            facts=run_facts(record),
            command=command(record),
            models=model_things(record),
            datasets=dataset_things(record),
            sections=sections,
            sensitivity=report.sensitivity,
            ledger=results_ledger(report.results),
            record=record,
            prompts=report.prompts.height > 0,
            citation=citation(report),
            few=FEW,
            glossary=list(dict.fromkeys(line for each in report.sections for line in each.chapter.glossary)),
            css=_template("page.css") + _template("ledger.css"),
            scripts=scripts,
            policy=policy(scripts),
        )
    )


def headings(sections: list[Section]) -> list[tuple[str, str]]:
    """An anchor and a title for every section; one study on several data sets is told apart by them."""
    titles = [section.title for section in sections]
    return [
        (
            f"{slug(section.study.name)}-{number}",
            section.title if titles.count(section.title) == 1 else f"{section.title}, on {section.dataset}",
        )
        for number, section in enumerate(sections, 1)
    ]


def page_section(report: Report, section: Section, heading: tuple[str, str]) -> PageSection:
    """A section with its findings by model, its parts and its prompts."""
    models = dict.fromkeys(finding.model for finding in section.findings)
    return PageSection(
        *heading,
        section,
        [(model, [each for each in section.findings if each.model == model]) for model in models],
        parts_of(section, heading[0]),
        prompts_asked(report.prompts, section.study.name, section.dataset),
        images_of(report.record, section.dataset),
    )


def headlines(findings: list[Finding], sections: list[PageSection]) -> list[Headline]:
    """The five findings of the first screen."""
    by_place = {(each.section.study.name, each.section.dataset): each for each in sections}
    several = len({(each.study, each.dataset, each.model) for each in findings}) > 1
    made = []
    for each in top_findings(findings):
        where = by_place[each.study, each.dataset]
        whose = f"{each.model}, {where.title}" if several else ""
        anchors = {part.anchor for part in where.parts}
        anchors |= {f"{where.anchor}-planted"} if where.section.planted else set()
        exact = f"{where.anchor}-{each.topic}"
        made.append(Headline(each, first_sentence(each.sentence), whose, exact if exact in anchors else where.anchor))
    return made


def title(report: Report) -> str:
    """What was audited, in a line."""
    models = list(dict.fromkeys(report.results["model"])) or [str(model.get("name")) for model in report.record.models]
    if not models:
        return "An audit"
    titles = [section.chapter.page_title for section in report.sections]
    if titles and titles[0] is not None and len({section.study.name for section in report.sections}) == 1:
        return titles[0](models)
    who = phrases.listed(models) if len(models) < 4 else f"{phrases.count(len(models))} models"
    return f"How {who} {'sees' if len(models) == 1 else 'see'} people"


def citation(report: Report) -> str:
    """What to write down so that these numbers can be found again."""
    record = report.record
    parts = [
        f"Beholder {record.beholder}, run of {record.created}",
        *dict.fromkeys(section.title for section in report.sections),
    ]
    parts += [f"model {model.get('name')} ({str(model.get('digest') or 'no digest')[:12]})" for model in record.models]
    parts += [f"data set {data.get('name')} {data.get('revision') or ''}".strip() for data in record.datasets]
    return "; ".join(parts) + "."


def parts_of(section: Section, anchor: str) -> list[Part]:
    """A section's charts and tables, topic by topic; what has no topic of the chapter comes last."""
    drawn, topics = drawings(section, anchor), section.chapter.topics
    made = [
        Part(
            f"{anchor}-{key}",
            heading,
            [drawing for drawing in drawn if drawing.topic == key],
            [table for table in section.tables if table.topic == key],
            [metric.name for metric in section.metrics if key in metric.topic.split()],
        )
        for key, heading in {**topics, "results": topics.get("results", "Results")}.items()
    ]
    return [part for part in made if part.drawings or part.tables]


def drawings(section: Section, anchor: str) -> list[Drawing]:
    """The section's figures, drawn."""
    return [
        Drawing(
            f"{anchor}-figure-{number}",
            figure.title,
            figure.caption,
            still(figure),
            script_json(figure.spec(ink=PAGE_INK, width="container")),
            figure.topic,
            figure.wide,
        )
        for number, figure in enumerate(section.figures)
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
