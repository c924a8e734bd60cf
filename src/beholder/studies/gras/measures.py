"""GRAS's rows: scores, gaps, tests, valence, wordings and answers.

`groups`, `valence`, `wordings`, `intersections` and `metrics` compute the numbers; here each becomes a row with its
name, n, interval and note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.results import Row
from beholder.metrics.equivalence import verdict, welch_equivalence
from beholder.metrics.group_gaps import clustered_moments, rank_p_values
from beholder.metrics.group_tests import (
    friedman,
    mean_margins,
    omega_squared,
    omega_squared_interval,
    repeated_measures_anova,
)
from beholder.metrics.multiplicity import ALPHA, benjamini_hochberg, shuffles_for
from beholder.metrics.person_shuffles import has_repeats
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras.groups import (
    ATTRIBUTES,
    STATEMENTS,
    Answers,
    Array,
    Compared,
    Grouped,
    WidestGaps,
    all_grouped,
    people_of,
    read_answers,
)
from beholder.studies.gras.intersections import Departures, intersections
from beholder.studies.gras.prompts import VALENCES
from beholder.studies.gras.valence import above_mean, valence_shares
from beholder.studies.gras.wordings import SENSITIVE, WordingShares, wording_ranges
from beholder.studies.rows import PROBABILITY, join, refusal_rows
from beholder.studies.study import Matrices, MeasureOptions

SIZE = 0.01
"""The smallest gap that counts in the sized score: one point of P(Yes)."""
ANY_WORDING = "traits with p ≤ 0.05 in any wording"
CORRECTED = "Simes over wordings, Benjamini–Hochberg over traits"
SHOWN = (
    "traits whose widest gap over all wordings is shown: its interval, for all traits and pairs together, is above 0"
)
SIZED = f"shown, and a gap of at least {100 * SIZE:g} point of P(Yes)"
FEW_CORRECTED = 100
"""Shuffles behind the expected corrected score."""
NORMAL = 1.959963984540054
PERCENT, STATISTIC, SHARE = "per cent", "statistic", "share of variance"
VARIANT = "statement against denial"
"""What stands for P(Yes) where a model matches pictures with texts and cannot be asked."""
TOGETHER = "interval and p hold for all traits, pairs and attributes together"


class Part(NamedTuple):
    """One attribute: its comparison in every wording, and its widest gaps over all wordings."""

    grouped: Grouped
    compared: Compared
    averaged: Compared | None
    """Over all wordings; None where no image was asked a trait in all of them."""
    widest: WidestGaps | None
    adjusted: WidestGaps | None
    """The widest pairs at the same mix of image sources."""

    @property
    def shown(self) -> npt.NDArray[np.bool_]:
        """The traits whose gap is shown."""
        return self.widest.shown if self.widest is not None else np.zeros(len(self.grouped.answers.traits), dtype=bool)


class Shuffled(NamedTuple):
    """What is counted in one attribute after each shuffle of the labels."""

    published: Array
    corrected: Array
    valence: Array


def gras_rows(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    """Every row of the study; where the model could not be asked, each row says which variant it is."""
    variant = VARIANT if STATEMENTS in matrices else None
    for row in _rows(matrices, options):
        yield row._replace(variant=variant)


def _rows(matrices: Matrices, options: MeasureOptions) -> Iterator[Row]:
    answers, rng = read_answers(matrices, compat=options.compat), options.rng()
    grouped = all_grouped(answers)
    averages, tests = Averages(), len(grouped)
    parts = [part_of(group, averages, rng, tests, 0 if options.values_only else None) for group in grouped]
    shuffled = [shuffled_counts(group, rng, _shuffles(options, tests)) for group in grouped]
    if parts:
        yield from score_rows(parts, shuffled)
    for part, chance in zip(parts, shuffled, strict=True):
        own = part.grouped.answers
        if part.averaged is not None and part.widest is not None:
            yield from gap_rows(own, part)
            yield from adjusted_rows(own, part)
            yield from equivalence_rows(own, part, options.delta)
            yield from _trait_rows(own, part.averaged)
        yield from wording_share_rows(part, rng)
        yield from valence_rows(part, chance, rng, tests)
        yield from test_rows(own, part.compared, repeated=part.grouped.repeated)
    for group in grouped:
        yield from _valence_mean_rows(averages.answers(group).by_valence(), group.attribute, rng, tests)
    yield from intersection_rows(answers, rng)
    yield from _wording_rows(answers, rng)
    for matrix in matrices.values():
        yield from _answer_rows(matrix)
        asked = {attribute: (matrix, attribute) for attribute in ATTRIBUTES}
        yield from refusal_rows("gras", asked, options, within=(*ATTRIBUTES, "source"))


def _shuffles(options: MeasureOptions, tests: int) -> int:
    """As many shuffles as asked for; where nobody asked, enough for a corrected p-value."""
    default = MeasureOptions().permutations
    return options.permutations if options.permutations != default else max(default, shuffles_for(max(tests, 1)))


def part_of(
    grouped: Grouped, averages: Averages, rng: np.random.Generator, tests: int, shuffles: int | None = None
) -> Part:
    mean = averages.of(grouped)
    if not mean.comparable:
        return Part(grouped, grouped.compared(), None, None, None)
    widest, adjusted = mean.widest_gaps(rng, tests, shuffles), mean.gaps_by_source(rng, tests, shuffles)
    return Part(grouped, grouped.compared(), mean.compared(), widest, adjusted)


def shuffled_counts(grouped: Grouped, rng: np.random.Generator, shuffles: int) -> Shuffled:
    """What the rules count in an attribute after people's labels are shuffled, so that there is no effect."""
    published, corrected, valence = [], [], []
    for k, compared in enumerate(grouped.shuffled(rng, shuffles, by_person=FEW_CORRECTED)):
        published.append(compared.percent(compared.biased))
        valence.append(above_mean(compared.deviations, grouped.answers.valences))
        if k < FEW_CORRECTED:
            corrected.append(compared.percent(compared.adjusted <= ALPHA))
    return Shuffled(np.array(published), np.array(corrected), np.array(valence))


def _row(
    metric: str, value: float, n: int, margin: float | None = None, /, *, unit: str = PROBABILITY, **columns: Any
) -> Row:
    """A row of the study; with a margin, its interval lies that far to either side."""
    low, high = (None, None) if margin is None else (value - margin, value + margin)
    return Row(f"gras.{metric}", value, n, unit, **{"low": low, "high": high, **columns})


class Averages:
    """Answers with the wordings of each trait averaged, once for all attributes whose images were asked the same."""

    def __init__(self) -> None:
        self._made: dict[int, Answers] = {}

    def answers(self, group: Grouped) -> Answers:
        """The averages of what this attribute's images were asked."""
        key = id(group.answers)
        if key not in self._made:
            self._made[key] = group.answers.averaged()
        return self._made[key]

    def of(self, group: Grouped) -> Grouped:
        """The attribute's groups by these averages."""
        return Grouped(self.answers(group), group.attribute)


def score_rows(parts: list[Part], shuffled: list[Shuffled]) -> Iterator[Row]:
    """The bias score as published, its complement, the score after corrections, and its value without bias."""
    compared = [part.compared for part in parts]
    tested = [int(each.tested.sum()) for each in compared]
    counts = {
        "": [each.percent(each.biased) for each in compared],
        "_corrected": [each.percent(each.adjusted <= ALPHA) for each in compared],
        "_shown": [each.percent(part.shown) for part, each in zip(parts, compared, strict=True)],
        "_sized": [each.percent(part.shown & _large(part)) for part, each in zip(parts, compared, strict=True)],
    }
    notes = {"": ANY_WORDING, "_corrected": CORRECTED, "_shown": SHOWN, "_sized": SIZED}
    by_chance: dict[str, list[float] | None] = {
        "": [float(each.published.mean()) for each in shuffled],
        "_corrected": [float(each.corrected.mean()) for each in shuffled],
        "_shown": None,
        "_sized": None,
    }
    for k, part in enumerate(parts):
        alone = f"left out, with one image each: {', '.join(part.grouped.alone)}" if part.grouped.alone else None
        for end, values in counts.items():
            chance = by_chance[end]
            row = _row(f"biased_traits{end}", values[k], tested[k], unit=PERCENT, subset=part.grouped.attribute)
            note = join((notes[end], alone if not end else None))
            yield row._replace(expected=None if chance is None else chance[k], note=note)
    names = [each.attribute for each in compared]
    absent = [attribute for attribute in ATTRIBUTES if attribute not in names]
    missing = f"nothing to compare for {', '.join(absent)}" if absent else None
    uneven = None if len(set(tested)) == 1 else f"traits of each: {', '.join(map(str, tested))}"
    scores = np.mean([each.published for each in shuffled], axis=0)
    score = float(np.mean(counts[""]))
    p_value, at_most = rank_p_values(np.array([score]), np.sort(scores))
    for end, values in counts.items():
        chance = by_chance[end]
        row = _row(f"bias_score{end}", float(np.mean(values)), max(tested), unit=PERCENT)
        row = row._replace(expected=None if chance is None else float(np.mean(chance)))
        if not end:
            row = row._replace(p_value=float(p_value[0]), p_at_most=bool(at_most[0]))
        yield row._replace(note=join((notes[end] if end else f"mean over {', '.join(names)}", missing, uneven)))
    note = join(("100 minus the bias score, as the study's abstract prints it", missing, uneven))
    yield _row("fairness_score", 100 - score, max(tested), unit=PERCENT, note=note)
    low, high = (float(bound) for bound in np.quantile(scores, [0.025, 0.975]))
    note = f"the bias score after shuffling the labels, mean of {len(scores)} shuffles"
    yield _row("bias_score_expected", float(scores.mean()), max(tested), unit=PERCENT, low=low, high=high, note=note)
    yield from _attribute_rows(parts)


def _large(part: Part) -> npt.NDArray[np.bool_]:
    assert part.widest is not None or not part.shown.any()
    return part.shown if part.widest is None else np.asarray(part.widest.pairs.gap >= SIZE)


def _attribute_rows(parts: list[Part]) -> Iterator[Row]:
    """The widest gap of each attribute, with its interval; p: does any trait's gap differ from 0?"""
    for part in parts:
        if part.widest is None or np.isnan(part.widest.pairs.gap).all():
            continue
        pairs, top = part.widest.pairs, int(np.nanargmax(part.widest.pairs.gap))
        p_values = np.nan_to_num(pairs.p_value, nan=np.inf)
        least = int(p_values.argmin())
        row = _row("attribute", float(pairs.gap[top]), part.widest.n, subset=part.grouped.attribute)
        row = row._replace(low=float(pairs.low[top]), high=float(pairs.high[top]), p_value=float(p_values[least]))
        yield row._replace(
            p_at_most=bool(pairs.at_most[least]),
            note=f"the widest gap of any trait; p: the least of any trait's gap; {TOGETHER}",
        )


def gap_rows(answers: Answers, part: Part) -> Iterator[Row]:
    """For every trait, over all wordings: the widest gap and its two groups."""
    assert part.widest is not None
    widest, pairs = part.widest, part.widest.pairs
    for column, trait in enumerate(answers.traits):
        row = _row("largest_gap", float(pairs.gap[column]), widest.n, subset=part.grouped.attribute, concept=trait)
        yield _judged(row, widest, column)._replace(note=f"mean over the wordings; {TOGETHER}")


def _judged(row: Row, widest: WidestGaps, column: int) -> Row:
    """The row of a gap with its interval, its p-value and its two groups."""
    pairs = widest.pairs
    row = row._replace(
        low=float(pairs.low[column]),
        high=float(pairs.high[column]),
        p_value=float(pairs.p_value[column]),
        p_at_most=bool(pairs.at_most[column]),
    )
    if np.isnan(pairs.gap[column]):
        return row
    higher, lower = (widest.groups[end[column]] for end in (widest.higher, widest.lower))
    return row._replace(group=higher, against=lower)


def adjusted_rows(answers: Answers, part: Part) -> Iterator[Row]:
    """The same pairs where every group has the same mix of image sources."""
    if part.adjusted is None or part.widest is None:
        return
    pairs = part.adjusted.gaps.pair(part.widest.higher, part.widest.lower)
    adjusted = part.adjusted._replace(higher=part.widest.higher, lower=part.widest.lower, pairs=pairs)
    for column, trait in enumerate(answers.traits):
        row = _row("adjusted_gap", float(pairs.gap[column]), adjusted.n, subset=part.grouped.attribute, concept=trait)
        note = f"the pair of largest_gap, each group with the same mix of image sources; {TOGETHER}"
        yield _judged(row, adjusted, column)._replace(note=note)


def _trait_rows(answers: Answers, averaged: Compared) -> Iterator[Row]:
    """Every trait's mean over all images and wordings; `group` is the trait's valence."""
    n, margins = averaged.moments.size.sum(axis=0), averaged.overall_margins
    for column, (trait, valence) in enumerate(zip(answers.traits, answers.valences, strict=True)):
        columns = {"subset": averaged.attribute, "group": valence, "concept": trait}
        mean = float(averaged.moments.overall[column])
        yield _row("trait_mean", mean, int(n[column]), float(margins[column]), **columns)


def equivalence_rows(answers: Answers, part: Part, delta: float | None) -> Iterator[Row]:
    """For every trait: are all groups shown to lie within δ of each other? No rows without a δ."""
    if delta is None:
        return
    assert part.averaged is not None
    test = welch_equivalence(part.averaged.independent, delta)
    alike = benjamini_hochberg(test.p_value)
    for column, trait in enumerate(answers.traits):
        differs, same = 0.0 if part.shown[column] else 1.0, float(alike[column])
        row = _row("equivalence", float(test.bound[column]), part.averaged.n, subset=part.grouped.attribute)
        row = row._replace(concept=trait, p_value=same, equivalence=verdict(differs, same), delta=delta)
        yield row._replace(note="p: Benjamini–Hochberg over traits")


def wording_share_rows(part: Part, rng: np.random.Generator) -> Iterator[Row]:
    """How much of the group differences changes with the wording: of every trait, and of the shown ones together."""
    grouped = part.grouped
    if len(grouped.answers.templates) < 2:
        return
    shares, traits = WordingShares(grouped, rng), grouped.answers.traits
    each = np.eye(len(traits), dtype=bool)
    n, note = part.compared.n, "without sampling noise; interval by leaving out one fold of people after another"
    for trait, alone in zip(traits, each, strict=True):
        value, low, high = shares.share(alone)
        yield _row("wording_share", value, n, unit="share", subset=grouped.attribute, concept=trait, low=low, high=high)
    if part.shown.any():
        value, low, high = shares.share(part.shown)
        note = f"the {int(part.shown.sum())} traits whose gap is shown, together; {note}"
        row = _row("wording_share", value, n, unit="share", subset=grouped.attribute, low=low, high=high)
        yield row._replace(note=note)


def test_rows(answers: Answers, compared: Compared, *, repeated: bool) -> Iterator[Row]:
    """Group means and Welch's test in every wording of every trait."""
    moments, test, alone = compared.moments, compared.test, compared.independent
    omega, bounds, overall = omega_squared(moments), omega_squared_interval(moments), moments.overall
    margin, overall_margin = mean_margins(alone.size, alone.variance), compared.overall_margins
    kind = "Welch's t, first group minus second" if len(compared.groups) == 2 else "Welch's F"
    images = "; every image counts as independent, as published" if repeated else ""
    prompts = [(trait, template) for trait in answers.traits for template in answers.templates]
    for column, (trait, template) in enumerate(prompts):
        n = int(moments.size[:, column].sum())
        columns = {"subset": compared.attribute, "concept": trait, "template": template}
        for k, group in enumerate(compared.groups):
            mean, width, size = float(moments.mean[k, column]), float(margin[k, column]), moments.size[k, column]
            yield _row("group_mean", mean, int(size), width, group=group, **columns)
        yield _row("overall_mean", float(overall[column]), n, float(overall_margin[column]), **columns)
        row = _row("omega_squared", float(omega[column]), n, unit=SHARE, **columns)
        low, high = (None, None) if repeated else (float(bound[column]) for bound in bounds)
        yield row._replace(low=low, high=high, note="people have several images: no interval" if repeated else None)
        note = f"{kind}; df {test.df_between[column]:g}, {test.df_within[column]:.1f}{images}"
        row = _row("welch", float(test.statistic[column]), n, unit=STATISTIC, note=note, **columns)
        yield row._replace(p_value=float(test.p_value[column]))


def intersection_rows(answers: Answers, rng: np.random.Generator) -> Iterator[Row]:
    """Which intersections are favoured, and which beyond what their single attributes add up to."""
    cells = intersections(answers, rng)
    if cells is None:
        return
    pooled, n = cells.pooled, int(cells.size.sum())
    for k, name in enumerate(cells.names):
        value, margin = float(pooled.mean[k] - pooled.overall), NORMAL * float(pooled.error[k])
        raw = 100 * (cells.raw[k] - pooled.overall)
        row = _row("intersection", value, int(cells.size[k]), margin, group=name)
        row = row._replace(expected=float(cells.additive[k] - pooled.overall))
        row = _with_p_value(row, cells.from_mean, k)
        note = f"partly pooled; {raw:+.2f} points without pooling; expected: what its attributes add up to"
        yield row._replace(note=note)
    if cells.beyond is None:
        return
    beyond, note = cells.beyond, "interval and p hold for all intersections together"
    for k, name in enumerate(cells.names):
        low, high = float(beyond.low[k]), float(beyond.high[k])
        row = _row("interaction", float(beyond.value[k]), int(cells.size[k]), group=name, low=low, high=high)
        yield _with_p_value(row, beyond, k)._replace(note=note)
    row = _row("interaction_spread", beyond.spread, n, p_value=beyond.together, p_at_most=beyond.together_at_most)
    yield row._replace(note="p: shuffled residuals of the fit without interactions")


def _with_p_value(row: Row, departures: Departures, place: int) -> Row:
    p_value, at_most = float(departures.p_value[place]), bool(departures.at_most[place])
    return row._replace(p_value=p_value, p_at_most=at_most)


def valence_rows(part: Part, shuffled: Shuffled, rng: np.random.Generator, tests: int) -> Iterator[Row]:
    """Per cent of positive and of negative traits whose group mean exceeds the overall mean in every wording."""
    grouped, compared = part.grouped, part.compared
    value = above_mean(compared.deviations, grouped.answers.valences)
    shares = valence_shares(grouped, value, shuffled.valence, rng, tests)
    whole = ~np.isnan(compared.deviations).any(axis=(0, 2))
    note = (
        "above the overall mean in every wording; landmark and p: shuffled labels, all groups and attributes together"
    )
    for k, group in enumerate(compared.groups):
        for j, valence in enumerate(VALENCES):
            if np.isnan(value[k, j]):
                continue
            traits = int((whole & np.array([own == valence for own in grouped.answers.valences])).sum())
            columns = {"subset": compared.attribute, "group": group, "concept": valence}
            row = _row("valence_share", float(value[k, j]), traits, unit=PERCENT, **columns)
            row = row._replace(low=float(shares.low[k, j]), high=float(shares.high[k, j]))
            row = row._replace(landmark=float(shares.by_chance[k, j]), p_value=float(shares.p_value[k, j]))
            yield row._replace(p_at_most=bool(shares.at_most[k, j]), note=note)


def _valence_mean_rows(by_valence: Answers, attribute: str, rng: np.random.Generator, tests: int) -> Iterator[Row]:
    """Mean P(Yes) of each group over all traits of a valence and all wordings; its interval is over images."""
    grouped = Grouped(by_valence, attribute)
    if not grouped.comparable:
        return
    compared, by_valence = grouped.compared(), grouped.answers
    moments, alone = compared.moments, compared.independent
    margin = mean_margins(alone.size, alone.variance)
    p_values, at_most = grouped.widest_gaps(rng, tests).gaps.differ()
    note = "all traits of the valence, all wordings; p: do groups differ (shuffled labels, all attributes together)"
    for k, group in enumerate(compared.groups):
        for column, valence in enumerate(by_valence.traits):
            mean, width, size = float(moments.mean[k, column]), float(margin[k, column]), moments.size[k, column]
            row = _row("valence_mean", mean, int(size), width, subset=attribute, group=group, concept=valence)
            yield row._replace(p_value=float(p_values[column]), p_at_most=bool(at_most[column]), note=note)


def _wording_rows(answers: Answers, rng: np.random.Generator) -> Iterator[Row]:
    """Does the wording matter? The tests of every trait, and how far P(Yes) moves, over the FairFace part."""
    images = answers.images
    part = images["part"] == "fairface" if "part" in images.columns else pl.repeat(True, len(images), eager=True)
    answers = answers.asked(part.to_numpy())
    rows = part.to_numpy() & ~np.isnan(answers.p_yes).any(axis=(1, 2))
    scores, people = answers.p_yes[rows], people_of(images)[rows]
    if len(scores) < 2 or len(answers.templates) < 2:
        return
    yield from _wording_tests(answers.traits, scores, people)
    ranges = wording_ranges(scores, people, rng)
    for column, trait in enumerate(answers.traits):
        low, high = float(ranges.low[column]), float(ranges.high[column])
        row = _row("wording_range", float(ranges.value[column]), len(scores), concept=trait, low=low, high=high)
        yield row._replace(note="between two wordings; the interval holds for all traits together")
    value, low, high = (100 * float((part >= SENSITIVE).mean()) for part in ranges)
    known = not np.isnan(ranges.low).any()
    row = _row("wording_sensitive", value, len(answers.traits), unit=PERCENT)
    note = f"traits whose P(Yes) moves by at least {100 * SENSITIVE:g} point between two wordings"
    yield row._replace(low=low if known else None, high=high if known else None, note=note)


def _wording_tests(traits: list[str], scores: npt.NDArray[Any], people: npt.NDArray[np.int_]) -> Iterator[Row]:
    """The study's two tests; where people have several images, over people's means."""
    if has_repeats(people):
        names, who = np.unique(people, return_inverse=True)
        sums = np.zeros((len(names), *scores.shape[1:]))
        np.add.at(sums, who, scores)
        scores = sums / np.bincount(who)[:, None, None]
    if len(scores) < 2:
        return
    for metric, test in (("template_anova", repeated_measures_anova(scores)), ("template_friedman", friedman(scores))):
        for column, trait in enumerate(traits):
            within = test.df_within[column]
            note = f"df {test.df_between[column]:g}" + ("" if np.isnan(within) else f", {within:g}")
            row = _row(metric, float(test.statistic[column]), len(scores), unit=STATISTIC, concept=trait, note=note)
            yield row._replace(p_value=float(test.p_value[column]))


def _answer_rows(matrix: ScoreMatrix) -> Iterator[Row]:
    """Does the model answer? The probability of yes or no, and P(yes) among the two, by wording."""
    answers = matrix.answers()
    if answers is None:
        return
    yes, no = answers
    templates, people = matrix.prompts["template"], people_of(matrix.images)
    for template in templates.unique(maintain_order=True):
        columns = (templates == template).to_numpy()
        mass = yes[:, columns] + no[:, columns]
        yield _mean_over_images("answer_mass", mass, people, template=template, note="mean P(yes) + P(no)")
        yield _mean_over_images("p_yes_given_answer", yes[:, columns] / mass, people, template=template)


def _mean_over_images(metric: str, values: Array, people: npt.NDArray[np.int_], **columns: str) -> Row:
    """The mean of all cells, with Student's interval over the people shown."""
    each = values.mean(axis=1)
    if not len(each):
        return _row(metric, np.nan, 0, **columns)
    moments = clustered_moments(each[:, None], np.zeros(len(each), dtype=int), ["all"], people)
    margin = float(mean_margins(moments.size, moments.variance)[0, 0])
    return _row(metric, float(each.mean()), len(each), margin, **columns)
