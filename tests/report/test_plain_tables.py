"""Studies and metrics without tables of their own get plain ones."""

from __future__ import annotations

from types import SimpleNamespace

from beholder._run import Run
from beholder.core.results import Row, results_table


def tables(run: Run):
    return run.report.sections[0].tables


def test_an_unknown_study_still_gets_a_table() -> None:
    results = results_table([Row("new.metric", 0.5, 3, "points")], study="new", model="m", dataset="d")
    (table,) = tables(Run(results))
    assert table.rows[0][-1].text == "0.5"


def test_a_users_own_metric_gets_a_table_after_the_studys_own(apa_run: Run, make: SimpleNamespace) -> None:
    ours = tables(apa_run)
    row = make.share("apa.indecision", 0.25, subset="senate", concept="occupation")
    apa_run.add(results_table([row], study="apa", model="clip", dataset="apa"))
    assert tables(apa_run)[:-1] == ours
    own = tables(apa_run)[-1]
    assert own.title == "apa.indecision"
    assert own.rows[0][0].text == "senate"


def test_a_users_own_metric_stands_apart_from_prompts(custom_run: Run, make: SimpleNamespace) -> None:
    row = make.share("custom.indecision", 0.25, subset="gender", group="woman")
    custom_run.add(results_table([row], study="custom", model="clip", dataset="photos"))
    titles = [table.title for table in tables(custom_run)]
    assert titles == ["Gaps between groups", "Prompts of level mood by gender", "custom.indecision"]
