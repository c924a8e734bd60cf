"""Two models side by side: the same people, the same questions, and the uncertainty of what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from beholder._audit import audit_models
from beholder._compare import _judged, _paired, _parts, compare_models, distinct_names, scored_models
from beholder._options import AuditOptions
from beholder._run import Run
from beholder.comparison.family import DIFFERENCE
from beholder.core.errors import MissingData, UsageError
from beholder.core.results import Row
from beholder.datasets.dataset import Dataset
from beholder.models import load
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import prompt_set
from beholder.report.comparison import SCHEMA, Comparison, lead, lines, read_comparison, render_comparison
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies import STUDIES
from beholder.studies.custom.study import custom_study
from beholder.studies.inquiry import Inquiry
from beholder.studies.study import MeasureOptions, Measures, Study
from beholder.studies.worlds import NOISE, VECTORS, Design, draw


@dataclass
class Shifted:
    """A model that says what noise says of every picture, and a little more for one prompt's word."""

    name: str
    word: str = ""
    more: float = 0.0
    apart: float = 0.0
    channels: tuple[str, ...] = ("cosine",)
    batch_size: int = 64

    @property
    def spec(self) -> ModelSpec:
        settings = {"logit_scale": 20.0, "word": self.word, "more": self.more, "apart": self.apart}
        return ModelSpec(self.name, "test", self.name, "1", "float32", settings)

    def prepare(self, image: Any) -> Any:
        return np.asarray(image.convert("L").resize((8, 8)), dtype=np.int64).sum()

    def score_prepared(self, prepared: list[Any], prompts: list[str]) -> Any:
        cells = np.zeros((len(prepared), len(prompts), 1), dtype=np.float32)
        for row, seed in enumerate(prepared):
            shared, own = np.random.default_rng(seed), np.random.default_rng([seed, len(self.name)])
            cells[row, :, 0] = 0.1 * shared.normal(size=len(prompts)) + self.apart * own.normal(size=len(prompts))
        cells[:, [self.word in prompt for prompt in prompts], 0] += self.more if self.word else 0.0
        return cells


@pytest.fixture
def options(tmp_path: Path) -> AuditOptions:
    return AuditOptions(out=tmp_path / "out", store=tmp_path / "store", limit=30, draws=200)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, options: AuditOptions, undrawn: list[Any]) -> Any:
    def compare(*models: Shifted, study: str | Study = "apa", parts: int = 20, **others: Any) -> Any:
        known = {one.name: one for one in models}
        monkeypatch.setattr("beholder._compare.load_model", lambda name, _: known[name])
        return compare_models(list(known), [study], replace(options, **others), parts=parts)

    return compare


WORDS = custom_study(
    prompt_set("words", [{"text": w, "level": "w", "concept": w} for w in ("kind", "cold", "tall")]), by=("gender",)
)


@pytest.fixture
def small(options: AuditOptions, people: Callable[..., Path]) -> dict[str, Any]:
    """Few small pictures, with own prompts."""
    return {"dataset": f"folder:{people(24)}", "limit": None, "draws": 100}


@pytest.mark.slow
def test_what_was_planted_is_found_and_nothing_else(compared: Any) -> None:
    plain, shifted = Shifted("plain", apart=0.01), Shifted("shifted", "judge", 0.25, apart=0.01)
    table = compared(plain, shifted).table
    judges = table.filter((pl.col("metric") == "apa.occupation_probability") & (pl.col("concept") == "judge"))
    assert judges.height
    assert (judges["low"] > 0).all()
    assert (judges["verdict"] == DIFFERENCE).all()
    assert (judges["difference"] == judges["second"] - judges["first"]).all()
    known = table.filter(pl.col("metric").str.contains("identity"))
    assert known.height
    assert DIFFERENCE not in set(known["verdict"])


@pytest.mark.slow
def test_models_that_differ_by_noise_alone_are_seldom_called_different(compared: Any) -> None:
    table = compared(Shifted("one", apart=0.02), Shifted("other", apart=0.02)).table
    assert table.height > 50
    assert DIFFERENCE not in set(table["verdict"])
    assert (table["low"].is_null() == table["p_value"].is_null()).all()


@pytest.mark.slow
def test_values_are_those_of_an_audit(
    compared: Any, monkeypatch: pytest.MonkeyPatch, options: AuditOptions, tmp_path: Path
) -> None:
    plain, shifted = Shifted("null:1"), Shifted("null:2", "chef", 0.2)
    table = compared(plain, shifted, parts=5).table
    monkeypatch.setattr(load, "load_model", lambda name, _: {"null:1": plain, "null:2": shifted}[name])
    monkeypatch.setattr("beholder._steps.load_model", load.load_model)
    results = audit_models(["null:1", "null:2"], ["apa"], replace(options, out=tmp_path / "audit")).results
    keys = ["metric", "subset", "group", "concept", "template", "variant"]
    for column, model in (("first", "null:1"), ("second", "null:2")):
        both = table.join(results.filter(pl.col("model") == model), on=keys, nulls_equal=True)
        assert both.height == table.height
        assert both[column].to_list() == pytest.approx(both["value"].to_list(), abs=1e-12)


def test_a_model_is_not_compared_with_itself(options: AuditOptions) -> None:
    with pytest.raises(UsageError, match="Name two models or more, each once"):
        compare_models(["null", "null"], ["apa"], options)


def test_models_that_are_asked_in_different_ways_are_left_out_and_it_is_said(
    options: AuditOptions, make: SimpleNamespace
) -> None:
    questions = make.gras_matrix(make.gras_images(14, 4).with_columns(uri=pl.col("image_id")))
    statements = replace(questions, prompts=questions.prompts.with_columns(prompt_id=pl.lit("statement")))
    run, dataset = Run(), Dataset("gras", "1", "none", questions.images)
    models = {"answers": [questions], "matches": [statements]}
    assert _paired(Inquiry(STUDIES["gras"], dataset), models, options, run, 20) == {}
    found = Comparison(list(models), pl.DataFrame(schema=SCHEMA), run.record)
    assert "matches and answers are asked in different ways" in found.record.left_out[0]
    assert lead(found) == "Nothing was compared."
    assert "Left out" in render_comparison(found)


def test_the_page_escapes_names_and_the_files_hold_the_table(
    compared: Any, small: dict[str, Any], tmp_path: Path
) -> None:
    found = compared(Shifted("<b>one</b>", apart=0.01), Shifted("other", "kind", 0.5), study=WORDS, **small)
    text = (tmp_path / "out" / "comparison.html").read_text()
    assert "<b>one" not in text
    assert "&lt;b&gt;one" in text
    again = read_comparison(tmp_path / "out")
    assert again.table.equals(found.table)
    assert list(again.models) == list(found.models)
    assert again.record.finished
    differing = [line for line in lines(found.of("other")) if line.differ >= 1]
    assert any("kind" in line.where for line in differing)


@pytest.mark.slow
def test_all_models_are_compared_with_the_first_as_two_alone_would_be(
    compared: Any, small: dict[str, Any], tmp_path: Path
) -> None:
    models = [Shifted("a", apart=0.02), Shifted("bb", apart=0.02), Shifted("ccc", "kind", 0.5, apart=0.02)]
    table = compared(*models, study=WORDS, parts=10, **small).table
    assert set(table["baseline"]) == {"a"}
    assert set(table["model"]) == {"bb", "ccc"}
    alone = compared(models[0], models[2], study=WORDS, parts=10, **small, out=tmp_path / "two").table
    assert table.filter(pl.col("model") == "ccc").equals(alone)


def test_no_interval_of_a_difference_leaves_the_possible_range(compared: Any, small: dict[str, Any]) -> None:
    """One model always says one word, the other nearly always another: shares of 0.03 and 0.97."""
    sure, other = Shifted("sure", "kind", 0.3), Shifted("other", "cold", 0.3)
    table = compared(sure, other, study=WORDS, parts=10, **small).table
    shares = table.filter(metric="custom.probability")
    assert shares["difference"].abs().max() > 0.9
    assert shares["low"].min() >= -1
    assert shares["high"].max() <= 1
    assert ((shares["low"] < shares["difference"]) & (shares["difference"] < shares["high"])).all()


@pytest.mark.slow
def test_runs_are_compared_from_their_stored_scores_without_their_models(
    monkeypatch: pytest.MonkeyPatch, options: AuditOptions, small: dict[str, Any], undrawn: list[Any]
) -> None:
    """Two checkpoints of one name."""
    known = {"a": Shifted("m", apart=0.02), "b": Shifted("m", "kind", 0.5, apart=0.02)}
    monkeypatch.setattr("beholder._steps.load_model", lambda name, _: known[name])
    options, folder = replace(options, **small), options.store.parent
    operands = []
    for name in known:
        run = audit_models([name], [WORDS], replace(options, out=folder / name))
        (model,) = scored_models(run, [options.store])
        operands.append((name, model))
    operands = distinct_names(operands)
    found = compare_models(operands, [WORDS], replace(options, out=folder / "runs"), parts=10)
    assert list(found.models) == ["m (a)", "m (b)"]
    kind = found.table.filter(metric="custom.probability", concept="kind")
    assert kind.height
    assert (kind["low"] > 0).all()
    elsewhere = operands[1]._replace(store=folder / "elsewhere")
    with pytest.raises(MissingData, match="has no scores of m"):
        compare_models([operands[0], elsewhere], [WORDS], replace(options, out=folder / "none"))


def test_people_of_whom_nothing_is_said_are_dealt_too(tmp_path: Path, options: AuditOptions) -> None:
    """A data set without an attribute, and one in which it is missing for some."""
    table = pl.DataFrame({"image_id": [f"{i}" for i in range(40)], "uri": [f"{i}.png" for i in range(40)]})
    for each in (table, table.with_columns(gender=pl.Series(["a", None] * 20))):
        part = _parts(Dataset("d", "1", "none", each), 20, options.measure)
        assert sorted(part.values()) == sorted(list(range(20)) * 2)


def _means(matrices: Any, options: MeasureOptions) -> Iterator[Row]:
    """A measure of the user's own: each gender's mean, and the gap."""
    matrix = matrices["made"]
    woman = (matrix.images["gender"] == "woman").to_numpy()
    for prompt in range(matrix.values.shape[1]):
        women, men = (matrix.values[mask, prompt, 0] for mask in (woman, ~woman))
        for group, scores in (("woman", women), ("man", men)):
            yield Row(
                "made.mean", float(scores.mean()), len(scores), "logit", group=group, concept=str(prompt), low=0.0
            )
        gap = float(women.mean() - men.mean())
        yield Row("made.gap", gap, len(woman), "logit", group="woman", against="man", concept=str(prompt), low=0.0)


def _in_a_world(world: str, design: Design, seed: int, person: str | None = None, shift: float = 0.0) -> pl.DataFrame:
    """Two models that see the same people; the second says more of one prompt by `shift`."""
    rng = np.random.default_rng(seed)
    one, other = (draw(world, design, 4, rng) for _ in range(2))
    prompts = prompt_set("made", [{"text": f"{i}", "level": "all", "concept": f"{i}"} for i in range(4)])
    cells = {"a": one.scores, "b": other.scores + np.array([shift, 0, 0, 0])}
    matrices = {
        name: [ScoreMatrix("made", one.table, prompts.table, ("score",), values[:, :, None])]
        for name, values in cells.items()
    }
    inquiry = Inquiry(replace(STUDIES["apa"], measures=Measures((_means,))), Dataset("made", "1", "none", one.table))
    options = AuditOptions(seed=seed, person=person)
    return _judged([_paired(inquiry, matrices, options, Run(), 20)["b"]])


@pytest.mark.slow
@pytest.mark.parametrize("design", [Design(30, 30), Design(20, 20, pictures=4)])
def test_a_vector_for_each_person_is_seldom_called_a_difference(design: Design) -> None:
    called = [DIFFERENCE in set(_in_a_world(VECTORS, design, seed)["verdict"]) for seed in range(30)]
    assert sum(called) <= 4


def test_pictures_of_one_person_count_once_whichever_column_names_them() -> None:
    table = _in_a_world(VECTORS, Design(8, 8, pictures=4), 1)
    assert (
        table["verdict"].to_list() == _in_a_world(VECTORS, Design(8, 8, pictures=4), 1, "person")["verdict"].to_list()
    )


def test_a_shift_of_ten_and_ten_people_is_found() -> None:
    table = _in_a_world(NOISE, Design(10, 10), 1, shift=4.0)
    moved = table.filter(pl.col("concept") == "0", pl.col("metric") == "made.mean")
    assert set(moved["verdict"]) == {DIFFERENCE}
    assert DIFFERENCE not in set(table.filter(pl.col("concept") != "0")["verdict"])
