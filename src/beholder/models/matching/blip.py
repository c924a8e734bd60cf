"""BLIP and BLIP-2 with their image-text matching heads, by `BlipForImageTextRetrieval` and its successor.

When a model is loaded, one pair is scored both ways: our parts must give what the model's own forward pass gives,
or the model is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from beholder.core.errors import ModelError
from beholder.models.checkpoint.checkpoint import Checkpoint, as_model_error, torch
from beholder.models.checkpoint.files import ConfigFile, Origin, read_config
from beholder.models.checkpoint.torch_scorer import image_settings, open_checkpoint
from beholder.models.matching.scorer import (
    FusingLayers,
    FusingQueries,
    Matcher,
    MatchingScorer,
    Pictures,
    TextReading,
    Texts,
    unit,
)
from beholder.models.spec import LoadOptions, Module, Output, Tensor


def from_folder(folder: Path, name: str, options: LoadOptions, *, origin: Origin | None = None) -> MatchingScorer:
    """Load a BLIP or BLIP-2 folder; `origin` says where it came from if that is not the folder itself."""
    architecture = matching_architecture(read_config(folder))
    opened = open_checkpoint(folder, options, origin, auto=architecture)
    checkpoint, reading = opened.checkpoint, reading_of(opened.checkpoint)
    scorer = MatchingScorer(
        MATCHERS[architecture](checkpoint.model),
        checkpoint.image_processor,
        reading,
        opened.spec(name, "matching", settings_of(checkpoint, reading)),
        device=opened.device,
        batch_size=options.batch_size,
        notes=checkpoint.notes,
    )
    with as_model_error(folder):
        scorer.verify()
    return scorer


class BlipMatcher:
    """BLIP: a vision transformer, and a BERT that attends to it in every layer."""

    def __init__(self, model: Module) -> None:
        self._model = model
        self._fusion = FusingLayers(model.text_encoder.encoder.layer)

    def pictures(self, pixels: Tensor) -> Pictures:
        """The tower's states, and its first one projected."""
        states = self._model.vision_model(pixel_values=pixels).last_hidden_state
        return Pictures(states, unit(self._model.vision_proj(states[:, :1])))

    def texts(self, ids: Tensor) -> Texts:
        """The first layer up to where it reads the picture; the encoder without a picture serves the cosine."""
        encoder = self._model.text_encoder
        alone = encoder(input_ids=ids).last_hidden_state
        begun = self._fusion.begin(encoder.embeddings(input_ids=ids))
        return Texts(begun, unit(self._model.text_proj(alone[:, 0])))

    def look(self, states: Tensor) -> Output:
        """Every layer's keys and values."""
        return self._fusion.look(states)

    def match(self, seen: Output, begun: Tensor) -> Tensor:
        """The first token's state after all layers, through the head."""
        return self._model.itm_head(self._fusion.first_states(seen, begun))

    def plain(self, pixels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """`BlipForImageTextRetrieval`, with its matching head and with its contrastive ones."""
        pair = {"pixel_values": pixels, "input_ids": ids}
        matching, contrasting = (self._model(**pair, use_itm_head=head) for head in (True, False))
        return matching.itm_score, contrasting.itm_score


class Blip2Matcher:
    """BLIP-2: the Q-Former's queries read the picture beside the text; the head is averaged over them."""

    def __init__(self, model: Module) -> None:
        self._model = model
        self._fusion = FusingQueries(model.qformer.encoder.layer, queries=model.query_tokens.shape[1])

    def pictures(self, pixels: Tensor) -> Pictures:
        """The tower's states, and what the queries alone read from them, projected."""
        states = self._model.vision_model(pixel_values=pixels).last_hidden_state
        queries = self._model.query_tokens.expand(len(states), -1, -1)
        read = self._model.qformer(query_embeds=queries, encoder_hidden_states=states).last_hidden_state
        return Pictures(states, unit(_project(self._model.vision_projection, read)))

    def texts(self, ids: Tensor) -> Texts:
        """The first layer up to where queries read the picture; the Q-Former without queries serves the cosine."""
        qformer, embeddings = self._model.qformer, self._model.embeddings
        alone = qformer(query_embeds=embeddings(input_ids=ids), query_length=0).last_hidden_state
        queries = self._model.query_tokens.expand(len(ids), -1, -1)
        beside = embeddings(input_ids=ids, query_embeds=queries).to(qformer.layernorm.weight.dtype)
        begun = self._fusion.begin(qformer.layernorm(beside))
        return Texts(begun, unit(_project(self._model.text_projection, alone[:, 0])))

    def look(self, states: Tensor) -> Output:
        """The keys and values of the layers that read pictures."""
        return self._fusion.look(states)

    def match(self, seen: Output, begun: Tensor) -> Tensor:
        """The queries' states after all layers through the head, their mean."""
        return _project(self._model.itm_head, self._fusion.query_states(seen, begun)).mean(dim=2)

    def plain(self, pixels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """`Blip2ForImageTextRetrieval`, which newer files write with one token per query before the text."""
        config = self._model.config
        if config.image_token_index is not None:
            queries = ids.new_full((len(ids), config.num_query_tokens), config.image_token_index)
            ids = torch.cat([queries, ids], dim=1)
        pair = {"pixel_values": pixels, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
        matching, contrasting = (self._model(**pair, use_image_text_matching_head=head) for head in (True, False))
        return matching.logits_per_image, contrasting.logits_per_image


MATCHERS: dict[str, Callable[[Module], Matcher]] = {
    "BlipForImageTextRetrieval": BlipMatcher,
    "Blip2ForImageTextRetrieval": Blip2Matcher,
}


def _project(layer: Module, states: Tensor) -> Tensor:
    """Through a head that may be of another precision than the Q-Former, which stays in float32."""
    return layer(states.to(layer.weight.dtype))


def matching_architecture(config: ConfigFile) -> str:
    """The architecture that config.json names, one that has a matching head."""
    named = [name for name in config.get("architectures") or () if name in MATCHERS]
    if not named:
        raise ModelError(
            f"config.json names the architecture {config.get('architectures')}, which has no matching head.\n"
            f"This adapter reads: {', '.join(MATCHERS)}."
        )
    return str(named[0])


def reading_of(checkpoint: Checkpoint) -> TextReading:
    """The tokenizer, up to as many tokens as it or the text encoder reads."""
    config = checkpoint.model.config
    text = config.qformer_config if hasattr(config, "qformer_config") else config.text_config
    limit = min(checkpoint.tokenizer.model_max_length, text.max_position_embeddings)
    return TextReading(checkpoint.tokenizer, int(limit))


def settings_of(checkpoint: Checkpoint, reading: TextReading) -> dict[str, object]:
    """Everything beside the weights that can move a score."""
    return {
        "model_type": checkpoint.model.config.model_type,
        "architecture": type(checkpoint.model).__name__,
        "attention": getattr(checkpoint.model.config, "_attn_implementation", None),
        "image_processor": image_settings(checkpoint.image_processor),
        "text": {
            "max_length": reading.max_length,
            "padding": "longest, right",  # nothing is padded any more; no score changed, so the key does not
            "tokenizer": type(reading.tokenizer).__name__,
        },
    }
