"""Settings: NAME=VALUE, read as what is needed, refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from beholder.core.errors import MissingData, UnknownName, UsageError
from beholder.datasets.settings import Setting, Settings, parse_settings

KNOWN = {"split": Setting("val", "which part"), "fewest": Setting("5", "a number"), "words": Setting("a,b", "words")}


@pytest.mark.parametrize("pair", ["split", "=val", ""])
def test_a_pair_without_name_or_sign_is_refused(pair: str) -> None:
    with pytest.raises(UsageError, match="written NAME=VALUE"):
        parse_settings([pair])


def test_a_value_may_hold_the_sign_and_a_name_stands_once() -> None:
    assert parse_settings(["split=a=b"]) == {"split": "a=b"}
    with pytest.raises(UsageError, match="--set split is given twice"):
        parse_settings(["split=a", "split=b"])


def test_what_is_not_chosen_has_its_default() -> None:
    settings = Settings("toy", KNOWN, {"fewest": "7"})
    assert (settings.text("split"), settings.number("fewest")) == ("val", 7)
    assert settings.words("words") == ("a", "b")
    assert Settings("toy", KNOWN, {"words": " c ,, "}).words("words") == ("c",)
    assert Settings("toy", KNOWN, None).chosen == {}


@pytest.mark.parametrize("value", ["-1", "2.5", "many", ""])
def test_a_number_is_a_whole_one_from_0(value: str) -> None:
    with pytest.raises(UsageError, match="a whole number"):
        Settings("toy", KNOWN, {"fewest": value}).number("fewest")


def test_unknown_names_and_values_suggest_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"(?s)The data set 'toy' has no setting 'splits'.*Did you mean 'split'"):
        Settings("toy", KNOWN, {"splits": "x"})
    with pytest.raises(UnknownName, match=r"(?s)The setting 'split' has no value 'vall'.*Did you mean 'val'"):
        Settings("toy", KNOWN, {"split": "vall"}).one_of("split", ["val", "train"])


def test_a_path_is_found_as_named_or_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inside.csv").touch()
    settings = Settings("toy", KNOWN, {"split": "inside.csv"})
    assert settings.path("split", tmp_path) == tmp_path / "inside.csv"
    with pytest.raises(MissingData, match=r"--set split=inside.csv: nothing is there"):
        settings.path("split", tmp_path / "elsewhere")
    assert Settings("toy", KNOWN, {"split": ""}).path("split", tmp_path) is None
