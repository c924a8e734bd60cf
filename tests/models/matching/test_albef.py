"""ALBEF reads its published checkpoints by their own names, and texts as the code did that trained them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import ModelError, UnknownName
from beholder.models.load import LoadOptions, load_model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from conformance import matching  # noqa: E402

PROMPTS = ["a photo of a doctor", "A photo of the smiling woman, and the man.", "dog"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny ALBEF that a test may change."""
    return matching.make_albef(tmp_path / "albef")


def scores(folder: Path, pictures: list[Image.Image], **options: Any) -> Any:
    scorer = load_model(str(folder), LoadOptions(device="cpu", **options))
    return scorer.score_prepared([scorer.prepare(picture) for picture in pictures], PROMPTS)


def weights_of(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "model.safetensors"))


def rewrite(folder: Path, weights: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    save_file(weights, folder / "model.safetensors")


def configure(folder: Path, **settings: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def test_fine_tuned_names_are_the_pre_trained_ones_without_bert(folder: Path, pictures: list[Image.Image]) -> None:
    expected = scores(folder, pictures)
    rewrite(folder, {name.replace(".bert.", "."): value for name, value in weights_of(folder).items()})
    np.testing.assert_array_equal(scores(folder, pictures), expected)


def test_what_makes_no_score_is_left_aside(folder: Path, pictures: list[Image.Image]) -> None:
    expected, weights = scores(folder, pictures), weights_of(folder)
    copies = {name.replace(".", "_m.", 1): value + 1 for name, value in weights.items() if "proj" in name}
    others = ("image_queue", "text_queue", "queue_ptr", "text_encoder.cls.predictions.bias")
    others += ("text_encoder.bert.embeddings.position_ids", "visual_encoder_m.pos_embed")
    rewrite(folder, weights | copies | {name: torch.ones(3) for name in others})
    np.testing.assert_array_equal(scores(folder, pictures), expected)


@pytest.mark.parametrize("name", ["itm_head.bias", "text_encoder.bert.encoder.layer.2.crossattention.self.key.bias"])
def test_a_missing_weight_is_an_error(folder: Path, name: str) -> None:
    weights = weights_of(folder)
    del weights[name]
    rewrite(folder, weights)
    with pytest.raises(ModelError, match="missing: "):
        load_model(str(folder))


def test_a_weight_too_many_is_an_error(folder: Path) -> None:
    rewrite(folder, weights_of(folder) | {"visual_encoder.head.weight": torch.ones(2, 2)})
    with pytest.raises(ModelError, match=r"unexpected: visual_encoder\.head\.weight"):
        load_model(str(folder))


def test_a_weight_of_another_shape_is_an_error(folder: Path) -> None:
    rewrite(folder, weights_of(folder) | {"itm_head.bias": torch.ones(3)})
    with pytest.raises(ModelError, match=r"of another shape: itm_head\.bias"):
        load_model(str(folder))


def test_a_pickled_checkpoint_is_read_only_when_allowed(folder: Path, pictures: list[Image.Image]) -> None:
    expected = scores(folder, pictures)
    state = {"model": weights_of(folder), "epoch": 3, "config": {"temp": 0.07}}
    torch.save(state, folder / "ALBEF.pth")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="--allow-pickle"):
        load_model(str(folder))
    np.testing.assert_array_equal(scores(folder, pictures, allow_pickle=True), expected)


class Trap:
    """What a hostile checkpoint would hold."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("sprung"),)


def test_a_pickle_with_code_in_it_is_not_run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (folder / "model.safetensors").unlink()
    torch.save({"model": Trap()}, folder / "ALBEF.pth")
    with pytest.raises(ModelError, match="cannot be read as weights alone"):
        load_model(str(folder), LoadOptions(allow_pickle=True))
    assert not Path("sprung").exists()
    with (folder / "ALBEF.pth").open("wb") as file:
        pickle.dump([1, 2], file)
    with pytest.raises(ModelError, match=r"cannot be read as weights alone|not named weights"):
        load_model(str(folder), LoadOptions(allow_pickle=True))


def test_two_checkpoints_in_one_folder_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    for name in ("ALBEF.pth", "mscoco.pth"):
        torch.save({}, folder / name)
    with pytest.raises(ModelError, match=r"several checkpoints \(ALBEF.pth, mscoco.pth\)"):
        load_model(str(folder), LoadOptions(allow_pickle=True))


def test_another_image_size_stretches_the_position_table(folder: Path, pictures: list[Image.Image]) -> None:
    from beholder.models.albef import resized_positions

    trained: Any = load_model(str(folder))
    assert trained.prepare(pictures[0]).shape == (3, 32, 32)
    configure(folder, image_size=48)
    larger: Any = load_model(str(folder))
    assert larger.prepare(pictures[0]).shape == (3, 48, 48)
    table = weights_of(folder)["visual_encoder.pos_embed"]
    stretched = resized_positions(table, side=6)
    grid = table[0, 1:].reshape(4, 4, -1).permute(2, 0, 1)[None]
    expected = torch.nn.functional.interpolate(grid, size=(6, 6), mode="bicubic", align_corners=False)
    assert stretched.shape == (1, 37, table.shape[2])
    torch.testing.assert_close(stretched[0, 0], table[0, 0])
    torch.testing.assert_close(stretched[0, 1 + 6 * 2 + 3], expected[0, :, 2, 3])
    found = larger._matcher._model.visual_encoder.embeddings.position_embedding
    torch.testing.assert_close(found, stretched)


def test_pictures_become_squares_with_clips_mean(folder: Path, pictures: list[Image.Image]) -> None:
    scorer: Any = load_model(str(folder))
    square = pictures[3].convert("RGB").resize((32, 32), Image.Resampling.BICUBIC)
    mean, spread = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    expected = (np.asarray(square) / 255 - mean) / spread
    np.testing.assert_allclose(scorer.prepare(pictures[3]), expected.transpose(2, 0, 1), atol=1e-5)


def test_captions_are_cleaned_and_left_open_as_albef_does(folder: Path) -> None:
    scorer: Any = load_model(str(folder))
    ids = scorer._tokens(["A photo, of (the) man/woman."])
    words = scorer._reading.tokenizer.convert_ids_to_tokens(ids[0])
    assert words == ["[CLS]", "a", "photo", "of", "the", "man", "woman"]


def test_captions_are_cleaned_and_closed_as_lavis_does(folder: Path) -> None:
    configure(folder, code="lavis")
    scorer: Any = load_model(str(folder))
    ids = scorer._tokens(["A photo, of (the) man."])
    words = scorer._reading.tokenizer.convert_ids_to_tokens(ids[0])
    assert words == ["[CLS]", "a", "photo", ",", "of", "the", "man", "[SEP]"]


@pytest.mark.parametrize(("code", "last"), [("albef", "man"), ("lavis", "[SEP]")])
def test_captions_are_cut_at_thirty_tokens_and_noted(folder: Path, code: str, last: str) -> None:
    configure(folder, code=code)
    scorer: Any = load_model(str(folder))
    ids = scorer._tokens(["man " * 50])
    assert [len(row) for row in ids] == [30]
    assert scorer._reading.tokenizer.convert_ids_to_tokens(ids[0])[-1] == last
    assert "cut to the model's 30" in scorer.notes[0]


def test_token_types_are_added_as_albef_does_and_passed_over_as_lavis_does(
    folder: Path, pictures: list[Image.Image]
) -> None:
    name = "text_encoder.bert.embeddings.token_type_embeddings.weight"
    weights, zero = weights_of(folder), torch.zeros(2, 24)
    before = scores(folder, pictures)
    rewrite(folder, weights | {name: zero})
    assert not np.allclose(scores(folder, pictures), before, atol=1e-3)
    configure(folder, code="lavis")
    without = scores(folder, pictures)
    rewrite(folder, weights)
    np.testing.assert_array_equal(scores(folder, pictures), without)


def test_a_checkpoint_of_lavis_is_not_taken_for_one_of_albef(folder: Path) -> None:
    rewrite(folder, {name: value for name, value in weights_of(folder).items() if "token_type" not in name})
    with pytest.raises(ModelError, match='"code": "lavis"'):
        load_model(str(folder))
    configure(folder, code="lavis")
    assert load_model(str(folder)).spec.settings["text"]["template"] == "[CLS] $A [SEP]"


def test_a_setting_that_does_not_exist_is_told_with_the_nearest(folder: Path) -> None:
    configure(folder, image_sise=256)
    with pytest.raises(UnknownName, match="Did you mean 'image_size'"):
        load_model(str(folder))


def test_a_setting_of_the_wrong_kind_is_told(folder: Path) -> None:
    configure(folder, image_size="256")
    with pytest.raises(ModelError, match="'image_size' must be of type int, not '256'"):
        load_model(str(folder))


def test_a_code_base_that_is_not_known_is_told(folder: Path) -> None:
    configure(folder, code="lavish")
    with pytest.raises(UnknownName, match="Did you mean 'lavis'"):
        load_model(str(folder))


def test_another_vocabulary_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    lines = (folder / "vocab.txt").read_text().splitlines()
    (folder / "vocab.txt").write_text("".join(f"{line}\n" for line in lines[:-1]))
    with pytest.raises(ModelError, match="the vocabulary of bert-base-uncased"):
        load_model(str(folder))


def test_the_vocabulary_alone_is_enough_of_a_tokenizer(folder: Path, pictures: list[Image.Image]) -> None:
    expected = scores(folder, pictures)
    for path in folder.glob("tokenizer*"):
        path.unlink()
    np.testing.assert_array_equal(scores(folder, pictures), expected)


def test_the_spec_holds_what_moves_a_score(folder: Path) -> None:
    spec = load_model(str(folder)).spec
    assert spec.settings["text"] == {
        "max_length": 30,
        "padding": "longest, right",
        "tokenizer": "BertTokenizer",
        "cleaning": "albef",
        "template": "[CLS] $A",
    }
    assert spec.settings["itc_logit_scale"] == pytest.approx(1 / 0.07)
    configure(folder, max_text_length=20)
    assert load_model(str(folder)).spec.digest != spec.digest
