"""iEAT on images alone: which pictures are nearer to which, by the model's own image vectors."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from beholder.comparison.family import Part, comparison_at, judge
from beholder.comparison.groups import Groups, People
from beholder.comparison.means import compare_groups
from beholder.core.results import Row
from beholder.core.types import Array
from beholder.metrics.association import ImageAssociation, association_of, nearness
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.classics.prompts import DRAWN_TESTS, IMAGE_TESTS, ImageTest
from beholder.studies.study import MeasureOptions

EFFECT, P_VALUE = "classics.image_association", "classics.image_p"
TOGETHER = "interval and p hold for all image tests at once"


def categories(images: pl.DataFrame) -> pl.Series:
    """What each picture shows: as the data says, or drawn people at work, dealt into two halves."""
    if "category" in images.columns:
        return images["category"]
    half = pl.int_range(pl.len()).over("occupation") * 2 // pl.len().over("occupation") + 1
    return images.select(category=pl.format("{}/{}", "occupation", half))["category"]


def image_rows(matrix: ScoreMatrix, options: MeasureOptions) -> Iterator[Row]:
    """Effect size and p of every test whose pictures are there; all tests are one family."""
    cells, of = matrix.quantity("cosine").cells, categories(matrix.images)
    shows = dict(zip(matrix.images["image_id"], of, strict=True))  # a picture that cannot be read has no row
    asked = pl.Series([shows.get(image) for image in matrix.prompts["text"]], dtype=pl.String)
    tests = [test for test in (*IMAGE_TESTS, *DRAWN_TESTS) if {*test[1:]} <= {*of} and {*test[3:]} <= {*asked}]
    made = []
    for test in tests:
        a, b = (cells[:, (asked == name).fill_null(False).to_numpy()] for name in test[3:])
        near = nearness(a, b)
        x, y = (near[(of == name).to_numpy() & ~np.isnan(near)] for name in test[1:3])
        if len(x) and len(y):
            made.append((test, x, y, People(np.arange(len(x) + len(y)))))
    yield from tested(made, options)


def tested(made: Sequence[tuple[ImageTest, Array, Array, People]], options: MeasureOptions) -> Iterator[Row]:
    """Rows of tests, each with the nearness of its X and of its Y to A rather than B."""
    rng, parts, found = options.rng(), list[Part](), list[ImageAssociation]()
    for _, x, y, people in made:
        found.append(association_of(x, y, seed=options.seed))
        sides, both = Groups("", ["x", "y"], np.repeat([0, 1], [len(x), len(y)])), np.concatenate([x, y])
        spread = both.std(ddof=1) if np.isfinite(found[-1].effect) else np.nan
        parts.append(compare_groups(both / spread, sides, people, rng, shuffles=options.shuffles))
    for (test, x, y, _), own, judged in zip(made, found, judge(parts), strict=True):
        row = Row(EFFECT, own.effect, len(x) + len(y), "standard deviations", note=TOGETHER)
        row = row._replace(group=test.x, against=test.y, concept=test.test, template=f"{test.a} – {test.b}")
        tried = f"all {own.arrangements:,}" if own.exact else f"{own.arrangements:,} drawn"
        printed = f"one-sided, of this test alone, as printed: {tried} arrangements of the pictures"
        if options.compat:
            row = row._replace(note=f"p {printed}")
        (judged_row,) = comparison_at(judged, (0, 0)).rows(row)
        yield judged_row._replace(p_value=own.p_value, p_at_most=None) if options.compat else judged_row
        yield row._replace(metric=P_VALUE, value=own.p_value, unit="statistic", note=printed)
