"""Volumes, claims and storage classes; in-tree volumes as the CSI drivers that serve them.

A disk named in a pod or a PersistentVolume by its cloud's own field is a volume of that cloud's CSI
driver: this module says which driver, what the driver calls the volume, and from which nodes it is
reached once a node has handed the older kind over.

    Upstream: `k8s.io/csi-translation-lib`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from podium.objects.kinds.meta import (
    Int32,
    LabelSelector,
    LabelSelectorRequirement,
    Object,
    RawQuantity,
    ResourceList,
    Value,
)
from podium.objects.kinds.pod import (
    AwsElasticBlockStore,
    AzureDisk,
    CinderVolume,
    GcePersistentDisk,
    NodeSelector,
    NodeSelectorTerm,
    PortworxVolume,
    ResourceRequirements,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from podium.objects.kinds.pod import AzureDisk, Volume


class ObjectReference(Value, frozen=True):
    """A pointer to a claim."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


class CsiVolumeSource(Value, frozen=True):
    """A volume served by a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Value, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Value, frozen=True):
    """The specification of a volume."""

    capacity: ResourceList | None = None
    access_modes: list[str] | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None
    csi: CsiVolumeSource | None = None


class VolumeStatus(Value, frozen=True):
    """Phase of a volume or a claim."""

    phase: str = ""


class PersistentVolume(Object, frozen=True):
    """A persistent volume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: VolumeStatus = VolumeStatus()


class PersistentVolumeClaimSpec(Value, frozen=True):
    """The specification of a claim."""

    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements | None = None
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(Object, frozen=True):
    """A claim for a persistent volume."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: VolumeStatus = VolumeStatus()


class TopologySelectorTerm(Value, frozen=True):
    """Label expressions (always In), ANDed."""

    match_label_expressions: list[LabelSelectorRequirement] | None = None


class StorageClass(Object, frozen=True):
    """How volumes of a class are provisioned and bound."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class CsiNodeAllocatable(Value, frozen=True):
    """The limit of volumes of a driver on a node."""

    count: Int32 | None = None


class CsiNodeDriver(Value, frozen=True):
    """A driver installed on a node."""

    name: str = ""
    allocatable: CsiNodeAllocatable | None = None


class CsiNodeSpec(Value, frozen=True):
    """Drivers of one node."""

    drivers: list[CsiNodeDriver] | None = None


class CsiNode(Object, frozen=True):
    """CSI drivers on the node of the same name."""

    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(Value, frozen=True):
    """Features of a CSI driver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CsiDriver(Object, frozen=True):
    """A CSI driver."""

    spec: CsiDriverSpec = CsiDriverSpec()


class CsiStorageCapacity(Object, frozen=True):
    """Capacity for volumes of a storage class in a part of the topology."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: RawQuantity | None = None
    maximum_volume_size: RawQuantity | None = None


class VolumeAttachmentSource(Value, frozen=True):
    """Which volume is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Value, frozen=True):
    """A volume, the node that it is attached to, and the driver that attaches it."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Object, frozen=True):
    """A volume attached to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
#: Which older kinds a node has handed over, on its CSINode.
HANDED_OVER = "storage.alpha.kubernetes.io/migrated-plugins"
BETWEEN_ZONES = "__"
UNSPECIFIED = "UNSPECIFIED"
_EBS_VOLUME = re.compile(r"vol-[^/]*", re.DOTALL)


class UntranslatableError(Exception):
    """The driver has no name for the volume, for this reason."""


class Successor(msgspec.Struct, frozen=True):
    """The CSI driver of an older kind."""

    driver: str
    #: The label that stands for a node's zone; empty when zones stay what they are.
    zone: str = ""


EBS, GCE, AZURE = "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/azure-disk"
CINDER, PORTWORX = "kubernetes.io/cinder", "kubernetes.io/portworx-volume"
SUCCESSORS = {
    EBS: Successor("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    GCE: Successor("pd.csi.storage.gke.io", "topology.gke.io/zone"),
    AZURE: Successor("disk.csi.azure.com"),
    CINDER: Successor("cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"),
    PORTWORX: Successor("pxd.portworx.com"),
}
#: Older kinds with a driver whose volumes no node counts.
UNCOUNTED = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})


def older_kind(source: Volume | PersistentVolumeSpec) -> str:
    """The older kind of a volume, as its provisioner is called; empty for all others."""
    if source.aws_elastic_block_store is not None:
        return EBS
    if source.gce_persistent_disk is not None:
        return GCE
    if source.azure_disk is not None:
        return AZURE
    if source.cinder is not None:
        return CINDER
    return PORTWORX if source.portworx_volume is not None else ""


def made_by(provisioner: str) -> str:
    """The driver whose volumes a storage class makes; empty when none counts."""
    successor = SUCCESSORS.get(provisioner)
    if successor is not None:
        return successor.driver
    return "" if provisioner in UNCOUNTED else provisioner


def handle(source: Volume | PersistentVolumeSpec, zones: str = "") -> str:
    """What the driver calls the volume; `zones` is what a label of it says."""
    if source.aws_elastic_block_store is not None:
        return _ebs_handle(source.aws_elastic_block_store.volume_id)
    if source.gce_persistent_disk is not None:
        return f"projects/{UNSPECIFIED}/{_place(zones)}/disks/{source.gce_persistent_disk.pd_name}"
    if source.azure_disk is not None:
        return _azure_handle(source.azure_disk)
    found = source.cinder or source.portworx_volume
    return found.volume_id if found is not None else ""


def handle_of(volume: PersistentVolume) -> str:
    """What the driver calls a PersistentVolume."""
    labels = volume.metadata.labels or {}
    return handle(volume.spec, labels.get(BETA_ZONE) or labels.get(ZONE, ""))


def nameless(volume: Volume) -> str:
    """Why the driver has no name for a volume of a pod; empty when it has, or there is none."""
    try:
        handle(volume)
    except UntranslatableError as error:
        return str(error)
    return ""


def _ebs_handle(name: str) -> str:
    if not name.startswith("aws://"):
        return name
    address = re.split("[?#]", name.removeprefix("aws://"))[0]
    found = address.partition("/")[2].strip("/")
    if not _EBS_VOLUME.fullmatch(found):
        wrong = f"Invalid format for AWS volume ({name})"
        raise UntranslatableError(f"failed to translate Kubernetes ID to EBS Volume ID {wrong}")
    return found


def _azure_handle(disk: AzureDisk) -> str:
    if disk.kind is not None and disk.kind.lower() != "managed":
        raise UntranslatableError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def _place(zones: str) -> str:
    """The part of a GCE handle that says where the disk is."""
    if BETWEEN_ZONES not in zones:
        return f"zones/{zones or UNSPECIFIED}"
    regions = set()
    for zone in zones.split(BETWEEN_ZONES):
        parts = zone.split("-")
        if len(parts) != len(("locale", "region", "zone")):
            wrong = "zone in unexpected format, expected: {locale}-{region}-{zone}, got: "
            raise UntranslatableError(f"failed to get region from zones: {wrong}{zone}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(regions))
        wrong = f"multiple or no regions gotten from zones, got: map[{found}]"
        raise UntranslatableError(f"failed to get region from zones: {wrong}")
    return f"regions/{regions.pop()}"


def handed_over(kind: str) -> Callable[[CsiNode], bool]:
    """Whether a node says that volumes of an older kind are its CSI driver's."""

    def told(found: CsiNode) -> bool:
        return kind in (found.metadata.annotations or {}).get(HANDED_OVER, "").split(",")

    return told


def reachable_from(volume: PersistentVolume) -> NodeSelector | None:
    """The nodes a handed-over volume is reached from, in the driver's own labels."""
    handle_of(volume)
    affinity = volume.spec.node_affinity
    required = affinity.required if affinity is not None else None
    key = SUCCESSORS[older_kind(volume.spec)].zone
    if not key:
        return required
    labels = volume.metadata.labels or {}
    if required is None and not labels:
        return None
    terms = [*(required.node_selector_terms or ())] if required is not None else []
    zone, region = _keys(terms, labels)
    if _values(terms, zone):
        terms = _renamed(terms, zone, key)
    elif zones := sorted({each.strip() for each in labels.get(zone, "").split("__")} - {""}):
        more = LabelSelectorRequirement(key, "In", zones)
        terms = [
            msgspec.structs.replace(term, match_expressions=[*(term.match_expressions or ()), more])
            for term in terms or (NodeSelectorTerm(),)
        ]
    if region == BETA_REGION and _values(terms, region):
        terms = _renamed(terms, region, REGION)
    return NodeSelector(terms) if terms or required is not None else None


def _keys(terms: Iterable[NodeSelectorTerm], labels: dict[str, str]) -> tuple[str, str]:
    """The keys in use for zone and region: those of today unless only the old zone is named."""
    named = {each.key for term in terms for each in term.match_expressions or ()}
    for found in (named, labels):
        if ZONE in found:
            return ZONE, REGION
        if BETA_ZONE in found:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _values(terms: Iterable[NodeSelectorTerm], key: str) -> bool:
    """Whether any value is asked for under a key."""
    return any(
        each.key == key and each.values for term in terms for each in term.match_expressions or ()
    )


def _renamed(terms: Iterable[NodeSelectorTerm], key: str, new: str) -> list[NodeSelectorTerm]:
    def changed(each: LabelSelectorRequirement) -> LabelSelectorRequirement:
        return msgspec.structs.replace(each, key=new) if each.key == key else each

    return [
        msgspec.structs.replace(
            term, match_expressions=[changed(each) for each in term.match_expressions or ()]
        )
        for term in terms
    ]
