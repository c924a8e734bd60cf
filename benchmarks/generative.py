"""One image, many questions: each way of asking, as questions a second and as ratios, in one run.

python benchmarks/generative.py                                    # tiny models, on this machine's CPU
python benchmarks/generative.py --device cuda --full qwen2.5-vl-3b  # the true size, on a GPU
"""

from __future__ import annotations

import argparse

from beholder.bench.architectures import ARCHITECTURES, architecture
from beholder.bench.generative import Effort, Shape, Timed, rehearse
from beholder.models.checkpoint import torch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[], help=", ".join(ARCHITECTURES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--full", action="store_true", help="true sizes, bfloat16")
    parser.add_argument("--pictures", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--loop", type=int, default=20)
    told = parser.parse_args()
    for name in told.names or list(ARCHITECTURES):
        built = architecture(name)
        dtype = torch.bfloat16 if told.full else torch.float32
        model = built.build(tiny=not told.full, device=told.device, dtype=dtype)
        print(f"{name}{'' if told.full else ' (tiny)'}, {dtype}, {told.device}, torch {torch.__version__}")
        effort = Effort(pictures=told.pictures, repeats=told.repeats, loop=told.loop)
        lines: list[Timed] = []
        for line in rehearse(
            built, model, Shape(), effort, tell=lambda text: print(f"  ({text})", flush=True)
        ):
            lines.append(line)
            far = "" if line.difference is None else f"  |Δ log p| ≤ {line.difference:.2g}"
            ratio = line.per_second / lines[0].per_second
            print(f"  {line.way:<75} {line.per_second:>10,.1f}/s {ratio:>8.1f} ×{far}", flush=True)
        del model
        if told.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
