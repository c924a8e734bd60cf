"""All claims about speed: `make bench`. Runs every script, keeps what they say, and writes their part of RESULTS.md.

    python speed/run.py                          what this machine's processor does; under 10 minutes on 2 idle cores
    python speed/run.py --device cuda            what a GPU does
    python speed/run.py growth gras              these scripts alone; the others' results stay as they were
    python speed/run.py --render                 only RESULTS.md, from the kept results

Results are kept in speed/results/cpu.json and cuda.json (`--results` names another folder).
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from bench import Claim, spent

HERE = Path(__file__).parent
PAGE = HERE / "RESULTS.md"
TITLES = {"cpu": "On a processor", "cuda": "On a GPU"}


class Script(NamedTuple):
    """A script's words for a processor, for its smallest size, and for a GPU; None where it is not for that."""

    cpu: str | None = "--json"
    quick: str | None = "--quick"
    cuda: str | None = None


SCRIPTS = {
    "startup": Script(),
    "fill": Script(),
    "bootstrap": Script(),
    "gras": Script(),
    "ranking": Script(),
    "disparity": Script(),
    "streams": Script(),
    "growth": Script(),
    "matching": Script(
        "--json --pictures 1 --prompts 20",
        cuda="--json --device cuda --precision bfloat16 --pictures 8 --prompts 500 blip albef blip-2",
    ),
    "generative": Script(
        "--pictures 4", "llava-1.5-7b --pictures 1 --loop 2 --repeats 1 --json", "--full --device cuda --pictures 16"
    ),
    "generative_face": Script("", "--one-by-one 2"),
    "generative_whole": Script(None, "--tiny --pictures 1 --work WORK", "--device cuda --pictures 1000 --work WORK"),
    "pipeline": Script(
        "--photos 600 --few 300",
        "--photos 6 --few 3",
        "clip-b32 clip-l14 --photos 20000 --few 512 --precision bfloat16 --ways forward decode before 'exact, p' gpu",
    ),
    "memory": Script("", "20"),
    "store": Script("--json 1000 10000 100000"),
    "exposure": Script(),
    "ray_engine": Script("--json --images 300", None),  # a cluster takes 10 s to start: tests/scores has its parts
    "cost": Script("here glasshouse/contrastive glasshouse/generative", "cluster"),
}


def run(name: str, words: str) -> dict[str, Any]:
    """What a script printed, with its command and the time that it took."""
    command = [sys.executable, str(HERE / f"{name}.py"), *shlex.split(words.replace("WORK", "/tmp/beholder-bench"))]
    done: list[subprocess.CompletedProcess[str]] = []
    load, alone = os.getloadavg()[0], {**os.environ, "OMP_NUM_THREADS": "1"}  # waiting threads use processor time too
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "cwd": HERE.parent, "env": alone}
    clock, processor = spent(lambda: done.append(subprocess.run(command, **options)))
    if done[0].returncode:
        raise SystemExit(f"speed/{name}.py ended with {done[0].returncode}.")
    structured = "--json" in words
    return {
        "command": f"python speed/{name}.py {words.removeprefix('--json')}".strip(),
        "seconds": round(clock, 1),
        "processor_seconds": round(processor, 1),
        "load_before": round(load, 2),
        **({"claims": json.loads(done[0].stdout)} if structured else {"text": done[0].stdout.rstrip()}),
    }


def machine(device: str) -> dict[str, str]:
    """Where and with what it was measured."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    cores = len(os.sched_getaffinity(0))
    facts = {"processor": f"{model[1] if model else platform.machine()}, {cores} cores"}
    if device == "cuda":
        import torch  # slow to import

        facts["card"] = torch.cuda.get_device_name()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    facts |= {"date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "commit": commit.stdout.strip() or "unknown"}
    libraries = ("numpy", "scipy", "polars", "torch", "transformers", "pillow")
    return facts | {"python": platform.python_version()} | {name: version(name) for name in libraries}


def section(device: str, kept: dict[str, Any]) -> str:
    """One device's part of the page."""
    facts = ", ".join(f"{name} {value}" for name, value in kept["machine"].items())
    lines = [
        f"## {TITLES[device]}",
        "",
        f"Measured by `python speed/run.py --device {device}`, one thread each (OMP_NUM_THREADS=1): {facts}.",
    ]
    for name, result in kept["scripts"].items():
        claim = (ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())) or "").split("\n\n")[0]
        took = f"{result['seconds']:.0f} s, {result['processor_seconds']:.0f} s of processor time"
        lines += ["", f"### {name}", "", " ".join(claim.split())]
        lines += ["", f"`{result['command']}`: {took}; load {result['load_before']} before."]
        for each in result.get("claims", ()):
            lines += ["", Claim(**each).text()]
        if "text" in result:
            lines += ["", "```text", result["text"], "```"]
    return "\n".join(lines)


def render(results: Path) -> None:
    """Write each device's part between its marks; what stands outside of them is by hand and stays."""
    page = PAGE.read_text(encoding="utf-8")
    for device in TITLES:
        path, (begin, end) = (
            results / f"{device}.json",
            (f"<!-- {device}: made by speed/run.py -->", f"<!-- {device}: end -->"),
        )
        if path.is_file():
            before, rest = page.split(begin)
            after = rest.split(end)[1]
            page = f"{before}{begin}\n\n{section(device, json.loads(path.read_text()))}\n\n{end}{after}"
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", metavar="SCRIPT")
    parser.add_argument("--device", choices=TITLES, default="cpu")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    path = options.results / f"{options.device}.json"
    if not options.render:
        kept = json.loads(path.read_text()) if path.is_file() and options.scripts else {"scripts": {}}
        kept["machine"] = machine(options.device)
        for name in options.scripts or SCRIPTS:
            words = getattr(SCRIPTS[name], options.device)
            if words is not None:
                print(f"speed/{name}.py {words}", file=sys.stderr, flush=True)
                kept["scripts"][name] = run(name, words)
                path.parent.mkdir(exist_ok=True)
                path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    render(options.results)


if __name__ == "__main__":
    main()
