"""Disparity's prompts: every concept of a data set, worded for the kind of model.

A model that matches images with texts reads the concept in a template. A detector or segmenter reads the bare words.
A model that answers is asked whether the concept is there. A prompt's id is its text in the first of these forms.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from beholder.core.read import read_table, text_columns
from beholder.glasshouse.world import with_article
from beholder.prompts.prompt_set import Instruction, PromptSet, prompt_set, refuse_repeated

SYNSET = re.compile(r"(?P<lemma>.+)\.(?P<kind>[nvasr])\.(?P<sense>\d+)")
Words = Mapping[str, str]  # words by concept, or wordings by name


def read_words(path: Path, column: str) -> dict[str, str]:
    """Clearer `words` of a concept, or the one of another data set that is the `same_as` it; each may occur once."""
    table = text_columns(read_table(path), ["concept", column], path).select("concept", column)
    for each in ("concept", *(["same_as"] if column == "same_as" else [])):
        refuse_repeated(table[each], "concept", path)
    return dict(table.iter_rows())


# The study's two printed examples; its whole table is not public
AMBIGUOUS = read_words(Path(__file__).with_name("ambiguous.csv"), "words")
# WordNet's synsets of COCO's categories
SAME_CONCEPTS = read_words(Path(__file__).with_name("same_concepts.csv"), "same_as")


def concept_name(concept: str, ambiguous: Words = AMBIGUOUS) -> str:
    """The words of a concept, separated by blanks: `tennis racket` of `tennis_racket.n.01`."""
    if concept in ambiguous:
        return ambiguous[concept]
    synset = SYNSET.fullmatch(concept)
    return " ".join((synset["lemma"] if synset else concept).replace("_", " ").split())


TEMPLATES = {"photo": "a photo of a {}"}  # CLIP's own template: the text vectors at hand were made with it
DRAWN = "a drawing of a person with {}"  # on which the embedded world's models were trained
IS_THERE = Instruction("Is there a {} in the image? Answer with exactly one word: Yes or No.", yes="Yes", no="No")


def disparity_prompts(
    concepts: Sequence[str], templates: Words = TEMPLATES, *, bare: bool = False, ambiguous: Words = AMBIGUOUS
) -> PromptSet:
    """Every concept in every template; `level` is the template, `concept` the data set's own name."""
    words = {concept: concept_name(concept, ambiguous) for concept in concepts}
    senses = Counter(words.values())
    wordings = {"bare": "{}"} if bare else templates
    rows = []
    for concept, name in words.items():
        own = "" if senses[name] == 1 else f" ({concept})"  # two synsets can have the same word
        for known, (level, template) in zip(templates.values(), wordings.items(), strict=False):
            text, prompt_id = template.replace("{}", name), known.replace("{}", name) + own
            rows.append({"prompt_id": prompt_id, "text": text, "level": level, "concept": concept})
    return prompt_set("disparity", rows)


def drawn_prompts(concepts: Sequence[str], *, bare: bool = False) -> PromptSet:
    """The same for the embedded world, in the words on which its reference models were trained."""
    texts = {concept: DRAWN.replace("{}", with_article(concept)) for concept in concepts}
    rows = [{"prompt_id": text, "text": name if bare else text, "concept": name} for name, text in texts.items()]
    return prompt_set("disparity/drawn", [{**row, "level": "drawing"} for row in rows])
