"""The Hugging Face hub: a model's name becomes a folder on this machine and the commit it stands for.

Only what the adapter reads is fetched: configurations, tokenizer, safetensors weights. Many repositories have only
pickled weights on `main`, and the hub's own conversion of them to safetensors as an open pull request: that is used, as
transformers does. What was fetched once needs no network afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from beholder.core.errors import MissingExtra, ModelError, first_line
from beholder.models.checkpoint.files import CODE, PICKLED_WEIGHTS, SAFE_WEIGHTS, SETTINGS, Origin, matching
from beholder.models.spec import LoadOptions

CONVERTER = "SFconvertbot"
"""The hub's account that converts weights; pull requests of anyone else are not looked at."""
CONVERSION = "Adding `safetensors` variant of this model"


class Snapshot(NamedTuple):
    """A hub model as it lies on this machine."""

    folder: Path
    origin: Origin


def fetch(name: str, options: LoadOptions) -> Snapshot:
    """The files of `OWNER/NAME[@REVISION]`, fetched if they are not here yet."""
    repository, _, revision = name.partition("@")
    pickled = PICKLED_WEIGHTS if options.allow_pickle else ()
    code = CODE if options.trust_remote_code else ()
    wanted = [*SETTINGS, *SAFE_WEIGHTS, *pickled, *code]
    snapshot = fetch_files(repository, revision or options.revision or "main", wanted)
    if options.allow_pickle or matching(snapshot.folder, SAFE_WEIGHTS):
        return snapshot
    return _converted(snapshot, wanted)


def fetch_files(repository: str, revision: str, patterns: list[str]) -> Snapshot:
    """The files of a repository that fit one of the patterns, and the commit they are of."""
    folder = Path(_download(repository, revision, patterns))
    # The hub's cache names the folder of a snapshot after its commit.
    return Snapshot(folder, Origin(weights=repository, revision=folder.name))


def _converted(snapshot: Snapshot, wanted: list[str]) -> Snapshot:
    """The hub's safetensors conversion of a snapshot without such weights."""
    repository, revision = snapshot.origin
    reference = _conversion(repository, revision) or _fetched_conversion(snapshot.folder)
    if reference is None:
        raise ModelError(
            f"{repository} (revision {revision}) has no safetensors weights, and no conversion by the hub was found.\n"
            "If it has pickled weights, which can run code when they are read, and you trust their source: add "
            "--allow-pickle (LoadOptions.allow_pickle)."
        )
    return fetch_files(repository, reference, wanted)


def _conversion(repository: str, revision: str) -> str | None:
    """The pull request that adds safetensors to exactly these settings and pickled weights; None without a network."""
    import huggingface_hub

    api = huggingface_hub.HfApi()
    try:
        requests = api.get_repo_discussions(repository, author=CONVERTER, discussion_type="pull_request")
        references = [each.git_reference for each in requests if each.title == CONVERSION and each.status == "open"]
        asked = _contents(api, repository, revision) if references else {}
        return next((each for each in references if asked.items() <= _contents(api, repository, each).items()), None)
    except Exception as error:
        if not _is_the_hubs(error, huggingface_hub.errors):
            raise
        return None


def _contents(api: Any, repository: str, revision: str) -> Mapping[str, str]:
    """Settings and pickled weights of a revision: name and git's digest of the contents."""
    tree = api.list_repo_tree(repository, revision=revision)
    names = (*SETTINGS, *PICKLED_WEIGHTS)
    return {each.path: each.blob_id for each in tree if any(fnmatch(each.path, name) for name in names)}


def _fetched_conversion(folder: Path) -> str | None:
    """A pull request of this model that was fetched before: the hub's cache keeps its commit under its name."""
    requests = sorted((folder.parents[1] / "refs" / "refs" / "pr").glob("*"))
    snapshots = [(path, folder.parent / path.read_text().strip()) for path in requests]
    return next(
        (f"refs/pr/{path.name}" for path, one in snapshots if one.is_dir() and matching(one, SAFE_WEIGHTS)), None
    )


def _download(repository: str, revision: str, patterns: list[str]) -> str:
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingExtra(f"The hub model {repository}", "torch") from error
    try:
        return str(
            huggingface_hub.snapshot_download(
                repository, revision=revision, allow_patterns=patterns, ignore_patterns=["*/*"]
            )
        )
    except Exception as error:
        if not _is_the_hubs(error, huggingface_hub.errors):
            raise
        raise ModelError(_explain(repository, revision, error, huggingface_hub.errors)) from error


def _is_the_hubs(error: Exception, errors: Any) -> bool:
    """Whether the hub, the network or the disk is at fault; the client's errors have no base of their own."""
    http_error = errors.HfHubHTTPError.__mro__[1]  # of the HTTP library, which changes with the client's version
    return isinstance(error, http_error | OSError) or type(error).__module__.startswith("huggingface_hub")


def _explain(repository: str, revision: str, error: Exception, errors: Any) -> str:
    model = f"{repository} (revision {revision})"
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
        f"    hf download {repository} --local-dir {repository.replace('/', '--')}\n"
        "copy that folder here and use its path instead of the hub's name, "
        f"as in: beholder audit ./{repository.replace('/', '--')}"
    )
