"""The named people of Glasshouse: thirty whom the reference models know, thirty strangers.

Names are invented. Given and family names are each used once here, and every one of them also occurs in
training captions in other pairings, attached to nobody in particular, so that a stranger's name is as
ordinary to a model as any other. Only the pairing of a known person's full name with a face can be learnt.
"""

from __future__ import annotations

from dataclasses import dataclass

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
