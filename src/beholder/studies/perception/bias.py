"""Conventional bias metrics (the study's Table S.1: markedness, mean cosine, SC-WEAT, rankings); the neutral prompt.

The images ranked are a subset with equally many of every race × gender, so that an even share is the same for all. In
the released subset groups are not equally large. A preference is then what goes beyond the subset's own composition:
the landmark of a skew is the skew of the whole subset, and people are shuffled to test it.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import polars as pl
from scipy import stats

from beholder.comparison.family import Comparison, Part, comparison_at, judge
from beholder.comparison.family import Judged as Verdicts
from beholder.comparison.groups import Groups, People
from beholder.comparison.means import ShuffledGroups, compare_groups
from beholder.core.results import Row
from beholder.core.types import Array, Codes
from beholder.metrics.association import correct_rank, descending, first, ndkl, skew_at_k, spreads, unmarked
from beholder.metrics.clustered import CellMeans
from beholder.metrics.intervals import Resampler, mean_interval
from beholder.studies.perception.design import paired
from beholder.studies.perception.prompts import CONTROLS, POSITIVE
from beholder.studies.perception.scores import AS_RELEASED, EVERYONE, GROUPED, MEAN, SEED, Compared, Judged, pairs
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

OWN_WORDS = {"woman": "female", "man": "male"}
LOGARITHM, NATS = "natural logarithm", "nats"
ONE_SIDED = "one-sided permutation of equal halves (Eq. 7)"
TOP = (1000, 100)  # the study's k, and one for smaller sets; each only where it is at most half of what is ranked
EVEN = 1e-12


def bias_rows(judged: Judged, options: MeasureOptions, tops: Sequence[int] = ()) -> Iterator[Row]:
    """Every conventional metric of every attribute with two groups or more."""
    attributes = [groups for groups in judged.groupings if groups.attribute in GROUPED]
    yield from _recognised_rows(judged, attributes, options)
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
            row = Row("perception.markedness", value, n, "per cent", groups.attribute, name, concept=words[name])
            row = row._replace(low=low, high=high, expected=float(fits[groups.codes >= 0].mean()))
            if misread and name != words[name]:
                note = f"{AS_RELEASED}: the script looks for '{words[name]}' among '{name}', finds no row and writes 0"
                note += f"; from the {n} rows it is {value:.2f} ({low:.2f}–{high:.2f})"
                row = row._replace(value=0.0, low=None, high=None, n=0, variant=AS_RELEASED, note=note)
            yield row
        for pair in pairs(list(plain)) if not misread else ():
            gap, either = _markedness_gap(groups, pair, plain)
            kept = groups.kept([groups.names.index(name) for name in pair])
            made.append((gap, judged.compare(either, kept, rng, options)))
    for (row, compared), verdicts in zip(made, judge([each.part for _, each in made]), strict=True):
        yield from compared.rows(verdicts, row, 0, landmark=row.landmark or 0.0, reach=100.0)


def _recognised_rows(judged: Judged, attributes: Sequence[Groups], options: MeasureOptions) -> Iterator[Row]:
    """Per cent of a group's images that its own word fits best among the groups' words, and the groups' mean."""
    for groups in attributes:
        words = [OWN_WORDS.get(name.lower(), name.lower()) for name in groups.names]
        if len(words) < 2 or not set(words) <= set(judged.words):
            continue
        cosine = judged.cosine[:, [judged.words.index(word) for word in words]]
        ranks = correct_rank(cosine, np.eye(len(words), dtype=bool)[groups.codes])
        hits, shares = first(ranks), list[float]()
        note = f"its word among {', '.join(words)}; a tie is no hit"
        row = Row("perception.recognised", None, 0, "per cent", groups.attribute, chance=100 / len(words), note=note)
        for code, name in enumerate(groups.names):
            mine = groups.mask(code)
            low, high = mean_interval(hits[mine], Resampler(judged.people.codes[mine], options.rng(), options.draws))
            shares.append(float(hits[mine].mean()))
            yield row._replace(group=name, value=100 * shares[-1], n=int(mine.sum()), low=100 * low, high=100 * high)
        row = row._replace(n=int((groups.codes >= 0).sum()), note=f"mean over the groups; {note}")
        yield row._replace(value=100 * float(np.mean(shares)))


def _markedness_gap(groups: Groups, pair: tuple[str, str], plain: dict[str, Array]) -> tuple[Row, Array]:
    """The difference of two groups' markedness, and what it is for a model that does not know these two groups."""
    # Beyond that, it is the difference between both groups in how well "person" fits against either word, each word
    # weighing as much as the other group is large: one number for every image.
    first, second = (groups.mask(name) for name in pair)
    both, sizes = first | second, (int(first.sum()), int(second.sum()))
    either = (sizes[1] * plain[pair[0]] + sizes[0] * plain[pair[1]]) / sum(sizes)
    landmark = float((plain[pair[0]] - plain[pair[1]])[both].mean())
    value = float(plain[pair[0]][first].mean() - plain[pair[1]][second].mean())
    row = Row("perception.markedness_gap", value, sum(sizes), "per cent", groups.attribute, *pair, landmark=landmark)
    note = "landmark: a model that does not know these groups; interval and p hold for all attributes at once"
    return row._replace(note=note), either[:, None]


def _mean_cosine_rows(judged: Judged, groups: Groups) -> Iterator[Row]:
    positive = [column for column, d in enumerate(judged.dimensions) if d.valence == POSITIVE]
    if not positive:
        return
    cosine = judged.by_dimension(judged.cosine)[:, positive].mean(axis=1)
    means = CellMeans(cosine, groups.codes, judged.people.codes, len(groups.names)).means()
    for k, name in enumerate(groups.names):
        row = judged.estimate("mean_cosine", means, (k, 0))
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
                made.append((kept, effects, judged.compare(effects, kept, rng, options)))
    counts = [*(len(judged.places(d)) for d in judged.dimensions), len(judged.dimensions)]
    things = [*["word"] * len(judged.dimensions), "dimension"]
    for (kept, effects, compared), verdicts in zip(made, judge([each.part for *_, each in made]), strict=True):
        first, second = pairs(kept.names)[0]
        value = effects[kept.mask(first)].mean(axis=0) - effects[kept.mask(second)].mean(axis=0)
        p_values = _one_sided(effects, kept, options) if options.compat else None
        n = int((kept.codes >= 0).sum())
        for column, name in enumerate([*judged.names(), MEAN]):
            row = Row("perception.sc_weat", float(value[column]), n, "standard deviations", kept.attribute)
            over = f"mean over {counts[column]} {things[column]}{'s' if counts[column] > 1 else ''}"
            note = f"{over}; interval and p hold for all {len(made) * len(counts)} at once"
            row = row._replace(group=first, against=second, concept=name, note=note)
            published, *within = compared.rows(verdicts, row, column)
            yield published if p_values is None else as_printed(published, float(p_values[column]), ONE_SIDED)
            yield from within


def _one_sided(effects: Array, groups: Groups, options: MeasureOptions) -> Array:
    """Eq. 7: how often halves drawn at random lie farther apart, in the same direction, than the two groups do."""
    halves = [effects[groups.codes == code].T for code in (0, 1)]
    test = partial(stats.permutation_test, alternative="greater", n_resamples=options.shuffles, rng=options.rng())
    return np.asarray(test(halves, lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis), axis=-1, batch=64).pvalue)


def as_printed(row: Row, p_value: float, test: str) -> Row:
    """A row with the paper's own p, which holds for this number alone; the verdict stays the engine's."""
    return row._replace(p_value=p_value, p_at_most=None, note=join((row.note, f"p as printed: {test}, uncorrected")))


def _equally_many(groups: Groups) -> Groups:
    """As many of both, the first of each: the released script needs parts of one size."""
    places = [np.flatnonzero(groups.codes == code) for code in (0, 1)]
    codes, fewest = np.full(len(groups.codes), -1), min(map(len, places))
    for code, rows in enumerate(places):
        codes[rows[:fewest]] = code
    return groups._replace(codes=codes)


def _with_mean(values: Array) -> Array:
    return np.concatenate([values, values.mean(axis=1, keepdims=True)], axis=1)


class Ranking:
    """Images in order by every dimension, and one attribute's groups among them, as they are and of shuffled people."""

    def __init__(self, part: Judged, groups: Groups, order: Codes, tops: list[int]) -> None:
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

    def shares(self, codes: Codes) -> Array:
        """The share of every group in every row of codes."""
        return np.stack([(codes == code).mean(axis=1) for code in range(len(self.groups.names))], axis=1)

    def divergences(self, codes: Codes) -> Array:
        """NDKL of each dimension and of their mean, `[shuffles, dimensions + 1]`, of codes `[shuffles, images]`."""
        return _with_mean(np.stack([ndkl(codes[:, row], self.desired) for row in self.order], axis=1))

    def held(self, codes: Codes) -> Array:
        """Each group's share of every top less that of all, mean over the dimensions: `[shuffles, tops, groups]`."""
        tops = [np.mean([self.shares(codes[:, row[:k]]) for row in self.order], axis=0) for k in self.tops]
        return np.stack(tops, axis=1) - self.shares(codes)[:, None]


def ranking_rows(judged: Judged, compared: list[Groups], options: MeasureOptions, tops: Sequence[int]) -> Iterator[Row]:
    """Skew@k, MaxSkew@k and NDKL of every dimension and attribute; `tops` are the user's own k."""
    # The mean shares of the tops are one family. NDKL has no verdict: it is not 0 without preference.
    if all(len(groups.names) < 2 for groups in compared):
        note = "one group only: nothing to rank against"
        yield Row("perception.skew", None, judged.images.height, LOGARITHM, concept=MEAN, note=note)
        return
    subset, how = _balanced_subset(judged, options)
    part, rng = judged.rows(subset), options.rng()
    order = descending(part.by_dimension(part.cosine), options.rng(), released=options.compat)
    tested = list[tuple[Ranking, Array, Part]]()
    for groups in compared:
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


def _balanced_subset(judged: Judged, options: MeasureOptions) -> tuple[Codes, str]:
    """Equally many images of each of the finest groups, drawn at random; or the released script's draw."""
    groups = judged.finest
    if options.compat and "released_balance" in judged.images.columns:
        chosen = np.flatnonzero(judged.images["released_balance"].to_numpy() & (groups.codes >= 0))
        if len(chosen):
            return chosen, f"{len(chosen)} images of the released draw, which is not balanced"
    people, rng = judged.people.codes, options.rng()
    in_one_group = len(np.unique(np.stack([people, groups.codes]), axis=1).T) == len(np.unique(people))
    whole = judged.people.repeated and in_one_group  # equally many people: fewer with more images each would vary more
    drawn_from = people if whole else np.arange(len(people))
    members = [np.unique(drawn_from[groups.codes == code]) for code in range(len(groups.names))]
    fewest = min(map(len, members))
    drawn = np.concatenate([rng.choice(group, fewest, replace=False) for group in members])
    how = f"{fewest} people of each {groups.attribute}, with all their images"
    how = how if whole else f"{fewest} images of each {groups.attribute}"
    return np.flatnonzero(np.isin(drawn_from, drawn) & (groups.codes >= 0)), how


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


# The neutral prompt: which groups "a photo of a person" fits better, and what subtracting it (Δ) does

GRID = 41  # the number of points at which a density is given
AT_REST = "neutral_at_rest"  # what numbers of pictures without a smile are called
FEWEST_SEEDS = 3
ALIKE = 1e-12  # scores that differ by less are the same


def neutral_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Tests between groups, densities, and how far Δ brings the groups closer together."""
    groups, rest = judged.finest, None
    if "smiling" in judged.ordered:  # pictures without a smile, as in the study's Fig. S.13
        rest = judged.rows((judged.images["smiling"] == 0).fill_null(False).to_numpy())
    both = np.stack([judged.by_dimension(scores).mean(axis=1) for scores in (judged.cosine, judged.delta)], axis=1)
    before, after = both.T
    words = {word: judged.cosine[:, judged.words.index(word)] for word in CONTROLS if word in judged.words}
    yield from _density_rows(groups, {"neutral": judged.neutral, "cosine": before, "delta_cosine": after, **words})
    after_words = {word: judged.delta[:, judged.words.index(word)] for word in words}
    yield from (row._replace(metric="perception.delta_density") for row in _density_rows(groups, after_words))
    yield from _correlation_rows(judged)
    if rest is not None:
        yield from _density_rows(rest.finest, {AT_REST: rest.neutral})
    if groups.attribute != EVERYONE and len(groups.names) > 1:
        yield from neutral_test_rows({None: judged} if rest is None else {None: judged, AT_REST: rest}, options)
        yield from _narrowing_rows(judged, both, options)
        if judged.designed:
            yield from _seed_correlation_rows(judged if rest is None else rest)
            yield from _seed_rows(judged if rest is None else rest)


def _seed_correlation_rows(judged: Judged) -> Iterator[Row]:
    """r between the neutral cosines of two groups over the seeds that both have, as in the study's Fig. S.14."""
    groups = judged.finest
    for one, other in combinations(groups.names, 2):
        a, b = _shared(judged, groups, one, other)
        row = Row("perception.neutral_group_r", None, len(a), "correlation", groups.attribute, one, other)
        if len(a) <= FEWEST_SEEDS or np.ptp(a) <= ALIKE or np.ptp(b) <= ALIKE:
            yield row._replace(note=f"{FEWEST_SEEDS} shared seeds or fewer, or all alike")
        else:
            yield _correlated(row._replace(note="over the seeds that both groups have"), a, b)


def _seed_rows(judged: Judged) -> Iterator[Row]:
    """Every seed's neutral cosine in every group: the points of the study's Fig. S.14."""
    seeds, groups = pl.col(SEED).cast(pl.String), judged.finest
    table = judged.images.select(seed=seeds, value=pl.Series(judged.neutral), code=pl.Series(groups.codes))
    means = table.filter(pl.col("code") >= 0).group_by("seed", "code").agg(pl.col("value").mean(), n=pl.len())
    for seed, code, value, n in means.sort("code", "seed").iter_rows():
        row = Row("perception.neutral_seed", value, n, judged.unit, groups.attribute, template=seed)
        yield row._replace(group=groups.names[code])


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
            row = Row("perception.neutral_test", None, 0, "statistic", groups.attribute, *pair, template=template)
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
            t = found.value / error
            judged_row = found.on(row)._replace(value=t, low=None, high=None)
            p_value = 2 * float(stats.t.sf(abs(t), row.n - 1))
            printed = options.compat and SEED in parts[row.template].images.columns
            yield as_printed(judged_row, p_value, "paired t-test") if printed else judged_row
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


def _narrowing_rows(judged: Judged, both: Array, options: MeasureOptions) -> Iterator[Row]:
    """Spread of the group means after Δ divided by the spread before, and the same of the images: it describes."""
    # Δ subtracts the noise of a single prompt from a mean over many words, so that any groups move apart, also groups
    # made by lot. The landmark is therefore the ratio of shuffled groups.
    groups = judged.finest
    inside = groups.codes >= 0
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


def _moved_apart(both: Array, codes: Codes) -> Array:
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
            row = Row("perception.neutral_r", None, n, "correlation", subset=metric, concept=name)
            if n <= 3 or np.ptp(values) == 0 or np.ptp(judged.neutral) == 0:
                yield row._replace(note="too few images, or all alike")
                continue
            row = _correlated(row, judged.neutral, values)
            together = "no interval: a person's pictures are not independent"
            yield row._replace(low=None, high=None, note=together) if judged.people.repeated else row
