"""The printed numbers of P-FI: Tables 1 and 2."""

from __future__ import annotations

from pathlib import Path

from beholder.studies.apa.printed import NAMED_OTHERWISE, other_people
from beholder.studies.printed import Printed, Source

PAPER = "P-FI, the public-figure benchmark"
PRINTED = Printed(
    Path(__file__).with_name("printed.csv"),
    (
        Source(
            "pfi_gender_bias",
            f"{PAPER}, Table 1",
            "mean probability of each occupation for women and men in politics, and their ratio, 5 models",
        ),
        Source(
            "pfi_retention",
            f"{PAPER}, Table 2",
            "identity scores given an image (Text) and given a name (Image), 9 models",
            (NAMED_OTHERWISE,),
        ),
    ),
    partial=other_people,
)
