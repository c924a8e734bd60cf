"""Which benchmark a command line means: named ones, a named one with own words, or own prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from beholder.errors import UsageError

if TYPE_CHECKING:
    from beholder.benchmarks.benchmark import Benchmark

SETTINGS_HELP = (
    "How the data set is read, NAME=VALUE (repeatable); `beholder data settings NAME` lists what it knows."
)
TRAITS_HELP = "With gras: own traits (a table with the columns trait and valence)."
TEMPLATES_HELP = (
    "With gras: own wordings (a table with the columns template and text, in which {} is the trait)."
)
DIMENSIONS_HELP = (
    "With perception: own dimensions (a table with the columns dimension, word, and valence, opposite)."
)
RATINGS_HELP = "With perception: people's ratings (a table with the columns image or group, trait, mean, n)."


@dataclass(frozen=True)
class OwnWords:
    """Files with a user's own words, and with what people said."""

    prompts: Path | None = None
    by: Sequence[str] = ()
    traits: Path | None = None
    templates: Path | None = None
    dimensions: Path | None = None
    ratings: Path | None = None


def chosen_benchmarks(
    names: list[str], own: OwnWords, *, data: Path | None, dataset: str | None
) -> list[Benchmark]:
    """The named ones, the user's own prompts, or what makes sense with the data at hand."""
    from beholder.benchmarks.custom import custom_benchmark
    from beholder.prompts.prompt_set import read_prompts

    if own.prompts is not None:
        if names or not dataset:
            raise UsageError(
                "--prompts makes a benchmark of its own: give it --dataset NAME or folder:PATH, and no --benchmark."
            )
        return [custom_benchmark(read_prompts(own.prompts), by=own.by)]
    if own.by:
        raise UsageError("--by goes with --prompts.")
    names = names or (["apa", "pfi"] if data and dataset is None else ["apa"])
    if (own.traits or own.templates) and "gras" not in names:
        raise UsageError("--traits and --templates go with --benchmark gras.")
    if (own.dimensions or own.ratings) and "perception" not in names:
        raise UsageError("--dimensions and --ratings go with --benchmark perception.")
    return [chosen_benchmark(name, own) for name in names]


def chosen_benchmark(name: str, own: OwnWords) -> Benchmark:
    """A benchmark by name, with the user's own traits and wordings where it takes them."""
    from beholder.benchmarks import BENCHMARKS
    from beholder.benchmarks.gras import gras_benchmark
    from beholder.prompts.gras import TEMPLATES, read_templates, read_traits

    if name == "perception" and (own.dimensions or own.ratings):
        return _perception(own)
    if name != "gras" or not (own.traits or own.templates):
        return BENCHMARKS[name]
    traits = read_traits(own.traits) if own.traits else None
    return gras_benchmark(traits, read_templates(own.templates) if own.templates else TEMPLATES)


def _perception(own: OwnWords) -> Benchmark:
    from beholder.benchmarks.perception import perception_benchmark
    from beholder.benchmarks.perception_ratings import read_ratings
    from beholder.prompts.perception import DIMENSIONS, read_dimensions

    dimensions = read_dimensions(own.dimensions) if own.dimensions else DIMENSIONS
    return perception_benchmark(dimensions, read_ratings(own.ratings) if own.ratings else None)
