"""A tiny imitation of CausalFace's layout: drawn portraits of few seeds under its own names, for tests."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from itertools import product
from pathlib import Path

from PIL import Image

from beholder.datasets.faces import PEOPLE, VARIED
from beholder.glasshouse.portrait import Portrait, render

TONES = {"asian": 4, "black": 9, "white": 2}
PRESENTATIONS = {"female": "woman", "male": "man"}


def imitate(folder: Path, *, seeds: int = 2, corrected: bool = False, alike: bool = False) -> Path:
    """Every file of the design for some seeds; `alike` draws one face for all, where only names matter."""
    for attribute, seed in product(VARIED, range(seeds)):
        home = folder / f"final_picked_{attribute}" / f"seed_{seed + 1}"
        home.mkdir(parents=True)
        varied = VARIED[attribute]
        suffix = varied.suffixes[0 if corrected else -1]
        for (race, gender), (place, value) in product(PEOPLE, enumerate(varied.values)):
            name = f"{race}_{gender}_{varied.abbreviation}_{value}{suffix}.png"
            share = place / (len(varied.values) - 1)
            who = ("age", 0.0, "white", "male", 0) if alike else (attribute, share, race, gender, seed)
            (home / name).write_bytes(_png(_portrait(*who)))
    return folder


@cache
def _png(portrait: Portrait) -> bytes:
    buffer = BytesIO()
    render(portrait, 32).resize((512, 512), Image.Resampling.NEAREST).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _portrait(attribute: str, share: float, race: str, gender: str, seed: int) -> Portrait:
    levels = {
        "age": round(20 + 60 * share) if attribute == "age" else 40,
        "smiling": round(4 * share) if attribute == "smiling" else 0,
        "lighting": round(4 * share) - 2 if attribute == "lighting" else 0,
        "pose": round(4 * share) - 2 if attribute == "pose" else 0,
    }
    return Portrait(PRESENTATIONS[gender], skin_tone=TONES[race], identity=seed, **levels)
