"""Small random clusters for v1.36: those of `random_clusters`, with more in them.

Pods get spread constraints, namespace selectors, sidecars, pod-level resources, overhead and
ephemeral volumes; around them are namespaces, CSI nodes, attachments and storage capacity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import msgspec
from hypothesis import strategies as st

from builders import (
    ZONE as BETA_ZONE,
)
from builders import (
    budget,
    claim,
    claim_volume,
    container,
    expression,
    node_term,
    selector,
    service,
    storage_class,
    volume,
)
from builders_v1_36 import (
    HARD,
    HOST,
    SOFT,
    ZONE,
    attachment,
    csi_capacity,
    csi_driver,
    csi_node,
    declaring,
    ephemeral,
    exclusive,
    in_spaces,
    namespace,
    owned,
    sidecar,
    spec_with,
    spread,
)
from podium.engine.framework.declaration import PluginContext, PluginDeclaration
from podium.engine.framework.rule import FilterRule, ScoreRule
from podium.engine.rules.node_affinity import NodeAffinity, NodeAffinityScore
from podium.engine.rules.pod_affinity import InterPodAffinityScore
from podium.engine.rules.resources.balanced_allocation import NodeResourcesBalancedAllocation
from podium.engine.rules.resources.fit import NodeResourcesFit, NodeResourcesFitScore
from podium.engine.rules.spreading import PodTopologySpread, PodTopologySpreadScore, SpreadDefaults
from podium.engine.rules.volumes.conflicts import DiskConflictsOnly
from podium.generations.v1_36 import V1_36
from podium.objects.kinds import pod as pod_objects
from podium.objects.kinds.meta import Object
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Affinity, Pod, PodAffinity, ResourceRequirements
from podium.profiles.config.feature_gates import ConfigurationGates
from random_clusters import (
    ALL_EXTREMES,
    DRIVER,
    GPU,
    LABELS,
    NODE_NAMES,
    SELECTORS,
    Extremes,
    clusters,
    often,
    some,
)

ADDED = pod_objects.NodeAffinity(
    required=pod_objects.NodeSelector([node_term(expression("zone", "Exists"))]),
    preferred=[
        pod_objects.PreferredSchedulingTerm(5, node_term(expression("disk", "In", "ssd"))),
        pod_objects.PreferredSchedulingTerm(2, node_term(expression("zone", "In", "1"))),
    ],
)
LISTED = SpreadDefaults(
    "List", (spread("zone", 1, when=HARD), spread(HOST, 2, when=SOFT), spread(ZONE, 4, when=SOFT))
)
UNEVEN = (("cpu", 2), ("memory", 1), (GPU, 3), ("ephemeral-storage", 1))

#: Further rules of a plugin: those that can be configured, several times, and what remains of one
#: without preFilter.
MORE_FILTERS: dict[str, tuple[FilterRule, ...]] = {
    "NodeAffinity": (NodeAffinity(ADDED),),
    "NodeResourcesFit": (NodeResourcesFit(frozenset({GPU}), frozenset({"vendor.io"})),),
    "VolumeRestrictions": (DiskConflictsOnly("VolumeRestrictions", "no preFilter"),),
    "PodTopologySpread": (PodTopologySpread(LISTED),),
}
MORE_SCORES: dict[str, tuple[ScoreRule, ...]] = {
    "NodeAffinity": (NodeAffinityScore(ADDED),),
    "NodeResourcesFit": (
        NodeResourcesFitScore("LeastAllocated", UNEVEN),
        NodeResourcesFitScore("MostAllocated", UNEVEN),
        NodeResourcesFitScore("RequestedToCapacityRatio", UNEVEN, ((0, 10), (30, 7), (100, 0))),
        NodeResourcesFitScore("RequestedToCapacityRatio", UNEVEN, ((10, 0), (70, 10))),
    ),
    "PodTopologySpread": (PodTopologySpreadScore(LISTED),),
    "InterPodAffinity": (
        InterPodAffinityScore(40),
        InterPodAffinityScore(0, ignore_preferred_of_existing=True),
    ),
    "NodeResourcesBalancedAllocation": (
        NodeResourcesBalancedAllocation(("cpu", "memory", GPU, "ephemeral-storage")),
        NodeResourcesBalancedAllocation(("memory",)),
    ),
}


GATES = ConfigurationGates(generation=V1_36)
CONTEXT = PluginContext(V1_36.choices, GATES)


def default_arguments(plugin: PluginDeclaration) -> Any:
    return plugin.arguments and plugin.arguments.completed(None, GATES)


#: Every filter of the plugins.
FILTERS: tuple[FilterRule, ...] = tuple(
    rule
    for plugin in V1_36.plugins
    if plugin.filter
    for rule in (
        plugin.filter(default_arguments(plugin), CONTEXT),
        *MORE_FILTERS.get(plugin.name, ()),
    )
)
#: Every score of the plugins.
SCORES: tuple[ScoreRule, ...] = tuple(
    rule
    for plugin in V1_36.plugins
    if plugin.score
    for rule in (
        plugin.score(default_arguments(plugin), CONTEXT),
        *MORE_SCORES.get(plugin.name, ()),
    )
)


def label(rule: FilterRule | ScoreRule) -> str:
    number = [each for each in (*FILTERS, *SCORES) if type(each) is type(rule)].index(rule)
    return f"{type(rule).__name__} {number + 1}"


# Values -------------------------------------------------------------------------------------------

SPREAD_KEYS = ("zone", "zone", "disk", HOST, ZONE, "none")
SPACES = (
    None,
    selector(),
    selector({"team": "x"}),
    selector(None, expression("team", "NotIn", "x")),
    selector(None, expression("team", "DoesNotExist")),
)
NAMESPACES: tuple[Object, ...] = (
    namespace("default", {"team": "x"}),
    namespace("other", {"team": "y"}),
)
LESS: tuple[Object, ...] = (namespace("other", {"team": "x"}),)
OWNERS = (
    None,
    None,
    ("ReplicaSet", "rs"),
    ("StatefulSet", "sts"),
    ("ReplicationController", "rc"),
    ("ReplicaSet", "bad"),
)
#: What claims of this generation refer to.
STORAGE: tuple[Object, ...] = (
    exclusive(claim("only", volume="pv-only")),
    volume("pv-only", csi=("disk.example.com", "only")),
    claim("tracked", storage_class="tracked"),
    storage_class("tracked", provisioner="disk.example.com"),
    csi_driver("disk.example.com", tracks=True),
    csi_capacity("small", "tracked", "1Mi", selector()),
    csi_capacity("east", "tracked", "10Gi", selector({"zone": "1"})),
    volume("pv-new-zone", labels={ZONE: "a__b"}),
    claim("new-zone", volume="pv-new-zone"),
    volume("pv-attached", csi=(DRIVER, "attached")),
    attachment("at", "n1", DRIVER, "pv-attached"),
    claim("wanted-scratch", storage_class="made"),
)
LIMITS: tuple[Object, ...] = (
    csi_node("n1", csi=1, disk=1),
    csi_node("n2", csi=2),
    csi_node("n3", disk=0),
)
VOLUMES = (
    claim_volume("only"),
    claim_volume("tracked"),
    claim_volume("new-zone"),
    ephemeral("scratch"),
)
BUDGETS: tuple[Object, ...] = (
    budget("x", selector({"app": "x"}), allowed=1),
    budget("t", selector({"tier": "t"})),
)


def constraint(dice: Random) -> pod_objects.TopologySpreadConstraint:
    return spread(
        dice.choice(SPREAD_KEYS),
        dice.choice([1, 1, 2, 5]),
        dice.choice(SELECTORS),
        when=dice.choice([HARD, SOFT]),
        least=dice.choice([None, None, 2, 3]),
        affinity=dice.choice([None, "Ignore", "Honor"]),
        taints=dice.choice([None, "Ignore", "Honor"]),
        shared=dice.choice([(), ("app",), ("tier", "none")]),
    )


def affinity_term(dice: Random) -> pod_objects.PodAffinityTerm:
    return in_spaces(
        dice.choice(SELECTORS),
        dice.choice(SPREAD_KEYS),
        spaces=dice.choice(SPACES),
        named=dice.choice([(), (), ("other",)]),
    )


def terms(dice: Random) -> PodAffinity | None:
    required = [affinity_term(dice) for _ in range(dice.choice([0, 1, 1, 2]))]
    preferred = [
        pod_objects.WeightedPodAffinityTerm(dice.choice([1, 10, 100]), affinity_term(dice))
        for _ in range(dice.choice([0, 0, 1, 2]))
    ]
    if not required and not preferred:
        return None
    return PodAffinity(required or None, preferred or None)


def requests(dice: Random) -> dict[str, Any]:
    some_of = {
        "cpu": dice.choice(["1", "250m", 0, "1500m"]),
        "memory": dice.choice(["1Gi", "100Mi", 0]),
        GPU: dice.choice([1, 2]),
        "ephemeral-storage": 3,
        "hugepages-2Mi": "2Mi",
    }
    return {name: some_of[name] for name in dice.sample(sorted(some_of), dice.choice([0, 1, 2]))}


@cache
def extra(number: int) -> dict[str, Any]:
    """What pods of a kind have that only this generation reads."""
    if not number:
        return {}
    dice = Random(number)  # noqa: S311  the same kinds in every run
    found: dict[str, Any] = {}
    if dice.random() < 0.5:
        found["topology_spread_constraints"] = [
            constraint(dice) for _ in range(dice.choice([1, 1, 2, 3]))
        ]
    if dice.random() < 0.4:
        found["affinity"] = Affinity(None, terms(dice), terms(dice))
    if dice.random() < 0.3:
        found["init_containers"] = [
            sidecar(container(requests(dice), ports=[81])),
            container(requests(dice)),
        ]
    if dice.random() < 0.3:
        found["resources"] = ResourceRequirements(requests(dice))
    if dice.random() < 0.2:
        found["overhead"] = requests(dice)
    if dice.random() < 0.4:
        found["volumes"] = some(dice, VOLUMES)
    if dice.random() < 0.1:
        found |= {"host_network": True, "host_users": False}
    return found


@cache
def metadata(number: int) -> dict[str, Any]:
    """Where pods of a kind come from, and when they started."""
    if not number:
        return {}
    dice = Random(number)  # noqa: S311  the same kinds in every run
    return {
        "owner": dice.choice(OWNERS),
        "labels": dice.choice(LABELS),
        "started": often(dice, *(f"2026-01-01T00:0{i}:00Z" for i in range(4)), rare=(None,)),
    }


def richer(made: Pod, body: int, meta: int) -> Pod:
    """The pod with more to it; what `random_clusters` gave it stays where nothing new comes."""
    fields = dict(extra(body))
    if "affinity" in fields and made.spec.affinity is not None:
        fields["affinity"] = msgspec.structs.replace(
            fields["affinity"], node_affinity=made.spec.affinity.node_affinity
        )
    if "volumes" in fields:
        fields["volumes"] = [*(made.spec.volumes or ()), *fields["volumes"]] or None
    found = spec_with(made, **fields)
    told = metadata(meta)
    if told:
        status = msgspec.structs.replace(found.status, start_time=told["started"])
        found = msgspec.structs.replace(found, status=status)
        found = owned(found, *told["owner"]) if told["owner"] else found
        labelled = msgspec.structs.replace(found.metadata, labels=told["labels"])
        found = msgspec.structs.replace(found, metadata=labelled)
    return found


def placed_in(made: Node, number: int) -> Node:
    """The node with a name to spread by, the newer zone label, and features now and then."""
    dice = Random(number)  # noqa: S311  the same kinds in every run
    labels = dict(made.labels)
    if dice.random() < 0.8:
        labels[HOST] = made.name
    if BETA_ZONE in labels and dice.random() < 0.5:
        labels[ZONE] = labels[BETA_ZONE]
    if dice.random() < 0.3:
        labels[ZONE] = dice.choice(["a", "b", ""])
    found = msgspec.structs.replace(
        made, metadata=msgspec.structs.replace(made.metadata, labels=labels or None)
    )
    features = dice.choice([(), ("UserNamespacesHostNetworkSupport",)])
    return declaring(found, *features) if features else found


@dataclass(frozen=True)
class ClusterV136:
    """Objects of a cluster and a pod to decide about."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    others: tuple[Object, ...]
    wanted: Pod

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Briefly, where a failing example is shown."""
        shown = msgspec.json.encode({"nodes": self.nodes, "pods": self.pods, "wanted": self.wanted})
        printer.text(shown.decode())

    def objects(
        self, nodes: Sequence[Node] | None = None, pods: Sequence[Pod] | None = None
    ) -> tuple[Object, ...]:
        """All objects, with other nodes and pods if some are given."""
        return (
            *(self.nodes if nodes is None else nodes),
            *self.others,
            *(self.pods if pods is None else pods),
        )


NUMBERS = st.integers(0, 300)


@st.composite
def clusters_v1_36(
    draw: st.DrawFn,
    *,
    extremes: Extremes = ALL_EXTREMES,
    least_nodes: int = 0,
    nominated: bool = False,
) -> ClusterV136:
    """A cluster of up to five nodes and eight pods, and one pod to place."""
    plain = draw(clusters(extremes=extremes, least_nodes=least_nodes, nominated=nominated))
    older = plain.objects(())[: -len(plain.pods)] if plain.pods else plain.objects(())
    spaces = draw(st.sampled_from([(), LESS, NAMESPACES]))
    limits = LIMITS if draw(st.booleans()) else ()
    budgets = BUDGETS if draw(st.booleans()) else ()
    return ClusterV136(
        nodes=tuple(placed_in(each, draw(NUMBERS)) for each in plain.nodes),
        pods=tuple(richer(each, draw(NUMBERS), draw(NUMBERS)) for each in plain.pods),
        others=(
            *older,
            *STORAGE,
            *spaces,
            *limits,
            *budgets,
            *([service("more", {"app": "y"})] if draw(st.booleans()) else []),
        ),
        wanted=richer(plain.wanted, draw(NUMBERS), draw(NUMBERS)),
    )


__all__ = ["FILTERS", "NODE_NAMES", "SCORES", "ClusterV136", "clusters_v1_36", "label"]
