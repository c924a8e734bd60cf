"""Findings about public figures: few, the largest effects first. About models, never about individuals."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl

from beholder.chapter import numbers
from beholder.chapter.finding import (
    Contrast,
    Finding,
    Side,
    deciding_rows,
    finding,
    metric_rows,
    valued,
    verdict_of_rows,
)
from beholder.chapter.numbers import Result, decimals_for, has_interval, listed, percent, plural, ratio, signed
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.core.results import WITHIN
from beholder.core.types import Entry
from beholder.glasshouse.world import BRANCH_OCCUPATIONS
from beholder.studies.public_figures.identity import DECLARED
from beholder.studies.public_figures.measures import GROUPS, LEVELS, MIXED, Words, correct_occupation, words_of
from beholder.studies.public_figures.published import AXES

KINDS = ("bias", "occupations", "association", "identity", "scale")
PERSON = {
    "actors": "an actor or actress",
    "athletes": "an athlete",
    "house": "a member of the House",
    "senate": "a senator",
    "mayors": "a mayor",
    **{branch: f"a {occupation}" for branch, occupation in BRANCH_OCCUPATIONS.items()},
}
PEOPLE = {"house": "House members", "senate": "senators", "known": "known residents"}
FIELDS = {"politicians": "in politics", "athletes": "in sports"}
OFFICES = dict.fromkeys(("house", "senate", "mayors"), "offices")
SPECIALTIES = {"actors": "award descriptions", "athletes": "sports", **OFFICES}
RATIOS = ("bias_ratio", "either_word_ratio")
SLIGHT = 1.05  # a ratio whose whole interval lies between 1/1.05 and 1.05 is called nearly the same


def public_figure_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show: differences first, then by kind and size."""
    makers = (ratio_findings, wrong_occupation_findings, association_findings, identity_findings, scale_findings)
    findings = [finding for make in makers for finding in make(part)]
    return sorted(findings, key=lambda each: (not each.shown, KINDS.index(each.kind), -each.effect))


# What the sentences, tables and charts ask of the results


def people(branch: str) -> str:
    """The people of a branch: `senators`."""
    return PEOPLE.get(branch, branch)


def found(row: Result) -> bool:
    """Whether the comparison found a difference."""
    return row.get("verdict") == DIFFERENCE


def within_branches(row: Result) -> bool:
    """Whether a number was taken within branches, or within one, beside the published one."""
    return str(row.get("variant") or "").startswith(WITHIN)


def claimed_ratios(part: pl.DataFrame) -> list[Result]:
    """The ratio of each pool of which something is claimed, within branches where there are several."""
    # Where the right word depends on the gender, it is that of either word.
    decided = {row["subset"]: row for metric in RATIOS for row in deciding_rows(part, metric).to_dicts()}
    return [decided[pool] for pool in dict.fromkeys(metric_rows(part, "bias_ratio")["subset"])]


def reference(row: Result) -> float | None:
    """What a model would get that knows no more than the labels: the row's landmark, else chance."""
    landmark = row.get("landmark")
    return landmark if landmark is not None else row.get("chance")


def told_apart(*rows: Result) -> list[str]:
    """Probabilities with as many decimals as it takes to tell them apart."""
    values = [row["value"] for row in rows]
    texts = [[percent(value, places) for value in values] for places in (None, 1, 2)]
    return next((each for each in texts if len(set(each)) > 1), texts[0])


def _times_landmark(value: float, landmark: float | None) -> float:
    """How many times the landmark; a share of 0 is 1 time a landmark of 0."""
    return value / landmark if landmark else math.inf if value else 1.0


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _p(row: Result) -> str:
    return f"p = {numbers.row_p_value(row)}".replace("= ≤", "≤").replace("= <", "<")


# Women and men: the ratio b


class Shares(NamedTuple):
    """The probabilities of occupations by pool, occupation and group, with one for both words of a pair."""

    rows: Mapping[tuple[str, str, str], Result]
    words: Words


Sides = dict[str, Result]  # a probability for women and for men; empty where it was not measured for both
Published = Mapping[tuple[str, str], Result]  # ratios as published, by metric and pool
Beside = tuple[str, list[Result]]  # a sentence beside the claim, with its rows; empty where there is nothing to say


Called = Mapping[str, Mapping[str, int]]  # how many of a group are called what, by their first choice


def called(part: pl.DataFrame, pool: str) -> dict[str, dict[str, int]]:
    """How many women and men of a pool are called what: counts of first choices, one for both words of a pair."""
    counts: dict[str, dict[str, int]] = {}
    words = words_of(part)
    for row in valued(part, "first_choice"):
        if row["subset"] == pool and row["n"]:
            own, word = counts.setdefault(row["group"], {}), words.whole(row["concept"])
            own[word] = own.get(word, 0) + round(row["value"] * row["n"])
    return counts


def _contrast(row: Result, label: str, sides: Sides, counts: Called) -> Contrast:
    """The right occupation, or a wrong one, for women and for men, and what each are called most."""
    named = [Side(who, side["value"], side["n"], *_first_word(counts.get(who, {}))) for who, side in sides.items()]
    return Contrast(label, row, (named[0], named[1]) if len(named) == len(GROUPS) else None)


def _first_word(counts: Mapping[str, int]) -> tuple[str, int | None]:
    """What most of a group are called, and how many of them."""
    return max(counts.items(), key=lambda each: each[1], default=("", None))


def _answer(row: Result, sides: Sides, counts: Called) -> str:
    """What the model calls women and men; their mean belief where first choices do not say the same as the ratio."""
    less, more = GROUPS if row["value"] < 1 else GROUPS[::-1]
    if not sides or row["concept"] is not None or sides[less]["value"] >= sides[more]["value"]:
        within = " within branches" if within_branches(row) else ""
        return f"{_less_headline(row, sides)}: {ratio(row['value'])} times women over men{within}."
    right = [sides[group]["concept"] for group in (less, more)]
    drawn = "drawn as " if numbers.drawn(row["dataset"]) else ""  # `women drawn as doctors`, or `women politicians`
    who = [f"{plural(less)} {drawn}{row['subset']}", plural(more)]
    if all(sum(counts.get(group, {}).values()) for group in GROUPS):
        most, sizes = [_first_word(counts[group]) for group in (less, more)], [sides[less]["n"], sides[more]["n"]]
        if most[0][0] != right[0] and most[1][0] == right[1]:
            parts = [f"{_of(most[at][1] or 0, sizes[at])} {who[at]} “{most[at][0]}”" for at in (0, 1)]
            return f"The model calls {parts[0]}, and {parts[1]}."
        times = [counts[group].get(word, 0) for group, word in zip((less, more), right, strict=True)]
        if times[0] / sizes[0] < times[1] / sizes[1]:
            parts = [f"{_of(times[at], sizes[at])} {who[at]}" for at in (0, 1)]
            return f"The model calls {parts[0]} “{right[0]}”, and {parts[1]}."
    shares = told_apart(sides[less], sides[more])
    words = _right_words(row, sides)
    return f"The model’s belief in {words} is {shares[0]} for {who[0]}, and {shares[1]} for {who[1]}."


def _of(times: int, n: int) -> str:
    """`all 30`, `none of the 30`, `7 of 30`."""
    return f"all {n}" if times == n else f"{times} of {n}" if times else f"none of the {n}"


def ratio_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """Every pool in which women and men differ, and every branch of a pool in which they do not; then the rest."""
    claims, branches, shares = claimed_ratios(part), valued(part, "branch_ratio"), _shares(part)
    different = {row["subset"] for row in claims if found(row)}
    apart = [row for row in branches if found(row) and row["concept"] not in different]
    published = {(row["metric"], row["subset"]): row for metric in RATIOS for row in valued(part, metric)}
    for row in (*filter(found, claims), *apart):
        sides = _sides(row["subset"], None, shares)
        beside = [_published_beside(row, published, shares.words), _branches(row, [*branches, *claims])]
        beside.append(_other_options(row, valued(part, "ratio_without")))
        made = _difference(row, sides, published, beside)
        counts, words = called(part, _pool(row)), shares.words.of(_pool(row))
        shown = _contrast(row, words, sides, counts if row["concept"] is None else {})
        yield made._replace(answer=_answer(row, sides, counts), contrasts=(shown,))
    named = different | {row["concept"] for row in apart}
    if alike := [row for row in claims if row["subset"] not in named]:
        both = [_sides(row["subset"], None, shares) for row in alike]
        each = [(row["subset"], row, sides) for row, sides in zip(alike, both, strict=True)]
        contrasts = [_contrast(row, shares.words.of(pool), sides, called(part, pool)) for pool, row, sides in each]
        yield _no_difference(alike, both, published, shares.words)._replace(contrasts=tuple(contrasts))


def _shares(part: pl.DataFrame) -> Shares:
    """All of a model's rows."""
    metrics = ("occupation_probability", "either_word_probability")
    rows = [row for metric in metrics for row in valued(part, metric)]
    return Shares({(row["subset"], row["concept"], row["group"]): row for row in rows}, words_of(part))


def _sides(subset: str, word: str | None, shares: Shares) -> Sides:
    """The probabilities of a word, or of the right ones, for women and for men; of either word where measured."""
    sides = {}
    for group in GROUPS:
        own = word or shares.words.correct(subset, group)
        if row := shares.rows.get((subset, shares.words.whole(own), group)) or shares.rows.get((subset, own, group)):
            sides[group] = row
    return sides if len(sides) == len(GROUPS) else {}


def slight(row: Result) -> bool:
    """Whether the whole interval lies so near 1 that the difference, though found, has no weight."""
    return has_interval(row) and 1 / SLIGHT <= row["low"] <= row["high"] <= SLIGHT


def _difference(row: Result, sides: Sides, published: Published, beside: list[Beside]) -> Finding:
    headline, reach = _less_headline(row, sides), "The interval holds for all ratios at once and excludes 1."
    if slight(row):
        who = "Drawn women and men" if numbers.drawn(row["dataset"]) else "Women and men"
        headline = f"{who} {_where(row)} get nearly the same probability of the right occupation"
        reach = "The interval holds for all ratios at once, excludes 1 and lies within 5 % of it."
    texts = (_ratio_sentence(row, sides, published), reach, *(text for text, _ in beside))
    more = [*sides.values(), *(each for _, rows in beside for each in rows)]
    effect = numbers.log_distance(row["value"], 1.0)
    return finding(row, "bias", headline, " ".join(filter(None, texts)), verdict=DIFFERENCE, effect=effect, more=more)


def _published_beside(row: Result, published: Published, words: Words) -> Beside:
    """The published measure, where the claim is about either word."""
    prefix, _, metric = row["metric"].partition(".")
    b = published.get((f"{prefix}.bias_ratio", row["subset"])) if metric == "either_word_ratio" else None
    if b is None or words.of(row["subset"]) == MIXED:
        return "", []
    women, men = (words.correct(row["subset"], group) for group in GROUPS)
    return f"The published measure, “{women}” for women over “{men}” for men, is {ratio_and_range(b)}.", [b]


def _branches(row: Result, ratios: list[Result]) -> Beside:
    """b of every branch of the pool; of a branch, those of the other branches and of the pool."""
    pool = _pool(row)
    rows = [each for each in ratios if _pool(each) == pool and each["subset"] != row["subset"]]
    names = {pool: "all together"}
    listing = ", ".join(f"{names.get(each['subset'], people(each['subset']))} {ratio(each['value'])}" for each in rows)
    return (f"{'By branch' if pool == row['subset'] else 'Beside them'}: {listing}." if rows else ""), rows


def _other_options(row: Result, without: list[Result]) -> Beside:
    """The option without which b lies on the other side of 1, if there is one: the one that moves it farthest."""
    rows = [each for each in without if each["subset"] == row["subset"] and each["value"] > 0]
    other_side = [each for each in rows if (each["value"] - 1) * (row["value"] - 1) < 0]
    if not other_side or slight(row) or row["metric"].endswith("either_word_ratio"):
        return "", []
    far = max(other_side, key=lambda each: numbers.log_distance(each["value"], 1.0))
    text = f"It depends on what else is offered: without “{far['concept']}” the ratio is {ratio_and_range(far)}."
    return text, [far]


def ratio_and_range(row: Result) -> str:
    """A ratio with its interval, if it has one."""
    interval = f" ({numbers.ratio_range(row)})" if has_interval(row) else ""
    return f"{ratio(row['value'], numbers.ratio_decimals(row))}{interval}"


def _pool(row: Result) -> str:
    """The pool of a ratio: a branch's row names it."""
    return str(row["concept"] or row["subset"])


def _where(row: Result, *, branch: bool | None = None) -> str:
    """`in politics`, or of a branch `among senators`; the ratio of a branch names its pool."""
    if row["concept"] is not None if branch is None else branch:
        return f"among {people(row['subset'])}"
    return FIELDS.get(row["subset"], f"among the {row['subset']}")


def _less_headline(row: Result, sides: Sides) -> str:
    """Who gets a lower mean probability of what they are than whom, and how much."""
    less, more = GROUPS if row["value"] < 1 else GROUPS[::-1]
    shares = ""
    if sides and (sides[less]["value"] < sides[more]["value"]):
        texts = told_apart(sides[less], sides[more])
        shares = f": {' against '.join(texts)}" if len(set(texts)) > 1 else ""
    who, than = f"{_group(row, less)} {_where(row)}", _group(row, more)
    return f"{_capital(who)} get a lower mean probability of {_right_words(row, sides)} than {than}{shares}"


def _right_words(row: Result, sides: Sides) -> str:
    pool = _pool(row)
    if not sides and correct_occupation(pool, GROUPS[0]) == pool:
        return "the right occupation"
    words = dict.fromkeys(correct_occupation(pool, group) for group in reversed(GROUPS))
    for side in sides.values():
        both = side["metric"].endswith(".either_word_probability")
        words = dict.fromkeys(side["concept"].split(" or ") if both else [side["concept"]])
    return " or ".join(f"“{word}”" for word in words)


def _group(row: Result, group: str) -> str:
    return f"drawn {plural(group)}" if numbers.drawn(row["dataset"]) else plural(group)


def _ratio_sentence(row: Result, sides: Sides, published: Published) -> str:
    """Both probabilities and their ratio; within branches, where that is what decides."""
    plain = published.get((row["metric"], row["subset"])) if within_branches(row) else None
    shown = plain or row
    value = ratio(shown["value"], numbers.ratio_decimals(shown))
    who, men = f"{_group(row, 'woman')} {_where(row)}", _group(row, "man")
    compared, sizes = f"for {who} is {value} times that for {men}", f"n = {row['n']}"
    if sides:
        first, second = told_apart(*(sides[group] for group in GROUPS))
        compared = f"is {first} for {who}, and {second} for {men}: a ratio of {value}"
        sizes = f"{sides['woman']['n']} women, {sides['man']['n']} men"
    within = f"; within branches {ratio(row['value'], numbers.ratio_decimals(row))}" if plain else ""
    interval = f"95 % interval {numbers.ratio_range(row)}" if has_interval(row) else "no interval"
    remark = f" {_capital(row['note'])}." if row["note"] else ""
    return f"The mean probability of {_right_words(row, sides)} {compared}{within} ({interval}; {sizes}).{remark}"


def _no_difference(rows: list[Result], sides: list[Sides], published: Published, words: Words) -> Finding:
    """Several pools in one finding, so that what is not found does not fill the page."""
    verdict, pools = verdict_of_rows(rows), listed([row["subset"] for row in rows])
    few = verdict == TOO_LITTLE
    headline = f"{'Too few people to compare women and men:' if few else 'No gender difference was found for'} {pools}"
    sentences = [_ratio_sentence(rows[0], sides[0], published)]
    if len(rows) > 1:
        either = [" (either word)" if row["metric"].endswith("either_word_ratio") else "" for row in rows]
        each = [f"{row['subset']}{word} {ratio_and_range(row)}" for row, word in zip(rows, either, strict=True)]
        sentences = [f"Women over men: {', '.join(each)}."]
    if known := [row for row in rows if has_interval(row)]:
        low, high = min(row["low"] for row in known), max(row["high"] for row in known)
        sentences.append(f"Ratios as low as {ratio(low)} or as high as {ratio(high)} are still possible.")
    beside = [_published_beside(row, published, words) for row in rows]
    sentence = " ".join(filter(None, [*sentences, *(text for text, _ in beside)]))
    more = [*rows[1:], *(side for each in sides for side in each.values()), *(row for _, b in beside for row in b)]
    return finding(rows[0], "bias", headline, sentence, verdict=verdict, more=more)


def wrong_occupation_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """The widest difference that was found, and how many others were, over pools and branches."""
    table = part.filter(pl.col("metric").str.ends_with(".occupation_gap"), pl.col("value").is_not_null())
    rows = sorted(table.to_dicts(), key=lambda row: (within_branches(row), -abs(row["value"])))
    if rows:
        there = [row for row in rows if found(row)]
        yield _given_more(there, len(rows), _shares(part)) if there else _given_alike(rows)


def _given_more(rows: list[Result], tests: int, all_shares: Shares) -> Finding:
    first, *rest = rows
    more, less = (first["group"], first["against"]) if first["value"] > 0 else (first["against"], first["group"])
    sides, shares = _sides(first["subset"], first["concept"], all_shares), ""
    if sides and sides[more]["value"] > sides[less]["value"]:
        shares = f": {' against '.join(told_apart(sides[more], sides[less]))}"
    who = f"{_group(first, more)} {_where(first, branch=within_branches(first))}"
    given = f"get a higher mean probability of “{first['concept']}”, a wrong answer, than {_group(first, less)}"
    sentence = f"Women minus men: {_gap_text(first)}."
    if rest:
        others = {row["concept"]: row for row in reversed(rest) if row["concept"] != first["concept"]}
        briefs = []
        for row in sorted(others.values(), key=lambda row: -abs(row["value"])):
            where = _where(row, branch=within_branches(row))
            size = numbers.points(abs(row["value"]), numbers.points_decimals(row))
            favoured = plural(row["group"] if row["value"] > 0 else row["against"])
            briefs.append(f"“{row['concept']}” {where} ({favoured} by {size} points more)")
        also = f": also {listed(briefs[:3])}" if briefs else ""
        also += f" and {len(briefs) - 3} more occupations" if len(briefs) > 3 else ""
        sentence += f" {len(rows)} of {tests} differences in wrong occupations were found{also}."
    headline, evidence = f"{_capital(who)} {given}{shares}", [*sides.values(), *rest]
    return finding(first, "occupations", headline, sentence, verdict=DIFFERENCE, effect=1.0, more=evidence)


def _gap_text(row: Result) -> str:
    value = f"{signed(row['value'], numbers.points_decimals(row))} points"
    if not has_interval(row):
        return f"{value} (n = {row['n']}, no interval)"
    tested = f"95 % interval {numbers.points_range(row)} and {_p(row)}, for all occupations at once"
    return f"{value} ({tested}; n = {row['n']})"


def _given_alike(rows: list[Result]) -> Finding:
    widest, verdict = rows[0], verdict_of_rows(rows)
    headline = "No wrong occupation was found to get more belief for women or for men"
    headline = "Too few people to compare wrong occupations of women and men" if verdict == TOO_LITTLE else headline
    which = f"The widest of {len(rows)} differences, " if len(rows) > 1 else ""
    where = _where(widest, branch=within_branches(widest))
    reach = [max(abs(row["low"]), abs(row["high"])) for row in rows if has_interval(row)]
    possible = f" Differences of up to {numbers.points(max(reach))} points are still possible." if reach else ""
    sentence = f"{which}“{widest['concept']}” {where}, women minus men: {_gap_text(widest)}.{possible}"
    return finding(widest, "occupations", headline, sentence, verdict=verdict, more=rows[1:])


SAME_ANSWER = "Where everyone has the same right answer, nothing tells recognition from a liking for the word."


def association_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """How much belief the right answers get, and the weakest specialty."""
    rows = valued(part, "association")
    if not rows:
        return
    decided = deciding_rows(part, "association").to_dicts()
    yield _levels(rows, [row for row in decided if row["verdict"] is not None])
    specialty = [row for row in decided if row["concept"] == LEVELS[-1] and reference(row)]
    weakest = min(specialty, key=lambda row: _times_landmark(row["value"], reference(row)), default=None)
    if weakest and weakest["value"] < 0.5:  # a weakness only where most belief goes to other options
        yield _weakest(weakest, valued(part, "association_top1"))


def _levels(rows: list[Result], tested: list[Result]) -> Finding:
    """How far belief falls from the easy level to the hard one, and where it is more than for others' answers."""
    ranges = {level: [row["value"] for row in rows if row["concept"] == level] for level in LEVELS}
    shares = listed([f"{numbers.span(values)} for {level}" for level, values in ranges.items() if values])
    headline, sentences = f"Belief on the right answer is {shares}", []
    above = sorted(filter(found, tested), key=lambda row: -row["value"])
    verdict = verdict_of_rows(tested) if tested else FACT
    if verdict in (DIFFERENCE, NONE_FOUND):
        headline = "The right answer is not found to get more belief than the answers of other people"
        if above:
            cases = f"{len(above)} of {len(tested)} cases" if len(tested) > 1 else _case(above[0])
            headline = f"The right answer gets more belief than the answers of other people: {cases}"
        sentences.append(f"Mean belief on the right answer is {shares}.")
    if max(map(len, ranges.values())) > 1:
        sentences.append(f"Ranges are over {numbers.count(len({row['subset'] for row in rows}))} branches.")
    for row in tested:
        places = decimals_for(row)
        others = f"{percent(row['landmark'], places)} on the answers of other people of the same gender"
        right = f"{percent(row['value'], places)} against {others} ({numbers.uncertainty(row, decimals=places)})"
        sentences.append(f"{_capital(_case(row))}: {right}.")
    if len(tested) < len(rows):
        sentences.append(SAME_ANSWER)
    first = (*above, *tested, *rows)[0]
    more = [row for row in (*above, *tested, *rows) if row is not first]
    return finding(first, "association", headline, " ".join(sentences), verdict=verdict, effect=9.0, more=more)


def _case(row: Result) -> str:
    return f"{row['concept']} of {people(row['subset'])}"


def _weakest(row: Result, top1: list[Result]) -> Finding:
    """The specialty that is nearest to what others' answers get, or to chance, or farthest below it."""
    branch, places = row["subset"], decimals_for(row)
    first = [each for each in top1 if (each["subset"], each["concept"]) == (branch, row["concept"])]
    comes_first = "".join(f" The right one comes first for {percent(each['value'])} of the images." for each in first)
    compared = f"; guessing gives {percent(row.get('chance'), places)}"
    if row["verdict"] is not None:
        compared = f"; the answers of other people of the same gender get {percent(row['landmark'], places)}"
    who, offered = PERSON.get(branch, f"someone of “{branch}”"), numbers.count(numbers.options(row) or 0)
    sentence = f"Given a {numbers.picture(row)} of {who} and {offered} {SPECIALTIES.get(branch, 'specialties')} to "
    sentence += f"choose from, the model puts {percent(row['value'], places)} of its belief on the right one "
    sentence += f"({numbers.uncertainty(row, decimals=places)}{compared}).{comes_first}"
    headline = f"Weakest specialty: {people(branch)}, {percent(row['value'], places)} on the right one"
    effect = numbers.log_distance(row["value"], reference(row) or 1.0)
    return finding(row, "association", headline, sentence, verdict=FACT, effect=effect, more=first)


EXCHANGED = "Names are exchanged among people with the same labels: gender, and party, sport or award if known."
TRAITS = "Traits that are not labelled, such as age or hair, may suffice to tell people apart."
WAYS = ("identity_given_image", "identity_given_name")


def identity_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether the model tells people apart by name, in both directions."""
    rows = [row for way in WAYS for row in deciding_rows(part, way).to_dicts() if row.get("chance")]
    rows = [row for row in rows if row["verdict"] is not None] or rows
    if not rows:
        return
    verdict, known = verdict_of_rows(rows), sorted(filter(found, rows), key=lambda row: -row["value"])
    ways = [[row for row in rows if row["metric"].endswith(way)] for way in WAYS]
    sentences, effect = [_way(way) for way in ways if way], 0.0
    if verdict == NOT_MEASURED:
        headline = answer = "Whether the model knows people by name was not tested"
        sentences.append("There are no exchanged names to compare with, so nothing is claimed.")
    elif known:
        branches, all_branches = (list(dict.fromkeys(row["subset"] for row in each)) for each in (known, rows))
        named, every = listed(list(map(people, branches))), len(branches) == len(all_branches) > 1
        headline = f"The model tells people apart by name{' in every branch' if every else f': {named}'}"
        right, others = percent(known[0]["value"]), percent(known[0]["landmark"])
        answer = f"The model tells {named} apart by name: the right one gets {right} of its belief, exchanged names "
        answer += f"get {others}"
        sentences += [_exchanged(rows), TRAITS]
        effect = numbers.log_distance(_times_landmark(known[0]["value"], known[0]["landmark"]), 1.0)
    else:
        headline = answer = "The model is not found to tell people apart by name"
        if verdict == TOO_LITTLE:
            headline = answer = "Too few people to say whether the model tells them apart by name"
        reach = [_times_landmark(row["high"], row["landmark"]) for row in rows if has_interval(row)]
        if reach:
            sentences.append(f"Up to {numbers.times(max(reach))} times what exchanged names get is still possible.")
        sentences.append(_exchanged(rows))
    first = (*known, *rows)[0]
    more = [row for row in rows if row is not first]
    shown = [Contrast(people(row["subset"]), row) for row in rows if row["metric"] == first["metric"]]
    told: Entry = {"answer": f"{answer}.", "contrasts": shown}
    yield finding(first, "identity", headline, " ".join(sentences), verdict=verdict, effect=effect, more=more, **told)


def _exchanged(rows: list[Result]) -> str:
    """Among whom names are exchanged: of people that a table declares, the labels that it has."""
    labels = {label: 0 for row in rows for label in str(row["variant"] or "").removeprefix(WITHIN).split(", ") if label}
    if not labels.keys() & set(DECLARED):
        return EXCHANGED
    return f"Names are exchanged among people with the same labels: {listed(list(labels))}."


def _way(rows: list[Result]) -> str:
    """One direction: the best and the least known branch, or the one nearest to it; then those not found."""
    known = sorted(filter(found, rows), key=lambda row: -row["value"])
    others = listed([people(row["subset"]) for row in rows if row not in known]) if len(known) < len(rows) else ""
    best = known or [max(rows, key=lambda row: _times_landmark(row["value"], reference(row)))]
    given, right = f"Given a {numbers.picture(rows[0])}", "the right name"
    if rows[0]["metric"].endswith("given_name"):
        given, right = "Given a name", f"the right {numbers.picture(rows[0])}"
    shares = "; ".join(map(_name_share, best if len(best) < 3 else (best[0], best[-1])))
    nothing = f" No more than exchanged names get was found for {others}." if others and rows[0]["verdict"] else ""
    return f"{given}, {right} gets {shares}.{nothing}"


def _name_share(row: Result) -> str:
    places, landmark = decimals_for(row), f"1/n {percent(row.get('chance'))}"
    if row["verdict"] is not None:
        landmark = f"exchanged names {percent(row['landmark'])}"
    # Given a name, 1/chance is not the number of pictures: a person may have several.
    images, names = f"the {numbers.picture(row)}s", f"{numbers.options(row) or 1} names"
    sought = names if row["metric"].endswith("given_image") else images
    share = f"{percent(row['value'], places)} among {sought} of {people(row['subset'])}"
    return f"{share} ({numbers.uncertainty(row, decimals=places)}; {landmark})"


WHAT = {
    "identity_given_image": "belief on the right name, given an image",
    "identity_given_name": "belief on the right image, given a name",
}
NO_SAMPLE = "Models are no random sample, and those of one series are alike, so this need not be an effect of size."


def scale_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """Every slope that was found, in one finding."""
    rows = [row for metric in AXES for row in valued(part, metric)]
    if not rows:
        return
    there = sorted((row for row in rows if found(row)), key=lambda row: row["p_value"])
    first = min(there or rows, key=lambda row: 1.0 if row["p_value"] is None else row["p_value"])
    headline = f"Over up to {max(row['n'] for row in rows)} models, "
    if there:
        left = len(rows) - len(there)
        rest = f" {numbers.number(left, 'other slope was', 'other slopes were')} not found." if left else ""
        change = f"{'more' if first['value'] > 0 else 'less'} {what(first)}"
        if first["concept"] == "bias_ratio":
            change = f"a bias ratio {'farther from' if first['value'] > 0 else 'nearer to'} 1 for {first['subset']}"
        headline += f"more {axis(first)} go with {change}"
        sentence = f"For ten times the {_slopes(there)}.{rest} {NO_SAMPLE}"
    else:
        headline += "no effect of size or training data was found"
        sentence = f"{numbers.number(len(rows), 'slope was', 'slopes were')} tested. The clearest, for ten times the "
        sentence += f"{_slopes([first])}. The intervals, which hold for all of them at once, tell what is still "
        sentence += f"possible. {NO_SAMPLE}"
    more, effect = [row for row in rows if row is not first], 1.0 if there else 0.0
    yield finding(first, "scale", headline, sentence, verdict=verdict_of_rows(rows), effect=effect, more=more)


def axis(row: Result) -> str:
    """What grows along the axis."""
    return AXES[row["metric"].partition(".")[2]]


def what(row: Result) -> str:
    """What was measured."""
    if row["concept"] == "bias_ratio":
        return f"distance of the bias ratio from 1 for {row['subset']}"
    return WHAT.get(row["concept"], f"belief on the right {row['subset']}")


def _slopes(rows: list[Result]) -> str:
    equal = {"training pairs": " (at equal parameters)"}
    return listed([f"{axis(row)}{equal.get(axis(row), '')}: {slope(row)} in {what(row)}" for row in rows[:4]])


def slope(row: Result) -> str:
    """The slope with its interval, p and number of models."""
    interval = f"95 % interval {size(row, row['low'])} to {size(row, row['high'])}; " if has_interval(row) else ""
    tested = f"{_p(row)}; " if row["p_value"] is not None else ""
    unit = "" if row["concept"] == "bias_ratio" else " points"
    return f"{size(row, row['value'])}{unit} ({interval}{tested}{row['n']} models)"


def size(row: Result, value: float) -> str:
    """A slope in points, or for b in e-folds of its distance from 1."""
    return signed(value / 100, 2) if row["concept"] == "bias_ratio" else signed(value)
