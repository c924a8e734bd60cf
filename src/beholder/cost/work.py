"""What a study makes a model do: pictures, prompts, tokens, FLOP, bytes. Counted, not timed."""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from beholder.core.errors import BeholderError, MissingExtra
from beholder.cost.subject import Subject
from beholder.datasets.content import is_remote, part_of, read_content
from beholder.datasets.dataset import Dataset
from beholder.datasets.images import DRAWN, is_plain_file, open_image
from beholder.models.generative.prompt_tree import prompt_tree
from beholder.models.scorer import batches
from beholder.models.served.protocol import CHANNELS as SERVED_CHANNELS
from beholder.models.served.protocol import data_url
from beholder.studies.study import Study

if TYPE_CHECKING:
    from beholder.cost.processor_tokens import ProcessorTokens

SAMPLED = 16  # pictures that are looked at for sizes and tokens
ASSUMED_BYTES, ASSUMED_SIZE = 180_000, (480, 640)  # a picture of which nothing is known: a photograph of COCO
CHANNELS = {"generative": 5, "matching": 3, "detection": 1, "segmentation": 1}  # numbers kept of a picture and a prompt
PACKED = 0.93  # of the bytes of its numbers, what a block of the store takes: they hardly compress
KEY = 30  # bytes for the name of a row, and for its part of a block's own description
RUN = 64  # tokens whose attention is computed together (`tree_attention.RUN`)
BEFORE, AFTER = 15, 5  # tokens of a chat's form before the picture and after the question: an estimate
TEXTS = 256  # texts that are handed to a text tower together
PICTURE, FORM = -1, -2
Size = tuple[int, int]  # height and width


@dataclass(frozen=True)
class Pictures:
    """The pictures of a data set, by a sample of them."""

    count: int
    sample: tuple[str, ...]
    bytes_each: float | None
    sizes: tuple[Size, ...]  # of the sample
    assumed: bool = False  # whether no picture is there, so that sizes are assumed

    @property
    def drawn(self) -> bool:
        return any(uri.startswith(DRAWN) for uri in self.sample)

    @property
    def megapixels(self) -> float:
        return float(np.mean([height * width for height, width in self.sizes])) / 1e6


def pictures_of(dataset: Dataset) -> Pictures:
    """A look at some of them, spread evenly."""
    uris = dataset.table["uri"].unique(maintain_order=True).to_list()
    places = np.unique(np.linspace(0, len(uris) - 1, min(len(uris), SAMPLED)).round().astype(int))
    looked = [(uris[i], _bytes(uris[i]), size) for i in places if (size := _size(uris[i]))]
    if not looked:
        return Pictures(len(uris), (), ASSUMED_BYTES, (ASSUMED_SIZE,), assumed=True)
    sample, sizes_in_bytes, sizes = zip(*looked, strict=True)
    known = None not in sizes_in_bytes
    return Pictures(len(uris), sample, float(np.mean(sizes_in_bytes)) if known else None, sizes)


def _bytes(uri: str) -> float | None:
    """Of the file; nothing is read for a drawing, and what a crop needs of its file is not known."""
    if not is_plain_file(uri):
        return 0.0 if uri.startswith(DRAWN) else None
    return float(len(read_content(uri)) if is_remote(uri) or part_of(uri) else os.stat(uri).st_size)


def _size(uri: str) -> Size | None:
    try:
        width, height = open_image(uri).size
    except (BeholderError, OSError):
        return None
    return height, width


class Reading(NamedTuple):
    """What a language model reads about one picture, in tokens."""

    picture: float
    trunk: float  # words that all questions begin with
    branches: float  # words that some questions share
    leaves: float  # words of one question alone
    one_by_one: float  # of all questions, each with the picture
    read: float  # tokens that go through the language model: those of a tree, else the same with the padding of batches
    pairs: float  # pairs of tokens whose attention is computed
    questions: int
    shared: bool  # whether the questions can share words; else only the image tower's work is

    @property
    def text(self) -> float:
        return self.trunk + self.branches + self.leaves

    @property
    def text_one_by_one(self) -> float:
        return self.one_by_one - self.picture * self.questions


def reading(sequences: Sequence[Sequence[int]], picture: int, *, shared: bool, at_once: int = 1) -> Reading:
    """Of questions as tokens, the picture's among them; where they cannot share, so many are padded together."""
    tree = prompt_tree(sequences)
    ends = np.sort(tree.last_tokens)
    below = np.searchsorted(ends, tree.end) - np.searchsorted(ends, np.arange(tree.size))
    leaves = int((below[tree.trunk :] == 1).sum())
    lengths = sorted(len(sequence) for sequence in sequences)
    whole = [(len(part), part[-1]) for part in batches(lengths, at_once)]
    pairs = float(sum(count * length**2 for count, length in whole))
    if shared:  # attention over a tree: its trunk, then runs of tokens with what stands above them
        starts = np.arange(tree.trunk, tree.size, RUN)
        width = int(tree.depth[starts].max()) if len(starts) else 0
        pairs = float(tree.trunk**2 + len(starts) * RUN * (width + RUN))
    words = tree.trunk - picture, tree.size - tree.trunk - leaves, leaves
    read = tree.size if shared else sum(count * length for count, length in whole)
    return Reading(picture, *words, sum(lengths), read, pairs, len(sequences), shared)


def estimated(questions: Sequence[str], picture: int, *, shared: bool, at_once: int = 1) -> Reading:
    """By words and punctuation marks, without the checkpoint's files."""
    numbers: dict[str, int] = {}
    form = [FORM] * BEFORE + [PICTURE] * picture
    sequences = [
        [*form, *(numbers.setdefault(word, len(numbers)) for word in _words(question)), *[FORM] * AFTER]
        for question in questions
    ]
    return reading(sequences, picture, shared=shared, at_once=at_once)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def text_lengths(texts: Sequence[str], folder: Path | None) -> tuple[list[int], bool]:
    """Tokens of each text, and whether they are the checkpoint's own tokenizer's."""
    path = folder / "tokenizer.json" if folder else None
    if path and path.is_file():
        with suppress(ImportError):
            from tokenizers import Tokenizer  # an optional dependency

            tokenizer = Tokenizer.from_file(str(path))
            tokenizer.no_padding()
            tokenizer.no_truncation()
            return [len(one.ids) for one in tokenizer.encode_batch(list(texts))], True
    return [len(_words(text)) + 2 for text in texts], False


def padded(lengths: Sequence[int], batch: int, length: int, *, full: bool) -> list[tuple[int, int]]:
    """Texts and tokens of each in the batches that a text tower reads, padded to the longest or to the full length."""
    parts = [part for block in batches(lengths, TEXTS) for part in batches(block, batch)]
    return [(len(part), length if full else min(length or max(part), max(part))) for part in parts]


@dataclass(frozen=True)
class Asked:
    """A task: how many pictures meet which prompts."""

    images: float
    prompts: tuple[str, ...]
    questions: tuple[str, ...]  # the prompts as the model reads them: with the study's instruction if it answers
    reading: Reading | None = None  # what a generative model reads about one picture
    looking: float | None = None  # FLOP of the image tower for one picture
    answering: float | None = None  # FLOP of the language model for all questions about one picture

    @property
    def effort(self) -> float:
        """What the time of a picture grows with: FLOP, else the tokens that are read about it, else prompts."""
        if self.looking is not None and self.answering is not None:
            return self.looking + self.answering
        return self.reading.read if self.reading else float(len(self.prompts))


@dataclass(frozen=True)
class Work:
    """What a model has to do for a study, from an empty store."""

    study: str
    dataset: str
    pictures: Pictures
    images: float  # pictures that are looked at, each once for every task that asks a model other than with two towers
    prompts: int  # different texts
    cells: float
    tasks: tuple[Asked, ...]
    picture_tokens: float | None = None
    text_tokens: float | None = None  # as they are read: what questions share is read once
    text_tokens_one_by_one: float | None = None
    tokens_estimated: bool = False
    vision_flop: float | None = None
    text_flop: float | None = None
    bytes_read: float | None = None
    bytes_written: float | None = None
    bytes_sent: float | None = None  # to the server of a served model

    @property
    def flop(self) -> float | None:
        return None if self.vision_flop is None or self.text_flop is None else self.vision_flop + self.text_flop


class Counter:
    """Counts the work of one model, in the batches of texts and questions that it reads on a GPU or on a CPU."""

    def __init__(self, subject: Subject, *, picture_tokens: int | None = None, on_gpu: bool = False) -> None:
        self.subject, self._picture_tokens = subject, picture_tokens
        self._texts, self._at_once = (256, 32) if on_gpu else (16, 8)

    def work(self, study: Study, dataset: Dataset, images: int | None = None) -> Work:
        """A study on a data set, as if that had so many images."""
        kind, pictures = self.subject.kind, pictures_of(dataset)
        factor = images / pictures.count if images and pictures.count else 1.0
        tasks = study.tasks_of(answers=kind == "generative", detects=kind in ("detection", "segmentation"))(dataset)
        ask = study.asks.instruction.ask if kind == "generative" else str
        asked = tuple(
            Asked(factor * len(task.dataset), tuple(texts), tuple(map(ask, texts)))
            for task, texts in ((task, task.prompts.texts) for task in tasks)
        )
        unique = len({uri for task in tasks for uri in task.dataset.table["uri"].to_list()})
        pictures = replace(pictures, count=round(factor * unique))
        cells = sum(task.images * len(task.questions) for task in asked)
        texts = list(dict.fromkeys(text for task in asked for text in task.questions))
        work = Work(study.name, dataset.name, pictures, pictures.count, len(texts), cells, asked)
        work = self._two_towers(work, texts) if kind in ("contrastive", "baseline") else self._by_pair(work)
        return replace(work, bytes_read=work.images * pictures.bytes_each if pictures.bytes_each is not None else None)

    def _two_towers(self, work: Work, texts: list[str]) -> Work:
        subject, shapes, count = self.subject, self.subject.shapes, work.pictures.count
        lengths, exact = text_lengths(texts, subject.folder)
        words = shapes.words if shapes else None
        parts = padded(lengths, self._texts, words.length if words else 0, full=bool(words and words.padded))
        tokens = sum(n * length for n, length in parts)
        pairs = sum(n * length**2 for n, length in parts)
        vision = shapes.vision if shapes and shapes.vision.side is not None else None
        return replace(
            work,
            picture_tokens=count * vision.handed_on() if vision else None,
            text_tokens=tokens if subject.kind != "baseline" else None,
            tokens_estimated=not exact,
            vision_flop=count * vision.flop() if vision else None,
            text_flop=shapes.text_flop(tokens, pairs, len(texts)) if shapes else None,
            bytes_written=(count + len(texts)) * (4 * PACKED * subject.width + KEY) if subject.width else None,
        )

    def _by_pair(self, work: Work) -> Work:
        tasks = tuple(self.read(task, work.pictures) for task in work.tasks)
        images, served = sum(task.images for task in tasks), self.subject.served
        urls = [data_url(open_image(uri), served.asking) for uri in work.pictures.sample[:4]] if served else []
        sent = float(np.mean([len(url) for url in urls])) if urls else ASSUMED_BYTES * 4 / 3
        known = [(task.images, task.reading) for task in tasks if task.reading]
        read = known if len(known) == len(tasks) else []
        channels = len(SERVED_CHANNELS) if served else CHANNELS[self.subject.kind]
        return replace(
            work,
            images=images,
            tasks=tasks,
            picture_tokens=_sum(n * one.picture * (one.questions if served else 1) for n, one in read),
            text_tokens=_sum(n * (one.text if one.shared and not served else one.text_one_by_one) for n, one in read),
            text_tokens_one_by_one=_sum(n * one.text_one_by_one for n, one in read),
            tokens_estimated=self._tokens is None,
            vision_flop=_sum(task.images * task.looking for task in tasks if task.looking is not None),
            text_flop=_sum(task.images * task.answering for task in tasks if task.answering is not None),
            bytes_written=work.cells * 4 * channels * PACKED + images * KEY,
            bytes_sent=sent * work.cells if served else None,
        )

    @cached_property
    def _tokens(self) -> "ProcessorTokens | None":
        """Exact tokens, if the checkpoint's tokenizer and processor are here and torch is installed."""
        folder = self.subject.folder
        if self.subject.kind != "generative" or folder is None or not (folder / "tokenizer_config.json").is_file():
            return None
        try:
            from beholder.cost.processor_tokens import ProcessorTokens  # torch is optional and slow to start
        except MissingExtra:
            return None
        return ProcessorTokens(folder, self._at_once)

    def read(self, task: Asked, pictures: Pictures) -> Asked:
        """The task with what a generative model reads about one of these pictures, as far as that is known."""
        shapes, by_hand = self.subject.shapes, self._picture_tokens
        if self.subject.kind != "generative":
            return task
        if self._tokens and pictures.sample:
            fixed = shapes is not None and shapes.vision.side is not None
            shown = [open_image(uri) for uri in pictures.sample[: 1 if fixed else SAMPLED // 2]]
            return asked_about(task, self._tokens.readings(task.questions, shown), self.subject)
        if by_hand is None and shapes is None:
            return task
        sizes = [shapes.resized(*size) if shapes else None for size in pictures.sizes]
        tokens = {size: by_hand or (shapes.vision.handed_on(size) if shapes else 0) for size in sizes}
        estimate = partial(estimated, shared=not (shapes and shapes.looks_back), at_once=self._at_once)
        read = {size: estimate(task.questions, count) for size, count in tokens.items()}
        return asked_about(task, [(read[size], size) for size in sizes], self.subject)


def asked_about(task: Asked, found: Sequence[tuple[Reading, Size | None]], subject: Subject) -> Asked:
    """The task with what is read about a picture of these on average, and what that takes."""
    first, shapes = found[0][0], subject.shapes
    means = np.mean([one[:7] for one, _ in found], axis=0).tolist()
    read = Reading._make([*means, first.questions, first.shared])
    if shapes is None or subject.served:
        return replace(task, reading=read)
    words = shapes.words
    answering = words.layers.flop(read.read, read.pairs, answers=read.questions if read.shared else None)
    looking = float(np.mean([shapes.vision.flop(size) for _, size in found]))
    return replace(task, reading=read, looking=looking, answering=answering + 2 * read.questions * words.head)


def _sum(values: Iterable[float]) -> float | None:
    """Of what is known; None of nothing."""
    known = list(values)
    return float(sum(known)) if known else None
