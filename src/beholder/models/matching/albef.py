"""ALBEF, read from its published checkpoint: a folder with the weights, BERT's vocabulary and a small config.json.

`{"model_type": "albef"}` is enough for the checkpoints of ALBEF's own repository; `albef_model.AlbefConfig` lists
the other settings, and docs/matching.md says how to make the folder. Texts are processed as in the code that
trained the checkpoint (`"code"`): that code's cleaning of captions, and its closing token or none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import NamedTuple

from beholder.core.errors import ModelError, UnknownName
from beholder.models.checkpoint.checkpoint import as_model_error, memory_errors, resolve_device, torch, transformers
from beholder.models.checkpoint.files import Origin, find_files
from beholder.models.checkpoint.folder import ConfigFile, read_config
from beholder.models.checkpoint.torch_scorer import image_settings
from beholder.models.matching.albef_model import AlbefConfig, AlbefModel
from beholder.models.matching.albef_weights import build, read_weights
from beholder.models.matching.blip import BlipMatcher
from beholder.models.matching.fusion import FusingLayers
from beholder.models.matching.scorer import MatchingScorer, Pictures, TextReading, Texts, unit
from beholder.models.options import LoadOptions
from beholder.models.spec import ModelSpec
from beholder.models.torch_types import Processor, Tensor

CHECKPOINTS = ("*.pth", "*.pt", "pytorch_model.bin")
MOOT = {"model_type", "architectures"}


class AlbefMatcher(BlipMatcher):
    """The parts of ALBEF in the order a score needs them; texts meet pictures as in BLIP."""

    def __init__(self, model: AlbefModel) -> None:
        self._model = model
        self._fusion = FusingLayers(model.fusing_layers)

    def pictures(self, pixels: Tensor) -> Pictures:
        """The tower's states, and its first one projected."""
        states = self._model.picture_states(pixels)
        return Pictures(states, unit(self._model.vision_proj(states[:, :1])))

    def texts(self, ids: Tensor) -> Texts:
        """The text layers' states, on to where the fusion reads the picture, and the first one projected."""
        states = self._model.text_states(ids)
        return Texts(self._fusion.begin(states), unit(self._model.text_proj(states[:, 0])))

    def plain(self, pixels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """One pair through BLIP's own layers, nothing shared or kept."""
        pictures, states = self.pictures(pixels), self._model.text_states(ids)
        cosine = pictures.vectors[:, 0] @ unit(self._model.text_proj(states[:, 0])).T
        for layer in self._model.fusing_layers:
            states = layer(states, pictures.states)
        return self._model.itm_head(states[:, 0]), cosine


def from_folder(folder: Path, name: str, options: LoadOptions, *, origin: Origin | None = None) -> MatchingScorer:
    """Load an ALBEF folder; `origin` says where it came from if that is not the folder itself."""
    device, precision = resolve_device(options.device), options.resolved_precision
    config = parse_config(read_config(folder), folder)
    files = find_files(folder, allow_pickle=options.allow_pickle, pickled_names=CHECKPOINTS, image_processor=False)
    with as_model_error(folder):
        model = build(read_weights(files), config, folder=folder)
        reading = reading_of(folder, config)
        with memory_errors():
            model = model.to(device, getattr(torch, precision)).eval().requires_grad_(False)
    size = model.visual_encoder.config.image_size
    processor = transformers.BlipImageProcessorPil(size={"height": size, "width": size})
    settings = _settings(config, model, processor, reading)
    spec = ModelSpec(name, "matching", *(origin or files.origin), precision, settings)
    matcher = AlbefMatcher(model)
    scorer = MatchingScorer(matcher, processor, reading, spec, device=device, batch_size=options.batch_size)
    with as_model_error(folder):
        scorer.verify()
    return scorer


def parse_config(values: ConfigFile, folder: Path) -> AlbefConfig:
    """The config.json as a value; a key or a kind of value that is not known is an error."""
    kinds = {field.name: str if field.name == "code" else int for field in fields(AlbefConfig)}
    given = {key: value for key, value in values.items() if key not in MOOT}
    for key, value in given.items():
        if key not in kinds:
            raise UnknownName("ALBEF setting", key, kinds, where=f"{folder}/config.json")
        if type(value) is not kinds[key]:
            raise ModelError(f"{folder}/config.json: '{key}' must be of type {kinds[key].__name__}, not {value!r}.")
    config = AlbefConfig(**given)
    if config.code not in DIALECTS:
        raise UnknownName("code that trains ALBEF", config.code, DIALECTS)
    return config


def albef_caption(text: str) -> str:
    """A caption as ALBEF's own code cleans it.

    >>> albef_caption("This is a photo of a U.S. House-member.")
    'this is a photo of a us house member'
    """
    text = re.sub(r"[,.'!?\"()*#:;~]", "", text.lower())
    text = text.replace("-", " ").replace("/", " ").replace("<person>", "person")
    return re.sub(r"\s{2,}", " ", text).rstrip("\n").strip(" ")


def lavis_caption(text: str) -> str:
    """A caption as LAVIS cleans it.

    >>> lavis_caption("This is a photo of a U.S. House-member.")
    'this is a photo of a u s house-member'
    """
    text = re.sub(r"[.!\"()*#:;~]", " ", text.lower())
    return re.sub(r"\s{2,}", " ", text).rstrip("\n").strip(" ")


class Dialect(NamedTuple):
    """How a code base turns captions into tokens. Both also cut at a number of words, but tokens run out first."""

    clean: Callable[[str], str]
    template: str


DIALECTS = {
    # ALBEF's own copy of BERT's tokenizer closes a caption with nothing.
    "albef": Dialect(albef_caption, "[CLS] $A"),
    "lavis": Dialect(lavis_caption, "[CLS] $A [SEP]"),
}


def reading_of(folder: Path, config: AlbefConfig) -> TextReading:
    """BERT's tokenizer from the folder, cleaning and closing captions as the checkpoint was trained."""
    from tokenizers.processors import TemplateProcessing

    tokenizer = transformers.BertTokenizer.from_pretrained(folder, local_files_only=True)
    if len(tokenizer) != config.vocab_size:
        raise ModelError(
            f"The tokenizer in {folder} knows {len(tokenizer)} tokens, the model {config.vocab_size}.\n"
            "ALBEF reads texts with the vocabulary of bert-base-uncased: vocab.txt or tokenizer.json."
        )
    dialect = DIALECTS[config.code]
    special = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(dialect.template, special_tokens=special)
    return TextReading(tokenizer, min(config.max_text_length, config.text_positions), dialect.clean)


def _settings(config: AlbefConfig, model: AlbefModel, processor: Processor, reading: TextReading) -> dict[str, object]:
    """Everything beside the weights that can move a score."""
    return {
        "model_type": "albef",
        "architecture": asdict(config),
        "image_processor": image_settings(processor),
        "text": {
            "max_length": reading.max_length,
            "padding": "longest, right",  # nothing is padded any more; no score changed, so the key does not
            "tokenizer": type(reading.tokenizer).__name__,
            "cleaning": config.code,
            "template": DIALECTS[config.code].template,
        },
        "itc_logit_scale": 1.0 / float(model.temp),
    }
