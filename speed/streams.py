"""Visual Genome is read record by record, in far less memory than the whole file at once.

The file is generated in the true schema, 36 objects an image. Each way runs in a process of its own.
"""

from __future__ import annotations

import json
import random
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from bench import Claim, alone, compared, main

from beholder.datasets.visual_genome import load

SYNSETS = [f"thing_{rank}.n.01" for rank in range(6000)]
OFTEN = list(accumulate(1 / (rank + 3) for rank in range(6000)))


def thing(synset: str, rng: random.Random) -> dict[str, object]:
    """An object as Visual Genome writes it."""
    name = synset.split(".")[0].replace("_", " ")
    size = {"x": 0, "y": 0, "w": rng.randint(5, 500), "h": rng.randint(5, 400)}
    return {"synsets": [synset], "names": [name], "object_id": 1, "merged_object_ids": [], **size}


def write_objects(path: Path, images: int) -> None:
    """Men in half of the images, women in the others."""
    rng = random.Random(1)
    with path.open("w") as file:
        for image in range(images):
            synsets = [("man.n.01", "woman.n.01")[image % 2], *rng.choices(SYNSETS, cum_weights=OFTEN, k=35)]
            record = {"image_id": image, "objects": [thing(synset, rng) for synset in synsets], "image_url": ""}
            file.write(("," if image else "[") + json.dumps(record))
        file.write("]")


def streamed(folder: Path) -> Callable[[], object]:
    """As the data set is opened."""
    return lambda: load(folder)


def whole(folder: Path) -> Callable[[], object]:
    """Parsed alone, nothing made of it."""
    return lambda: json.loads((folder / "objects.json").read_text())


def reading(options: Namespace) -> Iterator[Claim]:
    """Both ways on one file."""
    images = 300 if options.quick else options.images
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "objects.json"
        write_objects(file, images)
        size = f"{file.stat().st_size / 1e6:.0f} MB of {images:,} images"
        ways = [
            alone("ours, the data set made of it", streamed, Path(folder)),
            alone("json.loads", whole, Path(folder)),
        ]
        yield compared(f"Visual Genome: reading objects.json, {size}", ways)


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=20_000)
    main(reading, parser=parser)
