"""Every printed number stands beside ours, and says what it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder.core.results import Row, results_table
from beholder.report.replication import SCHEMA, counts, ledger, printed_name
from beholder.studies.apa.printed import PRINTED as APA
from beholder.studies.gras.study import result_cells
from beholder.studies.printed import CANNOT_BE, CELL, DIFFERS, EQUAL, NOT_MEASURED, WITHIN, Printed, Source


def run_of(*rows: Row, model: str = "openai/clip-vit-base-patch32", study: str = "apa") -> pl.DataFrame:
    return results_table(rows, study=study, model=model, dataset=study)


def cell(cells: pl.DataFrame, **place: str) -> dict[str, object]:
    return cells.filter(**place).row(0, named=True)


def test_from_the_tables_alone_every_ratio_of_apa_follows_from_its_rows():
    ratios = ledger().filter(metric="apa.bias_ratio")
    assert ratios.height == 117
    assert set(ratios["verdict"]) == {EQUAL}


def test_from_the_tables_alone_the_scores_of_gras_come_out():
    scores = ledger().filter(source="gras_scores")
    assert scores["value"].to_list() == pytest.approx(scores["printed"].to_list(), abs=1e-9)
    assert set(scores["verdict"]) == {EQUAL}


def test_a_ratio_that_does_not_follow_from_its_rows_would_be_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    ratio = pl.col("metric").eq("apa.bias_ratio") & pl.col("model").eq("BLIP") & pl.col("subset").eq("athletes")
    file = tmp_path / "printed.csv"
    APA.table.with_columns(printed=pl.when(ratio).then(pl.lit("0.7")).otherwise("printed")).write_csv(file)
    APA.derived.write_csv(tmp_path / "derived.csv")
    monkeypatch.setattr("beholder.studies.apa.printed.PRINTED", replace(APA, file=file))
    off = ledger().filter(pl.col("metric").eq("apa.bias_ratio") & pl.col("verdict").ne(EQUAL))
    assert off.select("model", "subset", "verdict").rows() == [("BLIP", "athletes", DIFFERS)]


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (0.8506, 0.80, 0.90, EQUAL),  # 85.06 is printed
        (0.8508, 0.80, 0.90, EQUAL),  # a float16 mean may lie two hundredths of a point off
        (0.8520, 0.80, 0.90, WITHIN),
        (0.9000, 0.87, 0.93, DIFFERS),
        (0.9000, None, None, DIFFERS),
    ],
)
def test_verdicts_of_a_run(value: float, low: float | None, high: float | None, verdict: str):
    row = Row("apa.identity_given_image", value, 100, "probability", subset="senate", low=low, high=high)
    found = cell(ledger(run_of(row)), model="ViT-B/32", metric="apa.identity_given_image", subset="senate")
    assert (found["verdict"], found["difference"]) == (verdict, pytest.approx(value - 0.8506))


def test_a_run_over_fewer_people_is_not_compared():
    row = Row("apa.identity_given_image", 0.8506, 20, "probability", subset="senate", low=0.8, high=0.9)
    found = cell(ledger(run_of(row)), model="ViT-B/32", metric="apa.identity_given_image", subset="senate")
    assert found["verdict"] == NOT_MEASURED
    assert "over 20 people" in str(found["reason"])


def test_what_cannot_be_says_why():
    cells = ledger()
    male = cell(cells, metric="perception.markedness", dataset="fairface-adults", group="male")
    actor = cell(cells, model="RN50", metric="apa.occupation_probability", subset="actors", group="woman")
    valence = cell(cells, metric="gras.valence_share")
    assert {found["verdict"] for found in (male, actor, valence)} == {CANNOT_BE}
    assert "172.9 %" in str(actor["reason"])
    assert valence["value"] == pytest.approx(14)


def test_p_values_of_a_run_stand_beside_printed_ones():
    first = result_cells().filter(metric="gras.welch.p_value", model="llava-1.5-7b-hf").row(0, named=True)
    place = {key: first[key] for key in ("subset", "concept", "template")}
    row = Row("gras.welch", 1.0, 1440, "statistic", p_value=first["printed"], **place)  # images with a skin tone
    found = cell(
        ledger(run_of(row, model="llava-hf/llava-1.5-7b-hf", study="gras")), metric="gras.welch.p_value", **place
    )
    assert found["verdict"] == EQUAL


def test_a_model_outside_the_catalogue_is_found_by_its_printed_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    file = tmp_path / "printed.csv"
    file.write_text(f"{','.join(CELL)}\nt,Table 1,my-model,own,own.score,,a,b,,,0.5,0.1,x\n")
    printed = Printed(file, (Source("t", "Paper, Table 1", "one figure"),))
    monkeypatch.setattr("beholder.report.replication.printed_studies", lambda: iter([("own", printed)]))
    run = run_of(Row("own.score", 0.52, 9, "x", group="a", against="b"), model="my-model", study="own")
    assert ledger(run)["verdict"].to_list() == [EQUAL]


def test_models_are_found_by_what_they_were_loaded_as():
    assert printed_name("openclip:RN50-quickgelu/openai") == "RN50"
    assert printed_name("openai/clip-vit-base-patch32") == "ViT-B/32"
    assert printed_name("onnx:/somewhere") is None


def test_the_ledger_is_a_results_table_with_more_columns():
    cells = ledger()
    assert dict(cells.schema) == SCHEMA
    assert sum(number for verdict in counts(cells).values() for number in verdict.values()) == cells.height
    assert np.isfinite(cells["printed"].to_numpy()).all()


def test_what_a_run_measured_is_counted_apart_from_what_tables_say_of_themselves():
    row = Row("apa.identity_given_image", 0.85, 100, "probability", subset="senate", low=0.8, high=0.9)
    without, with_run = counts(ledger()), counts(ledger(run_of(row)))
    assert without[EQUAL]["run"] == with_run[EQUAL]["run"] == 0
    assert without[EQUAL]["printed tables"] == 134  # Phi-4's 0.00 was never printed
    assert with_run[WITHIN] == {"run": 1, "printed tables": 0, "data": 0, "none": 0}


def test_groups_of_perception_are_found_however_an_image_set_spells_them():
    row = Row(
        "perception.markedness",
        21.0,
        500,
        "per cent",
        subset="gender",
        group="Male",
        concept="male",
        low=19.0,
        high=23.0,
    )
    run = results_table([row], study="perception", model="openai/clip-vit-base-patch32", dataset="utkface-adults")
    found = cell(ledger(run), metric="perception.markedness", dataset="utkface-adults", group="male")
    assert (found["printed"], found["verdict"]) == (20.84, WITHIN)


def test_a_pair_of_a_run_finds_its_printed_pair():
    row = Row(
        "perception.sc_weat",
        0.34,
        500,
        "standard deviations",
        subset="race",
        group="White",
        against="Black",
        concept="mean",
    )
    run = results_table([row], study="perception", model="openai/clip-vit-base-patch32", dataset="fairface-adults")
    pair = {"dataset": "fairface-adults", "group": "white", "against": "black"}
    found = cell(ledger(run), metric="perception.sc_weat", **pair)
    assert (found["printed"], found["verdict"]) == (0.34, EQUAL)


def test_the_result_files_stand_in_the_ledger_for_the_models_of_a_run_only():
    row = Row("gras.bias_score", 98.0, 100, "per cent")
    cells = ledger(run_of(row, model="llava-hf/llava-1.5-7b-hf", study="gras")).filter(source="gras_results")
    assert set(cells["model"]) == {"llava-1.5-7b-hf"}
    assert cells.height * 5 == result_cells().height == 92_000
    assert ledger().filter(source="gras_results").is_empty()
