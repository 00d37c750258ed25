"""Volumes, claims and storage classes."""

from __future__ import annotations

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
    PortworxVolume,
    ResourceRequirements,
)


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
