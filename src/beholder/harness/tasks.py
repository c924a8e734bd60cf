"""Every study as a task of inspect_ai: `inspect eval beholder/STUDY --model … -T dataset=folder:PHOTOS`.

The score is P(yes): the mass of all spellings of the agreeing answer among the likeliest first tokens where the
provider gives log-probabilities. With `-T draws=20` each question is put so often instead, and answers are counted.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from beholder.core.errors import MissingExtra
from beholder.harness import Questions
from beholder.models.served.protocol import TOP, WORDS, first_tokens, outcome, read_tokens, text_of
from beholder.prompts.prompt_set import Instruction
from beholder.studies import STUDIES

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, GenerateConfig
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState
except ImportError as error:
    raise MissingExtra("A task for inspect_ai", "inspect") from error

INSTALLED = "site-packages" in __file__
"""inspect_ai itself writes `beholder/` before the names of an installed package, but not of one in a clone."""


def _p_yes(yes: str, no: str, draws: int) -> Scorer:
    """The probability of the agreeing answer; of an answer that is counted 1 or 0."""
    asked = Instruction("{}", yes, no)

    async def score(state: TaskState, target: Target) -> Score:
        choice = state.output.choices[0].model_dump() if state.output.choices else {}
        tokens, answer = first_tokens(choice), text_of(choice)
        if tokens is None or draws:
            return Score(value=float(outcome(answer, asked) == "yes"), answer=answer)
        return Score(value=read_tokens(tokens, asked, answer, top=TOP).yes.value, answer=answer)

    return score


def _task(study: str) -> Callable[..., Task]:
    def made(draws: int = 0, model: object = None, **options: Any) -> Task:
        """Options are those of `beholder audit`: dataset, data, limit, prompts, by …; `draws` answers a question."""
        questions = Questions(study, draws=draws, **options)
        words = questions.instruction.yes, questions.instruction.no
        samples = []
        for image, text, about in questions.each(Path(PICTURES.name), choices=list(words)):
            asked = ChatMessageUser(content=[ContentImage(image=image), ContentText(text=text)])
            samples.append(Sample(input=[asked], metadata=about))
        answers = {"temperature": 1.0, "top_p": 1.0, "max_tokens": WORDS}
        tokens = {"temperature": 0.0, "max_tokens": 1, "logprobs": True, "top_logprobs": TOP}
        return Task(
            dataset=MemoryDataset(samples, name=study),
            scorer=p_yes(*words, draws),
            config=GenerateConfig(**(answers if draws else tokens)),
        )

    made.__name__ = study
    registered: Callable[..., Task] = task(name=study if INSTALLED else f"beholder/{study}")(made)
    return registered


PICTURES = TemporaryDirectory(prefix="beholder-")  # those that no file holds as they are asked about
p_yes = scorer(metrics=[mean(), stderr()], name="p_yes")(_p_yes)
TASKS = {study: _task(study) for study in STUDIES if STUDIES[study].command is None}
