"""Visual Genome read record by record against the whole file at once: `python speed/streams.py [images]`.

The file is generated in the true schema, about 36 objects an image. Each way runs in a process of its own, so that
the peaks are its own.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from itertools import accumulate
from pathlib import Path

SYNSETS = [f"thing_{rank}.n.01" for rank in range(6000)]
OFTEN = list(accumulate(1 / (rank + 3) for rank in range(6000)))
WAYS = {
    "streamed": "from beholder.datasets.visual_genome import load; load(Path(sys.argv[1]))",
    "whole": "import json; json.loads((Path(sys.argv[1]) / 'objects.json').read_text())",
}
TIMED = """
import resource, sys, time
from pathlib import Path
import beholder.datasets
began = time.perf_counter()
{work}
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


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


def measured(way: str, folder: Path) -> tuple[float, float]:
    """Seconds, and megabytes at the peak."""
    command = [sys.executable, "-c", TIMED.format(work=WAYS[way]), str(folder)]
    seconds, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), float(peak)


if __name__ == "__main__":
    count = int(sys.argv[1]) if sys.argv[1:] else 20_000
    with tempfile.TemporaryDirectory() as scratch:
        write_objects(Path(scratch) / "objects.json", count)
        megabytes = (Path(scratch) / "objects.json").stat().st_size / 1e6
        print(f"objects.json of {count:,} images, {megabytes:.0f} MB")
        for way in WAYS:
            seconds, peak = measured(way, Path(scratch))
            print(f"  {way}: {seconds:.1f} s, {peak:.0f} MB at the peak")
