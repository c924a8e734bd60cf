"""A data set is a checked table: ids are unique, attributes are found or suggested, limits are per branch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import DataError, MissingData, UnknownName
from beholder.datasets import DATASETS, data_root, load_dataset
from beholder.datasets.dataset import SCHEMA, Dataset, ImageDigests


def dataset(**columns) -> Dataset:
    table = {"image_id": ["a", "b", "c"], "uri": ["1", "2", "3"], "branch": ["x", "x", "y"], **columns}
    return Dataset("toy", "1", "MIT", pl.DataFrame(table))


def test_rows_are_found_by_attribute_value():
    assert dataset().where(branch="x").table["image_id"].to_list() == ["a", "b"]


def test_an_unknown_attribute_suggests_the_nearest():
    with pytest.raises(UnknownName, match=r"(?s)toy has no attribute 'brunch'.*Did you mean 'branch'"):
        dataset().attribute("brunch")


def test_repeated_ids_are_refused_by_name():
    with pytest.raises(DataError, match="1 image ids occur more than once; the first is 'a'"):
        dataset(image_id=["a", "a", "c"])


def test_a_table_without_addresses_is_refused():
    with pytest.raises(DataError, match="lacks the column 'uri'"):
        Dataset("toy", "1", "MIT", pl.DataFrame({"image_id": ["a"]}))


def test_a_limit_counts_within_each_branch_and_keeps_the_order():
    assert dataset().limit(1, by="branch").table["image_id"].to_list() == ["a", "c"]
    assert dataset().limit(2).table["image_id"].to_list() == ["a", "c"]  # one of each branch


def test_no_limit_leaves_everything():
    assert len(dataset().limit(None, by="branch")) == 3


def test_missing_data_says_how_to_get_it(tmp_path: Path):
    with pytest.raises(MissingData, match=r"(?s)apa.*is not at.*beholder data fetch apa.*--data"):
        load_dataset("apa", tmp_path)
    with pytest.raises(MissingData, match="needs a folder"):
        load_dataset("apa", None)


def test_an_unknown_data_set_suggests():
    with pytest.raises(UnknownName, match="Did you mean 'glasshouse'"):
        load_dataset("glashouse")


def test_the_data_folder_comes_from_the_option_or_the_environment(monkeypatch, tmp_path: Path):
    assert data_root(None) is None
    monkeypatch.setenv("BEHOLDER_DATA", str(tmp_path))
    assert data_root(None) == tmp_path
    assert data_root(Path("other")) == Path("other")


def test_the_embedded_world_is_there_without_a_folder():
    world = load_dataset("glasshouse")
    assert len(world) == DATASETS["glasshouse"].images
    assert {"branch", "name", "gender"} <= set(world.attributes)


def test_equal_pictures_have_equal_digests_and_drawn_ones_have_their_own(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"picture")
    uris = [str(tmp_path / "one"), "glasshouse:thing/dog/1", str(tmp_path / "two"), str(tmp_path / "none")]
    one, drawn, two, none = ImageDigests(tmp_path / "memory").of(uris)
    assert one == two != drawn
    assert none is None


def objects(**columns) -> pl.DataFrame:
    table = {
        "image_id": ["a", "a", "c"],
        "concept": ["tie", "cup", "tie"],
        "instances": [1, 2, 1],
        "area": [0.5, 0.1, None],
        "names": [["tie"], ["cup", "mug"], ["tie"]],
        **columns,
    }
    return pl.DataFrame(table, schema=SCHEMA)


def furnished(**columns) -> Dataset:
    return replace(dataset(), objects=objects(**columns))


def test_objects_stay_in_step_with_the_rows(tmp_path: Path):
    assert furnished().concepts == ["cup", "tie"]
    assert furnished().where(branch="y").objects.rows() == [("c", "tie", 1, None, ["tie"])]
    assert furnished().limit(1).concepts == ["cup", "tie"]
    assert furnished().limit(1).objects.height == 2
    (tmp_path / "here").touch()
    uris = pl.Series("uri", ["1", "2", str(tmp_path / "here")])
    partly = replace(furnished(), table=dataset().table.with_columns(uris), partial=True)
    assert partly.present().objects["image_id"].to_list() == ["c"]


def test_a_data_set_without_objects_has_no_concepts():
    assert dataset().concepts == []
    assert dataset().where(branch="x").objects is None


def test_a_table_of_objects_is_checked():
    with pytest.raises(DataError, match=r"(?s)toy: the table of objects has.*must have exactly"):
        replace(dataset(), objects=objects().with_columns(pl.col("instances").cast(pl.Int64)))
    with pytest.raises(DataError, match=r"1 objects are in pictures that the data set does not have.*'z'"):
        furnished(image_id=["a", "a", "z"])
    with pytest.raises(DataError, match="'tie' stands twice for image 'a'"):
        furnished(concept=["tie", "tie", "cup"])
