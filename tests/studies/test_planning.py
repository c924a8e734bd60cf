"""What the studies' plans share."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from beholder.comparison.groups import People, groups_of, strata_of
from beholder.comparison.power import Scores
from beholder.core.results import Row, results_table
from beholder.studies.rows import Planned, PlanOptions, detectable_rows, of_run, plan_rows

ROW = Row("plan.detectable", 0.1, 60, "probability", subset="s.gap", concept="gender", note="2 groups of 30")


def test_without_an_effect_there_is_only_the_detectable_one():
    assert list(plan_rows(ROW, None, PlanOptions())) == [ROW]


def test_an_effect_adds_how_many_images_it_takes_rounded_up():
    detectable, needed = plan_rows(ROW, 240.1, PlanOptions(effect=0.05, power=0.9))
    assert detectable == ROW
    assert (needed.metric, needed.value, needed.unit) == ("plan.images_needed", 241.0, "images")
    assert needed.note == "to find 0.05 with 90 % power; 2 groups of 30"
    assert (needed.subset, needed.concept, needed.n) == (ROW.subset, ROW.concept, ROW.n)


def test_an_earlier_run_is_asked_for_its_metric_and_place():
    rows = [Row("s.gap", 0.1, 9, "x", subset="a"), Row("s.gap", 0.2, 9, "x", subset="b"), Row("s.big_gap", 0.3, 9, "x")]
    run = results_table(rows, study="s", model="m", dataset="d")
    lent = of_run(PlanOptions(results=run), "gap", subset="b")
    assert lent is not None
    assert lent["value"].to_list() == [0.2]
    assert of_run(PlanOptions(), "gap") is None


@pytest.mark.slow
def test_more_comparisons_and_strata_make_a_difference_harder_to_find():
    table = pl.DataFrame(
        {"gender": ["woman"] * 20 + ["man"] * 20, "branch": (["a"] * 4 + ["b"]) * 4 + ["a", *"bbbb"] * 4}
    )
    people, (groups,) = People(np.arange(40)), groups_of(table, ["gender"])
    one = Planned("s.gap", groups, Scores(0.25, mean=0.5), "assumed")
    many, within = one._replace(columns=20), one._replace(strata=strata_of(table, groups, ["branch"], people))
    (a,), (b,), (c,) = (list(detectable_rows([each], people, PlanOptions())) for each in (one, many, within))
    assert a.value < b.value
    assert a.value < c.value
    assert c.note == "2 groups of 20 people: the smallest group against the other; within branch; assumed"


def test_groups_that_are_too_small_leave_the_rest_of_the_plan():
    table = pl.DataFrame({"gender": ["woman", "man"] * 10, "city": ["here"] * 18 + ["there"] * 2})
    planned = [Planned("s.gap", each, Scores(), "assumed") for each in groups_of(table, ["gender", "city"])]
    gender, city = detectable_rows(planned, People(np.arange(20)), PlanOptions())
    assert gender.value > 0
    assert (city.verdict, city.note.partition(":")[0]) == ("too little data", "2 groups of 2 to 18 people")
