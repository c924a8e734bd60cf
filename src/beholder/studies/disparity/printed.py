"""The printed numbers of the disparity study: sizes of its data sets and counts of agreeing concepts.

The sizes of Visual Genome are not counted again: which filters the printed numbers stand after is not known here.
"""

from __future__ import annotations

from pathlib import Path

from beholder.core.errors import MissingData
from beholder.datasets import DATASETS
from beholder.datasets.coco import SETTINGS as COCO_SETTINGS
from beholder.datasets.coco import find, frequent_categories, grouped, read_captions, read_instances
from beholder.datasets.settings import GENDER_WORDS, Settings, Steps
from beholder.studies.printed import Printed, Size, Sizes, Source, part_of_source

CUT = "the protocol's rule cuts captions into words at anything that is no letter; cut at blanks only they give {:,}"


def _sizes(data: Path) -> Sizes:
    counted = {("coco", "images"): _captioned(data), ("coco", "concepts"): _frequent(data)}
    return {key: size for key, size in counted.items() if size}


def _captioned(data: Path) -> Size | None:
    """COCO's validation images whose captions name one gender and not people."""
    try:
        path = find(DATASETS["coco"].folder(data), "captions_val2017")
    except MissingData:
        return None
    captions = {cut: read_captions(path, cut) for cut in ("letters", "blanks")}
    counts = {cut: len(grouped(words, GENDER_WORDS, ("people",), Steps())) for cut, words in captions.items()}
    partial = part_of_source(len(captions["letters"]), DATASETS["coco"].images)
    return Size(counts["letters"], partial, CUT.format(counts["blanks"]))


def _frequent(data: Path) -> Size | None:
    """COCO's categories in at least 100 training images that name one gender; None without the training files."""
    folder = DATASETS["coco"].folder(data)
    files = [folder / "annotations" / f"{kind}_train2017.json" for kind in ("instances", "captions")]
    if not files[0].is_file():
        return None
    instances = read_instances(find(folder, "instances_val2017"))
    steps = {rule: Steps() for rule in ("one-group", "all") if rule == "all" or files[1].is_file()}
    kept = {
        rule: len(frequent_categories(instances, Settings("coco", COCO_SETTINGS, {"concepts_in": rule}), folder, own))
        for rule, own in steps.items()
    }
    if "one-group" not in kept:
        return Size(kept["all"], hint="counted in all training images, for their captions are not here")
    left_out = "; ".join(note for note in steps["one-group"] if note.startswith("concepts left out"))
    hint = "; ".join(part for part in (left_out, f"counted in all training images: {kept['all']}") if part)
    return Size(kept["one-group"], hint=hint)


CONTENTS = "sizes of two data sets, and concepts on which two of them agree, 2 models"
TEXT = Source("disparity_text", "Zero-shot disparities between gender groups, text", CONTENTS)
PRINTED = Printed(Path(__file__).with_name("printed.csv"), (TEXT,), sizes=_sizes)
