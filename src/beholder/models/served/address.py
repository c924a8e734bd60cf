"""The address of a served model: `MODEL@URL`, parsed and checked.

Settings that change a score are in the URL's query (image=jpeg, side=768, answers=sampled, draws=40 …), and so in
the spec. The key comes from the environment and is never written.
"""

from __future__ import annotations

import base64
import html
import ipaddress
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlsplit

from beholder.core.errors import ModelError, UnknownName, UsageError

FORM = "openai:MODEL@URL, as in openai:deepseek-vl2@http://127.0.0.1:8000/v1"
REMOVED = "[key removed]"
SHORTEST_SECRET = 8
"""A shorter key (`EMPTY`, `none`) is a word like any other and protects nothing: it is not searched for."""
OPTIONS = ("image", "quality", "side", "answers", "draws", "revision")


@dataclass(frozen=True)
class Asking:
    """How a picture travels and how an answer is read; every field moves a score."""

    image: str = "png"
    """`png`, or `jpeg` at `quality`."""
    quality: int = 95
    side: int = 1024
    """Longest side in pixels; larger pictures are made smaller, smaller ones stay."""
    answers: str = "auto"
    """`logprobs`, `sampled`, whichever the server can give, or `guided`: sampled, and the server allows only the two
    words."""
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

    @property
    def name(self) -> str:
        """What the user calls it, without the query."""
        return f"openai:{self.model}@{self.url.scheme}://{self.url.netloc}{self.url.path}"


def read_address(text: str) -> Address:
    """`MODEL@URL` with options in the query; anything else is refused, without repeating what may be a secret."""
    model, at, rest = text.rpartition("@http")
    if not (at and model):
        raise ModelError(f"A served model is named {FORM}.")
    url = _checked_url(f"http{rest}")
    options = dict(parse_qsl(url.query, keep_blank_values=True))
    for name in options:
        if name not in OPTIONS:
            raise UnknownName("option of a served model", name, OPTIONS)
    path = re.sub(r"/chat/completions$", "", url.path.rstrip("/"))
    url = url._replace(query="", fragment="", path=path)
    return Address(model, url, _asking(options), options.get("revision"))


def _checked_url(text: str) -> SplitResult:
    try:
        url = urlsplit(text)
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
    return url


def _asking(options: Mapping[str, str]) -> Asking:
    for name, known in (("image", ("png", "jpeg")), ("answers", ("auto", "logprobs", "sampled", "guided"))):
        if name in options and options[name] not in known:
            raise UnknownName(f"way of '{name}'", options[name], known, where="A served model")
    chosen: dict[str, Any] = {name: options[name] for name in ("image", "answers") if name in options}
    for name, low, high in (("quality", 1, 100), ("side", 16, 8192), ("draws", 1, 1000)):
        if name in options:
            chosen[name] = whole_number(name, options[name], low, high)
    return Asking(**chosen)


def whole_number(name: str, text: str, low: int, high: int) -> int:
    """A number the user gave, within its limits."""
    if not text.isdecimal() or not low <= int(text) <= high:
        raise UsageError(f"'{name}' of a served model is a whole number from {low} to {high}, not '{text}'.")
    return int(text)


@dataclass(frozen=True)
class Key:
    """A secret: it is sent to the one server, and shown nowhere."""

    value: str = field(default="", repr=False)

    def headers(self) -> dict[str, str]:
        """What goes with every request."""
        return {"Authorization": f"Bearer {self.value}"} if self.value else {}

    def cut_from(self, said: Any) -> Any:
        """What a server said (text, or JSON with texts anywhere in it), without the key.

        >>> Key("s3cret-key").cut_from({"id": "model of s3cret-key", "also": ["c2VjcmV0OiBzM2NyZXQta2V5"]})
        {'id': 'model of [key removed]', 'also': ['c2VjcmV0OiB[key removed]']}
        """
        if isinstance(said, str):
            return self._form.sub(REMOVED, said) if self._form else said
        if isinstance(said, list):
            return [self.cut_from(each) for each in said]
        if isinstance(said, dict):
            return {self.cut_from(name): self.cut_from(each) for name, each in said.items()}
        return said

    def hidden(self, text: str) -> str:
        """A text for people, without the key and without what looks like one."""
        return re.sub(r"(?i)(bearer\s+|\bsk-)(?!\[key)[^\s\"',}]+", r"\1***", str(self.cut_from(text)))

    @cached_property
    def _form(self) -> re.Pattern[str] | None:
        """Every form in which the key may come back: plain, escaped, its first half, base64, hexadecimal."""
        if len(self.value) < SHORTEST_SECRET:
            return None
        head = self.value[: max(SHORTEST_SECRET, len(self.value) // 2)]
        escaped = f"{_escaped(self.value)}|{_escaped(head)}[\\w%.~+/=-]*"
        plain = f"(?i:{re.escape(self.value)}|{escaped}|{self.value.encode().hex()})"
        coded = (f"{re.escape(core)}[\\w+/-]*=*" for core in _in_base64(self.value.encode()))
        return re.compile("|".join((plain, *coded)))


def _escaped(text: str) -> str:
    """A pattern of the text, each character as it is or as URLs, JSON and HTML escape it."""
    return "".join(
        # Atomic: what matches in two ways would take exponential time.
        rf"(?>%(?:25)*{ord(one):02x}|\\u{ord(one):04x}|&#0*{ord(one)};|&#x0*{ord(one):x};"
        rf"|{re.escape(html.escape(one))}|\\?{re.escape(one)})"
        for one in text
    )


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
    if not (value.isascii() and value.isprintable()):
        raise ModelError(f"The key in {name} holds characters that cannot be in a key; it was not sent.")
    return Key(value)


def is_local(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
