"""Every study's checks are run, and each names its study."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import gras_checks
import polars as pl
import pytest
from apa_checks import apa_checks, ratios_from_rows
from perception_checks import averages, perception_checks
from pfi_checks import pfi_checks
from polars.testing import assert_frame_equal

from beholder.report.replication import as_records, consistency, ledger_of
from beholder.studies import STUDIES
from beholder.studies.printed import Check, Printed

Recompute = Callable[[Printed, pl.DataFrame], Iterable[Check]]
Derive = Callable[[pl.DataFrame], pl.DataFrame]


def test_all_checks_are_listed_and_twelve_rules_hold():
    checks = consistency()
    assert len(checks) == 35
    assert {check.study for check in checks} == {"apa", "pfi", "gras", "perception"}
    assert {check.study for check in checks} <= set(STUDIES)
    assert sum(check.holds for check in checks) == 12


def test_checks_as_records_say_whether_they_hold():
    checks = consistency()
    assert [record["holds"] for record in as_records(checks)] == [check.obey == check.of for check in checks]


@pytest.mark.parametrize(
    ("study", "recomputed"), [("apa", apa_checks), ("pfi", pfi_checks), ("perception", perception_checks)]
)
def test_the_checks_that_are_shipped_are_those_of_the_tables(study: str, recomputed: Recompute):
    printed = STUDIES[study].part("printed")
    assert list(recomputed(printed, ledger_of(study, printed))) == printed.checks


def test_gras_valence_sentences_are_those_of_the_result_files():
    shipped = [check for check in STUDIES["gras"].part("printed").checks if "above the mean" in check.rule]
    assert list(gras_checks.sentences()) == shipped


@pytest.mark.parametrize(
    ("study", "recomputed"), [("apa", ratios_from_rows), ("pfi", ratios_from_rows), ("perception", averages)]
)
def test_the_values_that_are_shipped_follow_from_the_printed_cells(study: str, recomputed: Derive):
    printed = STUDIES[study].part("printed")
    assert_frame_equal(printed.derived, recomputed(printed.cells), check_dtypes=False)


def test_the_shipped_values_of_gras_follow_from_the_result_files():
    for row in STUDIES["gras"].part("printed").derived.to_dicts():
        name, model = row["metric"].removeprefix("gras."), row["model"]
        value = {
            "bias_score": lambda model=model: gras_checks.score(model),
            "fairness_score": lambda model=model: 100 - gras_checks.score(model),
            "valence_share": lambda row=row: gras_checks.valence_share(
                row["model"], row["subset"], row["group"], row["concept"]
            ),
        }[name]()
        assert row["value"] == pytest.approx(value)
