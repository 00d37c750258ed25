"""An extender for a stock kube-scheduler: Podium's rules over HTTP.

    POST …/filter  …/prioritize  …/preempt  …/bind     the verbs, under any prefix
    GET  /healthz  /readyz                             probes

Requests are read in both forms of the protocol and answered in the form they came in.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from podium.engine.framework.rule import AttemptError
from podium.extender import wire
from podium.objects.kinds.pod import Pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from starlette.requests import Request

    from podium.extender.judging import Judge
    from podium.extender.knowledge import Knowledge
    from podium.extender.watching import Watcher

VERBS = ("filter", "prioritize", "preempt", "bind")
_JSON = "application/json"


class ExtenderApp:
    """The verbs, each from a request to a reply."""

    def __init__(
        self,
        judge: Judge,
        knowledge: Knowledge,
        watcher: Watcher | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._judge = judge
        self._knowledge = knowledge
        self._watcher = watcher
        self._tell = tell or (lambda _: None)
        self._verbs: dict[str, Callable[[wire.Asked], Any]] = {
            "filter": self._filter,
            "prioritize": self._prioritize,
            "preempt": self._preempt,
        }

    def asgi(self) -> Starlette:
        """The application to be served."""
        return Starlette(
            routes=[
                Route("/healthz", self._healthy, methods=["GET"]),
                Route("/readyz", self._ready, methods=["GET"]),
                Route("/{path:path}", self._verb, methods=["POST"]),
            ],
            lifespan=self._life,
        )

    @asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:  # noqa: ARG002
        if self._watcher is None:
            yield
            return
        async with self._watcher:
            yield

    async def _healthy(self, request: Request) -> Response:  # noqa: ARG002
        return PlainTextResponse("ok")

    async def _ready(self, request: Request) -> Response:  # noqa: ARG002
        if self._is_ready:
            return PlainTextResponse("ok")
        return PlainTextResponse("the cluster is not known yet", status_code=503)

    @property
    def _is_ready(self) -> bool:
        return self._watcher is None or self._watcher.ready

    async def _verb(self, request: Request) -> Response:
        verb = request.path_params["path"].rstrip("/").rpartition("/")[2]
        if verb not in VERBS:
            return PlainTextResponse(f"no verb {verb!r}; known: {', '.join(VERBS)}", 404)
        body = await request.body()
        lower = False
        try:
            question = wire.asked(body)
            lower = question.lower
            answer = await self._bind(question) if verb == "bind" else self._verbs[verb](question)
        except wire.WireError as error:
            self._tell(f"{verb}: {error}")
            return PlainTextResponse(str(error), 400)
        except AttemptError as error:
            # There is no room for an error in the reply; the scheduler goes on without scores.
            self._tell(f"{verb}: {error}")
            return PlainTextResponse(str(error), 500)
        return Response(wire.written(answer, lower=lower), media_type=_JSON)

    def _filter(self, question: wire.Asked) -> dict[str, Any]:
        pod = wire.decoded(question.raw("pod"), Pod, "pod")
        nodes, names = self._nodes(question)
        if nodes is None and not self._is_ready:
            return _filtered(error="the cluster is not known yet")
        left = self._judge.filter(pod, names)
        hopeless = {name: text for name, text in left.failed.items() if name in left.hopeless}
        if nodes is None:
            return _filtered(None, list(left.nodes), left.failed, hopeless, left.error)
        items = {"metadata": {}, "items": [nodes[name] for name in left.nodes]}
        return _filtered(items, None, left.failed, hopeless, left.error)

    def _prioritize(self, question: wire.Asked) -> list[dict[str, Any]]:
        pod = wire.decoded(question.raw("pod"), Pod, "pod")
        _, names = self._nodes(question)
        scores = self._judge.scores(pod, names)
        return [{"Host": name, "Score": score} for name, score in scores.items()]

    def _nodes(self, question: wire.Asked) -> tuple[dict[str, msgspec.Raw] | None, list[str]]:
        """The nodes of a request by name, and the names; None when it has nothing but names."""
        whole = question.raw("nodes")
        if whole is None:
            names = question.raw("nodenames")
            return None, wire.decoded_names(names) if names is not None else []
        nodes = wire.listed_nodes(whole)
        if self._watcher is None:
            self._knowledge.take(nodes)
        else:
            # What the API server says is newer; only strangers are taken over.
            self._knowledge.take(
                {n: raw for n, raw in nodes.items() if not self._knowledge.knows(n)}
            )
        return nodes, list(nodes)

    def _preempt(self, question: wire.Asked) -> dict[str, Any]:
        pod = wire.decoded(question.raw("pod"), Pod, "pod")
        meta = question.raw("nodenametometavictims")
        whole = question.raw("nodenametovictims", "nodetovictims")
        asked = wire.asked_victims(meta if meta is not None else whole, whole=meta is None)
        kept = self._judge.victims(pod, {node: uids for node, (uids, _) in asked.items()})
        return {
            "NodeNameToMetaVictims": {
                node: {
                    "Pods": [{"UID": uid} for uid in uids],
                    "NumPDBViolations": asked[node][1],
                }
                for node, uids in kept.items()
            }
        }

    async def _bind(self, question: wire.Asked) -> dict[str, Any]:
        if self._watcher is None:
            return {
                "Error": "this extender has no API server to bind at; start it with --api-server"
            }
        names = ("podnamespace", "podname", "poduid", "node")
        parts = [wire.decoded(question.raw(name), str, name) for name in names]
        error = await self._watcher.bind(*parts)
        if error:
            self._tell(f"bind {parts[0]}/{parts[1]} to {parts[3]}: {error}")
        return {"Error": error}


def _filtered(
    nodes: Any = None,
    names: list[str] | None = None,
    failed: dict[str, str] | None = None,
    hopeless: dict[str, str] | None = None,
    error: str = "",
) -> dict[str, Any]:
    return {
        "Nodes": nodes,
        "NodeNames": names,
        "FailedNodes": failed or {},
        "FailedAndUnresolvableNodes": hopeless or {},
        "Error": error,
    }
