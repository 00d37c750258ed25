"""The data behind the pages: `/podium/v1/…`, JSON in and out."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from podium.errors import PodiumError
from podium.web.stream import stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from podium.web.page_data import PageData

    Answer = Callable[[Request], Awaitable[Response]]

logger = logging.getLogger(__name__)

#: The largest manifest or configuration that is read.
LARGEST: Final = 1 << 20
JSON: Final = "application/json"


def data_routes(page_data: PageData) -> list[Route]:
    """Every path, relative to `/podium/v1`."""
    asked = _Asked(page_data)
    return [
        Route("/cluster", _told(asked.cluster)),
        Route("/nodes/{name}", _told(asked.node)),
        Route("/pods", _told(asked.pods)),
        Route("/pending", _told(asked.pending)),
        Route("/decisions/{namespace}/{name}", _told(asked.decision)),
        Route("/explain", _told(asked.explain), methods=["POST"]),
        Route("/profile", _told(asked.profile), methods=["GET", "PUT"]),
        Route("/what-if", _told(asked.what_if), methods=["POST"]),
        Route("/history", _told(asked.history)),
        Route("/stream", _told(asked.stream)),
    ]


class _RefusedError(Exception):
    """Answered with a status and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status = status
        super().__init__(sentence)


def _told(answer: Answer) -> Answer:
    """The answer, or the one sentence that says why there is none."""

    async def told(request: Request) -> Response:
        try:
            return await answer(request)
        except _RefusedError as refused:
            return _json({"error": str(refused)}, refused.status)
        except PodiumError as error:
            return _json({"error": str(error)}, 422)
        except ClientDisconnect:
            return Response(status_code=400)

    return told


class _Asked:
    """One method per path."""

    def __init__(self, page_data: PageData) -> None:
        self._page_data = page_data

    async def cluster(self, request: Request) -> Response:
        cursor = request.query_params.get("since", "")
        return _tagged(request, self._page_data.cluster(cursor))

    async def node(self, request: Request) -> Response:
        name = request.path_params["name"]
        found = self._page_data.node(name)
        if found is None:
            raise _RefusedError(404, f"there is no node {name}")
        return _tagged(request, found)

    async def pods(self, request: Request) -> Response:
        return _tagged(request, {"pods": self._page_data.find_pods(_query(request))})

    async def pending(self, request: Request) -> Response:
        return _tagged(request, self._page_data.pending(_query(request)))

    async def decision(self, request: Request) -> Response:
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        asked = request.query_params.get("attempt", "")
        attempt = int(asked) if asked.isdecimal() and len(asked) < 16 else 0
        found = await self._page_data.decision(namespace, name, attempt)
        if found is None:
            raise _RefusedError(404, f"nothing is known of a pod {namespace}/{name}")
        return _tagged(request, found)

    async def explain(self, request: Request) -> Response:
        return _json(self._page_data.explain(await _body(request)))

    async def profile(self, request: Request) -> Response:
        if request.method == "PUT":
            return _json(await self._page_data.apply(await _wish(request)))
        return _tagged(request, self._page_data.profile())

    async def what_if(self, request: Request) -> Response:
        """A line of JSON for each bit of progress; the last one has the result.

        What is wrong with the rules is known before the first line, and is an ordinary refusal.
        """
        steps = self._page_data.what_if(await _wish(request))
        first = await anext(steps)
        return StreamingResponse(_lines(first, steps), media_type="application/x-ndjson")

    async def history(self, request: Request) -> Response:
        return _tagged(request, {"history": self._page_data.history()})

    async def stream(self, _: Request) -> Response:
        return StreamingResponse(
            stream(self._page_data),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )


async def _lines(first: Any, rest: AsyncIterator[Any]) -> AsyncIterator[bytes]:
    yield msgspec.json.encode(first) + b"\n"
    try:
        async for each in rest:
            yield msgspec.json.encode(each) + b"\n"
    except PodiumError as error:
        yield msgspec.json.encode({"error": str(error)}) + b"\n"
    except Exception:
        # The answer has begun, so its status cannot say it any more.
        logger.exception("the comparison failed")
        yield msgspec.json.encode({"error": "the comparison failed; the log says why"}) + b"\n"


def _query(request: Request) -> str:
    return request.query_params.get("q", "").strip()


async def _wish(request: Request) -> dict[str, Any]:
    try:
        wish = msgspec.json.decode(await _body(request))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _RefusedError(400, f"the request is not JSON: {error}") from None
    if not isinstance(wish, dict):
        raise _RefusedError(400, "the request is JSON, but not an object")
    return wish


async def _body(request: Request) -> bytes:
    """What was sent, unless it is too much."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST:
            raise _RefusedError(413, f"the request is larger than {LARGEST >> 20} MiB")
        parts.append(part)
    return b"".join(parts)


def _tagged(request: Request, found: Any) -> Response:
    """The answer, or that the asker has it already."""
    body = msgspec.json.encode(found)
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return Response(body, media_type=JSON, headers={"ETag": tag})


def _json(found: Any, status: int = 200) -> Response:
    return Response(
        msgspec.json.encode(found),
        status,
        media_type=JSON,
        headers={"Cache-Control": "no-store"},
    )
