"""GRAS's attributes, groups and scores as text, and what the chapter takes from its rows."""

from collections.abc import Iterable

import polars as pl

from beholder.chapter import finding
from beholder.chapter.finding import FOUND, deciding_rows, metric_rows, swapped
from beholder.chapter.numbers import ABSENT, Result, listed
from beholder.core.results import PLAIN
from beholder.glasshouse.planted import ATTRIBUTES as PLANTED_ATTRIBUTES
from beholder.glasshouse.planted import PLANTED_TRAITS, REFERENCE, group_means
from beholder.studies.gras.groups import ATTRIBUTES
from beholder.studies.gras.prompts import VALENCES

TOP = 5  # how many gaps of an attribute are listed
CROSSED = 6  # how many of the most favoured and of the least favoured intersections are listed
MOST_MODELS = 3  # heat maps and wordings are drawn for at most this many models: a page must open on a phone
TRAIT = ["model", "subset", "concept"]  # the columns that identify a trait's group differences


def attribute_name(attribute: str) -> str:
    """As a sentence has it."""
    return attribute.replace("_", " ")


def attribute_names(attributes: Iterable[str]) -> str:
    """Several of them: `gender, race and age`."""
    return listed([attribute_name(attribute) for attribute in attributes])


def group_name(group: str, attribute: str) -> str:
    """A group as the data names it; a skin tone with its scale."""
    return f"MST {group}" if attribute == "skin_tone" and group.isdecimal() else group


def pair_names(row: Result) -> tuple[str, str]:
    """The higher and the lower group of a gap; dashes where the row names none."""
    pair = row["group"], row["against"]
    higher, lower = (ABSENT if end is None else group_name(end, row["subset"]) for end in pair)
    return higher, lower


def pair_text(row: Result) -> str:
    """The two groups of a gap in a line."""
    higher, lower = pair_names(row)
    return f"{higher} higher than {lower}" if row["value"] else "no group is higher"


def score(value: float | None) -> str:
    """A score of 100: as many decimals as the study prints, none where they are 0."""
    if value is None:
        return ABSENT
    quarters = abs(4 * value - round(4 * value)) < 1e-9  # four attributes of 100 traits
    return f"{value:.2f}".rstrip("0").rstrip(".") if quarters else f"{value:.1f}"


# What the chapter takes from GRAS's rows


def attributes(part: pl.DataFrame, *, absent: bool = False) -> list[str]:
    """The attributes that were measured, or those for which there was nothing to compare, in the study's order."""
    measured = set(metric_rows(part, "biased_traits")["subset"])
    return [attribute for attribute in ATTRIBUTES if (attribute in measured) != absent]


@finding.once_per_table
def gaps(part: pl.DataFrame) -> pl.DataFrame:
    """Every trait's gap as it was judged, the higher group first, the largest first.

    `plain` is the published gap, without regard to other labels, `remark` its note; `wording` the share that changes.
    """
    table = deciding_rows(part, "largest_gap")
    rows = [swapped(row) if (row["value"] or 0.0) < 0 else {**row, "swapped": False} for row in table.to_dicts()]
    table = pl.DataFrame(rows, schema={**table.schema, "swapped": pl.Boolean()}).with_columns(found=FOUND)
    table = finding.with_metrics(table, part, TRAIT, wording="wording_share")
    for other in (
        metric_rows(part, "largest_gap").select(*TRAIT, plain="value", remark="note"),
        metric_rows(part, "trait_mean").select(*TRAIT, valence="group"),
    ):
        table = table.join(other, on=TRAIT, how="left", maintain_order="left")
    return finding.widest_first(table)


def other_gaps(part: pl.DataFrame) -> pl.DataFrame:
    """Differences that were found in another pair than the widest, or within a single stratum; the largest first."""
    return finding.widest_first(deciding_rows(part, "other_gap").filter(FOUND))


def largest(part: pl.DataFrame, attribute: str, number: int) -> list[Result]:
    """The largest gaps of one model in one attribute."""
    return gaps(part).filter(pl.col("subset") == attribute).head(number).to_dicts()


def deviations(part: pl.DataFrame) -> pl.DataFrame:
    """`model, subset, concept, group, points`: a group's mean minus the overall one, averaged over wordings."""
    keys = [*TRAIT, "template"]
    overall = metric_rows(part, "overall_mean").select(*keys, overall="value")
    off = (100 * (pl.col("value") - pl.col("overall"))).mean().round(2).alias("points")
    means = metric_rows(part, "group_mean").join(overall, on=keys)
    return means.group_by([*TRAIT, "group"], maintain_order=True).agg(off)


def traits_in_order(part: pl.DataFrame) -> dict[str, list[str]]:
    """Traits by valence, within it the largest gap first."""
    table = gaps(part)
    by_valence = {kind: table.filter(pl.col("valence") == kind)["concept"].to_list() for kind in VALENCES}
    return {kind: traits for kind, traits in by_valence.items() if traits}


def wording_gaps(part: pl.DataFrame) -> pl.DataFrame:
    """`concept, template, mean, gap` in points: the gap of a trait's widest pair in each wording and over all.

    The pair is that of the means over all wordings, so a wording that reverses it has a negative gap.
    """
    means = metric_rows(part, "group_mean").select("concept", "group", "template", "value")
    pooled = means.group_by(["concept", "group"], maintain_order=True).agg(pooled=pl.col("value").mean())
    ends = pooled.sort("pooled", maintain_order=True).group_by("concept", maintain_order=True)
    top, bottom = (means.join(end, on=["concept", "group"]) for end in (ends.last(), ends.first()))
    both = top.join(bottom, on=["concept", "template"], suffix="_below")
    mean, gap = ((100 * (pl.col(name) - pl.col(f"{name}_below"))).round(2) for name in ("pooled", "value"))
    return both.select("concept", "template", mean=mean, gap=gap)


def by_tone(part: pl.DataFrame) -> pl.DataFrame:
    """`group, valence, value, low, high, n` over the skin tones: P(Yes) over all traits and wordings."""
    tones = metric_rows(part.filter(pl.col("subset") == "skin_tone"), "valence_mean")
    return tones.select("group", pl.col("value", "low", "high").round(5), "n", valence="concept")


def favoured(part: pl.DataFrame) -> pl.DataFrame:
    """Intersections as they were judged, the most favoured first, with `found`, and `beyond` their attributes."""
    names = {"beyond": "value", "beyond_low": "low", "beyond_high": "high"}
    beyond = deciding_rows(part, "interaction").select("model", "group", **names, beyond_found=FOUND)
    table = deciding_rows(part, "intersection").with_columns(found=FOUND)
    table = table.join(beyond, on=["model", "group"], how="left", maintain_order="left")
    return table.sort("value", descending=True, maintain_order=True)


def ends(table: pl.DataFrame, number: int) -> list[Result]:
    """The first and the last rows; all of them where there are not that many."""
    first = table.head(number)
    return [*first.to_dicts(), *table.tail(min(number, table.height - first.height)).to_dicts()]


def is_published_measure(part: pl.DataFrame) -> bool:
    """Whether the numbers are the study's P(Yes), and no variant of it."""
    return part.filter(PLAIN)["variant"].drop_nulls().is_empty()


# Known truth: the trait associations that the generative reference model was taught


def recovered(part: pl.DataFrame) -> tuple[list[Result], list[Result]]:
    """Gaps of traits that were planted (`planted`: the gap, `same`: whether its direction was found), and of others."""
    taught = pl.col("model").str.starts_with(REFERENCE) & pl.col("dataset").str.starts_with("glasshouse")
    known = pl.col("concept").is_in({trait.trait for trait in PLANTED_TRAITS})
    rows = gaps(part).filter(taught & known & pl.col("subset").is_in(PLANTED_ATTRIBUTES)).to_dicts()
    for row in rows:
        means = group_means(row["subset"], row["concept"])
        row["planted"] = planted_gap(row["subset"], row["concept"])
        row["same"] = "yes" if means.get(row["group"], 0.0) > means.get(row["against"], 0.0) else "no"
    return [row for row in rows if row["planted"] > 0], [row for row in rows if not row["planted"]]


def planted_gap(attribute: str, trait: str) -> float:
    """The gap that an audit of the faces should find: between the groups with the highest and the lowest mean."""
    means = group_means(attribute, trait).values()
    return round(max(means) - min(means), 12)  # 0 where nothing is planted, not 1e-17


def false_calls(rows: list[Result]) -> str:
    """In how many of these a difference was found, though nothing was planted."""
    found = sum(row["found"] for row in rows)
    return f"Where nothing was planted, a difference was found in {found} of {len(rows)} gaps."
