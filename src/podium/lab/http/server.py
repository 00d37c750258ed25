"""The API server: the REST API over a registry, as an ASGI application.

The server routes a request by its path, reads and checks its body, and lets the registry act. It
sends the response in the representation that the client accepts. `security` decides before whether
a request is served at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import secrets

from podium.lab.api.resources import TABLE, Resource
from podium.lab.api.status import StatusError, bad_request, internal, unknown_path
from podium.lab.http.discovery import Discovery
from podium.lab.http.requests import (
    ClientDisconnected,
    Receive,
    Request,
    Route,
    Scope,
    Send,
    negotiate,
    parse_resource_version,
    route,
)
from podium.lab.http.responses import (
    Response,
    error_response,
    json_response,
    line_writer,
    send_response,
)
from podium.lab.http.security import ServiceAccountTokens
from podium.lab.http.verbs import Verbs, representation
from podium.lab.http.watches import ChangeSignals, Watch, WatchOptions
from podium.lab.registry.registry import Registry
from podium.lab.store.selection import selection
from podium.releases import DEFAULT_RELEASE, Release

_LOG = logging.getLogger(__name__)
#: Seconds that a client may take to read the lines of a watch before the watch is closed.
_SEND_TIMEOUT = 60.0
_HEALTH_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
_NO_CACHE = ((b"cache-control", b"no-cache, private"),)


class ApiServer:
    """The ASGI application."""

    def __init__(
        self,
        registry: Registry,
        tokens: ServiceAccountTokens | None = None,
        release: Release = DEFAULT_RELEASE,
    ) -> None:
        """Serve the objects of *registry*; *tokens* are those of service accounts.

        `/version` has the *release*, by which clients and commands know what decides.
        """
        self.registry = registry
        self.release = release
        self.tokens = tokens or ServiceAccountTokens(registry, secrets.token_bytes(32))
        self.verbs = Verbs(registry, self.tokens)
        self._signals = ChangeSignals(registry.store)
        #: The documents of discovery, and the generation of custom resources they are made for.
        self._discovery, self._discovered = Discovery(TABLE, release), 0
        journal = registry.store.journal
        if journal is not None:
            journal.listeners.append(self._signals.notify_all)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            return
        try:
            request = Request(scope, receive)
            response = await self._respond(request, receive, send)
            if response is not None:
                await send_response(send, response, _NO_CACHE)
        except StatusError as error:
            await send_response(send, error_response(error), _NO_CACHE)
        except ClientDisconnected:
            return

    async def _respond(self, request: Request, receive: Receive, send: Send) -> Response | None:
        """The response, `None` if it was a watch, which has been sent already."""
        document = self._document(request)
        if document is not None:
            return document
        where = route(request.path, self.registry.custom)
        is_watch = where.watch or request.flag("watch")
        if request.method == "GET" and not where.subresource and is_watch:
            await self._watch(request, where, receive, send)
            return None
        try:
            response = await self.verbs.respond(request, where)
        except (StatusError, ClientDisconnected):
            raise
        except Exception as error:  # one failed request must not end the server
            _LOG.exception("%s %s", request.method, request.path)
            raise internal(f"{type(error).__name__}: {error}") from error
        journal = self.registry.store.journal
        # What cannot be written now can still be read.
        if journal is not None and not (journal.failure and request.method in {"GET", "HEAD"}):
            await journal.wait_durable()
        return response

    def _document(self, request: Request) -> Response | None:
        """Health, discovery and OpenAPI: responses that need no object."""
        path = request.path.rstrip("/") or "/"
        if path in _HEALTH_PATHS or path.startswith(("/healthz/", "/livez/", "/readyz/")):
            return self._health(path)
        custom = self.registry.custom
        if path.startswith("/openapi/"):
            return _openapi(path, request.header(b"accept"), tuple(custom))
        if path.count("/") > 3 or request.method not in {"GET", "HEAD"}:
            return None
        if self._discovered != custom.generation:
            self._discovery = Discovery((*TABLE, *custom), self.release)
            self._discovered = custom.generation
        version = ""
        if path in {"/api", "/apis"}:
            version = negotiate(request.header(b"accept")).discovery
        found = self._discovery.document(path, request.header(b"host"), aggregated=version)
        if found is None:
            return None
        response = json_response(found)
        if version:
            kind = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            return response._replace(content_type=kind.encode())
        return response

    def _health(self, path: str) -> Response:
        """Ready, unless the store cannot be written; a restart does not mend that."""
        journal = self.registry.store.journal
        failure = "" if journal is None else journal.failure
        if failure and not path.startswith("/livez"):
            check = path.split("/")[1]
            text = f"[-]store failed: {failure}\n{check} check failed\n"
            return Response(500, text.encode(), b"text/plain; charset=utf-8")
        return Response(200, b"ok", b"text/plain; charset=utf-8")

    async def _watch(self, request: Request, where: Route, receive: Receive, send: Send) -> None:
        """Send the lines of a watch until the client disconnects or the watch ends."""
        watch, options = self._open_watch(request, where)
        journal = self.registry.store.journal
        if journal is not None:
            journal.attach(asyncio.get_running_loop())
        headers = [(b"content-type", b"application/json"), *_NO_CACHE]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        disconnected = asyncio.ensure_future(_until_disconnected(receive))
        lines = asyncio.ensure_future(_send_lines(watch, options, send))
        try:
            await asyncio.wait({disconnected, lines}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnected.cancel()
            lines.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError, TimeoutError):
                await lines
        if lines.done() and not lines.cancelled() and lines.exception() is None:
            await send({"type": "http.response.body", "body": b""})

    def _open_watch(self, request: Request, where: Route) -> tuple[Watch, WatchOptions]:
        """The watch that the request asks for, and its options."""
        resource, store = where.resource, self.registry.store
        if "watch" not in resource.verbs:
            raise unknown_path()
        fields = request.parameter("fieldSelector")
        if where.name:
            fields = f"{fields},metadata.name={where.name}".strip(",")
        selected = selection(resource, request.parameter("labelSelector"), fields)
        writer = line_writer(resource, representation(request))
        options = _watch_options(request, store.durable_version)
        watch = Watch(store, self._signals, resource, where.namespace, selected, line_writer=writer)
        return watch, options


def _watch_options(request: Request, current: int) -> WatchOptions:
    """The options of a watch; *current* is the version of the newest durable event."""
    timeout = request.number("timeoutSeconds") or random.randint(1800, 3600)  # noqa: S311
    version = parse_resource_version(request.parameter("resourceVersion"))
    initial = request.parameter("sendInitialEvents")
    if initial and request.parameter("resourceVersionMatch") != "NotOlderThan":
        raise bad_request(
            "sendInitialEvents: Forbidden: sendInitialEvents requires setting "
            "resourceVersionMatch to NotOlderThan"
        )
    bookmarks = request.flag("allowWatchBookmarks")
    send_existing = request.flag("sendInitialEvents") if initial else not version
    if initial and not send_existing and not version:
        version = current
    return WatchOptions(
        since=None if send_existing else version,
        bookmarks=bookmarks,
        initial_events_end=send_existing and bool(initial) and bookmarks,
        seconds=float(timeout),
    )


async def _send_lines(watch: Watch, options: WatchOptions, send: Send) -> None:
    async for lines in watch.stream(options):
        async with asyncio.timeout(_SEND_TIMEOUT):
            await send({"type": "http.response.body", "body": lines, "more_body": True})


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _openapi(path: str, accept: str, custom: tuple[Resource, ...]) -> Response:
    """An OpenAPI document; kubectl asks for version 2 as a protocol buffer."""
    from podium.lab.http import openapi  # noqa: PLC0415  tens of milliseconds

    match path.split("/", 3)[2:]:
        case ["v2"] if "protobuf" in accept:
            return Response(200, openapi.v2_protobuf(custom), openapi.V2_PROTOBUF.encode())
        case ["v2"]:
            return Response(200, openapi.v2_json(custom))
        case ["v3"]:
            return Response(200, openapi.v3_index(custom))
        case ["v3", name]:
            return Response(200, openapi.v3_document(name, custom))
    raise unknown_path()
