"""The chapter on ratings: people beside the model, and occupations beside who works in them."""

from collections.abc import Iterator

import polars as pl

from beholder.chapter import numbers
from beholder.chapter.chapter import Chapter, Table, read_told, tabled
from beholder.chapter.charts import Figure, each_model
from beholder.chapter.finding import Finding, finding, valued
from beholder.chapter.numbers import has_interval
from beholder.comparison.family import DIFFERENCE, FACT, TOO_LITTLE
from beholder.glasshouse.planted import PLANTED_RATINGS, REFERENCE
from beholder.studies.mirror import Gap, gaps_of, mirror_figures, mirror_findings, mirror_tables


def rating_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """People beside the model; occupations; and whether what was planted is found."""
    yield from mirror_findings(part)
    for row in valued(part, "labour"):
        bounds = f"{row['low']:.2f} to {row['high']:.2f}, " if has_interval(row) else ""
        sentence = (
            "Spearman's correlation of the model's gap between women and men with the share of women who work in an "
            f"occupation is {row['value']:.2f} ({bounds}p {numbers.row_p_value(row)}) over {row['n']} occupations."
        )
        headline = "The occupations that the model gives to women are not found to follow who works in them"
        if row["verdict"] == TOO_LITTLE:
            headline = "Too few occupations to say whether the model gives women those in which women work"
        if row["verdict"] == DIFFERENCE:
            way = "more" if row["value"] > 0 else "less"
            headline = f"The more women work in an occupation, the {way} the model gives it to women"
        yield finding(row, "labour", headline, sentence, verdict=row["verdict"])
    if gaps := _recovered(part):
        right = [gap for gap in gaps if gap.kind == PLANTED_RATINGS[gap.people["concept"]].kind]
        texts = [f"{gap.people['concept']}: {gap.kind or 'nothing found'}" for gap in gaps]
        headline = f"The audit names {len(right)} of {len(gaps)} planted relations"
        yield finding(gaps[0].departure, "planted", headline, f"{'; '.join(texts)}.", verdict=FACT)


def _recovered(part: pl.DataFrame) -> list[Gap]:
    """Gaps by gender of the reference model that was asked about the planted traits."""
    own = part.filter(pl.col("model") == f"{REFERENCE}generative", pl.col("dataset").str.starts_with("glasshouse"))
    gaps = [gap for gap in gaps_of(own) if gap.people["subset"] == "gender"]
    return [gap for gap in gaps if gap.people["concept"] in PLANTED_RATINGS]


def planted_table(part: pl.DataFrame) -> Table | None:
    """What was planted and what was found; None where nothing was planted."""
    rows = [
        {**gap.people, "found": gap.kind or "", "own": PLANTED_RATINGS[gap.people["concept"]].kind}
        for gap in _recovered(part)
    ]
    if not rows:
        return None
    title, caption = (
        "Known truth against what the audit found",
        "What the reference model makes of made ratings, by gender.",
    )
    columns = [("Planted", "own"), ("Found", "found")]
    return tabled(part, rows, [("Trait", "concept")], columns, title=title, caption=caption, topic="planted")


def rating_figures(results: pl.DataFrame) -> Iterator[Figure]:
    """A chart for every label and group."""
    for number, figure in enumerate(each_model(results, mirror_figures), 1):
        yield figure._replace(name=f"mirror-{number}")


TOLD = read_told(__file__)
CHAPTER = Chapter(
    topics=TOLD.topics,
    questions=TOLD.questions,
    findings=rating_findings,
    tables=mirror_tables,
    figures=rating_figures,
    planted=planted_table,
)
