"""Own wordings are checked where they are read, with the row that is wrong."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import DataError
from beholder.core.read import text_columns
from beholder.prompts.prompt_set import read_templates, refuse_repeated


def written(folder: Path, text: str) -> Path:
    path = folder / "words.csv"
    path.write_text(text)
    return path


def test_wordings_are_read_by_name_without_blanks_around_them(tmp_path: Path):
    path = written(tmp_path, "template,text,more\nplain, Is this person {}? ,x\nshort,{},y\n")
    assert read_templates(path) == {"plain": "Is this person {}?", "short": "{}"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("template,text\nplain,Is this a person?\n", "the text of the wording 'plain' needs one {}"),
        ("template,text\nplain,{} or {}\n", "needs one {}"),
        ("template,text\na,{}\na,{}?\n", "the wording 'a' occurs more than once"),
        ("template,text\na,{}\n,{}?\n", "row 3 has no template"),
        ("template,text\na,{}\nb,\n", "row 3 has no text"),
        ("template\na\n", "text"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(tmp_path: Path, text: str, message: str):
    with pytest.raises(DataError, match=message):
        read_templates(written(tmp_path, text))


def test_numbers_become_texts_and_an_empty_table_is_refused():
    path = Path("words.csv")
    assert text_columns(pl.DataFrame({"trait": [1, 2]}), ["trait"], path)["trait"].to_list() == ["1", "2"]
    with pytest.raises(DataError, match="the table has no rows"):
        text_columns(pl.DataFrame({"trait": []}, schema={"trait": pl.String}), ["trait"], path)


def test_the_first_repeated_name_is_told():
    refuse_repeated(pl.Series(["a", "b"]), "trait", Path("x.csv"))
    with pytest.raises(DataError, match=r"x\.csv: the trait 'b' occurs more than once"):
        refuse_repeated(pl.Series(["a", "b", "b", "c", "c"]), "trait", Path("x.csv"))
