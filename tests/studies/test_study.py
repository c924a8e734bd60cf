"""A study is declared as a value; its parts are loaded when they are asked for."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from beholder.studies import STUDIES
from beholder.studies.study import Asks, MeasureOptions, Measures, Metric, Option, Study, Tells, read_metrics

HEADER = "name,topic,unit,meaning,landmark,paired,chance_only\n"


def study(asks: Asks | None = None, **others: Any) -> Study:
    asks = asks or Asks(("apa",), lambda dataset: ["asked"])
    gap = Metric("mine.gap", "gaps", "probability", "0: alike", landmark=0.0)
    return Study("mine", "Mine", "Who?", "me", asks, Measures(metrics=(gap,)), **others)


def test_metrics_are_read_with_their_types(tmp_path: Path):
    path = tmp_path / "metrics.csv"
    path.write_text(HEADER + 'gap,a b,points,"0, alike",0,yes,\nshare,a,share,"of 1",,,yes\n', encoding="utf-8")
    gap, share = read_metrics(path, "mine.")
    assert gap == Metric("mine.gap", "a b", "points", "0, alike", landmark=0.0, paired=True)
    assert share == Metric("mine.share", "a", "share", "of 1", chance_only=True)
    assert share.landmark is None


def test_a_landmark_that_is_no_number_is_refused(tmp_path: Path):
    path = tmp_path / "metrics.csv"
    path.write_text(HEADER + "gap,a,points,x,none,,\n")
    with pytest.raises(ValueError, match="none"):
        read_metrics(path)


def test_a_part_is_loaded_by_module_and_attribute():
    with pytest.raises(AttributeError):
        study(tells=Tells(chapter="math:pie")).part("chapter")
    with pytest.raises(ModuleNotFoundError):
        study(tells=Tells(chapter="beholder.nowhere:x")).part("chapter")
    assert study().part("chapter") is None
    assert study(tells=Tells(chapter="math:tau")).part("chapter") == math.tau


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("part", ["chapter", "plan", "trials", "printed"])
def test_every_part_that_a_study_names_can_be_loaded(name: str, part: str):
    assert (STUDIES[name].part(part) is None) == (
        not getattr(STUDIES[name].tells if part == "chapter" else STUDIES[name].plans, part)
    )


def test_a_declaration_is_json_and_says_what_the_page_needs():
    declared = study(tells=Tells(limitations=("One.",))).declaration()
    assert json.loads(json.dumps(declared)) == declared
    assert (declared["title"], declared["question"], declared["limitations"]) == ("Mine", "Who?", ["One."])
    assert [Metric(**entry) for entry in declared["metrics"]] == list(study().measures.metrics)


def test_a_metric_is_found_by_its_name():
    known = study().metric("mine.gap")
    assert known is not None
    assert known.landmark == 0.0
    assert study().metric("gap") is None


def test_tasks_follow_what_the_model_can_do():
    plain = study()
    whole = study(
        Asks(
            tasks=lambda dataset: ["asked"],
            statements=lambda dataset: ["stated"],
            detector_tasks=lambda dataset: ["looked for"],
            compat_tasks=lambda dataset: ["as released"],
        )
    )
    nothing: Any = None
    assert whole.tasks_of(answers=True)(nothing) == ["asked"]
    assert whole.tasks_of(answers=False)(nothing) == ["stated"]
    assert whole.tasks_of(answers=False, detects=True)(nothing) == ["looked for"]
    assert whole.tasks_of(answers=True, compat=True)(nothing) == ["as released"]
    for options in ({"answers": False}, {"answers": False, "detects": True}, {"answers": True, "compat": True}):
        assert plain.tasks_of(**options)(nothing) == ["asked"]


def test_equal_options_give_equal_draws():
    first, second = (MeasureOptions(seed=3).rng().random(4).tolist() for _ in range(2))
    assert first == second != MeasureOptions(seed=4).rng().random(4).tolist()
    assert Option("word_vectors", "").flag == "--word-vectors"
