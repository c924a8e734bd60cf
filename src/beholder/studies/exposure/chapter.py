"""The chapter on captions: who is named (nobody by name), which words occur, and whether a model knows the named."""

import math
from collections.abc import Callable, Iterator, Sequence

import polars as pl

from beholder.chapter import chapter, numbers
from beholder.chapter.chapter import INTERVALS, Cell, Chapter, Column, Table, read_told, tabled
from beholder.chapter.charts import Axis, Figure, dots, forest, ratio_axis
from beholder.chapter.finding import Finding, finding, valued, verdict_of_rows
from beholder.chapter.numbers import Result, has_interval, listed, plural, ratio, ratio_decimals
from beholder.comparison.family import DIFFERENCE, FACT, NONE_FOUND
from beholder.studies.exposure.measures import ADJUSTED, CHANGE, CRUDE, EVERYONE, MEAN, TYPICAL, UNADJUSTED
from beholder.studies.public_figures.findings import found, people
from beholder.studies.public_figures.measures import GROUPS

BELIEF = "belief in the right name, over that in the names of other people with the same labels,"


def typical_ratios(results: pl.DataFrame) -> list[Result]:
    """Women over men in geometric means: each branch, and over all branches at equal branches."""
    return [row for row in valued(results, "ratio") if row["concept"] == TYPICAL]


def exposure_findings(part: pl.DataFrame) -> list[Finding]:
    """Of one set of captions, or of one model compared with them."""
    findings = [*_named(part), *_ratios(part), *_players(part), *_known(part), *_gap(part)]
    return sorted(findings, key=lambda each: not each.shown)


def _named(part: pl.DataFrame) -> Iterator[Finding]:
    """How many people are named at all: over all branches, or in the only one."""
    rows = valued(part, "never")
    rows = [row for row in rows if row["subset"] == EVERYONE] or rows
    if not rows:
        return
    captions, everyone = valued(part, "category")[0]["n"], sum(row["n"] for row in rows)
    counts = [round(row["n"] * (1 - row["value"])) for row in rows]
    headline = "No caption names anyone"
    sentence = f"None of {captions:,} captions names any of {everyone:,} people."
    if sum(counts):
        headline = f"Captions name {sum(counts):,} of {everyone:,} people"
        groups = [f"{count:,} of {row['n']:,} {plural(row['group'])}" for count, row in zip(counts, rows, strict=True)]
        sentence = f"At least one of {captions:,} captions names {', '.join(groups)}."
    yield finding(rows[0], "named", headline, sentence, verdict=FACT, effect=9.0, more=rows[1:])


def _players(part: pl.DataFrame) -> Iterator[Finding]:
    """Actress and actor: the one occupation whose words name a gender."""
    rows = {row["concept"]: row for row in valued(part, "category") if row["group"]}
    if len(rows) == 2 and any(row["value"] for row in rows.values()):
        actress, actor = rows["actress"], rows["actor"]
        counts = f"{actress['value']:,.0f} contain “actress” and {actor['value']:,.0f} “actor”"
        sentence = f"Of {actor['n']:,} captions, {counts}."
        yield finding(actress, "words", "Actresses and actors", sentence, verdict=FACT, more=[actor])


def _claim(
    kind: str, rows: list[Result], headlines: Sequence[str], sentence: str, ways: Sequence[str], more: list[Result]
) -> Finding:
    """The row over all branches and those of the branches; what could still be, and the branches that differ."""
    # The headlines are for: the first row differs, only a branch does, nothing was found, there are too few people.
    # `ways` begin the sentence about branches, and say how they differ: below the landmark, and above.
    row, *branches = rows
    overall, some, none, few = headlines
    verdict, landmark = verdict_of_rows(rows), float(row["unit"] == "ratio")
    headline = {DIFFERENCE: overall if found(row) else some, NONE_FOUND: none}.get(verdict, few)
    if row["verdict"] == NONE_FOUND and has_interval(row):
        sentence += " It could still be as low as {} or as high as {}.".format(*_bounds(row))
    differences = []
    for way, below in zip(ways[1:], (True, False), strict=True):
        names = [people(each["subset"]) for each in branches if found(each) and (each["value"] < landmark) == below]
        differences += [f"{way} among {listed(names)}"] if names else []
    if branches:
        said = f"{ways[0]} {' and '.join(differences)}" if differences else "no difference was found"
        sentence += f" Branch by branch, {said}."
    effect = numbers.log_distance(row["value"], 1.0) if landmark else abs(row["value"])
    return finding(row, kind, headline, sentence, verdict=verdict, effect=effect, more=[*branches, *more])


def _pooled(rows: list[Result]) -> list[Result]:
    """The row over all branches, then those of the branches; the only row, if there is one branch."""
    rows = sorted(rows, key=lambda row: row["subset"] != EVERYONE)
    return rows if len(rows) == 1 or (rows and rows[0]["subset"] == EVERYONE) else []


def _bounds(row: Result) -> list[str]:
    ends = row["low"], row["high"]
    return [ratio(end, ratio_decimals(row)) if row["unit"] == "ratio" else plain(end) for end in ends]


def _bracket(row: Result) -> str:
    if not has_interval(row):
        return f"no interval, n = {row['n']:,}"
    return f"95 % interval {' to '.join(_bounds(row))}, p {numbers.row_p_value(row)}, n = {row['n']:,}"


def _times(row: Result) -> str:
    return f"{ratio(row['value'], ratio_decimals(row))} times"


def _ratios(part: pl.DataFrame) -> Iterator[Finding]:
    """Women over men: over all branches at equal branches, and the branches that differ."""
    rows = _pooled(typical_ratios(part))
    if not rows:
        return
    row, several = rows[0], len(rows) > 1
    less, more = ("Women", "men") if row["value"] < 1 else ("Men", "women")
    headlines = (
        f"{less} are named less often than {more}",
        "Women and men are named unequally often in some branches",
        "No difference between how often women and men are named was found",
        "Too few people to compare how often women and men are named",
    )
    sentence = f"Captions name a typical woman {_times(row)} as often as a typical man"
    sentence += f"{' of her branch' if several else ''} (geometric means of 1 + captions; {_bracket(row)})."
    crude = [each for each in valued(part, "ratio") if each["concept"] == CRUDE[TYPICAL]]
    for each in crude:
        sentence += f" Over all people at once it is {_times(each)}, which also follows which branches are named often."
    yield _claim("named", rows, headlines, sentence, ("women are named", "less often", "more often"), crude)


def _known(part: pl.DataFrame) -> Iterator[Finding]:
    rows = _pooled(valued(part, "identity_correlation"))
    if not rows:
        return
    row, several = rows[0], len(rows) > 1
    headlines = (
        f"The model knows people {'better' if row['value'] > 0 else 'worse'} whom captions name more often",
        "In some branches captions and known names go together",
        "No link between captions and known names was found",
        "Too few people to link captions and known names",
    )
    sentence = f"Within {'branch and ' if several else ''}gender,"
    sentence += f" the rank correlation of captions with {BELIEF} is {plain(row['value'])} ({_bracket(row)})."
    yield _claim("known", rows, headlines, sentence, ("the correlation is", "negative", "positive"), [])


def _gap(part: pl.DataFrame) -> Iterator[Finding]:
    gaps = valued(part, "identity_gap")
    rows, adjusted = (_pooled([row for row in gaps if row["concept"] == each]) for each in (UNADJUSTED, ADJUSTED))
    if not rows:
        return
    before, several = rows[0], len(rows) > 1
    one, other = ("women", "men") if before["value"] > 1 else ("men", "women")
    headlines = (
        f"The right name stands out more for {one} than for {other}",
        "In some branches the right name does not stand out alike for women and men",
        "No difference in how well women and men are known by name was found",
        "Too few people to compare how well women and men are known by name",
    )
    sentence = f"{BELIEF.capitalize()} is {_times(before)} as large for women as for "
    sentence += f"men{' of their branch' if several else ''} (geometric means; {_bracket(before)})"
    for after in adjusted[:1]:
        sentence += f", and {_times(after)} at equal exposure ({_bracket(after)})"
    yield _claim("gap", rows, headlines, f"{sentence}.", ("for women it is", "smaller", "larger"), adjusted[:1])


def exposure_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Who is named, women over men, words, and what a model knows; each as far as it was measured."""
    of_model = pl.col("metric").str.starts_with("exposure.identity")
    captions, known = part.filter(~of_model), part.filter(of_model)
    mean, ratios, words = (chapter.rows_of(captions, metric) for metric in ("captions", "ratio", "category"))
    if mean:
        yield _people_table(captions, mean)
    if ratios:
        yield _ratio_table(captions, ratios, {(row["subset"], row["group"]): row["n"] for row in mean})
    if words:
        left: list[Column] = [("Level", "subset"), ("Word", "concept")]
        count: Column = ("Captions", lambda row: Cell(f"{row['value']:,.0f}", strong=True))
        rate: Column = ("per million", lambda row: f"{1e6 * row['value'] / row['n']:,.0f}")
        caption = f"Captions that contain a word, among {words[0]['n']:,}. A count has no interval."
        notes = [f"{row['concept']}: {row['note']}" for row in words if row["note"]]
        table = tabled(captions, words, left, [count, rate], title="Words", caption=caption, notes=notes)
        yield table._replace(topic="words", long=True)
    if known.height:
        yield _identity_table(known)


def _people_table(part: pl.DataFrame, mean: list[Result]) -> Table:
    median, never = (
        {(row["subset"], row["group"]): row for row in chapter.rows_of(part, metric)}
        for metric in ("captions_median", "never")
    )
    left: list[Column] = [("Branch", "subset"), ("Labelled", lambda row: plural(row["group"]))]
    columns: list[Column] = [
        ("n", "n"),
        ("Mean", lambda row: number_cell(row, strong=True)),
        ("Median", lambda row: number_cell(median.get((row["subset"], row["group"])))),
        ("Never named", lambda row: chapter.percent_cell(never.get((row["subset"], row["group"])))),
    ]
    caption = f"How many captions name a person, and the share of people that no caption names. {INTERVALS}"
    named = {"title": "Captions per person", "topic": "named"}
    return tabled(part, mean, left, columns, caption=caption, notes=chapter.notes_of(mean), **named)


def _ratio_table(part: pl.DataFrame, rows: list[Result], people: dict[tuple[str, str], int]) -> Table:
    cells = {(row["subset"], row["concept"]): row for row in rows}
    kinds = [(name, name, TYPICAL, MEAN) for name in dict.fromkeys(row["subset"] for row in rows)]
    if (EVERYONE, CRUDE[TYPICAL]) in cells:
        kinds.append((f"{EVERYONE}, crude", EVERYONE, CRUDE[TYPICAL], CRUDE[MEAN]))
    lines = [
        {"name": name, "subset": subset, "typical": cells.get((subset, typical), {}), "mean": cells.get((subset, mean))}
        for name, subset, typical, mean in kinds
    ]
    columns: list[Column] = [
        ("n women / men", lambda line: " / ".join(str(people[line["subset"], group]) for group in GROUPS)),
        ("Typical", lambda line: _ratio(line["typical"])),
        ("Of the means", lambda line: _ratio(line["mean"])),
        ("p", lambda line: chapter.p_cell(line["typical"] or None)._replace(strong=found(line["typical"]))),
    ]
    caption = "Captions per person, women over men; 1: alike, below 1: women are named less often. Typical:"
    caption += " geometric means of 1 + captions. All branches: women against men of their own branch; crude:"
    caption += " against all men, so that it also follows which branches are named often. p: of the typical ratio."
    caption += f" {INTERVALS} Intervals and p hold for all subsets together."
    named = {"title": "Women over men", "topic": "named"}
    return tabled(part, lines, [("Branch", "name")], columns, caption=caption, notes=chapter.notes_of(rows), **named)


def _identity_table(part: pl.DataFrame) -> Table:
    rows, gaps = chapter.rows_of(part, "identity_correlation"), chapter.rows_of(part, "identity_gap")
    gap_of = {(row["model"], row["subset"], row["concept"]): row for row in gaps}

    def gap(concept: str) -> Callable[[Result], Cell]:
        return lambda row: _ratio(gap_of.get((row["model"], row["subset"], concept)))

    columns: list[Column] = [
        ("n", "n"),
        ("Correlation", lambda row: number_cell(row, strong=True)),
        ("Women over men", gap(UNADJUSTED)),
        ("At equal exposure", gap(ADJUSTED)),
        ("Change", gap(CHANGE)),
    ]
    caption = "How many times as likely the right name is as the names of other people with the same labels:"
    caption += " Spearman's correlation with captions, within branch and gender; and women over men,"
    caption += f" as measured and at equal log(1 + captions). {INTERVALS} It holds for all subsets together."
    named = {"title": "Named and known by name", "topic": "known"}
    notes = chapter.notes_of([*rows, *gaps])
    return tabled(part, rows, [("Branch", "subset")], columns, caption=caption, notes=notes, **named)


def number_cell(row: Result | None, *, strong: bool = False) -> Cell:
    """A plain number with its interval."""
    if row is None or row["value"] is None:
        return Cell(numbers.ABSENT)
    interval = "" if row["low"] is None else f"{plain(row['low'])} to {plain(row['high'])}"
    return Cell(plain(row["value"]), interval, strong)


def _ratio(row: Result | None) -> Cell:
    return chapter.ratio_cell(row) if row and row["value"] is not None else Cell(numbers.ABSENT)


def plain(value: float) -> str:
    """A number with at least two digits that tell it from 0, and a true minus sign."""
    size = abs(value)
    if size >= 100 or size < 1e-9:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.3g}" if size >= 1 else f"{value:.{max(2, 1 - math.floor(math.log10(size)))}f}"
    return text.replace("-", numbers.MINUS) if float(text.replace(",", "")) else text.removeprefix("-")


def exposure_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """One chart for each question that was measured."""
    if ratios := [row for row in typical_ratios(results) if row["value"]]:
        title, drawing = "Captions per person, women over men", forest(ratios, ratio_axis(ratios), landmark=1.0)
        caption = "Geometric means of 1 + captions, with 95 % intervals that hold for all of them together;"
        caption += " over all branches women are compared with men of their own branch. The line at 1 means alike;"
        caption += " to the left of it women are named less."
        yield Figure("captions-women-over-men", title, caption, drawing, "named", answers=("named", "exposure.ratio"))
    if never := valued(results, "never"):
        caption = "Share of people whom no caption names, with 95 % intervals."
        drawing = dots([{**row, "concept": row["subset"]} for row in never], title="share of people")
        answers = ("named", "exposure.never")
        yield Figure("never-named", "People whom no caption names", caption, drawing, "named", answers=answers)
    if known := valued(results, "identity_correlation"):
        caption = "With 95 % intervals that hold for all of them together, within branch and gender."
        caption += " To the right of the line: the model knows people better whom more captions name."
        drawing = forest(known, Axis("Spearman's correlation", scale={"domain": [-1, 1]}), landmark=0.0)
        title = "Captions and known names"
        yield Figure("named-and-known", title, caption, drawing, "known", wide=True, answers=("known",))


def page_title(names: list[str]) -> str:
    """The captions come first, then the models that are compared with them."""
    title = f"Who is named in {names[0]}"
    return f"{title}, compared with what {listed(names[1:])} knows" if names[1:] else title


TOLD = read_told(__file__)
CHAPTER = Chapter(
    topics=TOLD.topics,
    questions=TOLD.questions,
    findings=exposure_findings,
    tables=exposure_tables,
    figures=exposure_figures,
    page_title=page_title,
)
