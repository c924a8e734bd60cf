"""A detector's presence is the best box of the model's own post-processing, whatever else is asked beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import MissingExtra, ModelError, OutOfMemory, UnusableScore
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Embedder

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from conformance import detection  # noqa: E402

from beholder.models.dense import DENSE  # noqa: E402

FAMILIES = ["owlvit", "owlv2", "grounding-dino", "mm-grounding-dino", "omdet-turbo"]
FUSED = ["grounding-dino", "mm-grounding-dino", "omdet-turbo"]
CONCEPTS = ["nurse", "tall man", "Dog"]
Tiny = Callable[[str], tuple[Path, dict[str, Any]]]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """`tiny("owlv2")` is the folder of a tiny random OWLv2 and its conformance case; each is made once."""
    made: dict[str, tuple[Path, dict[str, Any]]] = {}

    def make(family: str) -> tuple[Path, dict[str, Any]]:
        if family not in made:
            folder = tmp_path_factory.mktemp("detectors") / family
            made[family] = folder, detection.case(folder, family)
        return made[family]

    return make


def scores(scorer: Any, pictures: list[Image.Image], concepts: list[str]) -> Any:
    return scorer.score_prepared([scorer.prepare(picture) for picture in pictures], concepts)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_presence_is_the_best_box_of_the_models_own_post_processing(
    family: str, tiny: Tiny, pictures: list[Image.Image]
) -> None:
    folder, case = tiny(family)
    scorer = load_model(str(folder))
    expected = np.array([[case["plain"](picture, concept) for concept in CONCEPTS] for picture in pictures])
    assert scorer.channels == ("presence",)
    assert np.ptp(expected) > 0.05, "the tiny model tells nothing apart; the test would prove nothing"
    np.testing.assert_allclose(scores(scorer, pictures, CONCEPTS), expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_neither_batch_nor_order_nor_company_changes_a_cell(
    family: str, tiny: Tiny, pictures: list[Image.Image]
) -> None:
    scorer: Any = load_model(str(tiny(family)[0]), LoadOptions(batch_size=3))
    together = scores(scorer, pictures, CONCEPTS)
    alone = np.array([[scores(scorer, [p], [concept])[0, 0] for concept in CONCEPTS] for p in pictures])
    backwards = scores(scorer, pictures[::-1], CONCEPTS[::-1])[::-1, ::-1]
    tolerance = 0 if family in FUSED else 1e-6
    np.testing.assert_allclose(together, alone, atol=tolerance, rtol=0)
    np.testing.assert_allclose(together, backwards, atol=tolerance, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["grounding-dino", "mm-grounding-dino"])
def test_pixels_and_words_are_read_once_each(
    family: str, tiny: Tiny, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer: Any = load_model(str(tiny(family)[0]))
    core, calls = scorer._model.model, []
    for part in (core.backbone.conv_encoder.part, core.text_backbone.part):
        part.register_forward_hook(lambda module, *_: calls.append(type(module).__name__))
    scores(scorer, pictures[:3], CONCEPTS)
    assert sorted(map(calls.count, set(calls))) == [3, 3]  # three pictures, three concepts, not nine of either


def test_phrases_that_share_a_text_move_each_others_scores(tiny: Tiny, pictures: list[Image.Image]) -> None:
    """Why each concept has a pass of its own: the fusion layers mix what the masks keep apart."""
    scorer: Any = load_model(str(tiny("grounding-dino")[0]))
    inputs = scorer._encode_images([scorer.prepare(pictures[0])])
    with torch.no_grad():
        logits = scorer._model(**inputs, **scorer._tokens("nurse. tall man.")).logits
    shared = float(torch.sigmoid(logits[0, :, : len("nurse") + 1].max()))  # the first mark, then letter by letter
    assert abs(shared - scores(scorer, pictures[:1], ["nurse"])[0, 0, 0]) > 1e-4


def test_grounding_dino_reads_lower_case_that_ends_with_one_full_stop(tiny: Tiny, pictures: list[Image.Image]) -> None:
    scorer: Any = load_model(str(tiny("grounding-dino")[0]))
    found = scores(scorer, pictures[:1], ["Dog", "dog.", " dog ", "cat"])[0, :, 0]
    assert found[0] == found[1] == found[2] != found[3]
    assert scorer.spec.settings["text"]["form"] == "{}."


@pytest.mark.slow
def test_a_picture_padded_by_its_processor_keeps_its_mask(tiny: Tiny, pictures: list[Image.Image]) -> None:
    folder, _ = tiny("grounding-dino")
    scorer: Any = load_model(str(folder))
    assert "pixel_mask" not in scorer.prepare(pictures[0])
    scorer._image_processor.pad_size = {"height": 128, "width": 128}
    prepared = scorer.prepare(pictures[0])
    assert 0 < prepared["pixel_mask"].mean() < 1
    assert 0 < scorer.score_prepared([prepared], ["dog"])[0, 0, 0] < 1


@pytest.mark.parametrize("family", FAMILIES)
def test_a_picture_that_gives_nan_is_told_by_its_position(family: str, tiny: Tiny, pictures: list[Image.Image]) -> None:
    scorer: Any = load_model(str(tiny(family)[0]))
    prepared = [scorer.prepare(picture) for picture in pictures[:3]]
    prepared[1]["pixel_values"] = np.full_like(prepared[1]["pixel_values"], np.nan)
    with pytest.raises(UnusableScore) as raised:
        scorer.score_prepared(prepared, ["dog"])
    assert (raised.value.kind, raised.value.positions) == ("image", (1,))


def test_an_infinite_logit_is_not_certainty(tiny: Tiny, pictures: list[Image.Image]) -> None:
    scorer: Any = load_model(str(tiny("owlvit")[0]))
    scorer._model.class_head.logit_shift.bias.fill_(torch.inf)
    with pytest.raises(UnusableScore):
        scores(scorer, pictures[:1], ["dog"])


def test_memory_that_runs_out_is_told_as_such(
    tiny: Tiny, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer: Any = load_model(str(tiny("owlvit")[0]))

    def full(**_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    monkeypatch.setattr(scorer._model, "image_embedder", full)
    with pytest.raises(OutOfMemory, match="20 GiB"):
        scores(scorer, pictures[:1], ["dog"])


def test_pictures_may_be_prepared_in_several_threads(tiny: Tiny, pictures: list[Image.Image]) -> None:
    scorer = load_model(str(tiny("owlv2")[0]))
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(scorer.prepare, pictures * 3))
    for picture, prepared in zip(pictures * 3, threaded, strict=True):
        np.testing.assert_array_equal(prepared["pixel_values"], scorer.prepare(picture)["pixel_values"])


def test_a_text_that_is_too_long_is_cut_and_noted_once(tiny: Tiny, pictures: list[Image.Image]) -> None:
    scorer: Any = load_model(str(tiny("owlvit")[0]))
    scores(scorer, pictures[:2], ["dog", "a very very very tall person"])
    scores(scorer, pictures[:1], ["a very very very tall person"])
    assert [note for note in scorer.notes if "cut to the model's 16" in note] == scorer.notes
    assert len(scorer.notes) == 1


def test_no_concepts_and_no_pictures_are_no_cells(tiny: Tiny, pictures: list[Image.Image]) -> None:
    scorer: Any = load_model(str(tiny("owlvit")[0]))
    assert scores(scorer, pictures[:2], []).shape == (2, 0, 1)
    assert scores(scorer, [], ["dog"]).shape == (0, 1, 1)


def test_a_detector_is_no_embedder_and_says_what_its_score_is(tiny: Tiny) -> None:
    scorer = load_model(str(tiny("owlv2")[0]))
    assert not isinstance(scorer, Embedder)
    assert scorer.spec.settings["presence"] == "sigmoid of the class logit, best box"
    assert scorer.spec.settings["image_processor"]["class"] == "Owlv2ImageProcessorPil"
    assert scorer.spec.settings["text"] == {"form": "{}", "max_length": 16}


def test_weights_that_are_missing_are_refused(tiny: Tiny, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(tiny("owlvit")[0], tmp_path / "owl"))
    weights = load_file(folder / "model.safetensors")
    del weights["class_head.dense0.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"missing: class_head\.dense0\.weight"):
        load_model(str(folder))


@pytest.mark.parametrize("backbone", [{"model_type": "timm_backbone", "backbone": "swin_tiny"}, None])
def test_a_backbone_of_timm_without_timm_says_what_to_install(
    backbone: Any, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(tiny("omdet-turbo")[0], tmp_path / "omdet"))
    config = json.loads((folder / "config.json").read_text())
    config["backbone_config"] = backbone
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr("beholder.models.dense.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"timm.*\n.*pip install"):
        load_model(str(folder))


@pytest.mark.parametrize("family", ["owlv2", "omdet-turbo"])
def test_a_planted_fault_is_caught_when_the_model_is_loaded(
    family: str, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of the first concept is used for every concept, as by a cache with a wrong key."""
    folder, _ = tiny(family)
    kind = DENSE[family]
    encode, kept = kind._encode_text, {}
    monkeypatch.setattr(kind, "_encode_text", lambda self, concept: kept.setdefault("first", encode(self, concept)))
    with pytest.raises(ModelError, match="scored wrongly by Beholder"):
        load_model(str(folder))
