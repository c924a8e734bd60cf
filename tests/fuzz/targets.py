"""What is fuzzed: a valid file, the folder it lies in, and what the program does with it.

Only an error of ours (`BeholderError`) may come out of a call, whatever the file holds; and where there is none, what
was read is what stands in the file, by other means (`oracles.py`).
"""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import click
import numpy as np
import oracles
import polars as pl
import pyarrow as pa
import typer
from made_runs import apa_results, custom_results, record
from mutations import parquet_of
from PIL import Image, ImageOps
from tiny_two_towers import ONNX_IMAGE

from beholder._gate import judged, read_rules
from beholder._run import Run, load_run
from beholder.chapter.finding import Finding
from beholder.cli import app
from beholder.cli.options import read_config
from beholder.core.results import results_table
from beholder.datasets import load_dataset
from beholder.datasets.coco import load as load_coco
from beholder.datasets.collect import read_names
from beholder.datasets.content import part_of, read_content
from beholder.datasets.dataset import Dataset
from beholder.datasets.faces import load_fairface, load_gras
from beholder.datasets.images import open_image, source_of
from beholder.datasets.labels import parse_maps
from beholder.datasets.settings import read_group_words
from beholder.datasets.visual_genome import load as load_genome
from beholder.models.contrastive.onnx import TableConfig, read_onnx_config, read_text_table
from beholder.models.load import load_model
from beholder.models.predictions import import_predictions
from beholder.models.spec import ModelSpec
from beholder.prompts.prompt_set import correct_cells, read_prompts, read_templates
from beholder.report import drawing
from beholder.report.comparison import SCHEMA as COMPARISON
from beholder.report.comparison import read_comparison, render_comparison
from beholder.report.exports import FORMATS
from beholder.report.facts import prompts_asked
from beholder.report.page import render
from beholder.report.report import build_report, sensitivity_table
from beholder.scores.imported import import_scores, read_score_file
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store, stored_models, verify_store
from beholder.studies.custom.study import CUSTOM
from beholder.studies.disparity.prompts import read_words
from beholder.studies.exposure.captions import CaptionFile
from beholder.studies.exposure.counting import count_captions
from beholder.studies.exposure.mentions import Mentions, Term
from beholder.studies.gras.prompts import read_traits
from beholder.studies.mirror import read_ratings
from beholder.studies.perception.prompts import read_dimensions
from beholder.studies.study import MeasureOptions

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"


class Target(NamedTuple):
    """A file that is damaged in a folder of sound ones, and what is then done with the folder."""

    name: str
    file: str
    files: dict[str, bytes]
    call: Callable[[Path], object]
    weight: float = 1.0
    """How often it is chosen; dear ones seldom."""

    def prepare(self, folder: Path) -> Path:
        """The sound files, once."""
        home = folder / self.name
        if not home.is_dir():
            for name, data in self.files.items():
                path = home / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return home


def one(file: str, data: bytes, call: Callable[[Path], object], *, name: str = "", weight: float = 1.0) -> Target:
    """A file that lies alone; the call is given its path."""
    return Target(name or file, file, {file: data}, lambda folder: call(folder / file), weight)


# Tables


def frame_bytes(columns: dict[str, list[Any]]) -> dict[str, bytes]:
    """The same table as CSV and as Parquet."""
    table = pl.DataFrame(columns)
    return {".csv": table.write_csv().encode(), ".parquet": parquet_of(table)}


N = 12
PROMPTS = {
    "text": ["a calm person", "a tired person", "an angry person"],
    "level": ["mood"] * 3,
    "concept": ["calm", "tired", "angry"],
    "correct_for": ["*", "gender=woman", ""],
}
PEOPLE = {
    "image": [f"{i}.png" for i in range(N)],
    "gender": ["woman" if i % 2 else "man" for i in range(N)],
    "age": [20 + i for i in range(N)],
    "name": [f"person {i // 2}" for i in range(N)],
}
RATINGS = {
    "image": [f"{i}.png" for i in range(6)],
    "trait": ["warmth"] * 6,
    "mean": [0.1 * i for i in range(6)],
    "n": [10] * 6,
}
DIMENSIONS = {
    "dimension": ["warm", "warm", "cold"],
    "word": ["kind", "nice", "distant"],
    "valence": ["positive", "positive", "negative"],
    "opposite": ["cold", "cold", "warm"],
    "title": ["Warmth", "Warmth", "Cold"],
}


@cache
def people() -> Dataset:
    """Twelve people who exist in a table only."""
    table = pl.DataFrame({**PEOPLE, "uri": PEOPLE["image"]}).rename({"image": "image_id"})
    return Dataset("toy", "1", "MIT", table)


@cache
def task() -> Task:
    return Task("custom", people(), _prompt_set(), kind="association", part="x")


@cache
def _prompt_set() -> Any:
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"fuzz-prompts-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    pl.DataFrame(PROMPTS).write_csv(folder / "prompts.csv")
    read = read_prompts(folder / "prompts.csv")
    shutil.rmtree(folder)
    return read


def asked(path: Path) -> None:
    """Own prompts, and for whom each is right."""
    table = read_prompts(path).table
    correct_cells(table, people().table)
    oracles.each_from(path, table.select("text", "concept").iter_rows(), every=True)


def described(path: Path) -> None:
    """Own attributes: what an audit does with them before it opens a picture; each is a file beside the table."""
    dataset = load_dataset(f"folder:{path}")
    home = os.path.join(os.path.realpath(path.parent), "")
    assert all(isinstance(source_of(uri), str) and part_of(uri) is None for uri in dataset.table["uri"])
    assert all(os.path.realpath(uri).startswith(home) for uri in dataset.table["uri"])
    oracles.each_from(path, dataset.table.drop("uri").iter_rows(), every=True)
    dataset.limit(4)
    correct_cells(_prompt_set().table, dataset.table)


def measured(path: Path) -> None:
    """Scores made elsewhere, measured."""
    matrices = import_scores([path], [task()]).matrices
    images, cells = matrices[0].images["image_id"].to_list(), matrices[0].values[:, :, 0]
    if path.suffix == ".npy":
        oracles.same_array(path, cells)
    else:
        oracles.cells_from(path, images, task().prompts.table["prompt_id"].to_list(), cells)
    options = MeasureOptions(draws=20, seed=1)
    rows = [row for measure in CUSTOM.measures.functions for row in measure({m.task: m for m in matrices}, options)]
    results_table(rows, study="custom", model="m", dataset="toy")


def predicted(path: Path) -> None:
    """Boxes or maps made elsewhere."""
    read = import_predictions(path, ["139", "285", "632"], ["dog", "Dining table", "unicorn"])
    if path.name == "boxes.json":
        oracles.said_in(path, read.cells[~np.isnan(read.cells)].tolist(), oracles.plain(0), oracles.plain(1))


# Captions

SAID = ["a dog", "Ana Díaz, “in red”", 'say "hi"', "x", "a man and a woman"]


def captions() -> dict[str, bytes]:
    lines = "\n".join(SAID).encode()
    table = pl.DataFrame({"url": ["u"] * len(SAID), "TEXT": SAID})
    return {
        "a.txt": lines,
        "a.txt.gz": gzip.compress(lines),
        "a.txt.zst": pa.compress(lines, "zstd", asbytes=True),
        "a.csv": table.write_csv().encode(),
        "a.csv.gz": gzip.compress(table.write_csv().encode()),
        "a.tsv": table.write_csv(separator="\t").encode(),
        "a.jsonl": "".join(json.dumps({"text": said}) + "\n" for said in SAID).encode(),
        "a.json": json.dumps({"annotations": [{"caption": said, "image_id": 1} for said in SAID]}).encode(),
        "a.parquet": parquet_of(table),
    }


# Runs


@cache
def run_files() -> dict[str, bytes]:
    """A run folder with results of two studies."""
    made = Run(_results(), record("clip", notes=["a note"], left_out=["x: 1 left"]))
    made.record.datasets[0]["groups"] = {"gender": {"woman": 40, "man": 60}}
    made.record.bad_images = [{"image": "x.jpg", "reason": "cut off"}]
    made.record.declared = {"mine": {"title": "Mine", "metrics": [{"name": "mine.share", "meaning": "x"}]}}
    made.add_prompts("custom", [Task("custom", people(), _prompt_set(), kind="association", part="x")])
    made.add(custom_results(), "crop")
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"fuzz-run-{os.getpid()}"
    made.save(folder)
    made.save_findings(folder)
    read = {path.name: path.read_bytes() for path in folder.iterdir()}
    shutil.rmtree(folder)
    return {**read, "rules.toml": RULES}


RULES = b"""[[rule]]
metric = "apa.bias_ratio"
subset = "actors"
at_least = 0.5
require = "shown"

[[rule]]
metric = "custom.gap"
at_least = -0.2
at_most = 0.2
"""


def shown(folder: Path) -> None:
    """Everything that reads a run: the page, the exports, the gate, JSON."""
    run = load_run(folder)
    same_rows(folder / "results.parquet", run.results)
    oracles.said_in(folder / "run.json", [*run.record.studies, *(each.get("name") for each in run.record.models)])
    with patch.object(drawing, "svg", return_value="<svg></svg>"):  # drawn by another process, and tested there
        render(run.report)
    for export in FORMATS.values():
        export(run.report)
    json.dumps(run.as_json(), allow_nan=False)
    judged(run.results, read_rules(folder / "rules.toml"))


def same_rows(path: Path, table: pl.DataFrame) -> None:
    """The same rows as Arrow reads, in any order."""
    names = ("study", "model", "metric", "subset", "group", "concept", "value", "low", "high", "n")
    oracles.each_from(path, table.select(names).iter_rows(), every=True)


def ruled(path: Path) -> None:
    """Rules of a gate, and what they say of a run."""
    rules = read_rules(path)
    oracles.said_in(path, [value for each in rules for value in (each.metric, each.at_least, each.at_most, each.by)])
    for each in judged(_results(), rules):
        bounds = [bound for bound in (each.rule.at_least, each.rule.at_most) if bound is not None]
        oracles.holds(each.rule.require or bounds or each.rule.finding, "a verdict without a bound")


def moved(folder: Path) -> None:
    """How far small changes of the pictures move the findings."""
    run = load_run(folder)
    names = ("study", "model", "metric", "value", "change")
    oracles.each_from(folder / "perturbed.parquet", run.perturbed.select(names).iter_rows(), every=True)
    sensitivity_table(_findings(), run.perturbed)


@cache
def _findings() -> list[Finding]:
    return build_report(custom_results(), record("clip"), pl.DataFrame()).findings


@cache
def _results() -> pl.DataFrame:
    few = pl.col("subset").is_in(["actors", "athletes"])
    return pl.concat([apa_results().filter(few), custom_results()])


# Models and settings


def configured(path: Path) -> None:
    """`audit.toml`, read as the options of the command."""
    with click.Context(_audit()) as context:
        try:
            read_config(context, path)
        except click.ClickException:
            return
    given = [
        value for each in (context.default_map or {}).values() for value in (each if isinstance(each, list) else [each])
    ]
    oracles.said_in(path, [Path(value).name if isinstance(value, str) else value for value in given])


@cache
def _audit() -> Any:
    """The command, with the options of all studies."""
    return typer.main.get_command(app).get_command(click.Context(click.Command("beholder")), "audit")


CONFIG = b"""models = ["null"]
study = ["custom"]
limit = 3
draws = 200
compat = true
out = "run"
prompts = "prompts.csv"
"""
CATEGORIES = [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}]
LABELS = {"ignore": [0], "categories": CATEGORIES, "images": [{"id": 139}, {"id": 285}]}
BOXES = [
    {"image_id": 139, "category_id": 18, "bbox": [0.0, 0.0, 10.0, 5.5], "score": 0.5},
    {"image_id": "000000000285", "category_id": 1, "bbox": [1, 1, 2, 2], "score": 1},
]
MASKS = [{"image_id": 139, "category_id": 18, "segmentation": {"size": [2, 2], "counts": [1, 2, 1]}}]


def npy(array: np.ndarray[Any, Any]) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def picture(mode: str = "RGB", ending: str = "PNG") -> bytes:
    sink = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 2, (8, 8), dtype=np.uint8)).convert(mode).save(sink, ending)
    return sink.getvalue()


def load_named(path: Path) -> None:
    load_model(os.fsdecode(path.read_bytes()))


def onnx_files() -> dict[str, bytes]:
    """A closed vocabulary beside an image tower that is a file of nothing: the config is read before the tower."""
    config = {
        "image": ONNX_IMAGE,
        "text_table": {"file": "text_table.npy", "names": "text_table.json", "template": "a photo of a {}"},
        "embedding_dim": 4,
        "logit_scale": 100.0,
    }
    return {
        "config.json": json.dumps(config).encode(),
        "text_table.json": json.dumps({"classes": ["person", "dog"]}).encode(),
        "text_table.npy": npy(np.eye(2, 4, dtype=np.float32)),
        "image.onnx": b"no graph",
    }


def read_onnx(folder: Path) -> None:
    config = read_onnx_config(folder)
    oracles.said_in(folder / "config.json", [config.embedding_dim, config.logit_scale])
    if isinstance(config.text, TableConfig):
        table = read_text_table(folder, config.text)
        words = oracles.entries_of(folder / config.text.names)
        if isinstance(words, dict) and len(words.get("classes", ())) == 2 and "{}" in str(config.text.template):
            rows = table.embed([config.text.template.replace("{}", word) for word in words["classes"]])
            with suppress(ValueError, OSError, EOFError, SyntaxError, TypeError):
                array = np.load(io.BytesIO(oracles.TRUTH.read(folder / config.text.file))).astype(np.float32)
                right = array / np.linalg.norm(array, axis=1, keepdims=True)
                oracles.holds(np.allclose(rows, right, atol=1e-3), "vectors of other words")


COCO = {
    "images": [{"id": n, "file_name": f"{n:012}.jpg", "width": 100, "height": 50} for n in (1, 2)],
    "categories": CATEGORIES,
    "annotations": [
        {"image_id": n, "category_id": 18, "bbox": [0, 0, 10, 10], "iscrowd": 0, "caption": text}
        for n, text in ((1, "A man's dog"), (2, "A woman with her dog"))
    ],
}
GENOME = [
    {
        "image_id": n,
        "objects": [
            {
                "synsets": [what],
                "names": ["it"],
                "x": 0,
                "y": 0,
                "w": 5,
                "h": 5,
                "object_id": 1,
                "merged_object_ids": [],
            }
            for what in (who, "tie.n.01")
        ],
    }
    for n, who in ((1, "man.n.01"), (2, "woman.n.01"))
]
SIZES = [{"image_id": n, "width": 10, "height": 10} for n in (1, 2)]
FAIRFACE = b"file,age,gender,race\ntrain/1.jpg,20-29,Male,East Asian\ntrain/2.jpg,30-39,Female,Black\n"
ONE_IMAGE = {"concept_images": "1"}
GRAS = b"file,gender,race,age\nFairFace/train/1.jpg,Male,White,20-29\nFairFace/val/2.jpg,Female,Black,30-39\n"
AIFACE = b"file,Skin Tone\nAIFace/a/3.png,7\n"


def opened(name: str) -> None:
    """A data set, and its first pictures."""
    dataset, path = load_dataset(name), Path(name.partition(":")[2])
    bytes_of = {part.name: read_content(str(part)) for uri in dataset.table["uri"] if (part := part_of(uri))}
    if path.suffix == ".tar" and (members := oracles.members_of(path)):
        oracles.holds(bytes_of.items() <= members.items(), "other bytes than the tar's")
    elif path.is_dir() and (shown := oracles.pictures_of(path / "s.parquet")):
        oracles.holds(all(read_content(uri) in shown for uri in dataset.table["uri"]), "other bytes than the shard's")
    for uri in dataset.limit(2).table["uri"]:
        open_image(uri)


def counted(path: Path) -> None:
    """Captions, searched for words."""
    counts = count_captions([CaptionFile(path)], Mentions([Term("word", "dog"), Term("name", "Ana Díaz")]))
    malformed = sum(tally.malformed for tally in counts.files)
    oracles.counts_between(path, counts.captions, int(counts.apart[0] + counts.inside[0]), malformed)


def compared(folder: Path) -> None:
    """A comparison of two models, shown again."""
    comparison = read_comparison(folder)
    names = ("study", "metric", "model", "baseline", "dataset", "first", "second", "difference", "n")
    oracles.each_from(folder / "comparison.parquet", comparison.table.select(names).iter_rows(), every=True)
    render_comparison(comparison)


@cache
def comparison_files() -> dict[str, bytes]:
    """Two differences of two models."""
    row = {name: "a" for name in ("study", "metric", "subset", "unit")}
    numbers = dict.fromkeys(("first", "second", "difference", "p_value", "p_adjusted"), 0.4)
    rows = [
        {**row, **numbers, "baseline": "one", "model": "two", "dataset": data, "low": 0.1, "high": 0.6, "n": 10}
        for data in ("apa", "toy")
    ]
    made = record("one", "two")
    made.settings["parts"] = 20
    return {"comparison.parquet": parquet_of(pl.DataFrame(rows, schema=COMPARISON)), "comparison.json": made.as_json()}


@cache
def shards() -> dict[str, bytes]:
    """Two pictures with labels, as a webdataset tar and as Parquet of the hub."""
    sink, shown = io.BytesIO(), picture()
    with tarfile.open(fileobj=sink, mode="w") as tar:
        for name, data in (("a.png", shown), ("a.json", b'{"gender": "woman", "age": 3}'), ("b.png", shown)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    pictures = pl.DataFrame({"image": [{"bytes": shown, "path": "a.png"}] * 2, "gender": ["woman", "man"]})
    return {"s.tar": sink.getvalue(), "s.parquet": parquet_of(pictures)}


def rated(path: Path) -> None:
    table = read_ratings(path)
    if "single" not in table.columns:  # else means are our own
        oracles.each_from(path, table.select("who", "trait", "mean", "n").iter_rows(), every=True)


def dimensions(path: Path) -> None:
    oracles.each_from(path, [(each.name, word) for each in read_dimensions(path) for word in each.words])


def templates(path: Path) -> None:
    oracles.each_from(path, read_templates(path).items(), every=True)


def words(path: Path, column: str) -> None:
    oracles.each_from(path, read_words(path, column).items(), every=True)


def group_words(path: Path) -> None:
    oracles.each_from(
        path, [(group, word) for group, listed in read_group_words(path).words.items() for word in listed]
    )


def traits(path: Path) -> None:
    oracles.each_from(path, read_traits(path).select("trait", "valence").iter_rows(), every=True)


def collected(path: Path) -> None:
    """The names that are looked up for `data collect`, with what stands beside them."""
    oracles.each_from(path, read_names(path).iter_rows())


def specified(folder: Path) -> None:
    """What a store says of its models."""
    store, home = Store(folder), folder / SPEC.digest
    for each in stored_models(store):
        if each.name != "unknown":
            oracles.said_in(home / "spec.json", [each.name, each.revision], "none")
    if not verify_store(store).problems and (said := oracles.entries_of(home / "spec.json")):
        names = ("adapter", "weights", "revision", "precision", "settings")
        oracles.holds(
            all(said.get(name, getattr(SPEC, name)) == getattr(SPEC, name) for name in names), "another model"
        )


SPEC = ModelSpec("toy", "test", "none", "1", settings={"logit_scale": 10.0})


def listed(path: Path, load: Callable[[Path], Dataset], name: str = "") -> None:
    """A list of a published data set."""
    table = load(path.parent).table
    oracles.each_from(path, table.filter(pl.col("image_id").str.contains(name)).select("image_id").iter_rows())


def loaded(path: Path, load: Callable[[Path, dict[str, str]], Dataset], chosen: dict[str, str]) -> None:
    """A data set of objects: its images are those of its files."""
    oracles.said_in(path, load(path.parents[path.parent.name == "annotations"], chosen).table["image_id"])


def prompted(folder: Path) -> None:
    """The prompts of a run."""
    prompts = load_run(folder).prompts
    prompts_asked(prompts, "custom", "toy")
    oracles.each_from(folder / "prompts.csv", prompts.select("study", "prompt_id", "concept").iter_rows(), every=True)


def pictured(path: Path) -> None:
    """One picture, as Pillow reads it."""
    read = open_image(str(path))
    with Image.open(io.BytesIO(oracles.TRUTH.read(path))) as image:
        right = ImageOps.exif_transpose(image)
        if right.mode in ("RGB", "L") and "transparency" not in right.info:
            oracles.holds(np.array_equal(np.asarray(read), np.asarray(right.convert("RGB"))), "other pixels")


def mapped_values(path: Path) -> None:
    """A map of labels (`--map`)."""
    oracles.each_from(path, parse_maps([f"gender={path}"])["gender"].items())


def weighed(folder: Path) -> None:
    """A model's folder: a digest stands for one content of all files that are read."""
    spec = load_model(str(folder)).spec
    weights = b"".join(path.read_bytes() for path in sorted(folder.glob("*.safetensors")))
    oracles.holds(WEIGHTS.setdefault(spec.digest, weights) == weights, "one digest of two models")


WEIGHTS: dict[str, bytes] = {}


@cache
def targets() -> dict[str, Target]:
    """All of them, by name."""
    made = [*_tables(), *_captions(), *_scores(), *_runs(), *_models(), *_datasets()]
    return {target.name: target for target in made}


def _tables() -> list[Target]:
    readers: list[tuple[str, dict[str, list[Any]], Callable[[Path], object]]] = [
        ("prompts", PROMPTS, asked),
        ("attributes", PEOPLE, described),
        ("ratings", RATINGS, rated),
        ("dimensions", DIMENSIONS, dimensions),
        ("templates", {"template": ["a", "b"], "text": ["a {} person", "this is {}"]}, templates),
        ("ambiguous", {"concept": ["knob.n.02"], "words": ["knob handle"]}, partial(words, column="words")),
        ("same_concepts", {"concept": ["tie.n.02"], "same_as": ["tie"]}, partial(words, column="same_as")),
        ("group_words", {"group": ["woman", "man"], "word": ["she", "he"]}, group_words),
        ("traits", {"trait": ["kind", "rude"], "valence": ["positive", "negative"]}, traits),
        ("value_map", {"value": ["f", "m"], "group": ["woman", "man"]}, mapped_values),
    ]
    lines = "".join(json.dumps({key: values[i] for key, values in PEOPLE.items()}) + "\n" for i in range(N))
    return [
        one("attributes.jsonl", lines.encode(), described),
        *(
            one(f"{name}{ending}", data, read)
            for name, columns, read in readers
            for ending, data in frame_bytes(columns).items()
        ),
    ]


def _captions() -> list[Target]:
    return [one(name, data, counted, name=f"captions-{name}") for name, data in captions().items()]


def _scores() -> list[Target]:
    cells = np.random.default_rng(1).normal(size=(N, 3)).astype(np.float32)
    wide = {"image_id": PEOPLE["image"]} | {text: cells[:, j].tolist() for j, text in enumerate(PROMPTS["text"])}
    pairs = [(image, text) for image in PEOPLE["image"] for text in PROMPTS["text"]]
    long = {
        "image_id": [image for image, _ in pairs],
        "prompt_id": [text for _, text in pairs],
        "score": cells.ravel().tolist(),
    }
    labels = {"labels.json": json.dumps(LABELS).encode()}
    packed, plane = io.BytesIO(), np.random.default_rng(2).random((2, 4, 4), dtype=np.float32)
    np.savez(packed, plane)
    boxes = {"boxes.json": json.dumps(BOXES).encode(), **labels}
    masks = {"masks.json": json.dumps(MASKS).encode(), **labels}
    logs = {"a.eval": EXAMPLES / "inspect_ai.eval", "a.jsonl": EXAMPLES / "lmms_samples_beholder.jsonl"}
    return [
        *(
            one(f"scores-{kind}{ending}", data, measured)
            for kind, columns in (("wide", wide), ("long", long))
            for ending, data in frame_bytes(columns).items()
        ),
        one("logits_x.npy", npy(cells), measured, name="scores.npy"),
        *(
            one(
                name,
                path.read_bytes(),
                lambda path: read_score_file(path, [task()]),
                name=f"scores{name[1:]}",
                weight=0.3,
            )
            for name, path in logs.items()
        ),
        Target("boxes.json", "boxes.json", boxes, lambda folder: predicted(folder / "boxes.json")),
        Target("labels.json", "labels.json", boxes, lambda folder: predicted(folder / "boxes.json")),
        Target("masks.json", "masks.json", masks, lambda folder: predicted(folder / "masks.json")),
        Target("maps.png", "139.png", {"139.png": picture("L"), **labels}, predicted),
        Target("maps.npz", "139.npz", {"139.npz": packed.getvalue(), **labels}, predicted),
        Target("maps.npy", "139.npy", {"139.npy": npy(plane), **labels}, predicted),
        one("picture.png", picture(), pictured),
        one("picture.jpg", picture(ending="JPEG"), pictured),
    ]


def _runs() -> list[Target]:
    files = run_files()
    return [
        *(Target(f"run-{name}", name, files, shown, 0.15) for name in ("run.json", "results.parquet")),
        Target("run-prompts.csv", "prompts.csv", files, prompted),
        Target("run-perturbed.parquet", "perturbed.parquet", files, moved, 0.5),
        *(Target(f"compared-{name[11:]}", name, comparison_files(), compared, 0.2) for name in comparison_files()),
        one("rules.toml", RULES, ruled),
        one("audit.toml", CONFIG, configured),
    ]


def _models() -> list[Target]:
    reference = ROOT / "src/beholder/glasshouse/models/contrastive"
    files = {path.name: path.read_bytes() for path in reference.iterdir() if path.suffix in (".json", ".safetensors")}
    onnx = onnx_files()
    return [
        *(Target(f"onnx-{name}", name, onnx, read_onnx) for name in onnx if name != "image.onnx"),
        *(Target(f"model-{name}", name, files, weighed, 0.02) for name in files),
        one("model.name", b"openai/clip-vit-base-patch32@main", load_named, weight=0.3),
    ]


def _datasets() -> list[Target]:
    coco = {f"annotations/{name}_val2017.json": json.dumps(COCO).encode() for name in ("instances", "captions")}
    genome = {"objects.json": json.dumps(GENOME).encode(), "image_data.json": json.dumps(SIZES).encode()}
    lists = {"selected_images_fairface.csv": GRAS, "selected_images_aiface.csv": AIFACE}
    return [
        *(
            one(f"names{ending}", data, collected, name=f"collect{ending}")
            for ending, data in frame_bytes({name: PEOPLE[name] for name in ("name", "gender")}).items()
        ),
        Target(
            "spec.json",
            f"{SPEC.digest}/spec.json",
            {f"{SPEC.digest}/spec.json": json.dumps(SPEC.as_dict()).encode()},
            specified,
        ),
        one("s.tar", shards()["s.tar"], lambda path: opened(f"wds:{path}"), name="shards.tar"),
        one("s.parquet", shards()["s.parquet"], lambda path: opened(f"hf:{path.parent}"), name="shards.parquet"),
        one("fairface_label_train.csv", FAIRFACE, partial(listed, load=load_fairface), name="fairface"),
        *(
            Target(
                "coco" if "inst" in name else "coco-captions",
                name,
                coco,
                lambda f, name=name: loaded(f / name, load_coco, ONE_IMAGE),
            )
            for name in coco
        ),
        *(
            Target(
                f"genome-{name}", name, genome, lambda f: loaded(f / "objects.json", load_genome, {"group_images": "1"})
            )
            for name in genome
        ),
        *(
            Target(
                f"gras-{name[16:-4]}",
                name,
                lists,
                lambda f, name=name: listed(f / name, load_gras, "AIFace" if "aiface" in name else "FairFace"),
            )
            for name in lists
        ),
    ]
