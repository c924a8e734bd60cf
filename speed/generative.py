"""500 questions about a picture, five ways: `beholder bench generative`, so that `make bench` prints it too.

python speed/generative.py                                    # tiny models, on this machine
python speed/generative.py --full --device cuda qwen2.5-vl-3b  # the true size, on a GPU
"""

from __future__ import annotations

import sys

from beholder.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench", "generative"]
    main()
