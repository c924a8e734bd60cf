"""Every model of the studies has a name here, an adapter that exists, and facts that hang together."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from models_table import markdown_notes, markdown_tables

from beholder.cli.data import model_rows
from beholder.core.errors import ModelError, UnknownName
from beholder.cost.subject import sized
from beholder.models import catalog as module
from beholder.models import load
from beholder.models.catalog import FAMILIES, KINDS, ModelEntry, catalog, count_of, find_model, selected, short
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import NullScorer
from beholder.models.spec import Machine, this_machine
from beholder.studies import STUDIES
from beholder.studies.printed import printed_of

ROOT = Path(__file__).parents[2]
PRINTED = {
    "apa_gender_bias": ("apa", 39),
    "apa_identity": ("apa", 39),
    "pfi_gender_bias": ("pfi", 5),
    "pfi_retention": ("pfi", 9),
}
DISPARITY = ["CLIP ViT-B/32", "Detic", "LSeg"]
GRAS = [
    "paligemma2-3b-mix-224",
    "llava-1.5-7b-hf",
    "Qwen2.5-VL-3B-Instruct",
    "blip2-opt-2.7b",
    "Phi-4-multimodal-instruct",
]
entries = pytest.mark.parametrize("entry", catalog(), ids=lambda entry: entry.name)


def models_in(table: str) -> set[str]:
    """The models of a printed table, under their printed names."""
    printed = printed_of(PRINTED[table][0])
    assert printed
    return set(printed.table.filter(source=table)["model"])


@pytest.mark.parametrize("table", PRINTED)
def test_every_printed_name_resolves_to_a_model_of_that_table(table: str) -> None:
    study, count = PRINTED[table]
    found = {name: find_model(name) for name in models_in(table)}
    assert len({entry.name for entry in found.values()}) == count
    assert [name for name, entry in found.items() if study not in entry.studies] == []


@pytest.mark.parametrize(("study", "names"), [("gras", GRAS), ("disparity", DISPARITY), ("perception", DISPARITY[:1])])
def test_the_other_studies_models_resolve(study: str, names: list[str]) -> None:
    assert {find_model(name).name for name in names} == {entry.name for entry in selected(study=study)}


@pytest.mark.real
def test_every_reference_table_resolves(shared: Path) -> None:
    unnamed = ("perception", "released_prompts", "pairs_questions")  # tables without a column of models
    tables = [path for path in (shared / "reference").glob("*.csv") if not any(word in path.name for word in unnamed)]
    assert len(tables) == 5
    for path in tables:
        for row in csv.DictReader(path.read_text().splitlines()):
            assert find_model(row["model"]), path


def test_tables_of_the_catalogue_are_those_that_print_the_model() -> None:
    """`apa 5–8` says that the model is in the tables of gender bias and of identity."""
    numbers = {"apa_gender_bias": "5–7", "apa_identity": "8", "pfi_gender_bias": "1", "pfi_retention": "2"}
    sources = {source.name: source for study in ("apa", "pfi") for source in STUDIES[study].part("printed").sources}
    assert all(sources[name].printed_in.endswith(number) for name, number in numbers.items())
    in_table = {name: {find_model(model).name for model in models_in(name)} for name in PRINTED}
    for entry in catalog():
        bias, identity = (entry.name in in_table[f"pfi_{part}"] for part in ("gender_bias", "retention"))
        expected = {(True, True): "1–2", (True, False): "1", (False, True): "2", (False, False): None}
        assert entry.studies.get("pfi") == expected[bias, identity], entry.name
        assert (entry.studies.get("apa") == "5–8") == (entry.name in in_table["apa_identity"]), entry.name


@entries
def test_an_entry_hangs_together(entry: ModelEntry) -> None:
    assert entry.family in KINDS
    assert entry.studies or entry.reference, "a model that no study prints says where it is documented"
    assert set(entry.studies) <= set(STUDIES)
    assert entry.adapter in FAMILIES
    assert FAMILIES[entry.adapter].kind == entry.family or entry.adapter == "predictions"
    assert entry.load or entry.note, "what has no name to load says what to do"
    assert entry.source
    assert entry.licence != ""
    assert entry.released is None or re.fullmatch(r"20\d\d(-\d\d){0,2}", entry.released)
    assert entry.reference or not (entry.released or entry.training_pairs), "facts say where they are stated"
    if entry.load.startswith("openclip:"):
        assert entry.adapter == "openclip"
    elif entry.load:
        assert entry.load == entry.source
        assert not FAMILIES[entry.adapter].form, "hub models are read from a folder"
        assert re.fullmatch(r"main|refs/pr/\d+|[0-9a-f]{40}", entry.revision)


def test_facts_of_the_studies_models_are_numbers_or_absent() -> None:
    """Charts of size against bias read them."""
    clip, siglip = find_model("RN50x16"), find_model("SigLIP-p16-224")
    assert (clip.parameters, clip.training_pairs, clip.released) == (290979217, 400_000_000, "2021-07")
    assert (siglip.training_pairs, siglip.licence) == (None, "Apache-2.0")
    assert sum(entry.parameters is not None for entry in selected(study="apa")) == 39


def test_no_two_models_share_a_name() -> None:
    keys = [module._key(name) for entry in catalog() for name in entry.names]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("ViT-B/32 w/ L2B", "OpenCLIP ViT-B/32-L2B"),
        ("MetaCLIP-114-400m", "MetaCLIP-114-400m"),
        ("metaclip_l14_400M", "MetaCLIP-114-400m"),
        ("gemma-3-27b-it", "Gemma-3-27b-it"),
        ("CLIP ViT-L/H", "ViT-L/14@336px"),
        ("openclip vit-h/14-l2b", "OpenCLIP ViT-H/14-L2B"),
    ],
)
def test_aliases_and_spellings_resolve(asked: str, name: str) -> None:
    assert find_model(asked).name == name


def test_an_unknown_name_suggests() -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'Qwen2\.5-VL-3B-Instruct'"):
        find_model("Qwen2.5-VL-3B-Instuct")
    with pytest.raises(UnknownName, match=r"onnx:DIR(?s:.)*Did you mean 'MetaCLIP-L14-400m'"):
        load_model("MetaCLIP-l14-40m")


def test_a_printed_name_is_loaded_as_what_it_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ViT-B/32` looks like a hub name; it is not asked of the hub."""
    asked: list[tuple[str, Any]] = []

    def hub(name: str, options: LoadOptions) -> NullScorer:
        asked.append((name, options.revision))
        return NullScorer(3)

    monkeypatch.setattr(load, "_open_hub", hub)
    scorer = load_model("ViT-B/32")
    load_model("clip vit-b/32", LoadOptions(revision="abc"))
    pinned = "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268"
    assert asked == [("openai/clip-vit-base-patch32", pinned), ("openai/clip-vit-base-patch32", "abc")]
    assert scorer.spec.name == "ViT-B/32"
    assert scorer.spec.digest == NullScorer(3).spec.digest


def test_a_known_commit_is_the_revision_unless_another_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr(load, "_open_hub", lambda name, options: asked.append(options.revision) or NullScorer())
    pinned = replace(find_model("ViT-B/32"), revision="c" * 40)
    monkeypatch.setattr(load, "lookup", lambda name: pinned if name == "pinned" else None)
    load_model("pinned")
    load_model("pinned", LoadOptions(revision="main"))
    assert asked == ["c" * 40, "main"]


@pytest.mark.parametrize("name", ["ALBEF", "Detic", "LSeg", "DeepSeek-VL2-tiny", "Phi-4-multimodal-instruct"])
def test_a_model_that_the_user_must_bring_says_what_to_do(name: str) -> None:
    entry = find_model(name)
    with pytest.raises(ModelError, match="cannot be loaded by its name alone") as raised:
        load_model(name)
    assert re.search("[Oo]ne command", entry.note)
    assert entry.note in str(raised.value)
    assert entry.source in str(raised.value)


def test_a_folder_of_that_name_comes_first(tiny_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "BLIP").symlink_to(tiny_model("clip"))
    monkeypatch.chdir(tmp_path)
    assert load_model("BLIP").spec.adapter == "transformers"


def test_whether_it_runs_here_is_parameters_times_bytes() -> None:
    large = find_model("Qwen2.5-VL-7B-Instruct")
    weights = 8_292_166_656
    assert large.memory("bfloat16") == int(weights * 2 * 1.2)
    assert large.fits(Machine(memory=0, gpu_memory=int(weights * 2.4))) == "gpu"
    assert large.fits(Machine(memory=int(weights * 4.8), gpu_memory=10)) == "cpu"
    assert large.fits(Machine(memory=weights * 4, gpu_memory=10)) == "no"
    assert find_model("Detic").fits(Machine(10**15, 10**15)) == "unknown"


def test_this_machine_has_memory() -> None:
    machine = this_machine()
    assert 2**28 < machine.memory < 2**50
    assert machine.gpu_memory >= 0


def test_the_list_is_filtered_by_family_study_size_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beholder.cli.data.this_machine", lambda: Machine(memory=10**9, gpu_memory=0))
    assert {row["name"] for row in model_rows(family="matching")} == {"ALBEF", "BLIP", "BLIP-2 ITM"}
    assert len(model_rows(study="pfi", max_parameters="200M")) == 3
    small = model_rows(fits=True)
    assert small
    assert all(row["memory_bytes"] <= 10**9 for row in small)  # type: ignore[operator]
    with pytest.raises(UnknownName, match="Did you mean 'gras'"):
        model_rows(study="grass")
    with pytest.raises(UnknownName, match="500M"):
        model_rows(max_parameters="big")


@pytest.mark.parametrize(("text", "count"), [("1.5B", 1.5e9), ("300m", 3e8), ("12", 12.0)])
def test_sizes_are_read_as_people_write_them(text: str, count: float) -> None:
    assert count_of(text) == count


@pytest.mark.parametrize(("count", "text"), [(8_292_166_656, "8.29B"), (400e6, "400M"), (None, "unknown"), (7, "7")])
def test_sizes_are_written_as_people_write_them(count: float | None, text: str) -> None:
    assert short(count) == text


def test_the_docs_show_the_catalogue() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert markdown_tables(catalog()) in page, "put what tools/models_table.py gives into the page"
    assert markdown_notes(catalog()) in page


def test_every_entry_is_pinned_or_says_why_not() -> None:
    for entry in catalog():
        assert bool(entry.unpinned) != bool(re.fullmatch(r"refs/pr/\d+|[0-9a-f]{40}", entry.revision)), entry.name


def test_models_of_today_stand_beside_those_of_the_studies() -> None:
    newer = {entry.name for entry in catalog() if not entry.studies}
    assert {"SigLIP2-p16-224", "Qwen3-VL-8B-Instruct", "OWLv2"} <= newer
    assert find_model("siglip2-base-patch16-naflex").load == "google/siglip2-base-patch16-naflex"


@pytest.mark.parametrize("told", [{"total_parameters": 1_020_000}, {"total_size": 2_040_000}])
def test_an_unknown_size_is_read_from_the_weights_own_index(
    told: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "made_yesterday", "dtype": "bfloat16"}')
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": told, "weight_map": {}}))
    monkeypatch.setattr("beholder.cost.subject._cached", lambda load: tmp_path)
    unknown = next(entry for entry in catalog() if entry.parameters is None and entry.load)
    assert sized(unknown).parameters == 1_020_000
    known = find_model("ViT-B/32")
    assert sized(known) is known


def test_an_unknown_size_is_read_from_a_single_file_of_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "made_yesterday"}')
    monkeypatch.setattr("beholder.cost.subject._cached", lambda load: tmp_path)
    unknown = next(entry for entry in catalog() if entry.parameters is None and entry.load)
    tensors = {"a": {"dtype": "BF16", "shape": [300, 40]}, "b": {"dtype": "F32", "shape": []}, "__metadata__": {}}
    header = json.dumps(tensors).encode()
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(len(header).to_bytes(8, "little") + header)
    assert sized(unknown).parameters == 12_001
    for broken in (b"", b"\xff" * 40, header[:9], (3).to_bytes(8, "little") + b"[1]"):
        weights.write_bytes(broken)
        assert sized(unknown).parameters is None
    (tmp_path / "config.json").write_text("{")
    assert sized(unknown) == unknown, "a broken file ends no listing"
