"""How often a page about a model of noise has a finding as its title: every study in one report, many times.

python tools/title_false_alarms.py --runs 400

All studies that declare trials measure worlds in which nothing is there; their findings make one page. The page
promises a finding as its title in at most 6 % of such runs.
"""

import argparse

import numpy as np
import polars as pl

from beholder.calibration.claims import Cell, measured, tried_studies
from beholder.core.record import Record
from beholder.core.results import results_table
from beholder.report.answer import headline
from beholder.report.report import build_report
from beholder.studies import STUDIES
from beholder.studies.worlds import DESIGNS, MISSING, WORLDS

DESIGN, NOISE = next(iter(DESIGNS)), WORLDS[0]


def noise_title(number: int, seed: int = 20261118, world: str = NOISE) -> str | None:
    """The finding that is the title of one run about noise; None where the title is no finding."""
    tables = []
    for name in tried_studies():
        if not any(question.card for question in STUDIES[name].part("chapter").questions.values()):
            continue  # it asks nothing of a model
        rows = measured(Cell(name, DESIGN, world), np.random.default_rng([seed, number, *name.encode()]))
        dataset = STUDIES[name].asks.datasets[0] if STUDIES[name].asks.datasets else "worlds"
        tables.append(results_table(rows, study=name, model="made", dataset=dataset))
    report = build_report(pl.concat(tables), Record(), pl.DataFrame(schema={"study": pl.String, "dataset": pl.String}))
    title = headline(report, "")
    return title.text if title.finding else None


def main() -> None:
    """Count them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first run, to continue a count")
    parser.add_argument("--world", choices=(NOISE, MISSING), default=NOISE)
    options = parser.parse_args()
    titles = [noise_title(number, world=options.world) for number in range(options.first, options.first + options.runs)]
    found = [title for title in titles if title]
    share = len(found) / options.runs
    print(f"{DESIGN}, {options.world}: {len(found)} of {options.runs} runs have a finding as title ({share:.1%})")
    for title in found:
        print(f"  {title}")


if __name__ == "__main__":
    main()
