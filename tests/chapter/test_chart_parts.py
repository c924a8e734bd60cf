"""Parts of charts: what is drawn of a row, and the sentence above it."""

from __future__ import annotations

from typing import Any

import altair as alt

from beholder.chapter.chart_parts import EVERYONE, LANE, chance_ticks, dots, height, lanes, order, rule_at
from beholder.core.results import Row, results_table


def rows(*made: Row, model: str = "m") -> list[dict[str, Any]]:
    return results_table(made, study="s", model=model, dataset="d").to_dicts()


def share(value: float, group: str | None = None, concept: str = "kind", width: float = 0.1, **others: Any) -> Row:
    low, high = value - width / 2, value + width / 2
    return Row("s.share", value, 9, "probability", group=group, concept=concept, low=low, high=high, **others)


def scale_of(chart: Any, channel: str) -> dict[str, Any]:
    """The scale of the last layer, which has the points."""
    return dict(chart.to_dict()["layer"][-1]["encoding"][channel]["scale"])


def test_women_and_men_are_circles_and_squares_and_others_are_circles():
    known = dots(rows(share(0.2, "woman"), share(0.4, "man")))
    assert scale_of(known, "shape") == {"domain": ["women", "men"], "range": ["circle", "square"]}
    others = dots(rows(share(0.2, "old"), share(0.4, "young")))
    assert scale_of(others, "shape")["range"] == ["circle", "circle"]


def test_groups_whose_plural_is_another_group_keep_their_names():
    assert scale_of(dots(rows(share(0.2, "woman"), share(0.4, "women"))), "color")["domain"] == ["woman", "women"]


def test_concepts_are_ordered_by_their_largest_value():
    spec = dots(rows(share(0.2, concept="a"), share(0.6, concept="b"))).to_dict()
    assert spec["layer"][0]["encoding"]["y"]["sort"] == ["b", "a"]


def test_published_models_have_a_lane_of_their_own():
    own = rows(share(0.5, subset="a"), share(0.6, subset="b"))
    x = alt.X("value:Q")
    assert len(lanes(own, [], x)) == 2
    assert len(lanes(own, [{"model": "p", "subset": "a", "value": 0.4}], x)) == 3
    assert height(own, [{"subset": "a"}]) > height(own, []) == LANE * 2 * 1.8


def test_chance_is_marked_only_where_it_is_known():
    ticks = chance_ticks(rows(share(0.5, subset="a", chance=0.1), share(0.5, subset="b"))).to_dict()
    assert ticks["data"]["values"] == [{"subset": "a", "model": "m", "chance": 0.1}]
    assert rule_at(1.0).to_dict()["data"]["values"] == [{"landmark": 1.0}]


def test_names_come_once_in_their_order_and_absent_ones_not_at_all():
    assert order(rows(share(0.1, "b"), share(0.1), share(0.1, "a"), share(0.1, "b")), "group") == ["b", "a"]


def test_a_row_of_no_group_is_drawn_as_everyone():
    values = str(dots(rows(share(0.1))).to_dict())
    assert f"'group': '{EVERYONE}'" in values
