"""Every study's checks are run, and each names its study."""

from __future__ import annotations

from beholder.published.consistency import as_records, consistency
from beholder.studies import STUDIES


def test_all_checks_are_listed_and_nine_rules_hold():
    checks = consistency()
    assert len(checks) == 32
    assert {check.study for check in checks} == {"apa", "pfi", "gras", "perception"}
    assert {check.study for check in checks} <= set(STUDIES)
    assert sum(check.holds for check in checks) == 9


def test_checks_as_records_say_whether_they_hold():
    checks = consistency()
    assert [record["holds"] for record in as_records(checks)] == [check.obey == check.of for check in checks]
