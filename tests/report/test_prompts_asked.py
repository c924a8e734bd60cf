"""From a number to the words that were asked."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from beholder._run import Run, load_run
from beholder.core.record import Record
from beholder.datasets.dataset import Dataset
from beholder.prompts.prompt_set import prompt_set
from beholder.report.facts import FEW_PROMPTS, images_of, prompts_asked
from beholder.report.page import render
from beholder.scores.score_matrix import Task


def task(name: str, *texts: str, level: str = "mood") -> Task:
    photos = Dataset("apa", "1", "mine", pl.DataFrame({"image_id": ["a"], "uri": ["a.jpg"]}))
    return Task(name, photos, prompt_set(name, ({"text": text, "level": level} for text in texts)))


def test_prompts_are_kept_word_by_word_and_once(tmp_path: Path, apa_run: Run):
    for _ in range(2):  # asked of two models
        apa_run.add_prompts("apa", [task("moods", "a calm person", "a tired person, “really”")])
    apa_run.save(tmp_path)
    again = load_run(tmp_path).prompts
    assert again["text"].to_list() == ["a calm person", "a tired person, “really”"]
    assert again["set"].unique().to_list() == ["moods"]


@pytest.mark.slow
def test_a_run_from_before_prompts_were_kept_has_none(tmp_path: Path, apa_run: Run):
    apa_run.save(tmp_path)
    assert load_run(tmp_path).prompts.height == 0
    assert "prompts.csv" not in render(apa_run.report)


@pytest.mark.slow
def test_the_page_says_prompts_asked(apa_run: Run):
    apa_run.add_prompts("apa", [task("moods", "a <calm> person", "a tired person")])
    page = render(apa_run.report)
    assert "a &lt;calm&gt; person · a tired person" in page
    assert '<a href="prompts.csv">prompts.csv</a>' in page


def test_sets_that_ask_the_same_are_told_once_and_long_ones_are_cut():
    run = Run()
    run.add_prompts("apa", [task("a", "x", "y"), task("b", "x", "y"), task("c", *map(str, range(FEW_PROMPTS + 3)))])
    same, long = prompts_asked(run.prompts, "apa", "apa")
    assert (same.name, same.number, same.more) == ("a: mood, b: mood", 2, 0)
    assert (len(long.texts), long.more) == (FEW_PROMPTS, 3)


def test_names_of_people_are_counted_and_not_listed():
    run = Run()
    run.add_prompts("apa", [task("apa/senate/names", "a photo of Jane Doe", level="identity")])
    (names,) = prompts_asked(run.prompts, "apa", "apa")
    assert (names.number, names.texts) == (1, [])


def test_images_are_said_as_a_part_of_the_whole():
    record = Record(datasets=[{"name": "a", "images": 200, "of": 1845}, {"name": "b", "images": 7, "of": 7}])
    assert [images_of(record, name) for name in "abc"] == ["200 of 1,845", "7", ""]
