"""Nodes that can be emptied: chosen without time, carried out on a copy, and by kubectl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from host.conftest import Lab
from lab.clients.kubectl import Kubectl, debian
from manifests import budget
from podium.what_if.consolidate.consolidation import Consolidation, consolidate
from podium.what_if.plan.changes import Cordon, Drain, NodeSelection
from podium.what_if.plan.inputs import cluster_documents
from podium.what_if.plan.plan import plan
from what_if.clusters import Item, chosen, documents, node, owned, pod, with_claim, workload
from what_if.random_clusters import random_case
from what_if.test_against_lab import _at_rest


def consolidated(items: list[Item]) -> Consolidation:
    return consolidate(documents(items), chosen())


NODES = [node(f"n{n}") for n in range(1, 5)]


def test_nodes_are_emptied_as_far_as_the_pods_fit() -> None:
    found = consolidated([*NODES, workload("Deployment", "web", 8)])

    assert (found.nodes, len(found.emptied), found.needed) == (4, 2, 2)
    assert found.at_least == 2
    assert sum(len(each.evictions) for each in found.emptied) == 4
    assert found.commands[0] == f"kubectl cordon {' '.join(each.node for each in found.emptied)}"
    assert found.commands[1:] == [
        f"kubectl drain {each.node} --ignore-daemonsets" for each in found.emptied
    ]


def test_local_storage_is_given_up_only_where_pods_have_some() -> None:
    volumes = [{"name": "tmp", "emptyDir": {}}]

    found = consolidated([*NODES[:2], workload("Deployment", "web", 2, volumes=volumes)])

    assert [each.command.split()[3:] for each in found.emptied] == [
        ["--ignore-daemonsets", "--delete-emptydir-data"]
    ]


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([pod("bare", nodeName="n1")], "no controller would create it anew"),
        (
            [workload("Deployment", "web", 1), budget("keep", "web", minAvailable=1)],
            "the disruption budget keep allows no eviction",
        ),
        ([workload("Deployment", "web", 2, cpu="3")], "Insufficient cpu"),
        (
            [
                workload("Deployment", name, 1, nodeSelector={"kubernetes.io/hostname": name})
                for name in ("n1", "n2")
            ],
            "didn't match Pod's node affinity/selector",
        ),
    ],
)
def test_what_holds_a_node_is_named(items: list[Item], reason: str) -> None:
    found = consolidated([*NODES[:2], *items])

    assert found.emptied == []
    assert found.held
    assert all(reason in each.reason for each in found.held)


def test_a_claim_that_was_not_dumped_holds_its_node() -> None:
    running = owned("StatefulSet", "db", "db-0", **with_claim("data-db-0"))

    found = consolidated([*NODES[:2], running])

    assert [(each.pod, each.reason) for each in found.held] == [
        ("default/db-0", "it depends on claim data-db-0, which is not in the input")
    ]


def test_cordoned_nodes_and_nodes_that_are_not_ready_do_not_count() -> None:
    cordoned, lost = node("n8"), node("n9")
    cordoned["spec"] = {"unschedulable": True}
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]

    found = consolidated([*NODES[:2], cordoned, lost, workload("Deployment", "web", 2)])

    assert found.nodes == 2
    assert {each.node for each in found.emptied} < {"n1", "n2"}


def test_no_pod_is_evicted_twice() -> None:
    found = consolidated(
        [node(f"n{n}", cpu="8") for n in range(6)] + [workload("Deployment", "web", 6)]
    )

    assert len(found.emptied) == 5
    assert sum(len(each.evictions) for each in found.emptied) == 5


@pytest.mark.parametrize("seed", range(25))
def test_the_drains_succeed_in_a_plan(seed: int, tmp_path: Path) -> None:
    """Nothing becomes worse, the nodes are empty, and no fewer nodes are used than proven."""
    case = random_case(seed, tmp_path)
    items: list[Item] = json.loads(case.file.read_text())["items"]

    found = consolidated(items)
    names = [each.node for each in found.emptied]
    cordons = [Cordon(NodeSelection(name=each)) for each in (*found.empty, *names) if names]
    drains = [Drain(NodeSelection(name=each)) for each in names]
    answer = plan(documents(items), [*cordons, *drains], chosen())

    daemons = {
        each["spec"]["nodeName"]
        for each in items
        if each["kind"] == "Pod" and each["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
    }
    left = {each.name: each.pods for each in answer.after.nodes}
    assert all(left[each.node] == (each.node in daemons) for each in found.emptied)
    assert not any(change.blocked for change in answer.changes)
    assert found.at_least is not None
    assert found.at_least <= found.needed
    held = [each.node for each in found.held]
    assert len({*names, *held, *found.empty}) == found.nodes


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4, 9, 12, 17])
def test_the_commands_empty_the_nodes_of_a_lab(seed: int, tmp_path: Path) -> None:
    case = random_case(seed, tmp_path)
    found = consolidate(cluster_documents([str(case.file)]).documents, chosen())
    lab = Lab(tmp_path, "--snapshot", str(case.file), "--ties", "first")
    try:
        kubectl = Kubectl(debian(), lab.kubeconfig, tmp_path / "home")
        for command in found.commands:
            done = kubectl.run(*command.split()[1:], seconds=90)
            assert done.code == 0, done.err
        after = _at_rest(lab)
    finally:
        lab.stop()

    emptied = {each.node for each in found.emptied}
    pods = [each for each in after if each["kind"] == "Pod"]
    waiting = [each for each in pods if not each["spec"].get("nodeName")]
    before = [
        each
        for each in json.loads(case.file.read_text())["items"]
        if each["kind"] == "Pod" and not each["spec"].get("nodeName")
    ]
    assert len(waiting) == len(before)
    assert all(
        each["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"
        for each in pods
        if each["spec"].get("nodeName") in emptied
    )
