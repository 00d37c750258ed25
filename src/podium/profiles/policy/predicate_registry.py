"""Every predicate that a Policy can name, in the order in which they run.

Only predicates with a name in this list run: one that an argument makes under any other name is
configured and never evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.engine.rules.node_affinity.v1_13 import MatchNodeSelector
from podium.engine.rules.nodes.v1_13 import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CheckNodeUnschedulable,
    HostName,
)
from podium.engine.rules.pod_affinity.v1_13 import MatchInterPodAffinity
from podium.engine.rules.ports.v1_13 import PodFitsHostPorts
from podium.engine.rules.resources.v1_13 import GeneralPredicates, PodFitsResources
from podium.engine.rules.taints.v1_13 import PodToleratesNodeTaints
from podium.engine.rules.volumes.binding.v1_13 import CheckVolumeBinding
from podium.engine.rules.volumes.conflicts.v1_13 import NoDiskConflict
from podium.engine.rules.volumes.limits.v1_13 import (
    Azure,
    Disk,
    Ebs,
    GcePd,
    MaxCSIVolumeCount,
    MaxVolumeCount,
)
from podium.engine.rules.volumes.zones.v1_13 import NoVolumeZoneConflict
from podium.profiles.policy.arguments import LABELS_PRESENCE, SERVICE_AFFINITY

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.rule import FilterRule
    from podium.profiles.policy.arguments import PolicyArgument
    from podium.profiles.policy.factory_args import FactoryArgs
    from podium.profiles.policy.feature_gates import FeatureGates

    Maker = Callable[[FactoryArgs], FilterRule]

CONDITIONS = "TaintNodesByCondition=false"
TAINTS = "TaintNodesByCondition"


@dataclass(frozen=True, slots=True)
class PredicateEntry:
    """A predicate. Conditions are feature gates: `Gate`, `Gate=false`, or empty for always."""

    name: str
    description: str
    #: None: only an argument makes a predicate of this name.
    make: Maker | None
    #: Whether both algorithm providers use it.
    provided: bool = False
    #: The condition under which the name can be used at all.
    exists: str = ""
    #: The condition under which every configuration gets it; None: never.
    mandatory: str | None = None
    #: The condition under which it rejects nodes at all.
    effective: str = ""
    #: The argument that its name usually comes with.
    argument: PolicyArgument[FilterRule] | None = None


def _plain(rule: Callable[[], FilterRule]) -> Maker:
    return lambda _: rule()


def _counted(name: str, disk: Disk) -> Maker:
    return lambda args: MaxVolumeCount(
        name,
        disk,
        node_limits=args.gates["AttachVolumeLimit"],
        limit=args.max_volumes,
    )


#: In the order of evaluation, positions 1 to 22.
PREDICATES = (
    PredicateEntry(
        "CheckNodeCondition",
        "the node is ready, has network and disk space, and is not cordoned",
        _plain(CheckNodeCondition), provided=True, exists=CONDITIONS, mandatory=CONDITIONS,
    ),
    PredicateEntry(
        "CheckNodeUnschedulable",
        "the node is not cordoned, or the pod tolerates that",
        _plain(CheckNodeUnschedulable), provided=True, exists=TAINTS, mandatory=TAINTS,
    ),
    PredicateEntry(
        "GeneralPredicates",
        "PodFitsResources, HostName, PodFitsHostPorts and MatchNodeSelector together",
        lambda args: GeneralPredicates(args.ignored_resources), provided=True,
    ),
    PredicateEntry(
        "HostName",
        "the node is the one that the pod names, if it names one",
        _plain(HostName),
    ),
    PredicateEntry(
        "PodFitsHostPorts",
        "the host ports that the pod wants are free on the node",
        _plain(PodFitsHostPorts),
    ),
    PredicateEntry(
        "MatchNodeSelector",
        "the node matches the pod's nodeSelector and required node affinity",
        _plain(MatchNodeSelector),
    ),
    PredicateEntry(
        "PodFitsResources",
        "the node has room for one more pod and for all that it requests",
        lambda args: PodFitsResources(args.ignored_resources),
    ),
    PredicateEntry(
        "NoDiskConflict",
        "no disk that the pod mounts is in use on the node in a way that excludes it",
        _plain(NoDiskConflict), provided=True,
    ),
    PredicateEntry(
        "PodToleratesNodeTaints",
        "the pod tolerates the node's NoSchedule and NoExecute taints",
        _plain(PodToleratesNodeTaints), provided=True, mandatory=TAINTS,
    ),
    PredicateEntry(
        "PodToleratesNodeNoExecuteTaints",
        "no rule of its own; PodToleratesNodeTaints covers NoExecute taints",
        None,
    ),
    PredicateEntry(
        "CheckNodeLabelPresence",
        LABELS_PRESENCE.description,
        None, argument=LABELS_PRESENCE,
    ),
    PredicateEntry(
        "CheckServiceAffinity",
        SERVICE_AFFINITY.description,
        None, argument=SERVICE_AFFINITY,
    ),
    PredicateEntry(
        "MaxEBSVolumeCount",
        "the node can attach the pod's EBS volumes besides those it has",
        _counted("MaxEBSVolumeCount", Ebs()), provided=True,
    ),
    PredicateEntry(
        "MaxGCEPDVolumeCount",
        "the node can attach the pod's GCE disks besides those it has",
        _counted("MaxGCEPDVolumeCount", GcePd()), provided=True,
    ),
    PredicateEntry(
        "MaxCSIVolumeCountPred",
        "the node can attach the pod's CSI volumes besides those it has",
        _plain(MaxCSIVolumeCount), provided=True, effective="AttachVolumeLimit",
    ),
    PredicateEntry(
        "MaxAzureDiskVolumeCount",
        "the node can attach the pod's Azure disks besides those it has",
        _counted("MaxAzureDiskVolumeCount", Azure()), provided=True,
    ),
    PredicateEntry(
        "CheckVolumeBinding",
        "the pod's claims are bound to volumes that the node reaches, or can be",
        _plain(CheckVolumeBinding), provided=True, effective="VolumeScheduling",
    ),
    PredicateEntry(
        "NoVolumeZoneConflict",
        "the node is in the zone of the pod's volumes",
        lambda args: NoVolumeZoneConflict(waits=args.gates["VolumeScheduling"]),
        provided=True,
    ),
    PredicateEntry(
        "CheckNodeMemoryPressure",
        "the node is not short of memory, or the pod has requests or limits",
        _plain(CheckNodeMemoryPressure), provided=True, exists=CONDITIONS,
    ),
    PredicateEntry(
        "CheckNodePIDPressure",
        "the node is not short of process ids",
        _plain(CheckNodePIDPressure), provided=True, exists=CONDITIONS,
    ),
    PredicateEntry(
        "CheckNodeDiskPressure",
        "the node is not short of disk space",
        _plain(CheckNodeDiskPressure), provided=True, exists=CONDITIONS,
    ),
    PredicateEntry(
        "MatchInterPodAffinity",
        "required affinity and anti-affinity between pods holds on the node",
        _plain(MatchInterPodAffinity), provided=True,
    ),
)  # fmt: skip

#: A name that is accepted and not in the order, so that it never runs.
PORTS_ALIAS = PredicateEntry(
    "PodFitsPorts", "an old name of PodFitsHostPorts; never runs", _plain(PodFitsHostPorts)
)

#: Names from documentation that kube-scheduler refuses, and the predicates they are read as.
ALIASES = {"PodFitsHost": "HostName"}

POSITIONS = {entry.name: position for position, entry in enumerate(PREDICATES, 1)}
BY_NAME = {entry.name: entry for entry in (*PREDICATES, PORTS_ALIAS)}


def registered(gates: FeatureGates) -> dict[str, PredicateEntry]:
    """The predicates that can be used without an argument, by name."""
    return {
        entry.name: entry
        for entry in BY_NAME.values()
        if entry.make is not None and gates.hold(entry.exists)
    }


def mandatory(gates: FeatureGates) -> tuple[str, ...]:
    """The names that every configuration gets."""
    return tuple(
        entry.name
        for entry in PREDICATES
        if entry.mandatory is not None and gates.hold(entry.mandatory)
    )


def provided(gates: FeatureGates) -> tuple[str, ...]:
    """The names that both providers have."""
    return tuple(entry.name for entry in registered(gates).values() if entry.provided)
