"""This machine's memory: what is free for a model, read from the system without torch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple


class Machine(NamedTuple):
    """Bytes."""

    memory: int
    """Main memory that is free."""
    gpu_memory: int
    """Of the largest graphics card; 0 without one."""


def this_machine() -> Machine:
    """What is free here now."""
    return Machine(_main_memory(), _gpu_memory())


def _main_memory() -> int:
    table = Path("/proc/meminfo")
    if table.is_file() and (match := re.search(r"MemAvailable:\s+(\d+) kB", table.read_text())):
        return int(match[1]) * 1024
    return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))


def _gpu_memory() -> int:
    """By nvidia-smi, which comes with the driver; a card that it does not know is as good as none."""
    tool = shutil.which("nvidia-smi")
    if not tool:
        return 0
    command = [tool, "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
        return max(int(line) for line in answer.split()) * 2**20
    except (subprocess.SubprocessError, OSError, ValueError):
        return 0
