"""Filling scores reads ahead and embeds each picture and text once: much faster than a picture and a text at a time."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from bench import Claim, compared, main, timed

from beholder.datasets import load_dataset
from beholder.datasets.images import open_image
from beholder.models.load import load_model
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.fill import fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store


def pairs(options: Namespace) -> Iterator[Claim]:
    """The embedded contrastive model on drawn residents; ours writes the store too."""
    scorer, images = load_model("glasshouse/contrastive"), 2 if options.quick else 60
    world = load_dataset("glasshouse").limit(images)
    words = ("doctor", "nurse", "chef", "judge")
    prompts = prompt_set("words", [{"text": f"a drawing of a {word}"} for word in words])

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            fill([Task("bench", world, prompts)], scorer, Store(Path(folder)))

    def loop() -> None:
        for uri in world.table["uri"]:
            for text in prompts.texts:
                scorer.score_prepared([scorer.prepare(open_image(uri))], [text])

    ways = [timed("ours", ours), timed("a picture and a text at a time", loop, repeats=1)]
    yield compared(f"Filling {images} pictures × {len(words)} prompts with glasshouse/contrastive", ways)


if __name__ == "__main__":
    main(pairs)
