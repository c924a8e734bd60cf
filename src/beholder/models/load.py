"""Load a model by its name (`catalog.name_forms`), or take one that the caller has at hand.

An adapter's libraries are imported when one of its models is opened, so importing this module is cheap. Loaded objects
of transformers or open_clip are copied: the caller's own may go on being trained. A copy is named by the digest of its
weights, so the store never takes the scores of one state of a model for those of another.
"""

import copy
import os
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from PIL import Image

from beholder.core.errors import ModelError, UnknownName, UsageError, first_line
from beholder.core.types import AnyArray
from beholder.datasets.images import on_white
from beholder.models.catalog import FAMILIES, ModelEntry, catalog, lookup, name_forms, nearest, open_folder
from beholder.models.checkpoint.files import fetch
from beholder.models.scorer import Answerer, Floats, Scorer
from beholder.models.spec import AS_SERVED, PRECISIONS, ModelSpec, Module, Processor, device_names
from beholder.models.spec import LoadOptions as LoadOptions
from beholder.prompts.prompt_set import PLAIN, Instruction

USUAL = {"precision": ("auto",), "device": ("auto", "cpu")}  # what nobody chose
LONGEST_PART = 255  # bytes of a file's name
REFERENCE_MODELS = Path(__file__).parents[1] / "glasshouse" / "models"


def load_model(name: str, options: LoadOptions = LoadOptions()) -> Scorer:  # noqa: B008  (frozen)
    """The scorer that `name` stands for, ready to score.

    >>> load_model("null").channels
    ('cosine',)
    """
    devices = device_names(options.device)
    if len(devices) > 1:
        return _on_several(name, options, devices)
    scorer = way_to_open(name, replace(options, device=devices[0]))()
    if options.decode == "exact":
        return scorer
    twin = decoding_on_gpu(scorer)  # an error where that cannot be
    return twin if options.decode == "gpu" else scorer


def refuse_unused(models: Sequence[str | Scorer], options: LoadOptions) -> None:
    """Raise for a precision or a device that no model heeds; those named are opened only until one heeds it."""
    idle = {name for name, usual in USUAL.items() if getattr(options, name) not in usual}
    why = dict[str, str]()
    for model in models if idle else ():
        spec = (load_model(model, options) if isinstance(model, str) else model).spec
        own = spec.precision
        idle -= {"precision"} if own in (options.precision, PRECISIONS.get(options.precision)) else set()
        idle -= {"device"} if spec.adapter not in ("null", "function") and own != AS_SERVED else set()
        why = {"precision": f"{spec.name}: it is {own}", "device": f"{spec.name}, which no device here runs"} | why
        if not idle:
            return
    for name in sorted(idle & {*why}):
        raise UsageError(f"--{name} {getattr(options, name)} does nothing for {why[name]}. Leave it out.")


def decoding_on_gpu(scorer: Scorer) -> Scorer:
    """The same model with `--decode gpu`."""
    twin = copy.copy(scorer)
    decode = getattr(twin, "decode_on_gpu", None)
    if decode is None:
        raise ModelError(
            f"--decode gpu is for two-tower models in torch; {scorer.spec.name} is none of them. Leave it out."
        )
    decode()
    return twin


class Replica(NamedTuple):
    """A copy of a model on one of several devices: how to load it."""

    name: str
    options: LoadOptions


def replicas_of(scorer: Scorer) -> list[Replica]:
    """The copies of a model that was loaded for several devices; none if there is one."""
    replicas: list[Replica] = getattr(scorer, "replicas", [])
    return replicas


def _on_several(name: str, options: LoadOptions, devices: list[str]) -> Scorer:
    """The model on the first device, which knows of the others; they are loaded when there is work for them."""
    copies = [Replica(name, replace(options, device=device)) for device in devices]
    scorer = load_model(*copies[0])
    if isinstance(scorer, Answerer):
        raise ModelError(
            f"{name} is instructed how to answer, and several devices at once are not for such models.\n"
            "Name one device, or spread one model over all of them: --device shard."
        )
    vars(scorer)["replicas"] = copies
    return scorer


def way_to_open(name: str, options: LoadOptions) -> Callable[[], Scorer]:
    """What opens a model, by the form of its name; an error for a name that no model can have. Nothing is opened."""
    parts = [part.encode("utf-8", "replace") for part in name.split("/")]
    if "\0" in name or max(map(len, parts)) > LONGEST_PART or (not name.isprintable() and not Path(name).is_dir()):
        shown = name[:60].encode("unicode_escape").decode()
        raise ModelError(f"'{shown}' is not the name of a model: it is too long, or has invalid characters.")
    scheme, colon, rest = name.partition(":")
    if name == "null" or (colon and scheme in FAMILIES and FAMILIES[scheme].form):
        return partial(FAMILIES[scheme].open, rest, options)
    if name.startswith("glasshouse/"):
        if name not in reference_models():
            raise UnknownName("reference model", name, reference_models())
        return partial(open_folder, REFERENCE_MODELS / name.removeprefix("glasshouse/"), name, options)
    folder = Path(os.path.expanduser(name))
    if name and (folder / "image.onnx").is_file():
        return partial(FAMILIES["onnx"].open, name, options)
    if name and folder.is_dir():
        return partial(open_folder, folder, name.rstrip("/"), options)
    if entry := lookup(name):  # a printed name may look like a folder (ViT-B/32 w/ L2B) or a hub id (ViT-B/32)
        return partial(_open_entry, entry, options)
    if name.startswith(("/", "./", "../", "~")) or name.count("/") > 1 or name in (".", ".."):
        return partial(open_folder, folder, name.rstrip("/"), options)  # only a folder: the error says what is missing
    owner, slash, model = name.partition("@")[0].partition("/")
    if owner and slash and model and ":" not in name:
        return partial(_open_hub, name, options)
    raise UnknownName("model", name, [*name_forms(), *reference_models(), *nearest(name)])


def reference_models() -> list[str]:
    """The names of the models that come with Beholder."""
    return [f"glasshouse/{path.parent.name}" for path in sorted(REFERENCE_MODELS.glob("*/config.json"))]


def _open_hub(name: str, options: LoadOptions) -> Scorer:
    """A hub model; if the hub does not have it, the error suggests the nearest model of the studies."""
    try:
        snapshot = fetch(name, options)
        return open_folder(snapshot.folder, name, options, origin=snapshot.origin)
    except ModelError as error:
        similar = [] if any(name == entry.load for entry in catalog()) else nearest(name, count=1)
        if not similar or ("is not on this machine" not in str(error) and "has no model" not in str(error)):
            raise
        raise ModelError(f"{error}\nAmong the studies' models, did you mean '{similar[0]}'?") from error


def _open_entry(entry: ModelEntry, options: LoadOptions) -> Scorer:
    if not entry.load:
        raise ModelError(f"{entry.name} cannot be loaded by its name alone.\n{entry.note}\nSource: {entry.source}")
    pinned = entry.revision if entry.revision != "main" else None
    scorer = load_model(entry.load, replace(options, revision=options.revision or pinned or None))
    scorer.spec = replace(scorer.spec, name=entry.name)
    return scorer


# Models at hand

Function = Callable[[list[Image.Image], list[str]], Any]
Model = str | Path | Scorer | Function | tuple[Any, ...]
"""A name, a scorer, a function, `(model, processor)` of transformers, `(model, preprocess, tokenizer)` of open_clip."""
Kind = Literal["matching", "contrastive", "generative"]
CHANNELS: dict[str, tuple[str, ...]] = {  # what a function's numbers are
    **{"matching": ("match_logit",), "contrastive": ("cosine",), "generative": ("log_p_yes", "log_p_no")}
}
LEAST = 1e-6  # the probability that stands for none: its logarithm is a number


@dataclass(frozen=True)
class ModelIdentity:
    """What an object does not say of itself."""

    name: str | None = None  # what people call it
    revision: str | None = None  # which state of a function this is; without it, its scores are not kept
    kind: Kind = "matching"
    """Of a function: `matching` gives logits, used as they are; `contrastive` gives cosines; `generative` gets whole
    questions and gives answers in words, or probabilities of yes."""
    logit_scale: float | None = None  # of a contrastive function: what the model multiplies a cosine by


def as_scorer(model: Model, options: LoadOptions, given: ModelIdentity = ModelIdentity()) -> Scorer:  # noqa: B008  (frozen)
    """The model as a scorer; an error says what is missing."""
    if isinstance(model, str | Path):
        return load_model(str(model), options)
    if hasattr(model, "score_prepared") and hasattr(model, "spec"):
        return model  # type: ignore[return-value]  # a Scorer by its shape
    parts = model if isinstance(model, tuple) else (model,)
    if len(parts) == 2 and hasattr(parts[1], "state_dict") and not hasattr(parts[0], "state_dict"):
        parts = parts[::-1]  # (processor, model)
    if len(parts) > 1 and hasattr(parts[0], "save_pretrained"):
        return _saved(parts[0], parts[1:], options, given.name)
    if len(parts) == 3 and hasattr(parts[0], "encode_image"):
        from beholder.models.contrastive.openclip import OpenClipContrastive  # needs an optional library

        return OpenClipContrastive.from_objects(*parts, options, name=given.name)
    if len(parts) == 1 and hasattr(parts[0], "state_dict"):
        raise UsageError(
            f"A {type(parts[0]).__name__} alone cannot be audited: how pictures and texts are prepared is not known.\n"
            "Give it with its processor, (model, processor), or for open_clip (model, preprocess, tokenizer)."
        )
    if len(parts) == 1 and callable(parts[0]):
        kind = AnsweringFunction if given.kind == "generative" else FunctionScorer
        return kind(parts[0], given, batch_size=options.batch_size)
    raise UsageError(
        f"{_described(model)} is not a model. A model is a name, a Scorer, (model, processor) of transformers, (model, "
        "preprocess, tokenizer) of open_clip, or a function of images and prompts.\nSeveral models go in a list."
    )


def _described(model: object) -> str:
    if isinstance(model, tuple):
        return f"({', '.join(type(part).__name__ for part in model)})"
    return f"A {type(model).__name__}"


def _saved(model: Module, processors: Sequence[Processor], options: LoadOptions, name: str | None) -> Scorer:
    """A model of transformers, saved and opened like any folder: with the same checks, and the same scores."""
    if not all(hasattr(each, "save_pretrained") for each in processors):
        raise UsageError(f"{_described(tuple(processors))} is not a processor of transformers.")
    from beholder.models.checkpoint.checkpoint import captured_warnings  # needs transformers

    with tempfile.TemporaryDirectory(prefix="beholder-model-") as folder:
        with captured_warnings():
            for part in (model, *processors):
                part.save_pretrained(folder)
        called = name or getattr(model.config, "name_or_path", "") or type(model).__name__
        scorer = open_folder(Path(folder), called, options)
    return decoding_on_gpu(scorer) if options.decode == "gpu" else scorer


class FunctionScorer:
    """A function of images and prompts that gives a number for every pair."""

    def __init__(self, function: Function, given: ModelIdentity, *, batch_size: int | None = None) -> None:
        if given.kind not in CHANNELS:
            raise UsageError(f"kind={given.kind!r}: a function is one of {', '.join(map(repr, CHANNELS))}.")
        if given.kind == "contrastive" and given.logit_scale is None:
            raise UsageError(
                "The scores of a contrastive model are cosines. Say what it multiplies them by, as in "
                "logit_scale=100, or give its logits and kind='matching'."
            )
        if given.revision is not None and given.name is None:
            raise UsageError(f"revision={given.revision!r} is the revision of what? Say name= too.")
        # Without a revision its scores must not be kept: nothing says which state of the function they belong to.
        self.temporary = given.revision is None
        name = str(given.name or getattr(function, "__name__", type(function).__name__))
        settings = {"kind": given.kind, "logit_scale": given.logit_scale or 1.0, "logit_bias": 0.0}
        revision = uuid.uuid4().hex if given.revision is None else given.revision
        self.spec = ModelSpec(name, "function", name, revision, settings=settings)
        self.channels: tuple[str, ...] = CHANNELS[given.kind]
        self.batch_size = batch_size or 16
        self._function = function

    def prepare(self, image: Image.Image) -> Image.Image:
        """The picture itself, in RGB."""
        return on_white(image)

    def score_prepared(self, prepared: Sequence[Image.Image], prompts: Sequence[str]) -> Floats:
        """What the function gives, checked: a row for each picture, a column for each prompt."""
        scores = self._function(list(prepared), self._asked(prompts))
        try:
            cells = np.asarray(scores.detach().float().cpu() if hasattr(scores, "detach") else scores)
            values = self._values(cells)
        except (ValueError, TypeError) as error:
            raise ModelError(
                f"{self.spec.name} gave no table of numbers: {first_line(error)}. A function that answers in words is "
                "kind='generative'."
            ) from error
        if cells.shape != (len(prepared), len(prompts)):
            raise ModelError(
                f"{self.spec.name} gave scores of shape {cells.shape} for {len(prepared)} images and {len(prompts)} "
                f"prompts. A row for each image and a column for each prompt is expected: "
                f"{(len(prepared), len(prompts))}."
            )
        return values

    def _asked(self, prompts: Sequence[str]) -> list[str]:
        return list(prompts)

    def _values(self, cells: AnyArray) -> Floats:
        """The numbers as channels."""
        return np.asarray(cells, dtype=np.float32)[..., None]


class AnsweringFunction(FunctionScorer):
    """A function of images and whole questions; it answers in words, or with the probability of yes."""

    def __init__(self, function: Function, given: ModelIdentity, *, batch_size: int | None = None) -> None:
        super().__init__(function, given, batch_size=batch_size)
        self._instruction, self._unclear = PLAIN, [0]  # how many answers were neither word, of all wordings

    def instructed(self, instruction: Instruction) -> "AnsweringFunction":
        """The same function, asked this way."""
        made = copy.copy(self)
        words = {"instruction": instruction.template, "answers": {"yes": instruction.yes, "no": instruction.no}}
        made._instruction, made.spec = instruction, self.spec.having(**words)
        return made

    @property
    def notes(self) -> list[str]:
        """How many answers were neither word."""
        yes, no = self._instruction.yes, self._instruction.no
        return [f"{self._unclear[0]:,} answers begin with neither {yes} nor {no}"] if self._unclear[0] else []

    def _asked(self, prompts: Sequence[str]) -> list[str]:
        return [self._instruction.ask(prompt) for prompt in prompts]

    def _values(self, cells: AnyArray) -> Floats:
        from beholder.models.served.protocol import outcome  # scipy's statistics are slow to import

        told = [outcome(each, self._instruction) if isinstance(each, str) else each for each in cells.ravel().tolist()]
        both = [(each == "yes", each == "no") if isinstance(each, str) else (each, 1 - each) for each in told]
        shares = np.asarray(both, dtype=np.float32)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError("a probability of yes lies between 0 and 1")
        self._unclear[0] += sum(each in ("other", "open") for each in told)
        return np.asarray(np.log(np.clip(shares, LEAST, 1))).reshape(*cells.shape, 2)
