"""Image encoders without a text tower: DINOv2, ViT, the vision tower of SigLIP or CLIP, timm. They give image vectors.

The vector is the checkpoint's own: its projection, else its pooled output, else its first token.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from PIL import Image

from beholder.core.errors import NotAskable
from beholder.models.checkpoint.checkpoint import Checkpoint, load_checkpoint, model_settings
from beholder.models.checkpoint.files import Origin, find_files, read_config
from beholder.models.contrastive.two_towers import TorchContrastive, TransformersContrastive
from beholder.models.scorer import Floats, Prepared
from beholder.models.spec import LoadOptions, ModelSpec, Tensor
from beholder.models.torch_scorer import LIBRARY, TOLERANCE, as_model_error, refusal, running, sample_picture
from beholder.models.torch_scorer import transformers as transformers


class ImageEncoder(TransformersContrastive):
    """Cosines between pictures; a text is refused with what to ask instead."""

    adapter: ClassVar[str] = "image encoder"

    def __init__(self, checkpoint: Checkpoint, spec: ModelSpec, options: LoadOptions) -> None:
        model, self._image_processor, _, self.loader_notes = checkpoint
        TorchContrastive.__init__(self, model, spec, options, max_length=0)
        self._leave_preparing_to_workers()

    @classmethod
    def from_folder(cls, folder: Path, name: str, options: LoadOptions, *, origin: Origin | None = None) -> Self:
        """Load a checkpoint's folder by the class that its config.json names, so that all its weights are used."""
        files = find_files(folder, allow_pickle=options.allow_pickle, tokenizer=False)
        named = str((read_config(folder).get("architectures") or [""])[0])
        auto = named if hasattr(transformers, named) else "AutoModel"
        checkpoint = load_checkpoint(files, options, auto=auto, tokenizer=False)
        with as_model_error(folder):
            settings = {**model_settings(checkpoint.model, checkpoint.image_processor), "logit_scale": 1.0}
            spec = ModelSpec(name, cls.adapter, *(origin or files.origin), options.resolved_precision, settings)
            scorer = cls(checkpoint, spec, options)
        return scorer.proved(folder)

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
