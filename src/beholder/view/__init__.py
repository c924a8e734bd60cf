"""A local viewer: the pictures behind a number, from the user's own disk, never exported."""

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from PIL import Image

from beholder._run import Run
from beholder.chapter.finding import Finding, deciding
from beholder.chapter.numbers import Result, percent, quantity
from beholder.comparison.family import DIFFERENCE, NAMES, SIGNS
from beholder.comparison.groups import Groups, People, group_by, people_of
from beholder.core.errors import BadImage, BeholderError, MissingData, UnknownName, UsageError
from beholder.core.results import KEY
from beholder.core.types import Array, Ints
from beholder.datasets.content import container
from beholder.datasets.images import DRAWN, files_of, open_image
from beholder.datasets.survey import IDENTIFIERS, MOST_GROUPS
from beholder.metrics.association import softmax
from beholder.models.spec import ModelSpec
from beholder.report.report import short_names, slug
from beholder.report.scorecard import in_words
from beholder.scores.score_matrix import ScoreMatrix, Task
from beholder.scores.store import Places, Store, recorded, stored_scores
from beholder.studies import STUDIES
from beholder.studies.inquiry import as_asked

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
    spec: ModelSpec
    task: Task
    store: Store
    root: Path | None  # the folder that its pictures must lie in; None for drawn people
    compared: pl.DataFrame  # the rows of the run's results that decided something about this study, model and data
    person: str | None = None  # the column that says who is shown, where the run named one
    belief: bool = False  # whether the study reads scores as shares of belief among the prompts of one level

    @property
    def model(self) -> str:
        """The model's name as the report has it."""
        return short_names([self.spec.name]).get(self.spec.name, self.spec.name)

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
        """A number for every picture and prompt, the higher the more: the quantity that the report speaks of."""
        assert self.matrix is not None
        if self.unit != "belief":
            return np.asarray(self.matrix.quantity("ranking").cells, dtype=np.float64)
        cells = np.array(self.matrix.logits, dtype=np.float64)
        for level in set(levels := self.task.prompts.table["level"].to_list()):
            among = np.array([each == level for each in levels])
            cells[:, among] = softmax(cells[:, among])
        return cells

    @property
    def unit(self) -> str:
        """What its numbers are called."""
        assert self.matrix is not None
        return "belief" if self.belief and self.matrix.gives("logit") else self.matrix.quantity("ranking").unit

    def said(self, score: float | None, prompt: int) -> str:
        """A score in words."""
        if score is None or np.isnan(score):
            return "no score"
        concept = self.task.prompts.table["concept"][prompt] or self.task.prompts.texts[prompt]
        words = {"belief": f"“{concept}” ", "P(Yes)": "yes "}
        return words.get(self.unit, "") + self.number(score)

    def number(self, score: float) -> str:
        """A score as the report writes it."""
        return percent(score) if self.unit in ("belief", "P(Yes)") else quantity(score, self.unit)

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
        if group not in (names := self.groups(by).names):
            raise UnknownName("group", group, names)
        scores, inside = self.scores[:, prompt], self.groups(by).mask(group)
        higher = np.nanmean(scores[inside]) > np.nanmean(scores[~inside]) if inside.any() and (~inside).any() else True
        return self.ranked(prompt, {by: group}, lowest=bool(higher))

    def typical(self, prompt: int, by: str, where: Mapping[str, str]) -> Ints:
        """The groups in turn, of each the pictures nearest to its mean first."""
        chosen, groups = self.ranked(prompt, where), self.groups(by)
        turns: list[tuple[int, int, int]] = []
        for number, name in enumerate(groups.names):
            own = chosen[groups.mask(name)[chosen]]
            scores = self.scores[own, prompt]
            near = own[np.argsort(np.abs(scores - scores.mean()), kind="stable")] if len(own) else own
            turns += [(turn, number, place) for turn, place in enumerate(near.tolist())]
        return np.array([place for _, _, place in sorted(turns)], dtype=int)

    def distributions(self, prompt: int, by: str) -> dict[str, object]:
        """The scores of each group in equal bins, its people, and what the run says of its differences."""
        groups, scores = self.groups(by), self.scores[:, prompt]
        known = scores[~np.isnan(scores)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
        inside = {name: groups.mask(name) & ~np.isnan(scores) for name in groups.names}
        counts = {name: np.histogram(scores[mask], edges)[0].tolist() for name, mask in inside.items()}
        people = dict(zip(groups.names, groups.sizes(self.people), strict=True))
        told = {"ends": [self.number(low), self.number(high)], "verdicts": self.verdicts(prompt, groups)}
        means = {name: self.said(float(scores[mask].mean()), prompt) for name, mask in inside.items() if mask.any()}
        return {"edges": edges.tolist(), "groups": counts, "people": people, "means": means, **told}

    def verdicts(self, prompt: int, groups: Groups) -> list[dict[str, object]]:
        """What was compared between these groups, about this prompt or about all."""
        concept = str(self.task.prompts.table["concept"][prompt])
        rows = self.compared.filter(
            pl.col("group").is_in(groups.names) | (pl.col("subset") == groups.attribute),
            pl.col("concept").is_null() | (pl.col("concept") == concept),
        ).head(MOST_VERDICTS)
        named = [*KEY[:4], "value", "low", "high", "verdict"]
        return [{**{name: row[name] for name in named}, "said": _verdict(row)} for row in rows.iter_rows(named=True)]

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


def _verdict(row: Result) -> str:
    """What was compared and what came out, in words."""
    who = f"{row['group']} against {row['against']}" if row["against"] else row["group"] or row["subset"] or ""
    value, *ends = (
        "" if row[end] is None else in_words(row[end], row["unit"], row["landmark"], bare=end != "value")
        for end in ("value", "low", "high")
    )
    what = row["metric"].split(".", 1)[-1].replace("_", " ")
    between = f" ({' to '.join(ends)})" if all(ends) else ""
    return f"{SIGNS[row['verdict']]} {NAMES[row['verdict']]}: {what}, {who}: {value or 'no number'}{between}"


def scored_sets(runs: Iterable[tuple[Path, Run]], places: Places) -> list[ScoredSet]:
    """Every scored set of these runs that the store has scores for, with the images that they asked about."""
    sets: dict[tuple[str, ...], ScoredSet] = {}
    for each in (each for folder, run in runs for each in _sets(folder, run, places)):
        # Tasks of several parts that ask the same about the same pictures are one set under all their names.
        same = each.run, each.study, each.spec.digest, each.task.dataset.name, each.task.prompts.digest
        alike = sets.setdefault(same, each)
        if alike is not each:
            alike.task = replace(alike.task, name=f"{alike.task.name}, {each.task.name}")
    scored = [each for each in sets.values() if each.matrix is not None]
    if not scored:
        raise MissingData(
            f"The store {places.store} has no scores of these runs. Name the store that the audit used: --store DIR.\n"
            "Runs made from imported scores (beholder measure) cannot be viewed."
        )
    return scored


def _sets(folder: Path, run: Run, places: Places) -> Iterable[ScoredSet]:
    store, name = Store(places.store), slug(folder.resolve().name)
    compared = deciding(run.results.filter(pl.col("verdict").is_in(list(SIGNS))))
    person = run.record.settings.get("person")
    for study, spec, whole, root in recorded(run.record, run.prompts, places):
        task = as_asked(whole, study, run.record)
        own = compared.filter(study=study, model=spec.name, dataset=task.dataset.name)
        belief = study in STUDIES and STUDIES[study].asks.belief
        yield ScoredSet(name, study, spec, task, store, root, own, person, belief)


class Opening(NamedTuple):
    """Where the viewer opens: the finding, and the set, prompt and attribute that it is about."""

    badge: str
    answer: str
    set: int
    prompt: int
    by: str


def opening(sets: Sequence[ScoredSet], runs: Iterable[Run], wanted: str | None = None) -> Opening | None:
    """The finding with the id `wanted`; without one the most unequal difference whose pictures are here."""
    findings = {each.id: each for run in runs for each in run.findings}
    if wanted is not None and wanted not in findings:
        raise UnknownName("finding", wanted, findings)
    shown = sorted((each for each in findings.values() if each.said == DIFFERENCE), key=lambda each: -each.distance)
    known = [found for each in shown if wanted is None and (found := _about(sets, each)) is not None]
    if wanted and (named := _about(sets, findings[wanted], anyway=True)) is None:
        raise UsageError(f"The store has no scores of what the finding {wanted} is about.")
    return named if wanted else next(iter(known), None)


def _about(sets: Sequence[ScoredSet], finding: Finding, *, anyway: bool = False) -> Opening | None:
    """The set, prompt and attribute of a finding; of one about no single prompt `anyway` the first of its model."""
    rows, sides = finding.rows, [each.sides for each in finding.contrasts if each.sides]
    words = [*(each.label for each in finding.contrasts), *(str(row.get("concept") or "") for row in rows)]
    concepts = [each for word in filter(None, words) for each in (word, *word.split(" or "))]
    ends = (row.get(end) for row in rows for end in ("group", "against"))
    groups = {side.group for side in sides[0]} if sides else set(ends)
    part = str(rows[0].get("subset") or "") if rows else ""
    count = sum(side.n for side in sides[0]) if sides else int(rows[0].get("n") or 0) if rows else 0
    about = finding.study, finding.model, finding.dataset
    own = [at for at, each in enumerate(sets) if (each.study, each.model, each.task.dataset.name) == about]
    for place in sorted(own, key=lambda at: (part not in sets[at].task.name, abs(sets[at].images.height - count))):
        attributes = sorted(sets[place].attributes.items(), key=lambda each: each[0] != part)
        by = next((name for name, values in attributes if groups & {*values}), None)
        asked = sets[place].task.prompts.table.select("concept", "dimension").rows()
        prompt = next((at for word in concepts for at, named in enumerate(asked) if word in named), None)
        if by and prompt is not None:
            return Opening(finding.badge, finding.answer or f"{finding.headline}.", place, prompt, by)
    if not own or not anyway:
        return None
    place = min(own, key=lambda at: finding.kind not in sets[at].task.name)
    by = next((name for name, values in sets[place].attributes.items() if groups & {*values}), "")
    return Opening(finding.badge, finding.answer or f"{finding.headline}.", place, 0, by)
