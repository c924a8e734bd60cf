"""Load a model by its name: the one place that knows which name belongs to which adapter.

    null, null:SEED          noise, the baseline of every audit
    glasshouse/NAME          a reference model that comes with Beholder
    openclip:ARCH/TAG        a model of open_clip's list; ARCH/FILE for weights at hand
    onnx:DIR                 a folder with an ONNX image tower and a text tower or a table of texts
    openai:MODEL@URL         a model behind an OpenAI-compatible server
    predictions:PATH         what a detector or segmenter found elsewhere: nothing to load, says how to measure it
    DIR                      a transformers folder: config.json, weights, tokenizer
    OWNER/NAME[@REVISION]    a model of the Hugging Face hub
    ViT-B/32, BLIP …         a model of the studies' tables, by the name printed there (`catalog`)

An adapter's libraries are imported when a name asks for them, so `import beholder.models.load` costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from beholder.core.errors import ModelError, UnknownName, UsageError
from beholder.models.catalog import Entry, catalog, loadable, lookup, nearest
from beholder.models.families import adapter_of
from beholder.models.scorer import Scorer

REFERENCE_MODELS = Path(__file__).parents[1] / "glasshouse" / "models"
FORMS = (
    "null",
    "null:SEED",
    "glasshouse/NAME",
    "onnx:DIR",
    "openclip:ARCH/TAG",
    "openai:MODEL@URL",
    "DIR",
    "OWNER/NAME[@REVISION]",
)
PRECISIONS = {"float32": "float32", "bfloat16": "bfloat16", "float16": "float16"}
PRECISIONS |= {"auto": "float32", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
# auto is float32 on every device: scores before speed. Half precision is for the asking, and in the spec.
# Only models that answer in words are too large for that: theirs is bfloat16 on a GPU, and they may be quantised.
QUANTISED = ("int8", "int4")


@dataclass(frozen=True)
class LoadOptions:
    """How to load, as far as the user has a say in it."""

    device: str = "auto"
    """`auto` (CUDA where there is one, else the CPU), `cpu`, `cuda`, `cuda:1`, `mps`; `shard`
    spreads a model that answers in words over all devices. Not part of the spec: it is the same model on another
    machine, and float32 scores agree to rounding."""
    precision: str = "auto"
    batch_size: int | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    allow_pickle: bool = False
    shared_prefix: bool = True
    """Whether questions about one picture may share what they begin with; scores agree to rounding either way."""

    def __post_init__(self) -> None:
        if self.precision not in (known := (*PRECISIONS, *QUANTISED)):
            raise UnknownName("precision", self.precision, known)
        if self.batch_size is not None and self.batch_size < 1:
            raise UsageError(f"A batch of {self.batch_size} images was asked for; it takes at least 1.")

    @property
    def resolved_precision(self) -> str:
        """The precision's full name; `auto` is float32."""
        if self.precision in QUANTISED:
            raise UsageError(f"Only models that answer in words can be quantised ({self.precision}).")
        return PRECISIONS[self.precision]


def load_model(name: str, options: LoadOptions = LoadOptions()) -> Scorer:  # noqa: B008  (frozen)
    """The scorer that `name` stands for, ready to score."""
    scheme, colon, rest = name.partition(":")
    if name == "null" or (scheme == "null" and colon):
        return _null(name, rest)
    if colon and scheme in SCHEMES:
        return SCHEMES[scheme](rest, options)
    if name.startswith("glasshouse/"):
        return _folder(_reference_folder(name), name, options)
    if name and Path(name).expanduser().is_dir():
        return _folder(Path(name).expanduser(), name.rstrip("/"), options)
    if entry := lookup(name):  # a printed name may look like a folder's (ViT-B/32 w/ L2B) or the hub's (ViT-B/32)
        return _listed(entry, options)
    if _is_folder_name(name):
        return _folder(Path(name).expanduser(), name.rstrip("/"), options)
    if _is_hub_name(name):
        return _from_hub(name, options)
    raise UnknownName("model", name, [*FORMS, *reference_models(), *nearest(name)])


def reference_models() -> list[str]:
    """The models that come with Beholder, by name."""
    found = sorted(REFERENCE_MODELS.glob("*/config.json")) if REFERENCE_MODELS.is_dir() else []
    return [f"glasshouse/{path.parent.name}" for path in found]


def _null(name: str, seed: str) -> Scorer:
    from beholder.models.null import NullScorer

    if seed and not seed.isdecimal():
        raise ModelError(f"'{name}': the seed of a null model is a whole number, as in null:7, not '{seed}'.")
    return NullScorer(int(seed or 0))


def _onnx(directory: str, options: LoadOptions) -> Scorer:
    from beholder.models.contrastive.onnx import OnnxContrastive

    return OnnxContrastive.from_folder(
        Path(directory).expanduser(),
        name=f"onnx:{directory.rstrip('/')}",
        device=options.device,
        batch_size=options.batch_size,
    )


def _openclip(name: str, options: LoadOptions) -> Scorer:
    from beholder.models.contrastive.openclip import OpenClipContrastive

    return OpenClipContrastive.from_name(name, options)


def _folder(folder: Path, name: str, options: LoadOptions) -> Scorer:
    return adapter_of(folder)(folder, name, options)


def _hub(name: str, options: LoadOptions) -> Scorer:
    from beholder.models.checkpoint.hub import fetch

    snapshot = fetch(name, options)
    return adapter_of(snapshot.folder)(snapshot.folder, name, options, origin=snapshot.origin)


def _from_hub(name: str, options: LoadOptions) -> Scorer:
    """A hub model; where the hub does not help and a printed name is like it, the error says so."""
    try:
        return _hub(name, options)
    except ModelError as error:
        like = [] if any(name == entry.load for entry in catalog()) else nearest(name, count=1)
        if not like or ("is not on this machine" not in str(error) and "has no model" not in str(error)):
            raise
        raise ModelError(f"{error}\nAmong the studies' models, did you mean '{like[0]}'?") from error


def _served(address: str, options: LoadOptions) -> Scorer:
    from beholder.models.served.open import open_served

    return open_served(address, options)


def _predictions(path: str, options: LoadOptions) -> Scorer:
    # A scorer is shown pictures, never their names, and predictions are kept by name.
    raise UsageError(
        f"predictions:{path} are scores already: there is no model to run.\n"
        f"Measure them: beholder measure BENCHMARK --scores {path}"
    )


SCHEMES: dict[str, Callable[[str, LoadOptions], Scorer]] = {
    "onnx": _onnx,
    "openclip": _openclip,
    "openai": _served,
    "predictions": _predictions,
}


def _listed(entry: Entry, options: LoadOptions) -> Scorer:
    """A model of the studies, under its printed name."""
    pinned = entry.revision if entry.revision != "main" else None
    scorer = load_model(loadable(entry), replace(options, revision=options.revision or pinned or None))
    scorer.spec = replace(scorer.spec, name=entry.name)
    return scorer


def _reference_folder(name: str) -> Path:
    if name not in reference_models():
        raise UnknownName("reference model", name, reference_models())
    return REFERENCE_MODELS / name.removeprefix("glasshouse/")


def _is_folder_name(name: str) -> bool:
    """A name that could only be a folder's."""
    return name.startswith(("/", "./", "../", "~")) or name.count("/") > 1 or name in (".", "..")


def _is_hub_name(name: str) -> bool:
    owner, slash, model = name.partition("@")[0].partition("/")
    return bool(owner and slash and model) and ":" not in name
