"""Quantity: what the numbers of a score matrix are. The only module that knows what each channel means.

cosine        the angle between image and text vector; a logit by the checkpoint's own scale
match_logit   "they match", of a model that looks at picture and text together
logit_true    the raw logit of the agreeing answer
log_p_yes     log P(yes) over all spellings; log_p_no likewise; log_p_true the single token of released scripts
presence      how sure a detector or segmenter is that a concept is there; area its share of the picture
score         imported: read as whatever the study asks for
refused       1 where a served model refused to answer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.errors import BeholderError

Array = npt.NDArray[Any]  # float64, or float32 where a probability keeps its precision
Kind = Literal["probability", "logit", "ranking", "cosine"]
CHANNELS: dict[Kind, tuple[str, ...]] = {
    "logit": ("cosine", "logit_true", "match_logit", "score"),
    "probability": ("score", "log_p_yes", "presence"),
    "ranking": ("presence", "log_p_yes", "cosine", "match_logit", "logit_true", "area", "score"),
    "cosine": ("cosine", "match_logit", "log_p_yes", "score"),
}
"""By the kind that a study asks for, the channels that can give it, the best first."""
UNITS = {
    "cosine": "cosine",
    "match_logit": "match logit",
    "logit_true": "logit",
    "log_p_yes": "P(Yes)",
    "log_p_true": "P(Yes)",
    "presence": "presence",
    "area": "area",
    "score": "score",
}
PROBABILITIES = ("log_p_yes", "log_p_true", "presence")
"""Channels whose numbers are probabilities whatever the study reads them as."""


class Quantity(NamedTuple):
    """Cells `[n_images, n_prompts]` of one kind, and where they come from."""

    cells: Array
    channel: str

    @property
    def unit(self) -> str:
        """What the numbers are called."""
        return UNITS[self.channel]

    @property
    def is_probability(self) -> bool:
        """Whether the numbers are known to be probabilities; of imported ones that is not known."""
        return self.channel in PROBABILITIES


def channel_for(kind: Kind, channels: Sequence[str]) -> str | None:
    """The channel that gives this kind, or None.

    >>> channel_for("ranking", ["area", "presence"])
    'presence'
    """
    return next((name for name in CHANNELS[kind] if name in channels), None)


def quantity(kind: Kind, task: str, channels: Mapping[str, Array], settings: Mapping[str, Any]) -> Quantity:
    """The cells as this kind of number; an error where the model gives none."""
    channel = channel_for(kind, list(channels))
    if channel is None:
        raise BeholderError(
            f"{task} needs a {kind}, and the model gives only {', '.join(channels)}.\n"
            f"This study takes models with one of: {', '.join(CHANNELS[kind])}."
        )
    # A probability keeps its precision: GRAS at full size holds 50 million of them.
    cells = channels[channel] if kind == "probability" else channels[channel].astype(np.float64)
    if channel.startswith("log_p"):
        cells = np.exp(cells)
    elif kind == "logit" and channel == "cosine":
        cells = cells * settings.get("logit_scale", 1.0) + settings.get("logit_bias", 0.0)
    return Quantity(np.asarray(cells), channel)


def looks_for_things(channels: Sequence[str]) -> bool:
    """Whether a model with these channels detects or segments, rather than reading texts."""
    return "presence" in channels
