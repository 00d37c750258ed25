"""The cause of every reason text of both generations, in words, and the same cluster without it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import pytest

import builders as b
import builders_v1_36 as c
import podium.engine.rules
from builders_v1_36 import device_class, device_slice
from podium.engine.framework.profile import Profile
from podium.engine.framework.rule import FilterRule
from podium.engine.rules import node_affinity, nodes, pod_affinity, ports, spreading, taints
from podium.engine.rules.devices import plugin as devices_plugin
from podium.engine.rules.resources import fit
from podium.engine.rules.resources import predicates as resources_predicates
from podium.engine.rules.service_affinity import CheckServiceAffinity
from podium.engine.rules.volumes import binding, conflicts, limits, zones
from podium.engine.state.verdicts import Reason
from podium.library.reasoning.causes import find_causes
from podium.objects.kinds.devices import (
    EXTENDED_RESOURCE_CLAIM,
    ResourceClaim,
)
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import NodeAffinity, NodeSelector, Pod, PodResourceClaim
from podium.objects.kinds.storage import TopologySelectorTerm
from podium.render.decision.causes import cause_text

V1_13, V1_36 = "v1.13", "v1.36"


@dataclass(frozen=True)
class Case:
    """A cluster where node `n` is rejected for a reason, the words of the cause, and the cure."""

    generation: str
    reason: str
    rule: FilterRule
    wanted: Pod
    items: tuple[Object, ...]
    causes: tuple[str, ...]
    #: The same cluster without the cause.
    cured: tuple[Object, ...]
    #: The pod of that cluster, where the cause is in the pod itself.
    cured_pod: Pod | None = None

    def __str__(self) -> str:
        return f"{self.generation} {self.reason}"


ZONED = b.volume("pv", labels={b.ZONE: "a__b"})
NEW_ZONED = b.volume("pv", labels={c.ZONE: "a__b"})
BOUND = b.claim("data", volume="pv")
USES = b.pod("p", volumes=[b.claim_volume("data")])
NEAR_SSD = b.volume("pv", reachable=[b.node_term(b.expression("disk", "In", "ssd"))])
ANTI = b.pod("p", anti=[b.term({"app": "db"})], labels={"app": "web"})
AFFINE = b.pod("p", affinity=[b.term({"app": "db"})])
IN_A = b.node("n", labels={"zone": "a"})
NEXT_TO_IT = b.node("n2", labels={"zone": "a"})
ELSEWHERE = b.node("m", labels={"zone": "b"})
DB = b.pod("db", node="n2", labels={"app": "db"})
SHY = b.pod("shy", node="n2", anti=[b.term({"app": "web"})])
SPREAD = c.spec_with(
    b.pod("p", labels={"app": "web"}),
    topology_spread_constraints=[c.spread("zone", chosen=b.selector({"app": "web"}))],
)
WEB = [b.pod(f"web{i}", node="n2", labels={"app": "web"}) for i in range(2)]
ENFORCED = NodeAffinity(required=NodeSelector([b.node_term(b.expression("pool", "In", "main"))]))
ELSEWHERE_ONLY = TopologySelectorTerm([b.expression("zone", "In", "b")])
CLAIM = "claim default/data"
WANTS = f"{CLAIM} wants 1Gi"
OUT_OF_REACH = f"{CLAIM}: volume pv cannot be reached from the node"
SOME = b.storage_class("made", provisioner="disks.example.com")


def both(  # noqa: PLR0917  a table
    reason: str,
    rules: tuple[FilterRule, FilterRule],
    wanted: Pod,
    items: tuple[Object, ...],
    causes: tuple[str, ...],
    cured: tuple[Object, ...],
    cured_pod: Pod | None = None,
) -> list[Case]:
    return [
        Case(generation, reason, rule, wanted, items, causes, cured, cured_pod)
        for generation, rule in zip((V1_13, V1_36), rules, strict=True)
    ]


def volumes(count: int, limit_name: str) -> tuple[Object, ...]:
    """A node that takes one volume of a kind and has as many pods with a disk as given."""
    used = [b.pod(f"u{i}", node="n", volumes=[b.ebs(f"d{i}")]) for i in range(count)]
    return (b.node("n", resources={limit_name: 1}), *used)


def csi(count: int) -> tuple[Object, ...]:
    used = [b.pod(f"u{i}", node="n", volumes=[b.claim_volume(f"used{i}")]) for i in range(count)]
    theirs = [b.claim(f"used{i}", volume=f"pv-used{i}") for i in range(count)]
    made = [b.volume(f"pv-used{i}", csi=("d.example.com", f"h{i}")) for i in range(count)]
    own = b.volume("pv", csi=("d.example.com", "mine"))
    return (b.node("n"), c.csi_node("n", d=1), own, BOUND, *used, *theirs, *made)


CASES: list[Case] = [
    # Nodes
    *(
        Case(
            V1_13,
            reason,
            rule,
            b.pod("p"),
            (b.node("n", conditions={kind: bad}),),
            (f"condition {kind} is {bad}",),
            (b.node("n", conditions={kind: good}),),
        )
        for rule, reason, kind, bad, good in (
            (
                nodes.CheckNodeCondition(),
                "node(s) were not ready",
                "Ready",
                "Unknown",
                "True",
            ),
            (
                nodes.CheckNodeCondition(),
                "node(s) were out of disk space",
                "OutOfDisk",
                "True",
                "False",
            ),
            (
                nodes.CheckNodeCondition(),
                "node(s) had unavailable network",
                "NetworkUnavailable",
                "True",
                "False",
            ),
            (
                nodes.CheckNodeMemoryPressure(),
                "node(s) had memory pressure",
                "MemoryPressure",
                "True",
                "False",
            ),
            (
                nodes.CheckNodeDiskPressure(),
                "node(s) had disk pressure",
                "DiskPressure",
                "True",
                "False",
            ),
            (
                nodes.CheckNodePIDPressure(),
                "node(s) had pid pressure",
                "PIDPressure",
                "True",
                "False",
            ),
        )
    ),
    *both(
        "node(s) were unschedulable",
        (nodes.CheckNodeUnschedulable(), nodes.NodeUnschedulable()),
        b.pod("p"),
        (b.node("n", unschedulable=True),),
        ("the node is cordoned (spec.unschedulable)",),
        (b.node("n"),),
    ),
    Case(
        V1_13,
        "node(s) didn't match the requested hostname",
        nodes.HostName(),
        b.pod("p", node="m"),
        (b.node("n"),),
        ("the pod names node m",),
        (b.node("n"),),
        b.pod("p", node="n"),
    ),
    Case(
        V1_36,
        "node(s) didn't match the requested node name",
        nodes.NodeName(),
        b.pod("p", node="m"),
        (b.node("n"),),
        ("the pod names node m",),
        (b.node("n"),),
        b.pod("p", node="n"),
    ),
    Case(
        V1_13,
        "node(s) didn't have the requested labels",
        nodes.CheckNodeLabelPresence(["rack", "old"], presence=True),
        b.pod("p"),
        (b.node("n", labels={"old": "x"}),),
        ("label rack must be there: the node does not have it",),
        (b.node("n", labels={"old": "x", "rack": "1"}),),
    ),
    Case(
        V1_13,
        "node(s) didn't have the requested labels",
        nodes.CheckNodeLabelPresence(["old"], presence=False),
        b.pod("p"),
        (b.node("n", labels={"old": "yes"}),),
        ("label old must not be there: the node has yes",),
        (b.node("n"),),
    ),
    Case(
        V1_36,
        "node(s) didn't match Pod's required features",
        nodes.NodeDeclaredFeatures(),
        c.spec_with(b.pod("p"), host_network=True, host_users=False),
        (b.node("n"),),
        ("the node lacks UserNamespacesHostNetworkSupport",),
        (c.declaring(b.node("n"), "UserNamespacesHostNetworkSupport"),),
    ),
    # Taints
    *(
        Case(
            generation,
            reason,
            rule,
            b.pod("p", tolerations=[b.tolerates("ok", "Exists")]),
            (b.node("n", taints=[b.taint("ok"), b.taint("gpu", "yes", "NoExecute")]),),
            ("taint gpu=yes:NoExecute is not tolerated",),
            (b.node("n", taints=[b.taint("ok")]),),
        )
        for generation, reason, rule in (
            (
                V1_13,
                "node(s) had taints that the pod didn't tolerate",
                taints.PodToleratesNodeTaints(),
            ),
            (V1_36, "node(s) had untolerated taint(s)", taints.TaintToleration()),
        )
    ),
    # Selectors
    *(
        Case(
            generation,
            reason,
            rule,
            b.pod(
                "p",
                node_selector={"disktype": "ssd"},
                node_affinity=[
                    b.node_term(b.expression("size", "Gt", "4"), b.expression("arch", "Exists")),
                    b.node_term(b.expression("size", "Lt", "1")),
                ],
            ),
            (b.node("n", labels={"disktype": "hdd", "size": "3"}),),
            (
                "nodeSelector: disktype In [ssd]: the node has hdd",
                "nodeSelectorTerms[0]: arch Exists: the node does not have it",
                "nodeSelectorTerms[0]: size Gt [4]: the node has 3",
                "nodeSelectorTerms[1]: size Lt [1]: the node has 3",
            ),
            (b.node("n", labels={"disktype": "ssd", "size": "0"}),),
        )
        for generation, reason, rule in (
            (V1_13, "node(s) didn't match node selector", resources_predicates.GeneralPredicates()),
            (
                V1_36,
                "node(s) didn't match Pod's node affinity/selector",
                node_affinity.NodeAffinity(),
            ),
        )
    ),
    Case(
        V1_36,
        "node(s) didn't match scheduler-enforced node affinity",
        node_affinity.NodeAffinity(ENFORCED),
        b.pod("p"),
        (b.node("n", labels={"pool": "test"}),),
        ("nodeSelectorTerms[0]: pool In [main]: the node has test",),
        (b.node("n", labels={"pool": "main"}),),
    ),
    # Ports
    *both(
        "node(s) didn't have free ports for the requested pod ports",
        (resources_predicates.GeneralPredicates(), ports.NodePorts()),
        b.pod("p", ports=[80]),
        (b.node("n"), b.pod("proxy", node="n", ports=[("10.0.0.1", "TCP", 80)])),
        ("port 10.0.0.1:80/TCP is held by default/proxy",),
        (b.node("n"),),
    ),
    # Room
    *both(
        "Insufficient cpu",
        (resources_predicates.GeneralPredicates(), fit.NodeResourcesFit()),
        b.pod("p", requests={"cpu": "1"}),
        (
            b.node("n", cpu="2"),
            b.pod("vip", nominated="n", requests={"cpu": "1500m"}, priority=10),
        ),
        ("cpu: wants 1, 500m free of 2 (0 used, 1500m promised to default/vip)",),
        (b.node("n", cpu="2"),),
    ),
    *both(
        "Insufficient memory",
        (resources_predicates.PodFitsResources(), fit.NodeResourcesFit()),
        b.pod("p", requests={"memory": "1Gi"}),
        (b.node("n", memory="2Gi"), b.pod("u", node="n", requests={"memory": "1536Mi"})),
        ("memory: wants 1Gi, 512Mi free of 2Gi (1.5Gi used)",),
        (b.node("n", memory="2Gi"),),
    ),
    *both(
        "Insufficient ephemeral-storage",
        (resources_predicates.PodFitsResources(), fit.NodeResourcesFit()),
        b.pod("p", requests={"ephemeral-storage": "1Gi"}),
        (b.node("n"),),
        ("ephemeral-storage: wants 1Gi, 0 free of 0 (0 used)",),
        (b.node("n", resources={"ephemeral-storage": "1Gi"}),),
    ),
    *both(
        "Insufficient example.com/gpu",
        (resources_predicates.PodFitsResources(), fit.NodeResourcesFit()),
        b.pod("p", requests={"example.com/gpu": 2}),
        (
            b.node("n", resources={"example.com/gpu": 2}),
            b.pod("u", node="n", requests={"example.com/gpu": 1}),
        ),
        ("example.com/gpu: wants 2, 1 free of 2 (1 used)",),
        (b.node("n", resources={"example.com/gpu": 2}),),
    ),
    *(
        Case(
            generation,
            reason,
            rule,
            b.pod("p"),
            (b.node("n", pods=1), b.pod("u", node="n")),
            ("pods: wants 1, 0 free of 1 (1 used)",),
            (b.node("n", pods=1),),
        )
        for generation, reason, rule in (
            (V1_13, "Insufficient pods", resources_predicates.PodFitsResources()),
            (V1_36, "Too many pods", fit.NodeResourcesFit()),
        )
    ),
    # Other pods
    *both(
        "node(s) didn't match pod anti-affinity rules",
        (pod_affinity.MatchInterPodAffinity(), pod_affinity.InterPodAffinity()),
        ANTI,
        (IN_A, NEXT_TO_IT, DB),
        ("zone=a has default/db on n2: the pod's anti-affinity to app=db in default",),
        (IN_A, NEXT_TO_IT),
    ),
    *both(
        "node(s) didn't satisfy existing pods anti-affinity rules",
        (pod_affinity.MatchInterPodAffinity(), pod_affinity.InterPodAffinity()),
        b.pod("p", labels={"app": "web"}),
        (IN_A, NEXT_TO_IT, SHY),
        ("default/shy on n2 in zone=a: anti-affinity to app=web in default",),
        (IN_A, NEXT_TO_IT),
    ),
    *both(
        "node(s) didn't match pod affinity rules",
        (pod_affinity.MatchInterPodAffinity(), pod_affinity.InterPodAffinity()),
        AFFINE,
        (IN_A, ELSEWHERE, b.pod("db", node="m", labels={"app": "db"})),
        ("affinity to app=db in default: none in zone=a; they are in b (1)",),
        (IN_A, NEXT_TO_IT, DB),
    ),
    Case(
        V1_13,
        "node(s) didn't match pod affinity/anti-affinity",
        pod_affinity.MatchInterPodAffinity(),
        ANTI,
        (IN_A, NEXT_TO_IT, DB),
        ("zone=a has default/db on n2: the pod's anti-affinity to app=db in default",),
        (IN_A, NEXT_TO_IT),
    ),
    Case(
        V1_36,
        "node(s) didn't match pod topology spread constraints",
        spreading.PodTopologySpread(),
        SPREAD,
        (IN_A, NEXT_TO_IT, ELSEWHERE, *WEB),
        ("zone=a has 2 of app=web, the fewest are 0 (b): the skew would be 3, at most 1",),
        (IN_A, NEXT_TO_IT, ELSEWHERE),
    ),
    Case(
        V1_36,
        "node(s) didn't match pod topology spread constraints (missing required label)",
        spreading.PodTopologySpread(),
        SPREAD,
        (b.node("n"), ELSEWHERE),
        ("the node has no label zone",),
        (b.node("n", labels={"zone": "x"}), ELSEWHERE),
    ),
    Case(
        V1_13,
        "node(s) didn't match service affinity",
        CheckServiceAffinity(["zone"]),
        b.pod("p", labels={"app": "web"}),
        (
            b.node("n", labels={"zone": "b"}),
            NEXT_TO_IT,
            b.service("s", {"app": "web"}),
            WEB[0],
        ),
        ("zone must be a, set by default/web0 on n2: the node has b",),
        (b.node("n", labels={"zone": "b"}), NEXT_TO_IT, b.service("s", {"app": "web"})),
    ),
    # Volumes
    *both(
        "node(s) had no available disk",
        (conflicts.NoDiskConflict(), conflicts.VolumeRestrictions()),
        b.pod("p", volumes=[b.gce("data")]),
        (b.node("n"), b.pod("u", node="n", volumes=[b.gce("data", read_only=True)])),
        ("gce data is used by default/u",),
        (b.node("n"),),
    ),
    Case(
        V1_36,
        conflicts.CLAIM_IN_USE.text,
        conflicts.VolumeRestrictions(),
        USES,
        (
            b.node("n"),
            b.node("m"),
            c.exclusive(BOUND),
            b.pod("u", node="m", volumes=[b.claim_volume("data")]),
        ),
        ("claim default/data is used by default/u on m",),
        (b.node("n"), b.node("m"), c.exclusive(BOUND)),
    ),
    Case(
        V1_13,
        "node(s) had no available volume zone",
        zones.NoVolumeZoneConflict(),
        USES,
        (b.node("n", labels={b.ZONE: "c"}), ZONED, BOUND),
        (f"claim default/data, volume pv: {b.ZONE} is a, b; the node has c",),
        (b.node("n", labels={b.ZONE: "b"}), ZONED, BOUND),
    ),
    Case(
        V1_36,
        "node(s) had no available volume zone",
        zones.VolumeZone(),
        USES,
        (b.node("n", labels={c.ZONE: "c"}), NEW_ZONED, BOUND),
        (f"claim default/data, volume pv: {c.ZONE} is a, b; the node has c",),
        (b.node("n", labels={c.ZONE: "b"}), NEW_ZONED, BOUND),
    ),
    Case(
        V1_13,
        "node(s) exceed max volume count",
        limits.MaxVolumeCount("MaxEBSVolumeCount", limits.EBS),
        b.pod("p", volumes=[b.ebs("new")]),
        volumes(1, "attachable-volumes-aws-ebs"),
        ("attachable-volumes-aws-ebs: 1 attached and 1 new exceed the limit of 1",),
        volumes(0, "attachable-volumes-aws-ebs"),
    ),
    Case(
        V1_36,
        "node(s) exceed max volume count",
        limits.NodeVolumeLimits(),
        USES,
        csi(1),
        ("d.example.com: 1 attached and 1 new exceed the limit of 1",),
        csi(0),
    ),
    *(
        Case(
            generation,
            reason,
            rule,
            USES,
            (b.node("n", labels={"disk": "hdd"}), NEAR_SSD, BOUND),
            (f"{OUT_OF_REACH} (nodeSelectorTerms[0]: disk In [ssd]: the node has hdd)",),
            (b.node("n", labels={"disk": "ssd"}), NEAR_SSD, BOUND),
        )
        for generation, reason, rule in (
            (
                V1_13,
                "node(s) had volume node affinity conflict",
                binding.CheckVolumeBinding(),
            ),
            (
                V1_36,
                "node(s) didn't match PersistentVolume's node affinity",
                binding.VolumeBinding(),
            ),
        )
    ),
    *both(
        "node(s) didn't find available persistent volumes to bind",
        (binding.CheckVolumeBinding(), binding.VolumeBinding()),
        USES,
        (b.node("n"), b.claim("data", storage_class="wait"), b.storage_class("wait")),
        (f"{WANTS}: no volume of class wait suits, and nothing provisions one",),
        (
            b.node("n"),
            b.claim("data", storage_class="wait"),
            b.storage_class("wait"),
            b.volume("free", storage_class="wait"),
        ),
    ),
    *both(
        "node(s) didn't find available persistent volumes to bind",
        (binding.CheckVolumeBinding(), binding.VolumeBinding()),
        USES,
        (
            IN_A,
            b.claim("data", storage_class="made"),
            b.storage_class("made", provisioner="disks.example.com", topologies=[ELSEWHERE_ONLY]),
        ),
        (f"{CLAIM}: no volume suits, and class made does not provision for the node's topology",),
        (IN_A, b.claim("data", storage_class="made"), SOME),
    ),
    Case(
        V1_36,
        "node(s) did not have enough free storage",
        binding.VolumeBinding(),
        USES,
        (
            b.node("n"),
            b.claim("data", storage_class="made"),
            SOME,
            c.csi_driver("disks.example.com", tracks=True),
            c.csi_capacity("small", "made", "1Mi", b.selector()),
        ),
        ("claim default/data wants 1Gi: class made has less free for the node",),
        (
            b.node("n"),
            b.claim("data", storage_class="made"),
            SOME,
            c.csi_driver("disks.example.com", tracks=True),
            c.csi_capacity("small", "made", "1Gi", b.selector()),
        ),
    ),
    Case(
        V1_36,
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        binding.VolumeBinding(),
        USES,
        (b.node("n"), BOUND),
        ("claim default/data: its volume pv does not exist",),
        (b.node("n"), BOUND, b.volume("pv")),
    ),
]


def resource_claim(count: int = 1, on: str = "") -> ResourceClaim:
    """The claim `mine`, allocated for a node if one is given."""
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    status: dict[str, object] = {}
    if on:
        fields = [{"key": "metadata.name", "operator": "In", "values": [on]}]
        terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
        status = {"allocation": {"devices": {"results": []}, "nodeSelector": terms}}
    written = {
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        "status": status,
    }
    return msgspec.convert(written, ResourceClaim)


CLAIMING = c.spec_with(
    b.pod("p"), resource_claims=[PodResourceClaim("gpu", resource_claim_name="mine")]
)
EXTENDED = b.pod("p", requests={"example.com/gpu": 1, "example.com/odd": 1})
STALE = msgspec.convert(
    {
        "metadata": {
            "name": "old",
            "namespace": "default",
            "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
            "ownerReferences": [{"name": "p", "uid": EXTENDED.uid, "controller": True}],
        },
        "spec": {"devices": {"requests": [{"name": "r"}]}},
    },
    ResourceClaim,
)
SERVING = device_class(extendedResourceName="example.com/gpu")
SICK = {"name": "b", "taints": [{"key": "sick", "value": "", "effect": "NoSchedule"}]}
TWICE = ({"name": "a"}, {"name": "a"})
CASES += [
    Case(
        V1_36,
        "cannot allocate all claims",
        devices_plugin.DynamicResources(),
        CLAIMING,
        (b.node("n"), device_class(), resource_claim(2), device_slice("n", {"name": "a"}, SICK)),
        (
            (
                "claim default/mine, request r needs 2 and gets 1; "
                "b: has the taint sick=:NoSchedule; a: what follows it cannot be allocated then"
            ),
        ),
        (
            b.node("n"),
            device_class(),
            resource_claim(2),
            device_slice("n", {"name": "a"}, {"name": "b"}),
        ),
    ),
    Case(
        V1_36,
        "invalid resource pools were encountered",
        devices_plugin.DynamicResources(),
        CLAIMING,
        (b.node("n"), device_class(), resource_claim(), device_slice("n", *TWICE)),
        (
            "pool gpu.example.com/n contradicts itself: duplicate device name a",
            "claim default/mine, request r needs 1 and gets 0: the node sees no device",
        ),
        (b.node("n"), device_class(), resource_claim(), device_slice("n", {"name": "a"})),
    ),
    Case(
        V1_36,
        "resourceclaim not available on the node",
        devices_plugin.DynamicResources(),
        CLAIMING,
        (b.node("n"), device_class(), resource_claim(on="m")),
        ("claim default/mine is allocated for other nodes",),
        (b.node("n"), device_class(), resource_claim(on="n")),
    ),
    Case(
        V1_36,
        "cannot schedule extended resource claim",
        devices_plugin.DynamicResources(),
        EXTENDED,
        (
            b.node("n", resources={"example.com/odd": 1}),
            SERVING,
            STALE,
            device_slice("n", {"name": "a"}),
        ),
        ("claim default/old is left from an earlier attempt",),
        (b.node("n", resources={"example.com/odd": 1}), SERVING, device_slice("n", {"name": "a"})),
    ),
    Case(
        V1_36,
        "cannot fit resource",
        devices_plugin.DynamicResources(),
        EXTENDED,
        (b.node("n"), SERVING, device_slice("n", {"name": "a"})),
        ("neither the node nor a class of devices offers example.com/odd",),
        (b.node("n", resources={"example.com/odd": 1}), SERVING, device_slice("n", {"name": "a"})),
    ),
]


def profile(case: Case) -> Profile:
    made = b.profile(case.rule, preemption=False)
    if case.generation == V1_13:
        return made
    return replace(made, pre_filters=(case.rule,), nominees_count_for_affinity=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_cause_of_a_reason_is_named_and_without_it_the_reason_is_gone(case: Case) -> None:
    view: Callable[..., object] = b.view if case.generation == V1_13 else c.view
    columns, rules = view(*case.items), profile(case)
    decision = b.decided(columns, case.wanted, rules)  # type: ignore[arg-type]
    assert case.reason in decision.failed()["n"]

    incoming = columns.pods.incoming(case.wanted)  # type: ignore[attr-defined]
    found = find_causes(columns, incoming, rules, decision)  # type: ignore[arg-type]
    here = [cause_text(each.cause) for each in found if "n" in each.nodes]
    assert here == list(case.causes)
    assert {each.predicate for each in found} == {case.rule.name}

    after = b.decided(view(*case.cured), case.cured_pod or case.wanted, rules)  # type: ignore[arg-type]
    assert not after.error
    assert case.reason not in after.failed().get("n", ())


def declared_reasons(generation: str) -> set[str]:
    """The reason texts that modules of a generation declare, apart from those of resources."""
    ending = generation.replace(".", "_")
    found = set()
    walked = pkgutil.walk_packages(podium.engine.rules.__path__, "podium.engine.rules.")
    for module in (importlib.import_module(each.name) for each in walked):
        if module.__name__.endswith(ending):
            found |= {each.text for each in vars(module).values() if isinstance(each, Reason)}
    return found - {""}


@pytest.mark.parametrize("generation", [V1_13, V1_36])
def test_every_reason_of_a_generation_has_a_case(generation: str) -> None:
    named = {case.reason for case in CASES if case.generation == generation}

    assert declared_reasons(generation) <= named
    assert {each for each in named if each.startswith("Insufficient")} >= {
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        "Insufficient example.com/gpu",
    }
