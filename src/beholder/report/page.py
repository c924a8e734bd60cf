"""The page: everything a run found, in one HTML file that opens from disk and asks the network for nothing.

Whatever comes from data is escaped; the page's own scripts are the only ones its policy lets run.
"""

import base64
import hashlib
import io
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from beholder.chapter import numbers
from beholder.chapter.chapter import Table
from beholder.chapter.finding import Finding
from beholder.chapter.numbers import drawn, number
from beholder.core.files import write_whole
from beholder.core.record import Record
from beholder.core.results import WITHIN
from beholder.core.types import Entry
from beholder.datasets import DATASETS, load_dataset
from beholder.datasets.images import DRAWN, open_image
from beholder.report import facts
from beholder.report.answer import RANDOM, Answer, Headline, Told, answers, told, trust
from beholder.report.answer import headline as first_headline
from beholder.report.drawing import Drawing, Undrawn, chart_library, drawing, packed, png, prepare
from beholder.report.number_table import results_ledger
from beholder.report.pictures import Evidence, evidence
from beholder.report.report import NOISE, Report, Section, short_names, slug
from beholder.report.scorecard import merged, scorecard, verdict_key
from beholder.studies.study import Metric

if TYPE_CHECKING:
    from jinja2 import Environment


TEMPLATES = Path(__file__).parent / "templates"
READ_FROM = ("--data", "--store", "--set")  # options of an audit that `beholder view` needs too
FEW = 5  # lists up to this long are shown open


class Part(NamedTuple):
    """One of the things a study asks about: its charts, its tables, and the metrics they show."""

    anchor: str
    title: str
    findings: list[Finding]
    drawings: list[Drawing]
    tables: list[Table]
    metrics: list[Metric]
    open: bool  # whether its chart is seen at once


def write_page(report: Report, folder: Path, *, url: str = "") -> Path:
    """Write `report.html` beside the results and return its path; and the picture that links to it show.

    `url` is the folder's address where the page will be published.
    """
    place = folder.resolve()
    inside = place.is_relative_to(Path.cwd())
    values = page_values(report, str(place.relative_to(Path.cwd()) if inside else place), url=url)
    with suppress(Undrawn):
        write_whole(folder / "report.png", preview(values["headline"], values["proof"]))
    return save_page(folder / "report.html", rendered("page.html.j2", **values))


def save_page(path: Path, text: str) -> Path:
    """Write a page; returns its path."""
    write_whole(path, text.encode("utf-8", "replace"))
    return path


def render(report: Report, folder: str = "RUN", viewer: str = "") -> str:
    """The page as text; equal runs give equal pages. `folder` is the run's, for the commands on the page; on a page
    that a viewer shows, addresses of findings begin with `viewer`."""
    return rendered("page.html.j2", **page_values(report, folder, viewer))


def page_values(report: Report, folder: str, viewer: str = "", url: str = "") -> dict[str, Any]:
    """What the page shows, by the names of its template."""
    prepare()
    record, places = report.record, headings(report.sections)
    cards, headline = answers(report), first_headline(report, title(report))
    pictures = behind_cards(report, cards, headline)
    sections = [
        page_section(report, section, *heading, told(section, cards, pictures))
        for section, heading in zip(report.sections, places, strict=True)
    ]
    return dict(
        scripts=("files.js", "page.js", "ledger.js") if sections else (),
        library=chart_library() if sections else None,
        url=url and f"{url.rstrip('/')}/",
        title=title(report),
        cards=merged(scorecard(report, [anchor for anchor, _ in places])),
        verdict_key=verdict_key(),
        people=people_shown(report),
        answers=cards,
        headline=headline,
        proof=next(iter(pictures.get(headline.finding.id, [])), None) if headline.finding else None,
        trust=list(trust(report, list(dict.fromkeys(caveats(report))))),
        subtitle=subtitle(report),
        view=viewer or view_command(record, folder),
        measured=report.results["value"].is_not_null().any(),
        facts=facts.run_facts(record),
        command=facts.command(record),
        models=facts.model_things(record),
        datasets=facts.dataset_things(record),
        sections=sections,
        sensitivity=report.sensitivity,
        ledger=results_ledger(report.results),
        record=record,
        prompts=report.prompts.height > 0,
        citation=citation(report),
        few=FEW,
        glossary=list(dict.fromkeys(line for each in report.sections for line in each.chapter.glossary)),
    )


def preview(headline: Headline, proof: Evidence | None) -> bytes:
    """The title with what proves it, as a PNG for links to the page; never with a photograph. Raises `Undrawn`."""
    pair = [each for each in (proof.typical if proof else ()) if each.uri.startswith(DRAWN)]
    template = environment().get_template("preview.json.j2")
    values: Entry = {"headline": headline, "lines": wrap(headline.text, 42)[:4], "pair": pair}
    return png(json.loads(template.render(values)))


def rendered(template: str, scripts: Sequence[str] = (), *, library: str | None = None, **values: Any) -> str:
    """A page of this package: styles and scripts are in it, and only these scripts may run."""
    texts = [*([] if library is None else [library]), *map(template_text, scripts)]
    css = template_text("page.css") + template_text("ledger.css")
    return environment().get_template(template).render(css=css, scripts=texts, policy=policy(texts), **values)


def view_command(record: Record, folder: str) -> str:
    """The command that opens the pictures of a finding: on the data and the store that the run was told."""
    words = [part for word in record.command for part in (word.split("=", 1) if word.startswith("--") else [word])]
    told = [f"{name} {shlex.quote(value)} " for name, value in pairwise(words) if name in READ_FROM]
    return f"beholder view {shlex.quote(folder)} {''.join(told)}--finding "


def headings(sections: list[Section]) -> list[tuple[str, str]]:
    """An anchor and a title for every section; one study on several data sets is distinguished by them."""
    titles = [section.title for section in sections]
    named = [f"{each.title}, on {each.dataset}" if titles.count(each.title) > 1 else each.title for each in sections]
    return [
        (f"{slug(each.study.name)}-{n}", name) for n, (each, name) in enumerate(zip(sections, named, strict=True), 1)
    ]


def behind_cards(report: Report, cards: Sequence[Answer], headline: Headline) -> dict[str, list[Evidence]]:
    """The pictures behind what the first screen says, by the finding's id."""
    made: dict[str, list[Evidence]] = {}
    for section in report.sections:
        leads = {each.lead.id for each in cards} | {headline.finding.id if headline.finding else ""}
        kinds = {(each.model, each.kind) for each in section.findings if each.id in leads}
        made |= evidence(report, section, [each for each in section.findings if (each.model, each.kind) in kinds])
    return made


def subtitle(report: Report) -> str:
    """Whose answers these are, when they were given, and about how many pictures."""
    models = [str(model.get("name")) for model in report.record.models]
    short = short_names(models)
    models = [short.get(name, name) for name in models if not re.search(NOISE, name)] or models
    who = numbers.listed(models) if 0 < len(models) < 4 else number(len(models), "model")
    counted: Counter[str] = Counter()
    for entry in report.record.datasets:
        counted["drawing" if drawn(str(entry.get("name"))) else "photograph"] += int(entry.get("images") or 0)
    shown = [number(count, what) for what, count in counted.items() if count]
    return " · ".join(filter(None, [who, report.record.created[:10], " + ".join(shown)]))


def page_section(report: Report, section: Section, anchor: str, title: str, answered: Sequence[Told]) -> Entry:
    """A section of the report with what the page adds to it."""
    first = next(each for each in report.sections if each.study.name == section.study.name)
    parts = parts_of(section, anchor, again=first is not section)
    explained = {metric.name for part in parts for metric in part.metrics}
    return {
        "anchor": anchor,
        "title": title,
        "section": section,
        "several": section.results["model"].n_unique() > 1,
        "parts": parts,
        # Findings about no topic of the chapter, such as the check against what is known
        "general": [each for each in section.findings if each.topic not in (*section.chapter.topics, "results")],
        "other_metrics": [metric for metric in section.metrics if metric.name not in explained],
        "prompts": facts.prompts_asked(report.prompts, section.study.name, section.dataset),
        "images": facts.images_of(report.record, section.dataset),
        "told": answered,
    }


def title(report: Report) -> str:
    """What was audited, in a line."""
    models = report.models or [str(model.get("name")) for model in report.record.models]
    if not models:
        return "An audit"
    titles = [section.chapter.page_title for section in report.sections]
    if titles and titles[0] is not None and len({section.study.name for section in report.sections}) == 1:
        return titles[0](models)
    who = numbers.listed(models) if len(models) < 4 else f"{numbers.count(len(models))} models"
    return f"How {who} {'sees' if len(models) == 1 else 'see'} people"


def citation(report: Report) -> str:
    """What to write down so that these numbers can be found again."""
    record = report.record
    titles = dict.fromkeys(section.title for section in report.sections)
    parts = [f"Beholder {record.beholder}, run of {record.created}", *titles]
    parts += [f"model {model.get('name')} ({str(model.get('digest') or 'no digest')[:12]})" for model in record.models]
    parts += [f"data set {data.get('name')} {data.get('revision') or ''}".strip() for data in record.datasets]
    return "; ".join(parts) + "."


def parts_of(section: Section, anchor: str, *, again: bool = False) -> list[Part]:
    """What a section says, draws and tabulates, topic by topic; what has no topic of the chapter comes last."""
    # Charts stand open in the first topic and where something is shown, and there the first is also a static picture.
    # All others are opened on request, and so are all charts of a study that comes `again`, on another data set.
    models = set(section.results["model"])
    whose = f"{models.pop() if len(models) == 1 else 'models'} {section.study.name} {section.dataset}"
    topics = {**section.chapter.topics, "results": section.chapter.topics.get("results", "Results")}
    parts: list[Part] = []
    for key, heading in topics.items():
        figures = [figure for figure in section.figures if figure.topic == key]
        findings = [finding for finding in section.findings if finding.topic == key]
        tables = [table for table in section.tables if table.topic == key]
        leads = not any(part.findings for part in parts)
        shown = not again and bool(findings) and (leads or any(each.shown for each in findings))
        drawings = [
            drawing(each, f"{anchor}-{key}-chart-{n}", file=slug(f"{whose} {each.name}"), still=shown and n == 1)
            for n, each in enumerate(figures, 1)
        ]
        metrics = [metric for metric in section.metrics if key in metric.topic.split()]
        if findings or drawings or tables:
            parts.append(Part(f"{anchor}-{key}", heading, findings, drawings, tables, metrics, shown))
    return parts


_NUMBER = re.compile(r"((?<![\w./-])[−+]?\d[\d.,]*(?![\d.,]*-\d)(?:\s%|\spoints|\stimes)?)")


def bold_numbers(text: str) -> Markup:
    """A sentence with its numbers in bold; everything else is escaped."""
    pieces = _NUMBER.split(keep_together(text).replace("\u00a0", " "))
    pieces[1::2] = map(Markup("<b>{}</b>").format, pieces[1::2])
    return Markup("").join(pieces)


def template_text(name: str, folder: Path = TEMPLATES) -> str:
    """A style or a script."""
    return (folder / name).read_text(encoding="utf-8")


def policy(scripts: list[str]) -> str:
    """Content security policy: nothing from anywhere, and no script but ours."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return (
        f"default-src 'none'; script-src {hashes or 'none'}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


BAND = re.compile(r"(?<=labelled )\d+[-–]\d+")  # a group of ages, as sentences name it


@cache
def environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(TEMPLATES)
    options: Entry = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    made = Environment(loader=loader, autoescape=True, finalize=keep_together, **options)
    words: Entry = {"percent": numbers.percent, "plural": numbers.plural}
    made.filters |= {"bold_numbers": bold_numbers, "packed": packed, **words}
    return made


def keep_together(value: Any) -> Any:
    """A number and its per cent sign on one line, and `n = 100`, and an age such as 0-2; markup stays as it is."""
    if type(value) is not str:
        return value
    whole = value.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")
    return BAND.sub(lambda band: band[0].replace("-", "\u2011").replace("–", "\u2060–\u2060"), whole)


# The first screen

PORTRAITS, SIDE = 8, 88
MOST_GROUPS = 8  # columns with more groups are left to the data card


class Shown(NamedTuple):
    """Who was shown to the model: drawn portraits, or the groups of a data set of photographs with their counts."""

    dataset: str
    portraits: list[str]  # data addresses of drawings; a photograph of anyone is never among them
    groups: dict[str, dict[str, int]]
    people: str  # how many there are, and who counts as one


def caveats(report: Report) -> Iterator[str]:
    """What to know before reading any number, a few words each."""
    record = report.record
    for entry in record.datasets:
        if part := facts.part_of(entry):
            yield f"Partial data: {part} images of {entry.get('name')}"
        yield from (f"{entry.get('name')}: {text}" for text in (*facts.conflicts(entry), *facts.unbalanced(entry)))
        if entry.get("name") in report.photographs:
            yield f"This file shows photographs of {entry.get('name')} ({entry.get('photographs')})"
    if any(drawn(str(entry.get("name"))) for entry in record.datasets):
        yield f"Drawn people{'' if report.photographs else ', no photographs'}"
    if record.settings.get("compat"):
        yield "Computed as printed, faults included"
    for section in report.sections:
        for finding in section.findings:
            if any(not (row.get("variant") or WITHIN).startswith(WITHIN) for row in finding.rows):
                yield f"{section.study.short or section.study.title}: a variant of the published measure"
    if record.bad_images:
        yield f"{len(record.bad_images):,} images could not be read"
    noise = [finding for section in report.sections for finding in section.noise]
    if noise:
        found = sum(finding.shown for finding in noise)
        yield f"{RANDOM}, audited in the same way: differences found in {found} of {number(len(noise), 'answer')}"


def people_shown(report: Report) -> list[Shown]:
    """Who is in the data sets of the run; drawn people of the first drawn data set only."""
    shown: list[Shown] = []
    for entry in report.record.datasets:
        name = str(entry.get("name"))
        drawings = name in DATASETS and DATASETS[name].embedded and not any(each.portraits for each in shown)
        portraits = list(map(_thumbnail, load_dataset(name).limit(PORTRAITS).table["uri"])) if drawings else []
        if portraits or not drawn(name):
            shown.append(Shown(name, portraits, _groups(entry.get("groups")), facts.people(entry)))
    return shown


def _groups(groups: object) -> dict[str, dict[str, int]]:
    """The columns that tell groups of people apart, with words for names."""
    known = groups if isinstance(groups, dict) else {}
    return {
        name.replace("_", " "): counts
        for name, counts in known.items()
        if len(counts) <= MOST_GROUPS
        and name != "split"
        and f"{name}_band" not in known
        and not set(counts) <= {"true", "false"}
    }


def _thumbnail(uri: str) -> str:
    picture = open_image(uri)
    picture.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    picture.quantize(64).save(buffer, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
