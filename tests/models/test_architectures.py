"""The list of architectures says what the sweep found, and covers what transformers has."""

from __future__ import annotations

from collections.abc import Callable

import family_sweep_detection
import family_sweep_matching
import family_sweep_towers
import pytest

from beholder.cli.data import architecture_rows
from beholder.models.catalog import KIND_OF_TASK, architectures

pytest.importorskip("transformers")
MODULES = (family_sweep_towers, family_sweep_matching, family_sweep_detection)


def test_every_architecture_has_a_state_and_a_reason_where_it_is_not_exact() -> None:
    known = architectures()
    assert {each.task for each in known} <= set(KIND_OF_TASK)
    assert {each.state for each in known} <= {"exact", "refused", "not built"}
    assert [each for each in known if (each.state == "exact") == bool(each.why)] == []


@pytest.mark.parametrize("module", MODULES)
def test_the_list_is_that_of_the_installed_transformers(module: object) -> None:
    """Run `python tools/family_sweep.py` after transformers has changed."""
    cases = module.cases()  # type: ignore[attr-defined]
    listed = {(each.task, each.model_type) for each in architectures()}
    assert {(case.task, case.model_type) for case in cases} <= listed


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_the_sweep_finds_what_the_list_says(module: object, tmp_path: object) -> None:
    from pathlib import Path

    from family_sweep import try_case

    said = {(each.task, each.model_type): each.state for each in architectures()}
    for number, case in enumerate(module.cases()):  # type: ignore[attr-defined]
        found = try_case(case, Path(str(tmp_path)) / str(number))
        if found.state == "not built" and case.extra:
            continue  # what it needs is not installed here
        assert found.state == said[case.task, case.model_type], found


def test_the_families_of_a_kind_are_listed(invoke_listing: Callable[[str], str]) -> None:
    rows = {row["model_type"]: row for row in architecture_rows("contrastive")}
    assert rows["clip"]["scores"] == "exact"
    assert rows["flava"]["computed once"] == "vectors, once per picture and text"
    assert "videos" in str(rows["videoprism"]["why"])
    assert rows["tipsv2"]["needs"] == "torch, vision"
    shown = invoke_listing("detection")
    assert "grounding-dino" in shown
    assert "torch, timm" in shown


@pytest.fixture
def invoke_listing() -> Callable[[str], str]:
    from typer.testing import CliRunner

    from beholder.cli import app

    return lambda family: CliRunner().invoke(app, ["list", "models", "--family", family]).output
