"""APA's prompts, in the order of the released files, which call the levels Easy, Medium and Hard; and the names."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from beholder.core.read import read_delimited
from beholder.prompts.prompt_set import ALWAYS, NEVER, PromptSet, correct_for, prompt_set
from beholder.studies.public_figures.measures import PLAYERS

CATEGORIES = ("person", "dog", "giraffe", "plant", "tree", "bed", "chair")
OCCUPATIONS = tuple("politician scientist athlete teacher receptionist assistant salesperson actor actress".split())
TABLE = read_delimited(Path(__file__).with_name("specialties.csv"))
# Awards are in the order of the source's codes 0, 1 and 2.
OFFICES, SPORTS, AWARDS = (
    dict(TABLE.filter(kind=kind).select("concept", "phrase").rows()) for kind in ("office", "sport", "award")
)
OCCUPATION_OF = {"athletes": "athlete", "house": "politician", "senate": "politician", "mayors": "politician"}
OFFICE_OF = {"house": "house representative", "senate": "senator", "mayors": "mayor"}
NAME_PROMPT = "this is a photo of {}"

Row = dict[str, str | None]


def association_prompts(branch: str, options: int = len(OCCUPATIONS)) -> PromptSet:
    """Category, occupation and specialty prompts of one branch; of eight occupations, actress is not one."""
    # Actors keep all nine: without actress there would be no right answer for women.
    actors = branch == "actors"
    offered = with_article(OCCUPATIONS if actors else OCCUPATIONS[:options])
    players = {word: correct_for(gender=who) for who, word in PLAYERS.items()}
    occupations = level_rows("occupation", offered, players if actors else {OCCUPATION_OF[branch]: ALWAYS})
    categories = level_rows("category", with_article(CATEGORIES), {"person": ALWAYS})
    return prompt_set(f"apa/{branch}", [*categories, *occupations, *_specialties(branch)])


def _specialties(branch: str) -> list[Row]:
    if branch == "athletes":
        rules = {name: correct_for(sport=sport) for sport, name in SPORTS.items()}
        return level_rows("specialty", {name: f"a {name}" for name in rules}, rules)
    if branch != "actors":
        return level_rows("specialty", OFFICES, {OFFICE_OF[branch]: ALWAYS})
    phrases, rules = {}, {}
    for code, (award, phrase) in enumerate(AWARDS.items()):
        for who, word in reversed(PLAYERS.items()):
            phrases[f"{word}, {award}"] = f"{article(word)} {word} {phrase}"
            rules[f"{word}, {award}"] = correct_for(gender=who, academy_award=str(code))
    return level_rows("specialty", phrases, rules)


def level_rows(level: str, phrases: Mapping[str, str], right: Mapping[str, str]) -> list[Row]:
    """A prompt for each concept; `right` has the rules of those that are right for someone."""
    return [
        {"text": f"This is a photo of {phrase}", "level": level, "concept": word, "correct_for": right.get(word, NEVER)}
        for word, phrase in phrases.items()
    ]


def identity_prompts(name: str, template: str, people: list[str]) -> PromptSet:
    """One prompt per person; right for every picture of that person."""
    rows = [
        {"text": template.format(who), "level": "identity", "concept": who, "correct_for": correct_for(name=who)}
        for who in dict.fromkeys(people)
    ]
    return prompt_set(name, rows)


def with_article(words: Iterable[str]) -> dict[str, str]:
    """Each word with `a` or `an`."""
    return {word: f"{article(word)} {word}" for word in words}


def article(noun: str) -> str:
    """`a` or `an`."""
    return "an" if noun[0].lower() in "aeiou" and not noun.startswith("US ") else "a"
