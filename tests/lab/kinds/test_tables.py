"""Tables as `kubectl get` prints them."""

from __future__ import annotations

from typing import Any

import pytest

from podium.lab.api.resources import TABLE
from podium.lab.kinds.kind import duration
from podium.lab.kinds.tables import table

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
HOUR_AGO = "2025-12-31T23:00:00Z"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (599, "9m59s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (10_860, "3h1m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (691_200, "8d"),
        (63_072_000, "2y"),
        (63_158_400, "2y1d"),
        (252_288_000, "8y"),
        (315_360_000, "10y"),
    ],
)
def test_a_duration_has_the_figures_that_matter(seconds: int, text: str) -> None:
    assert duration(seconds) == text


def row(kind: str, made: dict[str, Any]) -> dict[str, Any]:
    """The cells of one object by column."""
    made.setdefault("metadata", {"name": "x", "creationTimestamp": HOUR_AGO})
    found = table(kind, [made], now=NOW)
    names = [each["name"] for each in found["columnDefinitions"]]
    return dict(zip(names, found["rows"][0]["cells"], strict=True))


def container(name: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "state": state, "restartCount": 0, "ready": False, **more}


RUNNING: dict[str, Any] = {"running": {}}
DONE: dict[str, Any] = {"terminated": {"exitCode": 0, "reason": "Completed"}}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"phase": "Pending"}, "Pending"),
        (
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
            },
            "SchedulingGated",
        ),
        (
            {"containerStatuses": [container("c", {"waiting": {"reason": "ContainerCreating"}})]},
            "ContainerCreating",
        ),
        ({"containerStatuses": [container("c", DONE)]}, "Completed"),
        ({"containerStatuses": [container("c", {"terminated": {"exitCode": 3}})]}, "ExitCode:3"),
        ({"containerStatuses": [container("c", {"terminated": {"signal": 9}})]}, "Signal:9"),
        ({"initContainerStatuses": [container("i", {})]}, "Init:0/1"),
        ({"initContainerStatuses": [container("i", {"terminated": {"exitCode": 1}})]},
         "Init:ExitCode:1"),
        ({"initContainerStatuses": [container("i", {"waiting": {"reason": "ErrImagePull"}})]},
         "Init:ErrImagePull"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
    ],
)  # fmt: skip
def test_the_state_of_a_pod_in_a_word(status: dict[str, Any], text: str) -> None:
    spec = {"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]}
    assert row("Pod", {"spec": spec, "status": status})["Status"] == text


def test_a_pod_that_is_deleted_is_terminating_unless_it_has_ended() -> None:
    about = {"name": "x", "deletionTimestamp": HOUR_AGO}
    pod = {"metadata": about, "spec": {}, "status": {"phase": "Running"}}
    assert row("Pod", pod)["Status"] == "Terminating"
    pod["status"] = {"phase": "Succeeded"}
    assert row("Pod", pod)["Status"] == "Succeeded"
    pod["status"] = {"phase": "Running", "reason": "NodeLost"}
    assert row("Pod", pod)["Status"] == "Unknown"


def test_restarts_tell_when_the_last_was() -> None:
    last = {"terminated": {"exitCode": 1, "finishedAt": HOUR_AGO}}
    status = {"containerStatuses": [container("c", RUNNING, restartCount=4, lastState=last)]}
    found = row("Pod", {"spec": {"containers": [{"name": "c"}]}, "status": status})
    assert found["Restarts"] == "4 (60m ago)"


def test_a_container_that_starts_first_and_stays_is_counted() -> None:
    spec = {
        "initContainers": [{"name": "i", "restartPolicy": "Always"}],
        "containers": [{"name": "c"}],
    }
    status = {
        "initContainerStatuses": [container("i", RUNNING, started=True, ready=True)],
        "containerStatuses": [container("c", RUNNING, ready=True)],
    }
    assert row("Pod", {"spec": spec, "status": status})["Ready"] == "2/2"


def test_a_node_tells_roles_and_that_nothing_new_comes() -> None:
    node = {
        "metadata": {
            "name": "n",
            "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"},
        },
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    }
    found = row("Node", node)
    assert found["Status"] == "NotReady,SchedulingDisabled"
    assert found["Roles"] == "gpu,worker"


def test_the_youngest_default_class_is_marked() -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [
        {"metadata": {"name": name, "creationTimestamp": made, "annotations": notes}}
        for name, made, notes in (
            ("old", "2025-01-01T00:00:00Z", default),
            ("young", "2025-06-01T00:00:00Z", default),
            ("plain", "2025-12-01T00:00:00Z", {}),
        )
    ]
    rows = table("StorageClass", classes, now=NOW)["rows"]
    assert [each["cells"][0] for each in rows] == ["old", "young (default)", "plain"]


def test_rows_carry_what_was_asked_for() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Succeeded"}}
    inner = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    found = {
        wanted: table("Pod", [pod], include_object=wanted)["rows"][0]["object"]
        for wanted in ("None", "Metadata", "Object")
    }
    assert found == {"None": None, "Metadata": {**inner, "metadata": {"name": "p"}}, "Object": pod}
    said = table("Pod", [pod])["rows"][0]["conditions"]
    assert said[0]["reason"] == "Succeeded"


@pytest.mark.parametrize("kind", sorted({each.kind for each in TABLE} | {"Unheard"}))
def test_every_kind_has_as_many_cells_as_columns_even_when_all_is_missing(kind: str) -> None:
    hollow: dict[str, Any] = {"metadata": None, "spec": None, "status": [], "data": 3}
    for made in ({}, hollow):
        found = table(kind, [made])
        assert len(found["rows"][0]["cells"]) == len(found["columnDefinitions"])
