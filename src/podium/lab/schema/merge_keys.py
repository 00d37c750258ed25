"""How lists and maps of the API merge: one table for every type of patch.

Strategic merge patches read `strategy` and `key`, server-side apply `list_type` and `keys`, and the
OpenAPI documents contain all four, so that clients merge as the server does. A list that is not in
the table is replaced as a whole, and has one owner as a whole.

The two types of patches differ in places. Strategic merge identifies a port by its number,
server-side apply by number and protocol. Conditions of jobs merge in the first and are atomic in
the second. The table is that of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MERGE, REPLACE, RETAIN_KEYS = "merge", "replace", "retainKeys"
MAP, SET, ATOMIC, GRANULAR = "map", "set", "atomic", "granular"


@dataclass(frozen=True, slots=True)
class MergeKeys:
    """How one field merges; where an attribute is empty, the type of the field decides."""

    #: The strategy of strategic merge patches: `merge`, `replace`, `retainKeys`, or two of them.
    strategy: str = ""
    #: The field that identifies an item of a list in strategic merge patches.
    key: str = ""
    #: The type of a list in server-side apply: `map`, `set` or `atomic`.
    list_type: str = ""
    #: The fields that identify an item of a `map` in server-side apply.
    keys: tuple[str, ...] = ()
    #: Whether an object is owned field by field (`granular`) or as a whole (`atomic`).
    map_type: str = ""

    @property
    def merges(self) -> bool:
        """Whether strategic merge patches merge the list item by item."""
        return MERGE in self.strategy.split(",")

    def extensions(self) -> dict[str, str | list[str]]:
        """The `x-kubernetes-…` extensions of an OpenAPI document."""
        found: dict[str, str | list[str]] = {
            "x-kubernetes-list-map-keys": list(self.keys),
            "x-kubernetes-list-type": self.list_type,
            "x-kubernetes-map-type": self.map_type,
            "x-kubernetes-patch-merge-key": self.key,
            "x-kubernetes-patch-strategy": self.strategy,
        }
        return {name: value for name, value in found.items() if value}


#: Type and field, then strategy and key of strategic merge, then type and keys of server-side
#: apply; a dash where there is none.
_LISTS = """
    AllocatedDeviceStatus.conditions            -                -              map    type
    Container.env                               merge            name           map    name
    Container.ports                             merge            containerPort  map    containerPort,protocol
    Container.volumeDevices                     merge            devicePath     map    devicePath
    Container.volumeMounts                      merge            mountPath      map    mountPath
    ContainerRestartRuleOnExitCodes.values      -                -              set    -
    ContainerStatus.allocatedResourcesStatus    merge            name           map    name
    ContainerStatus.volumeMounts                merge            mountPath      map    mountPath
    CSIDriverSpec.volumeLifecycleModes          -                -              set    -
    CSINodeSpec.drivers                         merge            name           map    name
    DaemonSetStatus.conditions                  merge            type           map    type
    DeploymentStatus.conditions                 merge            type           map    type
    Endpoint.addresses                          -                -              set    -
    EphemeralContainer.env                      merge            name           map    name
    EphemeralContainer.ports                    merge            containerPort  map    containerPort,protocol
    EphemeralContainer.volumeDevices            merge            devicePath     map    devicePath
    EphemeralContainer.volumeMounts             merge            mountPath      map    mountPath
    JobStatus.conditions                        merge            type           atomic -
    NamespaceStatus.conditions                  merge            type           map    type
    NodeAllocatableResourceClaimStatus.containers -              -              set    -
    NodeSpec.podCIDRs                           merge            -              set    -
    NodeStatus.addresses                        merge            type           map    type
    NodeStatus.conditions                       merge            type           map    type
    ObjectMeta.finalizers                       merge            -              set    -
    ObjectMeta.ownerReferences                  merge            uid            map    uid
    PersistentVolumeClaimStatus.conditions      merge            type           map    type
    PodDisruptionBudgetStatus.conditions        merge            type           map    type
    PodGroupStatus.conditions                  merge            type           map    type
    PodFailurePolicyOnExitCodesRequirement.values -              -              set    -
    PodSpec.containers                          merge            name           map    name
    PodSpec.ephemeralContainers                 merge            name           map    name
    PodSpec.hostAliases                         merge            ip             map    ip
    PodSpec.imagePullSecrets                    merge            name           map    name
    PodSpec.initContainers                      merge            name           map    name
    PodSpec.resourceClaims                      merge,retainKeys name           map    name
    PodSpec.schedulingGates                     merge            name           map    name
    PodSpec.topologySpreadConstraints           merge            topologyKey    map    topologyKey,whenUnsatisfiable
    PodSpec.volumes                             merge,retainKeys name           map    name
    PodStatus.conditions                        merge            type           map    type
    PodStatus.hostIPs                           merge            ip             atomic -
    PodStatus.nodeAllocatableResourceClaimStatuses merge         resourceClaimName map resourceClaimName
    PodStatus.podIPs                            merge            ip             map    ip
    PodStatus.resourceClaimStatuses             merge,retainKeys name           map    name
    ReplicaSetStatus.conditions                 merge            type           map    type
    ReplicationControllerStatus.conditions      merge            type           map    type
    ResourceClaimStatus.devices                 -                -              map    driver,device,pool,shareID
    ResourceClaimStatus.reservedFor             merge            uid            map    uid
    ResourceRequirements.claims                 -                -              map    name
    ResourceStatus.resources                    -                -              map    resourceID
    ServiceAccount.secrets                      merge            name           map    name
    ServiceSpec.ports                           merge            port           map    port,protocol
    ServiceStatus.conditions                    merge            type           map    type
    StatefulSetStatus.conditions                merge            type           map    type
    UncountedTerminatedPods.failed              -                -              set    -
    UncountedTerminatedPods.succeeded           -                -              set    -
"""  # noqa: E501  one row, one line

#: Fields that are not lists.
_OTHERS = {
    "DeploymentSpec.strategy": MergeKeys(strategy=RETAIN_KEYS),
    "PersistentVolumeClaimStatus.allocatedResourceStatuses": MergeKeys(map_type=GRANULAR),
    "PersistentVolumeSpec.claimRef": MergeKeys(map_type=GRANULAR),
    "PodDisruptionBudgetSpec.selector": MergeKeys(strategy=REPLACE),
    "PodSpec.nodeSelector": MergeKeys(map_type=ATOMIC),
    "ReplicationControllerSpec.selector": MergeKeys(map_type=ATOMIC),
    "ServiceSpec.selector": MergeKeys(map_type=ATOMIC),
}

#: Types that have one owner as a whole wherever they occur.
_ATOMIC_TYPES = """
    ConfigMapKeySelector EndpointAddress EndpointPort FileKeySelector LabelSelector
    LocalObjectReference NodeSelector NodeSelectorTerm ObjectFieldSelector ObjectReference
    OwnerReference ResourceFieldSelector ScopeSelector SecretKeySelector SecretReference
    TopologySelectorTerm TypedLocalObjectReference
"""
ATOMIC_TYPES = frozenset(_ATOMIC_TYPES.split())

#: Defaults of keys that an item of a list does not have.
KEY_DEFAULTS: Mapping[str, str] = {"protocol": "TCP"}

DEFAULT = MergeKeys()


def _read(rows: str) -> dict[str, MergeKeys]:
    found = {}
    for row in rows.strip().splitlines():
        field, *cells = row.split()
        strategy, key, list_type, keys = ("" if cell == "-" else cell for cell in cells)
        named = tuple(keys.split(",")) if keys else ()
        found[field] = MergeKeys(strategy, key, list_type, named)
    return found


TABLE: Mapping[str, MergeKeys] = {**_read(_LISTS), **_OTHERS}


def merge_keys(type_name: str, field: str) -> MergeKeys:
    """How a field of a type (`PodSpec`, `containers`) merges."""
    return TABLE.get(f"{type_name}.{field}", DEFAULT)
