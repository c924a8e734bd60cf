"""Which tokens begin which answer, for every way that tokenizers write words."""

from __future__ import annotations

import re

import pytest

from beholder.core.errors import ModelError
from beholder.models.generative.answers import resolve_answers


class WordTokenizer:
    """The interface of Hugging Face's tokenizers: the longest token that fits, `blank` for a blank."""

    def __init__(self, *tokens: str, blank: str = "Ġ", special: tuple[str, ...] = ("<unk>",)) -> None:
        self._blank = blank
        self._tokens = [*special, *tokens]
        self.all_special_ids = list(range(len(special)))

    def get_vocab(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self._tokens)}

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        assert not add_special_tokens
        written, numbers = re.sub(" ", self._blank, text), []
        while written:
            fitting = [token for token in self._tokens[1:] if written.startswith(token)]
            token = max(fitting, key=len, default="")
            numbers.append(self._tokens.index(token) if token else 0)
            written = written[max(len(token), 1) :]
        return numbers

    def decode(self, numbers: list[int]) -> str:
        return "".join(self._tokens[number] for number in numbers).replace(self._blank, " ")

    def convert_ids_to_tokens(self, number: int) -> str:
        return self._tokens[number]


def spelled(tokenizer: WordTokenizer, numbers: tuple[int, ...]) -> set[str]:
    return {tokenizer.convert_ids_to_tokens(number) for number in numbers}


@pytest.mark.parametrize("blank", ["Ġ", "▁"])
def test_case_and_leading_blank_do_not_matter(blank: str) -> None:
    tokens = ["Yes", f"{blank}Yes", "yes", f"{blank}yes", "YES", "No", f"{blank}No", "no", "Yesterday", "Not", "Yes."]
    tokenizer = WordTokenizer(*tokens, blank=blank)
    answers = resolve_answers(tokenizer, "Answer:", yes="Yes", no="No")
    assert spelled(tokenizer, answers.yes) == {"Yes", f"{blank}Yes", "yes", f"{blank}yes", "YES"}
    assert spelled(tokenizer, answers.no) == {"No", f"{blank}No", "no"}
    assert tokenizer.convert_ids_to_tokens(answers.study) == "Yes"
    assert answers.notes == ()


def test_words_of_old_bpe_vocabularies_are_found_with_their_end_mark() -> None:
    tokenizer = WordTokenizer("yes</w>", "no</w>", "yes", "no")
    answers = resolve_answers(tokenizer, "", yes="yes", no="no")
    assert spelled(tokenizer, answers.yes) == {"yes</w>", "yes"}


@pytest.mark.parametrize(
    ("tokens", "stands", "note"),
    [
        (["true", "Ġtrue", "True"], "true", None),
        (["Ġtrue", "True"], "Ġtrue", "the vocabulary has no token 'true': ' true' stands for it"),
        (["True", "t"], "True", "the vocabulary has no token 'true': 'True' stands for it"),
        (["tr", "ue", "T"], "tr", "the vocabulary has no token 'true': its first piece 'tr' stands for it"),
    ],
)
def test_the_studys_token_is_the_whole_word_and_what_stands_for_it_is_noted(
    tokens: list[str], stands: str, note: str | None
) -> None:
    tokenizer = WordTokenizer(*tokens, "false")
    answers = resolve_answers(tokenizer, "", yes="true", no="false")
    assert tokenizer.convert_ids_to_tokens(answers.study) == stands
    assert note is None or note in answers.notes
    assert bool(answers.notes) == (note is not None)


def test_first_pieces_stand_for_a_word_that_is_no_token() -> None:
    tokenizer = WordTokenizer("Y", "es", "Ġ", "y", "N", "o", "n")
    answers = resolve_answers(tokenizer, "Answer:", yes="Yes", no="No")
    assert {"Y", "y"} <= spelled(tokenizer, answers.yes)
    assert {"N", "n"} <= spelled(tokenizer, answers.no)
    assert "the vocabulary has no token 'Yes': its first pieces stand for it" in answers.notes[0]


def test_an_answer_that_melts_into_what_stands_before_it_is_read_by_itself() -> None:
    """After `:` the tokenizer writes `:t`; alone the answer begins with `t`."""
    tokenizer = WordTokenizer("Answer", ":", ":t", "t", "T", "rue", "false")
    answers = resolve_answers(tokenizer, "Answer:", yes="true", no="false")
    assert tokenizer.convert_ids_to_tokens(answers.study) == "t"


def test_an_answer_that_cannot_be_written_is_refused() -> None:
    class Mute(WordTokenizer):
        def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
            return []

    with pytest.raises(ModelError, match="has no way to write 'maybe'"):
        resolve_answers(Mute("Yes", "No"), "", yes="Yes", no="No", measure="maybe")


def test_a_token_that_can_begin_both_answers_counts_for_neither_and_is_noted() -> None:
    tokenizer = WordTokenizer("Ġ", "Y", "es", "N", "o", "y", "n")
    answers = resolve_answers(tokenizer, "", yes="Yes", no="No")
    assert "Ġ" not in spelled(tokenizer, answers.yes) | spelled(tokenizer, answers.no)
    assert not set(answers.yes) & set(answers.no)
    assert any("'Ġ' can begin both 'Yes' and 'No'" in note for note in answers.notes)


def test_answers_that_share_their_only_beginning_are_refused() -> None:
    tokenizer = WordTokenizer("un", "likely", "sure")
    with pytest.raises(ModelError, match="cannot be distinguished at the first position"):
        resolve_answers(tokenizer, "", yes="unlikely", no="unsure")


def test_special_tokens_and_the_unknown_word_begin_no_answer() -> None:
    tokenizer = WordTokenizer("Yes", "No", special=("<unk>", "yes"))
    answers = resolve_answers(tokenizer, "", yes="Yes", no="No")
    assert spelled(tokenizer, answers.yes) == {"Yes"}
    with pytest.raises(ModelError):
        resolve_answers(WordTokenizer("cat", "dog"), "", yes="Yes", no="No")


def test_settings_tell_every_token_by_number_and_spelling() -> None:
    tokenizer = WordTokenizer("Yes", "ĠYes", "No")
    settings = resolve_answers(tokenizer, "", yes="Yes", no="No").as_settings(tokenizer)
    assert settings == {"study_token": {"1": "Yes"}, "yes_tokens": {"1": "Yes", "2": "ĠYes"}, "no_tokens": {"3": "No"}}


def test_words_outside_ascii_are_found_though_their_bytes_are_spelled_otherwise() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    bytewise = tokenizers.Tokenizer(tokenizers.models.BPE())
    bytewise.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    bytewise.train_from_iterator(["Sí No Sí No Sí No", "Sí", "No"] * 5, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bytewise)
    answers = resolve_answers(tokenizer, "\n", yes="Sí", no="No")
    assert {tokenizer.decode([number]) for number in answers.yes} == {"Sí", " Sí"}
    assert tokenizer.decode([answers.study]) == "Sí"
