"""The data of the pages under `/podium/v1/`, as JSON."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from podium.errors import PodiumError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

    from podium.serving.page_data.page_data import PageData

    Handler = Callable[[Request], Awaitable[Response]]

_T = TypeVar("_T")
logger = logging.getLogger(__name__)

#: The most bytes of a manifest or configuration.
LARGEST_BODY: Final = 1 << 20
JSON: Final = "application/json"
#: Seconds between two looks at the revision; changes in between are sent together.
INTERVAL: Final = 0.2
#: Seconds after which an event is sent even if nothing changed.
LONGEST_SILENCE: Final = 1.0


def data_routes(page_data: PageData, *, read_only: bool = False) -> list[Route]:
    """The routes, relative to `/podium/v1`; *read_only* ones change nothing."""
    handlers = _Handlers(page_data, read_only=read_only)
    return [
        Route("/cluster", _with_errors(handlers.cluster)),
        Route("/nodes/{name}", _with_errors(handlers.node)),
        Route("/pods", _with_errors(handlers.pods)),
        Route("/pending", _with_errors(handlers.pending)),
        Route("/groups/{namespace}/{name}", _with_errors(handlers.group)),
        Route("/timeline", _with_errors(handlers.timeline)),
        Route("/past", _with_errors(handlers.past)),
        Route("/past/cluster", _with_errors(handlers.cluster_at)),
        Route("/past/nodes/{name}", _with_errors(handlers.node_at)),
        Route("/past/timeline", _with_errors(handlers.timeline_at)),
        Route("/past/decisions/{namespace}/{name}", _with_errors(handlers.decision_at)),
        Route("/decisions/{namespace}/{name}", _with_errors(handlers.decision)),
        Route("/fixes/{namespace}/{name}", _with_errors(handlers.fixes), methods=["GET", "POST"]),
        Route("/explain", _with_errors(handlers.explain), methods=["POST"]),
        Route("/profile", _with_errors(handlers.profile), methods=["GET", "PUT"]),
        Route("/what-if", _with_errors(handlers.what_if), methods=["POST"]),
        Route("/plan", _with_errors(handlers.plan), methods=["POST"]),
        Route("/compare", _with_errors(handlers.compare), methods=["POST"]),
        Route("/capacity", _with_errors(handlers.capacity), methods=["POST"]),
        Route("/history", _with_errors(handlers.history)),
        Route("/stream", _with_errors(handlers.stream)),
    ]


class _RequestError(Exception):
    """A request that is answered with a status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status = status
        super().__init__(sentence)


def _with_errors(handler: Handler) -> Handler:
    """*handler* with its errors as responses of one sentence."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except _RequestError as error:
            return _json({"error": str(error)}, error.status)
        except PodiumError as error:
            return _json({"error": str(error)}, 422)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:
            logger.exception("%s %s", request.method, request.url.path)
            return _json({"error": "the question failed; the log says why"}, 500)

    return handle


class _Handlers:
    """The handlers of the routes, one method each."""

    def __init__(self, page_data: PageData, *, read_only: bool) -> None:
        self._page_data, self._read_only = page_data, read_only

    async def cluster(self, request: Request) -> Response:
        cursor = request.query_params.get("since", "")
        return _cached(request, await self._page_data.cluster(cursor))

    async def node(self, request: Request) -> Response:
        name = request.path_params["name"]
        return _cached(request, _there(self._page_data.node(name), f"there is no node {name}"))

    async def pods(self, request: Request) -> Response:
        return _cached(request, {"pods": self._page_data.find_pods(_query(request))})

    async def pending(self, request: Request) -> Response:
        given = request.query_params
        namespace, labels = given.get("namespace", ""), given.get("labels", "")
        return _cached(request, self._page_data.pending(_query(request), namespace, labels))

    async def group(self, request: Request) -> Response:
        namespace, name = _named(request)
        found = self._page_data.group(namespace, name)
        return _cached(request, _there(found, f"there is no pod group {namespace}/{name}"))

    async def timeline(self, request: Request) -> Response:
        return _cached(request, self._page_data.timeline(*_wanted_entries(request)))

    async def past(self, request: Request) -> Response:
        return _cached(request, await self._page_data.past_chart())

    async def cluster_at(self, request: Request) -> Response:
        return _json(await self._page_data.cluster_at(_moment(request)))

    async def node_at(self, request: Request) -> Response:
        name = request.path_params["name"]
        found = await self._page_data.node_at(_moment(request), name)
        return _json(_there(found, f"there was no node {name}"))

    async def timeline_at(self, request: Request) -> Response:
        at, wanted = _moment(request), _wanted_entries(request)
        return _json(await self._page_data.timeline_at(at, *wanted))

    async def decision_at(self, request: Request) -> Response:
        namespace, name = _named(request)
        found = await self._page_data.decision_at(_moment(request), namespace, name)
        sentence = f"no decision about pod {namespace}/{name} is recorded up to that time"
        return _json(_there(found, sentence))

    async def decision(self, request: Request) -> Response:
        namespace, name = _named(request)
        text = request.query_params.get("attempt", "")
        attempt = int(text) if text.isdecimal() and len(text) < 16 else 0
        found = await self._page_data.decision(namespace, name, attempt)
        return _cached(request, _there(found, f"there is no pod {namespace}/{name}"))

    async def fixes(self, request: Request) -> Response:
        """The fixes of a pending pod; a fix that is posted is tried."""
        namespace, name = _named(request)
        if request.method == "POST":
            posted = await _json_object(request)
            found = await self._page_data.try_fix(namespace, name, posted)
        else:
            found = await self._page_data.fixes(namespace, name)
        return _json(_there(found, f"no pod {namespace}/{name} is pending"))

    async def explain(self, request: Request) -> Response:
        return _json(await self._page_data.explain(await _body(request)))

    async def profile(self, request: Request) -> Response:
        if request.method == "PUT" and self._read_only:
            raise _RequestError(403, "these pages are read-only: rules are changed elsewhere")
        if request.method == "PUT":
            return _json(await self._page_data.apply(await _json_object(request)))
        limits = {"readOnly": True} if self._read_only else {}
        return _cached(request, self._page_data.profile() | limits)

    async def what_if(self, request: Request) -> Response:
        return await _streamed(self._page_data.what_if(await _json_object(request)))

    async def plan(self, request: Request) -> Response:
        wanted = await _json_object(request)
        return _json(await _while_connected(request, self._page_data.plan(wanted)))

    async def compare(self, request: Request) -> Response:
        return await _streamed(self._page_data.compare(await _json_object(request)))

    async def capacity(self, request: Request) -> Response:
        return _json(await self._page_data.capacity(await _json_object(request)))

    async def history(self, request: Request) -> Response:
        return _cached(request, {"history": self._page_data.history()})

    async def stream(self, _: Request) -> Response:
        return StreamingResponse(
            stream(self._page_data),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )


async def _while_connected(request: Request, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of *work*, which is cancelled when the client ends the connection."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.wait([working, leaving])


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _streamed(steps: AsyncIterator[Any]) -> Response:
    """A line of JSON for each step of a comparison; the last one has the result.

    Errors of the profiles are raised before the first line, and are ordinary errors.
    """
    first = await anext(steps)
    return StreamingResponse(_lines(first, steps), media_type="application/x-ndjson")


async def _lines(first: Any, rest: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    yield msgspec.json.encode(first) + b"\n"
    try:
        async for each in rest:
            yield msgspec.json.encode(each) + b"\n"
    except PodiumError as error:
        yield msgspec.json.encode({"error": str(error)}) + b"\n"
    except Exception:
        # The status has been sent already, so that the error must be a line.
        logger.exception("the comparison failed")
        yield msgspec.json.encode({"error": "the comparison failed; the log says why"}) + b"\n"


def _there(found: _T | None, sentence: str) -> _T:
    """What was found; 404 with a sentence if it is nothing."""
    if found is None:
        raise _RequestError(404, sentence)
    return found


def _named(request: Request) -> tuple[str, str]:
    """The namespace and the name in the path of a request."""
    return request.path_params["namespace"], request.path_params["name"]


def _wanted_entries(request: Request) -> tuple[str, str, str, str]:
    """Which entries of a timeline are asked for: text, namespace, labels, and what happened."""
    given = request.query_params
    return (
        *(_query(request), given.get("namespace", "")),
        *(given.get("labels", ""), given.get("what", "")),
    )


def _moment(request: Request) -> float:
    """The time that a request asks about, in seconds since 1970."""
    text = request.query_params.get("at", "")
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        sentence = f"at: {text!r} is no time; seconds since 1970 would be one, as at=1790000000"
        raise _RequestError(400, sentence)
    return found


def _query(request: Request) -> str:
    return request.query_params.get("q", "").strip()


async def _json_object(request: Request) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(await _body(request))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _RequestError(400, f"the request is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise _RequestError(400, "the request is JSON, but not an object")
    return value


async def _body(request: Request) -> bytes:
    """The body of a request; 413 if it is too large."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            raise _RequestError(413, f"the request is larger than {LARGEST_BODY >> 20} MiB")
        parts.append(part)
    return b"".join(parts)


def _cached(request: Request, data: Any) -> Response:
    """The data with an `ETag`, or 304 if the client has it already."""
    body = msgspec.json.encode(data)
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return Response(body, media_type=JSON, headers={"ETag": tag})


def _json(data: Any, status: int = 200) -> Response:
    return Response(
        msgspec.json.encode(data),
        status,
        media_type=JSON,
        headers={"Cache-Control": "no-store"},
    )


async def stream(page_data: PageData) -> AsyncIterator[bytes]:
    """Events named `pulse` with the summary; the first one is sent at once."""
    yield b"retry: 2000\n\n"
    sent: object = None
    silence = 0.0
    while True:
        revision = page_data.revision()
        if revision != sent or silence >= LONGEST_SILENCE:
            sent, silence = revision, 0.0
            yield b"event: pulse\ndata: " + msgspec.json.encode(page_data.summary()) + b"\n\n"
        await asyncio.sleep(INTERVAL)
        silence += INTERVAL
