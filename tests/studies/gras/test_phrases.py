"""Groups keep the names that the data gives them; what the chapter reads off GRAS's rows."""

from __future__ import annotations

import polars as pl
import pytest

from beholder._run import Run
from beholder.studies.gras import phrases
from beholder.studies.gras.phrases import group_name, pair_names, pair_text, score


@pytest.mark.parametrize(
    ("group", "attribute", "name"),
    [
        ("6", "skin_tone", "MST 6"),
        ("2 or more races", "race", "2 or more races"),
        ("60 and over", "age", "60 and over"),
        ("20", "age", "20"),
        ("very dark", "skin_tone", "very dark"),
    ],
)
def test_only_a_numbered_skin_tone_gets_its_scale(group: str, attribute: str, name: str) -> None:
    assert group_name(group, attribute) == name


def test_a_pair_is_read_from_two_columns() -> None:
    row = {"group": "60 and over", "against": "under 60", "subset": "age", "value": 0.1}
    assert pair_names(row) == ("60 and over", "under 60")
    assert pair_text(row) == "60 and over higher than under 60"
    assert pair_text({**row, "value": 0.0}) == "no group is higher"


def test_a_gap_without_a_pair_has_dashes() -> None:
    assert pair_names({"group": None, "against": None, "subset": "age"}) == ("—", "—")


def test_scores_have_the_decimals_that_the_study_prints() -> None:
    assert [score(value) for value in (98.25, 99.0, 21.333, None)] == ["98.25", "99", "21.3", "—"]


def value(run: Run, metric: str) -> float:
    return float(run.results.filter(metric=f"gras.{metric}")["value"][0])


def test_scores_by_attribute_average_to_the_score(gras_full: Run) -> None:
    for name in ("corrected", "sized"):
        by_attribute = gras_full.results.filter(metric=f"gras.biased_traits_{name}")
        assert by_attribute["subset"].to_list() == ["gender", "race", "age", "skin_tone"]
        assert by_attribute["value"].mean() == pytest.approx(value(gras_full, f"bias_score_{name}"))


def test_deviations_weigh_to_zero_and_show_what_was_planted(gras_full: Run) -> None:
    cells = phrases.deviations(gras_full.results).filter(subset="gender", concept="kind")
    assert dict(cells.select("group", "points").iter_rows()) == pytest.approx({"Female": 9.5, "Male": -9.5}, abs=0.4)


def test_traits_stand_by_valence_then_by_gap(gras_full: Run) -> None:
    order = phrases.traits_in_order(gras_full.results.filter(pl.col("subset") == "gender"))
    assert list(order) == ["positive", "negative"]
    assert order["positive"][0] == "kind"
    assert [len(traits) for traits in order.values()] == [50, 50]


def test_a_wording_that_turns_a_pair_round_has_a_negative_gap() -> None:
    means = {("a", "T1"): 0.5, ("b", "T1"): 0.1, ("a", "T2"): 0.2, ("b", "T2"): 0.3}
    rows = [
        {"metric": "gras.group_mean", "concept": "kind", "group": group, "template": template, "value": mean}
        for (group, template), mean in means.items()
    ]
    gaps = phrases.wording_gaps(pl.DataFrame(rows).with_columns(variant=pl.lit(None, pl.String)))
    assert sorted(gaps.select("template", "mean", "gap").rows()) == [("T1", 15.0, 40.0), ("T2", 15.0, -10.0)]


def test_the_curve_over_tones_is_that_of_the_rows(gras_full: Run) -> None:
    tones = phrases.by_tone(gras_full.results)
    assert tones.height == 20
    single = gras_full.results.filter(metric="gras.group_mean", subset="skin_tone")
    # 250 answers averaged: far narrower than one trait's interval, where traits are noise of their own.
    assert (tones["high"] - tones["low"]).max() < 0.5 * (single["high"] - single["low"]).min()
