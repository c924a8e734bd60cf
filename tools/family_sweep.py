"""Every architecture of transformers for pictures and text, built tiny with random weights and tried with Beholder.

    python tools/family_sweep.py                            # all of them
    python tools/family_sweep.py image-text-to-text         # those of one task
    python tools/family_sweep.py llava git                  # these model types

It writes `src/beholder/models/architectures.csv`, and docs/model-families.md from it. Run it where torchvision and
timm are installed (`pip install '.[vision]'`): without them some models cannot be built.

A pipeline task is one module beside this file, `family_sweep_TASK.py`, that offers `cases() -> list[Case]`. A case
says how a tiny checkpoint is written and what the model's own forward pass gives. Each case runs in a process of
its own: a library that breaks, hangs or eats memory costs one row.
"""

from __future__ import annotations

import csv
import multiprocessing
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "docs" / "model-families.md"
LIST = Path(__file__).parents[1] / "src" / "beholder" / "models" / "architectures.csv"
EXACT, REFUSED, NOT_BUILT = "exact", "refused", "not built"
TOLERANCE = 1e-4
FORK = multiprocessing.get_context("fork")
SECONDS = 600
"""How long one case may take."""
SMALL: Mapping[str, object] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "image_size": 32,
    "patch_size": 8,
}
"""What is shrunk in every configuration that has it."""


class NotBuiltError(Exception):
    """The tiny model cannot be made here; the message says why."""


@dataclass(frozen=True)
class Case:
    """One architecture."""

    task: str
    """A pipeline task of transformers: image-text-to-text, zero-shot-image-classification …"""
    model_type: str
    architecture: str
    write: Callable[[Path], None]
    """Writes a tiny checkpoint into a folder; raises `NotBuiltError` where there is none."""
    compare: Callable[[Path], Comparison]
    """Loads that folder with Beholder and compares it with the model's own forward pass."""
    extra: str = ""
    """The optional part of Beholder that this family needs beside `torch`."""


@dataclass(frozen=True)
class Comparison:
    """What came of a checkpoint that Beholder took."""

    difference: float
    """The largest difference to the model's own forward pass."""
    way: str = ""
    """How questions or prompts share work; empty where there is nothing to share."""


@dataclass(frozen=True)
class Outcome:
    """One row of the table."""

    task: str
    model_type: str
    architecture: str
    state: str
    """exact, refused, not built, or `differs` where the two are further apart than the tolerance."""
    why: str = ""
    difference: float | None = None
    way: str = ""
    extra: str = ""
    """The optional part of Beholder that this family needs beside `torch`."""


def tasks() -> dict[str, list[Case]]:
    """The cases of every module beside this one."""
    modules = sorted(path.stem for path in Path(__file__).parent.glob("family_sweep_*.py"))
    found: dict[str, list[Case]] = {}
    for module in modules:
        for case in import_module(module).cases():
            found.setdefault(case.task, []).append(case)
    return found


def try_case(case: Case, folder: Path) -> Outcome:
    """Build, load and compare."""
    from beholder.core.errors import BeholderError

    row = {"task": case.task, "model_type": case.model_type, "architecture": case.architecture, "extra": case.extra}
    built = False
    try:
        case.write(folder)
        built = True
        result = case.compare(folder)
    except BeholderError as error:
        why = _reason(error).replace(f"{folder} ", "the folder ").replace(str(folder), "the folder")
        return Outcome(**row, state=REFUSED, why=why)
    except Exception as error:
        if built:
            raise
        return Outcome(**row, state=NOT_BUILT, why=_reason(error))
    state = EXACT if result.difference <= TOLERANCE else "differs"
    return Outcome(**row, state=state, difference=result.difference, way=result.way)


def _apart(case: Case, seconds: float) -> Outcome:
    """A case in a process of its own, which begins with all libraries loaded."""
    own, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_tell, args=(theirs, case), daemon=True)
    process.start()
    theirs.close()
    outcome = Outcome(case.task, case.model_type, case.architecture, "broke", "its process died", extra=case.extra)
    if own.poll(seconds):
        with suppress(EOFError):
            outcome = own.recv()
    else:
        why = f"it took more than {seconds:.0f} seconds"
        outcome = replace(outcome, state=NOT_BUILT, why=why)
        process.kill()
    process.join()
    print(f"{outcome.task:32} {outcome.model_type:24} {outcome.state:10} {outcome.why[:300]}", file=sys.stderr)
    return outcome


def _tell(pipe: Any, case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            outcome = try_case(case, Path(folder) / "model")
        except Exception as error:
            row = (case.task, case.model_type, case.architecture)
            outcome = Outcome(*row, "broke", _reason(error), extra=case.extra)
    pipe.send(outcome)


def _reason(error: BaseException) -> str:
    """An error as one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, NotBuiltError) or _ours(error) else f"{type(error).__name__}: {text[:300]}"


def _ours(error: BaseException) -> bool:
    return type(error).__module__.startswith("beholder.")


def as_row(outcome: Outcome) -> dict[str, str]:
    """One line of the list of architectures."""
    return {
        "task": outcome.task,
        "model_type": outcome.model_type,
        "architecture": outcome.architecture,
        "state": outcome.state,
        "shared": outcome.way,
        "extra": outcome.extra,
        "why": outcome.why[:300],
        "difference": "" if outcome.difference is None else f"{outcome.difference:.0e}",
    }


def write_list(outcomes: Sequence[Outcome]) -> None:
    """The list of architectures, others as they were, and the page made of it."""
    tried = {(outcome.task, outcome.model_type) for outcome in outcomes}
    with LIST.open(newline="", encoding="utf-8") as file:
        kept = [{**row, "difference": row.get("difference", "")} for row in csv.DictReader(file)]
    rows = [*(row for row in kept if (row["task"], row["model_type"]) not in tried), *map(as_row, outcomes)]
    ordered = sorted(rows, key=lambda row: (row["task"], row["model_type"]))
    with LIST.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, as_row(outcomes[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(ordered)
    TABLE.write_text(markdown(ordered), encoding="utf-8")


def markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """The table of the docs."""
    import transformers

    parts = [
        "# Model families",
        "",
        f"Made by `python tools/family_sweep.py` with transformers {transformers.__version__}. Each architecture was "
        "built tiny, with random weights, and scored by Beholder and by its own forward pass; Chameleon, Ernie 4.5 VL, "
        "Gemma 4, Llama 4 and Qwen2.5-Omni, whose defaults do not shrink, as tiny models made by hand.",
        "",
        f"- **exact**: the two differ by at most {TOLERANCE:g}.",
        "- **refused**: Beholder does not score it, for the reason given.",
        "- **not built**: no tiny model could be made, for the reason given. Nothing is known of it here; a model that "
        "answers in words is proved when it is loaded.",
        "",
        "*Computed once*: what serves many questions about a picture, or many pictures. *Extra*: what it needs beside "
        "`.[torch]`, as in `pip install '.[vision]'`.",
    ]
    for task in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        count = Counter(row["state"] for row in own)
        parts += ["", f"## {task}", "", ", ".join(f"{number} {state}" for state, number in count.items()) + "."]
        parts += ["", "| model type | architecture | | difference | computed once | extra | why |", "|" + "---|" * 7]
        parts += [_line(row) for row in own]
    return "\n".join(parts) + "\n"


def _line(row: Mapping[str, str]) -> str:
    named = [f"`{row['model_type']}`", f"`{row['architecture']}`"]
    extra = f"`{row['extra']}`" if row["extra"] else ""
    cells = [*named, row["state"], row["difference"], row["shared"], extra, row["why"]]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def tokenizer_with(special: Mapping[str, str]) -> Any:
    """A byte-level BPE, learnt from a few sentences, with a family's special tokens by the names it looks for."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    sentences = [
        "Yes Yes Yes No No No yes yes no no YES NO true true false false",
        "Is the person in the image a woman? Is the person in the image a man?",
        "a photo of a doctor, a nurse, a smiling person, the politician and the actress",
        *["true", "false", "Yes", "No"],
        "Question: Answer: user assistant USER ASSISTANT model\n User: Assistant:\n",
    ]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<pad>", "<bos>", "<eos>", "<unk>"],
    )
    tokenizer.train_from_iterator(sentences * 3, trainer)
    named = {name: token for name, token in special.items() if name.endswith("_token")}
    ends = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **ends, extra_special_tokens=named)
    fast.add_special_tokens({"additional_special_tokens": list(dict.fromkeys(special.values()))})
    return fast


def randomise(model: Any, *, seed: int = 3, scale: float = 0.2) -> Any:
    """Weights large enough that a wrong mask or position shows in the scores."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim > 1:
                weights.copy_(torch.randn(weights.shape, generator=generator) * scale)
    return model.eval()


def pictures() -> list[Any]:
    """Two noisy pictures of different shapes."""
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(3)
    return [Image.fromarray(rng.integers(0, 256, shape, np.uint8)) for shape in ((48, 64, 3), (80, 40, 3))]


PROMPTS = ["Is the person in the image a woman?", "nurse", "a photo of a doctor, a nurse and the politician"]


def main(arguments: Sequence[str]) -> None:
    """The command line above."""
    every = tasks()
    outcomes = [
        _apart(case, SECONDS)
        for task, cases in every.items()
        for case in cases
        if not arguments or task in arguments or case.model_type in arguments
    ]
    write_list(outcomes)


if __name__ == "__main__":
    import_module("family_sweep").main(sys.argv[1:])  # the module that the cases import, not a second copy of it
