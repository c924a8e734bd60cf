"""GRAS's answers are laid out by trait and wording, whatever the model gives, and its groups compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from beholder.core.errors import BadScores
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.groups import DENIALS, STATEMENTS, all_grouped, read_answers
from beholder.studies.gras.prompts import gras_prompts, gras_statements

TRAITS = pl.DataFrame({"trait": ["kind", "cold", "calm", "loud"], "valence": ["positive", "negative"] * 2})


def test_compat_reads_the_one_token_and_otherwise_all_that_say_yes(world):
    matrix = world(channels=("log_p_yes", "log_p_no", "log_p_true"))
    whole, alone = (read_answers({"gras": matrix}, compat=compat).p_yes for compat in (False, True))
    np.testing.assert_allclose(whole.reshape(400, -1), np.exp(matrix.channel("log_p_yes")))
    np.testing.assert_allclose(alone.reshape(400, -1), np.exp(matrix.channel("log_p_true")))
    np.testing.assert_allclose(alone * 4, whole)
    older = world(channels=("log_p_yes", "log_p_no", "log_p_other"))
    np.testing.assert_array_equal(read_answers({"gras": older}, compat=True).p_yes, whole)


@pytest.mark.parametrize("column", ["person", "name", "identity"])
def test_people_are_told_by_any_of_the_columns_that_say_who_is_shown(column, world):
    matrix = world(40)
    images = matrix.images.with_columns(pl.Series(column, [str(i // 2) for i in range(40)]))
    grouped = all_grouped(read_answers({"gras": replace(matrix, images=images)}))
    assert [each.repeated for each in grouped] == [True, True]
    assert [len(each.people) for each in grouped] == [20, 20]


def test_skin_tones_are_in_their_own_order(world):
    (_, tones) = all_grouped(read_answers({"gras": world()}))
    assert tones.groups.names == [str(tone) for tone in range(1, 11)]


def test_a_model_that_matches_texts_is_read_by_statement_against_denial(world):
    images = world(20).images
    stated, denied = (
        ScoreMatrix(
            name,
            images,
            gras_statements(TRAITS, denied=no).table,
            ("cosine",),
            np.full((20, 20, 1), cosine),
            {"logit_scale": 10.0},
        )
        for name, no, cosine in ((STATEMENTS, False, 0.3), (DENIALS, True, 0.1))
    )
    answers = read_answers({STATEMENTS: stated, DENIALS: denied})
    np.testing.assert_allclose(answers.p_yes, 1 / (1 + np.exp(-2.0)), rtol=1e-6)


def test_columns_in_any_order_and_in_single_precision_are_the_same_answers(world):
    matrix = world(50, effect=0.1)
    order = np.random.default_rng(0).permutation(20)
    shuffled = replace(matrix.columns(order), values=matrix.values[:, order].astype(np.float32))
    first, second = read_answers({"gras": matrix}), read_answers({"gras": shuffled})
    for trait in first.traits:
        left, right = first.p_yes[:, first.traits.index(trait)], second.p_yes[:, second.traits.index(trait)]
        columns = [second.templates.index(name) for name in first.templates]
        np.testing.assert_allclose(left, right[:, columns], atol=1e-6)


@pytest.mark.parametrize("turned", [lambda p: 100 * p, lambda p: np.log(p / (1 - p))])
def test_scores_that_are_no_probabilities_are_refused(turned, world, measure):
    matrix = world(40)
    with pytest.raises(BadScores, match="P\\(Yes\\), from 0 to 1; these go from"):
        measure(replace(matrix, values=turned(np.clip(matrix.values, 0.05, 0.95) * 0.9)))


def test_a_trait_with_a_bar_in_it_keeps_its_name(world):
    matrix = world(40)
    prompts = gras_prompts(TRAITS.with_columns(pl.col("trait").replace("kind", "k|ind"))).table
    assert read_answers({"gras": replace(matrix, prompts=prompts)}).traits == ["k|ind", "cold", "calm", "loud"]
