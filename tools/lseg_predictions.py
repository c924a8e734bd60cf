"""LSeg's probabilities of a list of concepts, in the form that `beholder measure` reads.

    cd lang-seg && python /path/to/beholder/tools/lseg_predictions.py concepts.txt IMAGES OUT

Run in the folder and environment of `isl-org/lang-seg`, with its demo checkpoint in `checkpoints/demo_e200.ckpt`; the
settings are those of its `lseg_app.py`. The first concept should be `other`. For every picture, OUT gets a map of
probabilities: a softmax over the concepts in every pixel, and of each square of 8 × 8 pixels the largest, so that the
likeliest pixel of each concept stays what it is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

SQUARE = 8


def main(concepts_file: str, images_folder: str, out_folder: str) -> None:
    """One `.npz` for every picture, and `labels.json`."""
    import torch
    from PIL import Image

    concepts = Path(concepts_file).read_text().splitlines()
    images, out = sorted(Path(images_folder).iterdir()), Path(out_folder)
    segmenter, prepare = _segmenter()
    out.mkdir(parents=True, exist_ok=True)
    for image in images:
        pixels = prepare(np.array(Image.open(image).convert("RGB"))).unsqueeze(0)
        with torch.no_grad():
            scores = segmenter.parallel_forward(pixels, concepts)[0].float()
        shown = torch.nn.functional.max_pool2d(scores.softmax(dim=1), SQUARE, ceil_mode=True)[0]
        np.savez_compressed(out / f"{image.stem}.npz", shown.cpu().numpy().astype(np.float32))
    (out / "labels.json").write_text(json.dumps(concepts))


def _segmenter() -> tuple[Any, Any]:
    """LSeg by its own code, and what prepares a picture for it."""
    sys.path.insert(0, str(Path.cwd()))
    from additional_utils.models import LSeg_MultiEvalModule
    from encoding.models.sseg import BaseNet
    from modules.lseg_module import LSegModule
    from torchvision import transforms

    module = LSegModule.load_from_checkpoint(
        checkpoint_path="checkpoints/demo_e200.ckpt",
        data_path="../datasets/",
        dataset="ade20k",
        backbone="clip_vitl16_384",
        aux=False,
        num_features=256,
        aux_weight=0,
        se_loss=False,
        se_weight=0,
        base_lr=0,
        batch_size=1,
        max_epochs=0,
        ignore_index=255,
        dropout=0.0,
        scale_inv=False,
        augment=False,
        no_batchnorm=False,
        widehead=True,
        widehead_hr=False,
        map_locatin="cpu",
        arch_option=0,
        block_depth=0,
        activation="lrelu",
    )
    model = (module.net if isinstance(module.net, BaseNet) else module).eval().cpu()
    halves = [0.5, 0.5, 0.5]
    model.mean, model.std = halves, halves
    segmenter = LSeg_MultiEvalModule(model, scales=[0.5, 0.75, 1.0, 1.25, 1.5, 1.75], flip=True).cuda().eval()
    steps = [transforms.ToTensor(), transforms.Normalize(halves, halves), transforms.Resize([360, 480])]
    return segmenter, transforms.Compose(steps)


if __name__ == "__main__":
    main(*sys.argv[1:])
