"""`beholder init`: a folder with everything that an audit of one's own needs, from three answers."""

import os
import sys
from pathlib import Path

import typer

from beholder.cli.console import note, say
from beholder.cli.options import as_toml, moved
from beholder.core.errors import UsageError
from beholder.core.files import write_whole
from beholder.datasets import data_root, load_dataset
from beholder.datasets.survey import columns_of

FILES = Path(__file__).with_name("init")
WORKFLOW = Path(".github", "workflows", "beholder.yml")
EMBEDDED = "glasshouse"


def init_command(
    folder: Path = Path(),
    model: str | None = None,
    dataset: str | None = None,
    by: list[str] | None = None,
    data: Path | None = None,
) -> None:
    """It asks for what no option says, if somebody is there to answer. No file is overwritten."""
    asking = sys.stdin.isatty()
    files = [folder / name for name in ("audit.toml", "prompts.csv", "gate.toml")] + [folder / WORKFLOW]
    if there := [str(path) for path in files if path.exists()]:
        raise UsageError(f"{', '.join(there)} exists and is not overwritten. Name another folder, or delete it.")
    model = _answer(model, "Which model (a hub id, ./a-folder, onnx:DIR)?", "glasshouse/contrastive", asking)
    dataset = _answer(dataset, "Which photographs (folder:PATH; drawn people if you have none)?", EMBEDDED, asking)
    people = load_dataset(dataset, data_root(data))
    kinds = [column.name for column in columns_of(people) if column.role in ("groups", "numbers")]
    if not by and not kinds:
        raise UsageError(f"{dataset} has no label by which people could be compared. It has: {people.attributes}.")
    usual = "gender" if "gender" in kinds else next(iter(kinds), "")
    by = by or _answer(None, f"Compared by which labels ({', '.join(kinds)})?", usual, asking).split(",")
    by = [people.attribute(name.strip()).name for name in by]
    folder.mkdir(parents=True, exist_ok=True)
    here, home = Path.cwd(), folder.resolve()
    named = {"models": [moved(model, here, home)], "dataset": moved(dataset, here, home), "prompts": "prompts.csv"}
    chosen = {**named, "by": by, **({"data": os.path.relpath(data, home)} if data else {})}
    lines = ["# `beholder audit --config audit.toml`, from any folder: paths begin in the folder of this file."]
    lines += [f"{key} = {as_toml(value)}" for key, value in chosen.items()]
    texts = {path.name: path.read_text("utf-8") for path in FILES.iterdir()}
    texts["audit.toml"] = "\n".join(lines) + "\n"
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, texts[path.name].encode("utf-8", "replace"))
        say(f"Written: {path}")
    note(f"Next: beholder audit --config {folder / 'audit.toml'}")


def _answer(given: str | None, question: str, usual: str, asking: bool) -> str:
    """What was given, what is answered, or what is usual."""
    if given is not None:
        return given
    return str(typer.prompt(question, default=usual, err=True)) if asking else usual
