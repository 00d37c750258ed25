"""What would make a pod fit: the pod is placed after the edit, and not after a weaker one.

An oracle tries all single edits of every kind: none is missed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace as replaced
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import manifests
import podium
from builders import (
    claim,
    claim_volume,
    expression,
    node,
    node_term,
    objects,
    pod,
    storage_class,
    taint,
    tolerates,
    volume,
)
from podium.objects.kinds.meta import OwnerReference
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, SchedulingGate, Toleration
from podium.objects.kinds.registry import RESOURCE_CLAIM
from podium.objects.quantity import milli, value
from podium.objects.reading.collection import Objects
from podium.what_if.capacity.node_shapes import NodeShape
from podium.what_if.fix.edits import difference
from podium.what_if.fix.fix import SearchLimits, apply_fix, fix
from podium.what_if.fix.results import Edit, Fix
from what_if import clusters
from what_if.pending_pods import Case, random_case

V1_13 = podium.default_profile("v1.13")
V1_36 = podium.default_profile("v1.36")
GENERATIONS = {"v1.13": V1_13, "v1.36": V1_36}
PROFILES = pytest.mark.parametrize("profile", [V1_13, V1_36], ids=["v1.13", "v1.36"])
#: Labels that say what or where a node is; they are added, never changed.
FACTS = ("kubernetes.io/", "topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/")


def places(cluster: Objects, name: str, profile: podium.Profile) -> str | None:
    """The node that the pod gets in a simulation of its own, without evictions."""
    wanted = next(each for each in cluster.pods if each.name == name)
    simulation = podium.Simulation(replaced(profile, post_filters=()), fast=False)
    running = cluster.copied()
    running.pods = [each for each in cluster.pods if each.spec.node_name]
    simulation.load(running)
    return simulation.attempt(wanted).node


# Weaker edits ---------------------------------------------------------------------------------


def weaker(found: Fix) -> Iterator[Fix]:
    """The same fix with one edit made a little smaller, or left out."""
    for place, edit in enumerate(found.edits):
        rest = (*found.edits[:place], *found.edits[place + 1 :])
        if rest:
            yield replaced(found, edits=rest)
        for smaller in smaller_edits(edit):
            yield replaced(found, edits=(*found.edits[:place], smaller, *found.edits[place + 1 :]))


def smaller_edits(edit: Edit) -> Iterator[Edit]:
    if edit.action == "evict":
        for key in edit.names:
            yield replaced(edit, names=tuple(each for each in edit.names if each != key))
    operation = edit.patch[0]
    path = operation["path"]
    if edit.action == "request":
        resource = path.rpartition("/")[2].replace("~1", "/")
        raised = one_more(resource, operation["value"])
        yield replaced(edit, patch=tuple(each | {"value": raised} for each in edit.patch))
    if path.endswith("/maxSkew"):
        yield replaced(edit, patch=(operation | {"value": operation["value"] - 1},))
    if path.endswith("/minDomains") and operation["op"] == "replace":
        yield replaced(edit, patch=(operation | {"value": operation["value"] + 1},))


def one_more(resource: str, written: str) -> str:
    """A request that is one unit higher."""
    if resource == "cpu":
        return f"{milli(written) + 1}m"
    if resource == "memory":
        return str(value(written) + (1 << 20))
    return str(int(written) + 1)


# All single edits -----------------------------------------------------------------------------


def edited_pods(  # noqa: C901  one part for each kind
    wanted: Pod, nodes: list[Node]
) -> Iterator[tuple[str, Pod]]:
    """Every edit of the pod, in its strongest form, with its kind."""
    spec = wanted.spec
    for index, each in enumerate(spec.containers or ()):
        for resource in (each.resources and each.resources.requests) or {}:
            assert each.resources is not None
            requests = (each.resources.requests or {}) | {resource: "0"}
            limits = {k: v for k, v in (each.resources.limits or {}).items() if k != resource}
            resources = replace(each.resources, requests=requests, limits=limits or None)
            containers = list(spec.containers or ())
            containers[index] = replace(each, resources=resources)
            yield "request", replace(wanted, spec=replace(spec, containers=containers))
        for place in range(len(each.ports or ())):
            ports = [port for i, port in enumerate(each.ports or ()) if i != place]
            containers = list(spec.containers or ())
            containers[index] = replace(each, ports=ports)
            yield "port", replace(wanted, spec=replace(spec, containers=containers))
    tainted = {each for one in nodes for each in one.spec.taints or ()}
    tolerations = [Toleration(each.key, "Exists", "", each.effect) for each in tainted]
    tolerations += [Toleration("", "Exists")]
    for toleration in tolerations:
        changed = [*(spec.tolerations or ()), toleration]
        yield "toleration", replace(wanted, spec=replace(spec, tolerations=changed))
    for key in spec.node_selector or {}:
        left = {k: v for k, v in (spec.node_selector or {}).items() if k != key}
        yield "selector", replace(wanted, spec=replace(spec, node_selector=left))
    if spec.topology_spread_constraints:
        yield "spread", replace(wanted, spec=replace(spec, topology_spread_constraints=None))
    if spec.scheduling_gates:
        yield "gate", replace(wanted, spec=replace(spec, scheduling_gates=None))
    affinity = spec.affinity
    if affinity and affinity.node_affinity:
        free = replace(affinity, node_affinity=None)
        yield "node affinity", replace(wanted, spec=replace(spec, affinity=free))
    if affinity and affinity.pod_affinity:
        free = replace(affinity, pod_affinity=None)
        yield "pod affinity", replace(wanted, spec=replace(spec, affinity=free))
    if affinity and affinity.pod_anti_affinity:
        free = replace(affinity, pod_anti_affinity=None)
        yield "pod affinity", replace(wanted, spec=replace(spec, affinity=free))


def edited_nodes(  # noqa: C901  one part for each kind
    wanted: Pod, nodes: list[Node]
) -> Iterator[tuple[str, Node]]:
    """Every label that the pod's conditions name, with every value in sight, and every uncordon."""
    spec = wanted.spec
    values: dict[str, set[str | None]] = {}
    topology: set[str] = set()
    for key, each in (spec.node_selector or {}).items():
        values.setdefault(key, set()).add(each)
    affinity = spec.affinity
    required = affinity and affinity.node_affinity and affinity.node_affinity.required
    for each_term in (required and required.node_selector_terms) or ():
        for each_expression in each_term.match_expressions or ():
            values.setdefault(each_expression.key, set()).update(
                [None, "9", *(each_expression.values or ())]
            )
    for part in (affinity and affinity.pod_affinity, affinity and affinity.pod_anti_affinity):
        topology.update(each.topology_key for each in (part and part.required) or ())
    topology.update(each.topology_key for each in spec.topology_spread_constraints or ())
    for one in nodes:
        if one.spec.unschedulable:
            yield "uncordon", replace(one, spec=replace(one.spec, unschedulable=False))
        for key in {*values, *topology}:
            if key in one.labels and (key.startswith(FACTS) or key not in values):
                continue
            seen = {other.labels[key] for other in nodes if key in other.labels}
            for new in {*values.get(key, ()), *seen, one.name}:
                labels = {k: v for k, v in one.labels.items() if k != key}
                labels |= {key: new} if new is not None else {}
                if labels != one.labels:
                    yield "label", replace(one, metadata=replace(one.metadata, labels=labels))


def single_edits(case: Case) -> Iterator[tuple[str, Objects]]:
    """Every single edit of the cluster of a case, with its kind."""
    cluster, nodes = case.cluster, case.cluster.nodes
    others = [each for each in cluster.pods if each.name != case.pod.name]
    for action, changed in edited_pods(case.pod, nodes):
        found = cluster.copied()
        found.pods = [*others, changed]
        yield action, found
    for action, one in edited_nodes(case.pod, nodes):
        found = cluster.copied()
        found.nodes = [one if each.name == one.name else each for each in nodes]
        yield action, found
    for one in nodes:
        owned = {each.uid: each.metadata.controller() for each in others}
        daemons = [
            each
            for each in others
            if each.spec.node_name == one.name
            and (owner := owned[each.uid]) is not None
            and owner.kind == "DaemonSet"
        ]
        made, running = NodeShape(one, tuple(daemons)).built(each.name for each in nodes)
        found = cluster.copied()
        found.nodes, found.pods = [*nodes, made], [*cluster.pods, *running]
        yield "add node", found
    for gone in evictable(others):
        found = cluster.copied()
        found.pods = [each for each in cluster.pods if each.uid not in gone]
        yield "evict", found


def evictable(pods: list[Pod]) -> Iterator[set[str]]:
    """Every set of pods that could be evicted; those of a DaemonSet would come back."""
    uids = [
        each.uid
        for each in pods
        if not ((owner := each.metadata.controller()) and owner.kind == "DaemonSet")
    ]
    for size in range(1, len(uids) + 1):
        yield from (set(each) for each in combinations(uids, size))


# ----------------------------------------------------------------------------------------------

SEEDS = 130


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("block", range(10))
def test_fixes_help_and_weaker_ones_do_not(generation: str, block: int) -> None:
    """Thirteen random cases in a block; at least 200 of all pods fit nowhere."""
    profile, pending = GENERATIONS[generation], 0
    for seed in range(block * SEEDS // 10, (block + 1) * SEEDS // 10):
        case = random_case(seed)
        found = fix(case.cluster, case.pod, profile, pairs=seed % 3 == 0)
        if places(case.cluster, "wanted", profile) is not None:
            assert found.node is not None
            continue
        assert found.node is None
        pending += 1
        check_fixes(case, found.fixes, profile, seed)
        check_complete(case, found.fixes, profile, seed)
    assert pending >= 10


def check_fixes(case: Case, fixes: list[Fix], profile: podium.Profile, seed: int) -> None:
    for each in fixes:
        assert places(apply_fix(case.cluster, each), "wanted", profile), (seed, each.sentence)
        for smaller in weaker(each):
            try:
                after = apply_fix(case.cluster, smaller)
            except podium.InputError:
                continue  # the second patch builds on what the first one adds
            assert places(after, "wanted", profile) is None, (seed, each.sentence, smaller)
    keys = [(len(each.edits), each.cost) for each in fixes]
    assert keys == sorted(keys)


def check_complete(case: Case, fixes: list[Fix], profile: podium.Profile, seed: int) -> None:
    """Every kind of edit that helps by itself is in the answer."""
    given = {each.edits[0].action for each in fixes if len(each.edits) == 1}
    missed = set[str]()
    for action, after in single_edits(case):
        if action not in given and action not in missed and places(after, "wanted", profile):
            missed.add(action)
    assert missed == set(), seed


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_limit_of_nodes_hides_no_single_edit(generation: str) -> None:
    profile = GENERATIONS[generation]
    for seed in range(12):
        case = random_case(seed)
        everywhere = fix(case.cluster, case.pod, profile)
        limited = fix(case.cluster, case.pod, profile, limits=SearchLimits(nodes=1))

        singles = [each for each in everywhere.fixes if len(each.edits) == 1]
        assert bool(singles) == any(len(each.edits) == 1 for each in limited.fixes), seed


@PROFILES
def test_the_last_of_many_nodes_is_found(profile: podium.Profile) -> None:
    zone = "topology.kubernetes.io/zone"
    reachable = [node_term(expression("disk", "In", "ssd"), expression(zone, "In", "z"))]
    nodes = [node(f"n{place}", labels={zone: "z" if place == 69 else "a"}) for place in range(70)]
    cluster = objects(
        *nodes,
        volume("v", claimed_by="data", phase="Bound", reachable=reachable),
        claim("data", volume="v"),
        pod("w", volumes=[claim_volume("data")]),
    )

    found = fix(cluster, "w", profile, limits=SearchLimits(nodes=2))

    assert [each.sentence for each in found.fixes] == ["Add the label disk=ssd to the node n69."]


# Volumes and devices --------------------------------------------------------------------------


@PROFILES
def test_a_label_that_the_volume_asks_for(profile: podium.Profile) -> None:
    reachable = [node_term(expression("disk", "In", "ssd"))]
    cluster = objects(
        node("n", cpu="2"),
        volume("v", claimed_by="data", phase="Bound", reachable=reachable),
        claim("data", volume="v"),
        pod("w", volumes=[claim_volume("data")]),
    )

    [found] = fix(cluster, "w", profile).fixes

    assert found.sentence == "Add the label disk=ssd to the node n."
    assert places(apply_fix(cluster, found), "w", profile) == "n"


def devices_in_use() -> Objects:
    """The example with GPUs after two pods have taken both of them; the third is pending.

    The pods belong to no workload, so that one may be evicted for the other.
    """
    cluster = podium.read([str(Path(__file__).parents[2] / "examples" / "devices" / "gpus.yaml")])
    claims = {each.key: each for each in cluster.of(RESOURCE_CLAIM)}
    pods = {each.key: each for each in cluster.pods}
    for step in podium.simulate(cluster, V1_36):
        placed = pods[step.pod.key]
        spec = replace(placed.spec, node_name=step.decision.node or "")
        about = replace(placed.metadata, owner_references=None)
        pods[placed.key] = replace(placed, spec=spec, metadata=about)
        if step.claims is not None:
            claims |= {key: each for key, each in step.claims.claims.items() if each is not None}
    cluster.pods = list(pods.values())
    cluster.lists[RESOURCE_CLAIM.name] = list(claims.values())
    return cluster


def test_the_pod_that_holds_a_device_is_evicted_or_a_node_with_devices_added() -> None:
    cluster = devices_in_use()
    [wanted] = [each for each in cluster.pods if not each.spec.node_name]

    found = fix(cluster, wanted.key, V1_36)

    actions = {each.edits[0].action for each in found.fixes if len(each.edits) == 1}
    assert {"evict", "add node"} <= actions
    for each in found.fixes:
        assert places(apply_fix(cluster, each), wanted.name, V1_36), each.sentence
        for smaller in weaker(each):
            assert places(apply_fix(cluster, smaller), wanted.name, V1_36) is None


@PROFILES
@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        pytest.param(
            [],
            "the claim default/data does not exist: create it, or remove its volume from the pod",
            id="a claim that is missing",
        ),
        pytest.param(
            [claim("data", volume="v")],
            "the claim default/data is bound to the volume v, which does not exist: create it",
            id="a volume that is missing",
        ),
        pytest.param(
            [claim("data", storage_class="fast"), storage_class("fast", mode="Immediate")],
            "the claim default/data is not bound: create a volume of the storage class fast "
            "that fits it",
            id="a claim that is not bound",
        ),
    ],
)
def test_what_is_missing_is_said(profile: podium.Profile, items: list[Any], sentence: str) -> None:
    written = replace(node("n"), metadata=replace(node("n").metadata, uid=""))
    found = fix(objects(written, *items, pod("w", volumes=[claim_volume("data")])), "w", profile)

    assert found.fixes == []
    assert found.advice == (sentence,)


def test_what_was_not_dumped_may_exist() -> None:
    found = fix(objects(node("n"), pod("w", volumes=[claim_volume("data")])), "w", V1_36)

    assert found.advice == (
        (
            "the claim default/data is not in the input: "
            "`kubectl -n default get persistentvolumeclaim data -o yaml` adds it, if it exists"
        ),
    )


def test_missing_device_claims_and_classes_are_said() -> None:
    cluster = devices_in_use()
    wanted = next(each for each in cluster.pods if not each.spec.node_name)
    cluster.pods = [wanted]
    cluster.lists["DeviceClass"] = []

    found = fix(cluster, wanted.key, V1_36)

    assert found.fixes == []
    assert [each for each in found.advice if "which does not exist: create it" in each]


@PROFILES
def test_a_request_is_lowered_to_what_fits(profile: podium.Profile) -> None:
    cluster = objects(node("n", cpu="2", memory="4Gi"), pod("w", requests={"cpu": "3"}))

    found = fix(cluster, "w", profile)

    first = found.fixes[0]
    assert first.sentence == "Lower the cpu request of container number 0 from 3 to 2."
    assert first.edits[0].patch == (
        {"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "2"},
    )
    assert first.node == "n"


@PROFILES
def test_two_edits_where_one_is_not_enough(profile: podium.Profile) -> None:
    cluster = objects(
        node("n", cpu="2", taints=[taint("gpu", "yes")]),
        pod("w", requests={"cpu": "3"}),
    )

    found = fix(cluster, "w", profile, shapes=[])

    assert [len(each.edits) for each in found.fixes][:1] == [2]
    assert found.fixes[0].sentence == (
        "Lower the cpu request of container number 0 from 3 to 2, and "
        "tolerate the taint gpu=yes:NoSchedule."
    )


@PROFILES
def test_a_pod_that_fits_needs_nothing(profile: podium.Profile) -> None:
    found = fix(objects(node("n"), pod("w")), "w", profile)

    assert (found.node, found.fixes, found.complete) == ("n", [], True)


@PROFILES
def test_what_the_scheduler_would_evict_is_said(profile: podium.Profile) -> None:
    low = pod("low", uid="low", node="n", requests={"cpu": "1"}, priority=-1)
    cluster = objects(node("n", cpu="1"), low, pod("w", requests={"cpu": "1"}, priority=5))

    found = fix(cluster, "w", profile)

    assert (found.preempts_on, found.preempts) == ("n", ("default/low",))
    assert "Evict default/low from n." in [each.sentence for each in found.fixes]


@PROFILES
def test_nothing_helps_a_pod_whose_claim_is_missing(profile: podium.Profile) -> None:
    found = fix(objects(node("n"), pod("w", volumes=[claim_volume("gone")])), "w", profile)

    assert found.fixes == []
    assert found.complete


def test_a_patch_removes_fields_in_their_order() -> None:
    fields = {f"field-{number}": number for number in range(20)}

    assert [each["path"] for each in difference(fields, {})] == [f"/{name}" for name in fields]


def test_a_toleration_is_appended_to_those_there_are() -> None:
    cluster = objects(
        node("n", taints=[taint("a", "b")]), pod("w", tolerations=[tolerates("x", "Exists")])
    )

    edit = fix(cluster, "w", V1_36).fixes[0].edits[0]

    added: dict[str, Any] = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}
    assert edit.patch == ({"op": "add", "path": "/spec/tolerations/-", "value": added},)
    assert edit.command.startswith("kubectl -n default patch pod w --type=json -p '[")


def test_a_request_that_the_template_does_not_have_is_lowered(tmp_path: Path) -> None:
    """Admission may have added requests to pods: the template of their workload has none."""
    container = {"name": "main", "image": "app:1"}
    replica_set = manifests.workload("ReplicaSet", "web", 1, {"containers": [container]})
    replica_set["metadata"]["uid"] = "uid-web"
    asking = clusters.owned("ReplicaSet", "web", "web-1", cpu="8", nodeName="")
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(manifests.listed([clusters.node("n"), replica_set, asking])))

    found = podium.fix(podium.read([str(file)]), "web-1", podium.default_profile())

    assert "Lower the cpu request" in found.fixes[0].sentence


def owned(wanted: Pod, kind: str, name: str) -> Pod:
    """The pod as one of a workload that is known by its reference only."""
    reference = OwnerReference(kind=kind, name=name, uid=name, controller=True)
    return replace(wanted, metadata=replace(wanted.metadata, owner_references=[reference]))


def actions_of(found: podium.Fixes) -> set[str]:
    return {edit.action for each in found.fixes for edit in each.edits}


def test_a_sibling_is_never_evicted() -> None:
    running = pod("web-1", node="n", requests={"cpu": 3})
    other = pod("other", node="n", requests={"cpu": 1})
    cluster = objects(
        node("n", cpu=4),
        owned(running, "ReplicaSet", "web"),
        other,
        owned(pod("web-2", requests={"cpu": 3}), "ReplicaSet", "web"),
    )

    assert "evict" not in actions_of(fix(cluster, "web-2", V1_36))


def test_a_successor_that_will_be_pending_is_named() -> None:
    running = owned(pod("a", node="n", requests={"cpu": 3}), "ReplicaSet", "a")
    cluster = objects(node("n", cpu=4), running, pod("w", requests={"cpu": 3}))

    found = fix(cluster, "w", V1_36)

    [evicted] = [edit for each in found.fixes for edit in each.edits if edit.action == "evict"]
    assert evicted.effects == ("the pod in the place of default/a will be pending itself",)


def test_pods_that_a_change_of_the_template_restarts_are_counted() -> None:
    pods = [owned(pod(f"w-{n}", node="n", requests={"cpu": 1}), "StatefulSet", "w") for n in (0, 1)]
    cluster = objects(
        node("n", cpu=4), *pods, owned(pod("w-2", requests={"cpu": 3}), "StatefulSet", "w")
    )

    found = fix(cluster, "w-2", V1_36)

    [lowered] = [edit for each in found.fixes for edit in each.edits if edit.action == "request"]
    assert lowered.effects == ("this restarts 2 pods of statefulset/w",)
    assert lowered.command.splitlines()[1] == "kubectl -n default delete pod w-2"


def test_gates_belong_to_their_controllers() -> None:
    gated = pod("w")
    gates = [SchedulingGate(name="example.com/quota")]
    gated = replace(gated, spec=replace(gated.spec, scheduling_gates=gates))

    [found] = fix(objects(node("n"), gated), "w", V1_36).fixes

    assert found.cost == 8
    assert "the controller that set a gate removes it" in found.edits[0].effects[0]


def test_a_new_node_is_one_line_with_what_it_must_have() -> None:
    wanted = pod("w", requests={"cpu": 3})
    wanted = replace(wanted, spec=replace(wanted.spec, node_selector={"disk": "ssd"}))
    full = pod("a", node="n", requests={"cpu": 4})

    found = fix(objects(node("n", cpu=4, labels={"disk": "ssd"}), full, wanted), "w", V1_36)

    [added] = [edit for each in found.fixes for edit in each.edits if edit.action == "add node"]
    assert added.sentence.startswith("add a node like n, with cpu 4, ")
    assert added.sentence.endswith("the label disk=ssd")
    assert added.command == ""


def test_a_command_sets_the_tolerations_of_a_template_that_is_not_known() -> None:
    """Admission added tolerations to the pod that the template does not have."""
    added = Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute")
    wanted = owned(pod("w-1"), "Deployment", "w")
    wanted = replace(wanted, spec=replace(wanted.spec, tolerations=[added]))

    found = fix(objects(node("n", taints=[taint("special")]), wanted), "w-1", V1_36)

    [tolerates_it] = [e for each in found.fixes for e in each.edits if e.action == "toleration"]
    patch = json.loads(shlex.split(tolerates_it.command)[-1])
    assert [(each["op"], each["path"]) for each in patch] == [
        ("add", "/spec/template/spec/tolerations")
    ]
    assert [each["key"] for each in patch[0]["value"]] == ["special"]
