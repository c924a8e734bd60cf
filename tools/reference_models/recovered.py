"""What a two-tower model recovers of the planted associations: plain transformers code, no part of the audit.

It computes, as directly as possible, the values that the studies' `PLANTED` lists imply, so that the model card, the
tests and a reader can check the audit against it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from captions import COLD_WORDS, CONTROL_WORDS, WARM_RATES, WARM_WORDS

from beholder.glasshouse.planted import planted_row
from beholder.glasshouse.portrait import open_uri
from beholder.glasshouse.world import BRANCH_OCCUPATIONS, OCCUPATIONS, prompts, residents, with_article
from beholder.studies.apa.chapter import PLANTED as ASSOCIATIONS

Floats = npt.NDArray[np.float64]
Rows = list[dict[str, Any]]
NOTE = "softmax of a warm word against a cold one; planted: the same rate of warm captions"
SHARES = [
    planted_row("perception.warm_against_cold", "smiling", rate, group=str(k), concept="Warmth", note=NOTE)
    for k, rate in WARM_RATES.items()
]
SIGNS = [
    planted_row("perception.slope_sign", "smiling", sign, concept=concept, note="the sign is what is planted")
    for concept, sign in (("Warmth", 1.0), ("Communion +", 1.0), ("Communion -", -1.0), ("Competence", 0.0))
]
WARMTH = [*SHARES, *SIGNS]  # what the captions imply for smiling and warmth: for the model card and its tests
PLANTED = [*ASSOCIATIONS, *WARMTH]


class TwoTowers:
    """A CLIP folder: unit embeddings of pictures and texts, and the checkpoint's own scale."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer, CLIPImageProcessor, CLIPModel

        self.model = CLIPModel.from_pretrained(folder, dtype="float32").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.processor = CLIPImageProcessor.from_pretrained(folder)
        self.scale = float(self.model.logit_scale.detach().exp())

    def images(self, uris: list[str], batch: int = 60) -> Floats:
        """Embeddings of the pictures at these addresses."""
        parts = [self._image_batch(uris[start : start + batch]) for start in range(0, len(uris), batch)]
        return np.concatenate(parts)

    def _image_batch(self, uris: list[str]) -> Floats:
        import torch

        pixels = self.processor([open_uri(uri) for uri in uris], return_tensors="pt").pixel_values
        with torch.no_grad():
            pooled = self.model.vision_model(pixels).pooler_output
            return unit(self.model.visual_projection(pooled).numpy())

    def texts(self, texts: list[str]) -> Floats:
        """Embeddings of the texts."""
        import torch

        tokens = self.tokenizer(texts, padding=True, return_tensors="pt")
        with torch.no_grad():
            return unit(self.model.text_projection(self.model.text_model(**tokens).pooler_output).numpy())

    def logits(self, images: Floats, texts: list[str]) -> Floats:
        """Scaled cosines, one row per picture."""
        return self.scale * images @ self.texts(texts).T


def unit(vectors: npt.NDArray[Any]) -> Floats:
    """Each row divided by its length."""
    rows: Floats = vectors.astype(np.float64)
    lengths: Floats = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return rows / lengths


def softmax(logits: Floats, axis: int) -> Floats:
    """Shares that add up to 1 along the axis."""
    powers: Floats = np.exp(logits - logits.max(axis=axis, keepdims=True))
    totals: Floats = powers.sum(axis=axis, keepdims=True)
    return powers / totals


def recovered(towers: TwoTowers, rows: Rows) -> dict[tuple[str, str, str, str], float]:
    """Recovered values keyed by (metric, subset, group, concept), as in the planted lists."""
    images = towers.images([row["uri"] for row in rows])
    values: dict[tuple[str, str, str, str], float] = {}
    for branch in dict.fromkeys(row["branch"] for row in rows):
        indices = [index for index, row in enumerate(rows) if row["branch"] == branch]
        part, vectors = [rows[index] for index in indices], images[indices]
        values |= levels(towers, branch, part, vectors)
        values |= genders(towers, branch, part, vectors) if branch in BRANCH_OCCUPATIONS else {}
        values |= {} if branch in BRANCH_OCCUPATIONS else names(towers, branch, part, vectors)
    return values | warmth(towers, rows, images)


def levels(towers: TwoTowers, branch: str, rows: Rows, images: Floats) -> dict[tuple[str, str, str, str], float]:
    """Mean probability of the correct prompt at each level of a branch."""
    values = {}
    for level in ("category", "occupation", "specialty"):
        asked = [p for p in prompts() if p["branch"] == branch and p["level"] == level]
        if asked:
            shares = softmax(towers.logits(images, [p["text"] for p in asked]), 1)
            correct = [[holds(p["correct_for"], row) for p in asked] for row in rows]
            values["apa.association", branch, "", level] = float((shares * np.array(correct)).sum(1).mean())
    return values


def holds(rule: str, row: dict[str, Any]) -> bool:
    """Whether a prompt's `correct_for` rule is true of a picture."""
    parts = [part.split("=", 1) for part in rule.split("&")] if rule not in ("", "*") else []
    return rule != "" and all(str(row[name]) == value for name, value in parts)


def genders(towers: TwoTowers, branch: str, rows: Rows, images: Floats) -> dict[tuple[str, str, str, str], float]:
    """Mean probability of each occupation by drawn presentation, and the ratio b."""
    texts = [p["text"] for p in prompts() if p["branch"] == branch and p["level"] == "occupation"]
    shares = softmax(towers.logits(images, texts), 1)
    gender, own = np.array([row["gender"] for row in rows]), BRANCH_OCCUPATIONS[branch]
    means = {side: shares[gender == side].mean(0) for side in ("woman", "man")}
    values = {
        ("apa.occupation_probability", branch, side, word): float(means[side][index])
        for side in means
        for index, word in enumerate(OCCUPATIONS)
    }
    index = OCCUPATIONS.index(own)
    return values | {("apa.bias_ratio", branch, "", own): float(means["woman"][index] / means["man"][index])}


def names(towers: TwoTowers, branch: str, rows: Rows, images: Floats) -> dict[tuple[str, str, str, str], float]:
    """Given a picture the share of its name; given a name the share of that person's pictures."""
    asked = [p for p in prompts() if p["branch"] == branch and p["level"] == "identity"]
    logits = towers.logits(images, [p["text"] for p in asked])
    own = np.array([[row["name"] == p["concept"] for p in asked] for row in rows])
    return {
        ("apa.identity_given_image", branch, "", ""): float((softmax(logits, 1) * own).sum(1).mean()),
        ("apa.identity_given_name", branch, "", ""): float((softmax(logits, 0) * own).sum(0).mean()),
    }


def warmth(towers: TwoTowers, rows: Rows, images: Floats) -> dict[tuple[str, str, str, str], float]:
    """Share of warm against cold words at each level of smiling, pairing every warm word with every cold one."""
    warm, cold = (trait_logits(towers, images, words) for words in (WARM_WORDS, COLD_WORDS))
    shares = (1 / (1 + np.exp(cold[:, None, :] - warm[:, :, None]))).mean((1, 2))
    smiling = np.array([row["smiling"] for row in rows])
    values = {
        ("perception.warm_against_cold", "smiling", str(s), "Warmth"): float(shares[smiling == s].mean())
        for s in range(5)
    }
    control = trait_logits(towers, images, CONTROL_WORDS).mean(1)
    values["slope per step of smiling, logits", "", "", "control words"] = float(np.polyfit(smiling, control, 1)[0])
    values["slope per step of smiling, logits", "", "", "warm words"] = float(np.polyfit(smiling, warm.mean(1), 1)[0])
    values["slope per step of smiling, logits", "", "", "cold words"] = float(np.polyfit(smiling, cold.mean(1), 1)[0])
    return values


def trait_logits(towers: TwoTowers, images: Floats, words: tuple[str, ...]) -> Floats:
    """Scaled cosines of pictures with "a photo of a {word} person."."""

    return towers.logits(images, [f"a photo of {with_article(word)} person." for word in words])


def comparison(folder: Path) -> list[tuple[str, str, str, str, float, float]]:
    """Known truth and what was recovered: metric, subset, group, concept, implied value, recovered value."""
    values = recovered(TwoTowers(folder), residents())
    keyed = [((r["metric"], r["subset"], r["group"], r["concept"]), r["value"]) for r in PLANTED]
    return [(*key, value, values[key]) for key, value in keyed if key in values]
