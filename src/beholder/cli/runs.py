"""What is done with runs and with the store of scores: `beholder runs`, `report`, `export`, `site`, `view`, `store`."""

import re
import secrets
import socket
import sys
import time
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import typer

from beholder._gate import read_rules
from beholder._run import load_run
from beholder.chapter.numbers import Result
from beholder.cli.console import SIZES, bar, err, note, out, say, say_json, show, size
from beholder.cli.options import LATEST, RunFolder
from beholder.comparison.family import VERDICTS
from beholder.core.errors import BeholderError, MissingData, MissingExtra, UnknownName, UsageError
from beholder.core.files import store_folder, write_whole
from beholder.core.read import as_csv, read_json
from beholder.core.record import read_record
from beholder.datasets import data_root
from beholder.datasets.settings import parse_settings
from beholder.report import pictures
from beholder.report.drawing import save_charts
from beholder.report.evidence import as_html, as_markdown
from beholder.report.exports import FORMATS, PER_MODEL, TRACKERS, log_run
from beholder.report.page import write_page
from beholder.report.report import slug
from beholder.report.summary import print_summary
from beholder.scores import store as scores
from beholder.scores.store import Places
from beholder.site import build_site
from beholder.view import opening, scored_sets

LOOPBACK = "127.0.0.1"
Written = Literal["markdown", "latex", "card", "eval-results", "evidence", "cyclonedx", "scores"]
Format = Literal[Written, "wandb", "mlflow", "tensorboard"]


def runs_command(folder: Path = Path("runs"), as_json: bool = False) -> None:
    if not folder.is_dir():
        raise MissingData(f"There is no folder {folder}. `beholder audit` makes it, unless it is given --out.")
    entries = [entry for path in sorted(folder.iterdir()) if not path.is_symlink() and (entry := _entry(path))]
    entries.sort(key=lambda entry: str(entry["created"]), reverse=True)
    for entry in entries if not as_json else ():
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in entry.pop("verdicts").items())
        entry |= {"created": entry["created"][:10], **{name: ", ".join(entry[name]) for name in ("models", "studies")}}
        entry["findings"] = entry.pop("problem") or verdicts
    show(entries, as_json)


def _entry(path: Path) -> Result | None:
    """A run in a few words; None for what is no run."""
    if not (path / "run.json").is_file():
        return None
    entry: Result = {"folder": str(path), "created": "", "models": [], "studies": [], "verdicts": {}}
    try:
        record = read_record(path)
        names = dict.fromkeys(str(model.get("name")) for model in record.models)
        entry |= {"created": record.created, "models": list(names), "studies": record.studies}
        if not record.finished:
            return {**entry, "problem": "unfinished: the same command continues it"}
        found = read_json(path / "findings.json")
        counts = Counter(str(each["verdict"]) for each in found["findings"])
        return {**entry, "verdicts": {name: counts[name] for name in VERDICTS if counts[name]}, "problem": ""}
    except (BeholderError, KeyError, TypeError) as error:
        return {**entry, "problem": f"cannot be read: {str(error).splitlines()[0]}"}


def report_command(
    folder: RunFolder = LATEST,
    figures: Path | None = None,
    no_title: bool = False,
    with_photographs: bool = False,
    url: str = "",
    as_json: bool = False,
    data: Path | None = None,
    settings: list[str] | None = None,
    store: str | None = None,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    run = load_run(folder)
    run.places = Places(data_root(data), store_folder(store), parse_settings(settings or ()))
    for each in run.record.datasets:
        each.pop("photographs_on_page", None)
    if as_json:
        say_json(run.as_json())
        return
    report = pictures.with_photographs(run.report) if with_photographs else run.report
    page = write_page(report, folder, url=url)
    run.save_findings(folder)
    write_whole(folder / "results.csv", as_csv(run.results))
    write_whole(folder / "run.json", run.record.as_json())
    if figures:
        for path in save_charts(run.report, figures, title=not no_title):
            note(f"Figure: {path}")
    if not quiet:
        print_summary(run.report, out, verbose=verbose)
    note(f"Report: {page.resolve()}")


def export_command(
    folder: RunFolder = LATEST,
    to: Format = "markdown",
    file: Path | None = None,
    model: str | None = None,
    source: str = "",
    data: Path | None = None,
    store: str | None = None,
) -> None:
    """Charts as SVG and PNG: `beholder report RUN --figures FOLDER`. All numbers: results.csv in the run folder."""
    run = load_run(folder)
    report = run.report
    if to in TRACKERS:
        note(log_run(report, to, folder=file, name=folder.resolve().name))
        return
    several = report.models if to in PER_MODEL and model is None else []
    texts: dict[Path | None, str]
    if to == "scores":
        texts = {file: run.scores(model=model, data=data, store=store).write_ndjson()}
    elif to == "evidence":
        texts = {file: as_html(report) if file and file.suffix == ".html" else as_markdown(report)}
        if file and not file.suffix:
            texts = {file / "evidence.md": as_markdown(report), file / "evidence.html": as_html(report)}
    elif file is not None and len(several) > 1:
        texts = {file / f"{slug(each)}.{PER_MODEL[to]}": FORMATS[to](report, each, source) for each in several}
    else:
        texts = {file: FORMATS[to](report, model, source)}
    for path, text in texts.items():
        if path is None:
            sys.stdout.write(text)
        else:
            write_whole(path, text.encode("utf-8", "replace"))
            note(f"Written: {path.resolve()}")


def site_command(
    runs: list[Path] | None = None,
    output: Path = Path("beholder-site"),
    rules: Path | None = None,
    published: bool = True,
    title: str = "How models see people",
) -> None:
    """Any web server can serve the folder. It holds the runs' reports and numbers, and no photograph."""
    index = build_site(runs or [], output, rules=read_rules(rules) if rules else (), published=published, title=title)
    note(f"Site: {index.resolve()}")


def view_command(
    runs: list[Path],
    data: Path | None = None,
    settings: list[str] | None = None,
    store: str | None = None,
    finding: str | None = None,
    port: int = 8765,
    host: str = LOOPBACK,
) -> None:
    """Pictures are read from your own disk and are sent to your browser only. Nothing is written."""
    try:
        import uvicorn

        # An extra is needed, and other commands start without it.
        from beholder.view.server import viewer
    except ImportError as error:
        raise MissingExtra("The viewer", "view") from error
    places = Places(data_root(data), store_folder(store), parse_settings(settings or ()))
    opened = [(folder, load_run(folder)) for folder in runs]
    for _, run in opened:
        run.places = places
    sets = scored_sets(opened, places)
    opens = opening(sets, [run for _, run in opened], finding)
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise UsageError(f"Port {port} of {host} cannot be used: {reason}. Name another one: --port.") from error
    token = secrets.token_urlsafe(24)
    if host != LOOPBACK:
        err.print(f"[yellow]The pictures can be seen by anyone who can reach {host}:{port} and knows the address.[/]")
    note(f"View: http://{host}:{listener.getsockname()[1]}/{token}/  (Ctrl-C ends it)")
    allowed = None if host == LOOPBACK else [host]
    config = uvicorn.Config(viewer(sets, token, allowed, opens, opened), log_level="warning", access_log=False)
    with listener:
        uvicorn.Server(config).run(sockets=[listener])


AGES = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


def store_command(context: typer.Context, store: str | None = None, as_json: bool = False) -> None:
    if context.invoked_subcommand:
        given = {"store": str(store)} if store else {}
        context.default_map = {name: given for name in ("verify", "clean")}
        return
    models = scores.stored_models(scores.Store(store_folder(store)))
    if models or as_json:
        _show(models, as_json)
    else:
        note(f"{store_folder(store)} holds no scores.")


def verify_store_command(store: str | None = None, as_json: bool = False) -> None:
    """What it finds wrong is scored again by the next audit that needs it."""
    found = scores.verify_store(scores.Store(store_folder(store)), bar)
    if as_json:
        say_json(asdict(found))
    else:
        for line in (*found.problems, *(f"Note: {note}" for note in found.notes)):
            say(line)
        err.print(f"{found.blocks:,} blocks with {found.rows:,} rows are sound. Problems: {len(found.problems):,}.")
    if found.problems:
        raise typer.Exit(1)


def clean_store_command(
    model: list[str] | None = None,
    older_than: str | None = None,
    larger_than: str | None = None,
    leftovers: bool = False,
    everything: bool = False,
    yes: bool = False,
    store: str | None = None,
) -> None:
    place = scores.Store(store_folder(store))
    wanted = model or older_than or larger_than or everything
    if not wanted and not leftovers:
        raise UsageError("Say what to remove: --model, --older-than, --larger-than, --leftovers or --all.")
    models = _chosen(scores.stored_models(place), model or [], older_than, larger_than) if wanted else []
    files = scores.leftovers(place) if leftovers else {}
    if not models and not files:
        err.print("Nothing to remove.")
        return
    if models:
        _show(models)
    if files:
        out.print(f"{len(files):,} leftover files, {size(scores.size_of(files))}")
    if not yes and not (sys.stdin.isatty() and typer.confirm("Remove this? It cannot be undone.", err=True)):
        err.print("Nothing was removed." + ("" if sys.stdin.isatty() else " To remove this, add --yes."))
        return
    scores.remove_leftovers(files)
    scores.remove_models(models)
    err.print(f"Removed {len(models):,} models and {len(files):,} leftover files.")


def _chosen(
    models: list[scores.StoredModel], names: list[str], older_than: str | None, larger_than: str | None
) -> list[scores.StoredModel]:
    known = {model.name for model in models} | {model.folder.name for model in models}
    for name in names:
        if name not in known:
            raise UnknownName("model", name, known, where="The store")
    age = _parsed(older_than, AGES, "--older-than", "30d") if older_than else None
    bytes_ = _parsed(larger_than, SIZES, "--larger-than", "10GB") if larger_than else None
    return [
        model
        for model in models
        if (not names or {model.name, model.folder.name} & set(names))
        and (age is None or time.time() - model.last_used > age)
        and (bytes_ is None or model.bytes > bytes_)
    ]


def _parsed(text: str, units: dict[str, float], option: str, example: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", text.strip())
    unit = next((unit for unit in units if match and unit.lower() == match[2].lower()), None)
    if match is None or unit is None:
        raise UsageError(f"{option} {text}: write a number with one of {', '.join(units)}, such as {example}.")
    return float(match[1]) * units[unit]


def _show(models: list[scores.StoredModel], as_json: bool = False) -> None:
    rows: list[dict[str, object]] = []
    for model in models:
        same = {name: getattr(model, name) for name in ("revision", "images", "prompts", "blocks")}
        space = {"bytes": model.bytes} if as_json else {"size": size(model.bytes)}
        used = datetime.fromtimestamp(model.last_used, UTC).isoformat(timespec="minutes")
        rows.append({"name": model.name, "folder": model.folder.name, **same, **space, "last_used": used})
    show(rows, as_json)
