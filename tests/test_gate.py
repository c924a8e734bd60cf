"""Rules are decided with the numbers' uncertainty; what was not measured never passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from beholder._gate import Rule, changed, decided, judged, read_rules, refuse_unknown_names, worsening
from beholder.chapter.finding import Finding
from beholder.core.errors import UnknownName, UsageError
from beholder.core.record import Record
from beholder.core.results import Row, results_table

ROWS = [
    Row("apa.bias_ratio", 0.9, 50, "ratio", subset="actors", low=0.85, high=0.95),
    Row("apa.bias_ratio", 0.5, 50, "ratio", subset="politicians", low=0.4, high=0.6),
    Row("apa.bias_ratio", 0.75, 9, "ratio", subset="athletes", low=0.5, high=1.1),
    Row("apa.bias_ratio", None, 0, "ratio", subset="judges", note="no women"),
    Row("apa.association", 0.7, 4, "probability", subset="senate"),
]


def results() -> pl.DataFrame:
    return results_table(ROWS, study="apa", model="[b]m[/b]", dataset="apa")


@pytest.mark.parametrize(
    ("low", "value", "high", "least", "most", "verdict"),
    [
        (0.85, 0.9, 0.95, 0.8, None, "pass"),
        (0.85, 0.9, 0.95, 0.85, 0.95, "pass"),
        (0.85, 0.9, 0.95, 0.96, None, "fail"),
        (0.85, 0.9, 0.95, None, 0.84, "fail"),
        (0.85, 0.9, 0.95, 0.9, None, "undecided"),
        (0.85, 0.9, 0.95, None, 0.9, "undecided"),
        (None, 0.9, None, 0.8, None, "undecided"),
        (None, 0.9, None, 0.95, None, "fail"),
        (None, None, None, 0.0, None, "fail"),
    ],
)
def test_a_number_is_decided_by_its_whole_interval(
    low: Any, value: Any, high: Any, least: Any, most: Any, verdict: str
) -> None:
    row = {"value": value, "low": low, "high": high, "note": None}
    assert decided(Rule("m", {}, at_least=least, at_most=most), row)[0] == verdict


def test_the_point_and_what_the_interval_allows_are_both_told() -> None:
    row = {"value": 0.75, "low": 0.5, "high": 1.1, "note": None}
    assert decided(Rule("m", at_least=0.8), row)[1] == "the value breaks the bound, and the interval allows both"
    assert decided(Rule("m", at_least=0.7), row)[1] == "the value keeps the bound, and the interval allows both"


def test_a_rule_is_held_against_every_number_that_it_is_about() -> None:
    found = judged(results(), [Rule("apa.bias_ratio", {}, at_least=0.8)])
    verdicts = {one.row["subset"]: one.verdict for one in found if one.row}
    assert verdicts == {"actors": "pass", "politicians": "fail", "athletes": "undecided", "judges": "fail"}
    assert "no women" in next(one.reason for one in found if one.row and one.row["subset"] == "judges")


@pytest.mark.parametrize(
    ("head", "rule", "flag", "stops"),
    [
        ("", "", None, False),
        ("", "", "fail", True),
        ("undecided = 'fail'", "", None, True),
        ("undecided = 'fail'", "", "pass", False),
        ("", "require = 'shown'", "pass", True),
        ("undecided = 'fail'", "require = 'possible'", "fail", False),
    ],
)
def test_an_undecided_number_stops_as_the_rule_the_file_or_the_flag_says(
    head: str, rule: str, flag: str | None, stops: bool, tmp_path: Path
) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(f"{head}\n[[rule]]\nmetric = 'apa.bias_ratio'\nsubset = 'athletes'\nat_least = 0.8\n{rule}\n")
    rules = read_rules(path, undecided=flag)
    assert rules[0].line == 2
    assert judged(results(), rules)[0].stops == stops


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule("apa.biased", {}, at_least=0), "this run has apa.bias_ratio, apa.association"),
        (Rule("apa.bias_ratio", {"subset": "actor"}, at_least=0), "no subset is called 'actor'; there is actors"),
        (Rule("apa.bias_ratio", {"subset": "actors", "model": "[b]m[/b]", "dataset": "x"}, at_least=0), "'x'"),
    ],
)
def test_a_rule_that_finds_nothing_fails_and_says_what_there_is(rule: Rule, said: str) -> None:
    (found,) = judged(results(), [rule])
    assert found.stops
    assert said in found.reason


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule("apa.bias_ration", at_least=0), "no metric 'apa.bias_ration'(.|\n)*Did you mean 'apa.bias_ratio'"),
        (Rule("apa.bias_ratio", {"subset": "actor"}, at_least=0), "no subset 'actor'(.|\n)*Did you mean 'actors'"),
        (Rule("", finding="apa.bia", verdict_not="shown"), "no finding 'apa.bia'(.|\n)*Did you mean 'apa.bias'"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(rule: Rule, said: str) -> None:
    with pytest.raises(UnknownName, match=said):
        refuse_unknown_names([rule], results(), Record())


def test_what_a_study_declares_and_this_run_lacks_is_no_misspelling() -> None:
    rules = [Rule("gras.bias_score", {"subset": "anything"}, at_most=1), Rule("own.metric", at_least=0)]
    refuse_unknown_names(rules, results(), Record(declared={"own": {"metrics": [{"name": "own.metric"}]}}))
    assert all(one.stops for one in judged(results(), rules))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no rules"),
        ("rule = 3", "has no rules"),
        ("rule = [3]", "has no rules"),
        ("undecided = 'maybe'\n[[rule]]\nmetric = 'a'\nat_least = 1", "undecided is 'pass' or 'fail'"),
        ("[[rule]]\nmetric = 'a'", "at_least or at_most"),
        ("[[rule]]\nmetric = 'a'\nat_least = true", "are numbers"),
        ("[[rule]]\nmetric = 'a'\nat_least = nan", "are numbers"),
        ("[[rule]]\nmetric = 'a'\nat_last = 1", "Did you mean 'at_least'"),
        ("[[rule]]\nmetric = 'a'\nat_least = 1\nshown = true", "Did you mean 'require'"),
        ("[[rule]]\nmetric = 'a'\nat_least = 1\nrequire = 'yes'", "one of shown, possible, no worse"),
        ("[[rule]]\nmetric = 'a'\nat_least = 1\nrequire = 'no worse'", "a rule needs"),
        ("[[rule]]\nmetric = 'a'\nat_least = 1\nby = 1", "go with require"),
        ("[[rule]]\nfinding = 'a'\nverdict_not = 'maybe'", "one of difference found, none found"),
        ("[[rule]]\nfinding = 'a'\nverdict_not = 'shown'\nat_least = 1", "does not take at_least"),
        ("[[rule]\n", "not TOML"),
    ],
)
def test_wrong_rules_are_told(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_rules(path)
    with pytest.raises(UsageError, match="no file of rules"):
        read_rules(tmp_path / "none.toml")


def test_too_little_data_never_decides_and_the_rule_says_what_becomes_of_it(tmp_path: Path) -> None:
    few = Row("m", 0.9, 6, "probability", low=0.85, high=0.95, verdict="too little data")
    table = results_table([few], study="b", model="m", dataset="d")
    path = tmp_path / "rules.toml"
    text = "[[rule]]\nmetric = 'm'\nat_least = 0.5\n"
    path.write_text(f"{text}{text}undecided = 'fail'\n{text}require = 'shown'\n")
    found = judged(table, read_rules(path))
    assert [one.verdict for one in found] == ["undecided"] * 3
    assert [one.stops for one in found] == [False, True, True]
    assert found[0].reason == "too little data: the value keeps the bound, which means little"


def test_the_row_within_strata_decides_unless_the_rule_names_a_variant() -> None:
    crude = Row("m", 0.4, 60, "probability", group="a", against="b", low=0.3, high=0.5)
    within = crude._replace(value=0.0, low=-0.1, high=0.1, variant="within branch")
    table = results_table([crude, within], study="b", model="m", dataset="d")
    (one,) = judged(table, [Rule("m", at_most=0.2)])
    assert (one.verdict, one.row["variant"] if one.row else None) == ("pass", "within branch")
    (named,) = judged(table, [Rule("m", {"variant": "within branch"}, at_most=0.05)])
    assert named.verdict == "undecided"


@pytest.mark.parametrize("said", ["too little data", "not measured"])
def test_a_finding_of_which_nothing_is_told_is_undecided(said: str) -> None:
    finding = Finding("apa", "d", "m", "bias", "Nothing is known", "", said, 0.0)
    rule = Rule("", finding="apa.bias", verdict_not="difference found")
    assert judged(results(), [rule], findings=lambda: [finding])[0].verdict == "undecided"


# no worse than the baseline


def one_row(value: float | None, low: float | None, high: float | None, **more: Any) -> pl.DataFrame:
    row = Row("m", value, 100, more.pop("unit", "probability"), low=low, high=high, landmark=more.pop("landmark", None))
    return results_table([row], study="b", model=more.pop("model", "m"), dataset="d")


def verdict(rule: Rule, now: pl.DataFrame, before: pl.DataFrame) -> str:
    return judged(now, [rule], changes=changed(now, before))[0].verdict


def test_the_interval_of_a_change_is_that_of_two_independent_numbers_and_stays_possible() -> None:
    table = changed(one_row(0.7, 0.6, 0.8, model="new"), one_row(0.5, 0.45, 0.6, model="old"))
    (row,) = table.iter_rows(named=True)
    assert row["low"] == pytest.approx(0.2 - np.hypot(0.1, 0.1))
    assert row["high"] == pytest.approx(0.2 + np.hypot(0.1, 0.05))
    (row,) = changed(one_row(1.0, 0.0, 1.0), one_row(0.0, 0.0, 1.0)).iter_rows(named=True)
    assert row["low"] >= -1
    assert row["high"] <= 1


@pytest.mark.parametrize(
    ("better", "now", "said"),
    [
        ("higher", (0.3, 0.25, 0.35), "fail"),
        ("lower", (0.3, 0.25, 0.35), "pass"),
        ("higher", (0.47, 0.42, 0.52), "pass"),
        ("lower", (0.9, 0.88, 0.92), "fail"),
        ("higher", (None, None, None), "fail"),
        ("higher", (0.4, None, None), "undecided"),
        ("higher", (0.6, None, None), "pass"),
    ],
)
def test_worse_than_the_baseline_beyond_chance_fails(better: str, now: tuple[Any, ...], said: str) -> None:
    rule = Rule("m", require="no worse", better=better)
    assert verdict(rule, one_row(*now), one_row(0.5, 0.45, 0.55)) == said


def test_nearer_to_no_effect_is_better_and_ratios_count_in_logarithms() -> None:
    closer = Rule("m", require="no worse")
    ratio = {"unit": "ratio", "landmark": 1.0}
    before = one_row(0.5, 0.48, 0.52, **ratio)
    assert verdict(closer, one_row(1.9, 1.85, 1.95, **ratio), before) == "pass"  # log 1.9 < log 2
    assert verdict(closer, one_row(2.4, 2.3, 2.5, **ratio), before) == "fail"
    assert verdict(closer, one_row(0.3, 0.28, 0.32, **ratio), before) == "fail"
    turned = {"first": 0.1, "second": -0.3, "low": -0.45, "high": -0.35, "landmark": 0.0}
    assert worsening("closer", turned) == pytest.approx((0.2, 0.15, 0.25))
    with pytest.raises(UsageError, match="Say better"):
        verdict(closer, one_row(0.5, 0.4, 0.6), one_row(0.5, 0.4, 0.6))


def test_ends_of_a_worsening_carry_no_rounding_of_the_machine() -> None:
    assert worsening("lower", {"first": 0.2, "second": 0.3, "low": 0.05, "high": 0.15})[1:] == (0.05, 0.15)


def test_what_is_allowed_has_to_be_shown() -> None:
    before = one_row(0.5, 0.49, 0.51)
    rule = Rule("m", require="no worse", better="higher", by=0.1)
    found = [verdict(rule, one_row(v, v - w, v + w), before) for v, w in ((0.48, 0.01), (0.42, 0.05), (0.3, 0.01))]
    assert found == ["pass", "undecided", "fail"]


def test_numbers_are_matched_by_model_where_there_are_several() -> None:
    both = pl.concat([one_row(0.5, 0.45, 0.55, model="a"), one_row(0.2, 0.15, 0.25, model="b")])
    rule = Rule("m", require="no worse", better="higher")
    assert {one.verdict for one in judged(both, [rule], changes=changed(both, both))} == {"pass"}
    found = judged(both, [rule], changes=changed(both, one_row(0.5, 0.45, 0.55, model="c")))
    assert [one.reason.split(" (")[0] for one in found].count("not measured in the baseline") == 2
    assert judged(both, [rule])[0].reason == "there is no baseline to compare with"


def test_an_unchanged_model_fails_in_at_most_one_of_twenty_releases() -> None:
    """Two audits of one model on other people: 40 shares each, every rule over all of them, in 40 releases."""
    rng, n, people = np.random.default_rng(7), 40, 120
    rules = [Rule("m", require="no worse", better=better) for better in ("higher", "lower")]
    truth = rng.uniform(0.1, 0.9, n)

    def audited() -> pl.DataFrame:
        share = rng.binomial(people, truth) / people
        middle = (share + 1.96**2 / people / 2) / (1 + 1.96**2 / people)  # Wilson's interval
        width = 1.96 * np.sqrt(share * (1 - share) / people + (1.96 / people / 2) ** 2) / (1 + 1.96**2 / people)
        rows = [
            Row("m", value, people, "probability", subset=str(i), low=low, high=high)
            for i, (value, low, high) in enumerate(zip(share, middle - width, middle + width, strict=True))
        ]
        return results_table(rows, study="b", model="m", dataset="d")

    failed = 0
    for _ in range(40):
        now, before = audited(), audited()
        failed += any(one.stops for one in judged(now, rules, changes=changed(now, before)))
    assert failed / 40 <= 0.05
