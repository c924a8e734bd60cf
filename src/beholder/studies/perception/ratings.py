"""People's ratings and the model's scores: do both put the same images, or the same groups, in the same order?

A table with the columns `image` or `group`, `trait` (a dimension or a word), `mean` and `n`. Both sides are put on one
scale (standard deviations within a trait) before departures are taken. Departures are given for groups, never for a
single picture of anyone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from operator import add
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from beholder.comparison import FEWEST, Groups, Part, People, compare_groups, compare_slopes, comparison_at, judge
from beholder.comparison.family import not_judgeable
from beholder.core.errors import DataError
from beholder.core.results import Row
from beholder.core.tables import read_table, require_columns
from beholder.studies.perception.scores import CORRELATION, DEVIATIONS, Array, Judged
from beholder.studies.rows import join
from beholder.studies.study import MeasureOptions

FEWEST_RATED = 4  # the fewest images or groups for which a correlation is given


def read_ratings(path: Path) -> pl.DataFrame:
    """`kind` (image or group), `who`, `trait`, `mean`, `n`, checked."""
    raw = read_table(path).with_columns(pl.all().cast(pl.String))
    require_columns(raw, ["trait", "mean", "n"], path)
    kinds = [kind for kind in ("image", "group") if kind in raw.columns]
    if len(kinds) != 1:
        needed = "a table of ratings has one column 'image' or 'group'"
        raise DataError(f"{path}: {needed}; it has: {', '.join(raw.columns)}.")
    numbers = raw.with_columns(pl.col("mean", "n").cast(pl.Float64, strict=False))
    for number, row in enumerate(numbers.iter_rows(named=True), start=2):
        lacking = [name for name in (*kinds, "trait", "mean", "n") if row[name] is None]
        lacking += [name for name in ("mean", "n") if not lacking and not math.isfinite(row[name])]
        if lacking:
            raise DataError(f"{path}: row {number} has no {lacking[0]} that can be read.")
    twice = numbers.select(*kinds, "trait").is_duplicated()
    if twice.any():
        row = numbers.filter(twice).row(0, named=True)
        raise DataError(f"{path}: {row[kinds[0]]!r} is rated on {row['trait']!r} more than once.")
    return numbers.select(pl.lit(kinds[0]).alias("kind"), pl.col(kinds[0]).alias("who"), "trait", "mean", "n")


class Rated(NamedTuple):
    """A trait that people and the model rate, each in standard deviations."""

    row: Row
    who: list[str]
    human: Array
    model: Array
    people: People | None
    """Who is rated; None for groups that share images, which are not independent of each other."""

    def rise(self, rng: np.random.Generator, options: MeasureOptions) -> Part:
        """How much the model's score rises with people's rating: r, if everyone has one picture."""
        if self.people is None:
            return not_judgeable(np.zeros((1, 1), dtype=int))
        return compare_slopes(self.model, self.human, self.people, rng, shuffles=options.shuffles)

    def departure(self, group: str, value: float, n: int) -> Row:
        """How far the model is above people's ratings of a group."""
        subset, trait = self.row.subset, self.row.concept
        row = Row("perception.rating_departure", value, n, DEVIATIONS, subset, group, concept=trait)
        return row._replace(note="model less people, each in standard deviations of the trait")


def rating_rows(judged: Judged, ratings: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """For every trait that both rate: correlation with its verdict, and where the model departs most.

    The correlations of all traits are one family, and the departures of all groups and traits another.
    """
    rng, by_trait = options.rng(), ratings.group_by(["trait"], maintain_order=True)
    every = [_rated(judged, part, str(trait)) for (trait,), part in by_trait]
    rated = [each for each in every if isinstance(each, Rated)]
    verdicts = iter(judge([each.rise(rng, options) for each in rated]))
    for each in every:
        if isinstance(each, Row):
            yield each
            continue
        r, found = float((each.human * each.model).mean()), comparison_at(next(verdicts), (0, 0))
        ranks = f"Spearman {stats.spearmanr(each.human, each.model).statistic:.2f}"
        row = each.row._replace(value=r, note=join((ranks, each.row.note)))
        # With several pictures a person the rise is not quite r: r itself is never left out.
        found = found._replace(low=min(found.low, r), high=max(found.high, r))
        yield found.rows(row, least=-1.0, most=1.0)[0]
    yield from _departures(judged, rated, rng, options)


def _rated(judged: Judged, part: pl.DataFrame, trait: str) -> Rated | Row:
    """Both sides of a trait; a row that says why where they cannot be compared."""
    kind = part["kind"][0]
    row = Row("perception.rating_r", None, 0, CORRELATION, subset=kind, concept=trait)
    scores = _model_scores(judged, trait, kind)
    if scores is None:
        return row._replace(note=f"{trait!r} is neither a dimension nor a word of this run")
    joined = part.join(scores, on="who", how="inner")
    human, model, who = joined["mean"].to_numpy(), joined["score"].to_numpy(), joined["who"].to_list()
    unmet = f"{part.height - len(who)} rated {kind}s are not in this run" if part.height > len(who) else None
    row = row._replace(n=len(who), note=unmet)
    if len(who) < FEWEST_RATED or np.ptp(human) == 0 or np.ptp(model) == 0:
        return row._replace(note=join((f"fewer than {FEWEST_RATED} {kind}s to compare, or all alike", unmet)))
    people: People | None = People(np.arange(len(who)))
    if kind == "image":
        people = judged.people.rows(_places(judged, who))
    elif sum(bool(set(who) & set(groups.names)) for groups in judged.groupings) > 1:
        people = None
        row = row._replace(note=join((unmet, "not judged: groups that share images are not independent")))
    human, model = ((values - values.mean()) / values.std() for values in (human, model))
    return Rated(row, who, human, model, people)


def _places(judged: Judged, who: list[str]) -> npt.NDArray[np.intp]:
    place_of = {image: place for place, image in enumerate(judged.images["image_id"])}
    return np.array([place_of[image] for image in who])


def _model_scores(judged: Judged, trait: str, kind: str) -> pl.DataFrame | None:
    """`who`, `score`: Δ of a dimension (by name or title) or of a word, for images or for groups."""
    places_of = {word: [place] for place, word in enumerate(judged.words)}
    places_of |= {key: judged.places(d) for d in judged.dimensions for key in (d.name, d.title.lower())}
    if trait.lower() not in places_of:
        return None
    values = judged.delta[:, places_of[trait.lower()]].mean(axis=1)
    if kind == "image":
        return pl.DataFrame({"who": judged.images["image_id"], "score": values})
    every = [(groups, name) for groups in judged.groupings for name in groups.names]
    means = {name: float(values[groups.mask(name)].mean()) for groups, name in every}
    return pl.DataFrame({"who": list(means), "score": list(means.values())})


def _departures(judged: Judged, rated: list[Rated], rng: np.random.Generator, options: MeasureOptions) -> Iterator[Row]:
    """How far the model is above people's ratings, for groups of five or more; judged where images were rated."""
    parts, made = list[Part](), list[tuple[Rated, Groups]]()
    images = {name: int(groups.mask(name).sum()) for groups in judged.groupings for name in groups.names}
    for each in rated:
        off = each.model - each.human
        if each.row.subset == "group":
            values = zip(each.who, off.tolist(), strict=True)
            yield from (each.departure(name, value, n) for name, value in values if (n := images[name]) >= FEWEST)
        elif each.people is not None:
            groups = judged.finest
            large = groups._replace(codes=groups.codes[_places(judged, each.who)]).large(each.people)
            sizes = np.array(large.sizes(each.people), dtype=np.float64)
            weights = np.eye(len(large.names)) - sizes / sizes.sum()
            if len(large.names) > 1:
                parts.append(compare_groups(off, large, each.people, rng, contrasts=weights, shuffles=options.shuffles))
                made.append((each, large))
    for (each, large), verdicts in zip(made, judge(parts), strict=True):
        for place, group in enumerate(large.names):
            mine, found = large.mask(place), comparison_at(verdicts, (place, 0))
            value = float((each.model - each.human)[mine].mean())
            apart = value - found.value  # images without a group count for everyone's mean
            yield from found.through(partial(add, apart)).rows(each.departure(group, value, int(mine.sum())))
