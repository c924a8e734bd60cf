"""Everything that can be chosen for a run, declared once.

What loading, filling and measuring need is declared where it is used (`LoadOptions`, `FillOptions`, `MeasureOptions`,
`DataChoice`); `AuditOptions` has all of it, and the command line, `beholder.audit()` and `audit.toml` take its fields.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeVar

from beholder.core.errors import UnknownName, UsageError
from beholder.core.files import Place, store_folder
from beholder.core.options import declared_options, option, values_of
from beholder.core.types import Fields
from beholder.models.spec import LoadOptions
from beholder.scores.fill import FillOptions
from beholder.scores.ray_pool import RayOptions, ray_options
from beholder.studies import STUDIES
from beholder.studies.inquiry import DataChoice
from beholder.studies.study import MeasureOptions

Part = TypeVar("Part")


@dataclass(frozen=True)
class AuditOptions(FillOptions, LoadOptions, DataChoice):
    """Everything about a run but its models and studies.

    >>> AuditOptions(dataset="folder:staff", limit=20, draws=500, out=Path("run")).measure.draws
    500
    """

    out: Path | None = option(None, parse=lambda given: Path(given) if given else None)
    store: Place = option(store_folder, several=False, parse=store_folder)
    engine: str = option("local")
    workers: int | None = option(None)
    gpus_per_worker: float | None = option(None)
    one_by_one: bool = option(False)
    allow_upload: bool | Callable[[str], bool] = option(False)
    """Whether pictures may be sent to a server that is not here; a function gets what would be sent, and where."""
    perturb: int = option(0)
    study_options: Mapping[str, object] = field(default_factory=dict)
    """The studies' own options, which tell this run from others."""
    command: Sequence[str] = ()  # what the user typed, for the record

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Options as a user gives them: paths as texts, lists of NAME=VALUE, and the studies' own options by name.

        >>> options = AuditOptions.of(out="run", settings=["split=train2017"], prompts="mine.csv", by="gender")
        >>> options.out, options.settings, options.study_options["by"]
        (PosixPath('run'), {'split': 'train2017'}, ['gender'])
        """
        taken = {each.name: given.pop(each.name) for each in fields(cls) if each.name in given}
        for name, each in declared_options(cls).items():
            if each.parse is not None:
                taken[name] = each.parse(taken.get(name))
        return cls(**taken, study_options=_of_studies(given))

    @property
    def load(self) -> LoadOptions:
        """How models are loaded."""
        return self._part(LoadOptions, shared_prefix=self.shared_prefix and not self.one_by_one)

    @property
    def fill(self) -> FillOptions:
        """How missing scores are computed."""
        return self._part(FillOptions)

    @property
    def measure(self) -> MeasureOptions:
        """How scores are measured."""
        return self._part(MeasureOptions)

    @property
    def ray(self) -> RayOptions | None:
        """By which workers of Ray the models are asked; None: in this process."""
        return ray_options(self.engine, self.workers, self.gpus_per_worker)

    def _part(self, part: type[Part], **others: Any) -> Part:
        return part(**{each.name: getattr(self, each.name) for each in fields(part)} | others)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        if self.image_column:
            object.__setattr__(self, "settings", {**self.settings, "image": self.image_column})
        DataChoice.__post_init__(self)
        if self.delta is not None and self.delta >= 1:
            raise UsageError(
                f"--delta {self.delta:g} is more than any difference can be: it is a probability, 0.05 for five points "
                "(for APA's ratio the factor less 1, so that 0.05 is a factor of 1.05)."
            )
        _ = self.load, self.ray  # raise where a value is none of theirs

    def recorded(self) -> dict[str, object]:
        """The settings for `run.json`."""
        values = {name: getattr(self, name) for name, each in declared_options(type(self)).items() if each.recorded}
        values = {name: value for name, value in values.items() if value or name not in ("map", "keep_codes")}
        return {**values, "within": list(self.within), "bins": {name: list(self.bins[name]) for name in self.bins}}


def _of_studies(given: Fields) -> dict[str, object]:
    """The studies' own options as the command line gives them: paths, and lists where there may be several."""
    known = {option.name: option for study in STUDIES.values() for option in study.options} if given else {}
    chosen: dict[str, object] = {}
    for name, value in given.items():
        if name not in known:
            raise UnknownName("option", name, [*declared_options(AuditOptions), *known], where="audit()")
        if (own := known[name].parse) and not isinstance(value, str | Path | None):
            chosen[name] = own(value)
        elif value not in (None, False, [], ()):
            values = [known[name].kind(each) for each in values_of(value)]
            chosen[name] = values if known[name].several else values[0]
    return chosen
