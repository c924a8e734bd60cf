"""The chapter of a study about public figures: its tables, and what else it has."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl

from beholder.chapter import chapter
from beholder.chapter.chapter import INTERVALS, Behind, Cell, Chapter, Column, Table, read_questions, tabled
from beholder.chapter.finding import Contrast, deciding_rows, metric_rows
from beholder.chapter.numbers import Result, has_interval, listed, percent, plural, ratio
from beholder.core.types import Entry
from beholder.metrics.association import softmax
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.apa.printed import POOLS
from beholder.studies.public_figures import findings
from beholder.studies.public_figures.charts import public_figure_charts
from beholder.studies.public_figures.findings import NO_SAMPLE, WAYS
from beholder.studies.public_figures.measures import GROUPS, LEVELS, words_of
from beholder.studies.public_figures.published import AXES, PUBLISHED_ON, published_rank

PAPER_TABLES = {("apa", pool): f"As APA's Table {number}. " for number, pool in enumerate(POOLS, 5)}
PAPER_TABLES["pfi", "politicians"] = "As P-FI's Table 1. "
Keyed = dict[tuple[str, ...], Result]


def public_figure_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; each has the rows of all models."""
    for make in (association_table, bias_tables, chapter.ratio_equivalence_table, identity_table, scale_tables):
        yield from make(part)


def _keyed(rows: Iterable[Result], *columns: str) -> Keyed:
    return {tuple(row[column] for column in ("model", *columns)): row for row in rows}


def association_table(part: pl.DataFrame) -> Iterator[Table]:
    """Three levels by branch, each with its top-1."""
    mean = chapter.rows_of(part, "association")
    means, top1 = (_keyed(rows, "subset", "concept") for rows in (mean, chapter.rows_of(part, "association_top1")))

    def share(rows: Keyed, level: str, **style: bool) -> Callable[[Result], Cell]:
        return lambda row: chapter.percent_cell(rows.get((row["model"], row["subset"], level)), **style)

    def measured(row: Result) -> str:
        return chapter.sizes([means[key] for level in LEVELS if (key := (row["model"], row["subset"], level)) in means])

    columns: list[Column] = [("n", measured)]
    for level in LEVELS:
        columns.append((level.capitalize(), share(means, level, with_chance=True, strong=True)))
        columns.append(("first", share(top1, level)))
    if mean:
        caption = "Mean share of the model's belief on the right prompt, in per cent, and how often the right prompt "
        caption += f"comes first. {INTERVALS}"
        named: Entry = {"title": "Right answer, level by level", "topic": "association", "extras": ("first",)}
        rows, notes = _keyed(mean, "subset").values(), chapter.notes_of(mean)
        yield tabled(part, rows, [("Branch", "subset")], columns, caption=caption, notes=notes, **named)


def bias_tables(part: pl.DataFrame) -> Iterator[Table]:
    """The ratios of all pools, how they depend on branch and options, then every occupation of each pool."""
    probabilities, ratios = chapter.rows_of(part, "occupation_probability"), chapter.rows_of(part, "bias_ratio")
    if ratios:
        yield _ratio_table(part, ratios, _keyed(probabilities, "subset", "group", "concept"))
    if others := [line for row in ratios for line in _other_ratios(part.filter(model=row["model"]), row)]:
        left: list[Column] = [("Pool", "pool"), ("b", "label")]
        columns: list[Column] = [("n", "n"), ("b there", chapter.ratio_cell)]
        caption = "The ratio b of a pool's branches, for either word where the right word depends on the gender, and "
        caption += "with that wrong option left out which lowers or raises it most: b belongs to the options offered "
        caption += f"together. {INTERVALS}"
        title = "Women over men: branches, words and options"
        yield tabled(part, others, left, columns, title=title, caption=caption, topic="gender")
    for pool in dict.fromkeys(row["subset"] for row in probabilities):
        yield _occupation_table(part.filter(pl.col("subset") == pool), pool)


def _ratio_table(part: pl.DataFrame, ratios: list[Result], cells: Keyed) -> Table:
    decided, words = _keyed(deciding_rows(part, "bias_ratio").to_dicts(), "subset"), words_of(part)
    apart = any(map(findings.within_branches, decided.values()))

    def right(row: Result) -> list[Result | None]:
        answers = [(group, words.correct(row["subset"], group)) for group in GROUPS]
        return [cells.get((row["model"], row["subset"], *each)) for each in answers]

    def deciding(row: Result) -> Result:
        return decided.get((row["model"], row["subset"]), row)

    columns: list[Column] = [
        ("n women / men", lambda row: " / ".join(str(cell["n"]) for cell in right(row) if cell) or str(row["n"])),
        ("Women", lambda row: chapter.percent_cell(right(row)[0])),
        ("Men", lambda row: chapter.percent_cell(right(row)[1])),
        *([("b", lambda row: ratio(row["value"]))] if apart else []),
        ("b within branches" if apart else "b", lambda row: chapter.ratio_cell(deciding(row))),
        ("p", lambda row: chapter.p_cell(deciding(row))),
    ]
    caption = "Probability of the right occupation for women and for men, in per cent, and their ratio b; 1: alike, "
    caption += f"below 1: women get less. {'b within branches decides. ' if apart else ''}{INTERVALS} That of b, "
    caption += "and p, hold for all ratios at once."
    named = {"title": "Women over men", "topic": "gender"}
    return tabled(part, ratios, [("Pool", "subset")], columns, caption=caption, notes=chapter.notes_of(ratios), **named)


def _other_ratios(part: pl.DataFrame, row: Result) -> list[Result]:
    """b as published, by branch, for either word, and at its lowest and highest with one option left out."""
    pool = row["subset"]
    words = f"either word: {words_of(part).of(pool)}"
    lines = [(words, each) for each in metric_rows(part, "either_word_ratio").filter(subset=pool).to_dicts()]
    branches = metric_rows(part, "branch_ratio").filter(concept=pool).to_dicts()
    lines += [(f"branch: {each['subset']}", each) for each in branches]
    without = metric_rows(part, "ratio_without").filter(subset=pool).sort("value").to_dicts()
    ends = (without[0], without[-1]) if len(without) > 1 else without
    lines += [(f"without “{each['concept']}”", each) for each in ends]
    return [{**each, "pool": pool, "label": label} for label, each in (("as published", row), *lines) if lines]


def _occupation_table(part: pl.DataFrame, pool: str) -> Table:
    rows = part.filter(pl.col("metric").str.contains(r"\.(?:occupation|either_word)_probability$"))
    cells = _keyed(rows.to_dicts(), "group", "concept")
    gaps, words = _keyed(metric_rows(part, "occupation_gap").to_dicts(), "concept"), words_of(part)

    def share(group: str) -> Callable[[Result], Cell]:
        right = words.correct(pool, group)
        return lambda row: chapter.percent_cell(
            cells.get((row["model"], group, row["concept"])), strong=row["concept"] == right
        )

    def gap(row: Result) -> Result | None:
        return gaps.get((row["model"], row["concept"]))

    people = {group: cell["n"] for group in GROUPS for (_, who, _), cell in cells.items() if who == group}
    who = f"{listed([f'{n} {plural(group)}' for group, n in people.items()])}. " if people else ""
    differences = ""
    if gaps:
        merged = metric_rows(rows, "either_word_probability").height
        differences = "Women − men: in points, for occupations that are wrong for everyone, within branches; the "
        differences += "interval and p hold for all of them at once; bold where a difference was found. "
        differences += f"{'Two words for one occupation are compared together. ' if merged else ''}"
    paper = PAPER_TABLES.get((part["study"][0], pool), "") if part["dataset"][0] == PUBLISHED_ON else ""
    columns: list[Column] = [(plural(group).capitalize(), share(group)) for group in GROUPS]
    columns.append(("Women − men", lambda row: chapter.points_cell(gap(row))))
    columns.append(("p", lambda row: chapter.p_cell(gap(row))))
    caption = f"{paper}Mean share of belief on each occupation, in per cent; the right one is set bold. {who}"
    caption += f"{differences}{INTERVALS}"
    named: Entry = {"title": f"Occupations offered for {pool}", "topic": "gender", "long": True, "exported": True}
    lines, notes = _keyed(rows.to_dicts(), "concept").values(), chapter.notes_of(rows.to_dicts())
    return tabled(rows, lines, [("Occupation", "concept")], columns, caption=caption, notes=notes, **named)


def identity_table(part: pl.DataFrame) -> Iterator[Table]:
    """Both directions by branch, with top-1 and reciprocal rank."""
    ends = [f"{way}{end}" for way in WAYS for end in ("_top1", "_mrr")]
    rows = {metric: _keyed(chapter.rows_of(part, metric), "subset") for metric in ends}
    for way in WAYS:
        rows[way] = _keyed([*chapter.rows_of(part, way), *deciding_rows(part, way).to_dicts()], "subset")

    def of(row: Result, metric: str) -> Result | None:
        return rows[metric].get((row["model"], row["subset"]))

    def columns(way: str, title: str) -> list[Column]:
        return [
            (title, lambda row: _against(of(row, way))),
            ("p", lambda row: chapter.p_cell(of(row, way))),
            ("first", lambda row: chapter.percent_cell(of(row, f"{way}_top1"))),
            ("1/rank", lambda row: ratio((of(row, f"{way}_mrr") or {}).get("value"))),
        ]

    every = [row for way in WAYS for row in rows[way].values()]
    if every:
        n: Column = ("n", lambda row: chapter.sizes([share for way in WAYS if (share := of(row, way))]))
        right = [n, *columns(WAYS[0], "Given an image"), *columns(WAYS[1], "Given a name")]
        caption = "Given an image: belief on the right name. Given a name: belief on the right image. In per cent; "
        caption += "bold where it was found to be more than names exchanged among people with the same labels get (p "
        caption += "and interval: for branches and directions at once). Then how often the right one comes first, and "
        caption += f"the mean reciprocal rank (1: always first). {INTERVALS}"
        named: Entry = {"title": "Names and faces", "topic": "identity", "extras": ("first", "1/rank")}
        lines, notes = _keyed(every, "subset").values(), chapter.notes_of(every)
        yield tabled(part, lines, [("Branch", "subset")], right, caption=caption, notes=notes, **named)


def _against(share: Result | None) -> Cell:
    """A share with what exchanged names get, and with chance."""
    cell = chapter.percent_cell(share, with_chance=True, strong=bool(share and findings.found(share)))
    if share is None or share["value"] is None or share["landmark"] is None:
        return cell
    return cell._replace(remark=f"exchanged {percent(share['landmark']).removesuffix(' %')}, {cell.remark}")


def scale_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Slopes over models, on parameters and on training pairs."""
    rows = pl.concat([metric_rows(part, metric) for metric in AXES])

    def change(row: Result) -> Cell:
        interval = f"{findings.size(row, row['low'])} to {findings.size(row, row['high'])}" if has_interval(row) else ""
        return Cell(findings.size(row, row["value"]), interval, findings.found(row))

    if rows.height:
        left: list[Column] = [("Measured", findings.what), ("For ten times the", findings.axis)]
        columns: list[Column] = [("Models", "n"), ("Change", change), ("p", chapter.p_cell)]
        caption = "Over the models of this run and the published ones that measure the same: what ten times the "
        caption += "parameters, or ten times the training pairs at equal parameters, go with. Probabilities change by "
        caption += "points; of b it is the distance from 1 (|ln b|) that changes, so below 0 is nearer to alike. Kinds "
        caption += f"of models have a level each. Intervals and p hold for all slopes at once. {INTERVALS}"
        named = {"title": "Does scale help?", "topic": "scale"}
        yield tabled(rows, rows.to_dicts(), left, columns, caption=caption, notes=(NO_SAMPLE,), **named)


def behind(matrix: ScoreMatrix, shown: Contrast) -> Behind | None:
    """Each picture's belief in the occupation, and what it is called instead; of the branch that was asked."""
    own, words = matrix.level("occupation"), shown.label.split(" or ")
    if not own.prompts.height or not {"branch", "gender"} <= set(own.images.columns):
        return None
    concepts, branch = own.prompts["concept"].to_list(), own.images["branch"].cast(pl.String)
    subset = shown.row["subset"]
    asked = [name for name in (subset, *POOLS.get(subset, ())) if name in matrix.task.split("/")]
    if not asked or not set(words) <= set(concepts):
        return None
    own = own.rows(branch.is_in(asked).fill_null(False).to_numpy()).complete_rows()
    beliefs = softmax(own.logits)
    right, first = [concepts.index(word) for word in words], beliefs.argmax(axis=1) if own.images.height else []
    called = ["" if at in right else f"{concepts[at]} {percent(beliefs[i, at])}" for i, at in enumerate(first)]
    groups = own.images["gender"].cast(pl.String).to_list()
    return Behind(own.images, groups, beliefs[:, right].sum(axis=1), called)


CHAPTER = Chapter(
    topics={
        "gender": "Women and men",
        "association": "What the model believes people to be",
        "identity": "Names and faces",
        "scale": "Size and training data",
    },
    questions=read_questions(Path(__file__).with_name("questions.csv")),
    findings=findings.public_figure_findings,
    tables=public_figure_tables,
    figures=public_figure_charts,
    published=published_rank,
    behind=behind,
    glossary=("“Belief” is the probability that the model gives to a prompt among those offered together.",),
)
