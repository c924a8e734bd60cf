"""Audits while a model is trained: Trainer(…, callbacks=[beholder.callback(every=1000, study="apa", data="data")])."""

from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from beholder._audit import audit
from beholder._run import Run
from beholder.core.errors import MissingExtra, UsageError
from beholder.core.types import Entry
from beholder.report.exports import headline_numbers


@dataclass(eq=False)
class Audits:
    """Audits a model while it is trained; `callback` makes a callback of transformers of it."""

    every: int
    processor: Any
    out: Path | str | None
    store: Path | str | None
    options: Entry  # those of `beholder.audit`
    runs: dict[int, Run] = field(default_factory=dict)  # by step
    trainer: Any = None  # if it is set, numbers go to its trackers too

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Say what is missing before the first step."""
        if self.processor is None and given.get("processing_class") is None:
            raise UsageError(
                "How pictures and texts are prepared is not known: give the Trainer its processing_class, or "
                "beholder.callback its processor."
            )

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if state.global_step % self.every == 0:
            self.audit(args, state, **given)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if state.global_step not in self.runs:
            self.audit(args, state, **given)

    def audit(self, args: Any, state: Any, *, model: Any, processing_class: Any = None, **_: Any) -> None:
        """Audit the model as it is now, and log the headline numbers."""
        import torch  # an extra, and slow to import

        if not state.is_world_process_zero:
            return
        folder = Path(self.out or Path(args.output_dir) / "beholder")
        prepared = processing_class if self.processor is None else self.processor
        parts = prepared if isinstance(prepared, tuple) else (prepared,)
        name, place = f"step {state.global_step}", folder / f"step-{state.global_step}"
        with torch.random.fork_rng():  # so that training draws the numbers that it would have drawn
            run = audit((model, *parts), name=name, out=place, store=self.store or folder / "store", **self.options)
        self.runs[state.global_step] = run
        numbers = {f"beholder/{name}": value for name, value in headline_numbers(run.report).items()}
        if self.trainer is not None:
            self.trainer.log(numbers)
        else:
            state.log_history.append({**numbers, "epoch": state.epoch, "step": state.global_step})


def callback(
    every: int = 1000,
    *,
    study: Any = None,
    processor: Any = None,
    out: Path | str | None = None,
    store: Path | str | None = None,
    **options: Any,
) -> Any:
    """A `TrainerCallback` of transformers that audits the model every so many steps, and at the end.

    >>> callback(every=0)
    Traceback (most recent call last):
    beholder.core.errors.UsageError: every=0: audit every so many steps, 1 or more.

    The headline numbers go into the trainer's log (`trainer.state.log_history`) under `beholder/…`, each with its
    interval; after `callback.trainer = trainer`, to the trackers of its `report_to` too. `callback.runs` has the runs
    by step. They are written to `out`, which is the folder `beholder` of the trainer's own if it is not said.

    `processor` is needed if the trainer has no `processing_class`. All other options are those of `beholder.audit`.
    A copy of the model is audited; training goes on as it would without.
    """
    if every < 1:
        raise UsageError(f"every={every}: audit every so many steps, 1 or more.")
    try:
        from transformers import TrainerCallback  # an extra, and slow to import
    except ImportError as error:
        raise MissingExtra("An audit while a model is trained", "torch") from error
    if find_spec("accelerate") is None:
        raise MissingExtra("The Trainer of transformers needs accelerate, and an audit by it", "large")
    kind = type("Audits", (Audits, TrainerCallback), {})
    return kind(every, processor, out, store, {"studies": study, **options})
