"""The tiny models of ../shared score as the plain logits beside them, whichever picture was shown before."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import ModelError
from beholder.models.load import LoadOptions, load_model

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from beholder.models.generative.model_types import Reuse  # noqa: E402

pytestmark = pytest.mark.real
SLOW = pytest.mark.slow
QUESTIONS = ["Is the person in the image a woman?", "nurse", "a photo of a doctor, a nurse and the politician"]
REFUSED = {
    "florence2": r"given a task by one of its own tokens .* none of them is a question",
    "llama4": r"read by torchvision only, needs .*\n.*pip install 'beholder-audit\[vision\]'",
}
EXACT = {
    "chameleon": Reuse.TRUNK,
    "ernie4_5_vl_moe": Reuse.PREFIX,
    "gemma4": Reuse.PREFIX,
    "kosmos-2": Reuse.NOTHING,
    "minicpmv4_6": Reuse.TRUNK,
    "mllama": Reuse.TRUNK,
    "qwen2_5_omni_thinker": Reuse.PREFIX,
    "qwen3_5": Reuse.TRUNK,
}
"""What each is proved to share between questions."""


@pytest.fixture(autouse=True)
def two_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time goes into the proof at loading; `test_proof.py` and the sweep see it with all its questions."""
    monkeypatch.setattr("beholder.models.generative.sharing.QUESTIONS", ("nurse", "a photo of a doctor and a nurse"))


@pytest.fixture(scope="module")
def noise() -> list[Image.Image]:
    """The two pictures that plain_logits.npy is about."""
    rng = np.random.default_rng(3)
    return [Image.fromarray(rng.integers(0, 256, shape, np.uint8)) for shape in ((48, 64, 3), (80, 40, 3))]


def logits(scorer: Any, pictures: list[Image.Image]) -> Any:
    """Logits at the first answer position: pictures, questions, vocabulary."""
    cells: dict[tuple[int, int], Any] = {}
    for part in scorer._sharing.first_tokens([scorer.prepare(picture) for picture in pictures], QUESTIONS):
        for at in np.ndindex(len(part.rows), len(part.indices)):
            cells[part.rows[at[0]], part.indices[at[1]]] = part.logits[at].float().numpy()
    return np.array([[cells[row, index] for index in range(len(QUESTIONS))] for row in range(len(pictures))])


@pytest.mark.slow
@pytest.mark.parametrize("shared_prefix", [True, False])
def test_the_picture_shown_before_does_not_move_mllama(
    shared: Path, noise: list[Image.Image], shared_prefix: bool
) -> None:
    folder, options = shared / "tiny-models" / "mllama", LoadOptions(shared_prefix=shared_prefix)
    plain = np.load(folder / "plain_logits.npy")
    orders = ([0, 1], [1, 0])
    after = {}
    for order in orders:
        scorer = load_model(str(folder), options)
        after[order[0]] = np.concatenate([logits(scorer, [noise[index]]) for index in order])
    alone = np.stack([after[0][0], after[1][0]])  # what a model was shown first, nothing was shown before
    for order in orders:
        np.testing.assert_allclose(after[order[0]], alone[order], rtol=0, atol=1e-6)
        np.testing.assert_allclose(after[order[0]], plain[order], rtol=0, atol=1e-4)


@pytest.mark.parametrize("shared_prefix", [True, False])
@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW if name == "gemma4" else ()) for name in EXACT])
def test_scores_equal_the_plain_logits(name: str, shared: Path, noise: list[Image.Image], shared_prefix: bool) -> None:
    folder = shared / "tiny-models" / name
    scorer: Any = load_model(str(folder), LoadOptions(shared_prefix=shared_prefix))
    assert scorer._sharing.reuse is (EXACT[name] if shared_prefix else Reuse.NOTHING)
    np.testing.assert_allclose(logits(scorer, noise), np.load(folder / "plain_logits.npy"), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_cannot_be_asked_is_refused_with_the_reason(name: str, shared: Path) -> None:
    if name == "llama4" and find_spec("torchvision"):
        pytest.skip("torchvision is here")
    with pytest.raises(ModelError, match=REFUSED[name]):
        load_model(str(shared / "tiny-models" / name))


def test_instructblip_equals_its_own_forward_pass(shared: Path, noise: list[Image.Image]) -> None:
    """Its processor fails on this folder in transformers, so there are no plain logits: they are made here."""
    folder = shared / "tiny-models" / "instructblip"
    tokenizer, of_queries = (
        transformers.AutoTokenizer.from_pretrained(folder, subfolder=part) for part in ("", "qformer_tokenizer")
    )
    pixels = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    model = transformers.InstructBlipForConditionalGeneration.from_pretrained(folder).eval()

    def plain(picture: Image.Image, question: str) -> Any:
        ids = tokenizer("<image>" * 10, add_special_tokens=False)["input_ids"] + tokenizer(question)["input_ids"]
        queries = of_queries(question, return_tensors="pt")
        with torch.no_grad():
            answer = model(
                pixel_values=pixels(picture, return_tensors="pt")["pixel_values"],
                input_ids=torch.tensor([ids]),
                attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                qformer_input_ids=queries["input_ids"],
                qformer_attention_mask=queries["attention_mask"],
            )
        return answer.logits[0, -1].numpy()

    expected = [[plain(picture, question) for question in QUESTIONS] for picture in noise]
    np.testing.assert_allclose(logits(load_model(str(folder)), noise), expected, rtol=0, atol=1e-4)


def test_blip_for_questions_equals_its_own_forward_pass(shared: Path, noise: list[Image.Image]) -> None:
    folder = shared / "tiny-models" / "blip_vqa"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    pixels = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    model = transformers.BlipForQuestionAnswering.from_pretrained(folder).eval()

    def plain(picture: Image.Image, question: str) -> Any:
        ids = tokenizer(question, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            seen = model.vision_model(pixel_values=pixels(picture, return_tensors="pt")["pixel_values"])[0]
            read = model.text_encoder(input_ids=ids, encoder_hidden_states=seen, return_dict=False)[0]
            start = torch.tensor([[model.decoder_start_token_id]])
            return model.text_decoder(input_ids=start, encoder_hidden_states=read).logits[0, -1].numpy()

    expected = np.array([[plain(picture, question) for question in QUESTIONS] for picture in noise])
    np.testing.assert_allclose(logits(load_model(str(folder)), noise), expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(expected, np.load(folder / "plain_logits.npy"), rtol=0, atol=1e-4)


def test_a_blip_for_captions_is_refused(shared: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(shared / "tiny-models" / "blip_vqa", tmp_path / "blip"))
    config = (folder / "config.json").read_text()
    (folder / "config.json").write_text(config.replace("BlipForQuestionAnswering", "BlipForConditionalGeneration"))
    with pytest.raises(ModelError, match=r"a BLIP for captions, which .* was never taught to answer"):
        load_model(str(folder))


def test_every_folder_is_either_exact_or_refused(shared: Path) -> None:
    folders = {path.parent.name for path in (shared / "tiny-models").glob("*/config.json")}
    assert folders == {*EXACT, *REFUSED, "instructblip", "blip_vqa"}
