"""Notes about nodes on which a scheduler decides otherwise than a reader of the input may think.

Conditions: kube-scheduler looks at taints, and the node controller turns conditions into taints.
The nodes of a file have no such controller, so pods land on a node that is not ready. Zones: v1.13
reads the older labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.engine.framework.profile import Profile
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.node import Node
    from podium.objects.reading.collection import Objects

#: How many nodes a note names.
_NAMED: Final = 3
_NEWER_ZONE: Final = "topology.kubernetes.io/zone"
_OLDER_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_PREFIX: Final = "node.kubernetes.io/"
#: The taint that the node controller adds for a condition with a status.
_TAINTS: Final = {
    ("Ready", "False"): "not-ready",
    ("Ready", "Unknown"): "unreachable",
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("PIDPressure", "True"): "pid-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
}
#: Predicates of v1.13 that look at conditions themselves.
_BY_CONDITION: Final = {
    "Ready": "CheckNodeCondition",
    "NetworkUnavailable": "CheckNodeCondition",
    "MemoryPressure": "CheckNodeMemoryPressure",
    "DiskPressure": "CheckNodeDiskPressure",
    "PIDPressure": "CheckNodePIDPressure",
}


def cluster_notes(objects: Objects, chosen: ChosenProfiles) -> Iterator[str]:
    """Sentences about conditions without taints, and about zones that v1.13 does not see."""
    yield from _condition_notes(objects.nodes, chosen.profile, v1_13=chosen.is_v1_13)
    if chosen.is_v1_13:
        yield from _zone_notes(objects.nodes)


def _condition_notes(nodes: Sequence[Node], profile: Profile, *, v1_13: bool) -> Iterator[str]:
    running = {rule.name for rule in profile.predicates}
    found: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        taints = {taint.key for taint in node.spec.taints or ()}
        for condition in node.status.conditions or ():
            wanted = _TAINTS.get((condition.type, condition.status))
            looked_at = _BY_CONDITION.get(condition.type) in running
            if wanted and f"{_PREFIX}{wanted}" not in taints and not looked_at:
                found.setdefault((condition.type, condition.status), []).append(node.name)
    for (kind, status), names in found.items():
        taint = f"{_PREFIX}{_TAINTS[kind, status]}"
        gate = ", or give --feature-gates TaintNodesByCondition=false" if v1_13 else ""
        yield (
            f"{_listed(names)}: condition {kind} is {status}, which keeps no pod away without the "
            f"taint {taint}; the node controller would add it: write it into the file{gate}"
        )


def _zone_notes(nodes: Sequence[Node]) -> Iterator[str]:
    newer = [n.name for n in nodes if _NEWER_ZONE in n.labels and _OLDER_ZONE not in n.labels]
    if newer:
        yield (
            f"{_listed(newer)}: v1.13 reads zones from the label {_OLDER_ZONE} only; those in "
            f"{_NEWER_ZONE} do not count for spreading, the order of nodes and volumes"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"node{'s' if len(names) > 1 else ''} {', '.join(names[:_NAMED])}{more}"
