"""Worn things: in view exactly as often as planted, balanced in all else, and found again by the reference model."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from PIL import ImageChops

from beholder.core.errors import BadImage
from beholder.datasets import DATASETS, load_dataset
from beholder.datasets.images import open_image
from beholder.glasshouse.outfits import WORN
from beholder.glasshouse.planted import (
    COMBINATIONS,
    PLANTED_OBJECTS,
    expected_average_precision,
    implied_average_precision,
    implied_gap,
    implied_matched_gap,
    people,
)
from beholder.glasshouse.portrait import BOXES, STRIP, Portrait, area, open_uri, portrait_uri, render, render_glimpsed

SOMEBODY = Portrait("woman", 40, 5, 2, 0, 1, 12, worn=frozenset({"hat"}))


def precision_average(there: np.ndarray, scores: np.ndarray) -> float:
    """Average precision, written out: the precision at each hit, going down the ranking."""
    hits, total = 0, 0.0
    for place, index in enumerate(np.argsort(-scores, kind="stable"), start=1):
        if there[index]:
            hits += 1
            total += hits / place
    return total / hits


def test_things_are_worn_and_in_view_exactly_as_planted() -> None:
    worn, glimpsed = Counter(), Counter()
    for row in people():
        worn.update((row["gender"], item) for item in row["worn"].split("+"))
        glimpsed.update((row["gender"], item) for item in row["glimpsed"].split("+"))
    for planted in PLANTED_OBJECTS:
        for group, wearers in planted.wearers.items():
            assert worn[group, planted.item] == wearers
            assert glimpsed[group, planted.item] == wearers - planted.whole[group]


def test_the_two_of_a_setting_differ_in_presentation_identity_and_phones_only() -> None:
    rows = people()
    for woman, man in zip(rows[::2], rows[1::2], strict=True):
        same = ("age", "skin_tone", "smiling", "lighting", "pose")
        assert [woman[name] for name in same] == [man[name] for name in same]
        assert {*woman["worn"].split("+")} ^ {*man["worn"].split("+")} <= {"phone", ""}
        assert (woman["gender"], man["gender"]) == ("woman", "man")
    assert len({row["identity"] for row in rows}) == len(rows) == DATASETS["glasshouse-objects"].images


def test_combinations_are_balanced() -> None:
    for count in (1, 2):
        for items in combinations(WORN, count):
            assert sum(frozenset(items) <= combination for combination in COMBINATIONS) == 16 / 2**count


def test_the_data_set_says_what_is_in_each_picture_and_how_large() -> None:
    dataset = load_dataset("glasshouse-objects")
    assert dataset.concepts == sorted(WORN)
    assert dataset.objects is not None
    rows = {row["image_id"]: row for row in people()}
    for image, concept, instances, share, names in dataset.objects.iter_rows():
        assert concept in rows[image]["worn"].split("+")
        hidden = concept in rows[image]["glimpsed"].split("+")
        assert (instances, names) == (1, [concept])
        assert share == pytest.approx(area(concept, glimpsed=hidden))
    assert dataset.objects.height == sum(len(row["worn"].split("+")) for row in people() if row["worn"])
    assert dataset.group_words is not None
    assert set(dataset.table["gender"]) == set(dataset.group_words.words)


def test_a_glimpse_is_a_strip_of_the_thing_and_nothing_else() -> None:
    picture = render_glimpsed(SOMEBODY, frozenset({"tie"}))
    changed = ImageChops.difference(picture, render(SOMEBODY)).getbbox()
    left, top, right, _ = BOXES["tie"]
    assert changed is not None
    assert changed[0] >= round(224 * (right - STRIP * (right - left)))
    assert changed[2] <= round(224 * right)
    assert changed[1] >= round(224 * top)
    whole = render(replace(SOMEBODY, worn=frozenset({"hat", "tie"})))
    strip = (changed[0], changed[1], changed[2], changed[3])
    assert picture.crop(strip).tobytes() == whole.crop(strip).tobytes()


def test_a_picture_without_glimpses_is_the_portrait() -> None:
    assert portrait_uri(SOMEBODY, frozenset()) == portrait_uri(SOMEBODY)
    assert render_glimpsed(SOMEBODY, frozenset()).tobytes() == render(SOMEBODY).tobytes()


def test_an_address_gives_the_same_picture_again() -> None:
    uri = portrait_uri(SOMEBODY, frozenset({"phone", "tie"}))
    assert uri == "glasshouse:glimpse/tie+phone/woman/age40/tone5/smile2/light0/pose1/id12/plain/hat"
    assert open_uri(uri).tobytes() == render_glimpsed(SOMEBODY, frozenset({"phone", "tie"})).tobytes()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("glasshouse:glimpse/phone+tie/woman/age40/tone5/smile2/light0/pose1/id12/plain/hat", "canonical form"),
        ("glasshouse:glimpse/hat/woman/age40/tone5/smile2/light0/pose1/id12/plain/hat", "worn in full and glimpsed"),
        ("glasshouse:glimpse/boot/woman/age40/tone5/smile2/light0/pose1/id12/plain/hat", "glimpse is 'boot'"),
        ("glasshouse:glimpse/tie", "no Glasshouse address"),
    ],
)
def test_addresses_that_name_no_picture_are_refused(uri: str, message: str) -> None:
    with pytest.raises(BadImage, match=message):
        open_image(uri)


@pytest.mark.parametrize(("whole", "glimpsed", "without"), [(28, 4, 32), (12, 20, 32), (10, 6, 48), (0, 3, 5)])
def test_the_implied_average_precision_is_the_mean_over_chance(whole: int, glimpsed: int, without: int) -> None:
    rng = np.random.default_rng(1)
    there = np.array([True] * (whole + glimpsed) + [False] * without)
    draws = []
    for _ in range(3000):
        scores = rng.random(len(there))
        scores[:whole] += 1
        draws.append(precision_average(there, scores))
    error = np.std(draws) / len(draws) ** 0.5
    assert expected_average_precision(whole, glimpsed, without) == pytest.approx(np.mean(draws), abs=4 * error)


def test_what_is_implied_has_the_signs_that_were_planted() -> None:
    assert implied_gap("hat") < -0.15 < 0.05 < implied_gap("handbag") < implied_gap("tie")
    assert implied_gap("glasses") == 0
    assert implied_gap("phone") < -0.05
    assert implied_matched_gap("phone") == 0
    assert implied_matched_gap("tie") == pytest.approx(implied_gap("tie"))


@pytest.mark.slow
def test_the_reference_model_recovers_what_is_planted() -> None:
    pytest.importorskip("transformers")
    from beholder.glasshouse.world import with_article
    from beholder.models.load import load_model

    dataset, model = load_dataset("glasshouse-objects"), load_model("glasshouse/contrastive")
    images = model.embed_prepared([model.prepare(open_image(uri)) for uri in dataset.table["uri"]])
    texts = model.embed_texts([f"a photo of {with_article(item)}" for item in WORN])
    groups = dataset.table["gender"].to_numpy()
    for item, scores in zip(WORN, (images @ texts.T).T, strict=True):
        owners = dataset.objects.filter(pl.col("concept") == item)["image_id"]
        there = dataset.table["image_id"].is_in(owners.to_list()).to_numpy()
        found = {
            group: precision_average(there[groups == group], scores[groups == group]) for group in ("woman", "man")
        }
        for group, value in found.items():
            assert value == pytest.approx(implied_average_precision(item, group), abs=0.05)
        assert found["man"] - found["woman"] == pytest.approx(implied_gap(item), abs=0.04)
