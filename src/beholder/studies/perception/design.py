"""Matched sets: what each attribute does to a judgement when it alone is changed.

A set has the images of one seed that differ in one attribute. Intervals are over seeds. Brightness is the one measure
that opens the pictures again: a confound, which is about the data set and not about the model.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from beholder.comparison.family import Judged as Verdicts
from beholder.comparison.family import Part, comparison_at, judge
from beholder.comparison.groups import Groups, People, group_by
from beholder.comparison.means import compare_groups
from beholder.core.errors import BadImage
from beholder.core.results import Row
from beholder.core.types import Array, Codes
from beholder.datasets.images import grey_values, open_image
from beholder.metrics.association import coarse, sign_map
from beholder.metrics.clustered import BySeed, by_seed, combined, curvatures, differences, slopes, variance_shares
from beholder.studies.perception.scores import AS_RELEASED, GROUPED, INTERACTIONS, MEAN, ORDERED, SEED, Judged, pairs
from beholder.studies.study import MeasureOptions

SHARE, SIGN = "share of variance", "mean sign"
BLOCK = "varied"  # the column that says what varies in a block of pictures
REST = "rest"  # stands for what no attribute explains


def design_columns(images: pl.DataFrame) -> list[str]:
    """Everything that is varied: groups, ordered attributes and the seed."""
    return [name for name in (*GROUPED, *ORDERED, SEED) if name in images.columns and images[name].n_unique() > 1]


def matched_sets(images: pl.DataFrame, attribute: str) -> tuple[Codes, Codes]:
    """Every image's set (−1: its attribute is unknown), and every set's seed (−1: the attribute is the seed itself)."""
    # A set's images differ in this attribute alone, and are of one block where blocks vary different attributes.
    keys = [name for name in design_columns(images) if name != attribute]
    keys += [BLOCK] if BLOCK in images.columns else []
    known = images[attribute].is_not_null()
    numbered = images.select(*keys).with_columns(known=known, row=pl.int_range(pl.len())).filter("known")
    numbered = numbered.with_columns(set=pl.struct(keys).rank("dense").cast(pl.Int64) - 1)
    codes = np.full(images.height, -1)
    codes[numbered["row"].to_numpy()] = numbered["set"].to_numpy()
    seeds = np.full(codes.max(initial=-1) + 1, -1)
    if attribute != SEED:
        _, seed_codes = np.unique(images[SEED].cast(pl.String).to_numpy(), return_inverse=True)
        seeds[codes[codes >= 0]] = seed_codes[codes >= 0]
    return codes, seeds


def effect_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Average causal effect of each contrast on each dimension, and the mean absolute difference."""
    # Contrasts are every two groups of an attribute, and the highest against the lowest level of an ordered one.
    scores, n = judged.by_dimension(judged.delta), judged.images[SEED].n_unique()
    effects = list[tuple[tuple[str, str, str], BySeed, Array]]()
    for attribute in [name for name in design_columns(judged.images) if name != SEED]:
        labels, (sets, seeds) = judged.images[attribute], matched_sets(judged.images, attribute)
        known, ordered = sorted(labels.drop_nulls().unique()), attribute in ORDERED
        for both in [(known[-1], known[0])] if ordered else pairs(known):
            first, second = ((labels == value).fill_null(False).to_numpy().astype(int) for value in both)
            matched, changes = differences(scores, sets, np.where(sets >= 0, first - second, 0))
            if len(matched):
                one, other = (f"{float(value):g}" if ordered else str(value) for value in both)
                by_seeds = by_seed(changes, seeds[matched])
                effects.append(((attribute, one, other), by_seeds, np.abs(changes).mean(axis=0)))
    family = judged_by_seed([by_seeds for _, by_seeds, _ in effects], options)
    for (contrast, by_seeds, absolute), verdicts in zip(effects, family, strict=True):
        together = f"interval and p hold for all {len(effects) * scores.shape[1]} at once"
        note = f"{by_seeds.sets} matched sets; {together}"
        for column, name in enumerate(judged.names()):
            row = Row("perception.causal_effect", None, n, judged.unit, *contrast, concept=name, note=note)
            yield seed_row(row, by_seeds, verdicts, column)
            upward = "mean |difference| of the same sets; noise alone makes it more than 0"
            yield row._replace(metric="perception.absolute_difference", note=upward, value=float(absolute[column]))


def judged_by_seed(parts: Sequence[BySeed], options: MeasureOptions) -> list[Verdicts]:
    """Differences within seeds, judged as one family."""
    rng = options.rng()
    return judge([paired(part.values, rng, options) for part in parts])


def paired(differences: Array, rng: np.random.Generator, options: MeasureOptions) -> Part:
    """Differences `[n_seeds, n_columns]`: each seed is compared with itself, as if either picture were the other."""
    n = len(differences)
    sides, people = Groups("", ["with", "without"], np.repeat([0, 1], n)), People(np.tile(np.arange(n), 2))
    halves = np.concatenate([differences, -differences]) / 2
    return compare_groups(halves, sides, people, rng, shuffles=options.shuffles)


def seed_row(row: Row, part: BySeed, verdicts: Verdicts, column: int) -> Row:
    """The mean over seeds in a row, with its verdict."""
    value = float(part.values[:, column].mean()) if len(part.seeds) else np.nan
    return comparison_at(verdicts, (0, column)).rows(row._replace(value=value))[0]


def interaction_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """Does smiling help everyone equally? Each group's rise over the attribute's whole range, and their differences."""
    interactions = list[tuple[str, tuple[str, str], BySeed]]()
    for subset, (varied, grouping) in INTERACTIONS.items():
        if varied not in judged.ordered or grouping not in design_columns(judged.images):
            continue
        rises = fits_by_group(judged, varied, group_by(judged.images, (grouping,)))
        for both in pairs(list(rises)):
            difference = combined([rises[group] for group in both], np.array([1.0, -1.0]))
            interactions += [(subset, both, difference)] if len(difference.seeds) else []
        for group, rise in rises.items():
            for row in judged.dimension_rows("slope", rise.values.mean(axis=0), rise.sets, group):
                yield row._replace(subset=subset, note="rise of a straight line over the attribute's range")
    count = len(interactions) * len(judged.dimensions)
    note = f"rise over the attribute's range, first less second; interval and p hold for all {count} at once"
    family = judged_by_seed([slope for *_, slope in interactions], options)
    for (subset, both, slope), verdicts in zip(interactions, family, strict=True):
        for column, name in enumerate(judged.names()):
            row = Row("perception.interaction", None, slope.sets, judged.unit, subset, *both, name, note=note)
            yield seed_row(row, slope, verdicts, column)


def fits_by_group(judged: Judged, attribute: str, groups: Groups, degree: int = 1) -> dict[str, BySeed]:
    """By group: each seed's mean slope times the range (degree 1), or its curve's ends less its middle (degree 2)."""
    levels = judged.images[attribute].cast(pl.Float64).to_numpy()
    reach = float(np.nanmax(levels) - np.nanmin(levels))
    scores = judged.by_dimension(judged.delta) * (reach if degree == 1 else (reach / 2) ** 2)
    (sets, seeds), fitted = matched_sets(judged.images, attribute), dict[str, BySeed]()
    fit = slopes if degree == 1 else curvatures
    for group in groups.names:
        codes = np.where(groups.mask(group), sets, -1)
        known, numbers = fit(scores, sets=codes, levels=np.nan_to_num(levels))
        if len(known):
            fitted[group] = by_seed(numbers, seeds[known])
    return fitted


def variance_rows(judged: Judged) -> Iterator[Row]:
    """Share of each attribute in the variance of each dimension, block by block where there are blocks."""
    blocks = judged.images[BLOCK].unique(maintain_order=True).to_list() if BLOCK in judged.images.columns else [None]
    for block in blocks:
        inside = np.ones(judged.images.height, bool) if block is None else (judged.images[BLOCK] == block).to_numpy()
        part = judged.rows(inside)
        known = [name for name in design_columns(part.images) if not part.images[name].null_count()]
        columns = [name for name in known if 2 * part.images[name].n_unique() < part.images.height]
        labels = {name: part.images[name].to_numpy() for name in columns}
        shares = variance_shares(part.by_dimension(part.delta), labels)
        if shares is None:
            continue
        unbalanced = None if part.designed else "variance that attributes share is counted for none of them"
        for column, name in enumerate(part.names()):
            row = Row("perception.variance_share", float(shares.rest[column]), part.images.height, SHARE, REST)
            row = row._replace(concept=name, template=block, note="interactions and what no attribute explains")
            for k, attribute in enumerate(shares.names):
                yield row._replace(subset=attribute, value=float(shares.share[k, column]), note=unbalanced)
            yield row


# Induced variation, the published measure: how far apart two images are that differ in one attribute alone

PAIRS = 1000  # pairs drawn for each attribute, as in the study
FAR = {"age": 1.1, "smiling": 1.1}  # the two of a pair differ by more than this in these attributes
EVEN_CHANCE = 0.5
BOX = (0.05, 0.25, 0.5, 0.75, 0.95)


def induced_rows(judged: Judged, options: MeasureOptions) -> Iterator[Row]:
    """|Δ₁ − Δ₂| of pairs that differ in one attribute alone: noise moves it like any effect, so nothing is claimed."""
    scores, drawn = judged.by_dimension(judged.delta), dict[str, Array]()
    for attribute in design_columns(judged.images):
        first, second = draw_pairs(judged.images, attribute, options.rng(), PAIRS)
        if not len(first):
            continue
        drawn[attribute] = np.abs(scores[first] - scores[second])
        by_name = {name: drawn[attribute][:, k] for k, name in enumerate(judged.names())}
        for name, values in {**by_name, MEAN: drawn[attribute]}.items():
            row = Row("perception.induced_variation", float(np.median(values)), len(first), judged.unit, attribute)
            row = row._replace(concept=name)
            yield row._replace(note="median over pairs that differ in this attribute alone")
            for share in BOX:
                value = float(np.quantile(values, share))
                yield row._replace(metric="perception.induced_variation_quantile", value=value, template=f"{share:g}")
    yield from _rank_sum_rows(drawn, options)


def draw_pairs(images: pl.DataFrame, attribute: str, rng: np.random.Generator, count: int) -> tuple[Codes, Codes]:
    """Pairs of images of one set whose values of the attribute differ (age and smiling: by more than 1.1)."""
    codes, _ = matched_sets(images, attribute)
    rows = np.flatnonzero(codes >= 0)
    rows = rows[np.argsort(codes[rows], kind="stable")]
    _, starts, sizes = np.unique(codes[rows], return_index=True, return_counts=True)
    values = images[attribute].to_numpy()
    if not images[attribute].dtype.is_numeric():
        values = np.unique(values, return_inverse=True)[1]
    far, drawn = FAR.get(attribute, 0.0), (np.empty(0, int), np.empty(0, int))
    for _ in range(50):  # draws that do not differ enough are drawn again; sets without a pair never give one
        pick = rng.integers(len(starts), size=2 * count)
        first, second = (rows[starts[pick] + (rng.random(len(pick)) * sizes[pick]).astype(int)] for _ in range(2))
        good = np.abs(values[first].astype(float) - values[second].astype(float)) > far
        drawn = (np.append(drawn[0], first[good]), np.append(drawn[1], second[good]))
        if len(drawn[0]) >= count:
            break
    return drawn[0][:count], drawn[1][:count]


def _rank_sum_rows(drawn: dict[str, Array], options: MeasureOptions) -> Iterator[Row]:
    """How often a pair of one attribute differs by more than one of another, over all pairs and dimensions."""
    # The published p takes all 8,000 values for independent, which pairs of one seed are not: as released only.
    compared = list(combinations(drawn, 2))
    tests = [stats.mannwhitneyu(drawn[first].ravel(), drawn[second].ravel()) for first, second in compared]
    note = "chance that a pair of the first differs by more than one of the second; 0.5: the same"
    for (first, second), test in zip(compared, tests, strict=True):
        value, n = float(test.statistic) / (drawn[first].size * drawn[second].size), drawn[first].size
        row = Row("perception.induced_variation_test", value, n + drawn[second].size, "statistic", note=note)
        row = row._replace(group=first, against=second, landmark=EVEN_CHANCE)
        if options.compat:
            released = f"{note}; p: rank-sum over all values as if independent, uncorrected"
            row = row._replace(p_value=float(test.pvalue), variant=AS_RELEASED, note=released)
        yield row


Signs = npt.NDArray[np.int8]
SIDE = 36  # maps are drawn with at most so many squares across and down; signs are taken pixel by pixel
MOST_PAIRS = 20  # the most pairs of a map


def brightness_rows(judged: Judged, rng: np.random.Generator) -> Iterator[Row]:
    """Mean sign of the grey-value difference in every square, for every two groups, and within the other groups."""
    # The row's concept is the other group that both belong to (women, for two races); none for everyone. A square is
    # named by how far down and across it is. A pair is left out when one of its pictures is missing.
    images = judged.images
    for attribute in [name for name in GROUPED if name in design_columns(images)]:
        others = tuple(name for name in judged.grouped if name != attribute)
        split = group_by(images, others) if others else Groups("", [], np.zeros(images.height, dtype=int))
        sets = pl.Series(matched_sets(images, attribute)[0])
        table = images.select("uri", attribute).with_columns(set=sets, row=pl.int_range(pl.len()))
        for pair in pairs(sorted(images[attribute].drop_nulls().unique())):
            one, other = (table.filter(pl.col(attribute) == group).unique("set", keep="first") for group in pair)
            joined = one.join(other, on="set", suffix="_other").sort("set")
            inside = split.codes[joined["row"].to_numpy()]
            maps = {name: _signs(joined.filter(inside == code), rng) for code, name in enumerate(split.names)}
            whole = [sign for signs in maps.values() for sign in signs] if maps else _signs(joined, rng)
            every: list[tuple[str | None, list[Signs]]] = [(None, whole), *maps.items()]
            for name, signs in every:
                for row in _map_rows(signs) if signs else ():
                    yield row._replace(subset=attribute, group=pair[0], against=pair[1], concept=name)


def _signs(joined: pl.DataFrame, rng: np.random.Generator) -> list[Signs]:
    """In which pixels the first picture of a pair is brighter (1) or darker (−1); at most so many pairs."""
    chosen, signs = np.sort(rng.permutation(joined.height)[:MOST_PAIRS]).tolist(), list[Signs]()
    for uris in joined[chosen].select("uri", "uri_other").iter_rows():
        with suppress(BadImage):
            a, b = (grey_values(open_image(uri)) for uri in uris)
            signs += [sign_map(a[None], b[None]).astype(np.int8)] if a.shape == b.shape else []
    return signs


def _map_rows(signs: list[Signs]) -> Iterator[Row]:
    whole = np.mean(signs, axis=0)
    for (down, across), value in np.ndenumerate(coarse(whole, min(SIDE, *whole.shape))):
        yield Row("perception.brightness", float(value), len(signs), SIGN, template=f"{down},{across}")
    note = "mean over the picture; 1: the first is brighter everywhere"
    yield Row("perception.brightness", float(whole.mean()), len(signs), SIGN, note=note)
