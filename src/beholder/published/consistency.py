"""Do the printed tables agree with themselves? Every study's checks, which need no model."""

from __future__ import annotations

from typing import Any

from beholder.published.ledger import printed_studies
from beholder.studies.printed import Check


def consistency() -> list[Check]:
    """Every check, study by study."""
    return [check for _, printed in printed_studies() for check in printed.checks]


def as_records(checks: list[Check]) -> list[dict[str, Any]]:
    """The checks as JSON."""
    return [{**check._asdict(), "holds": check.holds} for check in checks]
