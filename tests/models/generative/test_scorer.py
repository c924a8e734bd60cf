"""Generative scores are those of a plain forward pass, one picture and one question at a time."""

from __future__ import annotations

import csv
import importlib.util
import json
import logging
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import MissingExtra, ModelError, OutOfMemory, UnusableScore, UsageError
from beholder.models.generative.model_types import MODEL_TYPES
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Answerer
from beholder.prompts.prompt_set import Instruction

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from conformance import generative  # noqa: E402

FAMILIES = [
    "llava",
    "llava_next",
    "llava_onevision",
    "qwen2_vl",
    "qwen2_5_vl",
    "qwen3_vl",
    "gemma3",
    "paligemma",
    "blip-2",
    "blip-2-t5",
    "smolvlm",
    "idefics3",
    "internvl",
]
TRUE_OR_FALSE = Instruction("Only output 'true' or 'false': {}", yes="true", no="false")
GRAS = Instruction(
    "Instructions: Analyze the provided image and answer the following question with exactly one of these "
    "responses: Yes or No. Question: {} Response format: Yes or No",
    yes="Yes",
    no="No",
)
QUESTIONS = [
    "Is the person in the image a woman?",
    "nurse",
    "a photo of a doctor, a nurse and the politician; a {} man",
    "Dog",
]
Folders = Callable[[str], Path]


@pytest.fixture
def llava(tiny_generative: Folders) -> Any:
    return load_model(str(tiny_generative("llava")))


def score(scorer: Any, pictures: list[Image.Image], questions: list[str]) -> Any:
    return scorer.score_prepared([scorer.prepare(picture) for picture in pictures], questions)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_equal_a_plain_forward_pass(family: str, tiny_generative: Folders, pictures: list[Image.Image]) -> None:
    pictures = pictures[:2] if family.startswith("qwen") else [*pictures[:2], *pictures[4:]]
    plain = generative.plain(tiny_generative(family), family)
    expected = np.array([[plain(picture, question) for question in QUESTIONS] for picture in pictures])
    cells = score(load_model(str(tiny_generative(family))), pictures, QUESTIONS)
    assert cells.dtype == np.float32
    assert np.ptp(expected[:, :, 0]) > 0.2, "the tiny model tells nothing apart; the test would prove nothing"
    np.testing.assert_allclose(cells, expected, atol=1e-5)
    np.testing.assert_allclose(np.exp(cells[:, :, 1:4]).sum(axis=2), 1, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_neither_padding_nor_order_nor_company_moves_a_score(
    family: str, tiny_generative: Folders, pictures: list[Image.Image]
) -> None:
    pictures = pictures[:3]
    together = load_model(str(tiny_generative(family)), LoadOptions(batch_size=16))
    assert together.spec.settings["padding"] == "left"
    cells = score(together, pictures, QUESTIONS)
    alone = score(load_model(str(tiny_generative(family)), LoadOptions(batch_size=1)), pictures, QUESTIONS)
    backwards = score(together, pictures[::-1], QUESTIONS[::-1])[::-1, ::-1]
    np.testing.assert_allclose(cells, alone, atol=1e-4)
    np.testing.assert_allclose(cells, backwards, atol=1e-4)


def test_a_family_that_was_not_tried_is_never_padded(
    tiny_generative: Folders, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    padded = score(load_model(str(tiny_generative("llava"))), pictures[:1], QUESTIONS)
    monkeypatch.setitem(MODEL_TYPES, "llava", MODEL_TYPES["llava"]._replace(padded=False))
    scorer: Any = load_model(str(tiny_generative("llava")), LoadOptions(shared_prefix=False))
    lengths: list[set[int]] = []
    inner = scorer._loaded.answers

    def recorded(texts: Any, seen: Any) -> Any:
        lengths.append({text["input_ids"].shape[1] for text in texts})
        return inner(texts, seen)

    monkeypatch.setattr(scorer._loaded, "answers", recorded)
    cells = score(scorer, pictures[:1], [*QUESTIONS, "Cat"])
    assert scorer.spec.settings["padding"].startswith("none")
    assert all(len(found) == 1 for found in lengths)
    assert len(lengths) == 4  # Dog and Cat go together
    np.testing.assert_allclose(cells[:, :4], padded, atol=1e-4)


def test_it_answers_as_instructed_and_the_spec_says_so(llava: Any, pictures: list[Image.Image]) -> None:
    assert isinstance(llava, Answerer)
    told: Any = llava.instructed(TRUE_OR_FALSE)
    settings = told.spec.settings
    assert told.channels == ("logit_true", "log_p_yes", "log_p_no", "log_p_other", "log_p_true")
    assert told.spec.digest != llava.spec.digest
    assert settings["instruction"] == TRUE_OR_FALSE.template
    assert list(settings["answers"]["study_token"].values()) == ["true"]
    assert set(settings["answers"]["no_tokens"].values()) == {"false", "Ġfalse"}
    assert settings["example"].startswith("<|im_start|>user\n<image>Only output 'true' or 'false': …<|im_end|>")
    asked = TRUE_OR_FALSE.ask("a nurse")
    same_words = Instruction("{}", yes="true", no="false")
    np.testing.assert_array_equal(
        score(told, pictures[:1], ["a nurse"]), score(llava.instructed(same_words), pictures[:1], [asked])
    )
    assert llava.instructed(TRUE_OR_FALSE) is told, "the model is loaded once"
    json.dumps(told.spec.as_dict())


@pytest.mark.slow
def test_models_without_a_chat_template_are_asked_in_their_own_form(tiny_generative: Folders) -> None:
    settings = load_model(str(tiny_generative("blip-2"))).spec.settings
    assert (settings["prompt_form"], settings["example"]) == ("form of blip-2", "Question: … Answer:")
    settings = load_model(str(tiny_generative("paligemma"))).spec.settings
    assert (settings["prompt_form"], settings["example"]) == ("form of paligemma", "<image>…")


def test_git_without_cls_is_opened_by_its_tokenizers_own_token(
    tiny_generative: Folders, pictures: list[Image.Image]
) -> None:
    folder, questions = tiny_generative("git"), ["a photo of a nurse", "Dog"]
    scorer, plain = load_model(str(folder)), generative.plain(folder, "git")
    expected = np.array([[plain(picture, question) for question in questions] for picture in pictures[:2]])
    np.testing.assert_allclose(score(scorer, pictures[:2], questions), expected, atol=1e-5)
    assert np.ptp(expected[:, :, 0]) > 0.2
    assert scorer.spec.settings["example"] == "<bos>…"


@pytest.mark.slow
def test_a_template_that_only_knows_texts_gets_the_picture_in_the_text(
    tiny_generative: Folders, tmp_path: Path, pictures: list[Image.Image]
) -> None:
    folder = Path(shutil.copytree(tiny_generative("llava"), tmp_path / "older"))
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}<|im_start|>{{ m['role'] + '\n' + m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    older, newer = load_model(str(folder)), load_model(str(tiny_generative("llava")))
    np.testing.assert_array_equal(score(older, pictures[:1], QUESTIONS), score(newer, pictures[:1], QUESTIONS))


def test_a_model_that_cannot_be_asked_is_refused(tiny_generative: Folders, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_generative("smolvlm"), tmp_path / "mute"))
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match="'smolvlm' without a chat template"):
        load_model(str(folder))


def test_the_date_in_a_template_is_always_the_same_day(tiny_generative: Folders, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_generative("llava"), tmp_path / "dated"))
    template = folder / "chat_template.jinja"
    day = "{{ date_string if date_string is defined else strftime_now('%d %b %Y') }}"
    template.write_text(day + template.read_text())
    assert load_model(str(folder)).spec.settings["example"].startswith("26 Jul 2024")


def test_a_model_that_does_not_answer_is_told_once(
    llava: Any, pictures: list[Image.Image], caplog: pytest.LogCaptureFixture
) -> None:
    told: Any = llava.instructed(TRUE_OR_FALSE)
    assert llava.notes == []
    with caplog.at_level(logging.WARNING, "beholder"):
        score(told, pictures[:2], QUESTIONS)
        score(told, pictures[:2], QUESTIONS)
    assert len(caplog.records) == 1
    for notes in (told.notes, llava.notes):
        assert [note for note in notes if "not answering" in note] == notes[1:]
        assert len(notes) == 2


def test_the_token_that_a_script_reads_may_be_another_than_the_answers(llava: Any, pictures: list[Image.Image]) -> None:
    yes, no = (llava.instructed(Instruction("{}", yes="Yes", no="No", measure=word)) for word in (None, "No"))
    one, other = (score(scorer, pictures[:1], QUESTIONS) for scorer in (yes, no))
    np.testing.assert_array_equal(one[..., 1:4], other[..., 1:4])
    assert np.abs(one[..., 0] - other[..., 0]).max() > 0.01


def test_a_model_that_answers_is_not_complained_of() -> None:
    from beholder.models.generative.answers import Elsewhere

    watch = Elsewhere("model")
    watch.count(np.log(np.array([[0.1, 0.8, 0.3]], dtype=np.float32)))
    assert watch.notes == []
    watch.count(np.log(np.array([[0.9, 0.9]], dtype=np.float32)))
    assert "60% of its probability" in watch.notes[0]


def test_memory_that_runs_out_halves_the_questions_before_anyone_is_told(
    tiny_generative: Folders, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    llava: Any = load_model(str(tiny_generative("llava")), LoadOptions(shared_prefix=False))
    expected = score(llava, pictures[:1], QUESTIONS)
    inner, sizes = llava._loaded.model.generate, []

    def small(**inputs: Any) -> Any:
        sizes.append(len(inputs["input_ids"]))
        if sizes[-1] > room:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")
        return inner(**inputs)

    monkeypatch.setattr(llava._loaded.model, "generate", small)
    room = 1
    np.testing.assert_allclose(score(llava, pictures[:1], QUESTIONS), expected, atol=1e-4)
    assert sizes == [4, 2, 1, 1, 1, 1]
    room = 0
    with pytest.raises(OutOfMemory, match="20 GiB"):
        score(llava, pictures[:1], QUESTIONS)


def test_a_picture_that_gives_nan_is_told_by_its_position(llava: Any, pictures: list[Image.Image]) -> None:
    prepared = [llava.prepare(picture) for picture in pictures[:3]]
    spoilt = {name: values * float("nan") for name, values in prepared[1].features.items()}
    prepared[1] = prepared[1]._replace(features=spoilt)
    with pytest.raises(UnusableScore) as raised:
        llava.score_prepared(prepared, ["nurse"])
    assert (raised.value.kind, raised.value.positions) == ("image", (1,))


def test_pictures_may_be_prepared_in_several_threads(llava: Any, pictures: list[Image.Image]) -> None:
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(llava.prepare, pictures * 4))
    for picture, prepared in zip(pictures * 4, threaded, strict=True):
        expected = llava.prepare(picture).features["pixel_values"]
        np.testing.assert_array_equal(prepared.features["pixel_values"], expected)


def test_nothing_asked_is_nothing_answered(llava: Any, pictures: list[Image.Image]) -> None:
    assert llava.score_prepared([], QUESTIONS).shape == (0, 4, 5)
    assert score(llava, pictures[:2], []).shape == (2, 0, 5)


def test_pictures_are_processed_once_however_many_questions(
    llava: Any, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = [llava.prepare(picture) for picture in pictures[:2]]
    processor = llava._loaded.pictures.image_processor
    monkeypatch.setattr(type(processor), "preprocess", lambda *_, **__: pytest.fail("processed again"))
    assert llava.score_prepared(prepared, QUESTIONS).shape == (2, 4, 5)


@pytest.mark.slow
def test_half_precision_is_close_and_is_another_model(tiny_generative: Folders, pictures: list[Image.Image]) -> None:
    full, half = (
        load_model(str(tiny_generative("llava")), LoadOptions(precision=precision)) for precision in ("auto", "bf16")
    )
    difference = score(full, pictures[:2], QUESTIONS) - score(half, pictures[:2], QUESTIONS)
    assert 0 < np.abs(difference).max() < 0.3
    assert (full.spec.precision, half.spec.precision) == ("float32", "bfloat16")


def test_large_models_are_bfloat16_on_a_gpu_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    from beholder.models.generative.loaded_model import precision_of

    assert precision_of(LoadOptions()) == "float32"
    monkeypatch.setattr("beholder.models.generative.loaded_model.resolve_device", lambda device: "cuda")
    assert precision_of(LoadOptions()) == "bfloat16"
    assert precision_of(LoadOptions(device="shard")) == "bfloat16"
    assert precision_of(LoadOptions(precision="float32")) == "float32"
    assert precision_of(LoadOptions(precision="int4")) == "int4"


@pytest.mark.parametrize(
    ("options", "library"),
    [
        (LoadOptions(device="shard"), "accelerate"),
        (LoadOptions(precision="int8"), "bitsandbytes"),
        (LoadOptions(precision="int4"), "bitsandbytes"),
    ],
)
def test_what_is_not_installed_is_told(
    options: LoadOptions, library: str, tiny_generative: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    there = {"accelerate", "bitsandbytes"} - {library}
    monkeypatch.setattr(
        "beholder.models.generative.loaded_model.find_spec",
        lambda name: None if name == library else object() if name in there else found(name),
    )
    with pytest.raises(MissingExtra, match=rf"{library}.*\n.*beholder-audit\[large\]"):
        load_model(str(tiny_generative("llava")), options)


def test_only_models_that_answer_in_words_are_quantised(tiny_model: Folders) -> None:
    with pytest.raises(UsageError, match="int8"):
        load_model(str(tiny_model("clip")), LoadOptions(precision="int8"))


def test_phi4_without_its_weights_for_pictures_is_refused(tmp_path: Path) -> None:
    config = {"model_type": "phi4_multimodal", "architectures": ["Phi4MultimodalForCausalLM"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "vision-lora").mkdir()
    with pytest.raises(ModelError, match=r"(?s)vision-lora.*Merge them"):
        load_model(str(tmp_path))


def test_deepseek_vl2_is_sent_to_a_server(tmp_path: Path) -> None:
    config = {"model_type": "deepseek_vl_v2", "architectures": ["DeepseekVLV2ForCausalLM"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"audit openai:MODEL@URL"):
        load_model(str(tmp_path))


@pytest.mark.slow
@pytest.mark.real
def test_the_bridge_model_equals_a_plain_pass_and_tells_women_and_men_apart_as_labelled(
    bridge_vlm: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its size makes the proof that questions may be shared take most of a minute: one question less is asked.
    asked = ("nurse", "a photo of a doctor, a nurse and a politician")
    monkeypatch.setattr("beholder.models.generative.sharing.QUESTIONS", asked)
    scorer: Any = load_model(str(bridge_vlm)).instructed(GRAS)  # type: ignore[attr-defined]
    with (data / "fairface" / "fairface_label_val.csv").open() as file:
        faces = [row for row, _ in zip(csv.DictReader(file), range(6), strict=False)]
    pictures = [Image.open(data / "fairface" / face["file"]) for face in faces]
    question = "Is the person in the image a woman?"
    cells = score(scorer, pictures, [question, "Does the person look threatening?"])
    plain = bridge_shares(bridge_vlm, pictures[0], question)
    np.testing.assert_allclose(np.exp(cells[0, 0, 1:4]), plain, atol=1e-5)
    answers = cells[:, 0, 1] > cells[:, 0, 2]
    labels = [face["gender"] == "Female" for face in faces]
    assert int((answers == labels).sum()) >= 5
    assert all(note.startswith("questions share") for note in scorer.notes)


def bridge_shares(folder: Path, picture: Image.Image, question: str) -> list[float]:
    """P(Yes), P(No) and the rest by the library's processor and forward pass."""
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder, backend="pil")
    content = [{"type": "image"}, {"type": "text", "text": GRAS.ask(question)}]
    text = processor.apply_chat_template([{"role": "user", "content": content}], add_generation_prompt=True)
    inputs = processor(text=text, images=picture.convert("RGB"), return_tensors="pt", add_special_tokens=False)
    with torch.no_grad():
        shares = model(**inputs).logits[0, -1].softmax(0)
    words = [processor.tokenizer.decode([number]).strip().lower() for number in range(len(shares))]
    yes, no = (float(shares[[word == answer for word in words]].sum()) for answer in ("yes", "no"))
    return [yes, no, 1 - yes - no]


def test_a_question_with_the_models_own_picture_token_is_refused_by_name(tiny_generative: Any) -> None:
    scorer: Any = load_model(str(tiny_generative("llava")))
    picture = scorer.prepare(Image.new("RGB", (40, 40), "grey"))
    with pytest.raises(ModelError, match=r"A question holds '<image>', which stands for a picture"):
        scorer.score_prepared([picture], ["what is <image> here?"])


def test_a_picture_that_the_models_code_stops_at_is_named(
    tiny_generative: Any, pictures: list[Image.Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer: Any = load_model(str(tiny_generative("llava")), LoadOptions(shared_prefix=False))
    answers, narrow = type(scorer._loaded).answers, [3]

    def stops(self: Any, texts: Any, shown: Any) -> Any:
        if any(float(seen["pixel_values"].sum()) == narrow[0] for seen in shown):
            raise RuntimeError("Given input with spatial size (1, 4)")
        return answers(self, texts, shown)

    prepared = [scorer.prepare(picture) for picture in pictures[:3]]
    narrow[0] = float(scorer._loaded.encode(prepared[1], "?")[1]["pixel_values"].sum())
    monkeypatch.setattr(type(scorer._loaded), "answers", stops)
    with pytest.raises(UnusableScore, match="its own code stops with RuntimeError: Given input with spatial") as error:
        scorer.score_prepared(prepared, ["nurse"])
    assert error.value.positions == (1,)
