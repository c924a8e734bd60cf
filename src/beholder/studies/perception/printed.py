"""The printed numbers of the perception study: Tables S.1 and S.2, and the sizes of two image sets."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from beholder.core.errors import MissingData
from beholder.datasets import DATASETS, load_dataset
from beholder.studies.printed import Cell, Printed, Size, Sizes, Source, part_of_source


def _sizes(data: Path) -> Sizes:
    """The faces that the study takes. The labels tell, and the images need not be here."""
    sizes = dict[tuple[str, str], Size]()
    for name, source, split in (("fairface-adults", "fairface", "train"), ("utkface-adults", "utkface", None)):
        with suppress(MissingData):
            whole, adults = load_dataset(source, data), load_dataset(name, data)
            counted = adults.where(split=split) if split else adults
            sizes[name, "images"] = Size(len(counted), part_of_source(len(whole), DATASETS[source].images))
    return sizes


def _impossible(row: Cell) -> str | None:
    genders = (row["metric"], row["dataset"], row["subset"]) == ("perception.markedness", "fairface-adults", "gender")
    return "the released script compares `Male` with `male`, finds no rows and writes 0" if genders else None


PAPER = "Social perception of faces in a vision-language model"
PRINTED = Printed(
    Path(__file__).with_name("printed.csv"),
    (
        Source(
            "perception_table_s1",
            f"{PAPER}, Table S.1",
            "markedness, mean cosine, SC-WEAT, Skew, MaxSkew and NDKL of CLIP ViT-B/32 on three image sets",
            (
                "FairFace's markedness of Male and Female is printed as 0.00: the released script compares `Male` "
                "with `male`, finds no rows and writes 0.",
                "The header of SC-WEAT's rows is damaged: which pair stands where is inferred.",
            ),
        ),
        Source(
            "perception_table_s2",
            f"{PAPER}, Table S.2",
            "correlation between opposite dimensions' curves over smiling, lighting and pose, CLIP ViT-B/32",
        ),
        Source("perception_text", f"{PAPER}, text", "sizes of two image sets"),
    ),
    sizes=_sizes,
    impossible=_impossible,
    lower_case_groups=True,
)
