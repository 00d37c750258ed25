"""Extenders: services that filter nodes, score them and change the victims of preemption.

The cycle yields a question and is sent the reply. How the question is asked (over HTTP, or by a
function in a test) is not known here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from podium.engine.framework.choices import ExtenderProtocol
from podium.engine.framework.rule import AttemptError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from podium.engine.framework.decision import Victims
    from podium.engine.state.pod_class import Incoming, Resident
    from podium.engine.state.view import View

#: The range of extenders' scores, in every generation.
EXTENDER_MAX_SCORE = 10


class Extender(msgspec.Struct, frozen=True):
    """The configuration of an extender."""

    url_prefix: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls: dict[str, object] = msgspec.field(default_factory=dict)
    timeout_seconds: float = 5.0
    node_cache_capable: bool = False
    managed_resources: frozenset[str] = frozenset()
    ignorable: bool = False
    protocol: ExtenderProtocol = ExtenderProtocol()


class AskFilter(msgspec.Struct, frozen=True):
    """Which of these nodes does the extender leave? Answered by `Filtered` or `Failure`."""

    extender: Extender
    pod: Incoming
    nodes: tuple[str, ...]


class Filtered(msgspec.Struct, frozen=True):
    """The nodes left, in the extender's order, and a message for some of the others."""

    nodes: tuple[str, ...]
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    #: The same for nodes where evicting pods cannot help.
    unresolvable: dict[str, str] = msgspec.field(default_factory=dict)


class AskScores(msgspec.Struct, frozen=True):
    """What does the extender give these nodes? Answered by `Scored` or `Failure`."""

    extender: Extender
    pod: Incoming
    nodes: tuple[str, ...]


class Scored(msgspec.Struct, frozen=True):
    """Score per node; a node may be named twice."""

    scores: tuple[tuple[str, int], ...]


class Together(msgspec.Struct, frozen=True):
    """Questions that may be asked at the same time. Answered by as many replies."""

    questions: tuple[AskScores, ...]


class AskVictims(msgspec.Struct, frozen=True):
    """On which of these nodes may these pods go? Answered by `AcceptedVictims` or `Failure`."""

    extender: Extender
    pod: Incoming
    candidates: Mapping[str, Victims]


class AcceptedVictims(msgspec.Struct, frozen=True):
    """Node -> uids of the pods that would have to go, and how many budgets that violates."""

    victims: dict[str, tuple[tuple[str, ...], int]]


class Failure(msgspec.Struct, frozen=True):
    """The extender could not be asked, or answered with an error."""

    text: str


def interested(extender: Extender, pod: Incoming) -> bool:
    """Whether the extender looks after a resource that some container names."""
    if not extender.managed_resources:
        return True
    containers = (*(pod.pod.spec.containers or ()), *(pod.pod.spec.init_containers or ()))
    for container in containers:
        resources = container.resources
        for part in (resources.requests, resources.limits) if resources else ():
            if not extender.managed_resources.isdisjoint(part or {}):
                return True
    return False


def ask_victims(
    pod: Incoming,
    view: View,
    extenders: Sequence[Extender],
    candidates: Mapping[str, Victims],
    made: Callable[[list[Resident], int], Victims],
) -> Generator[Any, Any, Mapping[str, Victims]]:
    """Each extender in turn sees the candidates that the one before it left, and may change them.

    An `AttemptError` is what keeps pods from being evicted at all.
    """
    for extender in extenders:
        if not candidates:
            break
        if not extender.preempt_verb or not interested(extender, pod):
            continue
        reply = yield AskVictims(extender, pod, candidates)
        try:
            kept = _kept(reply, view, extender, made)
        except AttemptError:
            if not extender.ignorable:
                raise
            continue
        # In node order, as the candidates were; a reply has no order of its own.
        order = [name for name in candidates if name in kept]
        candidates = {name: kept[name] for name in (*order, *(kept.keys() - candidates.keys()))}
    return candidates


def _kept(
    reply: AcceptedVictims | Failure,
    view: View,
    extender: Extender,
    made: Callable[[list[Resident], int], Victims],
) -> dict[str, Victims]:
    """The victims that a reply names, looked up on their nodes."""
    if isinstance(reply, Failure):
        raise AttemptError(reply.text)
    kept = {}
    for node, (uids, violations) in reply.victims.items():
        row = view.nodes.row_of.get(node)
        there = {pod.uid: pod for pod in view.pods.residents[row]} if row is not None else {}
        for uid in uids:
            if uid not in there:
                raise AttemptError(
                    f"extender: {extender.url_prefix} claims to preempt pod (UID: {uid}) "
                    f"on node: {node}, but the pod is not found on that node"
                )
        if row is None:
            continue  # an unknown node without victims
        if not uids and extender.protocol.needs_victims:
            if extender.ignorable:
                continue
            raise AttemptError(f'expected at least one victim pod on node "{node}"')
        counted = violations if extender.protocol.counts_violations else 0
        kept[node] = made([there[uid] for uid in uids], counted)
    return kept
