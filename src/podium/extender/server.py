"""The HTTP server of an extender: a stock kube-scheduler asks Podium's rules.

    POST …/filter  …/prioritize  …/preempt  …/bind     the verbs, under any prefix
    GET  /healthz  /readyz                             probes

Requests are read in both forms of the protocol and answered in the form they came in.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from podium.engine.framework.rule import AttemptError
from podium.extender import wire
from podium.extender.security import LARGEST_BODY, ExtenderGuard
from podium.objects.kinds.pod import Pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request

    from podium.extender.api_server import ClusterFollower
    from podium.extender.cluster_state import ExtenderState
    from podium.extender.verbs import ExtenderVerbs

logger = logging.getLogger(__name__)

#: How many requests are read and answered at a time; the others wait, unread.
MOST_AT_ONCE = 8
VERBS = ("filter", "prioritize", "preempt", "bind")
_NOT_SYNCED = "the cluster is not known yet"


class ExtenderApp:
    """Turns requests into calls of the verbs, and their results into replies.

    Without an API server the cluster is known from files and requests, and nothing can be bound.
    """

    def __init__(
        self,
        verbs: ExtenderVerbs,
        state: ExtenderState,
        api_server: ClusterFollower | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._verbs = verbs
        self._state = state
        self._api_server = api_server
        self._warn = warn or (lambda _: None)
        self._answering = asyncio.Semaphore(MOST_AT_ONCE)
        self._handlers: dict[str, Callable[[wire.ExtenderRequest], Any]] = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
        }

    def asgi(
        self,
        *,
        hosts: frozenset[str] | None = None,
        token: str = "",
        largest_body: int = LARGEST_BODY,
    ) -> ExtenderGuard:
        """The ASGI application.

        It is asked by one of *hosts* (None for any name), and with the *token* if one is given.
        """
        app = Starlette(
            routes=[
                Route("/healthz", self._healthz, methods=["GET"]),
                Route("/readyz", self._readyz, methods=["GET"]),
                Route("/{path:path}", self._verb, methods=["POST"]),
            ],
            lifespan=self._lifespan,
        )
        return ExtenderGuard(app, hosts=hosts, token=token, largest_body=largest_body)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:  # noqa: ARG002
        if self._api_server is None:
            yield
            return
        async with self._api_server:
            yield

    async def _healthz(self, request: Request) -> Response:  # noqa: ARG002
        return PlainTextResponse("ok")

    async def _readyz(self, request: Request) -> Response:  # noqa: ARG002
        if self._is_ready:
            return PlainTextResponse("ok")
        return PlainTextResponse(_NOT_SYNCED, status_code=503)

    @property
    def _is_ready(self) -> bool:
        return self._api_server is None or self._api_server.synced

    async def _verb(self, request: Request) -> Response:
        verb = request.path_params["path"].rstrip("/").rpartition("/")[2]
        if verb not in VERBS:
            return PlainTextResponse(f"no verb {verb!r}; known: {', '.join(VERBS)}", 404)
        async with self._answering:
            return await self._answer(verb, await request.body())

    async def _answer(self, verb: str, body: bytes) -> Response:
        lower = False
        try:
            asked = wire.read_request(body)
            lower = asked.lower
            reply = await self._bind(asked) if verb == "bind" else self._handlers[verb](asked)
        except wire.WireError as error:
            self._warn(f"{verb}: {error}")
            return PlainTextResponse(str(error), 400)
        except AttemptError as error:
            # A reply to prioritize has no field for an error; the scheduler goes on without scores.
            self._warn(f"{verb}: {error}")
            return PlainTextResponse(str(error), 500)
        except Exception as bug:
            logger.exception("answering %s failed, please report it", verb)
            return PlainTextResponse(f"{type(bug).__name__}: {bug}", 500)
        return Response(wire.encode_reply(reply, lower=lower), media_type="application/json")

    def _filter(self, request: wire.ExtenderRequest) -> dict[str, Any]:
        pod = wire.decode_object(request.part("pod"), Pod, "pod")
        nodes, names = self._nodes(request)
        if nodes is None and not self._is_ready:
            return _filter_reply(error=_NOT_SYNCED)
        result = self._verbs.filter(pod, names)
        unresolvable = {
            name: text for name, text in result.failed.items() if name in result.unresolvable
        }
        if nodes is None:
            return _filter_reply(
                None, list(result.nodes), result.failed, unresolvable, result.error
            )
        items = {"metadata": {}, "items": [nodes[name] for name in result.nodes]}
        return _filter_reply(items, None, result.failed, unresolvable, result.error)

    def _prioritize(self, request: wire.ExtenderRequest) -> list[dict[str, Any]]:
        pod = wire.decode_object(request.part("pod"), Pod, "pod")
        _, names = self._nodes(request)
        scores = self._verbs.prioritize(pod, names)
        return [{"Host": name, "Score": score} for name, score in scores.items()]

    def _nodes(
        self, request: wire.ExtenderRequest
    ) -> tuple[dict[str, msgspec.Raw] | None, list[str]]:
        """The nodes of a request by name, and their names; no nodes if it only names them."""
        whole = request.part("nodes")
        if whole is None:
            names = request.part("nodenames")
            return None, wire.decode_names(names) if names is not None else []
        nodes = wire.nodes_by_name(whole)
        if self._api_server is None:
            self._state.put_encoded_nodes(nodes)
        else:
            # A watched node is newer than the one in the request; only unknown ones are added.
            self._state.put_encoded_nodes(
                {name: raw for name, raw in nodes.items() if not self._state.has_node(name)}
            )
        return nodes, list(nodes)

    def _preempt(self, request: wire.ExtenderRequest) -> dict[str, Any]:
        pod = wire.decode_object(request.part("pod"), Pod, "pod")
        meta = request.part("nodenametometavictims")
        whole = request.part("nodenametovictims", "nodetovictims")
        asked = wire.decode_victims(meta if meta is not None else whole, whole=meta is None)
        kept = self._verbs.preempt(pod, {node: uids for node, (uids, _) in asked.items()})
        return {
            "NodeNameToMetaVictims": {
                node: {
                    "Pods": [{"UID": uid} for uid in uids],
                    "NumPDBViolations": asked[node][1],
                }
                for node, uids in kept.items()
            }
        }

    async def _bind(self, request: wire.ExtenderRequest) -> dict[str, Any]:
        if self._api_server is None:
            return {"Error": "this extender has no API server to bind at; start it with --server"}
        names = ("podnamespace", "podname", "poduid", "node")
        parts = [wire.decode_part(request.part(name), str, name) for name in names]
        error = await self._api_server.bind(*parts)
        if error:
            self._warn(f"bind {parts[0]}/{parts[1]} to {parts[3]}: {error}")
        return {"Error": error}


def _filter_reply(
    nodes: Any = None,
    names: list[str] | None = None,
    failed: dict[str, str] | None = None,
    unresolvable: dict[str, str] | None = None,
    error: str = "",
) -> dict[str, Any]:
    return {
        "Nodes": nodes,
        "NodeNames": names,
        "FailedNodes": failed or {},
        "FailedAndUnresolvableNodes": unresolvable or {},
        "Error": error,
    }
