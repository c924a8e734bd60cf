"""Fusion: pictures and texts meet in BERT's layers, with everything computed once that depends on one side only.

All texts that meet a picture read the same keys and values, so their tokens stand in one row before them: nothing is
repeated for each text. Texts of a block have the same number of tokens, so nothing is padded and nothing is masked.
Shapes: `[pictures, texts, tokens, width]`, where a 1 stands for "the same for all of them".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from beholder.models.checkpoint.checkpoint import torch
from beholder.models.torch_types import Module, Tensor


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
