"""v1.35: what differs from v1.36."""

from __future__ import annotations

from typing import Final

from podium.engine.framework.choices import Choices, DeviceChoices, FeatureGate, WakeUps
from podium.generations.v1_36 import V1_36
from podium.releases import V1_35 as RELEASE

_DRA: Final = ("DynamicResourceAllocation",)
_GATES: Final = V1_36.with_gates(
    FeatureGate(
        "DRAAdminAccess", "claims may have admin access", default=True, stage="Beta", needs=_DRA
    ),
    FeatureGate(
        "DRAConsumableCapacity",
        "devices are shared by capacity",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=_DRA,
    ),
    FeatureGate(
        "DRADeviceBindingConditions",
        "bindingTimeout of DynamicResourcesArgs",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    ),
    FeatureGate(
        "DRADeviceTaintRules",
        "taint rules for devices",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("DRADeviceTaints",),
    ),
    FeatureGate(
        "DRADeviceTaints",
        "devices have taints",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=_DRA,
    ),
    FeatureGate(
        "DRAExtendedResource",
        "devices as extended resources",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=_DRA,
    ),
    FeatureGate(
        "DRAPartitionableDevices",
        "devices in parts",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=_DRA,
    ),
    FeatureGate(
        "DRAPrioritizedList",
        "lists of alternatives in claims",
        default=True,
        stage="Beta",
        needs=_DRA,
    ),
    FeatureGate(
        "InPlacePodLevelResourcesVerticalScaling",
        "resizes of pod-level resources count",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("InPlacePodVerticalScaling", "PodLevelResources", "NodeDeclaredFeatures"),
    ),
    FeatureGate(
        "NodeDeclaredFeatures",
        "the plugin NodeDeclaredFeatures",
        default=False,
        stage="Alpha",
        fixed=True,
    ),
    FeatureGate(
        "VolumeAttributesClass", "claims wait for a changed class", default=True, stage="GA"
    ),
    without=(
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAWorkloadResourceClaims",
        "TopologyAwareWorkloadScheduling",
        "WorkloadAwarePreemption",
    ),
)
_OTHER_GATES: Final = V1_36.other_gates.union(
    """
    CSIMigrationPortworx HonorPVReclaimPolicy InPlacePodVerticalScalingAllocatedStatus
    InTreePluginPortworxUnregister MemoryManager ServiceTrafficDistribution
    StructuredAuthorizationConfiguration TopologyAwareHints
    WatchFromStorageWithoutResourceVersion
    """.split()  # noqa: SIM905  names read best as text
).difference(
    """
    AllowServiceExternalIPs AtomicFIFO CRIListStreaming ClientsAllowCARotation
    ClientsAllowTLSCacheGC ControllerManagerReleaseLeaderElectionLockOnExit
    DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus DeclarativeValidationBeta
    ExtendWebSocketsToKubelet ImageVolumeWithDigest InPlacePodVerticalScalingInitContainers
    ManifestBasedAdmissionControlConfig PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime
    PodLevelResourceManagers PodsAPI ResourceHealthStatusMessage ServiceCIDRStatusFieldWiping
    ShardedListAndWatch StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    UnlockWhileProcessingFIFO WorkloadWithJob
    """.split()  # noqa: SIM905
)
#: They came with v1.36.
_LATER_POINTS: Final = ("placementGenerate", "placementScore")
_LATER_PLUGINS: Final = ("TopologyPlacementGenerator", "PodGroupPodsCount")

V1_35: Final = V1_36.having(
    release=RELEASE,
    gates=_GATES,
    other_gates=_OTHER_GATES,
    plugins=tuple(each for each in V1_36.plugins if each.name not in _LATER_PLUGINS),
    points=tuple(point for point in V1_36.points if point not in _LATER_POINTS),
    choices=Choices(
        balance="with the pod",
        image_volumes="ignored",
        devices=DeviceChoices(
            mixes_up_alternatives=True,
            distinct="unknown",
            timeout_is_error=False,
            orders_slices=False,
            pod="pod",
        ),
    ),
    wake_ups=WakeUps(
        own_labels_and_foreign_anti_affinity=False,
        nominated_pods_count=False,
        nominated_labels_count=False,
    ),
)
