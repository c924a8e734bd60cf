"""The store: what was scored once is never scored again.

    STORE/seal.key                                        what seals blocks and digests (`core/seal.py`)
    STORE/digests.sqlite                                  digests of image files (`core/digests.py`)
    STORE/<spec digest>/spec.json
    STORE/<spec digest>/images/<block>.parquet            unit vectors by image content (contrastive models)
    STORE/<spec digest>/texts/<block>.parquet             unit vectors by text
    STORE/<spec digest>/scores/<prompts>/<block>.parquet  cells by image content (all other models)
    STORE/<spec digest>/complete/<sheet>.json             a manifest, written last: this sheet is complete
    STORE/<spec digest>/**/index                          where the rows of a shelf's blocks are (`shelf.py`)

A block (`shelf.py`) is written whole or not at all (a temporary file, flushed to the disk, then renamed) and never
changed: several processes may fill one store, and a kill at any moment costs only unwritten rows. Vectors of faces can
be personal data: whatever is made here is for its owner alone.

STORE may be a URI (`s3://bucket/scores`). There a block is put as one object. Digests of files behind URIs are kept in
sealed blocks too (`STORE/digests/`), for the next machine; this machine's own copy is in the user's cache.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from beholder.core.digests import SharedDigests, digest, seal_key
from beholder.core.errors import RemoteError
from beholder.core.files import Place, cache_folder, place, write_whole
from beholder.core.remote import RemotePath
from beholder.datasets.dataset import ImageDigests
from beholder.models.spec import ModelSpec
from beholder.scores.shelf import Shelf


class Store:
    """Everything scored so far, by model."""

    def __init__(self, root: str | Place) -> None:
        """`root` is a folder or a URI."""
        self.root = place(root)

    @property
    def digest_memory(self) -> Path:
        """Where file digests are remembered on this machine."""
        if isinstance(self.root, RemotePath):
            return cache_folder() / "remote" / digest(str(self.root)) / "digests.sqlite"
        return self.root / "digests.sqlite"

    def image_digests(self, *, verify: bool = False) -> ImageDigests:
        """The digests of images, as far as they are remembered."""
        shared = SharedDigests(self.root / "digests", self.key) if isinstance(self.root, RemotePath) else None
        return ImageDigests(self.digest_memory, verify=verify, shared=shared)

    def holds(self, spec: ModelSpec) -> bool:
        """Whether anything of a model is stored."""
        return (self.root / spec.digest).is_dir()

    @cached_property
    def key(self) -> bytes:
        """What seals all that is written here."""
        return seal_key(self.root)

    def images(self, spec: ModelSpec) -> Shelf:
        """The image vectors of a contrastive model."""
        return self.shelf(self._describe(spec), "images")

    def texts(self, spec: ModelSpec) -> Shelf:
        """The text vectors of a contrastive model."""
        return self.shelf(self._describe(spec), "texts")

    def scores(self, spec: ModelSpec, prompts_digest: str, widths: Mapping[str, int] | None = None) -> Shelf:
        """The cells of a model that scores pairs; `widths` are the prompts of each channel, if they are known."""
        return self.shelf(self._describe(spec), "scores", prompts_digest, widths)

    def complete(self, spec: ModelSpec, sheet: str, manifest: Mapping[str, object]) -> None:
        """Say that a sheet is complete; the date of the file says when it was last used."""
        path, data = self.root / spec.digest / "complete" / f"{sheet}.json", json.dumps(manifest, indent=1).encode()
        if isinstance(path, RemotePath):  # only by writing it again does it get a new date
            with suppress(RemoteError):
                write_whole(path, data)
            return
        with suppress(FileNotFoundError, NotADirectoryError):
            if path.read_bytes() == data:
                with suppress(OSError):  # a store that is only read
                    os.utime(path)
                return
        write_whole(path, data, private=True)

    def shelf(self, model: str, name: str, prompts: str = "", widths: Mapping[str, int] | None = None) -> Shelf:
        """A shelf of the model with this digest."""
        label = {"model": model, "shelf": name, "prompts": prompts}
        return Shelf(self.root / model / name / prompts, label, self.key, widths)

    def _describe(self, spec: ModelSpec) -> str:
        """Leave the spec in its folder; its digest."""
        path = self.root / spec.digest / "spec.json"
        if not path.exists():
            with suppress(OSError, RemoteError):  # a store that cannot be written says so when it must be
                write_whole(path, json.dumps(spec.as_dict(), indent=1).encode(), private=True)
        return spec.digest
