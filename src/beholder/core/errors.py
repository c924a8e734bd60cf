"""What can go wrong, as a family: catch `BeholderError` and you have caught everything we raise on purpose.

    BeholderError
    ├── UnknownName          a model, data set, study, attribute … that does not exist; suggests the nearest
    ├── DataError            the user's files do not hold what they should
    │   ├── MissingData      a folder, table, column or image is missing
    │   ├── BadImage         a file that cannot be read as a picture; names the file
    │   ├── RemoteError      a bucket or server behind a URI that does not answer as it should
    │   └── BadScores        an imported score file that cannot be used
    ├── ModelError           a model that cannot be loaded or gives no usable score
    │   ├── MissingExtra     an optional dependency is not installed; says what to install
    │   ├── NotAskable       a model that cannot be asked this; the rest of the study may be
    │   ├── OutOfMemory      the batch did not fit; the caller halves it and continues
    │   └── UnusableScore    NaN, infinite or all-zero scores; the caller names the image
    ├── BrokenPlugin         what an installed package adds cannot be loaded; names the package
    └── UsageError           options that contradict each other

Every message says what was requested, what exists, and what to do. No message shows credentials.
"""

import difflib
import re
from collections.abc import Iterable, Sequence

_USER = re.compile(r"(\w://)[^/@\s'\"]+@")
_SECRET = re.compile(r"(?i)([?&][\w.-]*(?:token|key|secret|password|signature|sig|credential|auth)=)[^&#\s'\"]+")


def masked(text: str) -> str:
    """The text without the credentials of URIs in it."""
    return _SECRET.sub(r"\1***", _USER.sub(r"\1***@", text)) if "://" in text else text


DISTRIBUTION = "beholder-audit"  # what is installed; the package is `beholder`


class BeholderError(Exception):
    """Base of all our errors; its text is meant for the user.

    >>> try:
    ...     raise UnknownName("animal", "hrose", ["horse", "hare"])
    ... except BeholderError as error:
    ...     print(error)
    Beholder has no animal 'hrose'.
    It has: hare, horse. Did you mean 'horse'?
    """

    def __str__(self) -> str:
        return masked(super().__str__())


class UnknownName(BeholderError):  # noqa: N818  (the tree above reads as sentences)
    """A name that does not exist, with what exists and the nearest match."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, where: str = "Beholder") -> None:
        self.asked, self.known = name, sorted(known)
        nearest = difflib.get_close_matches(name.lower(), [k.lower() for k in self.known], n=1, cutoff=0.5)
        hint = next((f" Did you mean '{k}'?" for k in self.known if nearest and k.lower() == nearest[0]), "")
        listed = ", ".join(self.known[:30]) + (" …" if len(self.known) > 30 else "") or "none"
        super().__init__(f"{where} has no {kind} '{name}'.\nIt has: {listed}.{hint}")


class DataError(BeholderError):
    """The user's files do not hold what they should."""


class MissingData(DataError):  # noqa: N818
    """Something that should exist does not."""


NO_FILE = "the file does not exist"  # why an image cannot be read


class BadImage(DataError):  # noqa: N818
    """A file that cannot be read as a picture."""

    def __init__(self, uri: str, reason: str) -> None:
        self.uri, self.reason = uri, reason
        super().__init__(f"{uri}: {reason}")

    def __reduce__(self) -> tuple[type["BadImage"], tuple[str, str]]:
        return BadImage, (self.uri, self.reason)


class RemoteError(DataError):
    """A place behind a URI that does not answer as it should; nothing that was stored is lost."""


class BadScores(DataError):  # noqa: N818
    """An imported score file that cannot be used."""


class ModelError(BeholderError):
    """A model that cannot be loaded or gives no usable score."""


class MissingExtra(ModelError):  # noqa: N818
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs an optional part of Beholder.\nInstall it with: pip install '{DISTRIBUTION}[{extra}]' "
            f"(in a clone: pip install -c constraints.txt '.[{extra}]')"
        )


class NotAskable(ModelError):  # noqa: N818
    """A model that cannot be asked this: it lacks texts or vectors. Other questions may still be put to it."""


class OutOfMemory(ModelError):  # noqa: N818
    """The batch did not fit into memory."""


OTHER_SHAPE = "Its size or shape may be more than the model's code can take: leave it out, or make it less narrow."


class UnusableScore(ModelError):  # noqa: N818
    """Vectors or scores with NaN or infinity in them, or all zero; `positions` count from 0 in the requested list.

    With a `fault`, the model's own code failed with that error instead.
    """

    def __init__(self, kind: str, positions: Sequence[int], fault: str = "") -> None:
        self.kind, self.positions, self.fault = kind, tuple(positions), fault
        listed = ", ".join(map(str, self.positions[:10])) + (" …" if len(self.positions) > 10 else "")
        super().__init__(
            f"The model gives no usable score for {len(self.positions)} {kind}(s), at position {listed} "
            f"of those requested: {fault or 'NaN, infinite or all zero'}.\n"
            + (
                OTHER_SHAPE
                if fault
                else "The weights may be damaged, or the precision too low: try --precision float32."
            )
        )

    def __reduce__(self) -> tuple[type["UnusableScore"], tuple[str, tuple[int, ...], str]]:
        return UnusableScore, (self.kind, self.positions, self.fault)


class BrokenPlugin(BeholderError):  # noqa: N818
    """What an installed package adds cannot be loaded."""

    def __init__(self, kind: str, name: str, package: str, error: Exception) -> None:
        super().__init__(
            f"The {kind} '{name}' of the package {package} cannot be loaded: {type(error).__name__}: "
            f"{first_line(error)}\nEverything else works. Update the package, or uninstall it: pip uninstall {package}"
        )


class UsageError(BeholderError):
    """Options that contradict each other."""


def is_panic(error: BaseException) -> bool:
    """Whether a library written in Rust panicked: no `Exception`, and a class of its own in every library."""
    return type(error).__name__ == "PanicException"


def first_line(error: BaseException) -> str:
    """The first line of a library's error, for our own message; its type if it has no text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
