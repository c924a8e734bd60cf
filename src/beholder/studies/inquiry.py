"""Inquiry: a study on a data set. Which studies are asked, on which data, opened and recorded."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from beholder.comparison.family import FEWEST
from beholder.comparison.groups import groups_of, people_of
from beholder.core.errors import UsageError
from beholder.core.options import option, values_of
from beholder.core.read import column_in
from beholder.core.record import Record
from beholder.core.types import Entry
from beholder.datasets import DATASETS, data_root, dataset_name, load_dataset
from beholder.datasets.dataset import Dataset, with_bins
from beholder.datasets.images import CHANGES
from beholder.datasets.labels import LookAlikes, Map, first_of, mapped, parse_maps, unclear_labels, without_labels
from beholder.datasets.selection import Edges, Selection, parse_bins, select
from beholder.datasets.settings import parse_settings
from beholder.datasets.survey import columns_of, group_counts
from beholder.scores.score_matrix import Task
from beholder.studies import STUDIES
from beholder.studies.study import MeasureOptions, Study, Tasks

StudyOptions = Mapping[str, object]  # the given options of the studies, by name


def chosen_studies(
    names: Sequence[str], given: StudyOptions, *, data: Path | None, dataset: str | None, models: Sequence[object] = ()
) -> list[Study]:
    """The named studies, the one that an option chooses, or what fits the data at hand; with their own options."""
    for study in STUDIES.values() if given else ():
        for chooser in (each for each in study.options if each.chooses and each.name in given):
            if set(names) - {study.name} or not dataset:
                use = "add --dataset NAME or folder:PATH, and remove --study."
                raise UsageError(f"{chooser.flag} defines its own study: {use}")
            return [with_study_options(study, given)]
    studies = [STUDIES[name] for name in names]
    if not names and data is None and dataset is None and not models and not given:  # embedded models in their world
        studies = [study for study in STUDIES.values() if study.demo]
    elif not names:
        wanted = ("always", "data") if data and dataset is None else ("always",)
        studies = [study for study in STUDIES.values() if study.default in wanted]
    for study in studies:
        study.refuse_by_name()
    for name in given:
        takers = [study for study in STUDIES.values() if any(option.name == name for option in study.options)]
        if not {study.name for study in studies} & {taker.name for taker in takers}:
            ways = [option.flag for taker in takers for option in taker.options if option.chooses]
            named = [taker.name for taker in takers if not any(option.chooses for option in taker.options)]
            ways += [f"--study {' or '.join(named)}"] if named else []
            raise UsageError(f"--{name.replace('_', '-')} goes with {' or '.join(ways)}.")
    return [with_study_options(study, given) for study in studies]


def with_study_options(study: Study, given: StudyOptions) -> Study:
    """The study with those of the given options that are its own."""
    mine = {option.name: given[option.name] for option in study.options if option.name in given}
    return study.configure(study, mine) if mine and study.configure else study


@dataclass(frozen=True)
class DataChoice(MeasureOptions):
    """Where the data is, and which of it is asked for."""

    data: Path | None = option(None, parse=lambda given: data_root(Path(given) if given else None))
    dataset: str | None = option(None)
    people: Path | None = option(None, parse=lambda given: Path(given) if given else None)
    settings: Mapping[str, str] = option(
        dict, parse=lambda given: given if isinstance(given, Mapping) else parse_settings(values_of(given))
    )
    bins: Mapping[str, Edges] = option(
        dict,
        parse=lambda given: (
            {name: tuple(edges) for name, edges in given.items()}
            if isinstance(given, Mapping)
            else parse_bins(values_of(given))
        ),
    )
    image_column: str | None = option(None)
    map: Mapping[str, Map] = option(
        dict, parse=lambda given: given if isinstance(given, Mapping) else parse_maps(values_of(given))
    )
    keep_codes: bool = option(False)
    allow_missing: bool = option(False)
    limit: int | None = option(None)

    def __post_init__(self) -> None:
        if self.dataset is not None:
            object.__setattr__(self, "dataset", dataset_name(self.dataset, self.settings))
        if self.people is not None:
            if self.dataset not in (None, own := f"folder:{self.people}"):
                raise UsageError(f"--people {self.people} is the data set: leave out --dataset {self.dataset}.")
            object.__setattr__(self, "dataset", own)
        if not re.match(r"yes: *\S|$", said := self.settings.get("photographs", "")):
            raise UsageError(f"--set photographs={said}: write 'yes: ' and who allows that a page shows them.")


@dataclass(frozen=True, eq=False)
class Inquiry:
    """A study on a data set."""

    study: Study
    dataset: Dataset
    _tasks: dict[Tasks, Sequence[Task]] = field(default_factory=dict, init=False, repr=False)

    def tasks(self, **model: bool) -> Sequence[Task]:
        """What is asked of a model that answers in words, that is a detector, or neither; made once."""
        made = self.study.tasks_of(**model)
        if made not in self._tasks:
            self._tasks[made] = list(made(self.dataset))
        return self._tasks[made]

    def changed(self, count: int) -> dict[str, "Inquiry"]:
        """The inquiry after so many small changes of the pictures, each by name."""
        return {name: replace(self, dataset=self.dataset.perturbed(name)) for name in list(CHANGES)[:count]}


def open_inquiries(study: Study, choice: DataChoice, record: Record) -> Iterator[Inquiry]:
    """A study on its data set; one that is asked on all of them, on each of its data sets that is at hand."""
    if choice.dataset or choice.data is None or not study.asks.all_datasets:
        yield open_inquiry(study, choice, record)
        return
    for name in datasets_here(study, choice.data):
        yield open_inquiry(study, replace(choice, dataset=name), record)


def opened(name: str, choice: DataChoice) -> Dataset:
    """A data set as it is asked for: its settings, and what its labels stand for."""
    dataset = load_dataset(name, choice.data, choice.settings)
    return mapped(dataset, choice.map, keep_codes=choice.keep_codes)


def open_inquiry(study: Study, choice: DataChoice, record: Record, *, scored: bool = True) -> Inquiry:
    """A study on one data set; the record says what they are. Imported scores need no images to be there."""
    source = choice.dataset or default_dataset(study, choice.data)
    whole = opened(source, choice)
    whole = whole.present() if scored else whole
    within, dataset, chosen = choice.within, whole, {}
    for name in within:
        whole.attribute(name)  # raises where there is none
    if choice.limit is not None:
        selection = study.select(whole, choice.limit, choice.person, within)
        dataset, chosen = whole.selected(selection), {"selection": selection.as_dict()}
    dataset = with_bins(dataset, choice.bins)
    if study.name not in record.studies:
        record.studies.append(study.name)
        declared, known = study.declaration(), STUDIES.came_with_beholder(study.name)
        if not (known and STUDIES[study.name].declaration() == declared):  # Beholder's own page needs no record
            record.declared[study.name] = declared
    entry = {name: getattr(dataset, name) for name in ("name", "revision", "licence")}
    about, own = DATASETS.get(source), choice.settings.get("photographs", "")
    entry |= {"origin": about.origin if about else source, "photographs": about.photographs if about else own}
    entry |= {"images": len(dataset), "of": len(whole), "groups": group_counts(dataset)}
    labels = (*study.measures.compares, *study.measures.within, *within)
    people = _people(dataset, choice, labels)
    notes = [*dataset.notes, *_without_label(study, dataset, choice)]
    record.add_dataset({**entry, "persons": people, **chosen, "notes": notes})
    unclear: dict[str, LookAlikes] = unclear_labels(dataset, labels)
    for name, found in unclear.items():
        record.add_not_compared(study.name, dataset.name, name, str(found), unclear=True)
    return Inquiry(study, without_labels(dataset, unclear))


def _without_label(study: Study, dataset: Dataset, choice: DataChoice) -> Iterator[str]:
    """Who is left out of a comparison that was asked for: images without a label, groups of too few people."""
    people, asked = people_of(dataset.table, choice.person), study.measures.compares if study.measures.every else ()
    for groups in groups_of(dataset.table, [dataset.attribute(name).name for name in asked]):
        if missing := int((groups.codes < 0).sum()):
            yield f"{groups.attribute}: {missing:,} of {len(dataset):,} images have no label"
        sizes = dict(zip(groups.names, groups.sizes(people), strict=True))
        few = [f"{name} {size}" for name, size in sizes.items() if size < FEWEST]
        if few and len(few) < len(sizes):
            yield f"{groups.attribute}: groups of fewer than {FEWEST} people are not compared: {first_of(few)}"


def add_not_compared(inquiry: Inquiry, results: pl.DataFrame, choice: DataChoice, record: Record) -> None:
    """Record every label that was asked for and that no result compares."""
    study, dataset = inquiry.study, inquiry.dataset
    known = {each["label"] for each in record.not_compared if each["study"] == study.name}
    judged = set(results.filter(pl.col("verdict").is_not_null())["subset"].drop_nulls())
    absent = results.filter(pl.col("value").is_null())["note"].drop_nulls().to_list() if not judged else []
    for column in columns_of(dataset) if study.measures.every else ():
        asked = column.name in [column_in(dataset.table, name) for name in study.measures.compares]
        if asked and column.name not in known | judged:
            sizes = "" if column.role == "ignored" else f"no two groups have {FEWEST} people with a score: "
            reason = absent[0] if absent else f"{sizes}{column.how}"
            part = "; only a part of the images was looked at (--limit)" if choice.limit else ""
            record.add_not_compared(study.name, dataset.name, column.name, f"{reason}{part}")


def as_asked(task: Task, name: str, record: Record) -> Task:
    """A recorded task with the images that the run asked it about: those that its limit chose, of the task's part."""
    study, settings, dataset = STUDIES.get(name), record.settings, task.dataset
    entry = next((each for each in record.datasets if each.get("name") == dataset.name), {})
    selection = entry.get("selection", {})
    if settings.get("limit") and (over := selection.get("over")) is not None:
        by = selection.get("each", study.asks.limit_by if study else None)
        people = people_of(dataset.table, settings.get("person")).codes
        there = [column for column in over if column in dataset.table.columns]
        dataset = dataset.selected(select(dataset.table, int(settings["limit"]), there, each=by, people=people))
    ways = [{}, {"answers": True}, {"detects": True}, {"compat": True}, {"compat": True, "answers": True}]
    made = {study.tasks_of(**way) for way in ways} if study else set()
    same = [each for tasks in made for each in tasks(dataset) if each.prompts.digest == task.prompts.digest]
    images = {image for each in same for image in each.dataset.table["image_id"]}
    if images:
        keep = dataset.table["image_id"].is_in(list(images)).arg_true().to_list()
        dataset = dataset.selected(Selection(keep, (), len(dataset)))
    return replace(task, dataset=dataset)


def _people(dataset: Dataset, options: MeasureOptions, labels: Sequence[str]) -> Entry:
    """Who counts as one person, and which of these labels differ between pictures of one."""
    people = people_of(dataset.table, options.person)
    return {
        "column": people.column,
        "people": len(people),
        "pictures": len(dataset),
        "described": people.described(),
        "conflicts": people.conflicts(dataset.table, [column_in(dataset.table, name) for name in labels]),
    }


def datasets_here(study: Study, data: Path) -> list[str]:
    """Its data sets that lie in the folder; if there are none, the first, and opening it says what to do."""
    sources = [DATASETS[each] for each in study.asks.datasets if not DATASETS[each].embedded]
    return [source.name for source in sources if source.folder(data).is_dir()] or [sources[0].name]


def default_dataset(study: Study, data: Path | None) -> str:
    """The study's own data, or the embedded world when no folder was named and the study knows it."""
    if not study.asks.datasets:
        raise UsageError(f"{study.name} has no data of its own: add --dataset NAME or folder:PATH.")
    embedded = [name for name in study.asks.datasets if DATASETS[name].embedded]
    if data is None:
        return (embedded or study.asks.datasets)[0]
    return datasets_here(study, data)[0] if study.asks.all_datasets else study.asks.datasets[0]
