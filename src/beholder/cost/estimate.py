"""The estimate: what a model costs for a study on a device, with time as low, expected and high."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from beholder.core.errors import BeholderError, UnknownName, UsageError, first_line
from beholder.cost.rehearsal import SECONDS, Rehearsal, Rehearsed, Timed
from beholder.cost.subject import Subject, subject_of
from beholder.cost.work import Counter, Work
from beholder.datasets import open_dataset
from beholder.datasets.dataset import Dataset
from beholder.models.load import LoadOptions
from beholder.models.served.limits import PREFIX, Limits
from beholder.models.spec import PRECISIONS, this_machine
from beholder.scores.executor import usable_cores
from beholder.scores.reading import PROCESSES_FROM
from beholder.studies.sheets import datasets_here, default_dataset
from beholder.studies.study import Study

CORES = 16
"""Cores beside a card, unless the user says otherwise: as where we measured."""
START = 1.0
"""Seconds that starting worker processes and reading vectors back take."""


class Span(NamedTuple):
    """A number with how low and how high it may be."""

    low: float
    expected: float
    high: float

    def times(self, factor: float) -> Span:
        return Span(*(value * factor for value in self))

    def plus(self, other: Span) -> Span:
        return Span(*(a + b for a, b in zip(self, other, strict=True)))


TOWER_SHARE = Span(0.22, 0.29, 0.38)
"""Of the rate of bfloat16 products, by image towers alone: CLIP B/32 22 %, L/14 38 %."""
TREE_SHARE = Span(0.50, 0.55, 0.60)
"""By a language model over a prompt tree: Qwen2.5-VL-3B, LLaVA-1.5-7B, Gemma-3-4B."""
PROMPTS_SHARE = Span(0.25, 0.33, 0.42)
"""By a language model that reads whole prompts: PaliGemma 2."""
DECODE = Span(0.023, 0.028, 0.033)
"""Seconds of a core for a megapixel of JPEG: hashed, decoded, cut."""
CARD_DECODE = Span(0.00006, 0.00008, 0.0001)
"""Seconds of a card for a picture with --decode gpu, beside the model."""
CARD_DECODE_MEGAPIXEL = 0.00009
"""And for each of its megapixels."""


class Device(NamedTuple):
    """A card by its data sheet."""

    name: str
    card: str
    memory: float
    """Bytes."""
    bandwidth: float
    """Bytes a second."""
    bfloat16: float
    """FLOP a second."""
    float32: float

    def rate(self, precision: str) -> float:
        """FLOP a second at the precision."""
        return self.float32 if precision == "float32" else self.bfloat16


@cache
def devices() -> dict[str, Device]:
    """Every card that is known, by name."""
    text = (files("beholder.cost") / "devices.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {
        row["name"]: Device(
            row["name"],
            row["card"],
            1e9 * float(row["memory_gb"]),
            1e9 * float(row["bandwidth_gb_s"]),
            1e12 * float(row["bfloat16_tflop_s"]),
            1e12 * float(row["float32_tflop_s"]),
        )
        for row in rows
    }


def device(name: str) -> Device:
    """The card of that name."""
    if name not in devices():
        raise UnknownName("device to plan for", name, list(devices()))
    return devices()[name]


# The estimate

TOGETHER = {"contrastive": 256, "baseline": 256}
"""Pictures in one pass over the weights, on a card; of other models 8."""
CHECKED = 8
"""Questions that the engine asks both ways at first (`reuse.ASKED_BOTH_WAYS`)."""


@dataclass(frozen=True)
class CostOptions:
    """What is asked of an estimate."""

    data: Path | None = None
    dataset: str | None = None
    images: int | None = None
    """As if the data set had so many."""
    limit: int | None = None
    """Only so many of them, as `beholder audit --limit` takes them."""
    on: str | None = None
    """A card by name; None for this machine."""
    cards: int = 1
    cores: int | None = None
    """Beside each card, or here."""
    precision: str = "auto"
    decode: str = "exact"
    device: str = "auto"
    picture_tokens: int | None = None
    price_in: float | None = None
    """For a million tokens."""
    price_out: float | None = None
    rehearse: float = SECONDS
    """Seconds; 0 for no rehearsal."""

    @cached_property
    def on_card(self) -> bool:
        """Whether a card does the work."""
        return self.on is not None or (self.device != "cpu" and this_machine().gpu_memory > 0)

    def __post_init__(self) -> None:
        if not self.on and (self.cards > 1 or self.decode == "gpu"):
            option = "--cards" if self.cards > 1 else "--decode gpu"
            raise UsageError(f"{option} needs a card to plan for: add --on NAME.")


@dataclass(frozen=True)
class Cost:
    """What a model costs for a study."""

    model: str
    device: str
    precision: str
    work: Work
    weights: int | None
    """Bytes of weights in memory."""
    seconds: Span | None
    """Filling an empty store; loading, measuring and drawing come on top."""
    processor_seconds: float | None
    stages: dict[str, float]
    """Expected seconds of each stage by itself."""
    rehearsed: bool
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


def _of_model(subject: Subject, studies: Sequence[Study], options: CostOptions) -> list[Cost]:
    counter = Counter(subject, picture_tokens=options.picture_tokens, on_card=options.on_card)
    rehearsal, why = _rehearsal(subject, options)
    found = []
    for study in studies:
        for name in _datasets(study, options):
            work = counter.work(study, opened_dataset(name, options), options.images)
            rehearsed, reason = None, why
            if rehearsal:
                try:
                    rehearsed = rehearsal.timed(work.tasks, work.pictures, counter, study.asks.instruction)
                except BeholderError as error:
                    reason = _no_rehearsal(error)
            found.append(_cost(subject, work, options, rehearsed, reason))
    return found


def _datasets(study: Study, options: CostOptions) -> list[str]:
    if options.dataset:
        return [options.dataset]
    if not study.asks.datasets:
        raise UsageError(f"{study.name} has no data of its own: add --dataset NAME or folder:PATH.")
    if options.data and study.asks.all_datasets:
        return datasets_here(study, options.data)
    return [default_dataset(study, options.data)]


def opened_dataset(name: str, options: CostOptions) -> Dataset:
    """The images that are there; where none is, those that the table names."""
    dataset = open_dataset(name, options.data)
    here = replace(dataset, partial=True).present()
    return (here if len(here) else dataset).limit(options.limit)


def _rehearsal(subject: Subject, options: CostOptions) -> tuple[Rehearsal | None, str]:
    if options.on or subject.served or not options.rehearse:
        return None, ""
    load = LoadOptions(device=options.device, precision=options.precision)
    try:
        return Rehearsal(subject, load, options.rehearse, together=8 if options.on_card else 1), ""
    except BeholderError as error:
        return None, _no_rehearsal(error)


def _no_rehearsal(error: BeholderError) -> str:
    return f"No rehearsal, so time is unknown: {first_line(error).rstrip('.')}."


def _cost(subject: Subject, work: Work, options: CostOptions, rehearsed: Rehearsed | None, why: str) -> Cost:
    precision = _precision(subject, options)
    notes = [*_notes(subject, work, options), *([why] if why else [])]
    if rehearsed and rehearsed.random:
        notes.append("The rehearsal was done with random weights: the model's own are not on this machine.")
    cost = Cost(
        subject.name,
        options.on or "this machine",
        precision,
        work,
        None if subject.served else subject.weights(precision),
        None,
        None,
        {},
        rehearsed is not None,
    )
    if subject.served:
        cost = _served(cost, subject, options)
    elif options.on:
        cost = on_card(cost, subject, options, device(options.on))
    elif rehearsed:
        cost = _here(cost, rehearsed, options)
    return replace(cost, notes=(*notes, *cost.notes))


def _precision(subject: Subject, options: CostOptions) -> str:
    """As the model would be loaded: `auto` is bfloat16 for generative models on a card, else float32."""
    if subject.served:
        return "as served"
    if options.precision == "auto" and subject.kind == "generative" and options.on_card:
        return "bfloat16"
    return PRECISIONS.get(options.precision, options.precision)


def _notes(subject: Subject, work: Work, options: CostOptions) -> list[str]:
    notes = []
    if work.pictures.assumed:
        size = "640 × 480 pixels and 180 KB"
        notes.append(f"No image of {work.dataset} is there: images are counted in its table, and {size} are assumed.")
    if options.on and work.pictures.drawn:
        notes.append("Images of the embedded world are drawn, not read: opening them takes longer than a file would.")
    if subject.unknown and subject.kind != "baseline" and not subject.served:
        notes.append(f"FLOP are unknown: {subject.unknown.rstrip('.')}.")
    if work.tokens_estimated and work.text_tokens:
        notes.append("Text tokens are estimated from words: the model's tokenizer is not on this machine.")
    return notes


# Here


def _here(cost: Cost, timed: Rehearsed, options: CostOptions) -> Cost:
    """From the rehearsal: images are opened while the model works, on the cores that it leaves.

    Low: both overlap wholly; expected: neither does, since they share cores; high: one core opens all images.
    """
    work, cores = cost.work, options.cores or usable_cores()
    opening, looking, reading = (
        timed.opening.times(work.images),
        timed.looking.times(work.images),
        _reading(work, timed),
    )
    model = Timed(looking.wall + reading.wall, looking.processor + reading.processor)
    start = _checking(work, timed)
    if work.pictures.count >= PROCESSES_FROM and timed.two_towers:
        start = Timed(START, START)
    each = opening.wall / cores
    seconds = Span(
        max(each, 0.85 * model.wall) + start.wall,
        each + model.wall + start.wall,
        1.25 * (opening.wall + model.wall) + start.wall,
    )
    stages = {"opening images": each}
    if timed.two_towers:
        stages |= {"image tower": looking.wall, "text tower": reading.wall}
    else:
        stages |= {"model": model.wall}
    processor = opening.processor + model.processor + start.processor
    return replace(cost, seconds=seconds, processor_seconds=processor, stages=stages)


def _checking(work: Work, timed: Rehearsed) -> Timed:
    """Of the first questions that share words, some are asked one by one as well."""
    task = work.tasks[0] if work.tasks else None
    if task is None or task.reading is None or not task.reading.shared:
        return Timed(0.0, 0.0)
    alone = task.effort * task.reading.one_by_one / task.reading.questions / task.reading.read
    return Timed(*(CHECKED * (a + alone * b) for a, b in zip(timed.looking, timed.each, strict=True)))


def _reading(work: Work, timed: Rehearsed) -> Timed:
    """All texts, or all questions about all pictures."""
    if timed.two_towers:
        return timed.each.times(work.prompts)
    return timed.each.times(sum(task.images * task.effort for task in work.tasks))


# On a card that is not here


def on_card(cost: Cost, subject: Subject, options: CostOptions, card: Device) -> Cost:
    """From shapes and data sheets: the model at the share of the card's rate that was measured elsewhere."""
    work, cores = cost.work, options.cores or CORES
    notes = list(cost.notes)
    if cost.weights and cost.weights > 0.9 * card.memory:
        notes.append(f"The weights do not fit into one {card.card} ({card.memory / 1e9:,.0f} GB).")
    if work.vision_flop is None or work.text_flop is None:
        return replace(cost, notes=(*notes, f"Time on {card.name} is unknown, since the FLOP are."))
    shared = all(task.reading is None or task.reading.shared for task in work.tasks)
    share = TOWER_SHARE if subject.kind == "contrastive" else TREE_SHARE if shared else PROMPTS_SHARE
    model = Span(*((work.vision_flop + work.text_flop) / (card.rate(cost.precision) * part) for part in share[::-1]))
    passes = work.images / TOGETHER.get(subject.kind, 8)
    weights = passes * (cost.weights or 0) / card.bandwidth
    model = Span(*(max(part, weights) for part in model))
    pixels = work.images * work.pictures.megapixels
    processor = pixels * DECODE.expected
    if options.decode == "gpu":
        opening = CARD_DECODE.times(work.images).plus(Span(*[pixels * CARD_DECODE_MEGAPIXEL] * 3))
        seconds = opening.plus(model)
        processor = 0.0
    else:
        opening = DECODE.times(pixels / cores)
        seconds = Span(max(opening.low, model.low), max(opening.expected, model.expected), opening.high + model.high)
    start = START if work.pictures.count >= PROCESSES_FROM and options.decode == "exact" else 0.0
    seconds = Span(*(part / options.cards + start for part in seconds))
    total = work.vision_flop + work.text_flop
    stages = {
        "opening images": opening.expected,
        "image tower": model.expected * work.vision_flop / total,
        "text tower" if subject.kind == "contrastive" else "language model": model.expected * work.text_flop / total,
    }
    stages = {name: value / options.cards for name, value in stages.items()}
    return replace(cost, seconds=seconds, processor_seconds=processor, stages=stages, notes=tuple(notes))


# Behind a server


def _served(cost: Cost, subject: Subject, options: CostOptions) -> Cost:
    """One request for every picture and prompt, each with the picture; money at the user's prices."""
    assert subject.served
    work, limits = cost.work, Limits.from_environment(os.environ)
    sampled = subject.served.asking.answers in ("sampled", "guided")
    requests, out = work.cells, work.cells * (8 * subject.served.asking.draws if sampled else 1)
    known = work.picture_tokens is not None and work.text_tokens is not None
    tokens_in = (work.picture_tokens or 0) + (work.text_tokens or 0) if known else None
    price_in = options.price_in if options.price_in is not None else limits.price_in
    price_out = options.price_out if options.price_out is not None else limits.price_out
    notes, money = list(cost.notes), None
    if not known:
        notes.append(f"Tokens and money are unknown, since {subject.unknown}: add --picture-tokens.")
    elif price_in is None and price_out is None:
        notes.append(f"Money is unknown: add --price-in and --price-out (or {PREFIX}PRICE_IN and {PREFIX}PRICE_OUT).")
    else:
        assert tokens_in is not None
        money = (tokens_in * (price_in or 0.0) + out * (price_out or 0.0)) / 1e6
    seconds = None
    if limits.rpm:
        seconds = Span(*[60 * requests / limits.rpm] * 3)
    else:
        notes.append(f"Time is unknown: it is the server's; {PREFIX}RPM (requests a minute) would give it.")
    stages = {"server": seconds.expected} if seconds else {}
    return replace(
        cost,
        seconds=seconds,
        stages=stages,
        requests=requests,
        tokens_in=tokens_in,
        tokens_out=out,
        money=money,
        notes=tuple(notes),
    )
