"""The protocol of an OpenAI-compatible server: what is sent, and how replies are read: as probabilities with their
bounds, or as counts.

Pure functions. A word's tokens are its spellings (three casings, with or without a space before). A server returns
only the likeliest tokens, so a probability lies between what was returned and what may be missing.
"""

import base64
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from PIL import Image
from scipy import stats

from beholder.core.types import Fields
from beholder.datasets.images import on_white
from beholder.models.generative.answers import BLANKS
from beholder.models.scorer import BOUNDS, WIDE
from beholder.models.served.address import Asking
from beholder.prompts.prompt_set import Instruction

TOP = 20  # requested tokens: the most that hosted APIs return
WORDS = 8  # tokens of a sampled answer: enough for a first word
ROOM = 4096  # tokens of a model that thinks before it answers
THOUGHT = re.compile(
    r"\s*(?:<(think|thinking|thought|reasoning)>.*?</\1>|\[THINK\].*?\[/THINK\]|◁think▷.*?◁/think▷"
    r"|<\|channel\|>analysis.*?<\|channel\|>final<\|message\|>)",
    re.DOTALL,
)
THINKING = ("<think", "<thought", "<reasoning", "[THINK", "◁think", "<|channel|>analysis")
GUIDED: dict[str, Callable[[list[str]], object]] = {
    "structured_outputs": lambda words: {"choice": words},
    "guided_choice": lambda words: words,
}  # how vLLM is given the only answers allowed: since version 0.12, and before
Body = dict[str, object]
Json = Fields  # an object as the server gave it
FLOOR = -87.0  # stands for the logarithm of nothing: stored cells are finite
SPELLINGS = 6  # how many tokens of a vocabulary can spell one word: three casings, with and without a space
POLICY_CODES = ("content_filter", "content_policy_violation")

CHANNELS = ("logit_true", "log_p_yes", "log_p_no", "log_p_other", *BOUNDS, "refused")
COUNTS = ("yes_draws", "no_draws", "draws")


class Garbled(Exception):  # noqa: N818
    """A reply that breaks the protocol; worth a retry."""


class Thinks(Exception):  # noqa: N818
    """The answer was cut off while the model was still thinking: nothing is known of what it would say."""


class NotProbabilities(Exception):  # noqa: N818
    """Numbers that no distribution has: NaN, or a mass beyond 1."""


class Share(NamedTuple):
    """A probability with what bounds it."""

    value: float
    low: float
    high: float


class Cell(NamedTuple):
    """One answer, as probabilities of the two words."""

    yes: Share
    no: Share
    refused: float
    seen: bool = True  # whether both words were among the returned tokens
    counts: tuple[float, ...] = ()

    @property
    def width(self) -> float:
        """The width of the wider interval."""
        return max(self.yes.high - self.yes.low, self.no.high - self.no.low)

    @property
    def undecided(self) -> bool:
        """Whether either word may be the likelier one, for all that was returned: then the cell counts as missing."""
        overlap = self.yes.low < self.no.high and self.no.low < self.yes.high
        return overlap and self.width > WIDE and self.refused <= 0.5 and not self.counts

    def channels(self) -> list[float]:
        """The numbers to store, in the order of `CHANNELS` and, for draws, `COUNTS`."""
        yes, no = self.yes, self.no
        other = 1.0 - yes.value - no.value
        logs = [log(p) for p in (yes.value, yes.value, no.value, other, yes.low, yes.high, no.low, no.high)]
        return [*logs, self.refused, *self.counts]


def log(probability: float) -> float:
    """The natural logarithm, but never below `FLOOR`."""
    return max(FLOOR, math.log(probability)) if probability > 0 else FLOOR


REFUSED = Cell(Share(0.0, 0.0, 1.0), Share(0.0, 0.0, 1.0), refused=1.0)  # nothing is known of the two words


def mapping(body: object) -> Json:
    """The reply, if it is an object."""
    if not isinstance(body, Mapping):
        raise Garbled("the reply is no object")
    return body


def part(of: Json, name: str) -> Json:
    """A part that is an object; empty if the server left it out."""
    value = of.get(name)
    return value if isinstance(value, Mapping) else {}


def choices(body: object) -> list[Mapping[str, object]]:
    """The answers of a reply; at least one."""
    answers = body.get("choices") if isinstance(body, Mapping) else None
    if not isinstance(answers, list) or not answers or not all(isinstance(one, Mapping) for one in answers):
        raise Garbled("the reply holds no choices")
    return answers


def text_of(choice: Mapping[str, object]) -> str:
    """The text of an answer, after what it thought aloud; empty for a refusal without text."""
    content = part(choice, "message").get("content")
    if isinstance(content, list):  # in parts
        content = "".join(str(each.get("text") or "") for each in content if isinstance(each, Mapping))
    if content is not None and not isinstance(content, str):
        raise Garbled("the reply's content is no text")
    return THOUGHT.sub("", content or "", count=1)


def is_policy(choice: Mapping[str, object]) -> bool:
    """Whether the server itself says that it refused."""
    return choice.get("finish_reason") == "content_filter" or bool(part(choice, "message").get("refusal"))


def thinks(choice: Mapping[str, object], *, sampled: bool) -> bool:
    """Whether an answer ends before the model has done thinking."""
    if is_policy(choice):
        return False
    text, message = text_of(choice).strip(), part(choice, "message")
    cut = choice.get("finish_reason") in ("length", "max_tokens")
    thoughts = message.get("reasoning_content") or message.get("reasoning")
    return text.startswith(THINKING) or (cut and not text and bool(sampled or thoughts))


def first_tokens(choice: Mapping[str, object]) -> list[tuple[str, float]] | None:
    """The likeliest first tokens with their log-probabilities, or None where the server gives none."""
    given = part(choice, "logprobs")
    content, older = given.get("content"), given.get("top_logprobs")
    first = content[0] if isinstance(content, list) and content else None
    top = first.get("top_logprobs") if isinstance(first, Mapping) else None
    if isinstance(older, list) and older and isinstance(older[0], Mapping):  # as completions had it
        top = [{"token": token, "logprob": value} for token, value in older[0].items()]
    if not isinstance(top, list) or not top:
        return None
    try:
        # Of a token whose value is null nothing is known.
        tokens = [(str(entry["token"]), float(entry["logprob"])) for entry in top if entry["logprob"] is not None]
        return tokens or None
    except (TypeError, KeyError, ValueError) as error:
        raise Garbled("the reply's log-probabilities cannot be read") from error


def prompt_word(body: Mapping[str, object], word: str) -> float | None:
    """The log-probability of the word that ends the prompt, where the server reports it (vLLM's `prompt_logprobs`)."""
    entries = body.get("prompt_logprobs")
    text, total = "", 0.0
    for entry in reversed(entries if isinstance(entries, list) else []):
        tokens = list(entry.values()) if isinstance(entry, Mapping) else []
        token = tokens[0] if tokens and isinstance(tokens[0], Mapping) else {}
        if not isinstance(token.get("decoded_token"), str) or not isinstance(token.get("logprob"), int | float):
            return None
        text, total = token["decoded_token"] + text, total + float(token["logprob"])
        if text.strip(BLANKS) == word:
            return total
        if not word.endswith(text.strip(BLANKS)):
            return None
    return None


def first_choice(reply: object) -> Mapping[str, object]:
    """The answer, which has log-probabilities or is a refusal."""
    answer = choices(reply)[0]
    if thinks(answer, sampled=False):
        raise Thinks
    if first_tokens(answer) is None and not is_policy(answer):
        raise Garbled("the reply lacks the log-probabilities that the server gave before")
    text_of(answer)
    return answer


def texts_of(reply: object) -> list[str]:
    """The answers, draw by draw; a refusal is an empty text."""
    if any(thinks(choice, sampled=True) for choice in choices(reply)):
        raise Thinks
    return ["" if is_policy(choice) else text_of(choice) for choice in choices(reply)]


def spells(token: str, word: str) -> bool:
    """Whether a token is the word, whatever its casing and leading space."""
    return token.lstrip(BLANKS).casefold() == word.casefold()


def leaves_open(token: str, word: str) -> bool:
    """Whether a token may yet become the word: its first letters, or nothing but a space."""
    return bool(token) and not spells(token, word) and word.casefold().startswith(token.lstrip(BLANKS).casefold())


def read_tokens(tokens: Sequence[tuple[str, float]], instruction: Instruction, answer: str, *, top: int) -> Cell:
    """The cell from a list of first tokens; `answer` is the answer's text, `top` the number of requested tokens."""
    masses = _masses(tokens)
    hidden = max(0.0, 1.0 - sum(mass for _, mass in masses))
    smallest = sorted((mass for _, mass in masses), reverse=True)[min(top, len(masses)) - 1] if masses else 1.0
    yes, seen_yes = _share(masses, instruction.yes, hidden=hidden, smallest=smallest)
    no, seen_no = _share(masses, instruction.no, hidden=hidden, smallest=smallest)
    likeliest = max(masses, key=lambda pair: pair[1], default=("", 0.0))[0]
    begun = not answer.strip() and leaves_open(likeliest, instruction.yes)  # with a blank: the word is still to come
    refused = outcome(answer, instruction) == "other" and not begun
    return Cell(yes, no, refused=float(refused), seen=seen_yes and seen_no)


def _masses(tokens: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Probabilities; -9999 is how some servers say that a token was not among the likeliest."""
    known = [(token, value) for token, value in tokens if not value < -9000]
    masses = [(token, math.exp(min(value, 1.0))) for token, value in known]
    if any(math.isnan(value) or value > 1e-3 for _, value in known) or sum(mass for _, mass in masses) > 1.01:
        raise NotProbabilities
    return masses


def _share(masses: Sequence[tuple[str, float]], word: str, *, hidden: float, smallest: float) -> tuple[Share, bool]:
    """A word's probability: what was returned of it, up to what else may belong to it."""
    spelled = [mass for token, mass in masses if spells(token, word)]
    low = min(1.0, sum(spelled))
    unseen = min(hidden, max(0, SPELLINGS - len(spelled)) * smallest)
    high = min(1.0, low + unseen + sum(mass for token, mass in masses if leaves_open(token, word)))
    return Share(low if spelled else (low + high) / 2, low, high), bool(spelled)


def outcome(answer: str, instruction: Instruction) -> str:
    """`yes`, `no`, `open` (too short to tell) or `other`, by the first word of an answer."""
    first = (answer.strip(BLANKS + "\"'*`([").split() or [""])[0].strip("\"'*`.,;:!?)]")
    for name, word in (("yes", instruction.yes), ("no", instruction.no)):
        if first.casefold() == word.casefold():
            return name
    return "open" if first and any(leaves_open(first, word) for word in (instruction.yes, instruction.no)) else "other"


def read_draws(answers: Sequence[str], instruction: Instruction) -> Cell:
    """Counts of repeated answers: shares with half a draw added to each of three outcomes, exact 95 % bounds."""
    outcomes = [outcome(answer, instruction) for answer in answers]
    n, yes, no = len(outcomes), outcomes.count("yes"), outcomes.count("no")
    bounds = [map(float, stats.binomtest(count, n).proportion_ci()) for count in (yes, no)]
    shares = [Share((count + 0.5) / (n + 1.5), *ends) for count, ends in zip((yes, no), bounds, strict=True)]
    return Cell(shares[0], shares[1], refused=(n - yes - no) / n, counts=(float(yes), float(no), float(n)))


FEWEST = re.compile(
    r"tokens\W.{0,80}?(?:at least|minimum|greater than or equal to|>=)\D{0,40}(\d+)|(?:at least|minimum)\D{0,40}(\d+)"
    r".{0,20}tokens",
    re.IGNORECASE | re.DOTALL,
)


class RequestForm(NamedTuple):
    """The form of request that a server accepts, determined by one trial request."""

    sampled: bool
    limit: str = "max_tokens"  # what it calls the length of an answer; for some `max_completion_tokens`
    top: int = TOP
    many: bool = True  # whether it gives several answers to one request
    prompted: bool = False  # whether it reports the probability of a word at the end of the prompt
    guided: str = ""  # what it calls the list of allowed answers, if answers are to be only these
    words: int = WORDS  # the most tokens of a sampled answer
    least: int = 1  # the fewest tokens that the server lets an answer have
    older: bool = False  # whether log-probabilities are asked for as completions had it
    without: tuple[str, ...] = ()  # settings that the server refuses, which then are as it has them

    @property
    def decoding(self) -> Body:
        """How an answer is made, as the server is told."""
        if self.sampled:
            body: Body = {"temperature": 1, "top_p": 1, self.limit: max(self.words, self.least)}
        else:
            asked = {"logprobs": self.top} if self.older else {"logprobs": True, "top_logprobs": self.top}
            body = {"temperature": 0, self.limit: self.least, **asked}
        return {name: value for name, value in body.items() if name not in self.without}

    def mended(self, message: str) -> "RequestForm | None":
        """The form without what the server's message objects to; None if that is not known."""
        for name in ("temperature", "top_p"):
            if name in message and name not in self.without:
                return self._replace(without=(*self.without, name))
        if fewest := FEWEST.search(message):
            least = int(fewest[1] or fewest[2])
            return self._replace(least=least) if self.least < least <= ROOM else None
        return None

    def question(self, model: str, picture: str, text: str, *words: str) -> Body:
        """The body of a request; only these words are allowed as answers where the form has that."""
        parts = [{"type": "image_url", "image_url": {"url": picture}}, {"type": "text", "text": text}]
        body: Body = {"model": model, "messages": [{"role": "user", "content": parts}], "stream": False}
        if self.guided:
            body[self.guided] = GUIDED[self.guided](list(words))
        return body | self.decoding


def data_url(image: Image.Image, asking: Asking) -> str:
    """A picture as the server gets it: RGB, at most so many pixels on its longest side, lossless by default."""
    picture = on_white(image)
    if max(picture.size) > asking.side:
        scale = asking.side / max(picture.size)
        width, height = (max(1, round(length * scale)) for length in picture.size)
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    options = {"quality": asking.quality, "subsampling": 0} if asking.image == "jpeg" else {}
    picture.save(buffer, asking.image.upper(), **options)
    return f"data:image/{asking.image};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def ending(body: Body, word: str) -> Body:
    """The body of a request for the probability of a word as the beginning of the answer to this one."""
    started = [*body["messages"], {"role": "assistant", "content": word}]  # type: ignore[misc]
    form = {"add_generation_prompt": False, "continue_final_message": True, "prompt_logprobs": 0}
    return {"model": body["model"], "messages": started, "stream": False, "temperature": 0, "max_tokens": 1, **form}
