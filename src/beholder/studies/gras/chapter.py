"""GRAS's chapter of the report. It aggregates first, because a full run has 20,000 rows; lists are in results.csv."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from beholder.chapter import chapter
from beholder.chapter.chapter import INTERVALS, Behind, Cell, Chapter, Column, Table, read_questions, tabled
from beholder.chapter.finding import Contrast, by_column, by_model, metric_rows, one_row
from beholder.chapter.numbers import ABSENT, Result, count, percent, points, points_range, signed
from beholder.comparison.family import DIFFERENCE
from beholder.glasshouse.planted import REFERENCE
from beholder.scores.score_matrix import ScoreMatrix
from beholder.studies.gras import phrases
from beholder.studies.gras.charts import gras_figures
from beholder.studies.gras.findings import gras_findings
from beholder.studies.gras.phrases import attribute_name, attribute_names, attributes, group_name, score
from beholder.studies.gras.prompts import TEMPLATES, VALENCES, read_traits
from beholder.studies.gras.study import PRINTED

OURS, PUBLISHED_ON = "this run", "gras"  # the data set of the published scores
ATTRIBUTE: Column = ("Attribute", lambda row: attribute_name(row["subset"]))


def gras_tables(part: pl.DataFrame) -> Iterator[Table]:
    """Every table; the rows of several models follow each other."""
    if not metric_rows(part, "bias_score").height:
        caption = "A bias score needs two groups of gender, race, age or skin tone with two images or more each."
        why = {"none": "no attribute", "why": "no two groups to compare"}
        if lines := [{"model": model, **why} for model, _ in by_model(part)]:
            columns = [("Attribute", "none")], [("Score", "why")]
            yield tabled(part, lines, *columns, title="Bias scores", caption=caption, topic="score")
        return
    yield _scores(part)
    yield _gaps(part)
    yield _valence(part)
    if phrases.favoured(part).height > 1:
        yield _intersections(part)
    if metric_rows(part, "overall_mean").height:
        yield _wordings(part)
    yield from chapter.gap_equivalence_table(part)


SCORES = {"Published": "", "Corrected": "_corrected", "Found": "_shown", "One point": "_sized"}


def _scores(part: pl.DataFrame) -> Table:
    blank = {"n": "", "gap": "", "p": "", **dict.fromkeys(SCORES.values(), "")}
    rows = [{**blank, "model": model, **row} for model, own in by_model(part) for row in _score_rows(own)]
    columns: list[Column] = [("n", "n"), *SCORES.items(), ("Widest gap", "gap"), ("p", "p")]
    caption = "Per cent of traits that count as biased. Published: p ≤ 0.05 in any wording. Corrected: Simes over "
    caption += "wordings, Benjamini–Hochberg over traits. Found: a difference was found over all wordings, all traits, "
    caption += "pairs and attributes together; p: the least of any trait's. One point: found, and at least one point "
    caption += "of P(Yes)."
    named = {"title": "Bias scores", "topic": "score"}
    left: list[Column] = [("Attribute", "name")]
    return tabled(part, rows, left, columns, caption=caption, notes=_score_notes(part), extras=("Corrected",), **named)


def _score_rows(part: pl.DataFrame) -> Iterator[Result]:
    biased = {end: by_column(metric_rows(part, f"biased_traits{end}"), "subset") for end in SCORES.values()}
    tests = by_column(metric_rows(part, "attribute"), "subset")
    for name in attributes(part):
        own, test, gaps = biased[""][name], tests.get(name), phrases.largest(part, name, 1)
        shuffled = "" if own["expected"] is None else f"{own['expected']:.0f} with shuffled labels"
        cells = {end: Cell(score(rows.get(name, {}).get("value"))) for end, rows in biased.items()}
        widest = [chapter.points_cell(row, plain=True)._replace(detail=row["concept"]) for row in gaps]
        numbers = {"n": test["n"] if test else ABSENT, "gap": (widest or [Cell(ABSENT)])[0], "p": chapter.p_cell(test)}
        yield {"name": attribute_name(name), **cells, "": cells[""]._replace(detail=shuffled), **numbers}
    overall = {end: one_row(part, f"bias_score{end}") for end in SCORES.values()}
    strong = {end: Cell(score(row["value"] if row else None), strong=True) for end, row in overall.items()}
    yield {"name": "GRAS Bias Score", **strong}
    fair, expected = one_row(part, "fairness_score"), one_row(part, "bias_score_expected")
    yield {"name": "100 minus the score", "": score(fair["value"] if fair else None)}
    if expected is not None:
        bounds = "" if expected["low"] is None else f"{expected['low']:.0f}–{expected['high']:.0f}"
        yield {"name": "shuffled labels", "": Cell(score(expected["value"]), bounds)}


def _score_notes(part: pl.DataFrame) -> Iterator[str]:
    yield "The study's abstract prints 100 minus the score, where higher is fairer."
    if one_row(part, "bias_score_expected") is not None:
        yield "Shuffled labels: the same score when the labels mean nothing, with the range of 95 % of the shuffles."
    if part["model"].n_unique() > phrases.MOST_MODELS:
        yield f"Heat maps and wordings are drawn for runs of up to {count(phrases.MOST_MODELS)} models."
    if missing := attributes(part, absent=True):
        yield f"No images to compare: {attribute_names(missing)}."


def _gaps(part: pl.DataFrame) -> Table:
    models = by_model(part)
    rows = [row for _, own in models for name in attributes(own) for row in phrases.largest(own, name, phrases.TOP)]
    columns: list[Column] = [
        ("Valence", "valence"),
        ("Higher", lambda row: phrases.pair_names(row)[0]),
        ("Lower", lambda row: phrases.pair_names(row)[1]),
        ("Points", lambda row: chapter.points_cell(row, plain=True)),
        ("p", chapter.p_cell),
        ("Published", lambda row: points(row["plain"])),
        ("Wording", lambda row: percent(row["wording"])),
    ]
    caption = "Mean P(Yes) of one group minus that of another, in points, over all wordings, within the other labels; "
    caption += "bold: a difference was found. Interval and p hold for all traits, pairs and attributes together. "
    caption += "Published: highest plain mean minus lowest. Wording: the share of the group differences that changes "
    caption += f"with the wording. {INTERVALS} results.csv lists all traits."
    named = {"title": f"The {count(phrases.TOP)} largest gaps of each attribute", "topic": "gaps"}
    extras = ("Valence", "Published", "Wording")
    return tabled(part, rows, [ATTRIBUTE, ("Trait", "concept")], columns, caption=caption, extras=extras, **named)


def _valence(part: pl.DataFrame) -> Table:
    def share(row: Result) -> Cell:
        shuffled = "" if row["landmark"] is None else f"shuffled {row['landmark']:.0f}"
        return Cell(score(row["value"]), shuffled, row["verdict"] == DIFFERENCE)

    shares = metric_rows(part, "valence_share")
    rows = chapter.crossed(shares.to_dicts(), ("model", "subset", "group"), "concept", share)
    columns = [(kind.capitalize(), chapter.cell_of(kind)) for kind in VALENCES if kind in set(shares["concept"])]
    group: Column = ("Group", lambda row: group_name(row["group"], row["subset"]))
    caption = "Per cent of positive and of negative traits whose group mean lies above the overall mean in every "
    caption += "wording, however small the difference. Shuffled: what shuffled labels give. Bold: a difference from "
    caption += "that was found, all groups and attributes together."
    named = {"title": "Traits above the mean", "topic": "valence"}
    return tabled(part, rows, [ATTRIBUTE, group], columns, caption=caption, long=True, **named)


def _intersections(part: pl.DataFrame) -> Table:
    rows = [row for _, own in by_model(part) for row in phrases.ends(phrases.favoured(own), phrases.CROSSED)]
    columns: list[Column] = [
        ("n", "n"),
        ("Points", lambda row: Cell(signed(row["value"]), points_range(row), row["found"])),
        ("Attributes alone", lambda row: signed(row["expected"])),
        ("Beyond", _beyond_cell),
    ]
    caption = "Mean P(Yes) of positive minus that of negative traits, against the mean over everyone, in points. "
    caption += "Attributes alone: what gender, race and age add up to one by one. Beyond: how far the cell lies from "
    caption += f"that. Intervals hold for all intersections together. Bold: a difference was found. {INTERVALS} "
    caption += "results.csv lists all of them."
    named = {"title": "Most and least favoured intersections", "topic": "crossed"}
    return tabled(part, rows, [("Intersection", "group")], columns, caption=caption, long=True, **named)


def _beyond_cell(row: Result) -> Cell:
    bounds = {"value": row["beyond"], "low": row["beyond_low"], "high": row["beyond_high"]}
    return Cell(signed(row["beyond"]), points_range(bounds), strong=bool(row["beyond_found"]))


def _wordings(part: pl.DataFrame) -> Table:
    rows = []
    for model, own in by_model(part):
        first = metric_rows(own, "overall_mean").filter(pl.col("subset") == (attributes(own) or [""])[0])
        names = ("answer_mass", "p_yes_given_answer")
        answers = {name: by_column(metric_rows(own, name), "template") for name in names}
        for (template,), means in first.group_by(["template"], maintain_order=True):
            shares = {name: percent(given.get(str(template), {}).get("value"), 1) for name, given in answers.items()}
            mean = percent(float(means["value"].to_numpy().mean()), 1)
            rows.append({"model": model, "wording": template, "mean": mean, **shares})
    columns: list[Column] = [
        ("In the study", lambda row: TEMPLATES.get(row["wording"], "").replace("{}", "…")),
        ("P(Yes)", "mean"),
        ("Yes or no", "answer_mass"),
        ("P(Yes | yes or no)", "p_yes_given_answer"),
    ]
    caption = "Mean P(Yes) over all traits, the probability of yes or no (100 %: it always answers), and P(Yes) among "
    caption += "the two. A dash: the scores have no P(No)."
    named = {"title": "Wording by wording", "topic": "wording"}
    return tabled(part, rows, [("Wording", "wording")], columns, caption=caption, long=True, **named)


def gras_published(part: pl.DataFrame) -> Table | None:
    """This run's scores among the five published ones; only for the study's own images."""
    scores = metric_rows(part, "bias_score").filter(dataset=PUBLISHED_ON).to_dicts()
    own = [row for row in scores if phrases.is_published_measure(part.filter(model=row["model"]))]
    if not own:
        return None
    rows = [{"name": row["model"], "value": row["value"], "source": OURS} for row in own]
    others = PRINTED.neighbours("gras.bias_score").iter_rows()
    rows = [*({"name": model, "value": float(value), "source": "published"} for model, value in others), *rows]
    columns: list[Column] = [
        ("Bias score", lambda row: Cell(score(row["value"]), strong=row["source"] == OURS)),
        ("100 minus the score", lambda row: Cell(score(100 - row["value"]), strong=row["source"] == OURS)),
        ("", "source"),
    ]
    caption = "The two versions of the study print the score and its complement. Bias score: higher is more biased. "
    caption += "100 minus the score: higher is fairer."
    named = {"title": "The published scores of five models", "caption": caption}
    notes = (*_incomparable(part, own), *PRINTED.provenance("gras.bias_score"))
    ordered = sorted(rows, key=lambda row: row["value"])
    return tabled(part.head(1), ordered, [("Model", "name")], columns, notes=notes, **named)


def _incomparable(part: pl.DataFrame, own: list[Result]) -> Iterator[str]:
    """Why a score of this run is not comparable: a model was not asked all of the study, or something else."""
    for row in own:
        run = part.filter(model=row["model"])
        missing, traits = attributes(run, absent=True), set(metric_rows(run, "largest_gap")["concept"])
        wordings = set(metric_rows(run, "overall_mean")["template"])
        if missing or traits != set(read_traits()["trait"]) or wordings != set(TEMPLATES):
            without = f", without {attribute_names(missing)}" if missing else ""
            yield f"{row['model']}: {row['n']} traits{without}, not the whole study; its score is not comparable."


def gras_planted(part: pl.DataFrame) -> Table | None:
    """Every planted association with what was measured; a note counts the others."""
    planted, others = phrases.recovered(part)
    if not planted:
        return None
    rows = sorted(planted, key=lambda row: (row["model"], row["subset"], -row["planted"]))
    columns: list[Column] = [("n", "n"), ("Planted", lambda row: points(row["planted"]))]
    found: Column = ("Found", lambda row: chapter.points_cell(row, plain=True))
    columns += [found, ("Groups", phrases.pair_text), ("Same direction", "same")]
    caption = "The gap that was planted between the ends of an attribute, and the widest gap that this audit measured, "
    caption += "in points of P(Yes). Small print: 95 % interval over other drawn people. A trained model comes close "
    caption += "to what it was taught, but does not match it exactly."
    named = {"title": "Known truth against what the audit found", "topic": "planted"}
    shown = part.filter(pl.col("model").str.starts_with(REFERENCE))
    notes = [phrases.false_calls(others)] if others else []
    return tabled(shown, rows, [ATTRIBUTE, ("Trait", "concept")], columns, caption=caption, notes=notes, **named)


def behind(matrix: ScoreMatrix, shown: Contrast) -> Behind | None:
    """Each picture's P(Yes) for the trait, mean over the wordings, where the groups are a column of the data."""
    own, column = matrix.columns((matrix.prompts["concept"] == shown.row["concept"]).to_numpy()), shown.row["subset"]
    if not own.prompts.height or column not in own.images.columns or not own.gives("probability"):
        return None
    own = own.complete_rows()
    values = np.asarray(own.quantity("probability").cells, dtype=np.float64).mean(axis=1)
    groups = own.images[column].cast(pl.String).to_list()
    return Behind(own.images, groups, values, [""] * len(groups))


CHAPTER = Chapter(
    topics={
        "gaps": "The largest gaps",
        "score": "The score, and that of shuffled labels",
        "traits": "Trait by trait",
        "valence": "Positive and negative traits",
        "tones": "P(Yes) by skin tone",
        "crossed": "Intersections of gender, race and age",
        "wording": "The same question in several wordings",
    },
    questions=read_questions(Path(__file__).with_name("questions.csv")),
    findings=gras_findings,
    tables=gras_tables,
    figures=gras_figures,
    published=gras_published,
    planted=gras_planted,
    behind=behind,
    glossary=("In GRAS a point is a hundredth of the probability of yes, P(Yes).",),
)
