"""A data sheet says who is in a data set; it shows no names, and nothing in a label becomes markup."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.datasets import DATASETS, load_dataset
from beholder.datasets.dataset import Dataset
from beholder.datasets.survey import TO_BE_STATED, datasheet, survey


def card_of(labels: list[str]) -> str:
    table = pl.DataFrame({"image_id": [f"{i}.png" for i in range(len(labels))], "group": labels}).with_columns(
        uri=pl.col("image_id")
    )
    dataset = Dataset("own", "1", "own", table)
    return datasheet(dataset, survey(dataset))


def test_a_label_is_text_and_never_markup() -> None:
    card = card_of(["a|b", "<script>x</script>", "[click](here)", "two\nlines"])
    assert r"| a\|b | 1 | 25% |" in card
    assert r"\<script\>x\</script\>" in card
    assert r"\[click\](here)" in card
    assert "| two lines | 1 | 25% |" in card


def test_names_of_people_are_counted_and_not_listed() -> None:
    card = card_of([f"Person {i}" for i in range(60)])
    assert "60 different values, not listed" in card
    assert "Person 1" not in card


def test_what_nobody_stated_is_said_to_be_not_stated() -> None:
    assert card_of(["a"]).count(TO_BE_STATED) == 3


@pytest.mark.parametrize("name", DATASETS)
def test_every_known_data_set_says_where_its_labels_come_from(name: str) -> None:
    assert DATASETS[name].labels
    assert DATASETS[name].intended


@pytest.mark.slow
def test_the_card_of_the_embedded_world_is_written(tmp_path: Path) -> None:
    path = tmp_path / "card.md"
    result = CliRunner().invoke(app, ["data", "card", "glasshouse-objects", "--out", str(path)])
    assert result.exit_code == 0
    assert f"| Images in the table | {len(load_dataset('glasshouse-objects'))} |" in path.read_text()
