"""Exports: a run's findings and tables for a paper, a pull request, a model's card or a leaderboard.

The words are those of the page. Names come from strangers: what would be markup in the target is escaped. No export
says where something lies on the disk of whoever made the run.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import polars as pl

from beholder.chapter.chapter import Cell, Table
from beholder.chapter.numbers import Result, listed
from beholder.core.errors import MissingExtra, UnknownName, UsageError
from beholder.core.results import place
from beholder.core.types import Entry
from beholder.models.catalog import family_of
from beholder.report.facts import command
from beholder.report.page import title
from beholder.report.report import Report, Section, short_names, slug
from beholder.report.scorecard import CELLS, Card, scorecard

LATEX = {
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{sign: f"$\\{name}$" for sign, name in {"×": "times", "·": "cdot", "≥": "geq", "≤": "leq", "±": "pm"}.items()},
    **{sign: f"$\\{name}$" for sign, name in {"Δ": "Delta", "δ": "delta", "ω": "omega", "η": "eta"}.items()},
    **{sign: f"$\\{name}$" for sign, name in {"→": "rightarrow", "≈": "approx", "σ": "sigma", "ρ": "rho"}.items()},
    **{"−": "$-$", "²": "$^2$", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''"},
}
LATIN = re.compile(r"[ -~À-ÖØ-öø-ſ–—‘’“”…]")  # what pdfLaTeX can set as it is
COLUMN, PAGE = 46, 98  # characters of a table that fit a column of a two-column paper, and its page, in small print
MARKS = re.compile(r"([\\`*_{}\[\]<>#|~$])")
LONGEST_CARD = 80  # lines of a card, at most
TASKS = {"generative": "image-text-to-text", "detection": "zero-shot-object-detection"}
TASKS |= {"segmentation": "image-segmentation"}
MATCHING = "zero-shot-image-classification"  # what the hub calls the task of models that match pictures with texts


# Every format takes the model, where an export is about one, and the address at which the run's page can be read.


def markdown(report: Report, model: str | None = None, source: str = "") -> str:
    """Findings, then every table that the page shows open."""
    parts = [f"# {_md(title(report))}"]
    for section in report.sections:
        parts.append(f"## {_md(section.title)} on {_md(section.dataset)}\n\n{_md(section.study.question)}")
        several = len({one.model for one in section.findings}) > 1
        for one in section.findings:
            whose = f"{_md(one.model)}: " if several else ""
            parts.append(f"- **{whose}{_md(one.headline)}.** {_md(one.sentence)} ({one.marked})")
        for table in _shown(section):
            rule = [":--"] * table.labels + ["--:"] * (len(table.header) - table.labels)
            lines = [map(_md, table.header), rule, *(map(_md, map(_whole, row)) for row in table.rows)]
            parts.append(f"### {_md(table.title)}\n\n{_md_rows(lines)}\n\n{_md(table.caption)}")
    return "\n\n".join([*parts, _origin(report, source)]) + "\n"


def card(report: Report, model: str | None = None, source: str = "") -> str:
    """A section for a model's card: a line for every question, the same numbers in the card's index above it."""
    cards = _cards(report, model)
    room = LONGEST_CARD - 4 * len(cards) - 20
    asked = [(each, line) for each in cards for line in each.lines]
    # Differences that were found come first where there is no room for all.
    kept = set(sorted(range(len(asked)), key=lambda number: not asked[number][1].finding.shown)[:room])
    chosen = [asked[number] for number in sorted(kept)]
    rows = [(f"{each.title} on {each.dataset}", *line.cells) for each, line in chosen]
    table = _md_rows([("Study", *CELLS), [":--"] * 4 + ["--:"] * 3, *(map(_md, row) for row in rows)])
    left_out = f"\n\n{len(asked) - len(kept)} further questions are in the report." if len(asked) > len(kept) else ""
    text = ["## How it sees people", table + left_out, _origin(report, source)]
    return f"---\n{_index(report, cards, source)}\n---\n\n" + "\n\n".join(text) + "\n"


def eval_results(report: Report, model: str | None = None, source: str = "") -> str:
    """One entry for every number of the card, as the hub reads them from `.eval_results/*.yaml`."""
    made = {"date": report.record.created, **({"source": _source(report, source)} if source else {})}
    lines: list[str] = []
    for dataset, row in [(each.dataset, row) for each in _cards(report, model) for row in _rows(each)]:
        low, high, by = _number(row["low"]), _number(row["high"]), f"Beholder {report.record.beholder}"
        about = {**_dataset(report, dataset, key="id"), "task_id": _row_name(row)}
        notes = f"95 % interval {low} to {high}, n = {row['n']}, {row['unit']}; {by}"
        entry = {"dataset": about, "value": _number(row["value"]), **made, "notes": notes}
        lines += [f"{'  ' if number else '- '}{key}: {_yaml(entry[key])}" for number, key in enumerate(entry)]
    return "\n".join(lines or ["[]"]) + "\n"


def latex(report: Report, model: str | None = None, source: str = "") -> str:
    """Every table that the page shows open, as `table` environments with booktabs' rules."""
    tables = [_latex_table(section, table) for section in report.sections for table in _shown(section)]
    return "\n\n".join(["% \\usepackage{booktabs,graphicx}", *tables]) + "\n"


def cyclonedx(report: Report, model: str | None = None, source: str = "") -> str:
    """A CycloneDX 1.6 document with the model's card: every number with an interval, and of which people it is."""
    cards, record = _cards(report, model), report.record
    name = cards[0].model if cards else model or ""
    revision = _entry(report, name).get("revision")
    sections = [section for section in report.sections if name in section.results["model"]]
    tables = [section.results.filter(pl.col("low").is_not_null(), model=name) for section in sections]
    metrics = [
        {
            **{"type": f"{row['metric']} ({row['unit']})", "value": f"{row['value']:.6g}"},
            "slice": f"{row['dataset']}: {place(row) or 'everyone'}; n = {row['n']}",
            "confidenceInterval": {"lowerBound": f"{row['low']:.6g}", "upperBound": f"{row['high']:.6g}"},
        }
        for row in (row for table in tables for row in table.to_dicts())
    ]
    used = [{"type": "dataset", **_dataset(report, section.dataset, key="name")} for section in sections]
    datasets = [{key: value for key, value in each.items() if key != "revision"} for each in used]
    limits = dict.fromkeys(text for section in sections for text in section.study.tells.limitations)
    about = {
        "modelParameters": {"task": _task(report, name), "datasets": datasets},
        "quantitativeAnalysis": {"performanceMetrics": metrics},
        "considerations": {"technicalLimitations": [*limits, "Labels of people are perceived or sourced."]},
    }
    component: Entry = {"type": "machine-learning-model", "bom-ref": "model", "name": name, "modelCard": about}
    if revision:
        component["version"] = str(revision)
    if source:
        component["externalReferences"] = [{"type": "other", "url": source, "comment": "the run's page"}]
    tool = {"type": "application", "name": "beholder-audit", "version": record.beholder}
    made = {"timestamp": record.created, "tools": {"components": [tool]}}
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": made, "components": [component]}
    return json.dumps(bom, indent=1, ensure_ascii=False) + "\n"


FORMATS = {**{"markdown": markdown, "latex": latex, "card": card, "eval-results": eval_results}, "cyclonedx": cyclonedx}
# Exports that are about one model, with the ending of their files
PER_MODEL = {"card": "md", "eval-results": "yaml", "cyclonedx": "json"}


def _cards(report: Report, model: str | None) -> list[Card]:
    """The scorecard of the one model that an export is about."""
    models = report.models
    if model is not None:
        short = short_names(models).get(model, model)
        if short not in models:
            raise UnknownName("model", model, models, where="This run")
        models = [short]
    if len(models) > 1:
        raise UsageError(
            f"The run has several models: {', '.join(models)}.\nThis export is about one: choose it with --model, or "
            "name a folder with --out to get a file for each."
        )
    return [each for each in scorecard(report) if each.model in models]


def _shown(section: Section) -> list[Table]:
    tables = [table for table in (section.planted, *section.tables) if table is not None and table.rows]
    return [table for table in tables if table.exported or not table.long]


def _origin(report: Report, source: str) -> str:
    """Who made it and how, without anybody's folders."""
    words = [_without_folders(word) for word in report.record.command]
    typed = command(replace(report.record, command=words)).replace("`", "'")
    by = f"By `{typed}`, " if typed else "By "
    where = f" [The page]({source})." if source else ""
    made = f"Beholder {_md(report.record.beholder)}, {_md(report.record.created[:10])}."
    return f"{by}{made} Labels are perceived or sourced.{where}"


def _without_folders(word: str) -> str:
    """A word of a command without the folders above what it names."""
    return re.sub(r"(?:(?<=[:=])|^)(?!//)(?:~|[A-Za-z]:)?[/\\](?:.*[/\\])?(?=[^/\\])", "", word.rstrip("/\\"))


def _index(report: Report, cards: Sequence[Card], source: str) -> str:
    """The card's `model-index`: one result a study and data set, one metric a question."""
    lines = [f"model-index:\n- name: {_yaml(cards[0].model if cards else '')}\n  results:"]
    for each in cards:
        metrics = []
        for row in _rows(each):
            value, low, high = (_number(row[name]) for name in ("value", "low", "high"))
            interval = {"low": low, "high": high, "n": row["n"], "unit": row["unit"]}
            metrics.append({"type": row["metric"], "name": _row_name(row), "value": value, "args": interval})
        if metrics:
            lines.append(f"  - task: {_yaml({'type': _task(report, each.model), 'name': each.title})}")
            lines.append(f"    dataset: {_yaml(_dataset(report, each.dataset, key='type'))}")
            lines.append(f"    metrics: {_yaml(metrics)}")
            lines += [f"    source: {_yaml(_source(report, source))}"] if source else []
    return "\n".join(lines) if len(lines) > 1 else f"{lines[0]} []"


def _rows(card: Card) -> list[Result]:
    """The most telling row of every answer that has a number with an interval, each once."""
    leading = [line.finding.rows[0] for line in card.lines if line.finding.rows and line.mark]
    return list({_row_name(row): row for row in leading}.values())


def _row_name(row: Result) -> str:
    return " · ".join(filter(None, (str(row["metric"]), place(row))))


def _number(value: float) -> float:
    return float(f"{value:.6g}")


def _dataset(report: Report, name: str, *, key: str) -> dict[str, object]:
    """A data set with the revision that the run read."""
    entry: Mapping[str, object] = next((each for each in report.record.datasets if each.get("name") == name), {})
    called = {key: name, **({"name": name} if key == "type" else {})}
    return {**called, **({"revision": str(entry["revision"])} if entry.get("revision") else {})}


def _source(report: Report, source: str) -> dict[str, str]:
    return {"url": source, "name": f"Beholder {report.record.beholder}"}


def _task(report: Report, model: str) -> str:
    """What the hub calls the task, by the kind of the model."""
    entry = _entry(report, model)
    if entry.get("adapter") in ("generative", "openai", "anthropic", "gemini"):
        return TASKS["generative"]
    settings = entry.get("settings") or {}
    config = {"architectures": [str(settings.get("architecture"))], "model_type": settings.get("model_type")}
    return TASKS.get(family_of(config).kind, MATCHING)


def _entry(report: Report, model: str) -> Entry:
    """What the record says of a model, under its own name or the short one."""
    names = short_names(str(each["name"]) for each in report.record.models)
    return next((each for each in report.record.models if model in (each["name"], names.get(each["name"]))), {})


def _yaml(value: object) -> str:
    """A value on one line: JSON is YAML, if every character in it can be printed."""
    return "".join(sign if sign.isprintable() else " " for sign in json.dumps(value, ensure_ascii=False))


def _md(text: str) -> str:
    """Words that are words and nothing else."""
    return MARKS.sub(r"\\\1", " ".join(text.split()))


def _md_rows(lines: Iterable[Iterable[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _latex_table(section: Section, table: Table) -> str:
    """A table that fits a column, in small print; one that is much wider fits the page, and is shrunk if need be."""
    columns = "l" * table.labels + "r" * (len(table.header) - table.labels)
    lines = [[max(cell.text, cell.detail, cell.remark, key=len) for cell in row] for row in table.rows]
    longest = zip(table.header, *lines, strict=True)
    width = sum(max(map(len, column)) for column in longest) + 2 * len(columns)
    star, room, edge = ("*", PAGE, r"\textwidth") if width > 1.4 * COLUMN else ("", COLUMN, r"\columnwidth")
    of = listed(list(dict.fromkeys(section.results["model"])))
    tabular = [
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        " & ".join(map(_tex, table.header)) + r" \\",
        r"\midrule",
        *(" & ".join(map(_tex_cell, row)) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(
        [
            rf"\begin{{table{star}}}",
            r"\centering\footnotesize",
            rf"\caption{{{_tex(table.title)}: {_tex(of)} on {_tex(section.dataset)}. {_tex(table.caption)}}}",
            rf"\label{{tab:{slug(f'{section.study.name} {section.dataset} {table.title}')}}}",
            *([rf"\resizebox{{{edge}}}{{!}}{{%", *tabular, "}"] if width > room else tabular),
            rf"\end{{table{star}}}",
        ]
    )


def _tex_cell(cell: Cell) -> str:
    """What is read first, with what stands small below it."""
    small = [rf"\\{{\scriptsize {_tex(each)}}}" for each in (cell.detail, cell.remark) if each]
    return rf"\shortstack[r]{{{_tex(cell.text)}{''.join(small)}}}" if small else _tex(cell.text)


def _tex(text: str) -> str:
    r"""Words that LaTeX sets as they are; a character that it cannot set is named by its number."""
    words = " ".join(text.split())
    return "".join(LATEX.get(sign) or (sign if LATIN.match(sign) else f"U+{ord(sign):04X}") for sign in words)


def _whole(cell: Cell) -> str:
    small = " · ".join(filter(None, (cell.detail, cell.remark)))
    return f"{cell.text} ({small})" if small else cell.text


PROJECT = "beholder"
COLUMNS = ("model", "study", "dataset", "question", "verdict", "headline", "sentence", "value", "low", "high", "n")
Numbers = dict[str, float]


def headline_numbers(report: Report) -> Numbers:
    """Value, low and high of the first number of every finding, by a name that trackers take.

    Where nothing is found, of every number that has an interval and is not about a single wording. The model is part of
    the name where there are several.
    """
    rows = [finding.rows[0] for finding in report.findings if finding.rows]
    rows = rows or report.results.filter(pl.col("low").is_not_null(), pl.col("template").is_null()).to_dicts()
    several = report.results["model"].n_unique() > 1
    numbers: Numbers = {}
    for row in rows:
        for end, suffix in (("value", ""), ("low", "_low"), ("high", "_high")):
            if row.get(end) is not None:
                numbers.setdefault(f"{_name(row, several=several)}{suffix}", float(row[end]))
    return numbers


def _name(row: Result, *, several: bool) -> str:
    """Of what a number is; only characters that all trackers take."""
    parts = (row["model"] if several else "", row["dataset"], row["metric"], place(row))
    return "/".join(" ".join(re.sub(r"[^\w. -]+", " ", part).split()) for part in parts if part)


def require_tracker(name: str) -> None:
    """Raise, before any work, if there is no such tracker or its library is not installed."""
    if name not in TRACKERS:
        raise UnknownName("tracker", name, TRACKERS)
    try:
        import_module(name)
    except ImportError as error:
        raise MissingExtra(f"Logging to {name}", name) from error


def log_run(report: Report, to: str, *, folder: Path | None = None, name: str = "beholder") -> str:
    """Log a run; says where it went."""
    require_tracker(to)
    return TRACKERS[to](report, folder, name)


def _settings(report: Report) -> dict[str, object]:
    """How the run was made, as trackers keep it; no paths."""
    record = report.record
    return {
        "beholder": record.beholder,
        "studies": ", ".join(record.studies),
        "datasets": ", ".join(f"{entry.get('name')} {entry.get('revision')}" for entry in record.datasets),
        "models": ", ".join(dict.fromkeys(report.results["model"])),
        **{name: value for name, value in record.settings.items() if isinstance(value, str | int | float | bool)},
    }


def _table(report: Report) -> list[list[object]]:
    return [[finding.as_dict().get(column) for column in COLUMNS] for finding in report.findings]


def _to_wandb(report: Report, folder: Path | None, name: str) -> str:
    import wandb  # an extra

    with wandb.init(project=PROJECT, name=name, job_type="audit", config=_settings(report), dir=folder) as run:
        run.summary.update(headline_numbers(report))
        run.log({"findings": wandb.Table(columns=list(COLUMNS), data=_table(report))})
        return f"Logged to Weights & Biases: {run.dir if run.offline else run.url}"


def _to_mlflow(report: Report, folder: Path | None, name: str) -> str:
    import mlflow  # an extra

    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        mlflow.set_tracking_uri(f"sqlite:///{folder.resolve()}/mlflow.db")
        if mlflow.get_experiment_by_name(PROJECT) is None:
            mlflow.create_experiment(PROJECT, artifact_location=(folder.resolve() / "artifacts").as_uri())
    mlflow.set_experiment(PROJECT)
    with mlflow.start_run(run_name=name) as run:
        mlflow.log_params(_settings(report))
        mlflow.log_metrics(headline_numbers(report))
        columns = zip(*_table(report), strict=True)
        mlflow.log_table(dict(zip(COLUMNS, map(list, columns), strict=False)), "findings.json")
        return f"Logged to MLflow: run {run.info.run_id} of {PROJECT}, {mlflow.get_tracking_uri()}"


def _to_tensorboard(report: Report, folder: Path | None, name: str) -> str:
    from tensorboard.compat.proto.event_pb2 import Event  # an extra
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    where = (folder or Path("runs") / "tensorboard") / name
    writer = EventFileWriter(str(where))
    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in headline_numbers(report).items()]
    writer.add_event(Event(step=0, summary=Summary(value=values)))
    writer.close()
    return f"Logged to TensorBoard: {where.resolve()}"


TRACKERS = {"wandb": _to_wandb, "mlflow": _to_mlflow, "tensorboard": _to_tensorboard}
