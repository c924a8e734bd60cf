"""Gaps and word vectors: the alignment of concepts, and whether its sign is that of the gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.study import Choices

PAIR = {"group": "man", "against": "woman"}
One = Callable[..., dict[str, Any]]


def test_gaps_are_compared_with_word_vectors(full: pl.DataFrame, one: One):
    man, woman = (np.array(words) / np.linalg.norm(words) for words in ((1, 0.1), (0.1, 1)))
    assert one(full, "word_alignment", **PAIR, concept="tie")["value"] == pytest.approx(man[0] - woman[0], abs=1e-6)
    concepts = ("tie", "handbag", "dog", "chair")
    near = {name: one(full, "word_alignment", **PAIR, concept=name)["value"] for name in concepts}
    gaps = {name: one(full, "ap_gap", **PAIR, concept=name)["value"] for name in concepts}
    share = np.mean([(near[name] > 0) == (gaps[name] > 0) for name in concepts])
    row = one(full, "word_agreement", subset="ap_gap", **PAIR)
    assert row["value"] == share
    assert (row["n"], row["landmark"]) == (4, 0.5)
    assert one(full, "word_correlation", subset="ap_gap")["value"] is None  # four concepts are too few


def test_a_smaller_error_counts_as_better_like_a_higher_precision(full: pl.DataFrame, one: One):
    """A tie's word is nearer to men's words: better for men agrees, whether in precision or in calibration."""
    near = {row["concept"]: row["value"] for row in rows_of(full, "word_alignment")}
    for gap, sign in (("ap_gap", 1), ("ece_gap", -1), ("miscalibration_gap", -1)):
        gaps = {row["concept"]: sign * row["value"] for row in rows_of(full, gap)}
        share = np.mean([(near[name] > 0) == (gaps[name] > 0) for name in near])
        assert one(full, "word_agreement", subset=gap, **PAIR)["value"] == share


def test_agreement_is_tested_with_shuffled_labels_of_images(
    object_world: Callable[..., ScoreMatrix], measure: Callable[..., pl.DataFrame], vectors: Path, one: One
):
    """Every image is scored alike for three concepts: their gaps are one number, so three signs prove nothing."""
    names = ("tie", "dog", "handbag")
    whole = object_world(300, names, {("woman", "tie"): 0.6}, seed=11)
    first = whole.dataset.objects.filter(pl.col("concept") == "tie")
    same = pl.concat([first.with_columns(concept=pl.lit(name)) for name in names])
    dataset = replace(whole.dataset, objects=same)
    copied = replace(whole, values=np.repeat(whole.values[:, :1], 3, axis=1), dataset=dataset)
    results = measure(copied, Choices(word_vectors=vectors), draws=400)
    row = one(results, "word_agreement", subset="ap_gap_matched", **PAIR)
    assert row["value"] in (1 / 3, 2 / 3)  # two of the three words are nearer to men's
    assert row["p_value"] > 0.4  # shuffled labels give one or the other
    assert row["expected"] == pytest.approx(0.5, abs=0.05)


def rows_of(results: pl.DataFrame, metric: str) -> list[dict[str, Any]]:
    return results.filter(pl.col("metric") == f"disparity.{metric}", **PAIR).to_dicts()


def test_groups_without_words_have_no_alignment(
    object_world: Callable[..., ScoreMatrix], measure: Callable[..., pl.DataFrame], vectors: Path, one: One
):
    results = measure(object_world(40, groups=("old", "young")), Choices(word_vectors=vectors))
    row = one(results, "word_alignment")
    assert row["value"] is None
    assert row["note"] == "coco has no words for old, young"
