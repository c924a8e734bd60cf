"""Disparity's rows as a person reads them, and its findings: sentences whose numbers are rows of the results."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from beholder.chapter import finding as queries
from beholder.chapter import numbers
from beholder.chapter.finding import Finding, contrast, deciding_rows, finding, metric_rows, one_row, verdict_of_rows
from beholder.chapter.numbers import Result, has_interval, number, percent, points, points_range, row_p_value, signed
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND, NOT_MEASURED, TOO_LITTLE
from beholder.core.types import Entry
from beholder.studies.disparity.agreement import FEWEST_CONCEPTS

# Whether a gap points towards the group that word vectors put the concept nearer to
AGREES, OPPOSES, UNKNOWN = "as word vectors", "against word vectors", "no word vector"
TESTED = pl.col("verdict").is_in([DIFFERENCE, NONE_FOUND])
SHOWN = 5  # concepts drawn beside the answer
NAMED = 3  # concepts that a sentence names in either direction
MOVED = 0.05  # a published gap depends on prevalence if matching moves it by at least five points
SQUARE_POINTS = 10_000  # in a squared probability


class Pair(NamedTuple):
    """Two groups that are compared: a positive gap favours the first."""

    first: str
    second: str
    rest: bool = False  # whether `second` stands for all other groups together

    @property
    def names(self) -> tuple[str, str]:
        """The two names, as the columns `group` and `against` have them."""
        return self.first, self.second

    @property
    def quoted(self) -> tuple[str, str]:
        """The names in quotes, as the data has them; the rest needs none."""
        return f"“{self.first}”", self.second if self.rest else f"“{self.second}”"

    @property
    def less(self) -> str:
        """The pair in a title or a table: “man” less “woman”."""
        return " less ".join(self.quoted)

    @property
    def groups(self) -> str:
        """Whose images they are, in a sentence: men and of women; a group without a known plural is quoted."""
        return " and of ".join(numbers.GROUPS.get(name.strip("“”"), name) for name in self.quoted)

    @property
    def images(self) -> tuple[str, str]:
        first, second = (f"images labelled {name}" for name in self.quoted)
        return first, "the other images" if self.rest else second

    def worse(self, row: Result) -> str:
        """The images in which a concept is recognised worse."""
        return self.images[1 if row["value"] > 0 else 0]


def groups(part: pl.DataFrame) -> list[str]:
    """The groups, in order."""
    means = metric_rows(part, "mean_average_precision", absent=True)
    return list(dict.fromkeys(means["group"].drop_nulls()))


@queries.once_per_table
def pairs(part: pl.DataFrame) -> list[Pair]:
    """Which groups are compared; a name that no group has stands for the rest."""
    known = set(groups(part))
    gaps = metric_rows(part, "ap_gap", absent=True).select("group", "against").unique(maintain_order=True)
    return [Pair(group, against, against not in known) for group, against in gaps.drop_nulls().iter_rows()]


@queries.once_per_table
def of_pair(part: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    """The rows that compare these two groups."""
    return part.filter(pl.col("group") == pair.first, pl.col("against") == pair.second)


@queries.once_per_table
def gaps(part: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    """Every concept with a matched gap, the widest first, with its other numbers; bounds hold for all at once."""
    compared = of_pair(part, pair)
    others = {"raw": "ap_gap", "detectable": "gap_detectable", "alignment": "word_alignment"}
    rows = deciding_rows(compared, "ap_gap_matched")
    first = rows.sort(~queries.FOUND, pl.col("variant").str.len_chars().fill_null(0), maintain_order=True)
    one_each = first.unique(["model", "concept"], keep="first", maintain_order=True)  # of strata, one that differs
    table = queries.with_metrics(one_each, compared, ["concept"], **others)
    same = (pl.col("value") * pl.col("alignment")).sign()
    words = pl.when(same > 0).then(pl.lit(AGREES)).when(same < 0).then(pl.lit(OPPOSES)).otherwise(pl.lit(UNKNOWN))
    return queries.widest_first(table.with_columns(found=queries.FOUND, words=words))


def tested(part: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    return gaps(part, pair).filter(TESTED)


@queries.once_per_table
def calibration_gaps(part: pl.DataFrame, pair: Pair) -> pl.DataFrame:
    """Gaps of miscalibration that were tested, the widest first; `found` and bounds as in `gaps`."""
    table = deciding_rows(of_pair(part, pair), "miscalibration_gap").filter(TESTED)
    return queries.widest_first(table.with_columns(found=queries.FOUND))


def ends(table: pl.DataFrame, count: int) -> list[Result]:
    """The widest gaps in either direction, from the most positive to the most negative."""
    above = table.filter(pl.col("value") > 0).sort("value", descending=True).head(count)
    below = table.filter(pl.col("value") < 0).sort("value", descending=True).tail(count)
    return [*above.to_dicts(), *below.to_dicts()]


def sides(part: pl.DataFrame, metric: str, pair: Pair) -> list[dict[str, Result]]:
    """A metric of both groups of a pair, each by concept; the rest has no rows of its own."""
    return [queries.by_column(metric_rows(part.filter(group=name), metric), "concept") for name in pair.names]


def root(squared: float) -> float:
    """The root of a squared error; 0 for one below 0."""
    return math.sqrt(max(squared, 0.0))


def disparity_findings(part: pl.DataFrame) -> list[Finding]:
    """What one model's rows show, in the order to read it."""
    finders = (_gaps, _together, _mean, _prevalence, _calibration, _words)
    compared = [each for find in finders for pair in pairs(part) for each in find(part, pair)]
    return [*compared, *_not_calibrated(part), *_agreement(part)]


def _gaps(part: pl.DataFrame, pair: Pair) -> Iterator[Finding]:
    """Which concepts differ, at the same prevalence; all of them are one family."""
    compared, table = of_pair(part, pair), tested(part, pair)
    count, untested = one_row(compared, "gaps_shown"), compared.filter(metric="disparity.ap_gap").head(1)
    if count is None or not table.height:
        for row in untested.to_dicts():
            sentence = "A gap is tested if at least five people of both groups show the concept and five do not."
            headline = "Too few images show any one concept to test a gap"
            yield finding(row, "gaps", headline, sentence, verdict=TOO_LITTLE)
        return
    found, spread = table.filter("found"), one_row(compared, "gap_spread", decides=True)
    directions = found.filter(pl.col("value") > 0), found.filter(pl.col("value") < 0)
    named = [row for side in directions for row in side.head(NAMED).to_dicts()]
    if named:
        are = "is" if found.height == 1 else "are"
        of = f"{found.height} of {number(table.height, 'concept')}"
        headline = f"{of} {are} recognised unequally in images of {pair.groups}"
        sentence = " ".join(_named(part, named, pair))
    else:
        together = spread is not None and spread["verdict"] == DIFFERENCE
        which = "No single concept's gap" if together else "No gap"
        headline = f"{which} was found between images of {pair.groups}"
        most = largest_missed(table.to_dicts())
        missed = f"A gap could still be up to {points(most[0])} points, at “{most[1]}”. " if most else ""
        sentence = missed + _tested(table)
    verdict, both = verdict_of_rows(table.to_dicts()), sides(part, "average_precision_matched", pair)
    shown = [*found.to_dicts(), *table.filter(~pl.col("found")).to_dicts()][:SHOWN]
    contrasts = []
    for row in shown:
        own = [side[row["concept"]] for side in both if row["concept"] in side]
        contrasts.append(contrast(row["concept"], row, {each["group"]: each for each in own}))
    answer = _answer(named, contrasts, pair) if named else f"{headline}. {_tested(table)}"
    told: Entry = {"answer": answer, "contrasts": contrasts, "more": named or table.to_dicts()}
    yield finding(count, "gaps", headline, sentence, verdict=verdict, effect=float(found.height), **told)


def _answer(rows: list[Result], contrasts: list[queries.Contrast], pair: Pair) -> str:
    """What is recognised better with whom: the widest in either direction."""
    widest = {row["value"] > 0: row for row in reversed(sorted(rows, key=lambda row: -abs(row["value"])))}
    values = {each.label: each.sides for each in contrasts}
    parts = []
    for row in sorted(widest.values(), key=lambda row: -abs(row["value"])):
        better, both = pair.first if row["value"] > 0 else pair.second, values.get(row["concept"])
        shares = sorted((side.value for side in both), reverse=True) if both else []
        of = f" ({percent(shares[0])} against {percent(shares[1])})" if shares else ""
        parts.append(f"“{row['concept']}” better with {numbers.plural(better)}{of}")
    return f"The model recognises {' and '.join(parts)}."


def _named(part: pl.DataFrame, rows: list[Result], pair: Pair) -> Iterator[str]:
    """For whom each concept is recognised worse: both groups' values, and the gap with the bounds that decided."""
    both = sides(part, "average_precision_matched", pair)
    for row in rows:
        first = 1 if row["value"] > 0 else 0
        values = [side[row["concept"]]["value"] for side in both if row["concept"] in side]
        levels = ""
        if len(values) > 1:  # the rest of several groups has no row of its own
            levels = f"average precision {percent(values[first])} against {percent(values[1 - first])}, "
        bounds = points_range(row if row["value"] >= 0 else queries.swapped(row))
        gap = f"a gap of {points(abs(row['value']))} points ({f'{bounds}; ' if bounds else ''}p {row_p_value(row)})"
        yield f"“{row['concept']}” is recognised worse in {pair.worse(row)}: {levels}{gap}."
    yield "All values are at the same prevalence for both groups; intervals and p hold for all concepts at once."


def largest_missed(rows: list[Result]) -> tuple[float, str] | None:
    """How large a gap could still be, by the bounds that decided, and at which concept; None without bounds."""
    reach = [(max(abs(row["low"]), abs(row["high"])), row["concept"]) for row in rows if has_interval(row)]
    return max(reach, key=lambda each: each[0], default=None)


def _tested(table: pl.DataFrame) -> str:
    together = " together" if table.height > 1 else ""
    return f"{number(table.height, 'concept')} tested{together}, at the same prevalence for both groups."


def _together(part: pl.DataFrame, pair: Pair) -> Iterator[Finding]:
    """All gaps together: are they wider than shuffled labels make them?"""
    compared = of_pair(part, pair)
    row, chance = one_row(compared, "gap_spread", decides=True), one_row(compared, "gap_spread_expected")
    if row is None or chance is None or row["n"] < 2:
        return
    width = one_row(compared, "gap_spread") or row
    wider = "wider than chance" if row["verdict"] == DIFFERENCE else "not found to be wider than chance"
    sentence = (
        f"Over {number(row['n'], 'concept')}, a gap is {points(width['value'])} points wide on average, at the same "
        f"prevalence; shuffled labels give {points(chance['value'])} "
        f"({points(chance['low'])}–{points(chance['high'])}; p {row_p_value(row)})."
    )
    headline = f"Taken together, gaps between images of {pair.groups} are {wider}"
    effect = width["value"] - chance["value"]
    yield finding(row, "together", headline, sentence, verdict=row["verdict"], effect=effect, more=[chance])


def _mean(part: pl.DataFrame, pair: Pair) -> Iterator[Finding]:
    """The mean of the matched gaps: the published means depend on prevalence, and are only reported."""
    compared = of_pair(part, pair)
    row = one_row(compared, "mean_ap_gap_matched", decides=True)
    if row is None or row["n"] < 2:
        return
    found, bounds = row["verdict"] == DIFFERENCE, points_range(row)
    result = f"recognition is worse in {pair.worse(row)}" if found else "no difference was found"
    sentence = (
        f"The mean gap over {number(row['n'], 'concept')} at the same prevalence is {signed(row['value'])} points "
        f"({f'{bounds}; ' if bounds else ''}p {row_p_value(row)})."
    )
    means = [one_row(part, "mean_average_precision", group=name) for name in pair.names]
    published = one_row(compared, "mean_ap_gap")
    if published and all(means):
        both = zip(pair.quoted, means, strict=True)
        levels = ", ".join(f"{name} {percent(mean['value'])}" for name, mean in both if mean)
        sentence += f" Mean average precision as published, over {number(published['n'], 'concept')}: {levels},"
        sentence += f" difference {signed(published['value'])}."
    found_gaps = tested(part, pair).filter("found")["value"]
    if (found_gaps > 0).any() and (found_gaps < 0).any():
        sentence += " The mean hides gaps that point in opposite directions."
    headline, more = f"On average over concepts, {result}", [each for each in (published, *means) if each]
    yield finding(row, "mean", headline, sentence, verdict=row["verdict"], effect=abs(row["value"]), more=more)


def _prevalence(part: pl.DataFrame, pair: Pair) -> Iterator[Finding]:
    """Where the published gap reflects how often a group shows the concept."""
    moved = tested(part, pair).with_columns((pl.col("raw") - pl.col("value")).alias("moved"))
    far = moved.filter(pl.col("moved").abs() >= MOVED).sort(pl.col("moved").abs(), descending=True)
    if not far.height:
        return
    row = far.row(0, named=True)
    move = f"gap{'s' * (moved.height > 1)} move{'s' * (far.height == 1)} by five points or more"
    headline = f"{far.height} of {moved.height} {move} when both groups show a concept equally often"
    rows = [one_row(part, "prevalence", group=name, concept=row["concept"]) for name in pair.names]
    shares = [percent(each["value"]) for each in rows if each]
    often = f" ({shares[0]} and {shares[1]} of their images do)" if len(shares) == len(rows) else ""
    sentence = (
        f"The largest move is at “{row['concept']}”: {signed(row['raw'])} points measured as published, "
        f"{signed(row['value'])} when both groups show it equally often{often} and what few images alone "
        "produce is removed."
    )
    published = one_row(of_pair(part, pair), "ap_gap", concept=row["concept"])
    more = [published] if published else []
    yield finding(row, "prevalence", headline, sentence, verdict=FACT, effect=abs(row["moved"]), more=more)


def _calibration(part: pl.DataFrame, pair: Pair) -> Iterator[Finding]:
    """Whether a confidence means the same for both groups."""
    table = calibration_gaps(part, pair)
    off = table.filter("found")
    if not table.height:
        return
    row, *more = off.to_dicts() or table.head(1).to_dicts()
    headline, sentence = f"No gap in calibration was found between images of {pair.groups}", ""
    if off.height:
        of = f"{off.height} of {number(table.height, 'concept')}"
        headline = f"For {of}, confidence is worse calibrated for one group"
        sentence = _least_calibrated(part, row, pair)
    elif most := largest_missed(table.to_dicts()):
        width = f"{SQUARE_POINTS * most[0]:.0f} square points"
        sentence = f"The squared errors could still differ by up to {width}, at “{most[1]}”. "
    verdict = verdict_of_rows(table.to_dicts())
    yield finding(row, "calibration", headline, sentence + _tested(table), verdict=verdict, more=more)


def _least_calibrated(part: pl.DataFrame, row: Result, pair: Pair) -> str:
    errors = [one_row(part, "miscalibration", group=name, concept=row["concept"]) for name in pair.names]
    worse = 0 if row["value"] > 0 else 1
    first, second = errors[worse], errors[1 - worse]
    off = f"worse in {pair.images[worse]}"
    if first and second:  # the rest of several groups has no row of its own
        off = (
            f"off by {points(root(first['value']))} points in {pair.images[worse]} and by "
            f"{points(root(second['value']))} in {pair.images[1 - worse]}, after removing what chance adds"
        )
    wide = row if row["value"] >= 0 else queries.swapped(row)
    value, *bounds = (SQUARE_POINTS * wide[name] for name in ("value", "low", "high") if wide[name] is not None)
    across = f", {bounds[0]:.0f} to {bounds[1]:.0f}".replace("-", numbers.MINUS) if bounds else ""
    gap = f"gap of the squares {value:.0f} square points{across}"
    return f"Widest gap: “{row['concept']}”, {off} ({gap}; p {row_p_value(row)}). "


def _not_calibrated(part: pl.DataFrame) -> Iterator[Finding]:
    """Why calibration was not measured."""
    absent = metric_rows(part, "ece", absent=True).filter(pl.col("value").is_null() & pl.col("concept").is_null())
    for row in absent.head(1).to_dicts():
        sentence = f"The model's scores only rank images: {row['note']}."
        yield finding(row, "calibration", "Calibration was not measured", sentence, verdict=NOT_MEASURED)


def _words(part: pl.DataFrame, pair: Pair) -> Iterator[Finding]:
    row = one_row(of_pair(part, pair), "word_agreement", decides=True, subset="ap_gap_matched")
    if row is None or row["n"] < FEWEST_CONCEPTS:
        return
    way = "agree with" if row["value"] > (row["expected"] or 0.5) else "point against"
    found = row["verdict"] == DIFFERENCE
    headline = f"Gaps {way} word vectors" if found else "No agreement of gaps with word vectors was found"
    bounds = f"{numbers.percent_range(row['low'], row['high'])}; " if has_interval(row) else ""
    usual = f"shuffled labels give {percent(row['expected'])}, " if row["expected"] is not None else ""
    sentence = (
        f"{percent(row['value'])} of {row['n']} concepts are recognised better in images of the group whose words "
        f"are nearer to theirs ({bounds}{usual}p {row_p_value(row)})."
    )
    yield finding(row, "words", headline, sentence, verdict=row["verdict"], effect=abs(row["value"] - 0.5))


def _agreement(part: pl.DataFrame) -> Iterator[Finding]:
    """Agreement with other data sets, and with other models: reported, not claimed, because neither has a test."""
    counts = metric_rows(part, "agreement_count")
    for (elsewhere,), table in counts.group_by(["subset"], maintain_order=True):
        first, *more = table.to_dicts()
        of_colour = {row["group"]: int(row["value"]) for row in (first, *more)}
        green, red, yellow = (of_colour.get(colour, 0) for colour in ("green", "red", "yellow"))
        have = "has" if green == 1 else "have"
        of = f"{green} of {number(first['n'], 'concept')}"
        headline = f"{of} {have} a wide gap in the same direction here and on {elsewhere}"
        sentence = f"In opposite directions: {red}. No wide gap on at least one of the data sets: {yellow}."
        if green + red:
            sentence += " Of concepts with two wide gaps, half would agree in direction by chance."
        yield finding(first, "agreement", headline, sentence, verdict=FACT, more=more)
    for row in metric_rows(part, "model_agreement").filter(pl.col("n") >= FEWEST_CONCEPTS).to_dicts():
        headline = f"{percent(row['value'])} of the gaps point in the same direction as those of {row['subset']}"
        sentence = (
            f"Over {row['n']} concepts; 50 % if gaps were unrelated. This is no test of a difference between "
            "groups: two models that find the same images hard agree more often without one."
        )
        yield finding(row, "agreement", headline, sentence, verdict=FACT)
