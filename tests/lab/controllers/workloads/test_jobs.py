"""Jobs run pods until enough of them have succeeded."""

from __future__ import annotations

from typing import Any

from lab.controllers.managed_cluster import Json, ManagedCluster, template
from podium.lab.controllers.workloads.jobs import TRACKING_FINALIZER


def job(name: str = "sums", **spec: Any) -> Json:
    pods = template(name, restartPolicy="Never")
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": pods, **spec}}


def test_a_job_is_complete_when_enough_pods_have_succeeded(lab: ManagedCluster) -> None:
    lab.create("Job", job(completions=5, parallelism=2))
    lab.settle(30)

    status = lab.status("Job", "sums")
    assert status["succeeded"] == 5
    assert lab.condition("Job", "sums", "Complete")["status"] == "True"
    assert len(lab.pods()) == 5
    assert all(not pod["metadata"].get("finalizers") for pod in lab.pods())


def test_no_more_pods_run_at_once_than_may(lab: ManagedCluster) -> None:
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


def test_a_job_gives_up_after_so_many_failures(lab: ManagedCluster) -> None:
    lab.create("Job", failing(backoffLimit=2))
    lab.settle(120)

    failed = lab.condition("Job", "sums", "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "BackoffLimitExceeded")
    assert lab.status("Job", "sums")["failed"] == 3
    assert {pod["status"]["phase"] for pod in lab.pods()} == {"Failed"}


def test_a_job_gives_up_after_its_deadline(lab: ManagedCluster) -> None:
    made = job(activeDeadlineSeconds=10)
    made["spec"]["template"]["metadata"]["annotations"] = {"lab.podium/run-seconds": "1000"}
    lab.create("Job", made)
    lab.settle(30)

    assert lab.condition("Job", "sums", "Failed")["reason"] == "DeadlineExceeded"
    assert lab.pods() == []


def test_a_pod_that_is_taken_away_counts_as_failed_and_is_replaced(lab: ManagedCluster) -> None:
    lab.create("Job", job(backoffLimit=4))
    lab.settle(1)
    [name] = lab.names()
    lab.delete("Pod", name)
    lab.settle(30)

    assert lab.status("Job", "sums")["failed"] == 1
    assert lab.condition("Job", "sums", "Complete")["status"] == "True"


def test_a_suspended_job_runs_nothing_until_it_may(lab: ManagedCluster) -> None:
    lab.create("Job", job(suspend=True))
    lab.settle()
    assert lab.pods() == []
    assert lab.condition("Job", "sums", "Suspended")["status"] == "True"
    lab.edit("Job", "sums", suspend=False)
    lab.settle(30)

    assert lab.condition("Job", "sums", "Complete")["status"] == "True"


def test_an_indexed_job_completes_every_number_once(lab: ManagedCluster) -> None:
    lab.create("Job", job(completions=4, parallelism=3, completionMode="Indexed"))
    lab.settle(30)

    assert lab.status("Job", "sums")["completedIndexes"] == "0-3"
    numbers = [
        pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in lab.pods()
    ]
    assert sorted(numbers) == ["0", "1", "2", "3"]


def test_a_finished_job_goes_when_it_said_so(lab: ManagedCluster) -> None:
    lab.create("Job", job(ttlSecondsAfterFinished=10))
    lab.settle(60)

    assert lab.registry.list("Job") == []
    assert lab.pods() == []


def test_deleting_a_job_leaves_no_pod_behind(lab: ManagedCluster) -> None:
    lab.binds = False
    lab.create("Job", job(completions=3, parallelism=3))
    lab.settle()
    assert TRACKING_FINALIZER in lab.pods()[0]["metadata"]["finalizers"]
    lab.delete("Job", "sums")
    lab.settle()

    assert lab.pods() == []


def test_a_job_runs_in_a_namespace_of_any_name(lab: ManagedCluster) -> None:
    lab.create("Namespace", {"metadata": {"name": "pod"}})
    made = job(completions=1)
    made["metadata"]["namespace"] = "pod"
    lab.create("Job", made)
    lab.settle(20)

    assert lab.get("Job", "sums", "pod")["status"]["succeeded"] == 1
