"""Results for every template of a finding: both signs, zero, one group, tiny and huge n. For tests and a reading list.

Each table is made of a few rows, as a run would write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from beholder.comparison.family import DIFFERENCE, NONE_FOUND, TOO_LITTLE
from beholder.core.results import Row, results_table

AP, COUNT, SQUARED = "average precision", "concepts", "squared calibration error"
PAIR = {"group": "man", "against": "woman"}
NUMBERS = {"tiny": (1, 12), "usual": (43, 910), "huge": (408, 25_215)}
"""Concepts and images."""


def cases() -> Iterator[tuple[str, pl.DataFrame]]:
    """A description, and a results table of disparity."""
    for size, (concepts, images) in NUMBERS.items():
        for sign in (1, -1, 0):
            name = f"{size} n, gap {'above' if sign > 0 else 'below' if sign < 0 else 'exactly'} 0"
            yield name, table(_everything(concepts, images, sign))
    usual = NUMBERS["usual"]
    yield "gaps in opposite directions, mean hides them", table(_opposite(*usual))
    yield "no single gap shown, but all together", table(_gaps(*usual, 0.04, p_value=0.3, together=0.002))
    yield "only one group", table([_mean("man", 0.4, 80, 500, note="no other group")])
    yield "no concept could be tested", table(_untested())
    yield "calibration was not measured", table(_not_calibrated())
    yield "one group against the rest", table(_rest(*usual))
    yield "another data set, no wide gap", table([*_gaps(*usual, 0.0, p_value=1.0), *_colours(0, 40, 0)])
    yield "another data set, one wide gap", table([*_gaps(*usual, 0.0, p_value=1.0), *_colours(1, 0, 0)])


def table(rows: Iterable[Row], model: str = "a model") -> pl.DataFrame:
    """Rows as a run of disparity on COCO writes them."""
    return results_table(rows, study="disparity", model=model, dataset="coco")


def _everything(concepts: int, images: int, sign: int) -> Iterator[Row]:
    gap = 0.12 * sign
    yield from _gaps(concepts, images, gap, p_value=0.004 if sign else 1.0, together=0.001 if sign else 0.9)
    yield from _prevalence(images, gap)
    yield from _calibration(images, 0.02 * sign, 0.01 if sign else 1.0)
    yield from _words(concepts, 0.5 + 0.2 * sign, 0.01 if sign else 1.0)
    yield from _models(concepts, 0.5 + 0.25 * sign)
    yield from _colours(concepts if sign > 0 else 0, 0 if sign else concepts, concepts if sign < 0 else 0)


def _row(metric: str, value: float | None, n: int, unit: str = AP, **columns: object) -> Row:
    return Row(f"disparity.{metric}", value, n, unit)._replace(**{**PAIR, **columns})  # type: ignore[arg-type]


def _verdict(p_value: float) -> str:
    return DIFFERENCE if p_value <= 0.05 else NONE_FOUND


def _mean(group: str, value: float, concepts: int, images: int, note: str = "") -> Row:
    row = Row("disparity.mean_average_precision", value, concepts, AP, group=group)
    return row._replace(low=value - 0.05, high=value + 0.05, note=note or f"{images} images")


def _gaps(
    concepts: int, images: int, gap: float, *, p_value: float, together: float = 0.9, concept: str = "tie"
) -> Iterator[Row]:
    """The rows of one concept's gap, the mean and the test of all."""
    found = p_value <= 0.05
    yield from (_mean(group, value, concepts, images) for group, value in (("man", 0.61), ("woman", 0.61 - gap)))
    yield _row("mean_ap_gap", gap, concepts)
    width = 0.06 if found else 0.08
    tested = {"p_value": p_value, "p_at_most": found, "verdict": _verdict(p_value)}
    yield _row("mean_ap_gap_matched", gap, concepts, low=gap - width, high=gap + width, **tested)
    yield _row("gaps_shown", float(found), concepts, COUNT)
    width_of_all = 0.162 if together < 0.05 else 0.1
    yield _row("gap_spread", width_of_all, concepts, p_value=together, verdict=_verdict(together))
    yield _row("gap_spread_expected", 0.115, concepts, low=0.087, high=0.142)
    for group, value in (("man", 0.6), ("woman", 0.6 - gap)):
        yield Row("disparity.average_precision_matched", value, images, AP, group=group, concept=concept)
    yield _row("ap_gap", 1.7 * gap, images, concept=concept)
    yield _row("ap_gap_matched", gap, images, low=gap - width, high=gap + width, concept=concept, **tested)
    yield _row("gap_detectable", 0.09, images, concept=concept)
    if concepts > 1 and concept == "tie":
        yield from _other(images)


def _other(images: int) -> Iterator[Row]:
    """A second concept, whose gap was not found."""
    yield _row("ap_gap", 0.01, images, concept="chair")
    tested = {"p_value": 0.9, "verdict": NONE_FOUND}
    yield _row("ap_gap_matched", 0.01, images, low=-0.05, high=0.07, concept="chair", **tested)
    yield _row("gap_detectable", 0.06, images, concept="chair")


def _opposite(concepts: int, images: int) -> Iterator[Row]:
    rows = list(_gaps(concepts, images, 0.12, p_value=0.01))
    yield from (row for row in rows if row.metric not in ("disparity.mean_ap_gap_matched", "disparity.gaps_shown"))
    yield _row("mean_ap_gap_matched", 0.001, concepts, low=-0.02, high=0.022, p_value=0.9, verdict=NONE_FOUND)
    yield _row("gaps_shown", 2.0, concepts, COUNT)
    names = ("ap_gap_matched", "ap_gap", "average_precision_matched")
    others = _gaps(concepts, images, -0.2, p_value=0.02, concept="handbag")
    yield from (row for row in others if row.metric.removeprefix("disparity.") in names)


def _untested() -> Iterator[Row]:
    yield from (_mean(group, 0.5, 2, 6) for group in ("man", "woman"))
    yield _row("ap_gap", 0.2, 12, concept="tie")
    yield _row("ap_gap_matched", 0.2, 12, concept="tie", verdict=TOO_LITTLE)
    yield _row("gap_spread", None, 0, note="no concept is shown by 5 images of both groups")


def _not_calibrated() -> Iterator[Row]:
    note = "a cosine is not a probability; --calibration platt or isotonic converts it to one"
    yield Row("disparity.ece", None, 0, "calibration error", note=note)


def _rest(concepts: int, images: int) -> Iterator[Row]:
    yield from (_mean(group, 0.6, concepts, images) for group in ("child", "adult", "elder"))
    for row in _gaps(concepts, images, -0.12, p_value=0.01):
        if "average_precision" not in row.metric:
            yield row._replace(group="child", against="the rest")
    for row in _calibration(images, 0.02, 0.01):
        if row.against:
            yield row._replace(group="child", against="the rest")


def _prevalence(images: int, gap: float) -> Iterator[Row]:
    for group, share in (("man", 0.34), ("woman", 0.34 - gap)):
        yield Row("disparity.prevalence", share, images, "probability", group=group, concept="tie")


def _calibration(images: int, gap: float, p_value: float) -> Iterator[Row]:
    for group, value in (("man", 0.01 + max(gap, 0.0)), ("woman", 0.01 - min(gap, 0.0))):
        row = Row("disparity.miscalibration", value, images, SQUARED, group=group, concept="tie")
        yield row._replace(low=value - 0.01, high=value + 0.01)
    width = 0.015
    gap_row = _row("miscalibration_gap", gap, images, SQUARED, concept="tie", p_value=p_value)
    yield gap_row._replace(low=gap - width, high=gap + width, p_at_most=p_value <= 0.05, verdict=_verdict(p_value))


def _words(concepts: int, share: float, p_value: float) -> Iterator[Row]:
    row = _row("word_agreement", share, concepts, "probability", subset="ap_gap_matched", p_value=p_value)
    yield row._replace(low=share - 0.1, high=share + 0.1, expected=0.5, verdict=_verdict(p_value))


def _models(concepts: int, share: float) -> Iterator[Row]:
    yield Row("disparity.model_agreement", share, concepts, "probability", subset="another model")


def _colours(green: int, yellow: int, red: int) -> Iterator[Row]:
    for group, number in (("green", green), ("yellow", yellow), ("red", red)):
        row = Row("disparity.agreement_count", float(number), green + yellow + red, COUNT, group=group)
        yield row._replace(subset="visual-genome")
