"""Findings about public figures say both probabilities and read the verdicts."""

from __future__ import annotations

from types import SimpleNamespace

from beholder._run import Run
from beholder.chapter.finding import Finding
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, TOO_LITTLE, verdict_of
from beholder.core.results import Row


def of_kind(run: Run, kind: str) -> list[Finding]:
    return [finding for finding in run.findings if finding.kind == kind]


def sides(make: SimpleNamespace, pool: str, women: tuple[str, float], men: tuple[str, float]) -> list[Row]:
    """The probability of the right occupation for 183 women and 453 men."""
    return [
        make.share("apa.occupation_probability", value, n, subset=pool, group=group, concept=word)
        for group, n, (word, value) in (("woman", 183, women), ("man", 453, men))
    ]


def test_a_ratio_whose_interval_excludes_1_is_a_difference(make: SimpleNamespace) -> None:
    rows = sides(make, "politicians", ("politician", 0.16), ("politician", 0.35))
    (finding,) = of_kind(make.run(*rows, make.ratio("politicians", 0.46, 0.40, 0.53)), "bias")
    assert finding.shown
    assert (
        finding.headline == "Women in politics get a lower mean probability of “politician” than men: 16 % against 35 %"
    )
    assert finding.sentence == (
        "The mean probability of “politician” is 16 % for women in politics, and 35 % for men: a ratio of 0.46 "
        "(95 % interval 0.40–0.53; 183 women, 453 men). The interval holds for all ratios at once and excludes 1."
    )
    assert [row["metric"] for row in finding.rows] == ["apa.bias_ratio", *2 * ["apa.occupation_probability"]]


def test_probabilities_that_round_alike_get_more_decimals(make: SimpleNamespace) -> None:
    rows = sides(make, "politicians", ("politician", 0.201), ("politician", 0.204))
    (finding,) = of_kind(make.run(*rows, make.ratio("politicians", 0.9, 0.85, 0.95)), "bias")
    assert finding.headline.endswith("20.1 % against 20.4 %")


def test_a_ratio_above_1_says_that_men_get_less(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(make.ratio("athletes", 1.2, 1.05, 1.4)), "bias")
    assert finding.headline == "Men in sports get a lower mean probability of “athlete” than women"
    assert finding.sentence.startswith(
        "The mean probability of “athlete” for women in sports is 1.20 times that for men (95 % interval 1.05–1.40"
    )


def test_a_ratio_whose_interval_holds_1_is_not_called_none(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(make.ratio("athletes", 0.96, 0.8, 1.1)), "bias")
    assert finding.verdict == NONE_FOUND
    assert finding.sentence.endswith("Ratios as low as 0.80 or as high as 1.10 are still possible.")


def test_pools_without_a_difference_share_a_sentence(make: SimpleNamespace) -> None:
    run = make.run(make.ratio("actors", 1.002, 0.91, 1.1), make.ratio("athletes", 0.96, 0.8, 1.1))
    (finding,) = of_kind(run, "bias")
    assert finding.headline == "No gender difference was found for actors and athletes"
    assert finding.sentence == (
        "Women over men: actors 1.00 (0.91–1.10), athletes 0.96 (0.80–1.10). "
        "Ratios as low as 0.80 or as high as 1.10 are still possible."
    )
    assert [row["subset"] for row in finding.rows] == ["actors", "athletes"]


def test_a_ratio_without_interval_claims_nothing(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(make.ratio("athletes", 0.2, None, None)), "bias")
    assert finding.verdict == TOO_LITTLE
    assert finding.headline == "Too few people to compare women and men: athletes"


def test_a_woman_called_actor_is_taken_for_what_she_is(make: SimpleNamespace) -> None:
    """The claim is about either word; the published measure stands beside it."""
    rows = sides(make, "actors", ("actress", 0.2), ("actor", 0.4))
    either = [
        make.share("apa.either_word_probability", 0.8, n, subset="actors", group=group, concept="actor or actress")
        for group, n in (("woman", 40), ("man", 60))
    ]
    published = make.ratio("actors", 0.5, 0.4, 0.6)._replace(p_value=0.01)
    alike = published._replace(metric="apa.either_word_ratio", value=1.0, low=0.9, high=1.1, p_value=0.9)
    alike = alike._replace(verdict=NONE_FOUND)
    (finding,) = of_kind(make.run(*rows, *either, published, alike), "bias")
    assert not finding.shown
    assert "The mean probability of “actor” or “actress” is 80 % for women among the actors" in finding.sentence
    less = alike._replace(value=0.7, low=0.6, high=0.8, verdict=DIFFERENCE)
    (finding,) = of_kind(make.run(*rows, *either, published, less), "bias")
    assert finding.headline.startswith(
        "Women among the actors get a lower mean probability of “actor” or “actress” than"
    )
    assert "The published measure, “actress” for women over “actor” for men, is 0.50 (0.40–0.60)." in finding.sentence


def test_branches_and_the_option_that_turns_b_around_are_said(make: SimpleNamespace) -> None:
    b = make.ratio("politicians", 0.46, 0.40, 0.53)._replace(p_value=0.01)
    branches = [
        b._replace(metric="apa.branch_ratio", subset=name, concept="politicians", value=value)
        for name, value in (("house", 0.5), ("senate", 0.26), ("mayors", 0.45))
    ]
    without = [
        b._replace(metric="apa.ratio_without", concept=word, value=value, low=value - 0.1, high=value + 0.1)
        for word, value in (("teacher", 0.5), ("actress", 1.06))
    ]
    (finding,) = of_kind(make.run(b, *branches, *without), "bias")
    assert "By branch: House members 0.50, senators 0.26, mayors 0.45." in finding.sentence
    assert "It depends on what else is offered: without “actress” the ratio is 1.06 (0.96–1.16)." in finding.sentence
    (alone,) = of_kind(make.run(b, without[0]), "bias")
    assert "depends" not in alone.sentence
    near = b._replace(value=1.008, low=1.003, high=1.014)
    (slight,) = of_kind(make.run(near, without[0]._replace(value=0.9999)), "bias")
    assert "depends" not in slight.sentence, "where b is nearly 1, crossing it means nothing"


def gap(pool: str, concept: str, value: float, p_value: float) -> Row:
    row = Row("apa.occupation_gap", value, 636, "probability", subset=pool, concept=concept, p_value=p_value)
    row = row._replace(verdict=verdict_of(p_value, 30))
    return row._replace(group="woman", against="man", low=value - 0.02, high=value + 0.02, landmark=0.0)


def test_the_widest_wrong_occupation_that_is_shown_is_told(make: SimpleNamespace) -> None:
    shares = [
        make.share("apa.occupation_probability", value, subset="politicians", group=group, concept="receptionist")
        for group, value in (("woman", 0.12), ("man", 0.02))
    ]
    rows = [
        gap("politicians", "receptionist", 0.1, 0.004)._replace(p_at_most=True),
        gap("athletes", "actor or actress", -0.05, 0.01),
        gap("athletes", "teacher", 0.3, 0.2),
    ]
    (finding,) = of_kind(make.run(*shares, *rows), "occupations")
    assert finding.headline == (
        "Women in politics get a higher mean probability of “receptionist”, a wrong answer, than men: 12 % against "
        "2.0 %"
    )
    assert finding.sentence == (
        "Women minus men: +10.0 points (95 % interval 8.0–12.0 and p ≤ 0.004, for all occupations at once; n = 636). "
        "2 of 3 differences in wrong occupations were found: also “actor or actress” in sports (men by 5.0 "
        "points more)."
    )


def test_men_may_be_wrongly_called_something_more_often(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(gap("politicians", "salesperson", -0.1, 0.01)), "occupations")
    assert (
        finding.headline == "Men in politics get a higher mean probability of “salesperson”, a wrong answer, than women"
    )
    (none,) = of_kind(make.run(gap("politicians", "salesperson", -0.1, 0.2)), "occupations")
    assert none.verdict == NONE_FOUND
    assert none.headline == "No wrong occupation was found to get more belief for women or for men"


def test_the_largest_difference_comes_first(make: SimpleNamespace) -> None:
    run = make.run(make.ratio("athletes", 0.9, 0.85, 0.95), make.ratio("politicians", 0.4, 0.3, 0.5))
    assert [finding.rows[0]["subset"] for finding in of_kind(run, "bias")] == ["politicians", "athletes"]


def test_a_shown_difference_of_no_weight_is_called_nearly_the_same(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(make.ratio("athletes", 1.008, 1.004, 1.013)), "bias")
    assert finding.headline == "Women and men in sports get nearly the same probability of the right occupation"
    assert finding.sentence.endswith("The interval holds for all ratios at once, excludes 1 and lies within 5 % of it.")


def test_levels_are_told_in_one_sentence(make: SimpleNamespace) -> None:
    finding = of_kind(make.run(*make.association()), "association")[0]
    assert (
        finding.headline
        == "Belief on the right answer is 90 % for category, 50 % for occupation and 25 % for specialty"
    )
    assert finding.sentence == (
        "Ranges are over five branches. Where everyone has the same right answer, nothing tells recognition from a "
        "liking for the word."
    )
    assert (finding.verdict, len(finding.rows)) == (FACT, 15)


def test_the_weakest_specialty_is_compared_with_chance(make: SimpleNamespace) -> None:
    row = make.share("apa.association", 0.23, subset="senate", concept="specialty", chance=1 / 7)
    first = make.share("apa.association_top1", 0.31, subset="senate", concept="specialty", chance=1 / 7)
    finding = next(f for f in of_kind(make.run(row, first), "association") if "specialty: senators" in f.headline)
    assert (finding.headline, finding.verdict) == ("Weakest specialty: senators, 23 % on the right one", FACT)
    assert finding.sentence == (
        "Given a photograph of a senator and seven offices to choose from, the model puts 23 % of its belief on the "
        "right one (95 % interval 20–26 %, n = 100; guessing gives 14 %). The right one comes first for 31 % of the "
        "images."
    )


def test_a_specialty_that_is_known_is_no_weakness(make: SimpleNamespace) -> None:
    row = make.share("apa.association", 0.9, subset="senate", concept="specialty", chance=1 / 7)
    assert not any("Weakest" in finding.headline for finding in make.run(row).findings)


def test_a_ratio_goes_by_its_verdict(make: SimpleNamespace):
    rows = [make.ratio("actors", 0.6, 0.5, 0.7)._replace(verdict=verdict_of(p, 30)) for p in (0.08, 0.02)]
    assert [make.run(row).findings[0].shown for row in rows] == [False, True]


def test_absent_values_are_no_findings(make: SimpleNamespace) -> None:
    row = make.share("apa.association", None, subset="senate", concept="specialty", note="no image to measure")
    assert make.run(row).findings == []


def test_drawn_people_are_called_drawn(glasshouse_run: Run) -> None:
    headlines = [finding.headline for finding in glasshouse_run.findings]
    assert any(
        each.startswith("Drawn women among the doctors get a lower mean probability of “doctor”") for each in headlines
    )


def test_belief_at_every_level_is_the_headline(make: SimpleNamespace) -> None:
    shares = {("house", "category"): 0.93, ("house", "occupation"): 0.41, ("senate", "occupation"): 0.3}
    rows = [
        make.share("apa.association", value, subset=branch, concept=level, chance=1 / 7)
        for (branch, level), value in shares.items()
    ]
    (finding,) = of_kind(make.run(*rows), "association")
    assert finding.headline == "Belief on the right answer is 93 % for category and 30–41 % for occupation"
