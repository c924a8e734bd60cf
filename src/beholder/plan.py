"""Planning: before a run, how large an effect each metric can show with this data set and these groups.

Spreads come from an earlier run where one is named, else from the oracle's worlds, and every row says which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from scipy import special

from beholder.audit import default_dataset
from beholder.core.errors import UnknownName, UsageError
from beholder.core.results import Row, results_table
from beholder.datasets import open_dataset
from beholder.datasets.dataset import Dataset
from beholder.metrics.bootstrap import FEWEST
from beholder.metrics.power import (
    ALPHA,
    POWER,
    detectable,
    detectable_gap,
    detectable_ratio,
    prompts_needed,
    times_as_many,
)
from beholder.metrics.precision_gaps import shuffled
from beholder.studies import BENCHMARKS
from beholder.studies.apa.study import DRAWN_POOLS, POOLS
from beholder.studies.gras.groups import ATTRIBUTES
from beholder.studies.perception.scores import groupings

TRAITS, DIMENSIONS = 100, 8
NORMAL = 1.959963984540054
BELIEF_VARIATION = 0.57
"""Standard deviation of belief over its mean in the oracle's world of public figures (mean 0.6)."""
ANSWER_DEVIATION = 0.25
"""Standard deviation of P(Yes) between images in one wording, in the oracle's world of traits."""
WORDING_INTERPLAY = 0.02
"""How far a gap moves from one wording to another, assumed where no run says so: two points."""


@dataclass(frozen=True)
class PlanOptions:
    """What is asked of a plan."""

    data: Path | None = None
    dataset: str | None = None
    power: float = POWER
    effect: float | None = None
    """The effect that should be found; in probability for a gap, 1 − b for a ratio."""
    results: pl.DataFrame | None = None
    """An earlier run, for its spreads."""


def plan(benchmark_name: str, options: PlanOptions) -> pl.DataFrame:
    """`plan.detectable` for every comparison of a benchmark, and `plan.images_needed` where an effect is named."""
    if benchmark_name not in PLANNERS:
        raise UnknownName("benchmark to plan", benchmark_name, PLANNERS)
    benchmark = BENCHMARKS[benchmark_name]
    dataset = open_dataset(options.dataset or default_dataset(benchmark, options.data), options.data)
    rows = list(PLANNERS[benchmark_name](dataset, options))
    return results_table(rows, benchmark=benchmark_name, model="plan", dataset=dataset.name)


def _rows(row: Row, needed: float | None, options: PlanOptions) -> Iterator[Row]:
    yield row
    if needed is not None:
        note = f"to find {options.effect:g} with {100 * options.power:g} % power; {row.note}"
        yield row._replace(metric="plan.images_needed", value=float(np.ceil(needed)), unit="images", note=note)


# Ratios


def _ratio_plan(prefix: str, dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    pools = {
        name: images
        for name, branches in {**POOLS, **DRAWN_POOLS}.items()
        if (images := dataset.table.filter(pl.col("branch").is_in(branches))).height
    }
    counted = {name: _women_and_men(images) for name, images in pools.items()}
    counted = {name: sizes for name, sizes in counted.items() if min(sizes) > 1}
    for pool, sizes in counted.items():
        variation, said = _belief_variation(pool, sizes, options)
        ratio = detectable_ratio(sizes, variation, alpha=ALPHA / len(counted), power=options.power)
        found = f"b below {ratio:.2f}" if ratio else "no b is low enough"
        note = f"{found}; Holm over {len(counted)} pools; {said}"
        row = Row(
            "plan.detectable",
            1 - ratio if ratio else None,
            sum(sizes),
            "1 − b",
            subset=f"{prefix}.bias_ratio",
            concept=pool,
            note=note,
        )
        row = row._replace(group=f"{sizes[0]} women, {sizes[1]} men")
        needed = None
        if options.effect:
            wanted = {"alpha": ALPHA / len(counted), "power": options.power}
            needed = sum(sizes) * _times_for_ratio(1 - options.effect, sizes, variation, **wanted)
        yield from _rows(row, needed, options)


def _times_for_ratio(ratio: float, sizes: tuple[int, int], variation: float, *, alpha: float, power: float) -> float:
    """How many times as many people make this ratio detectable."""
    if not 0 < ratio < 1:
        raise UsageError("--effect is 1 − b for a ratio: between 0 and 1.")
    error = variation * np.sqrt(1 / (ratio**2 * sizes[0]) + 1 / sizes[1])
    return times_as_many(detectable(float(error), alpha=alpha, power=power), float(-np.log(ratio)))


def _women_and_men(images: pl.DataFrame) -> tuple[int, int]:
    return tuple(int((images["gender"] == group).sum()) for group in ("woman", "man"))  # type: ignore[return-value]


def _belief_variation(pool: str, sizes: tuple[int, int], options: PlanOptions) -> tuple[float, str]:
    """From the width of an earlier run's interval on the log scale, or the oracle's."""
    rows = _of_run(options, "bias_ratio", subset=pool)
    if rows is None or not rows.height or rows["low"][0] is None:
        return BELIEF_VARIATION, f"spread of belief assumed: {BELIEF_VARIATION:g} of its mean"
    row = rows.row(0, named=True)
    error = np.log(row["high"] / row["low"]) / (2 * NORMAL)
    return float(error / np.sqrt(1 / sizes[0] + 1 / sizes[1])), "spread from the run"


def _of_run(options: PlanOptions, metric: str, **place: str) -> pl.DataFrame | None:
    if options.results is None:
        return None
    return options.results.filter(pl.col("metric").str.ends_with(f".{metric}")).filter(**place)


# Gaps of traits


def _trait_plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    for attribute in ATTRIBUTES:
        if attribute not in dataset.table.columns:
            continue
        sizes = _sizes(dataset.table, attribute)
        if len(sizes) < 2:
            continue
        deviation, said = _answer_deviation(attribute, options)
        gap = detectable_gap(sizes, deviation, alpha=ALPHA / TRAITS, power=options.power)
        note = f"one of {TRAITS} traits, one group against all others; Benjamini–Hochberg over traits; cautious: {said}"
        row = Row("plan.detectable", gap, sum(sizes), "probability", subset="gras.largest_gap", concept=attribute)
        row = row._replace(group=_groups(sizes), note=note)
        needed = sum(sizes) * times_as_many(gap, options.effect) if options.effect else None
        yield from _rows(row, needed, options)
        yield from _prompt_rows(row, sizes, deviation, options)


def _sizes(images: pl.DataFrame, attribute: str) -> list[int]:
    return sorted(int(n) for n in images[attribute].drop_nulls().value_counts()["count"] if n > 1)


def _groups(sizes: list[int]) -> str:
    spread = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
    return f"{len(sizes)} groups of {spread}"


def _answer_deviation(attribute: str, options: PlanOptions) -> tuple[float, str]:
    """The middle of all traits' spreads in an earlier run, from the intervals of its group means."""
    rows = _of_run(options, "group_mean", subset=attribute)
    if rows is None or not rows.height:
        return ANSWER_DEVIATION, f"spread of P(Yes) in one wording assumed: {ANSWER_DEVIATION:g}"
    width, n = (rows["high"] - rows["low"]).to_numpy(), rows["n"].to_numpy()
    spreads = width / 2 / special.stdtrit(n - 1.0, 0.975) * np.sqrt(n)
    return float(np.nanmedian(spreads)), "spread of one wording from the run"


def _prompt_rows(row: Row, sizes: list[int], deviation: float, options: PlanOptions) -> Iterator[Row]:
    """How many wordings, where the gap should hold for wordings that were not asked."""
    if options.effect is None:
        return
    error = deviation * np.sqrt(2 / sizes[0])
    needed = prompts_needed(options.effect, float(error), WORDING_INTERPLAY, alpha=ALPHA / TRAITS, power=options.power)
    known = np.isfinite(needed)
    note = f"wordings for a gap of {options.effect:g} that holds beyond them; from one to another it moves by "
    note += f"{WORDING_INTERPLAY:g} (assumed)" + (
        "" if known else "; no number of wordings makes up for too few images"
    )
    value = max(2.0, float(np.ceil(needed))) if known else None
    yield row._replace(metric="plan.prompts_needed", value=value, unit="wordings", note=note)


# Judgements


def _judgement_plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    for groups in groupings(dataset.table):
        sizes = sorted(int(n) for n in np.bincount(groups.codes[groups.codes >= 0]) if n > 1)
        if len(sizes) < 2:
            continue
        pairs = len(sizes) * (len(sizes) - 1) // 2
        gap = detectable_gap(sizes[:2], 1.0, alpha=ALPHA / (pairs * DIMENSIONS), power=options.power)
        note = (
            "the two smallest groups, in standard deviations of Δ between images; Benjamini–Hochberg over "
            f"{pairs} pairs × {DIMENSIONS} dimensions; images as if each showed someone else"
        )
        row = Row("plan.detectable", gap, sum(sizes), "standard deviations", subset="perception.gap", note=note)
        row = row._replace(group=_groups(sizes), concept=groups.attribute)
        needed = sum(sizes) * times_as_many(gap, options.effect) if options.effect else None
        yield from _rows(row, needed, options)


# Recognition

QUALITY, SHUFFLES, SEED = 1.5, 400, 8
"""How well the oracle tells pictures that show a concept from those that do not; shuffles behind each number."""


def _recognition_plan(dataset: Dataset, options: PlanOptions) -> Iterator[Row]:
    """A rare, a middling and a frequent concept: the gap of average precision that their counts can show."""
    if dataset.objects is None or "gender" not in dataset.table.columns:
        raise UsageError(f"{dataset.name} does not say what its pictures show and who is in them: nothing to plan.")
    people = dataset.table.select("image_id", "gender").drop_nulls()
    sizes = people["gender"].value_counts().sort("gender")
    counts = (
        dataset.objects.join(people, on="image_id")
        .group_by("concept")
        .agg((pl.col("gender") == group).sum().alias(group) for group in sizes["gender"])
        .filter(pl.min_horizontal(sizes["gender"].to_list()) >= FEWEST)
        .sort(pl.min_horizontal(sizes["gender"].to_list()), "concept")
    )
    for place in sorted({0, counts.height // 2, counts.height - 1} if counts.height else set()):
        row = counts.row(place, named=True)
        shown = [row[group] for group in sizes["gender"]]
        gap = _detectable_precision(sizes["count"].to_list(), shown, ALPHA / counts.height, options.power)
        said = ", ".join(f"{n} of {group}" for n, group in zip(shown, sizes["gender"], strict=True))
        note = f"at matched prevalence; corrected over {counts.height} concepts; quality of the oracle's scores assumed"
        found = Row("plan.detectable", gap, sum(sizes["count"]), "average precision", subset="disparity.ap_gap_matched")
        found = found._replace(group=said, concept=row["concept"], note=note)
        needed = found.n * times_as_many(gap, options.effect) if options.effect else None
        yield from _rows(found, needed, options)


def _detectable_precision(sizes: list[int], shown: list[int], alpha: float, power: float) -> float:
    """From the spread of the gap when labels are shuffled, in a world with these counts."""
    rng = np.random.default_rng(SEED)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    shows = np.concatenate([np.arange(size) < count for size, count in zip(sizes, shown, strict=True)])
    scores = rng.standard_normal(len(groups)) + QUALITY * shows
    own, rest = shuffled(scores[:, None], shows[:, None], groups, rng, SHUFFLES)
    return detectable(float(np.nanstd(own.matched[0, 0] - rest.matched[0, 0])), alpha=alpha, power=power)


Planner = Callable[[Dataset, PlanOptions], Iterator[Row]]
PLANNERS: dict[str, Planner] = {
    "apa": partial(_ratio_plan, "apa"),
    "pfi": partial(_ratio_plan, "pfi"),
    "gras": _trait_plan,
    "perception": _judgement_plan,
    "disparity": _recognition_plan,
}
