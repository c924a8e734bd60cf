"""`beholder audit`, `measure`, `compare` and `verify`, and the commands that studies bring along."""

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import typer

from beholder._audit import audit_models
from beholder._compare import Scored, compare_models, distinct_names, scored_models
from beholder._gate import PAIRED
from beholder._measure import measure_scores, verify_run
from beholder._options import AuditOptions
from beholder._run import Run, file_stamps, load_run, run_folder
from beholder._steps import written
from beholder.cli import options as cli
from beholder.cli.console import bar, note, out, say, say_json, set_verbosity, upload_question
from beholder.cli.plan import uncompared
from beholder.core.digests import digest
from beholder.core.errors import UsageError
from beholder.core.files import store_folder, write_whole
from beholder.core.options import values_of
from beholder.core.progress import silent
from beholder.core.read import as_csv, read_bytes
from beholder.core.record import Record
from beholder.core.results import KEY, place
from beholder.core.types import Fields
from beholder.datasets import require_asked
from beholder.harness import NAMED, Questions, write_tasks
from beholder.models.served.address import is_local, read_address
from beholder.report.comparison import print_comparison
from beholder.report.exports import log_run, require_tracker
from beholder.report.summary import print_summary
from beholder.scores.imported import asked_in, is_harness_log
from beholder.studies import STUDIES
from beholder.studies.inquiry import chosen_studies
from beholder.studies.study import Command, CommandOptions, Study

LISTED = 10
OTHERWISE = "beholder measure STUDY --scores LOG"
OF_DATA = ("data", "dataset", "people", "image_column", "settings", "bins", "map", "keep_codes", "allow_missing")
SAME = ("study", "model", "dataset", *KEY)
LEFT_TO_EACH = (  # options of an audit in which runs may differ and still be compared
    *("models", "out", "store", "seed", "draws", "delta", "perturb", "device", "precision", "decode", "batch_size"),
    *("one_by_one", "verify", "skip_bad_images", "quiet", "verbose", "as_json", "log"),
)


@cli.takes(*cli.OPTIONS)
def audit_command(
    context: typer.Context,
    models: list[str] | None = None,
    config: cli.Config = None,
    study: list[str] | None = None,
    log: list[str] | None = None,
    as_json: bool = False,
    quiet: bool = False,
    verbose: bool = False,
    *,
    options: Mapping[str, object],
) -> None:
    """You can stop it with Ctrl-C at any time. The same command continues where it stopped."""
    set_verbosity(quiet=quiet, verbose=verbose)
    source = context.get_parameter_source("models")
    if source is not None and source.name == "DEFAULT_MAP":
        refuse_servers(models or [], config)
    for tracker in log or ():
        require_tracker(tracker)
    studies, chosen = asked({**options, "models": models, "study": study}, quiet=quiet)
    run = audit_models(models or [], studies, chosen)
    folder = run.folder or Path()
    cli.write_config(context, folder)
    show_run(run, as_json=as_json, quiet=quiet, verbose=verbose)
    for tracker in log or ():
        note(log_run(run.report, tracker, name=folder.resolve().name))
    refuse_silence(run.record, chosen, uncompared(run.results, studies, chosen))


def refuse_servers(models: Iterable[str], path: Path | None) -> None:
    """A file of options may come from somebody else, and a server gets the key and the pictures: so may no file name
    one, but OpenAI's own and those of this machine.
    """
    for model in models:
        if model.startswith("openai:") and "@" in model:
            url = read_address(model.removeprefix("openai:")).url
            if (url.scheme, url.netloc) != ("https", "api.openai.com") and not is_local(url.hostname or ""):
                raise UsageError(
                    f"{path}: the address of a server cannot come from a file: it would get your key. Name the model "
                    f"on the command line: beholder audit '{model}' --config {path}"
                )


def refuse_silence(record: Record, options: AuditOptions, others: Iterable[str] = ()) -> None:
    """Say which labels were not compared, and end with status 1, unless that is allowed; and so for whole studies."""
    for entry in record.not_compared:
        note(f"{entry['study']}: by {entry['label']} nothing was compared: {entry['reason']}")
    said = {entry["study"] for entry in record.not_compared}
    reasons = [each for each in others if each.partition(":")[0] not in said]
    for reason in reasons:
        note(reason)
    missing = [each for each in record.not_compared if each["unclear"] or not (options.allow_missing or options.limit)]
    if missing or reasons:
        raise typer.Exit(1)


def asked(params: Fields, *, quiet: bool) -> tuple[list[Study], AuditOptions]:
    """The studies and the options that parameters of a command mean; one that is not there has its default."""
    known = {*cli.OPTIONS, *(option.name for option in cli.study_options())}
    chosen = {name: value for name, value in params.items() if name in known}
    options = AuditOptions.of(**chosen, progress=silent if quiet else bar, command=sys.argv[1:])
    cli.writable(options.out, "--out")
    if "store" in params:
        cli.writable(options.store, "--store")
    names, models = params.get("study") or [], params.get("models") or ()
    studies = chosen_studies(names, options.study_options, data=options.data, dataset=options.dataset, models=models)
    return studies, replace(options, allow_upload=upload_question(yes=options.allow_upload is True))


def show_run(run: Run, *, as_json: bool, quiet: bool, verbose: bool = False) -> None:
    """Print what a run shows and where its report is."""
    if as_json:
        say_json(run.as_json())
    elif not quiet:
        print_summary(run.report, out, verbose=verbose)
    if run.folder and not quiet:
        note(f"Report: {(run.folder / 'report.html').resolve()}")


def recorded_params(folder: Path, flags: Fields) -> Fields:
    """The parameters of `beholder audit` with which a run was made; places on the network must be in `flags` too."""
    if not (folder / cli.FILE).is_file():
        raise UsageError(f"{folder} has no {cli.FILE}. Only runs of `beholder audit` have one.")
    with cli.made("audit").make_context("audit", ["--config", str(folder / cli.FILE)]) as context:
        params = {**context.params, "out": None, "config": None}
    for name, option in (("dataset", "data"), ("data", "data"), ("store", "store")):
        for value in values_of(params[name] if name not in flags else ()):
            named = flags.get(option) or os.environ.get(f"BEHOLDER_{option.upper()}")
            require_asked(str(value), named, f"--{option}")
    return params


@cli.takes(*OF_DATA, "out", "compat", "draws", "seed", "delta", "person", "within")
def measure_command(
    context: typer.Context,
    study: str = typer.Argument(
        ...,
        metavar="STUDY|LOG",
        help=f"One of {cli.NAMES}; or custom, with --prompts. Or a log of inspect_ai or lmms-eval on Beholder's tasks, "
        "which says itself what was asked.",
    ),
    scores: list[str] | None = None,
    model: str = "imported",
    as_json: bool = False,
    quiet: bool = False,
    *,
    options: Mapping[str, object],
) -> None:
    set_verbosity(quiet=quiet, verbose=False)
    params: Fields = {**options, "study": [study]}
    if is_harness_log(Path(study)):
        told, name = asked_in(Path(study))
        flags = {each: value for each, value in options.items() if cli.given(context, each)}
        params = {**options, **_of_log(told, flags), **flags}
        scores, model = [study, *(scores or ())], model if cli.given(context, "model") else name or model
    if not scores:
        raise UsageError(f"Say where the scores of {study} are: --scores FILE. Or name a log in place of the study.")
    (chosen,), asked_for = asked(params, quiet=quiet)
    run = measure_scores(chosen, scores_by_model(scores, model), asked_for)
    show_run(run, as_json=as_json, quiet=quiet)
    refuse_silence(run.record, asked_for)


def _of_log(told: Fields, flags: Fields) -> Fields:
    """What a log of Beholder's tasks says was asked, as parameters; its paths begin where the tasks were made."""
    own = {option.name: option for option in cli.study_options()}
    made = {name: value for name, value in told.items() if name in NAMED or name in own}
    for name, value in made.items():
        texts = isinstance(value, str | bool) or (isinstance(value, list) and set(map(type, value)) == {str})
        whole = {**cli.OPTIONS, **own}[name].kind is int
        if not (type(value) is int and value > 0 if whole else texts):
            raise UsageError(f"The log says that {name} was {value!r}, which it cannot be.\nSay the study: {OTHERWISE}")
    for name in ("data", "dataset"):
        require_asked(str(made.get(name, "")), flags.get(name), f"--{name}")
    paths = {"data", "people", *(name for name in own if own[name].kind is Path)}
    start, here = Path(str(told.get("folder", ""))), Path.cwd()
    for name in (name for name, value in made.items() if isinstance(value, str)):
        made[name] = cli.moved(made[name], start, here, sure=name in paths)
    chosen = any(own[name].chooses for name in made if name in own)
    return {**made, "study": [] if chosen else [str(told.get("study"))]}


@cli.takes(*OF_DATA, "limit")
def tasks_command(
    study: str = typer.Argument(..., help=f"One of {cli.NAMES}; or custom, with --prompts."),
    folder: Path = Path("tasks"),
    draws: int = 0,
    *,
    options: Mapping[str, object],
) -> None:
    cli.writable(folder, "--out")
    count = write_tasks(Questions(study, draws=draws, **options), folder)
    note(f"{count:,} questions: {folder.resolve()}")
    note(f"Next: python -m lmms_eval --include_path {folder} --tasks beholder_{study} --log_samples --output_path logs")


def scores_by_model(scores: Sequence[str], unnamed: str) -> dict[str, list[Path]]:
    """The files of each model; `NAME=PATH` names one, and a path that exists as it stands has no name."""
    files: dict[str, list[Path]] = {}
    for text in scores:
        name, sign, path = text.partition("=")
        named = bool(sign and name and path) and not Path(text).exists()
        files.setdefault(name if named else unnamed, []).append(Path(path if named else text))
    return files


@cli.takes(
    *(*OF_DATA, "limit", "skip_bad_images", "out", "store", "device", "precision"),
    *("allow_upload", "compat", "seed", "person", "within"),
)
def compare_command(
    context: typer.Context,
    models: list[str] = typer.Argument(
        ...,
        metavar="MODEL|RUN",
        help="Models, named as for `audit`, or run folders, whose scores are read from the store. The first is the "
        "baseline. Differences are those of another model minus the first.",
    ),
    study: list[str] | None = None,
    as_json: bool = False,
    quiet: bool = False,
    *,
    options: Mapping[str, object],
) -> None:
    """Scores of earlier audits are reused. All models are measured again twenty times, each time without the same
    twentieth of the people. This tells what each twentieth adds to each difference. All differences of two models are
    judged together. Run folders also say what was asked: no other option is needed with them.
    """
    set_verbosity(quiet=quiet, verbose=False)
    flags = {name: value for name, value in context.params.items() if cli.given(context, name)}
    runs = {model: recorded_params(Path(model), flags) for model in models if (Path(model) / "run.json").is_file()}
    params = {**options, "study": study, **shared(runs, flags), **flags, "seed": options["seed"], "models": models}
    studies, chosen = asked(params, quiet=quiet)
    operands: list[tuple[str, str | Scored]] = []
    for model in models:
        stores = [store_folder(flags.get("store") or runs[model]["store"])] if model in runs else []
        operands += [(model, each) for each in (scored_models(load_run(model), stores) if stores else [model])]
    found = compare_models(distinct_names(operands), studies, chosen)  # two of one name are called after their folders
    if as_json:
        say_json({"differences": found.table.to_dicts(), "left_out": found.record.left_out})
    elif not quiet:
        print_comparison(found, out)
    if found.folder and not quiet:
        note(f"Report: {(found.folder / 'comparison.html').resolve()}")
    refuse_silence(found.record, chosen)


def paired_differences(folder: Path, baseline: Path) -> pl.DataFrame:
    """The differences of a run's models from those of the baseline, asked what the run was asked, people in pairs.

    Raises where the store does not have the scores of both. The same weights and settings cannot differ at all.
    """
    run, before, params = load_run(folder), load_run(baseline), recorded_params(folder, {})
    studies, options = asked(params, quiet=True)
    stores = [store_folder(recorded_params(baseline, {})["store"]), options.store]
    earlier, later = scored_models(before, stores), scored_models(run, stores[1:])
    by_name = {each.name: each for each in earlier}
    tables = []
    with TemporaryDirectory() as out:
        for number, model in enumerate(later):
            first = earlier[0] if len(earlier) == len(later) == 1 else by_name.get(model.name)
            if first is None:
                continue
            rows = run.results.filter(pl.col("value").is_not_null(), model=model.name)
            if {spec.digest for spec in first.specs} == {spec.digest for spec in model.specs}:
                none = {name: pl.lit(0.0) for name in ("difference", "low", "high")}
                tables.append(rows.with_columns(first="value", second="value", **none).select(*SAME, *PAIRED))
                continue
            chosen = replace(options, out=Path(out) / str(number))
            pair = distinct_names([(str(baseline), first), (str(folder), model)])
            found = compare_models(pair, studies, chosen)
            tables.append(found.table.with_columns(model=pl.lit(model.name)).select(*SAME, *PAIRED))
    if not tables:
        raise UsageError(f"{baseline} has none of the models of {folder}.")
    return pl.concat(tables)


def shared(runs: Mapping[str, Fields], flags: Fields) -> Fields:
    """What all runs were asked; where they differ, and the command line does not say, nothing can be compared."""
    if not runs:
        return {}
    (first, params), *others = runs.items()
    same = {name: value for name, value in params.items() if name not in LEFT_TO_EACH}
    for other, theirs in others:
        for name in same.keys() - flags.keys():
            both = [list(map(str, values_of(each or None))) for each in (same[name], theirs.get(name))]
            if sorted(both[0]) != sorted(both[1]):  # in whichever order they were named
                texts = [", ".join(each) or "not said" for each in both]
                raise UsageError(
                    f"{first} and {other} were not asked the same: {name.replace('_', '-')} is {texts[0]} in the first "
                    f"and {texts[1]} in the other. Compare runs of one data set and study."
                )
    return {**same, "store": params["store"]}


def verify_command(
    folder: cli.RunFolder = cli.LATEST,
    data: Path | None = None,
    store: str | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Exit status: 0 if every row is as it was, 1 if a row changed, is gone or is new, or if findings.json or
    results.csv says something else than the rows.
    """
    run = load_run(folder)
    flags = {name: value for name, value in (("data", data), ("store", store)) if value}
    found = verify_run(run, *asked({**recorded_params(folder, flags), **flags}, quiet=quiet or as_json))
    counts = {"same": found.same, "changed": found.changed.height, "gone": found.gone.height, "new": found.new.height}
    made = {"findings.json": run.findings_json(), "results.csv": as_csv(run.results)}  # of the rows, by this version
    false = [name for name, data in made.items() if read_bytes(folder / name) != data]
    if as_json:
        say_json({**counts, "findings": "findings.json" not in false, "false": false, "rows": found.changed.to_dicts()})
    elif not quiet:
        for name in false:
            say(f"{name} does not say what the rows show. `beholder report` writes it anew.")
        for row in found.changed.head(LISTED).iter_rows(named=True):
            of = f"{row['metric']} {place(row)}".strip()
            was, now = (_number(row, end) for end in ("", "_now"))
            say(f"Changed: {row['model']}: {of}: {was}, now {now}")
        if found.changed.height > LISTED:
            out.print(f"… and {found.changed.height - LISTED:,} more.")
        out.print(
            f"{found.same:,} rows are as they were, {counts['changed']:,} changed, {counts['gone']:,} are gone, "
            f"{counts['new']:,} are new."
        )
    raise typer.Exit(0 if found.holds and not false else 1)


def _number(row: dict[str, float | int | None], end: str) -> str:
    value, low, high = (row[f"{name}{end}"] for name in ("value", "low", "high"))
    interval = "" if low is None or high is None else f" ({low:.6g} to {high:.6g})"
    return "absent" if value is None else f"{value:.6g}{interval}, n {row[f'n{end}']}"


# Commands of studies: they read files in place of a model, and leave a run like any audit

OF_ANY_STUDY = ("data", "out", "store", "draws", "seed")


def study_command(name: str) -> Any:
    """The study's command of that name, or None."""
    commands = [study.command for study in STUDIES.values() if study.command and study.command.name == name]
    if not commands:
        return None
    options = [*(cli.SHARED[each] for each in OF_ANY_STUDY), *commands[0].options]
    command = cli.built(name, partial(_run_command, commands[0]), options)
    command.params[0].help = commands[0].files
    command.describe(commands[0].help, commands[0].examples)
    return command


def _run_command(
    command: Command,
    files: list[str] = typer.Argument(..., help="Files."),
    as_json: bool = False,
    quiet: bool = False,
    *,
    options: Fields,
) -> None:
    started = time.monotonic()
    given = {name: value for name, value in options.items() if value not in (None, [], False)}
    own = {name: value for name, value in given.items() if name not in OF_ANY_STUDY}
    general = AuditOptions.of(**{name: options[name] for name in OF_ANY_STUDY})
    progress = silent if quiet else partial(bar, unit=command.unit)
    asked_for = CommandOptions(general.store, options["data"], general.measure, progress, own)
    chosen = {name: str(value) for name, value in own.items()}
    stamps = file_stamps([Path(file) for file in files])
    key = [command.name, files, stamps, str(options["data"]), general.draws, general.seed, chosen]
    new_run = Record(digest=digest(key))
    with run_folder(new_run, cli.writable(general.out, "--out"), command.name) as (folder, _):
        measured = resolve_name(command.run)(files, asked_for)
        run = Run(measured.results, measured.record, folder=folder)
        run.record.created, run.record.digest, run.record.command = new_run.created, new_run.digest, sys.argv[1:]
        run.record.seconds = round(time.monotonic() - started, 1)
        for name, content in measured.files.items():
            write_whole(folder / name, content)
        written(run, [], general)
    show_run(run, as_json=as_json, quiet=quiet)
