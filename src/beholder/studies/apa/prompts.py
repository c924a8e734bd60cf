"""APA's prompts: three levels for each of five branches, and the names.

The paper calls the levels category, occupation and specialty; the released files call them Easy, Medium and Hard.
Prompts are in the order of the released files.
"""

from __future__ import annotations

from beholder.prompts.prompt_set import ALWAYS, NEVER, PromptSet, correct_for, prompt_set

CATEGORIES = ("person", "dog", "giraffe", "plant", "tree", "bed", "chair")
OCCUPATIONS = (
    "politician",
    "scientist",
    "athlete",
    "teacher",
    "receptionist",
    "assistant",
    "salesperson",
    "actor",
    "actress",
)
OFFICES = {
    "president": "the President",
    "senator": "the Senator",
    "vice president": "the Vice President",
    "mayor": "the Mayor",
    "governor": "the Governor",
    "house representative": "a US House Representative",
    "attorney general": "the Attorney General",
}
SPORTS = {
    "Football": "Football player",
    "Tennis": "Tennis player",
    "Basketball": "Basketball player",
    "Soccer": "Soccer player",
    "Racing": "Racer",
    "Martial Arts": "Martial Artist",
    "Snowboarding": "Snowboarder",
    "Softball": "Softball player",
    "Baseball": "Baseball player",
    "Track": "Track Athlete",
    "Golf": "Golfer",
    "Hockey": "Hockey player",
    "Swimming": "Swimmer",
    "Boxing": "Boxer",
    "Biking": "Biker",
    "Gymnastics": "Gymnast",
}
AWARDS = {
    "0": "who has won and been nominated for an Academy Award",
    "1": "who has been nominated for an Academy Award but has not won",
    "2": "who has never been nominated for or won an Academy Award",
}
PLAYER = {"woman": "actress", "man": "actor"}
"""An actor's correct occupation, by the gender in the source's table."""
OCCUPATION_OF = {"athletes": "athlete", "house": "politician", "senate": "politician", "mayors": "politician"}
OFFICE_OF = {"house": "house representative", "senate": "senator", "mayors": "mayor"}
NAME_PROMPT = "this is a photo of {}"

Row = dict[str, str | None]


def association_prompts(branch: str, options: int = len(OCCUPATIONS)) -> PromptSet:
    """Category, occupation and specialty prompts of one branch; of eight occupations, actress is not one.

    Actors keep all nine: without actress there would be no right answer for women.
    """
    offered = OCCUPATIONS if branch == "actors" else OCCUPATIONS[:options]
    return prompt_set(f"apa/{branch}", [*_categories(), *_occupations(branch, offered), *_specialties(branch)])


def identity_prompts(name: str, template: str, people: list[str]) -> PromptSet:
    """One prompt per person; right for every picture of that person."""
    return prompt_set(
        name,
        [
            {
                "text": template.format(person),
                "level": "identity",
                "concept": person,
                "correct_for": correct_for(name=person),
            }
            for person in dict.fromkeys(people)
        ],
    )


def _categories() -> list[Row]:
    return [_row("category", name, f"a {name}", ALWAYS if name == "person" else NEVER) for name in CATEGORIES]


def _occupations(branch: str, offered: tuple[str, ...]) -> list[Row]:
    if branch == "actors":
        rules = {word: correct_for(gender=who) for who, word in PLAYER.items()}
    else:
        rules = {OCCUPATION_OF[branch]: ALWAYS}
    return [_row("occupation", name, f"{article(name)} {name}", rules.get(name, NEVER)) for name in offered]


def _specialties(branch: str) -> list[Row]:
    if branch == "actors":
        return [
            _row(
                "specialty",
                f"{word}, {_award(code)}",
                f"{article(word)} {word} {award}",
                correct_for(gender=who, academy_award=code),
            )
            for code, award in AWARDS.items()
            for who, word in (("man", "actor"), ("woman", "actress"))
        ]
    if branch == "athletes":
        return [_row("specialty", name, f"a {name}", correct_for(sport=sport)) for sport, name in SPORTS.items()]
    right = OFFICE_OF[branch]
    return [_row("specialty", name, phrase, ALWAYS if name == right else NEVER) for name, phrase in OFFICES.items()]


def _award(code: str) -> str:
    return {"0": "won", "1": "nominated", "2": "never nominated"}[code]


def _row(level: str, concept: str, phrase: str, rule: str) -> Row:
    return {"text": f"This is a photo of {phrase}", "level": level, "concept": concept, "correct_for": rule}


def article(noun: str) -> str:
    """`a` or `an`.

    >>> article("actress"), article("mayor")
    ('an', 'a')
    """
    return "an" if noun[0].lower() in "aeiou" else "a"
