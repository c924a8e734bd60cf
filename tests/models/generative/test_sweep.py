"""The list of architectures covers every model of transformers that answers in words, and says what is so."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

pytest.importorskip("transformers")

import family_sweep_generative as generative
from family_sweep import try_case

from beholder.core.errors import MissingExtra
from beholder.models.catalog import architectures, family_of
from beholder.models.generative.loaded_model import require_vision
from beholder.models.generative.model_types import MODEL_TYPES
from beholder.models.load import load_model
from beholder.models.spec import LoadOptions

QUICK = ("cosmos3_omni", "fuyu", "hunyuan_vl", "minimax_m3_vl", "mistral4", "molmo2", "shieldgemma2")
SLOW = (
    *("blip-2", "cosmos3_edge", "florence2", "git", "llava", "llava_onevision", "mllama", "qianfan_ocr", "qwen3_5"),
    *("deepseek_ocr2", "emu3", "gemma4_unified", "inkling_mm_model", "nemotron_h_omni", "pp_chart2table"),
    *("qwen3_omni_moe_thinker", "step3p7", "unlimited_ocr", "aya_vision", "exaone4_5", "glm_ocr", "idefics2", "janus"),
    *("hyperclovax_vision_v2", "kimi_k25", "mistral_large4", "ovis2", "paddleocr_vl", "video_llama_3", "video_llava"),
)
LISTED = {each.model_type: each for each in architectures() if each.task == generative.TASK}


def test_every_architecture_of_the_installed_transformers_is_listed() -> None:
    """Run `python tools/family_sweep.py image-text-to-text` after transformers has changed."""
    assert {case.model_type for case in generative.cases()} == set(LISTED)
    assert {each.state for each in LISTED.values()} <= {"exact", "refused", "not built"}


def test_every_listed_architecture_is_known_as_one_that_answers_in_words() -> None:
    told = [{"model_type": each.model_type, "architectures": [each.architecture]} for each in LISTED.values()]
    assert [one for one in told if family_of(one).name != "generative"] == []


@pytest.mark.filterwarnings("ignore:.*image_patches", "ignore:__array__ implementation", "ignore:.*pixel_values_images")
@pytest.mark.parametrize("model_type", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_sweep_finds_what_the_list_says(model_type: str, tmp_path: Path) -> None:
    (case,) = (case for case in generative.cases() if case.model_type == model_type)
    if case.extra and not find_spec("torchvision"):
        pytest.skip("torchvision reads its pictures")
    outcome = try_case(case, tmp_path / "model")
    assert (outcome.state, outcome.way) == (LISTED[model_type].state, LISTED[model_type].shared), outcome.why


@pytest.mark.skipif(find_spec("torchvision") is not None, reason="torchvision is here")
def test_a_family_whose_processor_wants_torchvision_is_refused_with_the_extra(tmp_path: Path) -> None:
    """Before anything else is read: the folder has no weights."""
    (tmp_path / "config.json").write_text('{"model_type": "mistral3"}')
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "PixtralImageProcessor"}')
    (tmp_path / "processor_config.json").write_text('{"processor_class": "PixtralProcessor"}')
    with pytest.raises(MissingExtra, match=r"'mistral3', whose pictures .*\n.*\[vision\]"):
        require_vision(tmp_path, LoadOptions())
    (tmp_path / "config.json").write_text('{"model_type": "fuyu"}')
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "FuyuImageProcessor"}')
    (tmp_path / "processor_config.json").write_text('{"processor_class": "FuyuProcessor"}')
    with pytest.raises(MissingExtra, match="'fuyu', whose pictures are read by torchvision only"):
        require_vision(tmp_path, LoadOptions())
    assert LISTED["fuyu"].extra == LISTED["mistral3"].extra == LISTED["llama4"].extra == "vision"
    assert LISTED["llava"].extra == ""


@pytest.mark.skipif(find_spec("timm") is not None, reason="timm is here")
@pytest.mark.parametrize("tower", [("gemma3n", "gemma3n_vision"), ("fast_vlm", "timm_wrapper")])
def test_a_family_whose_image_tower_is_timms_names_the_extra(tower: tuple[str, str], tmp_path: Path) -> None:
    config = {"model_type": tower[0], "vision_config": {"model_type": tower[1]}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(MissingExtra, match=rf"'{tower[0]}', whose image tower is timm's.*\n.*\[vision\]"):
        require_vision(tmp_path, LoadOptions())


def test_a_model_whose_positions_follow_from_the_kinds_of_tokens_is_asked_for_them(
    tiny_generative: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As cosmos3_edge is: its processor gives them only when asked."""
    loaded: Any = load_model(str(tiny_generative("qwen2_5_vl")))._loaded  # type: ignore[attr-defined]
    asked: list[Any] = []
    inner = type(loaded.processor).__call__

    def noted(self: Any, *given: Any, **options: Any) -> Any:
        asked.append(options.get("return_mm_token_type_ids"))
        return inner(self, *given, **options)

    monkeypatch.setattr(type(loaded.processor), "__call__", noted)
    monkeypatch.setitem(MODEL_TYPES, "qwen2_5_vl", MODEL_TYPES["cosmos3_edge"])
    loaded.encode_alone(Image.new("RGB", (40, 30)), "?")
    assert asked == [True]


def test_a_mask_that_the_text_brings_too_is_the_texts() -> None:
    """As with Kosmos 2.5: the same name would be of the picture that was shown first."""
    from beholder.models.generative.processor import PictureProcessor

    pictures = PictureProcessor(lambda images, **options: {"flattened_patches": 1, "attention_mask": 1})
    pictures([Image.new("RGB", (4, 4))])
    assert pictures.made == {"flattened_patches"}
