"""Matching models read a picture once for all texts: faster than a pair at a time, and than padded blocks.

Published sizes with random weights; prompts are GRAS's questions. BLIP-2's vision tower has a thousand million weights:
ask for it by name.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from bench import Cell, Claim, main, spent
from PIL import Image

from beholder.models.albef import AlbefConfig, AlbefMatcher, AlbefModel
from beholder.models.matching import Blip2Matcher, BlipMatcher, Matcher, MatchingScorer, TextReading
from beholder.models.spec import LoadOptions, ModelSpec
from beholder.studies.gras.prompts import gras_prompts

PADDED_BLOCK = {"cpu": 32, "cuda": 256}
PLAIN_PAIRS = {"cpu": 3, "cuda": 100}


class Candidate(NamedTuple):
    """A model, our way of reading it, and what a careful user of the library would write."""

    model: Any
    matcher: Matcher
    side: int
    own: Callable[[Any, Any], Any]
    """The library's forward pass: pixels and token numbers of one pair to the head's logits."""
    fuse: Callable[[Any, Any, Any], Any]
    """The library's layers: one picture's states, padded token numbers and their mask to the head's logits."""


def blip(**smaller: int) -> Candidate:
    """The size of `blip-itm-base-coco`."""
    text = {"vocab_size": 30524, "encoder_hidden_size": 768, **smaller}
    vision = {"image_size": 384, "patch_size": 16, **smaller}
    config = transformers.BlipConfig(text_config=text, vision_config=vision, image_text_hidden_size=256)
    model = transformers.BlipForImageTextRetrieval(config)

    def fuse(states: Any, ids: Any, mask: Any) -> Any:
        fused = model.text_encoder(input_ids=ids, attention_mask=mask, encoder_hidden_states=states)
        return model.itm_head(fused.last_hidden_state[:, 0])

    return Candidate(
        model, BlipMatcher(model), vision["image_size"], lambda *pair: model(*reversed(pair)).itm_score, fuse
    )


def blip_2() -> Candidate:
    """The size of `blip2-itm-vit-g`."""
    config = transformers.Blip2Config(
        vision_config={"image_size": 224},
        qformer_config={"use_qformer_text_input": True, "vocab_size": 30523},
        image_text_hidden_size=256,
    )
    model = transformers.Blip2ForImageTextRetrieval(config)

    def own(pixels: Any, ids: Any) -> Any:
        mask = torch.ones_like(ids)
        return model(pixels, ids, mask, use_image_text_matching_head=True).logits_per_image

    def fuse(states: Any, ids: Any, mask: Any) -> Any:
        queries = model.query_tokens.expand(len(ids), -1, -1)
        fused = model.qformer(
            query_embeds=model.embeddings(input_ids=ids, query_embeds=queries),
            query_length=queries.shape[1],
            attention_mask=torch.cat([mask.new_ones(queries.shape[:2]), mask], dim=1),
            encoder_hidden_states=states,
        ).last_hidden_state[:, : queries.shape[1]]
        return model.itm_head(fused.to(model.itm_head.weight.dtype)).mean(dim=1)

    return Candidate(model, Blip2Matcher(model), 224, own, fuse)


def albef() -> Candidate:
    """The published size, 256 pixels; the library has its layers, not the model."""
    model = AlbefModel(AlbefConfig(), image_size=256)
    matcher = AlbefMatcher(model)

    def fuse(states: Any, ids: Any, mask: Any) -> Any:
        words, lowest = model.embeddings(input_ids=ids), torch.finfo(states.dtype).min
        additive = (1 - mask[:, None, None].to(states.dtype)) * lowest
        for layer in model.layer:
            words = layer(words, states if hasattr(layer, "crossattention") else None, attention_mask=additive)
        return model.itm_head(words[:, 0])

    return Candidate(model, matcher, 256, lambda *pair: matcher.plain(*pair)[0], fuse)


CANDIDATES = {
    "blip": blip,
    "albef": albef,
    "blip-2": blip_2,
    "quick": partial(blip, num_hidden_layers=1, image_size=32),
}


def tokenizer(texts: list[str]) -> Any:
    """BERT's, over the words of these texts."""
    words = sorted({word for text in texts for word in re.findall(r"[a-z]+|[^a-z\s]", text.lower())})
    with tempfile.TemporaryDirectory() as folder:
        listed = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
        Path(folder, "vocab.txt").write_text("".join(f"{word}\n" for word in listed))
        return transformers.BertTokenizer.from_pretrained(folder)


class Contest:
    """One model, pictures of noise, questions, and the three ways to score them."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        torch.manual_seed(0)
        self.device, self.dtype, self.candidate = (
            options.device,
            getattr(torch, options.precision),
            CANDIDATES[name](),
        )
        self.candidate.model.to(self.device, self.dtype).eval().requires_grad_(False)
        self.texts = [gras_prompts().texts[at] for at in np.linspace(0, 499, options.prompts).astype(int)]
        self.words, side = tokenizer(self.texts), self.candidate.side
        self.scorer = MatchingScorer(
            self.candidate.matcher,
            transformers.BlipImageProcessorPil(size={"height": side, "width": side}),
            TextReading(self.words, 35),
            ModelSpec(name, "matching", "random", "none", options.precision, {}),
            LoadOptions(device=self.device),
        )
        noise = np.random.default_rng(0).integers(0, 256, (options.pictures, 64, 64, 3), dtype=np.uint8)
        self.prepared = [self.scorer.prepare(Image.fromarray(picture)) for picture in noise]

    def pixels(self) -> Any:
        """All pictures on the device."""
        return torch.from_numpy(np.stack(self.prepared)).to(self.device, self.dtype)

    def pairs(self) -> Any:
        """The first picture with the first texts, a pair at a time: `[texts, 2]`."""
        pixels, texts = self.pixels()[:1], self.texts[: PLAIN_PAIRS[self.device]]
        ids = [self.words(text, return_tensors="pt")["input_ids"].to(self.device) for text in texts]
        return np.concatenate([self.candidate.own(pixels, one).float().cpu().numpy() for one in ids])

    def blocks(self) -> Any:
        """Every picture once through the tower, texts padded to the longest, a block at a time."""
        padded = self.words(self.texts, return_tensors="pt", padding=True).to(self.device)
        at_once = PADDED_BLOCK[self.device]
        blocks = list(zip(padded["input_ids"].split(at_once), padded["attention_mask"].split(at_once), strict=True))
        states = self.candidate.matcher.pictures(self.pixels()).states
        logits = [self.candidate.fuse(picture[None], *block) for picture in states for block in blocks]
        return torch.cat(logits).float().cpu().numpy().reshape(len(states), len(self.texts), 2)

    def ours(self) -> Any:
        """The adapter, prompts and all."""
        self.scorer._begun.cache_clear()
        return self.scorer.score_prepared(self.prepared, self.texts)[..., 1::-1]


def scored(way: Callable[[], Any]) -> tuple[Any, float, float]:
    """The logits `[…, 2]`, and the seconds a pair takes, by the clock and of the processor."""
    kept: list[Any] = []
    with torch.inference_mode():
        seconds = spent(lambda: kept.append(way()))
    pairs = kept[0][..., 0].size
    return kept[0], seconds[0] / pairs, seconds[1] / pairs


def compare(options: argparse.Namespace) -> Iterator[Claim]:
    """Each way's best of three rounds, and how far its scores are from those of the pairs."""
    if options.quick:
        options.models, options.pictures, options.prompts = ["quick"], 1, 2
    for name in options.models or ["blip", "albef"]:
        contest = Contest(name, options)
        ways = {"ours": contest.ours, "padded blocks": contest.blocks, "a pair at a time": contest.pairs}
        rounds = [[scored(way) for way in ways.values()] for _ in range(1 if options.quick else 3)]
        plain, first = rounds[-1][-1][0], min(each[0][1] for each in rounds)
        rows: list[list[Cell]] = []
        for place, way in enumerate(ways):
            clock, processor = (min(each[place][kind] for each in rounds) for kind in (1, 2))
            apart = float(np.abs(rounds[-1][place][0].reshape(-1, 2)[: len(plain)] - plain).max())
            rows.append([way, 1 / clock, 1000 * processor, clock / first, f"{apart:.1e}"])
        size = f"{options.pictures} pictures × {options.prompts} prompts, {options.precision} on {options.device}"
        columns = ["way", "pairs/s", "processor ms a pair", "ratio", "largest difference"]
        yield Claim(f"Matching, {name}: {size}; the ratio is that of the clock", columns, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="blip|albef|blip-2", help="default: blip albef")
    parser.add_argument("--device", default="cpu", choices=PADDED_BLOCK)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--pictures", type=int, default=2)
    parser.add_argument("--prompts", type=int, default=40)
    main(compare, parser=parser)
