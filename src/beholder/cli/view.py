"""`beholder view`: the pictures behind a run's numbers, in a browser on this machine."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

import typer

from beholder.cli import options as common
from beholder.cli.console import err

LOOPBACK = "127.0.0.1"


def view_command(
    runs: list[Path] = typer.Argument(..., help="Run folders."),
    data: common.Data = None,
    settings: common.DatasetSettings = None,
    store: common.StoreFolder = None,
    port: int = typer.Option(8765, min=0, max=65535, help="Port; 0 takes any free one."),
    host: str = typer.Option(
        LOOPBACK, help="Address to listen on. Anyone who can reach another address can see the pictures."
    ),
) -> None:
    """Show the pictures behind the numbers: ranked by score, filtered by group, two models side by side.

    Pictures are read from your own disk and are sent to your browser only. Nothing is written.
    """
    # Imported here so that other commands start without it.
    from beholder.core.errors import UsageError
    from beholder.datasets import data_root
    from beholder.datasets.settings import parse_settings
    from beholder.scores.recorded import Places
    from beholder.view.gallery import open_gallery

    try:
        import uvicorn

        # An extra is needed, and other commands start without it.
        from beholder.view.server import viewer
    except ImportError as error:
        raise UsageError(f"The viewer needs {error.name}. Install it: pip install 'beholder[view]'") from error
    places = Places(data_root(data), common.store_folder(store), parse_settings(settings or ()))
    sheets = open_gallery(runs, places)
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise UsageError(f"Port {port} of {host} cannot be used: {reason}. Name another one: --port.") from error
    token = secrets.token_urlsafe(24)
    if host != LOOPBACK:
        err.print(f"[yellow]The pictures can be seen by anyone who can reach {host}:{port} and knows the address.[/]")
    err.print(f"View: http://{host}:{port}/{token}/  (Ctrl-C ends it)", markup=False, soft_wrap=True)
    allowed = None if host == LOOPBACK else [host]
    config = uvicorn.Config(viewer(sheets, token, allowed), log_level="warning", access_log=False)
    with listener:
        uvicorn.Server(config).run(sockets=[listener])
