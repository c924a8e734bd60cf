"""Tables of pairs of occupations, as GenderBias-VL publishes them: its measure again, and what it leaves open.

A row is two occupations, `occtm` with more men and `occtf` with more women, and how much more often each is recognised
on pictures of men than of the same scene with a woman, in points. The table's bias of a pair is half the difference of
the two; its mean size is never 0. By chance the direction in which an occupation leans has nothing to do with who works
in it: it turns round, in all of the occupation's pairs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from beholder.chapter import numbers
from beholder.chapter.finding import Finding, finding, valued, verdict_of_rows
from beholder.comparison.family import DIFFERENCE, TOO_LITTLE, comparison_at, judge, part_from_null
from beholder.comparison.shuffles import MOST_FLIPS, compare_ranks
from beholder.core.digests import digest
from beholder.core.errors import DataError
from beholder.core.read import read_table, text_columns
from beholder.core.record import Record
from beholder.core.results import Row, results_table
from beholder.studies.study import CommandOptions, Measured, MeasureOptions

NAME, ENDING = "genderbias-vl", "_VLbias"
NAMES, FIGURES = ("occtm", "occtf"), ("occtm_bias", "occtf_bias", "occtm_ratio", "occtf_ratio")
LICENCE = "CC BY-NC 4.0: for research only; not part of Beholder"


def read_tables(files: Sequence[str], options: CommandOptions) -> Measured:
    """The rows of every table, named after its file."""
    tables = {Path(file).stem.removesuffix(ENDING): _read(Path(file)) for file in files}
    rows = {model: table_rows(table, options.measure) for model, table in tables.items()}
    results = [results_table(own, study="pairs", model=model, dataset=NAME) for model, own in rows.items()]
    models = [{"name": model, "adapter": "a table", "files": [file]} for model, file in zip(tables, files, strict=True)]
    settings = {"draws": options.measure.draws, "seed": options.measure.seed}
    record = Record(studies=["pairs"], settings=settings, models=models)
    origin = "https://github.com/GenderBiasVL/GenderBias-VL"
    revision = digest([table.write_csv() for table in tables.values()])
    record.add_dataset({"name": NAME, "revision": revision, "licence": LICENCE, "origin": origin, "notes": []})
    return Measured(pl.concat(results), record)


def _read(path: Path) -> pl.DataFrame:
    table = text_columns(read_table(path), [*NAMES, *FIGURES], path).select(*NAMES, *FIGURES)
    values = table.with_columns(pl.col(*FIGURES).cast(pl.Float64, strict=False))
    for name in FIGURES:
        if not (fine := values[name].is_finite().fill_null(False)).all():
            wrong = (~fine).arg_max() or 0
            raise DataError(f"{path}: row {wrong + 2} has {table[name][wrong]!r} as {name}, which is no number.")
    return values


def table_rows(table: pl.DataFrame, options: MeasureOptions) -> Iterator[Row]:
    """Mean size, largest and mean bias of the pairs; and whether it follows who works in an occupation."""
    biases = table.select(FIGURES[:2]).to_numpy() * (1, -1)
    names, places = np.unique(table.select(NAMES).to_numpy(), return_inverse=True)
    rng, places = options.rng(), places.reshape(biases.shape)
    signs = rng.choice([-1.0, 1.0], size=(options.shuffles, len(names)))
    turned = (signs[:, places] * biases).sum(axis=2) / 2
    bias, people, ways = biases.sum(axis=1) / 2, len(names), 2.0 ** min(len(names), MOST_FLIPS)
    both = [pl.col(one, f"{one}_bias", f"{one}_ratio").name.map(lambda name: name[5:] or "name") for one in NAMES]
    own = pl.concat([table.select(one) for one in both]).group_by("name").mean().sort("name")
    towards_women, women = -own["_bias"].to_numpy(), own["_ratio"].to_numpy()
    sizes, means, size = np.abs(turned).mean(axis=1), turned.mean(axis=1), np.array([np.abs(bias).mean()])
    overall = part_from_null(size, sizes[:, None], one_sided=True, people=people, arrangements=ways)
    signed = part_from_null(
        np.array([bias.mean()]), means[:, None], centre=np.zeros(1), people=people, arrangements=ways
    )
    follows = compare_ranks(towards_women, women, np.zeros(len(names), np.intp), rng, options.shuffles)
    one, two, three = (comparison_at(judged, 0) for judged in judge([overall, signed, follows]))
    expected, pairs = float(sizes.mean()), table.height
    row = one.on(Row("pairs.mean_size", None, pairs, "points", expected=expected))
    yield row._replace(value=float(size[0]), low=None, high=None)
    yield Row("pairs.largest", float(bias.max()), pairs, "points", note=f"of either sign: {np.abs(bias).max():.4g}")
    yield two.on(Row("pairs.signed", None, pairs, "points"))
    yield three.on(Row("pairs.labour", None, len(names), "correlation"), least=-1.0, most=1.0)


def table_findings(part: pl.DataFrame) -> Iterator[Finding]:
    """Whether the bias of pairs is more than chance, and whether it follows who works in an occupation."""
    for size, signed in zip(valued(part, "mean_size"), valued(part, "signed"), strict=True):
        by_chance = f"{size['value']:.2f} points, where directions without meaning give {size['expected']:.2f}"
        mean = f"mean with its sign {numbers.quantity(signed['value'], 'points')}, p {numbers.row_p_value(signed)}"
        sentence = f"The mean size over {size['n']} pairs of occupations is {by_chance} ({mean})."
        verdict, answer = verdict_of_rows([size, signed]), ""
        headline = "The bias of pairs of occupations is not found to be more than chance gives"
        if verdict == DIFFERENCE:
            headline = "The bias of pairs of occupations is more than chance gives"
            whom = "more" if signed["value"] > 0 else "less"
            answer = f"The model sees occupations better in the gender that is {whom} frequent in them: {by_chance}."
        yield finding(size, "size", headline, sentence, verdict=verdict, more=[signed], answer=answer)
    for row in valued(part, "labour"):
        low, high = (numbers.ABSENT if row[end] is None else f"{row[end]:.2f}" for end in ("low", "high"))
        sentence = (
            f"Spearman's correlation with the share of women is {row['value']:.2f} ({low} to {high}, p "
            f"{numbers.row_p_value(row)}) over {row['n']} occupations."
        )
        found = row["verdict"] == DIFFERENCE
        way = "follows" if row["value"] > 0 else "runs against"
        headline = "The bias is not found to follow who works in an occupation"
        if row["verdict"] == TOO_LITTLE:
            headline = "Too few occupations to say whether the bias follows who works in them"
        headline = f"The bias {way} who works in an occupation" if found else headline
        yield finding(row, "labour", headline, sentence, verdict=row["verdict"])
