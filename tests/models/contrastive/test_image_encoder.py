"""Image encoders without text: their own vectors are read, and a text study says what to ask instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import ModelError, NotAskable
from beholder.models.load import load_model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "image_size": 32}
MODELS: dict[str, Callable[[], object]] = {
    "dinov2": lambda: transformers.Dinov2Model(transformers.Dinov2Config(patch_size=8, mlp_ratio=2, **SMALL)),
    "vit": lambda: transformers.ViTModel(transformers.ViTConfig(patch_size=8, **SMALL)),
    "vit with labels": lambda: transformers.ViTForImageClassification(transformers.ViTConfig(patch_size=8, **SMALL)),
    "siglip tower": lambda: transformers.SiglipVisionModel(transformers.SiglipVisionConfig(patch_size=8, **SMALL)),
    "clip tower": lambda: transformers.CLIPVisionModelWithProjection(
        transformers.CLIPVisionConfig(patch_size=8, projection_dim=12, **SMALL)
    ),
}
PROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "size": {"height": 32, "width": 32},
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}


def saved(kind: str, folder: Path) -> Path:
    torch.manual_seed(1)
    MODELS[kind]().save_pretrained(folder)  # type: ignore[attr-defined]
    (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    return folder


def theirs(folder: Path, kind: str, picture: Image.Image) -> np.ndarray:
    """The vector that the library's own class gives, with the arithmetic written out."""
    model = MODELS[kind]
    loaded = type(model()).from_pretrained(folder).eval()  # type: ignore[attr-defined]
    pixels = np.asarray(picture.resize((32, 32), Image.Resampling.BILINEAR), dtype=np.float32) / 255
    with torch.no_grad():
        batch = torch.from_numpy((pixels - 0.5) / 0.5).permute(2, 0, 1)[None]
        output = loaded.vit(batch) if kind == "vit with labels" else loaded(batch)
    if kind == "clip tower":
        vector = output.image_embeds
    else:
        vector = output.last_hidden_state[:, 0] if kind == "vit with labels" else output.pooler_output
    return np.asarray(vector[0] / vector[0].norm())


@pytest.mark.parametrize("kind", MODELS)
def test_an_encoder_gives_its_own_vectors(kind: str, tmp_path: Path):
    scorer = load_model(str(saved(kind, tmp_path)))
    picture = Image.effect_noise((48, 40), 60).convert("RGB")
    mine = scorer.embed_prepared([scorer.prepare(picture)])[0]  # type: ignore[attr-defined]
    assert mine == pytest.approx(theirs(tmp_path, kind, picture), abs=1e-4)


def test_a_text_is_refused_with_what_to_ask_instead(tmp_path: Path):
    scorer = load_model(str(saved("dinov2", tmp_path)))
    with pytest.raises(NotAskable, match="no text tower"):
        scorer.embed_texts(["a nurse"])  # type: ignore[attr-defined]


def test_weights_that_are_missing_are_refused(tmp_path: Path):
    folder = saved("vit with labels", tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["ViTModel"]}))  # has a pooler
    with pytest.raises(ModelError, match="missing: pooler"):
        load_model(str(folder))
