"""Rules on the node alone: its name, conditions, cordon, labels, pressure and features.

NodeUnschedulable, NodeName and NodeDeclaredFeatures are plugins; the others are rules of v1.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.engine.framework.causes import (
    Cause,
    Condition,
    Cordoned,
    LabelPresence,
    MissingFeatures,
    OtherNode,
    ScoreNumber,
)
from podium.engine.framework.declaration import (
    PluginDeclaration,
    PolicyArgument,
    PredicateDeclaration,
    PriorityDeclaration,
    plain,
)
from podium.engine.framework.rule import (
    Activity,
    BitFilter,
    Everywhere,
    FilterRule,
    Scope,
    ScoreRule,
    scope_with,
)
from podium.engine.framework.shortcuts import RuleShortcuts
from podium.engine.framework.trace import Prepared
from podium.engine.rows.rows import Ints, K, ManyRows, Rows
from podium.engine.rules.plugins import always
from podium.engine.rules.priorities import BOTH_PROVIDERS, HIGHEST_PRIORITY
from podium.engine.state.accounting import is_best_effort
from podium.engine.state.pod_class import once_per_form, once_per_requests
from podium.engine.state.verdicts import Reason
from podium.objects.kinds.node import Node, Taint
from podium.objects.kinds.pod import Pod, PodSpec
from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.node_columns import FactColumn
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View


UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


def tolerates_cordon(cls: PodClass) -> bool:
    """Whether the pod tolerates the taint of unschedulable nodes."""
    tolerations = cls.spec.tolerations
    return bool(tolerations) and tolerated(tolerations, UNSCHEDULABLE_TAINT)


def cordon(reason: Reason, at: OneRow) -> Iterator[Cause]:
    """The cause where the node is cordoned."""
    if at.view.nodes.facts.unschedulable.on(at.row):
        yield Cordoned(reason.text)


class PodsAlike(RuleShortcuts):
    """A rule that asks nothing of pods, beyond whether it concerns them."""

    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """Nothing: pods are treated alike."""
        return ()


class CordonFilter(PodsAlike, BitFilter):
    """A cordoned node takes only pods that tolerate the taint of unschedulable nodes.

    Each generation names the rule and its only reason.
    """

    def scope(self, cls: PodClass) -> Scope:
        """The node, for pods that do not tolerate the taint."""
        return Scope.NONE if tolerates_cordon(cls) else Scope.NODE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where the node is cordoned and the pod does not tolerate it."""
        if tolerates_cordon(pod.cls):
            return at.full(0)
        return at.fact(at.view.nodes.facts.unschedulable, int)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """That the node is cordoned."""
        return cordon(self.reasons[0], at)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable]:
        """Nothing: every rejected node is cordoned."""
        return [()] * len(at)


class NamedNodeFilter(BitFilter):
    """A pod with `spec.nodeName` fits that node only.

    Each generation names the rule and its only reason.
    """

    keyed_by_form = True
    scope = scope_with("host", Scope.NODE)

    def row_key(self, cls: PodClass) -> Hashable:
        """The node that the pod names."""
        return cls.host

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 on every other node."""
        wanted = pod.cls.host
        return (at.is_node(wanted) ^ True) * 1 if wanted else at.full(0)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The node that the pod names."""
        wanted = pod.cls.host
        if wanted and wanted != at.name:
            yield OtherNode(self.reasons[0].text, wanted)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable]:
        """Nothing: every rejected node is another one."""
        return [()] * len(at)


def zero_for_all_values(
    memo: dict[object, Any], column: FactColumn, answer: Callable[[Any], int], key: object
) -> bool:
    """Whether `answer` is 0 for every distinct value of a column of node facts.

    The result is kept in the memo of a pod class, or of a form where all of its classes get the
    same, under `key`; each value is passed to `answer` once.
    """
    seen, same = memo.get(key, (0, True))
    if seen < len(column.values):
        same = same and not any(map(answer, column.values[seen:]))
        memo[key] = (len(column.values), same)
    return bool(same)


UNSCHEDULABLE = Reason("node(s) were unschedulable", curable=False)
NODE_NAME_MISMATCH = Reason("node(s) didn't match the requested node name", curable=False)
MISSING_FEATURES = Reason("node(s) didn't match Pod's required features", curable=False)


class NodeUnschedulable(CordonFilter):
    """A cordoned node takes only pods that tolerate the taint of unschedulable nodes."""

    name = "NodeUnschedulable"
    reasons = (UNSCHEDULABLE,)

    def activity(self, pod: Incoming, view: View) -> Activity:
        """The plugin has no PreFilter, so it is never skipped."""
        return Activity.OWN_ROW


class NodeName(NamedNodeFilter):
    """A pod with `spec.nodeName` fits that node only."""

    name = "NodeName"
    reasons = (NODE_NAME_MISMATCH,)


class NodeDeclaredFeatures(BitFilter):
    """The node must declare every feature that the pod's specification requires."""

    name = "NodeDeclaredFeatures"
    reasons = (MISSING_FEATURES,)
    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """The features that the pod requires."""
        return needed_features(cls)

    def scope(self, cls: PodClass) -> Scope:
        """The node, for pods that require features."""
        return Scope.NODE if needed_features(cls) else Scope.NONE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a required feature is not declared."""
        needed = needed_features(pod.cls)
        return at.fact(at.view.nodes.facts.features, lambda declared: int(not needed <= declared))

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The features that the node does not declare."""
        missing = needed_features(pod.cls) - at.view.nodes.facts.features.on(at.row)
        if missing:
            yield MissingFeatures(MISSING_FEATURES.text, tuple(sorted(missing)))


def seen_features(declared: Iterable[str]) -> frozenset[str]:
    """The declared features that kube-scheduler sees.

    It expects a sorted list, and misses names that are out of order.
    """
    seen, last = set(), ""
    for name in declared:
        if name > last:
            seen.add(name)
            last = name
    return frozenset(seen)


@once_per_form
def needed_features(cls: PodClass) -> frozenset[str]:
    """The node features that the pods of a class require."""
    return _features_for(cls.spec)


def _features_for(spec: PodSpec) -> frozenset[str]:
    """The node features that a pod's specification requires."""
    needed = []
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    rules = [rule for container in containers for rule in container.restart_policy_rules or ()]
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.append("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        needed.append("UserNamespacesHostNetworkSupport")
    return frozenset(needed)


def became_schedulable(_waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node that takes pods came, or began to take pods."""
    return not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def tolerates_unschedulable(waiting: Pod, _old: Pod, new: Pod) -> bool:
    """The waiting pod itself tolerates unschedulable nodes now."""
    return new.uid == waiting.uid and tolerated(new.spec.tolerations, UNSCHEDULABLE_TAINT)


def features_changed(_waiting: Pod, old: Node | None, new: Node) -> bool:
    """A node came or declares other features."""
    before = old and old.status.declared_features
    return old is None or (before or []) != (new.status.declared_features or [])


def required_features_changed(waiting: Pod, old: Pod, new: Pod) -> bool:
    """The pod itself needs other features of nodes than before."""
    return new.uid == waiting.uid and _features_for(old.spec) != _features_for(new.spec)


NODE_UNSCHEDULABLE: Final = PluginDeclaration(
    "NodeUnschedulable",
    "filter",
    "the node is not cordoned, or the pod tolerates that",
    filter=plain(NodeUnschedulable),
    events={
        "Node Add": became_schedulable,
        "Node UpdateNodeTaint": became_schedulable,
        "Pod UpdatePodToleration": tolerates_unschedulable,
    },
)

NODE_NAME: Final = PluginDeclaration(
    "NodeName",
    "filter",
    "the node is the one that the pod names, if it names one",
    filter=plain(NodeName),
    events={"Node Add": always},
)

NODE_DECLARED_FEATURES: Final = PluginDeclaration(
    "NodeDeclaredFeatures",
    "preFilter filter",
    "features that the node declares",
    filter=plain(NodeDeclaredFeatures),
    feature_gate="NodeDeclaredFeatures",
    pre_filter_error='error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found',
    events={
        "Node Add": features_changed,
        "Node UpdateNodeDeclaredFeature": features_changed,
        "Pod Update": required_features_changed,
    },
)


NOT_READY = Reason("node(s) were not ready", curable=False)
OUT_OF_DISK = Reason("node(s) were out of disk space", curable=False)
NETWORK_UNAVAILABLE = Reason("node(s) had unavailable network", curable=False)
HOST_NAME_MISMATCH = Reason("node(s) didn't match the requested hostname", curable=False)
LABELS_MISMATCH = Reason("node(s) didn't have the requested labels", curable=False)
MEMORY_PRESSURE = Reason("node(s) had memory pressure", curable=False)
DISK_PRESSURE = Reason("node(s) had disk pressure", curable=False)
PID_PRESSURE = Reason("node(s) had pid pressure", curable=False)


class CheckNodeCondition(PodsAlike, FilterRule):
    """The node must be ready, have a network and disk space, and not be cordoned.

    A condition that is not reported is fine; one that is `Unknown` is not.
    """

    name = "CheckNodeCondition"
    reasons = (NOT_READY, OUT_OF_DISK, NETWORK_UNAVAILABLE, UNSCHEDULABLE)

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
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

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The conditions that are wrong, and that the node is cordoned."""
        for condition in at.view.nodes.facts.conditions.on(at.row):
            for reason in _bad_conditions((condition,)):
                yield Condition(reason.text, *condition)
        yield from cordon(UNSCHEDULABLE, at)


#: The status that each condition should have, and the reason where it has another.
_CONDITIONS_WANTED: Final = {
    "Ready": ("True", NOT_READY),
    "OutOfDisk": ("False", OUT_OF_DISK),
    "NetworkUnavailable": ("False", NETWORK_UNAVAILABLE),
}


def _bad_conditions(conditions: tuple[tuple[str, str], ...]) -> tuple[Reason, ...]:
    wanted = ((_CONDITIONS_WANTED.get(kind), status) for kind, status in conditions)
    return tuple(each[1] for each, status in wanted if each and status != each[0])


class CheckNodeUnschedulable(CordonFilter):
    """A cordoned node takes only pods that tolerate the taint of unschedulable nodes."""

    name = "CheckNodeUnschedulable"
    reasons = (UNSCHEDULABLE,)


class HostName(NamedNodeFilter):
    """A pod with `spec.nodeName` fits that node only."""

    name = "HostName"
    reasons = (HOST_NAME_MISMATCH,)


class CheckNodeLabelPresence(PodsAlike, BitFilter):
    """All the configured label keys must exist on the node, or none of them may."""

    reasons = (LABELS_MISMATCH,)

    def __init__(
        self, labels: list[str], *, presence: bool, name: str = "CheckNodeLabelPresence"
    ) -> None:
        self.name = name
        self.labels = labels
        self.presence = presence

    def scope(self, cls: PodClass) -> Scope:
        """The node, if any label key is configured."""
        return Scope.NODE if self.labels else Scope.NONE

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a required key is missing, or a forbidden one exists."""
        wrong = at.flags(False)  # noqa: FBT003 - a column of False
        for key in self.labels:
            wrong = wrong | (at.has_label(key) != self.presence)
        return wrong * 1

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The label keys that are missing, or present and must not be."""
        for key in self.labels:
            value = at.node_labels.get(key)
            if (value is not None) != self.presence:
                yield LabelPresence(LABELS_MISMATCH.text, key, self.presence, value)


class _Pressure(PodsAlike, BitFilter):
    """A node with a pressure condition takes no new pods."""

    condition: str

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where the node has the condition."""
        return at.fact(
            at.view.nodes.facts.pressures, lambda pressures: int(self.condition in pressures)
        )

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
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

    def prepared(self, pod: Incoming, view: View) -> Iterator[Prepared]:
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


class EqualPriority(PodsAlike, ScoreRule):
    """Scores every node 1."""

    name = "EqualPriority"
    formula = "1 for every node"

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """Every row gets 1."""
        return Everywhere(1)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 for every row."""
        return at.full(1)


class NodeLabelPriority(PodsAlike, ScoreRule):
    """Prefers nodes that have a label key, or those without it."""

    formula = "10 if the label is as configured, else 0"

    def __init__(self, label: str, *, presence: bool, name: str) -> None:
        self.label = label
        self.presence = presence
        self.name = name

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """10 where the label is as configured, else 0."""
        return (at.has_label(self.label) == self.presence) * HIGHEST_PRIORITY

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
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
            return Everywhere(HIGHEST_PRIORITY)
        column = view.nodes.facts.avoid
        same = zero_for_all_values(
            pod.cls.memo, column, lambda a: int(_avoids_controller(pod.cls, a)), _avoids_controller
        )
        return Everywhere(HIGHEST_PRIORITY) if same else None

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """0 where the node avoids the pod, else 10."""
        return at.fact(
            at.view.nodes.facts.avoid,
            lambda a: 0 if _avoids_controller(pod.cls, a) else HIGHEST_PRIORITY,
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
