"""Where P-FI and APA answer in opposite ways about the same people, one sentence reconciles them."""

from __future__ import annotations

import polars as pl

from beholder._run import Run
from beholder.comparison.family import verdict_of
from beholder.core.results import Row, results_table
from beholder.studies.pfi.chapter import CHAPTER


def answers(study: str, b: float, option: str, women: float, men: float, *, p_value: float = 0.01) -> pl.DataFrame:
    rows = [Row(f"{study}.bias_ratio", b, 109, "ratio", subset="athletes", low=b - 0.1, high=b + 0.1, p_value=p_value)]
    rows = [row._replace(verdict=verdict_of(p_value, 30)) for row in rows]
    rows += [
        Row(f"{study}.occupation_probability", value, 50, "probability", subset="athletes", group=group, concept=word)
        for word, both in ((option, (women, men)), ("teacher", (0.01, 0.02)))
        for group, value in zip(("woman", "man"), both, strict=True)
    ]
    return results_table(rows, study=study, model="bridge", dataset="apa")


def reconciled(*parts: pl.DataFrame) -> list[str]:
    return [each.sentence for each in Run(pl.concat(parts)).findings if "opposite ways" in each.headline]


def test_opposite_answers_are_reconciled_by_their_options():
    apa, pfi = answers("apa", 0.62, "actress", 0.3, 0.01), answers("pfi", 1.41, "coach", 0.03, 0.22)
    assert reconciled(apa, pfi) == [
        "b is 0.62 (0.52–0.72) among APA's options and 1.41 (1.31–1.51) among P-FI's, for the same athletes. Both hold"
        ": a ratio belongs to the options that are offered together. With APA's options “actress” takes 30 % of the "
        "belief about women and 1.0 % of the belief about men. With P-FI's options “coach” takes 3.0 % of the belief "
        "about women and 22 % of the belief about men."
    ]


def test_answers_that_agree_or_are_not_found_need_no_reconciling():
    apa = answers("apa", 0.62, "actress", 0.3, 0.01)
    assert reconciled(apa, answers("pfi", 0.7, "coach", 0.03, 0.22)) == []
    assert reconciled(apa, answers("pfi", 1.41, "coach", 0.03, 0.22, p_value=0.2)) == []
    assert reconciled(apa) == []


def test_limits_of_the_prompts_are_said_of_people_who_are_there():
    def said(branch: str) -> str:
        rows = [Row("pfi.association", 0.5, 9, "probability", subset=branch, concept="specialty", chance=1 / 7)]
        return " ".join(CHAPTER.limitations(results_table(rows, study="pfi", model="m", dataset="apa")))

    assert "no prompts for actors" in said("actors")
    assert "Athletes of sports without a prompt" in said("athletes")
    assert said("senate") == ""
