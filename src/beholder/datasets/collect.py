"""Portraits of named people from Wikipedia and Wikimedia Commons, each with its licence and attribution.

By the API's etiquette: one request after the other, a pause between them, a contact, and waiting when the server says
so. Answers are kept. Who belongs to which group stands in the user's table or in a statement of Wikidata that is kept
with its source; nothing is ever guessed from a name or a face.
"""

import html
import io
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import polars as pl
from PIL import Image

from beholder import __version__
from beholder.core.digests import digest
from beholder.core.errors import DataError, MissingData, UsageError, first_line
from beholder.core.files import write_whole
from beholder.core.read import as_csv, parse_json, read_json, read_table, require_form, text_columns, with_plain_names
from beholder.core.types import Entry

TITLES = 50  # in one request; the API takes no more
TRIES = 6
LARGEST = 64 << 20  # bytes of an answer
PICTURES = "upload.wikimedia.org"  # where files of every wiki lie
ENDINGS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}
LICENCES = ("cc[ -]?0", r"cc[ -]by(?:[ -]sa)?(?:[ -]\d|$)", "pd", "public domain", "gfdl", "attribution", r"fal\b")
FREE = re.compile(rf"^(?:{'|'.join(LICENCES)})", re.IGNORECASE)
RESTRICTED = re.compile(r"\b(?:nc|nd|non-?commercial|no-?deriv\w*)\b", re.IGNORECASE)
MOVED = [{"from": str, "to": str}]
PAGE = {"title": str, "?pageprops": dict[str, Any], "?pageimage": str, "?imageinfo": [dict[str, Any]]}
FORM = {"?pages": [PAGE], "?normalized": MOVED, "?redirects": MOVED}
GENDER = "P21"  # Wikidata's property, and its values
GENDERS = {"Q6581072": "woman", "Q6581097": "man", "Q1052281": "trans woman", "Q2449503": "trans man"}
GENDERS |= {"Q48270": "non-binary"}
FOUND = ("image", "gender", "gender_source", "licence", "licence_url", "artist", "credit", "page", "file_page")


@dataclass
class Wiki:
    """The servers, and how they are asked."""

    contact: str  # whom the servers' people can write to
    folder: Path  # where answers are kept
    url: str = "https://en.wikipedia.org"
    wikidata: str = "https://www.wikidata.org"
    pause: float = 1.0  # seconds between two requests
    sleep: Callable[[float], None] = time.sleep

    def ask(self, server: str, **query: str) -> Entry:
        """An answer of the API; one that is kept is not asked for again."""
        query = {"format": "json", "formatversion": "2", "maxlag": "5", **query}
        kept = self.folder / f"{digest([server, query])}.json"
        if kept.is_file():
            return _object(read_json(kept), str(kept))
        address = f"{server}/w/api.php?{urlencode(query)}"
        bodies = (body.decode("utf-8", "replace") for body in self._answers(address, server))
        answers = (_object(parse_json(body, address), address) for body in bodies)
        while error := (answer := next(answers)).get("error"):
            if error.get("code") not in ("maxlag", "ratelimited"):
                raise MissingData(f"{server} refused: {str(error.get('info', error))[:200]}")
        write_whole(kept, json.dumps(answer).encode())
        return answer

    def picture(self, address: str) -> bytes:
        """The bytes of a picture; it must lie where the wikis keep their files."""
        parts, own = urlsplit(address), urlsplit(self.url)
        if (parts.scheme, parts.netloc) not in (("https", PICTURES), (own.scheme, own.netloc)):
            raise DataError(f"{address} is not where {self.url} keeps its files.")
        return next(self._answers(address, parts.netloc))

    def _answers(self, address: str, server: str) -> Iterator[bytes]:
        """What the server answers, asked again after longer and longer pauses; an error if it stays busy."""
        for attempt in range(TRIES):
            body, wait = self._get(address)
            if body:
                yield body
            self.sleep(max(wait, 5.0 * 2**attempt))
        raise MissingData(f"{server} is too busy. Try again later: what was found is kept.")

    def _get(self, address: str) -> tuple[bytes, float]:
        """The bytes, or none and how long to wait."""
        self.sleep(self.pause)
        agent = f"Beholder/{__version__} (portraits for an audit; {self.contact})"
        request, server = urllib.request.Request(address, headers={"User-Agent": agent}), urlsplit(address).netloc
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                body = answer.read(LARGEST + 1)
        except urllib.error.HTTPError as error:
            if error.code in (429, 500, 502, 503, 504):
                after = error.headers.get("Retry-After") or ""
                return b"", float(after) if after.isdecimal() else 0.0
            gone = DataError if error.code in (404, 410) else MissingData  # of one address, or of the whole server
            raise gone(f"{server} answered {error.code} ({error.reason}).") from error
        except OSError as error:
            raise MissingData(f"{server} cannot be reached ({error}). What was found is kept: run it again.") from error
        if len(body) > LARGEST:
            raise DataError(f"{address} is larger than {LARGEST >> 20} MB.")
        return body, 0.0


def _object(value: Any, name: str) -> Entry:
    if not isinstance(value, dict):
        raise DataError(f"{name}: the answer is no JSON object.")
    return value


def read_names(path: Path) -> pl.DataFrame:
    """The user's table: a column `name`, and optionally `title` (of the page), `gender`, and whatever it declares."""
    return text_columns(with_plain_names(read_table(path), str(path)), ["name"], path)


def collect(
    names: pl.DataFrame,
    out: Path,
    wiki: Wiki,
    *,
    free_only: bool = True,
    width: int = 640,
    advance: Callable[[int], None] = lambda count: None,
) -> tuple[pl.DataFrame, dict[str, str]]:
    """The table with pictures, licences and groups, and for every name without a picture why it has none."""
    if not wiki.contact.strip():
        raise UsageError("Wikimedia asks for a contact: --contact with an address or page of yours.")
    people = [(row.get("title") or row["name"], row) for row in names.to_dicts()]
    pages = _pages(wiki, list(dict.fromkeys(title for title, _ in people)), free_only=free_only)
    files = _files(wiki, sorted({page["pageimage"] for page in pages.values() if page.get("pageimage")}), width)
    lacking = {_item(pages[title]) for title, row in people if not row.get("gender")}
    groups = _groups(wiki, sorted(lacking - {""}))
    rows, without = list[Entry](), dict[str, str]()
    for title, row in people:
        page = pages[title]
        entry = files.get(page.get("pageimage", ""), {})
        reason = _refused(page, entry, free_only=free_only) or _fetched(wiki, out, entry)
        if reason:
            without[row["name"]] = reason
        else:
            gender = (row["gender"], "the user's table") if row.get("gender") else groups.get(_item(page), (None, None))
            found = {"image": _name(entry), "gender": gender[0], "gender_source": gender[1], **_credits(entry)}
            rows.append({**row, **found, "page": f"{wiki.url}/wiki/{page['title'].replace(' ', '_')}"})
        advance(1)
    columns = list(dict.fromkeys([*names.columns, *FOUND]))
    table = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
    write_whole(out / "people.csv", as_csv(table))
    write_whole(out / "without.csv", as_csv(pl.DataFrame(list(without.items()), ["name", "reason"], orient="row")))
    return table, without


def _found(wiki: Wiki, titles: Sequence[str], **wanted: str) -> Iterator[tuple[str, Entry]]:
    """The page of every title, after what the wiki normalises and redirects."""
    for some in (titles[start : start + TITLES] for start in range(0, len(titles), TITLES)):
        answer: Entry = wiki.ask(wiki.url, action="query", titles="|".join(some), **wanted).get("query", {})
        require_form(answer, FORM, Path(wiki.url))  # the form that the API documents
        moved = {each["from"]: each["to"] for kind in ("normalized", "redirects") for each in answer.get(kind, [])}
        pages = {page["title"]: page for page in answer.get("pages", [])}
        for title in some:
            last, seen = title, set[str]()
            while last in moved and last not in seen:
                seen.add(last)
                last = moved[last]
            yield title, pages.get(last, {"title": title, "missing": True})


def _pages(wiki: Wiki, titles: Sequence[str], *, free_only: bool) -> dict[str, Entry]:
    """The page of every title, with the name of its picture and its item in Wikidata."""
    if odd := [title for title in titles if "|" in title]:
        raise DataError(f"{odd[0]!r} cannot be the title of a page: it has a |.")
    wanted = {"prop": "pageimages|pageprops", "piprop": "name", "pilicense": "free" if free_only else "any"}
    wanted |= {"ppprop": "wikibase_item|disambiguation", "redirects": "1", "pilimit": str(TITLES)}
    return dict(_found(wiki, titles, **wanted))


def _files(wiki: Wiki, names: Sequence[str], width: int) -> dict[str, Entry]:
    """What is known of every file, by the name that pages have for it."""
    wanted = {"prop": "imageinfo", "iiprop": "url|size|mime|sha1|extmetadata", "iiurlwidth": str(width)}
    pages = _found(wiki, [f"File:{name}" for name in names], **wanted)
    return {title.removeprefix("File:"): next(iter(page.get("imageinfo", [])), {}) for title, page in pages}


def _groups(wiki: Wiki, items: Sequence[str]) -> dict[str, tuple[str, str]]:
    """What Wikidata states of every item, where it states one thing, with where that stands."""
    made: dict[str, tuple[str, str]] = {}
    for start in range(0, len(items), TITLES):
        some = "|".join(items[start : start + TITLES])
        answer = wiki.ask(wiki.wikidata, action="wbgetentities", ids=some, props="claims")
        for item, entity in answer.get("entities", {}).items():
            stated = [each for each in entity.get("claims", {}).get(GENDER, []) if each.get("rank") != "deprecated"]
            best = [each for each in stated if each.get("rank") == "preferred"] or stated
            values = {_value(each) for each in best} - {""}
            if len(values) == 1:
                (value,) = values
                sources = sum(len(each.get("references", [])) for each in best)
                made[item] = (GENDERS.get(value, value), f"{wiki.wikidata}/wiki/{item}#{GENDER} ({sources} references)")
    return made


def _value(statement: Mapping[str, Any]) -> str:
    value = statement.get("mainsnak", {}).get("datavalue", {}).get("value", {})
    return str(value.get("id", "")) if isinstance(value, dict) else ""


def _item(page: Mapping[str, Any]) -> str:
    return str(page.get("pageprops", {}).get("wikibase_item", ""))


def _meta(entry: Mapping[str, Any], *names: str) -> str:
    """The first of these facts that a file's page states, without its markup."""
    stated = entry.get("extmetadata") or {}
    texts = (str(stated[name].get("value", "")) for name in names if isinstance(stated.get(name), dict))
    plain = (" ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split()) for text in texts)
    return next(filter(None, plain), "")


def _credits(entry: Mapping[str, Any]) -> dict[str, str]:
    return {
        "licence": _meta(entry, "LicenseShortName", "License", "UsageTerms"),
        "licence_url": _meta(entry, "LicenseUrl"),
        "artist": _meta(entry, "Attribution", "Artist"),
        "credit": _meta(entry, "Credit"),
        "file_page": str(entry.get("descriptionurl", "")),
    }


def is_free(entry: Mapping[str, Any]) -> bool:
    """Whether a file's page states a licence that lets anyone use it for anything."""
    codes = (_meta(entry, "License"), _meta(entry, "LicenseShortName"))
    if any(map(RESTRICTED.search, codes)):
        return False
    return any(map(FREE.match, codes)) and _meta(entry, "NonFree").lower() not in ("true", "1")


def _refused(page: Mapping[str, Any], entry: Mapping[str, Any], *, free_only: bool) -> str:
    """Why there is no picture of this person; empty where there is one."""
    if page.get("missing") or page.get("invalid"):
        return "no page of this title: add a column 'title'"
    if "disambiguation" in page.get("pageprops", {}):
        return "several people have this name: add a column 'title' with the page that is meant"
    if not page.get("pageimage"):
        return "the page has no free picture" if free_only else "the page has no picture"
    if entry.get("mime") not in ENDINGS or not entry.get("sha1"):
        return f"the page's picture is no photograph ({entry.get('mime', 'unknown')})"
    if free_only and not is_free(entry):
        return f"the licence is not free: {_credits(entry)['licence'] or 'none is stated'}"
    return ""


def _name(entry: Mapping[str, Any]) -> str:
    """The picture's file below the folder: named by its content, so that it is fetched once."""
    key = digest([entry["sha1"], entry.get("thumburl") or entry.get("url")])
    return f"images/{key}{ENDINGS[entry['mime']]}"


def _fetched(wiki: Wiki, out: Path, entry: Mapping[str, Any]) -> str:
    """Fetch a picture that is not there; why it cannot be used, or nothing."""
    path = out / _name(entry)
    if not path.is_file():
        try:
            body = wiki.picture(str(entry.get("thumburl") or entry.get("url")))
            Image.open(io.BytesIO(body)).verify()
        except MissingData:
            raise  # the server, not this picture: what was found is kept for the next time
        except DataError as error:
            return f"the picture cannot be fetched: {first_line(error)}"
        except Exception as error:
            return f"the picture cannot be read: {type(error).__name__}"
        write_whole(path, body)
    return ""
