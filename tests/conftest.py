"""What all tests share: the real data of ../shared, a small folder of pictures, and no network."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections leave this machine in no test."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            raise ConnectionRefusedError(f"tests have no network: {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    for name in ("BEHOLDER_DATA", "BEHOLDER_STORE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and golden files; CI fails without it, a newcomer's tests skip."""
    folder = Path(os.environ.get("BEHOLDER_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"{folder}/data is missing")
        pytest.skip(f"{folder}/data is not here")
    return folder


@pytest.fixture(scope="session")
def data(shared: Path) -> Path:
    return shared / "data"


@pytest.fixture(scope="session")
def golden(shared: Path) -> Path:
    return shared / "golden" / "apa"


@pytest.fixture
def people(tmp_path: Path) -> Callable[..., Path]:
    """Makes a folder of small noisy pictures with a table of attributes."""

    def make(count: int = 12, name: str = "people", side: int = 16) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        rng = np.random.default_rng(count)
        lines = ["image,name,gender"]
        for i in range(count):
            pixels = rng.integers(0, 256, (side, side, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{i:05}.png")
            lines.append(f"{i:05}.png,person {i // 2},{'woman' if i % 2 else 'man'}")
        (folder / "people.csv").write_text("\n".join(lines) + "\n")
        return folder

    return make
