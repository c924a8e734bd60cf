"""Measures of exposure: every number against numpy or scipy, planted differences found, and absent where nothing is."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from beholder.comparison.family import DIFFERENCE, NONE_FOUND
from beholder.core.results import Row
from beholder.studies.exposure.counting import Counts, Tally
from beholder.studies.exposure.measures import (
    ADJUSTED,
    CHANGE,
    EVERYONE,
    MEAN,
    METRICS,
    TYPICAL,
    UNADJUSTED,
    _medians,
    count_rows,
    identity_rows,
    word_rows,
)
from beholder.studies.exposure.mentions import WORD_TERMS
from beholder.studies.study import MeasureOptions

OPTIONS = MeasureOptions(draws=300, shuffles=299)


def world(n: int = 120, *, seed: int = 1, **columns: Any) -> pl.DataFrame:
    """Two branches; men are named 2.7 times as often, and who is named more is known better, by e-folds."""
    rng = np.random.default_rng(seed)
    woman, branch = np.arange(n) % 3 == 0, np.array(["a", "b"])[np.arange(n) % 2]
    captions = rng.poisson(np.exp(rng.normal(np.where(woman, 1.0, 2.0), 0.8)))
    known = 0.5 * np.log1p(captions) + 2 * (branch == "b") + rng.normal(0, 0.1, n)
    table = {
        "branch": branch,
        "name": [f"person {i}" for i in range(n)],
        "gender": np.where(woman, "woman", "man"),
        "ambiguous": pl.Series([None] * n, dtype=pl.String),
        "captions": captions,
        "known": known,
        "gain": known,
    }
    return pl.DataFrame(table | columns)


def by_key(rows: Any) -> dict[tuple[str, ...], Row]:
    return {(row.metric, row.subset, row.group or row.concept): row for row in rows}


def test_means_medians_and_shares_are_those_of_the_people():
    people = world()
    rows = by_key(count_rows(people, OPTIONS))
    for subset in ("a", "b", EVERYONE):
        for group in ("woman", "man"):
            mine = people.filter(gender=group)
            counts = (mine if subset == EVERYONE else mine.filter(branch=subset))["captions"].to_numpy()
            assert rows["exposure.captions", subset, group].value == pytest.approx(counts.mean())
            assert rows["exposure.captions_median", subset, group].value == np.median(counts)
            assert rows["exposure.never", subset, group].value == pytest.approx((counts == 0).mean())
            for metric in ("captions", "captions_median", "never"):
                row = rows[f"exposure.{metric}", subset, group]
                assert row.n == len(counts)
                assert row.low <= row.value <= row.high


def test_the_median_of_a_draw_is_that_of_the_people_drawn():
    rng = np.random.default_rng(3)
    for n in (6, 7):
        values = rng.poisson(4, n).astype(float)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=40).astype(float)
        expected = [np.median(np.repeat(values, often.astype(int))) for often in weights]
        assert _medians(values, weights).tolist() == expected


def test_ambiguous_names_are_left_out_and_every_row_says_how_many():
    flagged = ["one word"] * 4 + [None] * 116
    people = world(ambiguous=pl.Series(flagged, dtype=pl.String))
    clear = people.tail(116)
    rows = by_key([*count_rows(people, OPTIONS), *identity_rows(people, OPTIONS)])
    mean = rows["exposure.captions", EVERYONE, "woman"]
    assert mean.value == pytest.approx(clear.filter(gender="woman")["captions"].mean())
    assert all("left out: ambiguous names" in row.note for row in rows.values())
    assert "4 of 120" in mean.note


def test_nobody_named_is_zero_and_has_no_ratio_and_no_correlation():
    people = world(captions=np.zeros(120, int))
    rows = by_key([*count_rows(people, OPTIONS), *identity_rows(people, OPTIONS)])
    assert rows["exposure.captions", EVERYONE, "woman"].value == 0
    assert rows["exposure.captions", EVERYONE, "woman"].low is None
    assert rows["exposure.never", EVERYONE, "man"].value == 1
    assert rows["exposure.ratio", EVERYONE, MEAN].value is None
    assert ("exposure.ratio", EVERYONE, TYPICAL) not in rows
    correlation = rows["exposure.identity_correlation", EVERYONE, None]
    assert correlation.value is None
    assert "nothing to correlate" in correlation.note
    assert rows["exposure.identity_gap", EVERYONE, UNADJUSTED].value is not None
    assert np.isnan(rows["exposure.identity_gap", EVERYONE, ADJUSTED].value)


def test_few_people_named_get_no_interval():
    captions = np.zeros(120, int)
    captions[:6] = 9
    rows = by_key(count_rows(world(captions=captions), OPTIONS))
    assert rows["exposure.captions", EVERYONE, "woman"].low is None
    assert "fewer than 5" in rows["exposure.captions", EVERYONE, "woman"].note


def test_a_branch_of_women_alone_has_no_ratio_and_no_gap():
    rows = by_key(
        [*count_rows(world(gender=["woman"] * 120), OPTIONS), *identity_rows(world(gender=["woman"] * 120), OPTIONS)]
    )
    assert not any(metric == "exposure.ratio" for metric, _, _ in rows)
    assert rows["exposure.captions", "a", "man"].value is None
    assert not any(metric == "exposure.identity_gap" for metric, _, _ in rows)


def test_correlations_are_spearmans_within_branch_and_gender():
    people = world()
    rows = by_key(identity_rows(people, OPTIONS))
    for subset in ("a", "b", EVERYONE):
        mine = people if subset == EVERYONE else people.filter(branch=subset)
        ranks = mine.select("branch", "gender", pl.col("captions", "known").rank())
        left = ranks.select(pl.col("captions", "known") - pl.col("captions", "known").mean().over("branch", "gender"))
        row = rows["exposure.identity_correlation", subset, None]
        assert row.value == pytest.approx(np.corrcoef(left.to_numpy().T)[0, 1])
        assert (row.verdict, row.n) == (DIFFERENCE, mine.height)
        assert 0 < row.low < row.value < row.high <= 1


def test_a_model_that_knows_gender_only_has_no_link_with_captions():
    """Men are named more often, and known better, all of them alike."""
    noise = np.random.default_rng(8).normal(0, 0.1, 120)
    known = noise + np.where(world()["gender"] == "man", 3.0, 0.0)
    row = by_key(identity_rows(world(known=known), OPTIONS))["exposure.identity_correlation", EVERYONE, None]
    assert spearmanr(world()["captions"], known).pvalue < 0.01
    assert row.verdict == NONE_FOUND


def test_a_gap_that_captions_make_is_gone_at_equal_exposure():
    people = world(300)
    rows = by_key(identity_rows(people, OPTIONS))
    before, after, change = (rows["exposure.identity_gap", EVERYONE, which] for which in (UNADJUSTED, ADJUSTED, CHANGE))
    assert (before.verdict, after.verdict, change.verdict) == (DIFFERENCE, NONE_FOUND, None)
    assert before.high < 1
    assert after.low < 1 < after.high
    assert change.value == pytest.approx(after.value / before.value)
    woman, branches = (people["gender"] == "woman").to_numpy(), people["branch"].to_dummies().to_numpy()
    for row, covariates in ((before, []), (after, [np.log1p(people["captions"])])):
        design = np.column_stack([woman, branches, *covariates]).astype(float)
        assert row.value == pytest.approx(np.exp(np.linalg.lstsq(design, people["gain"], rcond=None)[0][0]))


def test_where_captions_say_who_is_a_woman_nothing_is_said_at_equal_exposure():
    captions = np.where(world()["gender"] == "woman", 0, 7)
    rows = by_key(identity_rows(world(captions=captions), OPTIONS))
    assert np.isnan(rows["exposure.identity_gap", EVERYONE, ADJUSTED].value)
    assert rows["exposure.identity_gap", EVERYONE, UNADJUSTED].value is not None


def test_people_who_share_their_labels_with_nobody_are_left_out_and_counted():
    known = world()["known"].to_list()
    rows = list(identity_rows(world(known=[None, None, *known[2:]]), OPTIONS))
    assert all("2 people share all labels with nobody" in row.note for row in rows)
    assert {row.n for row in rows if row.subset == EVERYONE} == {118}


def test_people_with_another_gender_word_are_neither_women_nor_men():
    people, others = world(), world(30, seed=9, gender=["another"] * 30, known=np.ones(30))
    alone, beside = (by_key(identity_rows(each, OPTIONS)) for each in (people, pl.concat([people, others])))
    for which in (UNADJUSTED, ADJUSTED, CHANGE):
        key = "exposure.identity_gap", EVERYONE, which
        assert beside[key] == alone[key]
    assert beside["exposure.identity_correlation", EVERYONE, None].n == 150


def test_words_are_counted_by_level_and_the_gendered_one_names_its_group():
    counts = Counts(np.arange(len(WORD_TERMS) + 2), np.full(len(WORD_TERMS) + 2, 7), [Tally("a", captions=500)])
    rows = list(word_rows(counts, 2))
    assert [row.value for row in rows] == list(range(2, len(WORD_TERMS) + 2))
    assert {row.concept: row.group for row in rows if row.group} == {"actress": "woman", "actor": "man"}
    assert all(row.n == 500 and row.note.startswith("7 more") for row in rows)


def test_every_row_has_a_meaning_and_its_unit():
    people, units = world(), {metric.name: metric.unit for metric in METRICS}
    rows = [*count_rows(people, OPTIONS), *identity_rows(people, OPTIONS)]
    assert {row.metric for row in rows} | {"exposure.category"} == set(units)
    assert all(row.unit == units[row.metric] for row in rows)


def test_equal_seeds_give_equal_rows():
    people = world()
    assert list(identity_rows(people, OPTIONS)) == list(identity_rows(people, OPTIONS))
