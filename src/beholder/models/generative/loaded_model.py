"""A loaded model: questions about one picture become batches, batches become first-token logits.

Nothing here knows which token means what. Questions are batched by length; a batch that does not fit into memory
is halved, down to a single question, before an error is raised.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import numpy as np
from PIL import Image

from beholder.core.errors import MissingExtra, ModelError, OutOfMemory
from beholder.models.checkpoint.checkpoint import (
    Checkpoint,
    as_model_error,
    load_checkpoint,
    resolve_device,
    running,
    sample_picture,
    torch,
    transformers,
)
from beholder.models.checkpoint.files import CheckpointFiles, ConfigFile, read_config
from beholder.models.generative.processor import Picture, PictureProcessor, build_processor, processor_class
from beholder.models.generative.texts import Encoded, PromptForm
from beholder.models.scorer import Floats, batches
from beholder.models.spec import QUANTISED, Config, LoadOptions, Module, Processor, Tensor

LOG = logging.getLogger(__name__)
QUESTIONS = {"cpu": 8, "cuda": 32, "mps": 8}
"""Questions about one picture at once."""
PADDED = {
    "blip-2",
    "gemma3",
    "idefics3",
    "internvl",
    "llava",
    "llava_next",
    "llava_onevision",
    "paligemma",
    "phi4_multimodal",
    "qwen2_5_vl",
    "qwen2_vl",
    "qwen3_vl",
    "smolvlm",
}
"""Families of which it was shown that padding before a shorter question moves no score; of any other, only
questions of one length go together."""
PACKED = dict.fromkeys(["minicpmv4_6", "minicpmv4_7", "minicpm_ocr"], "pixel_values")
"""Families that write pictures behind one another, along the last axis, and the input that holds them."""
NOT_ANSWERING = 0.5


@dataclass
class LoadedModel:
    """A model and its processor, shared by all wordings of the questions."""

    model: Module
    processor: Processor
    form: PromptForm
    notes: list[str]
    questions: int
    """How many at once; becomes smaller when memory runs out."""

    @classmethod
    def of(cls, folder: Path, checkpoint: Checkpoint, *, questions: int | None) -> LoadedModel:
        """Around a checkpoint just loaded; one picture is processed to learn how its processor does it."""
        model, processor = checkpoint.model, build_processor(folder, checkpoint)
        form = PromptForm(processor, model.config.model_type)
        count = questions or QUESTIONS.get(model.device.type, 8)
        loaded = cls(model, processor, form, checkpoint.notes, count)
        with as_model_error(folder):
            loaded._encode(sample_picture(), form.write("?"))
        return loaded

    @property
    def pictures(self) -> PictureProcessor:
        """The part of the processor that reads pictures."""
        part: PictureProcessor = self.processor.image_processor
        return part

    @property
    def padded(self) -> bool:
        """Whether questions of different lengths may go together."""
        return self.model.config.model_type in PADDED

    def encode(self, picture: Picture, question: str) -> tuple[Encoded, Encoded]:
        """What the processor makes of a question about a picture."""
        with self.pictures.showing(picture):
            return self._encode(picture.image, self.form.write(question))

    def encode_alone(self, image: Image.Image, question: str) -> tuple[Encoded, Encoded]:
        """What the processor makes of both with nothing remembered."""
        return self._encode(image, self.form.write(question))

    def one_by_one(self, texts: Sequence[Encoded], pictures: Sequence[Encoded]) -> Iterator[tuple[list[int], Tensor]]:
        """Float32 logits, `[pictures, texts, vocabulary]`, of the answers' first tokens, with the texts' indices."""
        for indices in self._batches(texts):
            yield from self._halving(indices, texts, pictures)

    def _batches(self, texts: Sequence[Encoded]) -> Iterator[Sequence[int]]:
        """Indices in batches of similar lengths, or of one length where the model cannot be padded."""
        lengths = [(_length(text), *(tuple(text[name].shape) for name in sorted(text))) for text in texts]
        order = sorted(range(len(lengths)), key=lengths.__getitem__)
        if self.padded:
            yield from batches(order, self.questions)
            return
        for _, equal in groupby(order, key=lengths.__getitem__):
            yield from batches(list(equal), self.questions)

    def _halving(
        self, indices: Sequence[int], texts: Sequence[Encoded], pictures: Sequence[Encoded]
    ) -> Iterator[tuple[list[int], Tensor]]:
        waiting = list(indices)
        while waiting:
            part = waiting[: self.questions]
            try:
                logits = self.answers([texts[index] for index in part], pictures)
            except OutOfMemory:
                if len(part) == 1 or len(pictures) > 1:
                    raise
                self.questions = len(part) // 2
                continue
            yield part, logits
            waiting = waiting[len(part) :]

    def _encode(self, image: Image.Image, text: str) -> tuple[Encoded, Encoded]:
        """What the processor makes of text and picture, and apart from it, what is made of the picture alone."""
        options = {"add_special_tokens": False} if self.form.opens_itself(text) else {}
        inputs = self.processor(text=[text], images=[image], return_tensors=self.pictures.tensors, **options)
        tensors = {name: _tensor(values) for name, values in inputs.items() if name in self._understood}
        made = self.pictures.made
        return (
            {name: values for name, values in tensors.items() if name not in made},
            {name: values for name, values in tensors.items() if name in made},
        )

    def logits(self, texts: Sequence[Encoded], seen: Encoded) -> Tensor:
        """The plain way: each text with the picture, as the model would begin to answer it."""
        return self.answers(texts, [seen])[0]

    def answers(self, texts: Sequence[Encoded], pictures: Sequence[Encoded]) -> Tensor:
        """The same for each of several pictures that take up as many tokens."""
        batch = stacked([*texts] * len(pictures), padding=self._padding_token)
        batch |= self.joined([seen for seen in pictures for _ in texts])
        with running():
            inputs = transformers.BatchFeature(batch).to(self.model.device, dtype=self.model.dtype)
            # The model's own way to its first token: masks, positions and decoder start are as it has them.
            answer = self.model.generate(**inputs, generation_config=self._one_token)
            return answer.logits[0].float().unflatten(0, (len(pictures), len(texts)))

    def joined(self, pictures: Sequence[Encoded]) -> Encoded:
        """Several pictures as one batch."""
        packed = PACKED.get(self.model.config.model_type)
        return {
            name: torch.cat([seen[name] for seen in pictures], dim=-1 if name == packed else 0) for name in pictures[0]
        }

    @cached_property
    def _understood(self) -> set[str]:
        """The inputs that the model accepts; processors also return inputs for training and other parts."""
        forward, generate = (inspect.signature(call).parameters for call in (self.model.forward, self.model.generate))
        return {*forward, *generate} - {"labels"}

    @cached_property
    def _padding_token(self) -> int:
        tokenizer = self.processor.tokenizer
        known = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
        return next(number for number in known if number is not None)

    @cached_property
    def _one_token(self) -> Config:
        return transformers.GenerationConfig(
            max_new_tokens=1,
            do_sample=False,
            num_beams=1,
            use_cache=False,
            return_dict_in_generate=True,
            output_logits=True,
            pad_token_id=self._padding_token,
        )


class Elsewhere:
    """Watches how much of its mass a model puts on neither answer."""

    def __init__(self, name: str) -> None:
        self._name, self._sum, self._cells, self._warned = name, 0.0, 0, False

    def count(self, log_mass: Floats) -> None:
        """Add the cells just scored; warn once when most of the mass so far lies elsewhere."""
        self._sum += float(np.exp(log_mass.astype(np.float64)).sum())
        self._cells += log_mass.size
        if self.notes and not self._warned:
            self._warned = True
            LOG.warning("%s: %s", self._name, self.notes[0])

    @property
    def notes(self) -> list[str]:
        """One note if the model is not answering."""
        mean = self._sum / self._cells if self._cells else 0.0
        if mean <= NOT_ANSWERING:
            return []
        return [
            f"the model is not answering: on average {mean:.0%} of its probability lies on words that are neither "
            "answer, so what it says of yes and no means little"
        ]


def stacked(texts: Sequence[Encoded], *, padding: int) -> Encoded:
    """Batches of one as one batch, shorter texts padded on the left."""

    def joined(name: str) -> Tensor:
        value = padding if name == "input_ids" else 0
        longest = max(text[name].shape[1] for text in texts)
        return torch.cat([_padded(text[name], longest, value) for text in texts])

    return {name: joined(name) for name in texts[0]}


def _padded(row: Tensor, length: int, value: int) -> Tensor:
    """Longer along the text, which is the second of its axes; torch counts them from the last."""
    behind = (0, 0) * (row.ndim - 2)
    return torch.nn.functional.pad(row, (*behind, length - row.shape[1], 0), value=value)


def _tensor(values: object) -> Tensor:
    return values if torch.is_tensor(values) else torch.from_numpy(np.asarray(values))


def _length(one: Encoded) -> int:
    return int(one["input_ids"].shape[1])


# Where a generative model's weights lie and in which precision

ANSWERING_BLIP = "BlipForQuestionAnswering"
NOT_ASKED = {
    "diffusion_gemma": "it fills in whole blocks of words by diffusion, so an answer has no first token to read off",
    "evolla": "it reads proteins, not pictures",
    "florence2": "it is told a task by one of its own tokens (<CAPTION>, <OD> …), and none of them is a question",
    "idefics": "its image processor works unlike all others; Idefics 2, Idefics 3 and SmolVLM can be audited",
    "instructblipvideo": "it watches videos; InstructBLIP reads pictures",
    "pi0": "it answers with the movements of a robot, not with words",
    "pix2struct": "it reads its question as letters drawn above the picture, so every question is another picture",
    "pp_formulanet": "it writes down formulas and is given no text",
    "udop": "it reads documents and wants their words with the place of each",
    "vision-encoder-decoder": "it writes captions and is given no text",
}
"""Model types that no question can be put to, and why."""
SHARD = "shard"
ROOM = 0.8
"""The share of a GPU's memory that weights may take; the rest is for the work."""


def precision_of(options: LoadOptions) -> str:
    """The precision's full name; `auto` is bfloat16 wherever a GPU does the work."""
    if options.precision in QUANTISED:
        return options.precision
    if options.precision == "auto" and _on_gpu(options.device):
        return "bfloat16"
    return options.resolved_precision


def load_placed(files: CheckpointFiles, options: LoadOptions) -> Checkpoint:
    """The checkpoint, on the requested device or devices."""
    require_vision(files.folder, options)
    precision = precision_of(options)
    quantised = precision in QUANTISED
    sharded = options.device == SHARD or (options.device == "auto" and _outgrows_one(files, precision))
    device = "auto" if options.device == SHARD else options.device
    placement: dict[str, object] = {}
    if sharded or quantised:
        _require("accelerate", "A model spread over several devices" if sharded else "A quantised model")
        placement["device_map"] = "auto" if sharded else {"": resolve_device(device)}
    if quantised:
        _require("bitsandbytes", f"Precision {precision}")
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it would tell of every product that it rounds
        placement["quantization_config"] = _quantisation(precision)
    return load_checkpoint(
        files,
        device=resolve_device(device),
        precision="bfloat16" if quantised else precision,
        trust_remote_code=options.trust_remote_code,
        auto=_auto_class(files),
        placement=placement,
    )


def require_vision(folder: Path, options: LoadOptions) -> None:
    """Raise, before any weights are read, if the pictures of this model can only be read by torchvision."""
    if find_spec("torchvision"):
        return
    try:
        transformers.AutoImageProcessor.from_pretrained(
            folder, backend="pil", local_files_only=True, trust_remote_code=options.trust_remote_code
        )
        missing = "torchvision" in getattr(processor_class(folder), "_backends", ())  # a placeholder has this (Pixtral)
    except Exception as error:  # whatever else is wrong is told when the model is loaded
        missing = "torchvision" in str(error)
    if missing:
        model_type = read_config(folder).get("model_type")
        raise MissingExtra(f"A model of type '{model_type}', whose pictures are read by torchvision only,", "vision")


def _auto_class(files: CheckpointFiles) -> str:
    """The class that config.json names where there are several; else that of the model type.

    Some models that also listen (Phi-4-multimodal) are known to transformers by another name only.
    """
    config = read_config(files.folder)
    if ANSWERING_BLIP in (config.get("architectures") or ()):
        return ANSWERING_BLIP
    model_type = config.get("model_type")
    names = transformers.models.auto.modeling_auto
    if model_type in names.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES:
        return "AutoModelForImageTextToText"
    others = getattr(names, "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES", {})
    return "AutoModelForMultimodalLM" if model_type in others else "AutoModelForImageTextToText"


def _on_gpu(device: str) -> bool:
    wanted = "auto" if device == SHARD else device
    return resolve_device(wanted).startswith("cuda")


def _outgrows_one(files: CheckpointFiles, precision: str) -> bool:
    """Whether there are several GPUs and one of them is too small for the weights."""
    if torch.cuda.device_count() < 2:
        return False
    size = sum(path.stat().st_size for path in files.weights)
    if precision in QUANTISED:
        size //= 2
    return bool(size > ROOM * torch.cuda.get_device_properties(0).total_memory)


def _quantisation(precision: str) -> Config:
    if precision == "int8":
        return transformers.BitsAndBytesConfig(load_in_8bit=True)
    return transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
    )


def _require(library: str, what: str) -> None:
    if find_spec(library) is None:
        raise MissingExtra(f"{what} ({library})", "large")


def refuse_unserved(config: ConfigFile, folder: Path) -> None:
    """Raise for a model that transformers does not have, or that cannot be asked."""
    model_type = config.get("model_type")
    if model_type == "blip" and ANSWERING_BLIP not in (config.get("architectures") or ()):
        raise ModelError(
            f"{folder} is a BLIP for captions, which goes on with a caption and was never taught to answer.\n"
            f"BLIP for questions ({ANSWERING_BLIP}), BLIP with a matching head (BlipForImageTextRetrieval) and BLIP-2 "
            "can be audited."
        )
    if reason := NOT_ASKED.get(str(model_type)):
        raise ModelError(f"{folder} (model type '{model_type}') cannot be audited: {reason}.")
    if model_type == "deepseek_vl_v2":
        raise ModelError(
            f"{folder} is a DeepSeek-VL2, which transformers {transformers.__version__} does not have.\n"
            "Serve it (with vLLM or SGLang, for one) and audit it there: beholder audit openai:MODEL@URL."
        )
    if model_type == "phi4_multimodal" and _unmerged(Path(folder)):
        raise ModelError(
            f"{folder} is a Phi-4-multimodal whose low-rank weights for pictures lie apart (vision-lora): without "
            "them it would answer as if it had hardly learned to see.\nMerge them (with peft) and name the folder "
            "of the merged model, or serve it: beholder audit openai:MODEL@URL."
        )


def _unmerged(folder: Path) -> bool:
    """Whether the weights are as published: in a snapshot of the hub, or with the low-rank weights beside them."""
    return (folder / "vision-lora").is_dir() or "snapshots" in folder.parts
