"""People's ratings as a mirror, never as the truth: where a model rates faces as people do, and where it does not.

Both sides are put into standard deviations over the rated faces. How well two halves of the raters agree (Spearman and
Brown) sets the ceiling of what any model could reach; gaps of people are freed of the raters' scatter by it. Two groups
may differ for people, for the model, or for one of them alone: the model *mirrors*, *exaggerates*, *invents*, *ignores*
or *reverses* what people see. Pure.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import stats

from beholder.chapter import numbers
from beholder.chapter.chapter import INTERVALS, Cell, Column, Table, decimal_cell, tabled
from beholder.chapter.charts import Axis, Figure, forest
from beholder.chapter.finding import Contrast, Finding, deciding_rows, finding, metric_rows, valued, verdict_of_rows
from beholder.chapter.numbers import Result, decimal, has_interval, listed
from beholder.comparison.family import (
    ALPHA,
    DIFFERENCE,
    FACT,
    NOT_MEASURED,
    TOO_LITTLE,
    Comparison,
    comparison_at,
    judge,
    not_judgeable,
)
from beholder.comparison.groups import REST, group_by, people_of, strata_of
from beholder.comparison.means import compare_groups, compare_slopes
from beholder.core.errors import DataError
from beholder.core.read import read_table, require_columns
from beholder.core.results import Row
from beholder.core.types import Array
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions, Metric, read_metrics

FEWEST_RATED = 4  # the fewest faces for which a correlation is given
HALVES = 50  # times that raters are split
MANY = 12  # rows above which a table is better opened than shown
LOW_CEILING = 0.3  # people agree so little that nothing can be corrected for it
SIDES = ("people_gap", "rating_gap", "rating_departure")  # of people, of the model, of the model less people
DEVIATIONS = "standard deviations"
ROUNDING = 1e-9  # standard deviations below which there is nothing
KINDS = ("mirrors", "exaggerates", "invents", "ignores", "reverses", "softens")
MIRRORS, EXAGGERATES, INVENTS, IGNORES, REVERSES, SOFTENS = KINDS
ANSWERS = {
    INVENTS: "The model sees “{trait}” more in {more} than in {less}, and those who rated the faces do not.",
    EXAGGERATES: "The model sees “{trait}” more in {more} than in {less}, by more than those who rated the faces.",
    REVERSES: "The model sees “{trait}” more in {more} than in {less}, and those who rated the faces more in {less}.",
}  # what is the model's own doing


def mirror_metrics(study: str) -> tuple[Metric, ...]:
    """What each metric means."""
    return read_metrics(Path(__file__).with_name("mirror.csv"), f"{study}.")


def read_ratings(path: Path) -> pl.DataFrame:
    """`who, trait, mean, n` of every face, and `single` where the table has single ones (a column `rating`)."""
    raw = read_table(path).with_columns(pl.all().cast(pl.String))
    raw = raw.rename({old: new for old, new in (("stimulus", "image"), ("attribute", "trait")) if old in raw.columns})
    if "image" not in raw.columns:
        raise DataError(f"{path}: a table of ratings needs a column 'image'; it has: {', '.join(raw.columns)}.")
    figures = ["rating"] if "rating" in raw.columns else ["mean", "n"]
    require_columns(raw, ["trait", *figures], path)
    table = raw.with_columns(pl.col(figures).cast(pl.Float64, strict=False))
    read = table.select(pl.col("image", "trait").is_not_null(), pl.col(figures).is_finite().fill_null(False))
    for name in ("image", "trait", *figures):
        if not read[name].all():
            raise DataError(f"{path}: row {(~read[name]).arg_max() + 2} has no {name} that can be read.")  # type: ignore[operator]
    keys = ["image", "trait"]
    if figures == ["rating"]:
        every = [pl.col("rating").mean().alias("mean"), pl.len().cast(pl.Float64).alias("n"), pl.col("rating")]
        return table.group_by(keys, maintain_order=True).agg(every).rename({"image": "who", "rating": "single"})
    if (twice := table.filter(table.select(keys).is_duplicated())).height:
        raise DataError(f"{path}: {twice['image'][0]!r} is rated on {twice['trait'][0]!r} more than once.")
    return table.select(pl.col("image").alias("who"), "trait", "mean", "n")


class Rated(NamedTuple):
    """A trait that people and the model rate, for every image of the run: NaN where one of them does not."""

    row: Row
    human: Array
    model: Array
    ceiling: float | None

    @property
    def reliable(self) -> bool:
        """Whether it is known how far the raters scatter, and they agree enough to be corrected for that."""
        return self.ceiling is not None and self.ceiling >= LOW_CEILING

    @property
    def agreed(self) -> Array:
        """People's ratings in standard deviations of what they agree on: scatter makes every gap look smaller."""
        return self.human / self.ceiling if self.ceiling and self.reliable else self.human


def ceiling_of(ratings: Sequence[Sequence[float]], rng: np.random.Generator) -> float | None:
    """The correlation with the mean rating that a model without any error would have: of halves, Spearman and Brown."""
    lengths = np.array([len(own) for own in ratings])
    if len(lengths) < FEWEST_RATED or lengths.min() < 2:
        return None
    cells = np.full((len(ratings), int(lengths.max())), np.nan)
    for row, own in enumerate(ratings):
        cells[row, : len(own)] = own
    found = []
    for _ in range(HALVES):
        order = np.where(np.isnan(cells), 2.0, rng.random(cells.shape)).argsort(axis=1)
        mixed = np.take_along_axis(cells, order, axis=1)
        first = np.arange(cells.shape[1]) < (lengths // 2)[:, None]
        one, other = (np.nanmean(np.where(half, mixed, np.nan), axis=1) for half in (first, ~first))
        r = np.corrcoef(one, other)[0, 1] if min(np.ptp(one), np.ptp(other)) > 0 else 0.0
        found.append(2 * r / (1 + r) if r > -1 else 0.0)
    return float(np.sqrt(max(np.mean(found), 0.0)))


def mirror_rows(
    study: str,
    scores: Mapping[str, Array],
    images: pl.DataFrame,
    ratings: pl.DataFrame,
    labels: Sequence[str],
    options: MeasureOptions,
) -> Iterator[Row]:
    """Correlations of all traits, as one family; then what people and the model make of groups, as another."""
    traits = ratings.group_by(["trait"], maintain_order=True)
    every = [_rated(study, str(trait), scores, images, part, options) for (trait,), part in traits]
    rated, rng = [each for each in every if isinstance(each, Rated)], options.rng()
    people = people_of(images, options.person)
    rises = [compare_slopes(each.model, each.human, people, rng, shuffles=options.shuffles) for each in rated]
    verdicts = iter(judge(rises or [not_judgeable(np.zeros((1, 1), dtype=int))]))
    for each in every:
        if isinstance(each, Row):
            yield each
            continue
        r, found = float(np.nanmean(each.human * each.model)), comparison_at(next(verdicts), (0, 0))
        # With several pictures a person the rise is not quite r: r itself is never left out.
        found = found._replace(low=min(found.low, r), high=max(found.high, r))
        (row,) = found.rows(each.row._replace(value=r), least=-1.0, most=1.0)
        yield row
        if each.ceiling is not None:
            own = each.row._replace(metric=f"{study}.rating_ceiling", note=f"{HALVES} splits of the raters in halves")
            yield own._replace(value=each.ceiling)
            if each.reliable:
                parts = (None if end is None else end / each.ceiling for end in (r, row.low, row.high))
                value, low, high = parts
                own = own._replace(metric=f"{study}.rating_corrected", note="r over its ceiling")
                yield own._replace(value=value, low=low, high=high)
    yield from _gaps(study, rated, images, labels, options)


def _rated(
    study: str,
    trait: str,
    scores: Mapping[str, Array],
    images: pl.DataFrame,
    part: pl.DataFrame,
    options: MeasureOptions,
) -> Rated | Row:
    """Both sides of a trait; a row that says why where they cannot be compared."""
    row = Row(f"{study}.rating_r", None, 0, "correlation", subset="image", concept=trait)
    if trait.lower() not in scores:
        return row._replace(note=f"{trait!r} is no trait of this run")
    model = scores[trait.lower()]
    names = images.select(who=pl.col("image_id").cast(pl.String))
    human = names.join(part, on="who", how="left", maintain_order="left")
    means = human["mean"].to_numpy().astype(np.float64)
    both = np.isfinite(means) & np.isfinite(model)
    unmet = part.height - int(both.sum())
    row = row._replace(n=int(both.sum()), note=f"{unmet} rated images are not in this run" if unmet else None)
    if both.sum() < FEWEST_RATED or np.ptp(means[both]) == 0 or np.ptp(model[both]) == 0:
        return row._replace(note=join((f"fewer than {FEWEST_RATED} images to compare, or all alike", row.note)))
    ranks = f"Spearman {stats.spearmanr(means[both], model[both]).statistic:.2f}"
    first, second = (np.where(both, (each - each[both].mean()) / each[both].std(), np.nan) for each in (means, model))
    single = human.filter(pl.Series(both))["single"].to_list() if "single" in human.columns else None
    ceiling = ceiling_of(single, options.rng()) if single else None
    return Rated(row._replace(note=join((ranks, row.note))), first, second, ceiling)


def _gaps(
    study: str, rated: Sequence[Rated], images: pl.DataFrame, labels: Sequence[str], options: MeasureOptions
) -> Iterator[Row]:
    """Of two groups, or of each against everyone else, within the other labels: people's gap, the model's, the rest."""
    if not rated:
        return
    people, rng, made = people_of(images, options.person), options.rng(), []
    sides = [(each.agreed, each.model, each.model - each.human, each.model - each.agreed) for each in rated]
    values = np.stack([side for four in sides for side in four], axis=1)
    values[np.abs(values) < ROUNDING] = 0.0
    known = np.asarray(~np.isnan(values).all(axis=1))
    for label in labels:
        groups = group_by(images, (label,)).large(people, known)
        if len(groups.names) > 1:
            two, strata = len(groups.names) == 2, strata_of(images, groups, (*labels, *options.within), people)
            weights = groups.pair_weights() if two else groups.rest_weights(people)
            ends = [(groups.names[0], groups.names[1])] if two else [(name, REST) for name in groups.names]
            how = {"contrasts": weights, "strata": strata, "shuffles": options.shuffles}
            made.append((groups, strata, ends, compare_groups(values, groups, people, rng, **how)))  # type: ignore[arg-type]
    for (groups, strata, ends, _), judged in zip(made, judge([part for *_, part in made]), strict=True):
        for (place, (group, against)), (at, trait) in product(enumerate(ends), enumerate(rated)):
            judgements = [comparison_at(judged, (place, 4 * at + side), group, against) for side in range(4)]
            mine = groups.mask(group)
            others = (groups.codes >= 0) & ~mine
            seen, own, *apart = zip(judgements, values.T[4 * at : 4 * at + 4], strict=True)
            nearer = min(apart, key=lambda each: abs(each[0].value))  # of people's gap as rated, and freed of scatter
            verdicts = _verdicts(trait, seen[0], own[0], *(each for each, _ in apart))
            for side, (found, column), verdict in zip(SIDES, (seen, own, nearer), verdicts, strict=True):
                if math.isfinite(found.value):
                    plain = float(np.nanmean(column[mine]) - np.nanmean(column[others]))
                    row = trait.row._replace(metric=f"{study}.{side}", value=plain, unit=DEVIATIONS, note=None)
                    row = row._replace(subset=groups.attribute)
                    yield from found._replace(verdict=verdict).rows(row, strata)


def _verdicts(
    trait: Rated, people: Comparison, own: Comparison, rated: Comparison, freed: Comparison
) -> tuple[str, str, str]:
    """What people see is no finding about the model, nor is that it does not see it."""
    seen, departs = people.verdict, min(rated, freed, key=lambda each: abs(each.value)).verdict
    if departs == DIFFERENCE and own.verdict != DIFFERENCE:
        departs = FACT
    elif departs == DIFFERENCE:  # scatter makes people's gap smaller: is it known how much, and is the model's beyond?
        untold = seen == DIFFERENCE and not trait.reliable and 0 < people.value / own.value < 1
        departs = NOT_MEASURED if untold or rated.value * freed.value < 0 else departs
    return FACT if seen == DIFFERENCE else seen, own.verdict, departs


# What the page says of it


class Gap(NamedTuple):
    """One trait and two groups: what people make of them, and what the model does."""

    people: Result
    model: Result
    departure: Result

    @property
    def kind(self) -> str | None:
        """What the model does with what people see; None where neither is found to tell the groups apart."""
        unsaid = (TOO_LITTLE, NOT_MEASURED)
        human, own, apart = ((row["p_value"] or 1.0) <= ALPHA and row["verdict"] not in unsaid for row in self)
        same = self.people["value"] * self.model["value"] > 0
        if not apart:
            return MIRRORS if human and own and same else None
        if human and own:
            more = abs(self.model["value"]) > abs(self.people["value"])
            return REVERSES if not same else EXAGGERATES if more else SOFTENS
        return INVENTS if own else IGNORES if human else None

    @property
    def slope(self) -> float:
        """How many times as large the model's gap is as that of people; above 1: larger."""
        return float(self.model["value"] / self.people["value"]) if self.people["value"] else math.inf


def gaps_of(part: pl.DataFrame) -> list[Gap]:
    """Every trait and two groups, the widest departure first."""
    keys = ("model", "subset", "group", "against", "concept")
    sides = [deciding_rows(part, side).to_dicts() for side in SIDES]
    by_place = [{tuple(row[key] for key in keys): row for row in rows} for rows in sides]
    every = [Gap(*(rows[place] for rows in by_place)) for place in by_place[0]]
    return sorted(every, key=lambda gap: -abs(gap.departure["value"]))


def mirror_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether faces are ordered as people order them; then, label by label, what becomes of what people see."""
    yield from _order(part)
    every = gaps_of(part)
    for label in dict.fromkeys(gap.people["subset"] for gap in every):
        own = [gap for gap in every if gap.people["subset"] == label]
        yield _told(label, own)


def _order(part: pl.DataFrame) -> Iterator[Finding]:
    every = metric_rows(part, "rating_r", absent=True)
    rows = every.drop_nulls("value").sort("value", descending=True).to_dicts()
    if not rows:
        for row in every.head(1).to_dicts():
            sentence = f"Of {numbers.number(every.height, 'rated trait')}, none could be compared: the table says why."
            yield finding(row, "order", "The ratings are not compared", sentence, verdict=NOT_MEASURED)
        return
    clear = [row for row in rows if row["verdict"] == DIFFERENCE]
    agree, of = [row for row in clear if row["value"] > 0], numbers.number(len(rows), "trait")
    headline = "It is not found to order images as people do on any trait"
    if clear:
        way = "as people do" if agree else "opposite to people's ratings"
        headline = f"It orders images {way} on {len(agree or clear)} of {of}"
    ceilings = {row["concept"]: row["value"] for row in valued(part, "rating_ceiling")}
    sentence = f"{'; '.join(_trait(row, ceilings.get(row['concept'])) for row in rows[:8])}."
    if agree and len(agree) < len(clear):
        sentence += f" The opposite order is found on {len(clear) - len(agree)} of {of}."
    yield finding(rows[0], "order", headline, sentence, verdict=verdict_of_rows(rows), more=rows[1:8])


def _trait(row: Result, ceiling: float | None) -> str:
    interval = f"{decimal(row['low'])} to {decimal(row['high'])}, " if has_interval(row) else ""
    most = "" if ceiling is None else f", at most {ceiling:.2f}"
    return f"{row['concept']} r = {decimal(row['value'])} ({interval}n = {row['n']}{most})"


def _told(label: str, own: Sequence[Gap]) -> Finding:
    counts = {kind: [gap for gap in own if gap.kind == kind] for kind in KINDS}
    named = [f"{kind} {len(gaps)}" for kind, gaps in counts.items() if gaps]
    off = [gap for gap in own if gap.departure["verdict"] == DIFFERENCE and gap.kind in ANSWERS]
    first = (off or own)[0]
    kind, trait = first.kind or "", first.people["concept"]
    group, against = (numbers.people(first.people[end]) for end in ("group", "against"))
    more, less = (group, against)[:: 1 if first.model["value"] > 0 else -1]
    apart = f"{group} less {against}: people {decimal(first.people['value'])}, model {decimal(first.model['value'])}"
    p_value = "" if first.departure["p_value"] is None else f", p {numbers.row_p_value(first.departure)}"
    size = f"{apart} standard deviations ({trait}{p_value})"
    what = f"Of what people see by {label} the model {listed(named)}" if named else f"By {label} nothing was found"
    headline = f"By {label} the model is not found to see what people do not see"
    answer = ANSWERS[kind].format(trait=trait, more=more, less=less) if off else ""
    verdict = DIFFERENCE if off else FACT if named else verdict_of_rows([gap.model for gap in own])
    if verdict == TOO_LITTLE:
        headline = f"Too few people to say what the model sees by {label} and people do not"
    if off:
        headline = (
            f"By {label} the model {listed([each for each in named if each.split()[0] in ANSWERS])} of {len(own)} gaps"
        )
    rows = [gap.departure for gap in (off or own)]
    both = [Contrast(f"{trait}, {who}", row) for who, row in (("the model", first.model), ("people", first.people))]
    told = {"verdict": verdict, "effect": abs(rows[0]["value"]), "more": rows[1:8], "answer": answer, "contrasts": both}
    return finding(rows[0], "mirror", headline, f"{what}; widest: {size}.", **told)._replace(card=f"People, {label}")


def mirror_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Trait by trait: the correlation, its ceiling, and corrected for it; then the groups."""
    rows = metric_rows(part, "rating_r", absent=True).to_dicts()
    if not rows:
        return
    extra = {
        name: {(row["model"], row["concept"]): row for row in valued(part, f"rating_{name}")}
        for name in ("ceiling", "corrected")
    }

    def other(name: str) -> Column:
        return name.capitalize(), lambda row: decimal_cell(extra[name].get((row["model"], row["concept"])))

    caption = (
        "Correlation of people's mean ratings with the model's score; 1: the same order. Ceiling: what a model without "
        f"error would reach, since raters differ; corrected: over the ceiling. {INTERVALS}"
    )
    notes = [f"{row['concept']}: {row['note']}" for row in rows if row["value"] is None]
    columns: list[Column] = [("n", "n"), ("r", decimal_cell), other("ceiling"), other("corrected")]
    title, more = "Compared with people's ratings", len(rows) > MANY
    traits: list[Column] = [("Trait", "concept")]
    yield tabled(part, rows, traits, columns, title=title, caption=caption, notes=notes, topic="people", long=more)
    lines = [{**gap.people, "gap": gap} for gap in gaps_of(part)]
    left: list[Column] = [("Label", "subset"), ("Group", "group"), ("Against", "against"), ("Trait", "concept")]
    sides: list[Column] = [
        ("People", lambda line: decimal_cell(line["gap"].people)),
        ("Model", lambda line: decimal_cell(line["gap"].model)),
        ("Slope", lambda line: decimal(line["gap"].slope) if line["gap"].kind in (*KINDS[:2], *KINDS[4:]) else ""),
        ("The model", lambda line: Cell(line["gap"].kind or "", strong=True)),
    ]
    caption = (
        "Gaps in standard deviations of the trait. Slope: the model's gap over that of people; above 1 it is larger. "
        f"{INTERVALS} They hold for all labels and traits together."
    )
    if lines:
        title = "What becomes of what people see"
        yield tabled(part, lines, left, sides, title=title, caption=caption, topic="people", long=len(lines) > MANY)


def mirror_figures(part: pl.DataFrame) -> Iterator[Figure]:
    """People and the model, trait by trait: two marks where their gaps stand."""
    every, answered = sorted(gaps_of(part), key=lambda gap: gap.departure["verdict"] != DIFFERENCE), set[str]()
    for label, group in dict.fromkeys((gap.people["subset"], gap.people["group"]) for gap in every):
        own = [gap for gap in every if (gap.people["subset"], gap.people["group"]) == (label, group)][:20]
        sides = (("people", 0), ("model", 1))
        rows = [{**gap[at], "subset": gap[at]["concept"], "model": name} for gap in own for name, at in sides]
        ends, told = (group, own[0].people["against"]), sum(gap.kind is not None for gap in own)
        title = f"{' less '.join(map(numbers.people, ends))}: {told} traits tell them apart"
        caption = "In standard deviations; the traits on which people and the model differ most. Line: no difference."
        drawing = forest(rows, Axis("standard deviations", scale={"domain": [-4, 4], "clamp": True}), landmark=0.0)
        answers = () if label in answered else ("mirror", label)
        answered.add(label)
        yield Figure(f"mirror-{label}-{group}", title, caption, drawing, "people", answers=answers)
