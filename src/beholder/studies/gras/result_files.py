"""GRAS's published result tables: group means, statistics and p-values of 5 models in 500 questions by 4 attributes.

The authors publish 20 wide files. Here they are one tidy table: `model, attribute, trait, template, what, group,
value`. `what` is `group_mean`, `overall_mean`, `statistic` or `p_value`, or a test of the wordings (`template_anova`,
`template_friedman` and their p). The published scores follow from this table alone.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl

from beholder.metrics.group_tests import GroupTest, Moments
from beholder.studies.gras.groups import Compared
from beholder.studies.gras.prompts import read_traits

ATTRIBUTES = {"gender": "gender", "race": "race", "age": "age", "Skin Tone": "skin_tone"}
"""Their names of the attributes, and ours."""
_CELL = re.compile(r"(?:(?P<plain>overall_mean|p_value|statistic)|(?P<group>.+)_mean)_template_(?P<k>\d)")
_WORDINGS = {
    "ANOVA_F": "template_anova",
    "ANOVA_p": "template_anova_p",
    "Friedman_stat": "template_friedman",
    "Friedman_p": "template_friedman_p",
}
KEYS = ("model", "attribute", "trait", "template", "what", "group")


@cache
def gras_results() -> pl.DataFrame:
    """The table that comes with the package."""
    path = files("beholder.studies.gras") / "result_files.parquet"
    return pl.read_parquet(path.read_bytes()).with_columns(pl.col(KEYS).cast(pl.String))


def read_result_files(folder: Path) -> pl.DataFrame:
    """The same from the authors' files (`<model>_<attribute>_bias_analysis.csv`)."""
    frames = []
    for path in sorted(folder.glob("*_bias_analysis.csv")):
        model, attribute = path.name.removesuffix("_bias_analysis.csv").rsplit("_", 1)
        wide = pl.read_csv(path)
        frames += [
            wide.select(
                model=pl.lit(model),
                attribute=pl.lit(ATTRIBUTES[attribute]),
                trait="trait",
                template=pl.lit(f"T{int(cell['k']) + 1}"),
                what=pl.lit(cell["plain"] or "group_mean"),
                group=pl.lit(_group(cell["group"], attribute), pl.String),
                value=pl.col(name).cast(pl.Float64),
            )
            for name in wide.columns
            if (cell := _CELL.fullmatch(name))
        ]
    return pl.concat([*frames, *_wording_tests(folder)])


def _wording_tests(folder: Path) -> list[pl.DataFrame]:
    """Their tests of the wordings (`template_sensitivity_results_<model>.csv`; the column of traits is called file)."""
    begin, absent = "template_sensitivity_results_", pl.lit(None, pl.String)
    return [
        pl.read_csv(path).select(
            model=pl.lit(path.stem.removeprefix(begin)),
            attribute=absent,
            trait="file",
            template=absent,
            what=pl.lit(what),
            group=absent,
            value=pl.col(name).cast(pl.Float64),
        )
        for path in sorted(folder.glob(f"{begin}*.csv"))
        for name, what in _WORDINGS.items()
    ]


def _group(name: str | None, attribute: str) -> str | None:
    return None if name is None else name.removeprefix(f"{attribute}_")


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
    shares = [compared(model, attribute)[1].biased.mean() for attribute in ATTRIBUTES.values()]
    return 100 * float(np.mean(shares))


@cache
def valence_share(model: str, attribute: str, group: str, valence: str) -> float:
    """Per cent of positive (or negative) traits whose group mean exceeds the overall one in every wording."""
    traits, comparison = compared(model, attribute)
    valence_of = dict(read_traits().select("trait", "valence").iter_rows())
    counted = np.array([valence_of[trait] == valence for trait in traits])
    above = np.all(comparison.deviations[comparison.groups.index(group)] > 0, axis=1)
    return 100 * float(above[counted].mean())
