"""TorchScorer: what all adapters share that run a transformers checkpoint with torch, whatever their family."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from PIL import Image

from beholder.core.errors import UnusableScore
from beholder.models.checkpoint.checkpoint import (
    Checkpoint,
    load_checkpoint,
    memory_errors,
    resolve_device,
    torch,
    transformers,
)
from beholder.models.checkpoint.files import Origin, find_files
from beholder.models.preparation import Arithmetic, Decoder, Preparation, Split
from beholder.models.scorer import CutTexts, Floats, Prepared
from beholder.models.spec import LoadOptions, ModelSpec, Module, Processor, Settings, Tensor

PLAIN_CALLS = 2
"""So often a shape is computed plainly: libraries prepare themselves, and few batches are not worth a recording."""


class _Recording(NamedTuple):
    graph: object
    given: Tensor
    result: Tensor


class Recorded:
    """Once a shape has come a few times, its kernels are recorded as a CUDA graph, which one call launches.

    They are the kernels of the plain call, in its order, so the result is the same; it lasts until the next call. What
    cannot be recorded is called plainly.
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function
        self._calls: Counter[object] = Counter()
        self._recordings: dict[object, _Recording | None] = {}

    def __call__(self, batch: Tensor) -> Tensor:
        shape = tuple(batch.shape), batch.dtype
        self._calls[shape] += 1
        if self._calls[shape] <= PLAIN_CALLS:
            return self._function(batch)
        if shape not in self._recordings:
            self._recordings = {shape: self._recorded(batch)}  # of one shape: each takes memory of its own
        recording = self._recordings[shape]
        if recording is None:
            return self._function(batch)
        recording.given.copy_(batch, non_blocking=True)
        recording.graph.replay()  # type: ignore[attr-defined]
        return recording.result

    def _recorded(self, batch: Tensor) -> _Recording | None:
        graph, given = torch.cuda.CUDAGraph(), batch.clone()
        try:
            # Other threads may use the card meanwhile: they decode pictures, which can wait for the model.
            first = torch.cuda.Stream(priority=-1)
            with torch.cuda.graph(graph, stream=first, capture_error_mode="thread_local"):
                result = self._function(given)
        except RuntimeError:  # the function asks the card for a value on the way, or memory is short
            torch.cuda.synchronize()
            return None
        return _Recording(graph, given, result)


# TorchScorer

SMALL = 10_000_000
"""Parameters of a model that is slower on several threads than on one, and far slower on a busy machine."""


class Opened(NamedTuple):
    """A checkpoint as it was loaded: where it runs, in which precision, and where it comes from."""

    checkpoint: Checkpoint
    device: str
    precision: str
    origin: Origin

    def spec(self, name: str, adapter: str, settings: Settings) -> ModelSpec:
        """The spec of this checkpoint."""
        return ModelSpec(name, adapter, *self.origin, self.precision, settings)


def open_checkpoint(folder: Path, options: LoadOptions, origin: Origin | None, *, auto: str = "AutoModel") -> Opened:
    """Load a folder as the options say; `origin` says where it came from if that is not the folder itself."""
    device, precision = resolve_device(options.device), options.resolved_precision
    files = find_files(folder, allow_pickle=options.allow_pickle)
    trust = options.trust_remote_code
    checkpoint = load_checkpoint(files, device=device, precision=precision, trust_remote_code=trust, auto=auto)
    return Opened(checkpoint, device, precision, origin or files.origin)


class TorchScorer:
    """Device, precision, batch size, and the notes on texts that were cut."""

    spec: ModelSpec
    batch_size: int
    batch_sizes: ClassVar[Mapping[str, int]] = {"cpu": 8}
    """Images at once, by kind of device; that of the CPU for any other."""
    preparation: Preparation | None = None
    """What worker processes do with a picture."""
    decoder: Decoder | None = None
    """What decodes files on the card, if that was asked for."""
    _arithmetic: Arithmetic | None = None
    """What is then left to do on the device."""

    def __init__(
        self, spec: ModelSpec, *, device: str, batch_size: int | None, max_length: int, notes: Sequence[str]
    ) -> None:
        self.spec = spec
        self.batch_size = batch_size or self.batch_sizes.get(device.partition(":")[0], self.batch_sizes["cpu"])
        self._device, self._dtype = device, getattr(torch, spec.precision)
        self._cut, self._loader_notes = CutTexts(max_length), notes

    @property
    def notes(self) -> list[str]:
        """What a reader of the scores should know: the loader's remarks, texts that were cut."""
        return [*self._loader_notes, *self._cut.notes]

    def _prepare_apart(self, split: Split | None, otherwise: Preparation | None) -> None:
        """Leave the preparing of pictures to workers: the first part of a split, or the library's own way."""
        self.preparation, self._arithmetic = split or (otherwise, None)

    def _forget_texts(self) -> None:
        """After the proof at start: its texts are not the user's."""
        self._cut = CutTexts(self._cut.limit)

    def _pixels(self, arrays: Sequence[Prepared]) -> Tensor:
        """The batch on the device; pictures that workers or the card have cut are finished there."""
        batch = arrays if isinstance(arrays, torch.Tensor) else self._copied(arrays)
        if batch.dtype == torch.uint8:
            batch = self._finished(batch)
        return batch.to(self._dtype)

    def _copied(self, arrays: Sequence[Prepared]) -> Tensor:
        stacked = arrays if isinstance(arrays, np.ndarray) else np.stack(arrays)
        batch = torch.from_numpy(stacked)
        if self._device.startswith("cuda"):
            batch = torch.empty_like(batch, pin_memory=True)  # torch keeps such buffers and hands them out in turn
            np.copyto(batch.numpy(), stacked)  # in this thread: torch's would crowd out the workers
        return batch.to(self._device, non_blocking=True)

    def _finished(self, pixels: Tensor) -> Tensor:
        """`Arithmetic` on the device, in the same order and so with the same result."""
        assert self._arithmetic is not None
        values = pixels.permute(0, 3, 1, 2).contiguous().float()
        mean, deviation = self._moments
        return values.div_(self._arithmetic.divisor).sub_(mean).div_(deviation)

    @cached_property
    def _moments(self) -> list[Tensor]:
        """Mean and deviation of each channel, on the device."""
        assert self._arithmetic is not None
        moments = self._arithmetic.mean, self._arithmetic.deviation
        return [torch.tensor(values, device=self._device)[:, None, None] for values in moments]


def refuse_unusable(cells: Floats) -> Floats:
    """The cells `[n_images, n_prompts, n_channels]`, or an error that names the images with NaN or infinity."""
    broken = np.flatnonzero(~np.isfinite(cells).all(axis=(1, 2)))
    if broken.size:
        raise UnusableScore("image", broken.tolist())
    return cells


@contextmanager
def running(model: Module | None = None) -> Iterator[None]:
    """Inference: no gradients, float32 that is float32, memory errors as ours; a small model on one thread."""
    # Convolutions (the patch embedding) would otherwise round float32 to 10 bits on recent GPUs.
    torch.backends.cudnn.allow_tf32 = False
    threads = torch.get_num_threads()
    try:
        if isinstance(model, transformers.PreTrainedModel) and _small(model):
            torch.set_num_threads(1)
        with memory_errors(), torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(threads)


def _small(model: Module) -> bool:
    return bool(model.device.type == "cpu" and model.num_parameters() < SMALL)


def image_settings(processor: Processor) -> dict[str, object]:
    """The processor's settings as plain JSON, with the class that applies them."""
    moot = {"processor_class", "_processor_class", "auto_map", "_commit_hash", "name_or_path"}
    kept = {key: value for key, value in processor.to_dict().items() if key not in moot}
    return {**as_json(kept), "class": type(processor).__name__}


def as_json(values: Mapping[str, object]) -> dict[str, object]:
    """The values as a JSON file would give them back; what JSON does not have becomes text."""
    plain: dict[str, object] = json.loads(json.dumps(values, default=str))
    return plain


def sample_pictures() -> list[Image.Image]:
    """A picture that is wider than high, and one that is higher than wide."""
    picture = sample_picture()
    return [picture, picture.transpose(Image.Transpose.ROTATE_90)]


SAMPLE_TEXTS = ("a photo of a person who is smiling", "nurse")
"""A long and a short one: what a model is proven on when it is loaded, together and each by itself."""


def sample_picture() -> Image.Image:
    """A smooth gradient in three colours, wider than high."""
    down, across = np.mgrid[0:32, 0:48]
    planes = [across * 5, 240 - across * 5, down * 8]
    return Image.fromarray(np.stack(planes, axis=-1).astype(np.uint8))
