"""Calibration by concept and group: the published errors, miscalibration, reliability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from beholder.comparison.family import DIFFERENCE
from beholder.metrics.calibration import Calibrated, miscalibration
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.disparity.findings import disparity_findings
from beholder.studies.disparity.scores import read_concept_scores
from beholder.studies.disparity.study import Choices

PAIR = {"group": "man", "against": "woman"}
One = Callable[..., dict[str, Any]]
Measure = Callable[..., pl.DataFrame]
World = Callable[..., ScoreMatrix]


def test_the_published_errors_of_a_detector_are_measured(matrix: ScoreMatrix, results: pl.DataFrame, one: One):
    data = read_concept_scores(matrix, None)
    women = data.codes == 1
    cells = data.scores[women, 0]
    expected = Calibrated(cells, data.present[women, 0]).errors(np.ones((len(cells), 1)))
    for metric, value in zip(("ece", "ece_adaptive", "brier"), expected, strict=True):
        row = one(results, metric, group="woman", concept="tie")
        assert row["value"] == pytest.approx(value[0], abs=1e-6)
        assert row["low"] <= row["value"] <= row["high"]
    both = [one(results, "ece", group=group, concept="tie")["value"] for group in ("man", "woman")]
    assert one(results, "ece_gap", **PAIR, concept="tie")["value"] == pytest.approx(both[0] - both[1], abs=1e-6)


def test_miscalibration_and_its_gap_are_measured(matrix: ScoreMatrix, results: pl.DataFrame, one: One):
    data = read_concept_scores(matrix, None)
    women = data.codes == 1
    share = data.present[:, 0].mean()
    pair = [
        miscalibration(data.scores[members, 0], data.present[members, 0], prevalence=share)
        for members in (~women, women)
    ]
    for group, expected in zip(("man", "woman"), pair, strict=True):
        row = one(results, "miscalibration", group=group, concept="tie")
        assert row["value"] == pytest.approx(expected.value, abs=1e-12)
        assert row["low"] < row["value"] < row["high"]
        assert f"root {100 * expected.value**0.5:.1f} points" in row["note"]
    gap = one(results, "miscalibration_gap", **PAIR, concept="tie")
    assert gap["value"] == pytest.approx(pair[0].value - pair[1].value, abs=1e-12)
    assert gap["n"] == len(data.codes)


@pytest.mark.slow
def test_the_gap_is_tested_with_plain_shuffles(matrix: ScoreMatrix, results: pl.DataFrame, one: One):
    """400 shuffles written out: among images with the concept, and among those without; the largest of all counts."""
    data, rng = read_concept_scores(matrix, None), np.random.default_rng(4)
    raw = []
    for column in range(4):
        scores, present = data.scores[:, column], data.present[:, column]
        gaps = []
        for draw in range(401):
            labels = data.codes.copy()
            for part in (present, ~present) if draw else ():
                labels[part] = rng.permutation(data.codes[part])
            sides = (
                miscalibration(scores[labels == g], present[labels == g], prevalence=present.mean()) for g in (0, 1)
            )
            gaps.append(np.subtract(*(side.value for side in sides)))
        raw.append((np.array(gaps) - np.mean(gaps)) / np.std(gaps))
    deviates = np.abs(np.stack(raw))
    together = [(deviates[:, 1:].max(axis=0) >= own).mean() for own in deviates[:, 0]]
    rows = [one(results, "miscalibration_gap", **PAIR, concept=name) for name in data.concepts]
    np.testing.assert_allclose([row["p_value"] for row in rows], together, atol=0.12)
    for row in rows:
        assert (row["verdict"] == DIFFERENCE) == (row["low"] > 0 or row["high"] < 0)


def test_a_blind_and_calibrated_scorer_has_no_gap_of_calibration(object_world: World, measure: Measure):
    """Twelve concepts that women are shown with five times as often; confidence is right for all images together."""
    names = tuple(f"thing {number}" for number in range(12))
    rare = {(group, name): share for name in names for group, share in (("man", 0.08), ("woman", 0.4))}
    whole = object_world(600, names, rare=rare, channel="cosine", seed=5)
    data = read_concept_scores(whole, None)
    share = data.present.mean(axis=0)
    confidence = expit(logit(share) + 2.0 * data.scores - 2.0)  # scores are 2 higher where the concept is there
    results = measure(replace(whole, values=confidence[:, :, None].astype(np.float32), channels=("presence",)))
    gaps = results.filter(pl.col("metric") == "disparity.miscalibration_gap")
    assert gaps["p_value"].null_count() == 0
    assert (gaps["p_value"] > 0.05).all()
    (finding,) = [each for each in disparity_findings(results) if each.kind == "calibration"]
    assert finding.headline.startswith("No gap in calibration was found")
    assert not finding.shown


def test_cosines_are_converted_to_probabilities_only_on_request(object_world: World, measure: Measure, one: One):
    cosines = object_world(1000, channel="cosine")
    (absent,) = measure(cosines).filter(pl.col("metric") == "disparity.ece").to_dicts()
    assert absent["value"] is None
    assert "--calibration platt" in absent["note"]
    row = one(measure(cosines, Choices(calibration="platt")), "ece", group="man", concept="tie")
    assert row["value"] < 0.06
    assert "cross-validated" in row["note"]


def test_a_group_of_one_image_has_no_calibration_gap_with_an_interval(object_world: World, measure: Measure, one: One):
    """An interval around one image would have width 0, which claims the opposite of what is known."""
    whole = object_world(300)
    keep = (whole.images["gender"] == "man").to_numpy()
    keep[np.flatnonzero(~keep)[0]] = True
    results = measure(whole.rows(keep))
    for metric in ("ece_gap", "ece_adaptive_gap", "brier_gap", "miscalibration_gap"):
        row = one(results, metric, **PAIR, concept="tie")
        assert row["low"] is None
        assert "fewer than 5" in row["note"]
        assert row["n"] == keep.sum()


def test_cells_of_one_image_are_not_independent_evidence(results: pl.DataFrame):
    """All concepts together: four cells per image; the interval is over images and the note says what n counts."""
    rows = results.filter((pl.col("metric") == "disparity.reliability") & pl.col("concept").is_null())
    row = rows.filter(pl.col("n") > 300).row(0, named=True)
    assert "n counts image × concept" in row["note"]
    assert row["low"] < row["value"] < row["high"]


def test_reliability_bins_hold_every_cell_and_their_mean_confidence(matrix: ScoreMatrix, results: pl.DataFrame):
    rows = results.filter(pl.col("metric") == "disparity.reliability", pl.col("concept").is_null())
    assert rows.group_by("group").agg(pl.col("n").sum())["n"].to_list() == [1200, 1200]
    data = read_concept_scores(matrix, None)
    for code, group in enumerate(data.groups.names):
        bins = rows.filter(group=group)
        mean = np.average(bins["expected"], weights=bins["n"])
        assert mean == pytest.approx(data.scores[data.codes == code].mean())
