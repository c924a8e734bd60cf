"""`beholder compare`: where models differ, with the uncertainty of each difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from beholder.cli import options as common
from beholder.cli.audit import asked_of, own_options, recorded_params
from beholder.cli.config import given
from beholder.cli.console import err, out, say_json, set_verbosity
from beholder.core.errors import UsageError

if TYPE_CHECKING:
    from beholder._compare import Scored

LEFT_TO_EACH = (
    *("models", "output", "store", "seed", "draws", "delta", "perturb", "device", "precision", "decode", "batch_size"),
    *("one_by_one", "verify", "skip_bad_images", "quiet", "verbose", "as_json", "log"),
)
"""Options of an audit in which runs may differ and still be compared."""


def compare_command(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL|RUN",
            help="Models, named as for `audit`, or run folders, whose scores are read from the store. The first is the "
            "baseline. Differences are those of another model minus the first.",
        ),
    ],
    study: common.Studies = None,
    data: common.Data = None,
    dataset: common.DatasetName = None,
    settings: common.DatasetSettings = None,
    bins: common.Bins = None,
    limit: common.Limit = None,
    skip_bad_images: common.SkipBadImages = False,
    output: common.RunOut = None,
    store: common.StoreFolder = None,
    device: common.Device = "auto",
    precision: common.Precision = "auto",
    yes: common.Yes = False,
    compat: common.Compat = False,
    seed: Annotated[int, typer.Option(help="Seed that decides who is left out.")] = 20260801,
    person: common.Person = None,
    within: common.Within = None,
    as_json: common.AsJson = False,
    quiet: common.Quiet = False,
    *,
    own: Mapping[str, object],
) -> None:
    """Show where models differ from the first on the same questions and the same people.

    Scores of earlier audits are reused. All models are measured again twenty times, each time without the same
    twentieth of the people. This tells what each twentieth adds to each difference. All differences of two models are
    judged together. Run folders also say what was asked: no other option is needed with them.
    """
    # Imported here so that other commands start without it.
    from beholder._compare import compare_models
    from beholder.report.comparison import print_comparison

    set_verbosity(quiet=quiet, verbose=False)
    flags = {name: value for name, value in context.params.items() if given(context, name)}
    runs = {model: recorded_params(Path(model)) for model in models if (Path(model) / "run.json").is_file()}
    params = {**context.params, **shared(runs, flags), **flags, "seed": seed, "quiet": quiet}
    studies, options = asked_of({**params, "models": models}, own_options(params))
    found = compare_models(_operands(models, runs, flags.get("store")), studies, options)
    if as_json:
        say_json({"differences": found.table.to_dicts(), "left_out": found.record.left_out})
    elif not quiet:
        print_comparison(found, out)
    if found.folder and not quiet:
        err.print(f"Report: {(found.folder / 'comparison.html').resolve()}", markup=False, soft_wrap=True)


def shared(runs: Mapping[str, Mapping[str, Any]], flags: Mapping[str, Any]) -> dict[str, Any]:
    """What all runs were asked; where they differ, and the command line does not say, nothing can be compared."""
    if not runs:
        return {}
    (first, params), *others = runs.items()
    asked = {name: value for name, value in params.items() if name not in LEFT_TO_EACH}
    for other, theirs in others:
        for name in asked.keys() - flags.keys():
            if (asked[name] or None) != (theirs.get(name) or None):
                raise UsageError(
                    f"{first} and {other} were not asked the same: {name.replace('_', '-')} is {_said(asked[name])} in "
                    f"the first and {_said(theirs.get(name))} in the other. Compare runs of one data set and study."
                )
    return {**asked, "store": params["store"]}


def _said(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "not said"
    return "not said" if value is None else str(value)


def _operands(models: Sequence[str], runs: Mapping[str, Mapping[str, Any]], store: Path | None) -> list[str | Scored]:
    """Models by name, and those of runs; two of one name are called after their folders."""
    # Imported here so that other commands start without it.
    from beholder._compare import scored_models, told_apart
    from beholder._run import load_run

    operands: list[tuple[str, str | Scored]] = []
    for model in models:
        if model not in runs:
            operands.append((model, model))
            continue
        own = common.store_folder(store or runs[model]["store"])
        operands += [(model, each) for each in scored_models(load_run(model), [own])]
    return told_apart(operands)
