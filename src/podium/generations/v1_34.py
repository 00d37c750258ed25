"""v1.34: what differs from v1.35."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from podium.engine.framework.choices import Conduct, FeatureGate
from podium.engine.framework.declaration import PluginDeclaration
from podium.generations.v1_35 import V1_35
from podium.releases import V1_34 as RELEASE

_GATES: Final = V1_35.with_gates(
    FeatureGate("DRAAdminAccess", "claims may have admin access", default=True, stage="Beta"),
    FeatureGate(
        "DRAConsumableCapacity",
        "devices are shared by capacity",
        default=False,
        stage="Alpha",
        fixed=True,
    ),
    FeatureGate(
        "DRADeviceBindingConditions",
        "bindingTimeout of DynamicResourcesArgs",
        default=False,
        stage="Alpha",
        fixed=True,
    ),
    FeatureGate("DRADeviceTaints", "devices have taints", default=False, stage="Alpha", fixed=True),
    FeatureGate(
        "DRAExtendedResource",
        "devices as extended resources",
        default=False,
        stage="Alpha",
        fixed=True,
    ),
    FeatureGate(
        "DRAPartitionableDevices", "devices in parts", default=False, stage="Alpha", fixed=True
    ),
    FeatureGate(
        "DRAPrioritizedList", "lists of alternatives in claims", default=True, stage="Beta"
    ),
    FeatureGate(
        "DRASchedulerFilterTimeout",
        "filterTimeout of DynamicResourcesArgs",
        default=True,
        stage="Beta",
    ),
    FeatureGate(
        "DynamicResourceAllocation", "the plugin DynamicResources", default=True, stage="GA"
    ),
    FeatureGate(
        "InPlacePodVerticalScaling", "resizes of containers count", default=True, stage="Beta"
    ),
    FeatureGate(
        "NominatedNodeNameForExpectation",
        "nominations tell what is expected",
        default=False,
        stage="Alpha",
    ),
    without=(
        "DRADeviceTaintRules",
        "GangScheduling",
        "GenericWorkload",
        "InPlacePodLevelResourcesVerticalScaling",
        "NodeDeclaredFeatures",
        "OpportunisticBatching",
        "TaintTolerationComparisonOperators",
        "VolumeLimitScaling",
    ),
)
_OTHER_GATES: Final = V1_35.other_gates.union(
    """
    AllowServiceLBStatusOnNonLB ComponentSLIs CronJobsScheduledAnnotation LoadBalancerIPMode
    PodIndexLabel
    ProbeHostPodSecurityStandards SizeMemoryBackedVolumes StatefulSetAutoDeletePVC
    StrictCostEnforcementForVAP StrictCostEnforcementForWebhooks
    UserNamespacesPodSecurityStandards
    """.split()  # noqa: SIM905  names read best as text
).difference(
    """
    AuthorizePodWebsocketUpgradeCreatePermission CRDObservedGenerationTracking
    CSIServiceAccountTokenSecrets ChangeContainerStatusOnKubeletRestart
    CloudControllerManagerWatchBasedRoutesReconciliation ConstrainedImpersonation
    InOrderInformersBatchProcess MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs
    MutableSchedulingDirectivesForSuspendedJobs RestartAllContainersOnContainerExits
    StructuredAuthenticationConfigurationJWKSMetrics UserNamespacesHostNetworkSupport
    """.split()  # noqa: SIM905
)
#: They came with v1.35.
_LATER_PLUGINS: Final = ("GangScheduling", "NodeDeclaredFeatures")


def _earlier(plugin: PluginDeclaration) -> PluginDeclaration:
    """The plugin as it was: DynamicResources had no score."""
    if plugin.name != "DynamicResources":
        return plugin
    points = " ".join(point for point in plugin.at.split() if point != "score")
    return replace(plugin, at=points, score=None, weight=0)


V1_34: Final = V1_35.having(
    release=RELEASE,
    gates=_GATES,
    other_gates=_OTHER_GATES,
    plugins=tuple(_earlier(each) for each in V1_35.plugins if each.name not in _LATER_PLUGINS),
    choices=replace(
        V1_35.choices,
        devices=replace(
            V1_35.choices.devices,
            completes_over_nodes=False,
            uses_incomplete_pools=True,
            fails_on_invalid_pools=True,
            writes_tolerations=False,
        ),
    ),
    conduct=Conduct(ties="random", clears_without_post_filter=False),
)
