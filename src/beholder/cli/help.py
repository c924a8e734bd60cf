"""What `--help` adds to the options: examples to copy, and types as a person would name them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from rich.markup import escape
from typer.core import TyperCommand

EXAMPLES = {
    "audit": (
        ("the embedded models in their world, offline", "beholder audit"),
        ("a hub model on photographs", "beholder audit openai/clip-vit-base-patch32 -s apa --data DIR"),
        ("two models, a quick look", "beholder audit onnx:A onnx:B -s disparity --data DIR --limit 50"),
        ("your own images and prompts", "beholder audit MODEL --dataset folder:PHOTOS --prompts words.csv --by gender"),
    ),
    "measure": (
        ("a table of scores", "beholder measure apa --scores scores.parquet --data DIR --model mine"),
        ("a detector's COCO results", "beholder measure disparity --scores results.json --data DIR"),
    ),
    "compare": (
        ("a model before and after a change", "beholder compare ./before ./after -s apa --data DIR"),
        ("two runs, from their stored scores", "beholder compare RUN-1 RUN-2"),
        ("against noise, in the embedded world", "beholder compare null glasshouse/contrastive"),
    ),
    "gate": (
        ("a run against rules", "beholder gate RUN --rules gate.toml"),
        ("no worse than the last release", "beholder gate RUN --rules gate.toml --baseline LAST-RUN --junit gate.xml"),
    ),
    "report": (
        ("the page of a run again", "beholder report RUN"),
        ("charts for a paper", "beholder report RUN --figures figures"),
    ),
    "replicate": (
        ("do the printed tables agree with themselves", "beholder replicate"),
        ("compare a run with the printed numbers of its model", "beholder replicate RUN --as ViT-B/32"),
    ),
    "calibrate": (
        ("one study in noise, quickly", "beholder calibrate -s gras --world noise --worlds 100"),
        ("everything, as in the docs", "beholder calibrate --into docs/calibration.md"),
    ),
    "plan": (
        ("what can be seen with these images", "beholder plan apa --data DIR"),
        ("how many images a gap of 5 points takes", "beholder plan gras --data DIR --effect 0.05"),
        ("what a model costs here, rehearsed for 10 seconds", "beholder plan apa --data DIR --cost ./clip"),
        (
            "the same for a million images on eight H200",
            "beholder plan gras --data DIR --cost Qwen2.5-VL-3B-Instruct --on h200 --cards 8 --images 1000000",
        ),
    ),
    "models": (("what fits into this machine", "beholder list models --fits --max-parameters 500M"),),
    "prompts": (
        ("what GRAS asks", "beholder list prompts -s gras"),
        ("check a file of your own", "beholder list prompts --file words.csv"),
    ),
    "verify": (
        ("open every image and name those that are damaged", "beholder data verify apa --data DIR"),
        ("measure a run again from its stored scores", "beholder verify RUN"),
    ),
    "clean": (("models that nobody used for a month", "beholder store clean --older-than 30d"),),
    "fetch": (("into DIR/apa", "beholder data fetch apa --data DIR"),),
    "generative": (
        ("on this machine, small", "beholder bench generative llava-1.5-7b"),
        ("on a GPU, at true size", "beholder bench generative --full"),
    ),
}
"""By the last word of the command: what for, and what to type."""


FORMERLY = re.compile(r"^(?:--benchmark|-b)(=.*)?$", re.DOTALL)


class Command(TyperCommand):
    """A command whose help ends with examples."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        self.help = "\n\n".join(" ".join(part.split()) for part in (self.help or "").split("\n\n"))
        self.show_examples(EXAMPLES.get(name or "", ()))
        for param in self.params:
            vars(param)["display_type_rich"] = partial(_kind, param)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments; `--benchmark` and `-b` are read as `--study`, as they were called before 1.0."""
        known = {option for param in self.params for option in param.opts}
        end = args.index("--") if "--" in args else len(args)
        if "--study" in known:
            args = [FORMERLY.sub(r"--study\1", each) if place < end else each for place, each in enumerate(args)]
        return super().parse_args(ctx, args)

    def show_examples(self, examples: Sequence[tuple[str, str]]) -> None:
        """End the help with these: what for, and what to type."""
        lines = [f"{what}:\n\n  [bold]{escape(typed)}[/bold]" for what, typed in examples]
        self.epilog = "\n\n".join(["[dim]Examples[/dim]", *lines]) if lines else None


def _kind(param: Any, ctx: Any) -> str | None:
    """What an option takes: nothing is said of a switch, and a list is several of a kind."""
    if getattr(param, "is_flag", False):
        return None
    kind = str(type(param).display_type_rich(param, ctx) or "")
    return kind.replace("list[", "").replace("]", "").lower()
