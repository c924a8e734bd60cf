"""Printed sizes of COCO, counted again in its captions."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from beholder.report.replication import ledger_of
from beholder.studies.disparity.study import PRINTED
from beholder.studies.printed import DIFFERS, NOT_MEASURED


def sizes(data: Path) -> pl.DataFrame:
    return ledger_of("disparity", PRINTED, data=data).filter(metric="disparity.count")


def test_without_data_nothing_is_counted(tmp_path: Path):
    assert PRINTED.sizes(tmp_path) == {}
    assert set(sizes(tmp_path)["verdict"]) == {NOT_MEASURED}


def test_the_number_of_concepts_is_counted_by_both_rules(tmp_path: Path):
    """101 training images show a dog and 100 a cat; one of the cat's names nobody."""
    place = tmp_path / "coco" / "annotations"
    place.mkdir(parents=True)
    categories = [{"id": 1, "name": "dog"}, {"id": 2, "name": "cat"}]
    images = [{"id": n, "file_name": f"{n}.jpg", "width": 4, "height": 4} for n in range(201)]
    boxes = [{"image_id": n, "category_id": 1 + n // 101, "bbox": [0, 0, 1, 1]} for n in range(201)]
    captions = [{"image_id": n, "caption": "a man" if n < 200 else "nobody"} for n in range(201)]
    for split in ("train2017", "val2017"):
        for kind, rows in (("instances", boxes), ("captions", captions)):
            text = json.dumps({"images": images, "annotations": rows, "categories": categories})
            (place / f"{kind}_{split}.json").write_text(text)
    size = PRINTED.sizes(tmp_path)["coco", "concepts"]
    assert size.number == 1
    assert size.hint == "concepts left out: cat (99); counted in all training images: 2"
    (place / "captions_train2017.json").unlink()
    assert PRINTED.sizes(tmp_path)["coco", "concepts"].number == 2


@pytest.mark.real
def test_another_way_to_cut_captions_explains_the_size(data: Path):
    row = sizes(data).filter(dataset="coco", concept="images").row(0, named=True)
    assert (row["value"], row["verdict"]) == (1_418, DIFFERS)
    assert row["reason"].endswith("they give 1,412")
