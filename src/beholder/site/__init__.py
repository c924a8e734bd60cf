"""A static site of many runs and of the published tables: models × questions, with every number's interval."""

import math
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from jinja2 import FileSystemLoader

from beholder._gate import UNDECIDED, Rule, judged
from beholder._run import FILES as RUN_FILES
from beholder._run import Run, load_run
from beholder.chapter.finding import CHECK
from beholder.chapter.numbers import Result, quantity
from beholder.comparison.family import DIFFERENCE, VERDICTS
from beholder.core.errors import UsageError
from beholder.core.files import write_whole
from beholder.core.read import as_csv
from beholder.core.results import KEY, PLAIN
from beholder.models.catalog import lookup
from beholder.report.comparison import off
from beholder.report.drawing import chart_library, packed
from beholder.report.facts import part_of
from beholder.report.page import environment, template_text, write_page
from beholder.report.report import NOISE, slug
from beholder.report.scorecard import Scale, scale_of
from beholder.site.swarm import Swarm, swarm
from beholder.studies import STUDIES
from beholder.studies.printed import catalogued, printed_of
from beholder.studies.study import Metric

PLACE = ("study", "dataset", *KEY[:-1])
NARROW = ("group", "against", "concept", "template")
SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("model", *PLACE), pl.String()),
    **dict.fromkeys(("value", "low", "high", "landmark"), pl.Float64()),
    "n": pl.Int64(),
    **dict.fromkeys(("unit", "source", "run", "date", "reason"), pl.String()),
}  # `run` is empty for a published number; `reason` says why a number does not compare, and is empty if it does


Runs = Mapping[str, Run]  # by the names of their folders in the site


def open_runs(folders: Iterable[Path]) -> Runs:
    """The runs, each under a name of its own. Of a folder only data is taken, which is checked; never by a link."""
    runs: dict[str, Run] = {}
    for folder in folders:
        refuse_links(folder / name for name in RUN_FILES)
        runs[_free_name(slug(folder.resolve().name) or "run", runs)] = load_run(folder)
    return runs


def _free_name(base: str, taken: Container[str]) -> str:
    return next(name for name in (base, *(f"{base}-{i}" for i in range(2, 10_000))) if name not in taken)


def refuse_links(paths: Iterable[Path]) -> None:
    """Raise for a link: where it leads is not ours to publish, nor to overwrite."""
    if link := next((path for path in paths if path.is_symlink()), None):
        raise UsageError(
            f"{link} is a link to {os.readlink(link)}, and a site follows none. Put a file or folder there."
        )


def site_numbers(runs: Runs, *, published: bool = True) -> pl.DataFrame:
    """Every number of the runs, and every printed one at a place that several models have."""
    tables = [pl.DataFrame(schema=SCHEMA), *(_measured(name, run) for name, run in runs.items())]
    tables += [table for name in STUDIES if published and (table := _printed(name)) is not None]
    columns = [pl.col(name).cast(kind) for name, kind in SCHEMA.items()]
    return pl.concat([table.select(columns) for table in tables])


def _measured(name: str, run: Run) -> pl.DataFrame:
    results = run.report.results.filter(~pl.col("model").str.contains(NOISE), pl.col("value").is_not_null(), PLAIN)
    released = "computed as printed" if run.record.settings.get("compat") else ""
    parts = {str(entry.get("name")): part_of(entry) for entry in run.record.datasets}
    reasons = {name: f"{part} images" if part else released for name, part in parts.items()}
    of_data = pl.col("dataset").replace_strict(reasons, default="", return_dtype=pl.String)
    variant = pl.when(pl.col("variant").is_not_null()).then(pl.lit("a variant of the published measure"))
    return results.with_columns(
        model=pl.col("model").map_elements(catalogued, pl.String),
        source=pl.lit(f"run {name}"),
        run=pl.lit(name),
        date=pl.lit(run.record.created[:10]),
        reason=pl.coalesce(of_data.replace("", None), variant, pl.lit("")),
    )


def _printed(study: str) -> pl.DataFrame | None:
    printed = printed_of(study)
    if printed is None:
        return None
    cells = printed.cells.filter(pl.col("model").is_not_null() & (pl.col("model") != ""))
    known = {metric.name: metric.landmark for metric in STUDIES[study].measures.metrics}
    return cells.with_columns(
        study=pl.lit(study),
        value=pl.col("printed"),
        landmark=pl.col("metric").replace_strict(known, default=None, return_dtype=pl.Float64),
        source=pl.lit("published, ") + pl.col("place"),
        **dict.fromkeys(("low", "high", "n"), pl.lit(None)),
        **dict.fromkeys(("run", "date", "reason"), pl.lit("")),
    )


@dataclass(frozen=True)
class Question:
    """A place whose numbers are compared between models."""

    slug: str  # the name of its page
    key: dict[str, str | None]  # the place, by column
    numbers: pl.DataFrame

    @property
    def title(self) -> str:
        """The place in words."""
        metric = str(self.key["metric"]).split(".", 1)[-1].replace("_", " ").capitalize()
        named = [str(self.key[name]) for name in ("subset", "group", "concept", "template") if self.key[name]]
        against = f" against {self.key['against']}" if self.key["against"] else ""
        return f"{metric}: {', '.join(named)}{against}" if named else metric

    @property
    def headline(self) -> bool:
        """Whether it is about all people of a subset and all prompts: such places make the front page."""
        return not any(self.key[name] for name in NARROW)

    @property
    def metric(self) -> Metric | None:
        """What is measured there; None for a metric that its study does not declare."""
        return STUDIES[str(self.key["study"])].metric(str(self.key["metric"]))

    @property
    def landmark(self) -> float | None:
        """The value without any effect, where the metric itself has one."""
        return self.metric.landmark if self.metric else None

    @cached_property
    def scale(self) -> Scale:
        """The range that holds all its numbers."""
        bounds = (pl.coalesce(name, "value").alias(name) for name in ("low", "high"))
        return scale_of(self.numbers.with_columns(bounds).to_dicts())

    @cached_property
    def swarm(self) -> Swarm | None:
        """Its chart, if enough models have a number."""
        ends = (self.metric.below, self.metric.above) if self.metric else ("", "")
        return swarm(self.slug, self.title, self.numbers, ends)


def questions(numbers: pl.DataFrame) -> list[Question]:
    """The places that two models have, and those of the front page, in order, each with a page name of its own."""
    made: dict[str, Question] = {}
    whole = pl.all_horizontal(pl.col(name).is_null() for name in NARROW)
    several = pl.col("model").n_unique().over(PLACE) > 1
    for place, part in numbers.filter(whole | several).group_by(PLACE, maintain_order=True):
        name = _free_name(slug(" ".join(str(word) for word in place[2:] if word)), made)
        words = (None if word is None else str(word) for word in place)
        made[name] = Question(name, dict(zip(PLACE, words, strict=True)), part)
    return list(made.values())


# Build the site

TEMPLATES = Path(__file__).parent / "templates"
FRONT = 5  # columns of a table on the front page
SWARMS = 3  # charts of a study on the front page
TOLD = 5  # answers of a run about one study on the front page
POINT = ("model", "value", "low", "high", "date", "source", "reason")
FACTS = ("parameters", "training_pairs", "released", "licence")


class Cell(NamedTuple):
    """A number of a model at a place, as it is shown."""

    text: str
    interval: str
    value: float
    at: float
    low: float | None
    high: float | None
    source: str
    link: str
    reason: str
    mark: float | None  # where the value without any effect stands


def build_site(
    folders: Sequence[Path], out: Path, *, rules: Sequence[Rule] = (), published: bool = True, title: str = ""
) -> Path:
    """Write the site into `out` and return its index."""
    refuse_links(sorted(out.rglob("*")))
    runs = open_runs(folders)
    numbers = site_numbers(runs, published=published)
    if numbers.is_empty():
        raise UsageError("There is nothing to show: name at least one run folder, or leave the published tables in.")
    asked = questions(numbers)
    models = sorted(numbers["model"].unique().to_list(), key=str.casefold)
    pages = {model: f"models/{number}-{slug(model) or 'model'}.html" for number, model in enumerate(models, 1)}
    lines = [_run_line(name, run, rules) for name, run in runs.items()]
    common = {"title": title or "How models see people", "runs": lines}
    templates = environment().overlay(loader=FileSystemLoader(TEMPLATES))
    for path, template, values in _pages(runs, asked, pages):
        text = templates.get_template(template).render(root="../" * path.count("/"), **values, **common)
        write_whole(out / path, text.encode("utf-8", "replace"))
    files = {  # styles and scripts of all pages
        "style.css": template_text("page.css") + template_text("ledger.css") + template_text("site.css", TEMPLATES),
        "site.js": template_text("files.js") + template_text("site.js", TEMPLATES),
        "scatter.js": template_text("scatter.js", TEMPLATES),
        "charts.js": chart_library(),
    }
    for name, text in files.items():
        write_whole(out / name, text.encode())
    write_whole(out / "numbers.csv", as_csv(numbers))
    for name, run in runs.items():
        folder = out / "runs" / name  # made anew of what was read and checked: no file is copied
        run.save(folder)
        run.save_findings(folder)
        write_page(run.report, folder)
    return out / "index.html"


def _pages(runs: Runs, asked: list[Question], models: dict[str, str]) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Every page: its path, its template and what it shows."""
    boards = [board for name in STUDIES if (board := _board(name, runs, asked, models))]
    yield "index.html", "index.html.j2", {"boards": boards, "lead": _lead(boards)}
    for question in asked:
        rows = _ranked(question, models)
        yield f"questions/{question.slug}.html", "question.html.j2", {"question": question, "rows": rows}
    for model, path in models.items():
        told = {"answers": list(_answers(runs, model=model)), "parts": _parts(model, asked)}
        yield path, "model.html.j2", {"model": model, "facts": _facts(model), **told}
    yield "scatter.html", "scatter.html.j2", {"data": packed(_axes(asked))}


class Told(NamedTuple):
    """An answer of a run, and where its report says it."""

    model: str
    badge: str
    text: str
    link: str
    found: bool


def _answers(runs: Runs, *, model: str | None = None, study: str | None = None) -> Iterator[Told]:
    """What the runs found of a model, or in a study, the most unequal first; one answer to each question."""
    places = [(name, finding) for name, run in runs.items() for finding in run.findings if finding.question]
    ranked = sorted(places, key=lambda each: (VERDICTS.index(each[1].said), -each[1].distance))
    seen = set()
    for run, finding in ranked:
        name, asked = catalogued(finding.model), (run, finding.model, finding.dataset, finding.question)
        wanted = model in (None, name) and study in (None, finding.study)
        if wanted and finding.role != CHECK and asked not in seen and not re.search(NOISE, finding.model):
            seen.add(asked)
            text = finding.answer or f"{finding.headline}."
            yield Told(name, finding.badge, text, f"runs/{run}/report.html#{finding.id}", finding.said == DIFFERENCE)


def _lead(boards: Sequence[dict[str, Any]]) -> Swarm | None:
    """The question on which the published models lean most to one side: the title of the front page."""
    swarms = [each for board in boards for each in board["swarms"]]
    leaning = [each for each in swarms if each.share > 0.5 and len(each.published) >= 2 * TOLD]
    return max(leaning, key=lambda each: (bool(each.own), each.share), default=None)


def _run_line(name: str, run: Run, rules: Sequence[Rule]) -> dict[str, object]:
    """A run with its date, its models and what the gate says of it."""
    verdicts = judged(run.results, rules) if rules else []
    stopped = sum(verdict.stops for verdict in verdicts)
    undecided = sum(verdict.verdict == UNDECIDED for verdict in verdicts)
    passes = f"passes, {undecided} undecided" if undecided else "passes"
    gate = "" if not rules else f"stopped: {stopped} of {len(verdicts)} checks fail" if stopped else passes
    models, studies = ", ".join(str(model.get("name")) for model in run.record.models), ", ".join(run.record.studies)
    more = {"studies": studies, "gate": gate, "findings": sum(finding.shown for finding in run.findings)}
    return {"name": name, "date": run.record.created[:10], "models": models, **more}


def _board(study: str, runs: Runs, asked: list[Question], pages: dict[str, str]) -> dict[str, object] | None:
    """What the front page has of a study: charts and a table of what models share, and what one's own runs found."""
    shared = [each for each in asked if each.key["study"] == study and each.headline]
    columns = sorted(shared, key=lambda each: (-each.numbers["model"].n_unique(), each.landmark is None))[:FRONT]
    answers = list(_answers(runs, study=study))
    if not columns and not answers:
        return None
    models = dict.fromkeys(model for question in columns for model in question.numbers["model"])
    rows = [_row(model, pages, columns) for model in models]
    swarms = [each for question in columns if (each := question.swarm)]
    words = {"study": study, "title": STUDIES[study].title, "asks": STUDIES[study].question}
    told = {"answers": answers[:TOLD], "more": max(0, len(answers) - TOLD), "swarms": swarms[:SWARMS]}
    return {**words, **told, "columns": columns, "rows": sorted(rows, key=lambda row: (not row.own, row.distance))}


class Line(NamedTuple):
    """A model on the front page: its cells, and how far the farthest of them is from equal."""

    model: str
    page: str
    cells: list[Cell | None]
    own: bool
    remark: str
    distance: float


def _row(model: str, pages: dict[str, str], columns: Sequence[Question]) -> Line:
    cells = [best_cell(question, model) for question in columns]
    known = [(each, question.landmark) for each, question in zip(cells, columns, strict=True) if each]
    far = [off(each.value, mark) for each, mark in known if mark is not None]
    own = any(each.link.startswith("runs/") for each, _ in known)
    remark = ", ".join(dict.fromkeys(each.reason for each, _ in known if each.reason))
    return Line(model, pages[model], cells, own, remark, max(far, default=0.0 if own else math.inf))


def best_cell(question: Question, model: str) -> Cell | None:
    """The number to show: the newest run that compares, else the published one, else one that does not compare."""
    rows = question.numbers.filter(pl.col("model") == model)
    if rows.is_empty():
        return None
    order = (pl.col("reason") != "", pl.col("run") == "", "date")
    ordered = rows.sort(order, descending=[False, False, True], maintain_order=True)
    return _cell(question, ordered.row(0, named=True))


def _cell(question: Question, row: Result) -> Cell:
    """A number in words and on the scale of its question."""
    ends = [] if row["low"] is None or row["high"] is None else [row["low"], row["high"]]
    value, *interval = (quantity(each, row["unit"], row["landmark"]) for each in (row["value"], *ends))
    at, (low, high) = question.scale.at, map(question.scale.at, ends) if ends else (None, None)
    link = f"runs/{row['run']}/report.html" if row["run"] else f"questions/{question.slug}.html"
    mark = None if question.landmark is None else at(question.landmark)
    where = (at(row["value"]), low, high, row["source"], link, row["reason"], mark)
    return Cell(value, " to ".join(interval), row["value"], *where)


def _ranked(question: Question, pages: dict[str, str]) -> list[tuple[str, str, Cell]]:
    """Every number at the place, those that compare first, the highest on top."""
    rows = question.numbers.sort(pl.col("reason") != "", "value", descending=[False, True], maintain_order=True)
    return [(row["model"], pages[row["model"]], _cell(question, row)) for row in rows.to_dicts()]


def _facts(model: str) -> list[tuple[str, str]]:
    """What the catalogue knows of a model."""
    entry = lookup(model)
    known = [(name.replace("_", " "), getattr(entry, name)) for name in FACTS] if entry else []
    return [(name, f"{value:,}" if isinstance(value, int) else str(value)) for name, value in known if value]


def _parts(model: str, asked: list[Question]) -> list[tuple[str, list[tuple[Question, list[Cell]]]]]:
    """Study by study, each place with all numbers that the model has there, the newest first."""
    parts: dict[str, list[tuple[Question, list[Cell]]]] = {}
    for question in asked:
        rows = question.numbers.filter(pl.col("model") == model).sort("date", descending=True)
        if rows.height:
            cells = [_cell(question, row) for row in rows.to_dicts()]
            parts.setdefault(STUDIES[str(question.key["study"])].title, []).append((question, cells))
    return list(parts.items())


def _axes(asked: list[Question]) -> dict[str, object]:
    """What the scatter draws: numbers by place, and what the catalogue knows of each model."""
    models = sorted({model for question in asked for model in question.numbers["model"]})
    known = {model: entry for model in models if (entry := lookup(model))}
    axes = [
        {"name": each.slug, "title": f"{each.key['study']}: {each.title}", "rows": each.numbers.select(POINT).rows()}
        for each in sorted(asked, key=lambda each: not each.headline)
    ]
    facts = {
        name: {model: value for model, entry in known.items() if (value := getattr(entry, name))} for name in FACTS[:3]
    }
    return {"axes": axes, "facts": facts}
