"""Answer tokens: which tokens of a model's vocabulary can begin the wanted answer, and which the other one.

A model that answers in words gives a probability to every token of its vocabulary. `Yes`, ` Yes`, `yes`, `YES`
(and `▁Yes`, `Ġyes` as tokenizers write them) all begin the same answer, so their mass is taken together; a token
that could begin either answer counts for neither. No torch here: any tokenizer with the interface of Hugging
Face's will do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
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

    study: int
    """The token of the agreeing answer as the study writes it: its raw logit is `logit_true`."""
    yes: tuple[int, ...]
    no: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def as_settings(self, tokenizer: Processor) -> dict[str, object]:
        """For a spec: every token by number and spelling."""

        def spelled(numbers: Iterable[int]) -> dict[str, str]:
            return {str(number): str(tokenizer.convert_ids_to_tokens(number)) for number in numbers}

        return {"study_token": spelled([self.study]), "yes_tokens": spelled(self.yes), "no_tokens": spelled(self.no)}


def resolve_answers(
    tokenizer: Processor, preceding: str, *, yes: str, no: str, read_off: str | None = None
) -> AnswerTokens:
    """The tokens that begin `yes` and those that begin `no` right after the text `preceding`.

    The study's token is that of `yes`, or of `read_off` where a study writes it otherwise.
    """
    vocabulary = _Vocabulary(tokenizer)
    agreeing, of_yes = _beginnings(vocabulary, preceding, yes)
    denying, of_no = _beginnings(vocabulary, preceding, no)
    shared = agreeing & denying
    study, of_study = _study_token(vocabulary, preceding, read_off or yes)
    notes = [*of_yes, *of_no, *of_study]
    if shared:
        listed = ", ".join(repr(vocabulary.spelling(number)) for number in sorted(shared))
        notes.append(f"{listed} can begin both '{yes}' and '{no}' and counts for neither")
    if not agreeing - shared or not denying - shared:
        raise ModelError(
            f"This model's tokenizer ({type(tokenizer).__name__}) writes '{yes}' and '{no}' with the same first "
            "token: its answers cannot be distinguished at the first position. Use other answers."
        )
    return AnswerTokens(
        study, tuple(sorted(agreeing - shared)), tuple(sorted(denying - shared)), tuple(dict.fromkeys(notes))
    )


class _Vocabulary:
    """The few things that this module needs to know from a tokenizer."""

    def __init__(self, tokenizer: Processor) -> None:
        self._tokenizer = tokenizer
        self._special = set(tokenizer.all_special_ids)
        self._numbers: dict[str, int] = tokenizer.get_vocab()

    def spelling(self, number: int) -> str:
        return str(self._tokenizer.convert_ids_to_tokens(number))

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def whole(self, text: str) -> int | None:
        """The one token that is exactly this text, leading blank included."""
        spellings = [text, *(text.replace(" ", blank, 1) for blank in "▁Ġ" if text.startswith(" "))]
        for spelling in (*spellings, text + WORD_END):
            number = self._numbers.get(spelling)
            if number is not None and number not in self._special:
                return number
        encoded = self.encode(text)  # bytes outside ASCII are spelled in ways only the tokenizer knows
        known = len(encoded) == 1 and encoded[0] not in self._special
        return encoded[0] if known and self._tokenizer.decode(encoded).strip() == text.strip() else None

    def words(self, word: str) -> set[int]:
        """All tokens that are this word, whatever their case and the blanks before it."""
        wanted = word.casefold()
        return {
            number
            for spelling, number in self._numbers.items()
            if len(spelling) <= len(word) + 6
            and spelling.removesuffix(WORD_END).lstrip(BLANKS).casefold() == wanted
            and number not in self._special
        }

    def first_after(self, preceding: str, text: str) -> int | None:
        """The first token of `text` where it follows `preceding`; None where the two melt into one token."""
        before, together = self.encode(preceding), self.encode(preceding + text)
        if together[: len(before)] != before or len(together) == len(before):
            return None
        first = together[len(before)]
        # A vocabulary without a word has a token for what it does not know, which begins no answer.
        return None if first in self._special else first


def _beginnings(vocabulary: _Vocabulary, preceding: str, answer: str) -> tuple[set[int], list[str]]:
    """Whole-word tokens if there are any, else the first pieces of the word's variants, which is noted."""
    whole = vocabulary.words(answer) | {
        number for text in _variants(answer) if (number := vocabulary.whole(text)) is not None
    }
    if whole:
        return whole, []
    firsts = (vocabulary.first_after(preceding, text) for text in _variants(answer))
    pieces = {first for first in firsts if first is not None}
    listed = ", ".join(repr(vocabulary.spelling(number)) for number in sorted(pieces))
    return pieces, [f"the vocabulary has no token '{answer}': its first pieces stand for it ({listed})"]


def _study_token(vocabulary: _Vocabulary, preceding: str, answer: str) -> tuple[int, list[str]]:
    """The answer as the study writes it; else with a blank before it; else in another case; else its first piece."""
    for text in _variants(answer):
        number = vocabulary.whole(text)
        if number is not None:
            stands_in = [f"the vocabulary has no token '{answer}': '{text}' stands for it"]
            return number, [] if text == answer else stands_in
    number = vocabulary.first_after(preceding, answer)
    if number is None:
        encoded = vocabulary.encode(answer)
        if not encoded:
            raise ModelError(f"This model's tokenizer has no way to write '{answer}'.")
        number = encoded[0]
    spelled = vocabulary.spelling(number)
    return number, [f"the vocabulary has no token '{answer}': its first piece '{spelled}' stands for it"]


def _variants(answer: str) -> Iterator[str]:
    """The answer as given, then with a blank, then the same in other cases; each once.

    >>> list(_variants("Yes"))
    ['Yes', ' Yes', 'yes', ' yes', 'YES', ' YES']
    """
    spellings = dict.fromkeys([answer, answer.lower(), answer.capitalize(), answer.upper()])
    for spelling in spellings:
        yield from (spelling, f" {spelling}")


class Elsewhere:
    """Watches how much of its mass a model puts on neither answer."""

    def __init__(self, name: str) -> None:
        self._name, self._sum, self._cells, self._warned = name, 0.0, 0, False

    def count(self, log_mass: Floats) -> None:
        """Add the cells just scored; warn once when most of the mass so far lies elsewhere."""
        self._sum += float(np.exp(log_mass.astype(np.float64)).sum())
        self._cells += log_mass.size
        if self.notes and not self._warned:
            self._warned = True
            LOG.warning("%s: %s", self._name, self.notes[0])

    @property
    def notes(self) -> list[str]:
        """One note if the model is not answering."""
        mean = self._sum / self._cells if self._cells else 0.0
        if mean <= NOT_ANSWERING:
            return []
        return [
            f"the model is not answering: on average {mean:.0%} of its probability lies on words that are neither "
            "answer, so what it says of yes and no means little"
        ]
