"""Load a model by its name.

    null, null:SEED          random noise, the baseline of every audit
    SCHEME:REST              a family with a scheme: openclip:ARCH/TAG, onnx:DIR, openai:MODEL@URL (`families`)
    glasshouse/NAME          a reference model that comes with Beholder
    DIR                      a transformers folder: config.json, weights, tokenizer
    OWNER/NAME[@REVISION]    a model from the Hugging Face hub
    ViT-B/32, BLIP …         a model of the studies' tables, by its printed name (`catalog`)

An adapter's libraries are imported when one of its models is opened, so importing this module is cheap.
"""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from beholder.core.errors import ModelError, UnknownName
from beholder.models.catalog import ModelEntry, catalog, loadable, lookup, nearest
from beholder.models.checkpoint.hub import fetch
from beholder.models.families import FAMILIES, name_forms, open_folder
from beholder.models.machine import device_names
from beholder.models.scorer import Answerer, Scorer, decoder_of
from beholder.models.spec import LoadOptions as LoadOptions

LONGEST_PART = 255
"""Bytes of a file's name."""
REFERENCE_MODELS = Path(__file__).parents[1] / "glasshouse" / "models"


def load_model(name: str, options: LoadOptions = LoadOptions()) -> Scorer:  # noqa: B008  (frozen)
    """The scorer that `name` stands for, ready to score.

    >>> load_model("null").channels
    ('cosine',)
    """
    devices = device_names(options.device)
    if len(devices) > 1:
        return _on_several(name, options, devices)
    scorer = _opened(name, replace(options, device=devices[0]))
    if options.decode != "exact":
        _require_decoder(decoding_on_card(scorer) if options.decode == "both" else scorer)
    return scorer


def _require_decoder(scorer: Scorer) -> None:
    if decoder_of(scorer) is None:
        raise ModelError(
            f"--decode gpu is for two-tower models in torch; {scorer.spec.name} is none of them. Leave it out."
        )


def decoding_on_card(scorer: Scorer) -> Scorer:
    """The same model with `--decode gpu`."""
    twin = copy.copy(scorer)
    if decode := getattr(twin, "decode_on_card", None):
        decode()
    _require_decoder(twin)
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
            f"{name} is told how to answer, and several devices at once are not for such models.\n"
            "Name one device, or spread one model over all of them: --device shard."
        )
    vars(scorer)["replicas"] = copies
    return scorer


def _require_name(name: str) -> None:
    """Raise for what can be neither a folder nor a name: no file system and no hub could take it."""
    parts = [part.encode("utf-8", "replace") for part in name.split("/")]
    if "\0" in name or max(map(len, parts)) > LONGEST_PART or (not name.isprintable() and not Path(name).is_dir()):
        shown = name[:60].encode("unicode_escape").decode()
        raise ModelError(f"'{shown}' is not the name of a model: it is too long, or has signs that no name can have.")


def _opened(name: str, options: LoadOptions) -> Scorer:
    _require_name(name)
    scheme, colon, rest = name.partition(":")
    if name == "null" or (colon and scheme in FAMILIES and FAMILIES[scheme].form):
        return FAMILIES[scheme].open(rest, options)
    if name.startswith("glasshouse/"):
        return open_folder(_reference_folder(name), name, options)
    if name and Path(os.path.expanduser(name)).is_dir():
        return open_folder(Path(os.path.expanduser(name)), name.rstrip("/"), options)
    if entry := lookup(name):  # a printed name may look like a folder (ViT-B/32 w/ L2B) or a hub id (ViT-B/32)
        return _open_entry(entry, options)
    if _is_folder_name(name):
        return open_folder(Path(os.path.expanduser(name)), name.rstrip("/"), options)
    if _is_hub_name(name):
        return _open_hub(name, options)
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
    """Whether the name can only be that of a folder."""
    return name.startswith(("/", "./", "../", "~")) or name.count("/") > 1 or name in (".", "..")


def _is_hub_name(name: str) -> bool:
    owner, slash, model = name.partition("@")[0].partition("/")
    return bool(owner and slash and model) and ":" not in name
