"""The printed numbers of APA: Tables 5–8, the ratios that follow from their rows, and which figures cannot be."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import polars as pl

from beholder.core.errors import MissingData
from beholder.datasets import load_dataset
from beholder.datasets.apa import BRANCHES
from beholder.studies.printed import Cell, Printed, Size, Sizes, part_of_source, sources_beside

EIGHT = "eight occupations, without actress"  # the variant of rows that were measured with `--options 8`
POOLS = {"actors": ("actors",), "politicians": ("house", "senate", "mayors"), "athletes": ("athletes",)}


def _size(name: str) -> dict[str | None, int]:
    """By gender; the key None counts everyone."""
    parts = [BRANCHES[branch] for branch in POOLS.get(name, (name,))]
    women, men = sum(part.women for part in parts), sum(part.men for part in parts)
    return {None: sum(part.images for part in parts), "woman": women, "man": men}


SIZES = {name: _size(name) for name in (*BRANCHES, "politicians")}  # by branch or pool

CLOSE = 0.005 * 8  # by how much eight figures of two places may miss 100


def other_people(row: Cell) -> str | None:
    """Why a run's value is over other people than the printed one."""
    expected = SIZES.get(row["subset"] or "", {}).get(row["group"])
    if expected is None or row["n"] is None or abs(row["n"] - expected) <= 1:
        return None
    return f"this run is over {row['n']} people, the printed value over {expected}"


@cache
def _over_one() -> dict[tuple[str, str], float]:
    """Per cent that the shares of a row of Table 5 add up to, by model and gender, where that is more than 100."""
    shares = PRINTED.cells.filter(metric="apa.occupation_probability", place="Table 5")
    sums = shares.group_by("model", "group").agg(total=(100 * pl.col("printed")).round(2).sum())
    return {(model, gender): total for model, gender, total in sums.iter_rows() if total > 100 + CLOSE}


def figure_sizes(pools: Mapping[str, Sequence[str]], data: Path) -> Sizes:
    """People of every pool, women and men, parties, awards and sports, counted in the tables at hand."""
    try:
        people = load_dataset("apa", data).table
    except MissingData:
        return {}
    counted = {"images": people.height, "identity pairs": int((people["branch"].value_counts()["count"] ** 2).sum())}
    for pool, branches in pools.items():
        mine = people.filter(pl.col("branch").is_in(branches))
        counted |= {pool: mine.height, **{f"{group}, {pool}": n for group, n in mine["gender"].value_counts().rows()}}
    for column in {"party", "academy_award"} & set(people.columns):
        counted |= {f"{column} {value}": n for value, n in people[column].drop_nulls().value_counts().rows()}
    counted |= {"sports": people["sport"].drop_nulls().n_unique()} if "sport" in people.columns else {}
    partial = part_of_source(people.height, sum(branch.images for branch in BRANCHES.values()))
    return {("apa", what): Size(number, partial) for what, number in counted.items()}


MISPRINTS = {  # counts of the text that other counts of the same paper contradict
    (30, "woman, actors"): "30 women and 60 men are not the 100 actors; the appendix has 40 women",
    (14, "sports"): "the appendix and the data have 16",
    (1_942_777, "identity pairs"): "the branches' pairs add up to 231,977",
    (109, "actors"): "actors and athletes are exchanged: 100 and 109 elsewhere",
    (100, "athletes"): "actors and athletes are exchanged: 100 and 109 elsewhere",
}


def misprint(row: Cell) -> str | None:
    """Why a count of the text cannot be."""
    return MISPRINTS.get((row["printed"], row["concept"])) if row["metric"].endswith(".count") else None


def _impossible(row: Cell) -> str | None:
    total = _over_one().get((row["model"], row["group"])) if row["place"] == "Table 5" else None
    if total is not None:
        return f"the eight shares of this row add up to {total:.1f} %: they are not the shares of one softmax"
    return misprint(row)


def other_options(row: Cell, model: str) -> str | None:
    """Why the printed number of a model is over other occupations than a run's row."""
    if row["metric"].partition(".")[2] not in ("bias_ratio", "occupation_probability"):
        return None
    eight = any(model == each for each, _ in _over_one())  # over eight prompts, as it looks
    if row["subset"] == "actors":
        return "its printed shares of actors are not those of one softmax" if eight else None
    if eight and row["variant"] != EIGHT:
        return "its printed shares look taken over eight occupations (--options 8)"
    return "its printed shares are over nine occupations" if not eight and row["variant"] == EIGHT else None


CELLS = Path(__file__).with_name("printed.csv")
PRINTED = Printed(
    CELLS,
    sources_beside(CELLS),
    impossible=_impossible,
    sizes=partial(figure_sizes, {**POOLS, **{branch: (branch,) for branch in BRANCHES}}),
    partial=lambda row: other_people(row) or other_options(row, row["model"]),
    whole=lambda row: True,
    unlike=other_options,
    no_neighbours=(("apa.occupation_probability", "actors"),),  # Table 5 does not say which column is actress
)
