"""`beholder verify`: does a run come out again from its stored scores?"""

from __future__ import annotations

from pathlib import Path

import typer

from beholder.cli import options as common
from beholder.cli.audit import asked_of, own_options, recorded_params
from beholder.cli.console import out, say_json

LISTED = 10


def verify_command(
    folder: common.RunFolder = common.LATEST,
    data: common.Data = None,
    store: common.StoreFolder = None,
    as_json: common.AsJson = False,
    quiet: common.Quiet = False,
) -> None:
    """Measure a run again from the store, without its models, and say what changed.

    Exit status: 0 if every row is as it was, 1 if a row changed, is gone or is new.
    """
    # Imported here so that other commands start without it.
    from beholder._run import load_run
    from beholder._verify import verify_run
    from beholder.core.results import place

    run = load_run(folder)
    flags: dict[str, Path] = {name: value for name, value in (("data", data), ("store", store)) if value}
    params = {**recorded_params(folder), **flags, "quiet": quiet or as_json}
    studies, options = asked_of(params, own_options(params))
    found = verify_run(run, studies, options)
    counts = {"same": found.same, "changed": found.changed.height, "gone": found.gone.height, "new": found.new.height}
    if as_json:
        say_json({**counts, "rows": found.changed.to_dicts()})
    elif not quiet:
        for row in found.changed.head(LISTED).iter_rows(named=True):
            of = f"{row['metric']} {place(row)}".strip()
            was, now = (_shown(row, end) for end in ("", "_now"))
            out.print(f"Changed: {row['model']}: {of}: {was}, now {now}", markup=False, soft_wrap=True)
        if found.changed.height > LISTED:
            out.print(f"… and {found.changed.height - LISTED:,} more.")
        told = f"{found.same:,} rows are as they were, {counts['changed']:,} changed, {counts['gone']:,} are gone, "
        out.print(f"{told}{counts['new']:,} are new.")
    raise typer.Exit(0 if found.holds else 1)


def _shown(row: dict[str, float | int | None], end: str) -> str:
    value, low, high = (row[f"{name}{end}"] for name in ("value", "low", "high"))
    interval = "" if low is None or high is None else f" ({low:.6g} to {high:.6g})"
    return "absent" if value is None else f"{value:.6g}{interval}, n {row[f'n{end}']}"
