"""What docs/add-a-model.md shows can be run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from beholder.models import load

PAGE = Path(__file__).parents[2] / "docs" / "add-a-model.md"


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_page_run(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "SCHEMES", dict(load.SCHEMES))
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    exec(compile(blocks[number], f"{PAGE}, example {number + 1}", "exec"), {"__name__": "example"})
