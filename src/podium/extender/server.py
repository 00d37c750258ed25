"""The HTTP server of an extender: a stock kube-scheduler asks Podium's rules.

    POST …/filter  …/prioritize  …/preempt  …/bind     the verbs, under any prefix
    GET  /healthz  /readyz                             probes

Requests are read in both forms of the protocol and answered in the form they came in. The rules of
a profile run in the same cycle as in Podium's own scheduler, with everything switched off that is
the asking scheduler's part: checks, gates, preemption, sampling, other extenders.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from podium.engine.cycle.extenders import EXTENDER_MAX_SCORE
from podium.engine.cycle.pre_filter import PreFilter
from podium.engine.framework.rule import AttemptError
from podium.engine.pipelines.filtering import run_filters_on_row
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS
from podium.extender import wire
from podium.extender.security import LARGEST_BODY, ExtenderGuard
from podium.objects.kinds.pod import Pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from starlette.requests import Request

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.extender.cluster_state import ClusterFollower, ExtenderState

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


UNKNOWN_NODE = "node(s) were unknown to the extender"


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The feasible nodes, and the reasons of the others by name."""

    nodes: tuple[str, ...]
    failed: dict[str, str] = field(default_factory=dict)
    #: Failed nodes on which evicting pods cannot help.
    unresolvable: frozenset[str] = frozenset()
    error: str = ""


class ExtenderVerbs:
    """Answers the verbs with the rules of one profile on one state of the cluster."""

    def __init__(self, profile: Profile, state: ExtenderState) -> None:
        self._state = state
        # The asking scheduler itself checks that claims exist; the extender knows nodes and pods.
        rules = replace(
            profile,
            checks=(),
            extenders=(),
            gates=(),
            post_filters=(),
            percentage_of_nodes_to_score=100,
            nominated_first=False,
        )
        self.profile = profile
        self._filtering = replace(rules, priorities=())
        self._scoring = replace(rules, predicates=(), pre_filters=())

    def filter(self, pod: Pod, names: Sequence[str]) -> FilterResult:
        """Run the predicates on the named nodes."""
        known = [name for name in names if self._state.has_node(name)]
        failed = {name: UNKNOWN_NODE for name in names if not self._state.has_node(name)}
        if not known:
            return FilterResult((), failed)
        decision = self._state.look(pod, self._filtering, known)
        if decision.error:
            return FilterResult((), error=decision.error)
        if decision.refused is not None:
            failed.update(dict.fromkeys(known, decision.refused.reason))
            unresolvable = frozenset() if decision.refused.curable else frozenset(known)
            return FilterResult((), failed, unresolvable)
        failed |= {name: ", ".join(reasons) for name, reasons in decision.failed().items()}
        return FilterResult(tuple(decision.feasible), failed, _unresolvable(decision))

    def prioritize(self, pod: Pod, names: Sequence[str]) -> dict[str, int]:
        """The weighted sum of the priorities for each named node; one priority gives up to 10."""
        known = [name for name in names if self._state.has_node(name)]
        scores = dict.fromkeys(names, 0)
        if not known or not self._scoring.priorities:
            return scores
        decision = self._state.look(pod, self._scoring, known)
        if decision.error or decision.totals is None:
            raise AttemptError(decision.error or "nothing was scored")
        max_score = self.profile.max_score
        for name, total in zip(decision.feasible, decision.totals.tolist(), strict=True):
            scores[name] = total * EXTENDER_MAX_SCORE // max_score
        return scores

    def preempt(
        self, pod: Pod, candidates: Mapping[str, Sequence[str]]
    ) -> dict[str, Sequence[str]]:
        """Keep the candidates whose node passes the predicates without its victims.

        *candidates* maps the name of a node to the uids of its victims.
        """
        view = self._state.columns
        incoming = view.pods.incoming(pod)
        pre_filter = PreFilter(incoming, view, self._filtering)
        if pre_filter.refused is not None:
            return {}
        rules, kept = pre_filter.taking_part(), {}
        for name, uids in candidates.items():
            if not self._state.has_node(name):
                continue
            trial = TrialRow(view, view.nodes.row_of[name])
            for resident in list(trial.residents()):
                if resident.uid in uids:
                    trial.remove(resident)
            if run_filters_on_row(incoming, trial, rules)[0] == FITS:
                kept[name] = uids
        return kept


def _unresolvable(decision: Decision) -> frozenset[str]:
    pairs = zip(decision.examined, decision.codes.tolist(), strict=True)
    return frozenset(
        name for name, code in pairs if code > 0 and not decision.verdict(code).curable
    )
