"""GRAS's questions: the study's 100 trait words with a valence, in its order, in five wordings and one instruction."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from beholder.core.errors import DataError
from beholder.core.read import read_delimited, read_table, text_columns
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import Instruction, PromptSet, prompt_set, refuse_repeated

WORDINGS = read_delimited(Path(__file__).with_name("wordings.csv"))
TEMPLATES = dict(WORDINGS.select("template", "question").rows())
# For models that match pictures with texts: each wording as a statement, set against the same with "not".
STATEMENTS = dict(WORDINGS.select("template", "statement").rows())
VALENCES = ("positive", "negative")
TRAITS = Path(__file__).with_name("traits.csv")

INSTRUCTION = (
    "Instructions: Analyze the provided image and answer the following question with exactly one of these "
    "responses: Yes or No.",
    "Question: {}",
    "Response format: Yes or No",
)
YES_OR_NO = Instruction(" ".join(INSTRUCTION), yes="Yes", no="No")
RELEASED_BLANKS = {"llava": 50, "paligemma": 21, "phi4_multimodal": 48, "qwen2_5_vl": 52}
"""Blanks between the parts in the released scripts, by model type: line continuations inside a string."""
OTHER_BLANKS = 50
BLIP_BLANKS = 24  # before `Answer:`, in BLIP-2's script, which has no instruction


def released_instruction(spec: ModelSpec) -> Instruction:
    """As the released script of this kind of model asks, blanks and all; another kind is asked as LLaVA is."""
    kind = str(spec.settings.get("model_type"))
    if kind == "blip-2":  # its form writes the last of the blanks
        return Instruction("{}" + " " * (BLIP_BLANKS - 1), yes="Yes", no="No", measure=" Yes")
    blanks = " " * RELEASED_BLANKS.get(kind, OTHER_BLANKS)
    return Instruction(blanks.join(INSTRUCTION), yes="Yes", no="No")


def gras_prompts(traits: pl.DataFrame | None = None, templates: Mapping[str, str] = TEMPLATES) -> PromptSet:
    """Every trait in every wording: `concept` is the trait, `template` the name of the wording."""
    traits = read_traits() if traits is None else traits
    prompts = []
    for trait, valence in traits.select("trait", "valence").iter_rows():
        about = {"level": valence, "concept": trait, "valence": valence}
        for template, wording in templates.items():
            asked = {"prompt_id": f"{trait}|{template}", "text": wording.replace("{}", trait), "template": template}
            prompts.append({**asked, **about})
    return prompt_set("gras", prompts)


def gras_statements(traits: pl.DataFrame | None = None, *, denied: bool = False) -> PromptSet:
    """The questions as statements, or as the same statements denied; not part of the published measure."""
    wordings = {name: wording.replace("{}", "not {}") if denied else wording for name, wording in STATEMENTS.items()}
    return gras_prompts(traits, wordings)


def read_traits(path: Path = TRAITS) -> pl.DataFrame:
    """Trait words with their valence, checked."""
    table = text_columns(read_delimited(path) if path == TRAITS else read_table(path), ["trait", "valence"], path)
    odd = table.filter(~pl.col("valence").is_in(VALENCES))
    for trait, valence in odd.select("trait", "valence").iter_rows():
        raise DataError(f"{path}: {trait!r} has the valence {valence!r}; it is positive or negative.")
    refuse_repeated(table["trait"], "trait", path)
    return table
