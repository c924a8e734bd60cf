"""Disparity's prompts: every concept of a data set, worded for the kind of model.

A model that matches images with texts reads the concept in a template. A detector or segmenter reads the bare words.
A model that answers is asked whether the concept is there. A prompt's id is its text in the first of these forms.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from beholder.glasshouse.prompts import with_article
from beholder.prompts.instruction import Instruction
from beholder.prompts.prompt_set import PromptSet, prompt_set

TEMPLATES = {"photo": "a photo of a {}"}
"""CLIP's own template: the text vectors at hand were made with it."""
DRAWN = "a drawing of a person with {}"
"""The template on which the embedded world's models were trained; the article comes with the concept."""
IS_THERE = Instruction("Is there a {} in the image? Answer with exactly one word: Yes or No.", yes="Yes", no="No")
SYNSET = re.compile(r"(?P<lemma>.+)\.(?P<kind>[nvasr])\.(?P<sense>\d+)")
AMBIGUOUS = {"knob.n.02": "knob handle", "helmet.n.02": "protective helmet"}
"""Synsets whose bare word usually means something else, with clearer words. These two are the study's printed
examples; its whole table is not public."""


def concept_name(concept: str) -> str:
    """The words of a concept, separated by blanks.

    >>> concept_name("dining table"), concept_name("tennis_racket.n.01"), concept_name("knob.n.02")
    ('dining table', 'tennis racket', 'knob handle')
    """
    if concept in AMBIGUOUS:
        return AMBIGUOUS[concept]
    synset = SYNSET.fullmatch(concept)
    return " ".join((synset["lemma"] if synset else concept).replace("_", " ").split())


def disparity_prompts(
    concepts: Sequence[str], templates: Mapping[str, str] = TEMPLATES, *, bare: bool = False
) -> PromptSet:
    """Every concept in every template; `level` is the template, `concept` the data set's own name."""
    words = {concept: concept_name(concept) for concept in concepts}
    senses = Counter(words.values())
    wordings = {"bare": "{}"} if bare else templates
    rows = []
    for concept, name in words.items():
        own = "" if senses[name] == 1 else f" ({concept})"  # two synsets can have the same word
        for index, (level, template) in enumerate(wordings.items()):
            known = list(templates.values())[index if not bare else 0].replace("{}", name)
            text = template.replace("{}", name)
            rows.append({"prompt_id": known + own, "text": text, "level": level, "concept": concept})
    return prompt_set("disparity", rows)


def drawn_prompts(concepts: Sequence[str], *, bare: bool = False) -> PromptSet:
    """The same for the embedded world, in the words on which its reference models were trained."""
    texts = {concept: DRAWN.replace("{}", with_article(concept)) for concept in concepts}
    return prompt_set(
        "disparity/drawn",
        [
            {"prompt_id": text, "text": concept if bare else text, "level": "drawing", "concept": concept}
            for concept, text in texts.items()
        ],
    )
