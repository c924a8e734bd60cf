"""GRAS's findings: the score and its value without bias, the largest gaps and their groups, the effect of the wording.

A significant difference is not called large, and a difference that is not shown is not called absent.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from beholder.chapter.finding import Finding, finding
from beholder.chapter.numbers import (
    Result,
    has_interval,
    percent,
    percent_range,
    points,
    points_decimals,
    points_range,
    row_p_value,
    signed,
)
from beholder.chapter.phrases import drawn, listed
from beholder.chapter.queries import metric_rows, one_row, widest_first
from beholder.comparison.verdicts import DIFFERENCE, NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.metrics.multiplicity import ALPHA
from beholder.studies.gras import queries
from beholder.studies.gras.groups import ATTRIBUTES
from beholder.studies.gras.phrases import (
    attribute_name,
    attribute_names,
    group_name,
    pair_names,
    pair_text,
    score,
    share_range,
)
from beholder.studies.gras.planted import false_calls, recovered

ANSWERS = 0.5
"""Below this mean probability of yes or no, a model is not answering the question."""
SMALL = 0.01
"""A gap below one point of P(Yes) is called small."""
AGREE, DISAGREE = 0.1, 0.5
"""Share of the group differences that changes with the wording: below the first hardly any, from the second most."""
TOGETHER = "for all traits, pairs of groups and attributes together"
NOT_NONE = "This does not mean that there is none."
FEW = 3
"""Groups that a sentence about valences names."""


def gras_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show, in the order to read it."""
    return [finding for find in FINDERS for finding in find(part)]


def _not_answering(part: pl.DataFrame) -> Iterator[Finding]:
    masses = metric_rows(part, "answer_mass")
    if not masses.height or _mean(masses) >= ANSWERS:
        return
    sentence = (
        f"On average {percent(_mean(masses))} of its probability falls on yes or no ({_by_wording(masses)}); the rest "
        "goes to other words. The scores and gaps below are computed from P(Yes) anyway: they say little about such a "
        "model."
    )
    first, *others = masses.to_dicts()
    headline = "It mostly answers with something other than yes or no"
    yield finding(first, "answers", headline, sentence, shown=True, more=others)


def _by_wording(masses: pl.DataFrame) -> str:
    low, high = (percent(value) for value in (masses["value"].min(), masses["value"].max()))  # type: ignore[arg-type]
    return f"{low} to {high} by wording" if masses.height > 1 else "one wording"


def _mean(table: pl.DataFrame) -> float:
    return float(table["value"].to_numpy().mean())


def _variant(part: pl.DataFrame) -> Iterator[Finding]:
    """Models that match pictures with texts cannot be asked; the reader learns first what replaces their P(Yes)."""
    row = one_row(part, "bias_score")
    if row is None or queries.is_published_measure(part):
        return
    sentence = (
        "It matches pictures with texts and cannot be asked a question. What is called P(Yes) here is its share of "
        "belief on a statement against its denial. No published score is comparable."
    )
    yield finding(row, "variant", "A variant, not the published measure", sentence, verdict=NOT_MEASURED)


def _score(part: pl.DataFrame) -> Iterator[Finding]:
    published, expected = one_row(part, "bias_score"), one_row(part, "bias_score_expected")
    shown, sized = (one_row(part, f"bias_score_{name}") for name in ("shown", "sized"))
    if published is None:
        return
    above = expected is not None and expected["high"] is not None and published["value"] > expected["high"]
    above = above if published["p_value"] is None else expected is not None and published["p_value"] <= ALPHA
    headline = f"{_share(published)} of {_traits(published)} count as biased under the study's rule"
    if expected is not None:
        chance = f"{_share(expected)} would without any bias" if above else f"chance alone gives {_share(expected)}"
        headline += f"; {chance}"
    sentence = " ".join((_rule(part, published), *_comparisons(published, expected, shown, sized)))
    more = [row for row in (expected, shown, sized) if row is not None]
    yield finding(published, "score", headline, sentence, shown=above, more=more)


def _share(row: Result) -> str:
    """Of the study's hundred traits as a number, of any other list in per cent."""
    return score(row["value"]) + ("" if row["n"] == 100 else " %")


def _traits(row: Result) -> str:
    if row["n"] == 100:
        return "100 traits"
    return "the one trait asked" if row["n"] == 1 else f"the {row['n']} traits asked"


def _rule(part: pl.DataFrame, published: Result) -> str:
    attributes, value = attribute_names(queries.attributes(part)), published["value"]
    return (
        f"GRAS Bias Score {score(value)} (its complement, which the abstract prints: {score(100 - value)}): the per "
        f"cent of {_traits(published)} that differ at p ≤ {ALPHA:g} in any wording, averaged over {attributes}."
    )


def _comparisons(
    published: Result, expected: Result | None, shown: Result | None, sized: Result | None
) -> Iterator[str]:
    """What to compare the published score with."""
    if expected is None:
        yield "Its value for shuffled labels is not known, so no bias is shown."
    else:
        low, high = expected["low"], expected["high"]
        bounds = "" if low is None else f" ({low:.0f}–{high:.0f} in 95 % of shuffles)"
        p_value = "" if published["p_value"] is None else f", p {row_p_value(published)}"
        yield f"With shuffled labels, which mean nothing, the score is {score(expected['value'])}{bounds}{p_value}."
    if shown is not None and not shown["value"]:
        yield f"No trait's gap is shown after correction {TOGETHER}."
    elif shown is not None:
        then = f"; {score(sized['value'])} if only gaps of at least one point count" if sized else ""
        yield f"Counting only traits whose gap is shown, {TOGETHER}, the score is {score(shown['value'])}{then}."


def _gaps(part: pl.DataFrame) -> Iterator[Finding]:
    gaps, findings, not_shown, untested = queries.gaps(part), [], [], []
    for attribute in queries.attributes(part):
        own = gaps.filter(pl.col("subset") == attribute)
        if own["shown"].any():
            findings.append(_gap(own))
        elif own["p_value"].drop_nulls().len() or not own["value"].max():
            not_shown += own.head(1).to_dicts()
        else:
            untested += own.head(1).to_dicts()
    yield from sorted(findings, key=lambda finding: -finding.effect)
    if not_shown:
        yield _no_gap(not_shown)
    if untested:
        yield _too_few(untested)


def _gap(gaps: pl.DataFrame) -> Finding:
    """An attribute's largest gap that is shown, the next ones, and how many are shown in all."""
    (first, *others), widest = gaps.filter("shown").to_dicts(), gaps.row(0, named=True)
    name, (higher, lower) = attribute_name(first["subset"]), pair_names(first)
    noun = "drawings" if drawn(first["dataset"]) else "images"
    value = points(first["value"], points_decimals(first))
    interval = f"95 % interval {points_range(first)}, {TOGETHER}"
    interval = interval if has_interval(first) else "no interval: within each group all answers are alike"
    place = f"the widest of all gaps by {name}" if first["concept"] == widest["concept"] else "the widest that is shown"
    sentence = (
        f"For “{first['concept']}” {noun} labelled {higher} get {value} points more P(Yes) than those labelled {lower} "
        f"({interval}; {first['n']} {noun}), {place}."
    )
    next_gaps = [f"“{row['concept']}” {points(row['value'])} ({pair_text(row)})" for row in others[:2]]
    verb = "The next are" if len(next_gaps) > 1 else "The next is"
    sentence += f" {verb} {listed(next_gaps)}." if next_gaps else ""
    sentence += f" Gaps are shown for {len(others) + 1} of {_counted(gaps.height, 'trait')}."
    headline = f"The model affirms “{first['concept']}” more for {higher} than for {lower}, by {value} points"
    headline = f"By {name}, differences are shown, all of them below one point" if first["value"] < SMALL else headline
    return finding(first, "gap", headline, sentence, shown=True, effect=first["value"], more=others[:2])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _no_gap(rows: list[Result]) -> Finding:
    sentence = (
        f"The widest gaps: {_listed_gaps(rows)}. Some gap is always the widest; none is shown, {TOGETHER}. {NOT_NONE}"
    )
    names = attribute_names(row["subset"] for row in rows)
    return finding(rows[0], "gap", f"No difference is shown by {names}", sentence, more=rows[1:])


def _listed_gaps(rows: list[Result]) -> str:
    return "; ".join(
        f"{attribute_name(row['subset'])} “{row['concept']}” {points(row['value'], points_decimals(row))} "
        f"points, {pair_text(row)} ({points_range(row) or 'no interval'})"
        for row in rows
    )


def _too_few(rows: list[Result]) -> Finding:
    names = attribute_names(row["subset"] for row in rows)
    sentence = (
        f"Fewer than two groups have five people or more, so nothing can be said. Measured: {_listed_gaps(rows)}."
    )
    return finding(rows[0], "gap", f"Too few people to compare by {names}", sentence, verdict=TOO_LITTLE, more=rows[1:])


def _sources(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether gaps remain at the same mix of image sources; nothing where neither way shows any."""
    gaps = queries.gaps(part).filter(pl.col("adjusted").is_not_null())
    for (name,), own in gaps.group_by(["subset"], maintain_order=True):
        crude, adjusted = own.filter("shown"), own.filter("adjusted_shown")
        if crude.is_empty() and adjusted.is_empty():
            continue
        lost = crude.filter(~pl.col("adjusted_shown"))
        by, same = attribute_name(str(name)), "at the same mix of image sources"
        headline = f"Gaps by {by} are shown {same} too"
        if lost.height:
            headline = f"{lost.height} of {_counted(crude.height, 'gap')} by {by} not shown {same}"
        elif crude.is_empty():
            headline = f"{_counted(adjusted.height, 'gap')} by {by} shown only {same}"
        first = (lost if lost.height else crude if crude.height else adjusted).row(0, named=True)
        row = one_row(part, "adjusted_gap", subset=first["subset"], concept=first["concept"])
        assert row is not None  # it was joined on
        sentence = (
            f"Groups differ in where their images come from. With the same mix in every group, {adjusted.height} of "
            f"{_counted(own.height, 'trait')} show a gap between the same two groups, without it {crude.height}. "
            f"“{first['concept']}”: {signed(first['adjusted'])} points ({points_range(row) or 'no interval'}) in place "
            f"of {signed(first['value'])} ({pair_text(first)})."
        )
        yield finding(row, "sources", headline, sentence, shown=bool(adjusted.height), more=[first])


def _valence(part: pl.DataFrame) -> Iterator[Finding]:
    """Which groups have more, or fewer, traits above the mean than shuffled labels give them."""
    table = queries.valence_shares(part).filter(pl.col("landmark").is_not_null())
    tested = table.filter(pl.col("p_value").is_not_null())
    if table.is_empty():
        return
    off, rows = tested.filter("shown").to_dicts(), table.to_dicts()
    named = off or rows[:1]
    headline = "No group's share of positive or negative traits is shown to differ from chance"
    if off:
        side = "more" if off[0]["value"] > off[0]["landmark"] else "fewer"
        group = group_name(off[0]["group"], off[0]["subset"])
        headline = f"{group}: {side} {off[0]['concept']} traits above the mean than chance gives"
    sentence = (
        f"Traits above the mean in every wording: {'; '.join(map(_valence_text, named[:FEW]))}. Shares (groups, "
        f"positive and negative) that are shown to differ from what shuffled labels give: {len(off)} of {len(rows)}."
        f"{'' if off else f' {NOT_NONE}'}"
    )
    verdict = DIFFERENCE if off else NONE_FOUND if tested.height else TOO_LITTLE
    yield finding(named[0], "valence", headline, sentence, verdict=verdict, more=named[1:FEW])


def _valence_text(row: Result) -> str:
    group, traits = group_name(row["group"], row["subset"]), _counted(row["n"], f"{row['concept']} trait")
    return (
        f"{group} {row['value']:.0f} % of {traits} ({share_range(row)}"
        f"shuffled labels {row['landmark']:.0f} %, {_p_value(row)})"
    )


def _p_value(row: Result) -> str:
    return "not tested" if row["p_value"] is None else f"p {row_p_value(row)}"


def _wording(part: pl.DataFrame) -> Iterator[Finding]:
    """How much of the shown differences depends on the wording."""
    shares = metric_rows(part, "wording_share").filter(pl.col("concept").is_null(), pl.col("subset").is_not_null())
    if shares.is_empty():
        return
    rows = widest_first(shares).to_dicts()
    headline, verdict = _wording_headline(rows)
    by_attribute = [f"{attribute_name(row['subset'])} {percent(row['value'])} ({_share_bounds(row)})" for row in rows]
    sentence = (
        f"Share of the differences between groups that changes from wording to wording, of the traits whose gap is "
        f"shown: {', '.join(by_attribute)}. 0 %: all wordings agree. Sampling noise is taken off.{_answer_share(part)}"
    )
    yield finding(rows[0], "wording", headline, sentence, verdict=verdict, effect=rows[0]["value"], more=rows[1:])


def _wording_headline(rows: list[Result]) -> tuple[str, str]:
    """By the intervals: a share is small, large or in between only if its interval is."""
    known = [row for row in rows if row["low"] is not None]
    if not known:
        return "How far the differences depend on the wording is not known", TOO_LITTLE
    most = [attribute_name(row["subset"]) for row in known if row["low"] >= DISAGREE]
    some = [attribute_name(row["subset"]) for row in known if AGREE <= row["low"] < DISAGREE]
    if most:
        return f"How groups differ by {listed(most)} depends mostly on the wording", DIFFERENCE
    if some:
        return f"How groups differ by {listed(some)} depends in part on the wording", DIFFERENCE
    if len(known) == len(rows) and all(row["high"] < AGREE for row in known):
        return "The groups differ nearly alike in every wording", DIFFERENCE
    return "How far the differences depend on the wording is not certain", NONE_FOUND


def _share_bounds(row: Result) -> str:
    return percent_range(row["low"], row["high"]) if row["low"] is not None else "no interval"


def _sensitive(part: pl.DataFrame) -> Iterator[Finding]:
    """For how many traits P(Yes) itself moves with the wording, whatever the groups."""
    row, ranges = one_row(part, "wording_sensitive"), queries.wording_ranges(part)
    if row is None or ranges.is_empty():
        return
    most, traits = ranges.row(0, named=True), row["n"]
    moved, low, high = (None if row[k] is None else round(row[k] * traits / 100) for k in ("value", "low", "high"))
    bounds = "no interval" if low is None else f"95 % interval {low}–{high}, for all traits together"
    headline = "No trait's probability of yes is shown to move by a point or more with the wording"
    if low:
        known = f"at least {low} of {_counted(traits, 'trait')}"
        headline = f"The probability of yes moves by a point or more with the wording for {known}"
    sentence = (
        f"Mean P(Yes) over everyone lies at least one point apart between two wordings for {moved} of "
        f"{_counted(traits, 'trait')} ({bounds}). The median trait moves by {points(_median(ranges['value']))} points, "
        f"“{most['concept']}” most: {points(most['value'], points_decimals(most))} "
        f"({points_range(most) or 'no interval'})."
    )
    tests = queries.wording_tests(part)
    if tests is not None:
        found = f"{tests[0]} of {_counted(tests[1], 'trait')}"
        sentence += f" Both of the study's tests (ANOVA and Friedman, p ≤ {ALPHA:g}) find a difference for {found}."
    verdict = TOO_LITTLE if low is None else DIFFERENCE if low else NONE_FOUND
    yield finding(row, "sensitive", headline, sentence, verdict=verdict, more=[most])


def _median(values: pl.Series) -> float:
    return float(values.median() or 0.0)  # type: ignore[arg-type]


def _answer_share(part: pl.DataFrame) -> str:
    masses = metric_rows(part, "answer_mass")
    if not masses.height or _mean(masses) < ANSWERS:
        return ""
    return f" The model does answer: {percent(_mean(masses))} of its probability falls on yes or no."


def _intersections(part: pl.DataFrame) -> Iterator[Finding]:
    table, spread = queries.favoured(part), one_row(part, "interaction_spread")
    if table.height < 2:
        return
    most, least = table.row(0, named=True), table.row(-1, named=True)
    off, beyond = table.filter("shown").height, table.filter(pl.col("beyond_shown").fill_null(False))
    interacts = spread is not None and spread["p_value"] is not None and spread["p_value"] <= ALPHA
    headline = "No intersection is shown to be favoured"
    if off:
        headline = f"Most favoured intersection: {most['group']}; least: {least['group']}"
        headline += "" if interacts or spread is None else "; no interaction is shown"
    elif interacts:
        headline = "Intersections are shown to differ beyond what their single attributes add up to"
    sentence = (
        "Mean P(Yes) of positive traits minus that of negative ones, against the mean over everyone: "
        f"{_favour(most)}, {_favour(least)}. {off} of {table.height} intersections are shown to lie off the mean "
        f"(partly pooled: small cells are pulled towards it).{'' if off else f' {NOT_NONE}'}"
    )
    sentence += "" if spread is None else f" {_interaction(spread, interacts, beyond)}"
    more = [least, *([] if spread is None else [spread])]
    yield finding(most, "intersection", headline, sentence, shown=bool(off) or interacts, more=more)


def _interaction(spread: Result, interacts: bool, beyond: pl.DataFrame) -> str:
    """Whether intersections go beyond the sum of their attributes, and which."""
    p_value = f"p {row_p_value(spread)}"
    if not interacts:
        return (
            f"Beyond what their single attributes add up to, no difference between intersections is shown ({p_value})."
        )
    farthest = beyond.sort(pl.col("beyond").abs(), descending=True).to_dicts()
    named = [f"{row['group']} ({signed(row['beyond'])} points)" for row in farthest[:FEW]]
    cells = f"of single intersections, {listed(named)}" if named else "no single intersection is shown to"
    return f"They differ beyond what their single attributes add up to ({p_value}); {cells}."


def _favour(row: Result) -> str:
    bounds = points_range(row)
    interval = f"95 % interval {bounds}; " if bounds else ""
    expected = "" if row["expected"] is None else f"; its attributes alone {signed(row['expected'])}"
    return f"{row['group']} {signed(row['value'])} points ({interval}n = {row['n']}{expected})"


def _refusals(part: pl.DataFrame) -> Iterator[Finding]:
    """Which groups the model refuses to answer about; nothing for a model that never refuses."""
    table = metric_rows(part, "refusal_share")
    if table.is_empty() or not table["value"].max():
        return
    by_attribute = []
    for (name,), own in table.group_by(["subset"], maintain_order=True):
        ordered = own.sort("value").to_dicts()
        most, least = ordered[-1], ordered[0]
        shares = f"{percent(most['value'])} for {most['group']}"
        shares += "" if own.height == 1 else f", {percent(least['value'])} for {least['group']}"
        by_attribute.append(f"{attribute_name(str(name))}: {shares} ({_p_value(most)})")
    tested = table["p_value"].drop_nulls()
    verdict = DIFFERENCE if (tested <= ALPHA).any() else NONE_FOUND if tested.len() else TOO_LITTLE
    what = "about some groups more often" if verdict == DIFFERENCE else "some questions"
    sentence = f"Share of images with a refused question, highest and lowest: {'; '.join(by_attribute)}."
    sentence += f" No difference between groups is shown. {NOT_NONE}" if verdict == NONE_FOUND else ""
    first, *others = table.to_dicts()
    yield finding(first, "refusal", f"It refuses to answer {what}", sentence, verdict=verdict, more=others)


def _planted(part: pl.DataFrame) -> Iterator[Finding]:
    planted, others = recovered(part)
    if not planted:
        return
    right = [gap for gap in planted if gap.same_direction and gap.row["shown"]]
    headline, complete = (
        f"The audit finds {len(right)} of {len(planted)} planted associations",
        len(right) == len(planted),
    )
    found = "An association is found if its gap is shown and points in the planted direction."
    missed = "" if complete else " The others are not shown, or point the other way."
    sentence = f"{found}{missed}{f' {false_calls(others)}' if others else ''}"
    more = [gap.row for gap in planted[1:]]
    yield finding(planted[0].row, "planted", headline, sentence, shown=complete, more=more)


def _absent(part: pl.DataFrame) -> Iterator[Finding]:
    row, absent, measured = one_row(part, "bias_score"), queries.absent(part), queries.attributes(part)
    if row is None or not absent or not measured:
        return
    missing, names = attribute_names(absent), attribute_names(measured)
    sentence = f"There were no two groups of {missing} to compare, so the score is the mean over {names} only."
    yield finding(row, "absent", f"Not measured: {missing}", sentence, verdict=NOT_MEASURED)


def _nothing(part: pl.DataFrame) -> Iterator[Finding]:
    """Where no attribute has two groups, the chapter says so, and little else."""
    if queries.attributes(part) or part.is_empty():
        return
    *names, last = (attribute_name(attribute) for attribute in ATTRIBUTES)
    sentence = f"There are no two groups of {', '.join(names)} or {last} with two images or more each."
    yield finding(part.row(0, named=True), "absent", "No groups to compare", sentence, verdict=NOT_MEASURED)


FINDERS = (
    _planted,
    _nothing,
    _variant,
    _not_answering,
    _score,
    _gaps,
    _sources,
    _valence,
    _intersections,
    _wording,
    _sensitive,
    _refusals,
    _absent,
)
