"""Ask the plugins that rejected a pod whether an event could change their answer.

Each plugin declares the events it cares about, most with a condition on the waiting pod and the
object (`PluginDeclaration.events`). A change of an object is taken apart into aspects (a node's
labels, its taints, ...), and each aspect is an event of its own. One plugin that says yes is
enough.

Upstream: backend/queue/scheduling_queue.go and framework/events.go, Kubernetes v1.36, with feature
gates at their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import ClassVar, Final

from podium.cluster.queue.entities import QueuedPod
from podium.cluster.wakeups.wakeups import (
    ANY_PLUGIN,
    Added,
    ClusterEvent,
    Deleted,
    MoveRequest,
    NominationLost,
    Updated,
    WaitedTooLong,
    Wake,
    conditions_changed,
    resource,
)
from podium.engine.framework.declaration import EventContext, Events, Hint, Requests
from podium.engine.framework.generation import Generation
from podium.engine.framework.profile import Profile
from podium.engine.framework.rule import FilterRule
from podium.engine.rules.plugins import always
from podium.engine.state.accounting import NATIVE, Accounting
from podium.generations.known import DEFAULT
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod

#: Stands for every plugin that registers nothing itself, and for extenders.
_OTHERS: Final = ANY_PLUGIN
_RESOURCES_OF_OTHERS: Final = frozenset(
    {
        "Pod",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "CSINode",
        "CSIDriver",
        "CSIStorageCapacity",
        "StorageClass",
        "ResourceClaim",
        "DeviceClass",
    }
)


class _Hints(dict[str, Hint]):
    """The hints of the plugins that have registered an aspect of an event."""

    #: The names of the plugins.
    topics: frozenset[str] = frozenset()


class HintRules:
    """Pods wake when a plugin that rejected them sees a chance."""

    keeps_requests: ClassVar[bool] = True

    def __init__(
        self,
        requests: Requests,
        filters: Sequence[FilterRule] = (),
        held_by: Callable[[Pod], str] = lambda _: "",
        generation: Generation = DEFAULT,
    ) -> None:
        """*requests* computes what a pod requests; *filters* are those of all profiles.

        *held_by* names the plugin that keeps a pod from being tried now; empty if none does. The
        *generation* says which events plugins wait for.
        """
        self._requests = requests
        self._held_by = held_by
        self._known = _declared_events(requests, filters, generation)
        self._unscheduled = generation.wake_ups.unscheduled
        taints = generation.wake_ups.taints_wake_like_new_nodes
        self._by_event: dict[str, dict[str, Hint]] = {}
        self._merged: dict[str, _Hints] = {}
        for plugin, registered in self._known.items():
            for event, hint in registered.items():
                self._by_event.setdefault(event, {})[plugin] = hint
            # A plugin that registers new nodes is also woken by changed taints, unconditionally:
            # a relic of times when the arrival of a tainted node could be missed.
            if taints and "Node Add" in registered and "Node UpdateNodeTaint" not in registered:
                self._by_event.setdefault("Node UpdateNodeTaint", {})[plugin] = always

    def requests(self, event: ClusterEvent, waiting: int) -> Sequence[MoveRequest]:  # noqa: ARG002
        """One request per aspect of the event that any plugin has registered."""
        if isinstance(event, WaitedTooLong):
            return (MoveRequest(event),)
        found: list[MoveRequest] = []
        for action in self._aspects(event):
            hints = self._hints(event, action)
            if hints:
                found.append(MoveRequest(event, action, hints.topics, self._unscheduled))
        return found

    def interests(self, queued: QueuedPod) -> Collection[str]:
        """The plugins that rejected the pod."""
        return {self._topic(name) for name in queued.rejectors}

    def wakes(self, request: MoveRequest, queued: QueuedPod) -> Wake:
        """Ask the plugins. A lost nomination concerns pods of the same or a lower priority."""
        event = request.event
        if isinstance(event, NominationLost) and queued.pod.priority > event.old.priority:
            return Wake.NO
        return self._ask(request, queued)

    def own_update(self, old: Pod, new: Pod, queued: QueuedPod) -> Wake:
        """Ask the plugins about each aspect, until one wakes the pod."""
        asked = (self._ask(each, queued) for each in self.requests(Updated(old, new), 0))
        return next((wake for wake in asked if wake is not Wake.NO), Wake.NO)

    def after_failure(
        self,
        queued: QueuedPod,
        requests: Sequence[MoveRequest],
        *,
        moved: bool,  # noqa: ARG002
    ) -> Wake:
        """Rest after an error; otherwise wait, unless something happened that could help."""
        if not queued.rejectors:
            return Wake.AFTER_BACKOFF
        found = Wake.NO
        for request in requests:
            wake = self._ask(request, queued)
            if wake is Wake.NOW:
                return wake
            found = wake if found is Wake.NO else found
        return found

    def is_error(self, queued: QueuedPod) -> bool:
        """Whether no plugin rejected the pod, so that the attempt failed with an error."""
        return not queued.rejectors

    def gate(self, pod: Pod) -> str:
        """A pod is not tried while it has scheduling gates, or while claims of it are missing."""
        return "SchedulingGates" if pod.spec.scheduling_gates else self._held_by(pod)

    def awaited(self, queued: QueuedPod) -> Mapping[str, Sequence[str]]:
        """The events that the plugins have registered which rejected the pod."""
        found: dict[str, Sequence[str]] = {}
        for name in sorted(queued.rejectors):
            if name in self._known:
                found[name] = sorted(
                    event for event, hints in self._by_event.items() if name in hints
                )
            else:
                found[name] = sorted(f"{kind} *" for kind in _RESOURCES_OF_OTHERS)
        return found

    def _ask(self, request: MoveRequest, queued: QueuedPod) -> Wake:
        if isinstance(request.event, WaitedTooLong):
            return Wake.AFTER_BACKOFF
        hints, sides = self._hints(request.event, request.action), _sides(request.event)
        found = Wake.NO
        for name in queued.rejectors:
            hint = hints.get(self._topic(name))
            if hint and _says_yes(hint, queued.pod, *sides):
                if name in queued.pending_on:
                    return Wake.NOW
                found = Wake.AFTER_BACKOFF
        return found

    def _topic(self, rejector: str) -> str:
        return rejector if rejector in self._known else _OTHERS

    def _hints(self, event: ClusterEvent, action: str) -> _Hints:
        """The hints registered for an aspect; a plain `Update` stands for all of its aspects."""
        kind = resource(event)
        name = f"{kind} {action}"
        hints = self._merged.get(name)
        if hints is None:
            hints = _Hints(self._by_event.get(name, ()))
            if action.startswith("Update"):
                hints |= self._by_event.get(f"{kind} Update", {})
            if kind in _RESOURCES_OF_OTHERS:
                hints[_OTHERS] = always
            hints.topics = frozenset(hints)
            self._merged[name] = hints
        return hints

    def _aspects(self, event: ClusterEvent) -> Sequence[str]:
        match event:
            case Added():
                return ("Add",)
            case Updated(Node() as old, Node() as new):
                return _node_aspects(old, new)
            case Updated(Pod() as old, Pod() as new):
                return tuple(self._pod_aspects(old, new)) or ("Update",)
            case Updated():
                return ("Update",)
            case Deleted() | NominationLost():
                return ("Delete",)
        return ()

    def _pod_aspects(self, old: Pod, new: Pod) -> Iterator[str]:
        if old.labels != new.labels:
            yield "UpdatePodLabel"
        after = self._requests(new)
        if any(
            name not in after or after[name] < amount
            for name, amount in self._requests(old).items()
        ):
            yield "UpdatePodScaleDown"
        if old.spec.scheduling_gates and not new.spec.scheduling_gates:
            yield "UpdatePodSchedulingGatesEliminated"
        if _generated_claims(old) != _generated_claims(new):
            yield "UpdatePodGeneratedResourceClaim"
        # Only the number is compared: the API lets tolerations be added, never changed.
        if len(old.spec.tolerations or ()) != len(new.spec.tolerations or ()):
            yield "UpdatePodToleration"


def hint_rules(profiles: Sequence[Profile], held_by: Callable[[Pod], str]) -> HintRules:
    """The rules of a queue for these profiles; *held_by* names the plugin that holds a pod back."""
    filters = [rule for profile in profiles for rule in profile.predicates]
    generation = profiles[0].generation or DEFAULT
    return HintRules(_requests(profiles[0].accounting), filters, held_by, generation)


def _requests(accounting: Accounting) -> Callable[[Pod], Mapping[str, int]]:
    """What pods use up: a pod that is resized in place frees nothing before its kubelet has acted.

    Of a pod that waits the status says nothing, and the specification counts.
    """

    def requests(pod: Pod) -> Mapping[str, int]:
        taken = accounting.taken(pod)
        return {**dict(zip(NATIVE, taken.native, strict=True)), **taken.scalars}

    return requests


def _declared_events(
    requests: Requests, filters: Sequence[FilterRule], generation: Generation
) -> dict[str, Events]:
    """Plugin -> its events, for all plugins that declare any."""
    found = {}
    for name, plugin in generation.plugin.items():
        events = plugin.events
        if callable(events):
            own = [rule for rule in filters if rule.name == name]
            events = events(EventContext(own, requests, generation.wake_ups))
        if events is not None:
            found[name] = events
    return found


def _generated_claims(pod: Pod) -> tuple[object, object]:
    """The claims that were made for the pod, that of its extended resources included."""
    return pod.status.resource_claim_statuses or (), pod.status.extended_resource_claim_status


def _node_aspects(old: Node, new: Node) -> list[str]:
    found = []
    if old.spec.unschedulable and not new.spec.unschedulable:
        found.append("UpdateNodeTaint")
    if (old.status.allocatable or {}) != (new.status.allocatable or {}):
        found.append("UpdateNodeAllocatable")
    if (old.metadata.labels or {}) != (new.metadata.labels or {}):
        found.append("UpdateNodeLabel")
    if (old.spec.taints or []) != (new.spec.taints or []):
        found.append("UpdateNodeTaint")
    if conditions_changed(old, new):
        found.append("UpdateNodeCondition")
    if (old.metadata.annotations or {}) != (new.metadata.annotations or {}):
        found.append("UpdateNodeAnnotation")
    if (old.status.declared_features or []) != (new.status.declared_features or []):
        found.append("UpdateNodeDeclaredFeature")
    return found


def _sides(event: ClusterEvent) -> tuple[object, object]:
    match event:
        case Added(new):
            return None, new
        case Updated(old, new):
            return old, new
        case Deleted(old) | NominationLost(old):
            return old, None
    return None, None


def _says_yes(hint: Hint, waiting: Pod, old: object, new: object) -> bool:
    try:
        return hint(waiting, old, new)
    except ValueError:  # an invalid selector or quantity: rather one attempt too many
        return True
