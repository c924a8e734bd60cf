"""Pictures behind a number: each with what the model made of it, two of a kind beside each other.

Drawn people are always shown. A photograph is shown only where it was asked for and its data set allows it.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl
from PIL import ImageOps

from beholder.chapter.chapter import Behind
from beholder.chapter.finding import Contrast, Finding, Side
from beholder.chapter.numbers import drawn
from beholder.core.errors import UsageError
from beholder.core.types import Array, Ints
from beholder.datasets import DATASETS
from beholder.datasets.images import open_image
from beholder.datasets.survey import IDENTIFIERS, MOST_GROUPS
from beholder.report.report import Report, Section, short_names
from beholder.scores.store import Scored, Store, recorded, stored_scores

ALLOWED = "yes:"  # how the declaration begins that photographs may be shown; then who allows it
ROW = 7  # pairs that a chapter shows at once


class Picture(NamedTuple):
    """One picture, with what the model made of it."""

    uri: str
    group: str
    value: float
    caption: str

    def address(self, side: int = 88) -> str:
        """The picture as a data address, so many pixels wide and high."""
        picture = ImageOps.fit(open_image(self.uri).convert("RGB"), (side, side))
        buffer = io.BytesIO()
        picture.save(buffer, "WEBP", quality=72, method=4)
        return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


Pair = tuple[Picture, Picture]


class Evidence(NamedTuple):
    """The pictures behind one contrast, two of a kind beside each other, the widest apart first."""

    contrast: Contrast
    pairs: list[Pair]
    alike: tuple[str, ...]  # in which labels the two of a pair are the same

    @property
    def typical(self) -> Pair:
        """The pair whose numbers are nearest to those of their groups."""
        means = [float(np.mean([pair[side].value for pair in self.pairs])) for side in (0, 1)]
        return min(self.pairs, key=lambda pair: sum(abs(each.value - m) for each, m in zip(pair, means, strict=True)))

    @property
    def shown(self) -> list[Pair]:
        """The pairs that are shown at once."""
        return self.pairs[:ROW]


def with_photographs(report: Report) -> Report:
    """The report with the photographs that may be shown, as its record then says; an error where none may."""
    entries = {str(each.get("name")): each for each in report.record.datasets if not drawn(str(each.get("name")))}
    own = {name: str(entry.get("photographs") or "") for name, entry in entries.items()}
    said = {name: DATASETS[name].photographs if name in DATASETS else text for name, text in own.items()}
    allowed = tuple(name for name, text in said.items() if text.startswith(ALLOWED))
    for name in allowed:
        entries[name]["photographs_on_page"] = True
    if not allowed:
        why = [f"{name} ({text or 'nobody declared that it may be'})" for name, text in said.items()]
        raise UsageError(
            f"No photograph of this run may be shown: {'; '.join(why) or 'its people are drawn, and always shown'}.\n"
            "Data of your own may be shown where its licence and the people on it allow that. Say who allows it when "
            "you audit: --set photographs='yes: signed releases of 2026'. What was scored is kept."
        )
    return replace(report, photographs=allowed)


def evidence(report: Report, section: Section, findings: Sequence[Finding]) -> dict[str, list[Evidence]]:
    """The pictures behind each of these findings, by its id; none where they may not be shown, or have no scores."""
    if report.places is None or not (drawn(section.dataset) or section.dataset in report.photographs):
        return {}
    wanted = [each for each in findings if each.model and any(shown.sides for shown in each.contrasts)]
    entries = [each for each in report.record.datasets if each.get("name") == section.dataset]
    asked = recorded(replace(report.record, datasets=entries), report.prompts, report.places) if wanted else ()
    mine = [each for each in asked if each.study == section.study.name]
    short = short_names(str(model.get("name")) for model in report.record.models)
    made: dict[str, list[Evidence]] = {}
    for finding in wanted:
        sets = [each for each in mine if short.get(each.spec.name, each.spec.name) == finding.model]
        found = [_evidence(section, sets, shown, Store(report.places.store)) for shown in finding.contrasts]
        if there := [each for each in found if each is not None]:
            made[finding.id] = there
    return made


def _evidence(section: Section, sets: Sequence[Scored], shown: Contrast, store: Store) -> Evidence | None:
    if shown.sides is None:
        return None
    matrices = (matrix for each in sets for matrix in stored_scores([each.task], each.spec, store))
    behind = (section.chapter.behind(matrix, shown) for matrix in matrices)
    parts = [part for part in behind if part is not None and part.images.height]
    return _paired(parts, shown, shown.sides) if parts else None


def _paired(parts: Sequence[Behind], shown: Contrast, sides: tuple[Side, Side]) -> Evidence | None:
    names = sorted((side.group for side in sides), key=lambda name: name != "woman")
    images = pl.concat([part.images for part in parts], how="diagonal")
    groups = np.array([str(group) for part in parts for group in part.groups])
    values, captions = np.concatenate([part.values for part in parts]), [c for part in parts for c in part.captions]
    places = [np.flatnonzero((groups == name) & ~np.isnan(values)) for name in names]
    if not all(map(len, places)):
        return None
    labels = _labels(images, str(shown.row.get("subset")), groups)
    unlike, alike = _matched(images, labels, places)

    def picture(at: int) -> Picture:
        return Picture(str(images["uri"][at]), str(groups[at]), float(values[at]), captions[at])

    pairs = [(picture(a), picture(b)) for a, b in unlike]
    means = {side.group: side.value for side in sides}
    sign = 1 if means[names[0]] > means[names[1]] else -1
    return Evidence(shown, sorted(pairs, key=lambda pair: sign * (pair[1].value - pair[0].value)), alike)


def _labels(images: pl.DataFrame, compared: str, groups: Array) -> list[str]:
    """The columns in which two people can be alike: not who they are, not what is compared."""
    few = [name for name in images.columns if name.lower() not in (*IDENTIFIERS, "uri", "image_id", "split", compared)]
    few = [name for name in few if 1 < images[name].n_unique() <= 2 * MOST_GROUPS]
    return [name for name in few if (images[name].cast(pl.String).fill_null("") != pl.Series(groups)).any()]


def _matched(
    images: pl.DataFrame, labels: list[str], places: list[Ints]
) -> tuple[list[tuple[int, int]], tuple[str, ...]]:
    """Everyone of the first group beside the one of the second who is most alike; and in what all pairs are alike."""
    codes = np.array([images[name].cast(pl.String).fill_null("").rank("dense").to_numpy() for name in labels])
    codes = codes.reshape(len(labels), images.height)
    free, pairs = list(map(int, places[1])), []
    for at in map(int, places[0]):
        if not free:
            break
        best = min(free, key=lambda other: int((codes[:, at] != codes[:, other]).sum()))
        free.remove(best)
        pairs.append((at, best))
    same = [name for name, row in zip(labels, codes, strict=True) if all(row[a] == row[b] for a, b in pairs)]
    return pairs, tuple(name.replace("_", " ") for name in same)
