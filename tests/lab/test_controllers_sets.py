"""Stateful sets, daemon sets and jobs."""

from __future__ import annotations

from typing import Any

import pytest

from lab.at_work import AtWork, Json, template, workload
from podium.lab.controllers.workloads.controller_revisions import HASH
from podium.lab.controllers.workloads.jobs import TRACKING


@pytest.fixture
def lab() -> AtWork:
    return AtWork()


def stateful(name: str, replicas: int, **spec: Any) -> Json:
    return workload(name, replicas, serviceName=name, **spec)


def test_a_stateful_set_makes_its_pods_one_after_the_other(lab: AtWork) -> None:
    waiting: list[int] = []

    def look(*_: object) -> None:
        waiting.append(sum(pod["status"].get("phase") != "Running" for pod in lab.pods()))

    lab.registry.subscribe(["Pod"], look)
    lab.create("StatefulSet", stateful("db", 3))
    lab.settle()

    assert lab.names() == ["db-0", "db-1", "db-2"]
    assert max(waiting) == 1
    first = lab.get("Pod", "db-0")
    assert first["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("db-0", "db")


def test_a_parallel_one_makes_them_all_at_once(lab: AtWork) -> None:
    lab.binds = False
    lab.create("StatefulSet", stateful("db", 3, podManagementPolicy="Parallel"))
    lab.settle()

    assert lab.names() == ["db-0", "db-1", "db-2"]


def test_it_waits_for_a_pod_that_is_not_ready(lab: AtWork) -> None:
    lab.binds = False
    lab.create("StatefulSet", stateful("db", 3))
    lab.settle()

    assert lab.names() == ["db-0"]


def test_claims_are_made_once_and_outlive_the_pods(lab: AtWork) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    lab.create("StatefulSet", stateful("db", 2, volumeClaimTemplates=[claim]))
    lab.settle()
    lab.edit("StatefulSet", "db", replicas=1)
    lab.settle()

    assert lab.names() == ["db-0"]
    claims = [each["metadata"]["name"] for each in lab.registry.list("PersistentVolumeClaim")]
    assert claims == ["data-db-0", "data-db-1"]
    [volume] = lab.get("Pod", "db-0")["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == "data-db-0"


def test_the_highest_number_goes_first(lab: AtWork) -> None:
    lab.create("StatefulSet", stateful("db", 3))
    lab.settle()
    gone = lab.leaving("Pod")
    lab.edit("StatefulSet", "db", replicas=0)
    lab.settle()

    assert [each["metadata"]["name"] for each in gone] == ["db-2", "db-1", "db-0"]


def test_a_new_template_replaces_from_the_highest_number_down(lab: AtWork) -> None:
    lab.create("StatefulSet", stateful("db", 3))
    lab.settle()
    before = lab.status("StatefulSet", "db")["updateRevision"]
    gone = lab.leaving("Pod")
    lab.edit("StatefulSet", "db", template=template("db", "app:2"))
    lab.settle(30)

    assert [each["metadata"]["name"] for each in gone] == ["db-2", "db-1", "db-0"]
    status = lab.status("StatefulSet", "db")
    assert status["currentRevision"] == status["updateRevision"] != before
    assert status["updatedReplicas"] == 3
    revisions = lab.registry.list("ControllerRevision")
    assert sorted(each["revision"] for each in revisions) == [1, 2]


def test_pods_below_the_partition_stay_as_they_are(lab: AtWork) -> None:
    lab.create("StatefulSet", stateful("db", 3))
    lab.settle()
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    lab.edit("StatefulSet", "db", template=template("db", "app:2"), updateStrategy=rolling)
    lab.settle(30)
    lab.delete("Pod", "db-0")
    lab.settle(30)

    images = [pod["spec"]["containers"][0]["image"] for pod in lab.pods()]
    assert images == ["app:1", "app:1", "app:2"]


def daemon(name: str = "agent", **spec: Any) -> Json:
    return workload(name, **spec)


def nodes_of(lab: AtWork) -> list[str]:
    return sorted(pod["spec"]["nodeName"] for pod in lab.pods())


def test_a_daemon_set_puts_one_pod_on_each_node(lab: AtWork) -> None:
    lab.create("DaemonSet", daemon())
    lab.settle()

    assert nodes_of(lab) == ["n0", "n1", "n2"]
    status = lab.status("DaemonSet", "agent")
    assert (status["desiredNumberScheduled"], status["numberAvailable"]) == (3, 3)


def test_its_pods_can_go_to_their_node_only_and_stay_in_bad_times(lab: AtWork) -> None:
    lab.create("DaemonSet", daemon())
    lab.settle()
    [pod] = [pod for pod in lab.pods() if pod["spec"]["nodeName"] == "n1"]

    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    assert terms == [{"matchFields": [field]}]
    tolerated = {each["key"] for each in pod["spec"]["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in tolerated


def test_it_follows_nodes_that_come_and_labels_that_change(lab: AtWork) -> None:
    made = daemon()
    made["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
    lab.create("DaemonSet", made)
    lab.settle()
    assert lab.pods() == []
    lab.create("Node", {"metadata": {"name": "n9", "labels": {"disk": "fast"}}})
    lab.settle()
    assert nodes_of(lab) == ["n9"]

    node = lab.registry.get("Node", "n9")
    node["metadata"]["labels"]["disk"] = "slow"
    lab.registry.update("Node", node)
    lab.settle()
    assert lab.pods() == []


def test_a_taint_keeps_daemons_from_coming_and_only_some_taints_drive_them_away(
    lab: AtWork,
) -> None:
    lab.create("DaemonSet", daemon())
    lab.settle()
    for effect, left in (("NoSchedule", 3), ("NoExecute", 2)):
        node = lab.registry.get("Node", "n0")
        node["spec"]["taints"] = [{"key": "k", "value": "v", "effect": effect}]
        lab.registry.update("Node", node)
        lab.settle()
        assert len(lab.pods()) == left


def test_a_cordoned_node_gets_its_daemon(lab: AtWork) -> None:
    lab.edit("Node", "n0", unschedulable=True)
    lab.settle()
    lab.create("DaemonSet", daemon())
    lab.settle()

    assert nodes_of(lab) == ["n0", "n1", "n2"]


def test_a_new_template_reaches_one_node_after_the_other(lab: AtWork) -> None:
    lab.create("DaemonSet", daemon())
    lab.settle()
    leaving: list[int] = []

    def look(*_: object) -> None:
        leaving.append(
            3
            - sum(
                pod["status"].get("phase") == "Running"
                and "deletionTimestamp" not in pod["metadata"]
                for pod in lab.pods()
            )
        )

    lab.registry.subscribe(["Pod"], look)
    lab.edit("DaemonSet", "agent", template=template("agent", "app:2"))
    lab.settle(30)

    assert {pod["spec"]["containers"][0]["image"] for pod in lab.pods()} == {"app:2"}
    assert max(leaving) == 1
    assert lab.status("DaemonSet", "agent")["updatedNumberScheduled"] == 3


def test_daemons_of_another_cluster_are_taken_to_be_up_to_date() -> None:
    lab = AtWork()
    lab.create("DaemonSet", daemon())
    lab.settle()
    for revision in lab.registry.list("ControllerRevision"):
        lab.delete("ControllerRevision", revision["metadata"]["name"])
    for pod in lab.pods():
        pod["metadata"]["labels"][HASH] = "elsewhere"
        lab.registry.update("Pod", pod)
    names = lab.names()
    lab.restart()
    lab.settle(30)

    assert lab.names() == names
    assert lab.status("DaemonSet", "agent")["updatedNumberScheduled"] == 3


def job(name: str = "sums", **spec: Any) -> Json:
    pods = template(name, restartPolicy="Never")
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": pods, **spec}}


def test_a_job_is_complete_when_enough_pods_have_succeeded(lab: AtWork) -> None:
    lab.create("Job", job(completions=5, parallelism=2))
    lab.settle(30)

    status = lab.status("Job", "sums")
    assert status["succeeded"] == 5
    assert lab.condition("Job", "sums", "Complete")["status"] == "True"
    assert len(lab.pods()) == 5
    assert all(not pod["metadata"].get("finalizers") for pod in lab.pods())


def test_no_more_pods_run_at_once_than_may(lab: AtWork) -> None:
    most: list[int] = []

    def look(*_: object) -> None:
        active = [p for p in lab.pods() if p["status"].get("phase") in {"Pending", "Running"}]
        most.append(len(active))

    lab.registry.subscribe(["Pod"], look)
    lab.create("Job", job(completions=5, parallelism=2))
    lab.settle(30)

    assert max(most) == 2


def failing(**spec: Any) -> Json:
    made = job(**spec)
    made["spec"]["template"]["metadata"]["annotations"] = {"lab.podium/exit-code": "3"}
    return made


def test_a_job_gives_up_after_so_many_failures(lab: AtWork) -> None:
    lab.create("Job", failing(backoffLimit=2))
    lab.settle(120)

    failed = lab.condition("Job", "sums", "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "BackoffLimitExceeded")
    assert lab.status("Job", "sums")["failed"] == 3
    assert {pod["status"]["phase"] for pod in lab.pods()} == {"Failed"}


def test_a_job_gives_up_after_its_deadline(lab: AtWork) -> None:
    made = job(activeDeadlineSeconds=10)
    made["spec"]["template"]["metadata"]["annotations"] = {"lab.podium/run-seconds": "1000"}
    lab.create("Job", made)
    lab.settle(30)

    assert lab.condition("Job", "sums", "Failed")["reason"] == "DeadlineExceeded"
    assert lab.pods() == []


def test_a_pod_that_is_taken_away_counts_as_failed_and_is_replaced(lab: AtWork) -> None:
    lab.create("Job", job(backoffLimit=4))
    lab.settle(1)
    [name] = lab.names()
    lab.delete("Pod", name)
    lab.settle(30)

    assert lab.status("Job", "sums")["failed"] == 1
    assert lab.condition("Job", "sums", "Complete")["status"] == "True"


def test_a_suspended_job_runs_nothing_until_it_may(lab: AtWork) -> None:
    lab.create("Job", job(suspend=True))
    lab.settle()
    assert lab.pods() == []
    assert lab.condition("Job", "sums", "Suspended")["status"] == "True"
    lab.edit("Job", "sums", suspend=False)
    lab.settle(30)

    assert lab.condition("Job", "sums", "Complete")["status"] == "True"


def test_an_indexed_job_completes_every_number_once(lab: AtWork) -> None:
    lab.create("Job", job(completions=4, parallelism=3, completionMode="Indexed"))
    lab.settle(30)

    assert lab.status("Job", "sums")["completedIndexes"] == "0-3"
    numbers = [
        pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in lab.pods()
    ]
    assert sorted(numbers) == ["0", "1", "2", "3"]


def test_a_finished_job_goes_when_it_said_so(lab: AtWork) -> None:
    lab.create("Job", job(ttlSecondsAfterFinished=10))
    lab.settle(60)

    assert lab.registry.list("Job") == []
    assert lab.pods() == []


def test_deleting_a_job_leaves_no_pod_behind(lab: AtWork) -> None:
    lab.binds = False
    lab.create("Job", job(completions=3, parallelism=3))
    lab.settle()
    assert TRACKING in lab.pods()[0]["metadata"]["finalizers"]
    lab.delete("Job", "sums")
    lab.settle()

    assert lab.pods() == []
