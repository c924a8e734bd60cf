"""Scores made elsewhere: Parquet or CSV (wide or long), or the studies' NumPy arrays, matched to a study's tasks.

Wide: `image_id` and one column per `prompt_id`. Long: `image_id, prompt_id, score`. Arrays: `<kind>_<part>.npy` with
rows in table order and columns in prompt order (`logits_senate.npy`, `identity_logits_senate.npy`).
A cell that no file covers is missing, never 0; a cell with two different values is refused.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from beholder.core.errors import BadScores
from beholder.core.read import MOST_CELLS, read_array
from beholder.models.predictions import ScoreFile, import_predictions, is_predictions
from beholder.scores.harness_logs import is_harness_log, read_harness_log
from beholder.scores.score_matrix import ScoreMatrix, Task

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
    ids = [_text(value, path) for value in table.column(names.index(key)).to_pylist()]
    if {"prompt_id", "score"} <= set(names):
        prompts = [_text(value, path) for value in table.column(names.index("prompt_id")).to_pylist()]
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
    images, prompts, scores = zip(*log.cells, strict=True) if log.cells else ((), (), ())
    cells = np.array(scores, dtype=np.float64)
    _refuse_infinite(cells, "a sample", path)
    return _by_cell(path, list(images), list(prompts), cells)._replace(notes=log.notes, channel=log.channel)


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
    order = {prompt: index for index, prompt in enumerate(prompts)}
    kept = [
        key  # a column that only repeats the values of the first is left out
        for key, cells in layers.items()
        if key[1] == 0 or not (np.isnan(cells) | (cells == layers[key[0], 0])).all()
    ]
    keys = sorted(kept, key=lambda key: (order[key[0]], key[1]))
    _refuse_extra_columns(task, keys)
    values = np.stack([layers[key] for key in keys], axis=1)[:, :, None]
    channels = {file.channel for file in files}
    channel = channels.pop() if len(channels) == 1 else "score"
    return task.matrix(values, (channel,), prompts=task.prompts.table[[order[key[0]] for key in keys]])


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


def _text(value: object, path: Path) -> str:
    if value is None:
        raise BadScores(f"{path}: a row has no id.")
    return str(value).strip()


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
