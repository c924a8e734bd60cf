"""The files of a checkpoint: which of them matter, and where they came from, a folder or the Hugging Face hub.

From the hub only what the adapters read is fetched, and what was fetched once needs no network afterwards. Many
repositories have only pickled weights on `main`, and the hub's own conversion of them to safetensors as an open pull
request: that is used, as transformers does. No torch here: a wrong folder is reported before torch is imported.
"""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from beholder.core.digests import digest, file_digest
from beholder.core.errors import MissingExtra, ModelError, first_line
from beholder.core.files import leads_out
from beholder.core.read import read_json
from beholder.core.types import Entry
from beholder.models.spec import LoadOptions

SETTINGS = tuple(
    """
    config.json preprocessor_config.json processor_config.json tokenizer.json tokenizer_config.json
    special_tokens_map.json added_tokens.json generation_config.json chat_template.* vocab.json vocab.txt
    merges.txt *.model *.safetensors.index.json
    """.split()
)
SAFE_WEIGHTS = ("model.safetensors", "model-*.safetensors")
PICKLED_WEIGHTS = ("pytorch_model.bin", "pytorch_model-*.bin", "pytorch_model.bin.index.json")
CODE = ("*.py",)
TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model")
IMAGE_PROCESSORS = ("preprocessor_config.json", "processor_config.json")


ConfigFile = Entry  # the JSON object of a config.json; its keys differ by family


class Origin(NamedTuple):
    """Where a checkpoint comes from: hub id and commit, or `folder` and the digest of its contents."""

    weights: str
    revision: str


class CheckpointFiles(NamedTuple):
    """A folder and the weights in it that may be read."""

    folder: Path
    weights: tuple[Path, ...]
    pickled: bool

    @property
    def origin(self) -> Origin:
        """The folder's contents as a revision: weights, configurations, tokenizer, and code if it has any."""
        return Origin("folder", content_digest([*matching(self.folder, [*SETTINGS, *CODE]), *self.weights]))


def find_files(
    folder: Path,
    *,
    allow_pickle: bool,
    pickled_names: Sequence[str] = PICKLED_WEIGHTS,
    image_processor: bool = True,
    tokenizer: bool = True,
) -> CheckpointFiles:
    """Safetensors if there are any; pickled weights, which can run code, only when they are allowed."""
    # transformers makes up an empty tokenizer where there is none, and the scores would mean nothing.
    needed = ("tokenizer", TOKENIZERS, tokenizer), ("image processor", IMAGE_PROCESSORS, image_processor)
    for what, names in ((what, names) for what, names, wanted in needed if wanted):
        if not matching(folder, names):
            raise ModelError(f"{folder} has no {what}: {', '.join(names)} were looked for.\nIt holds: {held(folder)}.")
    safe, pickled = matching(folder, SAFE_WEIGHTS), matching(folder, pickled_names)
    if safe:
        return CheckpointFiles(folder, tuple(safe), pickled=False)
    if pickled and allow_pickle:
        return CheckpointFiles(folder, tuple(pickled), pickled=True)
    if pickled:
        raise ModelError(
            f"{folder} holds its weights only as {', '.join(path.name for path in pickled)}: "
            "pickled files, which can run code when they are read.\n"
            "If you trust their source, allow them with --allow-pickle (LoadOptions.allow_pickle); "
            "better is a copy with model.safetensors."
        )
    raise ModelError(
        f"{folder} has no weights: {' or '.join(SAFE_WEIGHTS)} was looked for.\nIt holds: {held(folder)}.\n"
        "A hub model that has pickled weights only is fetched with --allow-pickle, if you trust its source."
    )


def content_digest(files: Iterable[Path]) -> str:
    """Stands for the names and bytes of these files, wherever their folder lies and whatever it is called."""
    ordered = sorted(files, key=lambda path: path.name)
    with ThreadPoolExecutor(4) as pool:  # hashing releases the interpreter's lock
        digests = pool.map(file_digest, ordered)
        return digest([[path.name, value] for path, value in zip(ordered, digests, strict=True)])


def matching(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """The folder's own files (not those of its subfolders) whose name fits one of the patterns, by name."""
    files = (path for path in folder.iterdir() if path.is_file())
    return sorted(path for path in files if any(fnmatch(path.name, pattern) for pattern in patterns))


def held(folder: Path) -> str:
    """What the folder holds, for a message."""
    return ", ".join(sorted(child.name for child in folder.iterdir())[:20]) or "nothing"


def require_file(folder: Path, name: str, *, why: str) -> Path:
    """The file, or an error that lists what the folder holds."""
    if leads_out(name):
        raise ModelError(f"{folder}: {name!r}, {why}, lies outside the model's folder.")
    path = folder / name
    if not os.path.isfile(path):  # unlike `Path.is_file`, it says no to names that no file can have
        raise ModelError(f"{folder} has no {name}, {why}.\nIt holds: {held(folder)}.")
    return path


def read_config(folder: Path) -> ConfigFile:
    """The `config.json` of a model folder, an object."""
    if not folder.is_dir():
        raise ModelError(f"There is no model folder {folder}.\nName a folder that holds a config.json and the weights.")
    path = require_file(folder, "config.json", why="which every model folder has")
    value = read_json(path, ModelError)
    if not isinstance(value, dict):
        raise ModelError(f"{path} must hold a JSON object, not {type(value).__name__}.")
    return value


# The hub

CONVERTER = "SFconvertbot"  # the hub's account that converts weights; pull requests of anyone else are not looked at
CONVERSION = "Adding `safetensors` variant of this model"


class Snapshot(NamedTuple):
    """A hub model as it lies on this machine."""

    folder: Path
    origin: Origin


def fetch(name: str, options: LoadOptions) -> Snapshot:
    """The files of `OWNER/NAME[@REVISION]`, fetched if they are not here yet; without safetensors, their conversion."""
    repository, _, revision = name.partition("@")
    wanted = [*SETTINGS, *SAFE_WEIGHTS]
    wanted += [*(PICKLED_WEIGHTS if options.allow_pickle else ()), *(CODE if options.trust_remote_code else ())]
    snapshot = fetch_files(repository, revision or options.revision or "main", wanted)
    if options.allow_pickle or matching(snapshot.folder, SAFE_WEIGHTS):
        return snapshot
    revision = snapshot.origin.revision
    reference = _conversion(repository, revision) or _fetched_conversion(snapshot.folder)
    if reference is None:
        raise ModelError(
            f"{repository} (revision {revision}) has no safetensors weights, and no conversion by the hub was found.\n"
            "If it has pickled weights, which can run code when they are read, and you trust their source: add "
            "--allow-pickle (LoadOptions.allow_pickle)."
        )
    return fetch_files(repository, reference, wanted)


def fetch_files(repository: str, revision: str, patterns: list[str]) -> Snapshot:
    """The files of a repository that fit one of the patterns, and the commit they are of."""
    try:
        import huggingface_hub as hub
    except ImportError as error:
        raise MissingExtra(f"The hub model {repository}", "torch") from error
    try:
        got = hub.snapshot_download(repository, revision=revision, allow_patterns=patterns, ignore_patterns=["*/*"])
    except Exception as error:
        if not _is_the_hubs(error, hub.errors):
            raise
        raise ModelError(_explain(repository, revision, error, hub.errors)) from error
    # The hub's cache names the folder of a snapshot after its commit.
    return Snapshot(Path(got), Origin(weights=repository, revision=Path(got).name))


def _conversion(repository: str, revision: str) -> str | None:
    """The pull request that adds safetensors to exactly these settings and pickled weights; None without a network."""
    import huggingface_hub

    api = huggingface_hub.HfApi()

    def contents(revision: str) -> set[tuple[str, str]]:
        """Settings and pickled weights of a revision: name and git's digest of the contents."""
        tree, names = api.list_repo_tree(repository, revision=revision), (*SETTINGS, *PICKLED_WEIGHTS)
        return {(each.path, each.blob_id) for each in tree if any(fnmatch(each.path, name) for name in names)}

    try:
        requests = api.get_repo_discussions(repository, author=CONVERTER, discussion_type="pull_request")
        references = [each.git_reference for each in requests if each.title == CONVERSION and each.status == "open"]
        asked = contents(revision) if references else set()
        return next((each for each in references if asked <= contents(each)), None)
    except Exception as error:
        if not _is_the_hubs(error, huggingface_hub.errors):
            raise
        return None


def _fetched_conversion(folder: Path) -> str | None:
    """A pull request of this model that was fetched before: the hub's cache keeps its commit under its name."""
    for path in sorted((folder.parents[1] / "refs" / "refs" / "pr").glob("*")):
        snapshot = folder.parent / path.read_text().strip()
        if snapshot.is_dir() and matching(snapshot, SAFE_WEIGHTS):
            return f"refs/pr/{path.name}"
    return None


def _is_the_hubs(error: Exception, errors: Any) -> bool:
    """Whether the hub, the network or the disk is at fault; the client's errors have no base of their own."""
    http_error = errors.HfHubHTTPError.__mro__[1]  # of the HTTP library, which changes with the client's version
    return isinstance(error, http_error | OSError) or type(error).__module__.startswith("huggingface_hub")


def _explain(repository: str, revision: str, error: Exception, errors: Any) -> str:
    model, folder = f"{repository} (revision {revision})", repository.replace("/", "--")
    if isinstance(error, errors.GatedRepoError):
        return f"{model} is gated: request access on its page at the hub, then log in with `hf auth login`."
    if isinstance(error, errors.RevisionNotFoundError):
        return f"The hub has {repository}, but no revision '{revision}' of it."
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            f"The hub has no model {repository}, and there is no folder of that name here.\n"
            "If the model is private or gated, log in with `hf auth login`."
        )
    if isinstance(error, errors.HFValidationError):
        return f"'{repository}' is no name that a hub model can have ({first_line(error)})."
    return (
        f"{model} is not on this machine, neither as a folder nor fetched before, "
        f"and cannot be fetched from the hub ({first_line(error)}).\n"
        f"Without a network: on a machine that has one, run\n"
        f"    hf download {repository} --local-dir {folder}\n"
        f"copy that folder here and use its path instead of the hub's name, as in: beholder audit ./{folder}"
    )
