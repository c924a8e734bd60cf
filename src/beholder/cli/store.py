"""`beholder store`: what is stored, whether it is sound, and how to clean it."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime

import typer

from beholder.cli.console import SIZES, bar, err, note, out, say, say_json, show, size
from beholder.core.errors import UnknownName, UsageError
from beholder.core.files import store_folder
from beholder.scores import store as stores
from beholder.scores.store import Store, StoredModel, stored_models, verify_store

AGES = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


def show_command(context: typer.Context, store: str | None = None, as_json: bool = False) -> None:
    if context.invoked_subcommand:
        given = {"store": str(store)} if store else {}
        context.default_map = {name: given for name in ("verify", "clean")}
        return
    models = stored_models(Store(store_folder(store)))
    if models or as_json:
        _show(models, as_json)
    else:
        note(f"{store_folder(store)} holds no scores.")


def verify_command(store: str | None = None, as_json: bool = False) -> None:
    """What it finds wrong is scored again by the next audit that needs it."""
    found = verify_store(Store(store_folder(store)), bar)
    if as_json:
        say_json(asdict(found))
    else:
        for line in (*found.problems, *(f"Note: {note}" for note in found.notes)):
            say(line)
        err.print(f"{found.blocks:,} blocks with {found.rows:,} rows are sound. Problems: {len(found.problems):,}.")
    if found.problems:
        raise typer.Exit(1)


def clean_command(
    model: list[str] | None = typer.Option(
        None, help="Only this model: its name or the name of its folder (repeatable)."
    ),
    older_than: str | None = typer.Option(None, help="Only models not used for so long: 12h, 30d, 8w.", metavar="AGE"),
    larger_than: str | None = typer.Option(None, help="Only models larger than: 500MB, 10GB.", metavar="SIZE"),
    leftovers: bool = typer.Option(
        False, "--leftovers", help="Remove blocks that were set aside and files of stopped runs."
    ),
    everything: bool = typer.Option(False, "--all", help="Remove all models."),
    yes: bool = typer.Option(False, "--yes", help="Do not ask."),
    store: str | None = None,
) -> None:
    place = Store(store_folder(store))
    wanted = model or older_than or larger_than or everything
    if not wanted and not leftovers:
        raise UsageError("Say what to remove: --model, --older-than, --larger-than, --leftovers or --all.")
    models = _chosen(stores.stored_models(place), model or [], older_than, larger_than) if wanted else []
    files = stores.leftovers(place) if leftovers else []
    if not models and not files:
        err.print("Nothing to remove.")
        return
    if models:
        _show(models)
    if files:
        out.print(f"{len(files):,} leftover files, {size(sum(map(stores.size_of, files)))}")
    if not yes and not (sys.stdin.isatty() and typer.confirm("Remove this? It cannot be undone.", err=True)):
        err.print("Nothing was removed." + ("" if sys.stdin.isatty() else " To remove this, add --yes."))
        return
    stores.remove_leftovers(files)
    stores.remove_models(models)
    err.print(f"Removed {len(models):,} models and {len(files):,} leftover files.")


def _chosen(
    models: list[StoredModel], names: list[str], older_than: str | None, larger_than: str | None
) -> list[StoredModel]:
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


def _show(models: list[StoredModel], as_json: bool = False) -> None:
    show(
        [
            {
                "name": model.name,
                "folder": model.folder.name,
                **{name: getattr(model, name) for name in ("revision", "images", "prompts", "blocks")},
                **({"bytes": model.bytes} if as_json else {"size": size(model.bytes)}),
                "last_used": datetime.fromtimestamp(model.last_used, UTC).isoformat(timespec="minutes"),
            }
            for model in models
        ],
        as_json,
    )
