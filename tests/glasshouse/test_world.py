"""The world: full factorials, balanced residents, prompts whose rules can be evaluated."""

from __future__ import annotations

from collections import Counter

import pytest
from recovered import holds

from beholder.glasshouse.portrait import parse_uri
from beholder.glasshouse.world import (
    BRANCH_OCCUPATIONS,
    FAMILY_NAMES,
    GIVEN_NAMES,
    factorial,
    named_people,
    prompts,
    residents,
)

ROWS = residents()
PROMPTS = prompts()


def branch_rows(branch):
    return [row for row in ROWS if row["branch"] == branch]


def test_factorial_is_complete_and_in_order():
    portraits = factorial(age=(30, 60), skin_tone=(1, 10), identity=(4, 5))
    assert len(portraits) == len(set(portraits)) == 2 * 2 * 2 * 3 * 2
    assert [p.identity for p in portraits[:2]] == [4, 5]
    assert len(factorial()) == 540


def test_factorial_refuses_an_unknown_attribute():
    with pytest.raises(ValueError, match="No attribute gender"):
        factorial(gender=("woman",))


def test_residents_are_counted_and_unique():
    sizes = dict.fromkeys(BRANCH_OCCUPATIONS, 60) | {"known": 90, "strangers": 90}
    assert Counter(row["branch"] for row in ROWS) == sizes
    assert len({row["uri"] for row in ROWS}) == len({row["image_id"] for row in ROWS}) == 420


@pytest.mark.parametrize("branch", BRANCH_OCCUPATIONS)
def test_nothing_but_presentation_and_identity_differs_between_women_and_men(branch):
    others = ("age", "skin_tone", "smiling", "lighting", "pose", "specialty", "occupation")
    women, men = (
        Counter(tuple(row[name] for name in others) for row in branch_rows(branch) if row["gender"] == side)
        for side in ("woman", "man")
    )
    assert women == men
    assert sum(women.values()) == 30
    assert len({row["identity"] for row in branch_rows(branch)}) == 60


@pytest.mark.parametrize("attribute", ["age", "skin_tone", "smiling", "lighting", "pose", "specialty"])
def test_every_level_is_equally_frequent(attribute):
    counts = Counter(row[attribute] for row in branch_rows("doctors"))
    assert len(set(counts.values())) == 1


@pytest.mark.parametrize("branch", ["known", "strangers"])
def test_named_people_have_three_different_pictures_each(branch):
    rows = branch_rows(branch)
    assert set(Counter(row["name"] for row in rows).values()) == {3}
    people = {row["name"]: row["gender"] for row in rows}
    assert Counter(people.values()) == {"woman": 15, "man": 15}
    for name in people:
        shots = [row for row in rows if row["name"] == name]
        assert all(len({shot[axis] for shot in shots}) == 3 for axis in ("smiling", "lighting", "pose"))


def test_names_are_unique_and_shared_by_nobody():
    names = [person.name for branch in ("known", "strangers") for person in named_people(branch)]
    assert len(set(names)) == 60
    assert len({name.split()[0] for name in names}) == len({name.split()[1] for name in names}) == 60
    assert len(set(GIVEN_NAMES)) == len(set(FAMILY_NAMES)) == 60


def test_uris_agree_with_the_table():
    for row in ROWS:
        portrait = parse_uri(row["uri"])
        assert (portrait.presentation, portrait.age, portrait.identity) == (row["gender"], row["age"], row["identity"])
        assert portrait.worn == frozenset({row["specialty"]} - {""})
        assert portrait.outfit == (row["occupation"] or "plain")


def test_every_picture_has_exactly_one_correct_prompt_at_each_level():
    for row in ROWS:
        asked = [p for p in PROMPTS if p["branch"] == row["branch"]]
        correct = Counter(p["level"] for p in asked if holds(p["correct_for"], row))
        assert correct == dict.fromkeys({p["level"] for p in asked}, 1)


def test_prompt_rules_name_attributes_of_the_table():
    for prompt in PROMPTS:
        rule = prompt["correct_for"]
        parts = [] if rule in ("", "*") else rule.split("&")
        assert all(part.split("=")[0] in ROWS[0] for part in parts)
        assert prompt["prompt_id"] == prompt["text"]


def test_levels_have_the_stated_sizes():
    sizes = Counter((p["branch"], p["level"]) for p in PROMPTS)
    assert (sizes["doctors", "category"], sizes["doctors", "occupation"], sizes["doctors", "specialty"]) == (7, 9, 5)
    assert sizes["known", "identity"] == sizes["strangers", "identity"] == 30


def test_rule_is_a_conjunction():
    row = {"gender": "woman", "specialty": "hat"}
    assert holds("gender=woman&specialty=hat", row)
    assert not holds("gender=woman&specialty=tie", row)
    assert (holds("*", row), holds("", row)) == (True, False)
