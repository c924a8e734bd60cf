"""CLIPSeg: how likely each pixel shows a concept, read as presence in the picture.

Channels: `presence`, the probability of the likeliest pixel (a small thing is as present as a large one);
`mean_probability`, the mean over all pixels; `area`, the share of pixels above 0.5. Pixels are those of the model's
own output. Pictures and concepts are encoded once; only the light decoder runs for every pair.
"""

from __future__ import annotations

from collections.abc import Sequence

from beholder.models.checkpoint.checkpoint import torch
from beholder.models.dense.detection import DenseScorer, probability
from beholder.models.scorer import Prepared
from beholder.models.spec import Output, Tensor


class Segmenter(DenseScorer):
    """CLIPSeg, by the hidden layers of its picture tower and the vector of its text tower."""

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

    def _own(self, part: Sequence[Prepared], concept: str) -> Tensor:
        logits = self._model(pixel_values=self._pixels(part), **self._tokens(concept)).logits
        return read_pixels(probability(logits.float()).flatten().unsqueeze(0))


def read_pixels(probabilities: Tensor) -> Tensor:
    """The three channels `[n_images, 3]` of pixel probabilities `[n_images, n_pixels]`."""
    share = (probabilities > 0.5).float().mean(dim=1)
    return torch.stack([probabilities.amax(dim=1), probabilities.mean(dim=1), share], dim=1)
