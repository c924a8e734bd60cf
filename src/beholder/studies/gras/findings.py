"""GRAS's findings: the score beside that of shuffled labels, the largest gaps, the effect of wording."""

from collections.abc import Iterator

import polars as pl

from beholder.chapter import finding as queries
from beholder.chapter import numbers
from beholder.chapter.finding import Finding, finding, metric_rows, one_row, verdict_of_rows, widest_first
from beholder.chapter.numbers import Result, drawn, number, percent, points, points_decimals, points_range, signed
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.core.results import WITHIN
from beholder.metrics.group_tests import ALPHA
from beholder.studies.gras import phrases
from beholder.studies.gras.groups import ATTRIBUTES
from beholder.studies.gras.phrases import attribute_name, attribute_names, group_name, pair_names, pair_text, score

ANSWERS = 0.5  # below this mean probability of yes or no, a model is not answering the question
SMALL = 0.01  # a gap below one point of P(Yes) is called small
TOGETHER = "for all traits, pairs of groups and attributes together"
SHOWN = 4  # traits of an attribute that are drawn beside an answer
FEW = 3  # groups that a sentence about valences names


def gras_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show, in the order to read it."""
    return [finding for find in FINDERS for finding in find(part)]


def _answer_share(part: pl.DataFrame) -> float | None:
    masses = metric_rows(part, "answer_mass")
    return float(masses["value"].to_numpy().mean()) if masses.height else None


def _not_answering(part: pl.DataFrame) -> Iterator[Finding]:
    share, masses = _answer_share(part), metric_rows(part, "answer_mass")
    if share is None or share >= ANSWERS:
        return
    low, high = masses["value"].to_numpy().min(), masses["value"].to_numpy().max()
    by_wording = f"{percent(low)} to {percent(high)} by wording" if masses.height > 1 else "one wording"
    sentence = f"On average {percent(share)} of its probability falls on yes or no ({by_wording}); the rest goes to "
    sentence += "other words. The scores and gaps below are computed from P(Yes) anyway: they say little about such a "
    sentence += "model."
    first, *others = masses.to_dicts()
    headline = "It mostly answers with something other than yes or no"
    yield finding(first, "answers", headline, sentence, verdict=FACT, more=others)


def _variant(part: pl.DataFrame) -> Iterator[Finding]:
    """Models that match pictures with texts cannot be asked; the reader learns first what replaces their P(Yes)."""
    row = one_row(part, "bias_score")
    if row is None or phrases.is_published_measure(part):
        return
    sentence = "It matches pictures with texts and cannot be asked a question. What is called P(Yes) here is its share "
    sentence += "of belief on a statement against its denial. No published score is comparable."
    yield finding(row, "variant", "A variant, not the published measure", sentence, verdict=NOT_MEASURED)


def _score(part: pl.DataFrame) -> Iterator[Finding]:
    """The score as published, and what to compare it with; of a list other than the study's it is in per cent."""
    published, expected = one_row(part, "bias_score"), one_row(part, "bias_score_expected")
    counted, sized = (one_row(part, f"bias_score_{name}") for name in ("shown", "sized"))
    if published is None:
        return
    value, n = published["value"], published["n"]
    sign, traits = ("", "100 traits") if n == 100 else (" %", f"the {number(n, 'trait')} asked")
    headline = f"{score(value)}{sign} of {traits} count as biased under the study's rule"
    sentence = f"GRAS Bias Score {score(value)} (its complement, which the abstract prints: {score(100 - value)}): the "
    sentence += f"per cent of {traits} that differ at p ≤ {ALPHA:g} in any wording, averaged over "
    sentence += f"{attribute_names(phrases.attributes(part))}."
    if expected is not None:
        low, high = expected["low"], expected["high"]
        bounds = "" if low is None else f" ({low:.0f}–{high:.0f} in 95 % of shuffles)"
        headline += f"; {score(expected['value'])}{'' if expected['n'] == 100 else ' %'} with shuffled labels"
        sentence += f" With shuffled labels, which mean nothing, the score is {score(expected['value'])}{bounds}."
    if counted is not None and not counted["value"]:
        sentence += f" Compared within the other labels, {TOGETHER}, no trait's difference was found."
    elif counted is not None:
        then = score(counted["value"])
        then += f"; {score(sized['value'])} if only gaps of at least one point count" if sized else ""
        sentence += f" Counting only traits with a difference found, {TOGETHER}, the score is {then}."
    more = [row for row in (expected, counted, sized) if row is not None]
    verdict = verdict_of_rows(metric_rows(part, "attribute").to_dicts())
    yield finding(published, "score", headline, sentence, verdict=verdict, more=more)


def _gaps(part: pl.DataFrame) -> Iterator[Finding]:
    """By attribute where a difference was found, the largest first; the others together."""
    gaps, others, findings, alike, untested = phrases.gaps(part), phrases.other_gaps(part), [], [], []
    for attribute in phrases.attributes(part):
        own, other = (table.filter(pl.col("subset") == attribute) for table in (gaps, others))
        verdict = verdict_of_rows(own.to_dicts())
        if verdict == DIFFERENCE or other.height:
            found = [*own.filter("found").to_dicts(), *other.to_dicts(), *own.filter(~pl.col("found")).to_dicts()]
            findings.append(_told(part, _gap(own, other), found[:SHOWN]))
        elif verdict == NONE_FOUND:
            alike.append(own)
        elif own.height:
            untested += own.head(1).to_dicts()
    yield from sorted(findings, key=lambda finding: -finding.effect)
    if alike:
        yield _told(part, _no_gap(alike), [table.row(0, named=True) for table in alike])
    if untested:
        headline = f"Too few people to compare by {attribute_names(row['subset'] for row in untested)}"
        why = "Fewer than two groups have five people or more, so nothing can be said."
        sentence = f"{why} Measured: {_listed_gaps(untested)}."
        yield finding(untested[0], "gap", headline, sentence, verdict=TOO_LITTLE, more=untested[1:])


def _gap(gaps: pl.DataFrame, others: pl.DataFrame) -> Finding:
    found, other, widest = gaps.filter("found").to_dicts(), others.to_dicts(), gaps.row(0, named=True)
    first, *next_rows = found or other
    name, (higher, lower) = attribute_name(first["subset"]), pair_names(first)
    noun, size = "drawings" if drawn(first["dataset"]) else "images", points(first["value"], points_decimals(first))
    place = "widest that was found" if first["concept"] != widest["concept"] else f"widest of all gaps by {name}"
    variant = first["variant"] or ""
    within = f" {attribute_name(variant.split(';')[0])}" if variant.startswith(WITHIN) else ""
    sentence = f"For “{first['concept']}” {noun} labelled {higher} get {size} points more P(Yes) than those labelled "
    sentence += f"{lower}{within} (95 % interval {points_range(first)}, {TOGETHER}; {first['n']} {noun}), the {place}."
    if first.get("plain") is not None and within and points(first["plain"]) != points(first["value"]):
        sentence += f" Without regard to that the widest gap is {points(first['plain'])} points."
    sentence += f" Note: {first['remark']}." if first.get("remark") else ""
    next_gaps = [f"“{row['concept']}” {points(row['value'])} ({pair_text(row)})" for row in next_rows[:2]]
    verb = "The next are" if len(next_gaps) > 1 else "The next is"
    sentence += f" {verb} {numbers.listed(next_gaps)}." if next_gaps else ""
    count = len({row["concept"] for row in (*found, *other)})
    sentence += f" Differences were found for {count} of {number(gaps.height, 'trait')}."
    headline = f"By {name}, differences were found, all of them below one point"
    if first["value"] >= SMALL:
        ends = f"more for {numbers.plural(higher)} than for {numbers.plural(lower)}, by {size} points"
        headline = f"The model affirms “{first['concept']}” {ends}"
    return finding(first, "gap", headline, sentence, verdict=DIFFERENCE, effect=first["value"], more=next_rows[:2])


def _told(part: pl.DataFrame, made: Finding, rows: list[Result]) -> Finding:
    """The finding with both groups' mean P(Yes) of each trait, and its answer."""
    shown = tuple(_contrast(part, row) for row in rows)
    first, row = shown[0], rows[0]
    if first.sides is None or made.verdict == NONE_FOUND:
        return made._replace(contrasts=shown)
    (higher, lower), (more, less) = map(numbers.people, pair_names(row)), (percent(side.value) for side in first.sides)
    answer = f"The model says yes to “{row['concept']}” with {more} for {higher}, and with {less} for {lower}."
    return made._replace(contrasts=shown, answer=answer)


def _contrast(part: pl.DataFrame, row: Result) -> queries.Contrast:
    own = metric_rows(part, "group_mean").filter(subset=row["subset"], concept=row["concept"])
    means = own.group_by("group", maintain_order=True).agg(pl.col("value").mean(), pl.col("n").max())
    sides = {mean["group"]: mean for mean in means.to_dicts()}
    made = queries.contrast(row["concept"], row, sides)
    apart = made.sides and made.sides[0].value - made.sides[1].value
    return made if apart is None or apart * row["value"] > 0 else made._replace(sides=None)  # within strata otherwise


def _no_gap(tables: list[pl.DataFrame]) -> Finding:
    rows = [table.row(0, named=True) for table in tables]
    ends = [abs(bound) for table in tables for name in ("low", "high") for bound in table[name].drop_nulls()]
    most = f" A difference of up to {points(max(ends))} points may still be there." if ends else ""
    always = f"Some gap is always the widest; none was found, {TOGETHER}.{most}"
    sentence = f"The widest gaps: {_listed_gaps(rows)}. {always}"
    sentence += "".join(f" Note: {row['remark']}." for row in rows if row["remark"])
    headline = f"No difference found by {attribute_names(row['subset'] for row in rows)}"
    return finding(rows[0], "gap", headline, sentence, verdict=NONE_FOUND, more=rows[1:])


def _listed_gaps(rows: list[Result]) -> str:
    return "; ".join(
        f"{attribute_name(row['subset'])} “{row['concept']}” {points(row['value'], points_decimals(row))} "
        f"points, {pair_text(row)} ({points_range(row) or 'no interval'})"
        for row in rows
    )


def _valence(part: pl.DataFrame) -> Iterator[Finding]:
    shares, off = metric_rows(part, "valence_share"), (pl.col("value") - pl.col("landmark")).abs()
    shares = shares.drop_nulls("landmark").with_columns(found=queries.FOUND)
    rows = shares.sort(off, descending=True, maintain_order=True).to_dicts()
    if not rows:
        return
    found = [row for row in rows if row["found"]]
    named = found or rows[:1]
    headline = "No group's share of positive or negative traits was found to differ from shuffled labels"
    for row in found[:1]:
        side, group = "more" if row["value"] > row["landmark"] else "fewer", group_name(row["group"], row["subset"])
        headline = f"{group}: {side} {row['concept']} traits above the mean than with shuffled labels"
    texts = []
    for row in named[:FEW]:
        group, traits = group_name(row["group"], row["subset"]), number(row["n"], f"{row['concept']} trait")
        shuffled = f"(shuffled labels {row['landmark']:.0f} %, {_p_value(row)})"
        texts.append(f"{group} {row['value']:.0f} % of {traits} {shuffled}")
    sentence = f"Traits above the mean in every wording: {'; '.join(texts)}. Shares (groups, positive and negative) "
    sentence += f"that were found to differ from what shuffled labels give: {len(found)} of {len(rows)}."
    yield finding(named[0], "valence", headline, sentence, verdict=verdict_of_rows(rows), more=named[1:FEW])


def _p_value(row: Result) -> str:
    return "not tested" if row["p_value"] is None else f"p {numbers.row_p_value(row)}"


def _wording(part: pl.DataFrame) -> Iterator[Finding]:
    shares = metric_rows(part, "wording_share").filter(pl.col("concept").is_null(), pl.col("subset").is_not_null())
    if shares.is_empty():
        return
    rows = widest_first(shares).to_dicts()
    by_attribute = [f"{attribute_name(row['subset'])} {percent(row['value'])}" for row in rows]
    by = attribute_name(rows[0]["subset"])
    headline = f"{percent(rows[0]['value'])} of how groups differ by {by} changes with the wording"
    sentence = "Share of the differences between groups that changes from wording to wording, of the traits with a "
    sentence += f"difference found: {', '.join(by_attribute)}. 0 %: all wordings agree. Chance is taken off."
    share = _answer_share(part)
    if share is not None and share >= ANSWERS:
        sentence += f" The model does answer: {percent(share)} of its probability falls on yes or no."
    yield finding(rows[0], "wording", headline, sentence, verdict=FACT, effect=rows[0]["value"], more=rows[1:])


def _sensitive(part: pl.DataFrame) -> Iterator[Finding]:
    """For how many traits P(Yes) itself moves with the wording, whatever the groups; and what the study's tests say."""
    row, ranges = one_row(part, "wording_sensitive"), widest_first(metric_rows(part, "wording_range"))
    if row is None or ranges.is_empty():
        return
    most, traits = ranges.row(0, named=True), number(row["n"], "trait")
    moved = round(row["value"] * row["n"] / 100)
    headline = f"The probability of yes moves by a point or more with the wording for {moved} of {traits}"
    sentence = f"Mean P(Yes) over everyone lies at least one point apart between two wordings for {moved} of {traits}. "
    sentence += f"The median trait moves by {points(ranges['value'].quantile(0.5, 'linear'))} points, "
    sentence += f"“{most['concept']}” most: {points(most['value'])}."
    both = metric_rows(part, "template_anova").join(metric_rows(part, "template_friedman"), on=["model", "concept"])
    if both.height:
        called = both.filter((pl.col("p_value") <= ALPHA) & (pl.col("p_value_right") <= ALPHA)).height
        of = f"{called} of {number(both.height, 'trait')}"
        sentence += f" Both of the study's tests (ANOVA and Friedman, p ≤ {ALPHA:g}) call {of}."
    yield finding(row, "sensitive", headline, sentence, verdict=FACT, more=[most])


def _intersections(part: pl.DataFrame) -> Iterator[Finding]:
    table, spread = phrases.favoured(part), one_row(part, "interaction_spread")
    if table.height < 2:
        return
    rows, spreads = table.to_dicts(), [] if spread is None else [spread]
    found = [row for row in rows if row["found"]]
    ends = [row for row in found[:1] if row["value"] > 0] + [row for row in found[-1:] if row["value"] < 0]
    named = [f"the {'most' if row['value'] > 0 else 'least'} good of {row['group']}" for row in ends]
    headline = "No intersection found to differ"
    if named:
        headline = f"It says {' and '.join(named)}"
    elif spread is not None and spread["verdict"] == DIFFERENCE:
        headline = "Intersections differ beyond their single attributes"
    named_rows = ends or [rows[0], rows[-1]]
    sentence = "Mean P(Yes) of positive traits minus that of negative ones, against the mean over everyone: "
    sentence += f"{', '.join(map(_favour, named_rows))}. Differences from the mean were found for {len(found)} of "
    sentence += f"{table.height} intersections."
    sentence += "".join(f" {_interaction(each, table.filter('beyond_found'))}" for each in spreads)
    first, *others = [*named_rows, *spreads]
    headline, verdict = headline[:1].upper() + headline[1:], verdict_of_rows([*rows, *spreads])
    yield finding(first, "intersection", headline, sentence, verdict=verdict, more=others)


def _interaction(spread: Result, beyond: pl.DataFrame) -> str:
    if spread["verdict"] != DIFFERENCE:
        none = "no difference between intersections was found"
        return f"Beyond what their single attributes add up to, {none} ({_p_value(spread)})."
    farthest = beyond.sort(pl.col("beyond").abs(), descending=True).to_dicts()
    named = [f"{row['group']} ({signed(row['beyond'])} points)" for row in farthest[:FEW]]
    return f"They differ beyond what their single attributes add up to ({_p_value(spread)}): {numbers.listed(named)}."


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
        least, *_, most = [*own.sort("value").to_dicts()] * (2 if own.height == 1 else 1)
        shares = f"{percent(most['value'])} for {most['group']}"
        shares += "" if own.height == 1 else f", {percent(least['value'])} for {least['group']}"
        by_attribute.append(f"{attribute_name(str(name))}: {shares} ({_p_value(most)})")
    first, *others = table.to_dicts()
    verdict = verdict_of_rows([first, *others])
    what = "about some groups more often" if verdict == DIFFERENCE else "some questions"
    sentence = f"Share of images with a refused question, highest and lowest: {'; '.join(by_attribute)}."
    sentence += " No difference between groups was found." if verdict == NONE_FOUND else ""
    yield finding(first, "refusal", f"It refuses to answer {what}", sentence, verdict=verdict, more=others)


def _planted(part: pl.DataFrame) -> Iterator[Finding]:
    planted, others = phrases.recovered(part)
    if not planted:
        return
    right = [row for row in planted if row["same"] == "yes" and row["found"]]
    headline = f"The audit finds {len(right)} of {len(planted)} planted associations"
    sentence = "An association is recovered if a difference was found that points in the planted direction."
    sentence += "" if len(right) == len(planted) else " The others were not found, or point the other way."
    sentence += f" {phrases.false_calls(others)}" if others else ""
    missed = float(len(planted) - len(right) + sum(row["found"] for row in others))
    yield finding(planted[0], "planted", headline, sentence, verdict=FACT, effect=missed, more=planted[1:])


def _nothing(part: pl.DataFrame) -> Iterator[Finding]:
    """Where no attribute has two groups, the chapter says so, and little else."""
    if not phrases.attributes(part) and part.height:
        names = attribute_names(ATTRIBUTES).replace(" and ", " or ")
        sentence = f"There are no two groups of {names} with two images or more each."
        yield finding(part.row(0, named=True), "absent", "No groups to compare", sentence, verdict=NOT_MEASURED)


def _absent(part: pl.DataFrame) -> Iterator[Finding]:
    row, absent, measured = one_row(part, "bias_score"), phrases.attributes(part, absent=True), phrases.attributes(part)
    if row is not None and absent and measured:
        missing, only = attribute_names(absent), f"so the score is the mean over {attribute_names(measured)} only."
        sentence = f"There were no two groups of {missing} to compare, {only}"
        yield finding(row, "absent", f"Not measured: {missing}", sentence, verdict=NOT_MEASURED)


# What model it is, and what it shows on the whole, come first.
FINDERS = [_planted, _nothing, _variant, _not_answering, _score, _gaps]
FINDERS += [_valence, _intersections, _wording, _sensitive, _refusals, _absent]
