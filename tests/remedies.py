"""Takes a cause away: frees the room, drops the taint, deletes the blocking pod.

Each remedy changes as little as it can, so that a reason which goes away with it was caused by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from builders import volume
from podium.engine.framework import causes
from podium.objects.kinds.meta import Object
from podium.objects.kinds.node import Node, NodeCondition
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.storage import CsiNode, PersistentVolume, StorageClass


class ImpossibleError(Exception):
    """No change of the cluster takes the cause away: the pod itself would have to change."""


class Changed:
    """A cluster and a pod that remedies change."""

    def __init__(self, items: Iterable[Object], wanted: Pod, node: str) -> None:
        self.items = list(items)
        self.wanted = wanted
        self.node = node

    def change_node(self, change: Callable[[Node], Node]) -> None:
        self.items = [
            change(item) if isinstance(item, Node) and item.name == self.node else item
            for item in self.items
        ]

    def label(self, key: str, value: str | None) -> None:
        def relabelled(item: Node) -> Node:
            labels = {k: v for k, v in (item.metadata.labels or {}).items() if k != key}
            if value is not None:
                labels[key] = value
            return replace(item, metadata=replace(item.metadata, labels=labels))

        self.change_node(relabelled)

    def allocate(self, resource: str, amount: int) -> None:
        raw = f"{amount}m" if resource == "cpu" else str(amount)

        def larger(item: Node) -> Node:
            allocatable = dict(item.status.allocatable or {}) | {resource: raw}
            return replace(item, status=replace(item.status, allocatable=allocatable))

        self.change_node(larger)

    def delete(self, pods: Sequence[causes.PodOnNode]) -> None:
        gone = {pod.pod for pod in pods}
        self.items = [
            item for item in self.items if not (isinstance(item, Pod) and item.key in gone)
        ]


def without(
    found: Sequence[causes.Cause], items: Iterable[Object], wanted: Pod, node: str
) -> tuple[list[Object], Pod]:
    """The objects and the pod, with these causes taken away on a node."""
    changed = Changed(items, wanted, node)
    required = _required_keys(wanted)
    for each in found:
        if isinstance(each, causes.Expression) and required.count(each.key) > 1:
            raise ImpossibleError  # two requirements on one label may exclude each other
        REMEDIES[type(each)](each, changed)
    return changed.items, changed.wanted


def _required_keys(wanted: Pod) -> list[str]:
    keys = list(wanted.spec.node_selector or {})
    affinity = wanted.spec.affinity and wanted.spec.affinity.node_affinity
    terms = (affinity and affinity.required and affinity.required.node_selector_terms) or ()
    return keys + [each.key for term in terms for each in term.match_expressions or ()]


def _room(cause: causes.Room, changed: Changed) -> None:
    promised = sum(each.amount for each in cause.nominated)
    needed = cause.wanted + cause.used + promised
    if max(needed, cause.wanted, cause.used, promised) >= 1 << 60 or cause.used < 0:
        raise ImpossibleError  # sums wrap
    changed.allocate(cause.resource, needed)


def _expression(cause: causes.Expression, changed: Changed) -> None:
    if cause.field:
        raise ImpossibleError
    wanted: dict[str, str | None] = {
        "In": cause.values[0] if cause.values else "",
        "NotIn": None,
        "Exists": "x",
        "DoesNotExist": None,
        "Gt": str(int(cause.values[0]) + 1) if cause.operator == "Gt" else "",
        "Lt": str(int(cause.values[0]) - 1) if cause.operator == "Lt" else "",
    }
    changed.label(cause.key, wanted[cause.operator])


def _impossible(cause: causes.Cause, changed: Changed) -> None:
    raise ImpossibleError


def _taint(cause: causes.UntoleratedTaint, changed: Changed) -> None:
    def dropped(item: Node) -> Node:
        left = [
            taint
            for taint in item.spec.taints or ()
            if (taint.key, taint.value or "", taint.effect)
            != (cause.key, cause.value, cause.effect)
        ]
        return replace(item, spec=replace(item.spec, taints=left))

    changed.change_node(dropped)


def _cordon(cause: causes.Cordoned, changed: Changed) -> None:
    changed.change_node(lambda item: replace(item, spec=replace(item.spec, unschedulable=False)))


def _condition(cause: causes.Condition, changed: Changed) -> None:
    good = "True" if cause.type == "Ready" else "False"

    def better(item: Node) -> Node:
        conditions = [
            NodeCondition(each.type, good) if each.type == cause.type else each
            for each in item.status.conditions or ()
        ]
        return replace(item, status=replace(item.status, conditions=conditions))

    changed.change_node(better)


def _other_node(cause: causes.OtherNode, changed: Changed) -> None:
    spec = replace(changed.wanted.spec, node_name="")
    changed.wanted = replace(changed.wanted, spec=spec)


def _label(cause: causes.LabelPresence, changed: Changed) -> None:
    changed.label(cause.key, "x" if cause.required else None)


def _features(cause: causes.MissingFeatures, changed: Changed) -> None:
    def declaring(item: Node) -> Node:
        declared = sorted({*(item.status.declared_features or ()), *cause.features})
        return replace(item, status=replace(item.status, declared_features=declared))

    changed.change_node(declaring)


def _holder(cause: Any, changed: Changed) -> None:
    changed.delete([cause.holder])


def _zone(cause: causes.VolumeElsewhere, changed: Changed) -> None:
    changed.label(cause.key, cause.zones[0])


def _limit(cause: causes.VolumeLimit, changed: Changed) -> None:
    needed = cause.attached + cause.new
    if cause.limit_of.startswith("attachable-volumes-"):
        changed.allocate(cause.limit_of, needed)
        return

    def larger(item: CsiNode) -> CsiNode:
        drivers = [
            replace(each, allocatable=replace(each.allocatable, count=needed))
            if each.name == cause.limit_of and each.allocatable is not None
            else each
            for each in item.spec.drivers or ()
        ]
        return replace(item, spec=replace(item.spec, drivers=drivers))

    changed.items = [
        larger(item) if isinstance(item, CsiNode) and item.name == changed.node else item
        for item in changed.items
    ]


def _unreachable(cause: causes.VolumeUnreachable, changed: Changed) -> None:
    if not cause.failed or len({each.where for each in cause.failed}) > 1:
        raise ImpossibleError
    for each in cause.failed:
        _expression(each, changed)


def _lost(cause: causes.VolumeLost, changed: Changed) -> None:
    changed.items.append(volume(cause.volume))


def _unserved(cause: causes.ClaimUnserved, changed: Changed) -> None:
    if cause.why not in {"noVolume", "topology"}:
        raise ImpossibleError
    if cause.why == "topology":
        changed.items = [
            replace(item, allowed_topologies=None)
            if isinstance(item, StorageClass) and item.name == cause.storage_class
            else item
            for item in changed.items
        ]
        return
    name = f"for-{cause.claim.replace('/', '-')}"
    made: PersistentVolume = volume(name, storage_class=cause.storage_class, storage="1Ti")
    changed.items.append(made)


def _blocking(cause: causes.BlockingPods, changed: Changed) -> None:
    if len(cause.pods) < cause.count:
        raise ImpossibleError
    changed.delete(cause.pods)


def _topology_label(cause: causes.MissingTopologyLabel, changed: Changed) -> None:
    changed.label(cause.topology_key, "x")


def _service(cause: causes.ServiceLabel, changed: Changed) -> None:
    if cause.node == changed.node:
        raise ImpossibleError
    changed.label(cause.label, cause.wanted)


REMEDIES: dict[type[causes.Cause], Callable[[Any, Changed], None]] = {
    causes.Room: _room,
    causes.Expression: _expression,
    causes.NoTerms: _impossible,
    causes.UntoleratedTaint: _taint,
    causes.Cordoned: _cordon,
    causes.Condition: _condition,
    causes.OtherNode: _other_node,
    causes.LabelPresence: _label,
    causes.MissingFeatures: _features,
    causes.PortInUse: _holder,
    causes.DiskInUse: _holder,
    causes.ClaimInUse: lambda cause, changed: changed.delete(cause.holders),
    causes.VolumeElsewhere: _zone,
    causes.VolumeLimit: _limit,
    causes.VolumeUnreachable: _unreachable,
    causes.VolumeLost: _lost,
    causes.ClaimUnserved: _unserved,
    causes.BlockingPods: _blocking,
    causes.MissingPods: _impossible,
    causes.Skew: _impossible,
    causes.MissingTopologyLabel: _topology_label,
    causes.ServiceLabel: _service,
    causes.DevicesLacking: _impossible,
    causes.PoolInvalid: _impossible,
    causes.ClaimElsewhere: _impossible,
    causes.ResourceUnknown: _impossible,
    causes.RefusedEverywhere: _impossible,
    causes.RuleAnswer: _impossible,
}
