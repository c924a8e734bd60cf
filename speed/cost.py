"""What an audit costs: `beholder plan --cost` against real runs, and the arithmetic of docs/cost.md.

python speed/cost.py h200          predicted for one H200 against what was measured there (speed/RESULTS.md)
python speed/cost.py here [MODEL]  rehearse and then really run, on this machine: clock and processor time
python speed/cost.py cluster       100 models × 1 million images, as the page has it
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pipeline import processor_seconds
from rehearsal import Shape

from beholder.cost.estimate import CORES, SECONDS, Cost, CostOptions, costs, device, on_gpu, opened_dataset
from beholder.cost.subject import Subject, subject_of
from beholder.cost.work import ASSUMED_BYTES, KEY, PACKED, Asked, Pictures, Work, asked_about, reading
from beholder.models.load import load_model
from beholder.models.scorer import Answerer
from beholder.scores.fill import FillOptions, fill
from beholder.scores.store import Store
from beholder.studies import STUDIES

COCO = (480, 640)
"""Size of the photographs that were timed, or of those that decode as quickly."""
MEASURED = (
    ("openai/clip-vit-base-patch32", "exact", COCO, 20_000, 1486),
    ("openai/clip-vit-large-patch14", "exact", COCO, 20_000, 1639),
    ("openai/clip-vit-base-patch32", "gpu", COCO, 20_000, 6516),
    ("openai/clip-vit-large-patch14", "gpu", COCO, 20_000, 1875),
    ("Qwen/Qwen2.5-VL-3B-Instruct", "questions", (448, 448), 5010, 5173),
    ("Qwen/Qwen2.5-VL-3B-Instruct", "questions", (448, 448), 16, 5417),
    ("llava-hf/llava-1.5-7b-hf", "questions", (448, 448), 16, 2321),
    ("google/gemma-3-4b-it", "questions", (448, 448), 16, 4139),
    ("google/paligemma2-3b-mix-224", "questions", (448, 448), 2, 239),
)
"""Model, way of decoding or questions, size and number of pictures, images or questions a second on one H200 with 16
cores (2026-11-15 and 16, bfloat16)."""
MODELS = {
    "openai/clip-vit-base-patch32": 30,
    "openai/clip-vit-base-patch16": 20,
    "openai/clip-vit-large-patch14": 20,
    "google/siglip2-so400m-patch14-384": 10,
    "Qwen/Qwen2.5-VL-3B-Instruct": 8,
    "google/gemma-3-4b-it": 6,
    "llava-hf/llava-1.5-7b-hf": 6,
}
"""The 100 models of the page's example: how many of which shape."""
IMAGES, CARDS = 1_000_000, 64


class Compared(NamedTuple):
    """A prediction beside what was measured, in the same unit."""

    what: str
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured

    def __str__(self) -> str:
        return f"{self.what:<86} {self.predicted:>10,.1f} {self.measured:>10,.1f} {self.ratio:>6.2f}"


def questions(subject: Subject, images: float, size: tuple[int, int]) -> Asked:
    """500 questions about each picture in the shape of GRAS: speed/rehearsal.py's."""
    assert subject.shapes
    shape, number = Shape(), iter(range(10**6))
    picture = subject.shapes.vision.handed_on(subject.shapes.resized(*size))

    def drawn(count: int) -> list[int]:
        return [next(number) for _ in range(count)]

    beginning = [*drawn(shape.before), *[-1] * picture, *drawn(shape.trunk)]
    branches = [drawn(shape.branch) for _ in range(shape.branches)]
    sequences = [[*beginning, *branch, *drawn(shape.leaf)] for branch in branches for _ in range(shape.leaves)]
    read = reading(sequences, picture, shared=not subject.shapes.looks_back)
    asked = Asked(images, ("",) * shape.questions, ("",) * shape.questions)
    return asked_about(asked, [(read, subject.shapes.resized(*size))], subject)


def made_up(name: str, images: int, size: tuple[int, int], options: CostOptions) -> Cost:
    """A model on made-up pictures: with two towers 500 texts of 12 tokens, else 500 questions."""
    subject = subject_of(name)
    assert subject.shapes
    pictures = Pictures(images, (), ASSUMED_BYTES, (size,))
    if subject.kind == "generative":
        task = questions(subject, images, size)
        assert task.reading
        assert task.looking
        assert task.answering
        read, cells = task.reading, 500.0 * images
        tokens = images * read.picture, images * (read.text if read.shared else read.text_one_by_one)
        flop, written = (images * task.looking, images * task.answering), cells * 20 * PACKED + images * KEY
        tasks: tuple[Asked, ...] = (task,)
    else:
        vision, length = subject.shapes.vision, subject.shapes.words.length if subject.shapes.words.padded else 12
        cells, tasks, tokens = 500.0 * images, (), (images * vision.handed_on(), 500 * length)
        flop = images * vision.flop(), subject.shapes.text_flop(500 * length, 500 * length**2, 500)
        written = images * (4 * PACKED * (subject.width or 0) + KEY)
    read_bytes = float(images) * ASSUMED_BYTES
    work = Work(
        "made up", "made up", pictures, images, 500, cells, tasks, *tokens, None, True, *flop, read_bytes, written
    )
    precision = "bfloat16"
    cost = Cost(name, options.on or "", precision, work, subject.weights(precision))
    return on_gpu(cost, subject, options, device(options.on or "h200"))


def h200() -> Iterator[Compared]:
    """Each measured figure beside the arithmetic's."""
    for name, way, size, images, measured in MEASURED:
        decode = way if way == "gpu" else "exact"
        cost = made_up(name, images, size, CostOptions(on="h200", decode=decode, precision="bfloat16"))
        assert cost.seconds
        count = images * (500 if way == "questions" else 1)
        unit = "questions/s" if way == "questions" else f"images/s, decode {way}"
        what = f"{name}, {images:,} pictures of {size[1]} × {size[0]}: {unit}"
        yield Compared(what, count / cost.seconds.expected, measured)


RUNS = (
    ("glasshouse/contrastive", "apa", None),
    ("glasshouse/generative", "gras", None),
    ("onnx:/tmp/bridge", "disparity", Path("/work/shared/data")),
    ("/tmp/bridge-vlm", "disparity", Path("/work/shared/data")),
)


def here(models: list[str], limit: int, rehearse: float = SECONDS) -> Iterator[Compared]:
    """The rehearsal's prediction, and at once the run itself."""
    for name, study_name, data in RUNS:
        if (models and name not in models) or not _is_here(name):
            continue
        study = STUDIES[study_name]
        options = CostOptions(data=data, limit=limit, rehearse=rehearse)
        cost = costs([name], [study], options)[0]
        assert cost.seconds
        assert cost.processor_seconds
        scorer = load_model(name)
        scorer = scorer.instructed(study.asks.instruction) if isinstance(scorer, Answerer) else scorer
        dataset = opened_dataset(cost.work.dataset, options)
        tasks = study.tasks_of(answers=isinstance(scorer, Answerer))(dataset)
        with tempfile.TemporaryDirectory() as folder:
            began, used = time.perf_counter(), processor_seconds()
            fill(tasks, scorer, Store(Path(folder)), FillOptions())
            wall, processor = time.perf_counter() - began, processor_seconds() - used
            written = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
        what = f"{name}, {study_name}, {cost.work.images:,.0f} images"
        yield Compared(f"{what}: seconds on the clock", cost.seconds.expected, wall)
        yield Compared(f"{what}: processor seconds", cost.processor_seconds, processor)
        yield Compared(f"{what}: KB written", cost.work.bytes_written / 1000, written / 1000)


def _is_here(name: str) -> bool:
    return name.startswith("glasshouse/") or Path(name.removeprefix("onnx:")).is_dir()


def cluster() -> Iterator[str]:
    """The page's table: a row for each shape, and all together."""
    yield "| models | of the shape of | image tokens | text tokens | FLOP | H200 hours | core hours | GB written |"
    yield "|---|---|---|---|---|---|---|---|"
    options, totals, towers = CostOptions(on="h200", precision="bfloat16"), [0.0] * 6, 0.0
    for name, count in MODELS.items():
        cost = made_up(name, IMAGES, COCO, options)
        assert cost.seconds
        row = [
            cost.work.picture_tokens or 0.0,
            cost.work.text_tokens or 0.0,
            cost.work.flop or 0.0,
            cost.seconds.expected / 3600,
            (cost.processor_seconds or 0.0) / 3600,
            cost.work.bytes_written / 1e9,
        ]
        totals = [total + count * value for total, value in zip(totals, row, strict=True)]
        towers += count * row[3] * (not cost.work.tasks)
        yield _row(str(count), f"`{name}`", [count * value for value in row])
    yield _row("**100**", "all", totals)
    hours, cores, read = totals[3] / CARDS, totals[4], 100 * IMAGES * ASSUMED_BYTES
    asked = questions(subject_of("Qwen/Qwen2.5-VL-3B-Instruct"), 1, COCO).reading
    assert asked
    yield ""
    yield (
        f"On {CARDS} GPUs with {CORES} cores each: {hours:,.0f} hours. Every model reads all files: "
        f"{read / 1e12:,.0f} TB, {read / 1e9 / hours / 3600:,.1f} GB/s. Opening images takes {cores:,.0f} hours of one "
        f"core: {cores / hours:,.0f} cores all the time. Models with two towers take {towers:,.0f} of the GPU hours. "
        f"Asked one by one, the questions about an image would be {asked.text_one_by_one:,.0f} tokens and "
        f"{asked.questions} times the image; shared they are {asked.text:,.0f} and the image once."
    )


def _row(models: str, name: str, values: list[float]) -> str:
    picture, text, flop, hours, cores, written = values
    return (
        f"| {models} | {name} | {_short(picture)} | {_short(text)} | {_short(flop)} | {hours:,.0f} "
        f"| {cores:,.0f} | {written:,.0f} |"
    )


def _short(value: float) -> str:
    """Two digits and a power of ten.

    >>> _short(26_000_000)
    '2.6e7'
    """
    return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["h200", "here", "cluster"])
    parser.add_argument("models", nargs="*", help="for `here`: only these")
    parser.add_argument("--limit", type=int, default=120, help="images of the real runs on this machine")
    told = parser.parse_args()
    if told.what == "cluster":
        print("\n".join(cluster()))
        return
    print(f"{'':<86} {'predicted':>10} {'measured':>10} {'ratio':>6}")
    for line in h200() if told.what == "h200" else here(told.models, told.limit):
        print(line, flush=True)


if __name__ == "__main__":
    main()
