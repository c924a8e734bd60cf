"""Matching models look at a picture and a text together: BLIP and BLIP-2 (`matching_blip`), ALBEF (`albef`).

A matching head gives two logits for a pair. Three channels:

    match_logit      the head's logit of "they match": what the models' authors rank by, and what APA's softmax takes
    no_match_logit   the other one: match - no_match is the log-odds, its sigmoid the probability of a match
    itc_cosine       the contrastive head's cosine (BLIP-2: of the nearest query), which needs no fusion

Every picture passes the vision tower once, every text the layers before it meets a picture once, and every picture's
keys and values are computed once for all texts. What is left runs per pair, in blocks (`fusion`): texts of one length,
so that nothing is padded, times as many pictures as fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from PIL import Image

from beholder.core.errors import ModelError, OutOfMemory
from beholder.models.checkpoint.checkpoint import torch
from beholder.models.checkpoint.torch_scorer import SAMPLE_TEXTS, TorchScorer, refuse_unusable, running, sample_pictures
from beholder.models.scorer import Floats, Prepared, batches
from beholder.models.spec import ModelSpec, Module, Output, Processor, Tensor

BLOCK_TOKENS = {"cpu": 2048, "cuda": 65536, "mps": 4096}
"""Tokens in flight, of texts and of the pictures they read; halved when memory runs out."""
CHANNELS = ("match_logit", "no_match_logit", "itc_cosine")
TOLERANCE = {"float32": 1e-4, "bfloat16": 1e-1, "float16": 1e-2}
"""Of a score, between our way and the model's own forward pass, relative to the score where that is above 1."""

Made = TypeVar("Made")


class Pictures(NamedTuple):
    """What the vision tower makes of a batch."""

    states: Tensor
    """`[n, tokens, width]`: what the fusion attends to."""
    vectors: Tensor
    """`[n, queries, dim]`, unit: what the contrastive head compares; one query but for BLIP-2."""


class Texts(NamedTuple):
    """Texts of one length, as far as they come before they meet a picture."""

    begun: Tensor
    """`[n, tokens, width]`."""
    vectors: Tensor
    """`[n, dim]`, unit."""


class Prompts(NamedTuple):
    """A list of prompts, by their length in tokens."""

    indices: list[list[int]]
    """For each length, where its texts stand in the list."""
    texts: list[Texts]
    vectors: Tensor
    """`[n, dim]`, unit, in the list's order."""

    @property
    def shortest(self) -> int:
        """Tokens of the shortest text."""
        return min(int(texts.begun.shape[1]) for texts in self.texts)


class Matcher(Protocol):
    """One architecture: its two towers and their meeting."""

    def pictures(self, pixels: Tensor) -> Pictures:
        """The vision tower, once per picture."""
        ...

    def texts(self, ids: Tensor) -> Texts:
        """What precedes any picture, once per text; `ids` is `[n, tokens]` without padding."""
        ...

    def look(self, states: Tensor) -> Output:
        """The keys and values that texts read of pictures, once per picture."""
        ...

    def match(self, seen: Output, begun: Tensor) -> Tensor:
        """`[pictures, texts, 2]`: the head's logits (no match, match) for what `look` and `texts` gave."""
        ...

    def plain(self, pixels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """The library's own forward pass for one pair: the head's logits and the cosine."""
        ...


class TextReading(NamedTuple):
    """How a prompt becomes tokens."""

    tokenizer: Processor
    max_length: int
    clean: Callable[[str], str] = str


class MatchingScorer(TorchScorer):
    """Matching logits and contrastive cosines of every picture with every prompt."""

    channels: tuple[str, ...] = CHANNELS
    batch_sizes: ClassVar = {"cpu": 8, "cuda": 64, "mps": 16}

    def __init__(
        self,
        matcher: Matcher,
        image_processor: Processor,
        reading: TextReading,
        spec: ModelSpec,
        *,
        device: str,
        batch_size: int | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(spec, device=device, batch_size=batch_size, max_length=reading.max_length, notes=notes)
        self.block_tokens = BLOCK_TOKENS.get(device.partition(":")[0], 2048)
        self._matcher, self._image_processor, self._reading = matcher, image_processor, reading
        self._last_prompts: tuple[tuple[str, ...], Prompts] | None = None

    def prepare(self, image: Image.Image) -> Prepared:
        """The checkpoint's own preprocessing: float32 `[channel, height, width]`."""
        batch = self._image_processor(images=image.convert("RGB"), return_tensors="np")
        return np.ascontiguousarray(batch["pixel_values"][0], dtype=np.float32)

    def score_prepared(self, prepared: Sequence[Prepared], prompts: Sequence[str]) -> Floats:
        """`[n_images, n_prompts, 3]`; the order of the channels is that of `channels`."""
        if not (prepared and prompts):
            return np.empty((len(prepared), len(prompts), len(self.channels)), np.float32)
        begun = self._begun(tuple(prompts))
        return refuse_unusable(
            np.concatenate([self._score(part, begun) for part in batches(prepared, self.batch_size)])
        )

    def verify(self) -> None:
        """Raise unless our scores are those of the model's own forward pass.

        Ours are made in one block of pictures of two shapes and texts of two lengths, its own pair by pair.
        """
        prepared = [self.prepare(picture) for picture in sample_pictures()]
        scores = self.score_prepared(prepared, SAMPLE_TEXTS)
        for number, (one, text) in enumerate(zip(prepared, SAMPLE_TEXTS, strict=True)):
            ours = scores[number, number]
            with running():
                logits, cosine = self._matcher.plain(self._pixels([one]), self._ids(self._tokens([text])))
                theirs = torch.cat([logits.float().flatten().flip(0), cosine.float().flatten()]).cpu().numpy()
            allowed = TOLERANCE[self.spec.precision] * np.maximum(1, np.abs(theirs))
            if not (np.abs(ours - theirs) <= allowed).all():
                raise ModelError(
                    f"{self.spec.name} is scored wrongly by Beholder: its own forward pass gives "
                    f"{theirs.tolist()} ({', '.join(self.channels)}) where its parts give {ours.tolist()}."
                )
        self._forget_texts()

    def _forget_texts(self) -> None:
        super()._forget_texts()
        self._last_prompts = None

    def _score(self, prepared: Sequence[Prepared], prompts: Prompts) -> Floats:
        with running():
            pictures = self._matcher.pictures(self._pixels(prepared))
            cosines = torch.einsum("iqd,td->iqt", pictures.vectors, prompts.vectors).amax(dim=1)
            logits = self._fitting(lambda: self._logits(pictures.states, prompts), shortest=prompts.shortest)
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

    def _begun(self, prompts: tuple[str, ...]) -> Prompts:
        """The prompts as far as they can be computed alone; kept for the next pictures."""
        if self._last_prompts is None or self._last_prompts[0] != prompts:
            tokens = self._tokens(prompts)
            begun = self._fitting(lambda: self._texts(tokens), shortest=min(map(len, tokens)))
            self._last_prompts = prompts, begun
        return self._last_prompts[1]

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


def unit(vectors: Tensor) -> Tensor:
    """Rows of length 1 in float32."""
    return torch.nn.functional.normalize(vectors.float(), dim=-1)


# Fusion


class Attention(NamedTuple):
    """The parts of one attention of BERT, whatever the class calls them."""

    query: Module
    key: Module
    value: Module
    output: Module
    """Of what was read and what it is added to."""
    heads: int

    @classmethod
    def of(cls, module: Module) -> Attention:
        """From a layer's `attention` or `crossattention`, of BLIP or of BLIP-2."""
        core = module.self if hasattr(module, "self") else module.attention
        return cls(core.query, core.key, core.value, module.output, core.num_attention_heads)


class Seen(NamedTuple):
    """What one attention reads of pictures: keys and values `[pictures, heads, tokens, width / heads]`."""

    keys: Tensor
    values: Tensor


def look(attention: Attention, states: Tensor) -> Seen:
    """The keys and values of pictures' states `[pictures, tokens, width]`."""
    states = states.to(attention.key.weight.dtype)
    return Seen(*(_by_head(project(states), attention.heads) for project in (attention.key, attention.value)))


def read_pictures(attention: Attention, states: Tensor, seen: Seen) -> Tensor:
    """Every token of every text reads the pictures; the tokens of all texts stand in one row."""
    row = attention.query(states).flatten(1, 2)
    queries = _by_head(row, attention.heads).expand(len(seen.keys), -1, -1, -1)
    attended = torch.nn.functional.scaled_dot_product_attention(queries, *seen)
    return attention.output(_joined(attended).unflatten(1, states.shape[1:3]), states)


def read_words(attention: Attention, states: Tensor, *, first: int | None = None) -> Tensor:
    """Tokens read the tokens of their own text; only the first ones, if no more are needed."""
    shape, readers = states.shape[:2], states[:, :, :first]
    query, key, value = (
        _by_head(project(of).flatten(0, 1), attention.heads)
        for project, of in ((attention.query, readers), (attention.key, states), (attention.value, states))
    )
    attended = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    return attention.output(_joined(attended).unflatten(0, shape), readers)


class FusingLayers:
    """The layers of BLIP or ALBEF in which a text reads a picture: words first, the picture next."""

    def __init__(self, layers: Iterable[Module]) -> None:
        self._layers = list(layers)
        self._words = [Attention.of(layer.attention) for layer in self._layers]
        self._pictures = [Attention.of(layer.crossattention) for layer in self._layers]

    def look(self, states: Tensor) -> list[Seen]:
        """What every layer reads of the pictures."""
        return [look(attention, states) for attention in self._pictures]

    def begin(self, states: Tensor) -> Tensor:
        """As far as texts `[texts, tokens, width]` come before they read a picture."""
        return read_words(self._words[0], states[None])[0]

    def first_states(self, seen: list[Seen], begun: Tensor) -> Tensor:
        """`[pictures, texts, width]`: what the matching head takes, the last state of each text's first token."""
        states, last = begun[None], len(self._layers) - 1
        for number, layer in enumerate(self._layers):
            if number:
                states = read_words(self._words[number], states, first=1 if number == last else None)
            elif number == last:
                states = states[:, :, :1]
            states = layer.feed_forward_chunk(read_pictures(self._pictures[number], states, seen[number]))
        return states[:, :, 0]


class FusingQueries:
    """BLIP-2's Q-Former: queries read the words beside them in every layer, the picture in every other one."""

    def __init__(self, layers: Iterable[Module], *, queries: int) -> None:
        self._layers, self._queries = list(layers), queries
        self._words = [Attention.of(layer.attention) for layer in self._layers]
        self._pictures = {
            number: Attention.of(layer.crossattention)
            for number, layer in enumerate(self._layers)
            if layer.has_cross_attention
        }

    def look(self, states: Tensor) -> dict[int, Seen]:
        """What every layer that reads pictures reads of them."""
        return {number: look(attention, states) for number, attention in self._pictures.items()}

    def begin(self, states: Tensor) -> Tensor:
        """As far as queries and words `[texts, tokens, width]` come before the queries read a picture."""
        states = read_words(self._words[0], states[None])[0]
        words = self._layers[0].feed_forward_chunk(states[:, self._queries :])
        return torch.cat([states[:, : self._queries], words], dim=1)

    def query_states(self, seen: dict[int, Seen], begun: Tensor) -> Tensor:
        """`[pictures, texts, queries, width]` after the last layer, which asks nothing of the words."""
        last, count = len(self._layers) - 1, self._queries
        queries, words = begun[None, :, :count], begun[None, :, count:]
        for number, layer in enumerate(self._layers):
            if number:
                states = torch.cat([queries, words.expand(len(queries), -1, -1, -1)], dim=2)
                states = read_words(self._words[number], states, first=count if number == last else None)
                queries, words = states[:, :, :count], layer.feed_forward_chunk(states[:, :, count:])
            if number in seen:
                queries = read_pictures(self._pictures[number], queries, seen[number])
            queries = layer.feed_forward_chunk_query(queries)
        return queries


def _by_head(states: Tensor, heads: int) -> Tensor:
    """`[n, tokens, width]` as `[n, heads, tokens, width / heads]`."""
    return states.unflatten(-1, (heads, -1)).transpose(1, 2)


def _joined(states: Tensor) -> Tensor:
    """Back from `_by_head`."""
    return states.transpose(1, 2).flatten(2)
