"""The open_clip adapter against open_clip itself; run by `tests/models/test_openclip.py` where open_clip is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from conformance import openclip as tiny
from PIL import Image
from safetensors.torch import load_file, save_file

from beholder.core.errors import ModelError, UnknownName
from beholder.datasets.images import open_image
from beholder.models.checkpoint.files import Origin, Snapshot
from beholder.models.contrastive import openclip
from beholder.models.load import LoadOptions, as_scorer, load_model

ARCHITECTURES = ["tiny-ViT", "tiny-ViT-quickgelu", "tiny-RN", "tiny-CoCa", "tiny-bias"]
Weights = Callable[[str], Path]


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    """`weights("tiny-RN")` is the file of a tiny random model, its architecture on open_clip's list."""
    folder, made = tmp_path_factory.mktemp("openclip"), {}
    tiny.register(folder)

    def file(architecture: str) -> Path:
        if architecture not in made:
            made[architecture] = tiny.save_weights(folder, architecture)
        return made[architecture]

    return file


def loaded(architecture: str, file: Path, **options: Any) -> Any:
    return load_model(f"openclip:{architecture}/{file}", LoadOptions(**options))


@pytest.mark.parametrize("batch_size", [1, 3, 16])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_equal_open_clips_own(
    architecture: str, batch_size: int, weights: Weights, pictures: list[Image.Image], prompts: list[str]
) -> None:
    scorer = loaded(architecture, weights(architecture), batch_size=batch_size)
    cells = scorer.score_prepared([scorer.prepare(picture) for picture in pictures], prompts)[:, :, 0]
    logits = scorer.spec.settings["logit_scale"] * cells + scorer.spec.settings["logit_bias"]
    expected = their_logits(architecture, weights(architecture), pictures, prompts)
    assert np.ptp(expected) > 0.05, "the tiny model tells nothing apart; the test would prove nothing"
    np.testing.assert_allclose(logits, expected, atol=1e-4 if architecture == "tiny-bias" else 1e-5)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
@pytest.mark.parametrize("form", ["shortest", "squash"])
def test_a_transparent_picture_is_what_open_clips_transform_makes_of_it(form: str, mode: str, tmp_path: Path) -> None:
    path, rng = tmp_path / "picture.png", np.random.default_rng(9)
    picture = Image.fromarray(rng.integers(0, 256, (60, 45, 4), dtype=np.uint8))
    picture = picture.convert("RGB").quantize(20) if mode == "P" else picture.convert(mode)
    picture.save(path, **{"transparency": 3} if mode == "P" else {})
    settings = {"size": 32, "interpolation": "bicubic", "resize_mode": form, "mean": (0.5,) * 3, "std": (0.25,) * 3}
    transform = openclip.image_transform_v2(openclip.PreprocessCfg(**settings), is_train=False)
    theirs = transform(Image.open(path)).numpy()
    whole, split = openclip.ByTransform(transform), openclip.transform_split(settings)
    assert split is not None
    assert whole.keeps_alpha
    assert split.cut.keeps_alpha
    shown = open_image(str(path), alpha=True)
    np.testing.assert_array_equal(whole(shown), theirs)
    np.testing.assert_array_equal(split.arithmetic(split.cut(shown)[None])[0], theirs)


def their_logits(architecture: str, file: Path, pictures: list[Image.Image], prompts: list[str]) -> Any:
    """The slow way, as open_clip's README has it."""
    model, preprocess = open_clip.create_model_from_pretrained(architecture, pretrained=str(file))
    tokenizer = open_clip.get_tokenizer(architecture)
    model.eval().requires_grad_(False)

    def cell(picture: Image.Image, prompt: str) -> float:
        with torch.no_grad():
            image = model.encode_image(preprocess(picture)[None], normalize=True)
            text = model.encode_text(tokenizer([prompt]), normalize=True)
        bias = 0.0 if model.logit_bias is None else float(model.logit_bias)
        return float(model.logit_scale.exp() * (image @ text.T)[0, 0]) + bias

    return np.array([[cell(picture, prompt) for prompt in prompts] for picture in pictures])


def by_hand(picture: Image.Image, side: int, *, squash: bool, resample: int, mean: Any, std: Any) -> Any:
    """Preprocessing without torchvision."""
    picture = picture.convert("RGB")
    width, height = picture.size
    shortest = min(width, height)
    size = (side, side) if squash else (int(side * width / shortest), int(side * height / shortest))
    picture = picture.resize(size, resample)
    left, top = round((size[0] - side) / 2), round((size[1] - side) / 2)
    picture = picture.crop((left, top, left + side, top + side))
    pixels = np.asarray(picture, dtype=np.float32) / 255
    return ((pixels - np.float32(mean)) / np.float32(std)).transpose(2, 0, 1)


def test_pictures_are_prepared_as_by_hand(weights: Weights, pictures: list[Image.Image]) -> None:
    scorer = loaded("tiny-ViT", weights("tiny-ViT"))
    mean, std = open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD
    for picture in pictures:
        expected = by_hand(picture, 32, squash=False, resample=Image.Resampling.BICUBIC, mean=mean, std=std)
        prepared = scorer.prepare(picture)
        assert prepared.dtype == np.float32
        np.testing.assert_allclose(prepared, expected, atol=1e-5)


@pytest.fixture
def listed(weights: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tag `house` of tiny-ViT with settings of its own, and a hub that has it."""
    tag = {
        "hf_hub": "house/tiny/",
        "mean": (0.4, 0.5, 0.6),
        "std": (0.2, 0.3, 0.4),
        "interpolation": "bilinear",
        "resize_mode": "squash",
    }
    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, "tiny-ViT", {"house": tag})
    (tmp_path / "open_clip_model.safetensors").write_bytes(weights("tiny-ViT").read_bytes())

    def fetch_files(repository: str, revision: str, patterns: list[str]) -> Snapshot:
        assert (repository, revision) == ("house/tiny", "v2")
        return Snapshot(tmp_path, Origin(repository, "0123abc"))

    monkeypatch.setattr(openclip, "fetch_files", fetch_files)
    return tmp_path


def test_a_tag_brings_its_commit_and_its_preprocessing(listed: Path, pictures: list[Image.Image]) -> None:
    scorer = load_model("openclip:tiny-ViT/house", LoadOptions(revision="v2"))
    assert (scorer.spec.name, scorer.spec.weights, scorer.spec.revision) == (
        "openclip:tiny-ViT/house",
        "house/tiny",
        "0123abc",
    )
    settings = scorer.spec.settings["image_processor"]
    assert (settings["resize_mode"], settings["interpolation"], settings["size"]) == ("squash", "bilinear", [32, 32])
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    for picture in pictures:
        expected = by_hand(picture, 32, squash=True, resample=Image.Resampling.BILINEAR, mean=mean, std=std)
        np.testing.assert_allclose(scorer.prepare(picture), expected, atol=1e-5)


def test_a_repository_without_safetensors_says_what_to_do(listed: Path) -> None:
    (listed / "open_clip_model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"house/tiny has no open_clip_model.safetensors(?s:.)*--allow-pickle"):
        load_model("openclip:tiny-ViT/house", LoadOptions(revision="v2"))


def activations(architecture: str, tag: str) -> tuple[str, ...]:
    """What the architecture computes and what the weights were trained with."""
    configs = open_clip.get_model_config(architecture), open_clip.get_pretrained_cfg(architecture, tag)
    return tuple("QuickGELU" if config.get("quick_gelu") else "GELU" for config in configs)


def test_every_wrong_activation_of_the_list_names_a_right_pair() -> None:
    pairs = open_clip.list_pretrained()
    wrong = [pair for pair in pairs if len(set(activations(*pair))) == 2]
    contradictory = {architecture for architecture, _ in wrong if f"{architecture}-quickgelu" not in dict(pairs)}
    assert contradictory == {"roberta-ViT-B-32"}, "open_clip's two lists disagree there; no other pair exists"
    assert ("ViT-B-32", "openai") in wrong
    for architecture, tag in wrong:
        if architecture in contradictory:
            continue
        with pytest.raises(ModelError, match="The right pair is") as raised:
            load_model(f"openclip:{architecture}/{tag}")
        right = tuple(str(raised.value).rpartition("openclip:")[2].split("/"))
        assert right in pairs
        assert len(set(activations(*right))) == 1


def test_the_right_pair_of_vit_b_32_and_openai_has_quickgelu_in_its_name() -> None:
    with pytest.raises(ModelError, match=r"openclip:ViT-B-32-quickgelu/openai$"):
        load_model("openclip:ViT-B-32/openai")


def test_wrong_names_suggest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'ViT-B-32'"):
        load_model("openclip:ViT-B32/openai")
    with pytest.raises(UnknownName, match="Did you mean 'openai'"):
        load_model("openclip:RN50-quickgelu/opena")
    with pytest.raises(UnknownName, match="It has: cc12m, openai, yfcc15m"):
        load_model("openclip:RN50-quickgelu")


def test_pickled_weights_are_read_only_when_allowed(
    weights: Weights, tmp_path: Path, pictures: list[Image.Image]
) -> None:
    torch.save(load_file(weights("tiny-ViT")), tmp_path / "tiny.pt")
    with pytest.raises(ModelError, match="--allow-pickle"):
        loaded("tiny-ViT", tmp_path / "tiny.pt")
    pickled = loaded("tiny-ViT", tmp_path / "tiny.pt", allow_pickle=True)
    safe = loaded("tiny-ViT", weights("tiny-ViT"))
    prepared = [safe.prepare(picture) for picture in pictures]
    np.testing.assert_array_equal(pickled.score_prepared(prepared, ["a"]), safe.score_prepared(prepared, ["a"]))


@pytest.mark.parametrize(
    ("key", "rows"), [("visual.positional_embedding", 26), ("positional_embedding", 12)], ids=["image", "text"]
)
def test_positions_that_would_be_stretched_are_refused(key: str, rows: int, weights: Weights, tmp_path: Path) -> None:
    tensors = load_file(weights("tiny-ViT"))
    tensors[key] = torch.zeros(rows, tensors[key].shape[1])
    save_file(tensors, tmp_path / "other.safetensors")
    with pytest.raises(ModelError, match=r"would change every score: Resizing .*position embedding"):
        loaded("tiny-ViT", tmp_path / "other.safetensors")


@pytest.mark.parametrize(("architecture", "key"), [("tiny-bias", "logit_bias"), ("tiny-ViT", "ln_final.bias")])
def test_missing_weights_are_refused_by_name(architecture: str, key: str, weights: Weights, tmp_path: Path) -> None:
    tensors = load_file(weights(architecture))
    del tensors[key]
    save_file(tensors, tmp_path / "less.safetensors")
    with pytest.raises(ModelError, match=key):
        loaded(architecture, tmp_path / "less.safetensors")


def test_the_weights_of_another_architecture_are_refused(weights: Weights) -> None:
    with pytest.raises(ModelError, match=r"cannot be loaded by open_clip"):
        loaded("tiny-RN", weights("tiny-ViT"))


def test_the_activation_is_in_the_spec_and_moves_the_scores(weights: Weights, pictures: list[Image.Image]) -> None:
    one, other = (loaded(name, weights("tiny-ViT")) for name in ("tiny-ViT", "tiny-ViT-quickgelu"))
    assert one.spec.revision == other.spec.revision
    assert one.spec.digest != other.spec.digest
    prepared = [one.prepare(picture) for picture in pictures]
    assert not np.allclose(one.embed_prepared(prepared), other.embed_prepared(prepared), atol=1e-4)
    assert "QuickGELU" in one.notes[0]


def test_a_text_that_is_too_long_is_cut_and_noted_once(weights: Weights) -> None:
    scorer = loaded("tiny-ViT", weights("tiny-ViT"))
    long = "a photo of " + "a very " * 20 + "tall person"
    before = list(scorer.notes)
    scorer.embed_texts(["a dog", long, long])
    (note,) = scorer.notes[len(before) :]
    assert "text of 47 tokens cut to the model's 24" in note


def test_loading_leaves_the_log_as_it_was(weights: Weights) -> None:
    import logging

    before = logging.root.level, list(logging.root.handlers)
    loaded("tiny-ViT", weights("tiny-ViT"))
    assert (logging.root.level, list(logging.root.handlers)) == before


def test_a_loaded_triple_scores_as_its_file_does(weights: Weights, pictures: list[Image.Image], prompts: list[str]):
    file = weights("tiny-ViT")
    model, preprocess = open_clip.create_model_from_pretrained("tiny-ViT", pretrained=str(file))
    triple = (model.train(), preprocess, open_clip.get_tokenizer("tiny-ViT"))
    scorer, expected = as_scorer(triple, LoadOptions()), loaded("tiny-ViT", file)
    assert model.training
    ours, theirs = (
        each.score_prepared([each.prepare(picture) for picture in pictures], prompts) for each in (scorer, expected)
    )
    np.testing.assert_array_equal(ours, theirs)
    with torch.no_grad():
        model.text_projection.add_(0.1)
    assert as_scorer(triple, LoadOptions()).spec.digest != scorer.spec.digest


def test_the_transform_for_training_is_refused(weights: Weights):
    file = weights("tiny-ViT")
    model, for_training, _ = open_clip.create_model_and_transforms("tiny-ViT", pretrained=str(file))
    with pytest.raises(ModelError, match="the one for training"):
        as_scorer((model, for_training, open_clip.get_tokenizer("tiny-ViT")), LoadOptions())
