"""Options that several commands share: folders are checked before the work."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.cli.options import writable
from beholder.core.errors import UsageError
from beholder.core.files import store_folder


@pytest.mark.parametrize("option", ["--out", "--store"])
def test_a_file_in_the_place_of_a_folder_is_told_before_the_work(
    monkeypatch: pytest.MonkeyPatch, option: str, tmp_path: Path
):
    monkeypatch.setattr("beholder.cli.audit.audit_models", lambda *_: pytest.fail("the work began"))
    folders = ["--out", str(tmp_path / "run"), "--store", str(tmp_path / "store")]
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match=f"{option} .*taken is a file"):
        CliRunner().invoke(
            app, ["audit", "null", *folders, option, str(tmp_path / "taken" / "run")], catch_exceptions=False
        )


def test_a_folder_that_may_not_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(UsageError, match="is not writable"):
        writable(tmp_path / "a" / "b", "--out")


def test_asking_makes_no_folder(tmp_path: Path):
    assert writable(tmp_path / "a" / "b", "--out") == tmp_path / "a" / "b"
    assert not (tmp_path / "a").exists()


def test_scores_are_stored_where_the_option_says_else_in_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert store_folder(None) == tmp_path / "beholder"
    assert store_folder(Path("here")) == Path("here")
