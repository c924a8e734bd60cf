"""`pip install beholder` alone: without any extra it measures imported scores, audits noise, and explains the rest."""

from __future__ import annotations

import json
import re
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
for sys.argv in json.loads(sys.argv[1]):
    code = 0
    try:
        main()
    except SystemExit as left:
        code = left.code or 0
    print(f"left with {code}", file=sys.stderr)
"""

EXTRA_OF = {"glasshouse/contrastive": "torch", "onnx:model": "onnx", "openclip:ViT-B-32-quickgelu/openai": "openclip"}


@pytest.mark.real
def test_imported_scores_are_measured(data: Path, golden: Path, tmp_path: Path):
    words = ["measure", "apa", "--scores", golden / "logits_senate.npy", "--data", data, "--out", tmp_path]
    command = [sys.executable, "-c", BLOCK + "main()", *map(str, words), "--draws", "100"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").is_file()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What an audit of noise and audits of what needs an extra print, one after the other in one process."""
    folder = tmp_path_factory.mktemp("core")
    (folder / "model").mkdir()
    for name in ("config.json", "image.onnx", "text.onnx", "tokenizer.json"):
        (folder / "model" / name).write_text(CONFIG if name == "config.json" else "")
    noise = ["beholder", "audit", "null", "--limit", "2", "--draws", "100", "--out", "noise", "--store", "store"]
    others = [["beholder", "audit", model, "--out", "run", "--store", "store"] for model in EXTRA_OF]
    command = [sys.executable, "-c", BLOCK + ONE_BY_ONE, json.dumps([noise, *others])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
    return re.split(r"(?<=left with \d\n)", done.stderr)


@pytest.mark.slow
def test_noise_is_audited_in_the_embedded_world(told: list[str]):
    assert told[0].endswith("left with 0\n"), told


@pytest.mark.slow
def test_a_missing_extra_is_explained_with_the_command_to_add_it(told: list[str]):
    assert not [text for text in told if "Traceback" in text]
    for mine, extra in zip(told[1:], [*EXTRA_OF.values(), None], strict=True):
        if extra:
            assert mine.endswith("left with 2\n")
            assert f"pip install 'beholder-audit[{extra}]'" in mine


CONFIG = """{"image": {"file": "image.onnx", "input": "pixel_values", "output": "image_embeds", "size": 224,
"max_batch": 1, "resize": "shortest edge, bicubic", "crop": "center", "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]},
"text": {"file": "text.onnx", "inputs": ["input_ids", "attention_mask"], "output": "text_embeds",
"tokenizer": "tokenizer.json", "max_length": 64}, "embedding_dim": 8, "logit_scale": 10.0}"""
