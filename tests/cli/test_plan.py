"""`beholder plan`: what can be found, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.cli.options import made
from beholder.cli.plan import _readable


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_the_table_says_what_can_be_found_and_from_what(invoke: Callable[..., str]):
    text = invoke("plan", "gras", "--effect", 0.1)
    assert "detectable" in text
    assert "images needed" in text
    assert "- gender: 2 groups of 60" in text


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.slow
def test_more_power_asks_for_more_images(invoke: Callable[..., str]):
    few, many = (
        [
            row["value"]
            for row in json.loads(invoke("plan", "gras", "--effect", 0.1, "--power", power, "--json"))
            if row["metric"] == "plan.images_needed"
        ]
        for power in (0.5, 0.95)
    )
    assert few
    assert all(less < more for less, more in zip(few, many, strict=True))


def test_an_absent_value_is_said_and_not_shown_as_a_number():
    row = {"metric": "plan.detectable", "subset": "m", "concept": "c", "n": 4, "unit": "ratio", "value": None}
    assert _readable(row)["value"] == "no number is enough"
    assert _readable({**row, "value": 0.1234})["value"] == "0.123"
    assert _readable({**row, "metric": "plan.images_needed", "value": 1234.0})["value"] == "1,234"


def test_an_option_is_known_by_its_former_name():
    command = made("plan")
    for flag in ("--gpus", "--cards"):
        for words in ([flag, "8"], [f"{flag}=8"]):
            assert command.make_context("plan", words).params["gpus"] == 8
    assert "--cards" not in CliRunner().invoke(app, ["plan", "--help"]).output
