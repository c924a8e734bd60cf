"""A pytest plugin (`-p torchvision_operators`): the two operators that torchvision declares on import.

Its plain wheel brings them in a binary built against CUDA's torch; beside the CPU's torch that binary does not
load, and the import fails though open_clip only wants torchvision's resizing. They are declared, never run.
"""

from __future__ import annotations

import torch

LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, name):
        LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
