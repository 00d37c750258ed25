"""The page for readers of kube-scheduler's source: its commands work, and its modules exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.conftest import Podium

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "coming-from-kube-scheduler.md"
CHINESE = ROOT / "docs" / "zh" / "coming-from-kube-scheduler.md"


def rows() -> list[list[str]]:
    """The cells of the tables with a command in the last column."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in cells if len(row) == 3 and row[2].startswith("`podium ")]


COMMANDS = sorted({row[2].strip("`") for row in rows()})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_prints_something(
    command: str, podium: Podium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)

    result = podium(*command.split()[1:])

    assert result.code in {0, 1}, result.err
    assert result.out


def test_modules_of_the_page_exist() -> None:
    missing = [
        word
        for row in rows()
        for word in re.findall(
            r"`((?:cli|host|daemon|engine|cluster|profiles|extender)/[^`]+)`", row[1]
        )
        if not (ROOT / "src" / "podium" / word).exists()
    ]

    assert not missing


def test_every_row_names_a_module_or_a_page() -> None:
    assert len(rows()) > 35
    assert all("/" in row[1] or ".md" in row[1] for row in rows())


#: Functions, types, fields and constants of kube-scheduler that the texts name.
NAMES = """
    AddInt32 AddUnsetLabelsToMap AndSelectors AsSelector AvoidPods BestEffort
    CalculateAntiAffinityPriorityMap CalculateInterPodAffinityPriority
    CalculateNodeAffinityPriorityMap CalculateNodeAffinityPriorityReduce CheckNodeConditionPred
    CheckNodeDiskPressurePred CheckNodeLabelPresence CheckNodeLabelPresencePred
    CheckNodeMemoryPressurePred CheckNodePIDPressurePred CheckNodeUnschedulablePred
    CheckServiceAffinityPred CheckVolumeBindingPred CreateAggregateFromMessageCountMap
    CreateSelectorFromLabels DeepCopySelector DiskPressureCondition DoWorkPieceFunc DoubleEquals
    EqualPriority EqualPriorityMap ErrDiskConflict ErrExistingPodsAntiAffinityRulesNotMatch
    ErrNoNodesAvailable ErrNodeSelectorNotMatch ErrPodAffinityNotMatch
    ErrPodAffinityRulesNotMatch ErrPodAntiAffinityRulesNotMatch ErrServiceAffinityViolated
    FailedPredicates FilterOutPods FilterPodsByNamespace FilteredList FindLabelsInSet
    FitPredicate GeneralPred GetEquivalencePod GetMetadata GetName
    GetNamespaceFromPodAffinitTerm GetNamespacesFromPodAffinityTerm GetNodeInfo
    GetPodAffinityTerms GetPodAntiAffinityTerms GetPodFullName GetPodKey GetPodServices
    GreaterThan HandleCrash HardPodAffinitySymmetricWeight HostNamePred HostPort HostPriority
    HostPriorityList InterPodAffinity InterPodAffinityMatches InterPodAffinityPriority
    IsInterested IsNotFound LabelSelector LabelSelectorAsSelector LeastRequestedPriority
    LessThan LogIfLong MatchExpressions MatchFields MatchInterPodAffinityPred
    MatchNodeSelecotorPred MatchNodeSelector MatchNodeSelectorPred MatchNodeSelectorTerms
    MaxAzureDiskVolumeCountPred MaxCSIVolumeCountPred MaxEBSVolumeCountPred
    MaxGCEPDVolumeCountPred MaxPriority MemoryPressureCondition MessageCountMap NewAggregate
    NewInterPodAffinityPriority NewPodAffinityPredicate NewPodAffinityPriority NewRequirement
    NewSelector NewServiceAffinityPredicate NoDiskConflict NoDiskConflictPred
    NoVolumeZoneConflictPred NodeAffinity NodeAffinityPriority NodeCache NodeFieldSelectorKeys
    NodeLister NodePreferAvoidPodsPriority NodeSelector NodeSelectorOpDoesNotExist
    NodeSelectorOpExists NodeSelectorOpGt NodeSelectorOpIn NodeSelectorOpLt NodeSelectorOpNotIn
    NodeSelectorOperator NodeSelectorRequirement NodeSelectorRequirementAsSelector
    NodeSelectorRequirementsAsFieldSelector NodeSelectorRequirementsAsSelector NodeSelectorTerm
    NodeSelectorTerms NodesHaveSameTopologyKey NormalizeReduce NotEquals OneTermEqualSelector
    OneTermNotEqualSelector OwnerReferences Parallelize ParallelizeUntil ParseInt
    PluginFactoryArgs PodAffinity PodAffinityChecker PodAntiAffinity PodAntiAffinityTerm
    PodFitsHostPortsPred PodFitsResourcesPred PodLister PodMatchNodeSelector
    PodMatchesTermsNamespaceAndSelector PodToleratesNodeNoExecuteTaintsPred
    PodToleratesNodeTaintsPred PodsWithAffinity PredicateMetadataProducer PredicateWithECache
    PreferredSchedulingTerm PrioritizeNodes PriorityConfig PriorityConfigFactory
    PriorityFunction ProcessNode ProcessTerms RegisterFitPredicate RegisterFitPredicateFactory
    RegisterPriorityConfigFactory RegisterPriorityFunction2
    RequiredDuringSchedulingRequiredDuringExecution RunPredicate SchedulerExtender
    SelectorFromSet SelectorSpreadPriority ServiceAffinity ServiceLister
    ServiceSpreadingPriority SuggestedHost TaintTolerationPriority TopologyKey
    TopologySelectorLabelRequirement TopologySelectorRequirementsAsSelector
    UpdateCachedPredicateItem UpdateNodeNameToInfoMap VolumeNodePredicate VolumeZonePredicate
    WaitGroup WeightedPodAffinityTerm addNominatedPods addTopologyPair affinityLabels
    affinityTermProperties affinityTerms antiAffinityTerms anyPodMatchesPodAffinityTerm
    apiVersion appendError appendMaps cachedNodeInfoMap checkNode checkServiceAffinity
    countMatchingPods defaultPredicates defaultPriorities doWorkPiece eCache eCacheAvailable
    equivClass equivalenceCache equivalenceHash existingHasAffinityConstraints
    existingHasAntiAffinityConstraints existingPodAffinity existingPodNode
    existingPodTopologyMaps fScore failedPredicateMap fieldSelector filteredLen filteredNodes
    filteredPods findMaxScores findNodesThatFit firstAfterMaxScore firstServiceSelector
    fixedNode getAffinityTermProperties getFirstServiceSelector getHashEquivalencePod
    getMatchingAntiAffinityTopologyPairsOfPod getMatchingAntiAffinityTopologyPairsOfPods
    getPodAffinityTerms getPodAntiAffinityTerms hardPodAffinitySymmetricWeight
    hasAffinityConstraints hasAntiAffinityConstraints hasTerm hasValue hostPriority
    internalSelector isVolumeConflict labelSelector labelsToAdd labelsToKeep matchExpressions
    matchFields matchingPodExists maxCount maxScore maxScoreIndexes maxScores
    metaPrioritiesInterface metaToUse metadataProducer minCount newPodAffinityPriorityMap
    newTopologyPairsMaps nodeAffinity nodeAffinityMatches nodeCache nodeFields nodeInfo
    nodeInfoSnapshot nodeInfoToUse nodeLister nodeMatchesAllTopologyTerms
    nodeMatchesAnyTopologyTerm nodeMatchesNodeSelectorTerms nodeSelectorTerms notHasTerm
    podAffinity podAffinityTerm podAntiAffinity podDefiningAffinityTerm podFirstServiceSelector
    podFitsOnNode podLister podMatchesAllAffinityTermProperties podMatchesNodeLabels
    podMatchesNodeSelectorAndAffinityTerms podMatchesPodAffinityTerms podSet podToCheck
    podVolume podsAdded predicateID predicateKey predicateMeta predicateMetaProducer
    predicateResultLock preferredSchedulingTerm priorityList priorityMeta priorityMetaProducer
    priorityMetadata processPod processTerm processTerms
    requiredDuringSchedulingIgnoredDuringExecution
    requiredDuringSchedulingRequiredDuringExecution satisfiesExistingPodsAntiAffinity
    satisfiesPodsAffinityAntiAffinity schedulingQueue selectHost serverAffinityMetadataProducer
    serviceAffinityInUse serviceAffinityMatchingPodList serviceAffinityMatchingPodServices
    serviceAffinityMetadataProducer serviceLister setError startPredicateEvalTime strValues
    targetPodMatchesAffinityOfPod termMatches termsSelectorMatch termsSelectorMatchFound
    toProcess topologyMaps topologyPair topologyPairSet topologyPairs
    topologyPairsAntiAffinityPodsMap topologyPairsMaps topologyPairsPotentialAffinityPods
    topologyPairsPotentialAntiAffinityPods topologyValue weightedPodAffinityTerm
"""


def test_the_names_that_articles_use_are_there() -> None:
    for page in (PAGE, CHINESE):
        words = set(re.findall(r"\w+", page.read_text("utf-8")))
        assert [name for name in NAMES.split() if name not in words] == []


def test_the_chinese_page_has_the_same_rows() -> None:
    def commands(page: Path) -> list[str]:
        return re.findall(r"`(podium [^`]+)` \|$", page.read_text("utf-8"), re.MULTILINE)

    assert commands(CHINESE) == commands(PAGE)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("addNominatedPods", "PASS ONE, WITH THEM"),
        ("selectHost", "0 mod 3 = 0"),
        ("NodesHaveSameTopologyKey", "the node has no label region"),
        ("topologyPairsMaps", "kubernetes.io/hostname=node2 (1)"),
        ("podMatchesPodAffinityTerms", "all pods are walked"),
        ("zoneWeighting", "2 ÷ 3 × "),
        ("isVolumeConflict", "vol-1 is used by"),
        ("MaxPDVolumeCount", "max volume count"),
        ("NoVolumeZoneConflict", "no available volume zone"),
        ("predicateMetadata", "pairs of placed pods"),
        ("klog.V(10)", "which is no integer"),
        ("alwaysCheckAllPredicates", "NoDiskConflict            ✕"),
        ("NormalizeReduce", "10 − ⌊1 × 10 ÷ 3⌋ = 7"),
        ("PrioritizeNodes", "⌊10 × ((5 − (−3)) ÷ (20 − (−3)))⌋ = 3"),
        ("pickOneNodeForPreemption", "fewest budget violations"),
    ],
)
def test_a_command_shows_what_its_row_names(
    name: str, shown: str, podium: Podium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "300")
    [row] = [row for row in rows() if f"`{name}`" in row[0]]

    assert shown in podium(*row[2].strip("`").split()[1:]).out
