"""A tiny CLIP is really trained for a few steps, and audited on the way; its training is not changed by that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chained_environment import chained_python, run_tests

import beholder
from beholder._run import load_run
from beholder._training import callback
from beholder.core.errors import MissingExtra, UsageError

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
trained_here = pytest.mark.skipif(not transformers.utils.is_accelerate_available(), reason="accelerate is not here")


@pytest.fixture
def train(
    tiny_model: Callable[[str], Path], people: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Four steps of training on eight pictures of noise."""
    trainer = pytest.importorskip("transformers.trainer")
    monkeypatch.setattr(trainer, "is_datasets_available", lambda: False)  # it takes tests/datasets for the library
    folder = tiny_model("clip")
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(0)
    texts = tokenizer(["kind", "cold", "a dog", "a man"] * 2, padding=True, return_tensors="pt")
    pixels = torch.rand(8, 3, 32, 32)
    items = [
        {"pixel_values": pixels[n], "return_loss": True, **{name: values[n] for name, values in texts.items()}}
        for n in range(8)
    ]
    (tmp_path / "moods.csv").write_text("text\na warm person\na cold person\n")
    people(20)

    def collate(batch: list[Any]) -> dict[str, Any]:
        names = [name for name in batch[0] if name != "return_loss"]
        return {**{name: torch.stack([each[name] for each in batch]) for name in names}, "return_loss": True}

    def trained(out: str, **audited: Any) -> Any:
        model = transformers.CLIPModel.from_pretrained(folder)
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / out),
            max_steps=4,
            per_device_train_batch_size=4,
            learning_rate=0.1,
            logging_steps=2,
            report_to="none",
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
            remove_unused_columns=False,
            seed=1,
        )
        given = {
            "prompts": tmp_path / "moods.csv",
            "dataset": f"folder:{tmp_path / 'people'}",
            "by": "gender",
            "draws": 100,
        }
        audits = [callback(processor=(processor, tokenizer), **{**given, **audited})] if audited else []
        trainer = transformers.Trainer(model, arguments, train_dataset=items, data_collator=collate, callbacks=audits)
        trainer.train()
        return trainer, *audits

    return trained


@trained_here
@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
@pytest.mark.filterwarnings("ignore")
def test_a_model_is_audited_while_it_is_trained(train: Callable[..., Any], tmp_path: Path):
    (plain,) = train("plain")
    trainer, audits = train("audited", every=2)
    assert list(audits.runs) == [2, 4]
    logged = [entry for entry in trainer.state.log_history if any(name.startswith("beholder/") for name in entry)]
    assert [entry["step"] for entry in logged] == [2, 4]
    for entry, run in zip(logged, audits.runs.values(), strict=True):
        row = run.findings[0].rows[0]
        assert row["value"] in entry.values()
        assert run.record.models[0]["name"] == f"step {entry['step']}"
    two, four = (run.scores()["score"].to_list() for run in audits.runs.values())
    assert two != four, "the model of step 4 is another than that of step 2"
    assert load_run(tmp_path / "audited" / "beholder" / "step-4").results.height
    weights = [trained.model.state_dict() for trained in (plain, trainer)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0]), "the audits changed nothing"
    assert trainer.model.training


@pytest.mark.slow
@pytest.mark.skipif(transformers.utils.is_accelerate_available(), reason="accelerate is installed here")
def test_a_model_is_trained_where_accelerate_is():
    python = chained_python("trainer", ["accelerate==1.15.0", "psutil==7.2.2"])
    run_tests(python, [f"{__file__}::test_a_model_is_audited_while_it_is_trained"])


def test_a_callback_without_accelerate_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("beholder._training.find_spec", lambda name: None)
    with pytest.raises(
        MissingExtra, match=r"needs accelerate.*\nInstall it with: pip install 'beholder-audit\[large\]'"
    ):
        callback()


def test_a_callback_without_a_processor_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("beholder._training.find_spec", lambda name: name)
    with pytest.raises(UsageError, match="processing_class"):
        callback().on_train_begin(None, None, None)
    assert beholder.callback is callback
