"""`beholder plan --cost`: what is counted is what the engine does, what is predicted is what a run takes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.errors import ModelError, UnknownName, UsageError
from beholder.cost.estimate import CHECKED, START, CostOptions, costs, device
from beholder.cost.subject import known_configs, subject_of
from beholder.cost.work import CHANNELS, RUN, Counter, estimated, padded, pictures_of, reading
from beholder.datasets import load_dataset
from beholder.studies import STUDIES

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "speed"))
H200 = CostOptions(on="h200")


def planned(*words: str) -> list[dict[str, object]]:
    done = CliRunner().invoke(app, ["plan", *words, "--json"], catch_exceptions=False)
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


# Tokens


def test_tokens_are_split_as_counted_by_hand():
    """A picture of two, a trunk of one, a branch of two for two of three questions."""
    trunk = [90, 7, 7, 1]
    read = reading([[*trunk, 2, 3, 4], [*trunk, 2, 3, 5, 6], [*trunk, 8]], 2, shared=True)
    assert (read.picture, read.trunk, read.branches, read.leaves) == (2, 2, 2, 4)
    assert (read.read, read.text, read.one_by_one, read.text_one_by_one) == (10, 8, 7 + 8 + 5, 20 - 6)
    assert reading([[1, 2], [1, 2, 3], [1]], 0, shared=False, at_once=2).read == 2 * 2 + 3  # padded by two


def test_words_are_estimated_with_the_form_of_a_chat():
    read = estimated(["Is she kind?", "Is she rude?"], 9, shared=True)
    assert (read.picture, read.trunk, read.branches, read.leaves) == (9, 15 + 2, 0, 2 * (2 + 5))


def test_texts_are_padded_as_a_tower_reads_them():
    assert padded([3, 5, 4], 2, 77, full=False) == [(2, 5), (1, 4)]
    assert padded([3, 5, 90], 2, 64, full=False) == [(2, 5), (1, 64)]
    assert padded([3, 5, 4], 2, 64, full=True) == [(2, 64), (1, 64)]
    assert [count for count, _ in padded([1] * 300, 200, 0, full=False)] == [200, 56, 44]  # a part of 256 comes first


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llava", "qwen2_5_vl", "gemma3", "paligemma"])
def test_a_generative_model_reads_as_many_tokens_and_computes_as_many_flop_as_counted(
    family: str, tiny_generative: Callable[[str], Path]
):
    """Counted in the engine itself while it answers: tokens at the language model's door, FLOP by torch."""
    torch = pytest.importorskip("torch")
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    from beholder.datasets.images import open_image
    from beholder.models.generative.sharing import ASKED_BOTH_WAYS
    from beholder.models.generative.tree import language_model
    from beholder.models.generative.tree_attention import RUN as ENGINE_RUN
    from beholder.models.load import load_model

    folder, study = tiny_generative(family), STUDIES["gras"]
    work = Counter(subject_of(str(folder))).work(study, load_dataset("glasshouse-faces").limit(4))
    (task,), uri = work.tasks, work.pictures.sample[0]
    assert task.reading is not None
    scorer = load_model(str(folder)).instructed(study.asks.instruction)  # type: ignore[attr-defined]
    picture, prompts = scorer.prepare(open_image(uri)), list(task.prompts)
    scorer.score_prepared([picture], prompts)  # its first answers are checked one by one
    tokens = 0

    def add(module: object, states: tuple[Any, ...]) -> None:
        nonlocal tokens
        tokens += int(np.prod(states[0].shape[:2]))

    language_model(scorer._loaded.model).layers[0].register_forward_pre_hook(add)
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        scorer.score_prepared([picture], prompts)
    assert tokens == task.reading.read
    assert (RUN, CHECKED) == (ENGINE_RUN, ASKED_BOTH_WAYS)
    assert work.flop is not None
    assert work.flop / work.images == pytest.approx(counter.get_total_flops(), rel=0.04)
    assert len(scorer.channels) == CHANNELS["generative"]


@pytest.mark.slow
def test_two_towers_are_counted_without_torch():
    code = "import sys; from beholder.cli import app; app(standalone_mode=False); assert 'torch' not in sys.modules"
    words = ["plan", "apa", "--cost", "ViT-B/32", "--on", "h200", "--json"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)
    assert (found["images"], found["picture_tokens"]) == (420, 420 * 49)
    assert found["vision_flop"] == pytest.approx(420 * 8.82e9, rel=0.01)


# Time


def test_what_was_measured_on_an_h200_is_predicted_within_a_factor_of_one_and_a_half():
    from cost import h200

    found = list(h200())
    assert len(found) == 9
    assert {line.what: line.ratio for line in found if not 1 / 1.5 < line.ratio < 1.5} == {}


@pytest.mark.slow
def test_a_run_takes_the_processor_time_that_its_rehearsal_says(drawn_once: Any, monkeypatch: pytest.MonkeyPatch):
    """By the clock it is as good on an idle machine; `python speed/cost.py here` prints both."""
    from cost import here

    monkeypatch.setattr("beholder.glasshouse.portrait.open_uri", drawn_once)
    found = {line.what.rpartition(": ")[2]: line.ratio for line in here(["glasshouse/contrastive"], 60, rehearse=2.0)}
    assert 1 / 2 < found["processor seconds"] < 2  # other work on the machine costs processor time too
    assert found["KB written"] == pytest.approx(1, abs=0.2)


@pytest.mark.slow
def test_twice_the_gpus_take_half_the_time_and_more_images_more():
    def seconds(**more: Any) -> float:
        (cost,) = costs(["ViT-L/14"], [STUDIES["apa"]], CostOptions(on="h200", images=10**6, **more))
        assert cost.seconds
        assert cost.seconds.low < cost.seconds.expected < cost.seconds.high
        return cost.seconds.expected - START

    assert seconds(gpus=2) == pytest.approx(seconds() / 2)
    assert seconds(precision="float32") == pytest.approx(seconds(precision="bfloat16") * 989 / 67, rel=0.01)


@pytest.mark.slow
def test_the_slowest_stage_is_named():
    def slowest(name: str, **more: Any) -> str | None:
        return costs([name], [STUDIES["gras"]], CostOptions(on="h200", precision="bfloat16", **more))[0].bottleneck

    assert slowest("ViT-B/32", cores=1) == "opening images"
    assert slowest("ViT-L/14@336px", cores=64) == "image tower"
    assert slowest("Qwen2.5-VL-7B-Instruct") == "language model"


@pytest.mark.slow
def test_a_folder_without_weights_is_rehearsed_with_random_ones(clip_copy: Path):
    (clip_copy / "model.safetensors").unlink()
    options = CostOptions(dataset="glasshouse", rehearse=0.2)
    (cost,) = costs([str(clip_copy)], [STUDIES["apa"]], options)
    assert cost.rehearsed
    assert cost.seconds
    assert "random weights" in cost.notes[-1]
    config = json.loads((clip_copy / "config.json").read_text())
    (clip_copy / "config.json").write_text(
        json.dumps(config | {"text_config": {**config["text_config"], "vocab_size": 10**9}})
    )
    (cost,) = costs([str(clip_copy)], [STUDIES["apa"]], options)
    assert cost.seconds is None
    assert "too large to be built with random ones (32.0 billion weights" in cost.notes[-1]


# Money


@pytest.mark.slow
def test_a_served_model_costs_what_its_tokens_cost():
    """The picture goes with each question: 120 × 120 questions of 64 picture tokens and some words."""
    served = "openai:Qwen2.5-VL-7B-Instruct@http://127.0.0.1:9/v1"
    (found,) = planned("gras", "--cost", served, "--price-in", "0.5", "--price-out", "2")
    assert found["requests"] == found["tokens_out"] == 14_400
    assert found["picture_tokens"] == 14_400 * 64
    assert found["money"] == pytest.approx((float(str(found["tokens_in"])) * 0.5 + 14_400 * 2) / 1e6)
    assert found["seconds"] is None
    unknown = served.replace("Qwen2.5-VL-7B-Instruct", "mystery")
    (found,) = planned("gras", "--cost", unknown, "--price-in", "0.5")
    assert (found["tokens_in"], found["money"]) == (None, None)
    (found,) = planned("gras", "--cost", unknown, "--price-in", "0.5", "--picture-tokens", "100")
    assert found["picture_tokens"] == 1_440_000


# What is not known


def test_what_is_not_known_is_said():
    (found,) = planned("apa", "--cost", "RN50", "--on", "h200")
    assert (found["flop"], found["seconds"], found["bytes_written"]) == (None, None, None)
    assert found["weight_bytes"] == 4 * 102_007_137
    (found,) = planned("apa", "--cost", "ViT-B/32")
    assert (found["seconds"], found["rehearsed"]) == (None, False)
    assert str(found["notes"]).count("weights are not on this machine") == 1
    with pytest.raises(UnknownName, match="h300"):
        device("h300")
    with pytest.raises(UnknownName, match="nonsense"):
        subject_of("nonsense")
    with pytest.raises(ModelError, match="owner/unheard-of"):
        subject_of("owner/unheard-of")
    with pytest.raises(UsageError, match="--on NAME"):
        CostOptions(gpus=2)


def test_what_a_config_leaves_out_has_the_librarys_default(tmp_path: Path):
    """As published: Gemma 3 leaves out its heads, whose width of 256 does not follow from the rest."""
    whole = known_configs()["google/gemma-3-4b-it"]
    left_out = ("num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size", "tie_word_embeddings")
    text = {name: value for name, value in whole["text_config"].items() if name not in left_out}
    (tmp_path / "config.json").write_text(json.dumps({**whole, "text_config": text}))
    subject = subject_of(str(tmp_path))
    assert subject.parameters == pytest.approx(subject_of("Gemma-3-4b-it").parameters, rel=0.001)
    assert (subject.kind, subject.here) == ("generative", False)


def test_images_that_are_not_there_are_assumed_and_counted_in_the_table(people: Callable[..., Path]):
    folder = people(24)
    for path in folder.glob("*.png"):
        path.unlink()
    (cost,) = costs(["ViT-B/32"], [STUDIES["perception"]], replace(H200, dataset=f"folder:{folder}"))
    assert cost.work.pictures.count == 24
    assert "640 × 480 pixels and 180 KB are assumed" in cost.notes[0]


def test_pictures_are_looked_at(people: Callable[..., Path]):
    folder = people(24)
    pictures = pictures_of(load_dataset(f"folder:{folder}"))
    files = sorted(folder.glob("*.png"))
    assert len(pictures.sample) == 16
    assert pictures.bytes_each == pytest.approx(np.mean([path.stat().st_size for path in files]), rel=0.2)


def test_the_page_has_the_numbers_that_the_command_prints():
    from cost import MODELS, cluster

    assert sum(MODELS.values()) == 100
    assert set(MODELS) <= set(known_configs())
    page = (ROOT / "docs" / "cost.md").read_text()
    assert "\n".join(cluster()) in page


def test_the_table_for_people_names_every_quantity():
    done = CliRunner().invoke(app, ["plan", "gras", "--cost", "Qwen2.5-VL-3B-Instruct", "--on", "h200"])
    for word in ("picture tokens", "trunk / branches / leaves", "one by one", "FLOP", "weights", "written", "time"):
        assert word in done.stdout
