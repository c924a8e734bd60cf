"""Logs of other harnesses that hold log-probabilities, read as scores: lmms-eval's samples and inspect_ai's logs.

    *_samples_*.jsonl   lmms-eval, of a task with choices: the log-likelihood of every choice
    *.eval, *.json      inspect_ai, with `logprobs`: the likeliest first tokens of every answer

A log says of which image and prompt an answer is only if the task puts `image_id` and `prompt_id` there: in the
`metadata` of inspect_ai, in the `doc` of lmms-eval, or in a dictionary that the task's `process_results` returns.
`choices` are the agreeing and the other answer (Yes and No if there are none); without a `prompt_id` they are prompts.
"""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from beholder.core.errors import BadScores
from beholder.core.read import decoded, parse_json, read_bytes, read_text
from beholder.core.types import Fields
from beholder.models.served.protocol import Cell, Garbled, NotProbabilities, first_tokens, log, read_tokens, text_of
from beholder.prompts.prompt_set import Instruction
from beholder.scores.score_matrix import UNITS

PAIR = re.compile(r"(-?(?:inf|\d[\d.eE+-]*))[\"'\s]*,[\"'\s]*(?:true|false)", re.IGNORECASE)
"""A log-likelihood and whether the choice is the likeliest text; lmms-eval writes pairs as lists or as texts."""
WORDS = (("Yes", "No"), ("True", "False"))  # the answers that are looked for where a log does not name them
LARGEST_MEMBER = 256 << 20  # bytes of one file in a log: an archive may claim any number of them
ZSTD = 93
WHERE = "Put image_id and prompt_id"


class Scores(NamedTuple):
    """Cells by image and prompt, what their numbers are, and what a reader should know."""

    cells: list[tuple[str, str, float]]
    channel: str
    notes: tuple[str, ...] = ()


def is_harness_log(path: Path) -> bool:
    """Whether a file is a log of one of the harnesses, as far as its name and its first bytes tell."""
    if path.suffix.lower() in (".eval", ".jsonl"):
        return path.is_file()
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return start.lstrip().startswith(b"{") and b'"eval"' in start and b'"status"' in start


def read_harness_log(path: Path) -> Scores:
    """The scores of a log; an error says what it lacks."""
    if path.suffix.lower() == ".jsonl":
        return _lmms_eval(path, list(_lines(path)))
    return _inspect(path)


def _lines(path: Path) -> Iterator[Fields]:
    lines = enumerate(read_text(path, BadScores).splitlines(), start=1)
    for place, line in ((f"{path}, line {number}", line) for number, line in lines if line.strip()):
        sample = parse_json(line, place, BadScores)
        if not isinstance(sample, dict):
            raise BadScores(f"{place}: an object is expected, one for each sample.")
        yield sample


def _lmms_eval(path: Path, samples: Sequence[Fields]) -> Scores:
    """One score for each choice where choices are prompts, else the log-likelihood of the agreeing answer."""
    if samples and {"image_id", "prompt_id", "score"} <= samples[0].keys():
        return _own(path, samples)
    cells, asked = [], False
    for number, sample in enumerate(samples, start=1):
        place = f"{path}, line {number}"
        about = _about(sample.values(), place, "the dictionary that the task's process_results returns")
        found = PAIR.findall(json.dumps(sample.get("filtered_resps") or sample.get("resps") or []))
        if not found:
            raise BadScores(
                f"{place}: the answer has no log-probabilities. lmms-eval keeps them for tasks whose output_type is "
                "multiple_choice or loglikelihood."
            )
        asked = "prompt_id" in about
        choices = [str(choice) for choice in about.get("choices") or (WORDS[0] if asked else ())]
        if len(choices) != len(found):
            raise BadScores(
                f"{place}: there are {len(found)} log-likelihoods and {len(choices)} choices. Put the choices there "
                "too, in their order, as 'choices'."
            )
        try:
            scores = [float(value) for value in found]
        except ValueError:
            raise BadScores(f"{place}: a log-likelihood is not a number.") from None
        if asked:
            cells.append((str(about["image_id"]), str(about["prompt_id"]), scores[_agreeing(choices, place)]))
        else:
            cells += [(str(about["image_id"]), choice, score) for choice, score in zip(choices, scores, strict=True)]
    return Scores(cells, "log_p_yes" if asked else "logit_true")


def _own(path: Path, rows: Sequence[Fields]) -> Scores:
    """What `beholder export --to scores` wrote: the first channel of a model that has several."""
    channel = rows[0].get("channel")
    cells = []
    for number, row in enumerate(rows, start=1):
        score = row.get("score")
        if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
            raise BadScores(f"{path}, line {number}: the score is not a number.")
        if row.get("channel") == channel:
            value = float("nan") if score is None else float(score)
            cells.append((str(row.get("image_id")), str(row.get("prompt_id")), value))
    left_out = sorted({str(row.get("channel")) for row in rows} - {str(channel)})
    notes = (f"{path}: the channels {', '.join(left_out)} are left out",) if left_out else ()
    return Scores(cells, str(channel) if channel in UNITS else "score", notes)


def _agreeing(choices: Sequence[str], place: str) -> int:
    words = [choice.strip().casefold() for choice in choices]
    for yes, no in WORDS:
        if sorted(words) == sorted((yes.casefold(), no.casefold())):
            return words.index(yes.casefold())
    raise BadScores(f"{place}: the choices are {', '.join(choices)}; with a prompt_id, Yes and No are expected.")


def _inspect(path: Path) -> Scores:
    """The probability of the agreeing answer among the likeliest first tokens."""
    read = [(name, *_inspected(path, name, sample)) for name, sample in _samples(path)]
    if not read:
        raise BadScores(f"{path} holds no samples. inspect_ai leaves them out with --no-log-samples.")

    def cells_of(words: Sequence[str]) -> list[Cell]:
        made, asked = [], Instruction("{}", *map(str, words))
        for name, _, tokens, answer in read:
            try:
                made.append(read_tokens(tokens, asked, answer, top=len(tokens)))
            except NotProbabilities as error:
                place = f"{path}, sample {name}"
                raise BadScores(f"{place}: its log-probabilities are those of no distribution.") from error
        return made

    def mass(words: Sequence[str]) -> float:
        return sum(cell.yes.low + cell.no.low for cell in cells_of(words))

    chosen = read[0][1].get("choices") or max(WORDS, key=mass)
    if len(chosen) != 2:
        raise BadScores(f"{path}: 'choices' names {len(chosen)} answers; the agreeing and the other one are expected.")
    cells = cells_of(chosen)
    unseen = sum(not cell.seen for cell in cells)
    note = f"{path}: {unseen} answers have {chosen[0]} or {chosen[1]} not among their likeliest first tokens"
    ids = [(str(about["image_id"]), str(about["prompt_id"])) for _, about, _, _ in read]
    scores = [(*pair, log(cell.yes.value)) for pair, cell in zip(ids, cells, strict=True)]
    return Scores(scores, "log_p_yes", (note,) if unseen else ())


def _inspected(path: Path, name: str, sample: Fields) -> tuple[Fields, list[tuple[str, float]], str]:
    place = f"{path}, sample {name}"
    about = _about([sample.get("metadata")], place, "the sample's metadata")
    if "prompt_id" not in about:
        raise BadScores(f"{place}: it has no prompt_id. {WHERE} into the sample's metadata.")
    choices = (sample.get("output") or {}).get("choices") or [{}]
    try:
        tokens = first_tokens(choices[0])
        answer = text_of(choices[0])
    except Garbled as error:
        raise BadScores(f"{place}: {error}.") from error
    if tokens is None:
        raise BadScores(
            f"{place}: the answer has no log-probabilities. Ask inspect_ai for them: --logprobs --top-logprobs 20"
        )
    return about, tokens, answer


def _about(values: Iterable[object], place: str, where: str) -> Fields:
    for value in values:
        if isinstance(value, Mapping) and "image_id" in value:
            return value
    raise BadScores(f"{place}: nothing says of which image the answer is. {WHERE} into {where}.")


def _samples(path: Path) -> Iterator[tuple[str, Fields]]:
    """The samples of a log, each with its name; a log is one JSON file, or an archive of them."""
    if path.suffix.lower() == ".json":
        value = parse_json(read_text(path, BadScores), str(path), BadScores)
        samples = value.get("samples") if isinstance(value, dict) else None
        entries: Iterable[Any] = samples if isinstance(samples, list) else ()
    else:
        entries = _members(path)
    for sample in entries:
        if not isinstance(sample, dict):
            raise BadScores(f"{path}: a sample is not an object.")
        yield str(sample.get("id")), sample


def _members(path: Path) -> Iterator[Any]:
    """The samples in an archive; one whose bytes are not those that were written is refused."""
    data = read_bytes(path, BadScores)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                content = _content(archive, member, data)
                if member.filename.startswith("samples/") and member.filename.endswith(".json"):
                    place = f"{path}, {member.filename}"
                    yield parse_json(decoded(content, place, BadScores), place, BadScores)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError, EOFError, pa.ArrowException) as error:
        raise BadScores(f"{path} is not an archive that can be read: {error}") from error


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo, data: bytes) -> bytes:
    """A member's bytes; those compressed by Zstandard are more than Python's zipfile knows before 3.14."""
    if member.file_size > LARGEST_MEMBER:
        raise ValueError(f"{member.filename} has more than {LARGEST_MEMBER >> 20} MB")
    if member.compress_type != ZSTD:
        return archive.read(member)
    header = member.header_offset
    name, extra = (int.from_bytes(data[header + at : header + at + 2], "little") for at in (26, 28))
    start = header + 30 + name + extra
    packed = data[start : start + member.compress_size]
    content: bytes = pa.decompress(packed, decompressed_size=member.file_size, codec="zstd", asbytes=True)
    if data[header + 30 : header + 30 + name] != member.orig_filename.encode() or zlib.crc32(content) != member.CRC:
        raise ValueError(f"the bytes of {member.filename} are not those that were written")
    return content
