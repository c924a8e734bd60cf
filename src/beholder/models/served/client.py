"""Requests to one OpenAI-compatible server: many at once, never too many, retried if that can help.

Requests go only to the host of the address: no proxies, no redirects. The server's error messages are passed on,
shortened and without the key.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

from beholder.core.errors import ModelError
from beholder.models.served.address import Key, is_local
from beholder.models.served.answers import Garbled
from beholder.models.served.limits import LONGEST_WAIT, Limits, Pace, Tally, requested_wait

WORTH_ANOTHER_TRY = frozenset((408, 409, 425, 429))
CONNECT_SECONDS = 10.0
LOOK_SECONDS = 0.2
LONGEST_REPLY = 1 << 23
LONGEST_FILE = 1 << 31
CONTENT = "/content"
"""How the address of a file's contents ends."""
CLIP = 300
JSON = "application/json"
ADVICE = {
    401: "\nPut the server's key into the environment variable BEHOLDER_API_KEY or OPENAI_API_KEY.",
    403: "\nThe key in BEHOLDER_API_KEY or OPENAI_API_KEY may not be allowed to use this model.",
    404: "\nThe address usually ends in /v1; the model's name is the one that the server was started with.",
    413: "\nThe pictures are too large for the server: add ?side=512 or ?image=jpeg to its address.",
}
Job = TypeVar("Job")
Result = TypeVar("Result")


class Declined(ModelError):  # noqa: N818
    """The server answers with an error that a retry would not fix."""

    def __init__(self, status: int, code: str, message: str, where: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(f"{where} answers {status}: {message}{ADVICE.get(status, '')}")


class TemporaryFailure(Exception):  # noqa: N818
    """A failure that a retry may fix; `wait` is the pause that the server asks for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        self.wait = wait
        super().__init__(reason)


class Stopped(Exception):  # noqa: N818
    """The run was stopped while this request was under way."""


class Upload(NamedTuple):
    """A body that is not JSON."""

    data: bytes
    content_type: str


class Reply(NamedTuple):
    """What came back over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """One server, one key, one pace."""

    def __init__(self, url: SplitResult, key: Key, limits: Limits, tally: Tally) -> None:
        self._url, self._key = url, key
        self.limits, self.tally, self.pace = limits, tally, Pace(limits.rpm)

    @property
    def where(self) -> str:
        """The server, for messages."""
        return f"{self._url.scheme}://{self._url.netloc}{self._url.path}"

    @property
    def elsewhere(self) -> str:
        """The server's name; empty if it is this machine."""
        return "" if is_local(self._url.hostname or "") else self._url.netloc

    def each(self, jobs: Sequence[Job], work: Callable[[Line, Job], Result]) -> list[Result]:
        """`work` done for every job, several at once, in order; the first error, or Ctrl-C, ends them all."""
        lines = Lines(self)
        pool = ThreadPoolExecutor(max(1, min(self.limits.concurrency, len(jobs))))
        try:
            return _results([pool.submit(lines.do, work, job) for job in jobs])
        finally:
            lines.hang_up()
            pool.shutdown(wait=True, cancel_futures=True)
            lines.close()

    def dial(self) -> http.client.HTTPConnection:
        """An open connection."""
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            context = ssl.create_default_context()
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=CONNECT_SECONDS, context=context
            )
        else:
            made = http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)
        made.connect()
        made.sock.settimeout(self.limits.timeout)
        return made

    def exchange(self, connection: http.client.HTTPConnection, method: str, path: str, body: Upload | None) -> Reply:
        """One request and its reply; the only function that sees the key."""
        kind = {"Content-Type": body.content_type} if body else {}
        headers = {**kind, "Accept": "application/json", **self._key.headers()}
        connection.request(method, self._url.path + path, body.data if body else None, headers)
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
            raise Declined(reply.status, *self._error_text(reply.body), self.where)
        try:
            if lines:
                return [self._key.cut_from(json.loads(line)) for line in reply.body.splitlines() if line.strip()]
            body = self._key.cut_from(json.loads(reply.body))
        except (ValueError, RecursionError):
            raise Garbled(f"the reply is no JSON: {self.clipped(_text(reply.body))}") from None
        if isinstance(body, dict):
            self.tally.reply(body)
        return body

    def clipped(self, text: str) -> str:
        """One short line without secrets."""
        line = " ".join(self._key.hidden(text).split())
        return line[:CLIP] + (" …" if len(line) > CLIP else "")

    def unreachable(self, error: Exception) -> ModelError | None:
        """An error that no retry fixes: no server from the start, or a certificate that cannot be trusted."""
        new = not self.tally.counts["replies"]
        if isinstance(error, ssl.SSLError) or (new and isinstance(error, ConnectionRefusedError | socket.gaierror)):
            if isinstance(error, ssl.SSLCertVerificationError):
                return ModelError(
                    f"{self.where} cannot prove who it is ({error.verify_message}). Nothing was sent to it.\n"
                    "If it is yours, name its certificate in the environment variable SSL_CERT_FILE."
                )
            return ModelError(
                f"No server can be reached at {self.where} ({self.clipped(str(error))}).\n"
                "Start it or correct the address: see docs/served.md."
            )
        return None

    def _error_text(self, body: bytes) -> tuple[str, str]:
        """The code and the message of the server's error."""
        text = _text(body)
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
    """All results, or the first error."""
    while True:
        # Polled: a signal that another thread caught does not end an unlimited wait.
        done, waiting = wait(tasks, LOOK_SECONDS, FIRST_EXCEPTION)
        for task in done:
            if (error := task.exception()) and not isinstance(error, Stopped):
                raise error
        if not waiting:
            return [task.result() for task in tasks]


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")


class Lines:
    """The connections of one round of questions: one per thread, all closed together."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.stopped = threading.Event()
        self._local = threading.local()
        self._all: list[Line] = []
        self._lock = threading.Lock()

    def do(self, work: Callable[[Line, Job], Result], job: Job) -> Result:
        """One job on this thread's connection."""
        try:
            return work(self._line(), job)
        except BaseException:
            self.stopped.set()  # before another job begins
            raise

    def _line(self) -> Line:
        if self.stopped.is_set():
            raise Stopped
        if not hasattr(self._local, "line"):
            self._local.line = Line(self)
            with self._lock:
                self._all.append(self._local.line)
        line: Line = self._local.line
        return line

    def hang_up(self) -> None:
        """Stop sending, and stop waiting for answers."""
        self.stopped.set()
        with self._lock:
            for line in self._all:
                line.cut()

    def close(self) -> None:
        """When all threads have ended."""
        for line in self._all:
            line.close()


class Line:
    """One connection, used by one thread, opened again when it breaks."""

    def __init__(self, lines: Lines) -> None:
        self._lines, self._client = lines, lines.client
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self, method: str, path: str, body: object, read: Callable[[object], Result], *, attempts: int | None = None
    ) -> Result:
        """The reply as `read` reads it; temporary failures are retried with growing pauses."""
        data = body if isinstance(body, Upload | None) else Upload(json.dumps(body).encode(), JSON)
        for attempt in itertools.count(1):
            try:
                return self._attempt(method, path, data, read)
            except TemporaryFailure as failure:
                if attempt > (self._patience() if attempts is None else attempts - 1):
                    raise ModelError(
                        f"{self._client.where} gave no usable answer in {attempt} attempt(s): {failure}\n"
                        "Finished scores are kept: run the same command again to continue."
                    ) from None
                pause = max(failure.wait or 0.0, self._client.limits.wait_before(attempt))
            self._client.tally.add(retries=1)
            self._pause(pause)
        raise AssertionError("unreachable")

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
            reply = client.exchange(self._opened(), method, path, data)
        except (OSError, http.client.HTTPException) as error:
            self._broken(error)
        client.tally.add(replies=1)
        try:
            return read(client.read(reply, lines=path.endswith(CONTENT)))
        except Garbled as error:
            raise TemporaryFailure(str(error)) from None
        except Declined as error:
            self._judge(error, reply)
            raise

    def _opened(self) -> http.client.HTTPConnection:
        if self._connection is None or self._connection.sock is None:
            self._connection = self._client.dial()
            if self._lines.stopped.is_set():
                raise Stopped
        return self._connection

    def _broken(self, error: Exception) -> None:
        """Handle a broken connection: the run was stopped, the server is unreachable, or it may recover."""
        self.close()
        if self._lines.stopped.is_set():
            raise Stopped from None
        if unreachable := self._client.unreachable(error):
            raise unreachable from None
        if isinstance(error, TimeoutError):
            raise TemporaryFailure(f"no reply within {self._client.limits.timeout:g} seconds") from None
        raise TemporaryFailure(self._client.clipped(str(error) or type(error).__name__)) from None

    def _judge(self, error: Declined, reply: Reply) -> None:
        """Raise a temporary failure if a later retry may succeed."""
        if error.status not in WORTH_ANOTHER_TRY and error.status < 500:
            return
        wait_seconds = requested_wait(reply.headers)
        if wait_seconds and wait_seconds > LONGEST_WAIT:
            raise ModelError(f"{error}\nIt asks for a pause of {wait_seconds:.0f} seconds. Finished scores are kept.")
        if wait_seconds:
            self._client.pace.rest(wait_seconds)
        raise TemporaryFailure(f"{error.status}: {error.message}", wait_seconds) from None

    def _patience(self) -> int:
        """The number of retries; a server that has never replied gets one."""
        retries = self._client.limits.retries
        return retries if self._client.tally.counts["replies"] else min(1, retries)

    def _pause(self, seconds: float) -> None:
        if self._lines.stopped.wait(seconds) if seconds > 0 else self._lines.stopped.is_set():
            raise Stopped
