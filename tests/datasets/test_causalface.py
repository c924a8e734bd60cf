"""CausalFace: its layout, its crops, its brightness, and what is missing, on a drawn imitation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from causalface_imitation import imitate
from PIL import Image

from beholder.core.errors import MissingData, UnknownName
from beholder.datasets.faces import crop_box
from beholder.datasets.faces import load_causalface as load
from beholder.datasets.images import face_brightness, open_image


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imitate(tmp_path_factory.mktemp("causalface"), seeds=1)


@pytest.mark.slow
def test_every_file_of_the_design_is_a_row(folder: Path):
    dataset = load(folder)
    assert len(dataset) == 6 * (10 + 8 + 5 + 10)
    counts = dict(dataset.table.group_by("varied").len().iter_rows())
    assert counts == {"age": 60, "lighting": 48, "pose": 30, "smiling": 60}


def test_only_the_varied_attribute_has_a_level(folder: Path):
    table = load(folder).table.filter(pl.col("varied") == "pose")
    assert sorted(table["pose"].unique()) == [-3.0, -1.5, 0.0, 1.5, 3.0]
    assert table.select("age", "smiling", "lighting").null_count().row(0) == (30, 30, 30)


def test_the_released_balance_is_of_the_age_block_alone(folder: Path):
    table = load(folder).table.filter("released_balance")
    assert set(table["varied"]) == {"age"}
    assert dict(table.group_by("race").len().iter_rows()) == {"asian": 20, "black": 20, "white": 20}


def test_pictures_are_shown_as_the_study_crops_them(folder: Path):
    row = load(folder).table.filter(pl.col("pose") == 3.0).row(0, named=True)
    name = Path(row["image_id"]).name
    whole = Image.open(folder / "final_picked_pose" / "seed_1" / name).convert("RGB")
    np.testing.assert_array_equal(np.asarray(open_image(row["uri"])), np.asarray(whole.crop((80, 0, 512, 432))))


def test_smiling_variants_are_as_bright_as_the_same_person_at_zero(folder: Path):
    table = load(folder).table.filter((pl.col("varied") == "smiling") & (pl.col("race") == "black"))
    mine = table.filter(pl.col("gender") == "male")
    brightness = {row["smiling"]: face_brightness(open_image(row["uri"])) for row in mine.to_dicts()}
    for level in (-2.5, 4.0):
        assert brightness[level] == pytest.approx(brightness[0.0], rel=0.01)


def test_the_authors_own_correction_is_preferred(tmp_path: Path):
    dataset = load(imitate(tmp_path, seeds=1, corrected=True, alike=True))
    assert dataset.notes == ()
    assert dataset.table.filter(pl.col("varied") == "smiling")["image_id"].str.contains("_corrected").all()


def test_missing_files_are_reported_seed_by_seed(tmp_path: Path):
    imitate(tmp_path, seeds=1, alike=True)
    seed = tmp_path / "final_picked_age" / "seed_1"
    for name in ("white_male_age_0.8_o2.png", "asian_female_age_4.4_o2.png"):
        (seed / name).unlink()
    (tmp_path / "final_picked_smiling" / "seed_1" / "white_male_smiling_0_o2.png").unlink()
    notes = load(tmp_path).notes
    assert "age, seed_1: 2 of 60 files are missing" in notes
    assert "smiling, seed_1: 1 of 60 files are missing" in notes
    assert any("9 smiling variants keep their brightness" in note for note in notes)


def test_a_level_that_no_seed_has_is_said_once_and_missing_from_none(tmp_path: Path):
    imitate(tmp_path, seeds=2, alike=True)
    for path in tmp_path.glob("final_picked_lighting/*/*_l_5.png"):
        path.unlink()
    assert "lighting: no seed has a file for 5" in load(tmp_path).notes
    assert not any("lighting, seed" in note for note in load(tmp_path).notes)


def test_an_empty_folder_says_what_was_expected(tmp_path: Path):
    with pytest.raises(MissingData, match="final_picked_smiling"):
        load(tmp_path)


def test_the_crop_follows_the_turned_head():
    assert [crop_box("pose", value)[0] for value in (-3.0, 0.0, 1.5)] == [0, 40, 80]
    assert crop_box("smiling", -2.5) == (40, 0, 472, 432)


def test_the_control_without_adjustment_reads_the_pictures_as_made(tmp_path: Path):
    folder = imitate(tmp_path, seeds=1, corrected=True, alike=True)
    for name in [*folder.glob("final_picked_smiling/seed_1/*_corrected.png")]:
        name.with_name(name.name.replace("_corrected", "")).write_bytes(name.read_bytes())
    adjusted, made = (load(folder, {"brightness": text}) for text in ("adjusted", "as-made"))
    smiles = {data.revision: data.table.filter(varied="smiling") for data in (adjusted, made)}
    assert [table["image_id"].str.contains("_corrected").all() for table in smiles.values()] == [True, False]
    assert "brightness is as the pictures were made: not adjusted" in made.notes
    assert not any("match" in uri for uri in smiles[made.revision]["uri"])
    with pytest.raises(UnknownName, match="brightness"):
        load(folder, {"brightness": "dim"})
