"""Golden copies of results: what every study gave before the house was rebuilt, value by value.

`python tests/golden/runs.py` runs every command again and writes the copies anew: only after a number was found wrong.
Names of groups and numbers are kept, no prose.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import polars as pl
import pytest
from images_of_before import select_as_before
from typer.testing import CliRunner

from beholder.cli import app
from beholder.core.results import PLAIN
from beholder.studies.study import Study

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("BEHOLDER_SHARED", HERE.parents[2] / "shared"))
DATA, APA = SHARED / "data", SHARED / "golden" / "apa"
NUMBERS = ["value", "low", "high", "p_value", "chance"]
PLACE = ["study", "model", "dataset", "metric", "subset", "concept", "template", "unit"]
COMMANDS: dict[str, list[str]] = {
    "demo": ["audit"],
    "apa": [
        "measure",
        "apa",
        "--data",
        f"{DATA}",
        "--delta",
        "0.1",
        *(f"--scores={APA / file}.npy" for file in ("logits_actors", "logits_senate", "identity_logits_senate")),
    ],
    "apa-compat": ["measure", "apa", "--data", f"{DATA}", "--compat", f"--scores={APA / 'logits_actors.npy'}"],
    "pfi": ["audit", "null", "-s", "pfi", "--data", f"{DATA}", "--limit", "20"],
    "gras": [
        "audit",
        "null",
        "-s",
        "gras",
        "--data",
        f"{DATA}",
        "--limit",
        "20",
        "--delta",
        "0.02",
        "--traits",
        f"{HERE / 'traits.csv'}",
    ],
    "disparity": [
        "audit",
        "null",
        "-s",
        "disparity",
        "--data",
        f"{DATA}",
        "--calibration",
        "platt",
        "--word-vectors",
        f"{DATA / 'word2vec' / 'GoogleNews-vectors-negative300-bolukbasi.bin'}",
    ],
    "perception": [
        "audit",
        "null",
        "-s",
        "perception",
        "--dataset",
        "fairface-adults",
        "--data",
        f"{DATA}",
        "--limit",
        "40",
        "--dimensions",
        f"{HERE / 'dimensions.csv'}",
    ],
    "perception-design": [
        "audit",
        "null",
        "-s",
        "perception",
        "--limit",
        "600",
        "--dimensions",
        f"{HERE / 'dimensions.csv'}",
    ],
    "exposure": ["exposure", f"{DATA / 'coco' / 'captions_val2017.json'}", "--data", f"{DATA}"],
    "custom": [
        "audit",
        "null",
        "--dataset",
        "glasshouse",
        "--prompts",
        f"{HERE / 'prompts.csv'}",
        "--by",
        "gender",
        "--by",
        "skin_tone",
    ],
}


def run(name: str, folder: Path, *more: str) -> pl.DataFrame:
    """The results of one command, in a form that both the old and the new table take; no page is written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Study, "select", select_as_before)
        patch.setattr("beholder._steps.write_page", lambda report, folder: folder)
        patch.setenv("BEHOLDER_STORE", str(folder / "store"))
        command = [*COMMANDS[name], *more, "--out", str(folder / name), "-q"]
        done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return comparable(pl.read_parquet(folder / name / "results.parquet"))


def comparable(results: pl.DataFrame) -> pl.DataFrame:
    """Place, groups, numbers; a pair is `first | second`, whether one column names it or two."""
    group = pl.col("group").str.replace(" over | less | with ", " | ")
    if "against" in results.columns:
        pair = pl.concat_str("group", "against", separator=" | ")
        group = pl.when(pl.col("against").is_not_null()).then(pair).otherwise(group)
    return results.filter(PLAIN).select(*PLACE, group.alias("group"), *NUMBERS, "n")


if __name__ == "__main__":
    import tempfile

    for each in sys.argv[1:] or COMMANDS:
        with tempfile.TemporaryDirectory() as place:
            table = run(each, Path(place))
        table.write_parquet(HERE / f"{each}.parquet", compression="zstd", compression_level=19)
        print(each, table.height, (HERE / f"{each}.parquet").stat().st_size)
