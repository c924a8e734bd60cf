"""The straight line, end to end, on small pictures and the null model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from beholder._audit import audit_models
from beholder._measure import measure_scores
from beholder._options import AuditOptions
from beholder._run import load_run
from beholder.core.errors import DataError, ModelError, UnknownName
from beholder.core.results import SCHEMA
from beholder.models.scorer import NullScorer
from beholder.prompts.prompt_set import Instruction, prompt_set
from beholder.studies import STUDIES
from beholder.studies.custom.study import custom_study

WORDS = prompt_set("words", [{"text": w, "level": "words", "concept": w} for w in ("kind", "cold")])


@pytest.fixture
def options(tmp_path: Path, people: Callable[..., Path]) -> AuditOptions:
    folder = people(10)
    return AuditOptions(out=tmp_path / "run", store=tmp_path / "store", dataset=f"folder:{folder}", draws=100)


def test_a_run_leaves_results_a_record_and_a_page(options: AuditOptions):
    run = audit_models(["null"], [custom_study(WORDS, by=("gender",))], options)
    names = {path.name for path in options.out.iterdir()}
    page = {"report.html", "report.png"}
    assert names == page | {"results.parquet", "results.csv", "findings.json", "prompts.csv", "run.json"}
    assert run.results.schema == pl.Schema(SCHEMA)
    assert run.results.equals(pl.read_parquet(options.out / "results.parquet"))
    assert pl.read_csv(options.out / "results.csv").height == run.results.height


def test_an_unknown_model_is_told_before_another_is_asked(options: AuditOptions):
    with pytest.raises(UnknownName, match="no model 'gras'"):
        audit_models(["null", "gras"], [custom_study(WORDS)], options)
    assert not options.out.exists()
    assert not options.store.exists()


def test_a_run_can_be_read_again(options: AuditOptions):
    run = audit_models(["null"], [custom_study(WORDS)], options)
    again = load_run(options.out)
    assert again.record == run.record
    assert again.results.equals(run.results)


def test_the_record_says_what_was_audited_and_how(options: AuditOptions):
    record = audit_models(["null", "null:3"], [custom_study(WORDS)], options).record
    assert [model["name"] for model in record.models] == ["null", "null:3"]
    assert record.models[0]["digest"] != record.models[1]["digest"]
    assert record.datasets[0]["images"] == 10
    assert record.settings["draws"] == 100


def test_a_second_run_with_the_same_command_gives_the_same_results(options: AuditOptions):
    one = audit_models(["null"], [custom_study(WORDS)], options).results
    assert audit_models(["null"], [custom_study(WORDS)], options).results.equals(one)


def test_bad_pictures_are_listed_in_the_record(options: AuditOptions):
    folder = Path(options.dataset.removeprefix("folder:"))
    (folder / "00003.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"00003\.png"):
        audit_models(["null"], [custom_study(WORDS)], options)
    run = audit_models(["null"], [custom_study(WORDS)], replace(options, skip_bad_images=True))
    (bad,) = run.record.bad_images
    assert bad["image"].endswith("00003.png")
    assert "0 bytes" in bad["reason"]
    assert run.results["n"].max() == 9


def test_finished_models_are_kept_when_a_later_one_fails(options: AuditOptions):
    with pytest.raises(ModelError, match="nowhere"):
        audit_models(["null", "./nowhere"], [custom_study(WORDS)], options)
    assert load_run(options.out).results["model"].unique().to_list() == ["null"]


def test_the_embedded_world_is_audited_without_data(tmp_path: Path):
    options = AuditOptions(out=tmp_path / "run", store=tmp_path / "s", limit=4, draws=100)
    results = audit_models(["null"], ["apa"], options).results
    assert set(results["dataset"]) == {"glasshouse"}
    assert {"doctors", "judges"} <= set(results.filter(metric="apa.bias_ratio")["subset"])
    assert {"known", "strangers"} == set(results.filter(metric="apa.identity_given_image")["subset"])


@pytest.mark.slow
def test_without_a_model_each_embedded_one_is_asked_what_it_was_made_for(tmp_path: Path):
    """What `make demo` runs, on fewer pictures."""
    pytest.importorskip("torch")
    options = AuditOptions(out=tmp_path / "run", store=tmp_path / "store", limit=4, draws=100, permutations=10)
    run = audit_models([], [study.name for study in STUDIES.values() if study.demo], options)
    assert set(run.results.select("model", "study").unique().iter_rows()) == {
        ("glasshouse/contrastive", "apa"),
        ("null", "apa"),
        ("glasshouse/contrastive", "disparity"),
        ("glasshouse/generative", "gras"),
    }
    assert (tmp_path / "run" / "report.html").is_file()


def test_own_prompts_meet_the_first_embedded_model_and_noise():
    assert custom_study(WORDS, by=()).asks.reference_models == ("glasshouse/contrastive", "null")
    assert STUDIES["gras"].asks.reference_models == ("glasshouse/generative",)


@pytest.mark.real
def test_a_limit_and_the_null_model_on_real_photographs_give_chance(tmp_path: Path, data: Path):
    options = AuditOptions(out=tmp_path / "run", store=tmp_path / "s", data=data, limit=5, draws=100)
    results = audit_models(["null"], ["apa", "pfi"], options).results
    category = results.filter(metric="apa.association", concept="category")
    assert category["n"].to_list() == [5] * 5
    assert category["value"].mean() == pytest.approx(1 / 7, abs=0.05)
    assert set(results["study"]) == {"apa", "pfi"}


@pytest.mark.real
def test_some_scores_are_measured_as_far_as_they_go(tmp_path: Path, data: Path, golden: Path):
    options = AuditOptions(out=tmp_path / "run", store=tmp_path, data=data, draws=100)
    run = measure_scores(STUDIES["apa"], [golden / "logits_senate.npy"], options, model="some")
    assert set(run.results.filter(metric="apa.association")["subset"]) == {"senate"}
    assert run.results.filter(metric="apa.bias_ratio")["n"].to_list() == [100]
    assert any("actors/association" in line for line in run.record.left_out)


def test_what_a_model_says_at_the_end_is_in_the_record(options: AuditOptions, monkeypatch: pytest.MonkeyPatch):
    class Talkative(NullScorer):
        def __init__(self) -> None:
            super().__init__()
            self.notes: list[str] = []

        def instructed(self, instruction: Instruction) -> NullScorer:
            other = Talkative()
            other.spec = replace(self.spec, settings={**self.spec.settings, "instruction": instruction.template})
            return other

        def score_prepared(self, prepared, prompts):
            self.notes.append("asked")
            return super().score_prepared(prepared, prompts)

    monkeypatch.setattr("beholder._steps.load_model", lambda name, options: Talkative())
    (model,) = audit_models(["talkative"], [custom_study(WORDS)], options).record.models
    assert model["notes"] == ["asked"]
    assert "true or false" in model["settings"]["instruction"]
