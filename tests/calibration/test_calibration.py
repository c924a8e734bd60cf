"""Calibration: seeded, resumable, right about what it knows, and a reduced version of what is promised."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.metrics import average_precision_score
from typer.testing import CliRunner

from beholder.calibration import repeat as repeating
from beholder.calibration.experiments import chosen_experiments, experiments
from beholder.calibration.repeat import Block, repeat, simulate
from beholder.calibration.summary import calibration_table, summarise, summary
from beholder.calibration.weaknesses import weaknesses
from beholder.cli import app
from beholder.core.errors import UnknownName
from beholder.report.calibration import promises, render_calibration
from beholder.studies import large_draws
from beholder.studies.disparity.trials import true_precision
from beholder.studies.gras import trials as traits
from beholder.studies.perception.trials import judged_world, marked_share, true_skew
from beholder.studies.public_figures import trials as public_figures
from beholder.studies.public_figures.trials import bias_rows
from beholder.studies.trial import Experiment, Outcome, Trial
from beholder.studies.trial_summary import EXCEPTION, FAILS, HOLDS, NOT_PROMISED


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


# True values


@pytest.mark.parametrize("name", ["identity 30", "identity 100"])
def test_a_stored_large_draw_is_what_a_new_one_gives(name: str):
    again = large_draws.draw(name, public_figures.LARGE_DRAWS[name], total=20_000, seed=99)
    stored = large_draws.large_draws(Path(public_figures.__file__).parent)[name]
    assert stored.draws >= 1_000_000
    assert again.value == pytest.approx(stored.value, abs=4 * np.hypot(again.error, stored.error))


def test_the_true_average_precision_is_that_of_a_long_ranking():
    shows = np.arange(400_000) < 60_000
    scores = rng().standard_normal(400_000) + 1.5 * shows
    assert true_precision(0.15, 1.5) == pytest.approx(average_precision_score(shows, scores), abs=0.004)


def test_the_true_skew_and_markedness_are_those_of_a_large_world():
    judged = judged_world(100_000, 0.5, rng())
    order = np.argsort(-judged.by_dimension(judged.cosine)[:, 0])[:20_000]
    assert np.log((order < 100_000).mean() / 0.5) == pytest.approx(true_skew(0.5, 0.1), abs=0.01)
    own = judged.word("male")
    assert own is not None
    assert (judged.neutral[:100_000] > own[:100_000]).mean() == pytest.approx(marked_share(), abs=0.005)


@pytest.mark.parametrize(("attribute", "gap"), [("gender", 0.1), ("race", 0.1), ("race", 0.0)])
def test_the_true_share_of_variance_is_that_of_a_large_world(attribute: str, gap: float):
    oracle, levels = traits._gapped(attribute, gap)
    labels = {attribute: np.repeat(np.arange(traits.GROUPS[attribute]), 40_000).astype(str)}
    first = type(levels)(levels.latent[:1, :1])
    values = oracle.probability(labels, first, rng())[:, 0, 0].reshape(-1, 40_000)
    between = values.mean(axis=1).var()
    share = between / (between + values.var(axis=1).mean())
    assert traits.true_share(oracle, levels, attribute) == pytest.approx(share, abs=4e-3)


def test_the_true_favour_of_a_cell_is_that_of_a_large_cell():
    levels, slope = traits._crossed_world()
    moved = replace(traits.PLAIN, effects={"cell": {"a": 0.3}})
    labels = {"cell": np.repeat("a", 40_000)}
    p_yes = moved.probability(labels, levels, rng(), touched=np.arange(traits.CROSSED_TRAITS) < 2)
    favour = p_yes[:, :2].mean() - p_yes[:, 2:].mean()
    assert float(traits.favour(levels, 0.3)) == pytest.approx(favour, abs=3e-3)
    assert slope > 0


@pytest.mark.slow
def test_pooled_intersections_cover_as_they_say():
    """Over 250 worlds; the full run has a thousand."""
    experiment = next(e for e in traits.intersection_experiments() if "of 6 to 42" in e.name)
    drawn = np.array([experiment.simulate(rng(seed)) for seed in range(250)])[:, 0]
    assert 0.91 <= ((drawn[:, 1] <= 0) & (drawn[:, 2] >= 0)).mean() <= 0.985


def test_the_ratio_of_the_benchmark_is_that_of_the_beliefs():
    beliefs = rng().uniform(0.1, 0.9, 50)
    (row,) = bias_rows({"a": beliefs}, 20, rng())
    assert row.value == pytest.approx(beliefs[:20].mean() / beliefs[20:].mean())


def test_the_pdf_integrates_to_the_prevalence_when_nothing_is_told_apart():
    assert true_precision(0.3, 0.0) == pytest.approx(0.3, abs=1e-6)
    assert quad(norm.pdf, -8, 8)[0] == pytest.approx(1)


# Repetitions


def test_a_repetition_depends_on_its_number_alone():
    name = "identity 30"
    whole, part = simulate(Block(name, 3, 0, 6)), simulate(Block(name, 3, 4, 6))
    np.testing.assert_array_equal(whole[4:], part)
    assert not np.array_equal(whole[:1], simulate(Block(name, 4, 0, 1)))


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    chosen = [experiments()["identity 30"]]
    fresh = repeat(chosen, tmp_path / "a", repetitions=120, seed=1, workers=1)["identity 30"]
    done: list[Block] = []

    def stop_after_one(block: Block, folder: Path) -> None:
        if done:
            raise KeyboardInterrupt
        done.append(block)
        work(block, folder)

    work = repeating._work
    monkeypatch.setattr(repeating, "_work", stop_after_one)
    with pytest.raises(KeyboardInterrupt):
        repeat(chosen, tmp_path / "b", repetitions=120, seed=1, workers=1)
    kept = len(list((tmp_path / "b" / "blocks").glob("*.npy")))
    monkeypatch.setattr(repeating, "_work", work)
    resumed = repeat(chosen, tmp_path / "b", repetitions=120, seed=1, workers=1)["identity 30"]
    assert kept == 1
    np.testing.assert_array_equal(fresh, resumed)


@pytest.mark.slow
def test_a_damaged_block_is_drawn_again(tmp_path: Path):
    chosen = chosen_experiments(["apa.association_top1"])[:1]
    asked = {"repetitions": 20, "seed": 1, "workers": 1}
    whole = repeat(chosen, tmp_path, **asked)
    for path in (tmp_path / "blocks").iterdir():
        path.write_bytes(path.read_bytes()[:100])
    again = repeat(chosen, tmp_path, **asked)
    np.testing.assert_equal(again, whole)


def test_two_processes_give_what_one_gives(tmp_path: Path):
    chosen = [experiments()["identity 30"]]
    one, two = (repeat(chosen, tmp_path / str(n), repetitions=120, seed=1, workers=n)["identity 30"] for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_metric_without_calibration_is_refused():
    with pytest.raises(UnknownName, match="metric with a calibration"):
        chosen_experiments(["apa.bias_ration"])


# Summaries


def drawn(covered: int, called: int, of: int = 1000) -> np.ndarray:
    """Outcomes around a truth of 0: so many intervals hold it, so many p-values are small."""
    low = np.where(np.arange(of) < covered, -1.0, 0.5)
    p_value = np.where(np.arange(of) < called, 0.01, 0.5)
    return np.stack([np.zeros(of), low, np.ones(of), p_value], axis=1)


@pytest.mark.parametrize(
    ("covered", "n", "exception", "verdict"),
    [
        (950, 100, "", HOLDS),
        (920, 100, "", FAILS),
        (980, 100, "", FAILS),
        (920, 30, "", NOT_PROMISED),
        (500, 100, "x", EXCEPTION),
    ],
)
def test_coverage_is_held_against_the_promise(covered: int, n: int, exception: str, verdict: str):
    found = summary(Trial("m", "w", n, 0.0, exception=exception), drawn(covered, 50))
    assert found.coverage.value == covered / 1000
    assert found.coverage_verdict == verdict


def test_few_repetitions_break_no_promise_that_they_cannot_judge():
    trial = Trial("m", "w", 100, 0.0)
    assert summary(trial, drawn(36, 2, of=40)).coverage_verdict == HOLDS
    assert summary(trial, drawn(20, 2, of=40)).coverage_verdict == FAILS


def test_calls_are_false_alarms_or_power():
    table = calibration_table(
        [summary(Trial("m", "w", 100, 0.0, effect=effect), drawn(950, 70)) for effect in (0.0, 0.5)]
    )
    rates = table.filter(pl.col("metric").is_in(["calibration.false_alarms", "calibration.power"]))
    assert rates["metric"].to_list() == ["calibration.false_alarms", "calibration.power"]
    assert rates["value"].to_list() == [0.07, 0.07]
    assert "fails" in rates["note"][0]


def test_a_broken_promise_is_named():
    (coverage, alarms) = promises([summary(Trial("some.metric", "a world", 100, 0.0), drawn(900, 70))])
    assert not coverage.kept
    assert "some.metric · a world: 90.0" in coverage.sentence
    assert not alarms.kept


# What is promised, in a reduced version; the full one is `beholder calibrate`, its numbers in docs/calibration.md


@pytest.fixture(scope="module")
def reduced(tmp_path_factory: pytest.TempPathFactory):
    names = [
        "association 100 people, mean 0.04",
        "ratio 100 women, 100 men, b = 1",
        "identity 100",
        "identity 30",
        "gap 2 groups of 100, gap 0 points",
        "judgements 2 groups of 100, difference 0",
        "depths",
        "precision 2 groups of 400, shown by 40 % and 15 %, quality 1.5 and 1.5",
    ]
    chosen = [experiments()[name] for name in names]
    folder = tmp_path_factory.mktemp("calibration")
    return summarise(chosen, repeat(chosen, folder, repetitions=150, seed=5, workers=1))


@pytest.mark.slow
def test_intervals_cover_and_tests_are_quiet(reduced):
    assert all(promise.kept for promise in promises(reduced)), promises(reduced)


@pytest.mark.slow
def test_known_weaknesses_are_found_and_said(reduced):
    said = {weakness.metric: weakness for weakness in weaknesses(reduced)}
    assert {"gras.largest_gap", "disparity.ap_gap", "perception.skew", "apa.identity_given_image"} <= set(said)
    assert all(weakness.found for weakness in said.values())


@pytest.mark.slow
def test_the_page_holds_every_trial_and_asks_the_network_for_nothing(reduced):
    page = render_calibration(reduced, settings="150 repetitions")
    assert all(each.trial.metric in page for each in reduced)
    assert "default-src" in page
    assert "http://" not in page.partition("<script>")[0]


def test_the_score_of_gras_without_bias_is_said_not_to_be_0():
    score, corrected = (Trial(f"gras.{name}", "w", 100, 0.0) for name in ("bias_score", "bias_score_corrected"))
    values = [
        np.column_stack([rng(i).normal(level, 3, 200), *[np.full(200, np.nan)] * 3])
        for i, level in enumerate((21, 0.1))
    ]
    found = weaknesses([summary(score, values[0]), summary(corrected, values[1])])
    assert "not 0 without bias" in found[0].title
    assert found[0].found


@pytest.mark.slow
def test_the_command_leaves_a_table_and_a_page(tmp_path: Path):
    words = [
        "calibrate",
        "-m",
        "mean over prompts",
        "--repetitions",
        "60",
        "--processes",
        "1",
        "--json",
        "-o",
        str(tmp_path),
    ]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert len(json.loads(done.stdout)["results"]) == 6
    assert (tmp_path / "calibration.html").is_file()
    assert pl.read_parquet(tmp_path / "calibration.parquet")["n"].unique().to_list() == [60]


def test_every_experiment_gives_an_outcome_for_each_of_its_trials():
    for experiment in experiments().values():
        assert isinstance(experiment, Experiment)
        found = experiment.simulate(rng())
        assert len(found) == len(experiment.trials), experiment.name
        assert all(isinstance(outcome, Outcome) for outcome in found)
