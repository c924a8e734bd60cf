"""The viewer's server: read-only, on this machine, behind a token in the address.

Every address begins with the token. Only GET is answered, only for the hosts named at the start, and never to a page
of another origin.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from beholder._run import FILES, Run
from beholder.core.errors import BeholderError
from beholder.core.read import parse_json
from beholder.core.types import Ints
from beholder.report.page import render
from beholder.report.report import slug
from beholder.view import Opening, PictureError, ScoredSet, opening

PAGE = Path(__file__).parent / "page"
LONGEST_QUERY = 4096
UNITS = {"belief": "share of the model’s belief among the prompts of one level", "cosine": "cosine × 100"}
T = TypeVar("T")
Runs = Sequence[tuple[Path, Run]]
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
FRAMED = {"Content-Security-Policy": "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}
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
        response.headers.update({name: text for name, text in HEADERS.items() if name not in response.headers})
        return response


class Viewer:
    """Answers about these sets; whoever asks has to know the token."""

    def __init__(self, sets: list[ScoredSet], token: str, opens: Opening | None = None, runs: Runs = ()) -> None:
        self._sets, self._token, self._opens, self._runs = sets, token, opens, runs
        self._names = [slug(folder.resolve().name) for folder, _ in runs]
        self._page = cache(lambda run: render(runs[run][1].report, viewer="../../?finding="))

    def answer(self, work: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        """The work as an endpoint: with the right token, in a thread, and errors of ours as answers."""

        async def endpoint(request: Request) -> Response:
            if not secrets.compare_digest(request.path_params["token"].encode(), self._token.encode()):
                return PlainTextResponse("Wrong token: use the address that `beholder view` printed.", 403)
            try:
                return await run_in_threadpool(work, request)
            except PictureError as error:
                return PlainTextResponse(str(error), 404)
            except KeyError as error:
                return PlainTextResponse(f"This cannot be answered: the question lacks {error}.", 400)
            except (BeholderError, ValueError) as error:
                return PlainTextResponse(f"This cannot be answered: {error}", 400)

        return endpoint

    def list_sets(self, request: Request) -> Response:
        """Everything that can be looked at: what was asked, and by what people are grouped."""
        described = [
            {
                **{name: getattr(scored, name) for name in ("run", "study", "model", "attributes")},
                "dataset": scored.task.dataset.name,
                "set": scored.task.name,
                "images": scored.images.height,
                "people": scored.people.described(),
                "unit": UNITS.get(scored.unit, scored.unit),
                "prompts": scored.task.prompts.texts,
                "report": self._names.index(scored.run) if scored.run in self._names else None,
            }
            for scored in self._sets
        ]
        return JSONResponse(described)

    def opening(self, request: Request) -> Response:
        """The finding that the page opens on, and where."""
        wanted = request.query_params.get("finding")
        opens = opening(self._sets, [run for _, run in self._runs], wanted) if wanted else self._opens
        return JSONResponse(opens._asdict() if opens else None)

    def report(self, request: Request) -> Response:
        """A run's page, whose findings lead to their pictures here, and the files beside it."""
        (folder, _), name = _at(self._runs, request.path_params["run"], "run"), request.path_params["name"]
        if name == "report.html":  # its own policy is in it
            return Response(self._page(request.path_params["run"]), media_type="text/html", headers=FRAMED)
        if name not in FILES or not (folder / name).is_file():
            return PlainTextResponse("Not here.", 404)
        return Response((folder / name).read_bytes(), media_type="application/octet-stream")

    def rank(self, request: Request) -> Response:
        """Pictures in the order of their scores, or those that surprise."""
        (scored, prompt), query = self._asked(request), request.query_params
        where, surprise, typical = labels(query), query.get("surprising"), query.get("typical")
        if surprise:
            order = scored.surprising(prompt, surprise, where.get(surprise, ""))
        elif typical:
            order = scored.typical(prompt, typical, where)
        else:
            order = scored.ranked(prompt, where, lowest=query.get("order") == "lowest")
        start = max(int(query.get("offset", "0")), 0)
        chosen = order[start : start + min(int(query.get("limit", "60")), MOST_ROWS)]
        other = _at(self._sets, query["with"], "set") if "with" in query else None
        return JSONResponse({"total": len(order), "rows": rows(scored, chosen, prompt, other)})

    def distributions(self, request: Request) -> Response:
        """The scores of a prompt by group."""
        scored, prompt = self._asked(request)
        return JSONResponse(scored.distributions(prompt, request.query_params["by"]))

    def nearest(self, request: Request) -> Response:
        """The picture whose score is nearest to a value."""
        (scored, prompt), query = self._asked(request), request.query_params
        place = scored.nearest(prompt, float(query["value"]), labels(query))
        return JSONResponse(rows(scored, np.array([] if place is None else [place], dtype=int), prompt, None))

    def picture(self, request: Request) -> Response:
        """One picture, made small."""
        scored = _at(self._sets, request.path_params["set"], "set")
        side = int(request.query_params.get("side", "160"))
        return Response(scored.picture(int(request.path_params["place"]), max(side, 16)), media_type="image/jpeg")

    def _asked(self, request: Request) -> tuple[ScoredSet, int]:
        scored = _at(self._sets, request.query_params["set"], "set")
        return scored, _at(range(len(scored.task.prompts)), request.query_params["prompt"], "prompt")


def labels(query: Mapping[str, str]) -> dict[str, str]:
    """The group of each attribute that is asked for."""
    where = parse_json(query.get("where", "{}"), "where")
    if not isinstance(where, dict) or not all(isinstance(group, str) for group in where.values()):
        raise BeholderError('where names a group of each attribute, such as {"gender": "woman"}')
    return where


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


def viewer(
    sets: list[ScoredSet], token: str, hosts: list[str] | None = None, opens: Opening | None = None, runs: Runs = ()
) -> Starlette:
    """The application; every address begins with `/token/`."""
    answers = Viewer(sets, token, opens, runs)
    works = {
        "": page_file,
        "api/sets": answers.list_sets,
        "api/opening": answers.opening,
        "api/rank": answers.rank,
        "api/distributions": answers.distributions,
        "api/nearest": answers.nearest,
        "picture/{set:int}/{place:int}": answers.picture,
        "run/{run:int}/{name:str}": answers.report,
        "{name:str}": page_file,
    }
    routes = [Route(f"/{{token}}/{path}", answers.answer(work)) for path, work in works.items()]
    allowed = hosts or ["127.0.0.1", "localhost", "[::1]"]
    middleware = [Middleware(Guard), Middleware(TrustedHostMiddleware, allowed_hosts=allowed)]
    return Starlette(routes=routes, middleware=middleware)


def rows(scored: ScoredSet, places: Ints, prompt: int, other: ScoredSet | None) -> list[dict[str, object]]:
    """Pictures with score and labels; with another set, the same picture's score there."""
    labels = scored.images[places.tolist()].select(list(scored.attributes)).cast(pl.String).to_dicts()
    ids = scored.images["image_id"].to_list()
    text, elsewhere = scored.task.prompts.texts[prompt], {}
    if other is not None and text in (texts := other.task.prompts.texts):
        column = other.scores[:, texts.index(text)]
        elsewhere = dict(zip(other.images["image_id"].to_list(), column.tolist(), strict=True))
    made: list[dict[str, object]] = []
    for place, named in zip(places.tolist(), labels, strict=True):
        score, other_score = number(scored.scores[place, prompt]), number(elsewhere.get(ids[place]))
        said = [scored.said(score, prompt)]
        if elsewhere and other:
            said.append(other.said(other_score, texts.index(text)))
        about = ", ".join(filter(None, (words(name, value) for name, value in named.items())))
        numbers = {"place": place, "score": score, "other": other_score}
        made.append({**numbers, "said": " / ".join(said), "about": about, "labels": named})
    return made


def words(name: str, value: str | None) -> str:
    """A label as it is read: what is not so is left out, and a bare number says what it counts."""
    name = name.replace("_", " ")
    if value in (None, "", "false"):
        return ""
    return name if value == "true" else f"{name} {value}" if re.fullmatch(r"[\d.–-]+", str(value)) else str(value)


def number(value: float | None) -> float | None:
    """A score as JSON has it: absent is null."""
    return None if value is None or np.isnan(value) else float(value)
