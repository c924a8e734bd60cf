"""The neutral prompt: which groups "a photo of a person" fits better, and what subtracting it (Δ) does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from beholder.comparison import Groups, Part, ShuffledGroups, compare_groups, comparison_at, judge
from beholder.core.results import Row
from beholder.studies.perception.design import paired
from beholder.studies.perception.prompts import CONTROLS
from beholder.studies.perception.scores import CORRELATION, EVERYONE, SEED, STATISTIC, Array, Judged
from beholder.studies.study import MeasureOptions

GRID = 41  # the number of points at which a density is given
AT_REST = "neutral_at_rest"  # what numbers of pictures without a smile are called
FEWEST_SEEDS = 3
ALIKE = 1e-12  # scores that differ by less are the same


def neutral_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Tests between groups, densities, and how far Δ brings the groups closer together."""
    groups, rest = judged.finest, None
    if "smiling" in judged.ordered:  # pictures without a smile, as in the study's Fig. S.13
        rest = judged.rows((judged.images["smiling"] == 0).fill_null(False).to_numpy())
    before, after = _before_and_after(judged).T
    words = {word: judged.cosine[:, judged.words.index(word)] for word in CONTROLS if word in judged.words}
    yield from _density_rows(groups, {"neutral": judged.neutral, "cosine": before, "delta_cosine": after, **words})
    yield from _correlation_rows(judged)
    if rest is not None:
        yield from _density_rows(rest.finest, {AT_REST: rest.neutral})
    if groups.attribute != EVERYONE and len(groups.names) > 1:
        yield from neutral_test_rows({None: judged} if rest is None else {None: judged, AT_REST: rest}, options)
        yield from _narrowing_rows(judged, groups, options)
        if judged.designed:
            yield from _seed_correlation_rows(judged if rest is None else rest)


def _seed_correlation_rows(judged: Judged) -> Iterator[Row]:
    """r between the neutral cosines of two groups over the seeds that both have, as in the study's Fig. S.14."""
    groups = judged.finest
    for first, second in combinations(groups.names, 2):
        a, b = _shared(judged, groups, first, second)
        row = Row("perception.neutral_group_r", None, len(a), CORRELATION, groups.attribute, first, second)
        if len(a) <= FEWEST_SEEDS or np.ptp(a) <= ALIKE or np.ptp(b) <= ALIKE:
            yield row._replace(note=f"{FEWEST_SEEDS} shared seeds or fewer, or all alike")
        else:
            yield _correlated(row._replace(note="over the seeds that both groups have"), a, b)


def _correlated(row: Row, a: Array, b: Array) -> Row:
    r = stats.pearsonr(a, b)
    low, high = map(float, r.confidence_interval(0.95))
    return row._replace(value=float(r.statistic), low=low, high=high)


def neutral_test_rows(parts: Mapping[str | None, Judged], options: MeasureOptions) -> Iterator[Row]:
    """t of the neutral cosine between every two groups: paired over the seeds they share, or Welch's; one family."""
    rng, made = options.rng(), list[tuple[Row, float, Part]]()
    for template, judged in parts.items():
        groups, people = judged.finest, judged.people
        for pair in combinations(groups.names, 2):
            row = Row("perception.neutral_test", None, 0, STATISTIC, groups.attribute, *pair, template=template)
            if SEED in judged.images.columns:
                first, second = _shared(judged, groups, *pair)
                part, n = paired((first - second)[:, None], rng, options), len(first)
                error = float(np.std(first - second, ddof=1)) / np.sqrt(n) if n > 1 else np.nan
                kind = f"paired t over {n} shared seeds"
            else:
                kept = groups.kept([groups.names.index(name) for name in pair])
                part = compare_groups(judged.neutral, kept, people, rng, shuffles=options.shuffles)
                error, n, kind = float(part.error[0, 0]), int((kept.codes >= 0).sum()), "t over people"
            made.append((row._replace(n=n, note=f"{kind}, first less second"), error, part))
    for (row, error, _), verdicts in zip(made, judge([part for *_, part in made]), strict=True):
        found = comparison_at(verdicts, (0, 0))
        if error > ALIKE:
            yield found.on(row)._replace(value=found.value / error, low=None, high=None)
        else:
            yield row._replace(note=f"{row.note}: too few, or all alike", verdict=found.verdict)


def _shared(judged: Judged, groups: Groups, first: str, second: str) -> tuple[Array, Array]:
    """The neutral cosine of both groups for each seed they share, as a mean over the seed's pictures."""
    table = judged.images.select(SEED).with_columns(value=pl.Series(judged.neutral), code=pl.Series(groups.codes))
    means = table.group_by(SEED, "code").agg(pl.col("value").mean())
    a, b = (means.filter(pl.col("code") == groups.names.index(name)) for name in (first, second))
    joined = a.join(b, on=SEED, suffix="_other").sort(SEED)
    return joined["value"].to_numpy(), joined["value_other"].to_numpy()


def _density_rows(groups: Groups, quantities: dict[str, Array]) -> Iterator[Row]:
    for name, values in quantities.items():
        margin = 0.1 * (np.ptp(values) or 1.0)
        grid = np.linspace(values.min() - margin, values.max() + margin, GRID)
        for group in groups.names:
            scores = values[groups.mask(group)]
            if len(scores) < 5 or np.ptp(scores) == 0:
                continue
            for score, height in zip(grid, stats.gaussian_kde(scores)(grid), strict=True):
                row = Row("perception.density", float(height), len(scores), "density", subset=name, group=group)
                yield row._replace(template=f"{score:.5f}")


def _before_and_after(judged: Judged) -> Array:
    return np.stack([judged.by_dimension(scores).mean(axis=1) for scores in (judged.cosine, judged.delta)], axis=1)


def _narrowing_rows(judged: Judged, groups: Groups, options: MeasureOptions) -> Iterator[Row]:
    """Spread of the group means after Δ divided by the spread before, and the same of the images: it describes."""
    # Δ subtracts the noise of a single prompt from a mean over many words, so that any groups move apart, also groups
    # made by lot. The landmark is therefore the ratio of shuffled groups.
    both, inside = _before_and_after(judged), groups.codes >= 0
    shuffled = ShuffledGroups(groups, judged.people, options.rng(), None, options.permutations)
    drawn = np.concatenate([_moved_apart(both, codes) for codes in shuffled.parts()])
    landmark = float(np.median(drawn[np.isfinite(drawn)])) if np.isfinite(drawn).any() else None
    before, after = both[inside].std(axis=0).tolist()
    images, n = after / before if before > ALIKE else np.nan, int(inside.sum())
    of_groups = float(_moved_apart(both, groups.codes[None])[0])
    for concept, what, value in (("groups", "the group means", of_groups), ("images", "all images", images)):
        note = f"standard deviation of {what}, after Δ over before"
        note = note if np.isfinite(value) else f"{note}; before Δ all are alike"
        row = Row("perception.narrowing", value, n, "ratio", groups.attribute, concept=concept, note=note)
        yield row._replace(landmark=landmark) if concept == "groups" else row


def _moved_apart(both: Array, codes: npt.NDArray[np.intp]) -> Array:
    """How many times as far apart the groups' means are after Δ as before, for every row of codes."""
    member = np.stack([(codes == code).astype(np.float64) for code in range(int(codes.max()) + 1)])
    means = (member @ both) / member.sum(axis=2, keepdims=True)
    before, after = means.std(axis=0).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(before > ALIKE, after / before, np.nan))


def _correlation_rows(judged: Judged) -> Iterator[Row]:
    """Correlation of a dimension's score with the neutral prompt's over the images, before and after Δ."""
    n = judged.images.height
    for metric, scores in (("cosine", judged.cosine), ("delta_cosine", judged.delta)):
        for name, values in zip(judged.names(), judged.by_dimension(scores).T, strict=True):
            row = Row("perception.neutral_r", None, n, CORRELATION, subset=metric, concept=name)
            if n <= 3 or np.ptp(values) == 0 or np.ptp(judged.neutral) == 0:
                yield row._replace(note="too few images, or all alike")
                continue
            row = _correlated(row, judged.neutral, values)
            together = "no interval: a person's pictures are not independent"
            yield row._replace(low=None, high=None, note=together) if judged.people.repeated else row
