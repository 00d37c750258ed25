"""The HTTP endpoints of a running scheduler; all are read-only.

/healthz  /livez  /readyz         probes, as of kube-scheduler: ?verbose, ?exclude=NAME
/metrics                          for Prometheus
/decisions                        the last decisions: ?namespace= &outcome= &limit=
/decisions/NAMESPACE/NAME         the attempts at one pod, the newest with all its details, and
                                  where it waits and which events would wake it
/shadow                           the comparison with the other scheduler: ?text, ?v with ties
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.config import Config

from podium.errors import InputError
from podium.kube.http_rules import LOOPBACK, is_host
from podium.library.decision_json import API_VERSION
from podium.past.decisions.causes_now import Causes
from podium.render.decision.analysis import ERROR, HELD, NOMINATED, PLACED, UNSCHEDULABLE
from podium.serving.access.delegated_access import failure
from podium.serving.endpoints.bounded_server import BoundedProtocol, BoundedServer, PortLimits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from podium.engine.framework.decision import Decision
    from podium.past.decisions.decision_log import DecisionLog, LoggedAttempt
    from podium.past.replay.recorded_past import RecordedPast
    from podium.scheduler.telemetry.metrics import Metrics
    from podium.serving.endpoints.health import Check, Health

#: Says of a pod (`namespace/name`) where it waits and what would wake it; None if it does not.
Waiting = Callable[[str], "dict[str, Any] | None"]
#: Finds the causes of a decision about a pod, by its key.
FindCauses = Callable[[str, "Decision"], Awaitable[Causes]]
OUTCOMES: Final = (PLACED, NOMINATED, UNSCHEDULABLE, HELD, ERROR)
#: How many decisions are returned by default, and at most.
LIMIT: Final = 100
MOST: Final = 1000
#: How many attempts at one pod are returned.
ATTEMPTS: Final = 20
#: The names of this machine, as they stand in a Host header.
LOCAL_HOSTS: Final = tuple(f"[{each}]" if ":" in each else each for each in sorted(LOOPBACK))
#: How long answers under way may take when the server is stopped.
_SHUTDOWN_SECONDS: Final = 2


class Report(Protocol):
    """The comparison with another scheduler, for /shadow."""

    def as_json(self, *, verbose: bool = False) -> dict[str, Any]:
        """The comparison as JSON data."""

    def table(self, *, verbose: bool = False) -> str:
        """The comparison as text."""


def application(
    health: Health,
    metrics: Metrics | None = None,
    log: DecisionLog | None = None,
    shadow: Report | None = None,
    *,
    waiting: Waiting | None = None,
    past: RecordedPast | None = None,
    causes: FindCauses | None = None,
    loopback: bool = False,
) -> Starlette:
    """The application; with *loopback* it refuses a Host other than this machine's.

    *waiting* says of a pod where it waits and what would wake it. *past* has the decisions that
    are recorded in a history. *causes* finds what led to the reasons of a recorded decision.
    """
    app = _Answers(health, metrics, log, shadow, waiting=waiting, past=past, causes=causes)
    routes = [
        Route("/healthz", app.alive),
        Route("/livez", app.alive),
        Route("/readyz", app.ready),
        Route("/{probe:str}/{check:str}", app.one_check),
    ]
    if metrics is not None:
        routes.insert(0, Route("/metrics", app.metrics))
    if log is not None:
        routes.insert(0, Route("/decisions", app.decisions))
        routes.insert(0, Route("/decisions/{namespace}/{name}", app.pod))
    if shadow is not None:
        routes.insert(0, Route("/shadow", app.shadow))
    guards = [Middleware(TrustedHostMiddleware, allowed_hosts=LOCAL_HOSTS)] if loopback else []
    return Starlette(routes=routes, middleware=guards)


class _Answers:
    """One method per route."""

    def __init__(
        self,
        health: Health,
        metrics: Metrics | None,
        log: DecisionLog | None,
        shadow: Report | None,
        *,
        waiting: Waiting | None,
        past: RecordedPast | None,
        causes: FindCauses | None,
    ) -> None:
        self._health, self._metrics, self._log, self._shadow = health, metrics, log, shadow
        self._waiting, self._past = waiting or _nowhere, past
        self._causes = causes or _unknown

    def _checks(self, probe: str) -> dict[str, Check]:
        ready = self._health.ready if probe == "readyz" else {}
        return {**self._health.alive, **ready}

    async def alive(self, request: Request) -> Response:
        return _checked(request, self._checks("livez"))

    async def ready(self, request: Request) -> Response:
        return _checked(request, self._checks("readyz"))

    async def one_check(self, request: Request) -> Response:
        probe, name = request.path_params["probe"], request.path_params["check"]
        check = self._checks(probe).get(name) if probe in _PROBES else None
        if check is None:
            return PlainTextResponse("404 page not found\n", 404)
        wrong = check()
        text = f"internal server error: {wrong}\n" if wrong else "ok"
        return PlainTextResponse(text, _code(wrong))

    async def metrics(self, request: Request) -> Response:
        assert self._metrics is not None
        text, content_type = self._metrics.exposition(request.headers.get("accept", ""))
        return Response(text, media_type=content_type)

    async def decisions(self, request: Request) -> Response:
        assert self._log is not None
        query = request.query_params
        outcomes = [each for given in query.getlist("outcome") for each in given.split(",")]
        unknown = [each for each in outcomes if each not in OUTCOMES]
        if unknown:
            return _refused(f"outcome={unknown[0]}: known outcomes are {', '.join(OUTCOMES)}")
        given = query.get("limit", str(LIMIT))
        if not given.isdecimal() or len(given) > len(str(MOST)) or not 0 < int(given) <= MOST:
            return _refused(f"limit={given[:20]}: expected a number from 1 to {MOST}")
        found = self._log.recent(
            namespace=query.get("namespace", ""), outcomes=outcomes, limit=int(given)
        )
        waiting = {entry: self._waiting(entry.key) for entry in found if entry.newer is None}
        return await asyncio.to_thread(_listed, found, waiting)

    async def pod(self, request: Request) -> Response:
        assert self._log is not None
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        found = self._log.of(namespace, name)[:ATTEMPTS]
        key = f"{namespace}/{name}"
        waiting = self._waiting(key)
        if not found and waiting is not None:
            return _list([], waiting)
        if not found:
            past = None if self._past is None else await self._past.decision(key)
            if past is not None:
                return _list([past.as_json()])
            return _status(404, "NotFound", f"no decision about pod {namespace}/{name} is kept")
        newest = found[0]
        decision = await asyncio.to_thread(newest.decision)
        past = None
        if self._past is not None and waiting is None:
            # What the cluster was like then is known: the causes are those of then.
            past = await self._past.decision(key, newest.uid, newest.number)
        causes = None if past is not None else await self._causes(key, decision)
        items = await asyncio.to_thread(_attempts, found, causes)
        if past is None and self._past is not None and not items[0].get("scores"):
            past = await self._past.decision(key, newest.uid, newest.number)
        if past is not None:
            items[0] |= past.as_json()
        items[0]["ties"] = found[0].ties
        return _list(items, waiting)

    async def shadow(self, request: Request) -> Response:
        assert self._shadow is not None
        verbose = "v" in request.query_params
        if "text" in request.query_params:
            return PlainTextResponse(self._shadow.table(verbose=verbose))
        return _json(self._shadow.as_json(verbose=verbose))


_PROBES: Final = ("healthz", "livez", "readyz")


def _checked(request: Request, checks: Mapping[str, Check]) -> Response:
    """Run the checks in turn; they are listed when asked for, and when one fails."""
    left_out = set(request.query_params.getlist("exclude"))
    lines, failed = [], False
    for name, check in checks.items():
        if name in left_out:
            lines.append(f"[+]{name} excluded: ok")
            continue
        wrong = check()
        failed = failed or bool(wrong)
        lines.append(f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok")
    probe = request.url.path.strip("/")
    if not failed and "verbose" not in request.query_params:
        return PlainTextResponse("ok")
    lines.append(f"{probe} check {'failed' if failed else 'passed'}")
    return PlainTextResponse("".join(f"{line}\n" for line in lines), _code(failed))


def _code(wrong: object) -> int:
    return 500 if wrong else 200


def _listed(
    entries: list[LoggedAttempt], waiting: Mapping[LoggedAttempt, dict[str, Any] | None]
) -> Response:
    """Attempts without their nodes and scores, and where their pods wait."""
    items = []
    for entry in entries:
        item = entry.as_json(whole=False)
        if (where := waiting.get(entry)) is not None:
            item["waiting"] = where
        items.append(item)
    return _list(items)


def _attempts(entries: list[LoggedAttempt], causes: Causes | None) -> list[dict[str, Any]]:
    """The attempts at a pod; the first with all its details and the causes."""
    newest, *older = entries
    return [newest.as_json(causes=causes), *(entry.as_json(whole=False) for entry in older)]


def _json(value: Any, code: int = 200) -> Response:
    return Response(msgspec.json.encode(value), code, media_type="application/json")


def _list(items: list[dict[str, Any]], waiting: dict[str, Any] | None = None) -> Response:
    found = {"apiVersion": API_VERSION, "kind": "DecisionList", "items": items}
    return _json(found if waiting is None else found | {"waiting": waiting})


async def _unknown(_: str, __: Decision) -> Causes:
    """No causes, where no scheduler can be asked for them."""
    return Causes()


def _nowhere(_: str) -> None:
    """Stands in where no queue is known."""


def _refused(message: str) -> Response:
    return _status(400, "BadRequest", message)


def _status(code: int, reason: str, message: str) -> Response:
    return _json(failure(code, reason, message), code)


def listening(host: str, port: int) -> socket.socket:
    """Open a listening socket; an empty host listens on every interface."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if host and not is_host(host):
        raise InputError(f"cannot listen on {host}:{port}: that is no name or address")
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot listen on {host}:{port}: {reason}") from None


async def serve_on(
    app: ASGIApp,
    listener: socket.socket,
    *,
    tls: SSLContext | None = None,
    limits: PortLimits = PortLimits(),  # noqa: B008  immutable
    lifespan: Literal["on", "off"] = "off",
) -> None:
    """Answer requests on a listening socket until cancelled; with *tls*, over TLS.

    Requests then have the certificate of their connection in their scope.
    """
    config = Config(
        app,
        http=BoundedProtocol,
        ws="none",
        log_level="critical",
        access_log=False,
        lifespan=lifespan,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    config.load()
    server = BoundedServer(config, limits, tls)
    running = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        server.should_exit = True
        await running
        raise
    finally:
        listener.close()
