"""What is asked of a scene: a choice between two options, in all orders beside “unclear”, or a statement for each.

A prompt's `template` says what its options are, in order: `+` the favourable one, `-` the other, `?` unclear.
"""

from collections.abc import Iterator, Sequence
from itertools import compress, permutations
from pathlib import Path

import polars as pl

from beholder.core.errors import DataError
from beholder.core.read import read_table, text_columns
from beholder.core.types import Fields
from beholder.datasets.dataset import Dataset
from beholder.datasets.selection import Selection
from beholder.prompts.prompt_set import Instruction, prompt_set, refuse_repeated
from beholder.scores.score_matrix import Task

CHOICE = Instruction(
    "Answer the multiple choice question by just giving the letter of the correct answer.\n\n{}\nAnswer:", "A", "B"
)  # as HELM asks; only A and B are read, so every option takes every place
NEEDED = ("question", "first", "second")
EVERY = "*"  # the scenario of questions that are asked of every scene of a part
OWN_PART = "status"  # whose questions are asked of a user's own pairs
UNCLEAR = "unclear"


def read_questions(path: Path) -> pl.DataFrame:
    """Questions with two options; the other columns may be left out: `first` is then the favourable one."""
    table = text_columns(read_table(path), list(NEEDED), path)
    for name, otherwise in (("part", EVERY), ("scenario", EVERY), ("favourable", "")):
        given = pl.col(name).cast(pl.String) if name in table.columns else pl.lit(None, pl.String)
        table = table.with_columns(given.fill_null(otherwise).alias(name))
    for place in ("first", "second"):
        stated = pl.col(f"{place}_statement") if f"{place}_statement" in table.columns else pl.lit(None, pl.String)
        written = pl.format("a photo of a person: {}", place)
        table = table.with_columns(stated.fill_null(written).alias(f"{place}_statement"))
    first = pl.col("favourable").is_in(["", EVERY]) | (pl.col("favourable") == pl.col("first"))
    for row in table.filter(~first, pl.col("favourable") != pl.col("second")).head(1).to_dicts():
        raise DataError(
            f"{path}: the favourable option {row['favourable']!r} is none of {row['first']!r} and {row['second']!r}."
        )
    options = [pl.when(first).then(one).otherwise(other) for one, other in (("first", "second"), ("second", "first"))]
    table = table.with_columns(contrast=pl.format("{} rather than {}", *options), turned=~first)
    refuse_repeated(
        table.select(pl.concat_str("part", "scenario", "contrast", separator=" / ")).to_series(), "row", path
    )
    return table


QUESTIONS = read_questions(Path(__file__).with_name("choices.csv"))


def pair_tasks(questions: pl.DataFrame | None, statements: bool, dataset: Dataset) -> Iterator[Task]:
    """A task for all scenes that are asked the same questions; scenes without a question are left out."""
    dataset.attribute("pair")
    table, known = dataset.table, QUESTIONS if questions is None else questions
    parts, scenes = (table[name] if name in table.columns else [None] * table.height for name in ("part", "scenario"))
    own = questions is None and not {*parts} & {*known["part"]}
    asked: dict[tuple[int, ...], list[int]] = {}
    for row, (part, scene) in enumerate(zip(parts, scenes, strict=True)):
        wanted = (OWN_PART if own else part, EVERY), (scene, EVERY)
        fits = (q["part"] in wanted[0] and q["scenario"] in wanted[1] for q in known.iter_rows(named=True))
        asked.setdefault(tuple(compress(range(known.height), fits)), []).append(row)
    for numbers, rows in asked.items():
        if numbers:
            name, make = str(table["pair"][rows[0]]), _statements if statements else _choices
            prompts = prompt_set(name, make(known[list(numbers)].to_dicts()))
            yield Task(name, dataset.selected(Selection(rows, (), len(dataset))), prompts)


def _choices(questions: Sequence[Fields]) -> Iterator[dict[str, str]]:
    """Every question with its three options in all six orders."""
    for asked in questions:
        favourable, other = (asked["second"], asked["first"])[:: 1 if asked["turned"] else -1]
        options = {"+": favourable, "-": other, "?": UNCLEAR}
        for order in map("".join, permutations(options)):
            listed = "\n".join(f"{letter}. {options[sign]}" for letter, sign in zip("ABC", order, strict=True))
            text = f"Question: {asked['question']}\n{listed}"
            yield {"text": text, "level": asked["contrast"], "concept": asked["contrast"], "template": order}


def _statements(questions: Sequence[Fields]) -> Iterator[dict[str, str]]:
    for asked in questions:
        for place, sign in zip(("first", "second"), "-+" if asked["turned"] else "+-", strict=True):
            text = str(asked[f"{place}_statement"])
            yield {"text": text, "level": asked["contrast"], "concept": asked[place], "template": sign}
