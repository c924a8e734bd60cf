"""A small study to be tried."""

from __future__ import annotations

import pytest
from gaps_study import GAPS

from beholder.studies import STUDIES


@pytest.fixture(autouse=True)
def gaps(catalogs_as_they_came: None) -> None:
    STUDIES.add("gaps", GAPS)
