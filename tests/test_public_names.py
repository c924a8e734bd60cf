"""The public names are our promise: none comes or goes unnoticed, and importing them costs nothing."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import beholder
import beholder.ext

PUBLIC = set(
    "AuditOptions BeholderError Comparison Dataset PromptSet Run audit callback compare load_dataset load_model "
    "load_run measure".split()
)
FOR_PLUGINS = set(
    "DATASETS DIFFERENCE GENDER_ONLY STUDIES Answerer Asks Cell Chapter Comparison ContrastiveScorer DataError "
    "DatasetSource Design Embedder Family Figure Finding Floats Groups Instruction LoadOptions Matrices "
    "MeasureOptions Measures Metric MissingData ModelError ModelSpec Option OutOfMemory People PlanOptions Plans "
    "Portrait Printed Question Row ScoreMatrix Scorer Source Strata Study Table Task Tells Trial UnusableScore World "
    "chart compare_groups comparison_at correct_for deciding_rows detectable embed_in_batches finding group_by "
    "image_association judge mean_row people_of percent_axis prompt_set read_prompts register_dataset register_model "
    "register_study render softmax strata_of valued verdict_of_rows".split()
)
EXAMPLES = [
    *(Path(__file__).parents[1] / "docs").glob("add-a-*.md"),
    *(Path(__file__).parents[1] / "docs" / "examples").glob("*.py"),
]


def test_the_public_names_are_these():
    assert set(beholder.__all__) == PUBLIC
    assert set(beholder.ext.__all__) == FOR_PLUGINS


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.name)
def test_examples_import_the_public_names_alone(page: Path):
    imported = set(re.findall(r"^\s*(?:from|import) (beholder[\w.]*)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert imported <= {"beholder", "beholder.ext"}


def test_every_public_name_resolves():
    assert all(getattr(beholder, name) is not None for name in PUBLIC)
    assert all(getattr(beholder.ext, name) is not None for name in FOR_PLUGINS)


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
    assert "torch" not in loaded_after("import beholder.cli, beholder._audit")


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_thing_explains_itself_with_an_example(name: str):
    assert ">>> " in (inspect.getdoc(getattr(beholder, name)) or "")  # `test_doctests.py` runs it


def test_what_tab_completion_and_help_list():
    assert set(dir(beholder)) >= PUBLIC
    assert "beholder.audit(" in (beholder.__doc__ or "")
