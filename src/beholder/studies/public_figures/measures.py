"""What APA and P-FI measure on pictures of named people: association at three levels, the gender ratio b, wrong words.

b is the right occupation's probability for women over that for men. It belongs to the options that are offered
together, so it is also given with each wrong option left out, and for either word where it depends on the gender.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.comparison.family import FEWEST, Comparison, Judged, Part, comparison_at, judge
from beholder.comparison.groups import Groups, People, Strata, people_of, strata_of
from beholder.comparison.means import OPEN, compare_groups, levels_of, ratio_bounds
from beholder.comparison.shuffles import Exchanged, exchanged
from beholder.core.results import WITHIN, Row
from beholder.core.types import Array, Codes, Mask
from beholder.glasshouse.world import BRANCH_OCCUPATIONS
from beholder.metrics.association import chance, correct_rank, correct_share, first, half_precision_mean, softmax
from beholder.metrics.group_tests import ratio_equivalence, verdict
from beholder.metrics.intervals import Resampler, mean_estimate, ratio_estimate
from beholder.prompts.prompt_set import correct_cells
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.rows import PROBABILITY, join, mean_row
from beholder.studies.study import Matrices, MeasureOptions

LEVELS = ("category", "occupation", "specialty")
GROUPS = ("woman", "man")
ASSOCIATION, RATIO = "association", "ratio"  # the kind of the tasks that ask what people are, and the unit of b
Pools = Mapping[str, tuple[str, ...]]  # the branches of each pool
POOL = "pool"  # the attribute that names the pool of a branch, where the data declares it

# The right words

OCCUPATIONS = {"politicians": "politician", "athletes": "athlete", **BRANCH_OCCUPATIONS}  # the right answer by pool
PLAYERS = {"woman": "actress", "man": "actor"}  # that of actors depends on the gender in the source's table


def correct_occupation(pool: str, group: str) -> str:
    """The right answer at the occupation level; for actors it depends on the gender word."""
    return PLAYERS.get(group, "actor") if pool == "actors" else OCCUPATIONS.get(pool, pool)


def either_word(occupation: str) -> str:
    """An occupation by all its words: who is called by the other word is not called something else."""
    return "actor or actress" if occupation in PLAYERS.values() else occupation


MIXED = "their own occupation"  # in place of a word where the people of a pool have several occupations


class Words(NamedTuple):
    """The words of a run: which is right in a pool for a group, and all words of an occupation."""

    right: Mapping[tuple[str, str], str]
    either: Mapping[str, str]

    def correct(self, pool: str, group: str) -> str:
        """The right word, as the data declares it or as APA has it."""
        return self.right.get((pool, group)) or correct_occupation(pool, group)

    def whole(self, word: str) -> str:
        """An occupation by all its words."""
        return self.either.get(word) or either_word(word)

    def of(self, pool: str) -> str:
        """The right occupation of a pool by all its words."""
        return self.whole(self.correct(pool, GROUPS[0]))


def words_of(part: pl.DataFrame) -> Words:
    """Read off result rows: `expected` is the share of a group's pictures for which an occupation is right."""
    metric = pl.col("metric").str
    both = part.filter(metric.ends_with(".either_word_probability"))["concept"].unique().to_list()
    either = {word: whole for whole in both for word in whole.split(" or ")}
    rows = part.filter(metric.ends_with(".occupation_probability"), pl.col("expected") > 0).sort("expected")
    right: dict[tuple[str, str], str] = {}
    for pool, group, word in rows.select("subset", "group", "concept").iter_rows():
        before = right.get((pool, group), word)  # the most frequent word comes last
        right[pool, group] = word if either.get(before, before) == either.get(word, word) else MIXED
    return Words(right, either)


class Level(NamedTuple):
    """One level of one or several branches: images, shares of belief, and which cells are right."""

    images: pl.DataFrame
    concepts: list[str]
    shares: Array
    correct: Mask
    left_out: str | None
    occupations: list[str]  # each concept by all words for the same thing: `actor or actress`

    def share_of(self, occupation: str) -> Array:
        """The share of belief on all words of an occupation together."""
        return np.asarray(self.shares[:, [each == occupation for each in self.occupations]].sum(axis=1))

    @property
    def right(self) -> list[str]:
        """The concepts that are right for someone."""
        return [concept for column, concept in enumerate(self.concepts) if self.correct[:, column].any()]


def scored_branches(matrices: Matrices) -> dict[str, ScoreMatrix]:
    """The scores of what people are, by branch."""
    return {matrix.part: matrix for matrix in matrices.values() if matrix.kind == ASSOCIATION}


def read_level(matrices: Sequence[ScoreMatrix], name: str) -> Level:
    """One level of several branches: the images for which all its prompts were scored."""
    parts = [matrix.level(name).complete_rows() for matrix in matrices if matrix.level(name).prompts.height]
    parts = [part for part in parts if part.images.height]
    if not parts:
        return Level(pl.DataFrame(), [], np.empty((0, 0)), np.empty((0, 0), bool), None, [])
    total = sum(matrix.images.height for matrix in matrices)
    images = pl.concat([part.images.with_columns(branch=pl.lit(part.part)) for part in parts], how="diagonal")
    concepts, declared = (parts[0].prompts[column].to_list() for column in ("concept", "dimension"))
    shares = np.concatenate([softmax(part.logits) for part in parts])
    correct = np.concatenate([correct_cells(part.prompts, part.images) for part in parts])
    lacking = f"{total - images.height} of {total} images lack a score" if images.height < total else None
    words = [either or either_word(concept) for concept, either in zip(concepts, declared, strict=True)]
    return Level(images, concepts, shares, correct, lacking, words)


class Pool(NamedTuple):
    """The occupations of a pool of branches, and the women and men who are compared within the branches."""

    name: str
    level: Level
    people: People
    groups: Groups
    strata: Strata

    def branches(self) -> Iterator[tuple[str, Groups]]:
        """The women and men of every branch that has both; none where there is one branch only."""
        branch = self.level.images["branch"].to_numpy().astype(str)
        names = list(dict.fromkeys(branch.tolist()))
        for name in names if len(names) > 1 else ():
            groups = self.groups._replace(codes=np.where(branch == name, self.groups.codes, -1))
            if has_both(groups):
                yield name, groups

    def few(self, groups: Groups) -> str | None:
        """A note where too few people are compared."""
        return f"fewer than {FEWEST} people in a group" if min(groups.sizes(self.people)) < FEWEST else None


def women_and_men(images: pl.DataFrame) -> Groups:
    """Women first: a ratio is women over men, a difference women less men."""
    place = {group: code for code, group in enumerate(GROUPS)}
    return Groups("gender", list(GROUPS), np.array([place.get(each, -1) for each in images["gender"]], dtype=np.intp))


def has_both(groups: Groups) -> bool:
    """Whether there are women and men."""
    return bool(groups.mask(0).any() and groups.mask(1).any())


def scored_pools(pools: Pools, matrices: Matrices, options: MeasureOptions) -> Iterator[Pool]:
    """Every pool whose occupations were scored."""
    scored = scored_branches(matrices)
    for name, branches in (declared_pools([each.images for each in scored.values()]) or pools).items():
        level = read_level([scored[branch] for branch in branches if branch in scored], "occupation")
        if level.concepts:
            people, groups = people_of(level.images, options.person), women_and_men(level.images)
            strata = strata_of(level.images, groups, ("branch", *options.within), people)
            yield Pool(name, level, people, groups, strata)


def declared_pools(tables: Sequence[pl.DataFrame]) -> dict[str, tuple[str, ...]]:
    """The pools that the data declares; empty where it declares none."""
    pairs = [row for table in tables if POOL in table.columns for row in table.select(POOL, "branch").unique().rows()]
    return {pool: tuple(branch for other, branch in pairs if other == pool) for pool, _ in pairs}


class Tested(NamedTuple):
    """A mean belief in right answers, and what exchanged answers give; None where there is no contrast: no claim."""

    row: Row
    made: Exchanged | None = None
    within: Sequence[str] = ()  # the labels of the people among whom answers are exchanged


def tested_rows(family: Sequence[Tested]) -> Iterator[Row]:
    """The published rows with landmark and verdict; after each, the one with value, bounds and p that decided."""
    judged = iter(judge([each.made.part for each in family if each.made is not None]))
    for row, made, within in family:
        if made is None:
            yield row
            continue
        excess = comparison_at(next(judged), 0)
        row = row._replace(landmark=made.expected, verdict=excess.verdict)
        yield row
        whole = excess._replace(value=made.value, low=made.expected + excess.low, high=made.expected + excess.high)
        yield whole.on(row, least=0.0, most=1.0)._replace(variant=f"{WITHIN}{', '.join(within)}")


def association_rows(prefix: str, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Mean probability of the correct prompt and top-1, by branch and level: all that has a contrast is one family."""
    family, rng = [], options.rng()
    for matrix in scored_branches(matrices).values():
        for name in LEVELS:
            level = read_level([matrix], name)
            if not level.concepts:
                continue
            people = people_of(level.images, options.person)
            shares, ranks = correct_share(level.shares, level.correct), correct_rank(level.shares, level.correct)
            resampler = Resampler(people.codes, options.rng(), options.draws)
            count = int(np.isnan(shares).sum())
            none = f"{count} images have no correct prompt at the {name} level and are left out" if count else None
            for metric, values in (("association", shares), ("association_top1", first(ranks))):
                row = mean_row(f"{prefix}.{metric}", values, resampler, half=options.compat)
                row = row._replace(subset=matrix.part, concept=name, chance=chance(level.correct).share)
                row = row._replace(note=join((row.note, none, level.left_out)))
                made = _exchanged_answers(level, rng, options) if metric == "association" else None
                family.append(Tested(row, made, ("gender",)))
    yield from tested_rows(family)


def _exchanged_answers(level: Level, rng: np.random.Generator, options: MeasureOptions) -> Exchanged | None:
    """Right answers exchanged among people of one gender: gender alone tells an actress's award from an actor's."""
    answered = np.flatnonzero(level.correct.any(axis=1))
    if not len(answered):
        return None
    answers, answer = np.unique(level.correct[answered], axis=0, return_inverse=True)
    images = level.images[answered]
    known, first_of, person = np.unique(people_of(images, options.person).codes, return_index=True, return_inverse=True)
    gender = images["gender"].fill_null("").to_numpy().astype(str) if "gender" in images.columns else person * 0
    beliefs = np.zeros((len(known), len(answers)))
    np.add.at(beliefs, person, level.shares[answered] @ answers.T)
    beliefs /= np.bincount(person)[:, None]
    blocks = np.unique(gender, return_inverse=True)[1][first_of]
    return exchanged(beliefs, answer.ravel()[first_of], blocks, rng, options.shuffles)


def occupation_gap_rows(prefix: str, pools: Pools, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Women minus men for every wrong occupation of every pool, and of every branch where a pool has several."""
    rng, places, parts = options.rng(), [], []
    for pool in scored_pools(pools, matrices, options):
        concepts, shares = wrong_occupations(pool.level)
        if has_both(pool.groups) and concepts:
            whole = (None, pool.groups, pool.strata)
            for branch, groups, strata in (whole, *((name, groups, None) for name, groups in pool.branches())):
                parts.append(_women_less_men(pool, shares, groups, strata, rng, options))
                places.append((pool, concepts, shares, groups, strata, branch))
    for (pool, concepts, shares, groups, strata, branch), judged in zip(places, judge(parts), strict=True):
        plain = shares[groups.mask(0)].mean(axis=0) - shares[groups.mask(1)].mean(axis=0)
        note = join((pool.few(groups), strata.note if strata else None))
        for column, concept in enumerate(concepts):
            n = sum(groups.sizes(pool.people))
            row = Row(f"{prefix}.occupation_gap", None, n, PROBABILITY, concept=concept, note=note)
            row = row._replace(subset=branch or pool.name, variant=f"{WITHIN}branch" if branch else None)
            compared = comparison_at(judged, (0, column), *GROUPS)
            value = float(plain[column]) if np.isnan(compared.value) else compared.value
            yield compared.on(row, least=-1.0, most=1.0)._replace(value=value)


def _women_less_men(
    pool: Pool, shares: Array, groups: Groups, strata: Strata | None, rng: np.random.Generator, options: MeasureOptions
) -> Part:
    return compare_groups(shares, groups, pool.people, rng, strata=strata, shuffles=options.shuffles, bounds=(0.0, 1.0))


def wrong_occupations(level: Level) -> tuple[list[str], Array]:
    """The occupations that are wrong for everyone, and each image's share of belief on them."""
    right = {level.occupations[level.concepts.index(concept)] for concept in level.right}
    wrong = [each for each in dict.fromkeys(level.occupations) if each not in right]
    shares = [level.share_of(each) for each in wrong]
    return wrong, np.stack(shares, axis=1) if shares else np.empty((level.images.height, 0))


def ratio_rows(prefix: str, pools: Pools, matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Mean probability of every occupation over women and over men, and the ratio for the correct one."""
    # Ratios of pools, of branches and of either word are one family; nothing is claimed of the others.
    rng, claims, described = options.rng(), list[Ratio](), list[Ratio]()
    for pool in scored_pools(pools, matrices, options):
        yield from _occupation_rows(prefix, pool, options)
        if has_both(pool.groups):
            claimed, others = _pool_ratios(prefix, pool, rng, options)
            claims += claimed
            described += others
    plain, decided = {}, {(each.row.metric, each.row.subset) for each in claims}
    for ratio, judged in zip(described, judge([each.part for each in described]), strict=True):
        compared = ratio.compared(judged)
        row = ratio.row._replace(low=compared.low, high=compared.high)
        plain[row.metric, row.subset] = row
        if (row.metric, row.subset) not in decided:
            yield row
    for ratio, judged in zip(claims, judge([each.part for each in claims]), strict=True):
        compared = ratio.compared(judged)
        yield from compared.rows(plain.get((ratio.row.metric, ratio.row.subset), ratio.row), ratio.strata)
        decides = "bias_ratio" if (f"{prefix}.bias_ratio", ratio.row.subset) in decided else "either_word_ratio"
        if options.delta is not None and ratio.row.metric == f"{prefix}.{decides}" and np.isfinite(compared.low):
            yield _equivalence(f"{prefix}.equivalence", ratio, compared.p_value, options)


def _occupation_rows(prefix: str, pool: Pool, options: MeasureOptions) -> Iterator[Row]:
    level, rng = pool.level, options.rng()  # one for both: with equal seeds draws of women and men would be linked
    for place, group in enumerate(GROUPS):
        mask = pool.groups.mask(place)
        if not mask.any():
            continue
        resampler = Resampler(pool.people.codes[mask], rng, options.draws)
        for column, concept in enumerate(level.concepts):
            metric, shares = f"{prefix}.occupation_probability", level.shares[mask, column]
            row = mean_row(metric, shares, resampler, half=options.compat)
            row = row._replace(expected=float(level.correct[mask, column].mean()))
            yield row._replace(subset=pool.name, group=group, concept=concept, note=join((row.note, level.left_out)))
        chosen = first_choices(level.shares[mask])
        for column, concept in enumerate(level.concepts):
            row = mean_row(f"{prefix}.first_choice", (chosen == column).astype(np.float64), resampler)
            yield row._replace(subset=pool.name, group=group, concept=concept)
        for either in (each for each in dict.fromkeys(level.occupations) if level.occupations.count(each) > 1):
            row = mean_row(f"{prefix}.either_word_probability", level.share_of(either)[mask], resampler)
            yield row._replace(subset=pool.name, group=group, concept=either)


def first_choices(shares: Array) -> Codes:
    """The column that each image's model puts first; −1 where several share the first place.

    >>> first_choices(np.array([[0.2, 0.8], [0.5, 0.5]])).tolist()
    [1, -1]
    """
    first_place = shares == shares.max(axis=1, keepdims=True, initial=0.0)
    return np.where(first_place.sum(axis=1) == 1, first_place.argmax(axis=1), -1)


class Ratio(NamedTuple):
    """Women over men in one pool or branch: the published row, and what judges it."""

    row: Row
    pool: Pool
    groups: Groups
    strata: Strata | None
    shares: Array
    part: Part

    def compared(self, judged: Judged) -> Comparison:
        """The ratio with bounds from the test of "women less b times men is 0"."""
        comparison = comparison_at(judged, (0, 0))
        if not np.isfinite(judged.margin[0, 0]):
            return comparison._replace(value=np.nan, low=np.nan, high=np.nan)
        levels = levels_of(self.shares, self.groups, self.pool.people, self.strata, (0.0, 1.0))
        low, high = ratio_bounds(levels, judged, self.part)
        value = over(float(levels.first[0]), float(levels.second[0]))
        return comparison._replace(value=value, low=float(low[0]), high=float(high[0]))


def over(women: float, men: float) -> float:
    """The ratio; without end where men have nothing, and unknown where nobody has anything."""
    return float(women / men) if men else OPEN if women else np.nan


def _pool_ratios(
    prefix: str, pool: Pool, rng: np.random.Generator, options: MeasureOptions
) -> tuple[list[Ratio], list[Ratio]]:
    """Claimed: b within branches, for either word, of every branch. Described: b without branches or an option."""

    def ratio(name: str, shares: Array, groups: Groups = pool.groups, strata: Strata | None = None) -> Ratio:
        half = options.compat and name in ("bias_ratio", "either_word_ratio")
        sides = [side[~np.isnan(side)] for side in (shares[groups.mask(group)] for group in (0, 1))]
        women, men = (half_precision_mean(side) if half else side.mean() if side.size else np.nan for side in sides)
        count = int((groups.codes >= 0).sum())
        row = Row(f"{prefix}.{name}", over(women, men), count, RATIO, subset=pool.name, note=pool.few(groups))
        part = _women_less_men(pool, shares, groups, strata, rng, options)
        return Ratio(row, pool, groups, strata, shares, part)

    level, strata = pool.level, pool.strata
    right, occupations = correct_share(level.shares, level.correct), np.array(level.occupations)
    either = np.asarray(level.correct @ (occupations[:, None] == occupations))  # right if the other word is right too
    claims = [ratio("bias_ratio", right, strata=strata)]
    described, of_branch = [ratio("bias_ratio", right)] if strata.variant else [], right
    if (either & ~level.correct).any():
        either_share = correct_share(level.shares, either)
        claims.append(ratio("either_word_ratio", either_share, strata=strata))
        if POOL in level.images.columns:  # b compares words as well as people; only APA's own is claimed as published
            described, claims, of_branch = described or claims[:1], claims[1:], either_share
    for branch, groups in pool.branches():
        each = ratio("branch_ratio", of_branch, groups)
        claims.append(each._replace(row=each.row._replace(subset=branch, concept=pool.name)))
    for column, option in enumerate(level.concepts):
        if option not in level.right and len(level.concepts) > 2:
            with np.errstate(divide="ignore", invalid="ignore"):  # all belief may be on the option, then nobody counts
                each = ratio("ratio_without", np.asarray(right / (1 - level.shares[:, column])))
            described.append(each._replace(row=each.row._replace(concept=option)))
    return claims, described


def _equivalence(metric: str, ratio: Ratio, p_difference: float, options: MeasureOptions) -> Row:
    """Whether b is shown to lie within a factor of 1 + δ: from draws of people, women and men apart."""
    delta, rng, people = options.delta or 0.0, options.rng(), ratio.pool.people
    names = ratio.pool.level.images[people.column] if people.column else np.zeros(len(people.codes))
    who = np.array([f"{name}\0{code}" for name, code in zip(names, people.codes, strict=True)])
    masks = [ratio.groups.mask(group) for group in (0, 1)]
    sides = [mean_estimate(ratio.shares[mask], Resampler(who[mask], rng, options.draws)) for mask in masks]
    test = ratio_equivalence(ratio_estimate(*sides), delta)
    p_value = float(test.p_value)
    answer = verdict(p_difference, p_value)
    note = f"{answer}; δ = {delta:g}: b between {1 / (1 + delta):.3g} and {1 + delta:.3g}"
    row = Row(metric, float(test.bound), ratio.row.n, RATIO, subset=ratio.row.subset)
    return row._replace(p_value=p_value, equivalence=answer, delta=delta, note=note)
