"""What the user says of a served model: its address `MODEL@URL`, its key, and limits on requests.

Settings that change a score are in the URL's query (image=jpeg, side=768, answers=sampled, draws=40 …), and so in
the spec. The key comes from the environment and is never written. Limits come from there too (`Limits`, each as
BEHOLDER_SERVED_NAME) and change no score.
"""

import base64
import html
import ipaddress
import math
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlsplit

from beholder.core.errors import ModelError, UnknownName, UsageError
from beholder.core.types import Entry

FORM = "openai:MODEL@URL, as in openai:deepseek-vl2@http://127.0.0.1:8000/v1"
REMOVED = "[key removed]"
SHORTEST_SECRET = 8  # a shorter key (`EMPTY`, `none`) is a word like any other: it is not searched for
_PUBLIC = re.compile(
    r"\A(?:sk-(?:proj-|svcacct-|admin-|or-v1-|ant-(?:api\d+-)?)?|hf_|gsk_|xai-|nvapi-|AIza)"
)  # prefixes
_ESCAPE = re.compile(r"(?is)(?:%|\\x|\\u00)([0-9a-f]{2})|&(?:#\d{1,6}|#x[0-9a-f]{1,5}|[a-z]{2,4});|\\?.")
WAYS = {"image": ("png", "jpeg"), "answers": ("auto", "logprobs", "sampled", "guided")}
NUMBERS = {"quality": (1, 100), "side": (16, 8192), "draws": (1, 1000)}


@dataclass(frozen=True)
class Asking:
    """How a picture travels and how an answer is read; every field moves a score."""

    image: str = "png"  # `png`, or `jpeg` at `quality`
    quality: int = 95
    side: int = 1024  # longest side in pixels; larger pictures are made smaller, smaller ones stay
    answers: str = "auto"  # `logprobs`, else `sampled`; or `guided`: sampled, and only the two words are allowed
    draws: int = 20

    def encoding(self) -> dict[str, object]:
        """For the spec."""
        form = {"format": "png"} if self.image == "png" else {"format": "jpeg", "quality": self.quality}
        return {**form, "longest_side": self.side, "resampling": "lanczos", "colour": "RGB"}


class Address(NamedTuple):
    """One model of one server."""

    model: str
    url: SplitResult
    asking: Asking
    revision: str | None
    scheme: str = "openai"

    @property
    def name(self) -> str:
        """What the user calls it, without the query."""
        if self.scheme != "openai":
            return f"{self.scheme}:{self.model}"
        return f"openai:{self.model}@{self.url.scheme}://{self.url.netloc}{self.url.path}"


def read_address(text: str) -> Address:
    """`MODEL@URL` with options in the query; anything else is refused, without repeating what may be a secret."""
    model, at, rest = text.rpartition("@http")
    if not (at and model):
        raise ModelError(f"A served model is named {FORM}.")
    try:
        url = urlsplit(f"http{rest}")
        valid = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:
        valid = None
    if not valid:
        raise ModelError(f"This is not the address of a server. A served model is named {FORM}.")
    if "@" in url.netloc:
        raise ModelError(
            "The address of a served model holds a user name or password, which would be written to files.\n"
            "Put the key into the environment variable BEHOLDER_API_KEY and leave it out of the address."
        )
    path = re.sub(r"/chat/completions$", "", url.path.rstrip("/"))
    return Address(model, url._replace(query="", fragment="", path=path), *_asked(url.query))


def read_hosted(scheme: str, text: str, url: SplitResult) -> Address:
    """`MODEL` with options in a query, of a server whose address is known."""
    model, _, query = text.partition("?")
    if not model:
        raise ModelError(f"Name the model: {scheme}:MODEL.")
    return Address(model, url, *_asked(query), scheme)


def _asked(query: str) -> tuple[Asking, str | None]:
    """What the query of an address asks for, and the revision that it names."""
    chosen: Entry = dict(parse_qsl(query, keep_blank_values=True))
    revision = chosen.pop("revision", None)
    for name, value in chosen.items():
        if name in NUMBERS:
            low, high = NUMBERS[name]
            if not value.isdecimal() or not low <= int(value) <= high:
                raise UsageError(f"'{name}' of a served model is a whole number from {low} to {high}, not '{value}'.")
            chosen[name] = int(value)
        elif name not in WAYS:
            raise UnknownName("option of a served model", name, (*WAYS, *NUMBERS, "revision"))
        elif value not in WAYS[name]:
            raise UnknownName(f"way of '{name}'", value, WAYS[name], where="A served model")
    return Asking(**chosen), revision


@dataclass(frozen=True)
class Key:
    """A secret: it is sent to the one server, and shown nowhere."""

    value: str = field(default="", repr=False)

    def headers(self) -> dict[str, str]:
        """What goes with every request."""
        return {"Authorization": f"Bearer {self.value}"} if self.value else {}

    def cut_from(self, said: Any) -> Any:
        """What a server said (text, or JSON with texts anywhere in it), without the key."""
        if isinstance(said, str):
            return self._without(said)
        if isinstance(said, list):
            return [self.cut_from(each) for each in said]
        if isinstance(said, dict):
            return {self.cut_from(name): self.cut_from(each) for name, each in said.items()}
        return said

    def hidden(self, text: str) -> str:
        """A text for people, without the key and without what looks like one."""
        return re.sub(r"(?i)(bearer\s+|\bsk-)(?!\[key)[^\s\"',}]+", r"\1***", str(self.cut_from(text)))

    @cached_property
    def _pieces(self) -> dict[int, set[str]]:
        """What gives a run of the key away, by length, in lower case: plain, base64, hexadecimal; also backwards."""
        least, secret = SHORTEST_SECRET, len(_PUBLIC.sub("", self.value, count=1))
        first = max(0, len(self.value) - secret - least + 1)
        runs = [self.value[i : i + least] for i in range(first, len(self.value) - least + 1)]
        data = [run.encode() for each in runs for run in (each, each[::-1])]
        pieces = [*runs, *(one.hex() for one in data), *(core for one in data for core in _in_base64(one))]
        every = {each.lower() for piece in pieces for each in (piece, piece[::-1])}
        return {length: {piece for piece in every if len(piece) == length} for length in map(len, every)}

    def _without(self, text: str) -> str:
        """The text with every run of the key exchanged for a remark."""
        given = bytearray(len(text))
        for shown, places in _readings(text) if len(text) >= SHORTEST_SECRET <= len(self.value) else ():
            for length, pieces in self._pieces.items():
                for start in range(len(shown) - length + 1):
                    if shown[start : start + length] in pieces:
                        first, end = places[start], places[start + length]
                        given[first:end] = b"\1" * (end - first)
        parts = groupby(zip(text, given, strict=True), key=itemgetter(1))
        return "".join(REMOVED if hit else "".join(sign for sign, _ in part) for hit, part in parts)


def _readings(text: str) -> Iterator[tuple[str, list[int]]]:
    """The text in lower case, as it stands and with its escapes read, again and again; with each sign's first place."""
    shown, places = text, list(range(len(text) + 1))
    for _ in range(4):
        yield "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in shown), places
        found = list(_ESCAPE.finditer(shown))
        places = [places[each.start()] for each in found] + [places[len(shown)]]
        if len(found) == len(shown):
            return
        shown = "".join(map(_sign, found))


def _sign(escape: re.Match[str]) -> str:
    """The one sign that an escape stands for."""
    if escape[1]:
        return chr(int(escape[1], 16))
    return (html.unescape(escape[0]) if escape[0][0] == "&" else escape[0])[-1]


def _in_base64(secret: bytes) -> Iterator[str]:
    """How base64 shows these bytes, whatever stands before and after them, in both alphabets."""
    for before in range(3):
        whole = base64.b64encode(bytes(before) + secret).decode()
        core = whole[math.ceil(before * 8 / 6) : (before + len(secret)) * 8 // 6]
        yield from dict.fromkeys((core, core.translate(str.maketrans("+/", "-_"))))


def key_for(url: SplitResult, environment: Mapping[str, str]) -> Key:
    """BEHOLDER_API_KEY, else OPENAI_API_KEY; the latter never in clear text over a network."""
    name, value = "BEHOLDER_API_KEY", environment.get("BEHOLDER_API_KEY", "").strip()
    if not value and (url.scheme == "https" or is_local(url.hostname or "")):
        name, value = "OPENAI_API_KEY", environment.get("OPENAI_API_KEY", "").strip()
    return key_in(name, {name: value})


def key_in(name: str, environment: Mapping[str, str]) -> Key:
    """The key in an environment variable; empty where there is none."""
    value = environment.get(name, "").strip()
    if not (value.isascii() and value.isprintable()):
        raise ModelError(f"The key in {name} holds characters that cannot be in a key; it was not sent.")
    return Key(value)


def is_local(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


PREFIX = "BEHOLDER_SERVED_"
BATCH_STEPS = ("estimate", "submit")
LEAST = {"concurrency": 1, "retries": 0, "rpm": 0.01, "timeout": 0.1, "price_in": 0.0, "price_out": 0.0}


@dataclass(frozen=True)
class Limits:
    """How much a run may request from a server."""

    concurrency: int = 8
    rpm: float | None = None  # requests a minute, retries included
    retries: int = 6  # at most so many further attempts for one request
    timeout: float = 120.0
    first_wait: float = 0.5  # seconds before the first further attempt; doubled each time, up to `longest_wait`
    longest_wait: float = 30.0
    price_in: float | None = None
    price_out: float | None = None
    batch: str = ""  # `estimate` says what a batch would cost, `submit` submits it; empty asks question by question
    batch_folder: str = "beholder-batches"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Limits":
        """The defaults, but for what the environment says."""
        names = (*LEAST, "batch", "batch_folder")
        chosen: Entry = {name: text for name in names if (text := environment.get(PREFIX + name.upper(), "").strip())}
        for name in LEAST.keys() & chosen.keys():
            try:
                number = float(chosen[name])
            except ValueError:
                number = math.nan
            if not LEAST[name] <= number < 1e9:
                raise UsageError(
                    f"{PREFIX}{name.upper()} is a number of at least {LEAST[name]:g}, not '{chosen[name]}'."
                )
            chosen[name] = int(number) if name in ("concurrency", "retries") else number
        if chosen.get("batch", "submit") not in BATCH_STEPS:
            raise UnknownName(f"value of {PREFIX}BATCH", chosen["batch"], BATCH_STEPS)
        return cls(**chosen)

    def wait_before(self, attempt: int) -> float:
        """Seconds before further attempt number `attempt` (from 1): exponential, the upper half of it random."""
        full = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))
        return random.uniform(full / 2, full)

    def money(self, tokens_in: float, tokens_out: float) -> float | None:
        """What so many tokens cost at the prices given; None without prices."""
        if self.price_in is None and self.price_out is None:
            return None
        return (tokens_in * (self.price_in or 0.0) + tokens_out * (self.price_out or 0.0)) / 1e6
