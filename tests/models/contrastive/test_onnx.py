"""ONNX folders: wrong ones are told by file and key; the real ones score as a plain onnxruntime loop does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tiny_two_towers import ONNX_IMAGE

from beholder.core.errors import ModelError, UnknownName
from beholder.models import load
from beholder.models.contrastive.onnx import ImageConfig, read_onnx_config
from beholder.models.load import LoadOptions, load_model

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

CONFIG: dict[str, Any] = {
    "image": ONNX_IMAGE,
    "text": {"inputs": ["input_ids", "attention_mask"], "output": "text_embeds", "max_length": 64},
    "logit_scale": 100.0,
}


def onnx_folder(folder: Path, section: str = "", **changes: Any) -> Path:
    """A folder with this configuration and graphs that are none; a change to None takes the key out."""
    config = json.loads(json.dumps(CONFIG))
    part = config[section] if section else config
    part.update(changes)
    for key in [key for key, value in changes.items() if value is None]:
        del part[key]
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("image.onnx", "text.onnx", "tokenizer.json"):
        (folder / name).write_text("no graph")
    return folder


@pytest.mark.parametrize(
    ("section", "changes", "told"),
    [
        ("", {"image": None}, "'image' must be an object; it is missing"),
        ("", {"logit_scale": "high"}, "'logit_scale' must be a number; it is 'high'"),
        ("", {"text": None}, "has no 'text', and .* has no text_table.npy"),
        ("image", {"size": 0}, "'image.size' must be a whole number above 0; it is 0"),
        ("image", {"input": None}, "'image.input' must be a text; it is missing"),
        ("image", {"mean": [0.5]}, "'image.mean' must be three numbers"),
        ("image", {"resize": "longest edge, bicubic"}, "'image.resize' must be 'HOW, FILTER'"),
        ("image", {"crop": "left"}, "'image.crop' must be one of center, none"),
        ("text", {"inputs": "input_ids"}, "'text.inputs' must be a list of texts"),
        ("text", {"max_length": None}, "'text.max_length' must be a whole number"),
    ],
)
def test_a_wrong_key_is_named_with_its_file(tmp_path: Path, section: str, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError, match=told) as raised:
        load_model(f"onnx:{onnx_folder(tmp_path, section, **changes)}")
    assert "config.json" in str(raised.value)


@pytest.mark.parametrize("name", ["image.onnx", "text.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (onnx_folder(tmp_path) / name).unlink()
    with pytest.raises(ModelError, match=rf"has no {name}, which config.json names(.|\n)*It holds: config.json"):
        load_model(f"onnx:{tmp_path}")


@pytest.mark.parametrize("name", ["../image.onnx", "/image.onnx"])
def test_a_file_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="lies outside the model's folder"):
        load_model(f"onnx:{onnx_folder(tmp_path, 'image', file=name)}")


@pytest.mark.parametrize("place", ["../secret.bin", "{folder}/../secret.bin", "link.bin"])
def test_a_graph_reads_no_weights_outside_its_folder(tmp_path: Path, place: str) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    weights = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", place.format(folder=folder)), ("length", "16")):
        weights.external_data.add(key=key, value=value)
    ends = [onnx.helper.make_tensor_value_info(name, 1, [4]) for name in "xy"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weights]
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    onnx_folder(folder)
    (folder / "image.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=r"image\.onnx is not a graph that onnxruntime can run.*External data path"):
        load_model(f"onnx:{folder}")


def test_weights_of_any_name_are_part_of_the_model(tmp_path: Path) -> None:
    from beholder.models.contrastive.onnx import model_files

    folder = onnx_folder(tmp_path)
    for name in ("weights.bin", "readme.md"):
        (folder / name).write_text("x")
    (folder / "image.onnx").write_bytes(b"\x08\x08 location weights.bin")
    names = {path.name for path in model_files(folder, read_onnx_config(folder))}
    assert names == {"config.json", "image.onnx", "text.onnx", "tokenizer.json", "weights.bin"}


def test_a_file_that_is_no_graph_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"image.onnx is not a graph that onnxruntime can run"):
        load_model(f"onnx:{onnx_folder(tmp_path)}")


def test_a_device_without_provider_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no device 'tpu'"):
        load_model(f"onnx:{onnx_folder(tmp_path)}", LoadOptions(device="tpu"))


@pytest.mark.parametrize("size", [(300, 451), (451, 300), (224, 224), (50, 37), (1000, 230)])
def test_preprocessing_is_that_of_clip_in_transformers(size: tuple[int, int], tmp_path: Path) -> None:
    clip = pytest.importorskip("transformers").CLIPImageProcessorPil()
    from beholder.models.contrastive.onnx import cut_of

    config: ImageConfig = read_onnx_config(onnx_folder(tmp_path)).image
    noise = np.random.default_rng(1).integers(0, 256, (*size, 3), dtype=np.uint8)
    picture = Image.fromarray(noise)
    expected = clip(images=picture, return_tensors="np", do_normalize=False, do_rescale=False)
    ours = cut_of(config)(picture).transpose(2, 0, 1)
    np.testing.assert_array_equal(ours, expected["pixel_values"][0])


@pytest.fixture(scope="session")
def senators(data: Path) -> list[Image.Image]:
    files = sorted((data / "apa/benchmark-data-v1/senate").glob("*.jpg"))[:6]
    return [Image.open(file).convert("RGB") for file in files]


@pytest.mark.real
def test_the_bridge_scores_as_a_plain_loop_does(bridge: Path, senators: list[Image.Image]) -> None:
    import onnxruntime
    from tokenizers import Tokenizer

    scorer = load_model(f"onnx:{bridge}")
    prompts = ["a photo of a politician", "a dog", "a photo of a very old woman who smiles"]
    prepared = [scorer.prepare(picture) for picture in senators]
    image = onnxruntime.InferenceSession(bridge / "image.onnx", providers=["CPUExecutionProvider"])
    text = onnxruntime.InferenceSession(bridge / "text.onnx", providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(bridge / "tokenizer.json"))

    def text_vector(prompt: str) -> Any:
        encoding = tokenizer.encode(prompt)
        inputs = {"input_ids": [encoding.ids], "attention_mask": [encoding.attention_mask]}
        return text.run(["text_embeds"], {name: np.array(value) for name, value in inputs.items()})[0][0]

    images = [image.run(["image_embeds"], {"pixel_values": array[None]})[0][0] for array in prepared]
    texts = [text_vector(prompt) for prompt in prompts]
    expected = [[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in texts] for a in images]
    np.testing.assert_allclose(scorer.score_prepared(prepared, prompts)[:, :, 0], expected, atol=1e-6)


@pytest.mark.real
def test_the_bridge_takes_one_picture_per_call_whatever_is_asked(bridge: Path) -> None:
    assert load_model(f"onnx:{bridge}", LoadOptions(batch_size=32)).batch_size == 1


@pytest.mark.real
def test_a_text_too_long_for_the_bridge_is_noted(bridge: Path) -> None:
    scorer: Any = load_model(f"onnx:{bridge}")
    alone = scorer.embed_texts(["a dog"])
    together = scorer.embed_texts(["a dog", "word " * 100])
    assert [note.partition(":")[0] for note in scorer.notes] == ["text of 102 tokens cut to the model's 64"]
    np.testing.assert_allclose(together[:1], alone, atol=1e-6)


@pytest.mark.real
def test_real_clip_with_a_closed_vocabulary_sees_persons(closed_vocabulary: Path, senators: list[Image.Image]) -> None:
    scorer: Any = load_model(f"onnx:{closed_vocabulary}")
    classes = ["person", "dog", "giraffe", "potted plant", "tree", "bed", "chair"]
    prepared = [scorer.prepare(picture) for picture in senators]
    cosines = scorer.score_prepared(prepared, [f"a photo of a {name}" for name in classes])[:, :, 0]
    powers = np.exp(scorer.spec.settings["logit_scale"] * cosines)
    assert (powers[:, 0] / powers.sum(axis=1) > 0.9).all()
    assert len(scorer._text.texts) == 171


@pytest.mark.real
def test_a_text_outside_the_real_vocabulary_suggests_the_nearest(closed_vocabulary: Path) -> None:
    scorer: Any = load_model(f"onnx:{closed_vocabulary}")
    with pytest.raises(UnknownName, match="Did you mean 'a photo of a giraffe'"):
        scorer.embed_texts(["a photo of a girafe"])


@pytest.mark.real
def test_a_graph_with_other_names_than_the_config_says_is_told(bridge: Path, tmp_path: Path) -> None:
    onnx_folder(tmp_path, "image", output="vectors")
    (tmp_path / "image.onnx").unlink()
    (tmp_path / "image.onnx").symlink_to((bridge / "image.onnx").resolve())
    with pytest.raises(ModelError, match=r"gives vectors; it takes pixel_values and gives image_embeds"):
        load_model(f"onnx:{tmp_path}")


@pytest.mark.real
def test_an_onnx_model_is_scored_without_torch(bridge: Path) -> None:
    code = (
        "import sys; from PIL import Image; from beholder.models.load import load_model;"
        f"scorer = load_model('onnx:{bridge}');"
        "scorer.score_prepared([scorer.prepare(Image.new('RGB', (50, 40)))], ['a dog']);"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    sources = str(Path(load.__file__).parents[2])
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": sources})
