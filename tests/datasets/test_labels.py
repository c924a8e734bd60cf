"""Values that look alike are found, plainly different ones are not, and nothing is merged that nobody mapped."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from beholder.core.errors import BeholderError
from beholder.core.read import read_table
from beholder.datasets import DATASETS
from beholder.datasets.dataset import Dataset
from beholder.datasets.labels import look_alikes, map_option, mapped, parse_maps, unclear_labels
from beholder.datasets.selection import not_numbers, numbers_of

ALIKE = {
    "case, language, abbreviation": (
        "m M male Herr f F w female divers",
        ["gender: m, M, male, Herr = man", "gender: f, F, w, female = woman"],
    ),
    "one misspelling": ("male female femal", ["gender: female, femal = woman"]),
    "letters exchanged": ("Asian Asain Black", ["gender: Asian, Asain = Asian"]),
    "two languages": ("ja nein yes", ["gender: ja, yes = yes"]),
    "a letter for a word": ("s small large", ["gender: s, small = small"]),
    "a beginning with a dot": ("Am. American Asian", ["gender: Am., American = American"]),
    "an accent": ("männlich mannlich weiblich", ["gender: männlich, mannlich = man"]),
    "a dash and an underscore": ("non-binary non_binary man", ["gender: non-binary, non_binary = non-binary"]),
    "two ways to write a number": ("1 1.0 2", ["gender: 1, 1.0 = 1"]),
    "two dashes": ("0–2 0-2 3-9", ["gender: 0–2, 0-2 = 0-2"]),
    "a sign for no label": ("? man woman", ["gender: ? ="]),
    "a letter that may mean two things": ("m mujer hombre", ["gender: m, mujer = woman"]),
    "several words that stand for no label": ("unknown NA man", ["gender: unknown, NA ="]),
}
DIFFERENT = (
    "man woman",
    "Male Female",
    "m f d",
    "man boy woman girl",
    "White Black Latino_Hispanic East_Asian Southeast_Asian Indian Middle_Eastern",
    "0-2 3-9 10-19 20-29 more_than_70",
    "I II III IV V VI",
    "A B AB O",
    "a b d x",
    "A+ A- A",
    "Latino Latina",
    "group_A group_B",
    "shirt skirt",
    "light night",
    "actors athletes house senate mayors",
    "doctor cook builder teacher nurse",
    "none glasses",
    "unknown man woman",
    "True False",
    "0 1 2",
    "Iran Iraq",
)


def column(words: str) -> pl.Series:
    """Equally many of each, in this order."""
    return pl.Series("gender", [word for word in words.split() for _ in range(3)])


@pytest.mark.parametrize("kind", ALIKE)
def test_values_that_may_mean_one_group_are_found_with_the_map_to_paste(kind: str):
    words, maps = ALIKE[kind]
    found = look_alikes(column(words))
    assert found is not None
    suggested = [parse_maps([option.removeprefix("--map ").strip("'")])["gender"] for option in found.options]
    wanted = [parse_maps([each])["gender"] for each in maps]
    assert sorted(suggested, key=sorted) == sorted(wanted, key=sorted)


@pytest.mark.parametrize("words", DIFFERENT)
def test_plainly_different_values_are_let_alone(words: str):
    assert look_alikes(column(words)) is None


def test_names_with_blanks_and_commas_stay_what_they_are():
    assert look_alikes(pl.Series("race", ["East Asian", "Southeast Asian", "Asian, other"])) is None
    found = look_alikes(pl.Series("race", ["Asian, other", "asian, other", " x"]))
    assert found is not None
    assert found.options == ["""--map 'race: "Asian, other", "asian, other" = Asian, other'"""]
    assert parse_maps(['race: "Asian, other", "asian, other" = Asian, other']) == {
        "race": {"Asian, other": "Asian, other", "asian, other": "Asian, other"}
    }


@pytest.mark.slow
def test_no_label_of_the_known_data_sets_looks_alike(data: Path):
    seen = 0
    for source in DATASETS.values():
        if not source.embedded and not source.folder(data).is_dir():
            continue
        try:
            dataset = source.open(data)
        except BeholderError:  # only a part of it is here
            continue
        assert {name: look_alikes(dataset.table[name]) for name in dataset.attributes} == dict.fromkeys(
            dataset.attributes
        ), source.name
        seen += 1
    assert seen >= 11


def test_no_other_table_at_hand_looks_alike_but_for_a_dash_that_is_no_label(data: Path):
    tables = [*sorted((data / "apa").rglob("*.csv")), *sorted((data / "genderbias-vl").rglob("*.csv"))]
    found = [each.said for path in tables for each in map(look_alikes, read_table(path)) if each]
    assert set(found) == {"values may stand for no label (-)"}
    assert len(tables) > 3


def people(*genders: str | None) -> Dataset:
    ids = [f"{i}.png" for i in range(len(genders))]
    table = pl.DataFrame({"image_id": ids, "uri": ids, "gender": genders}, schema_overrides={"gender": pl.String})
    return Dataset("people", "1", "ours", table)


def test_a_map_changes_what_it_names_and_says_so():
    maps = parse_maps(["gender: m, male = man", "gender: ? =", "gender: f, Frau=woman"])
    read = mapped(people("m", " male ", "f", "?", None, "divers"), maps)
    assert read.table["gender"].to_list() == ["man", "man", "woman", None, None, "divers"]
    assert read.notes == (
        "gender is read by the given map (--map): m, male as man; ? as no label; f as woman",
        "gender has no Frau, which the map names",
    )


def test_a_map_may_be_a_table(tmp_path: Path):
    (tmp_path / "map.csv").write_text("value;group\nm;man\nf;woman\n?;\n")
    assert parse_maps([f"gender={tmp_path / 'map.csv'}"]) == {"gender": {"m": "man", "f": "woman", "?": None}}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["gender"],
            "--map gender: write a column and a table of two columns (value, group), --map gender=map.csv, or values "
            "and their group, --map 'gender: m, M, male = man'.",
        ),
        (
            ["gender: m, male"],
            "--map gender: m, male: write values, = and their group: --map 'gender: m, M, male = man'.",
        ),
        (["gender: m = man", "gender: m = woman"], "--map gender: 'm' stands for 'man' and for 'woman'."),
        (["gender=nowhere.csv"], "The file nowhere.csv is not there."),
    ],
)
def test_a_map_that_cannot_be_read_says_how_one_is_written(options: list[str], message: str):
    with pytest.raises(BeholderError) as error:
        parse_maps(options)
    assert str(error.value) == message


def test_a_map_of_another_column_or_of_other_values_is_refused():
    with pytest.raises(BeholderError, match="people has no attribute 'sex'"):
        mapped(people("m", "f"), {"sex": {"m": "man"}})
    with pytest.raises(BeholderError, match=r"--map gender: the column has no value 'Herr'.\nIt has: f, m"):
        mapped(people("m", "f"), {"gender": {"Herr": "man"}})


def test_codes_that_are_meant_are_kept():
    messy = people("m", "male", "f")
    assert list(unclear_labels(messy, ["gender"])) == ["gender"]
    assert not unclear_labels(mapped(messy, {}, keep_codes=True), ["gender"])


def test_a_group_that_cannot_be_guessed_is_left_open():
    assert map_option("size", ["m", "male", "medium"], "") == "--map 'size: m, male, medium = …'"


def test_decimal_commas_are_numbers_and_commas_between_thousands_are_not():
    assert numbers_of(pl.Series("age", ["23,5", "24", " 1,25 "])).to_list() == [23.5, 24.0, 1.25]  # type: ignore[union-attr]
    assert numbers_of(pl.Series("age", ["0,123", "0,5"])).to_list() == [0.123, 0.5]  # type: ignore[union-attr]
    assert numbers_of(pl.Series("income", ["1,234", "12,500"])) is None
    assert numbers_of(pl.Series("name", ["a,1", "2,5"])) is None


def test_texts_among_many_numbers_are_named():
    ages = pl.Series("age", [*map(str, range(20, 50)), "n/a", "about 40"])
    assert not_numbers(ages) == ["n/a", "about 40"]
    assert not_numbers(pl.Series("age", ["20-29", "30-39", "40-49"])) == []
