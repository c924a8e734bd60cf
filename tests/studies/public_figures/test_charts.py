"""Charts of public figures: every kind of result is drawn, and titles say what is seen."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import polars as pl
import pytest

from beholder._run import Run
from beholder.comparison.family import DIFFERENCE, NONE_FOUND
from beholder.core.results import Row
from beholder.studies.apa.printed import EIGHT
from beholder.studies.public_figures.charts import (
    SMALL,
    association_chart,
    axis_end,
    blocks,
    by_size,
    drawn_pairs,
    dumbbells,
    merged_occupations,
    public_figure_charts,
)
from beholder.studies.public_figures.published import catalogued


def test_every_kind_of_result_has_a_figure(apa_run: Run) -> None:
    names = [figure.name for figure in public_figure_charts(apa_run.results)]
    assert names == ["women-and-men", "women-over-men", "association", "identity-given-image", "identity-given-name"]


@pytest.mark.slow
def test_published_models_are_drawn_on_apa_only(apa_run: Run, glasshouse_run: Run) -> None:
    for run, there in ((apa_run, True), (glasshouse_run, False)):
        text = json.dumps([figure.spec(ink="black", width=300) for figure in public_figure_charts(run.results)])
        assert ("SigLIP-p16-224" in text) is there


def test_a_gap_between_two_words_for_one_occupation_is_not_drawn(make: SimpleNamespace) -> None:
    """Men are called actor and women actress: as far apart as can be, and no gap."""
    place = {"subset": "athletes"}
    values = {"actor": (0.05, 0.76), "actress": (0.76, 0.05), "actor or actress": (0.81, 0.81), "teacher": (0.1, 0.01)}
    rows = [
        make.share(f"apa.{'either_word' if ' or ' in word else 'occupation'}_probability", value, **place, **who)
        for word, both in values.items()
        for group, value in zip(("woman", "man"), both, strict=True)
        if (who := {"group": group, "concept": word})
    ]
    drawn = merged_occupations(make.run(*rows).results)
    assert {row["concept"] for row in drawn} == {"actor or actress", "teacher"}


def test_results_without_values_have_no_figure() -> None:
    assert list(public_figure_charts(Run().results)) == []


def test_an_axis_of_small_beliefs_ends_where_they_do():
    assert axis_end([{"value": 0.05, "high": 0.228}]) == 0.3
    assert axis_end([{"value": 0.05, "high": None}, {"value": 0.61}]) == 1.0
    assert axis_end([{"value": 0.6, "high": None}]) == 0.7


def test_a_chart_describes_itself_to_screen_readers(apa_run: Run):
    for figure in public_figure_charts(apa_run.results):
        assert figure.spec(ink="#000", width=300)["description"] == f"{figure.title}. {figure.caption}"


def test_many_or_long_names_under_bars_are_slanted_so_that_they_do_not_meet():
    row = {"concept": "category", "value": 0.5, "low": None, "high": None, "n": 9, "model": "m", "group": None}
    few, many = ([{**row, "subset": f"branch{i}"} for i in range(number)] for number in (5, 6))
    angles = [
        association_chart([{**each, "chance": None, "landmark": None} for each in rows]).to_dict()["layer"][0][
            "encoding"
        ]["x"]["axis"]["labelAngle"]
        for rows in (few, many)
    ]
    assert angles == [0, -35]


def dumbbell_run(make: SimpleNamespace, values: dict[str, tuple[float, float]], *more: Row) -> pl.DataFrame:
    shares = [
        make.share("apa.occupation_probability", value, subset="athletes", group=group, concept=word)
        for word, both in values.items()
        for group, value in zip(("woman", "man"), both, strict=True)
    ]
    return make.run(*shares, *more).results


def drawn_rows(results: pl.DataFrame, most: int) -> list[str]:
    spec = dumbbells({key: drawn_pairs(pairs, most) for key, pairs in blocks(results).items()}).to_dict()
    return spec["layer"][0]["encoding"]["y"]["scale"]["domain"]


def test_occupations_are_sorted_from_womens_side_to_mens_and_faint_ones_left_out(make: SimpleNamespace) -> None:
    values = {"teacher": (0.1, 0.2), "athlete": (0.5, 0.55), "assistant": (0.3, 0.1), "scientist": (0.001, 0.002)}
    results = dumbbell_run(make, values)
    assert drawn_rows(results, 9) == ["0|", "0|assistant", "0=|athlete", "0|teacher"]
    faint = {"teacher": (0.001, 0.002)}
    assert drawn_rows(dumbbell_run(make, faint), 9) == ["0|", "0|teacher"]
    assert drawn_rows(results, 2) == ["0|", "0|assistant", "0=|athlete"]
    (hero,) = [figure for figure in public_figure_charts(results) if figure.name == "women-and-men"]
    assert "1 other occupation is in the table only" in hero.caption


def test_several_models_are_rows_of_one_chart(make: SimpleNamespace) -> None:
    one = dumbbell_run(make, {"athlete": (0.5, 0.55)})
    both = pl.concat([one, one.with_columns(model=pl.lit("second"))])
    (figure,) = public_figure_charts(both)
    assert drawn_rows(both, 9) == ["0|", "0=|athlete", "1|", "1=|athlete"]
    assert "second, athletes" in json.dumps(figure.spec(ink="black", width=300))


def test_at_most_two_charts_a_topic(apa_run: Run) -> None:
    two = pl.concat([apa_run.results, apa_run.results.with_columns(model=pl.lit("second"))])
    topics = Counter(figure.topic for figure in public_figure_charts(two))
    assert max(topics.values()) <= 2


def test_a_band_is_strong_only_where_the_marks_point_as_the_difference_within_branches(make: SimpleNamespace) -> None:
    gap = Row("apa.occupation_gap", 0.09, 100, "probability", subset="athletes", concept="teacher", landmark=0.0)
    gap = gap._replace(low=0.05, high=0.13, p_value=0.01, group="woman", against="man", verdict=DIFFERENCE)
    for values, same_way in (((0.2, 0.1), True), ((0.1, 0.2), False)):
        (pairs,) = blocks(dumbbell_run(make, {"teacher": values}, gap)).values()
        assert [pair.shown for pair in pairs] == [same_way]


def test_the_title_of_the_ratios_claims_what_the_findings_claim(make: SimpleNamespace) -> None:
    """By the published measure actors differ; by either word they do not, so no difference is claimed."""
    published = make.ratio("actors", 0.5, 0.4, 0.6)
    either = published._replace(metric="apa.either_word_ratio", value=1.0, low=0.9, high=1.1, p_value=0.9)
    either = either._replace(verdict=NONE_FOUND)
    assert title(make.run(published)).startswith("Women among the actors get a lower mean probability")
    assert title(make.run(published, either)) == "No gender difference was found for actors"


def title(run: Run) -> str:
    (figure,) = [each for each in public_figure_charts(run.results) if each.name == "women-over-men"]
    return figure.titled(run.findings).title


def test_published_models_are_drawn_only_if_they_compare_with_every_model_of_the_run(make: SimpleNamespace) -> None:
    """CLIP's printed ratios look taken over eight occupations, SigLIP's over nine."""
    nine = make.run(make.ratio("politicians", 0.5, 0.4, 0.6)).results
    eight = nine.with_columns(variant=pl.lit(EIGHT), model=pl.lit("second"))
    counts = []
    for results in (nine, eight, pl.concat([nine, eight])):
        (figure,) = [each for each in public_figure_charts(results) if each.name == "women-over-men"]
        counts.append("Small marks: published models" in figure.caption)
    assert counts == [True, True, False]


def test_one_word_of_a_pair_is_not_claimed_to_differ_by_the_published_ratio(make: SimpleNamespace) -> None:
    """Runs without merged words: the ratio is of actress for women over actor for men, of no word alone."""
    words = [
        make.share("apa.occupation_probability", value, subset="actors", group=group, concept=word)
        for word, group, value in (("actor", "woman", 0.05), ("actor", "man", 0.76))
    ]
    (pairs,) = blocks(make.run(*words, make.ratio("actors", 0.5, 0.4, 0.6)).results).values()
    assert [(pair.right, pair.shown) for pair in pairs] == [(False, False)]


def test_several_models_stand_in_two_rows_by_size_as_in_figure_1(make: SimpleNamespace) -> None:
    names = ["openai/clip-vit-large-patch14", "my-model", "openai/clip-vit-base-patch32", "ViT-B/16"]
    rows = [make.share("apa.association", 0.5, subset="actors", concept="category")]
    table = pl.concat([make.run(*rows).results.with_columns(model=pl.lit(name)) for name in names])
    figures = [figure for figure in public_figure_charts(table) if figure.topic == "association"]
    titles = [figure.title.rpartition(": models of ")[2] for figure in figures]
    assert titles == ["up to 400 million parameters", "more than 400 million parameters", "unknown size"]
    sizes = {name: entry.parameters for name in names if (entry := catalogued(name))}
    order = list(by_size(table.to_dicts())[SMALL])
    assert [row["model"] for row in order] == sorted((n for n in sizes if sizes[n] <= 400e6), key=sizes.__getitem__)
    one = make.run(*rows).results
    assert [figure.name for figure in public_figure_charts(one)] == ["association"]
