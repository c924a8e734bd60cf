"""The viewer's server: read-only, on this machine, behind a token in the address.

Every address begins with the token. Only GET is answered, only for the hosts named at the start, and never to a page
of another origin.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from beholder.core.errors import BeholderError
from beholder.view import PictureError, ScoredSet

PAGE = Path(__file__).parent / "page"
LONGEST_QUERY = 4096
T = TypeVar("T")
MOST_ROWS = 200
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


class Guard(BaseHTTPMiddleware):
    """Refuses what the viewer is not for, before anything is read."""

    async def dispatch(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        """Own origin, short query, and the headers of every answer."""
        origin = request.headers.get("origin")
        if origin and origin != f"{request.url.scheme}://{request.headers.get('host')}":
            response: Response = PlainTextResponse("Another page may not ask this viewer.", 403)
        elif len(request.url.query) > LONGEST_QUERY:
            response = PlainTextResponse("The question is too long.", 414)
        else:
            response = await call_next(request)
        response.headers.update(HEADERS)
        return response


class Viewer:
    """Answers about these sheets; whoever asks has to know the token."""

    def __init__(self, sheets: list[ScoredSet], token: str) -> None:
        self._sheets, self._token = sheets, token

    def answer(self, work: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        """The work as an endpoint: with the right token, in a thread, and errors of ours as answers."""

        async def endpoint(request: Request) -> Response:
            if not secrets.compare_digest(str(request.path_params["token"]), self._token):
                return PlainTextResponse("Wrong token: use the address that `beholder view` printed.", 403)
            try:
                return await run_in_threadpool(work, request)
            except PictureError as error:
                return PlainTextResponse(str(error), 404)
            except (BeholderError, ValueError, KeyError, IndexError) as error:
                return PlainTextResponse(f"This cannot be answered: {error}", 400)

        return endpoint

    def list_sheets(self, request: Request) -> Response:
        """Everything that can be looked at."""
        return JSONResponse([described(sheet) for sheet in self._sheets])

    def rank(self, request: Request) -> Response:
        """Pictures in the order of their scores, or those that surprise."""
        (sheet, prompt), query = self._asked(request), request.query_params
        where = json.loads(query.get("where", "{}"))
        surprise = query.get("surprising")
        order = (
            sheet.surprising(prompt, surprise, str(where[surprise]))
            if surprise
            else sheet.ranked(prompt, where, lowest=query.get("order") == "lowest")
        )
        start = max(int(query.get("offset", "0")), 0)
        chosen = order[start : start + min(int(query.get("limit", "60")), MOST_ROWS)]
        other = _at(self._sheets, query["with"], "sheet") if "with" in query else None
        return JSONResponse({"total": len(order), "rows": rows(sheet, chosen, prompt, other)})

    def distributions(self, request: Request) -> Response:
        """The scores of a prompt by group."""
        sheet, prompt = self._asked(request)
        return JSONResponse(sheet.distributions(prompt, request.query_params["by"]))

    def nearest(self, request: Request) -> Response:
        """The picture whose score is nearest to a value."""
        (sheet, prompt), query = self._asked(request), request.query_params
        place = sheet.nearest(prompt, float(query["value"]), json.loads(query.get("where", "{}")))
        return JSONResponse(rows(sheet, np.array([] if place is None else [place], dtype=int), prompt, None))

    def picture(self, request: Request) -> Response:
        """One picture, made small."""
        sheet = self._sheets[int(request.path_params["sheet"])]
        side = int(request.query_params.get("side", "160"))
        return Response(sheet.picture(int(request.path_params["place"]), max(side, 16)), media_type="image/jpeg")

    def _asked(self, request: Request) -> tuple[ScoredSet, int]:
        sheet = _at(self._sheets, request.query_params["sheet"], "sheet")
        return sheet, _at(range(len(sheet.task.prompts)), request.query_params["prompt"], "prompt")


def _at(things: Sequence[T], place: str, kind: str) -> T:
    if not 0 <= int(place) < len(things):
        raise BeholderError(f"there is no {kind} {int(place)}")
    return things[int(place)]


def page_file(request: Request) -> Response:
    """A file of the page itself."""
    path = PAGE / (request.path_params.get("name") or "index.html")
    if path.parent != PAGE or path.suffix not in TYPES or not path.is_file():
        return PlainTextResponse("Not here.", 404)
    return Response(path.read_bytes(), media_type=TYPES[path.suffix])


def viewer(sheets: list[ScoredSet], token: str, hosts: list[str] | None = None) -> Starlette:
    """The application; every address begins with `/token/`."""
    answers = Viewer(sheets, token)
    works = {
        "": page_file,
        "api/sheets": answers.list_sheets,
        "api/rank": answers.rank,
        "api/distributions": answers.distributions,
        "api/nearest": answers.nearest,
        "picture/{sheet:int}/{place:int}": answers.picture,
        "{name:str}": page_file,
    }
    routes = [Route(f"/{{token}}/{path}", answers.answer(work)) for path, work in works.items()]
    allowed = hosts or ["127.0.0.1", "localhost", "[::1]"]
    middleware = [Middleware(Guard), Middleware(TrustedHostMiddleware, allowed_hosts=allowed)]
    return Starlette(routes=routes, middleware=middleware)


def described(sheet: ScoredSet) -> dict[str, object]:
    """A sheet for the page: what was asked, and what people can be told apart by."""
    prompts = sheet.task.prompts.table
    return {
        "run": sheet.run,
        "study": sheet.study,
        "model": sheet.model,
        "dataset": sheet.task.dataset.name,
        "set": sheet.task.name,
        "images": sheet.images.height,
        "people": sheet.people.described(),
        "prompts": prompts["text"].to_list(),
        "attributes": sheet.attributes,
    }


def rows(
    sheet: ScoredSet, places: npt.NDArray[np.int_], prompt: int, other: ScoredSet | None
) -> list[dict[str, object]]:
    """Pictures with score and labels; with another sheet, the same picture's score there."""
    labels = sheet.images[places.tolist()].select(list(sheet.attributes)).cast(pl.String).to_dicts()
    ids = sheet.images["image_id"].to_list()
    text, elsewhere = sheet.task.prompts.texts[prompt], {}
    if other is not None and text in (texts := other.task.prompts.texts):
        column = other.scores[:, texts.index(text)]
        elsewhere = dict(zip(other.images["image_id"].to_list(), column.tolist(), strict=True))
    return [
        {
            "place": int(place),
            "score": number(sheet.scores[place, prompt]),
            "other": number(elsewhere.get(ids[place])),
            "labels": labels[at],
        }
        for at, place in enumerate(places.tolist())
    ]


def number(value: float | None) -> float | None:
    """A score as JSON has it: absent is null."""
    return None if value is None or np.isnan(value) else float(value)
