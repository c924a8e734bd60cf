from __future__ import annotations

from types import SimpleNamespace

from beholder.report.findings import findings

from beholder.chapter.finding import Finding
from beholder.run import Run


def of_kind(run: Run, kind: str) -> list[Finding]:
    return [finding for finding in findings(run) if finding.kind == kind]


def test_a_ratio_whose_interval_excludes_1_is_a_difference(make: SimpleNamespace) -> None:
    run = make.run(*make.bias({"politicians": (0.62, 0.55, 0.70)}))
    (finding,) = of_kind(run, "bias")
    assert finding.shown
    assert finding.headline == "Women among politicians get less"
    assert finding.sentence == (
        "Women among the politicians get 0.62 times the probability of “politician” that men get "
        "(95 % interval 0.55–0.70; 183 women, 453 men): the interval excludes 1."
    )


def test_a_ratio_above_1_says_that_men_get_less(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(make.ratio("athletes", 1.2, 1.05, 1.4)), "bias")
    assert finding.headline == "Men among athletes get less"


def test_a_ratio_whose_interval_holds_1_is_not_called_none(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(make.ratio("athletes", 0.96, 0.8, 1.1)), "bias")
    assert not finding.shown
    assert finding.sentence.endswith(
        "the interval does not exclude 1. No difference is shown, which is not the same as none."
    )


def test_pools_without_a_difference_share_a_sentence(make: SimpleNamespace) -> None:
    run = make.run(make.ratio("actors", 1.002, 0.91, 1.1), make.ratio("athletes", 0.96, 0.8, 1.1))
    (finding,) = of_kind(run, "bias")
    assert finding.sentence == (
        "Women over men: actors 1.00 (0.91–1.10), athletes 0.96 (0.80–1.10); no 95 % interval excludes 1. "
        "No difference is shown, which is not the same as none."
    )


def test_a_ratio_without_interval_claims_nothing(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(make.ratio("athletes", 0.2, None, None)), "bias")
    assert not finding.shown
    assert "nothing is claimed" in finding.sentence


def test_an_interval_without_width_claims_nothing(make: SimpleNamespace) -> None:
    """Where people cannot be told apart every draw is the same; that is no certainty."""
    (finding,) = of_kind(make.run(make.ratio("judges", 1.08, 1.08, 1.08), dataset="glasshouse"), "bias")
    assert not finding.shown
    assert "nothing is claimed" in finding.sentence


def test_actresses_are_compared_with_actors(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(make.ratio("actors", 0.5, 0.4, 0.6)), "bias")
    assert "“actress” that actors get of “actor”" in finding.sentence


def test_the_largest_difference_comes_first(make: SimpleNamespace) -> None:
    run = make.run(make.ratio("athletes", 0.9, 0.85, 0.95), make.ratio("politicians", 0.4, 0.3, 0.5))
    assert [finding.headline for finding in of_kind(run, "bias")] == [
        "Women among politicians get less",
        "Women among athletes get less",
    ]


def test_the_weakest_specialty_is_set_beside_chance(make: SimpleNamespace) -> None:
    row = make.share("apa.association", 0.23, subset="senate", concept="specialty", chance=1 / 7)
    first = make.share("apa.association_top1", 0.31, subset="senate", concept="specialty", chance=1 / 7)
    finding = next(f for f in of_kind(make.run(row, first), "association") if "specialty: senate" in f.headline)
    assert finding.headline.endswith("above chance")
    assert finding.sentence == (
        "Given a photograph of a senator and seven offices to choose from, it puts 23 % of its belief on the right one "
        "(95 % interval 20–26 %, n = 100; chance is 14 %); the right one comes first for 31 % of the images."
    )


def test_a_specialty_at_chance_is_not_called_known(make: SimpleNamespace) -> None:
    row = make.share("apa.association", 0.14, subset="senate", concept="specialty", chance=1 / 7)
    finding = next(f for f in of_kind(make.run(row), "association") if "Weakest" in f.headline)
    assert finding.headline.endswith("not distinguishable from chance")
    assert not finding.shown


def test_names_above_chance_are_told_apart(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(*make.identity(0.3)), "identity")
    assert finding.headline == "Tells people apart by name: every branch"
    assert "times chance" in finding.sentence


def test_names_at_chance_are_not_told_apart(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(*make.identity(0.004, width=0.02)), "identity")
    assert finding.headline == "Does not tell people apart by name"
    assert finding.sentence.endswith("no interval lies above chance.")


def test_absent_values_are_no_findings(make: SimpleNamespace) -> None:
    row = make.share("apa.association", None, subset="senate", concept="specialty", note="no image to measure")
    assert findings(make.run(row)) == []


def test_an_empty_run_has_no_findings() -> None:
    assert findings(Run()) == []


def test_the_embedded_world_compares_planted_with_recovered(glasshouse_run: Run) -> None:
    planted = of_kind(glasshouse_run, "planted")
    assert [finding.model for finding in planted] == ["glasshouse/contrastive"]
    assert "judges: planted 1.00, recovered 1.01 (0.95–1.08)" in planted[0].sentence


def test_drawn_people_are_called_drawn(glasshouse_run: Run) -> None:
    assert any(finding.sentence.startswith("Drawn women among the doctors") for finding in findings(glasshouse_run))


def test_own_prompts_differ_where_intervals_do_not_meet(custom_run: Run) -> None:
    headlines = {finding.headline for finding in of_kind(custom_run, "custom")}
    assert headlines == {"“calm” differs by gender", "“angry” differs by gender"}


def test_a_shown_difference_of_no_weight_is_called_nearly_the_same(make: SimpleNamespace) -> None:
    (finding,) = of_kind(make.run(make.ratio("athletes", 1.008, 1.004, 1.013)), "bias")
    assert finding.headline == "Women and men among athletes get nearly the same"
    assert finding.sentence.endswith("the interval excludes 1, and lies within 5 % of it.")


def test_a_specialty_that_is_known_is_no_weakness(make: SimpleNamespace) -> None:
    row = make.share("apa.association", 0.9, subset="senate", concept="specialty", chance=1 / 7)
    assert not any("Weakest" in finding.headline for finding in findings(make.run(row)))


def test_the_farthest_planted_ratio_is_told(glasshouse_run: Run) -> None:
    (finding,) = of_kind(glasshouse_run, "planted")
    assert "of every planted ratio" in finding.sentence
