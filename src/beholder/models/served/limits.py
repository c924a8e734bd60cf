"""Limits on requests to a server, and what they have cost so far. None of this changes a score.

Limits come from the environment: BEHOLDER_SERVED_CONCURRENCY, _RPM (requests a minute), _RETRIES, _TIMEOUT (seconds),
_PRICE_IN and _PRICE_OUT (per million tokens).
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from beholder.core.errors import UnknownName, UsageError

PREFIX = "BEHOLDER_SERVED_"
BATCH_STEPS = ("estimate", "submit")
LONGEST_WAIT = 600.0
"""Seconds; a server that asks for a longer pause ends the run; the next run continues."""


@dataclass(frozen=True)
class Limits:
    """How much a run may request from a server."""

    concurrency: int = 8
    rpm: float | None = None
    """Requests a minute, retries included."""
    retries: int = 6
    """At most so many further attempts for one request."""
    timeout: float = 120.0
    first_wait: float = 0.5
    """Seconds before the first further attempt; doubled each time, up to `longest_wait`."""
    longest_wait: float = 30.0
    price_in: float | None = None
    price_out: float | None = None
    batch: str = ""
    """`estimate` says what a batch would cost, `submit` submits it; empty asks question by question."""
    batch_folder: str = "beholder-batches"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Limits:
        """The defaults, but for what the environment says."""
        chosen: dict[str, Any] = {}
        smallest = {"concurrency": 1, "retries": 0, "rpm": 0.01, "timeout": 0.1, "price_in": 0.0, "price_out": 0.0}
        for name, least in smallest.items():
            if (number := _number(environment, name, least)) is not None:
                chosen[name] = int(number) if name in ("concurrency", "retries") else number
        if batch := environment.get(f"{PREFIX}BATCH", "").strip():
            if batch not in BATCH_STEPS:
                raise UnknownName(f"value of {PREFIX}BATCH", batch, BATCH_STEPS)
            chosen["batch"] = batch
        if folder := environment.get(f"{PREFIX}BATCH_FOLDER", "").strip():
            chosen["batch_folder"] = folder
        return cls(**chosen)

    def wait_before(self, attempt: int) -> float:
        """Seconds before further attempt number `attempt` (from 1): exponential, the upper half of it random."""
        full = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))
        return random.uniform(full / 2, full)


def _number(environment: Mapping[str, str], name: str, smallest: float) -> float | None:
    variable = PREFIX + name.upper()
    text = environment.get(variable, "").strip()
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not smallest <= number < 1e9:
        raise UsageError(f"{variable} is a number of at least {smallest:g}, not '{text}'.")
    return number


def requested_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks for in Retry-After (a number or a date) or retry-after-ms."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        text = (headers.get("retry-after") or "").strip()
        if text.replace(".", "", 1).isdecimal():
            return float(text)
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time()) if text else None
    except (ValueError, TypeError):
        return None


class Pace:
    """Lets requests through one by one, so many a minute, and none while the server asks for a pause."""

    def __init__(self, rpm: float | None) -> None:
        self._gap = 60.0 / rpm if rpm else 0.0
        self._next = self._before = 0.0
        self._lock = threading.Lock()

    def seconds_until_turn(self) -> float:
        """Reserves the next free moment; returns the seconds until then."""
        with self._lock:
            now = self._now()
            turn = max(now, self._next)
            self._next = turn + self._gap
            return turn - now

    def rest(self, seconds: float) -> None:
        """Send nothing for this long."""
        with self._lock:
            self._next = max(self._next, self._now() + seconds)

    def _now(self) -> float:
        """The clock; if it jumped back (a machine put to sleep or moved), the turns that are reserved move with it."""
        now = time.monotonic()
        self._next += min(0.0, now - self._before)
        self._before = now
        return now


@dataclass
class Tally:
    """Counts of requests and replies, over all studies of a run."""

    counts: Counter[str] = field(default_factory=Counter)
    fingerprints: Counter[str] = field(default_factory=Counter)
    widest: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, **counts: int) -> None:
        """Add to the counts; safe to call from several threads."""
        with self._lock:
            self.counts.update(counts)

    def reply(self, body: Mapping[str, object]) -> None:
        """Tokens and the server's own name for itself."""
        usage = body.get("usage")
        usage = usage if isinstance(usage, Mapping) else {}
        tokens = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
        self.add(**{name: value for name, value in tokens.items() if isinstance(value, int)})
        if isinstance(fingerprint := body.get("system_fingerprint"), str):
            with self._lock:
                self.fingerprints[fingerprint[:80]] += 1

    def cell(self, *, width: float, refused: bool, unseen: bool) -> None:
        """One cell as it was read."""
        with self._lock:
            self.widest = max(self.widest, width)
        self.add(cells=1, refused=int(refused), unseen=int(unseen), wide=int(width > 0.01))

    def drawn(self, answers: Sequence[str]) -> None:
        """One cell's draws, before they are counted."""
        if len(answers) > 1:
            self.add(drawn=1, alike=int(len(set(answers)) == 1))

    def notes(self, limits: Limits) -> list[str]:
        """For the record of a run."""
        return [*self._traffic(limits), *self._cells()]

    def _traffic(self, limits: Limits) -> list[str]:
        count = self.counts
        if not count["requests"]:
            return []
        tokens = f"{count['prompt_tokens']:,} tokens in, {count['completion_tokens']:,} out{self._cost(limits)}"
        notes = [f"{count['requests']:,} requests, {count['retries']:,} of them repeated; {tokens}."]
        if (versions := len(self.fingerprints)) > 1:
            notes.append(f"Answers came from {versions} different server versions: {_listed(self.fingerprints)}.")
        return notes

    def _cost(self, limits: Limits) -> str:
        if limits.price_in is None and limits.price_out is None:
            return ""
        spent = self.counts["prompt_tokens"] * (limits.price_in or 0.0)
        spent += self.counts["completion_tokens"] * (limits.price_out or 0.0)
        return f"; cost {spent / 1e6:,.4f} at the prices given"

    def _cells(self) -> list[str]:
        count = self.counts
        remarks = {
            "refused": "the answer, or most of the draws, was neither of the two expected words.",
            "unseen": "a wanted word was not among the returned tokens: "
            "its probability is the middle of its bounds, which are stored beside it.",
            "wide": f"a probability is known only to more than 0.01; the widest bounds are {self.widest:.2g} apart.",
        }
        notes = [f"In {count[key]:,} of {count['cells']:,} cells {text}" for key, text in remarks.items() if count[key]]
        if count["drawn"] and count["drawn"] == count["alike"]:
            notes.append(
                "All draws of a cell are word for word the same, in every cell: the server may not be sampling. "
                "If so, the bounds are too narrow."
            )
        return notes


def _listed(names: Counter[str]) -> str:
    return ", ".join(sorted(names)[:5]) + (" …" if len(names) > 5 else "")
