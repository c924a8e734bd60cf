"""Women over men: the ratio over all branches compares like with like, and all subsets are judged together."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import gmean

from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE
from beholder.comparison.means import OPEN
from beholder.core.results import Row, results_table
from beholder.studies.exposure.chapter import exposure_findings
from beholder.studies.exposure.measures import CRUDE, EVERYONE, MEAN, RATIO, TYPICAL, count_rows, ratio_rows
from beholder.studies.study import MeasureOptions

OPTIONS = MeasureOptions(draws=100, shuffles=299)
WOMEN, MEN = (100, 80, 60, 40, 20), (20, 40, 60, 80, 100)


def made_people(captions: np.ndarray, women: tuple[int, ...] = WOMEN, men: tuple[int, ...] = MEN) -> pl.DataFrame:
    """Branch by branch, women before men."""
    sizes = [size for pair in zip(women, men, strict=True) for size in pair]
    table = pl.DataFrame(
        {
            "branch": np.repeat([f"branch {i // 2}" for i in range(len(sizes))], sizes),
            "gender": np.repeat(["woman", "man"] * len(women), sizes),
            "name": [f"person {i}" for i in range(sum(sizes))],
            "captions": captions.astype(int),
        }
    )
    return table.with_columns(ambiguous=pl.lit(None, pl.String))


def ratios(people: pl.DataFrame) -> dict[tuple[str | None, str | None], Row]:
    return {(row.subset, row.concept): row for row in ratio_rows(people, OPTIONS)}


@pytest.fixture
def people() -> pl.DataFrame:
    """Women get 85 % of the captions that men of their branch get; branches named often have many women."""
    table, rng = made_people(np.zeros(600)), np.random.default_rng(8)
    level = 400 / table["branch"].rank("dense").to_numpy()
    share = np.where(table["gender"] == "woman", 0.85, 1.0)
    return table.with_columns(captions=pl.Series((level * share * rng.normal(1, 0.1, 600)).round()).cast(pl.Int64))


def test_women_who_are_named_less_in_every_branch_are_named_less_over_all(people: pl.DataFrame):
    """Of five branches those named often have many women: over all people women are named more."""
    rows = ratios(people)
    assert all(rows[f"branch {i}", TYPICAL].value < 1 for i in range(5))
    assert rows[EVERYONE, CRUDE[TYPICAL]].value > 1.3
    assert rows[EVERYONE, TYPICAL].high < 1
    assert rows[EVERYONE, TYPICAL].verdict == DIFFERENCE
    table = results_table(count_rows(people, OPTIONS), study="exposure", model="m", dataset="apa")
    words = pl.DataFrame({"metric": ["exposure.category"], "value": [0.0], "n": [9000]})
    findings = exposure_findings(pl.concat([table, words.cast({"n": pl.Int64})], how="diagonal"))
    finding = next(each for each in findings if each.metric == RATIO)
    assert finding.headline == "Women are named less often than men"
    assert finding.shown
    assert finding.rows[0]["concept"] == TYPICAL
    assert "Over all people at once it is 1.4" in finding.sentence


def test_the_typical_ratio_over_all_branches_is_the_coefficient_of_a_model_with_branch_terms(people: pl.DataFrame):
    row = ratios(people)[EVERYONE, TYPICAL]
    branches = people["branch"].to_dummies().to_numpy()
    design = np.column_stack([people["gender"] == "woman", branches]).astype(float)
    logs = np.log1p(people["captions"].to_numpy())
    assert row.value == pytest.approx(np.exp(np.linalg.lstsq(design, logs, rcond=None)[0][0]))
    assert row.low < row.value < row.high


def test_the_mean_ratio_over_all_branches_is_mantel_and_haenszels(people: pl.DataFrame):
    top = bottom = 0.0
    for _, part in people.group_by("branch"):
        women, men = (part.filter(gender=group)["captions"] for group in ("woman", "man"))
        top += women.sum() * len(men) / part.height
        bottom += men.sum() * len(women) / part.height
    row = ratios(people)[EVERYONE, MEAN]
    assert row.value == pytest.approx(top / bottom)
    assert row.low < row.value < row.high


def test_branches_and_crude_ratios_are_of_means_and_of_geometric_means(people: pl.DataFrame):
    rows = ratios(people)
    for subset, concepts, part in (
        ("branch 3", (MEAN, TYPICAL), people.filter(branch="branch 3")),
        (EVERYONE, (CRUDE[MEAN], CRUDE[TYPICAL]), people),
    ):
        women, men = (part.filter(gender=group)["captions"].to_numpy() for group in ("woman", "man"))
        mean, typical = (rows[subset, concept] for concept in concepts)
        assert mean.value == pytest.approx(women.mean() / men.mean())
        assert typical.value == pytest.approx(gmean(1 + women) / gmean(1 + men))
    assert all(row.verdict is None for (_, concept), row in rows.items() if concept != TYPICAL)


@pytest.mark.parametrize("named", ["woman", "man"])
def test_one_group_always_named_and_the_other_never_is_found_from_ten_of_each_on(named: str):
    people = made_people(np.zeros(20), (10,), (10,))
    people = people.with_columns(captions=pl.when(gender=named).then(3).otherwise(0))
    rows = ratios(people)
    typical, mean = rows["branch 0", TYPICAL], rows["branch 0", MEAN]
    assert (typical.value, typical.verdict) == (pytest.approx(4 if named == "woman" else 1 / 4), DIFFERENCE)
    assert typical.low < typical.value < typical.high
    assert mean.value == (OPEN if named == "woman" else 0)
    assert mean.low <= mean.value <= mean.high


def test_opposite_differences_in_two_branches_do_not_cancel():
    rng = np.random.default_rng(5)
    level = np.repeat([4.0, 3.0, 3.0, 4.0], 30)
    rows = ratios(made_people(np.exp(rng.normal(level, 0.5)), (30, 30), (30, 30)))
    assert rows[EVERYONE, TYPICAL].verdict == NONE_FOUND
    assert [rows[f"branch {i}", TYPICAL].verdict for i in (0, 1)] == [DIFFERENCE, DIFFERENCE]


def test_a_branch_with_few_women_has_a_value_and_no_verdict():
    rows = ratios(made_people(np.arange(40) % 7, (10, 3), (10, 17)))
    assert rows["branch 1", TYPICAL].value > 0
    assert rows["branch 1", TYPICAL].verdict == TOO_LITTLE
    assert rows[EVERYONE, TYPICAL].verdict == NONE_FOUND


def test_where_branch_and_gender_are_the_same_the_crude_ratio_is_judged_and_the_row_says_so():
    row = ratios(made_people(np.arange(40) % 7, (20, 0), (0, 20)))[EVERYONE, TYPICAL]
    assert "gender and branch cannot be distinguished here" in row.note
    assert row.verdict == NONE_FOUND


@pytest.mark.slow
def test_log_normal_noise_is_called_in_few_worlds():
    rng, called = np.random.default_rng(2), 0
    for _ in range(100):
        rows = ratios(made_people(np.exp(rng.normal(3, 1.2, 90)), (10, 20), (40, 20)))
        called += any(row.verdict == DIFFERENCE for row in rows.values())
    assert called <= 10
