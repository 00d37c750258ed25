"""v1.13 rules on the node alone, where no recording shows them or the letter matters."""

from __future__ import annotations

import json

import pytest

from builders import (
    Said,
    decided,
    judged,
    node,
    pod,
    profile,
    scored,
    tolerates,
    view,
)
from podium.engine.framework.rule import FilterRule
from podium.engine.rules.nodes import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeLabelPresence,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CheckNodeUnschedulable,
    EqualPriority,
    HostName,
    NodeLabelPriority,
    NodePreferAvoidPodsPriority,
)
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod

HOST = ("node(s) didn't match the requested hostname",)
CORDONED = ("node(s) were unschedulable",)
NOT_READY = "node(s) were not ready"
OUT_OF_DISK = "node(s) were out of disk space"
NETWORK = "node(s) had unavailable network"
LABELS = ("node(s) didn't have the requested labels",)


def said(predicate: FilterRule, wanted: Pod, one: Node) -> Said:
    return judged(predicate, wanted, view(one))[one.name]


def test_a_pod_that_names_its_node_fits_that_node_only() -> None:
    columns = view(node("a"), node("b", labels={"kubernetes.io/hostname": "a"}))

    assert judged(HostName(), pod(node="a"), columns) == {"a": (), "b": HOST}
    assert judged(HostName(), pod(node="elsewhere"), columns) == {"a": HOST, "b": HOST}
    assert judged(HostName(), pod(), columns) == {"a": (), "b": ()}


def test_a_named_host_is_part_of_the_basics() -> None:
    columns = view(node("a"), node("b", cpu=0))

    decision = decided(columns, pod(node="c", requests={"cpu": 1}), profile())

    assert decision.failed() == {"a": list(HOST), "b": ["Insufficient cpu", *HOST]}
    assert decision.preemption is not None
    assert decision.preemption.potential == ()


@pytest.mark.parametrize(
    ("conditions", "unschedulable", "expected"),
    [
        pytest.param({}, False, (), id="what is not reported is fine"),
        pytest.param({"Ready": "True"}, False, (), id="ready"),
        pytest.param({"Ready": "False"}, False, (NOT_READY,), id="not ready"),
        pytest.param({"Ready": "Unknown"}, False, (NOT_READY,), id="unknown is not ready"),
        pytest.param({"OutOfDisk": "False"}, False, (), id="disk space"),
        pytest.param({"OutOfDisk": "Unknown"}, False, (OUT_OF_DISK,), id="unknown disk space"),
        pytest.param({"NetworkUnavailable": "True"}, False, (NETWORK,), id="no network"),
        pytest.param({"NetworkUnavailable": "Unknown"}, False, (NETWORK,), id="unknown network"),
        pytest.param({"MemoryPressure": "True"}, False, (), id="pressure is another rule's matter"),
        pytest.param(
            {"NetworkUnavailable": "True", "OutOfDisk": "True", "Ready": "False"},
            False,
            (NETWORK, OUT_OF_DISK, NOT_READY),
            id="all are reported, in the order of the conditions",
        ),
        pytest.param({}, True, CORDONED, id="a cordoned node"),
        pytest.param(
            {"Ready": "False"}, True, (NOT_READY, *CORDONED), id="the cordon is reported last"
        ),
    ],
)
def test_node_conditions(
    conditions: dict[str, str], unschedulable: bool, expected: tuple[str, ...]
) -> None:
    one = node(conditions=conditions, unschedulable=unschedulable)

    assert said(CheckNodeCondition(), pod(tolerations=[tolerates("", "Exists")]), one) == expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(tolerates("", "Exists"), (), id="tolerating everything"),
        pytest.param(
            tolerates("node.kubernetes.io/unschedulable", "Exists", effect="NoSchedule"),
            (),
            id="tolerating cordons",
        ),
        pytest.param(
            tolerates("node.kubernetes.io/unschedulable"), (), id="equal to the empty value"
        ),
        pytest.param(tolerates(), (), id="the empty toleration covers the empty value"),
        pytest.param(
            tolerates("node.kubernetes.io/unschedulable", "Exists", effect="NoExecute"),
            CORDONED,
            id="another effect",
        ),
        pytest.param(tolerates("other", "Exists"), CORDONED, id="another key"),
    ],
)
def test_who_may_use_a_cordoned_node(toleration: object, expected: Said) -> None:
    wanted = pod(tolerations=[toleration])  # type: ignore[list-item]

    assert said(CheckNodeUnschedulable(), wanted, node(unschedulable=True)) == expected


GUARANTEED = {"cpu": "1"}


@pytest.mark.parametrize(
    ("predicate", "condition", "reason", "every_pod"),
    [
        (CheckNodeMemoryPressure(), "MemoryPressure", "node(s) had memory pressure", False),
        (CheckNodeDiskPressure(), "DiskPressure", "node(s) had disk pressure", True),
        (CheckNodePIDPressure(), "PIDPressure", "node(s) had pid pressure", True),
    ],
    ids=["memory", "disk", "pid"],
)
def test_pressure(predicate: FilterRule, condition: str, reason: str, every_pod: bool) -> None:
    pressed = node(conditions={condition: "True"})

    assert said(predicate, pod(), pressed) == (reason,)
    assert said(predicate, pod(), node(conditions={condition: "Unknown"})) == ()
    assert said(predicate, pod(), node(conditions={condition: "False"})) == ()
    assert said(predicate, pod(requests=GUARANTEED), pressed) == ((reason,) if every_pod else ())


@pytest.mark.parametrize(
    ("wanted", "best_effort"),
    [
        pytest.param(pod(), True, id="nothing at all"),
        pytest.param(pod(requests={"cpu": 0, "memory": "0"}), True, id="zero is nothing"),
        pytest.param(pod(requests={"ephemeral-storage": 1}), True, id="storage does not count"),
        pytest.param(pod(requests={"example.com/gpu": 1}), True, id="nor do other resources"),
        pytest.param(pod(limits={"memory": 1}), False, id="a limit is a promise"),
        pytest.param(pod(requests={"cpu": "1m"}), False, id="so is a request"),
    ],
)
def test_who_feels_memory_pressure(wanted: Pod, best_effort: bool) -> None:
    found = said(CheckNodeMemoryPressure(), wanted, node(conditions={"MemoryPressure": "True"}))

    assert bool(found) == best_effort


def test_a_pressure_no_longer_reported_stays_as_it_was() -> None:
    columns = view(node("a", conditions={"DiskPressure": "True"}))
    rule = CheckNodeDiskPressure()

    columns.put_node(node("a"))
    assert judged(rule, pod(), columns)["a"] == ("node(s) had disk pressure",)

    columns.put_node(node("a", conditions={"MemoryPressure": "False"}))
    assert judged(rule, pod(), columns)["a"] == ("node(s) had disk pressure",)

    columns.put_node(node("a", conditions={"DiskPressure": "False"}))
    assert judged(rule, pod(), columns)["a"] == ()

    columns.put_node(node("a"))
    assert judged(rule, pod(), columns)["a"] == ()


def test_a_pressure_is_forgotten_when_the_node_goes() -> None:
    # Even with a pod still on it: the node itself is what remembers.
    for stays in (False, True):
        pods = [pod("x", node="a")] if stays else []
        columns = view(node("a", conditions={"DiskPressure": "True"}), *pods)

        columns.drop_node("a")
        columns.put_node(node("a"))

        assert judged(CheckNodeDiskPressure(), pod(), columns)["a"] == ()


@pytest.mark.parametrize(
    ("labels", "presence", "expected"),
    [
        pytest.param({"a": "", "b": "1"}, True, (), id="all wanted keys are there"),
        pytest.param({"a": ""}, True, LABELS, id="one is missing"),
        pytest.param({}, True, LABELS, id="all are missing"),
        pytest.param({}, False, (), id="no unwanted key is there"),
        pytest.param({"b": ""}, False, LABELS, id="one unwanted key, even with no value"),
    ],
)
def test_label_presence(labels: dict[str, str], presence: bool, expected: Said) -> None:
    rule = CheckNodeLabelPresence(["a", "b"], presence=presence)

    assert said(rule, pod(), node(labels=labels)) == expected


@pytest.mark.parametrize(
    ("presence", "expected"), [(True, [10, 10, 0]), (False, [0, 0, 10])], ids=["has", "lacks"]
)
def test_node_label(presence: bool, expected: list[int]) -> None:
    columns = view(node("a", labels={"x": "1"}), node("b", labels={"x": ""}), node("c"))

    found = scored(NodeLabelPriority("x", presence=presence, name="x"), pod(), columns)

    assert list(found.values()) == expected


def test_equal() -> None:
    assert scored(EqualPriority(), pod(), view(node("a"), node("b"))) == {"a": 1, "b": 1}


def avoiding(*controllers: object) -> str:
    entries = [{"podSignature": {"podController": each}} for each in controllers]
    return json.dumps({"preferAvoidPods": entries})


@pytest.mark.parametrize(
    ("annotation", "owner", "expected"),
    [
        pytest.param("", ("ReplicaSet", "u"), 10, id="no annotation"),
        pytest.param(
            avoiding({"kind": "ReplicaSet", "uid": "u"}), ("ReplicaSet", "u"), 0, id="meant"
        ),
        pytest.param(
            avoiding({"kind": "ReplicaSet", "uid": "v"}, {"kind": "ReplicaSet", "uid": "u"}),
            ("ReplicaSet", "u"),
            0,
            id="meant by one of several",
        ),
        pytest.param(
            avoiding({"kind": "ReplicaSet", "uid": "u"}), ("ReplicaSet", "v"), 10, id="another uid"
        ),
        pytest.param(
            avoiding({"kind": "ReplicaSet", "uid": "u"}),
            ("ReplicationController", "u"),
            10,
            id="another kind",
        ),
        pytest.param(
            avoiding({"kind": "StatefulSet", "uid": "u"}),
            ("StatefulSet", "u"),
            10,
            id="a kind that cannot be meant",
        ),
        pytest.param(avoiding({"kind": "ReplicaSet", "uid": "u"}), None, 10, id="no controller"),
        pytest.param("{", ("ReplicaSet", "u"), 10, id="not to be read"),
        pytest.param("[]", ("ReplicaSet", "u"), 10, id="of another shape"),
    ],
)
def test_nodes_that_avoid_pods(
    annotation: str, owner: tuple[str, str] | None, expected: int
) -> None:
    key = "scheduler.alpha.kubernetes.io/preferAvoidPods"
    columns = view(node("n", annotations={key: annotation} if annotation else None), node("m"))

    found = scored(NodePreferAvoidPodsPriority(), pod(owner=owner), columns)

    assert found == {"n": expected, "m": 10}
