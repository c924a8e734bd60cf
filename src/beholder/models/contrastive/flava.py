"""FLAVA by its contrastive head: the first token of each tower, projected, as `FlavaForPreTraining` compares them.

Its `get_image_features` gives a vector for every patch, and its plain model gives no logits, so it is no two-tower
model like the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from beholder.core.errors import ModelError
from beholder.models.checkpoint.checkpoint import as_model_error
from beholder.models.checkpoint.files import Origin, read_config
from beholder.models.checkpoint.torch_scorer import open_checkpoint
from beholder.models.contrastive.two_towers import TransformersContrastive, settings_of
from beholder.models.machine import Module, Output
from beholder.models.scorer import Prepared
from beholder.models.spec import LoadOptions

ARCHITECTURE = "FlavaForPreTraining"


def from_folder(folder: Path, name: str, options: LoadOptions, *, origin: Origin | None = None) -> FlavaContrastive:
    """Load a FLAVA folder; `origin` says where it came from if that is not the folder itself."""
    named = read_config(folder).get("architectures") or []
    if ARCHITECTURE not in named:
        raise ModelError(
            f"{folder} names the architecture {', '.join(named) or 'none'}. Of FLAVA, Beholder reads {ARCHITECTURE}, "
            "which has the contrastive head."
        )
    opened = open_checkpoint(folder, options, origin, auto=ARCHITECTURE)
    towers = opened.checkpoint._replace(model=opened.checkpoint.model.flava)
    spec = opened.spec(name, "transformers", settings_of(towers))
    scorer = FlavaContrastive(towers, spec, device=opened.device, batch_size=options.batch_size)
    scorer.whole = opened.checkpoint.model
    with as_model_error(folder):
        scorer.verify()
    return scorer


class FlavaContrastive(TransformersContrastive):
    """Cosine similarity of the projected first tokens."""

    whole: Module
    """With its heads: its forward pass is what the towers are checked against."""

    def _tower(self, side: str) -> Callable[..., Output]:
        tower = super()._tower(side)
        return lambda **inputs: tower(**inputs).pooler_output[:, 0]

    def _own_cosine(self, prepared: Sequence[Prepared], texts: Sequence[str]) -> float:
        output = self.whole(**self._image_inputs(prepared), **self._text_inputs(texts), return_loss=False)
        return float(output.contrastive_logits_per_image[0, 0] / self.spec.settings["logit_scale"])
