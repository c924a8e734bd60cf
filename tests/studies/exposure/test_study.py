"""From caption files to a run folder, through the command line: planted counts come back, and nobody is named."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from beholder._run import load_run
from beholder.cli import app
from beholder.datasets import load_dataset
from beholder.studies.exposure.measures import EVERYONE, TYPICAL
from beholder.studies.exposure.mentions import people_table

LITTLE = ("--draws", "100")


def beholder(*words: object) -> Any:
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A copy of APA's layout with made-up people: ten women and ten men among the senators, and mayors of both."""
    folder = tmp_path / "data" / "apa" / "benchmark-data-v1"
    folder.mkdir(parents=True)
    for branch, size in (("senate", 20), ("mayors", 12)):
        rows = [f"{i:03}.jpg\tPerson{i} of {branch}\t{'woman' if i % 2 else 'man'}\tx" for i in range(size)]
        (folder / f"{branch}.txt").write_text("\n".join(["filename\tnames\tgender\tparty", *rows]) + "\n")
    return tmp_path / "data"


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """Woman i of the senate is named i times, man i three times as often; mayors never."""
    lines = [f"PERSON{i} OF SENATE's visit {time}" for i in range(20) for time in range(i if i % 2 else 3 * i)]
    path = tmp_path / "captions.tsv.gz"
    rows = "".join(f"{line}\tu\n" for line in [*lines, "an actress", "the Vice President", ""])
    path.write_bytes(gzip.compress(f"caption\turl\n{rows}broken\n".encode()))
    return path


def test_planted_counts_come_back(tables: Path, captions: Path, tmp_path: Path, undrawn: list[object]):
    out = tmp_path / "out"
    done = beholder("exposure", captions, "--data", tables, "--out", out, "--people", *LITTLE)
    assert done.exit_code == 0, done.output
    people = pl.read_csv(out / "people.csv")
    senate = people.filter(branch="senate")["captions"].to_list()
    assert senate == [i if i % 2 else 3 * i for i in range(20)]
    assert people.filter(branch="mayors")["captions"].sum() == 0
    results = load_run(out).results
    women = results.filter(metric="exposure.captions", subset="senate", group="woman").row(0, named=True)
    assert (women["value"], women["n"]) == (10.0, 10)
    typical = results.filter(metric="exposure.ratio", subset="senate", concept=TYPICAL)["value"][0]
    expected = np.prod([1 + i for i in range(1, 20, 2)]) / np.prod([1.0 + 3 * i for i in range(0, 20, 2)])
    assert typical == pytest.approx(expected ** (1 / 10))
    words = dict(results.filter(metric="exposure.category").select("concept", "value").iter_rows())
    assert (words["actress"], words["vice president"], words["president"], words["actor"]) == (1, 1, 0, 0)
    record = load_run(out).record
    assert record.models[0]["captions"] == sum(senate) + 2
    assert len(record.models[0]["digest"]) == 20
    assert [line.partition(": ")[2] for line in record.left_out] == [
        "empty captions: 1",
        f"malformed records: 1, the first is record {sum(senate) + 4}; captions read: {sum(senate) + 2:,}",
    ]


def test_nobody_is_named_unless_asked_for(tables: Path, captions: Path, tmp_path: Path, undrawn: list[object]):
    out = tmp_path / "out"
    done = beholder("exposure", captions, "--data", tables, "--out", out, *LITTLE)
    assert done.exit_code == 0, done.output
    files = sorted(path.name for path in out.iterdir())
    assert files == ["findings.json", "report.html", "report.png", "results.csv", "results.parquet", "run.json"]
    for path in (out / file for file in files if not file.endswith(("parquet", "png"))):
        assert "person1 of" not in path.read_text().lower()
    assert "person1 of" not in done.output.lower()


def test_json_is_one_document_with_the_results(tables: Path, captions: Path, tmp_path: Path, undrawn: list[object]):
    done = beholder(
        "exposure", captions, captions, "--data", tables, "--out", tmp_path / "out", "--json", "-q", *LITTLE
    )
    said = json.loads(done.stdout)
    assert {row["study"] for row in said["results"]} == {"exposure"}
    assert {row["model"] for row in said["results"]} == {"captions.tsv.gz and 1 more"}
    assert len(said["left_out"]) == 4


def test_an_audit_is_not_overwritten(tables: Path, captions: Path, tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.parquet").touch()
    done = beholder("exposure", captions, "--data", tables, "--run", tmp_path / "run", "--out", tmp_path / "run")
    assert "holds another run, which is not overwritten" in str(done.exception)


def test_the_metrics_are_listed():
    listed = json.loads(beholder("list", "metrics", "--json").stdout)
    assert {"exposure.captions", "exposure.identity_gap"} <= {row["metric"] for row in listed}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.txt"], "no caption file"),
        (["captions.txt", "--run", "nowhere"], "not a run folder"),
        (["captions.tsv", "--column", "alt"], "no column 'alt'"),
        (["captions.txt", "--engine", "spark"], "spark"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_written(
    words: list[str], said: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("captions.txt").write_text("a caption")
    Path("captions.tsv").write_text("caption\turl\na\tu\n")
    done = beholder("exposure", *words, "--data", tables, "--out", "out")
    assert said in str(done.exception)
    assert not Path("out").exists()


@pytest.mark.real
@pytest.mark.slow
def test_coco_hardly_names_anyone_and_says_so(data: Path, tmp_path: Path, undrawn: list[object]):
    captions, out = data / "coco" / "captions_val2017.json", tmp_path / "out"
    done = beholder("exposure", captions, "--data", data, "--out", out, *LITTLE)
    assert done.exit_code == 0, done.output
    results = load_run(out).results
    texts = [each["caption"].lower() for each in json.loads(captions.read_text())["annotations"]]
    clear = people_table(load_dataset("apa", data)).filter(pl.col("ambiguous").is_null())["name"]
    whole = "\n".join(texts)
    written = [name.lower() for name in clear if name.lower() in whole]  # a search for each name would take 20 s
    named = sum(re.search(rf"\b{re.escape(name)}\b", whole) is not None for name in written)
    never = results.filter(metric="exposure.never", subset=EVERYONE)
    assert round(((1 - never["value"]) * never["n"]).sum()) == named == 2
    dogs = results.filter(concept="dog").row(0, named=True)
    assert dogs["n"] == len(texts) == 25014
    assert dogs["value"] == sum("dog" in "".join(c if c.isalnum() else " " for c in text).split() for text in texts)
    assert results.filter(metric="exposure.ratio", subset="senate")["value"].to_list() == [None]


@pytest.mark.real
@pytest.mark.slow
def test_an_audits_identity_scores_stand_beside_the_counts(
    data: Path, golden: Path, tmp_path: Path, undrawn: list[object]
):
    """Captions planted by how much the right name's logit stands out: the rank correlation is high."""
    run, scores = tmp_path / "run", golden / "identity_logits_senate.npy"
    assert beholder("measure", "apa", "--scores", scores, "--data", data, "--out", run, *LITTLE).exit_code == 0
    logits = np.load(scores).astype(float)
    right = np.diag(logits) - logits.mean(axis=0)
    names = load_dataset("apa", data).where(branch="senate").table["name"].to_list()
    lines = [name for name, rank in zip(names, right.argsort().argsort(), strict=True) for _ in range(rank)]
    (tmp_path / "captions.txt").write_text("\n".join(lines))
    out = tmp_path / "out"
    done = beholder("exposure", tmp_path / "captions.txt", "--data", data, "--run", run, "--out", out, *LITTLE)
    assert done.exit_code == 0, done.output
    assert [entry["name"] for entry in load_run(out).record.models] == ["captions.txt", "imported"]
    rows = load_run(out).results.filter(metric="exposure.identity_correlation")
    ((model, subset, value, verdict),) = rows.select("model", "subset", "value", "verdict").rows()
    assert (model, subset, verdict) == ("imported", "senate", "difference found")
    assert value > 0.8
