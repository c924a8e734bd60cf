"""Requests to one OpenAI-compatible server: many at once, never too many, retried if that can help.

Requests go only to the host of the address: no proxies, no redirects. The server's error messages are passed on,
shortened and without the key.
"""

import contextlib
import http.client
import json
import queue
import re
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

from beholder.core.errors import ModelError
from beholder.models.scorer import WIDE
from beholder.models.served.address import Key, Limits, is_local
from beholder.models.served.protocol import Garbled, part

WORTH_ANOTHER_TRY = frozenset((408, 409, 425, 429))
CONNECT_SECONDS = 10.0
LOOK_SECONDS = 0.2
LONGEST_WAIT = 600.0  # seconds; a server that asks for a longer pause ends the run; the next run continues
LONGEST_REPLY = 1 << 23
LONGEST_FILE = 1 << 31
CONTENT = "/content"  # how the address of a file's contents ends
CLIP = 300
ADVICE = {
    401: "\nPut the server's key into the environment variable {keys}.",
    403: "\nThe key in {keys} may not be allowed to use this model.",
    404: "\nThe address usually ends in /v1; the model's name is the one that the server was started with.",
    413: "\nThe pictures are too large for the server: add ?side=512 or ?image=jpeg to its address.",
}
TOO_LARGE = re.compile(
    r"\b(image|picture|payload|file)\b.{0,60}\b(too (large|big)|exceeds?\b|larger than)", re.IGNORECASE
)
Job = TypeVar("Job")
Result = TypeVar("Result")


class Declined(ModelError):  # noqa: N818
    """The server answers with an error that a retry would not fix."""

    def __init__(self, status: int, code: str, message: str, where: str, keys: str) -> None:
        self.status, self.code, self.message = status, code, message
        self.too_large = status == 413 or (status < 500 and bool(TOO_LARGE.search(message)))
        advice = (ADVICE[413] if self.too_large else ADVICE.get(status, "")).format(keys=keys)
        super().__init__(f"{where} answers {status}: {message}{advice}")


class TemporaryFailure(Exception):  # noqa: N818
    """A failure that a retry may fix; `wait` is the pause that the server asks for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        self.wait = wait
        super().__init__(reason)


class Stopped(Exception):  # noqa: N818
    """The run was stopped while this request was under way."""


class Upload(NamedTuple):
    """The body of a request."""

    data: bytes
    content_type: str = "application/json"


class Reply(NamedTuple):
    """What came back over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """One server, one key, one pace."""

    key_names = "BEHOLDER_API_KEY or OPENAI_API_KEY"

    def __init__(self, url: SplitResult, key: Key, limits: Limits) -> None:
        self.url, self._key = url, key
        self.limits, self.tally, self.pace = limits, Tally(), Pace(limits.rpm)
        self.where = f"{url.scheme}://{url.netloc}{url.path}"
        self.elsewhere = "" if is_local(url.hostname or "") else url.netloc  # empty if the server is this machine

    def each(self, jobs: Sequence[Job], work: Callable[["Line", Job], Result]) -> list[Result]:
        """`work` done for every job, several at once, in order; the first error, or Ctrl-C, ends them all."""
        stopped, free = threading.Event(), queue.SimpleQueue[Line]()
        lines = [Line(self, stopped) for _ in range(max(1, min(self.limits.concurrency, len(jobs))))]
        for line in lines:
            free.put(line)

        def do(job: Job) -> Result:
            line = free.get()
            try:
                if stopped.is_set():
                    raise Stopped
                return work(line, job)
            except BaseException:
                stopped.set()  # before another job begins
                raise
            finally:
                free.put(line)

        pool = ThreadPoolExecutor(len(lines))
        try:
            return _results([pool.submit(do, job) for job in jobs])
        finally:
            stopped.set()
            for line in lines:
                line.cut()
            pool.shutdown(wait=True, cancel_futures=True)
            for line in lines:
                line.close()

    def ask(
        self, method: str, path: str, body: object, read: Callable[[object], Result], attempts: int | None = None
    ) -> Result:
        """One request by itself."""
        return self.each([path], lambda line, path: line.ask(method, path, body, read, attempts=attempts))[0]

    def exchange(self, line: "Line", method: str, path: str, body: Upload | None) -> Reply:
        """One request and its reply; the only function that sees the key."""
        kind, connection = {"Content-Type": body.content_type} if body else {}, line.opened()
        headers = {**kind, "Accept": "application/json", **self._key.headers()}
        connection.request(method, self.url.path + path, body.data if body else None, headers)
        answer = connection.getresponse()
        longest = LONGEST_FILE if path.endswith(CONTENT) else LONGEST_REPLY
        data = answer.read(longest)
        if not answer.isclosed() and answer.read(1):  # without a length, only the next read finds the end
            raise http.client.HTTPException(f"the reply is longer than {longest} bytes")
        headers = self._key.cut_from({name.lower(): value for name, value in answer.getheaders()})
        return Reply(answer.status, headers, data)

    def read(self, reply: Reply, *, lines: bool = False) -> object:
        """The reply's JSON without the key, or a list of one JSON value per line; an error where the server says so."""
        if 300 <= reply.status < 400:
            raise ModelError(self._redirected(reply))
        if reply.status != 200:
            raise Declined(reply.status, *self._error_text(reply.body), self.where, self.key_names)
        try:
            if lines:
                return [self._without_key(json.loads(line)) for line in reply.body.splitlines() if line.strip()]
            body = self._without_key(json.loads(reply.body))
        except (ValueError, RecursionError):
            raise Garbled(f"the reply is no JSON: {self.clipped(reply.body.decode('utf-8', 'replace'))}") from None
        if isinstance(body, dict):
            if body.get("error") and not body.get("choices"):  # some gateways say 200 whatever happened
                code, message = self._error_text(reply.body)
                raise Declined(int(code) if code.isdecimal() else 400, code, message, self.where, self.key_names)
            self.tally.reply(body)
        return body

    def _without_key(self, said: object) -> Any:
        """A reply's JSON without the key, but for the answers: they are scored as they came, and are kept nowhere."""
        cut = self._key.cut_from(said)
        if isinstance(said, dict):
            cut |= {name: said[name] for name in ("choices", "prompt_logprobs") if name in said}
            if isinstance(response := said.get("response"), dict) and "body" in response:  # of a batch
                cut["response"] = {**self._key.cut_from(response), "body": self._without_key(response["body"])}
        return cut

    def clipped(self, text: str) -> str:
        """One short line without secrets."""
        line = " ".join(self._key.hidden(text).split())
        return line[:CLIP] + (" …" if len(line) > CLIP else "")

    def failure(self, error: Exception) -> Exception:
        """Of a broken connection: what no retry fixes (no server, or one that cannot be trusted), or what one may."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return ModelError(
                f"{self.where} cannot prove who it is ({error.verify_message}). Nothing was sent to it.\n"
                "If it is yours, name its certificate in the environment variable SSL_CERT_FILE."
            )
        new = not self.tally.counts["replies"]
        if isinstance(error, ssl.SSLError) or (new and isinstance(error, ConnectionRefusedError | socket.gaierror)):
            return ModelError(
                f"No server can be reached at {self.where} ({self.clipped(str(error))}).\n"
                "Start it or correct the address: see docs/served.md."
            )
        if isinstance(error, TimeoutError):
            return TemporaryFailure(f"no reply within {self.limits.timeout:g} seconds")
        return TemporaryFailure(self.clipped(str(error) or type(error).__name__))

    def _error_text(self, body: bytes) -> tuple[str, str]:
        text = body.decode("utf-8", "replace")
        with contextlib.suppress(ValueError, RecursionError):
            error = self._key.cut_from(json.loads(text))
            error = error.get("error", error) if isinstance(error, dict) else error
            if isinstance(error, dict):
                return str(error.get("code") or ""), self.clipped(str(error.get("message") or text))
        return "", self.clipped(text) or "(nothing)"

    def _redirected(self, reply: Reply) -> str:
        try:
            target = urlsplit(reply.headers.get("location", ""))
            destination = f"{target.scheme}://{target.hostname}" if target.hostname else "another path of its own"
        except ValueError:
            destination = "what is no address"
        return (
            f"{self.where} redirects to {self.clipped(destination)}. Pictures and keys are sent only to the given "
            "address: if you trust the new one, use it yourself."
        )


def _results(tasks: Sequence[Future[Result]]) -> list[Result]:
    while True:
        # Polled: a signal that another thread caught does not end an unlimited wait.
        done, waiting = wait(tasks, LOOK_SECONDS, FIRST_EXCEPTION)
        for task in done:
            if (error := task.exception()) and not isinstance(error, Stopped):
                raise error
        if not waiting:
            return [task.result() for task in tasks]


class Line:
    """One connection, used by one thread at a time, opened again when it breaks."""

    def __init__(self, client: Client, stopped: threading.Event) -> None:
        self._client, self._stopped = client, stopped
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self, method: str, path: str, body: object, read: Callable[[object], Result], *, attempts: int | None = None
    ) -> Result:
        """The reply as `read` reads it; temporary failures are retried with growing pauses."""
        data = body if isinstance(body, Upload | None) else Upload(json.dumps(body).encode())
        client = self._client
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._attempt(method, path, data, read)
            except TemporaryFailure as failure:
                # A server that has never replied gets one retry.
                patience = client.limits.retries if client.tally.counts["replies"] else min(1, client.limits.retries)
                if attempt > (patience if attempts is None else attempts - 1):
                    raise ModelError(
                        f"{client.where} gave no usable answer in {attempt} attempt(s): {failure}\n"
                        "Finished scores are kept: run the same command again to continue."
                    ) from None
                pause = max(failure.wait or 0.0, client.limits.wait_before(attempt))
            client.tally.add(retries=1)
            self._pause(pause)

    def cut(self) -> None:
        """Called from another thread: ends the wait for this connection's answer."""
        sock = self._connection.sock if self._connection else None
        if sock:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection until it is needed again."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def _attempt(self, method: str, path: str, data: Upload | None, read: Callable[[object], Result]) -> Result:
        client = self._client
        self._pause(client.pace.seconds_until_turn())
        client.tally.add(requests=1)
        try:
            reply = client.exchange(self, method, path, data)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise (Stopped() if self._stopped.is_set() else client.failure(error)) from None
        client.tally.add(replies=1)
        try:
            return read(client.read(reply, lines=path.endswith(CONTENT)))
        except Garbled as error:
            raise TemporaryFailure(str(error)) from None
        except Declined as error:
            if error.status not in WORTH_ANOTHER_TRY and error.status < 500:
                raise
            seconds = requested_wait(reply.headers)
            if seconds and seconds > LONGEST_WAIT:
                message = f"{error}\nIt asks for a pause of {seconds:.0f} seconds. Finished scores are kept."
                raise ModelError(message) from None
            client.pace.rest(seconds or 0.0)
            raise TemporaryFailure(f"{error.status}: {error.message}", seconds) from None

    def opened(self) -> http.client.HTTPConnection:
        """The connection, made anew if it broke."""
        if self._connection is None or self._connection.sock is None:
            url = self._client.url
            made = http.client.HTTPConnection(url.hostname or "", url.port, timeout=CONNECT_SECONDS)
            if url.scheme == "https":
                context = ssl.create_default_context()
                made = http.client.HTTPSConnection(made.host, url.port, timeout=CONNECT_SECONDS, context=context)
            made.connect()
            made.sock.settimeout(self._client.limits.timeout)
            self._connection = made
            if self._stopped.is_set():
                raise Stopped
        return self._connection

    def _pause(self, seconds: float) -> None:
        if self._stopped.wait(seconds) if seconds > 0 else self._stopped.is_set():
            raise Stopped


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


# What it has cost so far

REMARKS = {
    "refused": "the answer, or most of the draws, was neither of the two expected words.",
    "unseen": "a wanted word was not among the returned tokens: "
    "its probability is the middle of its bounds, which are stored beside it.",
    "wide": "a probability is known only to more than 0.01; the widest bounds are {widest:.2g} apart.",
}


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
        tokens = {name: part(body, "usage").get(name) for name in ("prompt_tokens", "completion_tokens")}
        self.add(**{name: value for name, value in tokens.items() if isinstance(value, int)})
        if isinstance(fingerprint := body.get("system_fingerprint"), str):
            with self._lock:
                self.fingerprints[fingerprint[:80]] += 1

    def cell(self, *, width: float, refused: bool, unseen: bool) -> None:
        """One cell as it was read."""
        self.widest = max(self.widest, width)
        self.add(cells=1, refused=int(refused), unseen=int(unseen), wide=int(width > WIDE))

    def drawn(self, answers: Sequence[str]) -> None:
        """One cell's draws, before they are counted."""
        if len(answers) > 1:
            self.add(drawn=1, alike=int(len(set(answers)) == 1))

    def notes(self, limits: Limits) -> list[str]:
        """For the record of a run."""
        count, notes = self.counts, []
        if count["requests"]:
            tokens = count["prompt_tokens"], count["completion_tokens"]
            money = limits.money(*tokens)
            cost = "" if money is None else f"; cost {money:,.4f} at the prices given"
            traffic = f"{count['requests']:,} requests, {count['retries']:,} of them repeated"
            notes.append(f"{traffic}; {tokens[0]:,} tokens in, {tokens[1]:,} out{cost}.")
        if (versions := len(self.fingerprints)) > 1:
            names = ", ".join(sorted(self.fingerprints)[:5]) + (" …" if versions > 5 else "")
            notes.append(f"Answers came from {versions} different server versions: {names}.")
        for key, text in REMARKS.items():
            if count[key]:
                notes.append(f"In {count[key]:,} of {count['cells']:,} cells {text.format(widest=self.widest)}")
        if count["drawn"] and count["drawn"] == count["alike"]:
            notes.append(
                "All draws of a cell are word for word the same, in every cell: the server may not be sampling. "
                "If so, the bounds are too narrow."
            )
        return notes
