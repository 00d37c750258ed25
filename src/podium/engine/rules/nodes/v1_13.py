"""v1.13 rules on the node alone: conditions, cordons, name, labels, pressure, pods to avoid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from podium.engine.framework.rule import BitFilter, Everywhere, FilterRule, Scope, ScoreRule
from podium.engine.rows.rows import Ints, K, Rows
from podium.engine.rules.nodes.shared import same_everywhere, tolerates_cordon
from podium.engine.rules.v1_13 import MAX_SCORE
from podium.engine.state.accounting import is_best_effort
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

NOT_READY = Reason("node(s) were not ready", curable=False)
OUT_OF_DISK = Reason("node(s) were out of disk space", curable=False)
NETWORK_UNAVAILABLE = Reason("node(s) had unavailable network", curable=False)
UNSCHEDULABLE = Reason("node(s) were unschedulable", curable=False)
HOST_NAME = Reason("node(s) didn't match the requested hostname", curable=False)
LABEL_PRESENCE = Reason("node(s) didn't have the requested labels", curable=False)
MEMORY_PRESSURE = Reason("node(s) had memory pressure", curable=False)
DISK_PRESSURE = Reason("node(s) had disk pressure", curable=False)
PID_PRESSURE = Reason("node(s) had pid pressure", curable=False)


class CheckNodeCondition(FilterRule):
    """The node must be ready, reachable by network, have disk space and not be cordoned.

    A condition that is not reported is fine; one that is `Unknown` is not.
    """

    name = "CheckNodeCondition"
    reasons = (NOT_READY, OUT_OF_DISK, NETWORK_UNAVAILABLE, UNSCHEDULABLE)

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """The order of the reasons is the order of the conditions, so verdicts are made whole."""
        facts, verdicts = at.view.facts, at.view.verdicts
        found = at.fact(
            facts.conditions,
            lambda conditions: verdicts.of(self.name, _bad(conditions)) if _bad(conditions) else 0,
        )
        cordoned = at.flag(facts.unschedulable, bool)
        both = at.fact(
            facts.conditions,
            lambda conditions: verdicts.of(self.name, (*_bad(conditions), UNSCHEDULABLE)),
        )
        return at.where(cordoned, both, found)


def _bad(conditions: tuple[tuple[str, str], ...]) -> tuple[Reason, ...]:
    wanted = {"Ready": "True", "OutOfDisk": "False", "NetworkUnavailable": "False"}
    texts = {
        "Ready": NOT_READY,
        "OutOfDisk": OUT_OF_DISK,
        "NetworkUnavailable": NETWORK_UNAVAILABLE,
    }
    return tuple(texts[kind] for kind, status in conditions if status != wanted.get(kind, status))


class CheckNodeUnschedulable(BitFilter):
    """A cordoned node takes only pods that tolerate its being cordoned."""

    name = "CheckNodeUnschedulable"
    reasons = (UNSCHEDULABLE,)

    def scope(self, cls: PodClass) -> Scope:
        """Nothing to check for a pod that tolerates it."""
        return Scope.NONE if tolerates_cordon(cls) else Scope.NODE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """Cordoned and not tolerated."""
        if tolerates_cordon(pod.cls):
            return at.full(0)
        return at.fact(at.view.facts.unschedulable, int)


class HostName(BitFilter):
    """A pod that names its node fits that node only."""

    name = "HostName"
    reasons = (HOST_NAME,)

    def scope(self, cls: PodClass) -> Scope:
        """Pods to be scheduled name no node."""
        return Scope.NODE if cls.host else Scope.NONE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """Another node than the one named."""
        wanted = pod.cls.host
        return (at.is_node(wanted) ^ True) * 1 if wanted else at.full(0)


class CheckNodeLabelPresence(BitFilter):
    """All of some label keys must exist on the node, or none of them may."""

    reasons = (LABEL_PRESENCE,)

    def __init__(
        self, labels: list[str], *, presence: bool, name: str = "CheckNodeLabelPresence"
    ) -> None:
        self.name = name
        self.labels = labels
        self.presence = presence

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002
        """Nothing to check without labels."""
        return Scope.NODE if self.labels else Scope.NONE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """A wanted key is missing, or an unwanted one is there."""
        wrong = at.flags(False)  # noqa: FBT003 - a column of False
        for key in self.labels:
            wrong = wrong | (at.has_label(key) != self.presence)
        return wrong * 1


class _Pressure(BitFilter):
    """A node under some pressure takes no new pods."""

    condition: str

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """The node reports the pressure."""
        return at.fact(at.view.facts.pressures, lambda pressures: int(self.condition in pressures))


class CheckNodeMemoryPressure(_Pressure):
    """A node short of memory takes no pods that promise nothing about theirs."""

    name = "CheckNodeMemoryPressure"
    condition = "MemoryPressure"
    reasons = (MEMORY_PRESSURE,)

    def scope(self, cls: PodClass) -> Scope:
        """Only pods without any request or limit are kept away."""
        best_effort = cls.once("best effort", lambda: is_best_effort(cls.sample))
        return Scope.NODE if best_effort else Scope.NONE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The node reports the pressure, and the pod is of the kind that feels it."""
        return super().bits(pod, at) if self.scope(pod.cls) else at.full(0)


class CheckNodeDiskPressure(_Pressure):
    """A node short of disk takes no pods."""

    name = "CheckNodeDiskPressure"
    condition = "DiskPressure"
    reasons = (DISK_PRESSURE,)


class CheckNodePIDPressure(_Pressure):
    """A node short of process ids takes no pods."""

    name = "CheckNodePIDPressure"
    condition = "PIDPressure"
    reasons = (PID_PRESSURE,)


class EqualPriority(ScoreRule):
    """All nodes are as good."""

    name = "EqualPriority"

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """Every row gets 1."""
        return Everywhere(1)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """1 for every row."""
        return at.full(1)


class NodeLabelPriority(ScoreRule):
    """Prefers nodes that have a label key, or that lack it."""

    def __init__(self, label: str, *, presence: bool, name: str) -> None:
        self.label = label
        self.presence = presence
        self.name = name

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """All or nothing."""
        return (at.has_label(self.label) == self.presence) * MAX_SCORE


class _Controller(msgspec.Struct):
    kind: str = ""
    uid: str = ""
    name: str = ""
    apiversion: str = ""


class _Signature(msgspec.Struct):
    podcontroller: _Controller | None = None


class _Avoided(msgspec.Struct):
    podsignature: _Signature = msgspec.field(default_factory=_Signature)
    reason: str = ""
    message: str = ""


class _Avoiding(msgspec.Struct):
    preferavoidpods: list[_Avoided] | None = None


class NodePreferAvoidPodsPriority(ScoreRule):
    """Nodes that ask, by an annotation, to be spared the pods of a controller get 0."""

    name = "NodePreferAvoidPodsPriority"

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """Only pods of replication controllers and replica sets can be avoided."""
        owner = pod.cls.owner
        if owner is None or owner.kind not in {"ReplicationController", "ReplicaSet"}:
            return Everywhere(MAX_SCORE)
        column = view.facts.avoid
        same = same_everywhere(pod.cls, column, lambda a: int(_avoids(pod.cls, a)), self.name)
        return Everywhere(MAX_SCORE) if same else None

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """All or nothing."""
        return at.fact(at.view.facts.avoid, lambda a: 0 if _avoids(pod.cls, a) else MAX_SCORE)


def _avoids(cls: PodClass, annotation: str) -> bool:
    """Whether the node names the pod's controller. An unreadable annotation avoids nobody."""
    if not annotation or cls.owner is None:
        return False
    try:
        avoided = msgspec.convert(_folded(msgspec.json.decode(annotation)), _Avoiding)
    except (msgspec.MsgspecError, RecursionError):
        return False
    controllers = [entry.podsignature.podcontroller for entry in avoided.preferavoidpods or ()]
    wanted = (cls.owner.kind, cls.owner.uid)
    return any(c is not None and (c.kind, c.uid) == wanted for c in controllers)


def _folded(value: Any) -> Any:
    """The same with all keys in lower case: the annotation is read without regard to it."""
    if isinstance(value, dict):
        return {key.lower(): _folded(each) for key, each in value.items() if each is not None}
    return [_folded(each) for each in value] if isinstance(value, list) else value
