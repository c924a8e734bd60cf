"""The studies that Beholder knows by name, one folder each. The last two are asked by a command or an option of theirs.

This list is the one place outside a study's folder that names it. A plug-in adds its own with `STUDIES.add`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from beholder.core.catalog import Catalog

if TYPE_CHECKING:
    from beholder.studies.study import Study

NAMES = ("apa", "pfi", "gras", "perception", "disparity", "classics", "pairs", "ratings", "exposure", "custom")
PLACES = {name: f"beholder.studies.{name}.study:{name.upper()}" for name in NAMES}
AUDITED = {name: PLACES[name] for name in NAMES[:-2]}  # what `--study` takes
COMMANDS = {
    "exposure": "Count how often captions name people and occupations, by gender, and compare with what a model knows.",
    "pairs": "Read tables of pairs of occupations: is the bias more than chance, and does it follow who works there?",
}  # commands that studies bring along, with the first sentence of their help: `beholder --help` loads no study
STUDIES: Catalog[Study] = Catalog("study", lazy=PLACES, installed="beholder.studies")
