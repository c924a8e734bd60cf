"""Answer tokens: which tokens of a model's vocabulary can begin the wanted answer, and which the other one.

A model that answers in words gives a probability to every token of its vocabulary. `Yes`, ` Yes`, `yes`, `YES`
(and `▁Yes`, `Ġyes` as tokenizers write them) all begin the same answer, so their mass is taken together; a token
that could begin either answer counts for neither. No torch here: any tokenizer with the interface of Hugging
Face's will do.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from beholder.core.errors import ModelError
from beholder.models.scorer import Floats
from beholder.models.spec import Processor

LOG = logging.getLogger(__name__)
BLANKS = " \t\n▁ĠĊĉ"
"""What may stand before a word in a token: blanks, as themselves and as SentencePiece and byte-level BPE write them."""
WORD_END = "</w>"  # what old BPE vocabularies write after a word's last piece
NOT_ANSWERING = 0.5  # the mean mass elsewhere above which a model is not answering


@dataclass(frozen=True)
class AnswerTokens:
    """Which tokens stand for which answer; numbers are token ids."""

    study: int  # the token of the agreeing answer as the study writes it: its raw logit is `logit_true`
    yes: tuple[int, ...]
    no: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def as_settings(self, tokenizer: Processor) -> dict[str, object]:
        """For a spec: every token by number and spelling."""
        named = {"study_token": [self.study], "yes_tokens": self.yes, "no_tokens": self.no}
        return {
            name: {str(number): str(tokenizer.convert_ids_to_tokens(number)) for number in numbers}
            for name, numbers in named.items()
        }


def resolve_answers(
    tokenizer: Processor, preceding: str, *, yes: str, no: str, measure: str | None = None
) -> AnswerTokens:
    """The tokens that begin `yes` or `no` right after `preceding`; the study's own is that of `measure`, if given."""
    vocabulary = _Vocabulary(tokenizer, preceding)
    notes: list[str] = []
    agreeing, denying = (vocabulary.beginnings(answer, notes) for answer in (yes, no))
    study, shared = vocabulary.study_token(measure or yes, notes), agreeing & denying
    if shared:
        notes.append(f"{vocabulary.listed(shared)} can begin both '{yes}' and '{no}' and counts for neither")
    if not agreeing - shared or not denying - shared:
        raise ModelError(
            f"This model's tokenizer ({type(tokenizer).__name__}) writes '{yes}' and '{no}' with the same first "
            "token: its answers cannot be distinguished at the first position. Use other answers."
        )
    of_yes, of_no = (tuple(sorted(tokens - shared)) for tokens in (agreeing, denying))
    return AnswerTokens(study, of_yes, of_no, tuple(dict.fromkeys(notes)))


class _Vocabulary:
    """What a tokenizer makes of an answer that follows the text `preceding`."""

    def __init__(self, tokenizer: Processor, preceding: str) -> None:
        self._tokenizer, self._preceding, self._special = tokenizer, preceding, set(tokenizer.all_special_ids)
        numbers: dict[str, int] = tokenizer.get_vocab()
        self._numbers = {spelling: number for spelling, number in numbers.items() if number not in self._special}

    def listed(self, numbers: Iterable[int]) -> str:
        return ", ".join(repr(str(self._tokenizer.convert_ids_to_tokens(number))) for number in sorted(numbers))

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def _whole(self, text: str) -> int | None:
        """The one token that is exactly this text, leading blank included."""
        blanks = "▁Ġ" if text.startswith(" ") else ""
        for spelling in (text, *(text.replace(" ", blank, 1) for blank in blanks), text + WORD_END):
            if spelling in self._numbers:
                return self._numbers[spelling]
        encoded = self._encode(text)  # bytes outside ASCII are spelled in ways only the tokenizer knows
        known = len(encoded) == 1 and encoded[0] not in self._special
        return encoded[0] if known and self._tokenizer.decode(encoded).strip() == text.strip() else None

    def _first(self, text: str) -> int | None:
        """The first token of `text` after what precedes it; None where the two melt into one token."""
        before, together = self._encode(self._preceding), self._encode(self._preceding + text)
        if together[: len(before)] != before or len(together) == len(before):
            return None
        # A vocabulary without a word has a token for what it does not know, which begins no answer.
        return None if together[len(before)] in self._special else together[len(before)]

    def beginnings(self, answer: str, notes: list[str]) -> set[int]:
        """Whole-word tokens if there are any, else the first pieces of the word's variants, which is noted."""
        words = {
            number
            for spelling, number in self._numbers.items()
            if len(spelling) <= len(answer) + 6
            and spelling.removesuffix(WORD_END).lstrip(BLANKS).casefold() == answer.casefold()
        }
        words |= {number for text in _variants(answer) if (number := self._whole(text)) is not None}
        if not words:
            words = {number for text in _variants(answer) if (number := self._first(text)) is not None}
            pieces = self.listed(words)
            notes.append(f"the vocabulary has no token '{answer}': its first pieces stand for it ({pieces})")
        return words

    def study_token(self, answer: str, notes: list[str]) -> int:
        """The answer as the study writes it; else with a blank before it; in another case; its first piece."""
        for text in _variants(answer):
            number = self._whole(text)
            if number is not None:
                if text != answer:
                    notes.append(f"the vocabulary has no token '{answer}': '{text}' stands for it")
                return number
        number = self._first(answer)
        if number is None:
            encoded = self._encode(answer)
            if not encoded:
                raise ModelError(f"This model's tokenizer has no way to write '{answer}'.")
            number = encoded[0]
        notes.append(f"the vocabulary has no token '{answer}': its first piece {self.listed([number])} stands for it")
        return number


def _variants(answer: str) -> list[str]:
    """The answer as given, then with a blank, then the same in other cases; each once."""
    spellings = dict.fromkeys([answer, answer.lower(), answer.capitalize(), answer.upper()])
    return [text for spelling in spellings for text in (spelling, f" {spelling}")]


class Elsewhere:
    """Watches how much of its mass a model puts on neither answer."""

    def __init__(self, name: str) -> None:
        self._name, self._sum, self._cells, self._warned = name, 0.0, 0, False
        self.notes: list[str] = []  # one if the model is not answering

    def count(self, log_mass: Floats) -> None:
        """Add the cells just scored; warn once when most of the mass so far lies elsewhere."""
        self._sum += float(np.exp(log_mass.astype(np.float64)).sum())
        self._cells += log_mass.size
        mean = self._sum / max(self._cells, 1)
        note = (
            f"the model is not answering: on average {mean:.0%} of its probability lies on words that are neither "
            "answer, so what it says of yes and no means little"
        )
        self.notes = [note] if mean > NOT_ANSWERING else []
        if self.notes and not self._warned:
            self._warned = True
            LOG.warning("%s: %s", self._name, note)
