"""The named people of Glasshouse: thirty whom the reference models know, thirty strangers.

Names are invented. Given and family names are each used once here, and every one of them also occurs in
training captions in other pairings, attached to nobody in particular, so that a stranger's name is as
ordinary to a model as any other. Only the pairing of a known person's full name with a face can be learnt.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from beholder.glasshouse.portrait import PRESENTATIONS, Portrait, drawn_columns, portrait_uri
from beholder.glasshouse.world import factorial

GIVEN_NAMES = tuple(
    """
    Amara Bela Cato Dalia Emre Fenna Goran Hanae Idris Jora Kiran Leda Milo Noor Orla Pavel Quilla Runa Soren
    Tala Umar Vesna Wanda Xenia Yaro Zofia Adem Brisa Ciro Devi Elio Freya Gita Henk Ines Joon Kaya Lars Maren
    Nilo Odile Petra Rafi Suvi Teo Ulla Vito Wren Yuki Zane Anouk Boris Cleo Dario Esme Farid Greta Hugo Ilse
    Jonas
    """.split()
)
FAMILY_NAMES = tuple(
    """
    Abara Brandvik Castelo Dunmore Eskola Farrow Galvez Hartono Ibekwe Jansky Kestrel Lindholt Marlowe Nakada
    Okonjo Pereda Quist Rosendal Sandoval Takeda Ustov Varga Westbrook Ximeno Yarrow Zelenka Almeda Bostrom
    Chandra Delacour Engstrom Fontane Grigoryan Hollis Ivanek Juma Karlsen Lombardo Mbaye Novotny Oduya Pashko
    Quennell Rask Silveira Thorne Ulrich Velasco Winther Yamane Zubiri Arslan Bexley Corvin Drummond Elbaz Fiore
    Gastineau Hovland Imada
    """.split()
)
PEOPLE_PER_BRANCH = 30
KNOWN_IDENTITIES = 1_000_000  # known people are identities 1,000,000 to 1,000,029
STRANGER_IDENTITIES = 2_000_000  # strangers 2,000,000 to 2,000,029
RESIDENT_IDENTITIES = 3_000_000  # people of the occupation branches, never in training
TRAINING_IDENTITIES = 4_000_000  # nameless people of the training pictures, from here upwards


@dataclass(frozen=True)
class NamedPerson:
    """A drawn person with a name; presentation, age and skin tone stay the same in all their pictures."""

    name: str
    identity: int
    presentation: str
    age: int
    skin_tone: int


def named_people(branch: str) -> list[NamedPerson]:
    """The thirty people of `known` or `strangers`: women and men in turn, ages and skin tones balanced."""
    start, base = {"known": (0, KNOWN_IDENTITIES), "strangers": (PEOPLE_PER_BRANCH, STRANGER_IDENTITIES)}[branch]
    return [named_person(index, start + index, base + index) for index in range(PEOPLE_PER_BRANCH)]


def named_person(index: int, name: int, identity: int) -> NamedPerson:
    """One person of a branch: a woman and the man after her share age and skin tone."""
    pair = index // 2
    return NamedPerson(
        name=f"{GIVEN_NAMES[name]} {FAMILY_NAMES[(name * 7 + 3) % len(FAMILY_NAMES)]}",
        identity=identity,
        presentation=("woman", "man")[index % 2],
        age=(25, 35, 45, 55, 65)[pair % 5],
        skin_tone=1 + (pair * 7) % 10,
    )


# Faces

FACE_IDENTITIES = 3_900_000  # below TRAINING_IDENTITIES: nobody here is in any training picture
SKIN_TONES = range(1, 11)
AGE_BANDS = {"20-29": 25, "30-39": 35, "40-49": 45, "50-59": 55, "60-69": 65, "70-79": 75}
"""Each band and the years drawn for it."""
TURNS = (-2, -1, 1, 2)
"""Levels of pose and of lighting: without the middle, because four levels divide every group."""
SMILES = (0, 1, 3, 4)


def faces() -> list[dict[str, Any]]:
    """One row per portrait; `gender`, `skin_tone` and `age` are the groups, as text."""
    cells = product(range(len(PRESENTATIONS)), range(len(SKIN_TONES)), range(len(AGE_BANDS)))
    return [_row(index, *cell) for index, cell in enumerate(cells)]


def scene(side: int, tone: int, age: int) -> tuple[int, int, int]:
    """Smiling, lighting and pose of one cell of the design.

    Found by search among sums modulo 4: each level occurs equally often within every presentation, skin tone and
    age, and no two of the three are correlated by more than 0.06.
    """
    pose = (age + 2 * tone + 3 * side + 2 * side * age) % 4
    lighting = (2 * age + 3 * tone + side + 2 * side * tone + tone // 2) % 4
    smiling = (3 * age + tone + 2 * side + 2 * age * tone) % 4
    return SMILES[smiling], TURNS[lighting], TURNS[pose]


def _row(index: int, side: int, tone: int, age: int) -> dict[str, Any]:
    band, years = list(AGE_BANDS.items())[age]
    portrait = Portrait(PRESENTATIONS[side], years, SKIN_TONES[tone], *scene(side, tone, age), FACE_IDENTITIES + index)
    return {
        "image_id": f"faces/{index:03d}",
        "uri": portrait_uri(portrait),
        "name": "",
        "gender": portrait.presentation,
        "skin_tone": str(portrait.skin_tone),
        "age": band,
        "age_years": portrait.age,
        **drawn_columns(portrait),
    }


# Design

DESIGN_IDENTITIES = 3_950_000  # below TRAINING_IDENTITIES: nobody here is in any training picture
IDENTITIES = 10
LEVELS: dict[str, tuple[int, ...]] = {
    "skin_tone": (2, 9),
    "age": (25, 45, 65),
    "smiling": (0, 2, 4),
    "lighting": (-2, 0, 2),
    "pose": (-2, 0, 2),
}


def design(identities: int = IDENTITIES) -> list[dict[str, Any]]:
    """One row per portrait; `seed` is the identity, `gender` and `skin_tone` the groups, the rest numbers."""
    people = range(DESIGN_IDENTITIES, DESIGN_IDENTITIES + identities)
    return [
        {
            "image_id": f"design/{index:04d}",
            "uri": portrait_uri(portrait),
            "gender": portrait.presentation,
            "skin_tone": str(portrait.skin_tone),
            "seed": str(portrait.identity),
            **{name: float(getattr(portrait, name)) for name in ("age", "smiling", "lighting", "pose")},
        }
        for index, portrait in enumerate(factorial(**LEVELS, identity=people))
    ]
