"""Matching models look at a picture and a text together: BLIP and BLIP-2 here, ALBEF in `albef.py`.

A matching head gives two logits for a pair. Three channels:

    match_logit      the head's logit of "they match": what the models' authors rank by, and what APA's softmax takes
    no_match_logit   the other one: match - no_match is the log-odds, its sigmoid the probability of a match
    itc_cosine       the contrastive head's cosine (BLIP-2: of the nearest query), which needs no fusion

Every picture passes the vision tower once, every text the layers before it meets a picture once, and every picture's
keys and values are computed once for all texts. What is left runs per pair, in blocks: texts of one length, so that
nothing is padded, times as many pictures as fit.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from beholder.core.errors import ModelError, OutOfMemory
from beholder.models.checkpoint.checkpoint import load_checkpoint, model_settings
from beholder.models.checkpoint.files import Origin, find_files, read_config
from beholder.models.scorer import Floats, Prepared
from beholder.models.spec import LoadOptions, ModelSpec, Module, Output, Processor, Tensor
from beholder.models.torch_scorer import PairScorer, running, torch

BLOCK_TOKENS = {"cpu": 2048, "cuda": 65536, "mps": 4096}
# Tokens in flight, of texts and of the pictures they read; halved when memory runs out.
Made = TypeVar("Made")


def from_folder(folder: Path, name: str, options: LoadOptions, *, origin: Origin | None = None) -> "MatchingScorer":
    """Load a BLIP or BLIP-2 folder; `origin` says where it came from if that is not the folder itself."""
    named = read_config(folder).get("architectures")
    architecture = next((each for each in named or () if each in MATCHERS), None)
    if architecture is None:
        raise ModelError(
            f"config.json names the architecture {named}, which has no matching head.\n"
            f"This adapter reads: {', '.join(MATCHERS)}."
        )
    files = find_files(folder, allow_pickle=options.allow_pickle)
    model, image_processor, tokenizer, notes = load_checkpoint(files, options, auto=architecture)
    text = getattr(model.config, "qformer_config", None) or model.config.text_config
    reading = TextReading(tokenizer, int(min(tokenizer.model_max_length, text.max_position_embeddings)))
    settings = {**model_settings(model, image_processor), "text": reading.settings}
    spec = ModelSpec(name, "matching", *(origin or files.origin), options.resolved_precision, settings)
    scorer = MatchingScorer(MATCHERS[architecture](model), image_processor, reading, spec, options)
    scorer.loader_notes = notes
    return scorer.proved(folder)


class TextReading(NamedTuple):
    """How a prompt becomes tokens."""

    tokenizer: Processor
    max_length: int
    clean: Callable[[str], str] = str

    @property
    def settings(self) -> dict[str, object]:
        """For the spec."""
        # Nothing is padded any more; no score changed, so the key does not.
        padding, tokenizer = "longest, right", type(self.tokenizer).__name__
        return {"max_length": self.max_length, "padding": padding, "tokenizer": tokenizer}


class Pictures(NamedTuple):
    """What the vision tower makes of a batch."""

    states: Tensor  # `[n, tokens, width]`: what the fusion attends to
    vectors: Tensor  # `[n, queries, dim]`, unit: what the contrastive head compares; one query but for BLIP-2


class Texts(NamedTuple):
    """Texts of one length, as far as they come before they meet a picture."""

    begun: Tensor  # `[n, tokens, width]`
    vectors: Tensor  # `[n, dim]`, unit


class Prompts(NamedTuple):
    """A list of prompts, by their length in tokens."""

    indices: list[list[int]]  # for each length, where its texts stand in the list
    texts: list[Texts]
    vectors: Tensor  # `[n, dim]`, unit, in the list's order


class MatchingScorer(PairScorer):
    """Matching logits and contrastive cosines of every picture with every prompt."""

    channels: tuple[str, ...] = ("match_logit", "no_match_logit", "itc_cosine")
    batch_sizes: ClassVar = {"cpu": 8, "cuda": 64, "mps": 16}
    scale: ClassVar = "match"

    def __init__(
        self, matcher: "Matcher", processor: Processor, reading: TextReading, spec: ModelSpec, options: LoadOptions
    ) -> None:
        super().__init__(spec, options, max_length=reading.max_length)
        self.block_tokens = self._by_device(BLOCK_TOKENS)
        self._matcher, self._image_processor, self._reading = matcher, processor, reading
        self._begun = lru_cache(1)(self._begin)

    def _own(self, prepared: Sequence[Prepared], text: str) -> Tensor:
        logits, cosine = self._matcher.plain(self._pixels(prepared), self._ids(self._tokens([text])))
        return torch.cat([logits.float().flatten().flip(0), cosine.float().flatten()])

    def _forget_texts(self) -> None:
        super()._forget_texts()
        self._begun.cache_clear()

    def _cells(self, part: Sequence[Prepared], texts: Sequence[str]) -> Floats:
        prompts = self._begun(tuple(texts))
        with running():
            pictures = self._matcher.pictures(self._pixels(part))
            cosines = torch.einsum("iqd,td->iqt", pictures.vectors, prompts.vectors).amax(dim=1)
            shortest = min(int(each.begun.shape[1]) for each in prompts.texts)
            logits = self._fitting(lambda: self._logits(pictures.states, prompts), shortest=shortest)
            return np.asarray(torch.cat([logits.flip(-1), cosines[..., None]], dim=-1).cpu().numpy())

    def _logits(self, states: Tensor, prompts: Prompts) -> Tensor:
        """`[n_pictures, n_prompts, 2]`, as many pictures at once as the block holds beside their texts."""
        logits = torch.empty(len(states), len(prompts.vectors), 2, device=states.device)
        widest = max(min(texts.begun[..., 0].numel(), self.block_tokens) for texts in prompts.texts)
        at_once = max(1, self.block_tokens // (states.shape[1] + widest))
        for start in range(0, len(states), at_once):
            seen = self._matcher.look(states[start : start + at_once])
            for indices, texts in zip(prompts.indices, prompts.texts, strict=True):
                blocks = [self._matcher.match(seen, begun) for begun in self._blocks(texts.begun)]
                logits[start : start + at_once, indices] = torch.cat(blocks, dim=1).float()
        return logits

    def _begin(self, prompts: tuple[str, ...]) -> Prompts:
        """The prompts as far as they can be computed alone; kept for the next pictures."""
        tokens = self._tokens(prompts)
        return self._fitting(lambda: self._texts(tokens), shortest=min(map(len, tokens)))

    def _texts(self, tokens: Sequence[Sequence[int]]) -> Prompts:
        lengths = np.array([len(ids) for ids in tokens])
        indices = [np.flatnonzero(lengths == length).tolist() for length in np.unique(lengths)]
        texts = []
        for alike in indices:
            ids = self._ids([tokens[index] for index in alike])
            parts = [self._matcher.texts(block) for block in self._blocks(ids)]
            texts.append(Texts(*(torch.cat(field) for field in zip(*parts, strict=True))))
        order = np.argsort(np.concatenate(indices))
        return Prompts(indices, texts, torch.cat([part.vectors for part in texts])[order])

    def _blocks(self, texts: Tensor) -> Output:
        """Texts of one length, as many at a time as the block holds."""
        return texts.split(max(1, self.block_tokens // texts.shape[1]))

    def _fitting(self, work: Callable[[], Made], *, shortest: int) -> Made:
        """What the work gives; when memory runs out it is done in halves, down to a single pair."""
        while True:
            try:
                with running():
                    return work()
            except OutOfMemory:
                if self.block_tokens <= shortest:
                    raise
                self.block_tokens //= 2

    def _ids(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(tokens, device=self._device)

    def _tokens(self, prompts: Sequence[str]) -> list[list[int]]:
        tokenizer, limit, clean = self._reading
        texts = [clean(prompt) for prompt in prompts]
        whole = tokenizer(texts, padding=False, truncation=False, verbose=False)["input_ids"]
        self._cut.record(prompts, [len(ids) for ids in whole])
        cut = tokenizer(texts, padding=False, truncation=True, max_length=limit)["input_ids"]
        return [list(ids) for ids in cut]


# The architectures: two towers and the layers in which they meet


Seen = tuple[Tensor, Tensor]  # what an attention reads of pictures: keys, values `[pictures, heads, tokens, width]`


class Attention(NamedTuple):
    """The parts of one attention of BERT, whatever the class calls them."""

    query: Module
    key: Module
    value: Module
    output: Module  # of what was read and what it is added to
    heads: int

    @classmethod
    def of(cls, module: Module) -> Self:
        """From a layer's `attention` or `crossattention`, of BLIP or of BLIP-2."""
        core = module.self if hasattr(module, "self") else module.attention
        return cls(core.query, core.key, core.value, module.output, core.num_attention_heads)

    def look(self, states: Tensor) -> Seen:
        """The keys and values of pictures' states `[pictures, tokens, width]`."""
        states = states.to(self.key.weight.dtype)
        return _by_head(self.key(states), self.heads), _by_head(self.value(states), self.heads)

    def read_pictures(self, states: Tensor, seen: Seen) -> Tensor:
        """Every token of every text reads the pictures; the tokens of all texts stand in one row."""
        row = self.query(states).flatten(1, 2)
        queries = _by_head(row, self.heads).expand(len(seen[0]), -1, -1, -1)
        attended = torch.nn.functional.scaled_dot_product_attention(queries, *seen)
        return self.output(attended.transpose(1, 2).flatten(2).unflatten(1, states.shape[1:3]), states)

    def read_words(self, states: Tensor, *, first: int | None = None) -> Tensor:
        """Tokens read the tokens of their own text; only the first ones, if no more are needed."""
        shape, readers = states.shape[:2], states[:, :, :first]
        projected = self.query(readers), self.key(states), self.value(states)
        query, key, value = (_by_head(each.flatten(0, 1), self.heads) for each in projected)
        attended = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        return self.output(attended.transpose(1, 2).flatten(2).unflatten(0, shape), readers)


def _by_head(states: Tensor, heads: int) -> Tensor:
    """`[n, tokens, width]` as `[n, heads, tokens, width / heads]`."""
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)


class _Fusing:
    """One architecture: its layers and the attentions in them.

    `texts` takes `[n, tokens]` ids without padding; `match` gives the head's logits `[pictures, texts, 2]` (no match,
    match) for what `look` and `texts` gave; `plain` those of the library's own forward pass, and the cosine.
    """

    def __init__(self, model: Module, layers: Iterable[Module]) -> None:
        self._model, self._layers = model, list(layers)
        self._words = [Attention.of(layer.attention) for layer in self._layers]
        crossing = [getattr(layer, "crossattention", None) for layer in self._layers]
        self._pictures = {number: Attention.of(part) for number, part in enumerate(crossing) if part is not None}

    def look(self, states: Tensor) -> dict[int, Seen]:
        """What every layer that reads pictures reads of them, once per picture."""
        return {number: attention.look(states) for number, attention in self._pictures.items()}


class BlipMatcher(_Fusing):
    """BLIP: a vision transformer, and a BERT that attends to it in every layer: words first, the picture next."""

    def __init__(self, model: Module, layers: Iterable[Module] | None = None, tower: Module | None = None) -> None:
        super().__init__(model, model.text_encoder.encoder.layer if layers is None else layers)
        self._tower = model.vision_model if tower is None else tower

    def pictures(self, pixels: Tensor) -> Pictures:
        """The tower's states, and its first one projected."""
        states = self._tower(pixel_values=pixels).last_hidden_state
        return Pictures(states, unit(self._model.vision_proj(states[:, :1])))

    def texts(self, ids: Tensor) -> Texts:
        """The first layer up to where it reads the picture; the encoder without a picture serves the cosine."""
        encoder = self._model.text_encoder
        alone = encoder(input_ids=ids).last_hidden_state
        begun = self._words[0].read_words(encoder.embeddings(input_ids=ids)[None])[0]
        return Texts(begun, unit(self._model.text_proj(alone[:, 0])))

    def match(self, seen: dict[int, Seen], begun: Tensor) -> Tensor:
        """The first token's state after all layers, through the head."""
        states, last = begun[None], len(self._layers) - 1
        for number, layer in enumerate(self._layers):
            if number:
                states = self._words[number].read_words(states, first=1 if number == last else None)
            elif number == last:
                states = states[:, :, :1]
            states = layer.feed_forward_chunk(self._pictures[number].read_pictures(states, seen[number]))
        return self._model.itm_head(states[:, :, 0])

    def plain(self, pixels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """`BlipForImageTextRetrieval`, with its matching head and with its contrastive ones."""
        pair = {"pixel_values": pixels, "input_ids": ids}
        matching, contrasting = (self._model(**pair, use_itm_head=head) for head in (True, False))
        return matching.itm_score, contrasting.itm_score


class Blip2Matcher(_Fusing):
    """BLIP-2: the Q-Former's queries read the words beside them in every layer, the picture in every other one."""

    def __init__(self, model: Module) -> None:
        super().__init__(model, model.qformer.encoder.layer)
        self._queries = model.query_tokens.shape[1]

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
        states = self._words[0].read_words(qformer.layernorm(beside)[None])[0]
        words = self._layers[0].feed_forward_chunk(states[:, self._queries :])
        begun = torch.cat([states[:, : self._queries], words], dim=1)
        return Texts(begun, unit(_project(self._model.text_projection, alone[:, 0])))

    def match(self, seen: dict[int, Seen], begun: Tensor) -> Tensor:
        """The queries' states after the last layer, which asks nothing of the words, through the head: their mean."""
        last, count = len(self._layers) - 1, self._queries
        queries, words = begun[None, :, :count], begun[None, :, count:]
        for number, layer in enumerate(self._layers):
            if number:
                states = torch.cat([queries, words.expand(len(queries), -1, -1, -1)], dim=2)
                states = self._words[number].read_words(states, first=count if number == last else None)
                queries, words = states[:, :, :count], layer.feed_forward_chunk(states[:, :, count:])
            if number in seen:
                queries = self._pictures[number].read_pictures(queries, seen[number])
            queries = layer.feed_forward_chunk_query(queries)
        return _project(self._model.itm_head, queries).mean(dim=2)

    def plain(self, pixels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """`Blip2ForImageTextRetrieval`, which newer files write with one token per query before the text."""
        config = self._model.config
        if config.image_token_index is not None:
            queries = ids.new_full((len(ids), config.num_query_tokens), config.image_token_index)
            ids = torch.cat([queries, ids], dim=1)
        pair = {"pixel_values": pixels, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
        matching, contrasting = (self._model(**pair, use_image_text_matching_head=head) for head in (True, False))
        return matching.logits_per_image, contrasting.logits_per_image


Matcher = BlipMatcher | Blip2Matcher
MATCHERS = {"BlipForImageTextRetrieval": BlipMatcher, "Blip2ForImageTextRetrieval": Blip2Matcher}


def unit(vectors: Tensor) -> Tensor:
    """Rows of length 1 in float32."""
    return torch.nn.functional.normalize(vectors.float(), dim=-1)


def _project(layer: Module, states: Tensor) -> Tensor:
    """Through a head that may be of another precision than the Q-Former, which stays in float32."""
    return layer(states.to(layer.weight.dtype))
