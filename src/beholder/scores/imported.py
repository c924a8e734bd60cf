"""Scores made elsewhere: Parquet or CSV (wide or long), or the studies' NumPy arrays, matched to a study's tasks.

Wide: `image_id` and one column per `prompt_id`. Long: `image_id, prompt_id, score`. Arrays: `<kind>_<part>.npy` with
rows in table order and columns in prompt order (`logits_senate.npy`, `identity_logits_senate.npy`).
A cell that no file covers is missing, never 0; a cell with two different values is refused.
"""

import io
import json
import math
import re
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from beholder.core.errors import BadScores
from beholder.core.read import MOST_CELLS, decoded, parse_json, read_array, read_bytes, read_text
from beholder.core.types import Fields
from beholder.models.predictions import ScoreFile, import_predictions, is_predictions
from beholder.models.served import protocol
from beholder.prompts.prompt_set import Instruction
from beholder.scores.score_matrix import UNITS, ScoreMatrix, Task

PAIR = re.compile(r"(-?(?:inf|\d[\d.eE+-]*))[\"'\s]*,[\"'\s]*(?:true|false)", re.IGNORECASE)
"""A log-likelihood and whether the choice is the likeliest text; lmms-eval writes pairs as lists or as texts."""
LOSS = """Many model classes of lmms-eval give the loss there, of which nothing can be read.
Ask for answers in words: beholder tasks … --draws 20"""
WORDS = (("Yes", "No"), ("True", "False"))  # the answers that are looked for where a log does not name them
LARGEST_MEMBER = 256 << 20  # bytes of one file in a log: an archive may claim any number of them
ZSTD = 93
SURE = 1e-4  # what rounding may add to the logarithm of 1
WHERE = "Put image_id and prompt_id"
ASKED = "beholder"  # where a log of our own tasks says what was asked


class Scores(NamedTuple):
    """Cells by image and prompt, what their numbers are, what a reader should know, and more numbers of each cell."""

    cells: list[tuple[str, str, float]]
    channel: str
    notes: tuple[str, ...] = ()
    more: Mapping[str, list[float]] = MappingProxyType({})


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


def asked_in(path: Path) -> tuple[Fields, str]:
    """What the tasks of `beholder.harness` were made of, as options of `beholder audit`, and the model's name."""
    lines = _lines(path) if path.suffix.lower() == ".jsonl" else (sample for _, sample in _samples(path))
    first = next(lines, {})
    for about in first.values():
        if isinstance(about, Mapping) and isinstance(about.get(ASKED), Mapping):
            return about[ASKED], str(protocol.part(first, "output").get("model") or path.resolve().parent.name)
    raise BadScores(
        f"{path} does not say what was asked: it was not made by Beholder's own tasks.\n"
        f"Name the study and the data set: beholder measure STUDY --scores {path} --dataset NAME"
    )


def _lines(path: Path) -> Iterator[Fields]:
    lines = enumerate(read_text(path, BadScores).splitlines(), start=1)
    for place, line in ((f"{path}, line {number}", line) for number, line in lines if line.strip()):
        sample = parse_json(line, place, BadScores)
        if not isinstance(sample, dict):
            raise BadScores(f"{place}: an object is expected, one for each sample.")
        yield sample


def _lmms_eval(path: Path, samples: Sequence[Fields]) -> Scores:
    """One score for each choice where choices are prompts, else the likelihood of all spellings of each answer."""
    if samples and {"image_id", "prompt_id", "score"} <= samples[0].keys():
        return _own(path, samples)
    more, drawn = dict[str, list[float]](), list[tuple[tuple[str, str], str]]()
    scores = Scores([], "logit_true", (), more)
    words: Sequence[object] = ()
    for number, sample in enumerate(samples, start=1):
        place = f"{path}, line {number}"
        about = _about(sample.values(), place, "the dictionary that the task's process_results returns")
        given = sample.get("filtered_resps") or sample.get("resps") or []
        found, key = PAIR.findall(json.dumps(given)), (str(about["image_id"]), str(about.get("prompt_id")))
        answers = about.get("answers")
        if not found and isinstance(answers, list) and len(answers) == 2:
            words = answers
            drawn.append((key, str(given[0] if isinstance(given, list) and given else given or "")))
            continue
        if not found:
            raise BadScores(
                f"{place}: the answer has no log-probabilities. lmms-eval keeps them for tasks whose output_type is "
                "multiple_choice or loglikelihood."
            )
        named = [str(choice) for choice in about.get("choices") or (WORDS[0] if "prompt_id" in about else ())]
        if len(named) != len(found):
            raise BadScores(
                f"{place}: there are {len(found)} log-likelihoods and {len(named)} choices. Put the choices there "
                "too, in their order, as 'choices'."
            )
        try:
            logs = [float(value) for value in found]
        except ValueError:
            raise BadScores(f"{place}: a log-likelihood is not a number.") from None
        if max(logs) > SURE:
            raise BadScores(f"{place}: {max(logs):g} is no logarithm of a probability. {LOSS}")
        if "prompt_id" in about:
            scores = scores._replace(channel="log_p_yes")
            yes, others = _likelihoods(named, logs, place)
            scores.cells.append((*key, yes))
            for name, value in others.items():
                more.setdefault(name, []).append(value)
        else:
            scores.cells.extend((key[0], choice, score) for choice, score in zip(named, logs, strict=True))
    return _counted(drawn, words) if drawn else scores


def _counted(answers: Iterable[tuple[tuple[str, str], str]], words: Sequence[object]) -> Scores:
    """The shares of the two words among the answers to each question."""
    drawn = dict[tuple[str, str], list[str]]()
    for key, answer in answers:
        drawn.setdefault(key, []).append(answer)
    cells = [protocol.read_draws(texts, Instruction("{}", *map(str, words))) for texts in drawn.values()]
    return _of_cells(list(drawn), cells, (*protocol.CHANNELS, *protocol.COUNTS), ())


def _likelihoods(named: Sequence[str], logs: Sequence[float], place: str) -> tuple[float, dict[str, float]]:
    """The likelihood of the agreeing answer; with all spellings of both also of the other one, and of neither."""
    agreeing, given = np.array(_agreeing(named, place)), np.array(logs)
    yes, no = (float(np.logaddexp.reduce(given[side])) for side in (agreeing, ~agreeing))
    other = protocol.log(1.0 - math.exp(yes) - math.exp(no))
    return yes, {"logit_true": yes, "log_p_no": no, "log_p_other": other} if len(named) > 2 else {}


def _of_cells(
    keys: Sequence[tuple[str, str]], cells: Sequence[protocol.Cell], names: Sequence[str], notes: tuple[str, ...]
) -> Scores:
    """Answers with all that an audit stores of them."""
    columns = dict(zip(names, map(list, zip(*(cell.channels() for cell in cells), strict=True)), strict=True))
    scores = zip(keys, columns.pop("log_p_yes", []), strict=True)
    return Scores([(*key, score) for key, score in scores], "log_p_yes", notes, columns)


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


def _agreeing(named: Sequence[str], place: str) -> list[bool]:
    """Which of the choices agree; the others deny."""
    words = [choice.strip().casefold() for choice in named]
    for yes, no in WORDS:
        if {*words} == {yes.casefold(), no.casefold()}:
            return [word == yes.casefold() for word in words]
    raise BadScores(f"{place}: the choices are {', '.join(named)}; with a prompt_id, Yes and No are expected.")


def _inspect(path: Path) -> Scores:
    """The probability of the agreeing answer among the likeliest first tokens."""
    read = [(name, *_inspected(path, name, sample)) for name, sample in _samples(path)]
    if not read:
        raise BadScores(f"{path} holds no samples. inspect_ai leaves them out with --no-log-samples.")

    def cells_of(words: Sequence[str]) -> list[protocol.Cell]:
        made, asked = [], Instruction("{}", *map(str, words))
        for name, _, tokens, answer in read:
            try:
                made.append(protocol.read_tokens(tokens, asked, answer, top=len(tokens)))
            except protocol.NotProbabilities as error:
                place = f"{path}, sample {name}"
                raise BadScores(f"{place}: its log-probabilities are those of no distribution.") from error
        return made

    def mass(words: Sequence[str]) -> float:
        return sum(cell.yes.low + cell.no.low for cell in cells_of(words))

    chosen = read[0][1].get("choices") or max(WORDS, key=mass)
    if len(chosen) != 2:
        raise BadScores(f"{path}: 'choices' names {len(chosen)} answers; the agreeing and the other one are expected.")
    ids = [(str(about["image_id"]), str(about["prompt_id"])) for _, about, _, _ in read]
    if not any(tokens for _, _, tokens, _ in read):
        return _counted(zip(ids, (answer for *_, answer in read), strict=True), chosen)
    cells = cells_of(chosen)
    unseen = sum(not cell.seen for cell in cells)
    note = f"{path}: {unseen} answers have {chosen[0]} or {chosen[1]} not among their likeliest first tokens"
    return _of_cells(ids, cells, protocol.CHANNELS, (note,) if unseen else ())


def _inspected(path: Path, name: str, sample: Fields) -> tuple[Fields, list[tuple[str, float]], str]:
    place = f"{path}, sample {name}"
    about = _about([sample.get("metadata")], place, "the sample's metadata")
    if "prompt_id" not in about:
        raise BadScores(f"{place}: it has no prompt_id. {WHERE} into the sample's metadata.")
    try:
        first = protocol.choices(sample.get("output"))[0]
        tokens, answer = protocol.first_tokens(first), protocol.text_of(first)
    except protocol.Garbled as error:
        raise BadScores(f"{place}: {error}.") from error
    if protocol.part(about, ASKED).get("draws"):
        return about, [], answer
    if tokens is None:
        raise BadScores(
            f"{place}: the answer has no log-probabilities. Ask inspect_ai for them: --logprobs --top-logprobs 20. "
            "Where the provider has none, Beholder's tasks count answers: -T draws=20"
        )
    return about, tokens, answer


def _about(values: Iterable[object], place: str, where: str) -> Fields:
    for value in values:
        if isinstance(value, Mapping) and "image_id" in value:
            if not isinstance(value.get("choices") or [], list):
                raise BadScores(f"{place}: 'choices' must be a list of answers; it is {value['choices']!r}.")
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


Cells = npt.NDArray[np.float64]
ID_COLUMNS = ("image_id", "file")
"""What the column of image ids may be called; GRAS's lists and its authors' tables say `file`."""
IDENTITY = "identity"
ARRAY_KINDS = {"logits": "association", "identity_logits": IDENTITY}
"""How the arrays of released scripts are named, with the kind of task that each belongs to."""


@dataclass
class Imported:
    """The matrices, and notes on what was left out."""

    matrices: list[ScoreMatrix]
    left_out: list[str] = field(default_factory=list)


def import_scores(paths: Sequence[Path], tasks: Sequence[Task]) -> Imported:
    """Every task's matrix as far as the files go."""
    files = [read_score_file(path, tasks) for path in paths]
    matrices = [_lay(task, files) for task in tasks]
    if all(np.isnan(matrix.values).all() for matrix in matrices):
        task, file = tasks[0], files[0]
        raise BadScores(
            "No score in the files belongs to this study.\n"
            f"It expects image ids such as {task.dataset.table['image_id'][0]!r} "
            f"and prompt ids such as {task.prompts.table['prompt_id'][0]!r}; "
            f"{file.source} has {', '.join(map(repr, [*file.image_ids[:1], *file.prompt_ids[:1]])) or 'nothing'}."
        )
    notes = [note for file in files for note in file.notes]
    return Imported(matrices, [*_uncovered(matrices), *_unused(files, tasks), *notes])


def read_score_file(path: Path, tasks: Sequence[Task]) -> ScoreFile:
    """One score file, by its ending and its columns; a log of another harness; or predictions of things in pictures."""
    if is_harness_log(path):
        return _logged(path)
    if is_predictions(path):
        return _predictions(path, tasks)
    if not path.is_file():
        raise BadScores(f"There is no score file at {path}.")
    if path.suffix.lower() == ".npy":
        return _read_array(path, tasks)
    table, names = _read_arrow(path)
    key = next((name for name in ID_COLUMNS if name in names), None)
    if key is None:
        raise BadScores(
            f"{path}: the column 'image_id' is missing. "
            f"It has: {', '.join(names[:8])}{' …' if len(names) > 8 else ''}.\n"
            "Wide files have image_id and one column per prompt; long files have image_id, prompt_id, score."
        )
    ids = _texts(table.column(names.index(key)), path)
    if {"prompt_id", "score"} <= set(names):
        prompts = _texts(table.column(names.index("prompt_id")), path)
        return _by_cell(path, ids, prompts, _numbers(table.column(names.index("score")), "score", path))
    columns = [i for i, name in enumerate(names) if name != key]
    known = {same_text(prompt) for task in tasks for prompt in task.prompts.table["prompt_id"]}
    read = [
        _numbers(table.column(i), names[i], path)
        if same_text(names[i]) in known
        else np.full(len(ids), np.nan)  # other columns are left out, with a note
        for i in columns
    ]
    cells = np.stack(read, axis=1) if columns else np.empty((len(ids), 0))
    repeated = next((name for name, times in Counter(ids).items() if times > 1), None)
    if repeated is not None:
        raise BadScores(f"{path}: the image {repeated!r} occurs more than once.")
    return ScoreFile(str(path), ids, [names[i] for i in columns], cells)


def _predictions(path: Path, tasks: Sequence[Task]) -> ScoreFile:
    """Boxes, masks or class maps, as the presence of every concept that the tasks ask for."""
    images = list(dict.fromkeys(image for task in tasks for image in task.dataset.table["image_id"]))
    prompts = [row for task in tasks for row in task.prompts.table.select("prompt_id", "concept").iter_rows()]
    sources = [task.dataset.source_ids for task in tasks if task.dataset.source_ids is not None]
    known = frozenset().union(*sources) if len(sources) == len(tasks) else None
    return import_predictions(path, images, dict(prompts), known=known)


def _read_arrow(path: Path) -> tuple[pa.Table, list[str]]:
    """A table that may have several columns of one name (APA shows one athlete twice), and their names."""
    tabs = path.suffix.lower() in {".tsv", ".txt"}
    as_written = dict.fromkeys((*ID_COLUMNS, "prompt_id"), pa.string())  # 007 is not 7
    try:
        if path.suffix.lower() in {".parquet", ".pq"}:
            file = pq.ParquetFile(path)
            if file.metadata.num_rows * file.metadata.num_columns > MOST_CELLS:  # a small file may claim any number
                raise pa.ArrowInvalid(f"it has more than {MOST_CELLS:,} cells; split it into several files")
            table = file.read()
        else:
            table = pa_csv.read_csv(
                path,
                parse_options=pa_csv.ParseOptions(delimiter="\t" if tabs else ","),
                convert_options=pa_csv.ConvertOptions(strings_can_be_null=True, column_types=as_written),
            )
        table.validate(full=True)  # bytes that are no UTF-8 may stand in a column of texts
        return table, [name.strip() for name in table.column_names]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise BadScores(f"{path} cannot be read: {error}") from error


def _logged(path: Path) -> ScoreFile:
    log = read_harness_log(path)
    images, prompts, scores = map(list, zip(*log.cells, strict=True)) if log.cells else ([], [], [])
    made = {}
    for name, values in {log.channel: scores, **log.more}.items():
        cells = np.array(values, dtype=np.float64)
        _refuse_infinite(cells, "a sample", path)
        made[name] = _by_cell(path, images, prompts, cells)
    more = {name: file.cells for name, file in made.items() if name != log.channel}
    return made[log.channel]._replace(notes=log.notes, channel=log.channel, more=more)


def _by_cell(path: Path, ids: list[str], prompts: list[str], scores: Cells) -> ScoreFile:
    """One cell per score; the n-th score of a cell goes to the n-th column of its prompt."""
    rows = {name: i for i, name in enumerate(dict.fromkeys(ids))}
    pairs = pl.DataFrame({"image": ids, "prompt": prompts}, {"image": pl.String, "prompt": pl.String})
    nth = pairs.select(pl.int_range(pl.len()).over("image", "prompt")).to_series()
    names = list(zip(prompts, nth, strict=True))
    columns = {name: i for i, name in enumerate(dict.fromkeys(names))}
    cells = np.full((len(rows), len(columns)), np.nan)
    cells[[rows[image] for image in ids], [columns[name] for name in names]] = scores
    return ScoreFile(str(path), list(rows), [prompt for prompt, _ in columns], cells)


def _read_array(path: Path, tasks: Sequence[Task]) -> ScoreFile:
    """`logits_<part>.npy`: positions instead of ids."""
    task_of = {f"{word}_{task.part}": task for task in tasks for word, kind in ARRAY_KINDS.items() if task.kind == kind}
    task = task_of.get(path.stem) or next((t for t in tasks if t.kind and path.stem == f"{t.kind}_{t.part}"), None)
    if task is None:
        expected = ", ".join(f"{name}.npy" for name in task_of)
        raise BadScores(f"{path}: the name does not say which scores these are. Expected one of: {expected}.")
    cells = read_array(path, BadScores).astype(np.float64)
    _refuse_infinite(cells, "the array", path)
    layouts = [task.prompts.table["prompt_id"].to_list()]
    if task.kind == IDENTITY:  # columns may be the prompts of each image's own person, in table order
        of_name = dict(zip(task.prompts.table["concept"], layouts[0], strict=True))
        layouts.append([of_name[name] for name in task.dataset.table["name"]])
    for prompts in layouts:
        if cells.shape == (len(task.dataset), len(prompts)):
            return ScoreFile(str(path), task.dataset.table["image_id"].to_list(), prompts, cells, task=task.name)
    raise BadScores(
        f"{path}: shape {cells.shape}, expected {(len(task.dataset), len(task.prompts))} "
        f"(images × prompts of {task.name})."
    )


def _lay(task: Task, files: Sequence[ScoreFile]) -> ScoreMatrix:
    """One task's cells, gathered from all files; a prompt gets as many columns as any file gives it."""
    prompts = task.prompts.table["prompt_id"].to_list()
    layers = _layers(task, files)
    order = {prompt: index for index, prompt in enumerate(prompts)}
    kept = [
        key  # a column that only repeats the values of the first is left out
        for key, cells in layers.items()
        if key[1] == 0 or not (np.isnan(cells) | (cells == layers[key[0], 0])).all()
    ]
    keys = sorted(kept, key=lambda key: (order[key[0]], key[1]))
    _refuse_extra_columns(task, keys)
    channels, more = {file.channel for file in files}, {tuple(file.more) for file in files}
    names = (channels.pop() if len(channels) == 1 else "score", *(more.pop() if len(more) == 1 else ()))
    further = ([file._replace(cells=file.more[name]) for file in files] for name in names[1:])
    every = [layers, *(_layers(task, each) for each in further)]
    values = np.stack([np.stack([each[key] for key in keys], axis=1) for each in every], axis=2)
    values = values.astype(np.float32) if names[1:] else values  # all channels: as an audit stores them
    return task.matrix(values, names, prompts=task.prompts.table[[order[key[0]] for key in keys]])


def _layers(task: Task, files: Sequence[ScoreFile]) -> dict[tuple[str, int], Cells]:
    """A value for every image, by prompt and by how often the prompt was there before."""
    prompts = task.prompts.table["prompt_id"].to_list()
    times = Counter(map(same_text, prompts))
    loose = {same_text(prompt): prompt for prompt in prompts if times[same_text(prompt)] == 1}
    wanted = loose | {prompt: prompt for prompt in prompts}
    images = {image: row for row, image in enumerate(task.dataset.table["image_id"])}
    layers: dict[tuple[str, int], Cells] = {(prompt, 0): np.full(len(images), np.nan) for prompt in prompts}
    for file in files:
        if file.task not in (None, task.name):
            continue
        rows = [(source, images[image]) for source, image in enumerate(file.image_ids) if image in images]
        if rows:
            for column, key in _columns(file, wanted):
                _merge(layers.setdefault(key, np.full(len(images), np.nan)), file, column, np.array(rows), key[0])
    return layers


def _columns(file: ScoreFile, wanted: dict[str, str]) -> Iterator[tuple[int, tuple[str, int]]]:
    """A file's columns that belong to wanted prompts, each with its index among the columns of that prompt."""
    times: dict[str, int] = defaultdict(int)
    for column, name in enumerate(file.prompt_ids):
        prompt = wanted.get(name, wanted.get(same_text(name)))
        if prompt is not None:
            yield column, (prompt, times[prompt])
            times[prompt] += 1


def _merge(layer: Cells, file: ScoreFile, column: int, rows: npt.NDArray[np.int_], prompt: str) -> None:
    """Copy a column's cells into the layer; a cell that already has a score must agree."""
    values = file.cells[rows[:, 0], column]
    there = layer[rows[:, 1]]
    conflict = ~np.isnan(values) & ~np.isnan(there) & (values != there)
    if conflict.any():
        cell = f"{file.image_ids[rows[np.flatnonzero(conflict)[0], 0]]!r} × {prompt!r}"
        raise BadScores(f"{file.source}: {cell} has a different score in an earlier file. Keep one of them.")
    layer[rows[:, 1]] = np.where(np.isnan(values), there, values)


def _refuse_extra_columns(task: Task, keys: list[tuple[str, int]]) -> None:
    """Several columns for one prompt make sense only for a person who has several rows in the source."""
    of_prompt = dict(zip(task.prompts.table["prompt_id"], task.prompts.table["concept"], strict=True))
    allowed = Counter(task.dataset.table["name"] if "name" in task.dataset.attributes else ())
    for prompt, nth in keys:
        if nth and nth >= allowed[of_prompt[prompt]]:
            many = f"the prompt {prompt!r} has {nth + 1} different scores for one image"
            raise BadScores(f"{task.name}: {many}. Keep one of them.")


def same_text(text: str) -> str:
    """Prompts are matched whatever their blanks and whether they say `a` or `an`."""
    return re.sub(r"\ban\b", "a", " ".join(text.split()))


def _numbers(column: pa.ChunkedArray, name: str, path: Path) -> Cells:
    try:
        values = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except (pa.ArrowException, ValueError):
        raise BadScores(f"{path}: the column {name!r} holds something that is not a number.") from None
    _refuse_infinite(values, f"the column {name!r}", path)
    return values


def _refuse_infinite(values: Cells, where: str, path: Path) -> None:
    if np.isinf(values).any():
        raise BadScores(f"{path}: {where} holds an infinite score. Leave a missing score empty (NaN).")


def _texts(column: pa.ChunkedArray, path: Path) -> list[str]:
    if column.null_count:
        raise BadScores(f"{path}: a row has no id.")
    try:
        return [str(value).strip() for value in column.to_pylist()]
    except (ValueError, OverflowError) as error:  # a time beyond all calendars, or in a zone that is none
        raise BadScores(f"{path}: ids of the type {column.type} cannot be read as texts.") from error


def _uncovered(matrices: Sequence[ScoreMatrix]) -> Iterator[str]:
    for matrix in matrices:
        there = ~np.isnan(matrix.values[:, :, 0])
        images, prompts = int((~there.any(axis=1)).sum()), int((~there.any(axis=0)).sum())
        if images or prompts:
            missing = f"{images} of {there.shape[0]} images and {prompts} of {there.shape[1]} prompts"
            yield f"{matrix.task}: no score for {missing}"


def _unused(files: Sequence[ScoreFile], tasks: Sequence[Task]) -> Iterator[str]:
    known_images = {image for task in tasks for image in task.dataset.table["image_id"]}
    known_prompts = {same_text(prompt) for task in tasks for prompt in task.prompts.table["prompt_id"]}
    for file in files:
        images = [image for image in file.image_ids if image not in known_images]
        prompts = [prompt for prompt in file.prompt_ids if same_text(prompt) not in known_prompts]
        for what, unused in (("images", images), ("prompts", prompts)):
            if unused:
                yield f"{file.source}: {len(unused)} {what} are not part of the study, such as {unused[0]!r}"
