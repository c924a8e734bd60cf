"""Own prompts on any data set: how a model divides its belief among the prompts of a user, group by group.

Gaps, slopes and intersections of all prompts and attributes are one family. Groups are compared within the other
attributes of `--by` and the labels of `--within`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from beholder.comparison.family import DIFFERENCE, Comparison, Judged, Part, comparison_at, judge
from beholder.comparison.groups import COLUMNS as PERSON_COLUMNS
from beholder.comparison.groups import REST, Groups, Strata, additive_strata, crossings, groups_of, people_of, strata_of
from beholder.comparison.impact import MOST_SELECTED, impacts
from beholder.comparison.means import compare_groups, compare_slopes, each_stratum
from beholder.comparison.power import Scores
from beholder.core.errors import UnknownName
from beholder.core.options import names_of
from beholder.core.read import column_in
from beholder.core.results import Row
from beholder.core.types import Array, Codes, Fields, Mask
from beholder.datasets.dataset import KEYS, Dataset
from beholder.datasets.selection import NUMBERS
from beholder.datasets.survey import columns_of
from beholder.metrics.association import correct_rank, correct_share, first, softmax
from beholder.metrics.group_tests import verdict
from beholder.metrics.intervals import Resampler
from beholder.prompts.prompt_set import PromptSet, correct_cells, own_prompts, prompt_set, read_prompts
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.studies.rows import PROBABILITY, Planned, PlanOptions, detectable_rows, join, mean_row
from beholder.studies.study import Asks, MeasureOptions, Measures, Option, Plans, Study, read_metrics, read_words
from beholder.studies.worlds import BRANCH_ONLY, BRIGHTNESS_ONLY, GENDER_ONLY, SOURCE_ONLY, Trial, World

MEASURED = ("custom.probability", "custom.p_yes", "custom.presence", "custom.association", "custom.association_top1")
# How the metrics of differences begin, by what differs
DIFFERENCES = {base: "custom." if base == "custom.probability" else f"{base}_" for base in MEASURED}
BALANCE = "custom.balance"
MOST_UNBALANCED = 3  # labels of which the balance is reported for each attribute
TOGETHER = "interval and p hold for all prompts, groups and attributes together"


class Column(NamedTuple):
    """What is compared: a metric of one prompt (or level), with a value for each image, NaN where there is none."""

    metric: str
    concept: str
    level: str
    values: Array

    def row(self, ending: str, value: float, n: int, subset: str) -> Row:
        """A row about how it differs: `gap`, or what stands in its place."""
        metric = DIFFERENCES[self.metric] + ending
        return Row(metric, value, n, PROBABILITY, subset=subset, concept=self.concept, template=self.level)


# A part of the family, and the rows that it becomes when all are judged
Compared = tuple[Part, Callable[[Judged], Iterator[Row]]]


class Family:
    """Everything that is compared, and by what."""

    def __init__(self, columns: Sequence[Column], images: pl.DataFrame, by: Sequence[str], options: MeasureOptions):
        self.columns, self.images, self.options = columns, images, options
        self.values = np.stack([column.values for column in columns], axis=1)
        self.people = people_of(images, options.person)
        self.within = [column_in(images, name) for name in options.within]
        for name in self.within:
            if name not in images.columns:
                raise UnknownName("column for --within", name, [each for each in images.columns if each not in KEYS])
        self._rng = options.rng()
        every = groups_of(images, list(dict.fromkeys([*(column_in(images, name) for name in by), *self.within])))
        self._labels = pl.DataFrame({each.attribute: each.labels() for each in every})
        self.by = [each.attribute for each in every if each.attribute not in self.within]
        self._scored = np.asarray(~np.isnan(self.values).all(axis=1))
        whole = [each for each in every if each.attribute in self.by]
        self.groups = [large for each in whole if len((large := each.large(self.people, self._scored)).names) > 1]
        self.numbers = [each for each in whole if each.numbers is not None]

    def rows(self) -> Iterator[Row]:
        """Gaps, slopes and intersections, judged together; and labels that are spread unequally over the groups."""
        compared = [*self._gaps(), *self._slopes(), *self._intersections()]
        for (_, rows), judged in zip(compared, judge([part for part, _ in compared]), strict=True):
            yield from rows(judged)
        yield from self._impacts()
        yield from self._balance()

    def _gaps(self) -> Iterator[Compared]:
        """Every two groups, and with more than two each against all others; then every two within each stratum."""
        scale = {"shuffles": self.options.shuffles, "bounds": (0.0, 1.0)}
        for groups in self.groups:
            pairs, rest = groups.pair_weights(), groups.rest_weights(self.people)
            weights = np.concatenate([pairs, rest]) if len(groups.names) > 2 else pairs
            strata = strata_of(self._labels, groups, [*self.within, *self.by], self.people)
            own = {"strata": strata, "contrasts": weights, **scale}
            part = compare_groups(self.values, groups, self.people, self._rng, **own)  # type: ignore[arg-type]
            yield part, partial(self._gap_rows, groups, strata)
            inner = strata_of(self._labels, groups, self.within, self.people)
            parts = each_stratum(self.values, groups, self.people, inner, self._rng, **scale)  # type: ignore[arg-type]
            for name, one in parts.items():
                inside = inner.crossed.mask(name) & (groups.codes >= 0) if inner.crossed else groups.codes >= 0
                yield one, partial(self._inner, groups, f"{inner.variant}: {name}", inside)

    def _comparisons(self, judged: Judged, groups: Groups, column: int) -> list[Comparison]:
        """The two groups farthest apart (of those that differ, if any do), and each group against everyone else."""
        pairs = [(groups.names[i], groups.names[j]) for i, j in groups.pairs()]
        ends = [*pairs, *((name, REST) for name in groups.names)][: len(judged.value)]
        all_of = [comparison_at(judged, (place, column), *ends[place]) for place in range(len(ends))]
        widest = max(all_of[: len(pairs)], key=lambda one: (one.verdict == DIFFERENCE, abs(np.nan_to_num(one.value))))
        return [widest.upward(), *all_of[len(pairs) :]]

    def _gap_rows(self, groups: Groups, strata: Strata, judged: Judged) -> Iterator[Row]:
        several = f"the widest of {len(groups.pairs())} pairs" if len(groups.names) > 2 else None
        for k, column in enumerate(self.columns):
            there = ~np.isnan(column.values)
            inside = {name: column.values[there & groups.mask(name)] for name in groups.names}
            if min(map(len, inside.values())) == 0:
                continue
            n = sum(map(len, inside.values()))
            for number, one in enumerate(self._comparisons(judged, groups, k)):
                others = [name for name in inside if name == one.against or (one.against == REST and name != one.group)]
                rest = np.concatenate([inside[name] for name in others]).mean()
                row = column.row("gap", float(inside[str(one.group)].mean() - rest), n, groups.attribute)
                note = join((several if number == 0 else None, TOGETHER))
                yield from one.rows(row._replace(note=note), strata, least=-1.0, most=1.0)
            if self.options.delta is not None:
                yield self._alike(column.row("equivalence", 0.0, n, groups.attribute), judged, groups, k)

    def _inner(self, groups: Groups, variant: str, inside: Mask, judged: Judged) -> Iterator[Row]:
        """What differs within one stratum."""
        for k, column in enumerate(self.columns):
            one = self._comparisons(judged, groups, k)[0]
            n = int((inside & ~np.isnan(column.values)).sum())
            row = column.row("gap", one.value, n, groups.attribute)
            if np.isfinite(one.value):
                yield one.on(row._replace(variant=variant, note=TOGETHER), least=-1.0, most=1.0)

    def _alike(self, row: Row, judged: Judged, groups: Groups, column: int) -> Row:
        """The smallest δ within which the bounds of all pairs lie."""
        pairs = slice(len(groups.pairs()))
        bound = np.abs(np.stack([judged.low[pairs, column], judged.high[pairs, column]])).max()
        delta, differs = self.options.delta or 0.0, judged.found[pairs, column].any()
        said = verdict(0.0 if differs else 1.0, 0.0 if bound <= delta else 1.0)
        return row._replace(value=min(1.0, float(bound)), delta=delta, equivalence=said, note=TOGETHER)

    def _slopes(self) -> Iterator[Compared]:
        """How much each prompt rises with one more of an attribute."""
        for groups in self.numbers:
            others = [name for name in (*self.within, *self.by) if name != groups.attribute]
            strata, numbers = additive_strata(self._labels, groups, others), np.asarray(groups.numbers)
            shuffles = self.options.shuffles
            part = compare_slopes(self.values, numbers, self.people, self._rng, strata=strata, shuffles=shuffles)
            yield part, partial(self._slope_rows, groups, strata)

    def _slope_rows(self, groups: Groups, strata: Strata, judged: Judged) -> Iterator[Row]:
        for k, column in enumerate(self.columns):
            one, known = comparison_at(judged, (0, k)), ~np.isnan(column.values + np.asarray(groups.numbers))
            if not np.isfinite(one.value):
                continue
            numbers = np.asarray(groups.numbers)[known]
            away = numbers - numbers.mean()
            row = column.row("slope", float(away @ column.values[known] / (away @ away)), len(away), groups.attribute)
            low, high = float(numbers.min()), float(numbers.max())
            note = f"change with one more of {groups.attribute}, from {low:g} to {high:g}; {TOGETHER}"
            yield from one.rows(row._replace(note=note), strata, least=-1 / (high - low), most=1 / (high - low))

    def _intersections(self) -> Iterator[Compared]:
        """How far each intersection departs from what its two attributes add up to."""
        for one, other, cells in crossings(self.groups):
            cells = cells.large(self.people, self._scored)
            if len(cells.names) < 4:
                continue
            strata = additive_strata(self._labels, cells, [one.attribute, other.attribute, *self.within])
            own = {"strata": strata, "departures": True, "shuffles": self.options.shuffles}
            part = compare_groups(self.values, cells, self.people, self._rng, **own)  # type: ignore[arg-type]
            yield part, partial(self._intersection_rows, cells)

    def _intersection_rows(self, cells: Groups, judged: Judged) -> Iterator[Row]:
        for k, column in enumerate(self.columns):
            for place, name in enumerate(cells.names):
                n = int((cells.mask(place) & ~np.isnan(column.values)).sum())
                one = comparison_at(judged, (place, k), name)
                if np.isfinite(one.value):
                    row = column.row("interaction", one.value, n, cells.attribute)._replace(note=TOGETHER)
                    yield one.on(row, least=-1.0, most=1.0)

    def _impacts(self) -> Iterator[Row]:
        """Selection rates and impact ratios of every prompt, by category and by intersection: a family of their own."""
        crossed = [cells.large(self.people, self._scored) for _, _, cells in crossings(self.groups)]
        every = [*self.groups, *(cells for cells in crossed if len(cells.names) > 1)]
        columns = [column for column in self.columns if column.metric not in AMONG[1:]]
        values = np.stack([column.values for column in columns], axis=1) if columns else np.empty((len(self.values), 0))
        rng, shuffles = self.options.rng(), self.options.shuffles
        for found in impacts(values, every, self.people, rng, shuffles=shuffles) if columns else ():
            row = columns[found.column].row("selection_rate", found.rate, found.people, found.groups.attribute)
            row = row._replace(group=found.group)
            yield row
            if found.ratio is not None:
                note = f"{MOST_SELECTED} are {found.most}; interval and p hold for all impact ratios together"
                ratio = row._replace(metric=row.metric.replace("selection_rate", "impact_ratio"), unit="ratio")
                ratio = ratio._replace(value=None, against=MOST_SELECTED, note=note)
                yield found.ratio.on(ratio, least=0.0)

    def _balance(self) -> Iterator[Row]:
        """Other labels that groups differ in, and that they were not compared within."""
        used = {*KEYS, *PERSON_COLUMNS, *self._labels.columns, self.people.column}
        others = [name for name in self.images.columns if name not in used and not name.endswith(NUMBERS)]
        for groups in self.groups:
            sizes = dict(zip(groups.names, groups.sizes(self.people), strict=True))
            for found in groups.balance(self.images, self.people, others)[:MOST_UNBALANCED]:
                for value, shares in found.shares.items():
                    for group, share in shares.items():
                        row = Row(BALANCE, share, sizes[group], PROBABILITY, subset=groups.attribute, group=group)
                        yield row._replace(concept=found.column, template=value)


PROMPTS = 10
SCORES = Scores(0.25, mean=0.5)  # of a prompt's share of belief, between people: assumed
SOURCE = f"spread of a prompt's share of belief assumed to be {SCORES.deviation:g}, and its mean {SCORES.mean:g}"


def plan(dataset: Dataset, options: PlanOptions, *, prompts: int = PROMPTS, by: Sequence[str] = ()) -> Iterator[Row]:
    """For every column with groups, or those of `by`, the smallest gap of one prompt among so many that can be found.

    Labels that are spread unequally over the groups are what an audit should compare within, so it is planned so.
    """
    people = people_of(dataset.table, options.person)
    kinds = {each.name: each.role for each in columns_of(dataset) if each.name != people.column}
    wanted = [dataset.attribute(name).name for name in by] or kinds
    columns = [name for name, role in kinds.items() if role in ("groups", "numbers") and name in wanted]
    every = groups_of(dataset.table, columns)
    labels = pl.DataFrame({each.attribute: each.labels() for each in every})
    planned = []
    for groups in every:
        uneven = [each.column for each in groups.large(people).balance(labels, people, labels.columns)]
        strata = strata_of(labels, groups.large(people), uneven, people)
        planned.append(Planned("custom.gap", groups, SCORES, SOURCE, strata=strata, columns=prompts, rests=True))
    yield from detectable_rows(planned, people, options)


METRICS = read_metrics(Path(__file__).with_name("metrics.csv"))
WORDS = read_words(__name__)
AMONG = ("custom.probability", "custom.association", "custom.association_top1")
ALWAYS_ALL = "{!r} is the only prompt of its level, and its share is always 100 %: add prompts that compete with it"
ALONE = {"presence": "custom.presence", "P(Yes)": "custom.p_yes"}  # of a prompt by itself, by what the model gives


def custom_study(prompts: PromptSet, *, by: Sequence[str] = ()) -> Study:
    """A study of a user's prompts; `by` names the attributes whose groups are compared."""

    def tasks(dataset: Dataset) -> list[Task]:
        for name in by:
            dataset.attribute(name)
        correct_cells(prompts.table, dataset.table)  # refuses a rule about an attribute that does not exist
        return [Task("custom", dataset, prompts)]

    return Study(
        **WORDS.about | ({"title": f"{WORDS.about['short']}: {prompts.name}"} if len(prompts) else {}),
        asks=Asks(datasets=(), tasks=tasks),
        measures=Measures(functions=(partial(_measure, tuple(by)),), metrics=METRICS, compares=tuple(by), every=True),
        tells=WORDS.tells,
        plans=Plans(plan=partial(plan, prompts=len(prompts) or PROMPTS, by=tuple(by)), trials=f"{__name__}:TRIALS"),
        options=OPTIONS,
        configure=configured,
    )


OPTIONS = (
    Option(
        "prompts",
        "Your own prompts (CSV or Parquet with a column 'text') in place of a study's.",
        chooses=True,
        parse=lambda given: given if isinstance(given, PromptSet) else own_prompts(given),
    ),
    *WORDS.options,
)


def configured(study: Study, options: Fields) -> Study:
    """A study of the user's own prompts."""
    asked = options["prompts"]
    return custom_study(asked if isinstance(asked, PromptSet) else read_prompts(asked), by=names_of(options.get("by")))


def _measure(by: tuple[str, ...], matrices: Mapping[str, ScoreMatrix], options: MeasureOptions) -> Iterator[Row]:
    """Means for everyone and by group; then how far groups lie apart."""
    matrix = matrices["custom"]
    groups, everything, people = groups_of(matrix.images, by), [], people_of(matrix.images, options.person)
    for level in matrix.prompts["level"].unique(maintain_order=True).to_list():
        columns = list(_columns(matrix.level(level), level))
        if not columns:
            concept = matrix.level(level).prompts["concept"][0]
            yield Row(AMONG[0], None, 0, PROBABILITY, concept=concept, template=level, note=ALWAYS_ALL.format(concept))
            continue
        everything += columns
        scored = np.asarray(~np.isnan(np.stack([column.values for column in columns])).all(axis=0))
        yield from _mean_rows(columns, scored, people.codes, options)
        for each in groups:
            for group in each.names:
                for row in _mean_rows(columns, scored & each.mask(group), people.codes, options):
                    yield row._replace(subset=each.attribute, group=group)
    if everything and by:
        yield from Family(everything, matrix.images, by, options).rows()


def _mean_rows(columns: Sequence[Column], mask: Mask, people: Codes, options: MeasureOptions) -> Iterator[Row]:
    if not mask.any():
        return
    resampler = Resampler(people[mask], options.rng(), options.draws)
    prompts = sum(column.metric == AMONG[0] for column in columns)
    for column in columns:
        values = column.values[mask]
        if column.metric in AMONG[1:] and np.isnan(values).all():
            continue
        row = mean_row(column.metric, values, resampler)
        among = f"among the {prompts} prompts of level '{column.level}'" if column.metric in AMONG else None
        chance = 1 / prompts if column.metric == AMONG[0] else None
        row = row._replace(concept=column.concept, template=column.level, chance=chance)
        yield row._replace(note=join((row.note, among)))


def _columns(matrix: ScoreMatrix, level: str) -> Iterator[Column]:
    """What is measured of the prompts of a level: a value for each image, NaN for one without all scores."""
    whole = matrix.complete_rows()
    places = pl.Series(matrix.images["image_id"]).is_in(whole.images["image_id"].implode()).to_numpy()
    cells, concepts = whole.quantity("ranking"), whole.prompts["concept"]
    made: list[tuple[str, str, Array]] = []
    if cells.unit in ALONE:  # each prompt by itself: a detector's presence, or P(yes) of a model that answers in words
        made += [(ALONE[cells.unit], concept, cells.cells[:, j]) for j, concept in enumerate(concepts)]
    if whole.gives("logit") and len(concepts) > 1:  # how belief is divided; the concepts of a detector do not compete
        shares, correct = softmax(whole.logits), correct_cells(whole.prompts, whole.images)
        made += [("custom.probability", concept, shares[:, j]) for j, concept in enumerate(concepts)]
        if correct.any():
            made.append(("custom.association", level, correct_share(shares, correct)))
            made.append(("custom.association_top1", level, first(correct_rank(shares, correct))))
    for metric, concept, own in made:
        values = np.full(matrix.images.height, np.nan)
        values[places] = own
        yield Column(metric, concept, level, values)


CUSTOM = custom_study(prompt_set("prompts", []))


# Tried with four prompts of one level, by gender and brightness, within branch and image source

TRIED = prompt_set("made", [{"text": f"prompt {i}", "level": "all", "concept": f"prompt {i}"} for i in range(4)])
BY, WITHIN = ("gender", "brightness"), ("branch", "source")


def _measure_world(world: World, options: MeasureOptions) -> Iterator[Row]:
    """Scores as logits; the study's own rows."""
    matrix = ScoreMatrix("custom", world.table, TRIED.table, ("score",), world.scores[:, :, None])
    (rows,) = custom_study(TRIED, by=BY).measures.functions
    yield from rows({"custom": matrix}, replace(options, within=WITHIN))


TRIALS = Trial(
    prompts=len(TRIED),
    measure=_measure_world,
    true={
        GENDER_ONLY: ("custom.gap:gender", "custom.impact_ratio:gender", "custom.custom:gender"),
        BRIGHTNESS_ONLY: (*(f"custom.{name}:brightness" for name in ("gap", "slope", "custom")), "custom.impact_ratio"),
        **dict.fromkeys((BRANCH_ONLY, SOURCE_ONLY), ("custom.impact_ratio",)),  # a selection is judged as it is
    },
    found=("custom.gap", "custom.custom"),
)
