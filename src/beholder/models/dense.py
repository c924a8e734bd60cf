"""Models that look for a concept in every part of a picture: open-vocabulary detectors, and CLIPSeg.

Channel `presence`: the score of the concept's best box before any threshold, or the probability of the likeliest pixel
(docs/detectors.md). A cell depends on its picture and its concept and on no other concept of the request: where
concepts would meet inside the model, each has a pass of its own, and what the picture alone decides is computed once.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from beholder.core.errors import MissingExtra, ModelError
from beholder.datasets.images import on_white
from beholder.models.checkpoint.checkpoint import Checkpoint, image_settings, load_checkpoint
from beholder.models.checkpoint.files import ConfigFile, Origin, find_files, read_config
from beholder.models.scorer import Floats, Prepared
from beholder.models.spec import Inputs, LoadOptions, ModelSpec, Module, Output, Tensor
from beholder.models.torch_scorer import PairScorer, running, torch

TEXTS_KEPT = 4096


def from_folder(folder: Path, name: str, options: LoadOptions, *, origin: Origin | None = None) -> "DenseScorer":
    """Load a checkpoint's folder; `origin` says where it came from if that is not the folder itself."""
    config = read_config(folder)
    model_type = config.get("model_type")
    if model_type not in DENSE:
        raise ModelError(f"Beholder knows no detector of type '{model_type}'. It knows: {', '.join(DENSE)}.")
    if "CLIPSegModel" in (config.get("architectures") or ()):
        raise ModelError(
            f"{folder} is a CLIPSegModel: the two towers of CLIPSeg without the decoder that marks what a text names.\n"
            "Name a folder whose architecture is CLIPSegForImageSegmentation; the towers alone are CLIP's: audit CLIP."
        )
    _require_backbone(config)
    kind = DENSE[model_type]
    files = find_files(folder, allow_pickle=options.allow_pickle)
    checkpoint = load_checkpoint(files, options, auto=kind.auto)
    longest, model = checkpoint.tokenizer.model_max_length, checkpoint.model.config
    positions = getattr(model.text_config, "max_position_embeddings", longest)
    limit = min(longest, positions, getattr(model, "max_text_len", positions))
    settings = {
        "image_processor": image_settings(checkpoint.image_processor),
        "text": {"form": kind.form, "max_length": int(limit)},
        "presence": kind.reading,
    }
    spec = ModelSpec(name, "transformers", *(origin or files.origin), options.resolved_precision, settings)
    return kind(checkpoint, spec, options).proved(folder)


class DenseScorer(PairScorer):
    """Pictures and concepts are encoded once each; `_meet` gives `[n_images, n_channels]` of one concept."""

    channels: tuple[str, ...] = ("presence",)
    batch_sizes: ClassVar = {"cpu": 4, "cuda": 16}
    scale: ClassVar = "presence"
    auto = "AutoModelForZeroShotObjectDetection"
    reading = "sigmoid of the class logit, best box"  # what the first channel is, in words; part of the spec
    form = "{}"  # a concept as the model wants to read it
    _encode_images: Callable[[Sequence[Prepared]], Output]
    _encode_text: Callable[[str], Output]
    _meet: Callable[[Output, Output], Tensor]

    def __init__(self, checkpoint: Checkpoint, spec: ModelSpec, options: LoadOptions) -> None:
        self._model, self._image_processor, self._tokenizer, self.loader_notes = checkpoint
        super().__init__(spec, options, max_length=spec.settings["text"]["max_length"])
        self._text = lru_cache(TEXTS_KEPT)(self._encode_text)

    def _forget_texts(self) -> None:
        super()._forget_texts()
        self._text.cache_clear()

    def prepare(self, image: Image.Image) -> Prepared:
        """The checkpoint's own preprocessing; the mask of real pixels only where some are padding."""
        arrays = self._image_processor(images=on_white(image), return_tensors="np")
        prepared = {"pixel_values": np.asarray(arrays["pixel_values"][0], dtype=np.float32)}
        mask = arrays.get("pixel_mask")
        return prepared if mask is None or np.all(mask) else prepared | {"pixel_mask": np.asarray(mask[0])}

    def _cells(self, part: Sequence[Prepared], prompts: Sequence[str]) -> Floats:
        with running():
            images = self._encode_images(part)
            channels = [self._meet(images, self._text(prompt)) for prompt in prompts]
            return np.asarray(torch.stack(channels, dim=1).cpu().numpy(), np.float32)

    def _pixels(self, part: Sequence[Prepared]) -> Tensor:
        return super()._pixels([picture["pixel_values"] for picture in part])

    def _tokens(self, text: str) -> Inputs:
        """One text, cut where it is too long for the model, unpadded."""
        length = len(self._tokenizer(text, verbose=False)["input_ids"])
        self._cut.record([text], [length])
        tokens = self._tokenizer(text, truncation=True, max_length=self._cut.limit, return_tensors="pt")
        return {name: values.to(self._device) for name, values in tokens.items()}


class Owl(DenseScorer):
    """OWL-ViT and OWLv2: every patch has one class vector, and concepts meet it independently of each other."""

    def _encode_images(self, part: Sequence[Prepared]) -> Output:
        features, _ = self._model.image_embedder(pixel_values=self._pixels(part))
        return features.flatten(1, 2)

    def _encode_text(self, concept: str) -> Output:
        towers = getattr(self._model, self._model.base_model_prefix)
        vector = towers.get_text_features(**self._tokens(concept)).pooler_output
        return vector / torch.linalg.norm(vector, ord=2, dim=-1, keepdim=True)

    def _meet(self, images: Output, text: Output) -> Tensor:
        logits, _ = self._model.class_predictor(images, text.expand(len(images), 1, -1))
        return _best(logits)

    def _own(self, prepared: Sequence[Prepared], text: str) -> Tensor:
        return _best(self._model(pixel_values=self._pixels(prepared), **self._tokens(text)).logits)


class GroundingDino(DenseScorer):
    """Grounding DINO and MM-Grounding-DINO: fusion layers mix all phrases of a text, so each has a pass of its own."""

    reading = "sigmoid of the largest token logit, best box"
    form = "{}."
    # A batch rounds otherwise, and a proposal at the edge of the best `num_queries` may change sides.
    one_by_one = True

    def __init__(self, checkpoint: Checkpoint, spec: ModelSpec, options: LoadOptions) -> None:
        super().__init__(checkpoint, spec, options)
        core = self._model.model
        core.backbone.conv_encoder = _Remembered(core.backbone.conv_encoder, 1)
        core.text_backbone = _Remembered(core.text_backbone, TEXTS_KEPT)

    def _forget_texts(self) -> None:
        super()._forget_texts()
        for part in (self._model.model.backbone.conv_encoder, self._model.model.text_backbone):
            part.answers.clear()

    def _encode_images(self, part: Sequence[Prepared]) -> Output:
        pixels, (picture,) = self._pixels(part), part
        mask = picture.get("pixel_mask", np.ones(pixels.shape[-2:], np.int64))[None]
        return {"pixel_values": pixels, "pixel_mask": torch.from_numpy(mask).to(self._device)}

    def _encode_text(self, concept: str) -> Output:
        return self._tokens(self.form.format(concept.strip().lower().rstrip(".")))

    def _meet(self, images: Output, text: Output) -> Tensor:
        return _best(self._model(**images, **text).logits)

    def _own(self, prepared: Sequence[Prepared], text: str) -> Tensor:
        self._forget_texts()
        return self._meet(self._encode_images(prepared), self._encode_text(text))


class _Remembered(torch.nn.Module):  # type: ignore[misc]
    """A part of a model that remembers its last answers: the same pixels or tokens are not read twice."""

    def __init__(self, part: Module, kept: int) -> None:
        super().__init__()
        self.part, self._kept = part, kept
        self.answers: dict[object, tuple[Tensor, Output]] = {}

    def forward(self, inputs: Tensor, *others: object, **options: object) -> Output:
        """The answer to these inputs; the others follow from them."""
        # A picture by its identity: it is kept with its answer, so its memory address cannot be reused.
        key = id(inputs) if inputs.is_floating_point() else tuple(inputs.flatten().tolist())
        if key not in self.answers:
            while len(self.answers) >= self._kept:
                del self.answers[next(iter(self.answers))]
            self.answers[key] = inputs, self.part(inputs, *others, **options)
        return self.answers[key][1]


class OmDetTurbo(DenseScorer):
    """OmDet-Turbo: the task's words meet the boxes, so every concept is a task of its own."""

    form = "Detect {}."
    one_by_one = True  # as in Grounding DINO

    def _encode_images(self, part: Sequence[Prepared]) -> Output:
        features = self._model.vision_backbone(self._pixels(part))
        return self._model.encoder(features).extracted_states

    def _encode_text(self, concept: str) -> Output:
        words, task = self._tokens(concept), self._tokens(self.form.format(concept))
        read = self._model.language_backbone
        concept_vector = read(words["input_ids"], encode_type="class")[:, None]
        return concept_vector, *read(task["input_ids"], mask=task["attention_mask"])

    def _meet(self, images: Output, text: Output) -> Tensor:
        return _best(self._model.decoder(images, *text).decoder_classes[-1])

    def _own(self, prepared: Sequence[Prepared], text: str) -> Tensor:
        read = {"classes": self._tokens(text), "tasks": self._tokens(self.form.format(text))}
        inputs = {f"{part}_{name}": read[part][name] for part in read for name in ("input_ids", "attention_mask")}
        structure = torch.tensor([1], device=self._device)
        output = self._model(pixel_values=self._pixels(prepared), **inputs, classes_structure=structure)
        return _best(output.decoder_class_logits)


class Segmenter(DenseScorer):
    """CLIPSeg; only its light decoder runs for every pair. `area` is the share of pixels above 0.5."""

    channels = ("presence", "mean_probability", "area")
    auto = "CLIPSegForImageSegmentation"
    reading = "sigmoid of the pixel logit, likeliest pixel"

    def _encode_images(self, part: Sequence[Prepared]) -> Output:
        seen = self._model.clip.get_image_features(self._pixels(part), output_hidden_states=True)
        return [seen.hidden_states[layer + 1] for layer in self._model.extract_layers]

    def _encode_text(self, concept: str) -> Output:
        return self._model.clip.get_text_features(**self._tokens(concept)).pooler_output

    def _meet(self, images: Output, text: Output) -> Tensor:
        logits = self._model.decoder(images, text.expand(len(images[0]), -1)).logits
        return read_pixels(probability(logits.float()).flatten(1))

    def _own(self, prepared: Sequence[Prepared], text: str) -> Tensor:
        return _best(self._model(pixel_values=self._pixels(prepared), **self._tokens(text)).logits[None])


DENSE: dict[str, type[DenseScorer]] = {
    "owlvit": Owl,
    "owlv2": Owl,
    "grounding-dino": GroundingDino,
    "mm-grounding-dino": GroundingDino,
    "omdet-turbo": OmDetTurbo,
    "clipseg": Segmenter,
}


def read_pixels(probabilities: Tensor) -> Tensor:
    """The three channels `[n_images, 3]` of pixel probabilities `[n_images, n_pixels]`."""
    share = (probabilities > 0.5).float().mean(dim=1)
    return torch.stack([probabilities.amax(dim=1), probabilities.mean(dim=1), share], dim=1)


def _best(logits: Tensor) -> Tensor:
    """The score of the best box: `[n_images, 1]` from `[n_images, n_boxes, n_tokens]`."""
    return probability(logits.float().flatten(1).amax(dim=1, keepdim=True))


def probability(logits: Tensor) -> Tensor:
    """The sigmoid; a logit that is infinite or no number stays unusable instead of becoming 0 or 1."""
    return torch.where(torch.isfinite(logits), torch.sigmoid(logits), torch.nan)


def _require_backbone(config: ConfigFile) -> None:
    """Raise if the picture's tower is one of timm's and timm is not here."""
    backbone = config.get("backbone_config")
    by_default = config.get("model_type") == "omdet-turbo"  # of the two that may have one, this one has it unasked
    uses_timm = (
        backbone.get("model_type") == "timm_backbone" if backbone else bool(config.get("use_timm_backbone", by_default))
    )
    if uses_timm and find_spec("timm") is None:
        raise MissingExtra(f"The backbone of a {config.get('model_type')} model, which is one of timm's,", "timm")
