"""Do gaps agree between data sets, between models, and with word vectors?

As in the study, a concept is green if both gaps are wider than five points and point in the same direction, red if they
point in opposite directions, and yellow otherwise. The alignment of a concept with a group is its mean cosine with the
group's words, less the mean over the other groups. The vector of several words is the mean of their unit vectors.
Alignments are facts about the texts on which the vectors were trained, not about people.
"""

import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import stats

from beholder.comparison.family import DIFFERENCE, NONE_FOUND, Part, comparison_at, judge, part_from_null
from beholder.core.errors import DataError, MissingData
from beholder.core.results import PLAIN, Row, results_table
from beholder.datasets.settings import GroupWords
from beholder.studies.disparity.gaps import Gaps
from beholder.studies.disparity.prompts import AMBIGUOUS, SAME_CONCEPTS, Words, concept_name
from beholder.studies.disparity.scores import Cells, Sides
from beholder.studies.rows import PROBABILITY, join

WIDE = 0.05  # a gap is wide above five points
GREEN, YELLOW, RED = 1.0, 0.0, -1.0
COLOURS = {GREEN: "green", YELLOW: "yellow", RED: "red"}
FEWEST_CONCEPTS = 10  # no rank correlation is given for fewer
ERRORS = ("ece_gap", "miscalibration_gap")
GAPS = ("ap_gap", JUDGED := "ap_gap_matched", *ERRORS)
PACKED = {b"\x1f\x8b": "gzip", b"PK": "zip", b"BZ": "bzip2", b"\xfd7": "xz"}
LONGEST_WORD, LONGEST_LINE = 10_000, 1 << 20
Vector = npt.NDArray[np.float64]


def agreement(
    results: pl.DataFrame, beside: pl.DataFrame, compat: bool = False, same: Words = SAME_CONCEPTS
) -> pl.DataFrame:
    """Rows for every model and data set of `results`, compared with the others there and in `beside`."""
    # `compat` counts every concept with a gap, as the study does; otherwise only those with enough images to test.
    # `same` says which concepts of two data sets are the same; concepts of one name always are.
    own, others = (_gaps(each, every=compat) for each in (results, beside))
    known, made = own | {key: others[key] for key in others if key not in own}, []
    for (model, dataset), gaps in own.items():
        rows: list[Row] = []
        for (other, elsewhere), their in known.items():
            if (same_model := model == other) == (dataset == elsewhere):
                continue  # nothing else can be compared
            named = [_named(table, same if same_model else {}) for table in (gaps, their)]
            pairs = named[0].join(named[1], on=["same", "group", "against"], suffix="_there", maintain_order="left")
            rows += _dataset_rows(elsewhere, pairs) if same_model else _model_rows(other, pairs)
            if pairs.height >= FEWEST_CONCEPTS:
                value = float(stats.spearmanr(pairs["value"], pairs["value_there"]).statistic)
                row = Row("disparity.gap_correlation", value, pairs.height, "rank correlation")
                rows.append(row._replace(subset=elsewhere if same_model else other, note="Spearman's, over concepts"))
        made.append(results_table(rows, study="disparity", model=model, dataset=dataset))
    return pl.concat(made) if made else results.clear()


def colour(first: float, second: float) -> float:
    """Green, red or yellow."""
    if min(abs(first), abs(second)) <= WIDE:
        return YELLOW
    return GREEN if first * second > 0 else RED


def _gaps(results: pl.DataFrame, *, every: bool) -> dict[tuple[str, str], pl.DataFrame]:
    """The published gaps of every model on every data set: all, or only those with enough images to test."""
    valued = results.filter(pl.col("value").is_not_null(), PLAIN)
    rows, matched = (valued.filter(metric=f"disparity.{name}") for name in ("ap_gap", "ap_gap_matched"))
    place = ["model", "dataset", "concept", "group", "against"]
    tested = matched.filter(pl.col("verdict").is_in([DIFFERENCE, NONE_FOUND]))
    rows = rows if every else rows.join(tested, on=place, how="semi", maintain_order="left")
    parts = rows.group_by(["model", "dataset"], maintain_order=True)
    return {(str(model), str(dataset)): part for (model, dataset), part in parts}


def _named(gaps: pl.DataFrame, same: Words) -> pl.DataFrame:
    """The gaps with one name for each concept, in `same`; of two concepts of one name, the one that has it already."""
    named = gaps.with_columns(same=pl.col("concept").replace(dict(same)))
    own = (pl.col("same") == pl.col("concept")).sum().over("same", "group", "against")
    return named.filter((pl.col("same") == pl.col("concept")) | (own == 0))


def _dataset_rows(elsewhere: str, pairs: pl.DataFrame) -> Iterator[Row]:
    """The colour of every shared concept with both gaps, and how many concepts have each colour."""
    colours = [colour(*both) for both in pairs.select("value", "value_there").iter_rows()]
    for value, row in zip(colours, pairs.iter_rows(named=True), strict=True):
        made = Row("disparity.ap_gap_elsewhere", row["value_there"], row["n_there"], row["unit"], subset=elsewhere)
        names = {key: row[key] for key in ("group", "against", "concept")}
        yield made._replace(**names, note=row["concept_there"])
        note = f"{COLOURS[value]}: {100 * row['value']:+.1f} points here, {100 * row['value_there']:+.1f} there"
        yield Row("disparity.agreement", value, 2, "colour", subset=elsewhere, note=note)._replace(**names)
    for value, name in COLOURS.items() if colours else ():
        count = Row("disparity.agreement_count", float(colours.count(value)), len(colours), "concepts")
        chance = (colours.count(GREEN) + colours.count(RED)) / 2 if value else None
        note = "concepts of both data sets, by colour"
        note += "; expected: half of those with two wide gaps, whose directions agree by chance" if value else ""
        yield count._replace(subset=elsewhere, group=name, expected=chance, note=note)


def _model_rows(other: str, pairs: pl.DataFrame) -> Iterator[Row]:
    """How often the gaps of two models point in the same direction, and how their ranks agree."""
    signs = pairs.filter((pl.col("value") != 0) & (pl.col("value_there") != 0))
    if signs.height:
        same = int(((signs["value"] > 0) == (signs["value_there"] > 0)).sum())
        note = "concepts whose gaps point in the same direction in both models; 0.5 by chance"
        row = Row("disparity.model_agreement", same / signs.height, signs.height, PROBABILITY, subset=other)
        yield row._replace(note=note)


# Word vectors


class Alignment(NamedTuple):
    """One concept and its nearness to every group's words."""

    name: str  # the words that were looked up
    cosines: Mapping[str, float] | None  # mean cosine with each group's words; None if a word has no vector
    note: str | None = None  # why there are no cosines

    def towards(self, group: str) -> float | None:
        """Mean cosine with a group's words less that with the other groups'; positive: nearer to this group."""
        if self.cosines is None:
            return None
        others = [cosine for name, cosine in self.cosines.items() if name != group]
        return self.cosines[group] - sum(others) / len(others)


def align(
    path: Path, concepts: Sequence[str], groups: GroupWords, ambiguous: Words = AMBIGUOUS
) -> tuple[dict[str, Alignment], list[str]]:
    """Every concept compared with every group's words, as the vectors have them; and notes on the groups' words."""
    names = {concept: concept_name(concept, ambiguous) for concept in concepts}
    terms = {group: [concept_name(word) for word in words] for group, words in groups.words.items()}
    texts = [*names.values(), *(term for words in terms.values() for term in words)]
    vectors = read_vectors(path, {word for text in texts for word in text.split()})
    known: dict[str, Vector] = {}
    notes = []
    for group, words in terms.items():
        found = {word: vector for word in words if (vector := text_vector(vectors, word)) is not None}
        if not found:
            none = f"{path.name} has none of the words for {group} ({', '.join(words)})"
            raise DataError(f"{none}: no concept can be aligned.")
        if missing := [word for word in words if word not in found]:
            notes.append(f"{path.name} lacks {', '.join(missing)}: {group} has {len(found)} words")
        known[group] = np.stack(list(found.values()))
    aligned = {}
    for concept, name in names.items():
        vector = text_vector(vectors, name)
        if vector is None:
            lacks = ", ".join(word for word in name.split() if word not in vectors) or f"'{name}'"
            aligned[concept] = Alignment(name, None, f"{path.name} has no vector for {lacks}")
        else:
            aligned[concept] = Alignment(name, {group: float((own @ vector).mean()) for group, own in known.items()})
    return aligned, notes


def text_vector(vectors: Mapping[str, Vector], text: str) -> Vector | None:
    """The mean of its words' vectors, at length 1; None if a word has no vector or they cancel out."""
    words = text.split()
    if not words or not all(word in vectors for word in words):
        return None
    mean = np.mean([vectors[word] for word in words], axis=0)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length) if length else None


def word_rows(gaps: Gaps, rows: Sequence[Row], vectors: Path, ambiguous: Words, *, every: bool) -> Iterator[Row]:
    """The alignment of every concept, and how well its sign and rank agree with those of the gaps."""
    # `every` counts all concepts with a gap, as the study does; otherwise only those with enough people to test.
    data = gaps.data
    words, names = data.dataset.group_words, data.groups.names
    if words is None or set(words.words) != set(names):
        note = f"{data.dataset.name} has no words for {', '.join(names)}"
        yield Row("disparity.word_alignment", None, 0, "cosine", note=note)
        return
    aligned, notes = align(vectors, data.concepts, words, ambiguous)
    source = join([vectors.name, *notes])
    shares, parts = list[Row](), list[Part]()
    for code, pair in enumerate(data.pairs):
        towards = [each.towards(names[code]) for each in aligned.values()]
        number = sum(map(len, words.words.values()))
        for (concept, each), value in zip(aligned.items(), towards, strict=True):
            note = each.note or f"as '{each.name}'"
            yield pair.row("word_alignment", value, number, "cosine", concept=concept, note=note)
        tested = [data.concepts[column] for column in np.flatnonzero(gaps.enough(pair)).tolist()]
        for gap in GAPS:
            found = _gaps_of(rows, gap, pair, data.concepts if every else tested)
            kept = [column for column, name in enumerate(data.concepts) if towards[column] and found.get(name)]
            near = np.array([towards[column] for column in kept], dtype=np.float64)
            for row in agreement_rows(near, np.array([found[data.concepts[column]] for column in kept]), gap):
                row = row._replace(group=pair.group, against=pair.against, note=join((row.note, source)))
                if gap == JUDGED and row.metric.endswith("word_agreement"):
                    shares.append(row)
                    parts.append(_agreement_part(gaps, pair, near, kept))
                else:
                    yield row
    for row, part, judged in zip(shares, parts, judge(parts), strict=True):
        usual, one = float(row.value or 0.0) - float(part.value[0]), comparison_at(judged, 0)
        one = one._replace(value=usual + one.value, low=usual + one.low, high=usual + one.high)
        yield from one.rows(row._replace(expected=usual), data.strata, least=0.0, most=1.0)


def _gaps_of(rows: Sequence[Row], gap: str, pair: Sides, concepts: Sequence[str]) -> dict[str, float]:
    """The published gaps of some concepts. Positive is better for the first group: a smaller error counts as such."""
    known, sign = set(concepts), -1.0 if gap in ERRORS else 1.0
    own = [row for row in rows if row.metric == f"disparity.{gap}" and (row.group, row.against) == pair[:2]]
    valued = {str(row.concept): row.value for row in own if row.variant is None and row.concept in known}
    return {name: sign * value for name, value in valued.items() if value is not None and np.isfinite(value)}


def agreement_rows(near: Cells, gaps: Cells, gap: str) -> Iterator[Row]:
    """The share of concepts whose gap has the sign of their alignment, and the rank correlation of both."""
    n = len(near)
    if not n:
        return
    same = int(((near > 0) == (gaps > 0)).sum())
    better = "a smaller error counts as better; " if gap in ERRORS else ""
    note = f"concepts that are better for the group whose words are nearer; {better}0.5 by chance"
    yield Row("disparity.word_agreement", same / n, n, PROBABILITY, subset=gap, note=note)
    row = Row("disparity.word_correlation", None, n, "rank correlation", subset=gap)
    if n < FEWEST_CONCEPTS:
        yield row._replace(note=f"fewer than {FEWEST_CONCEPTS} concepts")
    else:
        yield row._replace(value=float(stats.spearmanr(near, gaps).statistic), note="Spearman's, over concepts")


def _agreement_part(gaps: Gaps, pair: Sides, near: Cells, columns: list[int]) -> Part:
    """The share that agrees, here and when people change groups: concepts are not independent, images show several."""
    data, index = gaps.data, gaps.data.pairs.index(pair)
    null = gaps.within[index, columns]
    centre = np.nanmean(null, axis=1)
    gap = (gaps.precision.matched[pair.first] - gaps.precision.matched[pair.second])[columns] - centre
    shares = [((near[:, None] > 0) == (each > 0)).mean(axis=0) for each in (gap[:, None], null - centre[:, None])]
    return part_from_null(shares[0], shares[1][:, None], people=int(data.fewest[index, columns].min()))


# Files of word vectors


class _Form(NamedTuple):
    """The form of a file, from its first lines."""

    start: int  # the byte where the first word begins
    dimensions: int
    words: int | None  # the number of words in the header; None without a header
    binary: bool


def read_vectors(path: Path, words: Iterable[str]) -> dict[str, Vector]:
    """Unit vectors of those words that the file has: word2vec (binary or text) or GloVe; the first of a word."""
    # The file is mapped into memory and read once, and only the requested words are kept: three million words of 300
    # numbers (GoogleNews, 3.6 GB) take little memory.
    if not path.is_file():
        raise MissingData(f"There are no word vectors at {path}.\nExpected word2vec (binary or text) or GloVe.")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty.")
    wanted = {word.encode(): word for word in words}
    vectors: dict[str, Vector] = {}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as bytes_:
        form = _form(bytes_, path)
        for word, raw in _binary(bytes_, form, path) if form.binary else _text(bytes_, form, path):
            if word in wanted and wanted[word] not in vectors:
                vectors[wanted[word]] = _unit(raw, form, wanted[word], path)
                if len(vectors) == len(wanted):
                    break
    return vectors


def _form(bytes_: mmap.mmap, path: Path) -> _Form:
    for magic, packing in PACKED.items():
        if bytes_[: len(magic)] == magic:
            advice = "Decompress it first: a compressed file cannot be mapped into memory."
            raise DataError(f"{path} is compressed ({packing}). {advice}")
    header, start = _line(bytes_, 0, path)
    fields = header.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        words, dimensions = map(int, fields)
        end = bytes_.find(b"\n", start, start + LONGEST_LINE)
        first = bytes_[start : end if end >= 0 else start + LONGEST_LINE].split()
        written = len(first) > dimensions and _numbers(first[-dimensions:]) is not None
        return _Form(start, dimensions, words, not written)
    if len(fields) > 2 and _numbers(fields[1:]) is not None:
        return _Form(0, len(fields) - 1, None, False)
    known = "word2vec ('words dimensions') nor like GloVe ('word number number …')"
    raise DataError(f"{path} starts neither like {known}.")


def _binary(bytes_: mmap.mmap, form: _Form, path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Word, blank, numbers; for as many words as the header says."""
    start, size = form.start, 4 * form.dimensions
    for number in range(1, (form.words or 0) + 1):
        blank = bytes_.find(b" ", start, start + LONGEST_WORD)
        if blank < 0 or blank + 1 + size > len(bytes_):
            where = f"at byte {start}, in word {number} of {form.words:,}"
            raise DataError(f"{path} is cut off or broken {where}.\nCopy it again.")
        yield bytes_[start:blank].lstrip(b"\n"), bytes_[blank + 1 : blank + 1 + size]
        start = blank + 1 + size


def _text(bytes_: mmap.mmap, form: _Form, path: Path) -> Iterator[tuple[bytes, bytes]]:
    """One word per line; the numbers are the last fields, because words of GloVe can contain blanks."""
    start, count = form.start, 0
    while start < len(bytes_):
        line, after = _line(bytes_, start, path)
        fields = line.rstrip().rsplit(b" ", form.dimensions)
        if line.strip():
            if len(fields) != form.dimensions + 1:
                raise DataError(f"{path}, byte {start}: a line has {len(fields) - 1} numbers, not {form.dimensions}.")
            yield fields[0], b" ".join(fields[1:])
            count += 1
        start = after
    if form.words is not None and count < form.words:
        raise DataError(f"{path} is cut off after {count:,} of {form.words:,} words. Copy it again.")


def _line(bytes_: mmap.mmap, start: int, path: Path) -> tuple[bytes, int]:
    """A line without its end, and the byte where the next one begins."""
    end = bytes_.find(b"\n", start, start + LONGEST_LINE)
    if end < 0 and len(bytes_) - start > LONGEST_LINE:
        raise DataError(f"{path}, byte {start}: the line is too long; this is not a file of word vectors.")
    return (bytes_[start:end], end + 1) if end >= 0 else (bytes_[start:], len(bytes_))


def _unit(raw: bytes, form: _Form, word: str, path: Path) -> Vector:
    vector = np.frombuffer(raw, dtype="<f4").astype(np.float64) if form.binary else _numbers(raw.split())
    if vector is None or not np.isfinite(vector).all():
        raise DataError(f"{path}: the vector of {word!r} is not a list of finite numbers.")
    length = float(np.linalg.norm(vector))
    if not length:
        raise DataError(f"{path}: the vector of {word!r} is all zeros: it has no direction.")
    return np.asarray(vector / length, dtype=np.float64)


def _numbers(fields: list[bytes]) -> Vector | None:
    try:
        return np.array([float(field) for field in fields])
    except ValueError:
        return None
