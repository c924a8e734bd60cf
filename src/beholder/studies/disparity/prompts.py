"""Disparity's prompts: every concept of a data set, worded for the kind of model.

A model that matches images with texts reads the concept in a template. A detector or segmenter reads the bare words.
A model that answers is asked whether the concept is there. A prompt's id is its text in the first of these forms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from beholder.glasshouse.prompts import with_article
from beholder.prompts.instruction import Instruction
from beholder.prompts.prompt_set import PromptSet, prompt_set
from beholder.studies.disparity.concepts import AMBIGUOUS, Words, concept_name

TEMPLATES = {"photo": "a photo of a {}"}
"""CLIP's own template: the text vectors at hand were made with it."""
DRAWN = "a drawing of a person with {}"
"""The template on which the embedded world's models were trained; the article comes with the concept."""
IS_THERE = Instruction("Is there a {} in the image? Answer with exactly one word: Yes or No.", yes="Yes", no="No")


def disparity_prompts(
    concepts: Sequence[str],
    templates: Mapping[str, str] = TEMPLATES,
    *,
    bare: bool = False,
    ambiguous: Words = AMBIGUOUS,
) -> PromptSet:
    """Every concept in every template; `level` is the template, `concept` the data set's own name."""
    words = {concept: concept_name(concept, ambiguous) for concept in concepts}
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
