"""Checks of Beholder itself: `beholder replicate`, `calibrate` and `bench`."""

import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType

import polars as pl
import typer
from rich.table import Table

from beholder._options import AuditOptions
from beholder._run import load_run
from beholder.calibration.claims import CalibrationOptions, calibrate, chosen_cells, promises, read_calibration
from beholder.cli.console import bar, err, note, out, say, say_json, show
from beholder.cli.options import writable
from beholder.cli.replicate import planned, printed_models, readable, run_models
from beholder.core.errors import UsageError
from beholder.core.progress import silent
from beholder.datasets import data_root
from beholder.models.catalog import ModelEntry, find_model
from beholder.report.facts import part_of
from beholder.report.replication import (
    as_records,
    consistency,
    counts,
    ledger,
    printed_name,
    write_calibration,
    write_into,
    write_replication,
)
from beholder.studies.printed import Check

LEDGER, MOST = Path("beholder-replication"), 40  # the folder without a run, and the rows of it that are printed
COMPARED = "study model metric subset group concept printed value verdict".split()
SPEED = Path(__file__).parents[3] / "speed"  # not installed: the timings lie beside the sources in a clone


def replicate_command(
    given: list[str] = typer.Argument(
        None,
        metavar="[RUN] or NAME…",
        help="A run folder; without it only the printed tables are checked: no model, no data. With --run, the printed "
        "names of models; without them all.",
    ),
    make: bool = typer.Option(
        False, "--run", help="Fetch data and weights of printed models, and run what is missing, as printed (--compat)."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="With --run: show what it would fetch, with bytes and time."),
    on: str = typer.Option("h200", help="With --dry-run: the GPU whose time is counted."),
    output: Path = typer.Option(
        None, "--out", "-o", help="Folder for the ledger and its page. Default: RUN, or beholder-replication."
    ),
    printed_as: str = typer.Option(
        None, "--as", help="The name that the studies print for the one model of the run (ViT-B/32 …)."
    ),
    data: Path | None = None,
    store: str | None = None,
    device: str = "auto",
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """In the folder of data, the sizes that the papers print are counted again."""
    if dry_run and not make:
        raise UsageError("--dry-run goes with --run.")
    if make:
        chosen, progress = printed_models(given or []), silent if quiet or as_json else bar
        if dry_run:
            rows = list(planned(chosen, data_root(data), on))
            show(rows if as_json else list(readable(rows, on)), as_json)
            return
        options = AuditOptions.of(data=data, store=store, device=device, progress=progress)
        _replicate_run(chosen, options, output or LEDGER, as_json=as_json)
        return
    if len(given or ()) > 1:
        raise UsageError("Name one run. Names of models go with --run.")
    run = Path(given[0]) if given else None
    if printed_as and not run:
        raise UsageError("--as needs a run: beholder replicate RUN --as NAME.")
    loaded = load_run(run) if run else None
    results = loaded.results if loaded else None
    if results is not None and printed_as:
        names = results["model"].unique().sort()
        if len(names) != 1:
            raise UsageError(f"--as names one model, but this run has {len(names)}: {', '.join(names)}.")
        results = results.with_columns(model=pl.lit(find_model(printed_as).name))
    printed = {model: printed_name(model) for model in (results["model"].unique() if results is not None else [])}
    entries = loaded.record.datasets if loaded else []
    parts = {str(each["name"]): f"this run is over {part} images" for each in entries if (part := part_of(each))}
    cells, checks = ledger(results, data, parts), consistency()
    models = sorted(name for name in printed.values() if name)
    place = output or run or LEDGER
    _show_ledger(cells, checks, models, place, ran=run is not None, as_json=as_json, quiet=quiet)
    for model in (model for model, name in printed.items() if not name and not as_json):
        err.print(f"{model} is in none of the printed tables. If it is one of their models: --as NAME.", markup=False)


def _replicate_run(entries: list[ModelEntry], options: AuditOptions, place: Path, *, as_json: bool) -> None:
    """Run printed models; then every printed number beside ours."""
    writable(place, "--out")
    results, records, left_out = run_models(entries, options, place)
    if results.is_empty():
        raise UsageError("Nothing could be run:\n" + "\n".join(f"{what}: {why}" for what, why in left_out.items()))
    datasets = [each for record in records for each in record.datasets]
    parts = {str(each["name"]): f"this run is over {part} images" for each in datasets if (part := part_of(each))}
    models = sorted({name for model in results["model"].unique() if (name := printed_name(model))})
    cells = ledger(results, options.data, parts)
    _show_ledger(cells, consistency(), models, place, ran=True, as_json=as_json, quiet=False)
    if not as_json:
        mine = cells.filter(pl.col("origin") == "run").select(*COMPARED).head(MOST)
        show(mine.to_dicts(), as_json=False)


def _show_ledger(
    cells: pl.DataFrame, checks: list[Check], models: list[str], place: Path, *, ran: bool, as_json: bool, quiet: bool
) -> None:
    """Write the ledger and its page, and count the verdicts."""
    page = write_replication(cells, checks, place, models=models)
    if as_json:
        say_json({"verdicts": counts(cells), "cells": cells.to_dicts(), "consistency": as_records(checks)})
        return
    if not quiet:
        verdicts = counts(cells)  # what the run measured, apart from what follows from printed tables and from data
        named = {"run": "this run", "printed tables": "printed tables", "data": "data", "none": "no value of ours"}
        used = [each for each in named if any(row[each] for row in verdicts.values()) or (each == "run" and ran)]
        rows = [{"verdict": name, **{named[each]: row[each] for each in used}} for name, row in verdicts.items()]
        show(rows, as_json=False)
        for check in checks:
            if not check.holds:
                out.print(f"{check.study}, {check.table}: {check.finding}", markup=False)
        note(f"Page: {page.resolve()}")


def calibrate_command(
    study: list[str] = typer.Option(None, "--study", "-s", help="A study (repeatable). Default: all."),
    design: list[str] = typer.Option(None, "--design", help="How many people, such as '5 + 40' (repeatable)."),
    world: list[str] = typer.Option(None, "--world", help="What the model sees, such as 'noise' (repeatable)."),
    worlds: int = typer.Option(400, min=1, help="Worlds drawn for each study, design and world."),
    again: int = typer.Option(4000, min=0, help="Worlds of cells that do not keep a promise at first. 0: none."),
    seed: int = typer.Option(20260801, help="Equal seeds give equal numbers, on any number of processes."),
    workers: int = typer.Option(None, "--workers", min=1, help="Number of processes. Default: one per core."),
    output: Path = typer.Option(
        Path("beholder-calibration"), "--out", "-o", help="Folder for the page, the table and finished blocks."
    ),
    made: list[Path] = typer.Option(
        None, "--from", help="Draw nothing: make the page from a calibration.parquet, or several (later ones count)."
    ),
    into: Path = typer.Option(None, "--into", help="Also put the tables into this Markdown page."),
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """You can stop it with Ctrl-C at any time. The same command continues where it stopped."""
    writable(output, "--out")
    if made:
        table = read_calibration(made)
    else:
        progress = silent if quiet else partial(bar, unit="worlds")
        options = CalibrationOptions(worlds, again, seed, workers or os.cpu_count() or 1, progress)
        table = calibrate(chosen_cells(study or (), design or (), world or ()), output, options)
    page = write_calibration(table, output)
    if into:
        write_into(into, table)
    if as_json:
        say_json({"cells": table.to_dicts(), "promises": [promise._asdict() for promise in promises(table)]})
    elif not quiet:
        for promise in promises(table):
            say(f"{promise.headline}: {promise.sentence}")
            for each in promise.broken:
                say(f"  not kept: {each}")
    if not quiet:
        note(f"Page: {page.resolve()}")


def _module(name: str) -> ModuleType:
    if not SPEED.is_dir():
        raise UsageError(
            "beholder bench needs a clone of the project, since the timings are not installed.\n"
            "Install from the clone with: pip install -e ."
        )
    if str(SPEED) not in sys.path:
        sys.path.insert(0, str(SPEED))
    return import_module(name)


def generative_command(
    architectures: list[str] = typer.Argument(
        None, help="qwen2.5-vl-3b, llava-1.5-7b, gemma-3-4b, paligemma2-3b; default: all."
    ),
    device: str = typer.Option("auto", help="auto, cpu, cuda, cuda:1."),
    full: bool = typer.Option(False, "--full", help="True sizes in bfloat16, for a GPU; else tiny models in float32."),
    pictures: int = typer.Option(8, min=1, help="Pictures per timing of our method."),
    loop: int = typer.Option(8, min=2, help="Questions asked in each timing of the authors' loop."),
    repeats: int = typer.Option(2, min=1, help="Timings taken of each way."),
    at_once: int = typer.Option(
        None, min=1, help="Pictures that our method processes at once. Default: as many as fit in memory."
    ),
    as_json: bool = False,
) -> None:
    """Weights are random: speed depends on shapes, not on what was learnt. The table also shows how far each method's
    answers differ from the loop's.
    """
    # It needs torch, which is an extra.
    from beholder.models.torch_scorer import resolve_device, torch

    known, rehearsal = _module("architectures"), _module("rehearsal")
    effort = rehearsal.Effort(pictures=pictures, loop=loop, repeats=repeats, together=at_once)
    device, timings = resolve_device(device), {}
    for built in [known.architecture(name) for name in architectures or known.ARCHITECTURES]:
        model = built.build(tiny=not full, device=device, dtype=torch.bfloat16 if full else torch.float32)
        lines, shape = [], rehearsal.Shape()
        for line in rehearsal.rehearse(built, model, shape, effort, tell=lambda text: err.print(f"  {text}")):
            err.print(f"{built.name}: {line.way}: {line.per_second:,.1f} questions/s")
            lines.append(line)
        timings[built.name] = lines
        del model
    if as_json:
        say_json({name: [line._asdict() for line in lines] for name, lines in timings.items()})
        return
    size = "true size, bfloat16" if full else "tiny, float32"
    for name, lines in timings.items():
        table = Table("Way", "Questions/s", "To the loop", "Largest |Δ log p|", title=f"{name}, {size}, {device}")
        for line in lines:
            far = "" if line.difference is None else f"{line.difference:.1g}"
            table.add_row(line.way, f"{line.per_second:,.1f}", f"{line.per_second / lines[0].per_second:,.1f} ×", far)
        out.print(table)
