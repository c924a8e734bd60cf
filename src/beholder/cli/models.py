"""`beholder list models`: the forms a name can take, and the models of the studies with what they take to run."""

from __future__ import annotations

from typing import Any

from beholder.models.architectures import architectures
from beholder.models.catalog import ModelEntry, count_of, selected, short
from beholder.models.families import FAMILIES, FOLDER_FORMS
from beholder.models.load import reference_models
from beholder.models.machine import Machine, this_machine


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
    chosen = selected(family=family, study=study, max_parameters=limit)
    return [_row(entry, machine) for entry in chosen if not fits or entry.fits(machine) in ("gpu", "cpu")]


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


def _row(entry: ModelEntry, machine: Machine) -> dict[str, object]:
    return {
        "name": entry.name,
        "aliases": list(entry.aliases),
        "studies": entry.studies,
        "family": entry.family,
        "adapter": entry.adapter,
        "load": entry.load or None,
        "source": entry.source,
        "revision": entry.revision or None,
        "unpinned": entry.unpinned,
        "parameters": entry.parameters,
        "training_pairs": entry.training_pairs,
        "released": entry.released,
        "licence": entry.licence,
        "reference": entry.reference or None,
        "memory_bytes": entry.memory("float32"),
        "runs_here": entry.fits(machine),
        "note": entry.note or None,
    }


def readable(row: dict[str, Any]) -> dict[str, object]:
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
