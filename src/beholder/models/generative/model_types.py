"""Model types: what must be known of a generative model beside its checkpoint, in one table. No torch here."""

from enum import Enum
from pathlib import Path
from typing import NamedTuple

from beholder.core.read import read_delimited


class Reuse(Enum):
    """How much of the work on one question about a picture serves the next, best first."""

    PREFIX = "the picture and all words that the questions begin with are read once"
    TRUNK = "the picture and the words that all questions begin with are read once; each question goes on from there"
    FEATURES = "the image tower looks once; the language model reads each question with the picture"
    NOTHING = "questions are asked one by one"


class ModelType(NamedTuple):
    """Of most model types nothing must be known."""

    form: str = ""
    """How a question is written if the checkpoint has no chat template; `<cls>` is the tokenizer's own opening."""
    padded: bool = False  # padding was shown to move no score; else only questions of one length go together
    reuse: Reuse | None = None  # the most that can be reused, if the model is not causal from end to end
    packed: str = ""  # the input in which pictures stand behind one another, along the last axis
    windows: bool = False  # its image tower looks through windows, which can be computed at once
    typed: bool = False  # its processor must be asked for the kinds of tokens, which its positions follow from
    refused: str = ""  # why no question can be put to it


_PADDED = "gemma3 idefics3 internvl llava_next llava_onevision phi4_multimodal smolvlm"
_REFUSED = dict(read_delimited(Path(__file__).with_name("refused.csv")).rows())
MODEL_TYPES = {
    **dict.fromkeys(_PADDED.split(), ModelType(padded=True)),
    **dict.fromkeys(["qwen2_vl", "qwen2_5_vl", "qwen3_vl"], ModelType(padded=True, windows=True)),
    **dict.fromkeys(["minicpmv4_6", "minicpmv4_7", "minicpm_ocr"], ModelType(packed="pixel_values")),
    "cosmos3_edge": ModelType(typed=True),
    "blip": ModelType("{}", reuse=Reuse.FEATURES),  # for questions; its text encoder looks at the picture
    "fuyu": ModelType("{}\n"),  # as its model card asks; its processor puts the picture before
    "git": ModelType("<cls>{}"),  # the answer goes on where the question ends, without a closing token
    # The processor adds <bos>, and the line break that closes the prefix. The picture looks at the question.
    "paligemma": ModelType("<image>{}", padded=True, reuse=Reuse.FEATURES),
    "blip-2": ModelType("Question: {} Answer:", padded=True),  # as its model card asks; the picture's tokens are before
    "instructblip": ModelType("{}", reuse=Reuse.NOTHING),  # its image tower reads the question
    "kosmos-2": ModelType("{}"),  # its processor puts the picture's tokens before
    "llava": ModelType("USER: <image>\n{} ASSISTANT:", padded=True),  # LLaVA-1.5, for folders without its template
    **{name: ModelType(refused=reason) for name, reason in _REFUSED.items()},
}


def model_type_of(name: object) -> ModelType:
    """What is known of a model type; of most, nothing."""
    return MODEL_TYPES.get(str(name), ModelType())
