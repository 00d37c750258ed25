"""v1.13 rules on the node alone: conditions, cordons, name, labels, pressure, preferAvoidPods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.engine.framework.causes import Cause, Condition, LabelPresence, ScoreNumber
from podium.engine.framework.declaration import (
    PolicyArgument,
    PredicateDeclaration,
    PriorityDeclaration,
    plain,
)
from podium.engine.framework.rule import BitFilter, Everywhere, FilterRule, Scope, ScoreRule
from podium.engine.framework.trace import Prepared
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.rules.nodes.shared import (
    CordonFilter,
    NamedNodeFilter,
    cordon,
    zero_for_all_values,
)
from podium.engine.rules.priorities import BOTH_PROVIDERS, MAX_SCORE
from podium.engine.state.accounting import is_best_effort
from podium.engine.state.pod_class import once_per_requests
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View

NOT_READY = Reason("node(s) were not ready", curable=False)
OUT_OF_DISK = Reason("node(s) were out of disk space", curable=False)
NETWORK_UNAVAILABLE = Reason("node(s) had unavailable network", curable=False)
UNSCHEDULABLE = Reason("node(s) were unschedulable", curable=False)
HOST_NAME_MISMATCH = Reason("node(s) didn't match the requested hostname", curable=False)
LABELS_MISMATCH = Reason("node(s) didn't have the requested labels", curable=False)
MEMORY_PRESSURE = Reason("node(s) had memory pressure", curable=False)
DISK_PRESSURE = Reason("node(s) had disk pressure", curable=False)
PID_PRESSURE = Reason("node(s) had pid pressure", curable=False)


class CheckNodeCondition(FilterRule):
    """The node must be ready, have a network and disk space, and not be cordoned.

    A condition that is not reported is fine; one that is `Unknown` is not.
    """

    name = "CheckNodeCondition"
    reasons = (NOT_READY, OUT_OF_DISK, NETWORK_UNAVAILABLE, UNSCHEDULABLE)
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:  # noqa: ARG002
        """Nothing: pods are treated alike."""
        return ()

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """Reasons are reported in the order of the conditions, UNSCHEDULABLE last."""
        facts, verdicts = at.view.nodes.facts, at.view.verdicts
        found = at.fact(
            facts.conditions,
            lambda conditions: (
                verdicts.of(self.name, _bad_conditions(conditions))
                if _bad_conditions(conditions)
                else 0
            ),
        )
        cordoned = at.flag(facts.unschedulable, bool)
        both = at.fact(
            facts.conditions,
            lambda conditions: verdicts.of(
                self.name, (*_bad_conditions(conditions), UNSCHEDULABLE)
            ),
        )
        return at.where(cordoned, both, found)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The conditions that are wrong, and that the node is cordoned."""
        for condition in at.view.nodes.facts.conditions.on(at.row):
            for reason in _bad_conditions((condition,)):
                yield Condition(reason.text, *condition)
        yield from cordon(UNSCHEDULABLE, at)


def _bad_conditions(conditions: tuple[tuple[str, str], ...]) -> tuple[Reason, ...]:
    wanted = {"Ready": "True", "OutOfDisk": "False", "NetworkUnavailable": "False"}
    texts = {
        "Ready": NOT_READY,
        "OutOfDisk": OUT_OF_DISK,
        "NetworkUnavailable": NETWORK_UNAVAILABLE,
    }
    return tuple(texts[kind] for kind, status in conditions if status != wanted.get(kind, status))


class CheckNodeUnschedulable(CordonFilter):
    """A cordoned node takes only pods that tolerate the taint of unschedulable nodes."""

    name = "CheckNodeUnschedulable"
    reasons = (UNSCHEDULABLE,)


class HostName(NamedNodeFilter):
    """A pod with `spec.nodeName` fits that node only."""

    name = "HostName"
    reasons = (HOST_NAME_MISMATCH,)


class CheckNodeLabelPresence(BitFilter):
    """All the configured label keys must exist on the node, or none of them may."""

    reasons = (LABELS_MISMATCH,)
    keyed_by_form = True

    def __init__(
        self, labels: list[str], *, presence: bool, name: str = "CheckNodeLabelPresence"
    ) -> None:
        self.name = name
        self.labels = labels
        self.presence = presence

    def row_key(self, cls: PodClass) -> Hashable:  # noqa: ARG002
        """Nothing: pods are treated alike."""
        return ()

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002
        """The node, if any label key is configured."""
        return Scope.NODE if self.labels else Scope.NONE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """1 where a required key is missing, or a forbidden one exists."""
        wrong = at.flags(False)  # noqa: FBT003 - a column of False
        for key in self.labels:
            wrong = wrong | (at.has_label(key) != self.presence)
        return wrong * 1

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The label keys that are missing, or present and must not be."""
        for key in self.labels:
            value = at.node_labels.get(key)
            if (value is not None) != self.presence:
                yield LabelPresence(LABELS_MISMATCH.text, key, self.presence, value)


class _Pressure(BitFilter):
    """A node with a pressure condition takes no new pods."""

    condition: str
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:  # noqa: ARG002
        """Nothing beyond the scope."""
        return ()

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """1 where the node has the condition."""
        return at.fact(
            at.view.nodes.facts.pressures, lambda pressures: int(self.condition in pressures)
        )

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """The condition."""
        if self.condition in at.view.nodes.facts.pressures.on(at.row):
            yield Condition(self.reasons[0].text, self.condition, "True")


@once_per_requests
def _is_best_effort(cls: PodClass) -> bool:
    return is_best_effort(cls.sample)


class CheckNodeMemoryPressure(_Pressure):
    """A node with MemoryPressure takes no pods of QoS class BestEffort."""

    name = "CheckNodeMemoryPressure"
    condition = "MemoryPressure"
    reasons = (MEMORY_PRESSURE,)

    def scope(self, cls: PodClass) -> Scope:
        """The node, for pods of QoS class BestEffort."""
        return Scope.NODE if _is_best_effort(cls) else Scope.NONE

    def prepared(self, pod: Incoming, view: View) -> Iterator[Prepared]:  # noqa: ARG002
        """Whether the pod is of QoS class BestEffort."""
        yield Prepared(self.name, "BestEffort", "yes" if is_best_effort(pod.cls.sample) else "no")

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where the node has the condition, for pods of QoS class BestEffort."""
        return super().bits(pod, at) if self.scope(pod.cls) else at.full(0)


class CheckNodeDiskPressure(_Pressure):
    """A node with DiskPressure takes no pods."""

    name = "CheckNodeDiskPressure"
    condition = "DiskPressure"
    reasons = (DISK_PRESSURE,)


class CheckNodePIDPressure(_Pressure):
    """A node with PIDPressure takes no pods."""

    name = "CheckNodePIDPressure"
    condition = "PIDPressure"
    reasons = (PID_PRESSURE,)


class EqualPriority(ScoreRule):
    """Scores every node 1."""

    name = "EqualPriority"
    formula = "1 for every node"
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:  # noqa: ARG002
        """Nothing: pods are treated alike."""
        return ()

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """Every row gets 1."""
        return Everywhere(1)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """1 for every row."""
        return at.full(1)


class NodeLabelPriority(ScoreRule):
    """Prefers nodes that have a label key, or those without it."""

    formula = "10 if the label is as configured, else 0"
    keyed_by_form = True

    def __init__(self, label: str, *, presence: bool, name: str) -> None:
        self.label = label
        self.presence = presence
        self.name = name

    def row_key(self, cls: PodClass) -> Hashable:  # noqa: ARG002
        """Nothing: pods are treated alike."""
        return ()

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:  # noqa: ARG002
        """10 where the label is as configured, else 0."""
        return (at.has_label(self.label) == self.presence) * MAX_SCORE

    def numbers(
        self,
        pod: Incoming,  # noqa: ARG002
        at: OneRow,
        among: ManyRows,  # noqa: ARG002
    ) -> Iterator[ScoreNumber]:
        """Whether the node has the label."""
        yield ScoreNumber(f"has label {self.label}", int(self.label in at.node_labels))


class _PodController(msgspec.Struct):
    kind: str = ""
    uid: str = ""
    name: str = ""
    apiversion: str = ""


class _PodSignature(msgspec.Struct):
    podcontroller: _PodController | None = None


class _AvoidEntry(msgspec.Struct):
    podsignature: _PodSignature = msgspec.field(default_factory=_PodSignature)
    reason: str = ""
    message: str = ""


class _AvoidAnnotation(msgspec.Struct):
    preferavoidpods: list[_AvoidEntry] | None = None


class NodePreferAvoidPodsPriority(ScoreRule):
    """0 for nodes whose preferAvoidPods annotation names the pod's controller, else 10."""

    name = "NodePreferAvoidPodsPriority"
    formula = "0 if the node's preferAvoidPods annotation names the pod's controller, else 10"

    def row_key(self, cls: PodClass) -> Hashable:
        """The controller."""
        return (cls.owner.kind, cls.owner.uid) if cls.owner is not None else None

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """10 if the pod has no ReplicationController or ReplicaSet, or no node avoids it."""
        owner = pod.cls.owner
        if owner is None or owner.kind not in {"ReplicationController", "ReplicaSet"}:
            return Everywhere(MAX_SCORE)
        column = view.nodes.facts.avoid
        same = zero_for_all_values(
            pod.cls.memo, column, lambda a: int(_avoids_controller(pod.cls, a)), _avoids_controller
        )
        return Everywhere(MAX_SCORE) if same else None

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """0 where the node avoids the pod, else 10."""
        return at.fact(
            at.view.nodes.facts.avoid, lambda a: 0 if _avoids_controller(pod.cls, a) else MAX_SCORE
        )


def _avoids_controller(cls: PodClass, annotation: str) -> bool:
    """Whether the annotation names the pod's controller; one that cannot be read names none."""
    if not annotation or cls.owner is None:
        return False
    try:
        avoided = msgspec.convert(
            _with_lower_case_keys(msgspec.json.decode(annotation)), _AvoidAnnotation
        )
    except (msgspec.MsgspecError, RecursionError):
        return False
    controllers = [entry.podsignature.podcontroller for entry in avoided.preferavoidpods or ()]
    wanted = (cls.owner.kind, cls.owner.uid)
    return any(c is not None and (c.kind, c.uid) == wanted for c in controllers)


def _with_lower_case_keys(value: Any) -> Any:
    """The value with lower-case keys: upstream reads the annotation case-insensitively."""
    if isinstance(value, dict):
        return {
            key.lower(): _with_lower_case_keys(each)
            for key, each in value.items()
            if each is not None
        }
    return [_with_lower_case_keys(each) for each in value] if isinstance(value, list) else value


_CONDITIONS: Final = "TaintNodesByCondition=false"
_TAINTS: Final = "TaintNodesByCondition"


class LabelsPresenceArgument(msgspec.Struct, frozen=True, rename="camel"):
    """All of these labels, or none of them, must be on the node."""

    labels: list[str] = []
    presence: bool = False


class LabelPreferenceArgument(msgspec.Struct, frozen=True, rename="camel"):
    """Prefer nodes with this label, or without it."""

    label: str = ""
    presence: bool = False


LABELS_PRESENCE: Final[PolicyArgument[FilterRule]] = PolicyArgument(
    "labels_presence",
    LabelsPresenceArgument,
    lambda value, name: CheckNodeLabelPresence(value.labels, presence=value.presence, name=name),
    CheckNodeLabelPresence,
    "the node has all of some labels, or none of them",
    lambda rule: {"labels": list(rule.labels), "presence": rule.presence},
)

LABEL_PREFERENCE: Final[PolicyArgument[ScoreRule]] = PolicyArgument(
    "label_preference",
    LabelPreferenceArgument,
    lambda value, name: NodeLabelPriority(value.label, presence=value.presence, name=name),
    NodeLabelPriority,
    "the node has a label, or lacks it",
    lambda rule: {"label": rule.label, "presence": rule.presence},
)

CHECK_NODE_CONDITION: Final = PredicateDeclaration(
    "CheckNodeCondition",
    "the node is ready, has network and disk space, and is not cordoned",
    plain(CheckNodeCondition),
    provided=True,
    exists=_CONDITIONS,
    mandatory=_CONDITIONS,
    aliases=("CheckNodeConditionPredicate",),
)

CHECK_NODE_UNSCHEDULABLE: Final = PredicateDeclaration(
    "CheckNodeUnschedulable",
    "the node is not cordoned, or the pod tolerates that",
    plain(CheckNodeUnschedulable),
    provided=True,
    exists=_TAINTS,
    mandatory=_TAINTS,
)

HOST_NAME: Final = PredicateDeclaration(
    "HostName",
    "the node is the one that the pod names, if it names one",
    plain(HostName),
    aliases=("PodFitsHost",),
)

CHECK_NODE_LABEL_PRESENCE: Final = PredicateDeclaration(
    "CheckNodeLabelPresence",
    LABELS_PRESENCE.description,
    None,
    argument=LABELS_PRESENCE,
)

CHECK_NODE_MEMORY_PRESSURE: Final = PredicateDeclaration(
    "CheckNodeMemoryPressure",
    "the node is not short of memory, or the pod has requests or limits",
    plain(CheckNodeMemoryPressure),
    provided=True,
    exists=_CONDITIONS,
    aliases=("CheckNodeMemoryPressurePredicate",),
)

CHECK_NODE_PID_PRESSURE: Final = PredicateDeclaration(
    "CheckNodePIDPressure",
    "the node is not short of process ids",
    plain(CheckNodePIDPressure),
    provided=True,
    exists=_CONDITIONS,
    aliases=("CheckNodePIDPressurePredicate",),
)

CHECK_NODE_DISK_PRESSURE: Final = PredicateDeclaration(
    "CheckNodeDiskPressure",
    "the node is not short of disk space",
    plain(CheckNodeDiskPressure),
    provided=True,
    exists=_CONDITIONS,
    aliases=("CheckNodeDiskPressurePredicate",),
)

EQUAL_PRIORITY: Final = PriorityDeclaration(
    "EqualPriority", "the same for every node", plain(EqualPriority)
)

NODE_PREFER_AVOID_PODS_PRIORITY: Final = PriorityDeclaration(
    "NodePreferAvoidPodsPriority",
    "the node does not ask to be spared the pod's controller",
    plain(NodePreferAvoidPodsPriority),
    weight=10000,
    providers=BOTH_PROVIDERS,
)
