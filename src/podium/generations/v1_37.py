"""v1.37: what differs from v1.36."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from podium.engine.framework.choices import (
    Choices,
    Conduct,
    DeviceChoices,
    FeatureGate,
    WakeUps,
)
from podium.engine.framework.declaration import PluginDeclaration
from podium.engine.rules.named_only import DEFERRED_POD_SCHEDULING
from podium.engine.rules.pod_groups import GANG_SCHEDULING
from podium.generations.v1_36 import V1_36
from podium.releases import V1_37 as RELEASE

_DRA: Final = ("DynamicResourceAllocation",)
_GATES: Final = V1_36.with_gates(
    FeatureGate(
        "CompositePodGroup",
        "groups of pod groups",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("GenericWorkload", "TopologyAwareWorkloadScheduling"),
    ),
    FeatureGate(
        "DRADerivedAttributes",
        "attributes that requests compute",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=_DRA,
    ),
    FeatureGate(
        "DRADeviceCompatibilityGroups",
        "devices that cannot be used together",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("DynamicResourceAllocation", "DRAPartitionableDevices"),
    ),
    FeatureGate(
        "DRADeviceTaintRules",
        "taint rules for devices",
        default=True,
        stage="GA",
        needs=("DRADeviceTaints",),
    ),
    FeatureGate("DRADeviceTaints", "devices have taints", default=True, stage="GA", needs=_DRA),
    FeatureGate(
        "DRAExtendedResource",
        "devices as extended resources",
        default=True,
        stage="GA",
        locked=True,
        needs=_DRA,
    ),
    FeatureGate(
        "DRAFractionalCapacityRange",
        "ranges of capacity in thousandths",
        default=True,
        needs=("DRAConsumableCapacity",),
    ),
    FeatureGate(
        "DRAOptionalNodeOperations",
        "drivers without operations on nodes",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("DynamicResourceAllocation", "NodeDeclaredFeatures"),
    ),
    FeatureGate(
        "DRAPrioritizedList",
        "lists of alternatives in claims",
        default=True,
        stage="GA",
        locked=True,
        needs=_DRA,
    ),
    FeatureGate(
        "DRAResourceClaimDeviceStatus",
        "bindingTimeout of DynamicResourcesArgs",
        default=True,
        stage="GA",
        locked=True,
    ),
    FeatureGate(
        "DRAWorkloadResourceClaims",
        "claims of pod groups",
        default=False,
        fixed=True,
        needs=("DynamicResourceAllocation", "GenericWorkload"),
    ),
    FeatureGate("GenericWorkload", "pod groups", default=False),
    FeatureGate(
        "InPlacePodVerticalScalingSchedulerPreemption",
        "preemption for resizes",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("InPlacePodVerticalScaling",),
    ),
    FeatureGate(
        "InterPodAffinityHostnameFastPath",
        "a faster way for hostnames",
        default=False,
        stage="Alpha",
    ),
    FeatureGate(
        "NodeDeclaredFeatures",
        "the plugin NodeDeclaredFeatures",
        default=True,
        stage="GA",
        locked=True,
    ),
    FeatureGate(
        "PodGroupPreemptionPolicy",
        "preemptionPolicy of pod groups",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("GenericWorkload",),
    ),
    FeatureGate(
        "SchedulerPreQueueingHints",
        "hints before the queue",
        default=False,
        stage="Alpha",
        fixed=True,
    ),
    FeatureGate("StorageCapacityScoring", "VolumeBinding scores capacity", default=True),
    FeatureGate("VolumeLimitScaling", "pods keep off nodes without a driver", default=True),
    without=(
        "GangScheduling",
        "SchedulerQueueingHints",
        "SidecarContainers",
        "WorkloadAwarePreemption",
    ),
)

_OTHER_GATES: Final = V1_36.other_gates.union(
    """
    APIServerWebhookAuthenticationToken AtomicWriteVolumeUserFields
    ConsistentListFromCacheSkipTimeoutFallback DRAPartitionableDevicesType DefaultPodSysctls
    EmptyDirVolumeMode EtcdRangeStream EvictionRequestAPI
    ExcludeAdmissionWebhookVirtualResources GRPCContainerProbeTLS H2CContainerProbe
    HPAGeneration HPAOptimizedSelectorStore HugepageAwareEviction
    InPlacePodVerticalScalingMemoryBackedVolumes KubeProxyIPVS
    KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint NFTablesNetlink
    NodeControllerLeaseCircuitBreaker NodeLifecycleConditions PodLevelResourcesFixDefaulting
    PodLevelResourcesFixKubeletQOSClass StaleControllerConsistencyHPA
    StatefulSetRecreateStrategy VolumeBindMountOptions WatchListCompression
    WebhookRoundTripLoadBalancing
    """.split()  # noqa: SIM905  names read best as text
).difference(
    """
    APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache
    ConsistentListFromCache JobBackoffLimitPerIndex JobPodReplacementPolicy JobSuccessPolicy
    LogarithmicScaleDown OrderedNamespaceDeletion PodLifecycleSleepAction
    PodLifecycleSleepActionAllowZero PreventStaticPodAPIReferences
    RelaxedDNSSearchValidation ResilientWatchCacheInitialization RetryGenerateName
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
    StructuredAuthenticationConfiguration
    """.split()  # noqa: SIM905
)


def _plugins() -> tuple[PluginDeclaration, ...]:
    """NodeName comes first of the filters; more plugins take part at more points."""
    found = dict(V1_36.plugin)
    for name in ("NodeName", "NodeUnschedulable", "TaintToleration"):
        found[name] = replace(found[name], at=f"preFilter {found[name].at}")
    for name in ("DynamicResources", "DefaultPreemption"):
        found[name] = replace(found[name], at=f"{found[name].at} podGroupPostFilter")
    found["GangScheduling"] = GANG_SCHEDULING
    names = list(found)
    names.remove("NodeName")
    names.insert(names.index("NodeUnschedulable"), "NodeName")
    found[DEFERRED_POD_SCHEDULING.name] = DEFERRED_POD_SCHEDULING
    names.insert(names.index("NodeResourcesFit"), DEFERRED_POD_SCHEDULING.name)
    return tuple(found[name] for name in names)


V1_37: Final = V1_36.having(
    release=RELEASE,
    gates=_GATES,
    other_gates=_OTHER_GATES,
    plugins=_plugins(),
    points=(*V1_36.points, "podGroupPostFilter"),
    choices=Choices(
        image_volumes="scored and counted",
        keeps_namespace_selector=False,
        charges_all_budgets=False,
        tells_preemption=True,
        tells_idle_claims=False,
        resized="pod",
        pod_groups=True,
        devices=DeviceChoices(
            counters_everywhere=False,
            distinct="all",
            counts_empty_shares=True,
            all_includes_used_up=True,
            refuses_capacities=True,
            merges_settings=True,
            names_device_in_errors=True,
        ),
    ),
    wake_ups=WakeUps(
        taints_wake_like_new_nodes=False,
        any_anti_affinity=True,
        nominated_labels_count=False,
        deleted_claims_count=True,
        unscheduled="UnscheduledPod",
    ),
    conduct=Conduct(queues_entities=True, binding_pauses=(0.01, 0.05, 0.25)),
)
