"""This machine's memory: what is free for a model, read from the system without torch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

# All are Any: torch and transformers are optional and skipped by mypy, so their own types cannot be used here.
Tensor = Any
Module = Any
Config = Any
Processor = Any  # of pictures, of texts or of both: a tokenizer too
Output = Any  # what a module returns: a tensor, several, or an output object of transformers
Inputs = dict[str, Tensor]


# This machine's memory


class Machine(NamedTuple):
    """Bytes."""

    memory: int
    """Main memory that is free."""
    gpu_memory: int
    """Of the largest graphics card; 0 without one."""


def this_machine() -> Machine:
    """What is free here now."""
    return Machine(_main_memory(), _gpu_memory())


def device_names(asked: str) -> list[str]:
    """The devices that a name stands for: `cuda:all` is every card, `cuda:0,cuda:2` are two; else one.

    >>> device_names("cuda:0,cuda:2")
    ['cuda:0', 'cuda:2']
    """
    if asked == "cuda:all":
        return [f"cuda:{number}" for number in range(_cards())] or ["cuda"]
    return asked.split(",")


def _cards() -> int:
    """How many cards this process may use."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return len([card for card in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if card.strip() not in ("", "-1")])
    answer = _asked_driver("--list-gpus")
    return answer.count("GPU ")


def _main_memory() -> int:
    table = Path("/proc/meminfo")
    if table.is_file() and (match := re.search(r"MemAvailable:\s+(\d+) kB", table.read_text())):
        return int(match[1]) * 1024
    return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))


def _gpu_memory() -> int:
    """By nvidia-smi, which comes with the driver; a card that it does not know is as good as none."""
    answer = _asked_driver("--query-gpu=memory.free", "--format=csv,noheader,nounits")
    try:
        return max((int(line) for line in answer.split()), default=0) * 2**20
    except ValueError:
        return 0


def _asked_driver(*options: str) -> str:
    """What nvidia-smi says; nothing if it is not there or fails."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return ""
    try:
        return subprocess.run([tool, *options], capture_output=True, text=True, timeout=10, check=True).stdout
    except (subprocess.SubprocessError, OSError):
        return ""
