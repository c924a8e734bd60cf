"""P-FI: the public-figure benchmark, APA's predecessor: earlier prompts, asked about APA's photographs."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from beholder.core.read import read_delimited
from beholder.core.types import Fields
from beholder.prompts.prompt_set import ALWAYS, PromptSet, correct_for, prompt_set
from beholder.studies.apa.printed import POOLS, figure_sizes, misprint, other_people
from beholder.studies.apa.prompts import OFFICE_OF, Row, article, association_prompts, level_rows, with_article
from beholder.studies.apa.study import APA
from beholder.studies.printed import Printed, sources_beside
from beholder.studies.public_figures import study as figures
from beholder.studies.public_figures.declared import Asker, read_wordings
from beholder.studies.study import Plans, Study, read_words

NAME_PROMPT = "This is a picture of {}"
POLITICIAN_CATEGORIES = ("person", "dog", "giraffe", "plant", "tree", "lamp", "chair")
POLITICIAN_OCCUPATIONS = ("politician", "scientist", "athlete", "teacher", "receptionist", "assistant", "salesperson")
ROLES = dict(read_delimited(Path(__file__).with_name("roles.csv")).rows())
ATHLETE_CATEGORIES = ("person", "dog", "monkey", "plant", "tree", "lamp", "chair")
ATHLETE_OCCUPATIONS = ("athlete", "artist", "coach", "teacher", "receptionist", "athletic trainer", "assistant coach")
SPORTS = ("Basketball", "Tennis", "Soccer", "Hockey", "Golf", "Softball", "Baseball")


def pfi_association_prompts(branch: str) -> PromptSet:
    """Category, occupation and specialty (role or sport) prompts of one branch."""
    athletes = branch == "athletes"
    categories = _first_right("category", ATHLETE_CATEGORIES if athletes else POLITICIAN_CATEGORIES)
    if branch == "actors":
        kept = [row for row in association_prompts("actors").table.to_dicts() if row["level"] != "category"]
        return prompt_set("pfi/actors", [*categories, *kept])
    occupations = _first_right("occupation", ATHLETE_OCCUPATIONS if athletes else POLITICIAN_OCCUPATIONS)
    if athletes:
        phrases = {f"{sport} player": f"a {sport.lower()} player" for sport in SPORTS}
        right = {f"{sport} player": correct_for(sport=sport) for sport in SPORTS}
    else:
        phrases = {name: f"{article(role)} {role}" for name, role in ROLES.items()}
        right = {OFFICE_OF[branch]: ALWAYS}
    return prompt_set(f"pfi/{branch}", [*categories, *occupations, *level_rows("specialty", phrases, right)])


def _first_right(level: str, words: tuple[str, ...]) -> list[Row]:
    return level_rows(level, with_article(words), {words[0]: ALWAYS})


ASKER = Asker("pfi", POLITICIAN_CATEGORIES, NAME_PROMPT, {})


def configured(study: Study, options: Fields) -> Study:
    """P-FI with the user's wordings of other languages."""
    asker = ASKER._replace(wordings=read_wordings(options["templates"]))
    tasks = partial(figures.figure_tasks, asker, pfi_association_prompts)
    return replace(study, asks=replace(study.asks, tasks=tasks))


WORDS = read_words(__name__, sports=len(SPORTS))
PFI = replace(
    APA,
    **WORDS.about,
    asks=replace(APA.asks, datasets=("apa",), tasks=partial(figures.figure_tasks, ASKER, pfi_association_prompts)),
    measures=replace(
        APA.measures,
        functions=figures.public_figure_measures("pfi", POOLS),
        metrics=figures.public_figure_metrics("pfi"),
    ),
    tells=replace(WORDS.tells, limitations=APA.tells.limitations, of_photographs=APA.tells.of_photographs),
    plans=Plans(
        plan=partial(figures.ratio_plan, "pfi", POOLS),
        trials="beholder.studies.public_figures.study:PFI_TRIALS",
        printed="beholder.studies.pfi.study:PRINTED",
    ),
    default="data",
    demo=False,
    options=(figures.TEMPLATES,),
    configure=configured,
)

CELLS = Path(__file__).with_name("printed.csv")
PRINTED = Printed(
    CELLS,
    sources_beside(CELLS),
    sizes=partial(figure_sizes, POOLS),
    impossible=misprint,
    partial=other_people,
    whole=lambda row: True,
)
