"""v1.36: the plugins, feature gates and choices that neighbouring releases are described by."""

from __future__ import annotations

from typing import Final

from podium.engine.framework.choices import FeatureGate
from podium.engine.framework.generation import Generation
from podium.generations.plugins import PLUGINS
from podium.releases import V1_36 as RELEASE

_DRA: Final = ("DynamicResourceAllocation",)

GATES: Final = (
    FeatureGate(
        "DRAAdminAccess",
        "claims may have admin access",
        default=True,
        stage="GA",
        locked=True,
        needs=_DRA,
    ),
    FeatureGate(
        "DRAConsumableCapacity",
        "devices are shared by capacity",
        default=True,
        stage="Beta",
        needs=_DRA,
    ),
    FeatureGate(
        "DRADeviceBindingConditions",
        "bindingTimeout of DynamicResourcesArgs",
        default=True,
        stage="Beta",
        needs=("DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"),
    ),
    FeatureGate(
        "DRADeviceTaintRules",
        "taint rules for devices",
        default=False,
        stage="Beta",
        needs=("DRADeviceTaints",),
    ),
    FeatureGate("DRADeviceTaints", "devices have taints", default=True, stage="Beta", needs=_DRA),
    FeatureGate(
        "DRAExtendedResource",
        "devices as extended resources",
        default=True,
        stage="Beta",
        needs=_DRA,
    ),
    FeatureGate(
        "DRAListTypeAttributes",
        "attributes that are lists",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=_DRA,
    ),
    FeatureGate(
        "DRANodeAllocatableResources",
        "devices count as cpu or memory",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=_DRA,
    ),
    FeatureGate(
        "DRAPartitionableDevices", "devices in parts", default=True, stage="Beta", needs=_DRA
    ),
    FeatureGate(
        "DRAPrioritizedList",
        "lists of alternatives in claims",
        default=True,
        stage="GA",
        needs=_DRA,
    ),
    FeatureGate(
        "DRAResourceClaimDeviceStatus",
        "bindingTimeout of DynamicResourcesArgs",
        default=True,
        stage="Beta",
    ),
    FeatureGate(
        "DRASchedulerFilterTimeout",
        "filterTimeout of DynamicResourcesArgs",
        default=True,
        stage="Beta",
        needs=_DRA,
    ),
    FeatureGate(
        "DRAWorkloadResourceClaims",
        "claims of pod groups",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("DynamicResourceAllocation", "GenericWorkload"),
    ),
    FeatureGate(
        "DynamicResourceAllocation",
        "the plugin DynamicResources",
        default=True,
        stage="GA",
        locked=True,
    ),
    FeatureGate(
        "GangScheduling",
        "the plugin GangScheduling",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("GenericWorkload",),
    ),
    FeatureGate("GenericWorkload", "pod groups", default=False, stage="Alpha", fixed=True),
    FeatureGate(
        "InPlacePodLevelResourcesVerticalScaling",
        "resizes of pod-level resources count",
        default=True,
        stage="Beta",
        fixed=True,
        needs=("InPlacePodVerticalScaling", "PodLevelResources", "NodeDeclaredFeatures"),
    ),
    FeatureGate(
        "InPlacePodVerticalScaling",
        "resizes of containers count",
        default=True,
        stage="GA",
        locked=True,
    ),
    FeatureGate(
        "MatchLabelKeysInPodTopologySpread",
        "matchLabelKeys of spread constraints",
        default=True,
        stage="Beta",
        fixed=True,
    ),
    FeatureGate(
        "NodeDeclaredFeatures",
        "the plugin NodeDeclaredFeatures",
        default=True,
        stage="Beta",
        fixed=True,
    ),
    FeatureGate(
        "NodeInclusionPolicyInPodTopologySpread",
        "nodeAffinityPolicy and nodeTaintsPolicy",
        default=True,
        stage="GA",
        locked=True,
    ),
    FeatureGate(
        "NominatedNodeNameForExpectation",
        "nominations tell what is expected",
        default=True,
        stage="Beta",
    ),
    FeatureGate("OpportunisticBatching", "equal pods reuse a ranking", default=True, stage="Beta"),
    FeatureGate(
        "PodLevelResources",
        "requests of the whole pod count",
        default=True,
        stage="Beta",
        fixed=True,
    ),
    FeatureGate(
        "SchedulerAsyncAPICalls", "calls to the API server do not wait", default=False, stage="Beta"
    ),
    FeatureGate(
        "SchedulerAsyncPreemption",
        "victims are evicted in the background",
        default=True,
        stage="Beta",
    ),
    FeatureGate(
        "SchedulerPopFromBackoffQ",
        "an idle scheduler does not wait for backoff",
        default=True,
        stage="Beta",
    ),
    FeatureGate(
        "SchedulerQueueingHints",
        "plugins say which event may help",
        default=True,
        stage="GA",
        locked=True,
    ),
    FeatureGate(
        "SidecarContainers",
        "restartable init containers count",
        default=True,
        stage="GA",
        locked=True,
    ),
    FeatureGate(
        "StorageCapacityScoring",
        "VolumeBinding scores capacity",
        default=False,
        stage="Alpha",
        fixed=True,
    ),
    FeatureGate(
        "TaintTolerationComparisonOperators",
        "tolerations with Gt and Lt",
        default=False,
        stage="Alpha",
        fixed=True,
    ),
    FeatureGate(
        "TopologyAwareWorkloadScheduling",
        "placements of pod groups",
        default=False,
        stage="Alpha",
        fixed=True,
        needs=("GenericWorkload",),
    ),
    FeatureGate(
        "VolumeAttributesClass",
        "claims wait for a changed class",
        default=True,
        stage="GA",
        locked=True,
    ),
    FeatureGate(
        "VolumeLimitScaling",
        "nodes without a driver count as full",
        default=False,
        stage="Alpha",
        fixed=True,
    ),
    FeatureGate(
        "WorkloadAwarePreemption",
        "preemption for pod groups",
        default=False,
        stage="Alpha",
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
    AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AtomicFIFO AuthorizeNodeWithSelectors
    AuthorizePodWebsocketUpgradeCreatePermission AuthorizeWithSelectors BtreeWatchCache
    CBORServingAndStorage CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions
    CPUManagerPolicyOptions CRDObservedGenerationTracking CRDValidationRatcheting
    CRIListStreaming CSIServiceAccountTokenSecrets CSIVolumeHealth
    ChangeContainerStatusOnKubeletRestart ClearingNominatedNodeNameAfterBinding
    ClientsAllowCARotation ClientsAllowCBOR ClientsAllowTLSCacheGC ClientsPreferCBOR
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook
    ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz
    ConcurrentWatchObjectDecode ConsistentListFromCache ConstrainedImpersonation
    ContainerCheckpoint ContainerRestartRules ContainerStopSignals ContextualLogging
    CoordinatedLeaderElection CrossNamespaceVolumeDataSource CustomCPUCFSQuotaPeriod
    CustomResourceFieldSelectors DRAResourceClaimGranularStatusAuthorization
    DRAResourcePoolStatus DeclarativeValidation DeclarativeValidationBeta
    DeclarativeValidationTakeover DeploymentReplicaSetTerminatingReplicas
    DetectCacheInconsistency DisableAllocatorDualWrite DisableCPUQuotaWithExclusiveCPUs
    DisableNodeKubeProxyVersion EnvFiles EventedPLEG ExecProbeTimeout ExtendWebSocketsToKubelet
    ExternalServiceAccountTokenSigner GitRepoVolumeDriver GracefulNodeShutdown
    GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HPAScaleToZero
    HostnameOverride ImageMaximumGCAge ImageVolume ImageVolumeWithDigest InOrderInformers
    InOrderInformersBatchProcess InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory InPlacePodVerticalScalingInitContainers
    InformerResourceVersion JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy
    JobSuccessPolicy KMSv1 KubeletCgroupDriverFromCRI KubeletCrashLoopBackOffMax
    KubeletEnsureSecretPulledImages KubeletFineGrainedAuthz KubeletInUserNamespace KubeletPSI
    KubeletPodResourcesDynamicResources KubeletPodResourcesGet
    KubeletPodResourcesListUseActivePods KubeletRegistrationGetOnExistsOnly
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders KubeletTracing
    ListFromCacheSnapshot LocalStorageCapacityIsolationFSQuotaMonitoring LogarithmicScaleDown
    LoggingAlphaOptions LoggingBetaOptions LoggingStableOptions
    ManifestBasedAdmissionControlConfig MatchLabelKeysInPodAffinity
    MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
    MultiCIDRServiceAllocator MutableCSINodeAllocatableCount MutablePVNodeAffinity
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
    MutatingAdmissionPolicy NFTablesProxyMode NativeHistograms NodeLogQuery NodeSwap
    OpenAPIEnums OrderedNamespaceDeletion PLEGOnDemandRelist
    PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodCertificateRequest
    PodDeletionCost PodLevelResourceManagers PodLifecycleSleepAction
    PodLifecycleSleepActionAllowZero PodLogsQuerySplitStreams PodObservedGenerationTracking
    PodReadyToStartContainersCondition PodSchedulingReadiness PodTopologyLabelsAdmission PodsAPI
    PortForwardWebsockets PreferSameTrafficDistribution PreventStaticPodAPIReferences
    ProcMountType QOSReserved RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
    ReduceDefaultCrashLoopBackOffDecay RelaxedDNSSearchValidation
    RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResilientWatchCacheInitialization
    ResourceHealthStatus ResourceHealthStatusMessage RestartAllContainersOnContainerExits
    RetryGenerateName RotateKubeletServerCertificate RuntimeClassInImageCriApi
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
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO
    UserNamespacesHostNetworkSupport UserNamespacesSupport WatchCacheInitializationPostStartHook
    WatchList WatchListClient WinDSR WinOverlay WindowsCPUAndMemoryAffinity
    WindowsGracefulNodeShutdown WindowsHostNetwork WorkloadWithJob
    """.split()  # noqa: SIM905  a list of two hundred names reads best as text
)

#: The extension points, in the order in which kube-scheduler sets them up.
POINTS: Final = (
    "preFilter",
    "filter",
    "postFilter",
    "reserve",
    "preScore",
    "score",
    "preBind",
    "bind",
    "postBind",
    "permit",
    "preEnqueue",
    "queueSort",
    "placementGenerate",
    "placementScore",
)

V1_36: Final = Generation(
    release=RELEASE,
    gates=GATES,
    other_gates=OTHER_GATES,
    plugins=PLUGINS,
    points=POINTS,
)
