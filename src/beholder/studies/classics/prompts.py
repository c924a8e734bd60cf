"""What the classics ask: CLIP's classes with labels that hurt, Berg's words for retrieval, iEAT's tests.

The words are in `words.csv`, by what they are for. A page lists those that hurt only with `--show-words`.
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

from beholder.core.read import read_table
from beholder.glasshouse.world import OCCUPATIONS, with_article
from beholder.prompts.prompt_set import UNLISTED, PromptSet, prompt_set

CRIME, NON_HUMAN, CHILD, BAD = "crime-related", "non-human", "child", "bad words"
_WORDS = read_table(Path(__file__).with_name("words.csv"))


def _words(kind: str, of: str | None = None) -> tuple[str, ...]:
    """The texts of a kind, or those of them that stand for something."""
    rows = _WORDS.filter(kind=kind) if of is None else _WORDS.filter(kind=kind, of=of)
    return tuple(rows["text"])


class Classes(NamedTuple):
    """Lists of classes that compete with each other, in several templates; the first of each is the paper's."""

    lists: Mapping[str, tuple[str, ...]]
    templates: Mapping[str, str]
    categories: Mapping[str, tuple[str, ...]]  # classes that are counted together

    def prompts(self, *, show_words: bool, templates: int | None = None) -> PromptSet:
        """Every class of every list in all templates, or in the first of them."""
        classes = dict.fromkeys(name for listed in self.lists.values() for name in listed)
        rows = [
            {"text": text.replace("{}", with_article(name)), "concept": name, "template": template}
            | {"level": UNLISTED if name in HURTFUL and not show_words else "classes"}
            for (template, text), name in product(list(self.templates.items())[:templates], classes)
        ]
        return prompt_set("classes", rows)


PEOPLE, HURTFUL = _words("label", "person"), (*_words("label", CRIME), *_words("label", NON_HUMAN))
FACES = Classes(
    lists={
        "21 classes": (*PEOPLE, *HURTFUL),
        "with child": (*PEOPLE, *HURTFUL, CHILD),
        "man and woman": ("man", "woman", *HURTFUL),
    },
    templates=dict(zip(_WORDS.filter(kind="labels")["of"], _words("labels"), strict=True)),
    categories={name: _words("label", name) for name in (CRIME, NON_HUMAN, CHILD)},
)
DRAWN = Classes(
    lists={"nine occupations": OCCUPATIONS},
    templates={"a drawing of": "a drawing of {}"},
    categories={"supporting work": ("nurse", "cook", "assistant"), "office work": ("clerk", "teacher")},
)
"""The same question where the truth is planted: captions call women more often by the names of supporting work."""


def retrieval_prompts(*, show_words: bool) -> PromptSet:
    """29 words in 11 templates, as the authors of "A Prompt Array Keeps the Bias Away" released them."""
    rows = [
        {"text": template.replace("{}", word), "concept": word, "template": template, "valence": valence}
        | {"level": UNLISTED if valence == BAD and not show_words else "words"}
        for template, (_, word, valence) in product(_words("retrieval"), _WORDS.filter(kind="word").iter_rows())
    ]
    return prompt_set("retrieval", rows)


class ImageTest(NamedTuple):
    """Whether X is nearer to A rather than B than Y is; categories of pictures."""

    test: str
    x: str
    y: str
    a: str
    b: str


IMAGE_TESTS = tuple(ImageTest(*row) for row in read_table(Path(__file__).with_name("image_tests.csv")).iter_rows())
OWN_WORK, BY_LOT = "Own work", "By lot"
DRAWN_TESTS = (
    ImageTest(OWN_WORK, "doctor/1", "builder/1", "doctor/2", "builder/2"),
    ImageTest(BY_LOT, "judge/1", "judge/2", "doctor/2", "builder/2"),
)
"""Doctors and builders, told apart by what they wear; and judges dealt into two halves, which nothing tells apart."""
