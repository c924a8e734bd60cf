"""Rehearsal: a few seconds of the work itself, on this machine, with the model and some of the pictures.

Timed apart: opening and preparing a picture on one core, the model on a batch of pictures, the text tower on a batch
of texts. A model without two towers is asked few and then more questions about a picture; what a picture takes is then
a constant and so much for each FLOP.
"""

import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from shutil import copyfile

import numpy as np
import numpy.typing as npt

from beholder.core.digests import content_digest
from beholder.core.errors import ModelError
from beholder.cost.subject import WEIGHTS, Subject
from beholder.cost.work import Asked, Counter, Pictures
from beholder.datasets.content import read_content
from beholder.datasets.images import is_plain_file, open_image
from beholder.models.checkpoint.files import matching
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Answerer, Embedder, Prepared, Scorer
from beholder.prompts.prompt_set import Instruction

SECONDS = 10.0
LARGEST_RANDOM = 1_000_000_000  # weights of a model that is built with random ones for a rehearsal
FEW = 4  # questions of the first timing
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rehearsed:
    """What was timed: seconds on the clock and of processors."""

    opening: Array  # of one picture on one core: read, hash, decode, prepare
    looking: Array  # of one picture: two towers; else what a picture takes whatever it is asked
    each: Array  # of one text with two towers; else of one unit of a task's effort
    two_towers: bool
    random: bool


class Rehearsal:
    """A loaded model, ready to be timed on studies."""

    def __init__(self, subject: Subject, options: LoadOptions, seconds: float, *, together: int = 1) -> None:
        """`together` pictures are asked about at once, as the engine would."""
        self._seconds, self._together = seconds, together
        with _folder_with_weights(subject) as name:
            self._scorer = load_model(name, options)
        self._random = name != subject.name

    def timed(self, tasks: Sequence[Asked], pictures: Pictures, counter: Counter, asked_as: Instruction) -> Rehearsed:
        """Some of the work of a study."""
        scorer = self._scorer.instructed(asked_as) if isinstance(self._scorer, Answerer) else self._scorer
        if not pictures.sample:
            raise ModelError("no image of this data set is there")
        prepared, opening = _opened(scorer, pictures.sample, self._seconds / 10)
        if isinstance(scorer, Embedder):
            return Rehearsed(opening, *self._two_towers(scorer, prepared, tasks), True, self._random)
        longest = max(tasks, key=lambda task: len(task.prompts))
        return Rehearsed(opening, *self._by_pair(scorer, prepared, longest, counter, pictures), False, self._random)

    def _two_towers(self, scorer: Embedder, prepared: list[Prepared], tasks: Sequence[Asked]) -> tuple[Array, Array]:
        size = scorer.batch_size
        batch: Prepared = [prepared[number % len(prepared)] for number in range(size)]
        if all(isinstance(one, np.ndarray) and one.shape == batch[0].shape for one in batch):
            batch = np.stack(batch)  # as workers hand pictures over
        looking = _repeated(lambda: scorer.embed_prepared(batch), self._seconds / 2) / size
        texts = list(dict.fromkeys(text for task in tasks for text in task.questions))[: 2 * size]
        return looking, _repeated(lambda: scorer.embed_texts(texts), self._seconds / 5) / len(texts)

    def _by_pair(
        self, scorer: Scorer, prepared: list[Prepared], task: Asked, counter: Counter, pictures: Pictures
    ) -> tuple[Array, Array]:
        """A line through two timings: few questions, and as many as fit into the time."""
        prompts, budget, batch = list(task.prompts), self._seconds / 5, prepared[: self._together]

        def effort(count: int) -> float:
            some = replace(task, prompts=task.prompts[:count], questions=task.questions[:count])
            return counter.read(some, pictures).effort

        def timed(count: int, seconds: float) -> Array:
            return _repeated(lambda: scorer.score_prepared(batch, prompts[:count]), seconds) / len(batch)

        few = min(FEW, len(prompts))
        short = timed(few, budget)
        many = min(len(prompts), int(few * budget / max(short[0], 1e-4)))
        if many <= few:
            return np.zeros(2), short / effort(few)
        long, x = timed(many, 2 * budget), (effort(few), effort(many))
        slope = np.maximum(0.0, (long - short) / (x[1] - x[0]))
        return np.maximum(0.0, long - slope * x[1]), slope


def _opened(scorer: Scorer, uris: Sequence[str], seconds: float) -> tuple[list[Prepared], Array]:
    """Some pictures made ready, and what one takes."""
    prepare = getattr(scorer, "preparation", None) or scorer.prepare

    def opened(uri: str) -> Prepared:
        data = read_content(uri) if is_plain_file(uri) else None
        if data is not None:
            content_digest(data)
        return prepare(open_image(uri, data))

    prepared, turns = deque[Prepared](maxlen=len(uris)), cycle(uris)
    opening = _repeated(lambda: prepared.append(opened(next(turns))), seconds)
    return list(prepared), opening


def _repeated(act: Callable[[], object], seconds: float) -> Array:
    """The mean of some repetitions, after a first one that warms up."""
    act()
    start, used, count = time.perf_counter(), time.process_time(), 0
    while not count or time.perf_counter() - start < seconds:
        act()
        count += 1
    return np.array([time.perf_counter() - start, time.process_time() - used]) / count


@contextmanager
def _folder_with_weights(subject: Subject) -> Iterator[str]:
    """The model's name, or a folder of the same shapes with random weights where it has none and is small enough."""
    if subject.here:
        yield subject.name
        return
    if subject.folder is None or not subject.parameters:
        raise ModelError("its weights are not on this machine")
    if subject.parameters > LARGEST_RANDOM:
        raise ModelError(
            f"its weights are not on this machine, and it is too large to be built with random ones "
            f"({subject.parameters / 1e9:.1f} billion weights; up to {LARGEST_RANDOM / 1e9:g} billion are built)"
        )
    with tempfile.TemporaryDirectory() as scratch:
        _random_weights(subject.folder, Path(scratch), generative=subject.kind == "generative")
        yield scratch


def _random_weights(source: Path, target: Path, *, generative: bool) -> None:
    """The folder's model with random weights: speed depends on shapes, not on what was learnt."""
    # Imported here because torch is optional and slow to start.
    from beholder.models.checkpoint.checkpoint import captured_warnings
    from beholder.models.torch_scorer import as_model_error, torch, transformers

    auto = transformers.AutoModelForImageTextToText if generative else transformers.AutoModel
    with as_model_error(source), captured_warnings():
        torch.manual_seed(0)
        auto.from_config(transformers.AutoConfig.from_pretrained(source, local_files_only=True)).save_pretrained(target)
    weights = {path.name for path in matching(source, WEIGHTS)}
    for path in source.iterdir():
        if path.is_file() and path.name not in weights and path.name != "config.json":
            copyfile(path, target / path.name)
