"""Anyone's people: a table that declares branches, occupations with their options, specialties, names and languages.

Names are asked within a `branch`, which has one `occupation`; b is that of a `pool`, compared within its branches. All
that is offered stands between `|`; `actor/actress` are words of one occupation. Each column but the image may be left
out, and what it is needed for is not asked. Any `language` but English needs its wordings in a file.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

from beholder.core.errors import DataError
from beholder.core.read import read_table, text_columns, with_plain_names
from beholder.datasets.apa import BRANCHES
from beholder.datasets.dataset import Dataset
from beholder.prompts.prompt_set import ALWAYS, NEVER, correct_for, prompt_set
from beholder.scores.score_matrix import Task
from beholder.studies.apa.prompts import article, identity_prompts
from beholder.studies.public_figures.identity import IDENTITY
from beholder.studies.public_figures.measures import ASSOCIATION, GROUPS, LEVELS, POOL

ENGLISH = "en"
ASKED = {"occupation": "occupations", "specialty": "specialties"}  # the columns of answers, and of what is offered
COLUMNS = ("branch", "pool", "language", "gender", "name", *ASKED, *ASKED.values())
BETWEEN, EITHER = "|", "/"
NO_BRANCH = "people"
GENDERS = {"female": "woman", "f": "woman", "women": "woman", "male": "man", "m": "man", "men": "man"}


class Wording(NamedTuple):
    """How a level is asked in a language: a sentence with one `{}`, and what is offered if the table does not say."""

    text: str
    options: tuple[str, ...] = ()
    articles: bool = False  # whether a word without an article gets the English one


Prompt = dict[str, str | None]
Wordings = Mapping[str, Mapping[str, Wording]]  # by language and level


class Answer(NamedTuple):
    """One prompt of a level: its concept, how the sentence has it, and all words for the same thing."""

    concept: str
    phrase: str
    either: str


def read_wordings(path: Path) -> dict[str, dict[str, Wording]]:
    """A table with the columns `language`, `level` and `text`, and with `options` for the category."""
    table = text_columns(with_plain_names(read_table(path), str(path)), ["language", "level", "text"], path)
    made: dict[str, dict[str, Wording]] = {}
    for row in table.to_dicts():
        language, level, where = row["language"].lower(), row["level"].lower(), f"{path}: {row['language']},"
        if level not in (*LEVELS, IDENTITY):
            raise DataError(f"{where} {row['level']!r} is no level. Levels are {', '.join(LEVELS)} and {IDENTITY}.")
        if row["text"].count("{}") != 1:
            raise DataError(f"{where} {level}: the text needs one {{}} for the word or name; it is {row['text']!r}.")
        if level in made.setdefault(language, {}):
            raise DataError(f"{where} {level} occurs more than once.")
        options = _between(row.get("options"))
        if level == LEVELS[0] and len(options) < 2:
            raise DataError(f"{where} {level}: the column 'options' offers two or more, the right one first: a|b.")
        made[language][level] = Wording(row["text"], options)
    return made


def declares(dataset: Dataset) -> bool:
    """Whether the data says itself what its people are asked; its branches are then not APA's."""
    if set(ASKED) & set(dataset.attributes) or "branch" not in dataset.attributes:
        return True
    return not set(dataset.table["branch"].drop_nulls().cast(pl.String)) <= set(BRANCHES)


def declared(dataset: Dataset, languages: Sequence[str] = ()) -> Dataset:
    """The same people with every declared column as text, a branch and a pool for everyone, and checked."""
    if not {"name", *ASKED} & set(dataset.attributes):
        raise DataError(
            f"{dataset.name} has no attribute 'branch' that is known, and declares no people to ask about.\n"
            "Add one or more of the columns occupation (with occupations), specialty (with specialties) and name. "
            f"It has: {', '.join(dataset.attributes) or 'no attributes'}."
        )
    given = {name: pl.col(name).cast(pl.String).str.strip_chars().replace("", None) for name in dataset.attributes}
    table = dataset.table.with_columns(**{name: given.get(name, pl.lit(None, pl.String)) for name in COLUMNS})
    only = languages[0] if len(languages) == 1 and not table["language"].count() else ENGLISH
    table = table.with_columns(
        pl.col("branch").fill_null(NO_BRANCH),
        pl.col("language").str.to_lowercase().fill_null(only),
        gender=_genders(table["gender"], dataset.name),
    )
    table = table.with_columns(pl.col(POOL).fill_null(pl.col("branch")))
    for what in ("language", POOL):
        for branch, several in table.group_by("branch", maintain_order=True).agg(pl.col(what).unique()).rows():
            if len(several) > 1:  # of what is asked of a branch as a whole
                two = " and ".join(map(repr, several[:2]))
                raise DataError(f"{dataset.name}: the branch {branch!r} has several: {what} {two}.")
    return replace(dataset, table=table)


def _genders(values: pl.Series, name: str) -> pl.Series:
    """`woman` and `man` where the source has one of their words; any other word stays as it is."""
    plain = values.str.to_lowercase().replace(GENDERS)
    known = plain.zip_with(plain.is_in(GROUPS).fill_null(False), values)
    if known.count() and not known.is_in(GROUPS).any():
        odd = ", ".join(map(repr, known.drop_nulls().unique(maintain_order=True)[:5].to_list()))
        raise DataError(f"{name}: gender has {odd}; b compares 'woman' and 'man'. Write these words where they apply.")
    return known


class Asker(NamedTuple):
    """How a study asks about declared people."""

    prefix: str
    categories: Sequence[str]  # the right one first
    name_prompt: str
    wordings: Wordings

    def tasks(self, dataset: Dataset) -> list[Task]:
        """For every branch what people are, and their names, as far as the table declares them."""
        people, made = declared(dataset, list(self.wordings)), list[Task]()
        offered: dict[str, list[str]] = {}
        for branch in people.table["branch"].unique(maintain_order=True).to_list():
            rows, part = self._association(branch, people.where(branch=branch), people.table)
            pool, texts = part.table[POOL][0], [str(row["text"]) for row in rows if row["level"] == "occupation"]
            if texts and offered.setdefault(pool, texts) != texts:
                raise DataError(
                    f"{dataset.name}: the branches of the pool {pool!r} are offered different occupations.\n"
                    f"Write the same list in the same order, or give {branch!r} a pool of its own."
                )
            if any(row["correct_for"] == NEVER for row in rows):
                own = prompt_set(f"{self.prefix}/{branch}", rows)
                made.append(Task(f"{branch}/{ASSOCIATION}", part, own, kind=ASSOCIATION, part=branch))
            named = replace(part, table=part.table.drop_nulls("name"))
            if named.table["name"].n_unique() > 1:
                text = self._wording(part, IDENTITY).text
                names = identity_prompts(f"{self.prefix}/{branch}/names", text, named.table["name"].to_list())
                made.append(Task(f"{branch}/{IDENTITY}", named, names, kind=IDENTITY, part=branch))
        return made

    def _association(self, branch: str, part: Dataset, all_people: pl.DataFrame) -> tuple[list[Prompt], Dataset]:
        """The prompts of the levels, and the people with their answers as the prompts' concepts have them."""
        category = self._wording(part, LEVELS[0])
        rows = _rows(LEVELS[0], category, _answers(category.options, category, f"{branch}: category"), ALWAYS)
        for level, column in ASKED.items():
            if part.table[level].count():
                wording, where = self._wording(part, level), f"{part.name}: the branch {branch!r}"
                answers = _answers(_offered(part.table, all_people, level, where), wording, f"{where}: {column}")
                concepts = {each.concept: each.either for each in answers}
                own = [None if text is None else _concept(text, wording) for text in part.table[level]]
                _check(part.table, level, own, concepts, where)
                part = replace(part, table=part.table.with_columns(pl.Series(level, own, pl.String)))
                rows += _rows(level, wording, answers)
        return rows, part

    def _wording(self, part: Dataset, level: str) -> Wording:
        language = part.table["language"][0]
        if language in self.wordings and level in self.wordings[language]:
            return self.wordings[language][level]
        if language == ENGLISH:
            text = self.name_prompt if level == IDENTITY else "This is a photo of {}"
            return Wording(text, tuple(self.categories), articles=True)
        raise DataError(
            f"{part.name}: there is no wording of {level} in the language {language!r}.\n"
            "Add a row for it to a table with the columns language, level, text and options: --templates FILE"
        )


def _between(cell: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (cell or "").split(BETWEEN) if word.strip())


def _concept(text: str, wording: Wording) -> str:
    """The word without its English article, so that `an actor` and `actor` are one answer."""
    return re.sub(r"^(?:a|an|the) ", "", text, flags=re.IGNORECASE) if wording.articles else text


def _answers(options: Sequence[str], wording: Wording, where: str) -> list[Answer]:
    made = []
    for option in options:
        words = [word.strip() for word in option.split(EITHER) if word.strip()]
        concepts = [_concept(word, wording) for word in words]
        if len(words) > 1 and any(" or " in word for word in words):
            raise DataError(f"{where}: {option!r} has two words for one thing; write each of them without ' or '.")
        for word, concept in zip(words, concepts, strict=True):
            phrase = f"{article(word)} {word}" if wording.articles and word == concept else word
            made.append(Answer(concept, phrase, " or ".join(concepts)))
    concepts = [each.concept for each in made]
    if repeated := [concept for concept in concepts if concepts.count(concept) > 1]:
        raise DataError(f"{where}: {repeated[0]!r} is offered more than once.")
    if len(made) < 2:
        raise DataError(f"{where}: two options or more are needed, between {BETWEEN!r}: {' | '.join(concepts)}")
    return made


def _offered(table: pl.DataFrame, all_people: pl.DataFrame, level: str, where: str) -> Sequence[str]:
    """What the branch is offered: the one list that its rows have; without any, what the table's people are."""
    column, known = ASKED[level], (all_people if level == "occupation" else table)[level]
    lists = list(dict.fromkeys(map(_between, table[column].drop_nulls())))
    if len(lists) > 1:
        raise DataError(f"{where} has two lists of {column}: {BETWEEN.join(lists[0])!r}, {BETWEEN.join(lists[1])!r}.")
    return lists[0] if lists else known.drop_nulls().unique(maintain_order=True).to_list()


def _check(table: pl.DataFrame, level: str, own: Sequence[str | None], concepts: Mapping[str, str], where: str) -> None:
    for image, concept in zip(table["image_id"], own, strict=True):
        if concept is not None and concept not in concepts:
            raise DataError(f"{where} is not offered {concept!r}, the {level} of {image!r}: {', '.join(concepts)}.")
    right = list(dict.fromkeys(concepts[concept] for concept in own if concept is not None))
    if level == "occupation" and len(right) > 1:
        raise DataError(
            f"{where} has people of several occupations: {', '.join(right[:3])}.\n"
            f"Give each occupation a branch of its own, and all of them one {POOL}: b is compared within branches. "
            f"Words of one occupation are offered as actor{EITHER}actress."
        )


def _rows(level: str, wording: Wording, answers: Sequence[Answer], first: str | None = None) -> list[Prompt]:
    """A prompt for every answer; the first is right for everyone, or each for those whose answer it is."""
    return [
        {
            "text": wording.text.replace("{}", each.phrase),
            "level": level,
            "concept": each.concept,
            "dimension": each.either,
            "correct_for": (NEVER if place else first) if first else correct_for(**{level: each.concept}),
        }
        for place, each in enumerate(answers)
    ]
