"""`beholder list`: what Beholder knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from beholder._options import AuditOptions
from beholder.chapter.numbers import Result
from beholder.cli.console import say_json, show
from beholder.cli.options import takes
from beholder.datasets import DATASETS, load_dataset
from beholder.models.catalog import FAMILIES, FOLDER_FORMS, architectures, count_of, selected, short
from beholder.models.load import reference_models
from beholder.models.spec import this_machine
from beholder.prompts.prompt_set import read_prompts
from beholder.studies import STUDIES
from beholder.studies.inquiry import default_dataset, with_own_options

FIELDS = "studies family adapter source unpinned parameters training_pairs released licence".split()


def form_rows() -> list[dict[str, object]]:
    """The forms that the name of a model can take, beside the models of the studies."""
    own = [(name, name.partition("/")[2], "a reference model that comes with Beholder") for name in reference_models()]
    folders = [(form, "any", what) for form, what in FOLDER_FORMS.items()]
    schemes = [(family.form, family.kind, family.what) for family in FAMILIES.values() if family.form]
    return [{"name": name, "family": kind, "what": what} for name, kind, what in (*own, *folders, *schemes)]


def model_rows(
    *, family: str | None = None, study: str | None = None, max_parameters: str | None = None, fits: bool = False
) -> list[dict[str, object]]:
    """The models of the studies, filtered; `fits` keeps those that run on this machine."""
    limit = count_of(max_parameters) if max_parameters else None
    machine = this_machine()
    return [
        {
            "name": entry.name,
            "aliases": list(entry.aliases),
            **{name: getattr(entry, name) for name in FIELDS},
            **{name: getattr(entry, name) or None for name in ("load", "revision", "reference", "note")},
            "memory_bytes": entry.memory("float32"),
            "runs_here": entry.fits(machine),
        }
        for entry in selected(family=family, study=study, max_parameters=limit)
        if not fits or entry.fits(machine) in ("gpu", "cpu")
    ]


def architecture_rows(family: str) -> list[dict[str, object]]:
    """The architectures of a kind of model: whether Beholder scores them exactly, and what they need."""
    return [
        {
            "model_type": each.model_type,
            "architecture": each.architecture,
            "scores": each.state,
            "computed once": each.shared or "nothing",
            "needs": f"torch, {each.extra}" if each.extra else "torch",
            "why": each.why or None,
        }
        for each in architectures()
        if each.kind == family
    ]


def readable(row: Result) -> dict[str, object]:
    """A row of the catalogue for a terminal."""
    tables = "; ".join(f"{study} {tables}".strip() for study, tables in row["studies"].items())
    return {
        "name": row["name"],
        "family": row["family"],
        "size": short(row["parameters"]),
        "pairs": short(row["training_pairs"]),
        "released": row["released"] or "unknown",
        "tables": tables,
        "runs here": row["runs_here"],
    }


def models(
    family: str = typer.Option(None, help="contrastive, matching, generative, detection, segmentation."),
    study: str = typer.Option(None, help="Only models of one study."),
    max_parameters: str = typer.Option(None, "--max-parameters", help="Maximum number of parameters: 500M, 7.5B."),
    fits: bool = typer.Option(False, "--fits", help="Only those that fit into this machine's memory."),
    as_json: bool = False,
) -> None:
    rows = model_rows(family=family, study=study, max_parameters=max_parameters, fits=fits)
    forms = [] if family or study or max_parameters or fits else form_rows()
    known = architecture_rows(family) if family else []
    if as_json:
        say_json([*forms, *rows, *known])
        return
    if forms:
        show(forms, as_json)
    show([readable(row) for row in rows], as_json)
    if known:
        show([{key: value for key, value in row.items() if key != "why"} for row in known], as_json)


def datasets(as_json: bool = False) -> None:
    fields = ("name", "title", "images", "licence", "origin")
    rows: list[dict[str, object]] = [{name: getattr(each, name) for name in fields} for each in DATASETS.values()]
    forms = {
        "folder:PATH": "images with a table of attributes, or a folder for each class",
        "hf:NAME_OR_PATH": "a Hugging Face data set with a column of images",
        "wds:URI": "webdataset tars",
    }
    rows += [{"name": n, "title": t, "images": None, "licence": "yours", "origin": "you"} for n, t in forms.items()]
    show(rows, as_json)


def studies(as_json: bool = False) -> None:
    fields = ("name", "question", "datasets", "citation")
    known = [(s.name, s.question, ", ".join(s.asks.datasets), s.citation) for s in STUDIES.values()]
    show([dict(zip(fields, each, strict=True)) for each in known], as_json)


def metrics(as_json: bool = False) -> None:
    known = [metric for study in STUDIES.values() for metric in study.measures.metrics]
    show([{"metric": each.name, "unit": each.unit, "meaning": each.meaning} for each in known], as_json)


@takes("data")
def prompts(
    study: str = typer.Option("", "--study", "-s", help="The study whose prompts to list."),
    file: Path | None = typer.Option(None, "--file", help="Own prompts: read, check and preview them."),
    as_json: bool = False,
    *,
    options: Mapping[str, object],
) -> None:
    if file:
        sets = [read_prompts(file)]
    else:
        chosen = AuditOptions.of(**options)
        asked = with_own_options(STUDIES[study or next(iter(STUDIES))], chosen.study_options)
        dataset = load_dataset(default_dataset(asked, chosen.data), chosen.data)
        sets = [task.prompts for task in asked.asks.tasks(dataset)]
    show([{"set": each.name, **row} for each in sets for row in each.table.drop("prompt_id").to_dicts()], as_json)
