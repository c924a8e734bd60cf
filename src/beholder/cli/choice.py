"""Which benchmark a command line means: named ones, a named one with own words, or own prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from beholder.core.errors import UsageError

if TYPE_CHECKING:
    from beholder.studies.study import Benchmark

SETTINGS_HELP = "How the data set is read, NAME=VALUE (repeatable); `beholder data settings NAME` lists what it knows."
TRAITS_HELP = "With gras: own traits (a table with the columns trait and valence)."
TEMPLATES_HELP = (
    "With gras or disparity: own wordings (a table with the columns template and text, in which {} is the trait "
    "or the concept)."
)
WORD_VECTORS_HELP = "With disparity: word vectors to set gaps beside (word2vec or GloVe), such as GoogleNews."
CALIBRATION_HELP = (
    "With disparity: how scores become probabilities. auto: where they are some; scores: take imported ones as such; "
    "platt, isotonic: read any score as one, cross-validated."
)
BESIDE_HELP = "With disparity: another run's folder, of another data set or model, to compare with (repeatable)."
BY_HELP = "With --prompts: attribute whose groups are told apart (repeatable). With disparity: the one attribute."
DIMENSIONS_HELP = "With perception: own dimensions (a table with the columns dimension, word, and valence, opposite)."
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
    word_vectors: Path | None = None
    calibration: str | None = None


def chosen_benchmarks(
    names: list[str], own: OwnWords, *, data: Path | None, dataset: str | None, models: Sequence[str] = ()
) -> list[Benchmark]:
    """The named ones, the user's own prompts, or what makes sense with the data at hand."""
    from beholder.prompts.prompt_set import read_prompts
    from beholder.studies.custom.study import custom_benchmark

    if own.prompts is not None:
        if names or not dataset:
            raise UsageError(
                "--prompts makes a benchmark of its own: give it --dataset NAME or folder:PATH, and no --benchmark."
            )
        return [custom_benchmark(read_prompts(own.prompts), by=own.by)]
    embedded = data is None and dataset is None and not models and own == OwnWords()
    names = names or default_benchmarks(data=data, dataset=dataset, embedded=embedded)
    if (own.by or own.word_vectors or own.calibration) and "disparity" not in names:
        raise UsageError(
            "--by goes with --prompts or --benchmark disparity, --word-vectors and --calibration with the latter."
        )
    if own.traits and "gras" not in names:
        raise UsageError("--traits goes with --benchmark gras.")
    if own.templates and not {"gras", "disparity"} & set(names):
        raise UsageError("--templates goes with --benchmark gras or disparity.")
    if (own.dimensions or own.ratings) and "perception" not in names:
        raise UsageError("--dimensions and --ratings go with --benchmark perception.")
    return [chosen_benchmark(name, own) for name in names]


def default_benchmarks(*, data: Path | None, dataset: str | None, embedded: bool) -> list[str]:
    """What is asked when no benchmark is named: of the embedded models in their world, most of what was planted."""
    from beholder.audit import DEMO

    if embedded:
        return list(DEMO)
    return ["apa", "pfi"] if data and dataset is None else ["apa"]


def chosen_benchmark(name: str, own: OwnWords) -> Benchmark:
    """A benchmark by name, with the user's own traits and wordings where it takes them."""
    from beholder.studies import BENCHMARKS
    from beholder.studies.gras.prompts import TEMPLATES, read_templates, read_traits
    from beholder.studies.gras.study import gras_benchmark

    if name == "disparity" and (own.by or own.templates or own.word_vectors or own.calibration):
        return _disparity(own)
    if name == "perception" and (own.dimensions or own.ratings):
        return _perception(own)
    if name != "gras" or not (own.traits or own.templates):
        return BENCHMARKS[name]
    traits = read_traits(own.traits) if own.traits else None
    return gras_benchmark(traits, read_templates(own.templates) if own.templates else TEMPLATES)


def _perception(own: OwnWords) -> Benchmark:
    from beholder.studies.perception.prompts import DIMENSIONS, read_dimensions
    from beholder.studies.perception.ratings import read_ratings
    from beholder.studies.perception.study import perception_benchmark

    dimensions = read_dimensions(own.dimensions) if own.dimensions else DIMENSIONS
    return perception_benchmark(dimensions, read_ratings(own.ratings) if own.ratings else None)


def _disparity(own: OwnWords) -> Benchmark:
    from beholder.core.errors import UnknownName
    from beholder.studies.disparity.prompts import TEMPLATES
    from beholder.studies.disparity.scores import AUTO, CALIBRATIONS
    from beholder.studies.disparity.study import Choices, disparity_benchmark
    from beholder.studies.gras.prompts import read_templates

    if len(own.by) > 1:
        raise UsageError(f"Disparity compares the groups of one attribute, not of {', '.join(own.by)}.")
    if own.calibration not in (None, *CALIBRATIONS):
        raise UnknownName("calibration", str(own.calibration), CALIBRATIONS, where="Disparity")
    if own.word_vectors is not None and not own.word_vectors.is_file():
        raise UsageError(f"There are no word vectors at {own.word_vectors}.")
    templates = read_templates(own.templates) if own.templates else TEMPLATES
    by = own.by[0] if own.by else None
    return disparity_benchmark(Choices(by, templates, own.word_vectors, own.calibration or AUTO))
