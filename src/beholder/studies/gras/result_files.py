"""GRAS's published result tables: group means, statistics and p-values of 5 models in 500 questions by 4 attributes.

The authors publish 20 wide files. Here they are one tidy table: `model, attribute, trait, template, what, group,
value`. `what` is `group_mean`, `overall_mean`, `statistic` or `p_value`, or a test of the wordings (`template_anova`,
`template_friedman` and their p). The published scores follow from this table alone.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
import polars as pl

from beholder.metrics.group_tests import GroupTest, Moments
from beholder.studies.gras.groups import ATTRIBUTES, Compared
from beholder.studies.gras.prompts import VALENCES, read_traits
from beholder.studies.gras.valence import above_mean

KEYS = ("model", "attribute", "trait", "template", "what", "group")


@cache
def gras_results() -> pl.DataFrame:
    """The table that comes with the package."""
    path = files("beholder.studies.gras") / "result_files.parquet"
    return pl.read_parquet(path.read_bytes()).with_columns(pl.col(KEYS).cast(pl.String))


def compared(model: str, attribute: str) -> tuple[list[str], Compared]:
    """Traits, and the comparison of one model's groups that the authors' table came from.

    The published groups are of equal size, so that their mean is the overall mean.
    """
    part = gras_results().filter(model=model, attribute=attribute)
    traits = part["trait"].unique(maintain_order=True).to_list()
    groups = part.filter(what="group_mean")["group"].unique(maintain_order=True).to_list()
    order = {name: k for k, name in enumerate(traits)}

    def column(rows: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return rows.sort(pl.col("trait").replace_strict(order), "template")["value"].to_numpy()

    means = np.stack([column(part.filter(what="group_mean", group=group)) for group in groups])
    p_value = column(part.filter(what="p_value"))
    statistic = column(part.filter(what="statistic"))
    moments = Moments(groups, np.ones_like(means), means, np.zeros_like(means))
    test = GroupTest(statistic, p_value, p_value, p_value)
    return traits, Compared(attribute, moments, test, (len(traits), part["template"].n_unique()))


def models() -> list[str]:
    """The models of the result tables."""
    return gras_results()["model"].unique(maintain_order=True).to_list()


@cache
def score(model: str) -> float:
    """The bias score that the study's rule gives: mean over attributes of the per cent of traits that count."""
    shares = [compared(model, attribute)[1].biased.mean() for attribute in ATTRIBUTES]
    return 100 * float(np.mean(shares))


@cache
def valence_share(model: str, attribute: str, group: str, valence: str) -> float:
    """Per cent of positive (or negative) traits whose group mean exceeds the overall one in every wording."""
    traits, comparison = compared(model, attribute)
    valence_of = dict(read_traits().select("trait", "valence").iter_rows())
    shares = above_mean(comparison.deviations, [valence_of[trait] for trait in traits])
    return float(shares[comparison.groups.index(group), VALENCES.index(valence)])
