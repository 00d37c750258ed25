"""Plans of inputs that lack objects: what was not dumped is unknown, not gone."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from manifests import claim, listed, manifest, priority_class
from podium.errors import InputError
from podium.what_if.plan.changes import parse_change
from podium.what_if.plan.cluster_copy import CopyOptions
from podium.what_if.plan.inputs import cluster_documents
from podium.what_if.plan.plan import plan
from podium.what_if.plan.results import Plan
from what_if.clusters import (
    Item,
    chosen,
    documents,
    node,
    owned,
    planned,
    pod,
    pod_spec,
    with_claim,
    workload,
)
from what_if.messy_cluster import messy_cluster
from what_if.random_clusters import random_case

CASES = Path(__file__).parent / "cases"
NODES = [node("n1"), node("n2")]


def from_case(name: str, flag: str, text: str) -> Plan:
    found = cluster_documents([str(CASES / name)])
    return plan(found.documents, [parse_change(flag, text)], chosen())


def test_a_pod_whose_replica_set_was_not_dumped_finds_no_node() -> None:
    found = from_case("nodes-and-pods.yaml", "drain", "n1")

    assert [(each.workload, each.from_node) for each in found.pending] == [
        ("ReplicaSet/default/web-1", "n1")
    ]
    assert "Insufficient cpu" in found.pending[0].message
    assert found.gone == []
    assert found.makes_worse
    assert len(found.notes) == 1
    assert "the ReplicaSet of 1 pod, any PodDisruptionBudget;" in found.notes[0]
    assert "`kubectl get replicasets,poddisruptionbudgets -A -o yaml`" in found.notes[0]


@pytest.mark.parametrize(
    ("kind", "api", "name", "same_name"),
    [
        ("ReplicaSet", "apps/v1", "web-x2f4q", False),
        ("StatefulSet", "apps/v1", "web-0", True),
        ("Job", "batch/v1", "web-0-x2f4q", True),
        ("Workflow", "argoproj.io/v1alpha1", "web-step-1", True),
    ],
)
def test_pods_of_controllers_that_were_not_dumped_move(
    kind: str, api: str, name: str, *, same_name: bool
) -> None:
    found = planned([*NODES, owned(kind, "web", name, api)], "drain n1")

    assert [(each.pod, each.to_node) for each in found.moved] == [(f"default/{name}", "n2")]
    assert (found.moved[0].new_pod == f"default/{name}") is same_name
    assert not found.makes_worse


def test_a_random_name_of_a_job_becomes_another_one() -> None:
    running = owned("Job", "web", "web-x2f4q", "batch/v1")
    running["metadata"]["generateName"] = "web-"

    found = planned([*NODES, running], "lose n1")

    assert [each.to_node for each in found.moved] == ["n2"]
    assert found.moved[0].new_pod != "default/web-x2f4q"


def test_a_deployment_without_its_replica_set_has_no_pods_twice() -> None:
    deployment = workload("Deployment", "web", 2)
    deployment["metadata"]["uid"] = "uid-deployment"
    pods = [owned("ReplicaSet", "web-abc", f"web-abc-{tail}") for tail in ("aaaaa", "bbbbb")]
    for each in pods:
        each["metadata"]["labels"] = {"app": "web", "pod-template-hash": "abc"}

    found = planned([*NODES, deployment, *pods], "drain n1")

    assert found.anyway == []
    assert [each.workload for each in found.moved] == ["Deployment/default/web"] * 2
    assert sum(each.pods for each in found.after.nodes) == 2


def test_a_deployment_that_was_not_dumped_is_known_by_its_pods() -> None:
    pods = [owned("ReplicaSet", "web-abc", f"web-abc-{tail}") for tail in ("aaaaa", "bbbbb")]
    for each in pods:
        each["metadata"]["labels"] = {"app": "web", "pod-template-hash": "abc"}

    found = planned([*NODES, *pods], "scale deployment/web=5")

    assert [each.workload for each in found.created] == ["ReplicaSet/default/web-abc"] * 3
    with pytest.raises(InputError, match="there is no deployment 'db'; the input has none"):
        planned([*NODES, *pods], "scale deployment/db=5")


def test_a_priority_class_that_was_not_dumped_is_that_of_its_pods() -> None:
    running = owned("ReplicaSet", "web", "web-1", priorityClassName="urgent", priority=1000)

    found = planned([*NODES, running], "drain n1")

    assert [each.to_node for each in found.moved] == ["n2"]
    assert not any("fails" in note for note in found.notes)


def test_a_claim_that_was_not_dumped_is_not_known() -> None:
    running = owned("StatefulSet", "db", "db-0", **with_claim("data-db-0"))

    found = planned([*NODES, running], "drain n1")

    assert [each.unknown for each in found.pending] == [
        "claim data-db-0, which is not in the input"
    ]
    assert found.makes_worse
    assert "the PersistentVolumeClaim of 1 pod" in found.notes[0]


@pytest.mark.parametrize(
    ("spec", "unknown", "kind"),
    [
        ({"volumeName": "pv-7"}, "volume pv-7", "PersistentVolume"),
        ({"storageClassName": "fast"}, "storage class fast", "StorageClass"),
    ],
)
def test_what_a_claim_needs_and_was_not_dumped_is_not_known(
    spec: Item, unknown: str, kind: str
) -> None:
    bound = {"pv.kubernetes.io/bind-completed": "yes"} if "volumeName" in spec else {}
    made = claim("data", **spec)
    made["metadata"] |= {"uid": "uid-data", "annotations": bound}

    found = planned([*NODES, owned("Job", "a", "a-1", **with_claim("data")), made], "drain n1")

    assert [each.unknown for each in found.pending] == [f"{unknown}, which is not in the input"]
    assert f"the {kind} of 1 pod" in found.notes[0]


def test_a_pod_of_another_scheduler_is_not_known() -> None:
    found = planned([*NODES, owned("ReplicaSet", "a", "a-1", schedulerName="volcano")], "drain n1")

    assert [each.unknown for each in found.pending] == ["scheduler volcano"]


def test_the_claim_of_a_stateful_set_without_templates_stays_its_own() -> None:
    """A snapshot has no templates: the claims of pods are theirs all the same."""
    items = list(cluster_documents([str(CASES / "stateful-set.yaml")]).documents)
    for each in items:
        if each.kind == "StatefulSet":
            del each.item["spec"]["template"], each.item["spec"]["volumeClaimTemplates"]

    found = plan(items, [parse_change("drain", "n-a")], chosen())

    assert [each.pod for each in found.pending] == ["default/kafka-0"]
    assert "PersistentVolume's node affinity" in found.pending[0].message


# --- rest ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["cron-job.yaml", "autoscaler.yaml"])
def test_clocks_do_not_keep_a_plan_busy(case: str) -> None:
    found = from_case(case, "drain", "n1")

    assert not found.changes[0].unfinished
    assert found.seconds < 60
    assert len(found.moved) == 1
    assert found.pending == []


def test_autoscalers_work_if_asked_for() -> None:
    found = cluster_documents([str(CASES / "autoscaler.yaml")])
    for each in found.documents:
        if each.kind == "HorizontalPodAutoscaler":
            target = {"type": "Utilization", "averageUtilization": 50}
            each.item["spec"]["metrics"] = [
                {"type": "Resource", "resource": {"name": "cpu", "target": target}}
            ]

    changes = [parse_change("cordon", "n1")]
    kept = plan(copy.deepcopy(found.documents), changes, chosen())
    scaled = plan(found.documents, changes, chosen(), CopyOptions(autoscale=True))

    assert sum(each.pods for each in kept.before.nodes) == 2
    assert sum(each.pods for each in scaled.before.nodes) != 2
    assert not scaled.changes[0].unfinished


def test_the_clock_starts_at_the_time_of_the_input() -> None:
    """The pod on the unreachable node leaves after its 300 seconds, whatever the change."""
    found = from_case("unreachable-node.yaml", "drain", "n1")

    assert not found.changes[0].unfinished
    assert found.seconds < 60
    assert [each.what for each in found.anyway] == ["terminating", "created", "bound"]
    assert all(295 <= each.at <= 305 for each in found.anyway)
    assert [each.pod for each in found.moved] == ["default/web-1-a"]


def test_pods_of_jobs_run_on() -> None:
    job = manifest("Job", "sum", spec={"template": {"spec": pod_spec("3", restartPolicy="Never")}})

    found = planned([*NODES, job, pod("other", "2")], "drain n1", "drain n2")

    assert sum(each.pods for each in found.before.nodes) == 2
    assert {each.pod.split("-")[0] for each in found.pending} == {"default/sum"}


def test_a_controller_that_fails_is_named() -> None:
    quota = manifest("ResourceQuota", "few", spec={"hard": {"pods": "1"}})
    running = owned("Workflow", "a", "a-1", "argoproj.io/v1alpha1")

    found = planned([*NODES, quota, running, owned("ReplicaSet", "b", "b-1")], "drain n1")

    assert any("fails" in note and "exceeded quota" in note for note in found.notes)


# --- counting -----------------------------------------------------------------------------------


def test_only_what_becomes_worse_counts() -> None:
    found = planned([*NODES, pod("huge", cpu="64"), workload("Deployment", "web", 1)], "drain n1")

    assert [each.was_pending for each in found.pending] == [True]
    assert found.leaves_pods
    assert not found.makes_worse


def test_a_pending_pod_that_is_replaced_was_pending_before() -> None:
    web = workload("Deployment", "web", 3, cpu="3")
    web["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}

    found = planned([*NODES, web], "rollout deployment/web")

    assert [each.was_pending for each in found.pending] == [True]
    assert not found.makes_worse


def test_a_victim_is_counted_once(tmp_path: Path) -> None:
    """The victims stop slowly, and the preemptor is tried again meanwhile."""
    file = tmp_path / "urgent.json"
    pods = [pod(f"vip-{n}", cpu="3", priorityClassName="urgent") for n in range(4)]
    file.write_text(json.dumps(listed([priority_class("urgent", 1000), *pods])))
    web = workload("Deployment", "web", 8, terminationGracePeriodSeconds=600)

    found = planned([*NODES, web], f"apply {file}")

    counted = Counter(each.pod for each in found.evicted)
    assert counted
    assert set(counted.values()) == {1}


# --- with and without owners --------------------------------------------------------------------

_OWNERS = frozenset(
    {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "Job"}
    | {"ControllerRevision"}
)
#: All but nodes and pods.
_ALL = frozenset({each["kind"] for each in messy_cluster()} - {"Node", "Pod"})


def without_a_node(found: Plan, items: list[Item]) -> Counter[str]:
    """How many pods of each workload find no node, or may find none."""
    above = {
        f"{each['kind']}/default/{each['metadata']['name']}": each["metadata"]["ownerReferences"][0]
        for each in items
        if each["kind"] == "ReplicaSet" and each["metadata"].get("ownerReferences")
    }
    names = [each.workload for each in found.pending if not each.was_pending]
    names += [each.workload for each in found.gone if not each.wanted]
    names += [f"blocked {each.node}" for each in found.blocked]
    return Counter(
        f"Deployment/default/{above[name]['name']}" if name in above else name for name in names
    )


#: Of the first forty clusters, those in which pods find no node or an eviction stays blocked.
LEAVE_PODS = frozenset({2, 7, 9, 11, 18, 19, 20, 21, 23, 24, 25, 28, 31, 32, 36})
#: In cluster 169 only the status of a budget tells how many pods a stateful set wants.
SEEDS = [*range(40), 169]
MORE_SEEDS = sorted(set(range(40, 400)).difference(SEEDS))


@pytest.mark.parametrize(
    "seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.soak) for seed in MORE_SEEDS)]
)
def test_a_dump_without_owners_agrees(seed: int, tmp_path: Path) -> None:
    """The same pods find no node, whether or not the owners of pods were dumped."""
    case = random_case(seed, tmp_path)
    items: list[Item] = json.loads(case.file.read_text())["items"]
    names = [each["metadata"]["name"] for each in items if each["kind"] == "Node"]
    change = parse_change("drain", random.Random(seed).choice(names))  # noqa: S311
    fewer = [each for each in items if each["kind"] not in _OWNERS]

    whole = plan(documents(items), [change], chosen())
    partly = plan(documents(fewer), [change], chosen())

    assert without_a_node(partly, items) == without_a_node(whole, items)
    assert partly.anyway == []
    assert len(partly.moved) == len(whole.moved)
    if seed < 40:
        assert bool(without_a_node(whole, items)) == (seed in LEAVE_PODS)


@pytest.mark.parametrize("name", [f"n{number}" for number in range(6)])
@pytest.mark.parametrize("left_out", [_OWNERS, _OWNERS | {"PodDisruptionBudget"}, _ALL])
def test_a_messy_dump_gives_no_false_all_clear(name: str, left_out: frozenset[str]) -> None:
    """What finds no node finds none without owners, claims and budgets, or is not known."""
    items = messy_cluster()
    fewer = [each for each in items if each["kind"] not in left_out]

    whole = planned(items, f"drain {name}", is_whole=True)
    partly = planned(fewer, f"drain {name}")

    assert without_a_node(whole, items) <= without_a_node(partly, items)
    assert whole.makes_worse <= partly.makes_worse
    lacking = [kind for kind in ("StatefulSet", "Job", "PodDisruptionBudget") if kind in left_out]
    assert all(kind in partly.notes[0] for kind in lacking)
