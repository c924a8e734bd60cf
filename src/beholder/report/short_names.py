"""What to call a model on the page: a folder by its last name, not by where it happens to lie on someone's disk."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import polars as pl

_PATH = re.compile(r"(?:onnx:)?(?:/|~/|\.{1,2}/|[A-Za-z]:\\)\S*")


def short_names(models: Iterable[str]) -> dict[str, str]:
    """A short name for every local folder among the models, where no two would share it.

    >>> short_names(["onnx:/a/b/bridge", "openai/clip"])
    {'onnx:/a/b/bridge': 'bridge'}
    """
    known = list(dict.fromkeys(models))
    short = {name: _last(name) for name in known if _PATH.fullmatch(name) and _last(name)}
    taken = Counter([*short.values(), *(name for name in known if name not in short)])
    return {name: last for name, last in short.items() if taken[last] == 1}


def _last(name: str) -> str:
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1].lstrip(".~")


def shortened(results: pl.DataFrame) -> pl.DataFrame:
    """The results with their models under their short names; the record keeps the long ones."""
    short = short_names(results["model"])
    # The subset is a model where two are compared.
    columns = [pl.col(column).replace(short) for column in ("model", "subset")]
    return results.with_columns(columns) if short else results
