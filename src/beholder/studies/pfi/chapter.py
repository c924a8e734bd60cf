"""P-FI's chapter: that of public figures, and where it answers otherwise than APA about the same people."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from beholder.chapter.charts import Figure
from beholder.chapter.finding import Finding, finding, metric_rows, valued
from beholder.chapter.numbers import Result, percent, plural
from beholder.comparison.family import DIFFERENCE
from beholder.studies.public_figures.chapter import CHAPTER as PUBLIC_FIGURES
from beholder.studies.public_figures.charts import NAME as HERO
from beholder.studies.public_figures.charts import public_figure_charts
from beholder.studies.public_figures.findings import claimed_ratios, found, ratio_and_range
from beholder.studies.public_figures.measures import GROUPS, words_of

NAMES = {"apa": "APA", "pfi": "P-FI"}


def opposite_answers(part: pl.DataFrame, others: pl.DataFrame) -> Iterator[Finding]:
    """Pools in which both studies found a difference, each the opposite of the other's."""
    elsewhere = others.filter(pl.col("study") == "apa")
    theirs = {row["subset"]: row for row in filter(found, claimed_ratios(elsewhere))}
    for row in filter(found, claimed_ratios(part)):
        other = theirs.get(row["subset"])
        if other is not None and (row["value"] - 1) * (other["value"] - 1) < 0:
            sentence = f"b is {ratio_and_range(other)} among APA's options and {ratio_and_range(row)} among P-FI's, "
            sentence += f"for the same {row['subset']}. Both hold: a ratio belongs to the options that are offered "
            sentence += f"together.{_takes_most(other, elsewhere)}{_takes_most(row, part)}"
            headline = f"APA and P-FI answer in opposite ways for {row['subset']}, because they offer other options"
            yield finding(row, "bias", headline, sentence, verdict=DIFFERENCE, more=[other])


def _takes_most(row: Result, part: pl.DataFrame) -> str:
    """The wrong option whose share differs most between women and men."""
    shares, words = dict[str, dict[str, float]](), words_of(part)
    for each in valued(part, "occupation_probability"):
        right = {words.correct(row["subset"], group) for group in GROUPS}
        if each["subset"] == row["subset"] and each["concept"] not in right:
            shares.setdefault(each["concept"], {})[each["group"]] = each["value"]
    both = {concept: groups for concept, groups in shares.items() if len(groups) == len(GROUPS)}
    if not both:
        return ""
    concept, groups = max(both.items(), key=lambda item: abs(item[1][GROUPS[0]] - item[1][GROUPS[1]]))
    shares_of = " and ".join(f"{percent(groups[group])} of the belief about {plural(group)}" for group in GROUPS)
    return f" With {NAMES[row['study']]}'s options “{concept}” takes {shares_of}."


def limitations(part: pl.DataFrame) -> Iterator[str]:
    """What the paper leaves open, for the people of this run."""
    branches = set(metric_rows(part, "association")["subset"])
    if "actors" in branches:
        yield "The paper gives no prompts for actors. They get the politicians' categories and APA's actor levels."
    if "athletes" in branches:
        yield "Athletes of sports without a prompt are left out of the specialty level."


def pfi_charts(part: pl.DataFrame) -> Iterator[Figure]:
    """Those of public figures; the one of occupations says that its options are not APA's."""
    for figure in public_figure_charts(part):
        options = " P-FI asks APA's question with other options." if figure.name == HERO else ""
        yield figure._replace(caption=f"{figure.caption}{options}")


CHAPTER = replace(PUBLIC_FIGURES, beside=opposite_answers, figures=pfi_charts, limitations=limitations)
