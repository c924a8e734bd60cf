"""Conventional bias metrics, as in the study's Table S.1: markedness, mean cosine, SC-WEAT, rankings.

The images ranked are a subset with equally many of every race × gender, so that an even share is the same for all. In
the released subset groups are not equally large. A preference is then what goes beyond the subset's own composition:
the landmark of a skew is the skew of the whole subset, and people are shuffled to test it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from beholder.comparison import Comparison, Groups, Part, People, ShuffledGroups, comparison_at, judge
from beholder.comparison.family import Judged as Verdicts
from beholder.core.results import Row
from beholder.metrics.association import descending, ndkl, skew_at_k, spreads, unmarked
from beholder.metrics.clustered import CellMeans
from beholder.metrics.intervals import Resampler, mean_interval
from beholder.studies.perception.prompts import POSITIVE
from beholder.studies.perception.scores import (
    AS_RELEASED,
    DEVIATIONS,
    GROUPED,
    MEAN,
    PER_CENT,
    Array,
    Compared,
    Indices,
    Judged,
    compare_pairs,
    estimate_row,
    pairs,
)
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

OWN_WORDS = {"woman": "female", "man": "male"}
LOGARITHM, NATS = "natural logarithm", "nats"
TOP = (1000, 100)  # the study's k, and one for smaller sets; each only where it is at most half of what is ranked
EVEN = 1e-12


def bias_rows(judged: Judged, options: MeasureOptions, tops: Sequence[int] = ()) -> Iterator[Row]:
    """Every conventional metric of every attribute with two groups or more."""
    attributes = [groups for groups in judged.groupings if groups.attribute in GROUPED]
    if judged.has_neutral:
        yield from _markedness_rows(judged, attributes, options)
    for groups in attributes:
        yield from _mean_cosine_rows(judged, groups)
    yield from _sc_weat_rows(judged, attributes, options)
    yield from ranking_rows(judged, attributes, options, tops)


def _markedness_rows(judged: Judged, attributes: Sequence[Groups], options: MeasureOptions) -> Iterator[Row]:
    """Per cent of a group's images that the neutral prompt fits better than the group's own word, and differences."""
    # `expected` is what a model gives that does not know these groups: the same word over everybody's images.
    rng, made = options.rng(), list[tuple[Row, Compared]]()
    for groups in attributes:
        misread = options.compat and groups.attribute == "gender" and "split" in judged.images.columns
        words = {name: OWN_WORDS.get(name.lower(), name.lower()) for name in groups.names}
        places = {name: judged.words.index(word) for name, word in words.items() if word in judged.words}
        plain = {name: 100 * unmarked(judged.neutral, judged.cosine[:, at]) for name, at in places.items()}
        for name, fits in plain.items():
            members = groups.mask(name)
            resampler = Resampler(judged.people.codes[members], options.rng(), options.draws)
            low, high = (100 * end for end in mean_interval(fits[members] / 100, resampler))
            value, n = float(fits[members].mean()), int(members.sum())
            row = Row("perception.markedness", value, n, PER_CENT, groups.attribute, name, concept=words[name])
            row = row._replace(low=low, high=high, expected=float(fits[groups.codes >= 0].mean()))
            if misread and name != words[name]:
                note = (
                    f"{AS_RELEASED}: the script looks for '{words[name]}' among '{name}', finds no row and writes 0; "
                    f"from the {n} rows it is {value:.2f} ({low:.2f}–{high:.2f})"
                )
                row = row._replace(value=0.0, low=None, high=None, n=0, variant=AS_RELEASED, note=note)
            yield row
        for pair in pairs(list(plain)) if not misread else ():
            gap, either = _markedness_gap(groups, pair, plain)
            kept = groups.kept([groups.names.index(name) for name in pair])
            made.append((gap, compare_pairs(judged, either, kept, rng, options)))
    for (row, compared), verdicts in zip(made, judge([each.part for _, each in made]), strict=True):
        yield from compared.rows(verdicts, row, 0, landmark=row.landmark or 0.0, reach=100.0)


def _markedness_gap(groups: Groups, pair: tuple[str, str], plain: dict[str, Array]) -> tuple[Row, Array]:
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
    note = "landmark: a model that does not know these groups; interval and p hold for all attributes at once"
    return row._replace(note=note), either[:, None]


def _mean_cosine_rows(judged: Judged, groups: Groups) -> Iterator[Row]:
    positive = [column for column, d in enumerate(judged.dimensions) if d.valence == POSITIVE]
    if not positive:
        return
    cosine = judged.by_dimension(judged.cosine)[:, positive].mean(axis=1)
    means = CellMeans(cosine, groups.codes, judged.people.codes, len(groups.names)).means()
    for k, name in enumerate(groups.names):
        row = estimate_row("mean_cosine", means, (k, 0), judged.unit)
        yield row._replace(subset=groups.attribute, group=name, note=f"over {len(positive)} positive dimensions")


def _sc_weat_rows(judged: Judged, attributes: Sequence[Groups], options: MeasureOptions) -> Iterator[Row]:
    """Effect size of every dimension (mean over its words) and of their mean, for every two groups."""
    # In standard deviations over both groups, a word's effect is a difference of means: the engine judges all of them.
    rng, made = options.rng(), list[tuple[Groups, Array, Compared]]()
    for groups in attributes:
        for pair in pairs(groups.names):
            kept = groups.kept([groups.names.index(name) for name in pair])
            kept = _equally_many(kept) if options.compat else kept
            if min(np.bincount(kept.codes[kept.codes >= 0], minlength=2)) > 1:
                effects = _with_mean(judged.by_dimension(judged.cosine / spreads(judged.cosine[kept.codes >= 0])))
                made.append((kept, effects, compare_pairs(judged, effects, kept, rng, options)))
    counts = [*(len(judged.places(d)) for d in judged.dimensions), len(judged.dimensions)]
    things = [*["word"] * len(judged.dimensions), "dimension"]
    for (kept, effects, compared), verdicts in zip(made, judge([each.part for *_, each in made]), strict=True):
        first, second = pairs(kept.names)[0]
        value = effects[kept.mask(first)].mean(axis=0) - effects[kept.mask(second)].mean(axis=0)
        n = int((kept.codes >= 0).sum())
        for column, name in enumerate([*judged.names(), MEAN]):
            row = Row("perception.sc_weat", float(value[column]), n, DEVIATIONS, kept.attribute, first, second, name)
            over = f"mean over {counts[column]} {things[column]}{'s' if counts[column] > 1 else ''}"
            note = f"{over}; interval and p hold for all {len(made) * len(counts)} at once"
            yield from compared.rows(verdicts, row._replace(note=note), column)


def _equally_many(groups: Groups) -> Groups:
    """As many of both, the first of each: the released script needs parts of one size."""
    places = [np.flatnonzero(groups.codes == code) for code in (0, 1)]
    codes, fewest = np.full(len(groups.codes), -1), min(map(len, places))
    for code, rows in enumerate(places):
        codes[rows[:fewest]] = code
    return groups._replace(codes=codes)


def _with_mean(values: Array) -> Array:
    return np.concatenate([values, values.mean(axis=1, keepdims=True)], axis=1)


# Rankings


class Ranking:
    """Images in order by every dimension, and one attribute's groups among them, as they are and of shuffled people."""

    def __init__(self, part: Judged, groups: Groups, order: npt.NDArray[np.intp], tops: list[int]) -> None:
        self.groups, self.order, self.tops = groups, order, tops
        self.names = [*part.names(), MEAN]
        self.desired = np.full(len(groups.names), 1 / len(groups.names))  # an even share for everyone
        self.strata = part.strata(groups)

    def shuffle(self, people: People, rng: np.random.Generator, options: MeasureOptions) -> tuple[Array, Part]:
        """NDKL of shuffled people, on average; and what every top holds of each group, against shuffled people."""
        shuffles = (options.permutations, options.shuffles)
        few, many = (ShuffledGroups(self.groups, people, rng, self.strata, n) for n in shuffles)
        expected = np.concatenate([self.divergences(codes) for codes in few.parts()]).mean(axis=0)
        return expected, many.part(self.held, people=min(self.groups.sizes(people)))

    def shares(self, codes: Indices) -> Array:
        """The share of every group in every row of codes."""
        return np.stack([(codes == code).mean(axis=1) for code in range(len(self.groups.names))], axis=1)

    def divergences(self, codes: Indices) -> Array:
        """NDKL of each dimension and of their mean, `[shuffles, dimensions + 1]`, of codes `[shuffles, images]`."""
        return _with_mean(np.stack([ndkl(codes[:, row], self.desired) for row in self.order], axis=1))

    def held(self, codes: Indices) -> Array:
        """Each group's share of every top less that of all, mean over the dimensions: `[shuffles, tops, groups]`."""
        tops = [np.mean([self.shares(codes[:, row[:k]]) for row in self.order], axis=0) for k in self.tops]
        return np.stack(tops, axis=1) - self.shares(codes)[:, None]


def ranking_rows(
    judged: Judged, attributes: Sequence[Groups], options: MeasureOptions, tops: Sequence[int] = ()
) -> Iterator[Row]:
    """Skew@k, MaxSkew@k and NDKL of every dimension and attribute; `tops` are the user's own k."""
    # The mean shares of the tops are one family. NDKL has no verdict: it is not 0 without preference.
    if all(len(groups.names) < 2 for groups in attributes):
        note = "one group only: nothing to rank against"
        yield Row("perception.skew", None, judged.images.height, LOGARITHM, concept=MEAN, note=note)
        return
    subset, how = _balanced_subset(judged, options)
    part, rng = judged.rows(subset), options.rng()
    order = descending(part.by_dimension(part.cosine), options.rng(), released=options.compat)
    tested = list[tuple[Ranking, Array, Part]]()
    for groups in attributes:
        there = groups._replace(codes=groups.codes[subset])
        there = there.kept(np.unique(there.codes[there.codes >= 0]).tolist())
        if len(there.names) > 1:
            ranking = Ranking(part, there, order, top_sizes(len(subset), tops))
            tested.append((ranking, *ranking.shuffle(part.people, rng, options)))
    for (ranking, *_), verdicts in zip(tested, judge([held for *_, held in tested]), strict=True):
        for place in range(len(ranking.tops)):
            yield from _skew_rows(ranking, how, place, verdicts)
    for ranking, expected, _ in tested:
        n, values = len(ranking.groups.codes), ranking.divergences(ranking.groups.codes[None])[0]
        note = f"{how}; expected: the mean of shuffles of people, which have no preference"
        for name, value, shuffled in zip(ranking.names, values.tolist(), expected.tolist(), strict=True):
            row = Row("perception.ndkl", value, n, NATS, ranking.groups.attribute, concept=name, note=note)
            yield row._replace(expected=shuffled)


def top_sizes(ranked: int, asked: Sequence[int] = ()) -> list[int]:
    """The k at which skews are taken: the user's own as far as so many images are ranked, else the study's."""
    own = [k for k in dict.fromkeys(asked) if k < ranked]
    return own or [k for k in TOP if 2 * k <= ranked] or [max(1, ranked // 4)]


def top_size(row: dict[str, str]) -> int:
    """The k of a row of results about the top of a ranking."""
    return int(row["template"].removeprefix("k="))


def _balanced_subset(judged: Judged, options: MeasureOptions) -> tuple[Indices, str]:
    """Equally many images of each of the finest groups, drawn at random; or the released script's draw."""
    groups = judged.finest
    if options.compat and "released_balance" in judged.images.columns:
        chosen = np.flatnonzero(judged.images["released_balance"].to_numpy() & (groups.codes >= 0))
        if len(chosen):
            return chosen, f"{len(chosen)} images of the released draw, which is not balanced"
    members = [np.flatnonzero(groups.codes == code) for code in range(len(groups.names))]
    rng, people = options.rng(), judged.people.codes
    in_one_group = len(np.unique(np.stack([people, groups.codes]), axis=1).T) == len(np.unique(people))
    if judged.people.repeated and in_one_group:  # equally many people: fewer with more images each would vary more
        who = [np.unique(people[group]) for group in members]
        fewest = min(map(len, who))
        drawn = np.concatenate([rng.choice(each, fewest, replace=False) for each in who])
        chosen = np.flatnonzero(np.isin(people, drawn) & (groups.codes >= 0))
        return chosen, f"{fewest} people of each {groups.attribute}, with all their images"
    fewest = min(map(len, members))
    chosen = np.sort(np.concatenate([rng.choice(group, fewest, replace=False) for group in members]))
    return chosen, f"{fewest} images of each {groups.attribute}"


def _skew_rows(ranking: Ranking, how: str, place: int, verdicts: Verdicts) -> Iterator[Row]:
    groups, k = ranking.groups, ranking.tops[place]
    skew, n = skew_at_k(groups.codes[ranking.order], ranking.desired, k), len(groups.codes)
    how = f"{how}; k is {100 * k / n:.0f} % of those ranked" if 3 * k > n else how
    pool = np.log(ranking.shares(groups.codes[None])[0] / ranking.desired)
    pool = np.where(np.abs(pool) > EVEN, pool, 0.0)
    for column, group in enumerate(groups.names):
        there = skew[np.isfinite(skew[:, column]), column]
        mean, left_out = float(there.mean()) if len(there) else -np.inf, len(skew) - len(there)
        fewer = f"{left_out} of {len(skew)} dimensions are −∞ and left out of the mean" if left_out else None
        for name, value in zip(ranking.names, [*skew[:, column].tolist(), mean], strict=True):
            row = Row("perception.skew", value, n, LOGARITHM, groups.attribute, group, concept=name)
            note = fewer if name == MEAN else None
            if not np.isfinite(value):
                row, note = row._replace(value=None), note or f"no image of {group} in the top {k}: −∞"
            row = row._replace(template=f"k={k}", note=join((how, note)), landmark=float(pool[column]))
            found = comparison_at(verdicts, (place, column))
            yield from _judged_skew(ranking, row, found, (place, column)) if name == MEAN else [row]
    largest = skew.max(axis=1)
    for name, value in zip(ranking.names, [*largest.tolist(), float(largest.mean())], strict=True):
        row = Row("perception.max_skew", value, n, LOGARITHM, groups.attribute, concept=name, note=how)
        yield row._replace(template=f"k={k}")


def _judged_skew(ranking: Ranking, row: Row, found: Comparison, place: tuple[int, int]) -> Iterator[Row]:
    """A mean skew with the verdict of its group's mean share of the tops; bounds are those of the share."""
    even = float(ranking.desired[0])
    least = 0.5 / (ranking.tops[place[0]] * len(ranking.order))
    share = float(ranking.held(ranking.groups.codes[None])[0][place] + even * np.exp(row.landmark or 0.0))
    off = share - found.value
    found = found.through(lambda end: float(np.log(np.clip(end + off, least, 1.0) / even)))
    if ranking.strata.variant is not None:
        yield from found.rows(row, ranking.strata)
    elif row.value is None:
        yield row._replace(verdict=found.verdict)
    else:  # the mean of logarithms may lie below the logarithm of a mean: the value itself is never left out
        (only,) = found.rows(row)
        yield only._replace(low=min(found.low, row.value), high=max(found.high, row.value))
