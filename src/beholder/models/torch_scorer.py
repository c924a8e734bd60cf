"""Models in torch: the device they run on, what all their adapters share, and the one proof of all families.

Scores computed together are those of the model's own forward pass, or the model is refused when it is loaded.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np
from PIL import Image

from beholder.core.errors import BeholderError, MissingExtra, ModelError, OutOfMemory, UnusableScore, is_panic
from beholder.models.preparation import Arithmetic, Preparation, by_processor
from beholder.models.scorer import CutTexts, Floats, Prepared, Scorer, batches
from beholder.models.spec import LoadOptions, ModelSpec, Module, Output, Processor, Tensor

if TYPE_CHECKING:  # it imports this module
    from beholder.models.contrastive.gpu_decoder import GpuDecoder
try:
    import torch as torch  # for the adapters too
    import transformers as transformers
except ImportError as error:
    raise MissingExtra("A transformers model", "torch") from error

LIBRARY = f"transformers {transformers.__version__}"
NO_MEMORY = re.compile("out of memory|can.t allocate memory")


def resolve_device(asked: str) -> str:
    """`auto` is CUDA if there is one, else the CPU; anything else must exist here."""
    if asked == "auto":
        # mps only if named: its kernels have changed scores between versions of torch.
        return "cuda" if torch.cuda.is_available() else "cpu"
    cuda = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    known = ["cpu", *(["cuda"] if cuda else []), *cuda, *mps]
    if asked not in known:
        raise ModelError(f"This machine has no device '{asked}'.\nIt has: auto, {', '.join(known)}.")
    return asked


@contextmanager
def memory_errors() -> Iterator[None]:
    """Whatever torch says when memory runs out becomes `OutOfMemory`."""
    try:
        yield
    except (torch.OutOfMemoryError, RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and not NO_MEMORY.search(str(error)):
            raise
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        raise OutOfMemory(f"The model ran out of memory: {str(error).splitlines()[0]}") from error


@contextmanager
def as_model_error(folder: Path | str, library: str = LIBRARY) -> Iterator[None]:
    """The libraries' own errors while loading, reported with the folder's name."""
    try:
        yield
    except (BeholderError, MemoryError):
        raise
    except BaseException as error:
        if not (isinstance(error, Exception) or is_panic(error)):
            raise
        reason = " ".join(str(error).split())[:600] or type(error).__name__
        raise ModelError(f"{folder} cannot be loaded by {library}: {reason}") from error


@contextmanager
def replaced(owner: object, name: str, value: object) -> Iterator[None]:
    """While this lasts, an attribute is another; whatever stood there before comes back, the class's own too."""
    before, inherited = getattr(owner, name), name not in vars(owner)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if inherited and not isinstance(getattr(type(owner), name, None), property):
            delattr(owner, name)
        else:
            setattr(owner, name, before)


# What all adapters share

SMALL = 10_000_000  # parameters of a model that is slower on several threads than on one, far slower on a busy machine


class TorchScorer:
    """Device, precision, batch size, the proof, and the notes on texts that were cut."""

    spec: ModelSpec
    batch_size: int
    batch_sizes: ClassVar[Mapping[str, int]] = {"cpu": 8}  # by kind of device; that of the CPU for any other
    scale: ClassVar[str] = "cosine"  # what a score is, for the proof's tolerance
    preparation: Preparation | None = None  # what worker processes do with a picture
    loader_notes: Sequence[str] = ()
    decoder: "GpuDecoder | None" = None  # what decodes files on the GPU, if that was asked for
    _arithmetic: Arithmetic | None = None  # what is then left to do on the device
    _image_processor: Processor  # of the checkpoint
    _own: Callable[[Sequence[Prepared], str], Output]  # scores of one pair by its own forward pass, nothing kept

    def __init__(self, spec: ModelSpec, options: LoadOptions, *, max_length: int) -> None:
        self.spec, self._device, self._dtype = spec, resolve_device(options.device), getattr(torch, spec.precision)
        self.batch_size = options.batch_size or self._by_device(self.batch_sizes)
        self._cut = CutTexts(max_length)

    def _by_device(self, sizes: Mapping[str, int]) -> int:
        return sizes.get(self._device.partition(":")[0], sizes["cpu"])

    @property
    def notes(self) -> list[str]:
        """What a reader of the scores should know: the loader's remarks, texts that were cut."""
        return [*self.loader_notes, *self._cut.notes]

    def prepare(self, image: Image.Image) -> Prepared:
        """The checkpoint's own preprocessing: float32 `[channel, height, width]`."""
        return by_processor(self._image_processor, image)

    def proved(self, source: Path | str, library: str = LIBRARY) -> Self:
        """Itself; raises unless its scores are those of the model's own forward pass, to the precision's tolerance.

        Ours are computed together, for pictures of two shapes and texts of two lengths; its own pair by pair.
        """
        scorer, wide = cast("Scorer", self), sample_picture()
        with as_model_error(source, library):
            prepared = [scorer.prepare(picture) for picture in (wide, wide.transpose(Image.Transpose.ROTATE_90))]
            scores = scorer.score_prepared(prepared, SAMPLE_TEXTS)
            for number, (one, text) in enumerate(zip(prepared, SAMPLE_TEXTS, strict=True)):
                with running():
                    theirs = np.ravel(torch.as_tensor(self._own([one], text)).float().cpu())
                ours = scores[number, number, : len(theirs)]
                allowed = TOLERANCE[self.scale][self.spec.precision] * np.maximum(1, np.abs(theirs))
                if not (np.abs(ours - theirs) <= allowed).all():
                    fault = f"its own forward pass gives {theirs.tolist()} where its parts give {ours.tolist()}"
                    raise refusal(self.spec.name, fault)
        self._forget_texts()
        return self

    def _forget_texts(self) -> None:
        """After the proof: its texts are not the user's."""
        self._cut = CutTexts(self._cut.limit)

    def _pixels(self, arrays: Sequence[Prepared]) -> Tensor:
        """The batch on the device; pictures that workers or the GPU have cut are finished there."""
        batch = arrays if isinstance(arrays, torch.Tensor) else self._copied(arrays)
        if batch.dtype == torch.uint8:  # `Arithmetic` on the device, in the same order and so with the same result
            assert self._arithmetic is not None
            mean, deviation = self._moments
            values = batch.permute(0, 3, 1, 2).contiguous().float()
            batch = values.div_(self._arithmetic.divisor).sub_(mean).div_(deviation)
        return batch.to(self._dtype)

    def _copied(self, arrays: Sequence[Prepared]) -> Tensor:
        stacked = arrays if isinstance(arrays, np.ndarray) else np.stack(arrays)
        batch = torch.from_numpy(stacked)
        if self._device.startswith("cuda"):
            batch = torch.empty_like(batch, pin_memory=True)  # torch keeps such buffers and hands them out in turn
            np.copyto(batch.numpy(), stacked)  # in this thread: torch's would crowd out the workers
        return batch.to(self._device, non_blocking=True)

    @cached_property
    def _moments(self) -> list[Tensor]:
        """Mean and deviation of each channel, on the device."""
        assert self._arithmetic is not None
        moments = self._arithmetic.mean, self._arithmetic.deviation
        return [torch.tensor(values, device=self._device)[:, None, None] for values in moments]


class PairScorer(TorchScorer):
    """A model that looks at every picture and text together."""

    channels: tuple[str, ...]
    one_by_one = False  # whether pictures pass through the model one at a time, whatever the batch
    _cells: Callable[[Sequence[Prepared], Sequence[str]], Floats]  # of some pictures

    def score_prepared(self, prepared: Sequence[Prepared], prompts: Sequence[str]) -> Floats:
        """One row per picture, one column per prompt, one layer per channel."""
        if not (prepared and prompts):
            return np.empty((len(prepared), len(prompts), len(self.channels)), np.float32)
        parts = batches(prepared, 1 if self.one_by_one else self.batch_size)
        return refuse_unusable(np.concatenate([self._cells(part, prompts) for part in parts]))


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
        if isinstance(model, transformers.PreTrainedModel) and model.device.type == "cpu":
            torch.set_num_threads(1 if model.num_parameters() < SMALL else threads)
        with memory_errors(), torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(threads)


# The proof when a model is loaded: what a fast way gives equals the slow, obvious one

TOLERANCE = {
    "cosine": {"float32": 1e-4, "bfloat16": 3e-2, "float16": 3e-3},
    "match": {"float32": 1e-4, "bfloat16": 1e-1, "float16": 1e-2},
    # In half precision other proposals may come to be the best.
    "presence": {"float32": 1e-4, "bfloat16": 0.2, "float16": 0.05},
    # Over the likeliest first tokens. Half precision rounds a sum differently in every shape.
    "log-probability": {"float32": 1e-4, "bfloat16": 0.3, "float16": 0.05},
}  # how far two ways may be apart, by what a score is and by precision; relative to a score above 1
SAMPLE_TEXTS = ("a photo of a person who is smiling", "nurse")  # scored together and each by itself


def refusal(model: str, fault: str) -> ModelError:
    """The error about a model that fails its proof."""
    return ModelError(f"{model} would be scored wrongly by Beholder and is refused: {fault}.")


def sample_picture() -> Image.Image:
    """A smooth gradient in three colours, wider than high."""
    down, across = np.mgrid[0:32, 0:48]
    planes = [across * 5, 240 - across * 5, down * 8]
    return Image.fromarray(np.stack(planes, axis=-1).astype(np.uint8))


# CUDA graphs

PLAIN_CALLS = 2  # so often a shape is computed plainly: libraries warm up, and few batches are not worth a recording


class Recorded:
    """Once a shape has come a few times, its kernels are recorded as a CUDA graph, which one call launches.

    The kernels and their order are the plain call's, so is the result, which lasts until the next call.
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function
        self._calls: Counter[object] = Counter()
        self._recordings: dict[object, tuple[Output, Tensor, Tensor] | None] = {}  # by shape: graph, input, result

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
        graph, given, result = recording
        given.copy_(batch, non_blocking=True)
        graph.replay()
        return result

    def _recorded(self, batch: Tensor) -> tuple[Output, Tensor, Tensor] | None:
        graph, given = torch.cuda.CUDAGraph(), batch.clone()
        try:
            # Other threads may use the GPU meanwhile: they decode pictures, which can wait for the model.
            first = torch.cuda.Stream(priority=-1)
            with torch.cuda.graph(graph, stream=first, capture_error_mode="thread_local"):
                result = self._function(given)
        except RuntimeError:  # the function asks the GPU for a value on the way, or memory is short
            torch.cuda.synchronize()
            return None
        return graph, given, result
