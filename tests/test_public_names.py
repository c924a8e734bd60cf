"""The public names are our promise: none comes or goes unnoticed, and importing them costs nothing."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import beholder

PUBLIC = {
    "AuditOptions",
    "STUDIES",
    "BeholderError",
    "DATASETS",
    "Dataset",
    "MeasureOptions",
    "ModelSpec",
    "PromptSet",
    "Run",
    "ScoreMatrix",
    "Scorer",
    "Study",
    "audit",
    "audit_models",
    "callback",
    "compare",
    "load_model",
    "load_run",
    "measure_scores",
    "open_dataset",
    "read_prompts",
}
HOME = {"audit": "beholder.audit", "compare": "beholder.compare"}
"""Functions whose module has their name, and can be called too."""


def test_the_public_names_are_these():
    assert set(beholder.__all__) == PUBLIC


def test_every_public_name_resolves():
    assert all(getattr(beholder, name) is not None for name in PUBLIC)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    assert not hasattr(beholder, "no_such_name")


def loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_beholder_loads_neither_torch_nor_charts():
    heavy = {"torch", "transformers", "onnxruntime", "altair", "matplotlib", "pandas"}
    assert not heavy & loaded_after("import beholder")


def test_the_command_line_loads_no_torch_until_a_model_asks_for_it():
    assert "torch" not in loaded_after("import beholder.cli, beholder.audit")


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_thing_explains_itself_with_an_example(name: str):
    thing = getattr(importlib.import_module(HOME.get(name, "beholder")), name)
    if callable(thing):  # STUDIES and DATASETS are values, and say what they are where they stand
        assert ">>> " in (inspect.getdoc(thing) or "")  # `test_doctests.py` runs it


def test_what_tab_completion_and_help_list():
    assert set(dir(beholder)) >= PUBLIC
    assert "beholder.audit(" in (beholder.__doc__ or "")
