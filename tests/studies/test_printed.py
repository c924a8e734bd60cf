"""The packaged cells are the reference tables, cell by cell, in our names and units."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from beholder.report.replication import _OURS as OURS
from beholder.report.replication import ledger_of, printed_text
from beholder.studies import STUDIES
from beholder.studies.printed import CELL, PLACE, Printed, Source, part_of_source, printed_of

Wide = Iterator[dict[str, str]]
Place = tuple[str | None, ...]
PRINTED = {name: printed for name in STUDIES if (printed := printed_of(name))}


def cell(model: str, metric: str, **names: str | None) -> Place:
    return model, metric, *(names.get(name) for name in ("dataset", "subset", "group", "against", "concept"))


def gender_bias(study: str, rows: Wide) -> Iterator[tuple[Place, str]]:
    """Shares as probabilities; women among actors are actresses; both rows of a model print one ratio."""
    for row in rows:
        pool, model, gender = row.pop("subset", "politicians"), row.pop("model"), row.pop("gender")
        row.pop("table", None)
        yield cell(model, f"{study}.bias_ratio", dataset="apa", subset=pool), row.pop("ratio")
        for occupation, percent in row.items():
            renamed = (pool, gender, occupation) == ("actors", "woman", "actor")
            names = {"subset": pool, "group": gender, "concept": "actress" if renamed else occupation}
            place = cell(model, f"{study}.occupation_probability", dataset="apa", **names)
            yield place, str(Decimal(percent) / 100)


def identity(study: str, rows: Wide) -> Iterator[tuple[Place, str]]:
    """APA's Text Score is given a name; P-FI's, as its caption defines it, is given an image."""
    given = {"image": "image", "text": "name"} if study == "apa" else {"image": "name", "text": "image"}
    metric = {side: f"{study}.identity_given_{what}" for side, what in given.items()}
    for row in rows:
        model = row.pop("model")
        for column, percent in row.items():
            branch, side = column.split("_")
            yield cell(model, metric[side], dataset="apa", subset=branch), str(Decimal(percent) / 100)


def gras_scores(study: str, rows: Wide) -> Iterator[tuple[Place, str]]:
    for row in rows:
        yield cell(row["model"], "gras.bias_score", dataset="gras"), row["gras_bias_score"]
        if row["model"] != "Phi-4-multimodal-instruct":  # the abstract's table has the other four
            yield cell(row["model"], "gras.fairness_score", dataset="gras"), row["unbiased_share_as_in_the_abstract"]


PAIRS = {
    "row1_label_white-black": ("white", "black"),
    "row2": ("asian", "black"),
    "row3": ("asian", "white"),
    "row4": ("male", "female"),
}
METRICS = {
    "markedness_pct": "markedness",
    "mean_cosine_pct": "mean_cosine",
    "sc_weat": "sc_weat",
    "skew_at_1000": "skew",
    "maxskew_at_1000": "max_skew",
    "ndkl": "ndkl",
}


def table_s1(study: str, rows: Wide) -> Iterator[tuple[Place, str]]:
    for row in rows:
        what, category = row.pop("metric"), row.pop("category")
        group, against = PAIRS.get(category, (category, None))
        whole = category in ("gender", "race")
        attribute = category if whole else "gender" if group in ("male", "female") else "race"
        concept = {"markedness_pct": group, "mean_cosine_pct": None}.get(what, "mean")
        for name, text in row.items():
            names = {"subset": attribute, "group": None if whole else group, "against": against, "concept": concept}
            dataset = name if name == "causalface" else f"{name}-adults"
            value = str(Decimal(text) / 100) if what == "mean_cosine_pct" else text
            yield cell("ViT-B/32", f"perception.{METRICS[what]}", dataset=dataset, **names), value


def table_s2(study: str, rows: Wide) -> Iterator[tuple[Place, str]]:
    scales = {"A+/A-": "agency", "BP/BC": "belief", "C+/C-": "communion"}
    for row in rows:
        scale = scales.get(row.pop("dimensions"))
        pair = {"group": f"{scale}_pos", "against": f"{scale}_neg", "concept": f"{scale}_pos"}
        names = pair if scale else {"concept": "mean"}
        for column, text in row.items():
            attribute, kind = column.split("_")
            metric = "perception.opposites_r" + {"r": "", "p": ".p_value"}[kind]
            if text:
                yield cell("ViT-B/32", metric, dataset="causalface", subset=attribute, **names), text


READERS: dict[str, tuple[str, Callable[[str, Wide], Iterator[tuple[Place, str]]]]] = {
    "apa_gender_bias": ("apa", gender_bias),
    "apa_identity": ("apa", identity),
    "pfi_gender_bias": ("pfi", gender_bias),
    "pfi_retention": ("pfi", identity),
    "gras_scores": ("gras", gras_scores),
    "perception_table_s1": ("perception", table_s1),
    "perception_table_s2": ("perception", table_s2),
}


@pytest.mark.real
@pytest.mark.parametrize("name", list(READERS))
def test_the_packaged_cells_are_the_reference_table(name: str, shared: Path) -> None:
    """Every printed figure, exactly, and nothing else; a figure that is printed twice is the same twice."""
    study, read = READERS[name]
    theirs: dict[Place, object] = {}
    with (shared / "reference" / f"{name}.csv").open(encoding="utf-8") as file:
        for place, text in read(study, csv.DictReader(file)):
            value = text if text.startswith("<") else float(text)
            assert theirs.setdefault(place, value) == value
    columns = ("model", "metric", "dataset", "subset", "group", "against", "concept", "printed")
    rows = PRINTED[study].table.filter(source=name).select(columns).rows()
    ours = {row[:-1]: row[-1] if row[-1].startswith("<") else float(row[-1]) for row in rows}
    assert len(ours) == len(rows)
    assert ours == theirs


def test_every_printed_number_has_one_cell() -> None:
    """Counted from the tables' own shapes: occupations for two genders and a ratio, and so on."""
    cells = pl.concat(printed.cells for printed in PRINTED.values())
    sizes = {str(name): n for name, n in cells.group_by("source").len().iter_rows()}
    assert sizes == {
        "apa_gender_bias": 39 * 3 * (2 * 8 + 1),
        "apa_identity": 39 * 10,
        "apa_text": 7 + 5 * 2 + 3 + 1 + 2 + 4,
        "pfi_text": 3 + 2,
        "gras_text": 3 + 4,
        "pfi_gender_bias": 5 * (2 * 7 + 1),
        "pfi_retention": 9 * 6,
        "gras_scores": 5 + 4,
        "gras_valence": 1,
        "perception_table_s1": 23 * 3,
        "perception_table_s2": 3 * 4 + 3 * 3,
        "perception_text": 3,
        "disparity_text": 6,
        "clip_replication": 7 * 2,
        "ieat_results": 3 * 39 * 2,
        "genderbias_vl": 15 * 2,
    }
    twice = cells.filter(cells.select(PLACE).is_duplicated())["source"].unique()
    assert set(twice) == {"apa_text", "pfi_text"}  # where two places of a paper contradict each other


@pytest.mark.parametrize("study", list(PRINTED))
def test_every_cell_is_of_a_declared_source_and_metric(study: str) -> None:
    printed = PRINTED[study]
    cells = pl.concat([printed.cells.select(list(CELL)), *([printed.more()] if printed.more else [])])
    assert set(cells["source"]) == {source.name for source in printed.sources}
    metrics = {metric.removesuffix(".p_value") for metric in cells["metric"]}
    assert metrics - {f"{study}.count"} <= {metric.name for metric in STUDIES[study].measures.metrics}


def test_a_cell_holds_what_the_table_prints() -> None:
    place = {"model": "RN50", "metric": "apa.occupation_probability", "subset": "athletes", "group": "man"}
    row = PRINTED["apa"].cells.filter(concept="teacher", **place).row(0, named=True)
    assert (row["place"], row["step"]) == ("Table 7", 1e-4)


def test_a_text_such_as_below_001_counts_as_a_printed_number_and_is_no_neighbour(tmp_path: Path) -> None:
    file = tmp_path / "printed.csv"
    lines = [",".join(CELL), "t,Table 1,ViT-B-32,d,x.y,,,,,,<0.01,0.01,p", "t,Table 1,other,d,x.y,,,,,,0.5,0.01,p"]
    file.write_text("\n".join(lines))
    printed = Printed(file, (Source("t", "Paper, Table 1", "one figure", ("Read with care.",)),))
    assert printed.table["printed"].to_list() == ["<0.01", "0.5"]
    assert printed.cells["printed"].to_list() == [0.005, 0.5]
    assert printed.neighbours("x.y").rows() == [("other", 0.5)]
    assert printed.provenance("x.y") == ("Published: Paper, Table 1; one figure.", "Read with care.")
    assert printed.provenance("x.z") == ()
    run = {"dataset": "d", "metric": "x.y", "n": 9, "origin": "run", "model": "ViT-B/32", "note": None}
    for value, verdict in {0.0: "equal within rounding", 0.009: "equal within rounding", 0.02: "differs"}.items():
        own = pl.DataFrame([{**run, "study": "x", "value": value}], schema={"study": pl.String, **OURS})
        row = ledger_of("x", printed, own).filter(metric="x.y", model="ViT-B/32").row(0, named=True)
        assert (row["verdict"], printed_text(row)) == (verdict, "<0.01")


def test_what_a_run_on_some_of_the_images_gives_is_not_counted(tmp_path: Path) -> None:
    file = tmp_path / "printed.csv"
    file.write_text("\n".join([",".join(CELL), "t,Table 1,ViT-B/32,d,x.y,,,,,,0.50,0.01,p"]))
    own = {"study": "x", "dataset": "d", "metric": "x.y", "n": 9, "origin": "run", "model": "ViT-B/32", "value": 0.5}
    table = pl.DataFrame([own], schema={"study": pl.String, **OURS})
    part = {"d": "this run is over 9 of 90 images"}
    for whole, parts, verdict in (
        (False, {}, "equal within rounding"),
        (False, part, "not measured"),
        (True, part, "equal within rounding"),
    ):
        source = (Source("t", "Paper, Table 1", "one figure"),)
        printed = Printed(file, source, whole=lambda row, whole=whole: whole)
        row = ledger_of("x", printed, table, None, parts).row(0, named=True)
        assert (row["verdict"], row["reason"]) == (verdict, part["d"] if verdict == "not measured" else None)


def test_a_study_without_printed_numbers_has_none() -> None:
    assert printed_of("custom") is None
    assert printed_of("no such study") is None


def test_a_part_of_the_source_does_not_compare():
    assert part_of_source(2, 1000) == "2 of the source's 1,000 images are in the tables here"
    assert part_of_source(1000, 1000) is None
