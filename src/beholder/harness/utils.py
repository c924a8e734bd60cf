"""What lmms-eval calls for a task that `beholder tasks` wrote; copied beside the task, it needs no Beholder."""

import json
from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

from PIL import Image


def doc_to_visual(doc: Mapping[str, Any]) -> list[Image.Image]:
    """The picture."""
    return [Image.open(doc["image"]).convert("RGB")]


def process_results(doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
    """What the log has to say of an answer, and P(yes)."""
    about = json.loads(doc["about"])
    if about["beholder"]["draws"]:
        words = results[0].split()
        value = float(bool(words) and words[0].strip("\"'*`.,;:!?)]").lower() == about["answers"][0].lower())
    else:  # log-likelihoods of all spellings, those of the agreeing answer first; as pairs, or as texts of pairs
        logs = [float(str(each).strip("([").split(",")[0]) for each in results]
        value = sum(map(exp, logs[: len(logs) // 2]))
        about["choices"] = doc["choices"]
    return {"beholder": {**about, "p_yes": value}}


def p_yes(items: Sequence[Mapping[str, Any]]) -> float:
    """The mean of P(yes); `beholder measure LOG` gives the study's own numbers."""
    return float(sum(item["p_yes"] for item in items) / len(items))
