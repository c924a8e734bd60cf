"""Tables of pairs of occupations: the printed measure again, what chance gives, and who works there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE, NONE_FOUND
from beholder.core.errors import DataError
from beholder.core.results import Row, results_table
from beholder.studies.pairs.chapter import CHAPTER
from beholder.studies.pairs.tables import read_tables, table_rows
from beholder.studies.study import CommandOptions, MeasureOptions

OPTIONS = MeasureOptions(shuffles=499)


def table(biases: np.ndarray) -> pl.DataFrame:
    """Sixty pairs of forty occupations: the first twenty with ever more men."""
    rng, rows = np.random.default_rng(1), []
    for m, f in ((rng.integers(20), rng.integers(20, 40)) for _ in range(60)):
        rows.append((f"o{m}", f"o{f}", biases[m], biases[f], 50.0 - 2 * m, 50.0 + 2 * (f - 19)))
    return pl.DataFrame(
        rows, ["occtm", "occtf", "occtm_bias", "occtf_bias", "occtm_ratio", "occtf_ratio"], orient="row"
    )


def measured(biases: np.ndarray) -> dict[str, Row]:
    return {row.metric: row for row in table_rows(table(biases), OPTIONS)}


def test_a_bias_that_follows_who_works_there_is_found():
    ratio = np.concatenate([50 - 2.0 * np.arange(20), 52 + 2.0 * np.arange(20)])
    rows = measured((50 - ratio) / 10)
    assert {row.verdict for row in rows.values()} == {DIFFERENCE, None}
    assert rows["pairs.labour"].value == pytest.approx(1)
    assert rows["pairs.mean_size"].value > 1.2 * (rows["pairs.mean_size"].expected or 0)


def test_noise_has_a_mean_size_and_is_called_nothing():
    alarms = 0
    for seed in range(10):
        rows = measured(np.random.default_rng(seed).normal(0, 2, 40))
        assert rows["pairs.mean_size"].value > 0.5
        assert rows["pairs.mean_size"].value == pytest.approx(rows["pairs.mean_size"].expected, rel=0.5)
        alarms += any(row.verdict == DIFFERENCE for row in rows.values())
    assert alarms <= 1


def test_a_model_that_favours_one_gender_everywhere_is_not_called_a_bias_of_occupations():
    rows = measured(np.full(40, 3.0))
    assert rows["pairs.signed"].value == pytest.approx(0)
    assert {row.verdict for row in rows.values()} == {NONE_FOUND, None} or rows[
        "pairs.labour"
    ].verdict is not DIFFERENCE


def test_the_printed_table_comes_out_again(data: Path):
    printed = pl.read_csv(data / "genderbias-vl" / "bias_overall.csv")
    files = [str(data / "genderbias-vl" / f"{model}_VLbias.csv") for model in ("InstructBLIP", "Kosmos2", "LLaVA1.5")]
    made = read_tables(files, CommandOptions(store=Path(), measure=OPTIONS))  # type: ignore[arg-type]
    ours = made.results.pivot("metric", index="model", values="value").join(
        printed, left_on="model", right_on="model_name"
    )
    assert ours.height == 3
    for name, theirs in (("pairs.mean_size", "VLbias_bias_ovl"), ("pairs.largest", "VLbias_bias_max")):
        assert (ours[name] - ours[theirs]).abs().max() <= 0.005 + 1e-9
    said = made.results.filter(metric="pairs.mean_size").select("model", "verdict").rows()
    assert dict(said) == {"InstructBLIP": DIFFERENCE, "Kosmos2": NONE_FOUND, "LLaVA1.5": DIFFERENCE}


def test_findings_have_whole_sentences():
    for biases in (np.random.default_rng(2).normal(0, 2, 40), np.linspace(4, -4, 40)):
        rows = table_rows(table(biases), OPTIONS)
        found = list(CHAPTER.findings(results_table(rows, study="pairs", model="m", dataset="genderbias-vl")))
        assert [each.kind for each in found] == ["size", "labour"]
        assert all(each.sentence.endswith(".") and "None" not in each.sentence for each in found)
        tables = list(
            CHAPTER.tables(results_table(table_rows(table(biases), OPTIONS), study="pairs", model="m", dataset="t"))
        )
        assert [each.title for each in tables] == ["Pairs of occupations"]


def test_a_table_of_another_form_is_refused_in_a_sentence(tmp_path: Path):
    (tmp_path / "a.csv").write_text("occtm,occtf\nx,y\n")
    with pytest.raises(DataError, match="the column 'occtm_bias' is missing"):
        read_tables([str(tmp_path / "a.csv")], CommandOptions(store=tmp_path))  # type: ignore[arg-type]
    table(np.zeros(40)).with_columns(occtm_bias=pl.lit("much")).write_csv(tmp_path / "b.csv")
    with pytest.raises(DataError, match="row 2 has 'much' as occtm_bias, which is no number"):
        read_tables([str(tmp_path / "b.csv")], CommandOptions(store=tmp_path))  # type: ignore[arg-type]
