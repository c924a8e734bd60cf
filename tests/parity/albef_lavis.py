"""ALBEF beside LAVIS: the same random weights, pictures and captions through both, compared to 1e-4.

Run by hand, once per change of `albef*.py` or of transformers; the result goes into LOG.md. LAVIS wants old
versions, so it lives in an environment of its own and only its ALBEF modules are imported; nothing of it is here.

    pyenv shell 3.10 && python -m venv /tmp/lavis && /tmp/lavis/bin/pip install \\
        "torch<2.3" "torchvision<0.18" "numpy<2" "transformers<4.27" timm==0.4.12 fairscale==0.4.4 \\
        omegaconf iopath pandas && /tmp/lavis/bin/pip install --no-deps salesforce-lavis==1.0.2
    /tmp/lavis/bin/python tests/parity/albef_lavis.py make /tmp/albef-parity
    .venv/bin/python tests/parity/albef_lavis.py compare /tmp/albef-parity

`make` writes, for each case, a folder that Beholder reads (checkpoint.pth, vocab.txt, config.json) and the scores
that LAVIS gives; `compare` scores the folder by Beholder and exits with 1 if any score is further than 1e-4 off.

    published   ViT-B/16 at 384 px, 12 layers of BERT, fusion from the 6th; keys of a fine-tuned file, momentum
                copies and queues included
    resized     a small one whose position table is of 256 px, read at 384 px; keys of the pre-trained file
    original    a small one read as ALBEF's own code does: token types added, captions not closed by [SEP]
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

TOLERANCE = 1e-4
CAPTIONS = ["A photo of a doctor.", "nurse", "this is a photo of (the) smiling woman: and the man!", "a dog"]
CAPTIONS += ["a photo of " + "the smiling man and the woman " * 8]
WORDS = ["a", "photo", "of", "person", "dog", "the", "doctor", "woman", "man", "smiling", "nurse", "this", "is", "and"]
SMALL = {
    "vision_width": 96,
    "vision_layers": 3,
    "vision_heads": 4,
    "text_width": 64,
    "text_layers": 4,
    "fusion_layer": 2,
    "text_heads": 4,
    "embed_dim": 32,
}
FULL = {
    "vision_width": 768,
    "vision_layers": 12,
    "vision_heads": 12,
    "text_width": 768,
    "text_layers": 12,
    "fusion_layer": 6,
    "text_heads": 12,
    "embed_dim": 256,
}
CASES: dict[str, dict[str, Any]] = {
    "published": {**FULL, "code": "lavis", "image_size": 384},
    "resized": {**SMALL, "code": "lavis", "image_size": 384},
    "original": {**SMALL, "code": "albef", "image_size": 256},
}


def pictures() -> list[Image.Image]:
    """Noise, stripes and a gradient, none of them square."""
    noise = np.random.default_rng(1).integers(0, 256, (300, 420, 3), dtype=np.uint8)
    down, across = np.mgrid[0:500, 0:350]
    stripes = np.stack([(across // 20 % 2) * 255, down // 2, 255 - across // 2], axis=-1).astype(np.uint8)
    gradient = np.stack([down // 2, across // 2, (down + across) // 4], axis=-1).astype(np.uint8)
    return [Image.fromarray(array) for array in (noise, stripes, gradient)]


def make(folder: Path) -> None:
    """With LAVIS: its scores of every case, and the folders to score again."""
    import torch

    lavis = import_lavis()
    for number, (name, config) in enumerate(CASES.items()):
        torch.manual_seed(number)
        home = folder / name
        home.mkdir(parents=True, exist_ok=True)
        write_vocabulary(home / "vocab.txt")
        model = lavis_model(lavis, config, home, trained_size=256 if name == "resized" else config["image_size"])
        torch.save({"model": published_keys(model, bert=name != "published")}, home / "checkpoint.pth")
        if name == "resized":
            model = reloaded(lavis, config, home)
        np.save(home / "scores.npy", lavis_scores(lavis, model, config))
        (home / "config.json").write_text(json.dumps({"model_type": "albef", **config}))
        print(f"{name}: LAVIS has scored {len(pictures())} pictures with {len(CAPTIONS)} captions")


def import_lavis() -> Any:
    """LAVIS's ALBEF, without what its packages import beside it (OpenCV, decord, spaCy …)."""
    found = importlib.util.find_spec("lavis")
    if not found or not found.submodule_search_locations:
        sys.exit("LAVIS is not installed here; the top of this file says how to install it.")
    root = Path(next(iter(found.submodule_search_locations)))
    for name in ("lavis", "lavis.models", "lavis.processors", "lavis.common"):
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    sys.modules.setdefault("cv2", types.ModuleType("cv2"))
    # What the packages' own __init__ would have put there, and their modules look for.
    wanted = {"common": "dist_utils", "models": "base_model", "processors": "base_processor"}
    for package_name, module in wanted.items():
        loaded = importlib.import_module(f"lavis.{package_name}.{module}")
        names = {name: value for name, value in vars(loaded).items() if name.startswith("Base")}
        vars(sys.modules[f"lavis.{package_name}"]).update({module: loaded, **names})
    names = ("models.albef_models.albef_retrieval", "models.med", "models.vit", "processors.blip_processors")
    return types.SimpleNamespace(**{name.split(".")[-1]: importlib.import_module(f"lavis.{name}") for name in names})


def lavis_model(lavis: Any, config: dict[str, Any], home: Path, *, trained_size: int) -> Any:
    """LAVIS's retrieval model of these sizes, with weights that tell pictures and captions apart."""
    import torch
    from transformers import BertConfig, BertTokenizer

    retrieval = lavis.albef_retrieval.AlbefRetrieval
    retrieval.init_tokenizer = classmethod(lambda cls: BertTokenizer(str(home / "vocab.txt")))
    vision = lavis.vit.VisionTransformerEncoder(
        img_size=trained_size,
        patch_size=16,
        embed_dim=config["vision_width"],
        depth=config["vision_layers"],
        num_heads=config["vision_heads"],
    )
    vision.vision_width = config["vision_width"]
    bert = BertConfig(
        hidden_size=config["text_width"],
        intermediate_size=4 * config["text_width"],
        num_hidden_layers=config["text_layers"],
        num_attention_heads=config["text_heads"],
        encoder_width=config["vision_width"],
        fusion_layer=config["fusion_layer"],
        add_cross_attention=True,
        add_type_embeddings=config["code"] == "albef",
    )
    text = lavis.med.XBertEncoder(bert, add_pooling_layer=False)
    model = retrieval(vision, text, queue_size=16, embed_dim=config["embed_dim"], max_txt_len=30)
    for weights in model.parameters():
        scale = 1.2 / weights.shape[-1] ** 0.5 if weights.ndim == 2 else 0.05
        with torch.no_grad():
            weights.copy_(weights + torch.randn_like(weights) * scale)
    return model.eval()


def published_keys(model: Any, *, bert: bool) -> dict[str, Any]:
    """The state as the published files have it: `text_encoder.bert.` before fine-tuning."""
    state = model.state_dict()
    return {key.replace("text_encoder.", "text_encoder.bert.") if bert else key: value for key, value in state.items()}


def reloaded(lavis: Any, config: dict[str, Any], home: Path) -> Any:
    """The saved checkpoint as LAVIS itself reads it for pictures of another size."""
    model = lavis_model(lavis, config, home, trained_size=config["image_size"])
    model.load_from_pretrained(str(home / "checkpoint.pth"))
    return model.eval()


def lavis_scores(lavis: Any, model: Any, config: dict[str, Any]) -> Any:
    """`[pictures, captions, 3]`: match, no match, cosine, as its retrieval code computes them."""
    import torch

    processors = lavis.blip_processors
    eyes, clean = (
        processors.BlipImageEvalProcessor(image_size=config["image_size"]),
        processors.BlipCaptionProcessor(),
    )
    original = config["code"] == "albef"
    with torch.no_grad():
        images = model.visual_encoder.forward_features(torch.stack([eyes(picture) for picture in pictures()]))
        image_vectors = torch.nn.functional.normalize(model.vision_proj(images[:, 0]), dim=-1)
        rows = []
        for caption in CAPTIONS:
            # Of these captions ALBEF's own cleaning keeps the same words, and LAVIS's spaces are no tokens.
            tokens = model.tokenizer(
                [clean(caption)],
                padding="max_length",
                truncation=True,
                max_length=31 if original else 30,
                return_tensors="pt",
            )
            rows.append(lavis_column(model, tokens, images, image_vectors, original=original))
    return torch.stack(rows, dim=1).numpy()


def lavis_column(model: Any, tokens: Any, images: Any, image_vectors: Any, *, original: bool) -> Any:
    """One caption with every picture."""
    import torch

    ids, mask = tokens["input_ids"], tokens["attention_mask"]
    if original:  # the closing [SEP] goes
        last = int(mask.sum()) - 1
        ids, mask = ids[:, :30].clone(), mask[:, :30].clone()
        ids[:, last:], mask[:, last:] = 0, 0
    tokens = types.SimpleNamespace(input_ids=ids, attention_mask=mask)
    kinds = {"token_type_ids": torch.zeros_like(ids)} if original else {}
    text = model.text_encoder.forward_text(tokens, **kinds).last_hidden_state
    vector = torch.nn.functional.normalize(model.text_proj(text[:, 0]), dim=-1)
    count = len(images)
    together = {"encoder_hidden_states": images, "encoder_attention_mask": torch.ones(images.shape[:2])}
    fused = model.text_encoder(
        ids.expand(count, -1),
        attention_mask=mask.expand(count, -1),
        return_dict=True,
        **together,
        **{name: value.expand(count, -1) for name, value in kinds.items()},
    ).last_hidden_state
    logits = model.itm_head(fused[:, 0])
    return torch.cat([logits.flip(-1), image_vectors @ vector.T], dim=1)


def write_vocabulary(path: Path) -> None:
    """30,522 tokens, as many as BERT's: some words, the letters, and places kept free."""
    letters = [*"abcdefghijklmnopqrstuvwxyz", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
    tokens = list(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters]))
    tokens += [f"[unused{number}]" for number in range(30522 - len(tokens))]
    path.write_text("".join(f"{token}\n" for token in tokens))


def compare(folder: Path) -> int:
    """With Beholder: how far its scores are from those of LAVIS."""
    import torch
    import transformers

    from beholder.models.load import LoadOptions, load_model

    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    worst = 0.0
    for name in CASES:
        home = folder / name
        scorer = load_model(str(home), LoadOptions(device="cpu", allow_pickle=True))
        ours = scorer.score_prepared([scorer.prepare(picture) for picture in pictures()], CAPTIONS)
        theirs = np.load(home / "scores.npy")
        off, spread = np.abs(ours - theirs).max(axis=(0, 1)), np.ptp(theirs, axis=(0, 1))
        told = zip(scorer.channels, off, spread, strict=True)
        print(f"{name}: " + ", ".join(f"{channel} off by {o:.1e} of a spread of {s:.2f}" for channel, o, s in told))
        worst = max(worst, float(off.max()) if (spread > 0.01).all() else np.inf)
    print(f"furthest: {worst:.1e} (allowed: {TOLERANCE:.0e})")
    return int(not worst <= TOLERANCE)


if __name__ == "__main__":
    command, where = sys.argv[1], Path(sys.argv[2])
    sys.exit(make(where) if command == "make" else compare(where))
