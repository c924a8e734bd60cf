"""A hub model is fetched once, found again without a network, and its commit is its revision."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from beholder.core.errors import ModelError
from beholder.models.load import LoadOptions, load_model

hub = pytest.importorskip("huggingface_hub")
pytest.importorskip("transformers")

COMMIT = "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268"
Download = Callable[..., str]


@pytest.fixture
def hub_answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Download], None]:
    """Put a stand-in in the place of the hub."""
    return lambda answer: monkeypatch.setattr(hub, "snapshot_download", answer)


class Unreachable(hub.errors.HfHubHTTPError.__mro__[1]):  # type: ignore[misc]
    """What the HTTP library of this version of the hub's client raises without a network."""


def refusal(kind: type[Exception]) -> Exception:
    response = SimpleNamespace(headers={}, status_code=404, request=None, text="")
    return kind("refused", response=response)  # type: ignore[call-arg]


def failing(error: Exception) -> Download:
    def download(*_: Any, **__: Any) -> str:
        raise error

    return download


def test_the_commit_is_the_revision(
    tiny_model: Callable[[str], Path], tmp_path: Path, hub_answers: Callable[[Download], None]
) -> None:
    asked: dict[str, Any] = {}

    def download(repository: str, **options: Any) -> str:
        asked.update(options, repository=repository)
        return str(shutil.copytree(tiny_model("clip"), tmp_path / COMMIT))

    hub_answers(download)
    spec = load_model("openai/clip-tiny@v2").spec
    assert (spec.name, spec.weights, spec.revision) == ("openai/clip-tiny@v2", "openai/clip-tiny", COMMIT)
    assert (asked["repository"], asked["revision"]) == ("openai/clip-tiny", "v2")
    assert "model.safetensors" in asked["allow_patterns"]
    assert not any(pattern.endswith((".bin", ".py")) for pattern in asked["allow_patterns"])


def test_the_revision_may_be_an_option(hub_answers: Callable[[Download], None]) -> None:
    def download(repository: str, **options: Any) -> str:
        raise OSError(f"{options['revision']}, {options['allow_patterns'][-3:]}")

    hub_answers(download)
    with pytest.raises(ModelError, match=r"abc, \['pytorch_model.bin'"):
        load_model("openai/clip-tiny", LoadOptions(revision="abc", allow_pickle=True))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unreachable("no route"), "cannot be fetched from the hub"),
        (hub.errors.LocalEntryNotFoundError("not cached"), "cannot be fetched from the hub"),
        (hub.errors.OfflineModeIsEnabled("offline"), "cannot be fetched from the hub"),
        (OSError("No space left on device"), "No space left on device"),
        (hub.errors.HFValidationError("bad"), "no name that a hub model can have"),
        (refusal(hub.errors.RepositoryNotFoundError), "The hub has no model openai/clip-tiny"),
        (refusal(hub.errors.GatedRepoError), "gated: request access"),
        (refusal(hub.errors.RevisionNotFoundError), "no revision 'main'"),
    ],
)
def test_what_the_hub_refuses_is_told_with_what_to_do(
    error: Exception, told: str, hub_answers: Callable[[Download], None]
) -> None:
    hub_answers(failing(error))
    with pytest.raises(ModelError, match=told):
        load_model("openai/clip-tiny")


def test_without_a_network_the_way_by_a_folder_is_shown(hub_answers: Callable[[Download], None]) -> None:
    hub_answers(failing(Unreachable("no route")))
    with pytest.raises(ModelError, match=r"hf download openai/clip-tiny --local-dir openai--clip-tiny"):
        load_model("openai/clip-tiny")


def test_our_own_mistakes_are_not_blamed_on_the_hub(hub_answers: Callable[[Download], None]) -> None:
    hub_answers(failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        load_model("openai/clip-tiny")
