"""Plans: changes to a copy of a cluster, and what follows."""

from __future__ import annotations

import gc
import json
import signal
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
import yaml

from manifests import budget, priority_class
from podium.errors import InputError
from podium.what_if.plan.changes import NodeSelection, ReplaceNodes
from podium.what_if.plan.cluster_copy import CopyOptions
from podium.what_if.plan.plan import plan
from podium.what_if.plan.results import Plan
from what_if.clusters import changes, chosen, documents, node, planned, pod, workload

NODES = [node("n1", "a"), node("n2", "b"), node("n3", "c")]


def nodes_of(found: Plan) -> dict[str, int]:
    return {usage.name: usage.pods for usage in found.after.nodes}


def times(found: Plan, what: str) -> list[float]:
    return [event.at for event in found.timeline if event.what == what]


def test_drain_moves_the_pods_of_workloads() -> None:
    found = planned([*NODES, workload("Deployment", "web", 3)], "drain n1")

    assert [each.from_node for each in found.moved] == ["n1"]
    assert found.moved[0].to_node in {"n2", "n3"}
    assert found.moved[0].workload == "Deployment/default/web"
    assert found.moved[0].pod != found.moved[0].new_pod
    assert nodes_of(found)["n1"] == 0
    assert found.pending == []
    assert found.gone == []
    assert found.blocked == []
    assert not found.leaves_pods


def test_a_drained_node_is_empty_after_the_grace_period() -> None:
    web = workload("Deployment", "web", 1, terminationGracePeriodSeconds=45)
    first = planned([node("n1"), web], "cordon n1")
    items = [node("n1"), node("n2"), web]
    where = planned(items, "cordon n2").after.nodes
    busy = next(each.name for each in where if each.pods)

    found = planned(items, f"drain {busy}")

    assert first.moved == []
    assert times(found, "gone")[0] - times(found, "terminating")[0] == pytest.approx(45, abs=0.1)


def test_pods_of_daemon_sets_stay_on_a_drained_node() -> None:
    found = planned([*NODES, workload("DaemonSet", "agent", None)], "drain n1")

    assert nodes_of(found) == {"n1": 1, "n2": 1, "n3": 1}
    assert any("daemon set" in note for note in found.changes[0].notes)


def test_pods_without_a_controller_and_local_storage_are_told() -> None:
    bare = pod("bare", nodeName="n1", volumes=[{"name": "tmp", "emptyDir": {}}])

    found = planned([*NODES, bare], "drain n1")

    assert [(each.pod, each.wanted) for each in found.gone] == [("default/bare", False)]
    assert any("--force" in note for note in found.changes[0].notes)
    assert any("--delete-emptydir-data" in note for note in found.changes[0].notes)
    assert found.leaves_pods


def test_a_budget_that_blocks_is_named() -> None:
    items = [*NODES, workload("Deployment", "web", 3), budget("keep", "web", minAvailable=3)]

    found = planned(items, "drain n1")

    assert [each.node for each in found.blocked] == ["n1"]
    assert "keep" in found.blocked[0].reason
    assert found.moved == []
    assert nodes_of(found)["n1"] == 1


def test_a_budget_delays_a_drain_without_stopping_it() -> None:
    """One at a time: the next eviction waits until the pod before it runs elsewhere."""
    items = [
        node("n1", pool="old"),
        node("n2"),
        workload("Deployment", "web", 3),
    ]
    items[1]["spec"] = {"taints": [{"key": "later", "effect": "NoSchedule"}]}
    items.append(budget("one", "web", maxUnavailable=1))

    found = planned(items, "taint n2:later-", "drain n1")

    ends = times(found, "terminating")
    assert len(found.moved) == 3
    assert found.blocked == []
    assert ends == sorted(ends)
    assert min(b - a for a, b in pairwise(ends)) >= 2.0


def test_lost_nodes_are_gone_with_their_pods() -> None:
    found = planned(
        [*NODES, workload("StatefulSet", "db", 3)], "lose topology.kubernetes.io/zone=b"
    )

    assert set(nodes_of(found)) == {"n1", "n3"}
    assert [each.pod for each in found.moved] == [each.new_pod for each in found.moved]
    assert {each.from_node for each in found.moved} == {"n2"}


def test_pods_that_fit_nowhere_are_explained() -> None:
    web = workload("Deployment", "web", 3, cpu="3")

    found = planned([*NODES, web], "lose n1")

    assert [each.from_node for each in found.pending] == ["n1"]
    assert "0/2 nodes are available: 2 Insufficient cpu" in found.pending[0].message
    assert found.pending[0].decision is not None
    assert found.pending[0].decision["rejections"][0]["count"] == 2
    assert not found.pending[0].was_pending
    assert found.leaves_pods


def test_a_pod_of_a_stateful_set_that_waits_for_one_before_it_is_left_without_a_node() -> None:
    db = workload("StatefulSet", "db", 2, nodeSelector={"kubernetes.io/hostname": "n1"})

    found = planned([*NODES, db], "drain n1")

    assert [each.pod for each in found.pending] == ["default/db-0"]
    assert [(each.pod, each.node, each.wanted) for each in found.gone] == [
        ("default/db-1", "n1", False)
    ]
    expected = "StatefulSet/default/db creates it anew only after the pods before it run"
    assert found.gone[0].reason == expected
    assert "1 pod gone and not created anew" in found.summary()


def test_a_pod_that_a_stateful_set_was_scaled_down_by_was_meant_to_go() -> None:
    found = planned([*NODES, workload("StatefulSet", "db", 2)], "scale statefulset/db=1")

    assert [(each.pod, each.wanted) for each in found.gone] == [("default/db-1", True)]


def test_a_pod_that_was_pending_before_is_told_apart() -> None:
    found = planned([*NODES, pod("huge", cpu="64")], "cordon n1")

    assert [(each.pod, each.was_pending) for each in found.pending] == [("default/huge", True)]


def test_added_nodes_take_waiting_pods() -> None:
    found = planned([*NODES, workload("Deployment", "web", 5, cpu="3")], "add 2:n1")

    assert [each.name for each in found.after.nodes] == ["n1", "n1-new-1", "n1-new-2", "n2", "n3"]
    assert {each.node for each in found.created} == {"n1-new-1", "n1-new-2"}
    assert found.pending == []


def test_a_node_like_the_one_in_a_file_is_added(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(yaml.safe_dump(node("big", "d", cpu="64")))

    found = planned([*NODES, pod("huge", cpu="32")], f"add 1:{file}")

    assert [(each.pod, each.node) for each in found.created] == [("default/huge", "big-new-1")]


def test_scaling_creates_and_removes_pods() -> None:
    items = [*NODES, workload("Deployment", "web", 2)]

    more = planned(items, "scale deployment/web=4")
    fewer = planned(items, "scale deploy/web=1")

    assert len(more.created) == 2
    assert [each.wanted for each in fewer.gone] == [True]
    assert not fewer.leaves_pods


def test_a_rollout_keeps_to_surge_and_unavailability() -> None:
    web = workload("Deployment", "web", 4)
    web["spec"]["strategy"] = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }

    found = planned([*NODES, web], "rollout deployment/web")

    assert len(found.moved) == 4
    alive = 4
    for event in found.timeline:
        alive += {"created": 1, "terminating": -1}.get(event.what, 0)
        assert 4 <= alive <= 5


def test_an_applied_file_creates_and_changes(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(yaml.safe_dump_all([workload("Deployment", "web", 3), pod("bare")]))

    found = planned([*NODES, workload("Deployment", "web", 1)], f"apply {file}")

    assert len(found.created) == 3


def test_a_deleted_workload_takes_its_pods_along() -> None:
    items = [*NODES, workload("Deployment", "web", 2), pod("bare")]

    found = planned(items, "delete deployment/web", "delete pod/bare")

    assert len(found.gone) == 3
    assert not found.leaves_pods


def test_a_taint_that_evicts() -> None:
    found = planned([*NODES, workload("Deployment", "web", 3)], "taint n2:gone=yes:NoExecute")

    assert [each.from_node for each in found.moved] == ["n2"]
    assert nodes_of(found)["n2"] == 0


def test_a_pool_is_replaced_so_many_nodes_at_a_time() -> None:
    items = [node(f"n{i}", pool="old") for i in range(4)]
    items.append(workload("Deployment", "web", 4))

    found = plan(
        documents(items), [ReplaceNodes(NodeSelection(label="pool", value="old"), 2)], chosen()
    )

    assert [each.name for each in found.after.nodes] == [f"n{i}-new-1" for i in range(4)]
    assert len(found.moved) == 4
    texts = [event.text for event in found.timeline if event.what == "change"]
    assert texts.index("node n0 is deleted") < texts.index("node n2-new-1 is added")
    assert texts.index("node n1-new-1 is added") < texts.index("node n0 is cordoned")


def test_evicted_pods_are_named_with_the_pod_they_made_room_for(tmp_path: Path) -> None:
    urgent = priority_class("urgent", 1000)
    file = tmp_path / "urgent.yaml"
    file.write_text(yaml.safe_dump(pod("vip", cpu="3", priorityClassName="urgent")))

    found = planned([node("n1"), urgent, workload("Deployment", "web", 3)], f"apply {file}")

    assert [(each.preemptor, each.node) for each in found.evicted] == [("default/vip", "n1")] * 2
    assert [each.pod for each in found.created] == ["default/vip"]
    assert len(found.pending) == 2


def test_changes_are_made_in_their_order() -> None:
    items = [*NODES, workload("Deployment", "web", 3)]

    found = planned(items, "cordon n3", "drain n1", "uncordon n3", "drain n2")

    ends = [(each.began, each.ended) for each in found.changes]
    assert [each.change for each in found.changes][1] == "drain n1"
    assert all(first[1] <= second[0] for first, second in pairwise(ends))
    assert nodes_of(found) == {"n1": 0, "n2": 0, "n3": 3}


def test_the_same_seed_gives_the_same_plan() -> None:
    items = [*NODES, workload("Deployment", "web", 5), workload("StatefulSet", "db", 3)]

    def once() -> bytes:
        return msgspec.json.encode(planned(items, "drain n1", "lose n2"))

    assert once() == once()


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("drain n9", "there is no node 'n9'"),
        ("lose rack=1", "no node has the label rack=1; labels of nodes are .*hostname"),
        ("lose topology.kubernetes.io/zone=q", "=q; its values are a, b"),
        ("taint n1:none-", "--taint n1:none-: node n1 has no such taint; there are none"),
        ("replace n9", "--replace n9: there is no node 'n9'"),
        ("delete pod/shop/bare", "'bare' in the namespace shop; it is in default"),
        ("scale deployment/none=3", "there is no deployment 'none'"),
        ("scale daemonset/agent=3", "a DaemonSet has no replicas to set"),
        ("rollout pod/bare", "a Pod cannot be rolled out"),
        ("delete gizmo/web", "there is no kind 'gizmo'"),
        ("add 1:missing.yaml", "there is neither a node nor a file 'missing.yaml'"),
        ("apply missing.yaml", "missing.yaml"),
    ],
)
def test_what_does_not_exist_is_named(change: str, what: str) -> None:
    items = [*NODES, workload("DaemonSet", "agent", None), pod("bare")]

    with pytest.raises(InputError, match=what) as caught:
        planned(items, change)

    assert "\n" not in str(caught.value)


def test_an_interrupt_leaves_what_is_known() -> None:
    items = [*NODES, workload("Deployment", "web", 3)]

    def stop(text: str) -> None:
        if text == "node n2 is cordoned":
            raise KeyboardInterrupt

    found = plan(
        documents(items), changes("drain n1", "drain n2"), chosen(), CopyOptions(on_step=stop)
    )

    assert found.interrupted
    assert [each.change for each in found.changes] == ["drain n1"]
    assert len(found.moved) == 1


def test_a_real_interrupt_ends_no_task_midway(capfd: pytest.CaptureFixture[str]) -> None:
    items = [*NODES, workload("Deployment", "web", 3)]
    # Another test of this process may have left it otherwise.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def stop(text: str) -> None:
        if text == "node n2 is cordoned":
            signal.raise_signal(signal.SIGINT)

    try:
        found = plan(
            documents(items), changes("drain n1", "drain n2"), chosen(), CopyOptions(on_step=stop)
        )
        left = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    gc.collect()  # tasks report their exceptions when they are collected

    assert found.interrupted
    assert [each.change for each in found.changes] == ["drain n1"]
    assert left is signal.default_int_handler
    assert capfd.readouterr().err == ""


def test_extenders_are_not_asked(tmp_path: Path) -> None:
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}],
    }
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(policy))

    found = plan(documents([*NODES, pod("a")]), changes("cordon n1"), chosen(policy=str(file)))

    assert found.pending == []
