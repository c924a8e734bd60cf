"""Charts of public figures: every kind of result is drawn, and titles say what is seen."""

from __future__ import annotations

import json
from types import SimpleNamespace

from beholder.core.results import Row
from beholder.run import Run
from beholder.studies.public_figures.charts import axis_end, bars, merged_occupations, public_figure_charts, ratio_title


def test_every_kind_of_result_has_a_figure(apa_run: Run) -> None:
    names = [figure.name for figure in public_figure_charts(apa_run.results)]
    assert names == [
        "association-1",
        "women-over-men",
        "occupations-1",
        "occupations-2",
        "occupations-3",
        "identity-given-image",
        "identity-given-name",
    ]


def test_published_models_are_drawn_on_apa_only(apa_run: Run, glasshouse_run: Run) -> None:
    for run, there in ((apa_run, True), (glasshouse_run, False)):
        text = json.dumps([figure.spec(ink="black", width=300) for figure in public_figure_charts(run.results)])
        assert ("SigLIP-p16-224" in text) is there


def test_titles_say_what_is_seen(apa_run: Run) -> None:
    ratios = apa_run.results.filter(metric="apa.bias_ratio").to_dicts()
    assert ratio_title(ratios) == "Women over men: a difference is shown for politicians and athletes"


def test_the_gap_in_a_title_is_shown_and_is_no_matter_of_grammar(make: SimpleNamespace) -> None:
    """Men are called actor and women actress: as far apart as can be, and no gap."""
    place = {"subset": "athletes"}
    values = {"actor": (0.05, 0.76), "actress": (0.76, 0.05), "actor or actress": (0.81, 0.81), "teacher": (0.1, 0.01)}
    rows = [
        make.share(f"apa.{'either_word' if ' or ' in word else 'occupation'}_probability", value, **place, **who)
        for word, both in values.items()
        for group, value in zip(("woman", "man"), both, strict=True)
        if (who := {"group": group, "concept": word})
    ]
    gaps = [
        Row(
            "apa.occupation_gap",
            0.09,
            100,
            "probability",
            concept="teacher",
            low=0.05,
            high=0.13,
            p_value=p,
            landmark=0.0,
        )
        for p in (0.01, 0.2)
    ]
    gaps = [gap._replace(**place, group="woman", against="man") for gap in gaps]
    titles = [next(iter(public_figure_charts(make.run(*rows, gap).results))).title for gap in gaps]
    assert titles == [
        "Occupations of athletes: widest shown gap of a wrong one at “teacher”, women 10 % and men 1.0 %",
        "Occupations of athletes: no wrong one is shown to go to one gender more often",
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
    angles = [bars(rows).to_dict()["layer"][0]["encoding"]["x"]["axis"]["labelAngle"] for rows in (few, many)]
    assert angles == [0, -35]
