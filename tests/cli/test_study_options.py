"""An option of a study goes only with that study, and the command line says which study it means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.cli.options import study_options
from beholder.core.errors import UnknownName, UsageError
from beholder.studies import STUDIES
from beholder.studies.inquiry import chosen_studies, with_study_options


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "--by", "gender"], "--by goes with --prompts or --study disparity"),
        (["audit", "--prompts", "x.csv"], "--prompts defines its own study: add --dataset NAME"),
        (["audit", "--prompts", "x.csv", "--dataset", "apa", "-s", "apa"], "remove --study"),
        (["audit", "--traits", "x.csv"], "--traits goes with --study gras"),
        (
            ["audit", "-s", "perception", "--templates", "x.csv"],
            "--templates goes with --study apa or pfi or gras or dis",
        ),
        (["measure", "gras", "--scores", "x.csv", "--word-vectors", "x"], "--word-vectors goes with --study dis"),
    ],
)
def test_an_option_of_another_study_is_refused_with_what_it_goes_with(arguments: list[str], message: str):
    with pytest.raises(UsageError, match=message):
        CliRunner().invoke(app, arguments, catch_exceptions=False)


def names(*asked: str, **others: Any) -> list[str]:
    """The studies of a command line without options of their own."""
    given: dict[str, Any] = {"data": None, "dataset": None, **others}
    return [study.name for study in chosen_studies(asked, {}, **given)]


def test_without_a_study_the_data_at_hand_decide():
    assert names() == [study.name for study in STUDIES.values() if study.demo]
    assert names(models=("null",)) == ["apa"]
    assert names(data=Path("data")) == ["apa", "pfi"]
    assert names(data=Path("data"), dataset="fairface") == ["apa"]
    assert names("gras", data=Path("data")) == ["gras"]


def test_an_unknown_study_is_refused():
    with pytest.raises(UnknownName, match="Did you mean 'gras'"):
        names("grass")


def test_an_option_that_several_studies_share_is_there_once():
    flags = [option.flag for option in study_options()]
    assert len(set(flags)) == len(flags)
    assert {"--templates", "--by", "--prompts"} <= set(flags)


def test_a_study_is_left_as_it_is_without_options_of_its_own(tmp_path: Path):
    assert with_study_options(STUDIES["apa"], {"traits": tmp_path}) is STUDIES["apa"]
    traits = tmp_path / "traits.csv"
    traits.write_text("trait,valence\nkind,positive\ncold,negative\n")
    assert with_study_options(STUDIES["gras"], {"traits": traits}) is not STUDIES["gras"]
