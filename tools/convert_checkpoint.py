"""Published checkpoints that are no folder a loader knows, made into one.

    python tools/convert_checkpoint.py albef ALBEF.pth vocab.txt OUT    # vocab.txt: that of bert-base-uncased
    python tools/convert_checkpoint.py phi4 SNAPSHOT OUT                # of refs/pr/70, with its folder vision-lora

`beholder audit ./OUT` reads the result. Pickled files are opened as weights alone: code in them does not run.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LOW_RANK = re.compile(r"^(?:base_model\.model\.)?(?P<layer>.+)\.lora_(?P<side>[AB])(?:\.\w+)?\.weight$")


def convert_albef(checkpoint: Path, vocabulary: Path, out: Path) -> None:
    """ALBEF's own `.pth` as safetensors, under the published names, with the configuration that its adapter reads."""
    import torch
    from safetensors.torch import save_file

    loaded = torch.load(checkpoint, map_location="cpu", weights_only=True)
    weights = loaded.get("model", loaded)
    out.mkdir(parents=True, exist_ok=True)
    kept = {name: value.contiguous() for name, value in weights.items() if isinstance(value, torch.Tensor)}
    save_file({name: value.clone() for name, value in kept.items() if "queue" not in name}, out / "model.safetensors")
    (out / "config.json").write_text(json.dumps({"model_type": "albef"}))
    shutil.copyfile(vocabulary, out / "vocab.txt")


def merge_phi4(snapshot: Path, out: Path) -> None:
    """Phi-4-multimodal with its low-rank weights for pictures added to the weights that they change."""
    from safetensors.torch import load_file, save_file

    changes = _changes(snapshot / "vision-lora")
    out.mkdir(parents=True, exist_ok=True)
    left = set(changes)
    for path in sorted(snapshot.iterdir()):
        if path.is_dir():
            continue
        if path.suffix != ".safetensors":
            shutil.copyfile(path, out / path.name)
            continue
        weights = load_file(path)
        for name in left & weights.keys():
            changed = weights[name].float() + changes[name]()
            weights[name] = changed.to(weights[name].dtype).contiguous()
        left -= weights.keys()
        save_file(weights, out / path.name, metadata={"format": "pt"})
    if left:
        raise SystemExit(f"{snapshot} lacks {len(left)} weights that vision-lora changes, such as {sorted(left)[0]}.")


def _changes(folder: Path) -> Mapping[str, Any]:
    """What each weight changes by, computed when asked for: `scale · B · A`."""
    from safetensors.torch import load_file

    settings = json.loads((folder / "adapter_config.json").read_text())
    rank, alpha = settings["r"], settings["lora_alpha"]
    scale = alpha / rank**0.5 if settings.get("use_rslora") else alpha / rank
    parts: dict[str, dict[str, Any]] = {}
    for name, value in load_file(folder / "adapter_model.safetensors").items():
        matched = LOW_RANK.match(name)
        if matched is None:
            raise SystemExit(f"{folder} holds {name}, which is no low-rank weight.")
        parts.setdefault(f"{matched['layer']}.weight", {})[matched["side"]] = value.float()
    return {name: lambda pair=pair: scale * (pair["B"] @ pair["A"]) for name, pair in parts.items()}


COMMANDS = {"albef": (convert_albef, 3), "phi4": (merge_phi4, 2)}


def main(arguments: list[str]) -> None:
    """The command line above."""
    command, count = COMMANDS.get(arguments[0] if arguments else "", (None, 0))
    if command is None or len(arguments) != count + 1:
        raise SystemExit(__doc__)
    command(*map(Path, arguments[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
