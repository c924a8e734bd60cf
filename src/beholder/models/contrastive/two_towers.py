"""Two-tower models of transformers: CLIP, MetaCLIP, SigLIP, SigLIP 2, ALIGN, AltCLIP, Chinese-CLIP …

The score is the cosine of the image's and the text's vector, with the checkpoint's own preprocessing and
tokenizer settings. When a model is loaded, one picture and one text are scored both ways: `scale * cosine +
bias` must equal the logit of the model's own forward pass, or the model is refused.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
from PIL import Image

from beholder.core.errors import ModelError, NotAskable
from beholder.datasets.images import on_white
from beholder.models.checkpoint.checkpoint import Checkpoint, load_checkpoint, model_class, model_settings
from beholder.models.checkpoint.files import CheckpointFiles, Origin, find_files, read_config
from beholder.models.contrastive import gpu_decoder
from beholder.models.preparation import Cut, by_processor, processor_split, proven
from beholder.models.scorer import ContrastiveScorer, Floats, Prepared, embed_in_batches, unit_rows
from beholder.models.spec import Config, Inputs, LoadOptions, ModelSpec, Module, Output, Tensor
from beholder.models.torch_scorer import (
    LIBRARY,
    TOLERANCE,
    Recorded,
    TorchScorer,
    as_model_error,
    refusal,
    running,
    sample_picture,
    torch,
    transformers,
)


class ModelType(NamedTuple):
    """What a model type does that its config.json does not say."""

    padded: bool = False  # texts are padded to full length, as they were in training; else to the longest text
    longest: float = math.inf  # tokens that its own processor reads at most; ALIGN's text tower could read 512
    offset: bool = False  # position numbers start after the padding token's, so that many fewer tokens fit
    eager: bool = False  # with sdpa its text tower leaves its causal mask away where no text of a batch is padded
    # (transformers 5.22), so that a score would depend on the other texts


TYPES = {
    **dict.fromkeys(("siglip", "siglip2"), ModelType(padded=True)),
    **dict.fromkeys(("align", "tipsv2"), ModelType(padded=True, longest=64)),
    **dict.fromkeys(("altclip", "roberta", "xlm-roberta", "camembert"), ModelType(offset=True)),
    "aimv2": ModelType(eager=True),
}


class TextSettings(NamedTuple):
    """How texts become tokens."""

    padding: str
    max_length: int
    lowercase: bool


class TorchContrastive(TorchScorer, ContrastiveScorer):
    """Two towers in torch: what transformers and open_clip share around them."""

    batch_sizes: ClassVar = {"cpu": 16, "cuda": 256, "mps": 32}
    _embed_images: Callable[[Sequence[Prepared]], Tensor]
    _embed_texts: Callable[[Sequence[str]], Floats]

    def __init__(self, model: Module, spec: ModelSpec, options: LoadOptions, *, max_length: int) -> None:
        super().__init__(spec, options, max_length=max_length)
        self._model = model
        self._embed_recorded = Recorded(self._embed_images)

    def embed_prepared(self, prepared: Sequence[Prepared]) -> Floats:
        """Unit image vectors."""
        return embed_in_batches(prepared, self.batch_size, lambda part: self._started(part)(), kind="image")

    def begin_embedding(self, prepared: Sequence[Prepared]) -> Callable[[], Floats]:
        """Start on one batch; what is returned waits for its unit vectors, and the GPU works on meanwhile."""
        wait = self._started(prepared)
        return lambda: unit_rows(wait(), kind="image")

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Unit text vectors; a text longer than the model reads is cut, and `notes` says so."""
        return embed_in_batches(texts, self.batch_size, self._embed_texts, kind="text")

    def decode_on_gpu(self) -> None:
        """Decode files on the GPU from now on; the spec says so."""
        if not isinstance(self.preparation, Cut):
            raise ModelError(f"--decode gpu cannot be used: the preprocessing of {self.spec.name} is not known to it.")
        self.decoder = gpu_decoder.GpuDecoder(self.preparation, self._device)
        self.spec = self.spec.having(decode="gpu")

    def _started(self, prepared: Sequence[Prepared]) -> Callable[[], Floats]:
        with running(self._model):
            if self._device.startswith("cuda") and self._arithmetic:
                with torch.cuda.stream(self._stream):
                    batch = prepared if isinstance(prepared, torch.Tensor) else self._copied(prepared)
                    return rows_later(self._embed_recorded(batch), batch)
            rows = rows_of(self._embed_images(prepared))
            return lambda: rows

    @cached_property
    def _stream(self) -> Output:
        """Of the GPU's streams, one that waits for no other: in the usual one the model would wait for nvJPEG."""
        torch.cuda.synchronize(self._device)  # the weights are there
        return torch.cuda.Stream(self._device, priority=-1)


class TransformersContrastive(TorchContrastive):
    """Cosine similarity by `get_image_features` and `get_text_features`."""

    adapter: ClassVar[str] = "transformers"
    brings_processor: ClassVar[bool] = True  # whether the folder must hold an image processor
    reads_texts: ClassVar[bool] = True  # whether it has a text tower, and must hold a tokenizer

    def __init__(self, checkpoint: Checkpoint, spec: ModelSpec, options: LoadOptions) -> None:
        model, self._image_processor, self._tokenizer, self.loader_notes = checkpoint
        self._text = text_settings(checkpoint)
        super().__init__(model, spec, options, max_length=self._text.max_length)
        self._leave_preparing_to_workers()

    @classmethod
    def from_folder(
        cls, folder: Path, name: str, options: LoadOptions, *, origin: Origin | None = None
    ) -> "TransformersContrastive":
        """Load a checkpoint's folder; `origin` says where it came from if that is not the folder itself."""
        pickled, own = options.allow_pickle, cls.brings_processor
        files = find_files(folder, allow_pickle=pickled, image_processor=own, tokenizer=cls.reads_texts)
        checkpoint = cls._load(files, options)
        with as_model_error(folder):
            if _type(checkpoint.model.config).eager:
                checkpoint.model.set_attn_implementation("eager")
            settings = settings_of(checkpoint._replace(model=cls._towers(checkpoint.model)))
            spec = ModelSpec(name, cls.adapter, *(origin or files.origin), options.resolved_precision, settings)
            in_patches = cls.reads_texts and "spatial_shapes" in checkpoint.image_processor.model_input_names
            scorer = (PatchContrastive if in_patches else cls)(checkpoint, spec, options)
        return scorer.proved(folder)

    @classmethod
    def _load(cls, files: CheckpointFiles, options: LoadOptions) -> Checkpoint:
        """The checkpoint; raises, before any weights are read, if its model type has not an image and a text tower."""
        model_type = read_config(files.folder).get("model_type")
        model = model_class(model_type)
        if model and not (hasattr(model, "get_image_features") and hasattr(model, "get_text_features")):
            raise ModelError(
                f"{files.folder} is a {model.__name__} (model type '{model_type}'), which has no tower for single "
                "images beside one for texts.\nThis adapter reads models with get_image_features, get_text_features "
                "and a logit scale: CLIP, MetaCLIP, SigLIP, SigLIP 2, ALIGN, AltCLIP, Chinese-CLIP and their kin."
            )
        return load_checkpoint(files, options)

    @staticmethod
    def _towers(model: Module) -> Module:
        """The part that has the towers and the logit scale."""
        return model

    def _leave_preparing_to_workers(self) -> None:
        """The first part of a split is for them, or the processor as it is."""
        split = proven(processor_split(self._image_processor.to_dict()), self.prepare)
        self.preparation, self._arithmetic = split or (partial(by_processor, self._image_processor), None)

    def _own(self, prepared: Sequence[Prepared], text: str) -> float:
        output = self._model(**self._image_inputs(prepared), **self._text_inputs([text]))
        scale, bias = self.spec.settings["logit_scale"], self.spec.settings["logit_bias"]
        return float((output.logits_per_image[0, 0] - bias) / scale)

    def _embed_images(self, prepared: Sequence[Prepared]) -> Tensor:
        return vectors_of(self._tower("image")(**self._image_inputs(prepared)))

    def _embed_texts(self, texts: Sequence[str]) -> Floats:
        inputs = self._text_inputs(texts)
        with running(self._model):
            return rows_of(self._tower("text")(**inputs))

    def _tower(self, side: str) -> Callable[..., Output]:
        """The model's own function; code that a checkpoint brings itself (EVA-CLIP) has open_clip's name for it."""
        model = self._towers(self._model)
        tower: Callable[..., Output] = getattr(model, f"get_{side}_features", None) or getattr(model, f"encode_{side}")
        return tower

    def _image_inputs(self, prepared: Sequence[Prepared]) -> Inputs:
        return {"pixel_values": self._pixels(prepared)}

    def _text_inputs(self, texts: Sequence[str]) -> Inputs:
        texts = [text.lower() for text in texts] if self._text.lowercase else list(texts)
        untruncated = self._tokenizer(texts, padding=False, truncation=False, verbose=False)["input_ids"]
        self._cut.record(texts, [len(ids) for ids in untruncated])
        padding, limit, _ = self._text
        tokens = self._tokenizer(texts, padding=padding, truncation=True, max_length=limit, return_tensors="pt")
        return {name: values.to(self._device) for name, values in tokens.items()}


class PatchContrastive(TransformersContrastive):
    """SigLIP 2 NaFlex: pictures keep their shape and come as padded rows of patches."""

    def prepare(self, image: Image.Image) -> Prepared:
        """Patches, which of them are real, and how many there are down and across."""
        batch = self._image_processor(images=on_white(image), return_tensors="np")
        return {name: np.asarray(values)[0] for name, values in batch.items()}

    def _leave_preparing_to_workers(self) -> None:
        """Three arrays a picture: they stay in threads."""

    def _image_inputs(self, prepared: Sequence[Prepared]) -> Inputs:
        inputs = {"pixel_values": self._pixels([picture["pixel_values"] for picture in prepared])}
        for name in ("pixel_attention_mask", "spatial_shapes"):
            numbers = np.stack([picture[name] for picture in prepared]).astype(np.int64)
            inputs[name] = torch.from_numpy(numbers).to(self._device)
        return inputs


class FlavaContrastive(TransformersContrastive):
    """FLAVA by its contrastive head: each first token, projected, as `FlavaForPreTraining` compares them."""

    @classmethod
    def _load(cls, files: CheckpointFiles, options: LoadOptions) -> Checkpoint:
        named, wanted = read_config(files.folder).get("architectures") or [], "FlavaForPreTraining"
        if wanted not in named:
            raise ModelError(
                f"{files.folder} names the architecture {', '.join(named) or 'none'}.\n"
                f"Of FLAVA, Beholder reads {wanted}, which has the contrastive head."
            )
        return load_checkpoint(files, options, auto=wanted)

    @staticmethod
    def _towers(model: Module) -> Module:
        return model.flava

    def _tower(self, side: str) -> Callable[..., Output]:
        tower = super()._tower(side)
        return lambda **inputs: tower(**inputs).pooler_output[:, 0]

    def _own(self, prepared: Sequence[Prepared], text: str) -> float:
        output = self._model(**self._image_inputs(prepared), **self._text_inputs([text]), return_loss=False)
        return float(output.contrastive_logits_per_image[0, 0] / self.spec.settings["logit_scale"])


class ImageEncoder(TransformersContrastive):
    """Image encoders without a text tower: DINOv2, ViT, the vision tower of SigLIP or CLIP, timm.

    Their scores are cosines between pictures; a text is refused with what to ask instead. The vector of a picture is
    the checkpoint's own: its projection, else its pooled output, else its first token.
    """

    adapter, reads_texts = "image encoder", False

    def __init__(self, checkpoint: Checkpoint, spec: ModelSpec, options: LoadOptions) -> None:
        model, self._image_processor, _, self.loader_notes = checkpoint
        TorchContrastive.__init__(self, model, spec, options, max_length=0)
        self._leave_preparing_to_workers()

    @classmethod
    def _load(cls, files: CheckpointFiles, options: LoadOptions) -> Checkpoint:
        """The checkpoint by the class that its config.json names, so that all its weights are used."""
        named = str((read_config(files.folder).get("architectures") or [""])[0])
        auto = named if hasattr(transformers, named) else "AutoModel"
        return load_checkpoint(files, options, auto=auto, tokenizer=False)

    def proved(self, source: Path | str, library: str = LIBRARY) -> Self:
        """Itself; raises unless pictures together have the vectors that each has alone, and again the same."""
        wide = sample_picture()
        with as_model_error(source, library):
            prepared = [self.prepare(picture) for picture in (wide, wide.transpose(Image.Transpose.ROTATE_90))]
            alone = np.concatenate([self.embed_prepared([one]) for one in prepared])
            if np.abs(self.embed_prepared(prepared) - alone).max() > TOLERANCE["cosine"][self.spec.precision]:
                raise refusal(self.spec.name, "a picture's vector is not the same each time, or moves with its batch")
        return self

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """There is no text tower."""
        raise NotAskable(
            f"{self.spec.name} is an image encoder: it has no text tower, and this study asks it texts.\n"
            "Ask it what needs none, iEAT's image tests: --study classics --dataset ieat --data DIR"
        )

    def _embed_images(self, prepared: Sequence[Prepared]) -> Tensor:
        model = self._model
        heads = type(model).__name__.endswith("ForImageClassification")
        with running(model):
            output = (model.base_model if heads else model)(**self._image_inputs(prepared))
        known = [getattr(output, name, None) for name in ("image_embeds", "pooler_output")]
        vectors: Tensor = next((each for each in known if each is not None), None)
        return (output.last_hidden_state[:, 0] if vectors is None else vectors).flatten(1).float()


def settings_of(checkpoint: Checkpoint) -> dict[str, object]:
    """Everything beside the weights that can move a score."""
    tokenizer, shared = checkpoint.tokenizer, model_settings(checkpoint.model, checkpoint.image_processor)
    if tokenizer is None:
        return {**shared, "logit_scale": 1.0}
    return {
        **shared,
        "text": text_settings(checkpoint)._asdict()
        | {"tokenizer": type(tokenizer).__name__, "inputs": list(tokenizer.model_input_names)},
        "logit_scale": logit_scale(checkpoint.model),
        "logit_bias": float(getattr(checkpoint.model, "logit_bias", 0.0)),
    }


def text_settings(checkpoint: Checkpoint) -> TextSettings:
    """Padding, length and case as the checkpoint was trained with."""
    config, tokenizer = checkpoint.model.config, checkpoint.tokenizer
    text: Config = getattr(config, "text_config", config)
    kind = _type(config)
    # SigLIP 2 was trained on lower case and its files say so, but the tokenizer class that some of them name
    # does not do it (transformers #43054).
    lowercase = config.model_type in ("siglip", "siglip2") and bool(tokenizer.init_kwargs.get("do_lower_case"))
    positions = getattr(text, "max_position_embeddings", math.inf)
    if kind.offset or _type(text).offset:
        positions -= text.pad_token_id + 1
    limit = min(kind.longest, tokenizer.model_max_length, positions)
    return TextSettings("max_length" if kind.padded else "longest", int(limit), lowercase)


def _type(config: Config) -> ModelType:
    return TYPES.get(config.model_type, ModelType())


def logit_scale(model: Module) -> float:
    """What the model multiplies a cosine by."""
    if hasattr(model, "temperature"):
        return 1.0 / float(model.temperature)  # ALIGN divides
    if not hasattr(model, "logit_scale"):
        raise ModelError(f"A {type(model).__name__} has no logit scale: its two towers do not meet in a cosine.")
    logarithm = float(model.logit_scale)
    if hasattr(model, "max_log_logit_scale"):  # AIMv2 caps it
        logarithm = min(max(logarithm, 0.0), model.max_log_logit_scale)
    return math.exp(logarithm)


def vectors_of(features: Output) -> Tensor:
    """The vectors, whether the library gives them bare or as the pooled part of an output."""
    vectors: Tensor = getattr(features, "pooler_output", features)
    return vectors.float()


def rows_of(features: Output) -> Floats:
    """The vectors as numpy has them."""
    return np.asarray(vectors_of(features).cpu().numpy())


def rows_later(vectors: Tensor, made_of: Tensor) -> Callable[[], Floats]:
    """What waits for vectors that a GPU is working on; `made_of` is kept until then."""
    rows, done = vectors.to("cpu", non_blocking=True), torch.cuda.Event()
    done.record()

    def wait(kept: Tensor = made_of) -> Floats:
        done.synchronize()
        return np.asarray(rows.numpy())

    return wait
