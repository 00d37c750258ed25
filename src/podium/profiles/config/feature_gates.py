"""The feature gates of kube-scheduler v1.36.

Gates of other components are accepted and have no effect, so that one list of gates may serve all
components of a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.errors import ConfigError
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class FeatureGate(msgspec.Struct, frozen=True):
    """A feature gate that the scheduler reads."""

    name: str
    description: str
    default: bool
    #: Whether kube-scheduler refuses any other value.
    locked: bool = False
    #: Whether Podium supports this value only.
    fixed: bool = False
    #: Gates that must be on when this one is.
    needs: tuple[str, ...] = ()


_DRA: Final = ("DynamicResourceAllocation",)


def _on(name: str, description: str, **more: Any) -> FeatureGate:
    return FeatureGate(name, description, default=True, **more)


def _off(name: str, description: str, **more: Any) -> FeatureGate:
    return FeatureGate(name, description, default=False, **more)


GATES: Final = (
    _on("DRAAdminAccess", "claims may have admin access", locked=True, needs=_DRA),
    _on("DRAConsumableCapacity", "devices are shared by capacity", needs=_DRA),
    _on(
        "DRADeviceBindingConditions",
        "bindingTimeout of DynamicResourcesArgs",
        needs=("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    ),
    _off("DRADeviceTaintRules", "taint rules for devices", needs=("DRADeviceTaints",)),
    _on("DRADeviceTaints", "devices have taints", needs=_DRA),
    _on("DRAExtendedResource", "devices as extended resources", needs=_DRA),
    _off("DRAListTypeAttributes", "attributes that are lists", needs=_DRA),
    _off(
        "DRANodeAllocatableResources",
        "devices count as cpu or memory",
        fixed=True,
        needs=_DRA,
    ),
    _on("DRAPartitionableDevices", "devices in parts", needs=_DRA),
    _on("DRAPrioritizedList", "lists of alternatives in claims", needs=_DRA),
    _on("DRAResourceClaimDeviceStatus", "bindingTimeout of DynamicResourcesArgs"),
    _on("DRASchedulerFilterTimeout", "filterTimeout of DynamicResourcesArgs", needs=_DRA),
    _off(
        "DRAWorkloadResourceClaims",
        "claims of pod groups",
        fixed=True,
        needs=("DynamicResourceAllocation", "GenericWorkload"),
    ),
    _on("DynamicResourceAllocation", "the plugin DynamicResources", locked=True),
    _off(
        "GangScheduling",
        "the plugin GangScheduling",
        fixed=True,
        needs=("GenericWorkload",),
    ),
    _off("GenericWorkload", "pod groups", fixed=True),
    _on(
        "InPlacePodLevelResourcesVerticalScaling",
        "resizes of pod-level resources count",
        fixed=True,
        needs=("InPlacePodVerticalScaling", "PodLevelResources", "NodeDeclaredFeatures"),
    ),
    _on("InPlacePodVerticalScaling", "resizes of containers count", locked=True),
    _on(
        "MatchLabelKeysInPodTopologySpread",
        "matchLabelKeys of spread constraints",
        fixed=True,
    ),
    _on("NodeDeclaredFeatures", "the plugin NodeDeclaredFeatures", fixed=True),
    _on(
        "NodeInclusionPolicyInPodTopologySpread",
        "nodeAffinityPolicy and nodeTaintsPolicy",
        locked=True,
    ),
    _on("NominatedNodeNameForExpectation", "nominations tell what is expected"),
    _on("OpportunisticBatching", "equal pods reuse a ranking"),
    _on("PodLevelResources", "requests of the whole pod count", fixed=True),
    _off("SchedulerAsyncAPICalls", "calls to the API server do not wait"),
    _on("SchedulerAsyncPreemption", "victims are evicted in the background"),
    _on("SchedulerPopFromBackoffQ", "an idle scheduler does not wait for backoff"),
    _on("SchedulerQueueingHints", "plugins say which event may help", locked=True),
    _on("SidecarContainers", "restartable init containers count", locked=True),
    _off("StorageCapacityScoring", "VolumeBinding scores capacity", fixed=True),
    _off("TaintTolerationComparisonOperators", "tolerations with Gt and Lt", fixed=True),
    _off(
        "TopologyAwareWorkloadScheduling",
        "placements of pod groups",
        fixed=True,
        needs=("GenericWorkload",),
    ),
    _on("VolumeAttributesClass", "claims wait for a changed class", locked=True),
    _off("VolumeLimitScaling", "nodes without a driver count as full", fixed=True),
    _off(
        "WorkloadAwarePreemption",
        "preemption for pod groups",
        fixed=True,
        needs=("GangScheduling",),
    ),
)

#: Feature gates of other components; kube-scheduler accepts them.
OTHER_GATES: Final = frozenset(
    """
    APIResponseCompression APIServerIdentity APIServerTracing APIServingWithRoutine
    AggregatedDiscoveryRemoveBetaType AllowDNSOnlyNodeCSR
    AllowInsecureKubeletCertificateSigningRequests AllowOverwriteTerminationGracePeriodSeconds
    AllowParsingUserUIDFromCertAuth AllowServiceExternalIPs AllowUnsafeMalformedObjectDeletion
    AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
    AuthorizePodWebsocketUpgradeCreatePermission AuthorizeWithSelectors BtreeWatchCache
    CBORServingAndStorage CPUCFSQuotaPeriod CPUManagerPolicyAlphaOptions
    CPUManagerPolicyBetaOptions CPUManagerPolicyOptions CRDObservedGenerationTracking
    CRDValidationRatcheting CRIListStreaming CSIServiceAccountTokenSecrets CSIVolumeHealth
    ChangeContainerStatusOnKubeletRestart ClearingNominatedNodeNameAfterBinding
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
    ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz
    ConcurrentWatchObjectDecode ConsistentListFromCache ConstrainedImpersonation
    ContainerCheckpoint ContainerRestartRules ContainerStopSignals CoordinatedLeaderElection
    CrossNamespaceVolumeDataSource CustomResourceFieldSelectors
    DRAResourceClaimGranularStatusAuthorization DRAResourcePoolStatus DeclarativeValidation
    DeclarativeValidationBeta DeclarativeValidationTakeover
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DisableAllocatorDualWrite
    DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion EnvFiles EventedPLEG
    ExecProbeTimeout ExtendWebSocketsToKubelet ExternalServiceAccountTokenSigner
    GitRepoVolumeDriver GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority
    HPAConfigurableTolerance HPAScaleToZero HostnameOverride ImageMaximumGCAge ImageVolume
    ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory InPlacePodVerticalScalingInitContainers
    JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KMSv1
    KubeletCgroupDriverFromCRI KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
    KubeletFineGrainedAuthz KubeletInUserNamespace KubeletPSI
    KubeletPodResourcesDynamicResources KubeletPodResourcesGet
    KubeletPodResourcesListUseActivePods KubeletRegistrationGetOnExistsOnly
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders KubeletTracing
    ListFromCacheSnapshot LocalStorageCapacityIsolationFSQuotaMonitoring LogarithmicScaleDown
    ManifestBasedAdmissionControlConfig MatchLabelKeysInPodAffinity
    MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
    MultiCIDRServiceAllocator MutableCSINodeAllocatableCount MutablePVNodeAffinity
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
    MutatingAdmissionPolicy NFTablesProxyMode NodeLogQuery NodeSwap OpenAPIEnums
    OrderedNamespaceDeletion PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime
    PodAndContainerStatsFromCRI PodCertificateRequest PodDeletionCost PodLevelResourceManagers
    PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodLogsQuerySplitStreams
    PodObservedGenerationTracking PodReadyToStartContainersCondition PodSchedulingReadiness
    PodTopologyLabelsAdmission PodsAPI PortForwardWebsockets PreferSameTrafficDistribution
    PreventStaticPodAPIReferences ProcMountType QOSReserved RecoverVolumeExpansionFailure
    RecursiveReadOnlyMounts ReduceDefaultCrashLoopBackOffDecay RelaxedDNSSearchValidation
    RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResilientWatchCacheInitialization
    ResourceHealthStatus ResourceHealthStatusMessage RestartAllContainersOnContainerExits
    RetryGenerateName RotateKubeletServerCertificate RuntimeClassInImageCriAPI
    SELinuxChangePolicy SELinuxMount SELinuxMountReadWriteOncePod SeparateCacheWatchRPC
    SeparateTaintEvictionController ServiceAccountNodeAudienceRestriction ServiceAccountTokenJTI
    ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
    ServiceAccountTokenPodNodeInfo ServiceCIDRStatusFieldWiping ShardedListAndWatch
    SizeBasedListCostEstimate StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    StatefulSetSemanticRevisionComparison StorageNamespaceIndex StorageVersionAPI
    StorageVersionHash StorageVersionMigrator StreamingCollectionEncodingToJSON
    StreamingCollectionEncodingToProtobuf StrictIPCIDRValidation
    StructuredAuthenticationConfiguration StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics SupplementalGroupsPolicy SystemdWatchdog
    TokenRequestServiceAccountUIDValidation TopologyManagerPolicyAlphaOptions
    TopologyManagerPolicyBetaOptions TopologyManagerPolicyOptions
    TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UserNamespacesHostNetworkSupport UserNamespacesSupport
    WatchCacheInitializationPostStartHook WatchList WinDSR WinOverlay
    WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork WorkloadWithJob
    """.split()  # noqa: SIM905  a list of two hundred names reads best as text
)

_BY_NAME = {gate.name: gate for gate in GATES}


class FeatureGates:
    """Which feature gates are on."""

    def __init__(self, changes: Mapping[str, bool] | None = None) -> None:
        """*changes* to the defaults; what kube-scheduler refuses is refused with its text."""
        self._on = {gate.name: gate.default for gate in GATES}
        refusals: list[str] = []
        for name, value in (changes or {}).items():
            if name not in _BY_NAME and name not in OTHER_GATES:
                raise ConfigError(f"unrecognized feature gate: {name}", hint=_hint(name))
            refusals += self._set(name, value=value)
        refusals = refusals or list(self._unmet())
        if refusals:
            raise ConfigError(refusals[0] if len(refusals) == 1 else f"[{', '.join(refusals)}]")

    def __getitem__(self, name: str) -> bool:
        """Whether a gate is on."""
        return self._on[name]

    def as_dict(self) -> dict[str, bool]:
        """Every gate that the scheduler reads and its value, by name."""
        return dict(self._on)

    def changed(self) -> list[str]:
        """The gates that are not at their defaults."""
        return [gate.name for gate in GATES if self._on[gate.name] != gate.default]

    def check_supported(self) -> None:
        """Refuse values that kube-scheduler supports and Podium does not."""
        for gate in GATES:
            if gate.fixed and self._on[gate.name] != gate.default:
                raise ConfigError(
                    f"feature gate {gate.name}={_word(self._on[gate.name])} is not supported",
                    hint=f"leave it out or write {gate.name}={_word(gate.default)}",
                )

    def _set(self, name: str, *, value: bool) -> Iterator[str]:
        gate = _BY_NAME.get(name)
        if gate is None:
            return
        if gate.locked and value != gate.default:
            yield (
                f"cannot set feature gate {name} to {_word(value)}, "
                f"feature is locked to {_word(gate.default)}"
            )
        self._on[name] = value

    def _unmet(self) -> Iterator[str]:
        for gate in GATES:
            off = [name for name in gate.needs if not self._on[name]]
            if self._on[gate.name] and off:
                yield (
                    f"{gate.name} is enabled, but depends on features that are disabled: "
                    f"[{' '.join(off)}]"
                )


def _word(value: object) -> str:
    return str(value).lower()


#: Gates of v1.13 that this generation has not: with them, the other one is meant.
_OF_V1_13: Final = frozenset(
    {
        "AttachVolumeLimit",
        "EnableEquivalenceClassCache",
        "PodPriority",
        "ResourceLimitsPriorityFunction",
        "TaintNodesByCondition",
        "VolumeScheduling",
    }
)


def _hint(name: str) -> str:
    if name in _OF_V1_13:
        return "it is a gate of v1.13: add --profile v1.13"
    return did_you_mean(name, _BY_NAME) or f"the scheduler reads: {', '.join(_BY_NAME)}"
