"""Draw again the true values that have no closed form: `python tools/large_draws.py`. Takes some minutes."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

from beholder.studies.large_draws import draw
from beholder.studies.perception import trials as perception

if __name__ == "__main__":
    for room in (perception,):
        values = {name: draw(name, make)._asdict() for name, make in room.LARGE_DRAWS.items()}
        path = Path(inspect.getfile(room)).with_name("large_draws.json")
        path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
