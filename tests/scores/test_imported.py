"""Scores made elsewhere land in their cells whatever their form; what does not fit is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beholder.core.errors import BadScores
from beholder.datasets.dataset import Dataset
from beholder.prompts.prompt_set import prompt_set
from beholder.scores.imported import import_scores
from beholder.scores.score_matrix import Task
from beholder.studies.apa.prompts import identity_prompts

IMAGES = ["x/0.jpg", "x/1.jpg", "x/2.jpg"]
DATASET = Dataset("toy", "1", "MIT", pl.DataFrame({"image_id": IMAGES, "uri": IMAGES, "name": ["Ann", "Bob", "Ann"]}))
ACTOR_OR_DOG = prompt_set("w", [{"text": "This is a photo of an actor"}, {"text": "dog"}])
WORDS = Task("x/association", DATASET, ACTOR_OR_DOG, kind="association", part="x")
PEOPLE = identity_prompts("n", "this is {}", ["Ann", "Bob", "Ann"])
NAMES = Task("x/identity", DATASET, PEOPLE, kind="identity", part="x")
CELLS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def wide(path: Path, columns: list[str], cells=CELLS, images=IMAGES) -> Path:
    """A CSV with any header, repeated names included."""
    lines = [
        ",".join(["image_id", *columns]),
        *(",".join([i, *map(str, row)]) for i, row in zip(images, cells, strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def long(path: Path, rows: list[tuple[str, str, float]]) -> Path:
    pl.DataFrame(rows, schema=["image_id", "prompt_id", "score"], orient="row").write_parquet(path)
    return path


def values(paths, tasks=(WORDS,)) -> np.ndarray:
    return import_scores(paths, list(tasks)).matrices[0].values[:, :, 0]


def test_wide_and_long_and_parquet_and_csv_say_the_same(tmp_path: Path):
    names = WORDS.prompts.texts
    csv = wide(tmp_path / "w.csv", names)
    table = pl.read_csv(csv)
    table.write_parquet(tmp_path / "w.parquet")
    rows = [(IMAGES[i], names[j], CELLS[i, j]) for j in (1, 0) for i in (2, 0, 1)]
    for path in (csv, tmp_path / "w.parquet", long(tmp_path / "l.parquet", rows)):
        assert (values([path]) == CELLS).all()


def test_columns_in_any_order_with_blanks_and_either_article_find_their_prompt(tmp_path: Path):
    path = wide(tmp_path / "w.csv", ["dog", " This is a photo of  a actor"])
    assert (values([path]) == CELLS[:, ::-1]).all()


def test_several_files_fill_one_sheet(tmp_path: Path):
    one = wide(tmp_path / "1.csv", ["dog"], CELLS[:, 1:])
    two = wide(tmp_path / "2.csv", WORDS.prompts.texts[:1], CELLS[:, :1])
    assert (values([one, two]) == CELLS).all()


def test_what_is_not_covered_is_absent_and_said(tmp_path: Path):
    imported = import_scores([wide(tmp_path / "w.csv", ["dog"], CELLS[:2, 1:], IMAGES[:2])], [WORDS])
    cells = imported.matrices[0].values[:, :, 0]
    assert np.isnan(cells[:, 0]).all()
    assert np.isnan(cells[2]).all()
    assert imported.left_out == ["x/association: no score for 1 of 3 images and 1 of 2 prompts"]


def test_empty_cells_are_absent_not_zero(tmp_path: Path):
    path = tmp_path / "w.csv"
    path.write_text("image_id,dog\nx/0.jpg,\nx/1.jpg,0\n")
    np.testing.assert_array_equal(values([path])[:, 1], [np.nan, 0.0, np.nan])


def test_what_the_study_does_not_know_is_said(tmp_path: Path):
    path = wide(tmp_path / "w.csv", ["dog", "cat"], images=["x/0.jpg", "x/1.jpg", "other.jpg"])
    left_out = "\n".join(import_scores([path], [WORDS]).left_out)
    assert "1 images are not part of the study, such as 'other.jpg'" in left_out
    assert "1 prompts are not part of the study, such as 'cat'" in left_out


def test_a_column_of_words_that_is_no_prompt_is_left_out_and_said(tmp_path: Path):
    path = tmp_path / "w.csv"
    path.write_text("image_id,dog,taken by\nx/0.jpg,1,me\nx/1.jpg,2,you\n")
    found = import_scores([path], [WORDS])
    assert found.matrices[0].values[:2, 1, 0].tolist() == [1, 2]
    assert "1 prompts are not part of the study, such as 'taken by'" in "\n".join(found.left_out)


def test_a_table_with_tabs_is_read_by_its_ending(tmp_path: Path):
    (tmp_path / "w.tsv").write_text("image_id\tdog\nx/0.jpg\t7\n")
    assert values([tmp_path / "w.tsv"])[0, 1] == 7


def test_ids_are_taken_as_they_are_written(tmp_path: Path):
    """A reader that guesses makes 7 of 007, and a date of 2020-01-01."""
    images = ["007", "2020-01-01", "true"]
    dataset = Dataset("toy", "1", "MIT", pl.DataFrame({"image_id": images, "uri": images}))
    task = Task("t", dataset, prompt_set("w", [{"text": "1e3"}, {"text": "01"}]))
    for image in images:
        (tmp_path / "w.csv").write_text(f"image_id,01\n{image},5\n")
        (tmp_path / "l.csv").write_text(f"image_id,prompt_id,score\n{image},01,5\n")
        for name in ("w.csv", "l.csv"):
            assert values([tmp_path / name], [task])[images.index(image), 1] == 5


def test_prompts_that_differ_in_blanks_only_keep_apart(tmp_path: Path):
    """Two people may be called Jo Smith and Jo  Smith."""
    people = pl.DataFrame({"image_id": IMAGES, "uri": IMAGES, "name": ["Jo Smith", "Jo  Smith", "Bob"]})
    task = Task("names", Dataset("toy", "1", "MIT", people), identity_prompts("n", "{}", people["name"].to_list()))
    cells = np.arange(9.0).reshape(3, 3)
    path = wide(tmp_path / "w.csv", ["Jo Smith", "Jo  Smith", " Bob "], cells)
    assert (values([path], [task]) == cells).all()


def test_a_person_with_two_rows_may_have_two_columns(tmp_path: Path):
    cells = np.arange(9.0).reshape(3, 3)
    ann, bob = "this is Ann", "this is Bob"
    csv = wide(tmp_path / "w.csv", [ann, bob, ann], cells)
    rows = [(IMAGES[i], name, cells[i, j]) for i in range(3) for j, name in enumerate((ann, bob, ann))]
    np.save(tmp_path / "identity_logits_x.npy", cells)
    arrow = pa.table([pa.array(IMAGES), *(pa.array(cells[:, j]) for j in range(3))], names=["image_id", ann, bob, ann])
    pq.write_table(arrow, tmp_path / "w.parquet")
    for path in (csv, long(tmp_path / "l.parquet", rows), tmp_path / "identity_logits_x.npy", tmp_path / "w.parquet"):
        matrix = import_scores([path], [NAMES]).matrices[0]
        assert matrix.prompts["concept"].to_list() == ["Ann", "Ann", "Bob"]
        assert (matrix.values[:, :, 0] == cells[:, [0, 2, 1]]).all()


def test_a_repeated_column_with_the_same_values_is_one_column(tmp_path: Path):
    cells = CELLS[:, [0, 1, 0]]
    matrix = import_scores(
        [wide(tmp_path / "w.csv", ["this is Ann", "this is Bob", "this is Ann"], cells)], [NAMES]
    ).matrices[0]
    assert matrix.prompts["concept"].to_list() == ["Ann", "Bob"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,dog\nx/0.jpg,1\n", "column 'image_id' is missing"),
        ("image_id,dog\nx/0.jpg,high\n", "column 'dog' holds something that is not a number"),
        ("image_id,dog\nx/0.jpg,inf\n", "infinite"),
        ("image_id,dog\nx/0.jpg,1\nx/0.jpg,2\n", "'x/0.jpg' occurs more than once"),
        ("image_id,dog\nx/0.jpg,1,2\n", "cannot be read"),
        ("image_id,dog,dog\nx/0.jpg,1,2\n", "2 different scores for one image"),
        ("image_id,cat\nx/0.jpg,1\n", r"(?s)No score.*'x/0.jpg'.*'This is a photo of an actor'"),
        ("image_id,prompt_id,score\nx/0.jpg,,1\n", "has no id"),
    ],
)
def test_a_bad_file_is_refused_with_the_reason(tmp_path: Path, text: str, message: str):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(BadScores, match=message):
        import_scores([tmp_path / "bad.csv"], [WORDS])


def test_conflicting_files_are_refused_by_cell(tmp_path: Path):
    one, two = (wide(tmp_path / "1.csv", ["dog"], CELLS[:, :1]), wide(tmp_path / "2.csv", ["dog"], CELLS[:, 1:]))
    with pytest.raises(BadScores, match=r"'x/0.jpg' × 'dog' has a different score"):
        import_scores([one, two], [WORDS])


def test_arrays_of_the_wrong_shape_or_name_are_refused(tmp_path: Path):
    np.save(tmp_path / "logits_x.npy", np.zeros((2, 2)))
    with pytest.raises(BadScores, match=r"shape \(2, 2\), expected \(3, 2\)"):
        import_scores([tmp_path / "logits_x.npy"], [WORDS])
    np.save(tmp_path / "something.npy", np.zeros((2, 2)))
    with pytest.raises(BadScores, match=r"Expected one of: logits_x.npy"):
        import_scores([tmp_path / "something.npy"], [WORDS])


def test_an_infinite_score_in_an_array_is_refused(tmp_path: Path):
    np.save(tmp_path / "logits_x.npy", np.array([[np.inf, 1.0], [0.0, 1.0], [0.0, 1.0]]))
    with pytest.raises(BadScores, match="the array holds an infinite score"):
        import_scores([tmp_path / "logits_x.npy"], [WORDS])


def test_a_pickled_array_is_not_executed(tmp_path: Path):
    np.save(tmp_path / "logits_x.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(BadScores, match="is not a NumPy array file"):
        import_scores([tmp_path / "logits_x.npy"], [WORDS])


def test_a_missing_file_is_said(tmp_path: Path):
    with pytest.raises(BadScores, match="no score file at"):
        import_scores([tmp_path / "none.csv"], [WORDS])


def test_a_detectors_boxes_are_the_presence_of_concepts(tmp_path: Path):
    records = [
        {"image_id": "x/0.jpg", "category_id": 7, "bbox": [0, 0, 4, 4], "score": 0.9},
        {"image_id": "x/0.jpg", "category_id": 7, "bbox": [1, 1, 2, 2], "score": 0.4},
        {"image_id": "x/2.jpg", "category_id": 7, "bbox": [0, 0, 4, 4], "score": 0.6},
    ]
    (tmp_path / "boxes.json").write_text(json.dumps(records))
    labels = {"categories": [{"id": 7, "name": "dog"}, {"id": 8, "name": "actor"}]}
    (tmp_path / "boxes.labels.json").write_text(json.dumps(labels))
    words = prompt_set("w", [{"text": "a dog", "concept": "dog"}])
    (matrix,) = import_scores([tmp_path / "boxes.json"], [Task("x", DATASET, words)]).matrices
    assert matrix.values[:, 0, 0].tolist() == [0.9, 0.0, 0.6]


@pytest.mark.parametrize("part", ["new_york", "a over b", "logits_x", "٣ · 🦉|x"])
def test_an_array_is_matched_by_the_part_of_its_task_whatever_it_is_called(tmp_path: Path, part: str):
    tasks = [Task(str(n), DATASET, ACTOR_OR_DOG, kind="association", part=each) for n, each in enumerate(("x", part))]
    np.save(tmp_path / f"logits_{part}.npy", CELLS)
    other, matrix = import_scores([tmp_path / f"logits_{part}.npy"], tasks).matrices
    assert (matrix.values[:, :, 0] == CELLS).all()
    assert np.isnan(other.values).all()
