"""The page: everything a run found, in one HTML file that opens from disk and asks the network for nothing.

Whatever comes from data is escaped; the page's own scripts are the only ones its policy lets run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from beholder.report import words
from beholder.report.chapters import Chapter, chapters
from beholder.report.chart_style import PAGE_INK, PAPER_WIDTH
from beholder.report.finding import Finding
from beholder.report.findings import findings
from beholder.report.settings import dataset_things, model_things, run_facts
from beholder.report.table import Table
from beholder.run import Run
from beholder.scores.store import write_whole

if TYPE_CHECKING:
    from jinja2 import Environment

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


class Topic(NamedTuple):
    """One of the things a benchmark asks about: its charts, then its tables."""

    title: str
    drawings: list[Drawing]
    tables: list[Table]


TOPICS = {
    "association": "What the model takes people for",
    "gender": "Women and men",
    "identity": "Names and faces",
    "score": "The score, and what it says without bias",
    "means": "On average",
    "gaps": "The largest gaps",
    "traits": "Trait by trait",
    "valence": "Positive and negative traits",
    "tones": "Over the skin tones",
    "crossed": "Where labels cross",
    "wording": "One question in several wordings",
    "judgements": "How groups are judged",
    "effects": "What moves the judgement",
    "curves": "Over age and smiling",
    "ranking": "Who comes first, who goes without saying",
    "neutral": "The neutral prompt",
    "confounds": "What else may be at work",
    "ratings": "Beside people's ratings",
    "calibration": "What a confidence means",
    "agreement": "Beside other data sets and models",
    "causes": "What may lie behind the gaps",
    "images": "Images, by their ids",
    "prompts": "Prompt by prompt",
    "results": "Results",
}


def write_report(run: Run, folder: Path) -> Path:
    """Write `report.html` beside the results and return its path."""
    path = folder / "report.html"
    write_whole(path, render(run).encode("utf-8", "replace"))
    return path


def render(run: Run) -> str:
    """The page as text; equal runs give equal pages."""
    parts = chapters(run)
    scripts = [chart_library(), (TEMPLATES / "page.js").read_text(encoding="utf-8")] if parts else []
    return environment().get_template("page.html.j2").render(
        title=title(run),
        subtitle=subtitle(run, parts),
        findings=under_headings(findings(run), parts),
        measured=run.results["value"].is_not_null().any(),
        facts=run_facts(run.record),
        models=model_things(run.record),
        datasets=dataset_things(run.record),
        chapters=[(chapter, topics(chapter, number)) for number, chapter in enumerate(parts)],
        record=run.record,
        citation=citation(run, parts),
        few=FEW,
        belief=any(part.name not in ("gras", "perception", "disparity") for part in parts) or not parts,
        css=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
        scripts=scripts,
        policy=policy(scripts),
    )  # fmt: skip


def title(run: Run) -> str:
    """What was audited, in a line."""
    models = list(dict.fromkeys(run.results["model"])) or [
        str(model.get("name")) for model in run.record.models
    ]
    if not models:
        return "An audit"
    who = words.listed(models) if len(models) < 4 else f"{words.count(len(models))} models"
    return f"How {who} {'sees' if len(models) == 1 else 'see'} people"


def subtitle(run: Run, parts: list[Chapter]) -> str:
    """On what, how much, when."""
    what = dict.fromkeys(f"{chapter.title}, on {chapter.dataset}" for chapter in parts)
    return " · ".join([*what, run.record.created[:10]])


def under_headings(found: list[Finding], parts: list[Chapter]) -> list[tuple[str, list[Finding]]]:
    """Findings under their model, and under their benchmark and data set where there are several."""
    named = [part.title for part in parts]
    titles = {
        (part.name, part.dataset): part.title
        if named.count(part.title) == 1
        else f"{part.title}, on {part.dataset}"
        for part in parts
    }
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        title = titles[finding.benchmark, finding.dataset]
        groups.setdefault(f"{finding.model} · {title}" if len(titles) > 1 else finding.model, []).append(
            finding
        )
    return list(groups.items())


def citation(run: Run, parts: list[Chapter]) -> str:
    """What to write down so that these numbers can be found again."""
    record = run.record
    said = [
        f"Beholder {record.beholder}, run of {record.created}",
        *dict.fromkeys(part.title for part in parts),
    ]
    said += [
        f"model {model.get('name')} ({str(model.get('digest') or 'no digest')[:12]})"
        for model in record.models
    ]
    said += [f"data set {data.get('name')} {data.get('revision') or ''}".strip() for data in record.datasets]
    return "; ".join(said) + "."


def topics(chapter: Chapter, number: int) -> list[Topic]:
    """A chapter's charts and tables, topic by topic."""
    drawn = drawings(chapter, number)
    made = [
        Topic(
            title,
            [d for d in drawn if d.topic == key],
            [table for table in chapter.tables if table.topic == key],
        )
        for key, title in TOPICS.items()
    ]
    return [topic for topic in made if topic.drawings or topic.tables]


def drawings(chapter: Chapter, number: int) -> list[Drawing]:
    """The chapter's figures, drawn."""
    import vl_convert  # loads a JavaScript engine

    from beholder.report.charts import figures  # loads altair

    return [
        Drawing(
            f"c{number}-{place}", figure.title, figure.caption,
            vl_convert.vegalite_to_svg(figure.spec(ink=PAGE_INK, width=PAPER_WIDTH), allowed_base_urls=[]),
            script_json(figure.spec(ink=PAGE_INK, width="container")),
            figure.topic,
            figure.wide,
        )
        for place, figure in enumerate(figures(chapter.results))
    ]  # fmt: skip


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
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes or 'none'}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(TEMPLATES)
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    return Environment(loader=loader, autoescape=True, finalize=keep_together, **options)


def keep_together(value: Any) -> Any:
    """A number and its per cent sign on one line, and `n = 100`; markup stays as it is."""
    return value.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0") if type(value) is str else value
