"""The studies that Beholder knows by name, one folder each.

This list is the one place outside a study's folder that names it. A plug-in adds its own with `STUDIES.add`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beholder.core.catalog import Catalog

if TYPE_CHECKING:
    from beholder.studies.study import Study

AUDITED = {
    "apa": "beholder.studies.apa.study:APA",
    "pfi": "beholder.studies.pfi.study:PFI",
    "gras": "beholder.studies.gras.study:GRAS",
    "perception": "beholder.studies.perception.study:PERCEPTION",
    "disparity": "beholder.studies.disparity.study:DISPARITY",
    "classics": "beholder.studies.classics.study:CLASSICS",
    "pairs": "beholder.studies.pairs.study:PAIRS",
    "ratings": "beholder.studies.ratings.study:RATINGS",
}  # what `--study` takes
OTHERS = {"exposure": "beholder.studies.exposure.study:EXPOSURE", "custom": "beholder.studies.custom.study:CUSTOM"}
"""Studies with a command of their own, or chosen by an option of their own."""
COMMANDS = {
    "exposure": "Count how often captions name people and occupations, by gender, and compare with what a model knows.",
    "pairs": "Read tables of pairs of occupations: is the bias more than chance, and does it follow who works there?",
}  # commands that studies bring along, with the first sentence of their help: `beholder --help` loads no study
STUDIES: Catalog[Study] = Catalog("study", lazy={**AUDITED, **OTHERS}, installed="beholder.studies")
