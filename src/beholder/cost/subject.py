"""What is known of a model without loading it: its family, its shapes, where its files are. Nothing is fetched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from beholder.core.errors import ModelError, UnknownName
from beholder.cost.shapes import READERS, Shapes, UnknownShape, known_configs, shapes_of
from beholder.models.catalog import BYTES, ModelEntry, lookup, nearest
from beholder.models.checkpoint.files import ConfigFile, matching, read_config
from beholder.models.families import FAMILIES, family_of, name_forms
from beholder.models.load import REFERENCE_MODELS, reference_models
from beholder.models.served.address import Address, read_address

WEIGHTS = ("*.safetensors", "*.bin", "*.onnx")


@dataclass(frozen=True)
class Subject:
    """A model as far as it is known."""

    name: str
    kind: str
    """contrastive, matching, generative, detection, segmentation or baseline."""
    shapes: Shapes | None = None
    unknown: str = ""
    """Why its shapes are not known."""
    folder: Path | None = None
    """Where its files are on this machine."""
    here: bool = False
    """Whether its weights are on this machine."""
    parameters: int | None = None
    served: Address | None = None
    width: int | None = None
    """Numbers in an image's vector, if it gives vectors."""
    file_bytes: int | None = None
    """Of weights that are used as they lie on disk."""

    def weights(self, precision: str) -> int | None:
        """Bytes that its weights take in memory."""
        if self.file_bytes is not None:
            return self.file_bytes
        return self.parameters * BYTES.get(precision, 2) if self.parameters else None


def subject_of(name: str) -> Subject:
    """What is known of the model of this name."""
    scheme, colon, rest = name.partition(":")
    if scheme == "openai" and colon:
        return _served(name, read_address(rest))
    if scheme == "onnx" and colon:
        return _onnx(name, Path(rest).expanduser())
    if name == "null" or (scheme == "null" and colon):
        return Subject(name, "baseline", unknown="it computes nothing", here=True)
    folder = REFERENCE_MODELS / name.removeprefix("glasshouse/") if name in reference_models() else Path(name)
    if name and folder.expanduser().is_dir():
        return _folder(name, folder.expanduser())
    entry = lookup(name)
    load = entry.load if entry else name
    if load in known_configs() or _cached(load):
        return _by_config(name, load, entry)
    if entry:
        why = f"no table has the sizes of {entry.name}, and it is not on this machine"
        return Subject(name, entry.family, unknown=why, parameters=entry.parameters)
    if (colon and scheme in FAMILIES) or name.count("/") == 1:
        raise ModelError(
            f"What {name} computes is not known: it is not on this machine, and no table has its sizes.\n"
            "Name a folder that holds its config.json (the weights may be missing), or a model of "
            "`beholder list models`."
        )
    raise UnknownName("model", name, [*name_forms(), *reference_models(), *nearest(name)])


def _folder(name: str, folder: Path) -> Subject:
    config = read_config(folder)
    shapes, why = _shapes(config)
    files = matching(folder, WEIGHTS)
    return Subject(
        name,
        shapes.kind if shapes else family_of(config).kind,
        shapes,
        why,
        folder,
        bool(files),
        shapes.parameters if shapes else None,
        width=shapes.width if shapes else None,
    )


def _by_config(name: str, load: str, entry: ModelEntry | None) -> Subject:
    if folder := _cached(load):
        return _folder(load, folder)
    config = known_configs()[load]
    shapes, why = _shapes(config)
    if shapes is None:
        return Subject(name, family_of(config).kind, unknown=why)
    parameters = entry.parameters if entry else None
    return Subject(name, shapes.kind, shapes, parameters=parameters or shapes.parameters, width=shapes.width)


def _shapes(config: ConfigFile) -> tuple[Shapes | None, str]:
    """What the config says, with the library's defaults where it leaves something out."""
    try:
        return shapes_of(config), ""
    except UnknownShape as error:
        why = str(error)
    if config.get("model_type") not in READERS:
        return None, why
    try:
        from transformers import CONFIG_MAPPING  # optional, and slow to start
    except ImportError:
        return None, why
    try:
        return shapes_of(CONFIG_MAPPING[str(config["model_type"])].from_dict(config).to_dict()), ""
    except (UnknownShape, TypeError, ValueError, AttributeError):
        return None, why


def _served(name: str, address: Address) -> Subject:
    """Behind a server; its shapes tell how many tokens a picture takes, if the catalogue has a model of that name."""
    entry = lookup(address.model) or lookup(address.model.rpartition("/")[2])
    load = entry.load if entry else address.model
    if load in known_configs():
        shapes, why = _shapes(known_configs()[load])
        return Subject(name, "generative", shapes, why, served=address)
    return Subject(name, "generative", unknown=f"no table has the sizes of {address.model}", served=address)


def _onnx(name: str, folder: Path) -> Subject:
    config = read_config(folder)
    files = matching(folder, ("*.onnx",))
    why = "an ONNX graph does not state its layers"
    width = config.get("embedding_dim")
    size = sum(path.stat().st_size for path in files)
    return Subject(
        name,
        "contrastive",
        unknown=why,
        folder=folder,
        here=bool(files),
        width=width if isinstance(width, int) else None,
        file_bytes=size,
    )


def _cached(load: str) -> Path | None:
    """The folder of a hub model that was fetched before."""
    owner, slash, _ = load.partition("/")
    if not (owner and slash) or ":" in load or load.count("/") != 1:
        return None
    try:
        from huggingface_hub import try_to_load_from_cache  # an optional dependency

        path = try_to_load_from_cache(load.partition("@")[0], "config.json", revision=load.partition("@")[2] or None)
    except (ImportError, ValueError):
        return None
    return Path(path).parent if isinstance(path, str) else None
