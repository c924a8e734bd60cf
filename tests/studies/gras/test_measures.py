"""GRAS's rows against a plain loop with scipy, and in small made-up worlds where the answer is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

from beholder.core.results import Row, results_table
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.groups import DENIALS, STATEMENTS
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS
from beholder.studies.study import MeasureOptions

TRAITS = {"kind": "positive", "cold": "negative", "calm": "positive", "loud": "negative", "wise": "positive"}
WORDINGS = ("T1", "T2", "T3", "T4", "T5")
GENDERS, RACES = ("Female", "Male"), ("Black", "Indian", "White")
OPTIONS = MeasureOptions(permutations=40, shuffles=499)


@pytest.fixture(scope="module")
def matrix() -> ScoreMatrix:
    """Half the traits differ by gender or race a little, so that of several wordings some are called and some not."""
    rng, n = np.random.default_rng(11), 150
    prompts = gras_prompts(pl.DataFrame({"trait": list(TRAITS), "valence": list(TRAITS.values())})).table
    images = pl.DataFrame(
        {
            "image_id": [str(i) for i in range(n)],
            "part": ["fairface"] * n,
            "gender": rng.choice(GENDERS, n),
            "race": rng.choice(RACES, n),
        }
    )
    values = rng.beta(20, 20, (n, prompts.height, 1))
    values[(images["gender"] == "Female").to_numpy(), :10, 0] += 0.03
    values[(images["race"] == "Indian").to_numpy(), 20:, 0] -= 0.04
    return ScoreMatrix("gras", images, prompts, ("score",), values)


@pytest.fixture(scope="module")
def rows(matrix: ScoreMatrix) -> list[Row]:
    return list(GRAS.measures.functions[0]({"gras": matrix}, OPTIONS))


def named(rows: list[Row], metric: str) -> list[Row]:
    return [row for row in rows if row.metric == f"gras.{metric}"]


def plain(rows: list[Row], attribute: str, trait: str) -> Row:
    """The published gap."""
    (row,) = [
        row for row in named(rows, "largest_gap") if (row.subset, row.concept, row.variant) == (attribute, trait, None)
    ]
    return row


def scores(matrix: ScoreMatrix, trait: str, wording: str, **group: str) -> np.ndarray:
    """The answers to one question about the images of some groups."""
    asked = list(matrix.prompts.select("concept", "template").iter_rows())
    images = [
        k
        for k, row in enumerate(matrix.images.iter_rows(named=True))
        if all(row[attribute] == value for attribute, value in group.items())
    ]
    return matrix.values[images, asked.index((trait, wording)), 0]


def scipys(matrix: ScoreMatrix) -> Iterator[tuple[str, str, str, float, float]]:
    """Attribute, trait, wording, statistic and p of scipy's Welch tests."""
    for attribute, groups in (("gender", GENDERS), ("race", RACES)):
        for trait in TRAITS:
            for wording in WORDINGS:
                parts = [scores(matrix, trait, wording, **{attribute: group}) for group in groups]
                if len(parts) == 2:
                    found = stats.ttest_ind(*parts, equal_var=False)
                else:
                    found = stats.f_oneway(*parts, equal_var=False)
                yield attribute, trait, wording, found.statistic, found.pvalue


def test_every_test_is_scipys(matrix: ScoreMatrix, rows: list[Row]):
    found = {(row.subset, row.concept, row.template): row for row in named(rows, "welch")}
    expected = list(scipys(matrix))
    assert len(found) == len(expected) == 2 * 5 * 5
    for attribute, trait, wording, statistic, p_value in expected:
        row = found[attribute, trait, wording]
        assert (row.value, row.p_value) == pytest.approx((statistic, p_value))


def simes(p_values: list[float]) -> float:
    return min(len(p_values) * p / (place + 1) for place, p in enumerate(sorted(p_values)))


def test_scores_count_the_traits_that_are_called(matrix: ScoreMatrix, rows: list[Row]):
    """Published: any wording has p ≤ 0.05. Corrected: Simes over wordings, then Benjamini–Hochberg over traits."""
    p_values = {(a, t): [] for a in ("gender", "race") for t in TRAITS}
    for attribute, trait, _, _, p_value in scipys(matrix):
        p_values[attribute, trait].append(p_value)
    plain, corrected = [], []
    for attribute in ("gender", "race"):
        mine = [p_values[attribute, trait] for trait in TRAITS]
        plain.append(100 * np.mean([min(each) <= 0.05 for each in mine]))
        adjusted = stats.false_discovery_control([simes(each) for each in mine])
        corrected.append(100 * np.mean(adjusted <= 0.05))
    assert 0 < np.mean(corrected) < np.mean(plain), "corrections that change nothing would prove nothing"
    found = {row.subset: row.value for row in named(rows, "biased_traits")}
    assert [found["gender"], found["race"]] == pytest.approx(plain)
    for metric, value in (("bias_score", np.mean(plain)), ("bias_score_corrected", np.mean(corrected))):
        (row,) = named(rows, metric)
        assert (row.value, row.n) == (pytest.approx(value), 5)
        assert row.note.endswith("nothing to compare for age, skin_tone")
    (complement,) = named(rows, "fairness_score")
    assert complement.value == pytest.approx(100 - np.mean(plain))


def test_the_expected_score_is_that_of_scipys_tests_on_shuffled_labels(matrix: ScoreMatrix, rows: list[Row]):
    """A plain loop with other shuffles: the means of 40 agree up to their scatter."""
    rng, scores = np.random.default_rng(0), []
    for _ in range(40):
        shares = []
        for attribute, groups in (("gender", GENDERS), ("race", RACES)):
            labels = rng.permutation(matrix.images[attribute].to_numpy())
            parts = [matrix.values[labels == group, :, 0] for group in groups]
            test = stats.ttest_ind if len(parts) == 2 else stats.f_oneway
            shares.append(100 * (test(*parts, equal_var=False).pvalue.reshape(5, 5) <= 0.05).any(axis=1).mean())
        scores.append(np.mean(shares))
    (row,) = named(rows, "bias_score_expected")
    assert row.value == pytest.approx(np.mean(scores), abs=5 * np.std(scores) / np.sqrt(40))
    assert row.low < row.value < row.high
    (score,) = named(rows, "bias_score")
    assert (score.expected, score.p_value, score.verdict) == (row.value, None, None)


def test_valence_shares_count_the_traits_above_the_mean_in_every_wording(matrix: ScoreMatrix, rows: list[Row]):
    found = {(row.group, row.concept): row for row in named(rows, "valence_share")}
    assert len(found) == 2 * (2 + 3)
    for group, valence in found:
        attribute = "gender" if group in GENDERS else "race"
        mine = [trait for trait in TRAITS if TRAITS[trait] == valence]
        above = [
            all(
                scores(matrix, trait, wording, **{attribute: group}).mean() > scores(matrix, trait, wording).mean()
                for wording in WORDINGS
            )
            for trait in mine
        ]
        assert found[group, valence].value == pytest.approx(100 * np.mean(above))
        assert found[group, valence].n == len(mine)


def test_intersections_are_pulled_from_their_own_means_towards_the_mean(matrix: ScoreMatrix, rows: list[Row]):
    """Without pooling: positive minus negative, over the images of the intersection."""
    own = {}
    for gender in GENDERS:
        for race in RACES:
            by_valence = [
                np.mean(
                    [
                        scores(matrix, trait, wording, gender=gender, race=race)
                        for trait in TRAITS
                        for wording in WORDINGS
                        if TRAITS[trait] == valence
                    ]
                )
                for valence in ("positive", "negative")
            ]
            own[f"{gender} × {race}"] = by_valence[0] - by_valence[1]
    judged = {row.group: row for row in named(rows, "intersection") if row.variant == "within each intersection"}
    people = {
        name: len(scores(matrix, "kind", "T1", gender=g, race=r))
        for g in GENDERS
        for r in RACES
        for name in [f"{g} × {r}"]
    }
    mean = np.average([own[name] for name in people], weights=list(people.values()))
    assert {name: row.value for name, row in judged.items()} == pytest.approx({k: v - mean for k, v in own.items()})
    pooled = {row.group: row for row in named(rows, "intersection") if row.variant is None}
    assert set(pooled) == set(own)
    for group, row in pooled.items():
        assert abs(row.value) <= abs(own[group] - mean) + 1e-3
        assert row.low < row.value < row.high
        assert row.verdict == judged[group].verdict


# Small worlds


def test_an_effect_is_found_named_and_sized(world, measure, one):
    rows = measure(world(effect=0.1))
    plain, gap = (row for row in named(rows, "largest_gap") if (row.subset, row.concept) == ("gender", "kind"))
    assert (plain.group, plain.against, plain.verdict) == ("Female", "Male", "difference found")
    assert (gap.group, gap.against, gap.variant) == ("Female", "Male", "within skin_tone")
    assert gap.low < 0.1 < gap.high
    assert (gap.p_value, gap.p_at_most) == (pytest.approx(1 / 500), True)
    assert one(rows, "bias_score_shown").value == pytest.approx(12.5)
    assert one(rows, "bias_score_sized").value == pytest.approx(12.5)  # one of four traits for one of two attributes


def test_without_an_effect_nothing_is_found_and_the_score_is_near_that_of_shuffled_labels(world, measure, one):
    rows = measure(world(effect=0.0, seed=3))
    assert 15 < one(rows, "bias_score_expected").value < 28  # 100 (1 − 0.95⁵) = 22.6 with independent wordings
    assert one(rows, "bias_score_corrected").value < 3
    assert one(rows, "bias_score_shown").value == 0
    assert not any(row.verdict == "difference found" for row in rows)


def test_an_attribute_has_the_widest_gap_of_its_traits_and_the_least_p(world, measure, one):
    """One quantity: the gap of means over all wordings, never the mean of each wording's own widest gap."""
    rows = measure(world(effect=0.1))
    for attribute in ("gender", "skin_tone"):
        gaps = [row for row in rows if row.metric == "gras.largest_gap" and row.subset == attribute]
        others = [row.p_value for row in rows if row.metric == "gras.other_gap" and row.subset == attribute]
        row = one(rows, "attribute", subset=attribute)
        assert row.value == max(gap.value for gap in gaps if gap.variant is None)
        assert row.p_value == min(*(gap.p_value for gap in gaps if gap.variant), *others)


def test_the_complement_is_printed_under_its_own_name(world, measure, one):
    rows = measure(world(effect=0.1))
    assert one(rows, "bias_score").value + one(rows, "fairness_score").value == 100


def test_valence_shares_count_traits_above_the_mean_in_every_wording(world, measure, one):
    rows = measure(world(effect=0.3))
    assert one(rows, "valence_share", subset="gender", group="Female", concept="positive").value >= 50
    assert one(rows, "valence_share", subset="gender", group="Male", concept="positive").value <= 50


def test_a_traits_valence_and_its_mean_over_everyone_stand_in_its_row(world, measure, one):
    matrix = world(effect=0.3)
    row = one(measure(matrix), "trait_mean", subset="gender", concept="kind")
    own = matrix.values[:, :5, 0].mean(axis=1)
    margin = stats.t.ppf(0.975, 399) * own.std(ddof=1) / np.sqrt(400)
    assert row.group == "positive"
    assert (row.value, row.high - row.value, row.n) == pytest.approx((own.mean(), margin, 400))


def test_a_groups_mean_over_a_valence_has_the_interval_of_its_images(world, measure):
    matrix = world(effect=0.1)
    rows = [row for row in measure(matrix) if row.metric == "gras.valence_mean" and row.subset == "skin_tone"]
    assert len(rows) == 20
    row = next(row for row in rows if (row.group, row.concept) == ("3", "negative"))
    mine = (matrix.images["skin_tone"] == "3").to_numpy()
    negative = (matrix.prompts["valence"] == "negative").to_numpy()
    own = matrix.values[mine][:, negative, 0].mean(axis=1)
    margin = stats.t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / np.sqrt(len(own))
    assert (row.value, row.high - row.value, row.n) == pytest.approx((own.mean(), margin, mine.sum()))


def test_the_share_of_variance_has_an_interval(world, measure, one):
    rows = measure(world(effect=0.05))
    row = one(rows, "omega_squared", subset="gender", concept="kind", template="T1")
    assert row.low < row.value < row.high
    none = one(rows, "omega_squared", subset="gender", concept="loud", template="T1")
    assert none.low == 0


def test_a_model_that_answers_in_words_is_read_through_its_log_masses(world, measure, one):
    rows = measure(world(channels=("log_p_yes", "log_p_no", "log_p_other")))
    assert one(rows, "answer_mass", template="T1").value == pytest.approx(0.75, abs=0.02)
    assert one(rows, "p_yes_given_answer", template="T1").value == pytest.approx(2 / 3)
    assert one(rows, "overall_mean", subset="gender", concept="kind", template="T1").value == pytest.approx(
        0.5, abs=0.02
    )


def test_attributes_without_images_are_said_to_be_absent(world, measure, one):
    assert "nothing to compare for race, age" in one(measure(world()), "bias_score").note


def test_one_group_only_gives_no_rows_rather_than_wrong_ones(world, measure):
    matrix = world(20)
    alone = replace(matrix, images=matrix.images.with_columns(gender=pl.lit("Male"), skin_tone=pl.lit("3")))
    metrics = {"template_anova", "template_friedman", "wording_range", "wording_sensitive"}
    assert {row.metric for row in measure(alone)} == {f"gras.{name}" for name in metrics}


def test_missing_cells_are_left_aside(world, measure):
    matrix = world(effect=0.2)
    matrix.values[:50, 0] = np.nan
    rows = measure(matrix)
    sizes = [
        row.n for row in rows if row.metric == "gras.group_mean" and row.concept == "kind" and row.subset == "gender"
    ]
    assert sum(sizes) == 5 * 400 - 50


def test_the_variant_for_models_that_match_texts_is_labelled(world, measure, one):
    matrix = world(60, effect=0.1)
    other = world(60, seed=2)
    pair = {
        STATEMENTS: replace(matrix, task=STATEMENTS, channels=("cosine",)),
        DENIALS: replace(other, task=DENIALS, channels=("cosine",), images=matrix.images),
    }
    rows = list(GRAS.measures.functions[0](pair, MeasureOptions(permutations=5, shuffles=99)))
    assert all(row.variant.endswith("statement against denial") for row in rows)
    assert not any("denial" in (row.variant or "") for row in measure(matrix))


@pytest.mark.slow
def test_the_favoured_intersection_stands_out(measure, crossed):
    rows = [row for row in measure(crossed(favoured=0.2)) if row.metric == "gras.intersection" and row.variant]
    assert len(rows) == 12
    top = max(rows, key=lambda row: row.value)
    assert (top.group, top.verdict) == ("Male × C × 40", "difference found")
    assert top.low > 0


@pytest.mark.slow
def test_without_an_effect_small_cells_do_not_shout(measure, crossed):
    rows = [row for row in measure(crossed()) if row.metric == "gras.intersection"]
    assert max(abs(row.value) for row in rows if not row.variant) < 0.01
    assert not any(row.verdict == "difference found" for row in rows)


def test_a_model_that_answers_everyone_alike_has_no_bias(world, measure, one):
    matrix = world(40)
    matrix.values[:] = 0.5
    rows = measure(matrix)
    assert one(rows, "bias_score").value == 0
    assert not any(row.verdict == "difference found" for row in rows)


def test_with_a_delta_every_trait_has_a_verdict(world, measure):
    """One trait differs by ten points; three by nothing, and 400 images show that to within three points."""
    rows = [row for row in measure(world(effect=0.1, seed=2), delta=0.03) if row.metric == "gras.equivalence"]
    verdicts = {row.concept: row.equivalence for row in rows if row.subset == "gender"}
    assert {row.delta for row in rows} == {0.03}
    assert verdicts == {"kind": "difference", "cold": "equivalent", "calm": "equivalent", "loud": "equivalent"}
    few = [row for row in measure(world(n=20), delta=0.03) if row.metric == "gras.equivalence"]
    assert any(row.equivalence == "undecided" for row in few)


def test_every_count_of_significant_traits_carries_its_expectation(world, measure):
    for row in measure(world()):
        if row.metric in ("gras.biased_traits", "gras.bias_score"):
            assert 0 <= row.expected < 50


def test_some_of_the_wordings_are_measured_as_if_there_were_no_others(world, measure, one, only):
    matrix = world(effect=0.2)
    asked = np.flatnonzero(matrix.prompts["template"].is_in(["T1", "T3"]))
    some, alone = (
        results_table(measure(each), study="gras", model="m", dataset="d")
        for each in (only(matrix, "T1", "T3"), matrix.columns(asked))
    )
    assert_frame_equal(some, alone)
    assert plain(measure(only(matrix, "T2")), "gender", "kind").value > 0.15


def test_an_attribute_whose_images_were_asked_less_is_measured_on_what_they_were_asked(world, measure, one, only):
    """Two parts that were asked in different wordings: each attribute has its own."""
    matrix, half = world(effect=0.2), np.arange(400) < 200
    labels = [pl.when(pl.Series(half)).then("gender"), pl.when(~pl.Series(half)).then("skin_tone")]
    parts = replace(matrix, images=matrix.images.with_columns(labels[0], labels[1]))
    rows = measure(only(parts, "T1", "T2", rows=~half))
    wordings = {
        name: {row.template for row in rows if row.metric == "gras.welch" and row.subset == name}
        for name in ("gender", "skin_tone")
    }
    assert wordings == {"gender": {"T1", "T2", "T3", "T4", "T5"}, "skin_tone": {"T1", "T2"}}
    assert plain(rows, "skin_tone", "kind").n == 200


def test_a_trait_that_was_not_asked_of_an_attributes_images_is_not_counted_as_unbiased(world, measure, one):
    matrix, half = world(effect=0.2), np.arange(400) < 200
    labels = [pl.when(pl.Series(half)).then("gender"), pl.when(~pl.Series(half)).then("skin_tone")]
    parts = replace(matrix, images=matrix.images.with_columns(labels[0], labels[1]))
    parts.values[np.ix_(half, np.arange(5, 20))] = np.nan  # women and men were asked about `kind` only
    rows = measure(parts)
    gender = one(rows, "biased_traits", subset="gender")
    assert (gender.value, gender.n) == (100.0, 1)
    assert one(rows, "biased_traits", subset="skin_tone").n == 4
    assert "traits of each: 1, 4" in one(rows, "bias_score").note


def test_a_trait_that_one_group_was_not_asked_about_is_absent(world, measure, one):
    matrix = world()
    matrix.values[(matrix.images["gender"] == "Male").to_numpy(), :5] = np.nan
    rows = measure(matrix)
    assert one(rows, "biased_traits", subset="gender").n == 3
    assert np.isnan(plain(rows, "gender", "kind").value)


def test_images_that_were_asked_one_wording_each_have_tests_but_no_gap_over_wordings(world, measure, one, only):
    matrix = world(effect=0.2)
    for k in range(5):
        matrix = only(matrix, f"T{k + 1}", rows=np.arange(k, 400, 5))
    rows = measure(matrix)
    assert one(rows, "welch", subset="gender", concept="kind", template="T1").p_value < 0.01
    assert "gras.largest_gap" not in {row.metric for row in rows}


def test_a_group_of_one_image_is_left_out_and_named(world, measure, one):
    matrix = world()
    tones = pl.Series(["11", *matrix.images["skin_tone"][1:]])
    rows = measure(replace(matrix, images=matrix.images.with_columns(skin_tone=tones)))
    note = one(rows, "biased_traits", subset="skin_tone").note
    assert note.endswith("left out, with one image each: 11")


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7])
def test_equal_answers_put_no_group_above_the_mean(value: float, world, measure):
    matrix = world(357)
    matrix.values[:] = value
    shares = [row.value for row in measure(matrix) if row.metric == "gras.valence_share"]
    assert shares == [0.0] * len(shares)


@pytest.mark.slow
def test_equal_answers_have_no_intersections(measure, crossed):
    matrix = crossed()
    matrix.values[:] = 0.3
    assert "gras.intersection" not in {row.metric for row in measure(matrix)}


def test_the_widest_pair_is_named_among_the_groups_that_have_all_wordings(world, measure, one, only):
    """A group that was not asked every wording has no mean over them: the others keep their names."""
    matrix = world(effect=0.2)
    labels = pl.when(pl.Series(np.arange(400) % 3 == 0)).then(pl.lit("A, asked less")).otherwise("gender")
    images = matrix.images.with_columns(gender=labels)
    female = (images["gender"] == "Female").to_numpy()
    less = (images["gender"] == "A, asked less").to_numpy()
    matrix = only(replace(matrix, images=images), "T1", rows=np.flatnonzero(less))
    row = plain(measure(matrix), "gender", "kind")
    assert (row.group, row.against) == ("Female", "Male")
    assert row.n == female.sum() + (images["gender"] == "Male").sum()


def test_overall_means_and_answer_masses_have_students_interval_over_images(world, measure, one):
    matrix = world(80, channels=("log_p_yes", "log_p_no", "log_p_other"))
    rows = measure(matrix)
    yes, no = (np.exp(matrix.channel(name)) for name in ("log_p_yes", "log_p_no"))
    first = (matrix.prompts["template"] == "T1").to_numpy()
    for row, values in (
        (one(rows, "overall_mean", subset="gender", concept="kind", template="T1"), yes[:, 0]),
        (one(rows, "answer_mass", template="T1"), (yes + no)[:, first].mean(axis=1)),
        (one(rows, "p_yes_given_answer", template="T1"), (yes / (yes + no))[:, first].mean(axis=1)),
    ):
        expected = stats.t.interval(0.95, 79, values.mean(), stats.sem(values))
        assert (row.value, row.low, row.high) == pytest.approx((values.mean(), *expected))


def test_the_scores_are_the_means_of_their_attributes_rows(world, measure, one):
    rows = measure(world(effect=0.02))
    for score, by_attribute in (
        ("bias_score", "biased_traits"),
        ("bias_score_corrected", "biased_traits_corrected"),
        ("bias_score_sized", "biased_traits_sized"),
    ):
        own = [row.value for row in rows if row.metric == f"gras.{by_attribute}"]
        assert len(own) == 2
        assert one(rows, score).value == pytest.approx(np.mean(own))
