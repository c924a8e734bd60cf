"""Anyone's people: a table declares whom and what is asked, and everything is measured as for APA."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from beholder.comparison.family import DIFFERENCE
from beholder.core.errors import DataError, UsageError
from beholder.core.results import KEY, Row, results_table
from beholder.datasets import load_dataset
from beholder.datasets.apa import BRANCHES
from beholder.datasets.dataset import Dataset
from beholder.scores.score_matrix import Task
from beholder.studies.apa.prompts import CATEGORIES, NAME_PROMPT, association_prompts
from beholder.studies.apa.study import APA, configured
from beholder.studies.inquiry import DataChoice
from beholder.studies.public_figures.declared import Asker, read_wordings
from beholder.studies.study import MeasureOptions
from beholder.studies.worlds import CONSTANTS, DESIGNS, GENDER_ONLY, NOISE, UNFAIR, VECTORS, Design, draw

ASKER = Asker("apa", CATEGORIES, NAME_PROMPT, {})
OTHER_NAMES = dict(zip(BRANCHES, ("stage", "stadium", "lower", "upper", "towns"), strict=True))
SPELLED = {f"apa.{name}" for name in ("occupation_probability", "ratio_without", "either_word_probability")}
POOLS = {"stage": "stage", "stadium": "stadium"}  # and all others are one pool
OPTIONS = MeasureOptions(draws=100, shuffles=60)


def people(**columns: list[str | None]) -> Dataset:
    """A folder of people with these columns."""
    ids = [f"{i}.jpg" for i in range(len(next(iter(columns.values()))))]
    table = pl.DataFrame({"image_id": ids, "uri": ids, **columns})
    return Dataset("folder:staff", "1", "own", table)


def measured(tasks: list[Task], scores: dict[str, np.ndarray], options: MeasureOptions = OPTIONS) -> list[Row]:
    """Every row of APA, of these scores by task."""
    matrices = {task.name: task.matrix(scores[task.name][:, :, None], ("score",)) for task in tasks}
    return [row for measure in APA.measures.functions for row in measure(matrices, options)]


# APA's own people under other names


def relabelled(apa: pl.DataFrame) -> Dataset:
    """APA's table as a user would write it: other branches, options as words, the answer of each person."""
    rows = []
    for row in apa.to_dicts():
        prompts = association_prompts(row["branch"]).table
        own = {name: str(value) for name, value in row.items() if value is not None}
        texts: dict[str, str | None] = {}
        for level, column in (("occupation", "occupations"), ("specialty", "specialties")):
            part = prompts.filter(level=level)
            phrases = [text.removeprefix("This is a photo of ") for text in part["text"]]
            pairs = {"an actor": "an actor/an actress", "an actress": ""} if level == "occupation" else {}
            texts[column] = "|".join(filter(None, (pairs.get(each, each) for each in phrases)))
            rules = [dict(item.split("=") for item in rule.split("&") if "=" in item) for rule in part["correct_for"]]
            right = [
                phrase
                for phrase, rule, text in zip(phrases, rules, part["correct_for"], strict=True)
                if text == "*" or (rule and all(own.get(name) == value for name, value in rule.items()))
            ]
            texts[level] = right[0] if right else None
        branch = OTHER_NAMES[row["branch"]]
        kept = {name: row[name] for name in ("image_id", "uri", "name", "gender", "party", "sport", "academy_award")}
        rows.append({**kept, **texts, "branch": branch, "pool": POOLS.get(branch, "congress")})
    return Dataset("folder:others", "1", "own", pl.DataFrame(rows, infer_schema_length=None))


@pytest.mark.real
@pytest.mark.slow
def test_apas_people_under_other_branch_names_give_apas_own_numbers(data: Path):
    apa = load_dataset("apa", data)
    published, others = list(APA.asks.tasks(apa)), ASKER.tasks(relabelled(apa.table))
    rng, scores = np.random.default_rng(3), dict[str, np.ndarray]()
    for mine, theirs in zip(published, others, strict=True):
        order = [theirs.prompts.texts.index(text) for text in mine.prompts.texts]
        assert theirs.dataset.table["image_id"].to_list() == mine.dataset.table["image_id"].to_list()
        values = rng.normal(size=(len(mine.dataset), len(mine.prompts))) * 2
        scores[mine.name], scores[theirs.name] = values, np.empty_like(values)
        scores[theirs.name][:, order] = values
    names = {**OTHER_NAMES, "politicians": "congress"}
    own = {key(row, names): row for row in measured(published, scores)}
    found = {key(row, {}): row for row in measured(others, scores)}
    words = ("bias_ratio", "stage")  # APA's actors: b for their own words is claimed there, and described here
    missing = [place for place in own if place not in found and (place[0].removeprefix("apa."), place[1]) != words]
    assert {place[0] for place in missing} <= SPELLED, missing
    for place in own.keys() & found.keys():
        assert found[place].value == pytest.approx(own[place].value, rel=1e-9, nan_ok=True), place
        assert (found[place].n, found[place].chance) == (own[place].n, own[place].chance)
        if place[0] != "apa.bias_ratio" or place[1] != "stage":
            assert found[place].verdict == own[place].verdict, place
    assert len(own.keys() & found.keys()) > 200


def key(row: Row, names: dict[str, str]) -> tuple[object, ...]:
    """Of what a number is, under the other names."""
    variant = row.variant and row.variant.partition(" ")[0]  # `within`: which labels is told in other words
    place = row._replace(subset=names.get(str(row.subset), row.subset), variant=variant)
    if row.metric.endswith("branch_ratio"):
        place = place._replace(concept=names.get(str(row.concept), row.concept))
    return tuple(getattr(place, name) for name in KEY)


# Worlds of which it is known what the model sees

JOBS = "nurse|actor/actress|clerk|judge|baker"
SMALL = MeasureOptions(draws=100, shuffles=200)
CLAIMS = ("branch_ratio", "bias_ratio", "either_word_ratio", "occupation_gap", "identity_given", "association")


def declared_world(world: str, design: Design, rng: np.random.Generator) -> list[Row]:
    """A pool of actors and actresses and of nurses, with names and specialties, and what the model makes of them."""
    known = draw(world, design, 200, rng)
    actors = pl.col("branch") == "a"
    played = pl.when(pl.col("gender") == "woman").then(pl.lit("actress")).otherwise(pl.lit("actor"))
    table = known.table.select("image_id", "uri", "gender", "branch", name="person").with_columns(
        occupation=pl.when(actors).then(played).otherwise(pl.lit("nurse")),
        occupations=pl.lit(JOBS),
        specialty=known.table["source"].replace({"x": "tall one", "y": "small one"}),
        pool=pl.lit("all"),
    )
    tasks, scores = ASKER.tasks(Dataset("folder:made", "1", "own", table)), {}
    place = {image: row for row, image in enumerate(table["image_id"])}
    for task in tasks:
        rows = [place[image] for image in task.dataset.table["image_id"]]
        start = 50 if task.kind == "identity" else 0
        scores[task.name] = known.scores[rows][:, start : start + len(task.prompts)]
    return measured(tasks, scores, SMALL)


def called(rows: list[Row]) -> set[str]:
    """The claims of which a difference is called."""
    return {claim for claim in CLAIMS for row in rows if claim in row.metric and row.verdict == DIFFERENCE}


BLIND = {
    NOISE: (),
    CONSTANTS: (),
    VECTORS: (),
    GENDER_ONLY: ("branch_ratio", "bias_ratio", "either_word_ratio", "occupation_gap"),  # there these are true
}
WORLDS_DRAWN = 12


@pytest.mark.slow
@pytest.mark.parametrize("world", BLIND)
def test_blind_models_are_hardly_ever_said_to_treat_declared_people_differently(world: str):
    rng = np.random.default_rng([18, *world.encode()])
    design = DESIGNS["4 pictures a person"] if world == VECTORS else Design(20, 24)
    drawn = [called(declared_world(world, design, rng)) for _ in range(WORLDS_DRAWN)]
    for claim in set(CLAIMS) - set(BLIND[world]):
        # 5 % are called by chance: more than 4 of 12 would be so once in 5,000 tries
        assert sum(claim in each for each in drawn) <= 4, (world, claim)


def test_a_wholly_unfair_model_is_called_out_for_declared_people():
    found = called(declared_world(UNFAIR, Design(10, 10), np.random.default_rng(5)))
    assert {"either_word_ratio", "occupation_gap"} <= found


# What a table may say, and what it may not

GOOD = {
    "name": ["Ann", "Bo", "Cy", "Di"],
    "gender": ["Female", "Male", "woman", "man"],
    "occupation": ["an actress", "actor", "actress", "actor"],
    "occupations": ["actor/actress|clerk|judge"] * 4,
}


def test_a_table_without_branches_asks_everybody_the_same():
    jobs, names = ASKER.tasks(people(**GOOD))
    assert (jobs.name, names.name) == ("people/association", "people/identity")
    asked = jobs.prompts.table.filter(level="occupation")
    assert asked["text"].to_list() == [
        f"This is a photo of {each}" for each in ("an actor", "an actress", "a clerk", "a judge")
    ]
    assert jobs.dataset.table["gender"].to_list() == ["woman", "man", "woman", "man"]
    assert jobs.dataset.table["occupation"].to_list() == ["actress", "actor", "actress", "actor"]
    assert names.prompts.texts[0] == "this is a photo of Ann"


def test_occupations_of_the_table_are_offered_where_it_lists_none():
    columns = {"branch": ["a", "b"], "occupation": ["cook", "judge"]}
    first, second = ASKER.tasks(people(**columns))
    assert first.prompts.texts == second.prompts.texts
    assert first.prompts.texts[-2:] == ["This is a photo of a cook", "This is a photo of a judge"]


MISTAKES = {
    "is not offered 'pilot', the occupation of '0.jpg': actor, actress": {"occupation": ["pilot", *["actor"] * 3]},
    "has two lists of occupations": {"occupations": ["actor/actress|clerk", *["actor/actress|judge"] * 3]},
    "people of several occupations: clerk, actor or actress": {"occupation": ["clerk", *["actor"] * 3]},
    "'clerk' is offered more than once": {"occupations": ["actor/actress|clerk|clerk"] * 4},
    "two options or more are needed": {"occupations": ["actor"] * 4, "occupation": ["actor"] * 4},
    "the branch 'people' has several: pool 'x' and 'y'": {"pool": ["x", "y", "x", "y"]},
    "the branch 'people' has several: language 'es' and 'pt'": {"language": ["es", "pt", "es", "es"]},
    "there is no wording of category in the language 'es'": {"language": ["es"] * 4},
    "gender has 'a', 'b'; b compares": {"gender": ["a", "b", "a", "b"]},
}


@pytest.mark.parametrize("said", MISTAKES)
def test_a_malformed_table_is_refused_by_name(said: str):
    with pytest.raises(DataError) as error:
        ASKER.tasks(people(**{**GOOD, **MISTAKES[said]}))
    assert said in str(error.value)


def test_branches_of_one_pool_are_offered_the_same():
    columns = {"branch": ["a", "b"], "pool": ["x", "x"], "occupation": ["cook", "judge"]}
    with pytest.raises(DataError, match="branches of the pool 'x' are offered different occupations"):
        ASKER.tasks(people(**columns, occupations=["cook|judge", "judge|cook"]))


def test_people_of_whom_nothing_is_declared_cannot_be_asked_about():
    with pytest.raises(DataError, match=r"declares no people to ask about.\n.*occupation.*name.*It has: gender"):
        list(APA.asks.tasks(people(gender=["woman", "man"])))


def test_an_unknown_branch_with_names_alone_is_asked_for_names():
    (task,) = APA.asks.tasks(people(branch=["chefs", "chefs"], name=["Ann", "Bo"]))[-1:]
    assert (task.name, len(task.prompts)) == ("chefs/identity", 2)


SPANISH = """language,level,text,options
es,category,Esta es una foto de {},una persona|un perro
es,occupation,Esta persona trabaja de {},
es,identity,esta es una foto de {},
"""


def test_other_languages_are_asked_in_the_words_of_a_file(tmp_path: Path):
    (tmp_path / "es.csv").write_text(SPANISH)
    asker = ASKER._replace(wordings=read_wordings(tmp_path / "es.csv"))
    own = {"occupation": ["actriz", "actor", "actriz", "actor"], "occupations": ["actor/actriz|juez"] * 4}
    jobs, names = asker.tasks(people(**{**GOOD, **own}))
    assert jobs.prompts.texts == [
        "Esta es una foto de una persona",
        "Esta es una foto de un perro",
        *(f"Esta persona trabaja de {each}" for each in ("actor", "actriz", "juez")),
    ]
    assert names.prompts.texts[0] == "esta es una foto de Ann"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("es,job,Foto de {},", "'job' is no level. Levels are category, occupation, specialty and identity"),
        ("es,occupation,Foto,", "needs one {}"),
        ("es,category,Foto de {},una persona", "offers two or more, the right one first"),
        ("es,identity,Foto de {},\nes,identity,De {},", "identity occurs more than once"),
    ],
)
def test_a_file_of_wordings_is_checked(tmp_path: Path, row: str, said: str):
    (tmp_path / "es.csv").write_text(f"language,level,text,options\n{row}\n")
    with pytest.raises(DataError) as error:
        read_wordings(tmp_path / "es.csv")
    assert said in str(error.value)


def test_people_are_the_data_set_and_no_other_is_named_beside_them(tmp_path: Path):
    assert DataChoice(people=tmp_path / "p.csv").dataset == f"folder:{tmp_path / 'p.csv'}"
    with pytest.raises(UsageError, match=r"leave out --dataset coco"):
        DataChoice(people=tmp_path / "p.csv", dataset="coco")


def test_a_sentence_names_the_declared_words():
    rows = declared_world(UNFAIR, Design(10, 10), np.random.default_rng(5))
    table = results_table(rows, study="apa", model="m", dataset="folder:made")
    found = {finding.kind: finding for finding in APA.part("chapter").findings(table)}
    assert "“actor” or “actress”" not in found["bias"].headline  # the pool has nurses too: no one word is right
    assert "the right occupation" in found["bias"].headline or "different" in found["bias"].headline


@pytest.mark.real
def test_apas_own_people_are_asked_in_apas_words(data: Path, tmp_path: Path):
    (tmp_path / "es.csv").write_text(SPANISH)
    asked = configured(APA, {"templates": tmp_path / "es.csv"})
    with pytest.raises(UsageError, match="--templates goes with people of your own"):
        asked.asks.tasks(load_dataset("apa", data))
