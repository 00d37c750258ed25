"""Pods: the part of the specification and status that scheduling reads."""

from __future__ import annotations

import msgspec

from podium.objects.kinds.meta import (
    Int32,
    LabelSelector,
    LabelSelectorRequirement,
    Object,
    RawQuantity,
    ResourceList,
    Time,
    Value,
)


class ResourceRequirements(Value, frozen=True):
    """Requests and limits of a container, or of a whole pod."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None


class ContainerPort(Value, frozen=True):
    """A port of a container; only host ports matter to scheduling."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = ""


class RestartRule(Value, frozen=True):
    """A container restart rule; only its action is read."""

    action: str = ""


class Container(Value, frozen=True):
    """A regular or init container."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None


class Toleration(Value, frozen=True):
    """Taints that the pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorTerm(Value, frozen=True):
    """Expressions over labels and fields of a node, ANDed."""

    match_expressions: list[LabelSelectorRequirement] | None = None
    match_fields: list[LabelSelectorRequirement] | None = None


class NodeSelector(Value, frozen=True):
    """Terms, ORed; no terms match no node."""

    node_selector_terms: list[NodeSelectorTerm] | None = None


class PreferredSchedulingTerm(Value, frozen=True):
    """A node preference and its weight."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Value, frozen=True):
    """Required and preferred terms over nodes."""

    required: NodeSelector | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: list[PreferredSchedulingTerm] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class PodAffinityTerm(Value, frozen=True):
    """A term of pod affinity: pods, by label and namespace, and a topology key."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class WeightedPodAffinityTerm(Value, frozen=True):
    """A preferred term and its weight."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Value, frozen=True):
    """Required and preferred terms; the same shape serves affinity and anti-affinity."""

    required: list[PodAffinityTerm] | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: list[WeightedPodAffinityTerm] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(Value, frozen=True):
    """Everything about affinity that a pod declares."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Value, frozen=True):
    """How evenly pods must or should be spread over the domains of a topology key."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class ClaimVolume(Value, frozen=True):
    """A volume that is a PersistentVolumeClaim."""

    claim_name: str = ""


class GcePersistentDisk(Value, frozen=True):
    """An inline GCE disk."""

    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStore(Value, frozen=True):
    """An inline EBS volume."""

    volume_id: str = msgspec.field(name="volumeID", default="")
    read_only: bool = False


class AzureDisk(Value, frozen=True):
    """An inline Azure disk; drivers serve only those of the kind `Managed`."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(name="diskURI", default="")
    kind: str | None = None


class CinderVolume(Value, frozen=True):
    """An inline OpenStack volume."""

    volume_id: str = msgspec.field(name="volumeID", default="")


class PortworxVolume(Value, frozen=True):
    """An inline Portworx volume."""

    volume_id: str = msgspec.field(name="volumeID", default="")


class IscsiVolume(Value, frozen=True):
    """An inline iSCSI target; portal and lun are not compared."""

    iqn: str = ""
    read_only: bool = False


class RbdVolume(Value, frozen=True):
    """An inline Ceph image."""

    monitors: list[str] | None = None
    image: str = ""
    pool: str = ""
    read_only: bool = False


class EphemeralVolume(Value, frozen=True):
    """A generic ephemeral volume; its claim is named `<pod>-<volume>`."""


class ImageVolume(Value, frozen=True):
    """A volume whose content is an OCI image."""

    reference: str = ""


class CsiInlineVolume(Value, frozen=True):
    """An inline CSI volume; only its driver is read."""

    driver: str = ""


class Volume(Value, frozen=True):
    """A pod volume. Sources that scheduling ignores decode to an empty volume.

    The name is read for generic ephemeral volumes only (see `pod_class`): names of service
    account token volumes differ from pod to pod.
    """

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None
    iscsi: IscsiVolume | None = None
    rbd: RbdVolume | None = None
    csi: CsiInlineVolume | None = None
    ephemeral: EphemeralVolume | None = None
    image: ImageVolume | None = None


class SchedulingGate(Value, frozen=True):
    """A scheduling gate; a pod that has any is not scheduled."""

    name: str = ""


class PodResourceClaim(Value, frozen=True):
    """A claim for devices that the pod uses, by its own name or by that of a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Value, frozen=True):
    """The pod group that a pod belongs to, of the pod's own namespace."""

    pod_group_name: str | None = None


class PodSpec(Value, frozen=True):
    """The specification of a pod."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    host_network: bool = False
    host_users: bool | None = None
    overhead: dict[str, RawQuantity] | None = None
    resources: ResourceRequirements | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    scheduling_group: PodSchedulingGroup | None = None


class PodCondition(Value, frozen=True):
    """A condition of the pod's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    message: str = ""


class ContainerStatus(Value, frozen=True):
    """Resources that a running container has, which differ from its spec during a resize."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None


class PodResourceClaimStatus(Value, frozen=True):
    """The claim that was made from the template of an entry; without a name, none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResource(Value, frozen=True):
    """The request of a claim that serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(Value, frozen=True):
    """The claim that the scheduler made for the extended resources of the pod."""

    request_mappings: list[ContainerExtendedResource] | None = None
    resource_claim_name: str = ""


class PodStatus(Value, frozen=True):
    """The phase, conditions and nomination of a pod."""

    phase: str = ""
    nominated_node_name: str = ""
    start_time: Time | None = None
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList | None = None
    resource_claim_statuses: list[PodResourceClaimStatus] | None = None
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None


class Pod(Object, frozen=True):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def uid(self) -> str:
        """The uid; the key of a pod that was never in an API server."""
        return self.metadata.uid or self.key

    @property
    def priority(self) -> int:
        """The resolved priority; none means 0."""
        return self.spec.priority or 0

    @property
    def group(self) -> str:
        """The key of the pod group that it names (`namespace/name`); empty if it names none."""
        named = self.spec.scheduling_group
        if named is None or not named.pod_group_name:
            return ""
        return f"{self.metadata.namespace or 'default'}/{named.pod_group_name}"

    @property
    def terminating(self) -> bool:
        """Whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        """Whether it has succeeded or failed; the scheduler ignores these pods."""
        return self.status.phase in {"Succeeded", "Failed"}
