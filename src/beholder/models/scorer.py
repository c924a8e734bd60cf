"""Scorer: anything that fills cells. It knows nothing of paths, progress or metrics.

A scorer is handed decoded pictures and prompts and gives float32 `[n_images, n_prompts, n_channels]`.
`prepare` is the part of it that may run in worker threads (resizing, cropping, normalising). A scorer that also has a
`preparation` lets worker processes do that part; its pictures then come as one array, a row for each.

Here too: what two-tower adapters share, the null model, and how stable a model's scores are. No torch.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from PIL import Image

from beholder.core.errors import ModelError, UnusableScore
from beholder.models.spec import LoadOptions, ModelSpec

if TYPE_CHECKING:  # worker processes start without polars
    from beholder.prompts.prompt_set import Instruction

Floats = npt.NDArray[np.float32]
Prepared = Any  # what an adapter's `prepare` returns; only that adapter reads it
Item = TypeVar("Item")


class Scorer(Protocol):
    """What every adapter offers."""

    spec: ModelSpec
    channels: tuple[str, ...]
    batch_size: int  # how many images at once; the filler halves it when memory runs out

    def prepare(self, image: Image.Image) -> Prepared:
        """One RGB picture made ready for the model; called from several threads at once."""
        ...

    def score_prepared(self, prepared: Sequence[Prepared], prompts: Sequence[str]) -> Floats:
        """One row per prepared picture, one column per prompt, one layer per channel."""
        ...


@runtime_checkable
class Embedder(Scorer, Protocol):
    """A scorer whose score is a product of an image vector and a text vector: each is computed once."""

    def embed_prepared(self, prepared: Sequence[Prepared]) -> Floats:
        """Unit image vectors `[n_images, dim]`."""
        ...

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Unit text vectors `[n_texts, dim]`."""
        ...


class PictureTooLarge(ModelError):  # noqa: N818
    """A server does not take a picture of this size; a scorer with `send_smaller` may be given another try."""


def start_embedding(scorer: Embedder, pictures: Sequence[Prepared]) -> Callable[[], Floats]:
    """Start on a batch where the scorer can leave it to its device; what is returned waits for the unit vectors."""
    if begin := getattr(scorer, "begin_embedding", None):
        waiting: Callable[[], Floats] = begin(pictures)
        return waiting
    vectors = scorer.embed_prepared(pictures)
    return lambda: vectors


@runtime_checkable
class Answerer(Scorer, Protocol):
    """A scorer that answers in words: what it reads beside the prompt moves its scores, so it is in its spec."""

    def instructed(self, instruction: "Instruction") -> Scorer:
        """The same model, asked this way."""
        ...


class ContrastiveScorer(Embedder):
    """Cosine of image and text vectors; the model's own logits are `logit_scale * cosine + logit_bias` of its spec."""

    channels: tuple[str, ...] = ("cosine",)
    batch_size: int = 32

    def score_prepared(self, prepared: Sequence[Prepared], prompts: Sequence[str]) -> Floats:
        """Cosines `[n_images, n_prompts, 1]`."""
        return cosines(self.embed_prepared(prepared), self.embed_texts(prompts))[:, :, None]


def cosines(images: Floats, texts: Floats) -> Floats:
    """Cosine of every image vector with every text vector; both come in as unit vectors."""
    return np.asarray(images @ texts.T, dtype=np.float32)


BOUNDS = ("log_p_yes_low", "log_p_yes_high", "log_p_no_low", "log_p_no_high")
"""Channels of a served model: between which logarithms the probabilities of its two words lie."""
WIDE = 0.01  # between the bounds of a probability: more is reported


class CutTexts:
    """The texts that were longer than the model reads, each noted once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.notes: list[str] = []
        self._seen: set[str] = set()

    def record(self, texts: Sequence[str], lengths: Sequence[int]) -> None:
        """Note every text of more than `limit` tokens."""
        for text, length in zip(texts, lengths, strict=True):
            if length > self.limit and text not in self._seen:
                self._seen.add(text)
                shown = text if len(text) <= 100 else f"{text[:99]}…"
                self.notes.append(f"text of {length} tokens cut to the model's {self.limit}: {shown!r}")


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Consecutive parts of at most `size`, in order."""
    for start in range(0, len(items), max(size, 1)):
        yield items[start : start + max(size, 1)]


def embed_in_batches(
    items: Sequence[Item], size: int, embed: Callable[[Sequence[Item]], npt.NDArray[np.generic]], *, kind: str
) -> Floats:
    """Unit rows for all items, `size` at a time; a row that cannot be used is an error that says which."""
    parts = [np.asarray(embed(part), dtype=np.float32) for part in batches(items, size)]
    if not parts:
        return np.zeros((0, 0), dtype=np.float32)
    return unit_rows(np.concatenate(parts), kind=kind)


def unit_rows(vectors: npt.NDArray[np.generic], *, kind: str = "image") -> Floats:
    """Rows scaled to length 1, in float32; raises `UnusableScore` where there is no such row."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if len(bad):
        raise UnusableScore(kind, bad.tolist())
    return np.asarray(rows / lengths, dtype=np.float32)


class NullScorer:
    """Uniform noise in [-1, 1), seeded by picture, prompt and seed alone: what measures say when nothing is to find."""

    channels: tuple[str, ...] = ("cosine",)
    batch_size = 64

    def __init__(self, seed: int = 0) -> None:
        name = f"null:{seed}" if seed else "null"
        settings = {"logit_scale": 1.0, "logit_bias": 0.0}
        self.spec = ModelSpec(name, "null", "none", str(seed), settings=settings)
        self._seed = str(seed).encode()

    def prepare(self, image: Image.Image) -> bytes:
        """The picture's own fingerprint."""
        return hashlib.blake2b(image.tobytes(), key=self._seed, digest_size=16).digest()

    def score_prepared(self, prepared: Sequence[bytes], prompts: Sequence[str]) -> Floats:
        """One draw per (picture, prompt), the same whatever else is in the batch."""
        salts = [_noise(prompt.encode()) for prompt in prompts]
        rows = [[_unit(_noise(picture), salt) for salt in salts] for picture in prepared]
        return np.array(rows, dtype=np.float32).reshape(len(prepared), len(prompts), 1)


def open_null(seed: str, options: LoadOptions) -> NullScorer:
    """The model that `null` or `null:SEED` names."""
    if seed and not seed.isdecimal():
        raise ModelError(f"'null:{seed}': the seed of a null model is a whole number, as in null:7, not '{seed}'.")
    return NullScorer(int(seed or 0))


def _noise(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def _unit(picture: int, prompt: int) -> float:
    """Mix two 64-bit numbers into one in [-1, 1) (splitmix64's finaliser)."""
    mixed = (picture ^ (prompt * 0x9E3779B97F4A7C15)) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 31)) / 2**63 - 1


# Stability: how far scores move when a picture's numbers change in their sixth digit. Arithmetic in float32 moves a
# score by about a millionth then. A graph that rounds on the way, like a dynamically quantised one, may move it by a
# thousand times as much, and what is measured on its scores moves with them.

NUDGE = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
"""By precision, a step of its numbers: a smaller one would be rounded away."""
LEAST_NUDGE = 1e-6
LIMIT = 1e-3  # scores that move by more are reported


def movement(scorer: Scorer, prompts: Sequence[str]) -> Floats | None:
    """How far each channel moves at most, for one picture; None where nothing was nudged, as with a served model."""
    prepared = scorer.prepare(_picture())
    nudged = [_nudged(prepared, 1 + sign * nudge_of(scorer.spec)) for sign in (1, -1)]
    if any(each is None for each in nudged):
        return None
    before, *after = (scorer.score_prepared([each], prompts)[0] for each in (prepared, *nudged))
    return np.asarray(np.abs(np.stack(after) - before).max(axis=(0, 1)), np.float32)


def nudge_of(spec: ModelSpec) -> float:
    """By how much of itself a picture's numbers are changed."""
    return NUDGE.get(spec.precision, LEAST_NUDGE)


def redrawn(cells: npt.NDArray[np.floating], channels: Sequence[str], rng: np.random.Generator) -> Floats:
    """Sampled answers `[images, prompts, channels]` as another sample of as many might have them."""
    made = np.array(cells, np.float32)
    yes, no, draws = (
        np.asarray(cells[:, :, channels.index(name)], float) for name in ("yes_draws", "no_draws", "draws")
    )
    shares = np.stack([yes, no, draws - yes - no], axis=-1) / draws[..., None]
    counts = rng.multinomial(draws.astype(int), shares)
    for at, word in enumerate(("yes", "no")):
        made[:, :, channels.index(f"{word}_draws")] = counts[..., at]
        made[:, :, channels.index(f"log_p_{word}")] = np.log((counts[..., at] + 0.5) / (draws + 1.5))
    made[:, :, channels.index("logit_true")] = made[:, :, channels.index("log_p_yes")]
    made[:, :, channels.index("refused")] = counts[..., 2] / draws
    return made


def shaken(cells: npt.NDArray[np.floating], moved: Floats, rng: np.random.Generator) -> npt.NDArray[np.floating]:
    """Scores `[images, prompts, channels]` with noise as large as their movement, within the range that they have."""
    noise = rng.uniform(-1, 1, cells.shape) * moved
    low, high = (edge(cells, axis=(0, 1), keepdims=True) for edge in (np.nanmin, np.nanmax))
    return np.clip(cells + noise, low, high)


def _nudged(value: Any, factor: float) -> Any:
    """The same with every floating-point array multiplied; None if it holds none."""
    if hasattr(value, "dtype"):
        return value * factor if "float" in str(value.dtype) else None
    named = value._asdict() if hasattr(value, "_asdict") else value
    if not isinstance(named, Mapping):
        return None
    parts = {name: _nudged(part, factor) for name, part in named.items()}
    changed = {name: part for name, part in parts.items() if part is not None}
    if not changed:
        return None
    return {**value, **changed} if named is value else value._replace(**changed)


def _picture() -> Image.Image:
    rng = np.random.default_rng(3)
    down, across = np.mgrid[0:192, 0:256]
    planes = np.stack([across, 255 - across, down], axis=-1) * 0.7 + rng.normal(30, 12, (192, 256, 3))
    return Image.fromarray(np.clip(planes, 0, 255).astype(np.uint8))
