"""Detic's boxes for a list of concepts, in the form that `beholder measure` reads.

    cd Detic && python /path/to/beholder/tools/detic_predictions.py concepts.txt IMAGES OUT

Run in the folder and environment of `facebookresearch/Detic`, with its weights in `models/`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

NAME = "Detic_LCOCOI21k_CLIP_SwinB_896b32_4x_ft4x_max-size"


def main(concepts_file: str, images_folder: str, out_folder: str) -> None:
    """Boxes of every concept in every picture, 0.1 and above, as in the study."""
    sys.path.insert(0, str(Path.cwd()))
    import demo  # Detic's own demo.py
    from detectron2.data.detection_utils import read_image
    from detic.predictor import VisualizationDemo

    concepts = Path(concepts_file).read_text().splitlines()
    images, out = sorted(Path(images_folder).iterdir()), Path(out_folder)
    words = ["--config-file", f"configs/{NAME}.yaml", "--vocabulary", "custom", "--pred_all_class"]
    words += ["--custom_vocabulary", ",".join(concepts), "--confidence-threshold", "0.1"]
    args = demo.get_parser().parse_args([*words, "--opts", "MODEL.WEIGHTS", f"models/{NAME}.pth"])
    detector = VisualizationDemo(demo.setup_cfg(args), args).predictor
    out.mkdir(parents=True, exist_ok=True)
    with (out / "results.json").open("w") as file:
        separator = "["
        for image in images:
            for record in _records(image, detector(read_image(str(image), format="BGR"))["instances"].to("cpu")):
                file.write(separator + json.dumps(record))
                separator = ",\n"
        file.write("]" if separator != "[" else "[]")
    categories = [{"id": number, "name": name} for number, name in enumerate(concepts)]
    looked_at = [{"id": image.stem} for image in images]
    (out / "labels.json").write_text(json.dumps({"categories": categories, "images": looked_at}))


def _records(image: Path, instances: Any) -> list[dict[str, Any]]:
    boxes = zip(
        instances.pred_boxes.tensor.tolist(), instances.scores.tolist(), instances.pred_classes.tolist(), strict=True
    )
    return [
        {
            "image_id": image.stem,
            "category_id": number,
            "bbox": [left, top, right - left, bottom - top],
            "score": min(1.0, score),
        }
        for (left, top, right, bottom), score, number in boxes
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
