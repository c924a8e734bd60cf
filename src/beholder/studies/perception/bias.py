"""Conventional bias metrics, as in the study's Table S.1: markedness, mean cosine, SC-WEAT, rankings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from beholder.comparison import Groups, judge
from beholder.core.results import Row
from beholder.metrics.association import spreads, unmarked
from beholder.metrics.clustered import CellMeans
from beholder.metrics.intervals import Resampler, mean_interval
from beholder.studies.perception import scores
from beholder.studies.perception.pairs import Compared, compare_pairs, pairs
from beholder.studies.perception.prompts import POSITIVE
from beholder.studies.perception.ranking import ranking_rows
from beholder.studies.perception.scores import CROSSED, EVERYONE, MEAN, Array, Judged
from beholder.studies.study import MeasureOptions

PER_CENT, DEVIATIONS = "per cent", "standard deviations"
OWN_WORDS = {"woman": "female", "man": "male"}
AS_RELEASED = "as released"
"""The variant of a number that repeats a fault of the released script."""


def bias_rows(judged: Judged, options: MeasureOptions, tops: Sequence[int] = ()) -> Iterator[Row]:
    """Every conventional metric of every attribute with two groups or more."""
    attributes = [groups for groups in scores.groupings(judged.images) if groups.attribute not in (EVERYONE, *CROSSED)]
    if judged.has_neutral:
        yield from markedness_rows(judged, attributes, options)
    for groups in attributes:
        yield from mean_cosine_rows(judged, groups)
    yield from sc_weat_rows(judged, attributes, options)
    yield from ranking_rows(judged, attributes, options, tops)


# Markedness


def markedness_rows(judged: Judged, attributes: Sequence[Groups], options: MeasureOptions) -> Iterator[Row]:
    """Per cent of a group's images that the neutral prompt fits better than the group's own word, and differences.

    `expected` is what a model gives that does not know these groups: the same word over everybody's images.
    """
    rng, made = options.rng(), list[tuple[Row, float, Compared]]()
    for groups in attributes:
        plain = {
            name: 100 * unmarked(judged.neutral, judged.cosine[:, judged.words.index(own)])
            for name in groups.names
            if (own := own_word(name)) in judged.words
        }
        for name, fits in plain.items():
            yield _share_row(judged, groups, name, fits, options)
        if not (options.compat and _misread(judged, groups.attribute)):
            made += [_markedness_gap(judged, groups, pair, plain, rng, options) for pair in pairs(list(plain))]
    for (row, landmark, compared), verdicts in zip(made, judge([each.part for *_, each in made]), strict=True):
        yield from compared.rows(verdicts, row, 0, landmark=landmark, reach=100.0)


def own_word(group: str) -> str:
    """The word that names a group."""
    return OWN_WORDS.get(group.lower(), group.lower())


def _share_row(judged: Judged, groups: Groups, name: str, fits: Array, options: MeasureOptions) -> Row:
    members = groups.mask(name)
    people = judged.people.codes[members]
    low, high = mean_interval(fits[members] / 100, Resampler(people, options.rng(), options.draws))
    row = Row("perception.markedness", float(fits[members].mean()), int(members.sum()), PER_CENT, groups.attribute)
    row = row._replace(group=name, concept=own_word(name), low=100 * low, high=100 * high)
    row = row._replace(expected=float(fits[groups.codes >= 0].mean()))
    return _as_released(row, judged) if options.compat else row


def _markedness_gap(
    judged: Judged,
    groups: Groups,
    pair: tuple[str, str],
    plain: dict[str, Array],
    rng: np.random.Generator,
    options: MeasureOptions,
) -> tuple[Row, float, Compared]:
    """The difference of two groups' markedness, and what it is for a model that does not know these two groups.

    Beyond that, it is the difference between both groups in how well "person" fits against either word, each word
    weighing as much as the other group is large: one number for every image.
    """
    first, second = (groups.mask(name) for name in pair)
    both, sizes = first | second, (int(first.sum()), int(second.sum()))
    either = (sizes[1] * plain[pair[0]] + sizes[0] * plain[pair[1]]) / sum(sizes)
    landmark = float((plain[pair[0]] - plain[pair[1]])[both].mean())
    value = float(plain[pair[0]][first].mean() - plain[pair[1]][second].mean())
    row = Row("perception.markedness_gap", value, sum(sizes), PER_CENT, groups.attribute, *pair, landmark=landmark)
    kept = groups.kept([groups.names.index(name) for name in pair])
    note = "landmark: a model that does not know these groups; interval and p hold for all attributes at once"
    return row._replace(note=note), landmark, compare_pairs(judged, either[:, None], kept, rng, options)


def _misread(judged: Judged, attribute: str | None) -> bool:
    """Whether the released script finds no row of these groups: it looks for `male` among FairFace's `Male`."""
    return attribute == "gender" and "split" in judged.images.columns


def _as_released(row: Row, judged: Judged) -> Row:
    """Where the released script finds no row, it writes 0."""
    if not _misread(judged, row.subset) or row.group == row.concept:
        return row
    note = (
        f"{AS_RELEASED}: the script looks for '{row.concept}' among '{row.group}', finds no row and writes 0; "
        f"from the {row.n} rows it is {row.value:.2f} ({row.low:.2f}–{row.high:.2f})"
    )
    return row._replace(value=0.0, low=None, high=None, n=0, variant=AS_RELEASED, note=note)


# Mean cosine


def mean_cosine_rows(judged: Judged, groups: Groups) -> Iterator[Row]:
    """Mean of the means over the positive dimensions."""
    positive = [column for column, d in enumerate(judged.dimensions) if d.valence == POSITIVE]
    if not positive:
        return
    cosine = judged.by_dimension(judged.cosine)[:, positive].mean(axis=1)
    means = CellMeans(cosine, groups.codes, judged.people.codes, len(groups.names)).means()
    note = f"over {len(positive)} positive dimensions"
    for k, name in enumerate(groups.names):
        row = scores.estimate_row("mean_cosine", means, (k, 0), judged.unit, int(means.n[k]))
        yield row._replace(subset=groups.attribute, group=name, note=note)


# SC-WEAT


def sc_weat_rows(judged: Judged, attributes: Sequence[Groups], options: MeasureOptions) -> Iterator[Row]:
    """Effect size of every dimension (mean over its words) and of their mean, for every two groups.

    In standard deviations over both groups, a word's effect is a difference of means: the engine judges all of them.
    """
    rng, made = options.rng(), list[tuple[Groups, Array, Compared]]()
    for groups in attributes:
        for pair in pairs(groups.names):
            kept = groups.kept([groups.names.index(name) for name in pair])
            kept = _equally_many(kept) if options.compat else kept
            if min(np.bincount(kept.codes[kept.codes >= 0], minlength=2)) > 1:
                inside = kept.codes >= 0
                scaled = judged.cosine / spreads(judged.cosine[inside])
                effects = _over_words(judged, scaled)
                made.append((kept, effects, compare_pairs(judged, effects, kept, rng, options)))
    counts = [len(judged.places(d)) for d in judged.dimensions]
    over = [f"mean over {count} word{'s' if count > 1 else ''}" for count in counts]
    over.append(f"mean over {len(counts)} dimension{'s' if len(counts) > 1 else ''}")
    for (kept, effects, compared), verdicts in zip(made, judge([each.part for *_, each in made]), strict=True):
        first, second = pairs(kept.names)[0]
        value = effects[kept.mask(first)].mean(axis=0) - effects[kept.mask(second)].mean(axis=0)
        n = int((kept.codes >= 0).sum())
        for column, name in enumerate([*judged.names(), MEAN]):
            row = Row("perception.sc_weat", float(value[column]), n, DEVIATIONS, kept.attribute, first, second, name)
            note = f"{over[column]}; interval and p hold for all {len(made) * len(over)} at once"
            yield from compared.rows(verdicts, row._replace(note=note), column)


def _equally_many(groups: Groups) -> Groups:
    """As many of both, the first of each: the released script needs parts of one size."""
    places = [np.flatnonzero(groups.codes == code) for code in (0, 1)]
    codes, fewest = np.full(len(groups.codes), -1), min(map(len, places))
    for code, rows in enumerate(places):
        codes[rows[:fewest]] = code
    return groups._replace(codes=codes)


def _over_words(judged: Judged, scaled: Array) -> Array:
    """The mean over each dimension's words, and over the dimensions; a word without spread leaves none of its own."""
    each = judged.by_dimension(scaled)
    return np.column_stack([each, each.mean(axis=1)])
