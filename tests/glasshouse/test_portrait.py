"""Portraits: deterministic, every attribute visible on its own, addresses one-to-one."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from beholder.glasshouse.anatomy import MONK_SKIN_TONES, Draws, Face, Head
from beholder.glasshouse.outfits import OUTFITS, WORN
from beholder.glasshouse.portrait import Portrait, open_uri, parse_uri, portrait_uri, render
from beholder.glasshouse.things import THINGS, draw_thing

ANNA = Portrait("woman", 40, 5, 2, 0, 0, 17)
CHANGES = {
    "presentation": "man",
    "age": 70,
    "skin_tone": 9,
    "smiling": 4,
    "lighting": 2,
    "pose": -2,
    "identity": 18,
    "outfit": "judge",
}


def pixels(portrait: Portrait, size: int = 96) -> np.ndarray:
    return np.asarray(render(portrait, size), dtype=int)


def test_same_portrait_gives_same_pixels():
    assert np.array_equal(pixels(ANNA), pixels(Portrait("woman", 40, 5, 2, 0, 0, 17)))


def test_pixels_do_not_depend_on_the_process():
    code = (
        "from beholder.glasshouse.portrait import Portrait, render; import hashlib;"
        "print(hashlib.sha256(render(Portrait('woman', 40, 5, 2, 0, 0, 17), 96).tobytes()).hexdigest())"
    )
    elsewhere = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert elsewhere.stdout.strip() == hashlib.sha256(render(ANNA, 96).tobytes()).hexdigest()


@pytest.mark.parametrize("attribute", CHANGES)
def test_each_attribute_is_visible(attribute):
    other = replace(ANNA, **{attribute: CHANGES[attribute]})
    assert (np.abs(pixels(ANNA) - pixels(other)).max(axis=2) > 12).sum() > 60


@pytest.mark.parametrize("smiling", range(4))
def test_each_step_of_smiling_shows_around_the_mouth_and_leaves_the_clothes_alone(smiling):
    change = np.abs(pixels(replace(ANNA, smiling=smiling)) - pixels(replace(ANNA, smiling=smiling + 1)))
    assert change[48:62, 36:60].max() > 20
    assert change[70:].max() == 0


@pytest.mark.parametrize("item", WORN)
@pytest.mark.parametrize("outfit", OUTFITS)
def test_each_worn_thing_is_visible_with_each_outfit(outfit, item):
    without, worn = (replace(ANNA, outfit=outfit, worn=frozenset(w)) for w in ((), (item,)))
    assert (np.abs(pixels(without) - pixels(worn)).max(axis=2) > 25).sum() > 60


def test_skin_tone_leaves_hair_clothes_and_background_alone():
    change = np.abs(pixels(replace(ANNA, skin_tone=3)) - pixels(replace(ANNA, skin_tone=8))).max(axis=2)
    assert change[:12].max() == 0
    assert change[80:].max() == 0
    assert change[45, 48] > 40


def test_skin_is_drawn_in_the_published_monk_tones():
    assert MONK_SKIN_TONES[0] == (246, 237, 228)
    for tone in range(1, 11):
        cheek = pixels(replace(ANNA, skin_tone=tone))[38:56, 38:58].reshape(-1, 3)
        middle = np.median(cheek, axis=0)
        assert np.abs(middle - MONK_SKIN_TONES[tone - 1]).max() < 40


def test_identity_is_the_same_person_at_every_age_light_and_mood():
    one, other = (Head(replace(ANNA, lighting=x, smiling=2 + x, pose=x, skin_tone=5 + x)) for x in (-2, 2))
    assert [vars(one.face), vars(one.hair), one.eyes] == [vars(other.face), vars(other.hair), other.eyes]


def test_presentations_differ_on_average_and_overlap():
    jaws = {w: [Face(Draws(i), woman=w, age=40).jaw for i in range(300)] for w in (True, False)}
    assert np.mean(jaws[False]) - np.mean(jaws[True]) > 0.08
    assert max(jaws[True]) > min(jaws[False])


@pytest.mark.parametrize("size", [32, 96, 224, 301])
def test_any_size(size):
    picture = render(ANNA, size)
    assert (picture.size, picture.mode) == ((size, size), "RGB")


def test_uri_round_trip():
    portrait = replace(ANNA, pose=-2, lighting=-1, outfit="chef", worn=frozenset({"tie", "hat"}))
    uri = portrait_uri(portrait)
    assert uri == "glasshouse:woman/age40/tone5/smile2/light-1/pose-2/id17/chef/hat+tie"
    assert parse_uri(uri) == portrait
    assert open_uri(uri, 64).tobytes() == render(portrait, 64).tobytes()


@pytest.mark.parametrize(
    "uri",
    [
        "glasshouse:nobody",
        "file:woman.png",
        portrait_uri(ANNA) + "/more",
        portrait_uri(ANNA).replace("age40", "age040"),
        portrait_uri(ANNA).replace("age40", "age99"),
        portrait_uri(ANNA).replace("nothing", "tie+hat"),
        portrait_uri(ANNA).replace("nothing", "crown"),
        "glasshouse:thing/unicorn/3",
    ],
)
def test_bad_uri_is_refused(uri):
    with pytest.raises(ValueError, match=r"address|canonical|can be|has age"):
        open_uri(uri)


def test_impossible_portrait_is_refused_with_the_range():
    with pytest.raises(ValueError, match="skin_tone 1 to 10"):
        replace(ANNA, skin_tone=11)


@pytest.mark.parametrize("kind", THINGS)
def test_things_vary_with_their_seed(kind):
    one, other = (np.asarray(draw_thing(kind, seed, 64), dtype=int) for seed in (1, 2))
    assert np.array_equal(one, np.asarray(open_uri(f"glasshouse:thing/{kind}/1", 64)))
    assert np.abs(one - other).mean() > 1


def test_importing_glasshouse_does_not_import_torch():
    code = "import sys, beholder.glasshouse; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
