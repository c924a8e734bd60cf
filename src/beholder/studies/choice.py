"""Which studies are meant: by name, by an option of their own, or because they fit the data at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from beholder.core.errors import UsageError
from beholder.studies import STUDIES

if TYPE_CHECKING:
    from beholder.studies.study import Study

Own = Mapping[str, object]  # the given options of the studies, by name


def chosen_studies(
    names: Sequence[str], own: Own, *, data: Path | None, dataset: str | None, models: Sequence[object] = ()
) -> list[Study]:
    """The named studies, the one that an option chooses, or what fits the data at hand; with their own options."""
    for study in STUDIES.values():
        if any(option.chooses and option.name in own for option in study.options):
            return [_chosen_by_option(study, names, own, dataset)]
    embedded = data is None and dataset is None and not models and not own
    studies = [STUDIES[name] for name in names or _defaults(data=data, dataset=dataset, embedded=embedded)]
    for study in studies:
        study.refuse_by_name()
    for name in own:
        takers = [study.name for study in STUDIES.values() if any(option.name == name for option in study.options)]
        if not {study.name for study in studies} & set(takers):
            choosers = [option.flag for taker in takers for option in STUDIES[taker].options if option.chooses]
            raise UsageError(_goes_with(name, takers, choosers))
    return [with_own_options(study, own) for study in studies]


def with_own_options(study: Study, own: Own) -> Study:
    """The study with those options that are its own."""
    mine = {option.name: own[option.name] for option in study.options if option.name in own}
    return study.configure(study, mine) if mine and study.configure else study


def _chosen_by_option(study: Study, names: Sequence[str], own: Own, dataset: str | None) -> Study:
    flag = next(option.flag for option in study.options if option.chooses)
    if set(names) - {study.name} or not dataset:
        raise UsageError(f"{flag} defines its own study: add --dataset NAME or folder:PATH, and remove --benchmark.")
    return with_own_options(study, own)


def _goes_with(name: str, takers: Sequence[str], choosers: Sequence[str]) -> str:
    flag = f"--{name.replace('_', '-')}"
    named = [taker for taker in takers if not any(option.chooses for option in STUDIES[taker].options)]
    ways = [*choosers, *([f"--benchmark {' or '.join(named)}"] if named else [])]
    return f"{flag} goes with {' or '.join(ways)}."


def _defaults(*, data: Path | None, dataset: str | None, embedded: bool) -> list[str]:
    """What is asked when no study is named; of the embedded models in their world, the demo."""
    if embedded:
        return [study.name for study in STUDIES.values() if study.demo]
    wanted = ("always", "data") if data and dataset is None else ("always",)
    return [study.name for study in STUDIES.values() if study.default in wanted]
