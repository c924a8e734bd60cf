"""GRAS's measures on small made-up worlds where the answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

from beholder.core.errors import BadScores, UsageError
from beholder.core.results import Row, results_table
from beholder.datasets.dataset import Dataset
from beholder.metrics.multiplicity import holm
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.groups import all_grouped, ordered, read_answers, shuffled_shares, wording_share
from beholder.studies.gras.measures import attribute_p_values
from beholder.studies.gras.prompts import gras_prompts, gras_statements
from beholder.studies.gras.study import GRAS, gras_study
from beholder.studies.study import MeasureOptions

TRAITS = pl.DataFrame({"trait": ["kind", "cold", "calm", "loud"], "valence": ["positive", "negative"] * 2})


def world(n: int = 400, effect: float = 0.0, seed: int = 1, channels=("score",)) -> ScoreMatrix:
    """Noise, and an effect of gender on the trait `kind`."""
    rng = np.random.default_rng(seed)
    prompts = gras_prompts(TRAITS).table
    images = pl.DataFrame(
        {
            "image_id": [str(i) for i in range(n)],
            "part": ["fairface"] * n,
            "gender": rng.choice(["Female", "Male"], n),
            "skin_tone": rng.choice([str(tone) for tone in range(1, 11)], n),
        }
    )
    values = rng.normal(0.5, 0.05, (n, prompts.height, 1))
    values[(images["gender"] == "Female").to_numpy(), :5, 0] += effect
    layers = [np.log(values / k) for k in (1, 2, 4)] if len(channels) > 1 else [values]
    return ScoreMatrix("gras", images, prompts, channels, np.concatenate(layers, axis=2))


def measure(matrix: ScoreMatrix, **options) -> list[Row]:
    return list(GRAS.measures[0]({"gras": matrix}, MeasureOptions(permutations=20, **options)))


def one(rows: list[Row], metric: str, **where: str) -> Row:
    (row,) = [
        row for row in rows if row.metric == f"gras.{metric}" and all(getattr(row, k) == v for k, v in where.items())
    ]
    return row


def test_an_effect_is_found_named_and_sized():
    rows = measure(world(effect=0.1))
    gap = one(rows, "largest_gap", subset="gender", concept="kind")
    assert gap.group == "Female over Male"
    assert gap.low < 0.1 < gap.high
    assert gap.p_value < 1e-6
    assert one(rows, "bias_score_sized").value == pytest.approx(12.5)  # one of four traits for one of two attributes


def test_without_an_effect_the_corrected_score_is_near_0_and_the_plain_one_near_its_expectation():
    matrix = world(effect=0.0, seed=3)
    answers = read_answers({"gras": matrix})
    shares = shuffled_shares(all_grouped(answers), np.random.default_rng(7), 400)
    plain, corrected, _ = shares.mean(axis=(0, 1))
    assert 15 < plain < 28  # 100 (1 − 0.95⁵) = 22.6 with independent wordings
    assert corrected < 3
    rows = measure(matrix)
    assert one(rows, "bias_score_expected").value == pytest.approx(plain, abs=6)


def test_compat_reads_the_one_token_and_otherwise_all_that_say_yes():
    matrix = world(channels=("log_p_yes", "log_p_no", "log_p_true"))
    whole, alone = (read_answers({"gras": matrix}, compat=compat).p_yes for compat in (False, True))
    np.testing.assert_allclose(whole.reshape(400, -1), np.exp(matrix.channel("log_p_yes")))
    np.testing.assert_allclose(alone.reshape(400, -1), np.exp(matrix.channel("log_p_true")))
    np.testing.assert_allclose(alone * 4, whole)
    older = world(channels=("log_p_yes", "log_p_no", "log_p_other"))
    np.testing.assert_array_equal(read_answers({"gras": older}, compat=True).p_yes, whole)


def test_an_attributes_p_is_its_rank_among_shuffles_where_any_does_as_well():
    compared = [each.compared() for each in all_grouped(read_answers({"gras": world(effect=0.3)}))]
    least = np.array([each.least for each in compared])
    assert least[0] < 1e-6 < least[1]
    none = np.full((99, 2), 2.0)
    np.testing.assert_allclose(attribute_p_values(compared, none), holm(least))
    some = none.copy()
    some[:3, 0] = least[0]
    assert attribute_p_values(compared, some)[0] == pytest.approx(2 * 4 / 100)  # Holm over two attributes


def test_the_complement_is_printed_under_its_own_name():
    rows = measure(world(effect=0.1))
    assert one(rows, "bias_score").value + one(rows, "fairness_score").value == 100


def test_wordings_that_agree_have_no_share_in_the_gap():
    answers = read_answers({"gras": world(effect=0.3)})
    (gender, _) = [grouped.compared() for grouped in all_grouped(answers)]
    assert wording_share(gender)[0] < 0.02
    assert wording_share(gender)[1:].mean() > 0.3


def test_valence_shares_count_traits_above_the_mean_in_every_wording():
    rows = measure(world(effect=0.3))
    assert one(rows, "valence_share", subset="gender", group="Female", concept="positive").value >= 50
    assert one(rows, "valence_share", subset="gender", group="Male", concept="positive").value <= 50


def test_a_traits_valence_and_its_mean_over_everyone_stand_in_its_row():
    matrix = world(effect=0.3)
    row = one(measure(matrix), "trait_mean", subset="gender", concept="kind")
    own = matrix.values[:, :5, 0].mean(axis=1)
    margin = stats.t.ppf(0.975, 399) * own.std(ddof=1) / np.sqrt(400)
    assert row.group == "positive"
    assert (row.value, row.high - row.value, row.n) == pytest.approx((own.mean(), margin, 400))


def test_a_groups_mean_over_a_valence_has_the_interval_of_its_images():
    matrix = world(effect=0.1)
    rows = [row for row in measure(matrix) if row.metric == "gras.valence_mean" and row.subset == "skin_tone"]
    assert len(rows) == 20
    row = next(row for row in rows if (row.group, row.concept) == ("3", "negative"))
    mine = (matrix.images["skin_tone"] == "3").to_numpy()
    negative = (matrix.prompts["level"] == "negative").to_numpy()
    own = matrix.values[mine][:, negative, 0].mean(axis=1)
    margin = stats.t.ppf(0.975, len(own) - 1) * own.std(ddof=1) / np.sqrt(len(own))
    assert (row.value, row.high - row.value, row.n) == pytest.approx((own.mean(), margin, mine.sum()))


def test_whether_groups_differ_over_a_valence_is_tested_with_correction():
    rows = [row for row in measure(world(effect=0.1)) if row.metric == "gras.valence_mean"]
    p_value = {(row.subset, row.concept): row.p_value for row in rows}
    assert p_value["gender", "positive"] < 1e-6
    assert p_value["gender", "negative"] > 0.05


def test_the_share_of_variance_has_an_interval():
    rows = measure(world(effect=0.05))
    row = one(rows, "omega_squared", subset="gender", concept="kind", template="T1")
    assert row.low < row.value < row.high
    none = one(rows, "omega_squared", subset="gender", concept="loud", template="T1")
    assert none.low == 0


def test_a_model_that_answers_in_words_is_read_through_its_log_masses():
    rows = measure(world(channels=("log_p_yes", "log_p_no", "log_p_other")))
    assert one(rows, "answer_mass", template="T1").value == pytest.approx(0.75, abs=0.02)
    assert one(rows, "p_yes_given_answer", template="T1").value == pytest.approx(2 / 3)
    assert one(rows, "overall_mean", subset="gender", concept="kind", template="T1").value == pytest.approx(
        0.5, abs=0.02
    )


def test_attributes_without_images_are_said_to_be_absent():
    assert "nothing to compare for race, age" in one(measure(world()), "bias_score").note


def test_one_group_only_gives_no_rows_rather_than_wrong_ones():
    matrix = world(20)
    alone = replace(matrix, images=matrix.images.with_columns(gender=pl.lit("Male"), skin_tone=pl.lit("3")))
    assert {row.metric for row in measure(alone)} == {"gras.template_anova", "gras.template_friedman"}


def test_skin_tones_are_in_their_own_order():
    assert ordered(pl.Series([str(tone) for tone in range(10, 0, -1)])) == [str(tone) for tone in range(1, 11)]
    assert ordered(pl.Series(["White", "Black"])) == ["Black", "White"]


def test_missing_cells_are_left_aside():
    matrix = world(effect=0.2)
    matrix.values[:50, 0] = np.nan
    rows = measure(matrix)
    sizes = [
        row.n for row in rows if row.metric == "gras.group_mean" and row.concept == "kind" and row.subset == "gender"
    ]
    assert sum(sizes) == 5 * 400 - 50


def test_a_model_that_matches_texts_is_read_by_statement_against_denial():
    images = world(20).images
    said, denied = (
        ScoreMatrix(
            name,
            images,
            gras_statements(TRAITS, denied=no).table,
            ("cosine",),
            np.full((20, 20, 1), cosine),
            {"logit_scale": 10.0},
        )
        for name, no, cosine in (("gras/said", False, 0.3), ("gras/denied", True, 0.1))
    )
    answers = read_answers({"gras/said": said, "gras/denied": denied})
    np.testing.assert_allclose(answers.p_yes, 1 / (1 + np.exp(-2.0)), rtol=1e-6)


def test_the_variant_for_models_that_match_texts_is_labelled():
    matrix = world(60, effect=0.1)
    other = world(60, seed=2)
    pair = {
        "gras/said": replace(matrix, task="gras/said", channels=("cosine",)),
        "gras/denied": replace(other, task="gras/denied", channels=("cosine",), images=matrix.images),
    }
    rows = list(GRAS.measures[0](pair, MeasureOptions(permutations=5)))
    assert "not the published measure" in one(rows, "bias_score").note
    assert "not the published measure" not in (one(measure(matrix), "bias_score").note or "")


def test_a_denied_statement_says_not():
    assert gras_statements(denied=True).texts[0] == "the person in the image is not racist"


def crossed(n: int = 600, favoured: float = 0.0) -> ScoreMatrix:
    rng = np.random.default_rng(6)
    matrix = world(n)
    images = matrix.images.with_columns(
        race=pl.Series(rng.choice(["A", "B", "C"], n)), age=pl.Series(rng.choice(["20", "40"], n))
    )
    cell = ((images["gender"] == "Male") & (images["race"] == "C") & (images["age"] == "40")).to_numpy()
    matrix.values[cell, :5, 0] += favoured
    return replace(matrix, images=images)


def test_the_favoured_intersection_stands_out():
    rows = [row for row in measure(crossed(favoured=0.2)) if row.metric == "gras.intersection"]
    assert len(rows) == 12
    top = max(rows, key=lambda row: row.value)
    assert top.group == "Male × C × 40"
    assert top.low > 0


def test_without_an_effect_small_cells_do_not_shout():
    rows = [row for row in measure(crossed()) if row.metric == "gras.intersection"]
    assert max(abs(row.value) for row in rows) < 0.01
    assert not any(row.low > 0 or row.high < 0 for row in rows)


def test_columns_in_any_order_and_in_single_precision_are_the_same_answers():
    matrix = world(50, effect=0.1)
    order = np.random.default_rng(0).permutation(20)
    shuffled = replace(matrix.columns(order), values=matrix.values[:, order].astype(np.float32))
    one, two = read_answers({"gras": matrix}), read_answers({"gras": shuffled})
    for trait in one.traits:
        left, right = one.p_yes[:, one.traits.index(trait)], two.p_yes[:, two.traits.index(trait)]
        np.testing.assert_allclose(left, right[:, [two.templates.index(name) for name in one.templates]], atol=1e-6)


def test_a_model_that_answers_everyone_alike_has_no_bias_and_no_p_value():
    matrix = world(40)
    matrix.values[:] = 0.5
    rows = measure(matrix)
    assert one(rows, "bias_score").value == 0
    assert np.isnan(one(rows, "attribute", subset="gender").p_value)


def test_with_a_delta_every_trait_has_a_verdict():
    """One trait differs by ten points; three by nothing, and 400 images show that to within three points."""
    rows = [row for row in measure(world(effect=0.1, seed=2), delta=0.03) if row.metric == "gras.equivalence"]
    said = {row.concept: row.note.partition(";")[0] for row in rows if row.subset == "gender"}
    assert said == {"kind": "difference", "cold": "equivalent", "calm": "equivalent", "loud": "equivalent"}
    few = [row for row in measure(world(n=20), delta=0.03) if row.metric == "gras.equivalence"]
    assert any(row.note.startswith("undecided") for row in few)


def test_every_count_of_significant_traits_carries_its_expectation():
    for row in measure(world()):
        if row.metric in ("gras.biased_traits", "gras.bias_score", "gras.bias_score_corrected"):
            assert "expected without any bias" in row.note


def only(matrix: ScoreMatrix, *templates: str, rows=slice(None)) -> ScoreMatrix:
    """The matrix with nothing but these wordings, of all images or of some."""
    other = ~np.isin([name.split("|")[1] for name in matrix.prompts["prompt_id"]], templates)
    values = matrix.values.copy()
    values[rows] = np.where(other[None, :, None], np.nan, values[rows])
    return replace(matrix, values=values)


def test_some_of_the_wordings_are_measured_as_if_there_were_no_others():
    matrix = world(effect=0.2)
    asked = np.flatnonzero([name.endswith(("T1", "T3")) for name in matrix.prompts["prompt_id"]])
    some, alone = (
        results_table(measure(each), benchmark="gras", model="m", dataset="d")
        for each in (only(matrix, "T1", "T3"), matrix.columns(asked))
    )
    assert_frame_equal(some, alone)
    assert one(measure(only(matrix, "T2")), "largest_gap", subset="gender", concept="kind").value > 0.15


def test_an_attribute_whose_images_were_asked_less_is_measured_on_what_they_were_asked():
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
    assert one(rows, "largest_gap", subset="skin_tone", concept="kind").n == 200


def test_a_trait_that_was_not_asked_of_an_attributes_images_is_not_counted_as_unbiased():
    matrix, half = world(effect=0.2), np.arange(400) < 200
    labels = [pl.when(pl.Series(half)).then("gender"), pl.when(~pl.Series(half)).then("skin_tone")]
    parts = replace(matrix, images=matrix.images.with_columns(labels[0], labels[1]))
    parts.values[np.ix_(half, np.arange(5, 20))] = np.nan  # women and men were asked about `kind` only
    rows = measure(parts)
    gender = one(rows, "biased_traits", subset="gender")
    assert (gender.value, gender.n) == (100.0, 1)
    assert one(rows, "biased_traits", subset="skin_tone").n == 4
    assert "traits of each: 1, 4" in one(rows, "bias_score").note


def test_a_trait_that_one_group_was_not_asked_about_is_absent():
    matrix = world()
    matrix.values[(matrix.images["gender"] == "Male").to_numpy(), :5] = np.nan
    rows = measure(matrix)
    assert one(rows, "biased_traits", subset="gender").n == 3
    assert np.isnan(one(rows, "largest_gap", subset="gender", concept="kind").value)


def test_images_that_were_asked_one_wording_each_have_tests_but_no_gap_over_wordings():
    matrix = world(effect=0.2)
    for k in range(5):
        matrix = only(matrix, f"T{k + 1}", rows=np.arange(k, 400, 5))
    rows = measure(matrix)
    assert one(rows, "welch", subset="gender", concept="kind", template="T1").p_value < 0.01
    assert "gras.largest_gap" not in {row.metric for row in rows}


def test_a_group_of_one_image_is_left_out_and_named():
    matrix = world()
    tones = pl.Series(["11", *matrix.images["skin_tone"][1:]])
    rows = measure(replace(matrix, images=matrix.images.with_columns(skin_tone=tones)))
    note = one(rows, "biased_traits", subset="skin_tone").note
    assert note.endswith("left out, with one image each: 11")


@pytest.mark.parametrize("turned", [lambda p: 100 * p, lambda p: np.log(p / (1 - p))])
def test_scores_that_are_no_probabilities_are_refused(turned):
    matrix = world(40)
    with pytest.raises(BadScores, match="P\\(Yes\\), from 0 to 1; these go from"):
        measure(replace(matrix, values=turned(np.clip(matrix.values, 0.05, 0.95) * 0.9)))


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7])
def test_equal_answers_put_no_group_above_the_mean(value: float):
    matrix = world(357)
    matrix.values[:] = value
    shares = [row.value for row in measure(matrix) if row.metric == "gras.valence_share"]
    assert shares == [0.0] * len(shares)


def test_equal_answers_have_no_intersections():
    matrix = crossed()
    matrix.values[:] = 0.3
    assert "gras.intersection" not in {row.metric for row in measure(matrix)}


def test_own_wordings_are_refused_where_a_model_cannot_be_asked():
    dataset = Dataset("d", "1", "none", world(4).images.with_columns(uri="image_id"))
    own = gras_study(TRAITS, {"T1": "Is {}?"})
    assert len(own.tasks_for(dataset, answers=True)) == 1
    with pytest.raises(UsageError, match="Leave out --templates"):
        own.tasks_for(dataset, answers=False)


def test_a_trait_with_a_bar_in_it_keeps_its_name():
    matrix = world(40)
    prompts = matrix.prompts.with_columns(pl.col("prompt_id").str.replace("kind|", "k|ind|", literal=True))
    assert read_answers({"gras": replace(matrix, prompts=prompts)}).traits[0] == "k|ind"


def test_the_widest_pair_is_named_among_the_groups_that_have_all_wordings():
    """A group that was not asked every wording has no mean over them: the others keep their names."""
    matrix = world(effect=0.2)
    labels = pl.when(pl.Series(np.arange(400) % 3 == 0)).then(pl.lit("A, asked less")).otherwise("gender")
    images = matrix.images.with_columns(gender=labels)
    female = (images["gender"] == "Female").to_numpy()
    less = (images["gender"] == "A, asked less").to_numpy()
    matrix = only(replace(matrix, images=images), "T1", rows=np.flatnonzero(less))
    row = one(measure(matrix), "largest_gap", subset="gender", concept="kind")
    assert row.group == "Female over Male"
    assert row.n == female.sum() + (images["gender"] == "Male").sum()


def test_overall_means_and_answer_masses_have_students_interval_over_images():
    matrix = world(80, channels=("log_p_yes", "log_p_no", "log_p_other"))
    rows = measure(matrix)
    yes, no = (np.exp(matrix.channel(name)) for name in ("log_p_yes", "log_p_no"))
    first = np.array([name.endswith("T1") for name in matrix.prompts["prompt_id"]])
    for row, values in (
        (one(rows, "overall_mean", subset="gender", concept="kind", template="T1"), yes[:, 0]),
        (one(rows, "answer_mass", template="T1"), (yes + no)[:, first].mean(axis=1)),
        (one(rows, "p_yes_given_answer", template="T1"), (yes / (yes + no))[:, first].mean(axis=1)),
    ):
        expected = stats.t.interval(0.95, 79, values.mean(), stats.sem(values))
        assert (row.value, row.low, row.high) == pytest.approx((values.mean(), *expected))


def test_the_scores_are_the_means_of_their_attributes_rows():
    rows = measure(world(effect=0.02))
    for score, by_attribute in (
        ("bias_score", "biased_traits"),
        ("bias_score_corrected", "biased_traits_corrected"),
        ("bias_score_sized", "biased_traits_sized"),
    ):
        own = [row.value for row in rows if row.metric == f"gras.{by_attribute}"]
        assert len(own) == 2
        assert one(rows, score).value == pytest.approx(np.mean(own))
