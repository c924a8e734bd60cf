"""A local viewer: the pictures behind a number, from the user's own disk, never exported."""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

from beholder._run import Run, load_run
from beholder.chapter.finding import deciding
from beholder.comparison.family import SIGNS
from beholder.comparison.groups import Groups, People, group_by, people_of
from beholder.core.errors import BadImage, BeholderError, MissingData
from beholder.core.results import KEY
from beholder.core.types import Array, Ints
from beholder.datasets.content import container
from beholder.datasets.images import DRAWN, files_of, open_image
from beholder.datasets.survey import IDENTIFIERS, MOST_GROUPS
from beholder.models.spec import ModelSpec
from beholder.report.report import slug
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.scores.store import Places, Store, recorded, stored_scores

BINS = 30
MOST_VERDICTS = 20
LARGEST = 1024  # pixels of the longer side of a picture that is sent


class PictureError(BeholderError):
    """A picture that may not be shown, with the reason."""


@dataclass
class ScoredSet:
    """What one model scored of one prompt set on one data set."""

    run: str
    study: str
    model: str
    spec: ModelSpec
    task: Task
    store: Store
    root: Path | None  # the folder that its pictures must lie in; None for drawn people
    compared: pl.DataFrame  # the rows of the run's results that decided something about this study, model and data
    person: str | None = None  # the column that says who is shown, where the run named one

    @cached_property
    def matrix(self) -> ScoreMatrix | None:
        """Its scores, or None where the store has none."""
        found = stored_scores([self.task], self.spec, self.store)
        return found[0] if found else None

    @property
    def images(self) -> pl.DataFrame:
        """The pictures that have scores."""
        assert self.matrix is not None
        return self.matrix.images

    @cached_property
    def scores(self) -> Array:
        """A number for every picture and prompt, the higher the more."""
        assert self.matrix is not None
        return np.asarray(self.matrix.quantity("ranking").cells, dtype=np.float64)

    @cached_property
    def attributes(self) -> dict[str, list[str]]:
        """The columns to filter by, with their groups."""
        columns = {name: self.images[name].cast(pl.String) for name in self.task.dataset.attributes}
        few = {name: values.drop_nulls().unique().sort().to_list() for name, values in columns.items()}
        return {
            name: groups
            for name, groups in few.items()
            if 1 < len(groups) <= MOST_GROUPS and name.lower() not in IDENTIFIERS
        }

    @cached_property
    def digests(self) -> list[str | None]:
        """What each picture's content was when the set was opened."""
        return self.store.image_digests().of(self.images["uri"].to_list())

    def selected(self, where: Mapping[str, str]) -> Ints:
        """The places of pictures with these labels."""
        keep = np.ones(self.images.height, dtype=bool)
        for name, group in where.items():
            if name not in self.attributes:
                raise BeholderError(f"There is no attribute {name!r}. There are: {', '.join(self.attributes)}.")
            keep &= (self.images[name].cast(pl.String) == group).fill_null(False).to_numpy()
        return np.flatnonzero(keep)

    def ranked(self, prompt: int, where: Mapping[str, str], *, lowest: bool = False) -> Ints:
        """The places of those pictures, the highest score first; pictures without a score are left out."""
        chosen = self.selected(where)
        scores = self.scores[chosen, prompt]
        chosen, scores = chosen[~np.isnan(scores)], scores[~np.isnan(scores)]
        order = np.argsort(scores if lowest else -scores, kind="stable")
        return np.asarray(chosen[order])

    @cached_property
    def people(self) -> People:
        """Who is shown, as the run counted them."""
        return people_of(self.images, self.person)

    def groups(self, by: str) -> Groups:
        """The groups of one attribute."""
        if by not in self.attributes:
            raise BeholderError(f"There is no attribute {by!r}. There are: {', '.join(self.attributes)}.")
        return group_by(self.images, (by,))

    def surprising(self, prompt: int, by: str, group: str) -> Ints:
        """Pictures of a group that score least like it: nearest to the side on which the other groups lie."""
        scores, inside = self.scores[:, prompt], self.groups(by).mask(group)
        higher = np.nanmean(scores[inside]) > np.nanmean(scores[~inside]) if inside.any() and (~inside).any() else True
        return self.ranked(prompt, {by: group}, lowest=bool(higher))

    def distributions(self, prompt: int, by: str) -> dict[str, object]:
        """The scores of each group in equal bins, its people, and what the run says of its differences."""
        groups, scores = self.groups(by), self.scores[:, prompt]
        known = scores[~np.isnan(scores)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
        inside = {name: groups.mask(name) & ~np.isnan(scores) for name in groups.names}
        counts = {name: np.histogram(scores[mask], edges)[0].tolist() for name, mask in inside.items()}
        people = dict(zip(groups.names, groups.sizes(self.people), strict=True))
        return {"edges": edges.tolist(), "groups": counts, "people": people, "verdicts": self.verdicts(prompt, groups)}

    def verdicts(self, prompt: int, groups: Groups) -> list[dict[str, object]]:
        """What was compared between these groups, about this prompt or about all."""
        concept = str(self.task.prompts.table["concept"][prompt])
        rows = self.compared.filter(
            pl.col("group").is_in(groups.names) | (pl.col("subset") == groups.attribute),
            pl.col("concept").is_null() | (pl.col("concept") == concept),
        ).head(MOST_VERDICTS)
        named = [*KEY[:4], "value", "low", "high", "verdict"]
        return [{**row, "sign": SIGNS[row["verdict"]]} for row in rows.select(named).iter_rows(named=True)]

    def nearest(self, prompt: int, value: float, where: Mapping[str, str]) -> int | None:
        """The picture whose score lies nearest to a value."""
        chosen = self.selected(where)
        distance = np.abs(self.scores[chosen, prompt] - value)
        return int(chosen[np.nanargmin(distance)]) if len(chosen) and not np.isnan(distance).all() else None

    def picture(self, place: int, side: int) -> bytes:
        """A picture as JPEG, made small; refused if it lies outside the data set or is no longer what was scored."""
        if not 0 <= place < self.images.height:
            raise PictureError(f"This set has no picture {place}.")
        uri = str(self.images["uri"][place])
        self._check(uri, place)
        try:
            image = open_image(uri)
        except (BadImage, OSError) as error:
            raise PictureError(f"The picture cannot be read: {error}") from error
        image.thumbnail((min(side, LARGEST), min(side, LARGEST)), Image.Resampling.LANCZOS)
        buffer = io.BytesIO()
        image.convert("RGB").save(buffer, "JPEG", quality=88)
        return buffer.getvalue()

    def _check(self, uri: str, place: int) -> None:
        if uri.startswith(DRAWN):
            return
        for path in (Path(container(file)) for file in files_of(uri)):
            if self.root is None or not path.resolve().is_relative_to(self.root):
                raise PictureError("The picture lies outside its data set's folder.")
            if not path.is_file():
                raise PictureError("The picture's file is no longer there.")
        now = self.store.image_digests().of([uri])[0]
        if now != self.digests[place]:
            raise PictureError("The picture's file has changed since it was scored.")


def open_gallery(folders: Sequence[Path], places: Places) -> list[ScoredSet]:
    """Every scored set of the runs that the store has scores for."""
    sets = [each for folder in folders for each in _sets(folder, load_run(folder), places)]
    scored = [each for each in sets if each.matrix is not None]
    if not scored:
        raise MissingData(
            f"The store {places.store} has no scores of these runs. Name the store that the audit used: --store DIR.\n"
            "Runs made from imported scores (beholder measure) cannot be viewed."
        )
    return scored


def _sets(folder: Path, run: Run, places: Places) -> Iterable[ScoredSet]:
    store, name = Store(places.store), slug(folder.resolve().name)
    compared = deciding(run.results.filter(pl.col("verdict").is_in(list(SIGNS))))
    for study, spec, task, root in recorded(run.record, run.prompts, places):
        own = compared.filter(study=study, model=spec.name, dataset=task.dataset.name)
        yield ScoredSet(name, study, spec.name, spec, task, store, root, own, run.record.settings.get("person"))
