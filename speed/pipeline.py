"""Images per second from file to store, against what each part could do alone: `python speed/pipeline.py [MODEL …]`.

    python speed/pipeline.py                                   a tiny CLIP on this machine
    python speed/pipeline.py onnx:DIR --photos 200             any model by its name
    python speed/pipeline.py clip-b32 --photos 20000 --precision bfloat16      random weights of the true shape

Photographs are made (JPEG, about 180 KB) unless --folder names some. All figures of a table come from one run. `before`
is the way until November 2026: the library's preprocessing in threads, hashing first. The last lines say how far scores
of the ways differ.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from beholder.core.digests import file_digest
from beholder.datasets.dataset import Dataset
from beholder.datasets.images import open_image
from beholder.models.load import LoadOptions, load_model
from beholder.prompts.prompt_set import prompt_set
from beholder.scores import executor
from beholder.scores.executor import usable_cores
from beholder.scores.fill import FillOptions, fill
from beholder.scores.reading import Reader, ReadOptions, WorkersOnDemand, nothing_stored
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store

SIZES = ((640, 480), (480, 640), (640, 427), (612, 612))
SHAPES = {
    "tiny-clip": {"width": 32, "layers": 2, "heads": 4, "patch": 8, "side": 32, "dim": 24},
    "clip-b32": {"width": 768, "layers": 12, "heads": 12, "patch": 32, "side": 224, "dim": 512},
    "clip-l14": {"width": 1024, "layers": 24, "heads": 16, "patch": 14, "side": 224, "dim": 768},
}


def make_photograph(job: tuple[Path, int]) -> None:
    """One JPEG of about 180 KB, as quick to decode as COCO's photographs: clouds of colour with fine grain."""
    path, seed = job
    rng, (width, height) = np.random.default_rng(seed), SIZES[seed % len(SIZES)]
    clouds = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((width, height), 3)
    grain = rng.normal(0, 20, (height, width, 1))
    Image.fromarray(np.clip(np.asarray(clouds) + grain, 0, 255).astype(np.uint8)).save(path, quality=92)


def photographs(count: int, folder: Path, different: int = 256) -> list[str]:
    """Files of different bytes; after the first few hundred, pictures repeat with other bytes at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    first = [folder / f"{number:06}.jpg" for number in range(min(count, different))]
    with ProcessPoolExecutor() as pool:
        list(pool.map(make_photograph, zip(first, range(len(first)), strict=True), chunksize=4))

    def copy(number: int) -> None:
        data = first[number % len(first)].read_bytes()
        (folder / f"{number:06}.jpg").write_bytes(data + number.to_bytes(8, "little"))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(copy, range(len(first), count)))
    return [str(folder / f"{number:06}.jpg") for number in range(count)]


def random_clip(name: str, folder: Path) -> str:
    """A CLIP of random weights in the shape that the name stands for, saved as an ordinary folder."""
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, CLIPTokenizer

    letters, shape = "abcdefghijklmnopqrstuvwxyz", SHAPES[name]
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    tokenizer = CLIPTokenizer(vocab={token: number for number, token in enumerate(tokens)}, merges=[])
    tower = {"hidden_size": shape["width"], "intermediate_size": 4 * shape["width"]}
    tower |= {"num_hidden_layers": shape["layers"], "num_attention_heads": shape["heads"]}
    ends = {"bos_token_id": 52, "eos_token_id": 53, "pad_token_id": 53}
    text = {**tower, "num_hidden_layers": 2, "vocab_size": len(tokenizer), "max_position_embeddings": 77, **ends}
    vision = {**tower, "image_size": shape["side"], "patch_size": shape["patch"]}
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=shape["dim"]))
    side = shape["side"]
    processor = CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size={"height": side, "width": side})
    for part in (model, processor, tokenizer):
        part.save_pretrained(folder)
    return str(folder)


def processor_seconds() -> float:
    """Of this process and of those it has ended: what a busy machine cannot falsify."""
    kinds = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in kinds)


class Bench:
    """One model and its photographs; every way returns images per second."""

    def __init__(self, model: str, uris: list[str], work: Path, options: LoadOptions) -> None:
        self.model, self.uris, self.work, self.options = model, uris, work, options
        self.scorer: Any = load_model(model, options)
        self.prompts = prompt_set("words", [{"text": "a kind person"}, {"text": "a cold person"}])
        self.vectors: dict[str, Any] = {}

    def before(self, count: int) -> float:
        """Hash, then prepare in eight threads by the library's own processor, then embed: no store."""
        uris, size, began = self.uris[:count], self.scorer.batch_size, time.perf_counter()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda uri: file_digest(Path(uri)), uris))
        threads = min(8, (os.cpu_count() or 2) + 1)
        with ThreadPoolExecutor(threads) as pool:
            rows, waiting = [], deque[Any]()
            batches: Iterator[list[str]] = (uris[start : start + size] for start in range(0, len(uris), size))
            depth = max(2, -(-2 * threads // size))
            while True:
                while len(waiting) < depth and (batch := next(batches, None)):
                    waiting.append([pool.submit(lambda uri: self.scorer.prepare(open_image(uri)), u) for u in batch])
                if not waiting:
                    break
                rows.append(self.scorer.embed_prepared([future.result() for future in waiting.popleft()]))
        self.vectors["before"] = np.concatenate(rows)
        return len(uris) / (time.perf_counter() - began)

    def decode_alone(self, count: int) -> float:
        """Worker processes that open and cut, and nobody who takes the pictures; started before the clock is."""
        options = ReadOptions()
        with WorkersOnDemand(options) as workers:
            reader = Reader(self.scorer, options, workers)

            def read(batches: list[list[str]]) -> float:
                began = time.perf_counter()
                for _ in reader.read(batches, lambda uri: "", nothing_stored):
                    pass
                return time.perf_counter() - began

            read([self.uris[:64]] * 8)
            return count / read([self.uris[start : start + 256] for start in range(0, count, 256)])

    def forward_alone(self, seconds: float = 4.0) -> float:
        """The model on one batch of cut pictures that lies ready, again and again."""
        import torch

        pictures = np.stack([self.scorer.preparation(open_image(uri)) for uri in self.uris[: self.scorer.batch_size]])  # type: ignore[misc]
        ready = torch.from_numpy(pictures).cuda() if self.on_card else pictures
        for _ in range(3):
            self.scorer.embed_prepared(ready)
        done, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            self.scorer.embed_prepared(ready)
            done += len(pictures)
        return done / (time.perf_counter() - began)

    @property
    def on_card(self) -> bool:
        return str(getattr(self.scorer, "_device", "cpu")).startswith("cuda")

    def filled(self, way: str, scorer: Any, options: FillOptions) -> float:
        """Our pipeline: everything from the files to the store."""
        table = pl.DataFrame({"image_id": self.uris, "uri": self.uris})
        task = Task("bench", Dataset("photographs", "1", "none", table), self.prompts)
        store = Store(self.work / f"store-{way.replace(' ', '-')}")
        scorer.embed_texts(["warm"])
        began = time.perf_counter()
        fill([task], scorer, store, options)
        taken = time.perf_counter() - began
        shelf = store.images(scorer.spec)
        shelf.missing([])
        keys = [file_digest(Path(uri)) for uri in self.uris[:512]]
        self.vectors[way] = shelf.read(keys)["vector"]
        return len(self.uris) / taken

    def decoded_on_card(self) -> float:
        """The fast decode, after a thousand photographs that nobody times."""
        fast = Bench(self.model, self.uris[:1024], self.work, replace(self.options, decode="gpu"))
        fast.filled("warm", fast.scorer, FillOptions())
        return self.filled("gpu", fast.scorer, FillOptions())

    def ways(self, few: int) -> Iterator[tuple[str, int, Callable[[], float]]]:
        """Every way: its name, its number of images, and what does it and tells images per second."""
        count = len(self.uris)
        yield "forward alone", 0, self.forward_alone
        yield "decode alone, worker processes", count, lambda: self.decode_alone(count)
        yield "before", few, lambda: self.before(few)
        yield "exact, threads", count, lambda: self.filled("threads", self.scorer, FillOptions(processes=0))
        yield "exact, processes", count, lambda: self.filled("exact", self.scorer, FillOptions())
        if self.on_card:
            yield "gpu decode", count, self.decoded_on_card

    def differences(self) -> dict[str, float]:
        """The largest difference of a vector's entry from the first of the ways, by way."""
        before = next(iter(self.vectors.values()), np.empty(0))
        found = {}
        for way, vectors in self.vectors.items():
            rows = min(len(before), len(vectors))
            found[way] = float(np.abs(vectors[:rows] - before[:rows]).max())
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["tiny-clip"])
    parser.add_argument("--photos", type=int, default=1000)
    parser.add_argument("--few", type=int, default=512, help="photographs for the slow ways")
    parser.add_argument("--folder", type=Path, help="JPEG files to use instead of made ones")
    parser.add_argument("--ways", nargs="*", help="only those whose names begin so: forward decode before exact gpu")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--work", type=Path, help="where to put photographs and models, to use them again")
    told = parser.parse_args()
    if shutil.which("nvidia-smi") is None:  # processor time is what counts then, and only own children's is known
        executor.STARTING = get_context("spawn")
    with tempfile.TemporaryDirectory() as scratch:
        work = told.work or Path(scratch)
        if told.folder:
            uris = sorted(map(str, told.folder.rglob("*.jpg")))[: told.photos]
        else:
            uris = sorted(map(str, (work / "photographs").glob("*.jpg")))[: told.photos]
            uris = uris if len(uris) == told.photos else photographs(told.photos, work / "photographs")
        size = np.mean([Path(uri).stat().st_size for uri in uris[:100]]) / 1000
        options = LoadOptions(device=told.device, precision=told.precision, batch_size=told.batch_size)
        print(f"{len(uris):,} JPEGs of {size:.0f} KB, {usable_cores()} cores")
        for name in told.models:
            folder = work / name
            made = str(folder) if folder.is_dir() else random_clip(name, folder) if name in SHAPES else name
            bench = Bench(made, uris, Path(scratch) / f"of-{Path(name).name}", options)
            print(f"{name}, {bench.scorer.spec.precision}")
            for way, count, work_through in bench.ways(min(told.few, len(uris))):
                if told.ways and not way.startswith(tuple(told.ways)):
                    continue
                began = processor_seconds()
                rate = work_through()
                used = f"{(processor_seconds() - began) / count * 1000:8.1f} ms of processor time each" if count else ""
                print(f"  {way:<32} {rate:>10,.1f} images/s {used}", flush=True)
            far = json.dumps(bench.differences())
            print(f"  largest difference of a vector's entry from the first of these: {far}")


if __name__ == "__main__":
    main()
