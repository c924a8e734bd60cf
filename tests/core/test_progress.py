"""Progress that nobody watches."""

from __future__ import annotations

import pytest

from beholder.core.progress import Progress, followed_by, silent


def test_silent_progress_takes_any_step_and_prints_nothing(capsys: pytest.CaptureFixture[str]):
    progress: Progress = silent
    with progress("images", 0, 0) as advance:
        advance(3)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_what_comes_later_adds_up():
    told = []
    with followed_by(followed_by(lambda *asked: told.append(asked) or silent(*asked), 5), 7)("images", 3, 0, 1):
        pass
    assert told == [("images", 3, 0, 13, "images")]


def test_an_error_in_the_work_is_not_swallowed():
    with pytest.raises(ValueError, match="broken"), silent("images", 3, 0):
        raise ValueError("broken")
