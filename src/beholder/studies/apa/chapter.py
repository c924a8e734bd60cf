"""APA's chapter: that of public figures, and what was planted in the reference model."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from beholder.chapter.chapter import Question
from beholder.chapter.finding import Finding
from beholder.studies.apa.planted import planted_findings, planted_table
from beholder.studies.public_figures.chapter import CHAPTER as PUBLIC_FIGURES
from beholder.studies.public_figures.findings import public_figure_findings

PLANTED = Question("Does the audit find what was planted in the reference model?", "planted")


def apa_findings(part: pl.DataFrame) -> list[Finding]:
    """The planted truth first, where there is one."""
    return [*planted_findings(part), *public_figure_findings(part)]


CHAPTER = replace(
    PUBLIC_FIGURES,
    questions={"planted": PLANTED, **PUBLIC_FIGURES.questions},
    findings=apa_findings,
    planted=planted_table,
)
