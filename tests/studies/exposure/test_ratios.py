"""Women over men: the ratio over all branches compares like with like, and branches are corrected for their number."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import gmean

from beholder.core.results import Row, results_table
from beholder.studies.exposure.findings import exposure_findings
from beholder.studies.exposure.measures import count_rows
from beholder.studies.exposure.ratios import CRUDE, EVERYONE, MEAN, RATIO, TYPICAL, corrected, ratio_rows
from beholder.studies.exposure.trials import UNEQUAL, made_people, true_ratio
from beholder.studies.study import MeasureOptions

OPTIONS = MeasureOptions(draws=300)


def ratios(people: pl.DataFrame) -> dict[tuple[str | None, str | None], Row]:
    return {(row.subset, row.concept): row for row in count_rows(people, OPTIONS) if row.metric == RATIO}


@pytest.fixture
def people() -> pl.DataFrame:
    return made_people(UNEQUAL, 0.85, np.random.default_rng(8))


def test_women_who_are_named_less_in_every_branch_are_named_less_over_all(people: pl.DataFrame):
    """Of five branches those named often have many women: over all people women are named more."""
    steady = people.with_columns(captions=_steady(people))
    rows = ratios(steady)
    assert all(rows[f"branch {i}", TYPICAL].value < 1 for i in range(5))
    assert rows[EVERYONE, CRUDE[TYPICAL]].low > 1
    assert rows[EVERYONE, TYPICAL].high < 1
    table = results_table(count_rows(steady, OPTIONS), benchmark="exposure", model="m", dataset="apa")
    words = pl.DataFrame({"metric": ["exposure.category"], "value": [0.0], "n": [9000]})
    findings = exposure_findings(pl.concat([table, words.cast({"n": pl.Int64})], how="diagonal"))
    finding = next(each for each in findings if each.metric == RATIO)
    assert finding.headline == "Women are named less often than men"
    assert finding.shown
    assert finding.rows[0]["concept"] == TYPICAL
    assert "Over all people at once the ratio is 1.4" in finding.sentence


def _steady(people: pl.DataFrame) -> pl.Series:
    """Captions that hardly differ within a branch: women get 85 % of men's."""
    level = 400 / people["branch"].rank("dense")
    noise = np.random.default_rng(3).normal(1, 0.1, people.height)
    return (level * noise * (0.85 + 0.15 * (people["gender"] == "man"))).round().cast(pl.Int64)


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
    assert ratios(people)[EVERYONE, MEAN].value == pytest.approx(top / bottom)


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
        assert all(row.low < row.value < row.high for row in (mean, typical))
    assert all(row.p_value is None for (_, concept), row in rows.items() if concept != TYPICAL)


def test_branches_are_corrected_for_their_number_and_the_pooled_ratio_is_not(people: pl.DataFrame):
    raw = [
        row
        for (name,), part in [*people.group_by(["branch"], maintain_order=True), ((EVERYONE,), people)]
        for row in ratio_rows(part, str(name), OPTIONS)
    ]
    after = {row.subset: row.p_value for row in corrected(raw) if row.concept == TYPICAL}
    before = {row.subset: row.p_value for row in raw if row.concept == TYPICAL}
    assert after.pop(EVERYONE) == before.pop(EVERYONE)
    ranked, running = sorted(before, key=lambda name: before[name] or 1.0), 0.0
    for place, name in enumerate(ranked):
        running = max(running, min(1.0, (5 - place) * (before[name] or 1.0)))
        assert after[name] == pytest.approx(running)


def test_a_branch_with_few_women_is_left_out_of_the_pooled_ratio_and_named(people: pl.DataFrame):
    few = people.filter(
        (pl.col("branch") != "branch 4") | (pl.col("gender") == "man") | (pl.int_range(pl.len()) % 9 == 0)
    )
    assert 0 < few.filter(branch="branch 4", gender="woman").height < 5
    row = ratios(few)[EVERYONE, TYPICAL]
    assert "without branch 4: fewer than 5 women or men" in row.note
    assert row.value == pytest.approx(ratios(few.filter(pl.col("branch") != "branch 4"))[EVERYONE, TYPICAL].value)


def test_the_true_ratio_of_a_world_is_that_of_many_people():
    large = UNEQUAL._replace(women=tuple(400 * n for n in UNEQUAL.women), men=tuple(400 * n for n in UNEQUAL.men))
    people = made_people(large, 0.6, np.random.default_rng(1))
    rows = _values(people)
    for concept in (TYPICAL, CRUDE[TYPICAL], MEAN):
        assert rows[concept] == pytest.approx(true_ratio(large, 0.6, concept), rel=0.03)


def _values(people: pl.DataFrame) -> dict[str, float]:
    """The ratios without any draw."""
    part = people.with_columns(log=pl.col("captions").log1p())
    cells = part.group_by("branch", "gender").agg(pl.len(), pl.col("log").mean(), pl.col("captions").mean())
    sides = cells.filter(gender="woman").join(cells.filter(gender="man"), on="branch")
    weight = sides["len"] * sides["len_right"] / (sides["len"] + sides["len_right"])
    crude = [part.filter(gender=group)["log"].mean() for group in ("woman", "man")]
    return {
        TYPICAL: float(np.exp((weight * (sides["log"] - sides["log_right"])).sum() / weight.sum())),
        MEAN: float((weight * sides["captions"]).sum() / (weight * sides["captions_right"]).sum()),
        CRUDE[TYPICAL]: float(np.exp(crude[0] - crude[1])),
    }
