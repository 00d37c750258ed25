"""The API server: Kubernetes' REST over a registry, as a plain ASGI application.

A request is routed by its path, its body read and checked, the registry asked, and the answer
written in the form that the client accepts. Who may ask at all is decided before, in `security`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random

from podium.lab.api.status import StatusError, bad_request, internal, unknown_path
from podium.lab.http import answers, discovery
from podium.lab.http.answers import Answer
from podium.lab.http.listing import version_of
from podium.lab.http.negotiation import accepted
from podium.lab.http.requests import Disconnected, Receive, Request, Route, Scope, Send, route
from podium.lab.http.verbs import Verbs
from podium.lab.http.watching import Bells, Watch, WatchOptions
from podium.lab.registry.registry import Registry
from podium.lab.store.selection import selection

_LOG = logging.getLogger(__name__)
#: How long a client may take to read what it was sent, in seconds.
_PATIENCE = 60.0
_HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
_STREAM = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")]


class ApiServer:
    """The ASGI application."""

    def __init__(self, registry: Registry) -> None:
        """Serve *registry*."""
        self.registry = registry
        self.verbs = Verbs(registry)
        self._bells = Bells(registry.store)
        journal = registry.store.journal
        if journal is not None:
            journal.listeners.append(self._bells.ring_all)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            request = Request(scope, receive)
            answer = await self._answered(request, receive, send)
            if answer is not None:
                await _reply(send, answer)
        except StatusError as error:
            await _reply(send, answers.refusal(error))
        except Disconnected:
            return

    async def _answered(self, request: Request, receive: Receive, send: Send) -> Answer | None:
        """The answer, or nothing when it was a stream that has already been written."""
        path = request.path
        document = self._document(request)
        if document is not None:
            return document
        where = route(path)
        if (
            request.method == "GET"
            and not where.subresource
            and (where.watch or request.flag("watch"))
        ):
            await self._watch(request, where, receive, send)
            return None
        try:
            answer = await self.verbs.answer(request, where)
        except (StatusError, Disconnected):
            raise
        except Exception as error:  # the server stays up, whatever a request brings out
            _LOG.exception("%s %s", request.method, path)
            raise internal(f"{type(error).__name__}: {error}") from error
        journal = self.registry.store.journal
        if journal is not None:
            await journal.durable()
        return answer

    def _document(self, request: Request) -> Answer | None:
        """Health and discovery, whatever asks for no object."""
        path = request.path.rstrip("/") or "/"
        if path in _HEALTH or path.startswith(("/healthz/", "/livez/", "/readyz/")):
            return Answer(200, b"ok", b"text/plain; charset=utf-8")
        if path.startswith("/openapi/"):
            return openapi(path, request.header(b"accept"))
        if path.count("/") > 3 or request.method not in {"GET", "HEAD"}:
            return None
        accept = request.header(b"accept")
        form = accepted(accept).aggregated if path in {"/api", "/apis"} else ""
        found = discovery.answer(path, form, request.header(b"host"))
        if found is None:
            return None
        answer = answers.document(found)
        if form:
            kind = f"application/json;g=apidiscovery.k8s.io;v={form};as=APIGroupDiscoveryList"
            return answer._replace(type=kind.encode())
        return answer

    async def _watch(self, request: Request, where: Route, receive: Receive, send: Send) -> None:
        """Stream what happens to a collection until the client or the time is over."""
        watch, ask = self._watching(request, where)
        journal = self.registry.store.journal
        if journal is not None:
            journal.attach(asyncio.get_running_loop())
        await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        gone = asyncio.ensure_future(_until_gone(receive))
        stream = asyncio.ensure_future(_pump(watch, ask, send))
        try:
            await asyncio.wait({gone, stream}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            stream.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError, TimeoutError):
                await stream
        if stream.done() and not stream.cancelled() and stream.exception() is None:
            await send({"type": "http.response.body", "body": b""})

    def _watching(self, request: Request, where: Route) -> tuple[Watch, WatchOptions]:
        row, ask = where.row, request.parameters
        if "watch" not in row.verbs:
            raise unknown_path()
        fields = ask.get("fieldSelector", "")
        if where.name:
            fields = f"{fields},metadata.name={where.name}".strip(",")
        wanted = selection(row, ask.get("labelSelector", ""), fields)
        form = accepted(request.header(b"accept"))
        line = answers.liner(row, form, ask.get("includeObject", ""))
        seconds = request.number("timeoutSeconds") or random.randint(1800, 3600)  # noqa: S311
        version = version_of(ask.get("resourceVersion", ""))
        initial = ask.get("sendInitialEvents", "")
        if initial and ask.get("resourceVersionMatch") != "NotOlderThan":
            raise bad_request(
                "sendInitialEvents: Forbidden: sendInitialEvents requires setting "
                "resourceVersionMatch to NotOlderThan"
            )
        bookmarks = request.flag("allowWatchBookmarks")
        everything = request.flag("sendInitialEvents") if initial else not version
        if initial and not everything and not version:
            version = self.registry.store.durable
        options = WatchOptions(
            since=None if everything else version,
            bookmarks=bookmarks,
            initial_end=everything and bool(initial) and bookmarks,
            seconds=float(seconds),
        )
        store = self.registry.store
        watch = Watch(store, self._bells, row, where.namespace, wanted, line=line)
        return watch, options


async def _pump(watch: Watch, ask: WatchOptions, send: Send) -> None:
    async for lines in watch.stream(ask):
        async with asyncio.timeout(_PATIENCE):
            await send({"type": "http.response.body", "body": lines, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reply(send: Send, answer: Answer) -> None:
    headers = [
        (b"content-type", answer.type),
        (b"content-length", str(len(answer.body)).encode()),
        (b"cache-control", b"no-cache, private"),
        *answer.headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def openapi(path: str, accept: str) -> Answer:
    """The descriptions of the API's types; kubectl wants version 2 as a protocol buffer."""
    from podium.lab.openapi import documents  # noqa: PLC0415  tens of milliseconds

    match path.split("/", 3)[2:]:
        case ["v2"] if "protobuf" in accept:
            return Answer(200, documents.v2_protobuf(), documents.V2_PROTOBUF.encode())
        case ["v2"]:
            return Answer(200, documents.v2_json())
        case ["v3"]:
            return Answer(200, documents.v3_index())
        case ["v3", name]:
            return Answer(200, documents.v3_document(name))
    raise unknown_path()
