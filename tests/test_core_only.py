"""`pip install beholder` alone: without any extra it measures imported scores, audits noise, and explains the rest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXTRAS = (
    "torch",
    "transformers",
    "onnxruntime",
    "tokenizers",
    "open_clip",
    "huggingface_hub",
    "safetensors",
    "accelerate",
)
BLOCK = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from beholder.cli import main
"""
ONE_BY_ONE = """
import json
for place, sys.argv in enumerate(json.loads(sys.argv[1])):
    try:
        main()
    except SystemExit as left:
        print(f"left {place} with {left.code}", file=sys.stderr)
"""


def beholder(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCK + "main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.real
def test_imported_scores_are_measured(data: Path, golden: Path, tmp_path: Path):
    done = beholder("measure", "apa", "--scores", golden / "logits_senate.npy", "--data", data, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").is_file()


@pytest.mark.slow
def test_noise_is_audited_in_the_embedded_world(tmp_path: Path):
    done = beholder("audit", "null", "--limit", 2, "--draws", 100, "--out", tmp_path / "run", "--store", tmp_path / "s")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_missing_extra_is_explained_with_the_command_to_add_it(tmp_path: Path):
    for name in ("config.json", "image.onnx", "text.onnx", "tokenizer.json"):
        (tmp_path / name).write_text(CONFIG if name == "config.json" else "")
    extras = {
        "glasshouse/contrastive": "torch",
        f"onnx:{tmp_path}": "onnx",
        "openclip:ViT-B-32-quickgelu/openai": "openclip",
    }
    places = ["--out", str(tmp_path / "run"), "--store", str(tmp_path / "s")]
    commands = json.dumps([["beholder", "audit", model, *places] for model in extras])
    command = [sys.executable, "-c", BLOCK + ONE_BY_ONE, commands]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "Traceback" not in told
    for place, extra in enumerate(extras.values()):
        mine, told = told.split(f"left {place} with 2\n")
        assert f"pip install 'beholder-audit[{extra}]'" in mine


CONFIG = """{"image": {"file": "image.onnx", "input": "pixel_values", "output": "image_embeds", "size": 224,
"max_batch": 1, "resize": "shortest edge, bicubic", "crop": "center", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]},
"text": {"file": "text.onnx", "inputs": ["input_ids", "attention_mask"], "output": "text_embeds",
"tokenizer": "tokenizer.json", "max_length": 64}, "embedding_dim": 8, "logit_scale": 10.0}"""
