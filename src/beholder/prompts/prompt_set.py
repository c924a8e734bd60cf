"""PromptSet: what a model is asked, one row per prompt, with what each prompt stands for.

Columns: `prompt_id`, `text`, `level` (prompts of one level compete), `concept` (a short label), `template`, `valence`
and `dimension` where a study has them, and `correct_for`, a rule that says for which images the prompt is right:

    *                              for every image
    gender=woman&academy_award=0   for images with these attribute values (URL-encoded where they hold & or =)
    (empty)                        for none: a distractor
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote

import numpy as np
import numpy.typing as npt
import polars as pl

from beholder.core.digests import digest
from beholder.core.errors import DataError, UnknownName
from beholder.core.read import column_in, read_table, require_columns, text_columns, with_plain_names


@dataclass(frozen=True)
class Instruction:
    """How a study puts its prompts to a model that answers in words."""

    template: str  # what the model reads beside the picture; `{}` stands for the prompt
    yes: str  # the answer that agrees; its raw logit is the channel `logit_true`
    no: str
    measure: str | None = None
    """The agreeing answer as a released script writes it, where it reads another token than `yes` has (` Yes`)."""

    def ask(self, prompt: str) -> str:
        """The words of one question; braces in the prompt are only braces."""
        return self.template.replace("{}", prompt)


PLAIN = Instruction("{}", yes="Yes", no="No")  # when no study gives a wording: the prompt is the question


# Tables of words from users


def read_templates(path: Path) -> dict[str, str]:
    """Own wordings: a table with the columns `template` (a short name) and `text`, in which `{}` is the blank."""
    table = text_columns(read_table(path), ["template", "text"], path).select("template", "text")
    for name, text in table.iter_rows():
        if text.count("{}") != 1:
            raise DataError(f"{path}: the text of the wording {name!r} needs one {{}}.")
    refuse_repeated(table["template"], "wording", path)
    return dict(table.iter_rows())


def refuse_repeated(names: pl.Series, what: str, path: Path | str) -> None:
    """An error that names the first name that occurs twice."""
    repeated = names.filter(names.is_duplicated()).to_list()
    if repeated:
        raise DataError(f"{path}: the {what} {repeated[0]!r} occurs more than once.")


# PromptSet

ALWAYS, NEVER = "*", ""
NAMES_LEVEL = "identity"  # the level of prompts that name people: they are not listed on a page
UNLISTED = "not listed"  # the level of prompts that a page does not show: words that hurt, names of pictures
ONE_LEVEL = "prompts"  # the level of prompts for which a user names none: they all compete
COLUMNS = ("prompt_id", "text", "level", "concept", "template", "valence", "dimension", "correct_for")
SCHEMA = dict.fromkeys(COLUMNS, pl.String)


@dataclass(frozen=True)
class PromptSet:
    """Prompts with attributes.

    >>> prompt_set("moods", [{"text": "a warm person", "level": "moods", "concept": "warm"}]).texts
    ['a warm person']
    """

    name: str
    table: pl.DataFrame

    def __post_init__(self) -> None:
        refuse_repeated(self.table["prompt_id"], "prompt", self.name)

    def __len__(self) -> int:
        return self.table.height

    @property
    def texts(self) -> list[str]:
        """What the model is asked, in order."""
        return self.table["text"].to_list()

    @property
    def digest(self) -> str:
        """Stands for the texts and their order: what the model sees, not what we make of it."""
        return digest(self.texts)


def prompt_set(name: str, rows: Iterable[Mapping[str, str | None]]) -> PromptSet:
    """A prompt set from rows with `text` and whatever else of the columns is known."""
    full = [{**dict.fromkeys(SCHEMA), "prompt_id": row["text"], **row} for row in rows]
    return PromptSet(name, pl.DataFrame([{key: row[key] for key in SCHEMA} for row in full], schema=SCHEMA))


def correct_for(**equals: str) -> str:
    """The rule for images with these attribute values."""
    return "&".join(f"{key}={quote(value, safe=' /,.()')}" for key, value in equals.items())


def parse_rule(rule: str) -> dict[str, str]:
    """Attribute values that a rule asks for."""
    try:
        return dict(parse_qsl(rule.replace("+", "%2B"), keep_blank_values=True, strict_parsing=True))
    except ValueError:
        raise DataError(f"The rule {rule!r} cannot be read: write attribute=value, joined by '&', or '*'.") from None


def correct_cells(prompts: pl.DataFrame, images: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """Which prompt is right for which image: `[n_images, n_prompts]`."""
    cells = np.zeros((images.height, prompts.height), dtype=bool)
    for column, rule in enumerate(prompts["correct_for"].fill_null(NEVER).to_list()):
        cells[:, column] = rule != NEVER
        for name, value in parse_rule(rule).items() if rule not in (ALWAYS, NEVER) else ():
            attribute = column_in(images, name)
            if attribute not in images.columns:
                raise UnknownName("attribute", name, images.columns, where="The data set")
            cells[:, column] &= (images[attribute].cast(pl.String) == value).fill_null(False).to_numpy()
    return cells


def own_prompts(texts: Iterable[str]) -> PromptSet:
    """Prompts that all compete, from their texts."""
    listed = list(texts)
    if not listed or not all(isinstance(text, str) and text.strip() for text in listed):
        raise DataError(f"prompts= takes a file, a PromptSet or a list of texts, not {str(listed)[:60]}.")
    rows = [{"text": text, "concept": text, "level": ONE_LEVEL, "correct_for": NEVER} for text in listed]
    return prompt_set("prompts", rows)


def read_prompts(path: Path) -> PromptSet:
    """A user's own prompts: a CSV, TSV or Parquet with a column `text`; the other columns are optional."""
    raw = with_plain_names(read_table(path), str(path))
    require_columns(raw, ["text"], path)
    if (raw["text"].cast(pl.String).fill_null("") == "").any() or not raw.height:
        raise DataError(f"{path}: {'a row has no text' if raw.height else 'there is no prompt'}.")
    rows = raw.with_columns(pl.all().cast(pl.String)).to_dicts()
    fallbacks = {"level": ONE_LEVEL, "correct_for": NEVER}
    known = [
        {**fallbacks, "concept": row["text"], **{k: v for k, v in row.items() if k in SCHEMA and v}} for row in rows
    ]
    prompts = prompt_set(path.stem, known)
    for rule in prompts.table["correct_for"].drop_nulls().to_list():
        if rule not in (ALWAYS, NEVER):
            parse_rule(rule)
    return prompts
