"""Jobs run pods until enough of them have succeeded, within their policies."""

from __future__ import annotations

from typing import Any

import pytest

from lab.controllers.managed_cluster import Json, ManagedCluster, pod, template
from podium.lab.controllers.workloads.jobs import (
    INDEX_LABEL,
    TRACKING_FINALIZER,
    action_of,
    format_indexes,
    matched_success_rule,
    parse_indexes,
)


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


FOREVER = {"lab.podium/run-seconds": "100000"}


def running(name: str = "sums", **spec: Any) -> Json:
    """A job whose pods run until a test ends them."""
    made = job(name, **spec)
    made["spec"]["template"]["metadata"]["annotations"] = dict(FOREVER)
    return made


def ended(lab: ManagedCluster, name: str, code: int) -> None:
    """The container of a pod ends with an exit code."""
    state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
    container = {"name": "app", "ready": False, "restartCount": 0, "state": state}
    phase = "Failed" if code else "Succeeded"
    lab.report("Pod", name, {"phase": phase, "containerStatuses": [container]})
    lab.settle()


def active(lab: ManagedCluster) -> dict[str, str]:
    """Index -> name of the pods that run or wait."""
    return {
        each["metadata"].get("labels", {}).get(INDEX_LABEL, ""): each["metadata"]["name"]
        for each in lab.pods()
        if each["status"].get("phase") not in {"Succeeded", "Failed"}
        and "deletionTimestamp" not in each["metadata"]
    }


def exit_codes(operator: str, *values: int, action: str, container: str | None = None) -> Json:
    named = {} if container is None else {"containerName": container}
    return {"action": action, "onExitCodes": {"operator": operator, "values": [*values], **named}}


def failed_pod(code: int, *conditions: str) -> Json:
    return {
        "metadata": {"name": "p", "namespace": "default"},
        "status": {
            "containerStatuses": [{"name": "app", "state": {"terminated": {"exitCode": code}}}],
            "conditions": [{"type": each, "status": "True"} for each in conditions],
        },
    }


@pytest.mark.parametrize(
    ("rule", "code", "expected"),
    [
        (exit_codes("In", 42, action="FailJob"), 42, "FailJob"),
        (exit_codes("In", 42, action="FailJob"), 1, "Count"),
        (exit_codes("NotIn", 42, action="Ignore"), 1, "Ignore"),
        (exit_codes("NotIn", 42, action="Ignore"), 0, "Count"),
        (exit_codes("In", 42, action="FailJob", container="app"), 42, "FailJob"),
        (exit_codes("In", 42, action="FailJob", container="other"), 42, "Count"),
        ({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}, 1, "Ignore"),
        ({"action": "Ignore", "onPodConditions": [{"type": "ConfigIssue"}]}, 1, "Count"),
    ],
    ids=[
        "an exit code that is listed",
        "an exit code that is not listed",
        "all but one exit code",
        "a container that ended well matches nothing",
        "a named container",
        "another container",
        "a condition of the pod, which is true by default",
        "a condition that the pod does not have",
    ],
)
def test_rules_of_a_pod_failure_policy(rule: Json, code: int, expected: str) -> None:
    found = action_of({"podFailurePolicy": {"rules": [rule]}}, failed_pod(code, "DisruptionTarget"))
    assert found.action == expected


def test_the_first_matching_rule_decides_and_is_named() -> None:
    rules = [exit_codes("In", 1, action="Ignore"), exit_codes("NotIn", 5, action="FailJob")]
    found = action_of({"podFailurePolicy": {"rules": rules}}, failed_pod(3))
    assert found.message == (
        "Container app for pod default/p failed with exit code 3 matching FailJob rule at index 1"
    )


def test_a_pod_failure_policy_fails_a_job_at_once(lab: ManagedCluster) -> None:
    policy = {"rules": [exit_codes("In", 42, action="FailJob")]}
    lab.create("Job", running(completions=4, parallelism=4, podFailurePolicy=policy))
    lab.settle()
    [first, *_] = lab.names()
    ended(lab, first, 42)
    lab.settle(30)

    failed = lab.condition("Job", "sums", "Failed")
    assert failed["reason"] == "PodFailurePolicy"
    assert failed["message"].endswith("failed with exit code 42 matching FailJob rule at index 0")
    assert lab.condition("Job", "sums", "FailureTarget")["status"] == "True"
    assert active(lab) == {}
    assert lab.status("Job", "sums")["failed"] == 1


def test_an_ignored_failure_does_not_count(lab: ManagedCluster) -> None:
    disrupted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    lab.create("Job", running(backoffLimit=0, podFailurePolicy={"rules": [disrupted]}))
    lab.settle()
    [name] = lab.names()
    status = {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    lab.report("Pod", name, status)
    lab.settle(30)

    assert lab.condition("Job", "sums", "Failed") == {}
    assert "failed" not in lab.status("Job", "sums")
    assert len(active(lab)) == 1
    assert lab.get("Job", "sums")["spec"]["podReplacementPolicy"] == "Failed"


def test_each_index_has_its_own_limit(lab: ManagedCluster) -> None:
    made = running(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1)
    lab.create("Job", made)
    lab.settle()
    assert lab.get("Job", "sums")["spec"]["backoffLimit"] == 2**31 - 1
    ended(lab, active(lab)["0"], 1)
    lab.settle(60)
    again = lab.get("Pod", active(lab)["0"])["metadata"]["annotations"]
    assert again["batch.kubernetes.io/job-index-failure-count"] == "1"
    ended(lab, active(lab)["0"], 1)
    lab.settle(60)
    assert lab.status("Job", "sums")["failedIndexes"] == "0"
    assert list(active(lab)) == ["1"], "the other index goes on"
    ended(lab, active(lab)["1"], 0)

    failed = lab.condition("Job", "sums", "Failed")
    assert (failed["reason"], failed["message"]) == ("FailedIndexes", "Job has failed indexes")
    assert lab.status("Job", "sums")["completedIndexes"] == "1"


def test_a_rule_fails_its_index_and_too_many_of_them_the_job(lab: ManagedCluster) -> None:
    policy = {"rules": [exit_codes("In", 7, action="FailIndex")]}
    made = running(
        completions=4,
        parallelism=4,
        completionMode="Indexed",
        backoffLimitPerIndex=5,
        maxFailedIndexes=1,
        podFailurePolicy=policy,
    )
    lab.create("Job", made)
    lab.settle()
    ended(lab, active(lab)["2"], 7)
    assert lab.status("Job", "sums")["failedIndexes"] == "2"
    assert sorted(active(lab)) == ["0", "1", "3"]
    ended(lab, active(lab)["3"], 7)

    assert lab.status("Job", "sums")["failedIndexes"] == "2,3"
    assert lab.condition("Job", "sums", "Failed")["reason"] == "MaxFailedIndexesExceeded"
    assert active(lab) == {}


def test_a_success_policy_completes_a_job_early(lab: ManagedCluster) -> None:
    policy = {"rules": [{"succeededIndexes": "0,2", "succeededCount": 1}]}
    made = running(completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy)
    lab.create("Job", made)
    lab.settle()
    ended(lab, active(lab)["1"], 0)
    assert lab.condition("Job", "sums", "Complete") == {}
    ended(lab, active(lab)["2"], 0)

    complete = lab.condition("Job", "sums", "Complete")
    assert (complete["reason"], complete["message"]) == (
        "SuccessPolicy",
        "Matched rules at index 0",
    )
    assert lab.condition("Job", "sums", "SuccessCriteriaMet")["reason"] == "SuccessPolicy"
    assert lab.status("Job", "sums")["completedIndexes"] == "1,2"
    assert active(lab) == {}


@pytest.mark.parametrize(
    ("rule", "completed", "holds"),
    [
        ({"succeededIndexes": "0-2"}, {0, 1}, False),
        ({"succeededIndexes": "0-2"}, {0, 1, 2, 5}, True),
        ({"succeededCount": 2}, {4}, False),
        ({"succeededCount": 2}, {4, 5}, True),
    ],
)
def test_rules_of_a_success_policy(rule: Json, completed: set[int], holds: bool) -> None:
    spec = {"successPolicy": {"rules": [rule]}}
    assert bool(matched_success_rule(spec, completed)) is holds


def test_indexes_are_written_as_runs() -> None:
    assert format_indexes({0, 2, 3, 5, 6, 7}) == "0,2,3,5-7"
    assert parse_indexes("0,2,3,5-7") == [0, 2, 3, 5, 6, 7]


def test_a_job_adopts_a_matching_pod_and_releases_one_that_is_relabelled(
    lab: ManagedCluster,
) -> None:
    lab.create("Job", running(parallelism=2, completions=2))
    lab.settle()
    [first, _] = lab.names()

    def orphaned(item: Json) -> Json:
        item["metadata"]["ownerReferences"] = []
        return item

    lab.registry.modify("Pod", first, "default", change=orphaned)
    lab.settle()
    assert lab.get("Pod", first)["metadata"]["ownerReferences"][0]["name"] == "sums"
    assert len(lab.names()) == 2

    def relabelled(item: Json) -> Json:
        item["metadata"]["labels"] = {"app": "other"}
        return item

    lab.registry.modify("Pod", first, "default", change=relabelled)
    lab.settle()
    released = lab.get("Pod", first)["metadata"]
    assert not released.get("ownerReferences")
    assert TRACKING_FINALIZER not in (released.get("finalizers") or ())
    assert len(lab.names()) == 3, "another pod takes its place"


def test_a_stateful_set_adopts_a_pod_of_its_name_and_releases_it(lab: ManagedCluster) -> None:
    from lab.controllers.workloads.test_stateful_sets import stateful  # noqa: PLC0415

    orphan = pod("db")
    orphan["metadata"]["name"] = "db-0"
    lab.create("Pod", orphan)
    other = pod("db")
    other["metadata"]["name"] = "unrelated"
    lab.create("Pod", other)
    lab.settle()
    lab.create("StatefulSet", stateful("db", 2))
    lab.settle(30)
    assert lab.get("Pod", "db-0")["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet"
    assert not lab.get("Pod", "unrelated")["metadata"].get("ownerReferences")
    assert "db-1" in lab.names()

    def relabelled(item: Json) -> Json:
        item["metadata"]["labels"]["app"] = "other"
        return item

    lab.registry.modify("Pod", "db-1", "default", change=relabelled)
    lab.controllers.sync_ready()
    assert not lab.get("Pod", "db-1")["metadata"].get("ownerReferences")
    lab.settle(3)  # its place is taken by the pod that was released
    assert any(each["reason"] == "FailedCreate" for each in lab.registry.list("Event"))
    lab.delete("Pod", "db-1")
    lab.settle(30)
    assert lab.get("Pod", "db-1")["metadata"]["ownerReferences"][0]["name"] == "db"
