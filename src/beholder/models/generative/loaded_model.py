"""A loaded model: questions about one picture become batches, batches become first-token logits.

Nothing here knows which token means what. Questions are batched by length; a batch that does not fit into memory
is halved, down to a single question, before an error is raised.
"""

import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import numpy as np
from PIL import Image

from beholder.core.errors import MissingExtra, ModelError, OutOfMemory
from beholder.models.checkpoint.checkpoint import Checkpoint, backend_of, load_checkpoint
from beholder.models.checkpoint.files import CheckpointFiles, ConfigFile, read_config
from beholder.models.generative.model_types import ModelType, model_type_of
from beholder.models.generative.processor import Picture, PictureProcessor, PromptForm, build_processor, processor_class
from beholder.models.generative.prompt_tree import PromptTree, prompt_tree
from beholder.models.spec import QUANTISED, Config, Inputs, LoadOptions, Module, Processor, Tensor
from beholder.models.torch_scorer import as_model_error, resolve_device, running, sample_picture, torch, transformers

QUESTIONS = {"cpu": 8, "cuda": 32, "mps": 8}  # about one picture at once
Encoded = Inputs


@dataclass
class LoadedModel:
    """A model and its processor, shared by all wordings of the questions."""

    model: Module
    processor: Processor
    form: PromptForm
    notes: list[str]
    questions: int  # how many at once; becomes smaller when memory runs out
    single: bool = False  # its pictures cannot be put together: one goes through the model at a time

    @classmethod
    def of(cls, folder: Path, checkpoint: Checkpoint, *, questions: int | None) -> "LoadedModel":
        """Around a checkpoint just loaded; one picture is processed to learn how its processor does it."""
        model, processor = checkpoint.model, build_processor(folder, checkpoint)
        form = PromptForm(processor, model.config.model_type)
        loaded = cls(model, processor, form, checkpoint.notes, questions or QUESTIONS.get(model.device.type, 8))
        with as_model_error(folder):
            loaded.encode_alone(sample_picture(), "?")
        return loaded

    @property
    def pictures(self) -> PictureProcessor:
        """The part of the processor that reads pictures."""
        part: PictureProcessor = self.processor.image_processor
        return part

    @property
    def kind(self) -> ModelType:
        """What is known of the model's type."""
        return model_type_of(self.model.config.model_type)

    def encode(self, picture: Picture, question: str) -> tuple[Encoded, Encoded]:
        """What the processor makes of a question about a picture: of the text, and apart, of the picture alone."""
        with self.pictures.showing(picture):
            return self.encode_alone(picture.image, question)

    def encode_alone(self, image: Image.Image, question: str) -> tuple[Encoded, Encoded]:
        """The same with nothing remembered."""
        text = self.form.write(question)
        options = {"add_special_tokens": False} if self.form.opens_itself(text) else {}
        options |= {"return_mm_token_type_ids": True} if self.kind.typed else {}
        inputs = self.processor(text=[text], images=[image], return_tensors=self.pictures.tensors, **options)
        tensors = {
            name: values if torch.is_tensor(values) else torch.from_numpy(np.asarray(values))
            for name, values in inputs.items()
            if name in self._understood
        }
        seen = {name: tensors.pop(name) for name in list(tensors) if name in self.pictures.made}
        return tensors, seen

    def one_by_one(self, texts: Sequence[Encoded], pictures: Sequence[Encoded]) -> Iterator[tuple[list[int], Tensor]]:
        """Float32 logits, `[pictures, texts, vocabulary]`, of the answers' first tokens, with the texts' indices."""
        shapes = [(text["input_ids"].shape[1], *(tuple(text[name].shape) for name in sorted(text))) for text in texts]
        order = sorted(range(len(texts)), key=shapes.__getitem__)
        for _, together in groupby(order, key=(lambda _: 0) if self.kind.padded else shapes.__getitem__):
            waiting = list(together)
            while waiting:
                part = waiting[: 1 if self.single else self.questions]
                try:
                    logits = self.answers([texts[index] for index in part], pictures)
                except OutOfMemory:
                    if len(part) == 1 or len(pictures) > 1:
                        raise
                    self.questions = len(part) // 2
                    continue
                yield part, logits
                waiting = waiting[len(part) :]

    def answers(self, texts: Sequence[Encoded], pictures: Sequence[Encoded]) -> Tensor:
        """The plain way: each text with each of some pictures that take up as many tokens, as the model would begin."""
        batch = stacked([*texts] * len(pictures), padding=self._padding_token)
        batch |= self.joined([seen for seen in pictures for _ in texts])
        with running():
            inputs = transformers.BatchFeature(batch).to(self.model.device, dtype=self.model.dtype)
            if self.kind.typed:  # its own way to a first token (5.22) counts positions otherwise than its forward pass
                first = self.model(**inputs, use_cache=False).logits[:, -1]
                return first.float().unflatten(0, (len(pictures), len(texts)))
            # The model's own way to its first token: masks, positions and decoder start are as it has them.
            answer = self.model.generate(**inputs, generation_config=self._one_token)
            return answer.logits[0].float().unflatten(0, (len(pictures), len(texts)))

    def joined(self, pictures: Sequence[Encoded]) -> Encoded:
        """Several pictures as one batch."""
        axis, listed = {self.kind.packed: -1}, getattr(self.processor, "skip_tensor_conversion", None) or ()
        both = {name: torch.cat([seen[name] for seen in pictures], dim=axis.get(name, 0)) for name in pictures[0]}
        return {name: values.tolist() if name in listed else values for name, values in both.items()}

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
        greedy = {"max_new_tokens": 1, "do_sample": False, "num_beams": 1, "use_cache": False}
        wanted = {"return_dict_in_generate": True, "output_logits": True}
        return transformers.GenerationConfig(**greedy, **wanted, pad_token_id=self._padding_token)


def stacked(texts: Sequence[Encoded], *, padding: int) -> Encoded:
    """Batches of one as one batch, shorter texts padded on the left."""
    batch = {}
    for name in texts[0]:
        longest, value = max(text[name].shape[1] for text in texts), padding if name == "input_ids" else 0
        # The text runs along the second axis; torch counts them from the last.
        missing = [(*(0, 0) * (text[name].ndim - 2), longest - text[name].shape[1], 0) for text in texts]
        rows = [torch.nn.functional.pad(text[name], at, value=value) for text, at in zip(texts, missing, strict=True)]
        batch[name] = torch.cat(rows)
    return batch


# Questions as tokens: a processor writes a picture's placeholders into every text and tokenises it. Hundreds of
# questions about thousands of pictures would spend more time there than in the model, though only the placeholders
# ever differ: questions are read once for all pictures that take up as many tokens.

Encode = Callable[[str], tuple[Encoded, Encoded]]
"""From a question to the inputs made of its text and the inputs made of the picture now shown."""


@dataclass
class Layout:
    """All questions as tokens, for pictures that take up the same tokens."""

    texts: list[Encoded]
    _trees: dict[tuple[int, ...] | None, PromptTree] = field(default_factory=dict)

    def tree(self, indices: Sequence[int] | None = None) -> PromptTree:
        """The tree of all questions, or of some."""
        key = None if indices is None or len(indices) == len(self.texts) else tuple(indices)
        if key not in self._trees:
            chosen = self.texts if key is None else [self.texts[index] for index in key]
            self._trees[key] = prompt_tree([ids_of(text) for text in chosen])
        return self._trees[key]


def respelled(known: Layout, first: Encoded, questions: Sequence[str], encode: Encode) -> list[Encoded] | None:
    """A known layout with another picture's tokens in the trunk; None if the processor would write it otherwise."""
    trunk, before, after = known.tree().trunk, ids_of(known.texts[0]), ids_of(first)
    cut = len(after) - (len(before) - trunk)
    if cut <= 0 or after[cut:] != before[trunk:]:
        return None
    texts = [
        {name: torch.cat([first[name][:, :cut], text[name][:, trunk:]], dim=1) for name in first}
        for text in known.texts
    ]
    last, _ = encode(questions[-1])
    return texts if all(torch.equal(last[name], texts[-1][name]) for name in last) else None


def ids_of(text: Encoded) -> list[int]:
    """The tokens of a text."""
    ids: list[int] = text["input_ids"][0].tolist()
    return ids


# Which models are loaded, where their weights lie, and in which precision

ANSWERING_BLIP = "BlipForQuestionAnswering"
SHARD = "shard"
ROOM = 0.8  # the share of a GPU's memory that weights may take; the rest is for the work


def refuse_unserved(config: ConfigFile, folder: Path) -> None:
    """Raise for a model that transformers does not have, or that cannot be asked."""
    model_type = config.get("model_type")
    if model_type == "blip" and ANSWERING_BLIP not in (config.get("architectures") or ()):
        raise ModelError(
            f"{folder} is a BLIP for captions, which goes on with a caption and was never taught to answer.\n"
            f"BLIP for questions ({ANSWERING_BLIP}), BLIP with a matching head (BlipForImageTextRetrieval) and BLIP-2 "
            "can be audited."
        )
    if reason := model_type_of(model_type).refused:
        raise ModelError(f"{folder} (model type '{model_type}') cannot be audited: {reason}.")
    if model_type == "deepseek_vl_v2":
        raise ModelError(
            f"{folder} is a DeepSeek-VL2, which transformers {transformers.__version__} does not have.\n"
            "Serve it (with vLLM or SGLang, for one) and audit it there: beholder audit openai:MODEL@URL."
        )
    published = (folder / "vision-lora").is_dir() or "snapshots" in folder.parts  # not merged: also as the hub has it
    if model_type == "phi4_multimodal" and published:
        raise ModelError(
            f"{folder} is a Phi-4-multimodal whose low-rank weights for pictures lie apart (vision-lora): without "
            "them it would answer as if it had hardly learned to see.\nMerge them (with peft) and name the folder "
            "of the merged model, or serve it: beholder audit openai:MODEL@URL."
        )


def precision_of(options: LoadOptions) -> str:
    """The precision's full name; `auto` is bfloat16 wherever a GPU does the work."""
    if options.precision in QUANTISED:
        return options.precision
    device = "auto" if options.device == SHARD else options.device
    if options.precision == "auto" and resolve_device(device).startswith("cuda"):
        return "bfloat16"
    return options.resolved_precision


def load_placed(files: CheckpointFiles, options: LoadOptions) -> Checkpoint:
    """The checkpoint, on the requested device or devices."""
    require_vision(files.folder, options)
    precision = precision_of(options)
    quantised = precision in QUANTISED
    sharded = options.device == SHARD or (options.device == "auto" and _outgrows_one(files, quantised=quantised))
    device = resolve_device("auto" if options.device == SHARD else options.device)
    placement: dict[str, object] = {}
    if sharded or quantised:
        needed = {"accelerate": "A model spread over several devices" if sharded else "A quantised model"}
        for library, what in (needed | ({"bitsandbytes": f"Precision {precision}"} if quantised else {})).items():
            if find_spec(library) is None:
                raise MissingExtra(f"{what} ({library})", "large")
        placement["device_map"] = "auto" if sharded else {"": device}
    if quantised:
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it would report every product that it rounds
        four = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": torch.bfloat16}
        bits = {"load_in_8bit": True} if precision == "int8" else {"load_in_4bit": True, **four}
        placement["quantization_config"] = transformers.BitsAndBytesConfig(**bits)
        precision = "bfloat16"
    placed = replace(options, device=device, precision=precision)
    return load_checkpoint(files, placed, auto=_auto_class(read_config(files.folder)), placement=placement)


def require_vision(folder: Path, options: LoadOptions) -> None:
    """Raise, before any weights are read, if the pictures of this model can only be read by torchvision."""
    config = read_config(folder)
    model_type, tower = config.get("model_type"), config.get("vision_config")
    by_timm = isinstance(tower, dict) and tower.get("model_type") in ("timm_wrapper", "gemma3n_vision")
    if (by_timm or model_type in ("gemma3n", "fast_vlm")) and not find_spec("timm"):
        raise MissingExtra(f"A model of type '{model_type}', whose image tower is timm's,", "vision")
    if find_spec("torchvision"):
        return
    common = {"local_files_only": True, "trust_remote_code": options.trust_remote_code}
    try:
        transformers.AutoImageProcessor.from_pretrained(folder, backend="pil", **common)
        # A placeholder has this (Pixtral).
        missing = "torchvision" in (*getattr(processor_class(folder), "_backends", ()), backend_of(folder))
    except Exception as error:  # whatever else is wrong is reported when the model is loaded
        missing = "torchvision" in str(error)
    if missing:
        raise MissingExtra(f"A model of type '{model_type}', whose pictures are read by torchvision only,", "vision")


def _auto_class(config: ConfigFile) -> str:
    """The class that config.json names where there are several; else that of the model type, which may also listen."""
    if ANSWERING_BLIP in (config.get("architectures") or ()):
        return ANSWERING_BLIP
    names, model_type = transformers.models.auto.modeling_auto, config.get("model_type")
    listening = getattr(names, "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES", {})
    if model_type in listening and model_type not in names.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES:
        return "AutoModelForMultimodalLM"
    return "AutoModelForImageTextToText"


def _outgrows_one(files: CheckpointFiles, *, quantised: bool) -> bool:
    """Whether there are several GPUs and one of them is too small for the weights."""
    if torch.cuda.device_count() < 2:
        return False
    size = sum(path.stat().st_size for path in files.weights) // (2 if quantised else 1)
    return bool(size > ROOM * torch.cuda.get_device_properties(0).total_memory)
