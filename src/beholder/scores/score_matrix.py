"""ScoreMatrix: the cells of one table of images × prompts, with both tables attached."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.errors import BeholderError
from beholder.core.types import AnyArray
from beholder.datasets.dataset import Dataset
from beholder.models.scorer import BOUNDS, WIDE
from beholder.models.spec import Settings
from beholder.prompts.prompt_set import UNLISTED, PromptSet, prompt_set

Cells = npt.NDArray[np.floating]
Array = AnyArray  # float64, or float32 where a probability keeps its precision
Kind = Literal["probability", "logit", "ranking", "cosine"]
CHANNELS: dict[Kind, tuple[str, ...]] = {
    "logit": ("cosine", "logit_true", "match_logit", "score"),
    "probability": ("score", "log_p_yes", "presence"),
    "ranking": ("presence", "log_p_yes", "cosine", "match_logit", "logit_true", "area", "score"),
    "cosine": ("cosine", "match_logit", "log_p_yes", "score"),
}  # by the kind that a study asks for, the channels that can give it, the best first
UNITS = {"cosine": "cosine", "match_logit": "match logit", "logit_true": "logit", "presence": "presence"}
UNITS |= {"log_p_yes": "P(Yes)", "log_p_true": "P(Yes)", "area": "area", "score": "score"}
PICTURES = "pictures"
"""The kind of a task whose prompts are its own images: a cell is the cosine of two images' vectors."""
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
    """The channel that gives this kind, or None."""
    return next((name for name in CHANNELS[kind] if name in channels), None)


@dataclass(frozen=True)
class ScoreMatrix:
    """`values[i, j, k]`: image i, prompt j, channel k; NaN where there is no score."""

    task: str
    images: pl.DataFrame
    prompts: pl.DataFrame
    channels: tuple[str, ...]
    values: Cells
    settings: Settings = field(default_factory=dict)  # the model's settings, for its logit scale
    dataset: Dataset | None = None  # where the images come from, for what is known of them beside their table
    kind: str = ""
    part: str = ""  # the task's

    def __post_init__(self) -> None:
        expected = (self.images.height, self.prompts.height, len(self.channels))
        if self.values.shape != expected:
            raise BeholderError(
                f"{self.task}: the scores have shape {self.values.shape}, the tables ask for {expected}."
            )

    def channel(self, name: str) -> Cells:
        """One channel's cells `[n_images, n_prompts]`."""
        return np.asarray(self.values[:, :, self.channels.index(name)])

    def quantity(self, kind: Kind, part: slice | None = None) -> Quantity:
        """The cells, of a part of the images, as this kind of number; an error where the model gives none."""
        channel = channel_for(kind, self.channels)
        if channel is None:
            raise BeholderError(
                f"{self.task} needs a {kind}, and the model gives only {', '.join(self.channels)}.\n"
                f"This study takes models with one of: {', '.join(CHANNELS[kind])}."
            )
        # A probability keeps its precision: GRAS at full size holds 50 million of them.
        exact = self.values.dtype if kind == "probability" else np.float64
        if channel == "log_p_yes":
            return Quantity(self._share("yes", part, exact), channel)
        cells: Array = self.channel(channel)[part or slice(None)].astype(exact, copy=False)
        if kind == "logit" and channel == "cosine":
            cells = cells * self.settings.get("logit_scale", 1.0) + self.settings.get("logit_bias", 0.0)
        return Quantity(np.asarray(cells), channel)

    def _share(self, word: str, part: slice | None = None, dtype: npt.DTypeLike = np.float64) -> Array:
        """P(word); of counted answers their share: the log has half a draw more, to be finite, and so lies nearer ½."""
        names = [f"{word}_draws", "draws"] if "draws" in self.channels else [f"log_p_{word}"]
        first, *whole = (self.channel(name)[part or slice(None)].astype(dtype) for name in names)
        return np.asarray(first / whole[0] if whole else np.exp(first))

    def quantities(self, kind: Kind, rows: int = 1 << 12) -> Iterator[tuple[slice, Quantity]]:
        """The same, some images at a time: with 500 prompts, all cells of a million images would take 4 GB."""
        for start in range(0, max(1, len(self.values)), rows):
            part = slice(start, start + rows)
            yield part, self.quantity(kind, part)

    def gives(self, kind: Kind) -> bool:
        """Whether the model gives this kind of number."""
        return channel_for(kind, self.channels) is not None

    @property
    def logits(self) -> npt.NDArray[np.float64]:
        """What goes into a softmax over prompts: the model's own logits."""
        return self.quantity("logit").cells

    def answers(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
        """P(yes) and P(no) of a model that answers in words; None for any other."""
        if not {"log_p_yes", "log_p_no"} <= set(self.channels):
            return None
        return self._share("yes"), self._share("no")

    def single_token(self) -> npt.NDArray[np.float64] | None:
        """The probability of the one token that released scripts read; None where the model does not give it."""
        given = "log_p_true" in self.channels
        return np.asarray(np.exp(self.channel("log_p_true").astype(np.float64))) if given else None

    def refused(self) -> npt.NDArray[np.bool_] | None:
        """Which questions the model refused to answer; None for a model that cannot refuse."""
        return np.nan_to_num(self.channel("refused")) > 0.5 if "refused" in self.channels else None

    def columns(self, keep: npt.NDArray[np.bool_ | np.integer]) -> Self:
        """The prompts that `keep` (a mask or indices) selects."""
        return replace(self, prompts=self.prompts[np.arange(self.prompts.height)[keep]], values=self.values[:, keep])

    def rows(self, keep: npt.NDArray[np.bool_ | np.integer]) -> Self:
        """The images that `keep` (a mask or indices) selects."""
        return replace(self, images=self.images[np.arange(self.images.height)[keep]], values=self.values[keep])

    def complete_rows(self) -> Self:
        """The images that have a score for every prompt: a softmax over some of the prompts is another quantity."""
        return self.rows(np.asarray(~np.isnan(self.values).any(axis=(1, 2))))

    def level(self, name: str) -> Self:
        """The prompts of one level."""
        return self.columns((self.prompts["level"] == name).to_numpy())


def _decided(values: Cells, channels: tuple[str, ...]) -> Cells:
    """The cells; those of a served model that leave open which word is likelier are missing (`Cell.undecided`)."""
    if not {*BOUNDS} <= {*channels} or "draws" in channels:
        return values
    yes_low, yes_high, no_low, no_high = (np.exp(values[:, :, channels.index(name)]) for name in BOUNDS)
    wide = np.maximum(yes_high - yes_low, no_high - no_low) > WIDE
    answered = values[:, :, channels.index("refused")] <= 0.5
    missing = (yes_low < no_high) & (no_low < yes_high) & wide & answered
    told = [number for number, name in enumerate(channels) if name not in (*BOUNDS, "refused")]
    values[:, :, told] = np.where(missing[:, :, None], np.nan, values[:, :, told])
    return values


@dataclass(frozen=True)
class Task:
    """One matrix to be filled: every image of `dataset` against every prompt of `prompts`."""

    name: str
    dataset: Dataset
    prompts: PromptSet
    kind: str = ""  # what is asked, where a study asks several things: its measures pick their matrices by this
    part: str = ""  # the part of the data set that it is about, such as a branch

    def matrix(
        self,
        values: Cells,
        channels: tuple[str, ...],
        *,
        images: pl.DataFrame | None = None,
        prompts: pl.DataFrame | None = None,
        settings: Settings | None = None,
    ) -> ScoreMatrix:
        """Its scores, of all images and prompts or of some."""
        images = self.dataset.table if images is None else images
        prompts = self.prompts.table if prompts is None else prompts
        about = settings or {}, self.dataset, self.kind, self.part
        return ScoreMatrix(self.name, images, prompts, channels, _decided(values, channels), *about)

    def matrix_name(self, image_keys: npt.NDArray[np.bytes_]) -> str:
        """Stands for the contents of the images and the texts of the prompts."""
        return hashlib.blake2b(image_keys.tobytes() + self.prompts.digest.encode(), digest_size=10).hexdigest()


def between_pictures(name: str, dataset: Dataset) -> Task:
    """Every image against every image: for models that need not read a text."""
    prompts = [{"text": image, "level": UNLISTED} for image in dataset.table["image_id"]]
    return Task(name, dataset, prompt_set(name, prompts), kind=PICTURES)
