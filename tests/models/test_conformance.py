"""What every adapter promises, asked of each on tiny random models of its true architectures.

`conformance/ADAPTER.py` offers `cases(folder) -> {name: case}`: a case says how the adapter loads the model, what
an obvious computation gives for one picture and one prompt, and how near the two must be. A new adapter is one file.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beholder.core.errors import BeholderError, ModelError
from beholder.datasets import load_dataset
from beholder.models.load import LoadOptions, load_model
from beholder.models.scorer import Embedder
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.fill import FillOptions, fill
from beholder.scores.score_matrix import Task
from beholder.scores.store import Store

torch = pytest.importorskip("torch")

FOLDER = Path(__file__).parent / "conformance"
# open_clip has an environment of its own, in which `test_openclip.py` runs this module.
ADAPTERS = [
    path.stem
    for path in sorted(FOLDER.glob("*.py"))
    if path.stem != "openclip" or importlib.util.find_spec("open_clip")
]
CPU = LoadOptions(device="cpu")
OPTIONAL = [
    "torch",
    "torchvision",
    "transformers",
    "tokenizers",
    "safetensors",
    "huggingface_hub",
    "onnxruntime",
    "open_clip",
]
MARKED = (31, 17)
"""The size of the picture that comes to harm."""
QUICK = ("null", "contrastive")
every_adapter = pytest.mark.parametrize(
    "adapter", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in ADAPTERS]
)


@dataclass(frozen=True)
class Case:
    """One tiny model."""

    name: str
    made_in: Path
    stated: Mapping[str, Any]

    def load(self, **options: Any) -> Any:
        return self.stated["load"](replace(CPU, **options))

    @cached_property
    def scorer(self) -> Any:
        return self.load()

    @cached_property
    def again(self) -> Any:
        """The same model loaded once more, to score picture by picture."""
        return self.load(batch_size=1)

    @property
    def tolerance(self) -> float:
        return float(self.stated["tolerance"])

    def plain(self, pictures: Sequence[Image.Image], prompts: Sequence[str]) -> Any:
        cell = self.stated["plain"]
        return np.array([[cell(picture, prompt) for prompt in prompts] for picture in pictures])

    def scores(self, pictures: Sequence[Image.Image], prompts: Sequence[str]) -> Any:
        return scored(self.scorer, pictures, prompts)

    def known(self, pictures: Sequence[Image.Image], prompts: Sequence[str]) -> Any:
        """The scores, computed when they are first asked for: most tests compare something with them."""
        kept = self.__dict__.setdefault("_known", {})
        key = (len(pictures), *prompts)
        if key not in kept:
            kept[key] = self.scores(pictures, prompts)
        return kept[key].copy()

    @property
    def folder(self) -> Path | None:
        """The model's folder, if it is one with a configuration and safetensors weights."""
        places = [self.stated.get("folder"), self.scorer.spec.name, self.made_in / self.name]
        found = [Path(place) for place in places if place and Path(place, "config.json").is_file()]
        assert found or self.scorer.spec.weights != "folder", f"{self.name}: the case does not say its 'folder'"
        return found[0] if found and list(found[0].glob("*.safetensors")) else None


Cases = Callable[[str], list[Case]]


@pytest.fixture(scope="session")
def cases_of(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """The cases of an adapter, each built and loaded once."""
    made: dict[str, list[Case]] = {}

    def cases(adapter: str) -> list[Case]:
        if adapter not in made:
            folder = tmp_path_factory.mktemp(adapter)
            module = importlib.import_module(f"conformance.{adapter}")
            made[adapter] = [Case(name, folder, stated) for name, stated in module.cases(folder).items()]
        assert made[adapter], "an adapter without a case promises nothing"
        return made[adapter]

    return cases


@pytest.fixture(scope="session")
def rgb(pictures: list[Image.Image]) -> list[Image.Image]:
    """Pictures as the filler hands them over: RGB, of odd sizes."""
    return [picture.convert("RGB") for picture in pictures]


def scored(scorer: Any, pictures: Sequence[Image.Image], prompts: Sequence[str]) -> Any:
    return scorer.score_prepared([scorer.prepare(picture) for picture in pictures], list(prompts))


@every_adapter
def test_one_float_for_each_picture_prompt_and_channel(
    adapter: str, cases_of: Cases, rgb: list[Image.Image], prompts: list[str], subtests: Any
) -> None:
    for case in cases_of(adapter):
        with subtests.test(case.name):
            cells = case.known(rgb, prompts)
            assert cells.shape == (len(rgb), len(prompts), len(case.scorer.channels))
            assert cells.dtype == np.float32
            assert len(set(case.scorer.channels)) == len(case.scorer.channels) > 0


@every_adapter
def test_scores_equal_the_obvious_computation(
    adapter: str, cases_of: Cases, rgb: list[Image.Image], prompts: list[str], subtests: Any
) -> None:
    for case in cases_of(adapter):
        with subtests.test(case.name):
            expected = case.plain(rgb, prompts)
            assert np.ptp(expected[:, :, 0]) > 1e-3, "the tiny model tells nothing apart: this would prove nothing"
            np.testing.assert_allclose(case.known(rgb, prompts), expected, rtol=0, atol=case.tolerance)


@every_adapter
def test_the_same_again_is_the_same(
    adapter: str, cases_of: Cases, rgb: list[Image.Image], prompts: list[str], subtests: Any
) -> None:
    for case in cases_of(adapter):
        with subtests.test(case.name):
            cells = case.known(rgb, prompts)
            np.testing.assert_array_equal(case.scores(rgb, prompts), cells)
            np.testing.assert_allclose(scored(case.again, rgb, prompts), cells, rtol=0, atol=case.tolerance)


@every_adapter
def test_neither_batch_nor_order_changes_a_score(
    adapter: str, cases_of: Cases, rgb: list[Image.Image], prompts: list[str], subtests: Any
) -> None:
    for case in cases_of(adapter):
        with subtests.test(case.name):
            cells = case.known(rgb, prompts)
            for size in (1, 3):
                parts = [case.scores(rgb[at : at + size], prompts) for at in range(0, len(rgb), size)]
                np.testing.assert_allclose(np.concatenate(parts), cells, rtol=0, atol=case.tolerance)
            backwards = case.scores(rgb[::-1], prompts[::-1])[::-1, ::-1]
            np.testing.assert_allclose(backwards, cells, rtol=0, atol=case.tolerance)


@every_adapter
def test_neither_longer_prompts_beside_it_nor_their_padding_change_a_score(
    adapter: str, cases_of: Cases, rgb: list[Image.Image], prompts: list[str], subtests: Any
) -> None:
    for case in cases_of(adapter):
        with subtests.test(case.name):
            together = case.scores(rgb[:3], prompts)
            alone = np.concatenate([case.scores(rgb[:3], [prompt]) for prompt in prompts], axis=1)
            np.testing.assert_allclose(together, alone, rtol=0, atol=case.tolerance)


@every_adapter
def test_half_precision_is_near_and_is_another_model(
    adapter: str, cases_of: Cases, rgb: list[Image.Image], prompts: list[str], subtests: Any
) -> None:
    for case in cases_of(adapter):
        if case.stated["bf16_tolerance"] is None:
            continue
        with subtests.test(case.name):
            half = case.load(precision="bf16")
            assert (half.spec.precision, case.scorer.spec.precision) == ("bfloat16", "float32")
            assert half.spec.digest != case.scorer.spec.digest
            cells = scored(half, rgb, prompts)
            assert cells.dtype == np.float32
            np.testing.assert_allclose(cells, case.known(rgb, prompts), rtol=0, atol=case.stated["bf16_tolerance"])


@every_adapter
def test_the_spec_stands_for_the_scores_and_nothing_else(adapter: str, cases_of: Cases, subtests: Any) -> None:
    for case in cases_of(adapter):
        with subtests.test(case.name):
            spec = case.scorer.spec
            assert case.again.spec.digest == spec.digest
            assert json.loads(json.dumps(spec.as_dict()))["digest"] == spec.digest
    digests = [case.scorer.spec.digest for case in cases_of(adapter)]
    assert len(set(digests)) == len(digests), "two models, one digest: the store would mix them"


@pytest.fixture
def people_of_all_sizes(tmp_path: Path) -> Path:
    """Six pictures; 00003.png is the one that comes to harm."""
    folder = tmp_path / "people"
    folder.mkdir()
    rng = np.random.default_rng(5)
    for number in range(6):
        width, height = MARKED if number == 3 else (24, 24)
        pixels = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:05}.png")
    (folder / "people.csv").write_text("image\n" + "".join(f"{number:05}.png\n" for number in range(6)))
    return folder


def filled(case: Case, scorer: Any, folder: Path, prompts: Sequence[str], store: Path) -> Any:
    task = Task("toy", load_dataset(f"folder:{folder}"), prompt_set("toy", [{"text": text} for text in prompts]))
    return fill([task], scorer, Store(store), FillOptions(skip_bad_images=True, threads=1))


@every_adapter
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_refused_by_the_pictures_name(
    adapter: str,
    value: float,
    cases_of: Cases,
    people_of_all_sizes: Path,
    prompts: list[str],
    tmp_path: Path,
    subtests: Any,
) -> None:
    for number, case in enumerate(cases_of(adapter)):
        with subtests.test(case.name), pytest.MonkeyPatch.context() as patch:
            spoil(case.scorer, value, patch)
            with pytest.raises(ModelError, match=r"00003\.png"):
                filled(case, case.scorer, people_of_all_sizes, prompts[:2], tmp_path / str(number))


def spoil(scorer: Any, value: float, patch: pytest.MonkeyPatch) -> None:
    """The marked picture's pixels become `value`; where a model is given no numbers, its scores do."""
    prepare, marked = scorer.prepare, []

    def spoiled(image: Image.Image) -> Any:
        ready = prepare(image)
        if image.size != MARKED:
            return ready
        harmed, touched = overwritten(ready, value)
        if not touched:
            marked.append(harmed)
        return harmed

    name = "embed_prepared" if isinstance(scorer, Embedder) else "score_prepared"
    compute = getattr(scorer, name)

    def computed(prepared: Sequence[Any], *rest: Any) -> Any:
        rows = compute(prepared, *rest)
        rows[[any(one is other for other in marked) for one in prepared]] = value
        return rows

    patch.setattr(scorer, "preparation", None, raising=False)  # pictures are then prepared by `prepare`
    patch.setattr(scorer, "prepare", spoiled)
    patch.setattr(scorer, name, computed)


def overwritten(ready: Any, value: float) -> tuple[Any, bool]:
    """A prepared picture with every floating number replaced, and whether it had any."""
    if isinstance(ready, np.ndarray) and ready.dtype.kind == "f":
        return np.full_like(ready, value), True
    if isinstance(ready, torch.Tensor) and ready.is_floating_point():
        return torch.full_like(ready, value), True
    if isinstance(ready, Mapping):
        parts = {key: overwritten(part, value) for key, part in ready.items()}
        return {key: part for key, (part, _) in parts.items()}, any(touched for _, touched in parts.values())
    if is_dataclass(ready) and not isinstance(ready, type):
        changed = {field.name: overwritten(getattr(ready, field.name), value) for field in fields(ready)}
        new = replace(ready, **{key: part for key, (part, _) in changed.items()})
        return new, any(touched for _, touched in changed.values())
    if isinstance(ready, tuple | list):
        both = [overwritten(part, value) for part in ready]
        kind = type(ready)._make if hasattr(ready, "_make") else type(ready)  # type: ignore[union-attr]
        return kind([part for part, _ in both]), any(touched for _, touched in both)
    return ready, False


@every_adapter
def test_an_unreadable_picture_costs_that_picture(
    adapter: str, cases_of: Cases, people_of_all_sizes: Path, prompts: list[str], tmp_path: Path, subtests: Any
) -> None:
    broken = people_of_all_sizes / "00003.png"
    broken.write_bytes(broken.read_bytes()[:80])
    good = [people_of_all_sizes / f"{number:05}.png" for number in range(6) if number != 3]
    for number, case in enumerate(cases_of(adapter)):
        with subtests.test(case.name):
            done = filled(case, case.scorer, people_of_all_sizes, prompts, tmp_path / str(number))
            assert [Path(uri).name for uri in done.bad_images] == ["00003.png"]
            expected = case.scores([Image.open(path).convert("RGB") for path in good], prompts)
            (matrix,) = done.matrices
            assert matrix.images.height == 5
            np.testing.assert_allclose(matrix.values, expected, rtol=0, atol=case.tolerance)


@every_adapter
def test_a_missing_library_is_told_with_what_to_install(adapter: str, cases_of: Cases) -> None:
    """Imported where no optional library is: the adapter either needs none or says which extra brings it."""
    modules = sorted({type(case.scorer).__module__ for case in cases_of(adapter)})
    code = f"""
import importlib, sys
import polars  # always there; it looks for torch itself
from beholder.core.errors import MissingExtra
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ImportError(name)
sys.meta_path.insert(0, Nowhere())
for name in {modules}:
    try:
        importlib.import_module(name)
        print("needs nothing:", name)
    except MissingExtra as error:
        print(str(error).splitlines()[-1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == len(modules)
    assert all(line.startswith(("needs nothing:", "Install it with: pip install 'beholder-audit[")) for line in told)
    loads_torch = any(hasattr(case.scorer, "_model") for case in cases_of(adapter))
    assert not loads_torch or any(line.startswith("Install it with") for line in told)


def folders(cases: Sequence[Case]) -> dict[str, Path]:
    return {case.name: case.folder for case in cases if case.folder}


@every_adapter
def test_code_in_the_folder_is_not_run_unasked(adapter: str, cases_of: Cases, tmp_path: Path, subtests: Any) -> None:
    for name, original in folders(cases_of(adapter)).items():
        with subtests.test(name):
            folder, trace = tmp_path / name, tmp_path / f"{name}.ran"
            shutil.copytree(original, folder)
            (folder / "evil.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
            config = json.loads((folder / "config.json").read_text())
            config["auto_map"] = {f"Auto{part}": f"evil.{part}" for part in ("Config", "Model", "Processor")}
            for model_type in (config["model_type"], "made-up-by-a-test"):
                (folder / "config.json").write_text(json.dumps(config | {"model_type": model_type}))
                try:
                    load_model(str(folder), CPU)
                except BeholderError as error:
                    refused = str(error)
                assert not trace.exists()
            # ALBEF's folders bring no image processor; without ALBEF's model type they are refused for that.
            assert "--trust-remote-code" in refused or not list(folder.glob("*processor_config.json"))


@every_adapter
def test_pickled_weights_are_not_opened_unasked(
    adapter: str, cases_of: Cases, rgb: list[Image.Image], tmp_path: Path, subtests: Any
) -> None:
    from safetensors.torch import load_file

    by_name = {case.name: case for case in cases_of(adapter)}
    for name, original in folders(cases_of(adapter)).items():
        with subtests.test(name):
            folder = Path(shutil.copytree(original, tmp_path / name))
            (weights,) = folder.glob("*.safetensors")
            torch.save(load_file(weights), folder / "pytorch_model.bin")
            weights.unlink()
            with pytest.raises(ModelError, match="--allow-pickle"):
                load_model(str(folder), CPU)
            allowed = load_model(str(folder), replace(CPU, allow_pickle=True))
            expected = by_name[name].scores(rgb[:2], ["a photo of a doctor"])
            cells = scored(allowed, rgb[:2], ["a photo of a doctor"])
            np.testing.assert_allclose(cells, expected, rtol=0, atol=by_name[name].tolerance)
