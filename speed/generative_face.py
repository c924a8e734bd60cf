"""GRAS's 500 questions about one face, asked together and one by one, of a model on this machine.

python speed/generative_face.py                            # the embedded model, a drawn face
python speed/generative_face.py .cache/bridge-vlm FACE.jpg  # any model that answers in words, any picture
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from beholder.datasets import load_dataset
from beholder.datasets.images import open_image
from beholder.models.load import LoadOptions, load_model
from beholder.studies.gras.prompts import gras_prompts
from beholder.studies.gras.study import GRAS


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="glasshouse/generative")
    parser.add_argument("picture", nargs="?", default=None)
    parser.add_argument("--one-by-one", type=int, default=25, help="questions asked the plain way")
    told = parser.parse_args()
    uri = told.picture or load_dataset("glasshouse-faces").table["uri"][0]
    questions = gras_prompts().texts
    some = list(range(0, len(questions), max(1, len(questions) // told.one_by_one)))
    ours, plain = (
        load_model(told.model, LoadOptions(shared_prefix=shared)).instructed(GRAS.asks.instruction)  # type: ignore[attr-defined]
        for shared in (True, False)
    )
    picture = ours.prepare(open_image(uri))
    ours.score_prepared([picture], questions)  # tokenises, and proves itself
    together, cells = timed(lambda: ours.score_prepared([picture], questions))
    few = [questions[index] for index in some]
    batch, expected = timed(lambda: plain.score_prepared([picture], few))
    loop, _ = timed(lambda: [plain.score_prepared([plain.prepare(open_image(uri))], [question]) for question in few])
    far = np.abs(cells[0, some] - expected[0])
    share = np.abs(np.exp(cells[0, some, 1:4]) - np.exp(expected[0, :, 1:4])).max()
    print(f"{told.model}: {len(questions)} questions about a face in {together:.2f} s")
    for way, seconds in (("a question at a time", loop), ("questions in batches", batch)):
        each = seconds / len(few) * len(questions)
        print(f"  {way}: {each:.1f} s, so ours is {each / together:.1f} × as fast")
    print(f"  largest difference: {far[:, 1:].max():.1g} in log-probability, {share:.1g} in probability")


if __name__ == "__main__":
    main()
