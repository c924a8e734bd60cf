"""The estimate: what a model costs for a study on a device, with time as low, expected and high."""

import csv
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from beholder.core.errors import BeholderError, ModelError, UnknownName, UsageError, first_line
from beholder.core.options import option
from beholder.cost.subject import WEIGHTS, Subject, subject_of
from beholder.cost.work import Asked, Counter, Pictures, Work
from beholder.datasets import load_dataset
from beholder.datasets.dataset import Dataset
from beholder.datasets.images import is_plain_file
from beholder.models.checkpoint.files import matching
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Answerer, Embedder, Prepared, Scorer
from beholder.models.served.address import PREFIX, Limits
from beholder.models.spec import PRECISIONS, this_machine
from beholder.prompts.prompt_set import Instruction
from beholder.scores.executor import usable_cores
from beholder.scores.reading import PROCESSES_FROM, Opening, nothing_stored
from beholder.studies.inquiry import datasets_here, default_dataset
from beholder.studies.study import Study

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
    making = Opening(getattr(scorer, "preparation", None) or scorer.prepare, nothing_stored)

    def opened(uri: str) -> Prepared:
        known = "" if is_plain_file(uri) else uri  # what is no file is not hashed
        return making.make(uri, known, np.empty(0, np.uint8)).picture

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


CORES = 16  # cores beside a GPU, unless the user says otherwise: as where we measured
START = 1.0  # seconds that starting worker processes and reading vectors back take


class Span(NamedTuple):
    """A number with how low and how high it may be."""

    low: float
    expected: float
    high: float


# Each low, expected and high. Of the rate of bfloat16 products, as measured:
TOWER_SHARE = np.array([0.22, 0.29, 0.38])  # by image towers alone: CLIP B/32 22 %, L/14 38 %
TREE_SHARE = np.array([0.50, 0.55, 0.60])  # by language models over a prompt tree: Qwen2.5-VL-3B, LLaVA-1.5-7B …
PROMPTS_SHARE = np.array([0.25, 0.33, 0.42])  # by a language model that reads whole prompts: PaliGemma 2
DECODE = np.array([0.023, 0.028, 0.033])  # seconds of a core for a megapixel of JPEG: hashed, decoded, cut
GPU_DECODE = np.array([0.00006, 0.00008, 0.0001])  # of a GPU for a picture with --decode gpu, beside the model
GPU_DECODE_MEGAPIXEL = 0.00009  # and for each of its megapixels
TOGETHER = {"contrastive": 256, "baseline": 256}  # pictures in one pass over the weights, on a GPU; of other models 8
CHECKED = 8  # questions that the engine asks both ways at first (`reuse.ASKED_BOTH_WAYS`)


class Device(NamedTuple):
    """A GPU by its data sheet."""

    name: str
    gpu: str
    memory: float  # bytes
    bandwidth: float  # bytes a second
    bfloat16: float  # FLOP a second
    float32: float


def device(name: str) -> Device:
    """The GPU of that name."""
    _, *rows = csv.reader((files("beholder.cost") / "devices.csv").read_text(encoding="utf-8").splitlines())
    known = {
        row[0]: Device(row[0], row[1], *(np.array(row[2:], float) * [1e9, 1e9, 1e12, 1e12]).tolist()) for row in rows
    }
    if name not in known:
        raise UnknownName("device to plan for", name, known)
    return known[name]


@dataclass(frozen=True)
class CostOptions:
    """What is asked of an estimate."""

    data: Path | None = None
    dataset: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    images: int | None = option(None)
    limit: int | None = None  # only so many of them, as `beholder audit --limit` takes them
    on: str | None = option(None)
    gpus: int = option(1)
    cores: int | None = option(None)
    precision: str = option("auto")
    decode: str = option("exact")
    device: str = option("auto")
    rehearse: float = option(SECONDS)
    picture_tokens: int | None = option(None)
    price_in: float | None = option(None)
    price_out: float | None = option(None)

    @cached_property
    def on_gpu(self) -> bool:
        """Whether a GPU does the work."""
        return self.on is not None or (self.device != "cpu" and this_machine().gpu_memory > 0)

    def __post_init__(self) -> None:
        if not self.on and (self.gpus > 1 or self.decode == "gpu"):
            option = "--gpus" if self.gpus > 1 else "--decode gpu"
            raise UsageError(f"{option} needs a GPU to plan for: add --on NAME.")


@dataclass(frozen=True)
class Cost:
    """What a model costs for a study."""

    model: str
    device: str
    precision: str
    work: Work
    weights: int | None  # bytes of weights in memory
    seconds: Span | None = None  # filling an empty store; loading, measuring and drawing come on top
    processor_seconds: float | None = None
    stages: dict[str, float] = field(default_factory=dict)  # expected seconds of each stage by itself
    rehearsed: bool = False
    requests: float | None = None
    tokens_in: float | None = None
    tokens_out: float | None = None
    money: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def bottleneck(self) -> str | None:
        """The stage that takes longest."""
        return max(self.stages, key=self.stages.__getitem__) if self.stages else None


def costs(models: Sequence[str], studies: Sequence[Study], options: CostOptions) -> list[Cost]:
    """Every model with every study; a study that is asked on several data sets, on each that is there."""
    return [cost for name in models for cost in _of_model(subject_of(name), studies, options)]


def _of_model(subject: Subject, studies: Sequence[Study], options: CostOptions) -> Iterator[Cost]:
    counter = Counter(subject, picture_tokens=options.picture_tokens, on_gpu=options.on_gpu)
    rehearsal, why = None, ""
    if not (options.on or subject.served) and options.rehearse:
        load = LoadOptions(device=options.device, precision=options.precision)
        try:
            rehearsal = Rehearsal(subject, load, options.rehearse, together=8 if options.on_gpu else 1)
        except BeholderError as error:
            why = first_line(error)
    for study in studies:
        for name in _datasets(study, options):
            work = counter.work(study, opened_dataset(name, options), options.images)
            rehearsed, reason = None, why
            if rehearsal:
                try:
                    rehearsed = rehearsal.timed(work.tasks, work.pictures, counter, study.asks.instruction)
                except BeholderError as error:
                    reason = first_line(error)
            yield _cost(subject, work, options, rehearsed, reason)


def _datasets(study: Study, options: CostOptions) -> list[str]:
    if options.dataset:
        return [options.dataset]
    if options.data and study.asks.all_datasets:
        return datasets_here(study, options.data)
    return [default_dataset(study, options.data)]


def opened_dataset(name: str, options: CostOptions) -> Dataset:
    """The images that are there; if none is, those that the table names."""
    dataset = load_dataset(name, options.data, options.settings)
    here = replace(dataset, partial=True).present()
    return (here if len(here) else dataset).limit(options.limit)


def _cost(subject: Subject, work: Work, options: CostOptions, rehearsed: Rehearsed | None, why: str) -> Cost:
    precision, size, notes = _precision(subject, options), "640 × 480 pixels and 180 KB", []
    if work.pictures.assumed:
        notes.append(f"No image of {work.dataset} is there: images are counted in its table, and {size} are assumed.")
    if options.on and work.pictures.drawn:
        notes.append("Images of the embedded world are drawn, not read: opening them takes longer than a file would.")
    if subject.unknown and subject.kind != "baseline" and not subject.served:
        notes.append(f"FLOP are unknown: {subject.unknown.rstrip('.')}.")
    if work.tokens_estimated and work.text_tokens:
        notes.append("Text tokens are estimated from words: the model's tokenizer is not on this machine.")
    if why:
        notes.append(f"No rehearsal, so time is unknown: {why.rstrip('.')}.")
    if rehearsed and rehearsed.random:
        notes.append("The rehearsal was done with random weights: the model's own are not on this machine.")
    weights = None if subject.served else subject.weights(precision)
    cost = Cost(subject.name, options.on or "this machine", precision, work, weights, rehearsed=rehearsed is not None)
    if subject.served:
        cost = _served(cost, subject, options)
    elif options.on:
        cost = on_gpu(cost, subject, options, device(options.on))
    elif rehearsed:
        cost = _here(cost, rehearsed, options)
    return replace(cost, notes=(*notes, *cost.notes))


def _precision(subject: Subject, options: CostOptions) -> str:
    """As the model would be loaded: `auto` is bfloat16 for generative models on a GPU, else float32."""
    if subject.served:
        return "as served"
    if options.precision == "auto" and subject.kind == "generative" and options.on_gpu:
        return "bfloat16"
    return PRECISIONS.get(options.precision, options.precision)


def _here(cost: Cost, timed: Rehearsed, options: CostOptions) -> Cost:
    """From the rehearsal. Low: opening overlaps the model's work; expected: not at all; high: on one core."""
    work, count = cost.work, cost.work.pictures.count
    efforts = work.prompts if timed.two_towers else sum(task.images * task.effort for task in work.tasks)
    # Each seconds on the clock and of processors; to read are all texts, or all questions about all pictures.
    opening, looking, reading = timed.opening * work.images, timed.looking * work.images, timed.each * efforts
    start = np.full(2, START) if count >= PROCESSES_FROM and timed.two_towers else _checking(work, timed)
    model = looking + reading
    each, all_at_once = opening[0] / (options.cores or usable_cores()), opening[0] + model[0]
    seconds = np.array([max(each, 0.85 * model[0]), each + model[0], 1.25 * all_at_once]) + start[0]
    stages = {"image tower": looking[0], "text tower": reading[0]} if timed.two_towers else {"model": model[0]}
    stages = {name: float(value) for name, value in {"opening images": each, **stages}.items()}
    processor = float((opening + model + start)[1])
    return replace(cost, seconds=Span(*seconds.tolist()), processor_seconds=processor, stages=stages)


def _checking(work: Work, timed: Rehearsed) -> Array:
    """Of the first questions that share words, some are asked one by one as well."""
    read = work.tasks[0].reading if work.tasks else None
    if read is None or not read.shared:
        return np.zeros(2)
    alone = work.tasks[0].effort * read.one_by_one / read.questions / read.read
    return CHECKED * (timed.looking + alone * timed.each)


def on_gpu(cost: Cost, subject: Subject, options: CostOptions, gpu: Device) -> Cost:
    """From shapes and data sheets: the model at the share of the GPU's rate that was measured elsewhere."""
    work, notes = cost.work, list(cost.notes)
    if cost.weights and cost.weights > 0.9 * gpu.memory:
        notes.append(f"The weights do not fit into one {gpu.gpu} ({gpu.memory / 1e9:,.0f} GB).")
    total = work.flop
    if total is None or work.vision_flop is None:
        return replace(cost, notes=(*notes, f"Time on {gpu.name} is unknown, since the FLOP are."))
    shared = all(task.reading is None or task.reading.shared for task in work.tasks)
    share = TOWER_SHARE if subject.kind == "contrastive" else TREE_SHARE if shared else PROMPTS_SHARE
    rate = gpu.float32 if cost.precision == "float32" else gpu.bfloat16
    passes = work.images / TOGETHER.get(subject.kind, 8)
    model = np.maximum(total / (rate * share[::-1]), passes * (cost.weights or 0) / gpu.bandwidth)
    pixels = work.images * work.pictures.megapixels
    if options.decode == "gpu":
        opening = work.images * GPU_DECODE + pixels * GPU_DECODE_MEGAPIXEL
        seconds, processor, start = opening + model, 0.0, 0.0
    else:
        opening = pixels * DECODE / (options.cores or CORES)
        seconds = np.maximum(opening, model)
        seconds[2] = opening[2] + model[2]  # high: neither waits while the other works
        processor, start = pixels * DECODE[1], START if work.pictures.count >= PROCESSES_FROM else 0.0
    vision = model[1] * work.vision_flop / total
    words = "text tower" if subject.kind == "contrastive" else "language model"
    stages = {"opening images": opening[1], "image tower": vision, words: model[1] - vision}
    stages = {name: float(value) / options.gpus for name, value in stages.items()}
    span = Span(*(seconds / options.gpus + start).tolist())
    return replace(cost, seconds=span, processor_seconds=float(processor), stages=stages, notes=tuple(notes))


def _served(cost: Cost, subject: Subject, options: CostOptions) -> Cost:
    """One request for every picture and prompt, each with the picture; money at the user's prices."""
    assert subject.served
    work, limits, asking = cost.work, Limits.from_environment(os.environ), subject.served.asking
    prices = {name: value for name in ("price_in", "price_out") if (value := getattr(options, name)) is not None}
    out = work.cells * (8 * asking.draws if asking.answers in ("sampled", "guided") else 1)
    notes, tokens_in, money, seconds = list(cost.notes), None, None, None
    if work.picture_tokens is None or work.text_tokens is None:
        notes.append(f"Tokens and money are unknown, since {subject.unknown}: add --picture-tokens.")
    else:
        tokens_in = work.picture_tokens + work.text_tokens
        money = replace(limits, **prices).money(tokens_in, out)
        if money is None:
            variables = f"{PREFIX}PRICE_IN and {PREFIX}PRICE_OUT"
            notes.append(f"Money is unknown: add --price-in and --price-out (or {variables}).")
    if limits.rpm:
        seconds = Span(*[60 * work.cells / limits.rpm] * 3)
    else:
        notes.append(f"Time is unknown: it is the server's; {PREFIX}RPM (requests a minute) would give it.")
    cost = replace(cost, requests=work.cells, tokens_in=tokens_in, tokens_out=out, money=money, notes=tuple(notes))
    return replace(cost, seconds=seconds, stages={"server": seconds.expected} if seconds else {})
