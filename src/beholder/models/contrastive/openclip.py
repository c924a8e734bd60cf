"""Models of open_clip: `ARCHITECTURE/TAG` of its own list, or `ARCHITECTURE/FILE` for weights at hand.

Every architecture it has: ViT, ResNet, CoCa, SigLIP, EVA, ConvNeXt …, each with the preprocessing, tokenizer and
text length that go with its weights. What open_clip only warns of and what moves a score is an error here:
another activation than the weights were trained with, position embeddings stretched to another size.
"""

import copy
import hashlib
import logging
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

from PIL import Image

from beholder.core.errors import MissingExtra, ModelError, UnknownName

# Before torch is looked for: who lacks both needs the extra that brings both.
try:
    import open_clip
    from open_clip.transform import PreprocessCfg, image_transform_v2
except ImportError as error:
    raise MissingExtra("An open_clip model", "openclip") from error
except RuntimeError as error:  # torchvision says so when it was built for another torch
    raise ModelError(f"open_clip cannot be used here, torch and torchvision do not fit: {error}") from error

from beholder.datasets.images import on_white
from beholder.models.checkpoint.checkpoint import as_json, captured_warnings
from beholder.models.checkpoint.files import Origin, content_digest, fetch_files
from beholder.models.contrastive.two_towers import TorchContrastive, rows_of, vectors_of
from beholder.models.preparation import Arithmetic, Array, Cut, Split, probes, proven
from beholder.models.scorer import Floats, Prepared
from beholder.models.spec import LoadOptions, ModelSpec, Module, Processor, Settings, Tensor
from beholder.models.torch_scorer import SAMPLE_TEXTS, as_model_error, memory_errors, resolve_device, running, torch

LIBRARY = f"open_clip {open_clip.__version__}"
SCORE_MOVING = re.compile(r"Resizing .*position embedding|initialized (randomly|partially)|QuickGELU mismatch")
SAFE_FILE, PICKLED_FILE = "open_clip_model.safetensors", "open_clip_pytorch_model.bin"
PREPROCESSING = {"mean", "std", "interpolation", "resize_mode", "fill_color"}
# Its plain bf16 and fp16 keep some layers in float32, and CoCa fails with them.
PRECISIONS = {"float32": "fp32", "bfloat16": "pure_bf16", "float16": "pure_fp16"}
Transform = Callable[[Image.Image], Tensor]
UNKNOWN_ACTIVATION = (
    "A file of weights does not say whether they were trained with QuickGELU: "
    "name the architecture with or without -quickgelu as they were."
)


class Weights(NamedTuple):
    """The weights' file, where it came from, and the preprocessing that goes with it."""

    file: Path
    origin: Origin
    preprocessing: Mapping[str, object]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ByTransform:
    """A transform of torchvision as it is, for those whose steps cannot be split."""

    transform: Transform

    @cached_property
    def keeps_alpha(self) -> bool:
        """Whether it makes RGB of a transparent picture itself (open_clip does, after resizing)."""
        try:
            return bool(self.transform(probes()[-1]).shape[0] == 3)
        except Exception:  # whatever a transform of the user's own says of a fourth channel
            return False

    def __call__(self, image: Image.Image) -> Array:
        """Float32 `[channel, height, width]`."""
        pixels: Array = self.transform(image if self.keeps_alpha else on_white(image)).numpy()
        return pixels


class OpenClipContrastive(TorchContrastive):
    """Cosine similarity by `encode_image` and `encode_text`."""

    def __init__(
        self, model: Module, tokenizer: Processor, spec: ModelSpec, options: LoadOptions, transform: Transform | None
    ) -> None:
        super().__init__(model, spec, options, max_length=tokenizer.context_length)
        self._tokenizer = tokenizer
        own = image_transform_v2(PreprocessCfg(**model.visual.preprocess_cfg), is_train=False)
        self._transform = ByTransform(transform or own)
        split = proven(transform_split(model.visual.preprocess_cfg), self._transform)
        self.preparation, self._arithmetic = split or (self._transform, None)

    @classmethod
    def from_name(cls, rest: str, options: LoadOptions) -> Self:
        """Load what `openclip:` is followed by: `ARCHITECTURE/TAG` or `ARCHITECTURE/FILE`."""
        architecture, _, source = rest.partition("/")
        if architecture not in open_clip.list_models():
            raise UnknownName("architecture", architecture, open_clip.list_models(), where=LIBRARY)
        device = resolve_device(options.device)
        weights = find_weights(architecture, source, options)
        with as_model_error(weights.file, LIBRARY), captured_warnings("", logging.INFO) as messages:
            model = _strict_model(architecture, weights, device=device, precision=options.resolved_precision)
            tokenizer = open_clip.get_tokenizer(architecture)
        for message in messages:  # most of them below the level of a warning
            if SCORE_MOVING.search(message):
                raise ModelError(f"openclip:{rest}: {LIBRARY} says what would change every score: {message}")
        config = {"architecture": architecture, "config": as_json(open_clip.get_model_config(architecture))}
        settings = {**config, **object_settings(model, tokenizer)}
        spec = ModelSpec(f"openclip:{rest}", "openclip", *weights.origin, options.resolved_precision, settings)
        scorer = cls(model, tokenizer, spec, options, None)
        scorer.loader_notes = weights.notes
        return scorer.proved(weights.file, LIBRARY)

    @classmethod
    def from_objects(
        cls, model: Module, preprocess: Transform, tokenizer: Processor, options: LoadOptions, *, name: str | None
    ) -> Self:
        """A copy of a loaded model with the preprocessing and the tokenizer that it is used with."""
        # `create_model_and_transforms` gives two transforms; the one for training crops at random.
        if any(not torch.equal(preprocess(picture), preprocess(picture)) for picture in probes()[:-1]):
            raise ModelError(
                "The preprocessing gives another result each time: it is the one for training.\n"
                "open_clip.create_model_and_transforms returns (model, for training, for use): give the one for use."
            )
        device, precision = resolve_device(options.device), options.resolved_precision
        copied = copy.deepcopy(model).to(device, getattr(torch, precision)).eval().requires_grad_(False)
        called = name or f"open_clip {type(model).__name__}"
        tokens = tokenizer(list(SAMPLE_TEXTS)).tolist()  # two tokenizers of one class may have other words
        settings = {**object_settings(copied, tokenizer), "modules": repr(copied), "tokens": tokens}
        settings["image_processor"] = repr(preprocess)
        spec = ModelSpec(called, "openclip", "object", _weights_digest(copied), precision, settings)
        return cls(copied, tokenizer, spec, options, preprocess).proved(called, LIBRARY)

    def prepare(self, image: Image.Image) -> Prepared:
        """The checkpoint's own preprocessing: float32 `[channel, height, width]`."""
        return self._transform(image)

    def _own(self, prepared: Sequence[Prepared], text: str) -> float:
        output = self._model(self._pixels(prepared), self._tokens([text]))
        image, words = (output["image_features"], output["text_features"]) if isinstance(output, dict) else output[:2]
        return float((image.float() * words.float()).sum())

    def _embed_images(self, prepared: Sequence[Prepared]) -> Tensor:
        return vectors_of(self._model.encode_image(self._pixels(prepared), normalize=False))

    def _embed_texts(self, texts: Sequence[str]) -> Floats:
        self._cut.record(texts, [_length(self._tokenizer, text) for text in texts])
        with running():
            return rows_of(self._model.encode_text(self._tokens(texts), normalize=False))

    def _tokens(self, texts: Sequence[str]) -> Tensor:
        return self._tokenizer(list(texts)).to(self._device)


def find_weights(architecture: str, source: str, options: LoadOptions) -> Weights:
    """The weights that a tag of open_clip's list or a file's path stands for; pickled only when allowed."""
    known = open_clip.get_pretrained_cfg(architecture, source)
    path = Path(os.path.expanduser(source))
    if known:
        notes = _refuse_other_activation(architecture, source)
        weights = _fetched(known, options)._replace(notes=notes)
    elif path.is_file():
        weights = Weights(path, Origin("file", content_digest([path])), {}, (UNKNOWN_ACTIVATION,))
    else:
        tags = open_clip.list_pretrained_tags_by_model(architecture)
        raise UnknownName(f"file here and no weights of {architecture} called", source, tags, where=LIBRARY)
    if weights.file.suffix != ".safetensors" and not options.allow_pickle:
        raise ModelError(
            f"{weights.file} is no safetensors file but a pickled one, which can run code when it is read.\n"
            "If you trust its source, allow it with --allow-pickle (LoadOptions.allow_pickle)."
        )
    return weights


def _refuse_other_activation(architecture: str, tag: str) -> tuple[str, ...]:
    """open_clip #771: `ViT-B-32` + `openai` runs, with a warning and with other scores."""
    configs = open_clip.get_model_config(architecture), open_clip.get_pretrained_cfg(architecture, tag)
    computed, trained = ("QuickGELU" if config.get("quick_gelu") else "GELU" for config in configs)
    if computed == trained:
        return ()
    twin = f"{architecture}-quickgelu" if trained == "QuickGELU" else architecture.removesuffix("-quickgelu")
    if twin == architecture or not open_clip.get_pretrained_cfg(twin, tag):
        return (f"{LIBRARY} says of '{tag}' both that it uses {computed} and that it was trained with {trained}.",)
    raise ModelError(
        f"The weights '{tag}' were trained with {trained}, and {architecture} computes {computed}: "
        f"every score would be another.\nThe right pair is openclip:{twin}/{tag}"
    )


def _fetched(known: Settings, options: LoadOptions) -> Weights:
    repository, _, file = known["hf_hub"].rpartition("/")
    pickled = file or PICKLED_FILE
    safe = f"{file.rpartition('.')[0]}.safetensors" if file else SAFE_FILE
    wanted = [safe, *([pickled] if options.allow_pickle else [])]
    snapshot = fetch_files(repository, options.revision or "main", wanted)
    file = next((path for name in wanted if (path := snapshot.folder / name).is_file()), None)
    if file is None:
        raise ModelError(
            f"{repository} has no {safe} at this revision.\nIts pickled weights, which can run code when they "
            "are read, are fetched with --allow-pickle (LoadOptions.allow_pickle), if you trust their source."
        )
    return Weights(file, snapshot.origin, {key: known[key] for key in known if key in PREPROCESSING})


def _strict_model(architecture: str, weights: Weights, *, device: str, precision: str) -> Module:
    _refuse_missing_bias(architecture, weights.file)
    with memory_errors():
        model = open_clip.create_model(
            architecture,
            pretrained=str(weights.file),
            precision=PRECISIONS[precision],
            device=device,
            force_preprocess_cfg=dict(weights.preprocessing),
            require_pretrained=True,
            weights_only=True,
        )
    return model.eval().requires_grad_(False)


def _refuse_missing_bias(architecture: str, file: Path) -> None:
    """open_clip reads weights without the logit bias that the architecture has as if it were 0."""
    if open_clip.get_model_config(architecture).get("init_logit_bias") is None or file.suffix != ".safetensors":
        return
    from safetensors import safe_open

    with safe_open(file, "pt") as tensors:
        if "logit_bias" not in tensors.keys():  # noqa: SIM118  (not a dict)
            raise ModelError(f"{file} has no logit_bias, and {architecture} has one: these are other weights.")


def object_settings(model: Module, tokenizer: Processor) -> dict[str, object]:
    """What a loaded model and its tokenizer say of themselves."""
    bias = model.logit_bias
    return {
        "class": type(model).__name__,
        "image_processor": as_json(model.visual.preprocess_cfg),
        "text": {
            "tokenizer": type(tokenizer).__name__,
            "max_length": tokenizer.context_length,
            "clean": getattr(getattr(tokenizer, "clean_fn", None), "__name__", None),
        },
        "logit_scale": math.exp(float(model.logit_scale)),
        "logit_bias": 0.0 if bias is None else float(bias),
    }


def _weights_digest(model: Module) -> str:
    hasher = hashlib.blake2b(digest_size=20)
    for name, values in sorted(model.state_dict().items()):
        hasher.update(f"{name} {values.dtype} {tuple(values.shape)} ".encode())
        hasher.update(values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return hasher.hexdigest()


def transform_split(settings: Settings) -> Split | None:
    """The steps of open_clip's transform, if they are those that we know."""
    side = settings["size"]
    size: tuple[int, int] = (side, side) if isinstance(side, int) else tuple(side)
    resample = Image.Resampling[settings["interpolation"].upper()]
    cuts = {
        "squash": Cut(size, resample, keeps_alpha=True),
        "shortest": Cut(size[0], resample, size, "nearest", keeps_alpha=True) if size[0] == size[1] else None,
    }
    cut = cuts.get(settings["resize_mode"])
    return Split(cut, Arithmetic(255.0, tuple(settings["mean"]), tuple(settings["std"]))) if cut else None


def _length(tokenizer: Processor, text: str) -> int:
    """How many tokens a text has before it is cut, the two at its ends included."""
    if hasattr(tokenizer, "encode"):
        return len(tokenizer.encode(text)) + 2
    return len(tokenizer.tokenizer(tokenizer.clean_fn(text), truncation=False, verbose=False)["input_ids"])
