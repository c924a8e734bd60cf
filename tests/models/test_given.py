"""A model at hand is scored as the same model from a folder; a function is checked and its scores are not mixed up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import beholder
from beholder._compare import compare_models
from beholder._options import AuditOptions
from beholder.core.errors import ModelError, UsageError
from beholder.models.load import ModelIdentity, as_scorer, load_model, refuse_unused
from beholder.models.scorer import Answerer, NullScorer
from beholder.models.spec import LoadOptions
from beholder.prompts.prompt_set import Instruction


def cells_of(scorer: Any, pictures: list[Image.Image], prompts: list[str]) -> Any:
    return scorer.score_prepared([scorer.prepare(picture) for picture in pictures], prompts)


def brightness(images: list[Image.Image], prompts: list[str]) -> Any:
    return [[np.asarray(image).mean() + len(prompt) for prompt in prompts] for image in images]


def scorer_of(model: Any, **given: Any) -> Any:
    return as_scorer(model, LoadOptions(), ModelIdentity(**given))


def test_a_loaded_model_scores_as_its_folder_does(
    tiny_model: Callable[[str], Path], pictures: list[Image.Image], prompts: list[str]
):
    transformers = pytest.importorskip("transformers")
    folder = tiny_model("clip")
    model = transformers.AutoModel.from_pretrained(folder)
    parts = (
        transformers.AutoImageProcessor.from_pretrained(folder, backend="pil"),
        transformers.AutoTokenizer.from_pretrained(folder),
    )
    model.train()
    scorer = scorer_of((model, *parts), name="mine")
    assert model.training, "the caller's own model is left as it was"
    assert scorer.spec.name == "mine"
    expected = cells_of(load_model(str(folder)), pictures, prompts)
    np.testing.assert_array_equal(cells_of(scorer, pictures, prompts), expected)
    again = scorer_of((model, *parts))
    assert again.spec.digest == scorer.spec.digest
    with pytest.importorskip("torch").no_grad():
        model.visual_projection.weight.add_(0.1)
    trained = scorer_of((model, *parts))
    assert trained.spec.digest != scorer.spec.digest, "a further state of the model is another model to the store"


def test_no_bar_of_a_library_is_shown(tiny_model: Callable[[str], Path], capsys: pytest.CaptureFixture[str]):
    transformers = pytest.importorskip("transformers")
    folder = tiny_model("clip")
    model = transformers.CLIPModel.from_pretrained(folder)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    transformers.utils.logging.enable_progress_bar()
    capsys.readouterr()
    for given in ((model, processor), (processor, model)):
        as_scorer(given, LoadOptions())
    assert capsys.readouterr() == ("", "")


def test_a_scorer_is_taken_as_it_is():
    scorer = NullScorer(3)
    assert scorer_of(scorer) is scorer


def test_a_function_gives_a_number_for_every_pair(pictures: list[Image.Image], prompts: list[str]):
    scorer = scorer_of(brightness, name="bright", revision="1")
    assert scorer.channels == ("match_logit",)
    rgb = [picture.convert("RGB") for picture in pictures]
    expected = np.array([[np.asarray(image).mean() + len(text) for text in prompts] for image in rgb], np.float32)
    np.testing.assert_array_equal(cells_of(scorer, pictures, prompts)[:, :, 0], expected)
    assert scorer.spec == scorer_of(brightness, name="bright", revision="1").spec
    assert not scorer.temporary


def test_the_scores_of_a_function_without_a_revision_belong_to_nothing_else():
    one, other = scorer_of(brightness, name="bright"), scorer_of(brightness, name="bright")
    assert one.spec.digest != other.spec.digest
    assert one.temporary


def test_a_contrastive_function_has_a_scale():
    with pytest.raises(UsageError, match="logit_scale=100"):
        scorer_of(brightness, kind="contrastive")
    scorer = scorer_of(brightness, kind="contrastive", logit_scale=50)
    assert scorer.channels == ("cosine",)
    assert scorer.spec.settings["logit_scale"] == 50


def test_tensors_are_taken_too(pictures: list[Image.Image]):
    torch = pytest.importorskip("torch")
    scorer = scorer_of(lambda images, prompts: torch.ones(len(images), len(prompts), requires_grad=True))
    assert cells_of(scorer, pictures, ["a"]).shape == (len(pictures), 1, 1)


@pytest.mark.parametrize(
    ("model", "given", "error", "said"),
    [
        (lambda images, prompts: [1.0], {}, ModelError, r"shape \(1,\) for 2 images and 1 prompts"),
        (7, {}, UsageError, "A int is not a model"),
        (("a", "b"), {}, UsageError, r"\(str, str\) is not a model.*\nSeveral models go in a list"),
        (brightness, {"kind": "speaking"}, UsageError, "one of 'matching', 'contrastive', 'generative'"),
        (lambda images, prompts: [["Yes"], ["No"]], {}, ModelError, "answers in words is kind='generative'"),
        (lambda images, prompts: [[1, 2], [1]], {}, ModelError, "gave no table of numbers"),
        (lambda images, prompts: [[2.0], [0.5]], {"kind": "generative"}, ModelError, "lies between 0 and 1"),
        (brightness, {"revision": "1"}, UsageError, "Say name= too"),
    ],
)
def test_what_is_wrong_is_said(model: Any, given: Any, error: type[Exception], said: str):
    with pytest.raises(error, match=said):
        cells_of(scorer_of(model, **given), [Image.new("RGB", (4, 4))] * 2, ["a"])


def test_a_module_alone_is_not_taken_for_a_function():
    torch = pytest.importorskip("torch")
    with pytest.raises(UsageError, match=r"\(model, processor\)"):
        scorer_of(torch.nn.Linear(2, 2))


def test_a_function_may_answer_questions_in_words_or_with_probabilities(pictures: list[Image.Image]):
    seen: list[str] = []

    def speaks(images: list[Any], questions: list[str]) -> list[list[Any]]:
        seen.extend(questions)
        return [["Yes, it is.", "no", "Perhaps"] for _ in images]

    asked = Instruction("Is this {}? Answer Yes or No.", yes="Yes", no="No")
    scorer = scorer_of(speaks, kind="generative").instructed(asked)
    assert isinstance(scorer, Answerer)
    assert scorer.channels == ("log_p_yes", "log_p_no")
    cells = np.exp(scorer.score_prepared(pictures[:1], ["a", "b", "c"]))
    np.testing.assert_allclose(cells[0], [[1, 0], [0, 1], [0, 0]], atol=1e-5)
    assert seen == [f"Is this {each}? Answer Yes or No." for each in "abc"]
    assert scorer.notes == ["1 answers begin with neither Yes nor No"]
    sure = scorer_of(lambda images, questions: [[0.25]] * len(images), kind="generative").instructed(asked)
    np.testing.assert_allclose(np.exp(sure.score_prepared(pictures[:1], ["a"]))[0, 0], [0.25, 0.75], rtol=1e-5)


@pytest.mark.parametrize(
    ("option", "said"), [({"precision": "bf16"}, "it is float32"), ({"device": "cuda"}, "no device")]
)
def test_what_does_nothing_for_any_model_is_refused(option: Any, said: str, tmp_path: Path):
    for models in ("null", brightness, ["null", brightness]):
        with pytest.raises(UsageError, match=f"does nothing for .*{said}"):
            beholder.audit(models, "apa", limit=1, out=tmp_path / "run", **option)
    with pytest.raises(UsageError, match=f"does nothing for null:1.*{said}"):
        compare_models(["null:1", "null:2"], ["apa"], AuditOptions.of(limit=1, out=tmp_path / "both", **option))
    heeds = load_model("null")
    heeds.spec = replace(heeds.spec, name="heeds", adapter="contrastive", precision="bfloat16")
    refuse_unused(["null", heeds, "no model: never opened"], LoadOptions(**option))
