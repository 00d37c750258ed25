"""No decision walks nodes or the cluster's pods in Python.

The lines of Python that a decision executes are counted in a cluster of 100 nodes and in one of
400, with four pods on each node. Their number must stay about the same, and no line may be executed
for about every further node: arrays grow, loops do not.
Counted are the first decision about a kind of pod (asking every rule about every node), the second
(which makes the index), and one more after the cluster changed, in both generations; what placing
the pod costs is counted along.

What may walk is listed in `SLOW`, with the reason.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

import podium
from builders import (
    BROKEN,
    azure,
    budget,
    claim,
    claim_volume,
    ebs,
    expression,
    gce,
    node,
    node_term,
    objects,
    pod,
    replica_set,
    selector,
    service,
    storage_class,
    taint,
    term,
    tolerates,
    volume,
)
from builders_v1_36 import (
    SOFT,
    attachment,
    configured,
    csi_node,
    default_profile,
    exclusive,
    owned,
    spec_with,
    spread,
    status_with,
    with_args,
)
from podium.cluster.simulation import Simulation
from podium.engine.framework.profile import Profile
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.storage import HANDED_OVER
from podium.profiles.policy.build import Options, from_policy, from_provider

pytestmark = pytest.mark.slow

HOST = "kubernetes.io/hostname"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
PACKAGE = str(Path(podium.__file__).parent)
FEW, MANY = 100, 400
#: How many times more lines the larger cluster may take; some growth is left for vocabularies.
MOST = 1.3

Trace = Callable[[FrameType, str, Any], Any]


def lines_of(action: Callable[[], object]) -> Counter[str]:
    """How often each line of the package was executed."""
    counts: Counter[tuple[str, int]] = Counter()

    def on_line(frame: FrameType, event: str, _: object) -> Trace:
        if event == "line":
            counts[frame.f_code.co_filename, frame.f_lineno] += 1
        return on_line

    def on_call(frame: FrameType, _event: str, _: object) -> Trace | None:
        return on_line if frame.f_code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        action()
    finally:
        sys.settrace(before)
    return Counter({f"{Path(file).stem}:{line}": n for (file, line), n in counts.items()})


# Clusters -----------------------------------------------------------------------------------------


def classic(**options: Any) -> Profile:
    return from_provider("DefaultProvider", Options(**options))


POLICY = from_policy({"apiVersion": "v1", "kind": "Policy"}, Options())
CHECK_ALL = from_policy(
    {"apiVersion": "v1", "kind": "Policy", "alwaysCheckAllPredicates": True}, Options()
)
GENERATIONS: dict[str, Profile] = {"v1.13": classic(), "v1.36": default_profile()}


def cluster_nodes(count: int, **options: Any) -> Iterator[Object]:
    for i in range(count):
        labels = {
            HOST: f"n{i}",
            ZONE: f"z{i % 3}",
            REGION: "r",
            "failure-domain.beta.kubernetes.io/zone": f"z{i % 3}",
            "rack": f"rack{i % 10}",
            "disk": "ssd" if i % 2 else "hdd",
            "generation": str(i % 4),
        }
        yield node(f"n{i}", **{"cpu": "8", "memory": "32Gi", "labels": labels, **options})


def resident_pods(count: int, **options: Any) -> Iterator[Pod]:
    """Four pods on each node; of one kind unless told otherwise."""
    for i in range(count * 4):
        yield pod(
            f"old{i}",
            node=f"n{i % count}",
            **{"labels": {"app": "old"}, "requests": {"cpu": "1", "memory": "1Gi"}, **options},
        )


def with_volumes(count: int) -> Iterator[Object]:
    """A bound claim on every node, with limits and attachments, and what waiting pods need."""
    yield storage_class("late")
    yield storage_class("made", provisioner="example.com/make")
    for i in range(count):
        yield volume(f"v{i}", claimed_by=f"c{i}", csi=("disk.example.com", f"h{i}"))
        yield claim(f"c{i}", volume=f"v{i}")
        yield pod(f"holder{i}", node=f"n{i}", volumes=[claim_volume(f"c{i}")])
        yield pod(f"inline{i}", node=f"n{i}", volumes=[gce(f"g{i}"), gce("shared", read_only=True)])
        yield csi_node(f"n{i}", disk=8)
        yield attachment(f"a{i}", f"n{i}", "disk.example.com", f"v{i}")
    for i in range(9):
        yield volume(f"new-v{i}", claimed_by=f"new{i}", csi=("disk.example.com", f"new{i}"))
        yield claim(f"new{i}", volume=f"new-v{i}")
        yield claim(f"waiting{i}", storage_class="made")
        yield claim(f"early{i}", storage_class="unknown")
        yield exclusive(claim(f"alone{i}", volume=f"new-v{i}"))


def with_disks(count: int) -> Iterator[Object]:
    """Volumes of a kind that was once built in, on every node and for waiting pods."""
    names = (*(f"c{i}" for i in range(count)), *(f"new{i}" for i in range(9)))
    for name in names:
        yield volume(f"v-{name}", claimed_by=name, source=ebs(f"disk-{name}"))
        yield claim(name, volume=f"v-{name}")
    for i in range(count):
        yield pod(f"holder{i}", node=f"n{i}", volumes=[claim_volume(f"c{i}")])


def with_migrated_disks(count: int) -> Iterator[Object]:
    """The same volumes, which nodes leave to a CSI driver; they know how many it takes."""
    yield from with_disks(count)
    for i in range(count):
        made = csi_node(f"n{i}", **{"ebs.csi.aws.com": 39})
        annotations = {HANDED_OVER: "kubernetes.io/aws-ebs"}
        metadata = msgspec.structs.replace(made.metadata, annotations=annotations)
        yield msgspec.structs.replace(made, metadata=metadata)
        yield attachment(f"a{i}", f"n{i}", "ebs.csi.aws.com", f"v-c{i}")


@dataclass
class Kind:
    """A kind of decision: the pods to decide about, in which cluster, by which rules."""

    wanted: Callable[[int], Pod]
    others: Callable[[int], Iterable[Object]] = resident_pods
    nodes: dict[str, Any] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=lambda: GENERATIONS)
    placed: bool = True
    #: A pod before the first: what is attached to each node, or which services there are, is read
    #: once, and kept.
    warm_up: Pod | None = None
    sizes: tuple[int, int] = (FEW, MANY)


def one(**options: Any) -> Callable[[int], Pod]:
    """Pods that differ in their name only."""
    return lambda i: pod(f"new{i}", **{"labels": {"app": "new"}, **options})


def spreading(*constraints: Any, **options: Any) -> Callable[[int], Pod]:
    chosen = [spread(chosen=selector({"app": "new"}), **each) for each in constraints]
    return lambda i: spec_with(one(**options)(i), topology_spread_constraints=chosen)


def mixed(count: int) -> Iterator[Object]:
    """Pods with rules of their own, also about the pods to come."""
    yield from resident_pods(count)
    for i in range(count):
        where = f"n{i}"
        yield pod(
            f"alone{i}", node=where, labels={"app": "x"}, anti=[term({"app": "new"}, "nowhere")]
        )
        yield pod(f"likes{i}", node=where, prefers=[(3, term({"app": "new"}, ZONE))])
        yield pod(f"hates{i}", node=where, avoids=[(3, term({"app": "new"}, HOST))])
        yield pod(f"near{i}", node=where, labels={"app": "y"}, affinity=[term({"app": "y"}, ZONE)])


def some_alone(count: int) -> Iterator[Object]:
    """Half of the nodes hold a pod that wants to be alone, of low priority."""
    yield from resident_pods(count)
    for i in range(0, count, 2):
        yield pod(
            f"alone{i}",
            node=f"n{i}",
            labels={"app": "new"},
            anti=[term({"app": "new"}, HOST)],
        )


def everybody_alone(count: int) -> Iterator[Object]:
    yield from resident_pods(count)
    for i in range(count):
        yield pod(
            f"alone{i}", node=f"n{i}", labels={"app": "new"}, anti=[term({"app": "new"}, HOST)]
        )


def alone(name: str, **options: Any) -> Pod:
    """A pod that no other of its own kind may be near, and no other is of its kind."""
    return pod(name, labels={"app": name}, anti=[term({"app": name}, HOST)], **options)


def each_alone(count: int) -> Iterator[Object]:
    for i in range(count):
        yield alone(f"alone{i}", node=f"n{i}")


def each_served(count: int) -> Iterator[Object]:
    """A service and a controller for every node, and for pods to come."""
    for name in (*(f"old{i}" for i in range(count)), *(f"new{i}" for i in range(9))):
        yield service(name, {"app": name})
        yield replica_set(name, selector({"app": name}))


def with_ports(count: int) -> Iterator[Object]:
    yield from resident_pods(count)
    for i in range(count):
        yield pod(f"port{i}", node=f"n{i}", ports=[1000 + i, 80])


def with_promises(count: int) -> Iterator[Object]:
    """Every node is promised to a pod of the same priority."""
    yield from resident_pods(count)
    for i in range(count):
        yield pod(f"promised{i}", nominated=f"n{i}", requests={"cpu": "1"}, priority=100)


def behind_service(count: int) -> Iterator[Object]:
    yield from resident_pods(count, labels={"app": "new"}, owner=("ReplicaSet", "r"))
    yield service("s", {"app": "new"})
    yield replica_set("r", selector({"app": "new"}))


def protected(count: int) -> Iterator[Object]:
    """Pods with start times and several priorities, behind budgets."""
    for i, each in enumerate(resident_pods(count, requests={"cpu": "2"})):
        started = f"2026-01-01T00:{i // 60 % 60:02}:{i % 60:02}Z"
        ranked = spec_with(each, priority=i % 3)
        yield status_with(ranked, start_time=started)
    yield budget("none", selector({"app": "old"}))
    yield msgspec.structs.replace(
        budget("gone", selector({"app": "old"}), allowed=1),
        status=msgspec.structs.replace(
            budget("x", None).status, disruptions_allowed=1, disrupted_pods={"old1": ""}
        ),
    )


FULL = {"cpu": "4", "memory": "8Gi"}
CURRENT = {"v1.36": GENERATIONS["v1.36"]}
CLASSIC = {"v1.13": GENERATIONS["v1.13"]}
#: Where preemption looks at all nodes, not only for enough of them.
THOROUGH = GENERATIONS | {
    "v1.36 all candidates": configured(
        {"pluginConfig": [with_args("DefaultPreemption", minCandidateNodesPercentage=100)]}
    )[0]
}
BASIC = {"requests": {"cpu": "100m", "memory": "500Mi"}}
#: So many disks may be attached to a node, by the kubelet or by the CSI driver.
DISKS = {"attachable-volumes-aws-ebs": 39, "attachable-volumes-csi-ebs.csi.aws.com": 39}
WARM_DISK = pod("warm", volumes=[claim_volume("new8")])
WARM = pod("warm", volumes=[gce("w"), ebs("w"), azure("w"), claim_volume("new8")])

KINDS: dict[str, Kind] = {
    "basic": Kind(one(**BASIC)),
    "wants nothing": Kind(one()),
    "every pod its own class": Kind(
        lambda i: pod(f"new{i}", labels={"app": f"new{i}"}, requests={"cpu": f"{100 + i}m"})
    ),
    "every pod with labels of its own": Kind(
        lambda i: pod(f"new{i}", labels={"app": f"new{i}"}, requests=BASIC["requests"])
    ),
    "every pod with anti-affinity of its own": Kind(
        lambda i: alone(f"new{i}", requests=BASIC["requests"]),
        lambda count: (*resident_pods(count), *each_alone(count)),
    ),
    "two classes in turn": Kind(
        lambda i: pod(
            f"new{i}",
            labels={"app": f"new{i % 2}"},
            requests={"cpu": f"{100 + i % 2}m", "memory": "500Mi"},
        )
    ),
    "own classes spread softly over zones": Kind(
        lambda i: spec_with(
            pod(f"new{i}", labels={"app": f"new{i}"}, requests=BASIC["requests"]),
            topology_spread_constraints=[
                spread(key=ZONE, when=SOFT, chosen=selector({"app": f"new{i}"}))
            ],
        ),
        profiles=CURRENT,
    ),
    "scalar resource": Kind(
        one(requests={"example.com/gpu": 1}), nodes={"resources": {"example.com/gpu": 4}}
    ),
    "node selector": Kind(one(node_selector={"disk": "ssd"}, **BASIC)),
    "node affinity with many values": Kind(
        one(node_affinity=[node_term(expression(HOST, "In", *(f"n{i}" for i in range(60))))])
    ),
    "node affinity by every operator": Kind(
        one(
            node_affinity=[
                node_term(
                    expression(HOST, "Exists"),
                    expression("missing", "DoesNotExist"),
                    expression("rack", "NotIn", "rack1"),
                    expression("generation", "Gt", "0"),
                    expression("generation", "Lt", "3"),
                )
            ]
        )
    ),
    "named nodes": Kind(
        one(
            node_affinity=[
                node_term(fields=[expression("metadata.name", "In", "n3")]),
                node_term(fields=[expression("metadata.name", "In", "n4")]),
            ]
        )
    ),
    "the only named node": Kind(
        one(node_affinity=[node_term(fields=[expression("metadata.name", "In", "n3")])], **BASIC)
    ),
    "each names a node of its own": Kind(
        lambda i: one(
            node_affinity=[node_term(fields=[expression("metadata.name", "In", f"n{i}")])], **BASIC
        )(i)
    ),
    "the only named node is full": Kind(
        one(
            node_affinity=[node_term(fields=[expression("metadata.name", "In", "n3")])],
            requests={"cpu": "7"},
        ),
        placed=False,
    ),
    "preferred node affinity": Kind(
        one(prefers_nodes=[(5, node_term(expression("rack", "In", "rack1", "rack2")))], **BASIC)
    ),
    "taints": Kind(
        one(tolerations=[tolerates("t", "Exists")], **BASIC),
        nodes={"taints": [taint(), taint("soft", effect="PreferNoSchedule")]},
    ),
    "images": Kind(one(image="app:1", **BASIC), nodes={"images": {"app:1": 600 * 1024 * 1024}}),
    "host ports": Kind(one(ports=[8080]), with_ports),
    "required anti-affinity by host": Kind(one(anti=[term({"app": "new"}, HOST)])),
    "required anti-affinity by rack": Kind(one(anti=[term({"app": "new"}, "rack")])),
    "required affinity by zone": Kind(one(affinity=[term({"app": "old"}, ZONE)])),
    "preferred affinity by zone": Kind(one(prefers=[(5, term({"app": "old"}, ZONE))])),
    "preferred anti-affinity by host": Kind(one(avoids=[(5, term({"app": "new"}, HOST))])),
    "among pods with rules": Kind(one(**BASIC), mixed),
    "among pods that want to be alone": Kind(one(**BASIC), some_alone),
    "one more of many kinds": Kind(lambda i: alone(f"new{i}"), each_alone),
    "behind one of many services": Kind(
        lambda i: owned(pod(f"new{i}", labels={"app": f"new{i}"}), "ReplicaSet", f"new{i}"),
        each_served,
        warm_up=pod("warm", labels={"app": "warm"}),
    ),
    "behind a service": Kind(lambda i: owned(one(**BASIC)(i), "ReplicaSet", "r"), behind_service),
    "spread over three keys": Kind(
        spreading({"key": ZONE}, {"key": "rack", "skew": 3}, {"key": HOST, "skew": 2}),
        profiles=CURRENT,
    ),
    "spread softly over three keys": Kind(
        spreading(
            {"key": ZONE, "when": SOFT}, {"key": "rack", "when": SOFT}, {"key": HOST, "when": SOFT}
        ),
        profiles=CURRENT,
        sizes=(400, 1600),  # there are groups of nodes in both
    ),
    "spread over some nodes": Kind(
        spreading({"key": ZONE, "taints": "Honor"}, node_selector={"disk": "ssd"}), profiles=CURRENT
    ),
    "sampling": Kind(
        one(**BASIC),
        profiles={
            "v1.13": classic(percentage_of_nodes_to_score=50),
            "v1.36": default_profile(percentage_of_nodes_to_score=50),
            "v1.36 by itself": default_profile(percentage_of_nodes_to_score=0),
        },
        # Below that, all nodes are looked at whatever the percentage.
        sizes=(300, 1200),
    ),
    "random ties": Kind(
        one(**BASIC),
        profiles={"v1.13": classic(ties="random:1"), "v1.36": default_profile(ties="random:1")},
    ),
    "a policy": Kind(one(**BASIC), profiles={"v1.13": POLICY}),
    "all predicates": Kind(
        one(requests={"cpu": "100"}, node_selector={"disk": "ssd"}),
        profiles={"v1.13": CHECK_ALL},
        placed=False,
    ),
    "too large": Kind(one(requests={"cpu": "100"}), placed=False),
    "no such label": Kind(one(node_selector={"missing": "x"}), placed=False),
    "no room and nobody to evict": Kind(one(requests={"cpu": "3"}), nodes=FULL, placed=False),
    "unschedulable for many reasons": Kind(
        one(requests={"cpu": "7"}, ports=[80], anti=[term({"app": "old"}, HOST)]),
        with_ports,
        placed=False,
    ),
    "promised nodes": Kind(one(requests={"cpu": "1"}, priority=100), with_promises),
    "claims": Kind(
        lambda i: pod(f"new{i}", volumes=[claim_volume(f"new{i}")]),
        with_volumes,
        warm_up=WARM,
    ),
    "claims and labels of their own": Kind(
        lambda i: pod(f"new{i}", labels={"app": f"new{i}"}, volumes=[claim_volume(f"new{i}")]),
        with_volumes,
        warm_up=WARM,
    ),
    "the same claim": Kind(
        lambda i: pod(f"new{i}", volumes=[claim_volume("new1")]),
        with_volumes,
        warm_up=WARM,
    ),
    "claims to be made": Kind(
        lambda i: pod(f"new{i}", volumes=[claim_volume(f"waiting{i}")]),
        with_volumes,
        warm_up=WARM,
    ),
    "claims that are late": Kind(
        lambda i: pod(f"new{i}", volumes=[claim_volume(f"early{i}")]),
        with_volumes,
        warm_up=WARM,
        placed=False,
    ),
    "a claim that is missing": Kind(
        lambda i: pod(f"new{i}", volumes=[claim_volume("missing")]), with_volumes, placed=False
    ),
    "exclusive claims": Kind(
        lambda i: pod(f"new{i}", volumes=[claim_volume(f"alone{i}")]),
        with_volumes,
        warm_up=WARM,
        profiles=CURRENT,
    ),
    "claims of disks": Kind(
        lambda i: pod(f"new{i}", volumes=[claim_volume(f"new{i}")]),
        with_disks,
        nodes={"resources": DISKS},
        warm_up=WARM_DISK,
    ),
    "claims of disks that a CSI driver attaches": Kind(
        lambda i: pod(f"new{i}", volumes=[claim_volume(f"new{i}")]),
        with_migrated_disks,
        nodes={"resources": DISKS},
        warm_up=WARM_DISK,
    ),
    "disks": Kind(
        lambda i: pod(f"new{i}", volumes=[gce("shared", read_only=True), ebs(f"e{i}")]),
        with_volumes,
        warm_up=WARM,
    ),
    "taken disks": Kind(
        lambda i: pod(f"new{i}", volumes=[gce("shared")]),
        with_volumes,
        placed=False,
        warm_up=WARM,
    ),
    "preempting": Kind(
        one(requests={"cpu": "3"}, priority=9), nodes=FULL, profiles=THOROUGH, placed=False
    ),
    "preempting protected pods": Kind(
        one(requests={"cpu": "7"}, priority=9),
        protected,
        profiles=THOROUGH,
        placed=False,
        # Every candidate violates a budget. Beyond a hundred nodes the search has two portions:
        # as many nodes as candidates are wanted, and all the others.
        sizes=(300, 1200),
    ),
    "preempting with host ports": Kind(
        one(ports=[80], priority=9), with_ports, profiles=THOROUGH, placed=False
    ),
    "preempting with anti-affinity": Kind(
        one(requests={"cpu": "3"}, anti=[term({"app": "new"}, HOST)], priority=9),
        some_alone,
        nodes=FULL,
        profiles=THOROUGH,
        placed=False,
    ),
    "preempting with affinity": Kind(
        one(
            requests={"cpu": "3"},
            affinity=[term({"app": "old"}, ZONE)],
            anti=[term({"app": "x"}, HOST)],
            priority=9,
        ),
        nodes=FULL,
        profiles=THOROUGH,
        placed=False,
    ),
    "preempting those who want to be alone": Kind(
        one(priority=9), everybody_alone, profiles=THOROUGH, placed=False
    ),
    "preempting with spreading": Kind(
        spreading({"key": ZONE}, {"key": HOST}, requests={"cpu": "3"}, priority=9),
        nodes=FULL,
        placed=False,
        profiles={k: v for k, v in THOROUGH.items() if k != "v1.13"},
    ),
    "preempting on promised nodes": Kind(
        one(requests={"cpu": "3"}, priority=100),
        with_promises,
        nodes=FULL,
        profiles=THOROUGH,
        placed=False,
    ),
    "preempting with claims": Kind(
        lambda i: pod(
            f"new{i}", volumes=[claim_volume(f"new{i}")], requests={"cpu": "6"}, priority=9
        ),
        lambda count: (*resident_pods(count), *with_volumes(count)),
        profiles=THOROUGH,
        placed=False,
        warm_up=WARM,
    ),
}

#: Documented rules that walk pods or nodes one by one, and why.
SLOW: dict[str, Kind] = {
    # Counts per domain are not to be had when a selector cannot be compiled: the real program
    # walks all pods for every node then, by rules of its own.
    "a selector that cannot be compiled": Kind(
        one(affinity=[term(BROKEN, ZONE)]), profiles=CLASSIC, placed=False
    ),
}


@cache
def measured(name: str, generation: str, count: int) -> list[Counter[str]]:
    kind = KINDS.get(name) or SLOW[name]
    made = Simulation(kind.profiles[generation])
    made.load(objects(*cluster_nodes(count, **kind.nodes), *kind.others(count)))
    # The order of the nodes is worked out once per change of nodes, not per decision.
    made.cache.order()
    if kind.warm_up is not None:
        made.attempt(kind.warm_up)
    rounds = []
    for i in range(3):
        wanted = kind.wanted(i)
        decision = None

        def decide(wanted: Pod = wanted) -> None:
            nonlocal decision
            decision = made.attempt(wanted)
            if decision.node is not None:
                made.place(wanted, decision)

        rounds.append(lines_of(decide))
        assert decision is not None
        assert (decision.node is not None) == kind.placed, decision.message
        made.cache.columns.add_pod(pod(f"between{i}", node=f"n{i}", requests={"cpu": "1m"}))
    return rounds


def growth(few: Counter[str], many: Counter[str]) -> tuple[float, list[tuple[str, int, int]]]:
    """How many times more lines, and the lines that are executed more often."""
    more = sorted(many, key=lambda line: few[line] - many[line])
    told = [(line, few[line], many[line]) for line in more if many[line] > few[line]]
    return many.total() / few.total(), told[:12]


CASES = [(name, generation) for name, kind in KINDS.items() for generation in kind.profiles]


@pytest.mark.unverified
@pytest.mark.parametrize(("name", "generation"), CASES, ids=lambda part: part)
def test_no_decision_walks_nodes_or_pods(name: str, generation: str) -> None:
    sizes = KINDS[name].sizes
    few, many = (measured(name, generation, count) for count in sizes)

    for place, (small, large) in enumerate(zip(few, many, strict=True)):
        times, lines = growth(small, large)
        assert times <= MOST, f"decision {place}: {small.total()} -> {large.total()} lines, {lines}"
        more_nodes = sizes[1] - sizes[0]
        loops = [line for line in lines if line[2] - line[1] >= more_nodes // 3]
        assert not loops, f"decision {place}: {loops}"


def test_the_documented_slow_rules_do_walk() -> None:
    """Or they need not be listed any more."""
    for name, kind in SLOW.items():
        for generation in kind.profiles:
            few, many = (measured(name, generation, count)[0] for count in (10, 40))
            assert growth(few, many)[0] > MOST, name
