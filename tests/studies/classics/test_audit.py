"""The classics as a user asks them: planted truth, pictures against pictures, words on request, who cannot be asked."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

import beholder
from beholder.core.errors import ModelError, NotAskable
from beholder.core.results import results_table
from beholder.datasets.dataset import Dataset
from beholder.glasshouse.planted import implied_occupation
from beholder.glasshouse.world import residents
from beholder.metrics.association import image_association
from beholder.models.scorer import ContrastiveScorer, Floats, unit_rows
from beholder.models.spec import ModelSpec
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.classics.chapter import planted
from beholder.studies.classics.measures import class_rows, image_rows
from beholder.studies.classics.prompts import DRAWN, FACES, HURTFUL, IMAGE_TESTS, retrieval_prompts
from beholder.studies.study import MeasureOptions


class Colours(ContrastiveScorer):
    """A picture's vector is its mean colour; a text's is made of its letters."""

    def __init__(self) -> None:
        self.spec = ModelSpec("colours", "test", "none", "1", settings={"logit_scale": 20.0, "logit_bias": 0.0})

    def prepare(self, image: Image.Image) -> Floats:
        return np.asarray(image.resize((1, 1)), np.float32).ravel() + 1

    def embed_prepared(self, prepared: list[Floats]) -> Floats:  # type: ignore[override]
        return unit_rows(np.stack(prepared))

    def embed_texts(self, texts: list[str]) -> Floats:  # type: ignore[override]
        return unit_rows(np.array([[len(text), text.count("a") + 1, text.count("e") + 1] for text in texts]))


class Encoder(Colours):
    """The same without texts."""

    def embed_texts(self, texts: list[str]) -> Floats:  # type: ignore[override]
        raise NotAskable("colours has no text tower")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small FairFace, and the pictures of one image test."""
    rng, rows = np.random.default_rng(0), []
    (tmp_path / "fairface" / "val").mkdir(parents=True)
    for number in range(48):
        race, gender = ("Black", "White")[number % 2], ("Female", "Male")[number // 2 % 2]
        rows.append({"file": f"val/{number}.jpg", "age": "20-29", "gender": gender, "race": race})
        picture(rng, tmp_path / "fairface" / "val" / f"{number}.jpg")
    pl.DataFrame(rows).write_csv(tmp_path / "fairface" / "fairface_label_val.csv")
    weapon = next(test for test in IMAGE_TESTS if test.test == "Weapon")
    for category in weapon[1:]:
        (tmp_path / "ieat" / "experiments" / category).mkdir(parents=True)
        for number in range(6):
            picture(rng, tmp_path / "ieat" / "experiments" / category / f"{number}.jpg")
    return tmp_path


def picture(rng: np.random.Generator, path: Path) -> None:
    Image.fromarray(rng.integers(0, 255, (2, 2, 3), dtype=np.uint8)).resize((16, 16)).save(path)


def audit(model: ContrastiveScorer, folder: Path, **options: object) -> beholder.Run:
    places = {"data": folder, "out": folder / "run", "store": folder / "store", "draws": 100}
    return beholder.audit(model, "classics", **{**places, **options})  # type: ignore[arg-type]


def test_pictures_are_compared_with_pictures_as_their_vectors_say(folder: Path):
    run, model = audit(Colours(), folder), Colours()
    row = run.results.filter(metric="classics.image_association").row(0, named=True)
    home = folder / "ieat" / "experiments"

    def vectors(category: str) -> Floats:
        paths = sorted((home / category).iterdir())
        return model.embed_prepared([model.prepare(Image.open(path).convert("RGB")) for path in paths])

    sides = (row["group"], row["against"], *row["template"].split(" – "))
    slow = image_association(*map(vectors, sides))
    assert row["value"] == pytest.approx(slow.effect, abs=1e-4)
    p_value = run.results.filter(metric="classics.image_p")["value"].item()
    assert p_value == pytest.approx(slow.p_value)


def test_first_choices_of_a_group_are_counted_and_beliefs_add_up(folder: Path):
    run = audit(Colours(), folder, dataset="fairface")
    prompts = pl.read_csv(folder / "run" / "prompts.csv").filter(set="classes", template="a photo of")
    listed = FACES.lists["21 classes"]
    texts = [prompts.filter(concept=name)["text"].item() for name in listed]
    model, women = Colours(), pl.read_csv(folder / "fairface" / "fairface_label_val.csv").filter(gender="Female")
    pictures = [model.prepare(Image.open(folder / "fairface" / name).convert("RGB")) for name in women["file"]]
    best = (model.embed_prepared(pictures) @ model.embed_texts(texts).T).argmax(axis=1)
    crime = np.isin([listed[place] for place in best], ("thief", "criminal", "suspicious person")).mean()
    found = run.results.filter(metric="classics.share", group="Female", concept="crime-related")
    assert found.filter(template="21 classes · a photo of")["value"].item() == pytest.approx(crime)


def test_words_that_hurt_are_on_the_page_only_on_request(folder: Path):
    audit(Colours(), folder, dataset="fairface")
    page = (folder / "run" / "report.html").read_text(encoding="utf-8")
    hurtful = [*HURTFUL[3:], "suspicious person", "thief"]
    assert [word for word in hurtful if word in page and word != "animal"] == []
    assert "Words that hurt" in page
    audit(Colours(), folder, dataset="fairface", show_words=True, out=folder / "shown")
    shown = (folder / "shown" / "report.html").read_text(encoding="utf-8")
    assert [word for word in hurtful if word not in shown] == []


def test_an_image_encoder_is_asked_the_image_tests_and_the_rest_is_left_out(folder: Path):
    run = audit(Encoder(), folder)
    assert set(run.results["metric"]) == {"classics.image_association", "classics.image_p"}
    assert any("no text tower" in line for line in json.loads((folder / "run" / "run.json").read_text())["left_out"])


def test_an_image_test_without_a_picture_of_a_group_is_left_out():
    shown = IMAGE_TESTS[0][1:]
    table = pl.DataFrame({"image_id": [f"{name}.jpg" for name in shown], "category": shown})
    prompts = pl.DataFrame({"prompt_id": table["image_id"], "text": table["image_id"]})
    cosines = np.random.default_rng(1).normal(size=(4, 4, 1))
    cosines[0] = np.nan
    assert list(image_rows(ScoreMatrix("pictures", table, prompts, ("cosine",), cosines), MeasureOptions())) == []


def test_where_nothing_can_be_asked_the_reason_is_the_error(folder: Path):
    with pytest.raises(ModelError, match="no text tower"):
        audit(Encoder(), folder, dataset="fairface")
    with pytest.raises(ModelError, match="no vectors of pictures"):
        beholder.audit(
            lambda images, prompts: np.zeros((len(images), len(prompts))),
            "classics",
            data=folder,
            dataset="ieat",
            out=folder / "other",
        )


def test_a_model_that_believes_what_captions_imply_has_the_planted_beliefs():
    table = pl.DataFrame(residents()).filter(pl.col("occupation") != "")
    dataset = Dataset("glasshouse", "", "", table)
    prompts = DRAWN.prompts(show_words=False).table
    implied = [implied_occupation(work, side) for work, side in table.select("occupation", "gender").iter_rows()]
    logits = np.log([[row[word] + 1e-12 for word in prompts["concept"]] for row in implied])
    matrix = ScoreMatrix("labels", table, prompts, ("score",), logits[:, :, None], dataset=dataset)
    rows = class_rows(matrix, DRAWN, MeasureOptions(draws=100, shuffles=200))
    results = results_table(rows, study="classics", model="glasshouse/contrastive", dataset="glasshouse")
    found = dict(planted(results))
    assert len(found) == 4
    assert all(found.values())
    assert all(re.fullmatch(r".*planted (\d\.\d{3}), found \1", text) for text in found), found


def test_retrieval_asks_the_released_prompts():
    prompts = retrieval_prompts(show_words=True)
    assert len(prompts) == 11 * 29
    assert "This is the face of a noncriminal person" in prompts.texts
